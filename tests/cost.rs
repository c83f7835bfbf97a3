//! The cost of a call: its database requests and the capacity units they consume, counted on the wire.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::ids::{AgentId, RequestId};
use platform::store::lists::List;
use platform::store::{Key, Write};
use serde_json::{Value, json};
use tools_email::address::Address;
use tools_email::mailbox::Verdicts;
use tools_email::receive::{self, Delivered, Envelope};
use tools_email::{domain, send};
use tools_network::inbox::{self, By};
use tools_network::invitations::Invitation;
use tools_network::providers::Heard;
use tools_network::providers::local::members;
use tools_sms::number::Number;
use tools_sms::receive::{self as incoming_text, Incoming, Taken};
use tools_sms::{phone, send as sms};
use tools_voice::config::MAX_PROMPT;
use tools_voice::outbound;
use uuid::Uuid;

use crate::browsing::shop;
use crate::email::warm_up;
use crate::network::{self, ROOT, friends};
use crate::souls_market::Shop;
use crate::support::chromium::chromium;
use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy, Seen};
use crate::support::{GATES, Payer, READ_PATH, VIN, VIN_PATH, look_at_the_switch, run, stack_with};
use local::Options;
use local::stack::Background;

const MOST_FOR_QUOTE: Units = Units { requests: 7.0, reads: 4.5, writes: 2.0, messages: 0.0 };
const MOST_FOR_MAIL: Units = Units { requests: 42.0, reads: 22.5, writes: 44.0, messages: 1.0 };
const MOST_FOR_RECIPIENT: Units = Units { requests: 13.2, reads: 5.8, writes: 10.4, messages: 0.05 };
const MOST_FOR_TEXT: Units = Units { requests: 42.0, reads: 25.0, writes: 45.0, messages: 1.0 };
const MOST_FOR_TEXTED: Units = Units { requests: 15.2, reads: 8.3, writes: 12.4, messages: 0.05 };
// A call answered here, with one turn. Its end wakes its job: one write.
const MOST_FOR_INBOUND_CALL: Units = Units { requests: 52.0, reads: 31.0, writes: 52.0, messages: 1.0 };
const MOST_FOR_TURN: Units = Units { requests: 12.2, reads: 6.2, writes: 5.6, messages: 0.0 };
// The looks of its job that fall into a turn are not always the same.
const MOST_FOR_WORDY_TURN: Units = Units { requests: 12.8, reads: 9.0, ..MOST_FOR_TURN };
const MOST_FOR_OUTBOUND_CALL: Units = Units { requests: 87.0, reads: 52.5, writes: 82.0, messages: 2.0 };
const MOST_FOR_RECEIVED: Units = Units { requests: 7.0, reads: 2.5, writes: 5.0, messages: 0.0 };
const MOST_FOR_RECEIVED_TEXT: Units = Units { requests: 7.0, reads: 3.5, writes: 7.0, messages: 0.0 };

const MOST_FOR_TASK: Units = Units { requests: 26.0, reads: 12.0, writes: 56.0, messages: 1.0 };
// The check that the job is open costs two units for each KB of its item, which holds the task.
const MOST_FOR_STEP: Units = Units { requests: 1.6, reads: 0.5, writes: 8.0, messages: 0.0 };

// How often a goal looks what has ended depends on how quick its calls are.
const MOST_FOR_GOAL: Units = Units { requests: 75.0, reads: 50.0, writes: 85.0, messages: 5.0 };
const MOST_FOR_GOALS_CALL: Units = Units { requests: 26.0, reads: 16.0, writes: 40.0, messages: 3.0 };

/// How much more than a direct call an action at the local network may cost, with the delivery to the other member.
const MOST_MORE_FOR_ACTION: Units = Units { requests: 41.0, reads: 31.0, writes: 56.0, messages: 1.0 };
/// How much an action or a list may grow by what its account has: what is listed is not always equally long.
const MOST_GROWTH: Units = Units { requests: 2.0, reads: 3.0, writes: 3.0, messages: 0.0 };
/// A page of two of a network account.
const MOST_FOR_NETWORK_PAGE: Units = Units { requests: 7.0, reads: 8.0, writes: 1.0, messages: 0.0 };
const MOST_FOR_SYNC: Units = Units { requests: 37.0, reads: 28.0, writes: 52.0, messages: 1.0 };
/// Its conversation and its place, looked for; then one transaction of four.
const MOST_FOR_SYNCED: Units = Units { requests: 3.3, reads: 2.5, writes: 8.2, messages: 0.05 };

/// How the numbers here answer.
const PROMPT: &str = "You answer for the bakery Ann. A loaf of rye costs 4.50 euros.";

/// Requests to the database with their units, and messages sent to queues.
#[derive(Clone, Copy, Debug)]
struct Units {
    requests: f64,
    reads: f64,
    writes: f64,
    messages: f64,
}

impl Units {
    fn is_within(&self, most: &Units) -> bool {
        let pairs = [
            (self.requests, most.requests),
            (self.reads, most.reads),
            (self.writes, most.writes),
            (self.messages, most.messages),
        ];
        pairs.iter().all(|(found, most)| found <= most)
    }

    fn less(&self, other: &Units) -> Units {
        Units {
            requests: self.requests - other.requests,
            reads: self.reads - other.reads,
            writes: self.writes - other.writes,
            messages: self.messages - other.messages,
        }
    }

    /// For a message to this many, where `self` is for one.
    fn and_further(&self, recipients: usize, each: &Units) -> Units {
        let more = (recipients - 1) as f64;
        Units {
            requests: self.requests + more * each.requests,
            reads: self.reads + more * each.reads,
            writes: self.writes + more * each.writes,
            messages: self.messages + more * each.messages,
        }
    }
}

/// What a call cost.
#[derive(Clone, Debug, Default)]
struct Cost {
    seen: Vec<Seen>,
    messages: u64,
}

impl Cost {
    fn units(&self) -> Units {
        Units {
            requests: self.seen.len() as f64,
            reads: reads(&self.seen),
            writes: writes(&self.seen),
            messages: self.messages as f64,
        }
    }

    /// The part of one in so many things of a kind, where `one` had a single one.
    fn of_each(&self, count: usize, one: &Cost) -> Units {
        let (all, one) = (self.units(), one.units());
        let each = |all: f64, one: f64| (all - one) / (count - 1) as f64;
        Units {
            requests: each(all.requests, one.requests),
            reads: each(all.reads, one.reads),
            writes: each(all.writes, one.writes),
            messages: each(all.messages, one.messages),
        }
    }
}

struct Counted {
    stack: local::Stack,
    database: Proxy,
    /// Messages sent before what is counted now.
    sent_before: AtomicU64,
}

async fn counted() -> Counted {
    counted_with(|options| options).await
}

async fn counted_with(prepare: impl FnOnce(Options) -> Options) -> Counted {
    let database = local::database::start(None).await.expect("a database");
    let database = Proxy::start(&database, Life::immortal()).await;
    let stack = stack_with(|options| {
        let options = prepare(options).with("AWS_ENDPOINT_URL", &database.url).with("PAYMENT_HOLD_MS", "0");
        Options { background: Background::Worker, ..options }
    })
    .await;
    // Each process reads the operator's switch every five seconds, not per call.
    look_at_the_switch(&stack).await;
    // Twice an hour each process announces which of the swept lists it may write to.
    for function in GATES {
        let app = &stack.functions[function];
        for list in List::ALL {
            let key = Key::new("NOTHING", "NOTHING");
            let write = Write::update(&app.db.tables.ledger, key, "SET #nothing = :nothing");
            app.db.write(write.bind("nothing", 0).unwrap().into_list(list, app.clock.now())).await.unwrap();
        }
    }
    database.take_seen();
    Counted { stack, database, sent_before: AtomicU64::new(0) }
}

impl Counted {
    /// A wallet that has paid before. For a new wallet each settlement is counted too (two units a call, until the sum
    /// reaches `OVERLAP_EXPOSURE_USDC`).
    async fn known_payer(&self) -> Payer {
        let payer = Payer::new(&self.stack).await;
        payer.has_settled(&self.stack, self.stack.config.payments.overlap_exposure.micro()).await;
        self.database.take_seen();
        payer
    }

    /// An agent with an address, a dollar of credits and a token.
    async fn mailer(&self) -> Mailer {
        let payer = Payer::new(&self.stack).await;
        payer.give_credits(&self.stack, 1_000_000).await;
        let token = payer.token(&self.stack).await;
        let address = self.address_of(payer.agent()).await;
        // Mails to fifty are counted.
        warm_up(&self.stack, payer.agent()).await;
        Mailer { payer, token, address }
    }

    /// The agent's address on the operator's domain.
    async fn address_of(&self, agent: AgentId) -> Address {
        let (db, now) = (&self.stack.app.db, self.stack.app.clock.now());
        let domains = domain::ensure_default(db, &self.stack.config, agent, now).await.expect("a database");
        domains[0].default_from.clone()
    }

    /// The cost since the last look.
    fn cost(&self) -> Cost {
        let stack = &self.stack;
        let queues = [&stack.queue, &stack.souls, &stack.browser, &stack.deliveries, &stack.pages];
        let sent: u64 = queues.iter().map(|queue| queue.sent()).sum();
        let messages = sent - self.sent_before.swap(sent, Ordering::SeqCst);
        Cost { seen: self.database.take_seen(), messages }
    }

    /// The cost of a mail to this many agents here: of its quote, and from the paid call to the job's end.
    async fn mail(&self, mailer: &Mailer, recipients: usize) -> (Cost, Cost) {
        let mut to = Vec::new();
        for _ in 0..recipients {
            to.push(self.address_of(AgentId::from_bytes(base::digest::random())).await);
        }
        let body =
            json!({"to_address": to, "subject": "Hello", "body": "How are you?", "from_address": mailer.address});
        let (client, token) = (&mailer.payer.client, mailer.token.as_str());
        self.cost();
        let quote = client.post("/v1/tools/email/quote", &[("authorization", token)], &body).await;
        assert_eq!(quote.status, 200, "{}", quote.text);
        let quote = quote.json()["quote_id"].as_str().expect("a quote").to_owned();
        let of_quote = self.cost();
        look_at_the_switch(&self.stack).await;
        self.cost();
        let headers = [("authorization", token), ("x-quote-id", quote.as_str())];
        let accepted = client.post(send::SPEC.path(), &headers, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let of_mail = self.until_quiet().await;
        let job = mailer.payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!(job["result"]["recipients"]["delivered"], recipients, "{job}");
        (of_quote, of_mail)
    }

    /// The cost of a task of this many steps in a browser, from the paid call to the job's end.
    async fn task(&self, buyer: &Mailer, shop: &str, steps: usize) -> Cost {
        let ticks = ["Check \"Gift wrap\". ", "Uncheck \"Gift wrap\". "].into_iter().cycle().take(steps - 3);
        let task = format!("Open http://{shop}/login. Log in with user name \"ann\" and password \"sesame\". ");
        let body = json!({"task": task + &ticks.collect::<String>() + "Read the heading.", "max_steps": 60});
        let (client, token) = (&buyer.payer.client, buyer.token.as_str());
        let unpaid = client.post("/v1/tools/browser", &[("authorization", token)], &body).await;
        let quote = unpaid.json()["context"]["quote_id"].as_str().expect("a quote").to_owned();
        look_at_the_switch(&self.stack).await;
        self.cost();
        let headers = [("authorization", token), ("x-quote-id", quote.as_str())];
        let accepted = client.post("/v1/tools/browser", &headers, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        while !self.stack.browser.is_idle() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let cost = self.until_quiet().await;
        let job = buyer.payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!(job["result"]["steps_incomplete"], false, "{job}");
        cost
    }

    /// The cost of a goal that decodes so many vehicle identification numbers, from the paid call to the end of its job.
    async fn goal(&self, buyer: &Mailer, numbers: &[&str]) -> Cost {
        let each: Vec<String> = numbers.iter().map(|vin| format!("Decode the VIN {vin}.")).collect();
        let body = json!({"objective": each.join(" "), "budget_usdc": 1});
        let (client, token) = (&buyer.payer.client, buyer.token.as_str());
        let unpaid = client.post("/v1/compute", &[("authorization", token)], &body).await;
        let quote = unpaid.json()["context"]["quote_id"].as_str().expect("a quote").to_owned();
        look_at_the_switch(&self.stack).await;
        self.cost();
        let headers = [("authorization", token), ("x-quote-id", quote.as_str())];
        let accepted = client.post("/v1/compute", &headers, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let cost = self.until_quiet().await;
        let job = buyer.payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!(job["result"]["status"], "completed", "{job}");
        cost
    }

    /// A number of an agent that has bought nothing else.
    async fn number_of(&self, agent: AgentId) -> String {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        match phone::register(&self.stack.worker.toolbox, agent, RequestId::random(), deadline).await {
            Ok(phone::Registered::New(phone) | phone::Registered::Known(phone)) => phone.number.as_str().to_owned(),
            _ => panic!("no number"),
        }
    }

    /// The cost of a text to this many agents here, from the call that is quoted to the job's end.
    async fn text(&self, sender: &Mailer, recipients: usize) -> Cost {
        let mut to = Vec::new();
        for _ in 0..recipients {
            to.push(self.number_of(AgentId::from_bytes(base::digest::random())).await);
        }
        let body = json!({"to_number": to, "message": "How are you?"});
        look_at_the_switch(&self.stack).await;
        self.cost();
        let (client, path) = (&sender.payer.client, sms::SPEC.path());
        let quoted = client.post(path, &[("authorization", &sender.token)], &body).await.json();
        let quote = quoted["context"]["quote_id"].as_str().unwrap_or_else(|| panic!("{quoted}"));
        let headers = [("authorization", sender.token.as_str()), ("x-quote-id", quote)];
        let accepted = client.post(path, &headers, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let cost = self.until_quiet().await;
        let job = sender.payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!(job["result"]["sent"], recipients, "{job}");
        cost
    }

    /// A number that answers, of an agent with credits for calls.
    async fn answering(&self, prompt: &str) -> String {
        let callee = Payer::new(&self.stack).await;
        callee.give_credits(&self.stack, 10_000_000).await;
        let number = self.number_of(callee.agent()).await;
        let numbers = callee.get("/v1/tools/voice/numbers").await.json();
        let id = numbers["data"]["numbers"][0]["id"].as_str().unwrap_or_else(|| panic!("{numbers}"));
        let settings = json!({"prompt": prompt, "max_minutes": 2});
        let put = callee.change("PUT", &format!("/v1/tools/voice/numbers/{id}/inbound"), &settings).await;
        assert_eq!(put.status, 200, "{}", put.text);
        number
    }

    /// The cost of a call of the exchange with so many turns, from the dial to the end of its job.
    async fn inbound_call(&self, caller: &Mailer, to: &str, turns: usize) -> Cost {
        look_at_the_switch(&self.stack).await;
        self.cost();
        let (client, token) = (&caller.payer.client, [("authorization", caller.token.as_str())]);
        let call = client.post("/v1/tools/voice/exchange", &token, &json!({"to": to})).await;
        assert_eq!(call.status, 201, "{}", call.text);
        let id = call.json()["data"]["call"]["id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/tools/voice/exchange/{id}");
        for _ in 0..turns {
            let text = json!({"text": "How much does rye cost?"});
            let said = client.post(&format!("{path}/turns"), &token, &text).await;
            assert_eq!(said.status, 200, "{}", said.text);
        }
        let ended = client.post(&format!("{path}/hang-up"), &token, &json!({})).await;
        assert_eq!(ended.status, 200, "{}", ended.text);
        self.until_quiet().await
    }

    /// The cost of a call that an agent buys to a number here, from the call that is quoted to the end of both jobs.
    async fn outbound_call(&self, caller: &Mailer, to: &str) -> Cost {
        let body = json!({"target_number": to, "objective": "Ask how much rye costs.", "max_duration_minutes": 1});
        look_at_the_switch(&self.stack).await;
        self.cost();
        let (client, path) = (&caller.payer.client, outbound::SPEC.path());
        let quoted = client.post(path, &[("authorization", &caller.token)], &body).await.json();
        let quote = quoted["context"]["quote_id"].as_str().unwrap_or_else(|| panic!("{quoted}"));
        let headers = [("authorization", caller.token.as_str()), ("x-quote-id", quote)];
        let accepted = client.post(path, &headers, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let cost = self.until_quiet().await;
        let job = caller.payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!(job["result"]["outcome"], "reached_person", "{job}");
        cost
    }

    /// The cost of an action at the network, from the paid call to the job's end.
    async fn acts(&self, agent: &network::Agent, path: &str, body: &Value, key: &str) -> Cost {
        look_at_the_switch(&self.stack).await;
        self.cost();
        let accepted = agent.buy(path, body, key).await;
        assert_eq!(accepted.status, 202, "{path}: {}", accepted.text);
        let cost = self.until_quiet().await;
        let job = agent.ended(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!(job["status"], "completed", "{path}: {job}");
        cost
    }

    /// The cost of a free read of the network.
    async fn looks(&self, agent: &network::Agent, path: &str) -> Cost {
        self.cost();
        let page = agent.get(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        self.cost()
    }

    /// Gives a network account so many conversations with a message each, and so many invitations.
    async fn fill(&self, account: Uuid, count: u8) {
        let (db, now) = (&self.stack.app.db, self.stack.app.clock.now());
        for index in 0..count {
            let heard = Heard {
                id: format!("message {index}"),
                chat: format!("chat {index}"),
                text: Some("How are you?".to_owned()),
                at: now.minus(Duration::from_secs(60 * (u64::from(index) + 1))),
                ..Heard::default()
            };
            inbox::take(db, account, &heard, By::Webhook, now).await.expect("a database");
            let request = RequestId::from_bytes([index; 16]);
            let invitation = Invitation::new(request, &format!("member-{index}"), Some("We met in Lyon."), now);
            db.transact(&invitation.begin(db, account, None).expect("writes")).await.expect("a database");
        }
    }

    /// The cost of a sync that finds so many new messages.
    async fn sync(&self, reader: (&network::Agent, &str, &str), writer: &str, messages: u8) -> Cost {
        let (agent, account, member) = reader;
        let (db, now) = (&self.stack.app.db, self.stack.app.clock.now());
        let ids = [writer, member].map(|id| Uuid::parse_str(id).expect("a member"));
        let from = members::load(db, ids[0]).await.expect("a database").expect("a member");
        let chat = members::chat_of(ids[0], ids[1]);
        for index in 0..messages {
            let at = now.plus(Duration::from_millis(index.into()));
            let sent = members::write(db, (RequestId::random(), at), &from, chat, ids[1], "How are you?").await;
            assert!(sent.expect("a database").is_ok(), "they are connections");
        }
        self.acts(agent, "sync", &json!({"account_id": account}), &format!("sync-{}", base::ids::random_uuid())).await
    }

    /// The cost of a mail from outside.
    async fn received(&self, to: &Address, event_id: &str) -> Cost {
        self.cost();
        let envelope = Envelope {
            from: Some(Address::parse("jane@example.com").expect("an address")),
            to: std::slice::from_ref(to),
            event_id,
            source: None,
            received_at: self.stack.app.clock.now(),
            verdicts: Verdicts::default(),
        };
        let raw = b"From: jane@example.com\r\nSubject: Hello\r\nMessage-ID: <1@example.com>\r\n\r\nHow are you?\r\n";
        let done = receive::receive(&self.stack.worker.toolbox, &envelope, raw).await.expect("a database");
        assert_eq!(done, [(to.clone(), Delivered::Stored)]);
        self.cost()
    }

    /// The cost of a text from outside.
    async fn received_text(&self, to: &str, event_id: &str) -> Cost {
        let to = Number::parse(to).expect("a number");
        self.cost();
        let incoming = Incoming {
            from: "+4915112345678",
            to: &to,
            body: "How are you?",
            num_media: 0,
            at: self.stack.app.clock.now(),
            event_id,
            local_sender: None,
        };
        let taken = incoming_text::receive(&self.stack.worker.toolbox, &incoming).await.expect("a database");
        assert_eq!(taken, Taken::Stored);
        self.cost()
    }

    /// The cost until there are no requests for a second.
    async fn until_quiet(&self) -> Cost {
        let mut cost = Cost::default();
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let more = self.cost();
            cost.messages += more.messages;
            if more.seen.is_empty() {
                return cost;
            }
            cost.seen.extend(more.seen);
        }
    }
}

/// An agent that sends mail and pays with credits.
struct Mailer {
    payer: Payer,
    token: String,
    address: Address,
}

fn reads(seen: &[Seen]) -> f64 {
    seen.iter().map(|seen| seen.read_units).sum()
}

fn writes(seen: &[Seen]) -> f64 {
    seen.iter().map(|seen| seen.write_units).sum()
}

/// Fails if one of these costs more than it may. The message has everything that was found.
fn assert_within(found: &[(&str, Units, Units)]) {
    let rows: Vec<String> =
        found.iter().map(|(name, found, most)| format!("{name}: found {found:?}, at most {most:?}")).collect();
    assert!(found.iter().all(|(_, found, most)| found.is_within(most)), "\n{}", rows.join("\n"));
}

fn operations(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|seen| seen.operation.as_str()).collect()
}

#[test]
fn an_anonymous_price_request_uses_no_database() {
    run(async {
        let counted = counted().await;
        let payer = Payer::new(&counted.stack).await;
        for (path, body) in [(VIN_PATH, json!({"vin": VIN})), (READ_PATH, json!({"url": "http://example.com/"}))] {
            let address = payer.address().to_string();
            assert_eq!(payer.client.post(path, &[("x-agent-id", &address)], &body).await.status, 402);
            assert_eq!(payer.client.send("POST", path, &[], "").await.unwrap().status, 402);
        }
        // A payment refused for its form or terms reads nothing. One that may have been valid once is looked up once.
        let wrong = header(&bare(&payer.authorize_with(5_000, |payment| payment.to = evm::Address::ZERO)));
        assert_eq!(payer.client.post(VIN_PATH, &[("x-payment", "garbage")], &json!({"vin": VIN})).await.status, 400);
        assert_eq!(counted.database.take_seen(), []);
        assert_eq!(payer.client.post(VIN_PATH, &[("x-payment", &wrong)], &json!({"vin": VIN})).await.status, 402);
        assert_eq!(operations(&counted.database.take_seen()), ["GetItem"]);
        // For a proven caller: the proof is used up and counted, and its credits and rules are read.
        let proof = payer.proof("write");
        assert_eq!(payer.client.post(VIN_PATH, &[("x-agent-proof", &proof)], &json!({"vin": VIN})).await.status, 402);
        let seen = counted.database.take_seen();
        assert_eq!(operations(&seen), ["PutItem", "UpdateItem", "GetItem"]);
        assert_eq!(seen.iter().map(|seen| seen.write_units).sum::<f64>(), 2.0);
    });
}

#[test]
fn a_queued_call_makes_two_reads_and_one_transaction_before_queueing() {
    run(async {
        let counted = counted().await;
        let payer = counted.known_payer().await;
        let body = json!({"url": format!("{}/plain", counted.stack.site_url)});
        let payment = header(&bare(&payer.authorize(2_000)));
        let accepted = payer.client.post(READ_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(accepted.status, 202);
        let id = accepted.json()["request_id"].as_str().unwrap().to_owned();
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        let seen = counted.database.take_seen();
        assert_eq!(
            operations(&seen)[..3],
            ["GetItem", "GetItem", "TransactWriteItems"],
            "the account and, at once with it, what is left of its rate limit; and the claim"
        );
        let claim = &seen[2];
        assert!(
            claim.write_units <= 13.0,
            "claim, job and its place in its index, receipt, day, rules, rate: {claim:?}"
        );
        let writes: f64 = seen.iter().map(|seen| seen.write_units).sum();
        let reads: f64 = seen.iter().map(|seen| seen.read_units).sum();
        assert!(writes <= 30.0, "{writes} write units: {seen:?}");
        assert!(reads <= 5.0, "{reads} read units: {seen:?}");

        // A poll writes the proof's nonce and the rate limit, and makes one eventually consistent read.
        assert_eq!(payer.get(&format!("/v1/requests/{id}")).await.json()["status"], "completed");
        let mut seen = counted.database.take_seen();
        seen.sort_by(|left, right| left.operation.cmp(&right.operation));
        assert_eq!(operations(&seen), ["GetItem", "PutItem", "UpdateItem"]);
        assert_eq!(
            (seen[0].read_units, seen[1].write_units, seen[2].write_units),
            (0.5, 1.0, 1.0),
            "half a unit is the mark of eventual consistency"
        );
    });
}

#[test]
fn a_direct_call_and_its_replay_stay_within_their_units() {
    run(async {
        let counted = counted().await;
        let payer = counted.known_payer().await;
        let payment = header(&bare(&payer.authorize(5_000)));
        let body = json!({"vin": VIN});
        assert_eq!(payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await.status, 200);
        let seen = counted.database.take_seen();
        let writes: f64 = seen.iter().map(|seen| seen.write_units).sum();
        assert_eq!(operations(&seen)[..3], ["GetItem", "GetItem", "TransactWriteItems"]);
        assert!(writes <= 27.0, "{writes} write units: {seen:?}");

        assert_eq!(payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await.status, 200);
        let seen = counted.database.take_seen();
        let writes: f64 = seen.iter().map(|seen| seen.write_units).sum();
        assert_eq!(writes, 1.0, "a repeat asked the chain, and that is counted: {seen:?}");
        assert!(seen.len() <= 3, "the claim and its job: {seen:?}");
    });
}

/// A price is two reads (soul and service). A whole execution by the seller's worker, from the paid request to the end
/// of the job, has an upper bound, and writes no counter that other calls of the soul write too.
#[test]
fn a_soul_execution_stays_within_its_write_units() {
    run(async {
        let counted = counted().await;
        let shop = Shop::open(&counted.stack, "counted-soul").await;
        let payer = counted.known_payer().await;
        let path = "/v1/soul/counted-soul/services/summary/execute";
        let body = json!({"input": {"text": "x"}});
        let unpaid = payer.client.post(path, &[], &body).await;
        assert_eq!(unpaid.status, 402);
        let seen = counted.database.take_seen();
        assert_eq!(operations(&seen), ["GetItem", "GetItem"]);
        assert_eq!(seen.iter().map(|seen| seen.write_units).sum::<f64>(), 0.0);

        let paid = payer.client.post(path, &[("payment-signature", &payer.pay(&unpaid))], &body).await;
        assert_eq!(paid.status, 202, "{}", paid.text);
        let job = paid.json()["soul_job_id"].as_str().unwrap().to_owned();
        let claim = shop.claim(&job).await;
        assert_eq!(claim.status, 200);
        let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "y"})).await;
        assert_eq!(done.status, 200, "{}", done.text);
        let seen = counted.database.take_seen();
        let shared: Vec<&Seen> = seen.iter().filter(|seen| seen.write_units > 20.0).collect();
        let writes: f64 = seen.iter().map(|seen| seen.write_units).sum();
        println!("an execution by a worker: {} requests, {writes} write units", seen.len());
        assert!(shared.is_empty(), "no write is larger than the claim: {shared:?}");
        // 36 were counted. A claim before the job was handed over costs more.
        assert!(writes <= 40.0, "{writes} write units: {seen:?}");
    });
}

/// A token's call: reads of the token, its rights and its credits, then one transaction; and a second one that ends the
/// job and its receipt.
#[test]
fn a_call_paid_with_credits_makes_two_transactions() {
    run(async {
        let counted = counted().await;
        let payer = Payer::new(&counted.stack).await;
        payer.give_credits(&counted.stack, 20_000).await;
        let token = payer.token(&counted.stack).await;
        counted.database.take_seen();
        let call = || payer.clone().call(VIN_PATH, vec![("authorization", token.clone())], json!({"vin": VIN}));
        assert_eq!(call().await.status, 200);
        let seen = counted.database.take_seen();
        assert_eq!(
            operations(&seen),
            ["GetItem", "GetItem", "GetItem", "TransactWriteItems", "GetItem", "TransactWriteItems"],
            "the token; the account and its rate, at once; the claim; the receipt, and its end"
        );
        let writes: f64 = seen.iter().map(|seen| seen.write_units).sum();
        assert!(writes <= 22.0, "{writes} write units: {seen:?}");
    });
}

/// The operator's own services cost what our tools do. A service that may be asked once only has its row more, and limits their
/// counters.
#[test]
fn a_call_of_an_own_service_costs_what_a_direct_call_does() {
    run(async {
        let service = crate::own::Service::start().await;
        let plain = service.tool("plain", json!({}));
        let careful = service.tool("careful", json!({"method": "POST", "calls_per_day": 100, "at_once": 5}));
        let counted = counted_with(|options| crate::own::sold(options, &[plain, careful])).await;
        let payer = Payer::new(&counted.stack).await;
        payer.give_credits(&counted.stack, 100_000).await;
        let token = payer.token(&counted.stack).await;
        let operations_of = async |path: &str, body: serde_json::Value| {
            counted.database.take_seen();
            let answer = payer.client.post(path, &[("authorization", &token)], &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            counted.database.take_seen()
        };
        let lookup = operations_of(VIN_PATH, json!({"vin": VIN})).await;
        let city = json!({"city": "Lyon"});
        let own = operations_of("/v1/tools/own/plain", city.clone()).await;
        assert_eq!(operations(&own), operations(&lookup));
        assert!(writes(&own) <= 22.0, "{own:?}");
        let careful = operations_of("/v1/tools/own/careful", city).await;
        let (requests, units) = (careful.len() - own.len(), writes(&careful) - writes(&own));
        // A read of the day's count before the price; then the place, the count, the row, and the place again.
        assert!(requests <= 5 && units <= 5.0, "{requests} requests, {units} units: {careful:?}");
    });
}

/// The day's caps are a condition of the claim's own write, so nothing is read for them before it. Warnings to the
/// owner are checked while the work runs.
#[test]
fn a_budget_adds_no_read_before_the_claim() {
    run(async {
        let counted = counted().await;
        let payer = Payer::new(&counted.stack).await;
        payer.give_credits(&counted.stack, 20_000).await;
        payer.change("PUT", "/v1/agents/me/budgets", &json!({"daily": 1, "per_transaction": 0.01})).await;
        let token = payer.token(&counted.stack).await;
        counted.database.take_seen();
        assert_eq!(payer.client.post(VIN_PATH, &[("authorization", &token)], &json!({"vin": VIN})).await.status, 200);
        let seen = counted.database.take_seen();
        assert_eq!(operations(&seen)[..4], ["GetItem", "GetItem", "GetItem", "TransactWriteItems"], "{seen:?}");
        assert_eq!(seen.len(), 7, "and the day, once: {seen:?}");
    });
}

/// Ten requests for each recipient in this deployment: the owner's freezes, whether mail to it is suppressed, the
/// submission's begin and end, whose the address is, that agent's count of the day, the mail (looked for and stored), its
/// webhooks, its notification. Eight write units: two for the recipient's row, which is made in a transaction, two for the
/// notification, one for each other write.
#[test]
fn a_mail_costs_the_same_for_each_recipient() {
    run(async {
        let counted = counted().await;
        let mailer = counted.mailer().await;
        counted.mail(&mailer, 1).await;
        let (quote, one) = counted.mail(&mailer, 1).await;
        let (quote_of_fifty, fifty) = counted.mail(&mailer, 50).await;
        assert_within(&[
            ("a quote", quote.units(), MOST_FOR_QUOTE),
            ("a quote for 50", quote_of_fifty.units(), MOST_FOR_QUOTE),
            ("a mail to one", one.units(), MOST_FOR_MAIL),
            // Besides: the job's item is larger, and its progress is stored every three seconds.
            ("each further recipient", fifty.of_each(50, &one), MOST_FOR_RECIPIENT),
        ]);
    });
}

/// Each recipient in this deployment: whose the number is (when it is quoted, when the job begins, before the text and where it
/// arrives), the owner's freezes, whether it has opted out, the last text to it, the submission's begin and end, that agent's
/// last text to the sender and its count of the day, the text (looked for, and stored in a transaction of two), its webhooks,
/// its notification.
#[test]
fn a_text_costs_the_same_for_each_recipient() {
    run(async {
        let counted = counted().await;
        let sender = counted.mailer().await;
        counted.number_of(sender.payer.agent()).await;
        counted.text(&sender, 1).await;
        let one = counted.text(&sender, 1).await;
        let hundred = counted.text(&sender, 100).await;
        assert_within(&[
            ("a text to one", one.units(), MOST_FOR_TEXT),
            ("each further recipient", hundred.of_each(100, &one), MOST_FOR_TEXTED),
        ]);
    });
}

/// Each step is recorded in one transaction of two items. Besides: progress, stored every three seconds, and the looks of who
/// waits for the end.
#[test]
fn a_step_in_a_browser_makes_one_transaction() {
    run(async {
        let Some(browser) = chromium().await else { return };
        let (shop, _) = shop().await;
        let counted =
            counted_with(|options| options.with("BROWSER_URL", browser.url.as_str()).with("LOCAL_FETCH_ALLOW", &shop))
                .await;
        let buyer = counted.mailer().await;
        counted.task(&buyer, &shop, 3).await;
        let short = counted.task(&buyer, &shop, 3).await;
        let long = counted.task(&buyer, &shop, 23).await;
        let each = |all: f64, one: f64| (all - one) / 20.0;
        let (all, one) = (long.units(), short.units());
        let step = Units {
            requests: each(all.requests, one.requests),
            reads: each(all.reads, one.reads),
            writes: each(all.writes, one.writes),
            messages: each(all.messages, one.messages),
        };
        assert_within(&[("a task", one, MOST_FOR_TASK), ("each further step", step, MOST_FOR_STEP)]);
    });
}

/// A call of a goal: its claim with the purse and the task, its run and end, the goal that looks what ended.
#[test]
fn a_call_of_a_goal_costs_little_more_than_a_call() {
    run(async {
        let counted = counted().await;
        let buyer = counted.mailer().await;
        buyer.payer.give_credits(&counted.stack, 20_000_000).await;
        counted.goal(&buyer, &[VIN]).await;
        let one = counted.goal(&buyer, &[VIN]).await.units();
        let all = counted.goal(&buyer, &[VIN, "1M8GDM9AXKP042788", "5GZCZ43D13S812715"]).await.units();
        let each = |all: f64, one: f64| (all - one) / 2.0;
        let call = Units {
            requests: each(all.requests, one.requests),
            reads: each(all.reads, one.reads),
            writes: each(all.writes, one.writes),
            messages: each(all.messages, one.messages),
        };
        assert_within(&[
            ("a goal with one call", one, MOST_FOR_GOAL),
            ("each further call", call, MOST_FOR_GOALS_CALL),
        ]);
    });
}

/// Of the account and of the member who is written to: messages, conversations and invitations make no action and no list dearer.
#[test]
fn an_action_at_the_network_costs_the_same_whatever_its_account_has() {
    run(async {
        let counted = counted_with(|options| options.with("NETWORK_PROVIDERS", "local")).await;
        let [(ann, of_ann, _), (bob, of_bob, bob_id)] = friends(&counted.stack).await;
        let db = &counted.stack.app.db;
        let accounts = [&of_ann, &of_bob].map(|id| Uuid::parse_str(id).expect("an account"));
        let post = bob.post("local/posts", &json!({"text": "The lamp turns."})).await.json();
        let call = ("authorization", ann.token.as_str());
        let mut direct = Cost::default();
        for _ in 0..2 {
            counted.cost();
            let answer = ann.payer.client.post(VIN_PATH, &[call], &json!({"vin": VIN})).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            direct = counted.until_quiet().await;
        }
        // The first round makes the rows of the day.
        let mut rounds: Vec<Vec<(&str, Cost)>> = Vec::new();
        for (round, count) in [(0_u8, 0_u8), (1, 5), (2, 60)] {
            for account in accounts {
                counted.fill(account, count).await;
            }
            let stranger = AgentId::from_bytes([200 + round; 16]);
            let stranger = members::join(db, stranger, "Eve", "One of many", counted.stack.app.clock.now()).await;
            let stranger = stranger.expect("a database").id;
            let mut costs = Vec::new();
            for (path, body) in [
                ("message", json!({"profile": bob_id, "text": "Shall we talk on Thursday?"})),
                ("invite", json!({"profile": stranger, "note": "Hello"})),
                ("profile-view", json!({"identifier": bob_id})),
                ("react", json!({"post_id": post["post_id"]})),
            ] {
                let mut body = body;
                body["account_id"] = json!(of_ann);
                costs.push((path, counted.acts(&ann, path, &body, &format!("{path}-{round}")).await));
            }
            for list in ["messages", "conversations", "invitations"] {
                costs.push((list, counted.looks(&ann, &format!("accounts/{of_ann}/{list}?limit=2")).await));
            }
            rounds.push(costs);
        }
        let mut found = Vec::new();
        for ((name, few), (_, many)) in rounds[1].iter().zip(&rounds[2]) {
            println!("{ROOT}, {name}: {:?}, {}", many.units(), listed(&many.seen));
            found.push((*name, many.units().less(&few.units()), MOST_GROWTH));
            match *name {
                "messages" | "conversations" | "invitations" => {
                    found.push((*name, many.units(), MOST_FOR_NETWORK_PAGE));
                }
                _ => found.push((*name, many.units().less(&direct.units()), MOST_MORE_FOR_ACTION)),
            }
        }
        assert_within(&found);
    });
}

#[test]
fn a_sync_costs_the_same_for_each_message() {
    run(async {
        let counted = counted_with(|options| options.with("NETWORK_PROVIDERS", "local")).await;
        let [(ann, of_ann, ann_id), (_, _, bob_id)] = friends(&counted.stack).await;
        let ann = (&ann, of_ann.as_str(), ann_id.as_str());
        counted.sync(ann, &bob_id, 1).await;
        let one = counted.sync(ann, &bob_id, 1).await;
        let many = counted.sync(ann, &bob_id, 61).await;
        println!("a sync with one message: {}", listed(&one.seen));
        assert_within(&[
            ("a sync with one new message", one.units(), MOST_FOR_SYNC),
            ("each further message", many.of_each(61, &one), MOST_FOR_SYNCED),
        ]);
    });
}

#[test]
fn a_received_mail_makes_three_reads_and_four_writes() {
    run(async {
        let counted = counted().await;
        let agent = AgentId::from_bytes(base::digest::random());
        let to = counted.address_of(agent).await;
        counted.received(&to, "first").await;
        let cost = counted.received(&to, "second").await;
        assert_eq!(
            operations(&cost.seen),
            ["GetItem", "GetItem", "UpdateItem", "UpdateItem", "PutItem", "Query", "UpdateItem"],
            "whose address; the mail, looked for; the day's counts of its domain and of all; the mail, stored; webhooks; the notification"
        );
        assert_within(&[("a received mail", cost.units(), MOST_FOR_RECEIVED)]);
    });
}

#[test]
fn a_received_text_makes_four_reads_and_three_writes() {
    run(async {
        let counted = counted().await;
        let to = counted.number_of(AgentId::from_bytes(base::digest::random())).await;
        counted.received_text(&to, "first").await;
        let cost = counted.received_text(&to, "second").await;
        assert_eq!(
            operations(&cost.seen),
            ["GetItem", "GetItem", "UpdateItem", "GetItem", "TransactWriteItems", "Query", "UpdateItem"],
            "whose number; the text, looked for; the day's count; the last text to the sender; the text, stored; webhooks; the \
             notification"
        );
        assert_within(&[("a received text", cost.units(), MOST_FOR_RECEIVED_TEXT)]);
    });
}

/// The callee pays for these. A turn: the caller's token and rate limit, the call, a freeze of
/// the callee, its turn taken and answered, both turns.
#[test]
fn a_turn_of_a_call_costs_the_same() {
    run(async {
        let counted = counted().await;
        let caller = counted.mailer().await;
        counted.number_of(caller.payer.agent()).await;
        let to = counted.answering(PROMPT).await;
        counted.inbound_call(&caller, &to, 1).await;
        let one = counted.inbound_call(&caller, &to, 1).await;
        let six = counted.inbound_call(&caller, &to, 6).await;
        // Settings are written when it rings, and only read in a turn.
        let wordy = counted.answering(&format!("{PROMPT}{}", " ".repeat(MAX_PROMPT - PROMPT.len()))).await;
        let one_wordy = counted.inbound_call(&caller, &wordy, 1).await;
        let six_wordy = counted.inbound_call(&caller, &wordy, 6).await;
        let outbound = counted.outbound_call(&caller, &to).await;
        for (name, cost) in [("one turn", &one), ("six turns", &six), ("outbound", &outbound)] {
            println!("{name}: {}", listed(&cost.seen));
        }
        assert_within(&[
            ("an inbound call with one turn", one.units(), MOST_FOR_INBOUND_CALL),
            ("each further turn", six.of_each(6, &one), MOST_FOR_TURN),
            ("each further turn with the longest prompt", six_wordy.of_each(6, &one_wordy), MOST_FOR_WORDY_TURN),
            ("an outbound call, both sides", outbound.units(), MOST_FOR_OUTBOUND_CALL),
        ]);
    });
}

/// The cost of a call does not grow with the content of the tables.
#[test]
fn the_cost_of_a_call_does_not_grow_with_history() {
    run(async {
        let counted = counted().await;
        let payer = counted.known_payer().await;
        let mut first: Option<(usize, f64)> = None;
        for call in 0..100 {
            counted.database.take_seen();
            let answer = payer
                .client
                .post(VIN_PATH, &[("x-payment", &header(&bare(&payer.authorize(5_000))))], &json!({"vin": VIN}))
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let seen = counted.database.take_seen();
            let cost = (seen.len(), seen.iter().map(|seen| seen.write_units).sum::<f64>());
            if call == 1 {
                first = Some(cost);
            }
            if call == 99 {
                assert_eq!(
                    Some(cost),
                    first,
                    "the second call (the fee wallet's nonce is known by then) and the hundredth"
                );
            }
        }
    });
}

/// `make bench` prints these (`PRINT_COST=1`).
#[test]
fn print_what_calls_cost() {
    if std::env::var_os("PRINT_COST").is_none() {
        return;
    }
    run(async {
        let own = crate::own::Service::start().await.tool("weather", json!({}));
        let counted = counted_with(|options| crate::own::sold(options, &[own])).await;
        let payer = Payer::new(&counted.stack).await;
        let read = json!({"url": format!("{}/plain", counted.stack.site_url)});
        println!(
            "\n{:34} {:>9} {:>12} {:>12} {:>9} {:>18}",
            "DynamoDB, counted on the wire", "requests", "read units", "write units", "messages", "to most allowed"
        );
        for (name, path, body, price) in [
            ("direct call, paid", VIN_PATH, json!({"vin": VIN}), 5_000),
            ("queued call, paid, to its end", READ_PATH, read, 2_000),
        ] {
            for attempt in 0..2 {
                counted.cost();
                payer.client.post(path, &[("x-payment", &header(&bare(&payer.authorize(price))))], &body).await;
                tokio::time::sleep(std::time::Duration::from_millis(800)).await;
                // A process's first call also reads the fee wallet's account nonce.
                if attempt == 1 {
                    print_row(name, &counted.cost(), None);
                }
            }
        }
        payer.give_credits(&counted.stack, 20_000).await;
        let token = payer.token(&counted.stack).await;
        counted.cost();
        payer.client.post(VIN_PATH, &[("authorization", &token)], &json!({"vin": VIN})).await;
        print_row("direct call, from credits", &counted.cost(), None);
        payer.client.post("/v1/tools/own/weather", &[("authorization", &token)], &json!({"city": "Lyon"})).await;
        print_row("own service, from credits", &counted.cost(), None);
        let mailer = counted.mailer().await;
        counted.mail(&mailer, 1).await;
        let (quote, one) = counted.mail(&mailer, 1).await;
        let fifty = counted.mail(&mailer, 50).await.1;
        counted.received(&mailer.address, "first").await;
        let received = counted.received(&mailer.address, "second").await;
        print_row("quote of a mail, by token", &quote, Some(MOST_FOR_QUOTE));
        print_row("mail to one agent, from credits", &one, Some(MOST_FOR_MAIL));
        print_row("mail to 50 agents, from credits", &fifty, Some(MOST_FOR_MAIL.and_further(50, &MOST_FOR_RECIPIENT)));
        print_row("mail from outside, received", &received, Some(MOST_FOR_RECEIVED));
        let number = counted.number_of(mailer.payer.agent()).await;
        counted.text(&mailer, 1).await;
        let one = counted.text(&mailer, 1).await;
        let hundred = counted.text(&mailer, 100).await;
        counted.received_text(&number, "first").await;
        let received = counted.received_text(&number, "second").await;
        print_row("text to one agent, from credits", &one, Some(MOST_FOR_TEXT));
        print_row("text to 100 agents, from credits", &hundred, Some(MOST_FOR_TEXT.and_further(100, &MOST_FOR_TEXTED)));
        print_row("text from outside, received", &received, Some(MOST_FOR_RECEIVED_TEXT));
        let to = counted.answering(PROMPT).await;
        counted.inbound_call(&mailer, &to, 1).await;
        let inbound = counted.inbound_call(&mailer, &to, 1).await;
        let of_six = counted.inbound_call(&mailer, &to, 6).await;
        let outbound = counted.outbound_call(&mailer, &to).await;
        print_row("call to an agent, one turn", &inbound, Some(MOST_FOR_INBOUND_CALL));
        let most_for_six = MOST_FOR_INBOUND_CALL.and_further(6, &MOST_FOR_TURN);
        print_row("call to an agent, six turns", &of_six, Some(most_for_six));
        print_row("call bought, both sides", &outbound, Some(MOST_FOR_OUTBOUND_CALL));
    });
}

/// A row of the table. Where a test bounds the cost, with the ratios of requests and write units to the bound.
fn print_row(name: &str, Cost { seen, messages }: &Cost, most: Option<Units>) {
    let (requests, reads, writes) = (seen.len(), reads(seen), writes(seen));
    let ratios = |most: Units| format!("{:.2}, {:.2}", requests as f64 / most.requests, writes / most.writes);
    let ratios = most.map(ratios).unwrap_or_default();
    println!("{name:34} {requests:>9} {reads:>12.1} {writes:>12.1} {messages:>9} {ratios:>18}   {}", listed(seen));
}

/// Each request in its order, with its write units; many of them, by operation.
fn listed(seen: &[Seen]) -> String {
    let with_units = |name: &str, units: f64| if units == 0.0 { name.to_owned() } else { format!("{name} {units}") };
    let each: Vec<String> = if seen.len() <= 50 {
        seen.iter().map(|seen| with_units(&seen.operation, seen.write_units)).collect()
    } else {
        let mut by_operation: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
        for one in seen {
            let (count, units) = by_operation.entry(&one.operation).or_default();
            *count += 1;
            *units += one.write_units;
        }
        by_operation.iter().map(|(name, (count, units))| with_units(&format!("{count} {name}"), *units)).collect()
    };
    each.join(", ")
}
