//! Product searches and purchases by the public Python SDKs.

use futures_util::future::join_all;
use local::{Stack, report};
use serde_json::json;
use tokio::process::Command;

use super::{installed, lines, sdks, wallet};
use crate::commerce::{order, shipment, shop_page, with_rye};
use crate::support::rye::{KEY, Rye};
use crate::support::{Payer, run, stack_with};

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

/// The contract server answers as the provider's own SDK expects, and our adapter asks as that SDK does.
#[test]
fn the_providers_sdk_reads_the_contract_server_and_asks_the_same() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let rye = Rye::start().await;
        rye.script(|script| script.shipments = json!([shipment()]));
        let mut command = Command::new(python.join(".venv/bin/python"));
        let output = command.arg(python.join("rye_sdk.py")).args([&rye.url, KEY]).output().await.expect("a program");
        let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{told}{errors}");
        for state in ["retrieving_offer", "awaiting_confirmation", "placing_order", "completed"] {
            assert!(told.contains(state), "{state}: {told}");
        }
        assert!(told.contains(r#""shipments": ["shipped"]"#) && told.contains(r#""order": true"#), "{told}");
        let by_sdk = rye.begun();

        rye.clear();
        rye.script(|script| script.slow = 0);
        let stack = stack_with(|options| with_rye(options, &rye)).await;
        let unpaid = Payer::with(&stack, 0).await.ask("/v1/tools/commerce/buy", &order()).await;
        assert_eq!(unpaid.status, 402, "{}", unpaid.text);
        assert_eq!(rye.begun(), by_sdk);
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
