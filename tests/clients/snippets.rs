//! The snippets of docs/CLIENTS.md, word for word: each buys with the client that its block names.

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
