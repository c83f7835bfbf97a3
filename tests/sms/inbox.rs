//! Texts that agents receive: STOP, START and HELP, and the inbox with its limits.

use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::ids::AgentId;
use futures_util::future::join_all;
use local::{Options, Stack};
use platform::store::{Key, Write};
use serde_json::{Value, json};
use tools_sms::inbox::{self, Text};
use tools_sms::number::Number;
use tools_sms::opt_out;
use tools_sms::receive::{self, Incoming, Taken};
use tools_sms::velocity::MAX_IN_A_DAY;

use super::{INBOX, SEND, number_for, text_to};
use crate::support::{Payer, run, stack, stack_with};

/// A phone outside the deployment.
const PHONE: &str = "+4915112345678";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A wallet and its number.
struct Agent {
    payer: Payer,
    number: Number,
}

impl Agent {
    async fn new(stack: &Stack) -> Agent {
        // Enough for the sends of a journey, even if each is quoted with a number.
        let payer = Payer::with(stack, 100_000_000).await;
        let number = number_for(&stack.worker.toolbox, payer.agent()).await;
        Agent { payer, number }
    }

    /// Pays for a text to another agent, and waits for the job's end.
    async fn text(&self, to: &Agent, message: &str) -> Value {
        let body = text_to(json!(to.number), message);
        let accepted = self.payer.redeem(SEND, &self.payer.ask(SEND, &body).await, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        self.payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await
    }

    /// A text arrives.
    async fn takes(&self, stack: &Stack, from: &str, body: &str, event_id: &str, at: Timestamp) -> Taken {
        self.takes_of(stack, None, from, body, event_id, at).await
    }

    async fn takes_of(
        &self,
        stack: &Stack,
        local_sender: Option<AgentId>,
        from: &str,
        body: &str,
        event_id: &str,
        at: Timestamp,
    ) -> Taken {
        let incoming = Incoming { from, to: &self.number, body, num_media: 0, at, event_id, local_sender };
        receive::receive(&stack.worker.toolbox, &incoming).await.expect("a database")
    }

    /// What its inbox shows.
    async fn page(&self, query: &str) -> Value {
        let answer = self.payer.get(&format!("{INBOX}?{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let page = answer.json();
        assert_eq!(page["count"], page["messages"].as_array().map_or(0, Vec::len), "{page}");
        assert_eq!(page["has_more"].as_bool(), Some(page.get("next_cursor").is_some()), "{page}");
        page
    }

    /// What is stored for it, newest first.
    async fn stored(&self, stack: &Stack) -> Vec<Text> {
        inbox::inbox(&stack.app.db, self.payer.agent(), None, None, None, 200).await.expect("a database").0
    }
}

fn bodies(page: &Value) -> Vec<&str> {
    let messages = page["messages"].as_array().expect("a list").iter();
    messages.map(|message| message["body"].as_str().expect("a text")).collect()
}

/// A stack whose time stands still, so that its day does not end.
async fn stack_at(clock: &Clock) -> Stack {
    stack_with(|options| Options { clock: clock.clone(), ..options }).await
}

#[test]
fn stop_is_absolute_until_start() {
    run(async {
        let stack = stack().await;
        let (ada, bob, eve) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        for word in ["Stop", "arrêt."] {
            assert_eq!(bob.text(&ada, word).await["result"]["status"], "all_delivered", "{word}");
            let page = ada.page("limit=1").await;
            let said = &page["messages"][0];
            assert_eq!((&said["body"], &said["keyword"]), (&json!(word), &json!("stop")), "{said}");

            let job = ada.text(&bob, "Only today!").await;
            assert_eq!((&job["status"], &job["result"]["status"]), (&json!("completed"), &json!("failed")), "{job}");
            assert_eq!(job["result"]["details"][0]["status"], "opted_out", "{job}");
            // It holds for this sender's number only.
            assert_eq!(eve.text(&bob, "Hello").await["result"]["status"], "all_delivered", "{word}");

            assert_eq!(bob.text(&ada, "START").await["result"]["status"], "all_delivered", "{word}");
            assert_eq!(ada.text(&bob, "Welcome back").await["result"]["status"], "all_delivered", "{word}");
        }
        let page = bob.page("").await;
        assert!(!bodies(&page).contains(&"Only today!"), "{page}");
        assert_eq!(bodies(&page).iter().filter(|body| **body == "Welcome back").count(), 2, "{page}");
    });
}

#[test]
fn words_of_agents_are_answered_once_a_day_and_answers_never() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_at(&clock).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        // The last one is the first one, delivered again.
        for (event, word) in
            [("1", "HELP"), ("2", "Info?"), ("3", "stop"), ("4", "Cancel"), ("5", "Unstop"), ("1", "HELP")]
        {
            let (from, sender) = (bob.number.as_str(), Some(bob.payer.agent()));
            assert_eq!(ada.takes_of(&stack, sender, from, word, event, clock.now()).await, Taken::Stored);
        }
        let texts = ada.stored(&stack).await;
        assert_eq!((texts.len(), texts.iter().filter(|text| text.automatic).count()), (5, 0), "{texts:?}");
        let mut answers = bob.stored(&stack).await;
        answers.sort_by(|one, other| one.body.cmp(&other.body));
        let (service, own) = (&stack.config.service_name, ada.number.as_str());
        let expected = [
            format!("{service}: texts from {own} are sent by a software agent. Reply STOP to end them."),
            format!("{service}: you get no more texts from {own}. Reply START to get them again."),
            format!("{service}: you get texts from {own} again. Reply STOP to end them."),
        ];
        assert_eq!(answers.iter().map(|answer| &answer.body).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        for answer in &answers {
            assert!(answer.automatic && answer.keyword.is_none(), "{answer:?}");
            assert_eq!((answer.from.as_str(), &answer.to), (own, &bob.number));
        }

        clock.advance(DAY);
        ada.takes_of(&stack, Some(bob.payer.agent()), bob.number.as_str(), "HELP", "6", clock.now()).await;
        assert_eq!(bob.stored(&stack).await.len(), 4, "another day");
    });
}

#[test]
fn the_latest_word_counts_in_whatever_order_words_arrive() {
    run(async {
        let stack = stack().await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let (db, phone) = (&stack.app.db, Number::parse(PHONE).expect("a number"));
        let early = stack.app.clock.now();
        let late = early.plus(Duration::from_millis(1));
        let is_out = async |own: &Agent| opt_out::is_out(db, &own.number, &phone).await.expect("a database");

        ada.takes(&stack, PHONE, "STOP", "stop", early).await;
        assert_eq!((is_out(&ada).await, is_out(&bob).await), (true, false), "it holds for one number");
        ada.takes(&stack, PHONE, "please START", "a sentence", late).await;
        assert!(is_out(&ada).await);
        ada.takes(&stack, PHONE, "START", "start", late).await;
        assert!(!is_out(&ada).await);
        ada.takes(&stack, PHONE, "STOP", "stop", early).await;
        assert!(!is_out(&ada).await, "the first word again, late");
        // A name cannot be texted, so nothing is recorded for it.
        assert_eq!(ada.takes(&stack, "My Bank", "STOP", "name", late).await, Taken::Stored);
        assert_eq!(ada.stored(&stack).await.len(), 4, "each once, and no answers: the network's provider answers");
    });
}

#[test]
fn emoji_and_joined_scripts_arrive_and_full_width_words_count() {
    run(async {
        let stack = stack().await;
        let (ada, now) = (Agent::new(&stack).await, stack.app.clock.now());
        let text = "👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم";
        ada.takes(&stack, PHONE, &format!("{text}\u{202e}\u{200b}\u{1b}"), "joined", now).await;
        assert_eq!(bodies(&ada.page("").await), [text]);
        ada.takes(&stack, PHONE, "ＳＴＯＰ。", "stop", now.plus(Duration::from_millis(1))).await;
        let phone = Number::parse(PHONE).expect("a number");
        assert!(opt_out::is_out(&stack.app.db, &ada.number, &phone).await.expect("a database"));
    });
}

#[test]
fn the_inbox_is_paged_while_texts_arrive() {
    run(async {
        let stack = stack().await;
        let (ada, eve) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let first = stack.app.clock.now().minus(Duration::from_secs(60));
        let at = |secs| first.plus(Duration::from_secs(secs));
        for (secs, from, body) in
            [(0, PHONE, "one"), (1, "24273", "two"), (2, "My Bank", "three"), (3, PHONE, "four"), (4, PHONE, "five")]
        {
            assert_eq!(ada.takes(&stack, from, body, body, at(secs)).await, Taken::Stored);
        }
        ada.takes(&stack, PHONE, "gone", "gone", first.minus(inbox::KEPT)).await;

        let page = ada.page("limit=2").await;
        assert_eq!(bodies(&page), ["five", "four"]);
        ada.takes(&stack, PHONE, "six", "six", at(5)).await;
        let page = ada.page(&format!("limit=2&cursor={}", page["next_cursor"].as_str().expect("a cursor"))).await;
        assert_eq!(bodies(&page), ["three", "two"]);
        let page = ada.page(&format!("limit=2&cursor={}", page["next_cursor"].as_str().expect("a cursor"))).await;
        assert_eq!((bodies(&page), &page["has_more"]), (vec!["one"], &json!(false)));
        let all = ada.page("").await;
        assert_eq!(bodies(&all), ["six", "five", "four", "three", "two", "one"]);

        // One sender, in each spelling of its number.
        for from in ["%2B4915112345678", "4915112345678", "+4915112345678"] {
            assert_eq!(bodies(&ada.page(&format!("from={from}")).await), ["six", "five", "four", "one"], "{from}");
        }
        let page = ada.page("from=4915112345678&limit=2").await;
        let cursor = page["next_cursor"].as_str().expect("a cursor");
        assert_eq!(bodies(&ada.page(&format!("from=4915112345678&limit=2&cursor={cursor}")).await), ["four", "one"]);
        assert_eq!(bodies(&ada.page("from=24273").await), ["two"]);
        assert_eq!(bodies(&ada.page("from=My%20Bank").await), ["three"]);
        assert!(bodies(&ada.page("from=%2B12025550100").await).is_empty());
        let since = all["messages"][2]["received_at"].as_str().expect("a time");
        assert_eq!(bodies(&ada.page(&format!("since={since}")).await), ["six", "five", "four"]);

        let text = &all["messages"][0];
        assert_eq!((&text["from"], &text["to"]), (&json!(PHONE), &json!(ada.number)));
        assert_eq!((&text["num_media"], &text["media_urls"]), (&json!(0), &json!([])));
        assert_eq!(text["thread_id"], all["messages"][5]["thread_id"], "one thread for each sender");
        assert_ne!(text["thread_id"], all["messages"][3]["thread_id"]);
        let url = format!("{INBOX}/{}", text["id"].as_str().expect("an id"));
        assert_eq!(ada.payer.get(&url).await.json(), *text);

        // Somebody else's text does not exist, nor does an expired one.
        let not_found = (404, "message_not_found".to_owned());
        assert_eq!(eve.payer.get(&url).await.error(), not_found);
        let stored = ada.stored(&stack).await;
        let gone = stored.iter().find(|text| text.body == "gone").expect("not deleted yet");
        for id in [gone.id.to_string(), "x".to_owned()] {
            assert_eq!(ada.payer.get(&format!("{INBOX}/{id}")).await.error(), not_found, "{id}");
        }
        let long = format!("from={}", "x".repeat(33));
        for query in ["limit=0", "limit=201", "since=yesterday", long.as_str()] {
            let answer = ada.payer.get(&format!("{INBOX}?{query}")).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{query}");
        }
        assert_eq!(ada.payer.get(&format!("{INBOX}?cursor=x")).await.error(), (400, "invalid_cursor".to_owned()));
        assert_eq!(ada.payer.client.get(INBOX, &[]).await.error(), (401, "proof_required".to_owned()));
    });
}

#[test]
fn an_inbox_takes_so_many_texts_a_day_and_every_stop() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_at(&clock).await;
        let (ada, db) = (Agent::new(&stack).await, &stack.app.db);
        // All but one have arrived today.
        let day = clock.now().secs().div_euclid(24 * 3600).to_string();
        let counter = Key::new(format!("SMS#in:{}", ada.payer.agent()), day);
        let count = Write::update(&db.tables.agents, counter, "SET #used = :used").bind("used", MAX_IN_A_DAY - 1);
        db.write(count.expect("a write")).await.expect("a counter");

        let events = ["a", "b", "c", "d"];
        let taken = join_all(events.map(|event| ada.takes(&stack, PHONE, "Hello", event, clock.now()))).await;
        assert_eq!(taken.iter().filter(|taken| **taken == Taken::Stored).count(), 1, "{taken:?}");
        let known = taken.iter().position(|taken| *taken == Taken::Stored).expect("a text");
        let again = ada.takes(&stack, PHONE, "Hello", events[known], clock.now()).await;
        assert_eq!(again, Taken::Stored, "counted already");
        assert_eq!(ada.stored(&stack).await.len(), 1);

        assert_eq!(ada.takes(&stack, PHONE, "STOP", "stop", clock.now()).await, Taken::Full);
        let phone = Number::parse(PHONE).expect("a number");
        assert!(opt_out::is_out(db, &ada.number, &phone).await.expect("a database"), "a STOP holds all the same");
        clock.advance(DAY);
        assert_eq!(ada.takes(&stack, PHONE, "Hello", "tomorrow", clock.now()).await, Taken::Stored);

        let nobodys = Incoming {
            from: PHONE,
            to: &Number::parse("+4915112345679").expect("a number"),
            body: "Hello",
            num_media: 0,
            at: clock.now(),
            event_id: "nobody",
            local_sender: None,
        };
        let taken = receive::receive(&stack.worker.toolbox, &nobodys).await.expect("a database");
        assert_eq!(taken, Taken::UnknownNumber);
    });
}
