//! Unipile's own SDK judges our contract server and what our adapter asks.

use std::collections::BTreeMap;

use base::clock::{Clock, Timestamp};
use base::ids::{AgentId, RequestId};
use serde_json::{Value, json};
use tokio::process::Command;
use tools_network::action::Kind;
use tools_network::providers::unipile::Unipile as Adapter;
use tools_network::providers::{Act, Fate, Found, Login, Provider};
use uuid::Uuid;

use super::installed;
use crate::support::unipile::{Asked, KEY, Unipile};
use crate::support::{run, stack_with};

const ACCOUNT: &str = "acc-sdk";
const CALLBACK: &str = "https://agora.example.com/callback";
/// The calls of `calls.mjs`.
const CALLS: usize = 15;

/// The contract server answers as Unipile's SDK expects, and our adapter asks as that SDK does: the same methods, paths, queries, content
/// types and fields.
#[test]
fn unipiles_sdk_reads_the_contract_server_and_asks_the_same() {
    run(async {
        let Some(folder) = installed("unipile").await else { return };
        let unipile = Unipile::start().await;
        let mut command = Command::new("node");
        let output =
            command.arg("calls.mjs").args([&unipile.url, KEY]).current_dir(folder).output().await.expect("node");
        let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{told}{errors}");
        assert_eq!(told.lines().count(), CALLS, "{told}");
        assert_eq!(unipile.strange(), Vec::<String>::new());
        let by_sdk: Vec<Asked> = unipile.asked().into_iter().map(|asked| masked(asked, &unipile)).collect();

        let unipile = Unipile::start().await;
        let stack = stack_with(|options| unipile.options(options)).await;
        ask(&Adapter { outbound: &stack.worker.toolbox.outbound }).await;
        assert_eq!(unipile.strange(), Vec::<String>::new());
        let by_us: Vec<Asked> = unipile.asked().into_iter().map(|asked| masked(asked, &unipile)).collect();
        for (sdk, us) in by_sdk.iter().zip(&by_us) {
            assert_eq!(us, sdk);
        }
        assert_eq!(by_us.len(), CALLS);
    });
}

/// Without what differs from run to run.
fn masked(asked: Asked, unipile: &Unipile) -> Asked {
    let mut fields: BTreeMap<String, Value> = asked.fields.into_iter().collect();
    for (name, value) in &mut fields {
        match name.as_str() {
            // Such as 2026-11-28T10:00:00.000Z
            "expiresOn" => *value = json!(value.as_str().map(|time| (time.len(), time.ends_with('Z')))),
            "api_url" => *value = json!(value == &json!(unipile.url)),
            "name" => *value = json!(value.is_string()),
            _ => {}
        }
    }
    Asked { fields: fields.into_iter().collect(), ..asked }
}

/// What `calls.mjs` asks, by our adapter.
async fn ask(adapter: &Adapter<'_>) {
    let again = |again| Login {
        agent: AgentId::from_bytes([1; 16]),
        intent: Uuid::nil(),
        callback: CALLBACK,
        expires_at: Clock::system().now(),
        again,
        success_url: None,
        failure_url: None,
        origin: "https://agora.example.com",
    };
    for again in [again(None), again(Some(ACCOUNT))] {
        adapter.link(&again).await.expect("a link");
    }
    adapter.member(ACCOUNT).await.expect("an answer").expect("an account");
    adapter.request_history(ACCOUNT).await.expect("an answer");
    adapter.profile(ACCOUNT, "friend-jane", false).await.expect("an answer").expect("a member");
    let act = |kind, target, text| Act {
        key: RequestId::from_bytes([1; 16]),
        kind,
        upstream: ACCOUNT,
        target,
        text,
        since: Timestamp::default(),
    };
    let done = async |kind, target, text| match adapter.act(&act(kind, target, text)).await {
        Fate::Done(ids) => ids,
        other => panic!("{kind:?}: {other:?}"),
    };
    let sent = done(Kind::Message, "p-friend-jane", "Hello").await;
    let chat = sent.chat.expect("a chat");
    done(Kind::Reply, &chat, "Hello").await;
    adapter.page(ACCOUNT, None, 250).await.expect("messages");
    adapter.chat(ACCOUNT, &chat).await.expect("an answer").expect("a chat");
    done(Kind::React, "7332661864792854528", "insightful").await;
    let invited = done(Kind::Invite, "p-jane", "We met in Lyon.").await.invitation.expect("an id");
    let found = adapter.look(&act(Kind::Invite, "p-jane", "")).await.expect("an answer");
    assert!(matches!(found, Found::Perhaps(all) if all.len() == 1));
    done(Kind::WithdrawInvite, &invited, "").await;
    assert!(adapter.forget(ACCOUNT).await.expect("an answer"));
}
