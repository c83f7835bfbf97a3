//! The services that souls sell here: work that uses paid tools and the model, within its budget and over several
//! attempts, and that completes, fails, or takes too long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use evm::Address;
use gate::jobs::job::Outcome;
use gate::jobs::store;
use gate::work::{self, Allowance, Commission, Report, Resource, Spending, ToolAccess, Work, out_of_time};
use ledger::credit;
use ledger::earning::{self, Earning, SaleEnd};
use ledger::fee::Split;
use ledger::maturing;
use ledger::payout::{self, End, Failure, Payout, PayoutStatus};
use ledger::seller::{self, Balance, EntryKind};
use market::counting;
use market::service::{self, Executor, Service};
use market::soul::{self, Soul};
use platform::config::FeeShare;
use platform::store::{BoxFuture, Db, StoreError, Write};
use serde_json::json;
use tools::{Mode, ToolError, Unavailable};

use super::acts::Agent;
use super::faults::Fate;
use super::world::World;
use crate::support::{VIN, books};

/// The price of every service, in micro-USDC.
pub const PRICE: u64 = 10_000;
/// The tool budget of a job, in micro-USDC: one lookup, with a rest.
const TOOL_BUDGET: u64 = 7_000;

/// Earned before, from a buyer without a card: enough for payouts, which are of 10 USDC at least.
const STOCK: Usdc = Usdc::from_micro(50_000_000);
/// For how long earnings paid by card mature: short, so that they do while an episode lasts.
const WINDOW: Duration = Duration::from_secs(600);

pub struct Sold {
    soul: &'static str,
    pub path: &'static str,
    executor: Executor,
}

pub static SOLD: [Sold; 2] = [
    Sold { soul: "programmer", path: "/v1/soul/programmer/services/work/execute", executor: Executor::Program },
    Sold { soul: "thinker", path: "/v1/soul/thinker/services/work/execute", executor: Executor::Model },
];

/// Registers the sellers, as the registry would.
pub async fn open(db: &Db, now: Timestamp) {
    let table = &db.tables.souls;
    for sold in &SOLD {
        let record: Soul = serde_json::from_value(json!({
            "slug": sold.soul, "name": sold.soul, "status": "active", "key_hash": "0", "version": 1, "text_hash": "",
            "text_bytes": 100, "listed": "all#0", "created": now, "updated": now,
        }))
        .expect("a soul");
        let offered: Service = serde_json::from_value(json!({
            "slug": "work", "active": true, "created": now, "updated": now, "category": "custom",
            "terms": {
                "version": 1, "name": "Work", "price": PRICE, "deadline_seconds": 60, "sandbox": true,
                "executor": sold.executor, "tools": ["vin_decode"], "tool_budget": TOOL_BUDGET, "program": "0",
            },
        }))
        .expect("a service");
        let writes = [
            Write::put(table, soul::key(sold.soul), &record).unwrap(),
            Write::put(table, service::key(sold.soul, "work"), &offered).unwrap(),
            Write::put(table, service::terms_key(sold.soul, "work", 1), &offered.terms).unwrap(),
        ];
        db.transact(&writes).await.expect("a seller");
        let request_id = RequestId::random();
        let before = Earning {
            request_id,
            receipt_id: ReceiptId::of(request_id, now),
            sold: earning::Sold {
                soul: sold.soul.to_owned(),
                service: Some("work".to_owned()),
                terms: 1,
                split: Split { fee: Usdc::ZERO, revenue: STOCK },
                kept_up_to: Usdc::ZERO,
            },
            buyer: AgentId::of(Address::ZERO),
            tools_cost: Usdc::ZERO,
            card: Usdc::ZERO,
            ended: SaleEnd::Completed,
            bought_at: now,
            ended_at: now,
        };
        db.write(earning::record(db, &before).unwrap()).await.expect("an earning");
    }
}

/// A seller counts its sales, lets mature what is due, and asks for all it may have. If it asked before, that payout ends.
pub async fn ask(world: &World, now: Timestamp) -> Result<(), StoreError> {
    let (db, dice, figures) = (&world.db, &world.fate.dice, &world.fate.figures);
    let slug = dice.pick(&SOLD).unwrap().soul;
    let counted = counting::fold(db, slug, counting::ROUNDS, now).await?;
    let (balance, _) = maturing::ripen(db, slug, counted.balance, WINDOW, now).await?;
    let Some(id) = &balance.in_flight else {
        let exists = Write::check(&db.tables.souls, soul::key(slug)).only_if("attribute_exists(#pk)");
        let asked = payout::request(db, slug, Address::ZERO, None, None, &exists, now).await?;
        figures.count(if asked.is_ok() { "payouts asked for" } else { "payouts refused" });
        return Ok(());
    };
    let Some(open) = payout::load(db, slug, id).await? else { return Ok(()) };
    let end = match dice.percent(30) {
        true => End::Paid { transaction: "0x1".to_owned() },
        false => End::Failed(Failure::TransferRefused),
    };
    match (open.status, &end) {
        (PayoutStatus::Pending, End::Paid { .. }) => {
            let sent = Payout { status: PayoutStatus::Processing, ..open.clone() };
            let _ = db.transact(&open.moved(db, sent)?).await;
        }
        (PayoutStatus::Pending | PayoutStatus::Processing, _) => {
            let ended = payout::end(db, &open, &end, &[], now).await?;
            figures.count(if ended { "payouts ended" } else { "payouts ended by others" });
        }
        _ => {}
    }
    Ok(())
}

/// The books of the sellers at a quiet moment.
pub async fn quiet(world: &World) {
    for sold in &SOLD {
        audit(&world.db, sold.soul).await;
    }
}

/// Checks a seller's books: entries add up to its balance, rows to what matures, and no payout took any of that. Returns the
/// balance and the sum of the entries of each kind.
async fn audit(db: &Db, soul: &str) -> (Balance, BTreeMap<String, i64>) {
    let balance = seller::load(db, soul).await.unwrap();
    let entries = seller::entries(db, soul, None, None, None, 10_000).await.unwrap();
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for entry in &entries {
        *sums.entry(format!("{:?}", entry.kind)).or_default() += entry.amount;
    }
    assert_eq!(sums.values().sum::<i64>(), i64::try_from(balance.pending.micro()).unwrap(), "{soul}: {balance:?}");
    let rows = maturing::next(db, soul, 10_000).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.amount.micro()).sum::<u64>(), balance.maturing.micro(), "{soul}: {balance:?}");
    assert!(balance.maturing <= balance.pending, "a payout took what matures: {balance:?}");
    (balance, sums)
}

/// Works like a program, or like the model.
pub struct Hands {
    pub fate: Arc<Fate>,
    pub access: ToolAccess,
    pub resource: Resource,
}

impl Hands {
    async fn work(&self, allowance: &mut Allowance<'_>) -> Result<Work, ToolError> {
        let dice = &self.fate.dice;
        for _ in 0..dice.roll(5) {
            if self.resource == Resource::Model {
                let most = Usdc::from_micro(1 + dice.roll(1_200));
                let refused = |_| ToolError::unavailable(Unavailable::SellerFailed, "no more of the model");
                allowance.spending().take(Resource::Model, most).await.map_err(refused)?;
                tokio::time::sleep(dice.millis(500)).await;
                allowance.spending().give_back(Resource::Model, Usdc::from_micro(dice.roll(most.micro()))).await;
            }
            if dice.percent(60) {
                let _ = allowance.call("vin_decode", &json!({"vin": VIN})).await;
            }
            tokio::time::sleep(dice.millis(1_500)).await;
        }
        match dice.roll(10) {
            0..4 => Err(ToolError::unavailable(Unavailable::SellerFailed, "the work went wrong")),
            4 => {
                tokio::time::sleep(Duration::from_secs(1_000)).await;
                Err(ToolError::internal("nobody waits so long"))
            }
            _ => Ok(Work {
                result: "done".to_owned(),
                files: Vec::new(),
                model_used: None,
                tokens_used: None,
                provider: "simulation",
                provider_request_id: None,
                mode: Mode::Embedded,
            }),
        }
    }
}

impl work::Executor for Hands {
    fn run<'a>(&'a self, commission: &'a Commission, spending: &'a mut Spending) -> BoxFuture<'a, Report> {
        Box::pin(async move {
            let mut allowance = Allowance::of(commission, &self.access, spending);
            let left = commission.deadline.millis() - allowance.clock().now().millis();
            let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
            let outcome = tokio::time::timeout(left, self.work(&mut allowance)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(out_of_time()));
            Report { outcome, tools_used: allowance.into_used(), log: String::new() }
        })
    }
}

/// At the end each seller has its share of completed work, less its tools, and nothing of failed work. What a buyer
/// paid equals what it got back plus the shares of seller and operator.
pub async fn check(world: &World, agents: &[Arc<Agent>]) {
    let db = &world.db;
    let mut earned: BTreeMap<String, u64> = SOLD.iter().map(|sold| (sold.soul.to_owned(), STOCK.micro())).collect();
    let mut by_card: BTreeMap<String, u64> = BTreeMap::new();
    for agent in agents {
        for receipt in books::receipts(db, agent.id).await {
            let job = store::load_latest(db, receipt.job_id).await.unwrap().expect("a receipt has its job");
            let Some(sold) = job.sold.clone().filter(|_| job.receipt_id == receipt.receipt_id) else { continue };
            let figures = &world.fate.figures;
            match job.outcome {
                Some(Outcome::Completed) => {
                    let split = Split::of(job.price, FeeShare::default());
                    let share = split.revenue.checked_sub(job.used.tools).expect("tools within the share");
                    *earned.get_mut(&sold.soul).expect("a seller") += share.micro();
                    *by_card.entry(sold.soul.clone()).or_default() += share.min(job.charge.card).micro();
                    figures.count("sold work completed");
                }
                _ if job.credited.is_some() => {
                    let kept = job.kept.unwrap_or_default();
                    assert_eq!(job.credited.and_then(|back| back.checked_add(kept)), Some(job.price), "{job:?}");
                    assert!(job.used.tools.micro() <= TOOL_BUDGET, "the budget is the job's: {job:?}");
                    figures.count(if kept > Usdc::ZERO {
                        "sold work failed, paid back in part"
                    } else {
                        "sold work failed"
                    });
                }
                _ => figures.count("sold work never paid"),
            }
            if job.attempt > job.settled_in + job.put_down + 1 && !job.used.is_none() {
                figures.count("sold work tried again after it had used something");
            }
        }
    }
    let mut lost = 0;
    for (soul, earned) in earned {
        while counting::fold(db, &soul, counting::ROUNDS, world.clock.now()).await.unwrap().more {}
        let entries = seller::entries(db, &soul, None, None, None, 10_000).await.unwrap();
        let marked: u64 = entries.iter().filter_map(|entry| entry.about.card).map(Usdc::micro).sum();
        assert_eq!(marked, by_card.get(&soul).copied().unwrap_or_default(), "{soul} knows what cards paid");
        world.fate.figures.count(if marked > 0 { "sellers paid by card" } else { "sellers not paid by card" });
        // Clocks disagree by less than a minute.
        let later = world.clock.now().plus(WINDOW + Duration::from_secs(60));
        loop {
            let balance = seller::load(db, &soul).await.unwrap();
            if !maturing::ripen(db, &soul, balance, WINDOW, later).await.unwrap().1 {
                break;
            }
        }
        let (balance, sums) = audit(db, &soul).await;
        let sum = |kind: EntryKind| sums.get(&format!("{kind:?}")).copied().unwrap_or_default();
        assert_eq!(balance.maturing, Usdc::ZERO, "everything matures");
        assert_eq!(sum(EntryKind::Sale), i64::try_from(earned).unwrap(), "{soul} has what it earned");
        let taken = -sum(EntryKind::CardReversal);
        assert_eq!(balance.total_earnings.micro(), earned - taken.unsigned_abs(), "less what cards took back");
        lost += taken;
    }
    // What sellers lost to cards that were taken back, their buyers no longer owe.
    let mut paid = 0;
    for agent in agents {
        books::audit(db, agent.id).await;
        let entries = credit::entries(db, agent.id, 10_000).await.unwrap();
        paid -= entries.iter().filter(|entry| entry.cause.starts_with("matured_")).map(|entry| entry.debt).sum::<i64>();
    }
    assert_eq!(lost, paid, "a seller loses exactly what its buyer no longer owes");
    if lost > 0 {
        world.fate.figures.count("sellers lost what cards took back");
    }
}
