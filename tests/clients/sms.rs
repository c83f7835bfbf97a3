//! Texts by the public Python SDKs, and `local/text.sh`.

use std::process::Stdio;

use futures_util::future::join_all;
use local::{Stack, report};
use tokio::process::Command;

use super::{AboutStack, installed, lines, sdks, wallet};
use crate::support::{root, run, stack, stack_with};

/// The steps of `sms_tools.py`.
const STEPS: [&str; 5] = ["numbers", "a_text", "an_answer", "an_emergency_number", "a_token_session"];

/// What each version lacks, in the order in which the steps notice.
const LACKING: [(&str, &[&str]); 4] = [
    ("0.34.0", &["a method for received texts"]),
    ("0.37.0", &["a method for received texts"]),
    ("0.38.0", &[]),
    ("0.50.0", &[]),
];

#[test]
fn the_public_sdks_text_each_other() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let stack = stack_with(|options| {
            options.with("SERVICE_NAME", "OneShot").with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_")
        })
        .await;
        assert_eq!(LACKING.map(|(version, _)| version), sdks::VERSIONS.map(|(version, _)| version));
        join_all(LACKING.iter().map(|(version, lacks)| texts(&python, &stack, version, lacks))).await;
    });
}

async fn texts(python: &std::path::Path, stack: &Stack, version: &str, lacks: &[&str]) {
    let mut about = report::json(stack);
    for name in ["ada", "bob"] {
        about["wallets"][name] = wallet(stack, 20_000_000).await.0.into();
    }
    let mut command = Command::new(python.join(".venv/bin/python"));
    command.arg(python.join("sms_tools.py")).arg(version).arg(sdks::folder(python, version));
    let told = lines(&mut command, &about).await;
    let named = |member: &str| told.iter().filter_map(|line| line[member].as_str()).collect::<Vec<_>>();
    assert_eq!(named("step"), STEPS, "{version}");
    assert_eq!(named("not_in_this_version"), lacks, "{version}");
}

/// `local/text.sh`, as the README shows it.
#[test]
fn text_sh_lets_two_agents_text_each_other() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack().await;
        let file = AboutStack::written(&report::json(&stack));
        let mut script = Command::new(root().join("local/text.sh"));
        let script = script.args(["--json", "Lunch at noon?"]).env("STACK", &file.0).stdin(Stdio::null());
        let output = script.output().await.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("\"body\":\"Lunch at noon?\""), "{text}");
        assert!(text.contains("\"body\":\"You wrote: Lunch at noon?. Fine with me.\""), "{text}");
    });
}
