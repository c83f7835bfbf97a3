//! The invariants: at every quiet moment, and at the end, when nothing is open.

use std::collections::{BTreeMap, BTreeSet};

use base::clock::Timestamp;
use base::encoding::base64_any;
use base::ids::ReceiptId;
use base::money::Usdc;
use evm::{Word, hex0x};
use gate::jobs::job::{Job, Outcome, Settlement};
use gate::jobs::store;
use ledger::credit::{self, EntryKind};
use ledger::day;
use ledger::payments::policy;
use ledger::receipt::Receipt;
use platform::auth::token::{self, TokenCaps};
use ring::signature::{ED25519, UnparsedPublicKey};

use super::acts::Agent;
use super::world::World;
use crate::support::books;

const TOP_UP: &str = "credits_top_up";
const MANY_TOKENS: usize = 1_000;

/// Values read of an agent at the last quiet moment.
#[derive(Default)]
pub struct Seen {
    rules: u32,
    limit: Option<u64>,
    frozen: bool,
    per_transaction: Option<u64>,
    committed: BTreeMap<String, u64>,
    receipts: BTreeSet<ReceiptId>,
}

/// Checks an agent's books at a quiet moment: nothing is being written, but jobs may be open.
pub async fn quiet(world: &World, agent: &Agent, seen: &mut Seen) {
    let db = &world.db;
    let account = books::audit(db, agent.id).await;
    let receipts = books::receipts(db, agent.id).await;
    let bought: Vec<&Receipt> = receipts.iter().filter(|receipt| receipt.subcategory != TOP_UP).collect();
    let new: Vec<&&Receipt> = bought.iter().filter(|receipt| !seen.receipts.contains(&receipt.receipt_id)).collect();
    let limit = account.budget.as_ref().and_then(|budget| budget.daily_limit()).map(|limit| limit.micro());
    let tried = std::mem::take(&mut agent.notes.lock().unwrap().daily_tried);
    let same_rules = account.rules == seen.rules;
    // The caps in force at some time since the last check: only one if the rules are unchanged.
    let mut caps = vec![limit];
    if !same_rules {
        caps.push(seen.limit);
        caps.extend(tried);
    }
    let cap = caps.iter().try_fold(0, |most, cap| cap.map(|cap| cap.max(most)));
    let mut days = BTreeMap::new();
    for day in bought.iter().map(|receipt| day::name(receipt.created_at)).collect::<BTreeSet<_>>() {
        let counters = day::load(db, agent.id, &day).await.unwrap();
        days.insert(day, counters.committed.micro());
    }
    for (day, committed) in &days {
        let before = seen.committed.get(day).copied().unwrap_or_default();
        let most = cap.map(|cap| cap.max(before));
        assert!(most.is_none_or(|most| *committed <= most), "a cap was passed on {day}: {committed} > {most:?}");
    }
    if same_rules && seen.frozen && account.frozen.agent {
        assert!(new.is_empty(), "what is frozen buys nothing: {new:?}");
    }
    if let (true, Some(cap)) = (same_rules, seen.per_transaction) {
        assert!(new.iter().all(|receipt| receipt.amount.micro() <= cap), "above the cap of one call: {new:?}");
    }
    named_once(world, &receipts).await;
    within_token_caps(world, agent, &receipts).await;
    *seen = Seen {
        rules: account.rules,
        limit,
        frozen: account.frozen.agent,
        per_transaction: account.budget.as_ref().and_then(|budget| budget.per_transaction).map(|cap| cap.micro()),
        committed: days,
        receipts: bought.iter().map(|receipt| receipt.receipt_id.clone()).collect(),
    };
}

/// No token has passed a cap of its own: of one call, of a day, for life. They never change.
async fn within_token_caps(world: &World, agent: &Agent, receipts: &[Receipt]) {
    let page = token::page(&world.db, agent.id, None, MANY_TOKENS).await.unwrap();
    for token in page.tokens {
        let TokenCaps { per_transaction, daily, lifetime } = token.caps;
        let own: Vec<&Receipt> = receipts.iter().filter(|receipt| receipt.token_id == Some(token.id)).collect();
        let small = own.iter().all(|receipt| per_transaction.is_none_or(|cap| receipt.amount <= cap));
        assert!(small, "above the cap of one call: {token:?} {own:?}");
        let mut spent = Usdc::ZERO;
        for day in own.iter().map(|receipt| day::name(receipt.created_at)).collect::<BTreeSet<_>>() {
            let of_day = day::load(&world.db, agent.id, &day).await.unwrap().of_token(token.id);
            assert!(daily.is_none_or(|cap| of_day <= cap), "a cap was passed on {day}: {of_day} > {token:?}");
            spent = spent.checked_add(of_day).unwrap();
        }
        assert!(lifetime.is_none_or(|cap| spent <= cap), "a cap for life was passed: {spent} > {token:?}");
    }
}

/// One of all calls with one idempotency key buys.
async fn named_once(world: &World, receipts: &[Receipt]) {
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    for receipt in receipts {
        let Some(name) = memo(receipt).filter(|memo| memo.starts_with("name-")) else { continue };
        let job = job(world, receipt).await;
        let lost = matches!(job.settlement, Settlement::Refused | Settlement::Void);
        let bought = job.receipt_id == receipt.receipt_id && (!lost || job.outcome == Some(Outcome::Completed));
        *names.entry(name).or_default() += u32::from(bought);
    }
    let twice: Vec<_> = names.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "a name buys once: {twice:?}");
}

/// Checks an agent's books once nothing is open any more.
pub async fn at_rest(world: &World, agent: &Agent) {
    let db = &world.db;
    let account = books::audit(db, agent.id).await;
    assert_eq!(account.reserved.micro(), 0, "every hold is resolved once its quote has expired");
    let receipts = books::receipts(db, agent.id).await;
    let mut unpaid_work = 0;
    for receipt in &receipts {
        verify(world, receipt);
        let job = job(world, receipt).await;
        if job.receipt_id != receipt.receipt_id {
            continue;
        }
        assert!(job.open.is_none() && job.outcome.is_some(), "nothing is left open: {job:?}");
        let done_for_nothing = job.settlement == Settlement::Refused && job.outcome == Some(Outcome::Completed);
        unpaid_work += if done_for_nothing { job.price.micro() } else { 0 };
        if job.settlement == Settlement::Settled {
            assert_eq!(receipt.settlement_tx, job.transaction, "the receipt names the transfer");
            let in_part = job.charged.is_some();
            world.fate.figures.count(if in_part { "jobs that used a part of their price" } else { "jobs settled" });
        }
    }
    let exposure = policy::exposure(db, agent.id).await.unwrap();
    assert_eq!(exposure.unsettled.micro(), unpaid_work, "a payer is exposed by what it did not pay for, and no more");
    assert!(unpaid_work <= account.settled.micro(), "{unpaid_work} of work for nothing: {account:?}");
}

/// Every transfer on chain paid for one job, which was done or paid back. Nothing counts as settled that did not
/// arrive.
pub async fn money(world: &World, agents: &[std::sync::Arc<Agent>]) {
    let mut paid: BTreeMap<Word, Job> = BTreeMap::new();
    let mut served_unpaid = BTreeSet::new();
    let mut from_wallets = 0;
    for agent in agents {
        let entries = credit::entries(&world.db, agent.id, 10_000).await.unwrap();
        for receipt in books::receipts(&world.db, agent.id).await {
            let job = job(world, &receipt).await;
            let Some(payment) = job.payment.clone() else { continue };
            if job.receipt_id != receipt.receipt_id {
                continue;
            }
            // The work ran before its settlement, which was refused. Money that arrives later for it was already
            // served.
            if job.settlement == Settlement::Refused && job.outcome == Some(Outcome::Completed) {
                served_unpaid.insert(payment.nonce);
            }
            if job.settlement != Settlement::Settled {
                continue;
            }
            let used = world.chain.used(&payment).unwrap_or_else(|| panic!("settled, but not on chain: {job:?}"));
            assert!(used.moved, "settled, but it moved nothing: {job:?}");
            assert_eq!(job.transaction, Some(hex0x(&used.transaction)), "{job:?}");
            from_wallets += payment.amount().unwrap();
            let bought = |kind: EntryKind| {
                entries.iter().any(|entry| entry.kind == kind && entry.cause == receipt.receipt_id.as_str())
            };
            if job.tool == TOP_UP {
                let done = job.outcome == Some(Outcome::Completed);
                assert_eq!(
                    (bought(EntryKind::TopUp), bought(EntryKind::Refund)),
                    (done, !done),
                    "bought credits arrive once: {job:?}"
                );
            }
            let before = paid.insert(payment.nonce, job);
            assert!(before.is_none(), "a transfer pays once: {before:?}");
        }
    }
    let mut unclaimed = 0;
    for agent in agents {
        let shown = agent.notes.lock().unwrap().shown.clone();
        for shown in shown {
            let moved = world.chain.used(&shown.authorization).is_some_and(|used| used.moved);
            if moved && !paid.contains_key(&shown.authorization.nonce) {
                let nonce = hex0x(&shown.authorization.nonce);
                assert!(shown.by_stranger, "we broadcast {nonce}, and nobody was served or credited");
                assert!(
                    served_unpaid.contains(&shown.authorization.nonce)
                        || shown.quote_id.is_some()
                        || !may_be_claimed(&shown, world.clock.now()),
                    "{nonce} can be claimed, and was not"
                );
                unclaimed += shown.authorization.amount().unwrap();
                world.fate.figures.count("transfers of strangers, too old to be claimed or of a quote that expired");
            }
        }
    }
    assert_eq!(world.chain.received(), from_wallets + unclaimed, "what arrived is what was settled");
}

/// Whether a stranger's transfer is certainly still honoured.
pub fn may_be_claimed(shown: &super::acts::Shown, now: Timestamp) -> bool {
    shown.authorization.valid_before_secs() + 3_600 > now.secs().unsigned_abs() + 5
}

async fn job(world: &World, receipt: &Receipt) -> Job {
    store::load_latest(&world.db, receipt.job_id).await.unwrap().expect("a receipt has its job")
}

fn memo(receipt: &Receipt) -> Option<String> {
    let metadata: serde_json::Value = serde_json::from_str(receipt.metadata.as_deref()?).ok()?;
    metadata["memo"].as_str().map(str::to_owned)
}

/// Verifies a receipt with only the published key.
fn verify(world: &World, receipt: &Receipt) {
    assert!(receipt.is_terminal(), "{receipt:?}");
    let seal = receipt.seal.as_ref().expect("a terminal receipt is signed");
    let key = UnparsedPublicKey::new(&ED25519, base64_any(&world.keys.receipts.public().x).unwrap());
    let signature = base64_any(&seal.signature).unwrap();
    key.verify(&receipt.signed_bytes(), &signature).expect("every receipt verifies");
}
