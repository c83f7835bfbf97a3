//! Product searches and purchases by the public Python SDKs.

use futures_util::future::join_all;
use local::{Stack, report};
use tokio::process::Command;

use super::{installed, lines, sdks, wallet};
use crate::commerce::{shop_page, with_rye};
use crate::support::rye::Rye;
use crate::support::{run, stack_with};

/// The steps of `commerce_tools.py`.
const STEPS: [&str; 3] = ["a_search", "a_purchase", "a_refused_purchase"];

#[test]
fn the_public_sdks_find_and_buy_products() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let (rye, page) = (Rye::start().await, shop_page().await);
        rye.script(|script| script.slow = 0);
        let stack = stack_with(|options| {
            with_rye(options, &rye)
                .with("SERVICE_NAME", "OneShot")
                .with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_")
                .with("LOCAL_FETCH_ALLOW", &page)
        })
        .await;
        join_all(sdks::VERSIONS.iter().map(|(version, _)| shops(&python, &stack, version, &page))).await;
        let versions = sdks::VERSIONS.len();
        assert_eq!(rye.orders(), (versions, u32::try_from(versions).expect("a few")));
    });
}

async fn shops(python: &std::path::Path, stack: &Stack, version: &str, page: &str) {
    let mut about = report::json(stack);
    about["wallets"]["ada"] = wallet(stack, 60_000_000).await.0.into();
    about["product"] = format!("http://{page}/lamp").into();
    let mut command = Command::new(python.join(".venv/bin/python"));
    command.arg(python.join("commerce_tools.py")).arg(version).arg(sdks::folder(python, version));
    let told = lines(&mut command, &about).await;
    let steps: Vec<&str> = told.iter().filter_map(|line| line["step"].as_str()).collect();
    assert_eq!(steps, STEPS, "{version}");
}
