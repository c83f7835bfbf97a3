//! The store against a database, and the queue, the blob store and the secret store over their real protocols.
//!
//! `make test` runs the first part against the embedded DynamoDB. `make test-aws` runs all of it, and the other tests,
//! against an independent implementation of AWS (`AWS_TEST_ENDPOINT`).

use std::collections::HashMap;
use std::time::Duration;

use base::digest;
use base::ids::RequestId;
use evm::hex0x;
use platform::config::Config;
use platform::connections::Connections;
use platform::store::blob::{Access, S3Blobs};
use platform::store::db::Query;
use platform::store::queue::{Message, Queue, SqsQueue};
use platform::store::{Blobs, Db, Key, Write};
use serde_json::{Value, json};

use crate::support::s3::Bucket;
use crate::support::{Client, run};

fn unique() -> String {
    hex0x(&digest::random::<6>())[2..].to_owned()
}

fn config(endpoint: &str) -> Config {
    let variables = HashMap::from([
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("PAY_TO", "0x00000000000000000000000000000000000000ff".to_owned()),
        ("TABLE_PREFIX", format!("t{}", unique())),
    ]);
    Config::read(|name| variables.get(name).cloned()).expect("a configuration")
}

/// The endpoint of the other AWS implementation, if there is one.
fn other_aws() -> Option<String> {
    std::env::var("AWS_TEST_ENDPOINT").ok()
}

async fn db() -> Db {
    let endpoint = match other_aws() {
        Some(endpoint) => endpoint,
        None => local::database::start(None).await.expect("a database"),
    };
    let config = config(&endpoint);
    let db = Db::new(Connections::open(&config).expect("connections").aws.dynamodb(), config.tables);
    local::database::create_tables(&db).await.expect("tables");
    db
}

#[test]
fn a_refused_write_returns_the_conflicting_item() {
    run(async {
        let db = db().await;
        let key = || Key::new("A", "1");
        let put = |n: u64| Write::put(&db.tables.ledger, key(), &json!({"n": n})).unwrap().only_if_new();
        db.write(put(1)).await.unwrap();
        let refused = db.write(put(2)).await.unwrap_err();
        let old: HashMap<String, Value> =
            platform::store::db::parse(refused.refused(0).unwrap().old.clone().unwrap()).unwrap();
        assert_eq!(old["n"], 1);

        // The same in a transaction: the position shows which condition failed, and nothing was written.
        let other = Write::put(&db.tables.ledger, Key::new("B", "1"), &json!({"n": 9})).unwrap();
        let refused = db.transact(&[other, put(3)]).await.unwrap_err();
        assert!(refused.refused(0).is_none() && refused.refused(1).is_some());
        assert_eq!(db.get_latest::<Value>(&db.tables.ledger, Key::new("B", "1")).await.unwrap(), None);
        assert_eq!(db.get_latest::<Value>(&db.tables.ledger, key()).await.unwrap().unwrap()["n"], 1);
    });
}

#[test]
fn updates_conditions_and_deletes_work() {
    run(async {
        let db = db().await;
        let table = &db.tables.agents;
        let add = |by: i64| {
            let write = Write::update(table, Key::new("C", "1"), "ADD #count :by");
            write
                .only_if("attribute_not_exists(#count) OR #count <= :most")
                .bind("by", by)
                .unwrap()
                .bind("most", 2)
                .unwrap()
        };
        for _ in 0..3 {
            db.write(add(1)).await.unwrap();
        }
        assert!(db.write(add(1)).await.unwrap_err().is_refused());
        assert_eq!(db.get_latest::<Value>(table, Key::new("C", "1")).await.unwrap().unwrap()["count"], 3);
        let delete = |count: u64| {
            Write::delete(table, Key::new("C", "1")).only_if("#count = :count").bind("count", count).unwrap()
        };
        assert!(db.write(delete(2)).await.unwrap_err().is_refused());
        db.write(delete(3)).await.unwrap();
        assert_eq!(db.get_latest::<Value>(table, Key::new("C", "1")).await.unwrap(), None);
    });
}

#[test]
fn concurrent_writes_never_exceed_the_limit() {
    run(async {
        let db = db().await;
        let calls: Vec<_> = (0..40)
            .map(|_| {
                let db = db.clone();
                tokio::spawn(async move {
                    let table = &db.tables.ledger;
                    let take = Write::update(table, Key::new("D", "1"), "ADD #taken :one");
                    let take = take
                        .only_if("attribute_not_exists(#taken) OR #taken < :most")
                        .bind("one", 1)
                        .unwrap()
                        .bind("most", 15)
                        .unwrap();
                    let mark = Write::put(table, Key::new("D", unique()), &json!({})).unwrap().only_if_new();
                    db.transact(&[take, mark]).await.is_ok()
                })
            })
            .collect();
        let mut succeeded = 0;
        for call in calls {
            succeeded += u32::from(call.await.unwrap());
        }
        assert_eq!(succeeded, 15);
        let query = Query::new(&db.tables.ledger, "#pk = :pk", 100).bind("pk", "D").unwrap();
        assert_eq!(db.query::<Value>(query).await.unwrap().len(), 16, "fifteen marks and the count");
    });
}

#[test]
fn the_index_of_open_jobs_is_sparse_and_ordered() {
    run(async {
        let db = db().await;
        for (name, due) in [("x", 30), ("y", 10), ("z", 20)] {
            let job = json!({"open": "OPEN#0", "due": due, "created": 5});
            db.write(Write::put(&db.tables.jobs, Key::new(format!("JOB#{name}"), "JOB"), &job).unwrap()).await.unwrap();
        }
        let closed = Write::update(&db.tables.jobs, Key::new("JOB#z", "JOB"), "REMOVE #open");
        db.write(closed).await.unwrap();
        let due: Vec<String> = crate::support::eventually("the index", || async {
            let now = base::clock::Timestamp::from_millis(25);
            let due = gate::jobs::store::due(&db, gate::jobs::job::Lane::Tools, 0, now, 10).await.unwrap();
            (due.len() == 1).then(|| due.into_iter().map(|open| open.pk).collect())
        })
        .await;
        assert_eq!(due, ["JOB#y"]);
    });
}

#[test]
fn messages_go_through_sqs() {
    let Some(endpoint) = other_aws() else { return };
    run(async {
        let aws = Connections::open(&config(&endpoint)).expect("connections").aws;
        let client = aws.sqs();
        let url = client.create_queue().queue_name(format!("q{}", unique())).send().await.unwrap().queue_url.unwrap();
        let queue = SqsQueue::new(&aws, &url);
        let message =
            Message::Job { request_id: RequestId::bought_with("quote", &[b"q"]), trace: Some("t".to_owned()) };
        queue.send(&message).await.unwrap();
        let received = client.receive_message().queue_url(&url).wait_time_seconds(5).send().await.unwrap();
        let body = received.messages()[0].body().unwrap();
        assert_eq!(Message::parse(body).unwrap(), message);
        let broken = SqsQueue::new(&aws, &format!("{url}-gone"));
        assert!(broken.send(&message).await.is_err());
    });
}

/// A range whose end is before its start is empty, and no error reaches the database.
#[test]
fn a_reversed_key_range_is_empty() {
    run(async {
        let db = db().await;
        let table = &db.tables.ledger;
        db.write(Write::put(table, Key::new("E", "5"), &json!({})).unwrap()).await.unwrap();
        let between = async |from: &str, to: &str| {
            db.query::<Value>(Query::between(table, "E", from, to, 10).unwrap()).await.unwrap().len()
        };
        assert_eq!((between("5", "5").await, between("4", "6").await, between("6", "4").await), (1, 1, 0));
    });
}

/// A bucket as S3 answers a role that may list it, and one that may not: S3 does not tell the latter that a key is
/// missing.
#[test]
fn blobs_work_with_and_without_permission_to_list() {
    run(async {
        for may_list in [true, false] {
            let bucket = Bucket::new(may_list);
            let config = config(&bucket.serve().await);
            let blobs = S3Blobs::new(Connections::open(&config).expect("connections").signed, "a-bucket");
            let (key, text) = ("files/x/1-2", "täglich".as_bytes().to_vec());
            assert_eq!((blobs.get(key).await.unwrap(), blobs.size(key).await.unwrap()), (None, None), "{may_list}");
            blobs.delete(key).await.unwrap();
            blobs.put(key, "text/plain", text.clone()).await.unwrap();
            blobs.put("empty", "text/plain", Vec::new()).await.unwrap();
            assert_eq!(blobs.get(key).await.unwrap(), Some(text.clone()));
            for (from, most, part) in [(0, 3, &text[..3]), (3, 2, &text[3..5]), (5, 100, &text[5..]), (8, 1, &[][..])] {
                assert_eq!(blobs.part(key, from, most).await.unwrap().as_deref(), Some(part), "{most} from {from}");
            }
            assert_eq!(blobs.part("missing", 0, 1).await.unwrap(), None);
            assert_eq!((blobs.size(key).await.unwrap(), blobs.size("empty").await.unwrap()), (Some(8), Some(0)));
            blobs.delete(key).await.unwrap();
            assert_eq!((blobs.size(key).await.unwrap(), bucket.keys()), (None, vec!["/a-bucket/empty".to_owned()]));

            let client = Client::new("");
            let valid = Duration::from_secs(60);
            let write = Access::Put { content_type: "text/plain", size: 8 };
            let url = blobs.url(key, write, valid).unwrap();
            let send = async |kind: &'static str, bytes: &[u8], once: bool| {
                let mut headers = vec![("content-type", kind)];
                headers.extend(once.then_some(("if-none-match", "*")));
                client.send("PUT", &url, &headers, bytes.to_vec()).await.unwrap().status
            };
            assert_eq!(send("text/html", &text, true).await, 403, "another type than was signed");
            assert_eq!(send("text/plain", b"longer than eight", true).await, 403, "another size");
            assert_eq!(send("text/plain", &text, false).await, 403, "over what may be there");
            assert_eq!(send("text/plain", &text, true).await, 200);
            assert_eq!(send("text/plain", &text, true).await, 412, "once");
            let read = Access::Get { content_type: "text/csv", file_name: "täglich (1) + 2.csv" };
            let url = blobs.url(key, read, valid).unwrap();
            let read = client.get(&url, &[]).await;
            assert_eq!(
                (read.status, read.text.as_bytes(), read.header("content-type")),
                (200, &text[..], Some("text/csv"))
            );
            let disposition = read.header("content-disposition").unwrap();
            assert!(disposition.ends_with("filename*=UTF-8''t%C3%A4glich%20%281%29%20%2B%202.csv"), "{disposition}");
            assert_eq!(client.get(&url.replace("csv", "html"), &[]).await.status, 403);
            assert_eq!(client.send("DELETE", &url, &[], "").await.unwrap().status, 403);
        }
    });
}

#[test]
fn blobs_go_through_s3_and_secrets_through_secrets_manager() {
    let Some(endpoint) = other_aws() else { return };
    run(async {
        let config = config(&endpoint);
        let signed = Connections::open(&config).expect("connections").signed;
        let bucket = format!("b{}", unique());
        let created = signed.send("s3", "PUT", &format!("{endpoint}/{bucket}"), &[], Vec::new()).await.unwrap();
        assert_eq!(created.status, 200);
        let blobs = S3Blobs::new(signed.clone(), &bucket);
        let text = "ü".repeat(40_000).into_bytes();
        blobs.put("results/a.json", "application/json", text.clone()).await.unwrap();
        assert_eq!(blobs.get("results/a.json").await.unwrap(), Some(text));
        assert_eq!(blobs.get("results/b.json").await.unwrap(), None);

        let name = format!("s{}", unique());
        let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "secretsmanager.CreateSecret")];
        let body = json!({"Name": name, "SecretString": "a secret", "ClientRequestToken": format!("token-{}-{}-{}", unique(), unique(), unique())});
        let created = signed
            .send("secretsmanager", "POST", &format!("{endpoint}/"), &headers, body.to_string().into_bytes())
            .await
            .unwrap();
        assert_eq!(created.status, 200, "{}", String::from_utf8_lossy(&created.body));
        assert_eq!(signed.secret(&name).await.unwrap(), "a secret");
        assert!(signed.secret("missing").await.is_err());
    });
}
