//! The services that souls sell here: work that uses paid tools and the model, within its budget and over several
//! attempts, and that completes, fails, or takes too long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::money::Usdc;
use gate::jobs::job::Outcome;
use gate::jobs::store;
use gate::work::{self, Allowance, Commission, Report, Resource, Spending, ToolAccess, Work, out_of_time};
use ledger::fee::Split;
use ledger::seller;
use market::counting;
use market::service::{self, Executor, Service};
use market::soul::{self, Soul};
use platform::store::{BoxFuture, Db, Write};
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
    }
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
    let mut earned: BTreeMap<String, u64> = SOLD.iter().map(|sold| (sold.soul.to_owned(), 0)).collect();
    for agent in agents {
        for receipt in books::receipts(db, agent.id).await {
            let job = store::load_latest(db, receipt.job_id).await.unwrap().expect("a receipt has its job");
            let Some(sold) = job.sold.clone().filter(|_| job.receipt_id == receipt.receipt_id) else { continue };
            let figures = &world.fate.figures;
            match job.outcome {
                Some(Outcome::Completed) => {
                    let share =
                        Split::of(job.price).revenue.checked_sub(job.used.tools).expect("tools within the share");
                    *earned.get_mut(&sold.soul).expect("a seller") += share.micro();
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
    for (soul, earned) in earned {
        while counting::fold(db, &soul, counting::ROUNDS, world.clock.now()).await.unwrap().more {}
        let balance = seller::load(db, &soul).await.unwrap();
        assert_eq!(balance.pending.micro(), earned, "{soul} has what it earned");
        let entries = seller::entries(db, &soul, None, None, None, 10_000).await.unwrap();
        assert_eq!(entries.iter().map(|entry| entry.amount).sum::<i64>(), i64::try_from(earned).unwrap());
    }
}
