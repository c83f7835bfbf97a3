//! Mail that strangers send to agents.

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tools_email::mailbox::{self, Inbound};
use tools_email::{events, room};

use super::*;
use crate::email::one_day;
use crate::support::zone::Zone;
use crate::support::{eventually, sns};

/// A stack that takes mail, an agent on it, and the agent's address.
async fn mailbox_of_an_agent() -> (Stack, Payer, String) {
    // Names of nobody: the checks of a sender ask it.
    let zone = Box::leak(Box::new(Zone::new().start().await));
    let stack = stack_with(|options| {
        options.with("EMAIL_DOMAINS", "agents.test").with("DNS_SERVER", zone.address().to_string())
    })
    .await;
    let payer = Payer::new(&stack).await;
    let domains = payer.get("/v1/tools/email/domains").await.json();
    let address = domains["domains"][0]["default_from"].as_str().expect("an address").to_owned();
    (stack, payer, address)
}

/// Sends a mail by SMTP from this address of the loopback network. Returns the code that answers the mail's end.
async fn send_from(stack: &Stack, source: [u8; 4], from: &str, to: &str, raw: &str) -> String {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((source, 0).into()).expect("a loopback address");
    let mut stream = socket.connect(stack.smtp).await.expect("a connection");
    let dialogue = format!("HELO mx.out.org\r\nMAIL FROM:<{from}>\r\nRCPT TO:<{to}>\r\nDATA\r\n{raw}\r\n.\r\nQUIT\r\n");
    stream.write_all(dialogue.as_bytes()).await.expect("a connection");
    let mut replies = String::new();
    stream.read_to_string(&mut replies).await.expect("replies");
    let codes: Vec<&str> = replies.lines().filter_map(|line| line.get(..3)).collect();
    assert_eq!(codes[..5], ["220", "250", "250", "250", "354"], "{replies}");
    codes[5].to_owned()
}

async fn inbox(stack: &Stack, payer: &Payer) -> Vec<Inbound> {
    mailbox::inbox(&stack.app.db, payer.agent(), None, None, 100).await.expect("a database").0
}

/// Each `&` made the cleaner read the rest of its text, and each part was cleaned on its own.
#[test]
fn a_mail_that_is_slow_to_clean_arrives_cut() {
    run(async {
        let (stack, payer, address) = mailbox_of_an_agent().await;
        let part = format!("--b\r\nContent-Type: text/html\r\n\r\n{}\r\n", "&&&&&&&&&&&&&&&&\r\n".repeat(20_000));
        let parts = part.repeat(23);
        let raw = format!(
            "From: ada@out.org\r\nSubject: Slow\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--"
        );
        assert!(raw.len() > 8_000_000);
        assert_eq!(send_from(&stack, [127, 0, 0, 1], "ada@out.org", &address, &raw).await, "250");
        let mails = inbox(&stack, &payer).await;
        assert!(mails[0].is_cut);
        let body = mailbox::body(&*stack.app.blobs, mails[0].id).await.expect("blobs").expect("a body");
        assert!(body.text.len() <= 256 << 10, "{} bytes of all parts together", body.text.len());
    });
}

/// Gmail, Outlook and SES each refuse kinds of files that the others take.
#[test]
fn files_that_mail_hosts_refuse_are_refused_before_a_price() {
    run(async {
        let (_stack, payer, address) = mailbox_of_an_agent().await;
        for name in
            ["run.mjs", "setup.appxbundle", "disk.vhd", "a.settingcontent-ms", "tool.pyz", "link.url", "old.mda"]
        {
            let body = json!({
                "to_address": address, "subject": "A file", "body": "See there.",
                "attachments": [{"filename": name, "content": "aGVsbG8="}],
            });
            let id = payer.address().to_string();
            let answer =
                payer.client.post("/v1/tools/email/send", &[("x-agent-id", &id), ("x-quote-id", "q")], &body).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{name}: {}", answer.text);
            assert_eq!(answer.json()["details"][0]["path"], "attachments.0.filename", "{name}: {}", answer.text);
        }
    });
}

/// Leaves so many of a day's counter.
async fn leave(stack: &Stack, counter: String, left: u32, most: u32) {
    let (db, day) = (&stack.app.db, stack.app.clock.now().secs().div_euclid(86_400));
    let used = json!({"used": most - left});
    db.write(Write::put(&db.tables.agents, Key::new(counter, day.to_string()), &used).unwrap()).await.unwrap();
}

/// Another agent on the same stack: its wallet with credits, its token, and its address.
async fn agent(stack: &Stack) -> (Payer, String, String) {
    let payer = Payer::new(stack).await;
    payer.give_credits(stack, 100_000).await;
    let domains = payer.get("/v1/tools/email/domains").await.json();
    let address = domains["domains"][0]["default_from"].as_str().expect("an address").to_owned();
    let token = payer.token(stack).await;
    (payer, token, address)
}

/// Sends a mail from one agent to another. Returns its job.
async fn mail(sender: &(Payer, String, String), to: &str) -> Value {
    let (payer, token, _) = sender;
    let body = json!({"to_address": to, "subject": "Hello", "body": "How are you?"});
    let quote = payer.client.post("/v1/tools/email/quote", &[("authorization", token)], &body).await;
    let quote = quote.json()["quote_id"].as_str().unwrap_or_else(|| panic!("{}", quote.text)).to_owned();
    let headers = [("authorization", token.as_str()), ("x-quote-id", quote.as_str())];
    let accepted = payer.client.post("/v1/tools/email/send", &headers, &body).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await
}

const RAW: &str = "From: eve@flood.org\r\nSubject: Hello\r\n\r\nHello.";

/// One source, and all whose domain nothing proves, fill a part of a mailbox only, and take nothing of a domain's.
#[test]
fn one_stranger_fills_no_mailbox() {
    run(async {
        one_day().await;
        let (stack, payer, address) = mailbox_of_an_agent().await;
        let send = async |source: u8, from: &str| {
            let raw = format!("X-Number: {}\r\n{RAW}", base::ids::random_uuid());
            send_from(&stack, [127, 0, 0, source], from, &address, &raw).await
        };
        let agent = payer.agent();
        leave(&stack, format!("MAILS#source:127.0.0.2:{agent}"), 1, room::MAX_OF_SOURCE).await;
        assert_eq!(send(2, "eve@one.org").await, "250");
        assert_eq!(send(2, "eve@two.org").await, "452", "its source has had its part");
        assert_eq!(send(3, "eve@two.org").await, "250", "another source goes on");
        leave(&stack, format!("MAILS#from:{}:{agent}", room::UNPROVEN), 1, room::MAX_OF_DOMAIN).await;
        assert_eq!(send(4, "eve@a.flood.org").await, "250");
        assert_eq!(send(5, "eve@two.org").await, "452", "those that nothing proves have had their part");
        for domain in ["one.org", "two.org", "flood.org"] {
            let counter = Key::new(
                format!("MAILS#from:{domain}:{agent}"),
                stack.app.clock.now().secs().div_euclid(86_400).to_string(),
            );
            let counted: Option<Value> = stack.app.db.get(&stack.app.db.tables.agents, counter).await.unwrap();
            assert_eq!(counted, None, "{domain} keeps its part");
        }
        assert_eq!(inbox(&stack, &payer).await.len(), 3);
    });
}

/// Strangers leave room for those that the agent has written to. The agent is told, and a sender inside pays nothing.
#[test]
fn a_mailbox_full_of_strangers_takes_mail_of_those_it_wrote_to() {
    run(async {
        one_day().await;
        let (stack, _, _) = mailbox_of_an_agent().await;
        let (ada, bob, eve) = (agent(&stack).await, agent(&stack).await, agent(&stack).await);
        assert_eq!(mail(&ada, &bob.2).await["status"], "completed");
        let inbox_of_ada = format!("MAILS#inbox:{}", ada.0.agent());
        leave(&stack, inbox_of_ada, 0, room::MAX_WITH_STRANGERS).await;

        assert_eq!(send_from(&stack, [127, 0, 0, 1], "eve@flood.org", &ada.2, RAW).await, "452");
        // Who only names an address that the agent wrote to is a stranger.
        let forged = RAW.replace("eve@flood.org", &bob.2);
        assert_eq!(send_from(&stack, [127, 0, 0, 1], &bob.2, &ada.2, &forged).await, "452");
        let refused = mail(&eve, &ada.2).await;
        assert_eq!(
            (&refused["status"], &refused["credited_usdc"]),
            (&json!("failed"), &json!("0.005000")),
            "{refused}"
        );
        assert_eq!(inbox(&stack, &ada.0).await.len(), 0);
        assert_eq!(mail(&bob, &ada.2).await["status"], "completed");
        assert_eq!(inbox(&stack, &ada.0).await.len(), 1);

        let notes = ada.0.get("/v1/tools/notifications").await.json();
        let notes = notes["notifications"].as_array().expect("a list");
        let told = notes.iter().filter(|note| note["type"] == "email_refused").count();
        assert_eq!(told, 1, "once a day: {notes:?}");
    });
}

/// What SES posts about a mail that it has put into the bucket.
fn received(key: &str, to: &[&str], more: Value) -> Value {
    let mut event = json!({
        "notificationType": "Received",
        "mail": {"source": "eve@out.org", "messageId": key, "timestamp": Clock::system().now().to_string()},
        "receipt": {
            "recipients": to,
            "action": {"type": "S3", "bucketName": BUCKET, "objectKey": format!("{}{key}", events::RECEIVED)},
        },
    });
    event["receipt"].as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    event
}

const BUCKET: &str = "agora-blobbucket";
const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:mail";
const EVENTS: &str = "/v1/providers/ses";

/// SES stores every mail before anybody looks at it. What it has stored is deleted once it is of no more use, whoever it is for,
/// and is taken from a queue of its own: the route and the workers' queue of jobs stay free.
#[test]
fn mail_that_ses_stored_is_queued_and_does_not_stay() {
    run(async {
        let certificates = Router::new().route(sns::CERTIFICATE_PATH, get(|| async { sns::CERTIFICATE }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let urls = json!({"sns": format!("http://{}", listener.local_addr().unwrap())}).to_string();
        tokio::spawn(async move { axum::serve(listener, certificates).await });
        let stack = stack_with(|options| {
            let options = options.with("EMAIL_DOMAINS", "agents.test").with("EMAIL_TOPICS", TOPIC);
            options.with("PROVIDER_URLS", urls).with("AWS_REGION", sns::REGION).with("BLOB_BUCKET", BUCKET)
        })
        .await;
        let (payer, _, address) = agent(&stack).await;
        let key = |name: &str| format!("{}{name}", events::RECEIVED);
        let raw = "From: eve@out.org\r\nSubject: Hello\r\n\r\nHello.";
        let unknown = "nobody@agents.test";
        let virus = json!({"virusVerdict": {"status": "FAIL"}});
        let cases = [
            ("known", vec![address.as_str(), unknown], raw, json!({}), false),
            ("unknown", vec![unknown], raw, json!({}), false),
            ("unknown-and-no-mail", vec![unknown], "no mail", json!({}), false),
            ("virus", vec![address.as_str()], raw, virus, false),
            ("no-mail", vec![address.as_str()], "no mail", json!({}), true),
        ];
        for (name, to, raw, more, _) in &cases {
            stack.app.blobs.put(&key(name), "message/rfc822", raw.as_bytes().to_vec()).await.unwrap();
            sns::publish(&stack, EVENTS, TOPIC, name, &received(name, to, more.clone())).await;
        }
        assert_eq!(stack.mail.sent(), cases.len() as u64, "all wait in their own queue");
        eventually("the queue to be empty", || async { stack.mail.is_idle().then_some(()) }).await;
        for (name, .., stays) in &cases {
            assert_eq!(stack.app.blobs.size(&key(name)).await.unwrap().is_some(), *stays, "{name}");
        }
        assert_eq!(stack.mail.dead(), Vec::<String>::new());
        assert_eq!(inbox(&stack, &payer).await.len(), 1);

        // The same event again, and a mail that the mailbox does not take: nothing is left of it either.
        sns::publish(&stack, EVENTS, TOPIC, "again", &received("known", &[&address], json!({}))).await;
        leave(&stack, format!("MAILS#inbox:{}", payer.agent()), 0, room::MAX_WITH_STRANGERS).await;
        stack.app.blobs.put(&key("refused"), "message/rfc822", raw.as_bytes().to_vec()).await.unwrap();
        sns::publish(&stack, EVENTS, TOPIC, "refused", &received("refused", &[&address], json!({}))).await;
        eventually("the queue to be empty", || async { stack.mail.is_idle().then_some(()) }).await;
        assert_eq!(stack.app.blobs.size(&key("refused")).await.unwrap(), None);
        assert_eq!((inbox(&stack, &payer).await.len(), stack.mail.dead()), (1, Vec::new()));
    });
}
