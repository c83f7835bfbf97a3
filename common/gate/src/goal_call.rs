//! The entrance for calls that a goal makes for its owner ([`tools::buying`]).
//!
//! The same checks in the same order as for an agent's call: emergency stop, input, needs, texts, price, the owner's rules and policy,
//! then one transaction with the job, its receipt and the money. Without a payment, a quote's token, an idempotency key and a rate limit:
//! the purse pays, and the job's id follows from goal, task and attempt, so that a repeated start finds it.

use std::sync::Arc;

use base::clock::Clock;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use ledger::account::{self, Account};
use ledger::charge::Charge;
use ledger::day;
use ledger::purse::{self, FromPurse, PurseState};
use ledger::receipt::{self, Judged, Receipt};
use platform::auth::token::TokenCaps;
use platform::http::ApiError;
use platform::net::FetchPolicy;
use platform::store::{BoxFuture, StoreError, Write, WriteError, db, queue};
use serde_json::{Map, Value};
use tools::buying::{Buyer, Ended, GoalCall, Refused, Started};
use tools::quoting::{AskedPrice, QuoteRequest};
use tools::spec::{Claiming, Price, RETENTION, ToolSpec};
use tools::{ToolError, Toolbox};

use crate::app::App;
use crate::approvals::approval::{ApprovalId, Status};
use crate::approvals::{GateCall, GateVerdict, Notices, check_before_price, gate_check, store as approvals};
use crate::asking;
use crate::claim_writes::{ClaimPart, ClaimWrites};
use crate::jobs::engine::{self, Queues};
use crate::jobs::input::StoredInput;
use crate::jobs::job::{Job, Outcome};
use crate::jobs::{own, store};
use crate::limits;
use crate::order::Order;
use crate::rules::{Proposed, check_account, day_is_full};

/// How many times a claim is tried again because the account or the purse changed in the meantime.
const CLAIM_RETRIES: u32 = 10;

/// The entrance of a function that drives goals.
pub struct GoalCalls {
    pub app: App,
    pub queues: Queues,
    pub notices: Notices,
    pub policy: FetchPolicy,
}

/// A refusal of the call, or a store that does not answer.
enum Stop {
    Refused(Refused),
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Failed(error)
    }
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Stop {
        match error {
            ApiError::Unavailable(error) => Stop::Failed(error),
            refused => Stop::Refused(refusal(&refused)),
        }
    }
}

fn refusal(error: &ApiError) -> Refused {
    Refused { code: error.code().to_owned(), message: error.message() }
}

impl GoalCalls {
    fn clock(&self) -> &Clock {
        &self.app.clock
    }

    /// Reads the call, and refuses what no agent could buy either.
    async fn order(&self, toolbox: &Toolbox, call: &GoalCall<'_>) -> Result<Order<'static>, Stop> {
        if let Some(reason) = limits::stopped(&self.app).await? {
            // It is lifted again: the driver comes back.
            return Err(Stop::Failed(StoreError::new(format_args!("the service is paused: {reason}"))));
        }
        if call.tool.buys {
            return Err(refused("invalid_request", "a goal cannot buy another goal").into());
        }
        let order = Order::of_goal(call.tool, call.input, (call.goal, call.task), &self.policy)?;
        if let Some(what) = toolbox.lacks(order.tool, &order.input).await? {
            let what = format!("{what}; `{}` needs it", order.tool.name);
            return Err(ApiError::NotConfigured { what }.into());
        }
        toolbox.judge.check(order.tool, &order.input).await.map_err(ApiError::from)?;
        Ok(order)
    }

    async fn priced(&self, toolbox: &Arc<Toolbox>, call: &GoalCall<'_>) -> Result<AskedPrice, Stop> {
        let order = self.order(toolbox, call).await?;
        let agent = Some(call.owner.agent);
        (order.tool.check_payer)(toolbox, agent).await?;
        if !matches!(order.tool.price, Price::Asked { .. }) {
            let none = Map::new();
            (order.tool.check_stored)(toolbox, &order.input, &none, agent, true).await?;
            return Ok(AskedPrice { price: order.price, context: none.clone(), locked: none });
        }
        let quoter = self.app.catalog.quoters.iter().copied().find(|quoter| quoter.spec.name == order.tool.name);
        let what = || ApiError::NotConfigured { what: format!("quoter for {}", order.tool.name) };
        let quoter = quoter.ok_or_else(what)?;
        if (quoter.begins)(&order.input) {
            check_before_price(&self.app.db, call.owner.agent, order.tool, &order.input, self.clock().now()).await?;
        }
        let input = order.input.clone();
        let request = QuoteRequest { tool: order.tool, input, agent, proven: true, begun: Map::new() };
        let asked = match asking::ask(toolbox, quoter, request, order.purchase(), async { Ok(()) }).await {
            // The driver comes back.
            Err(pending @ ApiError::QuotePending { .. }) => {
                return Err(Stop::Failed(StoreError::new(pending.message())));
            }
            asked => asked?,
        };
        (order.tool.check_quoted)(&order.input, &asked.locked)?;
        (order.tool.check_stored)(toolbox, &order.input, &asked.locked, agent, true).await?;
        (quoter.check)(toolbox, &order.input, &asked.locked, agent, true).await?;
        Ok(asked)
    }

    /// The owner's policy on the call. With the write that uses its approval up.
    async fn released(
        &self,
        order: &Order<'_>,
        call: &GoalCall<'_>,
        account: &Account,
        price: Usdc,
        approval: Option<&str>,
    ) -> Result<Result<(Judged, Option<Write>), Started>, Stop> {
        let judged = Judged { rules: account.rules, by_policy: account.policy, approval_id: None };
        if !account.policy {
            return Ok(Ok((judged, None)));
        }
        if let Some(known) = approval {
            match self.decision(call.owner.agent, known).await? {
                Some(Status::Pending) => return Ok(Err(Started::Held { approval: known.to_owned() })),
                Some(Status::Approved | Status::Consumed) => {}
                Some(Status::Denied) => return Err(refused("approval_denied", "the approver denied the call").into()),
                Some(Status::Expired | Status::Cancelled) | None => {
                    return Err(refused("approval_expired", "nobody approved the call in time").into());
                }
            }
        }
        let mut asked = GateCall {
            wallet: call.owner.wallet,
            token: call.owner.token,
            tool: order.tool,
            listing: None,
            input: &order.input,
            amount: price,
            body: &order.body,
            approval_id: None,
            consume: true,
            wakes: Some(call.goal),
            now: self.clock().now(),
        };
        // What was approved is released by its id. A call that was not held before asks first.
        asked.approval_id = approval;
        match gate_check(&self.app.db, &self.notices, &asked).await {
            Ok(GateVerdict::Allowed) => Ok(Ok((judged, None))),
            Ok(GateVerdict::Released { approval_id, consume }) => {
                let judged = Judged { approval_id: Some(approval_id.to_string()), ..judged };
                Ok(Ok((judged, consume.map(|write| *write))))
            }
            Err(ApiError::ApprovalRequired { approval_id: Some(approval), .. }) => Ok(Err(Started::Held { approval })),
            Err(error) => Err(error.into()),
        }
    }

    async fn decision(&self, agent: AgentId, approval: &str) -> Result<Option<Status>, StoreError> {
        let Ok(id) = approval.parse::<ApprovalId>() else { return Ok(None) };
        let approval = approvals::load(&self.app.db, agent, &id).await?;
        Ok(approval.map(|approval| approval.status_at(self.clock().now())))
    }

    async fn started(
        &self,
        toolbox: &Arc<Toolbox>,
        call: &GoalCall<'_>,
        price: &AskedPrice,
        approval: Option<&str>,
        moves: &[Write],
    ) -> Result<Started, Stop> {
        let (agent, request_id) = (call.owner.agent, call.request_id());
        let db = &self.app.db;
        // Claimed by an earlier run, whose own message may be lost.
        if let Some(job) = store::load_latest(db, request_id).await? {
            queue::send_or_log(self.queues.of(job.lane()), request_id, None).await;
            return Ok(Started::Claimed);
        }
        let order = self.order(toolbox, call).await?;
        let json = serde_json::to_string(&order.input).map_err(StoreError::new)?;
        let brief = order.tool.retention < RETENTION;
        let input = StoredInput::keep(&*self.app.blobs, request_id, brief, json).await?;
        for _ in 0..CLAIM_RETRIES {
            let now = self.clock().now();
            let (account, purse) = tokio::join!(account::load(db, agent), purse::load(db, agent, call.goal));
            let (account, purse) = (account?, purse?.unwrap_or_default());
            if purse.state != PurseState::Open {
                return Ok(Started::Closed);
            }
            if purse.left < price.price {
                return Ok(Started::Poor { left: purse.left });
            }
            let caps = TokenCaps::default();
            let proposed = Proposed { agent, token: call.owner.token, caps, price: price.price };
            check_account(&order, &account, proposed)?;
            let (judged, consume) = match self.released(&order, call, &account, price.price, approval).await? {
                Ok(released) => released,
                Err(held) => return Ok(held),
            };
            let claiming =
                Claiming { agent, request_id, input: &order.input, locked: &price.locked, price: price.price, now };
            let own = (order.tool.claims)(toolbox, claiming).await?;
            let card = purse.card.min(price.price);
            let job = self.job(call, price, input.clone(), card);
            let mut claim = ClaimWrites::default();
            claim.add(ClaimPart::Job, store::create(db, &job)?);
            claim.add(ClaimPart::Receipt, receipt::create(db, &receipt_of(call, &job, judged))?);
            if let Some(count) = job.charge.count(db, job.purchase(), account.budget.as_ref(), None, now)? {
                claim.add(ClaimPart::Day, count);
            }
            for (at, write) in job.charge.take(db, job.purchase(), None, account.rules, now)?.into_iter().enumerate() {
                claim.add(if at == 0 { ClaimPart::Account } else { ClaimPart::Credits }, write);
            }
            consume.into_iter().for_each(|write| claim.add(ClaimPart::Approval, write));
            moves.iter().for_each(|write| claim.add(ClaimPart::Session, write.clone()));
            own.into_iter().for_each(|write| claim.add(ClaimPart::Own, write));
            let refusal = match db.transact(claim.writes()).await {
                Ok(()) => {
                    queue::send_or_log(self.queues.of(job.lane()), request_id, None).await;
                    return Ok(Started::Claimed);
                }
                Err(WriteError::Failed(error)) => return Err(error.into()),
                Err(refusal) => refusal,
            };
            match claim.refused_by(&refusal) {
                Some((ClaimPart::Job, _)) => return Ok(Started::Claimed),
                Some((ClaimPart::Session, _)) => return Ok(Started::Outrun),
                Some((ClaimPart::Day, old)) => {
                    let day = old.and_then(|old| db::parse(old).ok()).unwrap_or_default();
                    return Err(day_is_full(&order, &account, &day, proposed, now).into());
                }
                // The account or the purse changed, an approval was used, or a lock was taken: look again, and say why.
                Some(_) => {}
                None => return Err(StoreError::new("the claim was refused without a cause").into()),
            }
        }
        Err(StoreError::new("the purse changes faster than a claim can be made").into())
    }

    fn job(&self, call: &GoalCall<'_>, price: &AskedPrice, input: StoredInput, card: Usdc) -> Job {
        let now = self.clock().now();
        let charge = Charge {
            card,
            day: day::name(now),
            token: call.owner.token,
            purse: Some(FromPurse { goal: call.goal, amount: price.price }),
            ..Charge::default()
        };
        let job = Job::begun(call.tool, call.owner.agent, call.request_id(), input, price.price, charge, now);
        let locked = (!price.locked.is_empty()).then(|| Value::Object(price.locked.clone()).to_string());
        let due = now.plus(std::time::Duration::from_secs(60));
        Job { locked, queued_at: Some(now), due: Some(due), ..job }
    }
}

fn refused(code: &str, message: &str) -> Refused {
    Refused { code: code.to_owned(), message: message.to_owned() }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        Stop::Refused(refused)
    }
}

fn receipt_of(call: &GoalCall<'_>, job: &Job, judged: Judged) -> Receipt {
    Receipt { goal_id: Some(call.goal.goal()), ..own::new_receipt(call.tool, job, judged) }
}

impl Buyer for GoalCalls {
    fn tools(&self) -> BoxFuture<'_, Vec<&'static ToolSpec>> {
        Box::pin(async move {
            let lacking = self.app.lacking().await;
            self.app.catalog.iter().copied().filter(|tool| !tool.buys && lacking.can(tool)).collect()
        })
    }

    fn price<'a>(
        &'a self,
        toolbox: &'a Arc<Toolbox>,
        call: &'a GoalCall<'a>,
    ) -> BoxFuture<'a, Result<Result<AskedPrice, Refused>, StoreError>> {
        Box::pin(async move {
            match self.priced(toolbox, call).await {
                Ok(price) => Ok(Ok(price)),
                Err(Stop::Refused(refused)) => Ok(Err(refused)),
                Err(Stop::Failed(error)) => Err(error),
            }
        })
    }

    fn start<'a>(
        &'a self,
        toolbox: &'a Arc<Toolbox>,
        call: &'a GoalCall<'a>,
        price: &'a AskedPrice,
        approval: Option<&'a str>,
        moves: Vec<Write>,
    ) -> BoxFuture<'a, Result<Started, StoreError>> {
        Box::pin(async move {
            match self.started(toolbox, call, price, approval, &moves).await {
                Ok(started) => Ok(started),
                Err(Stop::Refused(refused)) => Ok(Started::Refused(refused)),
                Err(Stop::Failed(error)) => Err(error),
            }
        })
    }

    fn ended<'a>(&'a self, toolbox: &'a Toolbox, call: RequestId) -> BoxFuture<'a, Result<Option<Ended>, StoreError>> {
        Box::pin(async move {
            let Some(job) = store::load_latest(&self.app.db, call).await? else {
                let lost = ToolError::internal("the call's job is not stored any more");
                return Ok(Some(Ended { result: Err(lost), kept: Usdc::ZERO }));
            };
            let result = match job.outcome {
                None => return Ok(None),
                Some(Outcome::Failed) => {
                    Err(job.error.clone().unwrap_or_else(|| ToolError::internal("no reason is stored")))
                }
                Some(Outcome::Completed) => {
                    let stored = job.result.as_ref().ok_or_else(|| StoreError::new("a completed job has no result"))?;
                    let read = engine::read_result(&*toolbox.blobs, stored).await?;
                    read.ok_or_else(|| ToolError::internal("the call's result is not stored any more"))
                }
            };
            let kept = if job.outcome == Some(Outcome::Completed) {
                job.kept_if_completed()
            } else {
                job.kept.unwrap_or_default()
            };
            Ok(Some(Ended { result, kept }))
        })
    }
}
