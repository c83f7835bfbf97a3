//! The official MCP clients of both generations list the tools, and buy with an access token and by x402.

use evm::signature::PrivateKey;
use local::{Stack, report};
use serde_json::json;
use tokio::process::Command;

use crate::clients::{installed, lines, wallet};
use crate::support::{Payer, run, stack};

/// Runs a client as a new wallet with a dollar, and a token with a dollar of credits. Then checks its output and what
/// it was charged.
async fn buys(stack: &Stack, command: &mut Command) {
    let (key, _) = wallet(stack, 1_000_000).await;
    let payer = Payer::of(PrivateKey::parse(&key).expect("a key"), &stack.config, &stack.base_url);
    payer.give_credits(stack, 1_000_000).await;
    let mut about = report::json(stack);
    about["wallet"] = json!(key);
    about["token"] = json!(payer.token(stack).await);
    let said = lines(command, &about).await;
    let step = |name: &str| {
        let found = said.iter().find(|line| line["step"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {said:?}"))
    };
    let names = step("tools")["names"].as_array().expect("names");
    for name in ["agora_web_read", "agora_soul_execute", "agora_soul_purchase", "agora_get_request", "agora_balance"] {
        assert!(names.contains(&json!(name)), "{name} is not in {names:?}");
    }
    // From the short list, the client finds and rehearses a tool that is not in it.
    let short = step("short");
    assert!(short["names"].as_array().is_some_and(|names| names.len() <= 20), "{short}");
    assert_eq!(
        (&short["found"], &short["rehearsed"]["dry_run"]),
        (&json!("agora_vin_decode"), &json!(true)),
        "{short}"
    );
    for name in ["token", "x402"] {
        assert_eq!(step(name)["isError"], false, "{}", step(name));
        assert_eq!(step(name)["body"]["result"]["make"], "Honda", "{}", step(name));
    }
    for name in ["token-read", "x402-read"] {
        assert_eq!(step(name)["job"]["status"], "completed", "{}", step(name));
        assert!(step(name)["job"]["result"]["markdown"].as_str().is_some_and(|text| text.len() > 100));
    }
    let paid = step("x402");
    assert_eq!(paid["resource"], "mcp://tool/agora_vin_decode");
    assert_eq!((&paid["settlement"]["success"], &paid["again"]), (&json!(true), &paid["body"]), "{paid}");
    assert_eq!(payer.balance(stack).await, 1_000_000 - 7_000);
    let identity = [("authorization", about["token"].as_str().expect("a token"))];
    let balance = payer.client.get("/v1/tools/balance", &identity).await;
    assert_eq!(balance.json()["credits_balance"], "0.993000");
}

async fn node_buys(line: &str, era: &str) {
    let Some(folder) = installed("mcp").await else { return };
    let stack = stack().await;
    buys(&stack, Command::new("node").arg(folder.join("buy.mjs")).args([line, era])).await;
}

#[test]
fn the_mcp_client_2_for_typescript_buys_in_both_revisions() {
    run(async {
        node_buys("client", "auto").await;
        node_buys("client", "legacy").await;
    });
}

/// This client validates every result against the tool's output schema, including the unpaid one.
#[test]
fn the_mcp_client_1_for_typescript_sees_the_price_and_buys() {
    run(node_buys("sdk", "legacy"));
}

#[test]
fn the_mcp_client_2_for_python_buys() {
    run(async {
        let Some(folder) = installed("python").await else { return };
        let stack = stack().await;
        buys(&stack, Command::new(folder.join(".venv/bin/python")).arg(folder.join("mcp_buy.py"))).await;
    });
}
