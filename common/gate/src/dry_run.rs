//! Dry run of a paid call (`X-Dry-Run: true`): the price, what would be charged and from where, and what the owner's rules
//! say. Nothing is written, held or charged, and no request goes to a chain or facilitator. A signed payment identifies the
//! caller, and its terms are judged. A call that would only replay an earlier purchase (by idempotency key, payment
//! or quote) gets that job as `stored_answer`.

use axum::response::Response;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use http::StatusCode;
use ledger::account::{self, Account};
use ledger::day;
use ledger::payments::claim;
use ledger::payments::quote::Quote;
use ledger::payments::reason::Reason;
use ledger::payments::verify::{self, Signer};
use ledger::payments::wire::Payment;
use platform::auth::Caller;
use platform::http::{ApiError, private_json};
use serde_json::{Value, json};
use tools::spec::Answer;

use super::answer::{self, is_worth_waiting};
use super::order::Order;
use super::rules::{Proposed, counted};
use super::{Gate, came_to_nothing, quote_token};
use crate::approvals::gate::refusal_if_held;
use crate::approvals::policy::Verdict;
use crate::approvals::store as approvals;
use crate::jobs::{Job, store};
use crate::limits;

impl Gate {
    pub(super) async fn dry_run(&self, mut order: Order<'_>, payment: Option<&Payment>) -> Result<Response, ApiError> {
        let mut wrong = None;
        let is_proven = order.caller.is_some();
        if let Some(payment) = payment.filter(|payment| !payment.authorization.is_zero_cost()) {
            let is_signed = verify::signer(&payment.authorization, &self.app.config.chain) == Signer::Key;
            wrong = match self.judge(&order, payment) {
                _ if !is_signed => Some(Reason::BadSignature.as_str()),
                Ok((_, Ok(()))) => None,
                Ok((_, Err(refusal))) | Err(refusal) => Some(refusal.word()),
            };
            if is_signed && order.caller.is_none() {
                order.caller = Some(Caller::by_payment(payment.authorization.from));
            }
        }
        let order = &order;
        let mut body = json!({
            "dry_run": true,
            "tool": order.tool.name,
            "price_usdc": order.price.to_string(),
            "would_be_accepted": true,
            "refusal": null,
            "stored_answer": null,
        });
        match self.bought_already(order, payment).await {
            Ok(None) => {}
            Ok(Some(job)) => {
                // A replay: the current rules do not matter.
                for member in ["from_credits_usdc", "to_sign_usdc"] {
                    body[member] = json!(Usdc::ZERO.to_string());
                }
                body["stored_answer"] = answer::accepted(&job);
                body["stored_answer"]["status"] = json!(job.status());
                return Ok(private_json(StatusCode::OK, &body));
            }
            Err(error @ ApiError::Unavailable(_)) => return Err(error),
            Err(refusal) => return Ok(refused(body, &refusal)),
        }
        self.judge_counted(order, is_proven).await?;
        self.check_named(order, payment).await?;
        if order.is_quoted() {
            let token = quote_token(order, payment);
            let payer = payment.map(|payment| AgentId::of(payment.authorization.from));
            let agent = order.agent().or(payer).or_else(|| order.shown_to());
            if let Err(refusal) = self.quote_to_offer(order, agent, token) {
                return Ok(refused(body, &refusal));
            }
        }
        let refusal = match &order.caller {
            Some(caller) => {
                let account = account::load(&self.app.db, caller.agent).await?;
                let usable = if order.spender().is_some() { account.spendable() } else { Usdc::ZERO };
                let at_once = caller.token().is_some() || payment.is_none() && order.pays_at_once().is_some();
                let credits = if at_once { order.price } else { usable.min(order.price) };
                let proposed = Proposed::by(caller, order.price);
                let today = day::load(&self.app.db, caller.agent, &day::name(self.app.clock.now())).await?;
                body["credits_balance_usdc"] = json!(account.spendable().to_string());
                body["from_credits_usdc"] = json!(credits.to_string());
                body["to_sign_usdc"] = json!(order.price.checked_sub(credits).unwrap_or_default().to_string());
                let limit = account.budget.as_ref().and_then(|budget| budget.daily_limit());
                body["budget"] = json!({
                    "counted_usdc": counted(order.tool, order.price).to_string(),
                    "spent_today_usdc": today.committed.to_string(),
                    "in_flight_usdc": today.in_flight.to_string(),
                    "daily_limit_usdc": limit.map(|limit| limit.to_string()),
                });
                let (policy, refusal) = self.policy_verdict(order, &account, caller).await?;
                body["policy"] = policy;
                match refusal {
                    Some(refusal) => Some(refusal),
                    None => self.first_refusal(order, &account, proposed, at_once).await?,
                }
            }
            None => {
                body["to_sign_usdc"] = json!(order.price.to_string());
                order.check_cap(order.price).err()
            }
        };
        if let Some(refusal) = refusal {
            return Ok(refused(body, &refusal));
        }
        if let Some(word) = wrong {
            body["would_be_accepted"] = json!(false);
            body["refusal"] = json!({"error": "payment_verification_failed", "reason": word, "status": 402});
        }
        Ok(private_json(StatusCode::OK, &body))
    }

    /// The job that this call bought before, found by idempotency key, payment or quote.
    pub(super) async fn bought_already(
        &self,
        order: &Order<'_>,
        payment: Option<&Payment>,
    ) -> Result<Option<Job>, ApiError> {
        let payer = self.proven_payer(order, payment);
        let mut request_id = self.named(order, payment, order.caller.as_ref().or(payer.as_ref())).await?;
        let is_named = request_id.is_some();
        if request_id.is_none() {
            request_id = match payment {
                Some(payment) if !payment.authorization.is_zero_cost() => self.claimed_by(order, payment).await?,
                _ => self.quoted(order, payment)?,
            };
        }
        let Some(request_id) = request_id else { return Ok(None) };
        match store::load_latest(&self.app.db, request_id).await?.filter(|job| !came_to_nothing(job)) {
            Some(job) if is_named && order.tool.answer == Answer::Direct && is_worth_waiting(&job, Answer::Direct) => {
                Err(ApiError::RequestInProgress)
            }
            job => Ok(job),
        }
    }

    /// The signer of the payment, if the call has no proof and its signature shows who signed it.
    fn proven_payer(&self, order: &Order<'_>, payment: Option<&Payment>) -> Option<Caller> {
        let payment = payment.filter(|payment| order.caller.is_none() && !payment.authorization.is_zero_cost())?;
        let is_signed = verify::signer(&payment.authorization, &self.app.config.chain) == Signer::Key;
        is_signed.then(|| self.payer(payment))
    }

    /// The job id of a quote that is paid from credits alone.
    fn quoted(&self, order: &Order<'_>, payment: Option<&Payment>) -> Result<Option<RequestId>, ApiError> {
        let Some(caller) = order.spender() else { return Ok(None) };
        let token = match payment {
            Some(_) => quote_token(order, payment),
            // Of most tools, a wallet's call without payment only asks for a price.
            None => order.named_quote().filter(|_| order.pays_at_once().is_some()),
        };
        let Some(token) = token else { return Ok(None) };
        let quote = Quote::redeem_at_any_time(token, &self.quote_key, order.purchase(), caller.agent)?;
        Ok(Some(quote.request_id()))
    }

    /// The job that this payment was claimed for before.
    async fn claimed_by(&self, order: &Order<'_>, payment: &Payment) -> Result<Option<RequestId>, ApiError> {
        let (authorization, chain) = (&payment.authorization, &self.app.config.chain);
        let claim = claim::load(&self.app.db, authorization, chain).await?.filter(|claim| !claim.reopened);
        let Some(claim) = claim else { return Ok(None) };
        if verify::signer(authorization, chain) != Signer::Key && !claim.has_signature(authorization) {
            return Ok(None);
        }
        if !claim.is_same_payment(authorization, chain) || claim.purchase != order.purchase_digest() {
            return Err(ApiError::PaymentAlreadyUsed);
        }
        Ok(Some(claim.request_id))
    }

    /// The action policy's verdict. Nobody is asked for approval.
    async fn policy_verdict(
        &self,
        order: &Order<'_>,
        account: &Account,
        caller: &Caller,
    ) -> Result<(Value, Option<ApiError>), ApiError> {
        // What buys credits is not judged.
        let policy = match account.policy && !order.tool.sells_credits {
            true => approvals::policy(&self.app.db, caller.agent).await?,
            false => None,
        };
        let Some(policy) = policy else { return Ok((json!({"verdict": "none"}), None)) };
        let seen = order.seen_by_rules();
        let call = self.gate_call(order, &seen, (caller.wallet, caller.token()), order.price);
        Ok(match policy.judge(call.tool, call.input, call.amount, call.now) {
            Verdict::Allow => (json!({"verdict": "allow"}), None),
            Verdict::Hold { rule } => {
                let refusal = refusal_if_held(&self.app.db, &call, &policy).await?;
                (json!({"verdict": "require_approval", "rule": rule.id}), refusal)
            }
            Verdict::Deny { rule } => {
                (json!({"verdict": "deny", "rule": rule.id}), Some(ApiError::ActionDenied { rule: rule.id.clone() }))
            }
        })
    }

    /// The first refusal that the paid request would meet, in the order of its checks.
    async fn first_refusal(
        &self,
        order: &Order<'_>,
        account: &Account,
        proposed: Proposed,
        at_once: bool,
    ) -> Result<Option<ApiError>, ApiError> {
        if let Some(reason) = limits::stopped(&self.app).await? {
            return Ok(Some(ApiError::ServicePaused(reason)));
        }
        if let Err(refusal) = order.check_cap(order.price) {
            return Ok(Some(refusal));
        }
        match self.check_rules(order, account, proposed).await {
            Ok(()) => {}
            Err(error @ ApiError::Unavailable(_)) => return Err(error),
            Err(refusal) => return Ok(Some(refusal)),
        }
        let short = at_once && account.spendable() < order.price;
        Ok(short.then(|| self.insufficient(order, order.price, account)))
    }
}

/// The body, with the refusal that a real call would get.
fn refused(mut body: Value, refusal: &ApiError) -> Response {
    body["would_be_accepted"] = json!(false);
    body["refusal"] = refusal.body();
    body["refusal"]["status"] = json!(refusal.status().as_u16());
    private_json(StatusCode::OK, &body)
}
