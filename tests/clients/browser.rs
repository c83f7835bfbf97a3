//! Browser tasks by the public Python SDKs, and by `local/browse.sh`.

use std::process::Stdio;

use futures_util::future::join_all;
use local::{Stack, report};
use tokio::process::Command;

use super::{AboutStack, installed, lines, sdks, wallet};
use crate::browsing::shop;
use crate::support::chromium::chromium;
use crate::support::{root, run, stack_with};

/// The steps of `browser_tools.py`.
const STEPS: [&str; 3] = ["a_task", "the_next_task", "a_refused_task"];

#[test]
fn the_public_sdks_do_tasks_in_a_browser() {
    run(async {
        let (Some(python), Some(browser)) = (installed("python").await, chromium().await) else { return };
        let (host, _) = shop().await;
        let stack = stack_with(|options| {
            let options = options.with("SERVICE_NAME", "OneShot").with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_");
            options.with("BROWSER_URL", browser.url.as_str()).with("LOCAL_FETCH_ALLOW", &host)
        })
        .await;
        join_all(sdks::VERSIONS.iter().map(|(version, _)| tasks(&python, &stack, &host, version))).await;
    });
}

async fn tasks(python: &std::path::Path, stack: &Stack, host: &str, version: &str) {
    let mut about = report::json(stack);
    about["wallets"]["ada"] = wallet(stack, 20_000_000).await.0.into();
    about["shop"] = host.into();
    let mut command = Command::new(python.join(".venv/bin/python"));
    command.arg(python.join("browser_tools.py")).arg(version).arg(sdks::folder(python, version));
    let told = lines(&mut command, &about).await;
    let steps: Vec<&str> = told.iter().filter_map(|line| line["step"].as_str()).collect();
    assert_eq!(steps, STEPS, "{version}");
}

/// `local/browse.sh`, as docs/BROWSER.md shows it.
#[test]
fn browse_sh_does_a_task_and_says_how() {
    run(async {
        let (Some(_), Some(browser)) = (installed("v2").await, chromium().await) else { return };
        let (host, _) = shop().await;
        let stack =
            stack_with(|options| options.with("BROWSER_URL", browser.url.as_str()).with("LOCAL_FETCH_ALLOW", &host))
                .await;
        let file = AboutStack::written(&report::json(&stack));
        let mut script = Command::new(root().join("local/browse.sh"));
        let task = format!("Open http://{host}/login. Read the heading.");
        let script = script.env("STACK", &file.0).env("TASK", task).stdin(Stdio::null());
        let output = script.output().await.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            text.contains("success: true") && text.contains("\"Log in\"") && text.contains("charged 0.005"),
            "{text}"
        );
    });
}
