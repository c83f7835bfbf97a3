//! Goals by the public Python SDKs.

use futures_util::future::join_all;
use local::{Stack, report};
use tokio::process::Command;

use super::{installed, lines, sdks, wallet};
use crate::support::{run, stack_with};

/// The steps of `goal_tools.py`.
const STEPS: [&str; 4] = ["a_goal", "a_goal_that_asks", "a_cancelled_goal", "a_refused_goal"];

#[test]
fn the_public_sdks_run_goals_to_their_end() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let stack = stack_with(|options| {
            options.with("SERVICE_NAME", "OneShot").with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_")
        })
        .await;
        join_all(sdks::VERSIONS.iter().map(|(version, _)| goals(&python, &stack, version))).await;
    });
}

async fn goals(python: &std::path::Path, stack: &Stack, version: &str) {
    let mut about = report::json(stack);
    about["wallets"]["ada"] = wallet(stack, 20_000_000).await.0.into();
    let mut command = Command::new(python.join(".venv/bin/python"));
    command.arg(python.join("goal_tools.py")).arg(version).arg(sdks::folder(python, version));
    let told = lines(&mut command, &about).await;
    let steps: Vec<&str> = told.iter().filter_map(|line| line["step"].as_str()).collect();
    assert_eq!(steps, STEPS, "{version}");
}
