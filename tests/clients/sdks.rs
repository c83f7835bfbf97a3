//! The account features by the public Python SDK, in every version whose differences affect us.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use local::{Stack, report};
use serde_json::json;
use tokio::process::Command;

use super::{installed, lines, wallet};
use crate::support::{run, stack_with};

/// The tested versions of the public SDK, with the steps of `sdk.py` that each lacks.
pub const VERSIONS: [(&str, &[&str]); 4] = [
    ("0.34.0", &["proofs on paid legs", "lookups by name", "expiry of tokens", "notifications"]),
    ("0.37.0", &["lookups by name", "expiry of tokens", "notifications"]),
    ("0.38.0", &["expiry of tokens"]),
    ("0.50.0", &[]),
];

/// A step that no version has.
const LACKED_BY_ALL: &str = "a method that lists receipts";

/// The steps of `sdk.py`.
const STEPS: [&str; 14] = [
    "a_direct_call",
    "a_queued_call",
    "a_top_up",
    "credits_of_a_wallet",
    "a_wallet_without_money",
    "budgets",
    "access_tokens",
    "a_token_session",
    "a_token_short_of_credits",
    "a_token_and_the_owners_rules",
    "approvals",
    "notifications",
    "receipts",
    "a_revoked_token",
];

/// The folder where a version of the SDK is installed.
pub fn folder(python: &Path, version: &str) -> PathBuf {
    python.join(".venv/sdk").join(version)
}

/// The account features with each version of the public SDK, concurrently on one stack, each with its own wallets.
#[test]
fn the_public_sdks_use_every_account_feature() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let stack = stack_with(|options| {
            options.with("SERVICE_NAME", "OneShot").with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_")
        })
        .await;
        join_all(VERSIONS.iter().map(|(version, lacks)| holds_an_account(&python, &stack, version, lacks))).await;
    });
}

async fn holds_an_account(python: &Path, stack: &Stack, version: &str, lacks: &[&str]) {
    let mut about = report::json(stack);
    about["outbox"] = json!(stack.outbox);
    for (name, micro) in [("rich", 10_000_000), ("capped", 1_000_000), ("poor", 0)] {
        about["wallets"][name] = json!(wallet(stack, micro).await.0);
    }
    let mut command = Command::new(python.join(".venv/bin/python"));
    command.arg(python.join("sdk.py")).arg(version).arg(folder(python, version));
    let told = lines(&mut command, &about).await;
    let named = |member: &str| told.iter().filter_map(|line| line[member].as_str()).collect::<Vec<_>>();
    assert_eq!(named("step"), STEPS, "{version}");
    let missing = named("not_in_this_version");
    assert_eq!(missing, [lacks, &[LACKED_BY_ALL]].concat(), "{version}");
    eprintln!("oneshot-python {version}: {} steps; not in this version: {}", STEPS.len(), missing.join(", "));
}
