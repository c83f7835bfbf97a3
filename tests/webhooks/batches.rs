//! A full batch of the aggregator, announced over a slow SQS.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use base::ids::RequestId;
use ledger::webhooks::endpoint::MAX_ENDPOINTS;
use platform::connections::Connections;
use platform::mail::Mailer;
use platform::store::queue::SqsQueue;
use serde_json::{Value, json};

use super::bench::{Bench, config};
use crate::support::receiver::Receiver;
use crate::support::run;

/// Changes in one batch of the aggregator, and the function's timeout, as in the template.
const BATCH: usize = 49;
const TIMEOUT: Duration = Duration::from_secs(30);
/// The time that SQS takes for one request.
const SLOW: Duration = Duration::from_millis(30);

/// Messages of each request to the stand-in for SQS.
type Requests = Arc<Mutex<Vec<Vec<String>>>>;

/// Refuses the first message of the first request, and takes the others.
async fn answer(State(requests): State<Requests>, body: String) -> axum::Json<Value> {
    tokio::time::sleep(SLOW).await;
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let entries = body["Entries"].as_array().expect("a batch");
    let mut requests = requests.lock().unwrap();
    let refused = usize::from(requests.is_empty());
    requests.push(entries[refused..].iter().map(|one| one["MessageBody"].as_str().unwrap().to_owned()).collect());
    let taken = |one: &Value| json!({"Id": one["Id"], "MessageId": one["Id"], "MD5OfMessageBody": "0"});
    let failed = |one: &Value| json!({"Id": one["Id"], "SenderFault": false, "Code": "ServiceUnavailable"});
    axum::Json(json!({
        "Successful": entries[refused..].iter().map(taken).collect::<Vec<_>>(),
        "Failed": entries[..refused].iter().map(failed).collect::<Vec<_>>(),
    }))
}

#[test]
fn a_full_batch_for_ten_endpoints_is_announced_within_the_functions_time() {
    run(async {
        let receiver = Receiver::start().await;
        let bench = Bench::new(&[&receiver]).await;
        for _ in 0..MAX_ENDPOINTS {
            bench.endpoint(&receiver.url).await;
        }
        let requests = Requests::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sqs = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(requests.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let config = config(&sqs);
        let queue = SqsQueue::new(&Connections::open(&config).unwrap().aws, &format!("{sqs}/0/deliveries"));

        // Jobs that fail and are paid back raise two events each.
        let now = bench.clock.now();
        let records: Vec<Value> = (0..BATCH)
            .map(|number| {
                let id = RequestId::bought_with("quote", &[&number.to_be_bytes()]).to_string();
                let new = json!({
                    "pk": {"S": format!("JOB#{id}")},
                    "agent": {"S": bench.agent.to_string()},
                    "request_id": {"S": id},
                    "receipt_id": {"S": "a receipt"},
                    "tool": {"S": "web_read"},
                    "outcome": {"S": "failed"},
                    "credited": {"N": "2000"},
                    "updated": {"N": now.millis().to_string()},
                });
                let old = json!({"pk": new["pk"]});
                json!({"dynamodb": {"SequenceNumber": number.to_string(), "OldImage": old, "NewImage": new}})
            })
            .collect();
        let event = serde_json::from_value(json!({"Records": records})).unwrap();
        let started = Instant::now();
        aggregator::handle(&bench.db, &Mailer::new(&config).unwrap(), &queue, event, now).await.unwrap();
        assert!(started.elapsed() < TIMEOUT, "it took {:?}", started.elapsed());

        let requests = requests.lock().unwrap();
        let deliveries = BATCH * 2 * MAX_ENDPOINTS;
        assert_eq!(requests.len(), deliveries / 10, "a refused message does not stop the next ones");
        assert_eq!(requests.iter().flatten().collect::<HashSet<_>>().len(), deliveries - 1);
    });
}
