//! Jobs that hold workers without paying: what they name does not answer, and their price is paid back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use base::ids::RequestId;
use futures_util::future::join_all;
use gate::jobs::job::{Job, Outcome, Settlement};
use gate::jobs::slots::{self, OF_BUYER};
use local::{Options, Stack};
use platform::store::queue::Message;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tools::spec::ToolSpec;
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};
use tools_email::send;
use tools_web::web_read;

use crate::souls_market::{Shop, buy};
use crate::souls_turns::{ended, job};
use crate::support::receiver::Receiver;
use crate::support::{Answer, Payer, READ_PATH, books, eventually, run, stack_with};

const QUOTE: &str = "/v1/tools/email/quote";
const SEND: &str = "/v1/tools/email/send";
/// micro-USDC
const READ: u64 = 2_000;
const MAIL: u64 = 5_000;

/// The catalog's web read, with time for a whole journey.
static PATIENT: ToolSpec = ToolSpec { deadline: Duration::from_secs(600), ..web_read::SPEC };
static RUNNERS: [&Runner; 2] = [&Runner { spec: &PATIENT, run: read }, &send::RUNNER];

/// How many reads of each page are waiting, and the most so far.
static WAITING: Mutex<BTreeMap<String, (usize, usize)>> = Mutex::new(BTreeMap::new());
/// Pages that no longer stall.
static ANSWERED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// A read that waits, until it ends or is broken off.
struct Wait(String);

impl Wait {
    fn at(page: &str) -> Wait {
        let mut waiting = WAITING.lock().expect("a lock");
        let (now, most) = waiting.entry(page.to_owned()).or_default();
        *now += 1;
        *most = (*most).max(*now);
        Wait(page.to_owned())
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        WAITING.lock().expect("a lock").entry(self.0.clone()).or_default().0 -= 1;
    }
}

/// How many reads of a page wait now, and how many did at most.
fn waiting(page: &str) -> (usize, usize) {
    WAITING.lock().expect("a lock").get(page).copied().unwrap_or_default()
}

/// Reads a page, which stalls until the test says otherwise. Then its host or a provider has failed.
fn read(_: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let page = task.text("url").rsplit('/').next().unwrap_or_default().to_owned();
        let wait = Wait::at(&page);
        while !ANSWERED.lock().expect("a lock").contains(&page) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(wait);
        let failed = |reason| Err(ToolError::unavailable(reason, "it failed"));
        match page.split('-').next() {
            Some("host") => failed(Unavailable::DestinationNotReachable),
            Some("provider") => failed(Unavailable::SourceUnavailable),
            _ => Ok(Output::new(json!({"read": true}), Source::embedded("test"))),
        }
    })
}

fn answer(page: &str) {
    ANSWERED.lock().expect("a lock").insert(page.to_owned());
}

async fn stack() -> Stack {
    stack_with(|options| Options { runners: Some(&RUNNERS), ..options.with("EMAIL_DOMAINS", "agents.test") }).await
}

fn id_of(accepted: &Answer) -> RequestId {
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    accepted.json()["request_id"].as_str().expect("an id").parse().expect("an id")
}

/// As many reads as a buyer may have at once, from its credits.
async fn reads(stack: &Stack, payer: &Payer, page: &str) -> Vec<RequestId> {
    payer.give_credits(stack, READ * u64::from(OF_BUYER)).await;
    let (token, body) = (payer.token(stack).await, json!({"url": format!("{}/{page}", stack.site_url)}));
    let headers = [("authorization", token.as_str())];
    let accepted = join_all((0..OF_BUYER).map(|_| payer.client.post(READ_PATH, &headers, &body))).await;
    accepted.iter().map(id_of).collect()
}

/// Sends a mail and pays it on chain.
async fn mail(payer: &Payer, to: &Payer, attachments: &[Value]) -> RequestId {
    let agent = payer.address().to_string();
    let mut body = json!({"to_address": mailbox(to).await, "subject": "Hello", "body": "How are you?"});
    let quote = payer.client.post(QUOTE, &[("x-agent-id", &agent)], &body).await;
    assert_eq!(quote.status, 200, "{}", quote.text);
    let quote = quote.json()["quote_id"].as_str().expect("a quote").to_owned();
    if !attachments.is_empty() {
        body["attachments"] = json!(attachments);
    }
    let unpaid = payer.client.post(SEND, &[("x-agent-id", &agent), ("x-quote-id", &quote)], &body).await;
    assert_eq!(unpaid.status, 402, "{}", unpaid.text);
    id_of(&payer.redeem(SEND, &unpaid, &body).await)
}

/// The address of an agent on the operator's domain.
async fn mailbox(payer: &Payer) -> String {
    let listed = payer.get("/v1/tools/email/domains").await;
    listed.json()["domains"][0]["default_from"].as_str().expect("an address").to_owned()
}

/// The ends of jobs that find a place sooner or later.
async fn all_ended(stack: &Stack, ids: &[RequestId]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for id in ids {
        let over = eventually("a job to have its turn", || async {
            let job = job(stack, *id).await;
            if job.outcome.is_none() {
                stack.queue.push(Message::Job { request_id: *id, trace: None }.to_json());
            }
            job.outcome.is_some().then_some(job)
        });
        jobs.push(over.await);
    }
    jobs
}

/// More reads than there are workers, of several buyers, none of which has more than it may have.
#[test]
fn stalling_hosts_leave_workers_for_payments_and_other_work() {
    const PAGE: &str = "host-stalls";
    run(async {
        let stack = stack().await;
        let places = usize::from(stack.config.host_places);
        let buyers = join_all((0..6).map(|_| Payer::with(&stack, 0))).await;
        let stalling = join_all(buyers.iter().map(|buyer| reads(&stack, buyer, PAGE))).await.concat();
        eventually("the reads that may wait long", || async { (waiting(PAGE).0 >= places / 2).then_some(()) }).await;

        let (ada, bob) = (Payer::new(&stack).await, Payer::new(&stack).await);
        let done = ended(&stack, mail(&ada, &bob, &[]).await).await;
        assert_eq!((done.outcome, done.settlement), (Some(Outcome::Completed), Settlement::Settled), "{done:?}");
        let still = join_all(stalling.iter().map(|id| job(&stack, *id))).await;
        assert!(still.iter().all(|job| job.outcome.is_none()), "nobody waited for a stalling read to end");

        // Those that may not wait long are broken off, and come again.
        eventually("the others to be put down", || async { (waiting(PAGE).0 <= places / 2).then_some(()) }).await;
        answer(PAGE);
        for job in all_ended(&stack, &stalling).await {
            assert_eq!(job.error.and_then(|error| error.reason).as_deref(), Some("destination_not_reachable"));
        }
        assert!(waiting(PAGE).1 <= places, "{:?}", waiting(PAGE));
        for buyer in &buyers {
            let credits = books::audit(&stack.app.db, buyer.agent()).await.credits.micro();
            assert_eq!(credits, READ * u64::from(OF_BUYER), "all was paid back");
        }
    });
}

/// Three rounds of as many reads as a buyer may have at once, all of which fail for this reason. How many of the fourth round
/// run at once then.
async fn at_once_after(stack: &Stack, reason: &str) -> usize {
    let (payer, all) = (Payer::with(stack, 0).await, usize::from(OF_BUYER));
    for round in 0..3 {
        let page = format!("{reason}-{round}");
        let ids = reads(stack, &payer, &page).await;
        eventually("all to run", || async { (waiting(&page).0 == all).then_some(()) }).await;
        answer(&page);
        all_ended(stack, &ids).await;
    }
    let page = format!("{reason}-last");
    let ids = reads(stack, &payer, &page).await;
    eventually("all to run or to be put down", || async {
        let jobs = join_all(ids.iter().map(|id| job(stack, *id))).await;
        (waiting(&page).0 + jobs.iter().filter(|job| job.put_down > 0).count() >= all).then_some(())
    })
    .await;
    answer(&page);
    all_ended(stack, &ids).await;
    let credits = books::audit(&stack.app.db, payer.agent()).await.credits.micro();
    assert_eq!(credits, 4 * READ * u64::from(OF_BUYER), "all was paid back");
    waiting(&page).1
}

#[test]
fn a_buyer_whose_hosts_failed_has_one_place() {
    run(async {
        let stack = stack().await;
        assert_eq!(at_once_after(&stack, "host").await, 1);
        assert_eq!(at_once_after(&stack, "provider").await, usize::from(OF_BUYER), "an outage is nobody's doing");
    });
}

/// The attachment's host needs longer than a run may wait, while as many as may wait long do.
#[test]
fn a_mail_that_was_broken_off_at_its_attachment_arrives_once() {
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    run(async {
        let router = Router::new().fallback(|| async {
            ASKED.fetch_add(1, Ordering::SeqCst);
            while !IS_OPEN.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            "the file"
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        let stack = stack_with(|options| {
            let options = options.with("EMAIL_DOMAINS", "agents.test").with("LOCAL_FETCH_ALLOW", &host);
            options.with("HOST_PLACES", "2")
        })
        .await;
        let (db, clock) = (&stack.app.db, &stack.app.clock);
        let slow = [slots::of_slow_hosts(stack.config.host_places)];
        let place = slots::take(db, &slow, "another".to_owned(), Duration::from_secs(600), clock.now()).await;
        let place = place.expect("a database").expect("a place");

        let (ada, bob) = (Payer::new(&stack).await, Payer::new(&stack).await);
        let file = json!({"filename": "a.txt", "url": format!("http://{host}/a.txt")});
        let id = mail(&ada, &bob, &[file]).await;
        let broken_off = eventually("the mail to be broken off", || async {
            Some(job(&stack, id).await).filter(|job| job.put_down > 0 && ASKED.load(Ordering::SeqCst) > 0)
        })
        .await;
        assert_eq!((broken_off.outcome, broken_off.settlement), (None, Settlement::Settled), "{broken_off:?}");

        IS_OPEN.store(true, Ordering::SeqCst);
        place.release(db, clock.now()).await;
        let done = all_ended(&stack, &[id]).await.remove(0);
        assert_eq!(done.outcome, Some(Outcome::Completed), "{done:?}");
        let inbox = bob.get("/v1/tools/inbox?limit=10").await.json();
        assert_eq!(inbox["count"], 1, "{inbox}");
        assert_eq!(books::audit(db, ada.agent()).await.credits.micro(), 0);
        assert_eq!(ada.balance(&stack).await, 1_000_000 - u128::from(MAIL), "charged once");
    });
}

/// A seller's endpoint is a host that somebody names, too. Its worker is reminded when a place is free.
#[test]
fn a_sellers_webhook_takes_a_place_too() {
    run(async {
        let receiver = Receiver::start().await;
        let stack =
            stack_with(|options| options.with("LOCAL_FETCH_ALLOW", receiver.allowed()).with("HOST_PLACES", "2")).await;
        let (db, clock) = (&stack.app.db, &stack.app.clock);
        let shop = Shop::with(&stack, "with-a-hook", json!({"webhook_url": receiver.url})).await;
        let mut places = Vec::new();
        for holder in ["one", "another"] {
            let hosts = [slots::of_hosts(stack.config.host_places)];
            let place = slots::take(db, &hosts, holder.to_owned(), Duration::from_secs(600), clock.now()).await;
            places.push(place.expect("a database").expect("a place"));
        }
        let bought = buy(&shop, &Payer::new(&stack).await, "x").await;
        let id = RequestId::of_soul_job(&bought).expect("an id");
        eventually("the job to be handed over", || async {
            (job(&stack, id).await.handed_until.is_some() && stack.queue.is_idle()).then_some(())
        })
        .await;
        assert_eq!(receiver.count(), 0, "all places are taken");
        for place in places {
            place.release(db, clock.now()).await;
        }
        stack.queue.push(Message::Job { request_id: id, trace: None }.to_json());
        eventually("the webhook", || async { (receiver.count() == 1).then_some(()) }).await;
    });
}
