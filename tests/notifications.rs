//! Notifications: raised once even if events are delivered twice, listed newest first, read by their owner only.

use std::time::Duration;

use base::clock::Timestamp;
use ledger::notifications::{self, Notification, NotificationKind};
use local::Stack;
use serde_json::{Value, json};

use crate::support::{Answer, Payer, READ_PATH, eventually, run, stack};

const NOTES: &str = "/v1/tools/notifications";

fn list(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let body = answer.json();
    let notes = body["notifications"].as_array().unwrap().clone();
    assert_eq!(body["count"], notes.len());
    notes
}

fn titles(answer: &Answer) -> Vec<String> {
    list(answer).iter().map(|note| note["title"].as_str().unwrap().to_owned()).collect()
}

async fn patch(payer: &Payer, path: &str, scope: &str, body: &'static str) -> Answer {
    payer.client.send("PATCH", path, &[("x-agent-proof", &payer.proof(scope))], body).await.unwrap()
}

/// Raises `count` numbered notifications, one a second; the last one is `ago` seconds old.
async fn raise(stack: &Stack, payer: &Payer, count: i64, ago: i64) {
    let now = stack.app.clock.now().secs();
    for number in 0..count {
        let at = Timestamp::from_secs(now - ago - count + 1 + number);
        let note = Notification {
            kind: NotificationKind::BudgetWarning,
            title: number.to_string(),
            body: None,
            payload: None,
        };
        notifications::raise_now(&stack.app.db, payer.agent(), note, "a test", at).await.unwrap();
    }
}

#[test]
fn a_failed_job_is_reported_once_with_its_credit() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let accepted = payer.buy(READ_PATH, &json!({"url": "http://no-such-host.invalid/"})).await.json();
        let id = accepted["request_id"].as_str().unwrap().to_owned();
        payer.finished(&id).await;
        let told = || async { Some(list(&payer.get(NOTES).await)).filter(|notes| notes.len() >= 2) };
        let notes = eventually("two notifications", told).await;

        // The end of the job, delivered repeatedly.
        let event = json!({"Records": [{"dynamodb": {
            "SequenceNumber": "1",
            "OldImage": {"pk": {"S": format!("JOB#{id}")}},
            "NewImage": image(&stack, &id).await,
        }}]});
        for _ in 0..3 {
            let event = serde_json::from_value(event.clone()).unwrap();
            aggregator::handle(&stack.app.db, stack.notices.mailer(), &*stack.deliveries, event, stack.app.clock.now())
                .await
                .unwrap();
        }
        assert_eq!(list(&payer.get(NOTES).await), notes);

        let of = |kind: &str| notes.iter().find(|note| note["type"] == kind).unwrap_or_else(|| panic!("no {kind}"));
        assert_eq!(notes.len(), 2);
        let (failed, credit) = (of("job_failed"), of("credit_issued"));
        assert_eq!(failed["payload"]["request_id"], id);
        assert_eq!(credit["payload"]["amount_usdc"], "0.002000");
        for note in [failed, credit] {
            assert_eq!(note["read"], false);
            assert_eq!(note["agentId"], json!(payer.agent()));
            assert_eq!((&note["metadata"], &note["createdAt"]), (&note["payload"], &note["created_at"]));
        }

        // A notification that was read stays read after another delivery.
        let path = format!("{NOTES}/{}/read", failed["id"].as_str().unwrap());
        assert_eq!(patch(&payer, &path, "write", "{}").await.json(), json!({"success": true, "updated": 1}));
        let event = serde_json::from_value(event).unwrap();
        aggregator::handle(&stack.app.db, stack.notices.mailer(), &*stack.deliveries, event, stack.app.clock.now())
            .await
            .unwrap();
        let unread = list(&payer.get(&format!("{NOTES}?unread=true")).await);
        assert_eq!(unread.iter().map(|note| &note["type"]).collect::<Vec<_>>(), [&json!("credit_issued")]);
    });
}

/// A job as the new image of a stream record.
async fn image(stack: &Stack, id: &str) -> Value {
    use aws_sdk_dynamodb::types::AttributeValue::{self, N, S};
    fn json_of(value: &AttributeValue) -> Value {
        match value {
            S(text) => json!({"S": text}),
            N(number) => json!({"N": number}),
            AttributeValue::M(members) => {
                json!({"M": members.iter().map(|(name, value)| (name.clone(), json_of(value))).collect::<serde_json::Map<_, _>>()})
            }
            _ => Value::Null,
        }
    }
    let db = &stack.app.db;
    let key = |name: &str| S(name.to_owned());
    let get = db.client().get_item().table_name(&db.tables.jobs);
    let item = get.key("pk", key(&format!("JOB#{id}"))).key("sk", key("JOB")).send().await.unwrap().item.unwrap();
    json_of(&AttributeValue::M(item))["M"].take()
}

#[test]
fn completed_jobs_are_reported_but_direct_answers_are_not() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let vin = json!({"vin": crate::support::VIN});
        assert_eq!(payer.buy(crate::support::VIN_PATH, &vin).await.status, 200);
        let accepted = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await.json();
        let told = || async { Some(list(&payer.get(NOTES).await)).filter(|notes| !notes.is_empty()) };
        let notes = eventually("a notification", told).await;
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert_eq!(notes[0]["type"], "job_completed");
        assert_eq!(notes[0]["payload"]["request_id"], accepted["request_id"]);
    });
}

#[test]
fn notifications_are_newest_first_filtered_and_markable() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        // Old and new ones: read-all marks the two in different ways.
        raise(&stack, &payer, 4, 60).await;
        raise(&stack, &payer, 2, 0).await;
        assert_eq!(titles(&payer.get(NOTES).await), ["1", "0", "3", "2", "1", "0"]);
        assert_eq!(titles(&payer.get(&format!("{NOTES}?limit=3")).await), ["1", "0", "3"]);

        let id = list(&payer.get(NOTES).await)[2]["id"].as_str().unwrap().to_owned();
        let path = format!("{NOTES}/{id}/read");
        assert_eq!(patch(&payer, &path, "write", "").await.json(), json!({"success": true, "updated": 1}));
        assert_eq!(patch(&payer, &path, "read", "{}").await.json(), json!({"success": true, "updated": 0}));
        let unread = payer.get(&format!("{NOTES}?unread=true&limit=3")).await;
        assert_eq!(titles(&unread), ["1", "0", "2"], "the read one takes no place");

        let all = patch(&payer, &format!("{NOTES}/read-all"), "read", "{}").await;
        assert_eq!(all.json(), json!({"success": true, "updated": 5}));
        assert_eq!(list(&payer.get(&format!("{NOTES}?unread=1")).await), Vec::<Value>::new());
        assert!(list(&payer.get(NOTES).await).iter().all(|note| note["read"] == true));
        assert_eq!(patch(&payer, &format!("{NOTES}/read-all"), "write", "").await.json()["updated"], 0);

        // An event from before read-all that is raised only afterwards is unread.
        let note =
            Notification { kind: NotificationKind::SoulSale, title: "late".to_owned(), body: None, payload: None };
        let now = stack.app.clock.now();
        let happened = now.minus(Duration::from_secs(30));
        let write = notifications::raise_for(&stack.app.db, payer.agent(), note, "late", happened, now).unwrap();
        stack.app.db.write(write).await.unwrap();
        assert_eq!(titles(&payer.get(&format!("{NOTES}?unread=true")).await), ["late"]);
    });
}

#[test]
fn foreign_and_invalid_notification_requests_are_refused() {
    run(async {
        let stack = stack().await;
        let (payer, stranger) = (Payer::with(&stack, 0).await, Payer::with(&stack, 0).await);
        raise(&stack, &payer, 1, 0).await;
        let id = list(&payer.get(NOTES).await)[0]["id"].as_str().unwrap().to_owned();
        let missing = (404, "notification_not_found".to_owned());
        for id in [id.as_str(), "note_", "x", "note_01ARZ3NDEKTSV4RRFFQ69G5FAV", &id.to_lowercase(), "%00", "a%23b"] {
            let answer = patch(&stranger, &format!("{NOTES}/{id}/read"), "write", "{}").await;
            assert_eq!(answer.error(), missing, "{id}");
        }
        assert_eq!(list(&stranger.get(NOTES).await), Vec::<Value>::new());
        assert_eq!(patch(&stranger, &format!("{NOTES}/read-all"), "write", "{}").await.json()["updated"], 0);
        assert_eq!(list(&payer.get(NOTES).await)[0]["read"], false);

        for query in ["limit=0", "limit=201", "limit=-1", "limit=x", "limit=", "limit=1.5", "unread=maybe", "unread="] {
            let answer = payer.get(&format!("{NOTES}?{query}")).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{query}");
            assert_eq!(answer.json()["details"][0]["path"], query.split('=').next().unwrap(), "{query}");
        }
        for body in ["[]", "{", "null"] {
            let answer = patch(&payer, &format!("{NOTES}/{id}/read"), "write", body).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{body}");
        }
        let answer = payer.client.send("PATCH", &format!("{NOTES}/read-all"), &[], "{}").await.unwrap();
        assert_eq!(answer.error(), (401, "proof_required".to_owned()));
    });
}
