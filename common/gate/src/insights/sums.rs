//! Sums over a period: what was spent on what, and the value it brought.
//!
//! Spend is what [`Cost::spent`] says: what was charged and did not come back. Value counts once its owner confirmed it. The
//! return (`rocs`) is value divided by spend, so 1 means that the purchases brought what they cost.

use std::collections::{BTreeMap, HashMap};

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId};
use base::money::Usdc;
use ledger::cost::Cost;
use ledger::receipt::{self, ExecutionStatus, Order, ReceiptStatus, Span};
use ledger::value::{self, Report, Reported, Status};
use platform::store::{Db, StoreError};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tools::spec::TOP_UP;

use super::{MAX_RECEIPTS, view};

/// Most goals in one answer, those with the largest spend first.
const MAX_GOALS: usize = 100;

/// The fields of a receipt that sums need.
#[derive(Clone, Debug, Deserialize)]
pub struct Charge {
    pub receipt_id: ReceiptId,
    pub category: String,
    pub subcategory: String,
    /// micro-USDC
    pub amount: Usdc,
    /// The part paid with credits, in micro-USDC.
    #[serde(default)]
    pub credits: Usdc,
    pub status: ReceiptStatus,
    pub execution_status: ExecutionStatus,
    /// The part of the price that was kept, if a part was paid back, in micro-USDC.
    #[serde(default)]
    pub kept: Option<Usdc>,
    /// Of a goal: what its calls cost, which are charges of their own.
    #[serde(default)]
    pub passed_on: Option<Usdc>,
    #[serde(default)]
    pub goal_id: Option<String>,
    pub created_at: Timestamp,
    /// The value tag sent with the call. The rest of the metadata is dropped while parsing.
    #[serde(default, rename = "metadata", deserialize_with = "attached_tag")]
    pub attached: Option<Report>,
}

fn attached_tag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Report>, D::Error> {
    let metadata = Option::<String>::deserialize(deserializer)?;
    Ok(metadata.as_deref().and_then(Report::attached))
}

/// The charges of a span, and the value reported for them.
#[derive(Debug, Default)]
pub struct Period {
    /// Newest first.
    pub charges: Vec<Charge>,
    /// Reported tags, by receipt id.
    tags: HashMap<String, Reported>,
    outcomes: Vec<Reported>,
    /// There is more than one request may read.
    pub truncated: bool,
}

impl Charge {
    /// The amount that the charge adds to the spend, if any.
    fn spend(&self) -> Option<Usdc> {
        let cost = Cost {
            charged: self.amount,
            credits: self.credits,
            kept: self.kept,
            money: self.status,
            work: self.execution_status,
            buys_credits: self.subcategory == TOP_UP.name,
        };
        let spent = match self.passed_on {
            None => cost.spent(),
            // A goal that goes on: its calls count, and what is left may come back.
            Some(_) if self.execution_status == ExecutionStatus::Pending => Usdc::ZERO,
            Some(passed_on) => cost.spent().checked_sub(passed_on).unwrap_or_default(),
        };
        Some(spent).filter(|spent| !spent.is_zero())
    }
}

impl Period {
    /// Loads the charges only.
    pub async fn charges(db: &Db, agent: AgentId, span: Span) -> Result<Period, StoreError> {
        let mut charges: Vec<Charge> =
            receipt::within(db, agent, span, Order::NewestFirst, None, MAX_RECEIPTS + 1).await?;
        let truncated = charges.len() > MAX_RECEIPTS;
        charges.truncate(MAX_RECEIPTS);
        Ok(Period { charges, truncated, ..Period::default() })
    }

    /// Loads the charges and their value. An outcome belongs to the period in which it was last reported.
    pub async fn with_value(db: &Db, agent: AgentId, span: Span, goal_id: Option<&str>) -> Result<Period, StoreError> {
        let (period, tags, outcomes) = tokio::try_join!(
            Period::charges(db, agent, span),
            value::tags(db, agent, span, MAX_RECEIPTS + 1),
            value::outcomes(db, agent, goal_id, MAX_RECEIPTS + 1),
        )?;
        let truncated = period.truncated || tags.len() > MAX_RECEIPTS || outcomes.len() > MAX_RECEIPTS;
        let tags = tags.into_iter().map(|tag| (tag.id.clone(), tag)).collect();
        let in_span = |outcome: &Reported| {
            span.since.is_none_or(|since| outcome.updated_at >= since)
                && span.until.is_none_or(|until| outcome.updated_at <= until)
        };
        let outcomes = outcomes.into_iter().filter(in_span).collect();
        Ok(Period { tags, outcomes, truncated, ..period })
    }

    fn tag(&self, charge: &Charge) -> Option<(Status, Usdc)> {
        match (self.tags.get(charge.receipt_id.as_str()), &charge.attached) {
            (Some(tag), _) => Some((tag.status, tag.amount.unwrap_or_default())),
            (None, Some(attached)) => Some((Status::Pending, attached.amount.unwrap_or_default())),
            (None, None) => None,
        }
    }

    /// The body of `GET /v1/analytics/spend/breakdown`. Sums appear under two names each.
    pub fn breakdown(&self, subcategories: bool, period_days: usize) -> Value {
        let mut categories: BTreeMap<&str, Sum> = BTreeMap::new();
        let mut parts: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
        let mut all = Sum::default();
        for charge in &self.charges {
            let Some(spend) = charge.spend() else { continue };
            all.add(spend);
            categories.entry(&charge.category).or_default().add(spend);
            parts.entry((&charge.category, &charge.subcategory)).or_default().add(spend);
        }
        let mut rows: Vec<_> = categories.into_iter().collect();
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.total));
        let rows: Vec<Value> = rows
            .into_iter()
            .map(|(category, sum)| {
                let total = sum.total.to_string();
                let mut row = json!({
                    "category": category, "total": total, "count": sum.count, "pct": percent(sum.total, all.total),
                    "total_usdc": total, "call_count": sum.count,
                });
                if subcategories {
                    let parts = parts.iter().filter(|((of, _), _)| *of == category);
                    let parts = parts.map(|((_, name), sum)| {
                        json!({"name": name, "total_usdc": sum.total.to_string(), "call_count": sum.count})
                    });
                    row["subcategories"] = parts.collect();
                }
                row
            })
            .collect();
        let total = all.total.to_string();
        json!({
            "categories": rows, "total": total, "total_spent_usdc": total,
            "period_days": period_days, "truncated": self.truncated,
        })
    }

    /// The body of `GET /v1/analytics/rocs`. Sums appear under two names each.
    pub fn rocs(&self, period_days: usize) -> Value {
        let mut goal = Goal::default();
        for charge in &self.charges {
            goal.add(charge.spend(), self.tag(charge));
        }
        for outcome in &self.outcomes {
            goal.value_of(outcome.status, outcome.amount.unwrap_or_default());
        }
        let (spend, value) = (goal.spend.to_string(), goal.value.to_string());
        json!({
            "rocs": ratio(goal.value, goal.spend),
            "rocs_percent": percent(goal.value, goal.spend),
            "total_spend": spend, "total_spent_usdc": spend,
            "total_value": value, "total_revenue_usdc": value,
            "pending_value": goal.pending.to_string(),
            "period_days": period_days, "truncated": self.truncated,
        })
    }

    /// The body of `GET /v1/analytics/rocs/by-goal`.
    pub fn by_goal(&self, only: Option<&str>, period_days: usize) -> Value {
        let mut goals: BTreeMap<&str, Goal> = BTreeMap::new();
        let wanted = |goal_id: &&str| only.is_none_or(|only| only == *goal_id);
        for charge in &self.charges {
            if let Some(goal_id) = charge.goal_id.as_deref().filter(wanted) {
                goals.entry(goal_id).or_default().add(charge.spend(), self.tag(charge));
            }
        }
        for outcome in &self.outcomes {
            if let Some(goal_id) = outcome.goal_id.as_deref().filter(wanted) {
                let goal = goals.entry(goal_id).or_default();
                goal.value_of(outcome.status, outcome.amount.unwrap_or_default());
                goal.outcomes.push(view::outcome(outcome));
            }
        }
        let truncated = self.truncated || goals.len() > MAX_GOALS;
        let mut goals: Vec<_> = goals.into_iter().collect();
        goals.sort_by_key(|(_, goal)| std::cmp::Reverse(goal.spend));
        let rows: Vec<Value> = goals
            .into_iter()
            .take(MAX_GOALS)
            .map(|(goal_id, goal)| {
                json!({
                    "goal_id": goal_id,
                    "spend": goal.spend.to_string(),
                    "value": goal.value.to_string(),
                    "pending_value": goal.pending.to_string(),
                    "rocs": ratio(goal.value, goal.spend),
                    "receipt_count": goal.receipts,
                    "outcomes": goal.outcomes,
                })
            })
            .collect();
        json!({"goals": rows, "period_days": period_days, "truncated": truncated})
    }
}

#[derive(Default)]
struct Sum {
    total: Usdc,
    count: u64,
}

impl Sum {
    fn add(&mut self, amount: Usdc) {
        self.total = plus(self.total, amount);
        self.count += 1;
    }
}

#[derive(Default)]
struct Goal {
    spend: Usdc,
    value: Usdc,
    pending: Usdc,
    receipts: u64,
    outcomes: Vec<Value>,
}

impl Goal {
    fn add(&mut self, spend: Option<Usdc>, tag: Option<(Status, Usdc)>) {
        self.receipts += 1;
        self.spend = plus(self.spend, spend.unwrap_or_default());
        if let Some((status, amount)) = tag {
            self.value_of(status, amount);
        }
    }

    fn value_of(&mut self, status: Status, amount: Usdc) {
        match status {
            Status::Confirmed => self.value = plus(self.value, amount),
            Status::Pending => self.pending = plus(self.pending, amount),
            Status::Rejected => {}
        }
    }
}

fn plus(sum: Usdc, amount: Usdc) -> Usdc {
    Usdc::from_micro(sum.micro().saturating_add(amount.micro()))
}

/// `part / whole` to four decimals, rounded down; 0 if `whole` is zero.
fn ratio(part: Usdc, whole: Usdc) -> f64 {
    ten_thousandths(part, whole) / 10_000.0
}

fn ten_thousandths(part: Usdc, whole: Usdc) -> f64 {
    let steps = u128::from(part.micro()) * 10_000;
    steps.checked_div(u128::from(whole.micro())).unwrap_or_default() as f64
}

/// The same in percent, to two decimals.
fn percent(part: Usdc, whole: Usdc) -> f64 {
    ten_thousandths(part, whole) / 100.0
}

#[cfg(test)]
mod tests {
    use base::ids::RequestId;

    use super::*;

    fn charge(number: u8, category: &str, micro: u64, goal: Option<&str>) -> Charge {
        let created_at = Timestamp::from_secs(i64::from(number));
        let job = RequestId::bought_with("test", &[&[number]]);
        Charge {
            receipt_id: ReceiptId::of(job, created_at),
            category: category.to_owned(),
            subcategory: format!("{category}_{}", number % 2),
            amount: Usdc::from_micro(micro),
            credits: Usdc::ZERO,
            status: ReceiptStatus::Settled,
            execution_status: ExecutionStatus::Completed,
            kept: None,
            passed_on: None,
            goal_id: goal.map(str::to_owned),
            created_at,
            attached: None,
        }
    }

    fn tag(charge: &Charge, micro: u64, status: Status) -> Reported {
        let report = Report { kind: value::Kind::Revenue, amount: Some(Usdc::from_micro(micro)), label: None };
        Reported { status, ..report.at(&charge.receipt_id, charge.created_at) }
    }

    fn period() -> Period {
        let failed = Charge { execution_status: ExecutionStatus::Failed, ..charge(4, "data", 70_000, Some("a")) };
        let void = Charge { status: ReceiptStatus::Failed, goal_id: None, ..failed.clone() };
        let top_up = Charge { subcategory: TOP_UP.name.to_owned(), ..charge(6, "commerce", 70_000, None) };
        let charges = vec![
            charge(1, "data", 10_000, Some("a")),
            charge(2, "data", 20_000, Some("b")),
            charge(3, "commerce", 15_000, None),
            failed,
            void,
            top_up,
        ];
        let tags = [
            tag(&charges[0], 100_000, Status::Confirmed),
            tag(&charges[1], 50_000, Status::Pending),
            tag(&charges[2], 900_000, Status::Rejected),
        ];
        let outcome = Reported {
            id: "outc".to_owned(),
            goal_id: Some("b".to_owned()),
            ..tag(&charges[1], 35_000, Status::Confirmed)
        };
        let tags = tags.into_iter().map(|tag| (tag.id.clone(), tag)).collect();
        Period { charges, tags, outcomes: vec![outcome], truncated: false }
    }

    #[test]
    fn a_goal_adds_its_fee_and_its_calls_add_themselves() {
        let goal = Charge {
            kept: Some(Usdc::from_micro(120)),
            passed_on: Some(Usdc::from_micro(100)),
            ..charge(1, "infrastructure", 2_400_000, Some("g"))
        };
        let open = Charge { kept: None, execution_status: ExecutionStatus::Pending, ..goal.clone() };
        let calls = [charge(2, "data", 60, Some("g")), charge(3, "data", 40, Some("g"))];
        for (goal, spent) in [(goal, "0.000120"), (open, "0.000100")] {
            let charges = [vec![goal], calls.to_vec()].concat();
            let period = Period { charges, ..Period::default() };
            assert_eq!(period.breakdown(false, 30)["total"], spent);
            assert_eq!(period.by_goal(None, 30)["goals"][0]["spend"], spent);
        }
    }

    #[test]
    fn what_was_paid_back_or_never_paid_is_no_spend() {
        let body = period().breakdown(true, 30);
        assert_eq!((&body["total"], &body["total_spent_usdc"]), (&json!("0.045000"), &json!("0.045000")));
        let expected = json!({
            "category": "data", "total": "0.030000", "count": 2, "pct": 66.66, "total_usdc": "0.030000", "call_count": 2,
            "subcategories": [
                {"name": "data_0", "total_usdc": "0.020000", "call_count": 1},
                {"name": "data_1", "total_usdc": "0.010000", "call_count": 1},
            ],
        });
        assert_eq!(body["categories"][0], expected);
        assert_eq!(body["categories"][1]["total"], "0.015000");
        assert_eq!(Period::default().breakdown(false, 30)["categories"], json!([]));
    }

    #[test]
    fn only_confirmed_value_counts() {
        let body = period().rocs(30);
        for (member, value) in [
            ("rocs", json!(3.0)),
            ("rocs_percent", json!(300.0)),
            ("total_spend", json!("0.045000")),
            ("total_value", json!("0.135000")),
            ("pending_value", json!("0.050000")),
        ] {
            assert_eq!(body[member], value, "{member}");
        }
        assert_eq!(Period::default().rocs(30)["rocs"], json!(0.0), "nothing spent");
    }

    #[test]
    fn goals_have_their_own_receipts_and_outcomes() {
        let body = period().by_goal(None, 30);
        let goals = body["goals"].as_array().unwrap();
        let [b, a] = &goals[..] else { panic!("{body}") };
        assert_eq!((&a["goal_id"], &a["receipt_count"], &a["rocs"]), (&json!("a"), &json!(2), &json!(10.0)));
        assert_eq!((&b["value"], &b["pending_value"]), (&json!("0.035000"), &json!("0.050000")));
        assert_eq!(b["outcomes"][0]["status"], "confirmed");
        assert_eq!(period().by_goal(Some("a"), 30)["goals"].as_array().unwrap().len(), 1);
    }
}
