//! E-mail between agents of one deployment: quotes, sending, inboxes, threads, addresses, the day's limit, and what is
//! charged for. Providers for outside addresses are in `providers`, agents' own domains at SES in `identities`, crashes in
//! `crashes`, large mails in `large`.

mod crashes;
pub mod identities;
mod large;
pub mod providers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Json;
use axum::routing::post;
use base::clock::Clock;
use base::encoding::base64_standard;
use base::ids::AgentId;
use futures_util::future::join_all;
use ledger::credit::{self, EntryKind};
use local::{Options, Stack};
use platform::store::queue::Message;
use platform::store::{Key, Write};
use serde_json::{Value, json};
use tools_email::address::Address;
use tools_email::mailbox::Verdicts;
use tools_email::receive::{self, Delivered, Envelope};
use tools_email::recipient::{self, Happened};
use tools_email::{domain, mailbox};

use crate::mcp_calls::call;
use crate::support::receiver::Receiver;
use crate::support::zone::Zone;
use crate::support::{Answer, Payer, books, eventually, run, stack_with};
use crate::webhooks;

const QUOTE: &str = "/v1/tools/email/quote";
pub const SEND: &str = "/v1/tools/email/send";
const INBOX: &str = "/v1/tools/inbox";
pub const DOMAINS: &str = "/v1/tools/email/domains";
/// The operator's domain.
pub const DOMAIN: &str = "agents.test";
/// micro-USDC per recipient
pub const EACH: u64 = 5_000;
/// How many recipients a new domain may have on its first day.
pub const FIRST_DAY: usize = 20;

pub fn office(options: Options) -> Options {
    options.with("EMAIL_DOMAINS", DOMAIN)
}

pub async fn post_office(change: impl FnOnce(Options) -> Options) -> Stack {
    stack_with(|options| change(office(options))).await
}

/// A wallet with a dollar and its address on the operator's domain.
#[derive(Clone)]
pub struct Agent {
    pub payer: Payer,
    pub address: String,
}

impl Agent {
    pub async fn new(stack: &Stack) -> Agent {
        let payer = Payer::new(stack).await;
        let listed = payer.get(DOMAINS).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        let address = listed.json()["domains"][0]["default_from"].as_str().expect("an address").to_owned();
        Agent { payer, address }
    }

    /// Asks for a quote as the older clients do: the wallet is named and not proven. An answer to a mail needs the proof.
    pub async fn ask(&self, body: &Value) -> Answer {
        let (address, proof) = (self.payer.address().to_string(), self.payer.proof("read"));
        let mut headers = vec![("x-agent-id", address.as_str())];
        if body.get("reply_to_email_id").is_some() {
            headers.push(("x-agent-proof", proof.as_str()));
        }
        self.payer.client.post(QUOTE, &headers, body).await
    }

    /// The same, proven: only then is it told what limits its mails.
    pub async fn ask_proven(&self, body: &Value) -> Answer {
        self.payer.client.post(QUOTE, &[("x-agent-proof", &self.payer.proof("read"))], body).await
    }

    pub async fn quote(&self, body: &Value) -> Value {
        let answer = self.ask(body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// Sends a quote without a payment: a 402, or why not.
    pub async fn unpaid(&self, quote: &Value, body: &Value) -> Answer {
        let agent = self.payer.address().to_string();
        let quote = quote["quote_id"].as_str().expect("a quote");
        self.payer.client.post(SEND, &[("x-agent-id", &agent), ("x-quote-id", quote)], body).await
    }

    /// Redeems a quote: the 402, its payment, and the answer to that. Another answer than 402 is returned as it is.
    pub async fn send(&self, quote: &Value, body: &Value) -> Answer {
        let unpaid = self.unpaid(quote, body).await;
        if unpaid.status != 402 {
            return unpaid;
        }
        self.payer.redeem(SEND, &unpaid, body).await
    }

    /// Quotes, pays, and waits for the job's end.
    pub async fn mail(&self, body: &Value) -> Value {
        let quote = self.quote(body).await;
        self.ended(self.send(&quote, body).await).await
    }

    pub async fn ended(&self, accepted: Answer) -> Value {
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let body = accepted.json();
        assert_eq!((&body["tool"], &body["status"]), (&json!("email"), &json!("processing")));
        self.payer.finished(body["request_id"].as_str().expect("an id")).await
    }

    /// What its inbox shows, newest first.
    async fn inbox(&self, query: &str) -> Value {
        let answer = self.payer.get(&format!("{INBOX}?{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let body = answer.json();
        assert_eq!(body["count"], body["emails"].as_array().map_or(0, Vec::len), "{body}");
        body
    }

    pub async fn mails(&self) -> Vec<Value> {
        self.inbox("include_body=true&limit=200").await["emails"].as_array().expect("a list").clone()
    }

    async fn analytics(&self) -> Value {
        let answer = self.payer.get(&format!("/v1/tools/email/analytics/{DOMAIN}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// What it has paid on chain so far, and the credits that it has, in micro-USDC.
    pub async fn money(&self, stack: &Stack) -> (u64, u64) {
        let left = u64::try_from(self.payer.balance(stack).await).expect("an amount");
        (1_000_000 - left, books::audit(&stack.app.db, self.payer.agent()).await.credits.micro())
    }
}

pub fn mail_to(to: impl Into<Value>) -> Value {
    json!({"to_address": to.into(), "subject": "Hello", "body": "How are you?"})
}

pub fn with(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    body
}

/// For how many recipients a mailbox or a provider took the mail.
pub fn reached(job: &Value) -> usize {
    let counts = &job["result"]["recipients"];
    let count = |state: &&str| counts[*state].as_u64().unwrap_or_default();
    usize::try_from(["accepted", "delivered", "complained"].iter().map(count).sum::<u64>()).expect("a number")
}

/// Lets an agent send 500 mails a day from the operator's domain, as if many of its mails had arrived.
pub async fn warm_up(stack: &Stack, agent: AgentId) {
    let (db, at) = (&stack.app.db, stack.app.clock.now().minus(Duration::from_secs(2 * 86_400)));
    let key = Key::new(format!("AGENT#{agent}"), format!("MAILDOMAIN#{DOMAIN}"));
    let write = Write::update(&db.tables.messages, key, "SET #good = :good, #warmup_started_at = :at");
    db.write(write.bind("good", 50).unwrap().bind("at", at).unwrap()).await.expect("a row");
}

/// Waits over midnight, so that a journey about a day's limit has one day.
pub async fn one_day() {
    let left = 86_400 - Clock::system().now().secs() % 86_400;
    if left < 60 {
        tokio::time::sleep(Duration::from_secs(left.unsigned_abs() + 1)).await;
    }
}

/// Addresses of one agent: what stands behind a `+` in the name does not matter.
pub fn boxes(of: &Agent, count: usize) -> Vec<String> {
    let (name, domain) = of.address.split_once('@').expect("an address");
    (0..count).map(|number| format!("{name}+{number}@{domain}")).collect()
}

#[test]
fn a_mail_is_quoted_paid_and_found_in_the_inbox() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob, eve) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        let html = "<p>Good <b>news</b></p><script>steal()</script><img src=\"https://spy.test/pixel.gif\">";
        let body = json!({"to_address": bob.address, "subject": "Grüße", "body": html});
        let quote = ada.quote(&body).await;
        for (member, value) in [
            ("domain", json!(DOMAIN)),
            ("is_new", json!(false)),
            ("available", json!(true)),
            ("status", json!("verified")),
            ("currency", json!("USD")),
            ("from_address", json!(ada.address)),
        ] {
            assert_eq!(quote[member], value, "{member}");
        }
        let fee = |name: &str| quote[name].as_f64().unwrap_or_else(|| panic!("{name}: {quote}"));
        assert_eq!((fee("service_fee"), fee("registration_fee"), fee("mailbox_provisioning_fee")), (0.005, 0.0, 0.0));
        assert_eq!(fee("total_cost"), 0.005);

        // The name, the address of the quote and the attachments come with the sending only.
        let file = base64_standard(b"1,2\r\n");
        let more = json!({"from_name": "Ada", "from_address": ada.address, "memo": "a greeting",
            "attachments": [{"filename": "n\u{fc}mbers.csv", "content": file, "content_type": "text/csv"}]});
        let job = ada.ended(ada.send(&quote, &with(body, more)).await).await;
        assert_eq!((&job["status"], &job["tool"]), (&json!("completed"), &json!("email")), "{job}");
        let result = &job["result"];
        assert_eq!((&result["domain"]["domain"], reached(&job)), (&json!(DOMAIN), 1));
        assert!(result["email"]["id"].is_string(), "{result}");
        assert_eq!(job["email_tracking"]["to"], bob.address, "{job}");
        assert_eq!(ada.money(&stack).await, (EACH, 0));

        let listed = bob.inbox("").await;
        assert_eq!((&listed["has_more"], &listed["count"]), (&json!(false), &json!(1)));
        assert_eq!(
            listed["agent_id"].as_str().map(str::to_lowercase),
            Some(bob.payer.address().to_string().to_lowercase())
        );
        let mail = &listed["emails"][0];
        assert_eq!((&mail["subject"], &mail["body"]), (&json!("Grüße"), &Value::Null));
        assert!(mail["from"].as_str().unwrap().contains(&ada.address), "{mail}");
        assert!(mail["attachments"][0].get("content").is_none(), "content only with the body: {mail}");
        let id = mail["id"].as_str().unwrap();
        let read = bob.payer.get(&format!("{INBOX}/{id}")).await.json();
        assert_eq!(read["attachments"][0]["filename"], "n\u{fc}mbers.csv");
        assert_eq!((&read["attachments"][0]["content"], &read["attachments"][0]["size"]), (&json!(file), &json!(5)));
        assert_eq!(bob.mails().await[0]["body"], read["body"]);
        assert!(read["body"].as_str().unwrap().contains("Good news"), "{read}");
        let shown = read["body_html"].as_str().unwrap();
        assert!(shown.contains("<b>news</b>"), "{shown}");
        assert!(!shown.contains("script") && !shown.contains("steal") && !shown.contains("spy.test"), "{shown}");

        // Somebody else's mail does not exist, for its sender neither.
        for other in [&eve, &ada] {
            let answer = other.payer.get(&format!("{INBOX}/{id}")).await;
            assert_eq!(answer.error(), (404, "email_not_found".to_owned()));
            assert_eq!(other.inbox("").await["count"], 0);
        }
        assert_eq!(bob.payer.client.get(INBOX, &[]).await.error(), (401, "proof_required".to_owned()));
    });
}

/// The event is raised by a function without a queue for it. The sweeper sends it.
#[test]
fn a_received_mail_is_posted_to_webhooks_once() {
    run(async {
        let receiver = Receiver::start().await;
        let stack = post_office(|options| options.with("LOCAL_FETCH_ALLOW", receiver.allowed())).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let hook = webhooks::create(&bob.payer, &json!({"url": receiver.url, "events": ["email.received"]})).await;
        let job = ada.mail(&mail_to(bob.address.as_str())).await;
        assert_eq!(job["status"], "completed", "{job}");
        // A mail from outside, which arrives twice.
        let to = Address::parse(&bob.address).expect("an address");
        let arrived = Envelope {
            from: Some(Address::parse("jane@example.com").expect("an address")),
            to: std::slice::from_ref(&to),
            event_id: "the same",
            source: None,
            received_at: stack.app.clock.now(),
            verdicts: Verdicts::default(),
        };
        let raw = b"From: jane@example.com\r\nSubject: Hello\r\nMessage-ID: <1@example.com>\r\n\r\nHow are you?\r\n";
        for _ in 0..2 {
            let done = receive::receive(&stack.worker.toolbox, &arrived, raw).await.expect("a database");
            assert_eq!(done, [(to.clone(), Delivered::Stored)]);
        }
        let mails = bob.mails().await;
        assert_eq!(mails.len(), 2);
        eventually("the events", || async { (receiver.count() >= 2).then_some(()) }).await;
        for mail in &mails {
            let all = receiver.received();
            let posted = all.iter().find(|one| one.json()["data"]["email_id"] == mail["id"]);
            let posted = posted.unwrap_or_else(|| panic!("no event about {mail}"));
            let event = posted.json();
            assert_eq!((&event["type"], &event["agent_id"]), (&json!("email.received"), &json!(bob.payer.agent())));
            let url = format!("{INBOX}/{}", mail["id"].as_str().expect("an id"));
            let data = json!({
                "email_id": mail["id"], "thread_id": mail["thread_id"], "to": bob.address, "email_url": url,
            });
            assert_eq!(event["data"], data, "and nothing that the sender wrote");
            webhooks::check_signatures(hook["secret"].as_str().expect("a secret"), &posted.headers, &posted.body);
        }
        assert_eq!(receiver.count(), 2);
    });
}

#[test]
fn inbox_pages_are_complete_and_newest_first() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        for subject in ["one", "two", "three"] {
            let job = ada.mail(&with(mail_to(bob.address.as_str()), json!({"subject": subject}))).await;
            assert_eq!(job["status"], "completed", "{job}");
        }
        let subjects = |page: &Value| -> Vec<String> {
            let emails = page["emails"].as_array().unwrap().iter();
            emails.map(|email| email["subject"].as_str().unwrap().to_owned()).collect()
        };
        let first = bob.inbox("limit=2").await;
        assert_eq!((subjects(&first), &first["has_more"]), (vec!["three".to_owned(), "two".to_owned()], &json!(true)));
        let cursor = first["next_cursor"].as_str().expect("a cursor");
        let second = bob.inbox(&format!("limit=2&cursor={cursor}")).await;
        assert_eq!((subjects(&second), &second["has_more"]), (vec!["one".to_owned()], &json!(false)));
        let since = first["emails"][0]["received_at"].as_str().expect("a time");
        assert!(!subjects(&bob.inbox(&format!("since={since}")).await).contains(&"two".to_owned()));
        let since = second["emails"][0]["received_at"].as_str().expect("a time");
        let later = subjects(&bob.inbox(&format!("since={since}")).await);
        assert_eq!(&later[..2], ["three", "two"]);

        for query in ["limit=0", "limit=201", "limit=x", "since=yesterday", "include_body=perhaps"] {
            let answer = bob.payer.get(&format!("{INBOX}?{query}")).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{query}");
        }
        assert_eq!(bob.payer.get(&format!("{INBOX}?cursor=x")).await.error(), (400, "invalid_cursor".to_owned()));
    });
}

#[test]
fn replies_stay_in_their_thread_and_are_counted() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob, eve) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        let first = ada.mail(&mail_to(bob.address.as_str())).await;
        let received = bob.mails().await[0].clone();
        let answer = json!({"reply_to_email_id": received["id"], "body": "Well."});
        // A wallet's name alone does not tell how many got a mail of its own.
        let follow_up = json!({"reply_to_email_id": first["result"]["email"]["id"], "body": "Well?"});
        let named = ada.payer.address().to_string();
        let unproven = ada.payer.client.post(QUOTE, &[("x-agent-id", named.as_str())], &follow_up).await;
        assert_eq!(unproven.error(), (401, "proof_required".to_owned()));
        let quote = bob.quote(&answer).await;
        assert_eq!(quote["from_address"], bob.address);
        assert_eq!(bob.ended(bob.send(&quote, &answer).await).await["status"], "completed");

        let reply = ada.mails().await[0].clone();
        assert_eq!((&reply["subject"], reply["body"].as_str().unwrap().trim()), (&json!("Re: Hello"), "Well."));
        let stored = mailbox::inbound(&stack.app.db, ada.payer.agent(), reply["id"].as_str().unwrap().parse().unwrap());
        let stored = stored.await.unwrap().expect("a mail");
        let sent = stored.in_reply_to_sent.expect("the mail that it answers").to_string();
        assert_eq!(first["result"]["email"]["id"], sent, "found by In-Reply-To");
        assert_eq!(ada.analytics().await["replied"], 1);
        assert_eq!(bob.analytics().await["replied"], 0);

        // A reply to the reply, and one to the own first mail, which goes to its recipient.
        for of in [&reply["id"], &first["result"]["email"]["id"]] {
            let job = ada.mail(&json!({"reply_to_email_id": of, "body": "Good."})).await;
            assert_eq!(job["status"], "completed", "{job}");
        }
        let mails = bob.mails().await;
        assert_eq!(mails.len(), 3);
        for mail in &mails {
            assert_eq!(mail["thread_id"], received["thread_id"], "{mail}");
        }
        assert_eq!(mails[0]["subject"], "Re: Hello", "no second Re");
        bob.mail(&json!({"reply_to_email_id": mails[0]["id"], "body": "Bye."})).await;
        assert_eq!(ada.mails().await[0]["thread_id"], reply["thread_id"]);
        // Two mails with the same subject are two threads.
        ada.mail(&mail_to(bob.address.as_str())).await;
        assert_ne!(bob.mails().await[0]["thread_id"], received["thread_id"]);

        // Only the first ten recipients of a mail are stored with it.
        let crowd = ada.mail(&mail_to(boxes(&bob, 11))).await;
        let again = json!({"reply_to_email_id": crowd["result"]["email"]["id"], "body": "And?"});
        let refused = ada.ask(&again).await;
        assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{}", refused.text);
        assert_eq!(refused.json()["details"][0]["path"], "reply_to_email_id", "{}", refused.text);
        assert_eq!(ada.ask(&with(again, json!({"to_address": bob.address}))).await.status, 200);

        // An answer goes where the sender wants it, and the owner's rules see that address. It belongs to the sender's thread.
        let to = Address::parse(&ada.address).expect("an address");
        let arrived = Envelope {
            from: Some(Address::parse("jane@example.com").expect("an address")),
            to: std::slice::from_ref(&to),
            event_id: "with Reply-To",
            source: None,
            received_at: stack.app.clock.now(),
            verdicts: Verdicts::default(),
        };
        let raw = format!(
            "From: jane@example.com\r\nReply-To: <{}>\r\nSubject: Hello\r\nMessage-ID: <2@example.com>\r\n\
             In-Reply-To: <1@example.com>\r\n\r\nHow are you?\r\n",
            eve.address
        );
        receive::receive(&stack.worker.toolbox, &arrived, raw.as_bytes()).await.expect("a database");
        let mail = ada.mails().await[0].clone();
        assert_eq!((&mail["from"], &mail["reply_to"]), (&json!("jane@example.com"), &json!(eve.address)), "{mail}");
        let only_ours = json!({"enabled": true, "rules": [
            {"tool": "email", "action": "deny", "when": {"recipient_domain_not_in": ["example.com"]}}]});
        let set = ada.payer.change("PUT", "/v1/agents/me/action-policy", &only_ours).await;
        assert_eq!(set.status, 200, "{}", set.text);
        let answer = json!({"reply_to_email_id": mail["id"], "body": "Well."});
        let quote = ada.quote(&answer).await;
        assert_eq!(ada.send(&quote, &answer).await.error().0, 403, "not an answer to example.com");
        let removed = ada.payer.change("DELETE", "/v1/agents/me/action-policy", &json!({})).await;
        assert!(removed.status < 300, "{}", removed.text);
        assert_eq!(ada.ended(ada.send(&quote, &answer).await).await["status"], "completed");
        let got = eve.mails().await[0].clone();
        let got = mailbox::inbound(&stack.app.db, eve.payer.agent(), got["id"].as_str().unwrap().parse().unwrap());
        assert_eq!(got.await.unwrap().expect("a mail").references, ["1@example.com", "2@example.com"]);

        for id in [&received["id"], &json!("01890a5d-ac96-774b-bcce-b302099a8057")] {
            let answer = eve.ask(&json!({"reply_to_email_id": id, "body": "Me too."})).await;
            assert_eq!(answer.error(), (404, "email_not_found".to_owned()), "{id}");
        }
    });
}

#[test]
fn credits_and_tokens_pay_for_mail() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        ada.payer.give_credits(&stack, 3 * EACH).await;
        let body = mail_to(bob.address.as_str());

        // The wallet: a proof with the first leg, and a payment of nothing.
        let proof = || ada.payer.proof("write");
        let quote = ada.payer.client.post(QUOTE, &[("x-agent-proof", &proof())], &body).await.json();
        let quote = quote["quote_id"].as_str().unwrap().to_owned();
        // The first 402 holds the credits, a repeated one finds them, and the free quote's own id pays with them.
        for _ in 0..2 {
            let shown = proof();
            let headers = [("x-agent-proof", shown.as_str()), ("x-quote-id", quote.as_str())];
            let unpaid = ada.payer.client.post(SEND, &headers, &body).await.json();
            assert_eq!(unpaid["payment_request"]["amount"], "0.000000", "{unpaid}");
            assert_eq!(ada.money(&stack).await.1, 2 * EACH, "held once");
        }
        let (nothing, fresh) = (ada.payer.nothing(), proof());
        let headers =
            [("x-agent-proof", fresh.as_str()), ("x-quote-id", quote.as_str()), ("payment-signature", &nothing)];
        let job = ada.ended(ada.payer.client.post(SEND, &headers, &body).await).await;
        assert_eq!(job["status"], "completed", "{job}");
        assert_eq!(ada.money(&stack).await, (0, 2 * EACH));

        // A token, which pays at once or after a 402 with a quote. One of its two recipients does not exist.
        let token = ada.payer.token(&stack).await;
        let body = mail_to(json!([bob.address, format!("nobody@{DOMAIN}")]));
        let quote = ada.payer.client.post(QUOTE, &[("authorization", &token)], &body).await;
        assert_eq!(quote.status, 200, "{}", quote.text);
        let quote = quote.json()["quote_id"].as_str().unwrap().to_owned();
        let headers = [("authorization", token.as_str()), ("x-quote-id", quote.as_str())];
        let mut answer = ada.payer.client.post(SEND, &headers, &body).await;
        if answer.status == 402 {
            answer = ada.payer.client.post(SEND, &headers, &body).await;
        }
        let job = ada.ended(answer).await;
        assert_eq!((&job["status"], &job["settlement_status"]), (&json!("completed"), &json!("not_required")), "{job}");
        assert_eq!(ada.money(&stack).await, (0, EACH), "the unknown recipient is paid back as credits");
        assert_eq!(bob.mails().await.len(), 2);
    });
}

/// A model asks for no quote: the MCP function does.
#[test]
fn a_model_sends_and_reads_mail_over_mcp() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        ada.payer.give_credits(&stack, EACH).await;
        let client = &ada.payer.client;
        let ask = async |token: &str, tool: &str, arguments: Value| {
            call(client, &[("authorization", token)], tool, arguments, json!({})).await
        };
        let (of_ada, of_bob) = (ada.payer.token(&stack).await, bob.payer.token(&stack).await);
        let sent = ask(&of_ada, "agora_email", mail_to(bob.address.as_str())).await;
        assert_eq!((&sent["isError"], &sent["structuredContent"]["tool"]), (&json!(false), &json!("email")), "{sent}");
        let job = ada.payer.finished(sent["structuredContent"]["request_id"].as_str().expect("an id")).await;
        assert_eq!((&job["status"], reached(&job)), (&json!("completed"), 1), "{job}");
        assert_eq!(ada.money(&stack).await, (0, 0), "paid from credits");
        let polled = ask(&of_ada, "agora_get_request", json!({"request_id": job["request_id"]})).await;
        assert_eq!(polled["structuredContent"]["email_tracking"], job["email_tracking"], "{polled}");
        assert_eq!(job["email_tracking"]["to"], bob.address, "{job}");

        let listed = ask(&of_bob, "agora_inbox", json!({"limit": 10, "include_body": "true"})).await;
        let inbox = &listed["structuredContent"];
        assert_eq!((&inbox["count"], &inbox["has_more"]), (&json!(1), &json!(false)), "{listed}");
        assert_eq!(inbox["emails"][0]["subject"], "Hello");
        let id = &inbox["emails"][0]["id"];
        let mail = ask(&of_bob, "agora_inbox_email", json!({"email_id": id})).await;
        assert_eq!(mail["structuredContent"], inbox["emails"][0], "{mail}");
        assert_eq!(mail["structuredContent"]["body"].as_str().map(str::trim), Some("How are you?"));
        let domains = ask(&of_bob, "agora_email_domains", json!({})).await;
        assert_eq!(domains["structuredContent"]["domains"][0]["default_from"], bob.address, "{domains}");
        // The first question makes an agent's address, also over MCP.
        let carl = Payer::with(&stack, 0).await.token(&stack).await;
        let domains = ask(&carl, "agora_email_domains", json!({})).await;
        assert!(domains["structuredContent"]["domains"][0]["default_from"].is_string(), "{domains}");

        // The sender cannot read it, and an answer needs no address.
        let refused = ask(&of_ada, "agora_inbox_email", json!({"email_id": id})).await;
        assert_eq!(refused["structuredContent"]["error"], "email_not_found", "{refused}");
        let answer = ask(&of_bob, "agora_email", json!({"reply_to_email_id": id, "body": "Well."})).await;
        assert_eq!(answer["structuredContent"]["error"], "insufficient_credits", "{answer}");
    });
}

#[test]
fn an_unknown_recipient_bounces_and_its_part_is_paid_back_once() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob, carl) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        let nobody = format!("nobody@{DOMAIN}");
        let body = mail_to(json!([bob.address, nobody, carl.address]));
        let quote = ada.quote(&body).await;
        assert_eq!(quote["service_fee"].as_f64(), Some(0.015));
        let job = ada.ended(ada.send(&quote, &body).await).await;
        assert_eq!(job["status"], "completed", "{job}");
        assert_eq!(reached(&job), 2, "{job}");
        let [failed] = &job["result"]["failed"].as_array().unwrap()[..] else { panic!("one failed: {job}") };
        assert_eq!((&failed["to"], &failed["state"]), (&json!(nobody), &json!("bounced")));
        for other in [&bob, &carl] {
            let mails = other.mails().await;
            assert_eq!(mails.len(), 1);
            let text = mails[0].to_string();
            assert!(!text.contains("nobody@"), "the recipients do not see each other: {text}");
        }
        // A repeated message does not send or credit again.
        let id = job["request_id"].as_str().unwrap();
        stack.queue.push(Message::Job { request_id: id.parse().unwrap(), trace: None }.to_json());
        let credited = || async {
            let notes = ada.payer.get("/v1/tools/notifications").await.json()["notifications"].as_array()?.clone();
            notes.into_iter().find(|note| note["type"] == "credit_issued")
        };
        let note = eventually("the notification", credited).await;
        assert_eq!((&note["payload"]["amount_usdc"], &note["payload"]["request_id"]), (&json!("0.005000"), &json!(id)));
        assert_eq!(ada.money(&stack).await, (3 * EACH, EACH));
        let entries = credit::entries(&stack.app.db, ada.payer.agent(), 100).await.unwrap();
        assert_eq!(entries.iter().filter(|entry| entry.kind == EntryKind::Refund).count(), 1, "{entries:?}");
        let receipt = &books::receipts(&stack.app.db, ada.payer.agent()).await[0];
        assert_eq!((receipt.amount.micro(), receipt.kept.map(|kept| kept.micro())), (3 * EACH, Some(2 * EACH)));
        let spend = ada.payer.get("/v1/analytics/spend/breakdown").await.json();
        assert_eq!(spend["categories"][0]["category"], "communication", "{spend}");
        assert_eq!(spend["total_spent_usdc"], "0.010000", "{spend}");

        // The sender gets a report, and nobody answers that one.
        let [report] = &ada.mails().await[..] else { panic!("one report") };
        assert!(report["body"].as_str().unwrap().contains(&nobody), "{report}");
        let analytics = ada.analytics().await;
        assert_eq!((&analytics["delivered"], &analytics["bounced"]), (&json!(2), &json!(1)), "{analytics}");

        // If nobody gets it, the job fails and everything is paid back.
        let job = ada.mail(&mail_to(nobody.as_str())).await;
        assert_eq!((&job["status"], &job["credited_usdc"]), (&json!("failed"), &json!("0.005000")), "{job}");
        assert_eq!(ada.money(&stack).await, (4 * EACH, 2 * EACH));
    });
}

#[test]
fn a_quote_is_needed_bound_to_its_mail_and_used_once() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let body = mail_to(bob.address.as_str());
        let refused = |code: &str| (400, code.to_owned());
        let agent = ada.payer.address().to_string();
        let bare = ada.payer.client.post(SEND, &[("x-agent-id", &agent)], &body).await;
        assert_eq!(bare.error(), refused("quote_id_required"));

        let quote = ada.quote(&body).await;
        assert_eq!(bob.send(&quote, &body).await.error(), refused("quote_mismatch"), "another agent's");
        for more in [json!({"subject": "Hi"}), json!({"body": "Well?"}), json!({"to_address": ada.address})] {
            assert_eq!(ada.send(&quote, &with(body.clone(), more)).await.error(), refused("quote_mismatch"));
        }
        let other = with(body.clone(), json!({"from_address": format!("other@{DOMAIN}")}));
        assert_eq!(ada.send(&quote, &other).await.error(), refused("from_address_mismatch"));
        assert_eq!(ada.send(&json!({"quote_id": "quote_x"}), &body).await.error(), refused("invalid_quote"));
        assert_eq!((ada.money(&stack).await, bob.money(&stack).await), ((0, 0), (0, 0)));

        // In the body, the quote's id counts as well.
        let in_body = with(body.clone(), json!({"quote_id": quote["quote_id"]}));
        let asked = ada.payer.client.post(SEND, &[("x-agent-id", &agent)], &in_body).await;
        assert_eq!(asked.status, 402, "{}", asked.text);
        assert_eq!(ada.ended(ada.send(&quote, &body).await).await["status"], "completed");
        assert_eq!(ada.send(&quote, &body).await.error(), refused("invalid_quote"), "used");
        assert_eq!((ada.money(&stack).await, bob.mails().await.len()), ((EACH, 0), 1));

        // Somebody new gets a quote by naming a wallet.
        let stranger = Payer::with(&stack, 0).await;
        let quote = stranger.client.post(QUOTE, &[("x-agent-id", &stranger.address().to_string())], &body).await;
        assert_eq!(quote.status, 200, "{}", quote.text);
        let quote = quote.json();
        let address = quote["from_address"].as_str().unwrap();
        assert!(
            address.ends_with(&format!("@{DOMAIN}")) && address != ada.address && address != bob.address,
            "{quote}"
        );
        // Nothing is written for a wallet that is only named, and its owner gets what the quote said.
        let rows = domain::list(&stack.app.db, stranger.agent()).await.unwrap();
        assert!(rows.is_empty(), "{rows:?}");
        assert_eq!(stranger.get(DOMAINS).await.json()["domains"][0]["default_from"], address);
        // A cap below the price is refused at once.
        let headers = [("x-agent-id", agent.as_str()), ("x-max-cost-usdc", "0.004")];
        let capped = ada.payer.client.post(QUOTE, &headers, &body).await;
        assert_eq!(capped.error(), refused("exceeds_caller_budget"));
    });
}

/// A plain client of the x402 protocol sends the quote's id and the payment, and names no agent.
#[test]
fn a_client_that_only_pays_is_the_one_who_pays() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let body = mail_to(bob.address.as_str());
        let quote = ada.quote(&body).await;
        let id = quote["quote_id"].as_str().expect("a quote");
        let client = &ada.payer.client;
        let mismatch = (400, "quote_mismatch".to_owned());
        let other = with(body.clone(), json!({"subject": "Hi"}));
        assert_eq!(client.post(SEND, &[("x-quote-id", id)], &other).await.error(), mismatch);
        let unpaid = client.post(SEND, &[("x-quote-id", id)], &body).await;
        assert_eq!((unpaid.status, &unpaid.json()["amount_usdc"]), (402, &json!("0.005000")), "{}", unpaid.text);
        let paid = async |by: &Agent| {
            let payment = by.payer.pay(&unpaid);
            client.post(SEND, &[("x-quote-id", id), ("payment-signature", &payment)], &body).await
        };
        assert_eq!(paid(&bob).await.error(), mismatch, "the quote is another agent's");
        assert_eq!(ada.ended(paid(&ada).await).await["status"], "completed");
        assert_eq!((ada.money(&stack).await, bob.money(&stack).await), ((EACH, 0), (0, 0)));
    });
}

/// 500 rows are too many to read with each poll.
#[test]
fn a_mail_to_many_is_counted_every_half_minute_and_at_its_end() {
    run(async {
        one_day().await;
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        warm_up(&stack, ada.payer.agent()).await;
        let job = ada.mail(&mail_to(boxes(&bob, 30))).await;
        let tracking = &job["email_tracking"];
        assert_eq!((&tracking["status"], &tracking["recipients"]["delivered"]), (&json!("delivered"), &json!(30)));
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let id = job["request_id"].as_str().expect("an id").parse().expect("an id");
        recipient::note::<Address>(db, id, 7, &Happened::Complained, now).await.expect("a database").expect("a change");
        for (later, complained) in [(0, 0), (60, 1), (80, 1)] {
            let now = now.plus(Duration::from_secs(later));
            let tracking = recipient::tracking(db, ada.payer.agent(), id, true, now).await.expect("a database");
            assert_eq!(tracking.expect("a mail")["recipients"]["complained"], complained, "after {later} s");
        }
    });
}

/// Each question may cost the operator money, and a caller without a proof costs itself nothing.
#[test]
fn questions_to_the_moderation_server_are_limited() {
    run(async {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let judge = move |Json(body): Json<Value>| {
            counter.fetch_add(1, Ordering::SeqCst);
            let results = vec![json!({"flagged": false}); body["input"].as_array().map_or(0, Vec::len)];
            async move { Json(json!({"results": results})) }
        };
        let router = axum::Router::new().route("/v1/moderations", post(judge));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        // Six quotes a minute.
        let stack = post_office(|options| options.with("MODERATION_URL", url).with("RATE_LIMIT_SCALE", "0.05")).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let body = mail_to(bob.address.as_str());
        let quote = ada.quote(&body).await;
        let quote = quote["quote_id"].as_str().expect("a quote");
        let mut refused = 0;
        for number in 0..30 {
            let named = with(body.clone(), json!({"from_name": format!("Ada {number}")}));
            let answer = ada.payer.client.post(SEND, &[("x-quote-id", quote)], &named).await;
            match answer.status {
                402 => {}
                429 => refused += 1,
                _ => panic!("{}", answer.text),
            }
        }
        let asked = asked.load(Ordering::SeqCst);
        assert!(asked > 1 && asked <= 2 * 6, "at most two windows: {asked}");
        assert!(refused >= 30 - 2 * 6, "{refused}");
    });
}

#[test]
fn what_cannot_be_sent_has_no_price() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let outside = ada.ask(&mail_to(json!([bob.address, "jane@example.com"]))).await;
        assert_eq!(outside.error(), (503, "provider_unavailable".to_owned()));
        assert!(outside.json()["message"].as_str().unwrap().contains("EMAIL_PROVIDERS"), "{}", outside.text);

        let change = |to: &'static str| {
            let payer = ada.payer.clone();
            async move { payer.change("POST", &format!("{DOMAINS}/{DOMAIN}/{to}"), &json!({})).await }
        };
        let body = mail_to(bob.address.as_str());
        let missing = (404, "domain_not_found".to_owned());
        assert_eq!(change("resume").await.error(), missing, "only a paused one is resumed");
        for _ in 0..2 {
            let paused = change("pause").await;
            assert_eq!((paused.status, &paused.json()["pool_status"]), (200, &json!("paused")), "{}", paused.text);
        }
        assert_eq!(ada.payer.get(DOMAINS).await.json()["domains"][0]["pause_reason"], "manual");
        assert_eq!(ada.ask(&body).await.error(), (400, "no_sending_domain".to_owned()));
        let named = with(body.clone(), json!({"from_address": ada.address}));
        let refused = ada.ask(&named).await;
        assert_eq!(refused.error(), (400, "no_sending_domain".to_owned()), "a pause binds a named address too");
        assert!(refused.json()["message"].as_str().unwrap().contains("/resume"), "{}", refused.text);
        assert_eq!(
            bob.quote(&mail_to(ada.address.as_str())).await["from_address"],
            bob.address,
            "each has its own pool"
        );
        assert_eq!(change("resume").await.json()["pool_status"], "active");
        assert_eq!(ada.mail(&body).await["status"], "completed");

        for path in [format!("{DOMAINS}/example.org/pause"), format!("{DOMAINS}/%20/resume")] {
            assert_eq!(ada.payer.change("POST", &path, &json!({})).await.error(), missing, "{path}");
        }
        let analytics = ada.payer.get("/v1/tools/email/analytics/example.org").await;
        assert_eq!(analytics.error(), missing);
        // Older clients send a read proof with a change.
        let (path, read) = (format!("{DOMAINS}/{DOMAIN}/pause"), ada.payer.proof("read"));
        let paused = ada.payer.client.post(&path, &[("x-agent-proof", &read)], &json!({})).await;
        assert_eq!(paused.status, 200, "{}", paused.text);
        assert_eq!(ada.payer.client.post(&path, &[], &json!({})).await.error(), (401, "proof_required".to_owned()));
    });
}

#[test]
fn a_name_belongs_to_the_agent_that_claims_it_first() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob, carl) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        let taken = (400, "address_taken".to_owned());
        let named =
            |name: &str| with(mail_to(carl.address.as_str()), json!({"from_address": format!("{name}@{DOMAIN}")}));

        // A quote reserves nothing: of two who pay at once one wins.
        let body = named("shop");
        let quotes = [ada.quote(&body).await, bob.quote(&body).await];
        for quote in &quotes {
            assert_eq!((&quote["is_new"], &quote["available"]), (&json!(true), &json!(true)), "{quote}");
        }
        let send = |agent: &Agent, quote: &Value| {
            let (agent, quote, body) = (agent.clone(), quote.clone(), body.clone());
            async move {
                let answer = agent.send(&quote, &body).await;
                if answer.status == 400 { answer.json() } else { agent.ended(answer).await }
            }
        };
        let ended = join_all([send(&ada, &quotes[0]), send(&bob, &quotes[1])]).await;
        let won = |job: &Value| job["status"] == "completed";
        assert_eq!(ended.iter().filter(|job| won(job)).count(), 1, "{ended:?}");
        let (winner, loser) = if won(&ended[0]) { (&ada, &bob) } else { (&bob, &ada) };
        assert_eq!(winner.money(&stack).await, (EACH, 0));
        let (paid, credits) = loser.money(&stack).await;
        assert_eq!(paid, credits, "paid back whole: {ended:?}");
        let [mail] = &carl.mails().await[..] else { panic!("one mail") };
        assert!(mail["from"].as_str().unwrap().contains(&format!("shop@{DOMAIN}")), "{mail}");

        assert_eq!(loser.ask(&body).await.error(), taken);
        assert_eq!(loser.ask(&named("SHOP")).await.error(), taken, "case does not make another name");
        assert_eq!(loser.ask(&with(body.clone(), json!({"from_address": carl.address}))).await.error(), taken);
        assert_eq!(winner.quote(&body).await["is_new"], false);
        // Answers to the name reach the one who has it.
        let answer = carl.mail(&json!({"reply_to_email_id": mail["id"], "body": "Ten, please."})).await;
        assert_eq!(answer["status"], "completed", "{answer}");
        assert_eq!((winner.mails().await.len(), loser.mails().await.len()), (1, 0));
        let domains = winner.payer.get(DOMAINS).await.json();
        let addresses = domains["domains"][0]["addresses"].as_array().unwrap();
        assert!(addresses.iter().any(|address| address["address"] == format!("shop@{DOMAIN}")), "{domains}");
        // Names that a stranger must not speak as.
        for name in ["postmaster", "abuse", "mailer-daemon"] {
            assert_eq!(ada.ask(&named(name)).await.status, 400, "{name}");
        }
    });
}

#[test]
fn a_domain_of_ones_own_is_verified_by_dns() {
    run(async {
        let zone = Zone::new().start().await;
        let stack = post_office(|options| options.with("DNS_SERVER", zone.address().to_string())).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let from = |domain: &str| with(mail_to(bob.address.as_str()), json!({"from_address": format!("ada@{domain}")}));
        let quote = ada.quote(&from("elsewhere.test")).await;
        assert_eq!((&quote["available"], &quote["status"]), (&json!(false), &json!("unprovisioned")), "{quote}");
        let record = |agent: &Agent, domain: &str| {
            domain::ownership_record(&stack.worker.toolbox.mail_secret, agent.payer.agent(), domain)
        };
        let (name, value) = record(&ada, "elsewhere.test");
        let records = quote["dns_records"].as_array().unwrap();
        let is_record = |one: &Value| one["type"] == "TXT" && one["name"] == name && one["value"] == value;
        assert!(records.iter().any(is_record), "{quote}");
        let refused = (400, "domain_not_owned".to_owned());
        assert_eq!(ada.send(&quote, &from("elsewhere.test")).await.error(), refused);

        let (name, value) = record(&ada, "firm.test");
        zone.change(Zone::new().txt(&name, &[&value]));
        let quote = ada.quote(&from("firm.test")).await;
        assert_eq!((&quote["available"], &quote["status"]), (&json!(true), &json!("verified")), "{quote}");
        // Anybody can ask in ada's name, and set the record on a domain of theirs. Only her paid mail adds the domain.
        let rows = domain::list(&stack.app.db, ada.payer.agent()).await.unwrap();
        assert!(rows.iter().all(|row| row.domain == DOMAIN), "{rows:?}");
        assert!(domain::own_domain(&stack.app.db, "firm.test").await.unwrap().is_none());
        assert_eq!(ada.quote(&mail_to(bob.address.as_str())).await["from_address"], ada.address);
        assert_eq!(ada.ended(ada.send(&quote, &from("firm.test")).await).await["status"], "completed");
        assert!(bob.mails().await[0]["from"].as_str().unwrap().contains("ada@firm.test"));
        assert_eq!(bob.ask(&from("firm.test")).await.error(), refused, "it is another agent's now");
        let domains = ada.payer.get(DOMAINS).await.json();
        let own = domains["domains"].as_array().unwrap().iter().find(|one| one["domain"] == "firm.test");
        assert_eq!(own.expect("it is listed")["provisioning_status"], "verified", "{domains}");
        // Mail to its address stays in the deployment. Other addresses of the domain may be anywhere.
        let local = json!(["ada@firm.test", "ada+lunch@firm.test"]);
        assert_eq!(reached(&bob.mail(&mail_to(local)).await), 2);
        assert_eq!(ada.mails().await.len(), 2);
        for body in [mail_to("boss@firm.test"), mail_to(json!(["ada@firm.test", "boss+ada@firm.test"]))] {
            assert_eq!(bob.ask(&body).await.error(), (503, "provider_unavailable".to_owned()), "{body}");
        }
    });
}

/// RFC 5321, 4.5.1: every domain that mail is taken for has a postmaster.
#[test]
fn every_domain_has_a_postmaster_and_what_is_no_mail_is_refused() {
    run(async {
        let zone = Zone::new().start().await;
        let stack = post_office(|options| options).await;
        let ada = Agent::new(&stack).await;
        identities::prove(&stack, &zone, &ada, "firm.test").await;
        let address = |text: &str| Address::parse(text).expect("an address");
        let role = [format!("Postmaster@{DOMAIN}"), "abuse@firm.test".to_owned(), format!("nobody@{DOMAIN}")];
        let to = role.map(|text| address(&text));
        let arrived = |event_id: &'static str| Envelope {
            from: Some(address("jane@example.com")),
            to: &to,
            event_id,
            source: None,
            received_at: stack.app.clock.now(),
            verdicts: Verdicts::default(),
        };
        let raw = b"From: jane@example.com\r\nSubject: Spam\r\n\r\nFrom one of yours.\r\n";
        let (envelope, toolbox) = (arrived("1"), &stack.worker.toolbox);
        let done = receive::receive(toolbox, &envelope, raw).await.expect("a database");
        let became = |done: Vec<(Address, Delivered)>| done.into_iter().map(|(_, became)| became).collect::<Vec<_>>();
        assert_eq!(became(done), [Delivered::Stored, Delivered::Stored, Delivered::UnknownUser]);
        assert_eq!(ada.mails().await[0]["to"], "abuse@firm.test", "of her domain she is the postmaster");
        let id = mailbox::mail_id(envelope.received_at, &[b"operator", b"1"]);
        let kept = stack.app.blobs.get(&format!("{}{id}.eml", receive::FOR_OPERATOR)).await.expect("blobs");
        assert_eq!(kept.as_deref(), Some(&raw[..]), "the operator's mail is stored as it came");

        let done = receive::receive(toolbox, &arrived("2"), b"This is no mail.").await.expect("a database");
        assert_eq!(became(done), [Delivered::Unreadable, Delivered::Unreadable, Delivered::UnknownUser]);
        assert_eq!(ada.mails().await.len(), 1);
    });
}

#[test]
fn concurrent_sends_never_exceed_the_days_limit() {
    run(async {
        one_day().await;
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let listed = ada.payer.get(DOMAINS).await.json()["domains"][0].clone();
        assert_eq!((&listed["daily_send_limit"], &listed["daily_sent_count"]), (&json!(FIRST_DAY), &json!(0)));
        assert_eq!(reached(&ada.mail(&mail_to(boxes(&bob, FIRST_DAY - 1))).await), FIRST_DAY - 1);

        let body = mail_to(bob.address.as_str());
        let quotes = [ada.ask_proven(&body).await.json(), ada.ask_proven(&body).await.json()];
        let sent = quotes.iter().map(|quote| {
            let (ada, quote, body) = (ada.clone(), quote.clone(), body.clone());
            async move { ada.ended(ada.send(&quote, &body).await).await }
        });
        let ended = join_all(sent).await;
        let [lost] = &ended.iter().filter(|job| job["status"] == "failed").collect::<Vec<_>>()[..] else {
            panic!("exactly one wins: {ended:?}")
        };
        assert_eq!(lost["credited_usdc"], "0.005000", "{lost}");
        assert_eq!(ada.money(&stack).await, ((FIRST_DAY as u64 + 1) * EACH, EACH));
        assert_eq!(bob.mails().await.len(), FIRST_DAY);
        let listed = ada.payer.get(DOMAINS).await.json()["domains"][0].clone();
        assert_eq!(listed["daily_sent_count"], FIRST_DAY);
        let full = (400, "no_sending_domain".to_owned());
        assert_eq!(ada.ask_proven(&body).await.error(), full, "nothing is left");
        // Whoever only names it is not told, and cannot pay for more than is left.
        let quote = ada.quote(&body).await;
        let before = ada.money(&stack).await;
        assert_eq!((ada.send(&quote, &body).await.error(), ada.money(&stack).await), (full, before));
    });
}

#[test]
fn invalid_mails_are_refused_by_name() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let good = mail_to(bob.address.as_str());
        let many =
            |count: usize| -> Vec<String> { (0..count).map(|number| format!("box-{number}@{DOMAIN}")).collect() };
        let mut one_bad = many(500);
        one_bad[250] = "box 250@agents.test".to_owned();
        for (more, path) in [
            (json!({"to_address": null}), "to_address"),
            (json!({"to_address": []}), "to_address"),
            (json!({"to_address": "nobody"}), "to_address"),
            (json!({"to_address": format!("{}\nBcc: eve@evil.test", bob.address)}), "to_address"),
            (json!({"to_address": format!("Bob <{}>", bob.address)}), "to_address"),
            // The first letter is Cyrillic.
            (json!({"to_address": "ada@\u{430}pple.test"}), "to_address"),
            (json!({"to_address": many(501)}), "to_address"),
            (json!({"to_address": one_bad}), "to_address.250"),
            (json!({"subject": "Hello\r\nBcc: eve@evil.test"}), "subject"),
            (json!({"subject": ""}), "subject"),
            (json!({"subject": "x".repeat(501)}), "subject"),
            (json!({"body": ""}), "body"),
            (json!({"from_name": "Ada\r\nReply-To: eve@evil.test"}), "from_name"),
            (json!({"from_name": "Ada <boss@bank.test>"}), "from_name"),
            (json!({"from_address": "ada@agents.test\r\nSender: x"}), "from_address"),
            (json!({"reply_to_email_id": "x"}), "reply_to_email_id"),
            (json!({"mailbox_mode": "both"}), "mailbox_mode"),
        ] {
            let answer = ada.ask(&with(good.clone(), more.clone())).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{path}: {}", answer.text);
            assert_eq!(answer.json()["details"][0]["path"], path, "{}", answer.text);
        }
        let quote = ada.quote(&good).await;
        let file =
            |more: Value| with(json!({"filename": "a.txt", "content": "YQ==", "content_type": "text/plain"}), more);
        for (files, path) in [
            (vec![file(json!({"content": "not base64!"}))], "attachments.0.content"),
            (vec![file(json!({})), file(json!({"filename": "a\r\nb.txt"}))], "attachments.1.filename"),
            (vec![file(json!({"content_type": "text/plain\r\nX-A: b"}))], "attachments.0.content_type"),
            (vec![file(json!({})); 11], "attachments"),
        ] {
            let answer = ada.send(&quote, &with(good.clone(), json!({"attachments": files}))).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{path}: {}", answer.text);
            assert_eq!(answer.json()["details"][0]["path"], path, "{}", answer.text);
        }
        let threat = json!({"attachments": [file(json!({"filename": "I will kill you.txt"}))]});
        let answer = ada.send(&quote, &with(good.clone(), threat)).await;
        assert_eq!(answer.error(), (400, "content_blocked".to_owned()), "{}", answer.text);
        let big = with(good.clone(), json!({"attachments": [file(json!({"content": "A".repeat(5 * 1024 * 1024)}))]}));
        assert_eq!(ada.send(&quote, &big).await.error(), (413, "payload_too_large".to_owned()));
        assert_eq!((ada.money(&stack).await, bob.mails().await.len()), ((0, 0), 0));
        assert_eq!(ada.ended(ada.send(&quote, &good).await).await["status"], "completed", "the quote is still good");
    });
}
