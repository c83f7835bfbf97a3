//! Audits an agent's books: what must be true of the ledger at every moment, and what once nothing is open.

use std::collections::BTreeMap;

use base::ids::{AgentId, ReceiptId, RequestId, TokenId};
use base::money::Usdc;
use gate::insights::view;
use gate::jobs::job::{Job, Outcome, Settlement};
use gate::jobs::store;
use ledger::account::{self, Account};
use ledger::day::{self, Day};
use ledger::purse::{self, Purse, PurseState};
use ledger::receipt::{self, Receipt};
use ledger::token_spend::{self, TokenSpend};
use ledger::{credit, hold};
use platform::store::Db;
use platform::store::db::Query;
use tools::spec::TOP_UP;

const MANY: usize = 10_000;

/// What the ledger says of an agent.
#[derive(PartialEq)]
struct Written {
    account: Account,
    entries: Vec<credit::Entry>,
    holds: Vec<hold::Hold>,
    receipts: Vec<Receipt>,
}

impl Written {
    async fn read(db: &Db, agent: AgentId) -> Written {
        let holds = Query::prefixed(&db.tables.ledger, &format!("AGENT#{agent}"), "HOLD#", MANY).unwrap().latest();
        Written {
            account: account::load(db, agent).await.unwrap(),
            entries: credit::entries(db, agent, MANY).await.unwrap(),
            holds: db.query(holds).await.unwrap(),
            receipts: receipts(db, agent).await,
        }
    }
}

/// Checks that entries, holds, jobs, receipts and counters of an agent agree, and returns its account. Work may go on
/// meanwhile: what changed while it was read is read again.
pub async fn audit(db: &Db, agent: AgentId) -> Account {
    let mut written = Written::read(db, agent).await;
    loop {
        let mut jobs = Vec::new();
        for receipt in &written.receipts {
            jobs.push(store::load_latest(db, receipt.job_id).await.unwrap().expect("a receipt has its job"));
        }
        let mut days = BTreeMap::new();
        let mut for_life = BTreeMap::new();
        for charge in jobs.iter().map(|job| &job.charge) {
            days.insert(charge.day.clone(), day::load(db, agent, &charge.day).await.unwrap());
            if let Some(token) = charge.token.filter(|_| charge.for_life) {
                for_life.insert(token, token_spend::load(db, agent, token).await.unwrap());
            }
        }
        let mut purses = BTreeMap::new();
        for job in jobs.iter().filter(|job| job.charge.funds) {
            if let Some(purse) = purse::load(db, agent, job.request_id).await.unwrap() {
                purses.insert(job.request_id, purse);
            }
        }
        let again = Written::read(db, agent).await;
        if again == written {
            check(&written, &jobs, &days, &for_life, &purses);
            return again.account;
        }
        written = again;
    }
}

fn check(
    written: &Written,
    jobs: &[Job],
    found: &BTreeMap<String, Day>,
    spends: &BTreeMap<TokenId, TokenSpend>,
    found_purses: &BTreeMap<RequestId, Purse>,
) {
    let Written { account, entries, holds, receipts } = written;
    let sum = |of: fn(&credit::Entry) -> i64| u64::try_from(entries.iter().map(of).sum::<i64>()).expect("not below 0");
    assert_eq!(sum(|entry| entry.credits), account.credits.micro(), "entries add up to the credits: {entries:?}");
    assert_eq!(sum(|entry| entry.reserved), account.reserved.micro(), "entries add up to what is held: {entries:?}");
    assert_eq!(sum(|entry| entry.card), account.card.micro(), "entries add up to what a card bought: {entries:?}");
    assert_eq!(sum(|entry| entry.debt), account.debt.micro(), "entries add up to what is owed: {entries:?}");
    let held: u64 = holds.iter().map(|hold| hold.credits.micro()).sum();
    assert_eq!(held, account.reserved.micro(), "holds add up to what is held");

    let mut days: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut tokens: BTreeMap<(TokenId, String), u64> = BTreeMap::new();
    let mut for_life: BTreeMap<TokenId, u64> = BTreeMap::new();
    let mut purses: BTreeMap<RequestId, (u64, u64)> = BTreeMap::new();
    for (receipt, job) in receipts.iter().zip(jobs) {
        if job.receipt_id != receipt.receipt_id {
            // The purchase was void and was made again with the same id.
            assert!(receipt.is_terminal());
            continue;
        }
        assert_eq!(receipt.amount, job.price);
        assert_eq!(receipt.is_terminal(), job.open.is_none(), "a receipt is final with its job: {receipt:?}");
        assert_eq!(receipt.seal.is_some(), receipt.is_terminal(), "final receipts are signed");
        if let Some(from) = job.charge.purse {
            // A goal's call: its money is in the purse.
            assert_eq!((from.amount, job.charge.counted, job.charge.credits), (job.price, Usdc::ZERO, Usdc::ZERO));
            assert_eq!(job.settlement, Settlement::Settled, "its goal has paid: {job:?}");
            assert!(of_cause(entries, receipt, credit::EntryKind::Refund) == 0, "nothing of it is in the account");
            let (open, spent) = purses.entry(from.goal).or_default();
            *open += if job.open.is_some() { job.price.micro() } else { 0 };
            *spent += if job.open.is_none() { job.cost().spent().micro() } else { 0 };
            continue;
        }
        let is_lost = job.settlement == Settlement::Refused || job.settlement == Settlement::Void;
        let counted = job.charge.counted.micro();
        let buys_credits = job.tool == TOP_UP.name;
        assert_eq!(counted, if buys_credits { 0 } else { job.price.micro() }, "every price counts: {job:?}");
        let owed = job.credited.is_some();
        // Failed work keeps what it used, up to what its buyer was told; completed work what its tool reports.
        let kept = match job.outcome {
            Some(Outcome::Failed) if owed => job.kept_if_failed().micro(),
            Some(Outcome::Completed) if owed => job.kept_if_completed().micro(),
            _ => 0,
        };
        if job.outcome == Some(Outcome::Completed) && job.settlement == Settlement::Settled && job.open.is_none() {
            assert_eq!(owed, job.charged.is_some(), "what was not used is paid back, and nothing else: {job:?}");
        }
        let counts = job.cost().spent().micro();
        assert_eq!(view::cost(receipt).spent().micro(), counts, "job and receipt agree on what was spent: {job:?}");
        if receipt.is_terminal() && !buys_credits {
            let went = gone(job, entries, is_lost);
            assert_eq!(went, i64::try_from(counts).unwrap(), "spent is what went and did not come back: {job:?}");
        }
        let (committed, in_flight) = days.entry(job.charge.day.clone()).or_default();
        *committed += counts;
        *in_flight += if job.open.is_some() { counted } else { 0 };
        if let Some(token) = job.charge.token {
            *tokens.entry((token, job.charge.day.clone())).or_default() += counts;
            if job.charge.for_life {
                *for_life.entry(token).or_default() += counts;
            }
        }
        let refunds: i64 = of_cause(entries, receipt, credit::EntryKind::Refund) + returns(entries, receipt);
        let credited = if owed { job.price.micro() - kept } else { 0 };
        assert_eq!(refunds, i64::try_from(credited).unwrap(), "paid back once, less what was used up: {job:?}");
        assert_eq!(job.credited.map(|amount| amount.micro()), owed.then_some(credited), "the job says so");
        assert_eq!(job.kept.unwrap_or_default().micro(), kept, "and what was kept");
        assert_eq!(receipt.kept, job.kept, "and so does its receipt");
        check_used(job);
    }
    for (name, (committed, in_flight)) in days {
        let day = &found[&name];
        let counted = (day.committed.micro(), day.in_flight.micro());
        assert_eq!(counted, (committed, in_flight), "the counters of {name} are the sum of its charges");
        for ((token, _), counts) in tokens.iter().filter(|((_, of), _)| *of == name) {
            assert_eq!(day.of_token(*token).micro(), *counts, "and so is what {token} spent on {name}");
        }
    }
    for (goal, found) in found_purses {
        let (open, spent) = purses.get(goal).copied().unwrap_or_default();
        assert_eq!(
            (found.in_flight.micro(), found.spent.micro()),
            (open, spent),
            "a purse is the sum of its calls: {found:?}"
        );
        let left = if found.state == PurseState::Closed { found.budget.micro() - spent } else { found.left.micro() };
        assert_eq!(found.budget.micro(), left + open + spent, "nothing of a purse is lost: {found:?}");
    }
    for (token, counts) in for_life {
        assert_eq!(spends[&token].spent.micro(), counts, "what {token} spent in all is the sum of its charges");
    }
}

/// What went from a job's buyer and did not come back, in micro-USDC: its credits and its signed payment, less what was paid back,
/// and with what it owes since because the payment disappeared.
fn gone(job: &Job, entries: &[credit::Entry], is_lost: bool) -> i64 {
    let own = entries.iter().filter(|entry| is_of(entry, &job.receipt_id));
    let credits: i64 = own.map(|entry| entry.debt - entry.credits - entry.reserved).sum();
    let signed = if is_lost { Usdc::ZERO } else { job.price.checked_sub(job.charge.credits).unwrap() };
    credits + i64::try_from(signed.micro()).unwrap()
}

/// The work used no more than was quoted: tools at most the seller's share, the model at most the fee.
fn check_used(job: &Job) {
    let Some(sold) = &job.sold else {
        return assert!(job.used.is_none(), "only sold work uses anything: {job:?}");
    };
    assert!(job.used.tools <= sold.split.revenue && job.used.model <= sold.split.fee, "{job:?}");
    assert!(job.used.total() <= sold.kept_up_to, "used beyond what its buyer was told: {job:?}");
}

/// Every receipt of an agent.
pub async fn receipts(db: &Db, agent: AgentId) -> Vec<Receipt> {
    receipt::all(db, agent).await.unwrap()
}

fn of_cause(entries: &[credit::Entry], receipt: &Receipt, kind: credit::EntryKind) -> i64 {
    let of = |entry: &&credit::Entry| entry.kind == kind && entry.cause == receipt.receipt_id.as_str();
    entries.iter().filter(of).map(|entry| entry.credits).sum()
}

/// Whether an entry is of a call: its charge, its end, or a return after its end.
fn is_of(entry: &credit::Entry, receipt: &ReceiptId) -> bool {
    let rest = entry.cause.strip_prefix(receipt.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
}

/// What came back after the end.
fn returns(entries: &[credit::Entry], receipt: &Receipt) -> i64 {
    let own = entries.iter().filter(|entry| is_of(entry, &receipt.receipt_id) && entry.cause.contains('~'));
    own.map(|entry| entry.credits).sum()
}
