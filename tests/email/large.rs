//! Large mails: their inputs are blobs beside the job, and large attachments are uploaded.

use std::time::Duration;

use base::encoding::base64_standard;
use base::ids::RequestId;
use gate::jobs::input::StoredInput;
use gate::jobs::job::{self, Outcome};
use gate::jobs::slots;
use local::Stack;
use platform::store::queue::Message;
use serde_json::{Value, json};
use tools_email::recipient::State;

use super::crashes::left_behind;
use super::{Agent, EACH, INBOX, SEND, boxes, mail_to, post_office, with};
use crate::souls_turns::{ended, job};
use crate::support::{Answer, eventually, run};

const UPLOADS: &str = "/v1/tools/email/uploads";

fn id_of(accepted: &Answer) -> RequestId {
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    accepted.json()["request_id"].as_str().expect("an id").parse().expect("an id")
}

/// Whether a blob was written below this prefix.
fn has_blobs(stack: &Stack, prefix: &str) -> bool {
    stack.outbox.with_file_name("blobs").join(prefix).exists()
}

/// Bytes that are neither text nor repetitive.
fn noise(count: usize) -> Vec<u8> {
    (0..count as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn a_large_mail_arrives_whole_and_its_job_stays_small() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        // 200 KB of text, and an attachment that makes the body larger than 1 MiB.
        let text = "ü".repeat(100_000);
        let file = base64_standard(&noise(1_000_000));
        let attached = |file: &str| json!({"attachments": [{"filename": "noise.bin", "content": file}]});
        let short = with(mail_to(bob.address.as_str()), json!({"body": text}));
        let body = with(short.clone(), attached(&file));
        let quote = ada.quote(&short).await;
        let quote = quote["quote_id"].as_str().expect("a quote");
        let agent = ada.payer.address().to_string();
        let unpaid = ada.payer.client.post(SEND, &[("x-agent-id", &agent), ("x-quote-id", quote)], &body).await;
        assert_eq!(unpaid.status, 402, "{}", unpaid.text);
        assert!(!has_blobs(&stack, "inputs"), "a price costs no blob");

        ada.payer.give_credits(&stack, EACH).await;
        let token = ada.payer.token(&stack).await;
        let paid = [("authorization", token.as_str()), ("x-quote-id", quote)];
        let id = id_of(&ada.payer.client.post(SEND, &paid, &body).await);
        let done = ada.payer.finished(&id.to_string()).await;
        assert_eq!(done["status"], "completed", "{done}");
        let row: Option<Value> = stack.app.db.get_latest(&stack.app.db.tables.jobs, job::key(id)).await.unwrap();
        let row = row.expect("a row");
        assert!(row.to_string().len() < 4_096, "{row}");
        let StoredInput::Blob(input) = job(&stack, id).await.input else { panic!("{row}") };
        assert_eq!(stack.app.blobs.size(&input.key).await.unwrap(), Some(input.bytes as u64));

        let listed = bob.inbox("").await;
        let mail = bob.payer.get(&format!("{INBOX}/{}", listed["emails"][0]["id"].as_str().expect("a mail"))).await;
        assert_eq!(mail.json()["body"].as_str().map(str::trim), Some(text.as_str()));
        assert_eq!(mail.json()["attachments"][0]["content"], file.as_str());

        // A copy of the call gets its answer, and another attachment does not.
        assert_eq!(id_of(&ada.payer.client.post(SEND, &paid, &body).await), id);
        let other = with(short, attached("YQ=="));
        let refused = ada.payer.client.post(SEND, &paid, &other).await;
        assert_eq!(refused.error(), (400, "quote_mismatch".to_owned()));
        assert_eq!(bob.mails().await.len(), 1);
    });
}

/// The blob vanishes, or changes, while the job waits for a place. What an earlier run has sent is charged all the same.
#[test]
fn an_input_that_is_lost_is_paid_back_but_not_what_was_sent() {
    run(async {
        let stack = post_office(|options| options).await;
        let (db, clock) = (&stack.app.db, &stack.app.clock);
        let bob = Agent::new(&stack).await;
        for (altered, is_half_sent) in [(false, false), (true, false), (false, true)] {
            let label = format!("altered: {altered}, half sent: {is_half_sent}");
            let ada = Agent::new(&stack).await;
            let mut places = Vec::new();
            for place in 0..slots::OF_BUYER {
                let (pool, holder) = (slots::of_buyer(ada.payer.agent()), format!("place {place}"));
                let taken = slots::take(db, &[pool], holder, Duration::from_secs(600), clock.now()).await;
                places.push(taken.expect("a database").expect("a place"));
            }
            let to = boxes(&bob, 2);
            let body = with(mail_to(to.clone()), json!({"body": "x".repeat(10_000)}));
            let quote = ada.quote(&body).await;
            let id = id_of(&ada.send(&quote, &body).await);
            let waiting = eventually("the job to be put down", || async {
                Some(job(&stack, id).await).filter(|job| job.put_down > 0)
            })
            .await;
            if is_half_sent {
                left_behind(&stack.worker.toolbox, ada.payer.agent(), id, &to, [State::Accepted, State::Pending]).await;
            }
            let StoredInput::Blob(input) = waiting.input else { panic!("a blob") };
            match altered {
                false => stack.app.blobs.delete(&input.key).await.expect("a store"),
                true => stack.app.blobs.put(&input.key, "application/json", b"{}".to_vec()).await.expect("a store"),
            }
            for place in places {
                place.release(db, clock.now()).await;
            }
            stack.queue.push(Message::Job { request_id: id, trace: None }.to_json());
            let job = ended(&stack, id).await;
            let (outcome, back) = match is_half_sent {
                true => (Outcome::Completed, EACH),
                false => (Outcome::Failed, 2 * EACH),
            };
            assert_eq!(job.outcome, Some(outcome), "{label}: {job:?}");
            assert_eq!(ada.money(&stack).await, (2 * EACH, back), "{label}");
        }
        assert!(bob.mails().await.is_empty());
    });
}

#[test]
fn an_uploaded_attachment_arrives_and_is_its_owners_alone() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        // Letters, because the test's client reads text.
        let content: Vec<u8> = noise(3 << 20).iter().map(|byte| b'a' + byte % 26).collect();
        let size = json!({"size": content.len()});
        let reserved = ada.payer.change("POST", UPLOADS, &size).await;
        assert_eq!(reserved.error(), (403, "uploads_reserved".to_owned()));
        for rich in [&ada, &bob] {
            rich.payer.has_settled(&stack, 50_000).await;
        }
        for wrong in [json!({}), json!({"size": 0}), json!({"size": 26_214_401})] {
            let refused = ada.payer.change("POST", UPLOADS, &wrong).await;
            assert_eq!((refused.status, &refused.json()["details"][0]["path"]), (400, &json!("size")), "{wrong}");
        }
        let unproven = ada.payer.client.post(UPLOADS, &[], &size).await;
        assert_eq!(unproven.error(), (401, "proof_required".to_owned()));

        let upload = ada.payer.change("POST", UPLOADS, &size).await;
        assert_eq!(upload.status, 200, "{}", upload.text);
        let upload = upload.json();
        let file = json!({"filename": "letters.bin", "url": upload["upload_id"]});
        let with_file = |to: &Agent| with(mail_to(to.address.as_str()), json!({"attachments": [file]}));
        let refused_before_price = async |agent: &Agent, to: &Agent| {
            let quote = agent.quote(&mail_to(to.address.as_str())).await;
            let refused = agent.send(&quote, &with_file(to)).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{}", refused.text);
            assert_eq!(refused.json()["details"][0]["path"], "attachments.0.url");
        };
        refused_before_price(&ada, &bob).await;

        let url = upload["url"].as_str().expect("a URL").strip_prefix(&stack.base_url).expect("the local store");
        let put = async |bytes: Vec<u8>| {
            let headers = [("content-type", "application/octet-stream"), ("if-none-match", "*")];
            ada.payer.client.send("PUT", url, &headers, bytes).await.expect("an answer").status
        };
        assert_eq!(put([&content[..], b"x"].concat()).await, 401, "larger than was said");
        assert_eq!(put(content.clone()).await, 200);
        assert_eq!(put(content.clone()).await, 412, "once");
        refused_before_price(&bob, &ada).await;

        let quote = ada.quote(&mail_to(bob.address.as_str())).await;
        let job = ada.ended(ada.send(&quote, &with_file(&bob)).await).await;
        assert_eq!(job["status"], "completed", "{job}");
        let mail = bob.inbox("include_body=true").await["emails"][0].clone();
        let attached = &mail["attachments"][0];
        assert_eq!((&attached["filename"], &attached["size"]), (&json!("letters.bin"), &size["size"]), "{mail}");
        let link = attached["url"].as_str().expect("too large for the answer");
        let opened = bob.payer.client.get(link.strip_prefix(&stack.base_url).expect("a link of ours"), &[]).await;
        assert_eq!(opened.status, 307, "{}", opened.text);
        let url = opened.header("location").and_then(|url| url.strip_prefix(&stack.base_url)).expect("the local store");
        let fetched = bob.payer.client.get(url, &[]).await;
        assert_eq!(fetched.status, 200);
        assert!(fetched.text.as_bytes() == content, "byte for byte");
    });
}
