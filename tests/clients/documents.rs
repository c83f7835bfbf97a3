//! The README and the documents: their links, and the snippets of docs/CLIENTS.md, word for word.

use std::process::Stdio;

use evm::signature::PrivateKey;
use tokio::process::Command;

use super::{installed, wallet};
use crate::support::{Payer, root, run, stack};

/// A block that is marked `run`. Its last line says in a comment what it prints first.
struct Snippet<'a> {
    language: &'a str,
    /// The folder in `tests/clients` with what it imports.
    folder: &'a str,
    code: &'a str,
}

fn snippets(page: &str) -> Vec<Snippet<'_>> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks
        .filter_map(|block| {
            let (head, code) = block.split_once('\n')?;
            let (language, folder) = head.split_once(" run ")?;
            Some(Snippet { language, folder, code })
        })
        .collect()
}

#[test]
fn the_snippets_for_clients_buy() {
    run(async {
        let page = std::fs::read_to_string(root().join("docs/CLIENTS.md")).expect("the page");
        let snippets = snippets(&page);
        assert!(snippets.len() >= 7, "{} snippets", snippets.len());
        let stack = stack().await;
        let (key, _) = wallet(&stack, 1_000_000).await;
        let payer = Payer::of(PrivateKey::parse(&key).expect("a key"), &stack.config, &stack.base_url);
        payer.give_credits(&stack, 1_000_000).await;
        let token = payer.token(&stack).await.replace("Bearer ", "");
        for snippet in snippets {
            let Some(folder) = installed(snippet.folder).await else { return };
            let (program, arguments) = match snippet.language {
                "js" => ("node".into(), vec!["--input-type=module", "--eval"]),
                _ => (folder.join(".venv/bin/python"), vec!["-c"]),
            };
            let mut command = Command::new(program);
            command.args(arguments).arg(snippet.code.replace("http://127.0.0.1:8402", &stack.base_url));
            command.env("PRIVATE_KEY", &key).env("TOKEN", &token).env("PAGE", format!("{}/article", stack.site_url));
            // Imports are looked for from the working directory on.
            let output = command.current_dir(&folder).stdin(Stdio::null()).output().await.expect("a client");
            let last = snippet.code.trim_end().lines().next_back().unwrap_or_default();
            let (_, wanted) = last.rsplit_once("// ").or_else(|| last.rsplit_once("# ")).expect("what it prints");
            let text = String::from_utf8_lossy(&output.stdout);
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && text.starts_with(wanted), "{}\n{text}\n{told}", snippet.code);
        }
    });
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let is_kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
    heading.to_lowercase().chars().filter(is_kept).collect::<String>().trim().replace(' ', "-")
}

/// Between the README, the documents and the files of the repository.
#[test]
fn every_link_leads_somewhere_and_the_readme_is_short() {
    let readme = root().join("README.md");
    let documents =
        std::fs::read_dir(root().join("docs")).expect("documents").map(|entry| entry.expect("a file").path());
    let documents = documents.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut wrong = Vec::new();
    for document in std::iter::once(readme.clone()).chain(documents) {
        let text = std::fs::read_to_string(&document).expect("a document");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        for link in links.filter(|link| !link.starts_with("http") && !link.contains(char::is_whitespace)) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = if path.is_empty() { document.clone() } else { document.with_file_name(path) };
            let has_heading = || {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                text.lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading)
            };
            if !file.exists() || (!heading.is_empty() && !has_heading()) {
                wrong.push(format!("{} leads to {link}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let lines = std::fs::read_to_string(readme).expect("the README").lines().count();
    assert!(lines < 200, "the README has {lines} lines");
}
