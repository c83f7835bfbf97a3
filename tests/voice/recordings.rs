//! Recordings of calls inside the deployment: what was said, read out by espeak-ng where it is set up.

use std::time::Duration;

use base::ids::RequestId;
use local::Stack;
use serde_json::{Value, json};
use tools_voice::calls;
use tools_voice::spoken::{HEADER, RATE};

use super::{Agent, MINUTE, call_id};
use crate::support::{Answer, Client, debian, run, stack, stack_with};

const CALL: &str = "/v1/tools/voice/call";

/// What a link to a recording answers.
async fn open(stack: &Stack, url: &Value) -> Answer {
    let path = url.as_str().and_then(|url| url.strip_prefix(stack.base_url.as_str()));
    let path = path.unwrap_or_else(|| panic!("not a link of ours: {url}"));
    Client::new(&stack.base_url).get(path, &[]).await
}

/// The seconds of the sound behind a link.
async fn seconds(stack: &Stack, url: &Value) -> f64 {
    let answer = open(stack, url).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("audio/wav")), "{}", answer.text);
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let wav = answer.bytes;
    assert_eq!((&wav[..4], &wav[8..16], &wav[36..40]), (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..]));
    let number = |at: usize| u32::from_le_bytes(wav[at..at + 4].try_into().expect("four bytes"));
    let length = u32::try_from(wav.len() - HEADER).expect("a length");
    assert_eq!((number(4), number(24), number(40)), (length + 36, RATE, length));
    f64::from(length) / f64::from(2 * RATE)
}

#[test]
fn what_was_said_is_read_out() {
    run(async {
        let Some(program) = debian::program("espeak-ng", &["/usr/bin/espeak-ng"]).await else { return };
        let path = program.to_str().expect("a path");
        let stack = stack_with(|options| options.with("ESPEAK_PATH", path)).await;
        let (ada, _) = Agent::with_number(&stack).await;
        let (bob, of_bob) = Agent::answering(&stack, 20 * MINUTE, json!({})).await;

        let greeted = call_id(&ada.ring(&of_bob.number).await);
        assert!(bob.call(greeted).await["recording_url"].is_null(), "it has not ended");
        ada.hang_up(greeted).await;
        let greeting = seconds(&stack, &bob.charged(greeted).await["recording_url"]).await;
        assert!((2.0..10.0).contains(&greeting), "{greeting}");

        // Read aloud, it takes some ten seconds; as a command or as markup, none.
        let made = std::env::temp_dir().join(format!("spoken-{}", RequestId::random()));
        let file = made.display();
        let hostile =
            format!("-w {file} --path=/ $(touch {file}) `touch {file}`; [[h@l@U]] <audio src=\"{file}\"/> --");
        let attacked = call_id(&ada.ring(&of_bob.number).await);
        ada.hears(attacked, &hostile).await;
        ada.hang_up(attacked).await;
        let url = bob.charged(attacked).await["recording_url"].clone();
        let longer = seconds(&stack, &url).await;
        assert!(longer > greeting + 5.0, "{longer} {greeting}");
        assert!(!made.exists(), "{hostile}");
        let forged = json!(format!("{}A", url.as_str().expect("a link")));
        assert_eq!(open(&stack, &forged).await.error(), (404, "recording_not_found".to_owned()));

        // Who bought the call gets a link, too.
        let body =
            json!({"objective": "Ask what bread costs.", "target_number": of_bob.number, "max_duration_minutes": 2});
        let unpaid = ada.payer.ask(CALL, &body).await;
        let accepted = ada.payer.redeem(CALL, &unpaid, &body).await.json();
        let job = ada.payer.finished(accepted["request_id"].as_str().expect("an id")).await;
        assert!(seconds(&stack, &job["result"]["recording_url"]).await > greeting, "{job}");
    });
}

#[test]
fn without_espeak_ng_there_is_no_recording() {
    run(async {
        let stack = stack().await;
        let (ada, _) = Agent::with_number(&stack).await;
        let (bob, of_bob) = Agent::answering(&stack, 20 * MINUTE, json!({})).await;
        let call = call_id(&ada.ring(&of_bob.number).await);
        ada.hang_up(call).await;
        assert!(bob.charged(call).await["recording_url"].is_null());
        let until = stack.app.clock.now().plus(Duration::from_secs(60));
        let token = calls::recording_token(&stack.worker.toolbox.mail_secret, call, until);
        let answer = Client::new(&stack.base_url).get(&format!("/v1/tools/voice/recordings/{token}"), &[]).await;
        assert_eq!(answer.error(), (404, "recording_not_found".to_owned()));
    });
}
