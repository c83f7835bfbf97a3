//! Accounts of the professional network by the public Python SDKs, by the official MCP client, by the commands of docs/NETWORK.md, and
//! the login page in a browser.

use std::path::Path;
use std::process::Stdio;

use futures_util::future::join_all;
use local::{Stack, report};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{AboutStack, installed, lines, sdks, wallet};
use crate::network::{Agent, local_stack};
use crate::support::chromium::chromium;
use crate::support::{root, run, stack_with};

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

/// The tools that the MCP client lists by the words `linkedin` and `network`.
const TOOLS: [&str; 14] = [
    "agora_get_request",
    "agora_linkedin_invite",
    "agora_linkedin_invite_withdraw",
    "agora_linkedin_message",
    "agora_linkedin_profile_view",
    "agora_linkedin_react",
    "agora_linkedin_reply",
    "agora_linkedin_sync",
    "agora_network_accounts",
    "agora_network_connect",
    "agora_network_connection",
    "agora_network_conversations",
    "agora_network_invitations",
    "agora_network_messages",
];

/// Two hosts with access tokens use every tool of the family. Only the login is a person's.
#[test]
fn the_mcp_client_uses_network_accounts() {
    run(async {
        let Some(folder) = installed("mcp").await else { return };
        let stack = local_stack().await;
        let (ann, bob, eve) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        let mut about = report::json(&stack);
        about["ann"] = json!({"token": ann.token});
        for (name, agent) in [("bob", &bob), ("eve", &eve)] {
            let (account, member) = agent.joins(name).await;
            about[name] = json!({"token": agent.token, "account": account, "member": member});
        }
        let said = lines(Command::new("node").arg(folder.join("network.mjs")), &about).await;
        let step = |name: &str| {
            let found = said.iter().find(|line| line["step"] == name);
            found.unwrap_or_else(|| panic!("no {name} in {said:?}"))
        };
        let names = step("tools")["names"].as_array().expect("names");
        let mut names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, TOOLS);
        let connection = step("connection");
        assert_eq!(connection["status"], "completed", "{connection}");
        assert_eq!(step("accounts")["ids"], json!([connection["account"]]), "{}", step("accounts"));
        assert_eq!(step("invitations")["statuses"], json!(["withdrawn", "accepted"]), "{}", step("invitations"));

        // What cannot be taken back is not sold without a key, and under one key it is sent once.
        let refused = step("keyless");
        assert_eq!(
            (&refused["isError"], &refused["body"]["error"]),
            (&json!(true), &json!("idempotency_key_required")),
            "{refused}"
        );
        let stranger = &step("stranger")["job"];
        assert_eq!(stranger["error_reason"], "recipient_not_connected", "{stranger}");
        for name in ["invite", "message", "reply", "view", "react"] {
            let job = &step(name)["job"];
            let ended = (&job["status"], &job["result"]["status"]);
            assert_eq!(ended, (&json!("completed"), &json!("sent")), "{name}: {job}");
        }
        assert_eq!(step("message")["again"], step("message")["job"]["request_id"], "{}", step("message"));
        let received = &step("received")["messages"];
        assert_eq!(received.as_array().map(Vec::len), Some(1), "{received}");
        assert_eq!(
            (&received[0]["text"], &received[0]["direction"]),
            (&json!("Shall we talk on Thursday?"), &json!("inbound")),
            "{received}"
        );
        let sync = &step("sync")["job"]["result"];
        assert_eq!((&sync["outcome"], &sync["messages_seen"]), (&json!("exhausted"), &json!(2)), "{}", step("sync"));
        let read = step("read");
        assert_eq!((&read["name"], &read["state"]), (&json!("bob"), &json!("complete")), "{read}");
        assert_eq!(read["texts"], json!(["Thursday at ten suits me.", "Shall we talk on Thursday?"]), "{read}");
        let profile = &step("view")["job"]["result"]["profile"];
        assert_eq!((&profile["name"], &profile["network_distance"]), (&json!("bob"), &json!("FIRST_DEGREE")));
        assert_eq!(bob.get("local").await.json()["posts"][0]["reactions"], json!({"insightful": 1}));
        let withdrawn = step("withdraw");
        assert_eq!(withdrawn["job"]["result"]["status"], "withdrawn", "{withdrawn}");
        assert_eq!(eve.get("local").await.json()["invitations"], json!([]), "{withdrawn}");

        // Two invitations, a message, a sync and a withdrawal, a view and a reaction; the stranger's was paid back.
        for (agent, left) in [(&ann, "4.880000"), (&bob, "4.980000"), (&eve, "5.000000")] {
            let identity = [("authorization", agent.token.as_str())];
            let balance = agent.payer.client.get("/v1/tools/balance", &identity).await.json();
            assert_eq!(balance["credits_balance"], left, "{balance}");
        }
    });
}

/// The commands of docs/NETWORK.md, pasted in their order into one shell.
#[test]
fn the_commands_of_the_manual_work_in_their_order() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = local_stack().await;
        let file = AboutStack::written(&report::json(&stack));
        let manual = std::fs::read_to_string(root().join("docs/NETWORK.md")).expect("the manual");
        let blocks: Vec<&str> = manual.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        let commands = blocks.join("\n");
        // A job that was not bought would be asked for without end.
        let mut shell = Command::new("timeout");
        shell.args(["180", "sh", "-c", &commands]).current_dir(root()).env("STACK", &file.0).stdin(Stdio::null());
        let output = shell.output().await.expect("a shell");
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}{errors}");
        for (said, times) in [
            // The link of the first section's command, and both logins.
            (r#""status":"pending""#, 1),
            ("You are logged in", 2),
            // The invitation and the message.
            (r#""status":"sent""#, 2),
            (r#""status":"connected""#, 1),
            // The sync, and what is read then.
            (r#""outcome":"exhausted""#, 1),
            (r#""text":"Shall we talk on Thursday?""#, 1),
            (r#""sync_state":"complete""#, 1),
        ] {
            assert!(text.matches(said).count() >= times, "{said}: {text}{errors}");
        }
    });
}

/// A person opens the login link in a real browser without scripts, mistypes the code once, and is logged in.
#[test]
fn the_login_page_needs_no_scripts() {
    run(async { logs_in(&local_stack().await).await });
}

/// The same on a stack as `make run` starts it, which refuses what pages of other origins post.
#[test]
fn the_login_page_is_no_page_of_another_origin() {
    run(async {
        let stack =
            stack_with(|options| options.with("NETWORK_PROVIDERS", "local").with("LOCAL_OPEN_TO_PAGES", "false")).await;
        logs_in(&stack).await;
    });
}

async fn logs_in(stack: &Stack) {
    let (Some(python), Some(browser)) = (installed("python").await, chromium().await) else { return };
    let ann = Agent::new(stack).await;
    let issued = ann.post("connect", &json!({"requested_actions": ["read", "view_profile"]})).await.json();
    let code = ann.post("local/code", &json!({"name": "Ann"})).await.json();
    let (wrong, right) = ("The code is wrong", "You are logged in");
    let about = json!({
        "browser": browser.url, "page": issued["url"], "codes": [["QQQQQQQQQQ", wrong], [code["code"], right]],
    });
    let mut command = Command::new(python.join(".venv/bin/python"));
    let shown = lines(command.arg(python.join("network_login.py")), &about).await;
    let [probe, form, again, done] = shown.as_slice() else { panic!("four pages, not {shown:?}") };
    assert_eq!(probe["title"], "scripts are off");
    let has = |page: &Value, words: &str| page["text"].as_str().is_some_and(|text| text.contains(words));
    let asks = format!("The agent {} asks to use an account of this network", ann.payer.agent());
    for words in ["Log in: Local network of this service", asks.as_str(), "It may then: read, view profile"] {
        assert!(has(form, words) && has(again, words), "{words}: {shown:?}");
    }
    assert!(!has(form, wrong) && has(again, wrong) && has(done, right), "{shown:?}");
    let intent = ann.get(&format!("connect/{}", issued["intent_id"].as_str().expect("an id"))).await.json();
    assert_eq!(
        (&intent["status"], &intent["account"]["display_name"], &intent["account"]["allowed_actions"]),
        (&json!("completed"), &json!("Ann"), &json!(["read", "view_profile"])),
        "{intent}"
    );
}
