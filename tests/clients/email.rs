//! E-mail by the public Python SDKs, and `local/mail.sh`.

use std::process::Stdio;

use futures_util::future::join_all;
use local::{Stack, report};
use serde_json::json;
use tokio::process::Command;

use super::{AboutStack, installed, lines, sdks, wallet};
use crate::support::zone::Zone;
use crate::support::{root, run, stack_with};

/// The operator's domain.
const DOMAIN: &str = "agents.test";

/// The steps of `email_tools.py`.
const STEPS: [&str; 7] = ["a_quote", "a_mail", "a_reply", "a_named_sender", "pausing", "a_token_session", "analytics"];

/// What each version lacks, in the order in which the steps notice.
const LACKING: [(&str, &[&str]); 4] = [
    ("0.34.0", &["a method for the inbox", "a method for quotes", "a method for analytics of mail"]),
    ("0.37.0", &["a method for the inbox", "a method for quotes", "a method for analytics of mail"]),
    ("0.38.0", &["a method for quotes", "a method for analytics of mail"]),
    ("0.50.0", &["a method for quotes", "a method for analytics of mail"]),
];

#[test]
fn the_public_sdks_write_to_each_other() {
    run(async {
        let Some(python) = installed("python").await else { return };
        // For the look at a domain that nobody owns.
        let zone = Zone::new().start().await;
        let stack = stack_with(|options| {
            options
                .with("SERVICE_NAME", "OneShot")
                .with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_")
                .with("EMAIL_DOMAINS", DOMAIN)
                .with("DNS_SERVER", zone.address().to_string())
        })
        .await;
        assert_eq!(LACKING.map(|(version, _)| version), sdks::VERSIONS.map(|(version, _)| version));
        join_all(LACKING.iter().map(|(version, lacks)| writes(&python, &stack, version, lacks))).await;
    });
}

async fn writes(python: &std::path::Path, stack: &Stack, version: &str, lacks: &[&str]) {
    let mut about = report::json(stack);
    about["domain"] = json!(DOMAIN);
    for name in ["ada", "bob"] {
        about["wallets"][name] = json!(wallet(stack, 1_000_000).await.0);
    }
    let mut command = Command::new(python.join(".venv/bin/python"));
    command.arg(python.join("email_tools.py")).arg(version).arg(sdks::folder(python, version));
    let told = lines(&mut command, &about).await;
    let named = |member: &str| told.iter().filter_map(|line| line[member].as_str()).collect::<Vec<_>>();
    assert_eq!(named("step"), STEPS, "{version}");
    assert_eq!(named("not_in_this_version"), lacks, "{version}");
}

/// `local/mail.sh`, as the README shows it.
#[test]
fn mail_sh_lets_two_agents_write_to_each_other() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack_with(|options| options.with("EMAIL_DOMAINS", DOMAIN)).await;
        let file = AboutStack::written(&report::json(&stack));
        let mut script = Command::new(root().join("local/mail.sh"));
        let script = script.args(["--json", "Lunch?", "At noon."]).env("STACK", &file.0).stdin(Stdio::null());
        let output = script.output().await.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("\"subject\":\"Lunch?\"") && text.contains("\"subject\":\"Re: Lunch?\""), "{text}");
    });
}
