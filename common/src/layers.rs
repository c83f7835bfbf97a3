//! Holds the modules to the line of layers at the top of `lib.rs`: each names only what stands beside it or to its right.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Who looks up nevertheless. The list is to become shorter.
const UPWARD: [(&str, &str); 9] = [
    // The entries stand beside what an entry is; crates of their own will part them.
    ("catalog", "providers"),
    ("catalog", "search"),
    ("catalog", "store"),
    ("catalog", "tools"),
    ("gate", "app"),
    ("http", "auth"),
    ("http", "checkout"),
    ("limits", "app"),
    ("named", "app"),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

/// The modules that a line of source names, at its beginning or within.
fn named(line: &str) -> Vec<String> {
    let name = |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let after = line.split("crate::").skip(1);
    let names = after.flat_map(|rest| match rest.strip_prefix('{') {
        Some(list) => list.split('}').next().unwrap_or_default().split(',').map(name).collect(),
        None => vec![name(rest)],
    });
    names.collect()
}

#[test]
fn every_module_looks_down() {
    let line = include_str!("lib.rs").lines().find(|line| line.contains(" -> ")).unwrap().trim_start_matches("//! ");
    let layers = line.split(" -> ").enumerate();
    let layers: HashMap<&str, usize> = layers.flat_map(|(at, names)| names.split(", ").map(move |n| (n, at))).collect();
    for module in ["search", "read", "net", "providers", "research", "tools", "store"] {
        assert!(layers.contains_key(module), "{module} is in no layer");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    files(&root, &mut sources);
    let mut wrong = Vec::new();
    for source in &sources {
        let place = source.strip_prefix(&root).unwrap();
        let module = place.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let Some(own) = layers.get(module) else { continue };
        let text = fs::read_to_string(source).unwrap();
        for other in text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(named) {
            let looks_up = layers.get(other.as_str()).is_some_and(|other| other < own);
            if looks_up && !UPWARD.contains(&(module, other.as_str())) {
                wrong.push(format!("{}: {other}", place.display()));
            }
        }
    }
    assert!(sources.len() > 300 && wrong.is_empty(), "{wrong:#?}");
}
