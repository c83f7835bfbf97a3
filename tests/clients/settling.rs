//! Published clients, and answers that come before their payment is settled.

use evm::parse_word;
use evm::signature::PrivateKey;
use local::report;
use serde_json::json;
use tokio::process::Command;

use super::{installed, lines, wallet};
use crate::support::{Payer, run, stack_with};

/// A client that pays again after a failed settlement pays once for an answer whose settlement is pending.
#[test]
fn a_pending_settlement_is_no_failure_to_published_clients() {
    run(async {
        let Some(folder) = installed("v2").await else { return };
        let stack = stack_with(|options| options.with("OVERLAP_BELOW_USDC", "0.01").with("PAYMENT_HOLD_MS", "0")).await;
        let (key, _) = wallet(&stack, 1_000_000).await;
        let word = parse_word(&key).expect("a word");
        let payer = Payer::of(PrivateKey::from_bytes(&word).expect("a key"), &stack.config, &stack.base_url);
        payer.has_settled(&stack, 50_000).await;
        let mut about = report::json(&stack);
        about["wallet"] = json!(key);
        let told = lines(Command::new("node").arg(folder.join("pending.mjs")), &about).await.remove(0);
        let data = &told["body"]["data"];
        assert_eq!((&told["status"], &data["settlement_status"]), (&json!(200), &json!("pending")), "{told}");
        assert_eq!((&told["signed"], &told["settlements"]), (&json!(1), &json!([null])), "{told}");
        let job = payer.finished(data["request_id"].as_str().expect("an id")).await;
        assert_eq!(job["settlement_status"], "settled", "{job}");
        assert_eq!(payer.balance(&stack).await, 995_000, "paid once");
    });
}
