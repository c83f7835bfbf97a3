//! The quality of reading pages: our reader and two public ones, on the same pages of the test sites.
//!
//! F1 is over words, against the known text of each page. "Kept" is the share of texts beside the content (menus,
//! notices, hidden text) that the reader let through. The public readers are installed on first use, in pinned
//! versions.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::prelude::{BASE64_STANDARD, Engine};
use platform::net::Page;
use serde_json::{Value, json};
use sites::score::score;
use sites::{PageKind, SitePage};
use url::Url;
use web::read::{ReadOptions, read_page};

use crate::{Error, Extent};

/// The text that a reader extracted from each page, by address.
type Texts = BTreeMap<String, String>;

#[derive(Clone, Copy, Default)]
struct Sums {
    f1: f64,
    kept: f64,
    /// The number of pages, and of pages with text that should be left out.
    pages: f64,
    guarded: f64,
}

pub fn measure(extent: Extent) -> Result<(), Error> {
    let pages: Vec<&SitePage> = sites::pages().iter().filter(|page| is_judged(page)).collect();
    let mut readers = vec![("ours", ours(&pages)?)];
    type Reader = fn(&[&SitePage]) -> Result<Texts, Error>;
    let public: &[(&str, Reader)] = &[("trafilatura 2.3.1", python), ("Readability 0.6.0", node)];
    // Installing them takes a while.
    for (name, read) in extent.pick(public, &[]) {
        match read(&pages) {
            Ok(texts) => readers.push((name, texts)),
            Err(error) => eprintln!("{name} could not be asked: {error}"),
        }
    }
    let heads: String = readers.iter().map(|(name, _)| format!("{name:>22}")).collect();
    println!("\nreading {} pages: F1 of the text, and texts kept that are not content", pages.len());
    println!("{:12} {heads}", "");
    let mut kinds: Vec<Option<PageKind>> = pages.iter().map(|page| Some(page.kind)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.push(None);
    for kind in kinds {
        let name = kind.map_or("all".to_owned(), |kind| format!("{kind:?}"));
        let columns = readers.iter().map(|(_, texts)| {
            let Sums { f1, kept, pages, guarded } = sums(&pages, kind, texts);
            format!("{:>14.3} {:>5.1} %", f1 / pages, kept * 100.0 / guarded.max(1.0))
        });
        println!("{name:12} {}", columns.collect::<String>());
    }
    Ok(())
}

/// HTML pages with a known text.
fn is_judged(page: &SitePage) -> bool {
    page.content_type.starts_with("text/html") && !page.truth.main_text.is_empty()
}

fn sums(pages: &[&SitePage], kind: Option<PageKind>, texts: &Texts) -> Sums {
    let mut sums = Sums::default();
    for page in pages.iter().filter(|page| kind.is_none_or(|kind| page.kind == kind)) {
        let score = score(texts.get(&page.url()).map_or("", String::as_str), &page.truth);
        sums.f1 += score.f1;
        sums.pages += 1.0;
        if let Some(kept) = score.boilerplate {
            sums.kept += kept;
            sums.guarded += 1.0;
        }
    }
    sums
}

fn ours(pages: &[&SitePage]) -> Result<Texts, Error> {
    let read = |page: &&SitePage| {
        let fetched = Page {
            final_url: Url::parse(&page.url())?,
            status: 200,
            content_type: Some(page.content_type.clone()),
            robots: None,
            cache_control: None,
            body: page.body.clone(),
            truncated: false,
            redirects: 0,
        };
        let read = read_page(&fetched, &ReadOptions::default()).map_err(|refused| refused.to_string())?;
        Ok((page.url(), read.markdown))
    };
    pages.iter().map(read).collect()
}

fn python(pages: &[&SitePage]) -> Result<Texts, Error> {
    let folder = folder();
    let environment = folder.join(".venv");
    let mark = environment.join(".installed");
    let wanted = std::fs::read(folder.join("requirements.txt"))?;
    if !std::fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        eprintln!("installing trafilatura (once)");
        quietly(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/pip"));
        quietly(
            pip.args(["install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"])
                .current_dir(&folder),
        )?;
        std::fs::write(mark, wanted)?;
    }
    texts(Command::new(environment.join("bin/python")).arg(folder.join("extract.py")), pages)
}

fn node(pages: &[&SitePage]) -> Result<Texts, Error> {
    let folder = folder();
    let age = |name: &str| std::fs::metadata(folder.join(name)).and_then(|file| file.modified()).ok();
    // npm's own record of what is installed is as new as the lock file.
    if age("node_modules/.package-lock.json") < age("package-lock.json") {
        eprintln!("installing Readability and jsdom (once)");
        quietly(
            Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
                .current_dir(&folder),
        )?;
    }
    texts(Command::new("node").arg(folder.join("extract.cjs")), pages)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("extractors")
}

fn quietly(command: &mut Command) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().into()) }
}

/// Sends the pages to a program, one per line, and reads their texts, one per line.
fn texts(command: &mut Command, pages: &[&SitePage]) -> Result<Texts, Error> {
    let lines: String = pages
        .iter()
        .map(|page| {
            let html = BASE64_STANDARD.encode(&page.body);
            format!("{}\n", json!({"url": page.url(), "type": page.content_type, "html": html}))
        })
        .collect();
    let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut input = program.stdin.take().ok_or("no input")?;
    let writing = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = program.wait_with_output()?;
    writing.join().map_err(|_| "the pages could not be given")??;
    let mut texts = Texts::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let answer: Value = serde_json::from_str(line)?;
        if let (Some(url), Some(text)) = (answer["url"].as_str(), answer["text"].as_str()) {
            texts.insert(url.to_owned(), text.to_owned());
        }
    }
    if texts.len() < pages.len() {
        Err(format!("{} of {} pages came back", texts.len(), pages.len()).into())
    } else {
        Ok(texts)
    }
}
