//! Accounts of the professional network by the public Python SDKs.

use std::path::Path;

use futures_util::future::join_all;
use local::{Stack, report};
use tokio::process::Command;

use super::{installed, lines, sdks, wallet};
use crate::support::{run, stack_with};

/// The steps of `network_tools.py`.
const STEPS: [&str; 13] = [
    "three_logins",
    "an_invitation",
    "an_acceptance",
    "a_message",
    "an_answer",
    "a_sync",
    "what_was_read",
    "a_profile",
    "a_reaction",
    "a_withdrawal",
    "a_token_session",
    "a_smaller_grant",
    "an_end",
];

/// What each version lacks, in the order in which the steps notice. None has methods for the local network.
const LACKING: [(&str, &[&str]); 4] = [
    ("0.34.0", &["a method for messages", "methods for invitations", "a lookup for syncs"]),
    ("0.37.0", &["a lookup for syncs"]),
    ("0.38.0", &[]),
    ("0.50.0", &[]),
];

#[test]
fn the_public_sdks_use_network_accounts() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let stack = stack_with(|options| {
            options
                .with("SERVICE_NAME", "OneShot")
                .with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_")
                .with("NETWORK_PROVIDERS", "local")
        })
        .await;
        assert_eq!(LACKING.map(|(version, _)| version), sdks::VERSIONS.map(|(version, _)| version));
        join_all(LACKING.iter().map(|(version, lacks)| meets(&python, &stack, version, lacks))).await;
    });
}

async fn meets(python: &Path, stack: &Stack, version: &str, lacks: &[&str]) {
    let mut about = report::json(stack);
    for (name, micro) in [("ann", 5_000_000), ("bob", 1_000_000), ("eve", 0)] {
        about["wallets"][name] = wallet(stack, micro).await.0.into();
    }
    let mut command = Command::new(python.join(".venv/bin/python"));
    command.arg(python.join("network_tools.py")).arg(version).arg(sdks::folder(python, version));
    let told = lines(&mut command, &about).await;
    let named = |member: &str| told.iter().filter_map(|line| line[member].as_str()).collect::<Vec<_>>();
    assert_eq!(named("step"), STEPS, "{version}");
    assert_eq!(named("not_in_this_version"), lacks, "{version}");
}
