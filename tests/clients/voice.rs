//! Calls by the public Python SDKs, by `local/call.sh`, and by the commands of docs/VOICE.md.

use std::process::Stdio;

use futures_util::future::join_all;
use local::{Stack, report};
use serde_json::Value;
use tokio::process::Command;

use super::{AboutStack, installed, lines, sdks, wallet};
use crate::support::{root, run, stack, stack_with};

/// The steps of `voice_tools.py`. Every version has a method for each.
const STEPS: [&str; 7] = [
    "a_number",
    "its_settings",
    "a_call",
    "the_callee_reads",
    "an_emergency_number",
    "a_token_session",
    "a_number_that_answers_no_more",
];

#[test]
fn the_public_sdks_answer_and_call() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let stack = stack_with(|options| {
            options.with("SERVICE_NAME", "OneShot").with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_")
        })
        .await;
        join_all(sdks::VERSIONS.iter().map(|(version, _)| calls(&python, &stack, version))).await;
    });
}

async fn calls(python: &std::path::Path, stack: &Stack, version: &str) {
    let mut about = report::json(stack);
    for name in ["ada", "bob"] {
        about["wallets"][name] = wallet(stack, 20_000_000).await.0.into();
    }
    let mut command = Command::new(python.join(".venv/bin/python"));
    command.arg(python.join("voice_tools.py")).arg(version).arg(sdks::folder(python, version));
    let told = lines(&mut command, &about).await;
    let steps: Vec<&str> = told.iter().filter_map(|line| line["step"].as_str()).collect();
    assert_eq!(steps, STEPS, "{version}");
}

/// `local/call.sh`, as the README shows it.
#[test]
fn call_sh_lets_one_agent_call_another() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack().await;
        let file = AboutStack::written(&report::json(&stack));
        let mut script = Command::new(root().join("local/call.sh"));
        let script = script.arg("--json").env("STACK", &file.0).stdin(Stdio::null());
        let output = script.output().await.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let (conversation, call) = text.trim_end().rsplit_once('\n').expect("a conversation and a call");
        for line in [
            "Assistant: Bakery Ann, this is an automated assistant. How can I help you?",
            "Caller: What are your opening hours?\nAssistant: Our opening hours are 7 to 18 on weekdays.",
            "Caller: How much does rye cost?\nAssistant: A loaf of rye costs 4.50 euros.",
            "Caller: No, thank you. Bye!\nAssistant: ",
        ] {
            assert!(conversation.contains(line), "{line}: {text}");
        }
        let call: Value = serde_json::from_str(call).expect("JSON");
        for (member, value) in [
            ("status", "ended"),
            ("ended_reason", "assistant_hung_up"),
            ("mode", "in_hours"),
            ("charge_usdc", "0.350000"),
        ] {
            assert_eq!(call[member], value, "{call}");
        }
        assert_eq!(call["transcript"], conversation, "both sides have the same words");

        // The README's next command shows the call.
        let mut script = Command::new(root().join("local/ask.sh"));
        script.arg("/v1/tools/voice/inbound").env("STACK", &file.0).stdin(Stdio::null());
        let output = script.output().await.expect("a shell");
        let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(listed["data"]["calls"][0]["id"], call["id"], "{listed}");
    });
}

/// The commands of docs/VOICE.md, pasted in their order into one shell.
#[test]
fn the_commands_of_the_manual_work_in_their_order() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack().await;
        let file = AboutStack::written(&report::json(&stack));
        let manual = std::fs::read_to_string(root().join("docs/VOICE.md")).expect("the manual");
        let blocks: Vec<&str> = manual.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        let commands = blocks
            .join("\n")
            .replace("http://127.0.0.1:8402", &stack.base_url)
            .replace(".local/stack.json", file.0.to_str().expect("a path in UTF-8"));
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&commands).current_dir(root()).env("STACK", &file.0).stdin(Stdio::null());
        let output = shell.output().await.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        for said in [
            // How your number answers.
            r#""first_message":"Bakery Ann, "#,
            // Call another agent: a turn, its end, and what the callee reads.
            r#""said":"Our opening hours are 7 to 18 on weekdays.""#,
            r#""ended_reason":"caller_hung_up""#,
            r#"hours?\nAssistant: Our opening hours are 7 to 18 on weekdays.""#,
            // Have a call made: the price without a number, and the result.
            r#""amount_usdc":"0.700000""#,
            r#""outcome":"reached_person""#,
        ] {
            assert!(text.contains(said), "{said}: {text}{}", String::from_utf8_lossy(&output.stderr));
        }
    });
}
