//! The gate: a paid call, from the request to the answer.
//!
//! ```text
//! read and validate ──► no payment: 402 with a quote (nothing is written)
//!        │
//!        ▼
//! judge the payment ──► refused: 402 with the reason (nothing is written)
//!        │                └─ known before: its stored answer, or 409
//!        ▼
//! ask chain or facilitator whether it would go through
//!        │
//!        ▼
//! claim, job and receipt in one transaction ──► somebody was faster: the stored answer
//!        │
//!        ▼
//! direct: settle, work, answer        queued: send to the queue, answer 202
//! ```
//!
//! Validation always comes before payment, and the claim before any work.

pub mod answer;
pub mod challenge;
pub mod status;

use std::time::Duration;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use ring::hmac;
use serde_json::{Map, Value};

use crate::app::App;
use crate::auth::{AgentName, Scope};
use crate::catalog::input::{self, FieldError};
use crate::catalog::{Answer, RECEIPT_FIELDS, ToolSpec};
use crate::clock::Timestamp;
use crate::digest::{canonical_json, sha256, sha256_parts};
use crate::evm::{Word, hex0x};
use crate::http::error::PaymentContext;
use crate::http::{ApiError, headers, private_json};
use crate::ids::{AgentId, ReceiptId, RequestId};
use crate::jobs::engine::{self, Engine, Patience};
use crate::jobs::job::{self, Job, LEASE, Outcome, RETENTION, Settlement};
use crate::jobs::store;
use crate::ledger::receipt::{self, ExecutionStatus, Receipt, ReceiptStatus};
use crate::money::Usdc;
use crate::net::FetchPolicy;
use crate::payments::claim::{self, Claim, HONOUR_FOR};
use crate::payments::policy;
use crate::payments::quote::{Purchase, Quote, QuoteError};
use crate::payments::reason::Reason;
use crate::payments::settle::Verdict;
use crate::payments::verify::{self, Signer, Terms};
use crate::payments::wire::{self, Payment};
use crate::store::{StoreError, WriteError, queue};
use challenge::Offer;

/// Largest body of a tool call (contract §0).
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Largest memo, decision context and value tag together: they become part of the receipt's item.
const MAX_METADATA_BYTES: usize = 16 * 1024;
/// A queued job whose message was lost is found by the sweeper after this long.
const QUEUE_PATIENCE: Duration = Duration::from_secs(60);

/// Sells the tools of the catalog.
pub struct Gate {
    pub app: App,
    pub engine: Engine,
    pub quote_key: hmac::Key,
    pub fetch_policy: FetchPolicy,
}

/// One call of a tool.
pub struct Call<'a> {
    pub tool: &'static ToolSpec,
    /// Full URL of the request.
    pub resource: &'a str,
    pub headers: &'a HeaderMap,
    pub body: Bytes,
}

/// A call whose body is what the tool takes.
struct Order<'a> {
    tool: &'static ToolSpec,
    resource: &'a str,
    named: Option<AgentName>,
    max_cost: Option<Usdc>,
    quote_id: Option<&'a str>,
    input: Map<String, Value>,
    metadata: Option<String>,
    goal_id: Option<String>,
    /// SHA-256 of the canonical body.
    body: [u8; 32],
    trace: Option<String>,
}

impl Order<'_> {
    fn purchase(&self) -> Purchase<'_> {
        Purchase { tool: self.tool.name, body: &self.body }
    }

    /// What a payment is claimed for.
    fn purchase_digest(&self) -> Word {
        sha256_parts(&[self.tool.name.as_bytes(), &self.body])
    }
}

impl Gate {
    /// Answers a call of a paid tool.
    pub async fn call(&self, call: Call<'_>) -> Result<Response, ApiError> {
        let named = headers::agent_name(call.headers)?;
        // A proof is not needed here, but a bad one is never ignored.
        let proven = self.app.caller_if_proven(call.headers, Scope::Read).await?;
        let named = proven.map(|caller| AgentName::Wallet(caller.wallet)).or(named);
        let payment = wire::payment(call.headers).map_err(|wrong| ApiError::field(wrong.header, wrong.message))?;
        if call.body.is_empty() && payment.is_none() {
            return Ok(self.probe(&call));
        }
        let order = self.order(&call, named)?;
        match payment {
            None => self.quote(&order),
            Some(payment) => self.redeem(&order, &payment).await,
        }
    }

    /// No bytes of body and no payment: somebody wants to know what this costs. Directories list what answers so.
    fn probe(&self, call: &Call<'_>) -> Response {
        let nothing = sha256(b"");
        let purchase = Purchase { tool: call.tool.name, body: &nothing };
        self.offer(call.tool, call.resource, purchase, None, |offer| offer.unpaid())
    }

    fn order<'a>(&self, call: &Call<'a>, named: Option<AgentName>) -> Result<Order<'a>, ApiError> {
        let body = parse_body(call.headers, &call.body)?;
        let input = input::validate(call.tool.input, &body).map_err(ApiError::InvalidRequest)?;
        let attached = input::validate(RECEIPT_FIELDS, &body).map_err(ApiError::InvalidRequest)?;
        let wrong = (call.tool.check)(&input, &self.fetch_policy);
        if !wrong.is_empty() {
            return Err(ApiError::InvalidRequest(wrong));
        }
        let metadata = receipt::metadata(&attached);
        if metadata.as_ref().is_some_and(|metadata| metadata.len() > MAX_METADATA_BYTES) {
            let path = if attached.contains_key("decisionContext") { "decisionContext" } else { "memo" };
            return Err(ApiError::field(
                path,
                format!("memo, decisionContext and valueTag may have {MAX_METADATA_BYTES} bytes together"),
            ));
        }
        let goal_id = attached.get("decisionContext").and_then(|context| context["goalId"].as_str()).map(str::to_owned);
        Ok(Order {
            tool: call.tool,
            resource: call.resource,
            named,
            max_cost: headers::max_cost(call.headers)?,
            quote_id: headers::quote_id(call.headers)?,
            input,
            metadata,
            goal_id,
            body: sha256(canonical_json(&Value::Object(body)).as_bytes()),
            trace: headers::text(call.headers, "x-amzn-trace-id")?.map(str::to_owned),
        })
    }

    fn quote(&self, order: &Order<'_>) -> Result<Response, ApiError> {
        check_cap(order, order.tool.price)?;
        let agent = order.named.map(|named| named.agent());
        Ok(self.offer(order.tool, order.resource, order.purchase(), agent, |offer| offer.unpaid()))
    }

    /// Makes a fresh offer and shows it.
    fn offer(
        &self,
        tool: &'static ToolSpec,
        resource: &str,
        purchase: Purchase<'_>,
        agent: Option<AgentId>,
        show: impl Fn(Offer<'_>) -> Response,
    ) -> Response {
        let config = &self.app.config;
        let quote = Quote::offer(purchase, agent, tool.price, self.app.clock.now(), config.payments.quote_ttl);
        let token = quote.to_token(&self.quote_key);
        show(Offer { config, tool, resource, amount: quote.amount, quote_id: &token, expires: quote.expires })
    }

    /// 402 for a payment that is no good, with a fresh offer.
    fn refuse(&self, order: &Order<'_>, payment: &Payment, amount: Usdc, reason: Reason) -> Response {
        let context = self.context(order, payment, amount);
        let agent = order.named.map(|named| named.agent());
        self.offer(order.tool, order.resource, order.purchase(), agent, |offer| offer.refused(reason, &context))
    }

    fn context(&self, order: &Order<'_>, payment: &Payment, amount: Usdc) -> PaymentContext {
        let config = &self.app.config;
        PaymentContext {
            amount,
            asset: config.chain.token.address.to_string(),
            network: config.chain.caip2(),
            pay_to: config.payments.pay_to.to_string(),
            received: payment.authorization.amount().map(Usdc::from_micro),
            quote_id: quote_token(order, payment).map(str::to_owned),
            attempt_id: hex0x(&payment.authorization.nonce),
        }
    }

    /// A call with a payment.
    async fn redeem(&self, order: &Order<'_>, payment: &Payment) -> Result<Response, ApiError> {
        let authorization = &payment.authorization;
        let judged = self.judge(order, payment);
        let signer = verify::signer(authorization, &self.app.config.chain);
        let (quote, terms) = match judged {
            Ok(judged) => judged,
            Err(refusal) => {
                // What is no good now may have been good when it was claimed.
                if let Some(answer) = self.answer_known(order, payment, signer).await? {
                    return Ok(answer);
                }
                return match refusal {
                    Refusal::Reason(reason) => Ok(self.refuse(order, payment, order.tool.price, reason)),
                    Refusal::Error(error) => Err(error),
                };
            }
        };
        let amount = quote.map_or(order.tool.price, |quote| quote.amount);
        if signer == Signer::Unknown {
            match self.app.chain.has_code(authorization.from).await {
                Ok(true) => {}
                Ok(false) => return Ok(self.refuse(order, payment, amount, Reason::BadSignature)),
                Err(error) => return Err(self.could_not_check(order, payment, amount, &error)),
            }
        }
        let refused = match (self.engine.settler.check(authorization).await, terms) {
            (Verdict::Good, Ok(())) => return self.claim(order, payment, quote, amount, signer, None).await,
            (Verdict::Unknown(cause), _) => return Err(self.could_not_check(order, payment, amount, &cause)),
            (Verdict::AlreadyPaid { transaction }, _) => {
                if let Some(answer) = self.answer_known(order, payment, signer).await? {
                    return Ok(answer);
                }
                // A stranger broadcast it, and the money is here: it is honoured, once, while it is fresh.
                if self.may_honour(payment, signer).await? {
                    return self.claim(order, payment, quote, amount, signer, Some(transaction)).await;
                }
                Reason::NonceUsed
            }
            (Verdict::Good, Err(reason)) | (Verdict::Refused(_), Err(reason)) | (Verdict::Refused(reason), Ok(())) => {
                reason
            }
        };
        let known = self.answer_known(order, payment, signer).await?;
        Ok(known.unwrap_or_else(|| self.refuse(order, payment, amount, refused)))
    }

    /// Everything about a payment that can be judged without asking anybody: the quote it is for, and whether its terms
    /// are met. An expired authorization is not refused here yet, because it may have been broadcast in time.
    fn judge(&self, order: &Order<'_>, payment: &Payment) -> Result<(Option<Quote>, Result<(), Reason>), Refusal> {
        let config = &self.app.config;
        let now = self.app.clock.now();
        let payer = AgentId::of(payment.authorization.from);
        verify::check_identity(payment, &config.chain, config.payments.pay_to)?;
        if order.named.is_some_and(|named| named.agent() != payer) {
            return Err(Refusal::Reason(Reason::PayerMismatch));
        }
        let quote = match quote_token(order, payment) {
            None => None,
            Some(token) => match Quote::redeem(token, &self.quote_key, order.purchase(), payer, now) {
                Ok(quote) => Some(quote),
                Err(QuoteError::Invalid) => return Err(Refusal::Error(ApiError::InvalidQuote)),
                Err(QuoteError::Mismatch) => return Err(Refusal::Error(ApiError::QuoteMismatch)),
            },
        };
        let amount = quote.map_or(order.tool.price, |quote| quote.amount);
        check_cap(order, amount).map_err(Refusal::Error)?;
        match verify::check_terms(payment, Terms { amount, pay_to: config.payments.pay_to }, now) {
            terms @ (Ok(()) | Err(Reason::Expired)) => Ok((quote, terms)),
            Err(reason) => Err(Refusal::Reason(reason)),
        }
    }

    /// The answer to a payment that was claimed before, if it was.
    async fn answer_known(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        signer: Signer,
    ) -> Result<Option<Response>, ApiError> {
        if payment.authorization.is_zero_cost() {
            return Ok(None);
        }
        match claim::load(&self.app.db, &payment.authorization, &self.app.config.chain).await? {
            Some(claim) => self.repeat(order, payment, signer, &claim).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same payment again: the stored answer, if it is for the same purchase.
    async fn repeat(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        signer: Signer,
        claim: &Claim,
    ) -> Result<Response, ApiError> {
        let authorization = &payment.authorization;
        if signer == Signer::Unknown && !claim.has_signature(authorization) {
            return Ok(self.refuse(order, payment, order.tool.price, Reason::BadSignature));
        }
        if !claim.is_same_payment(authorization, &self.app.config.chain) || claim.purchase != order.purchase_digest() {
            return Err(ApiError::PaymentAlreadyUsed);
        }
        let job = self.wait(claim.request_id, order.tool.answer).await?.ok_or(ApiError::PaymentAlreadyUsed)?;
        self.answer(order, payment, &job).await
    }

    /// Whether a transfer that somebody else broadcast may still buy something: only shortly after the authorization's
    /// own life, because claims are kept longer than that and so can never be missed; and only if this caller holds
    /// the payer's signature.
    async fn may_honour(&self, payment: &Payment, signer: Signer) -> Result<bool, ApiError> {
        let authorization = &payment.authorization;
        let until = authorization.valid_before_secs().saturating_add(HONOUR_FOR.as_secs());
        if u64::try_from(self.app.clock.now().secs()).unwrap_or_default() > until {
            return Ok(false);
        }
        if signer == Signer::Key {
            return Ok(true);
        }
        let digest = authorization.digest(&self.app.config.chain.token.domain);
        let valid = self.app.chain.is_valid_signature(authorization.from, &digest, &authorization.signature).await;
        valid.map_err(|error| ApiError::Unavailable(StoreError::new(error)))
    }

    /// Claims the payment and makes its job, in one transaction. `paid` is the transaction that moved the money already.
    async fn claim(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        quote: Option<Quote>,
        amount: Usdc,
        signer: Signer,
        paid: Option<String>,
    ) -> Result<Response, ApiError> {
        let config = &self.app.config;
        let db = &self.app.db;
        let now = self.app.clock.now();
        let request_id =
            quote.map_or_else(|| claim::request_id(&payment.authorization, &config.chain), |quote| quote.request_id());
        let mut job = self.new_job(order, payment, request_id, amount, paid, now);
        let claim =
            Claim::new(&payment.authorization, &config.chain, order.purchase_digest(), request_id, now, job.expires);
        loop {
            let mut writes = vec![
                claim::put(db, &claim, &payment.authorization, &config.chain)?,
                store::create(db, &job)?,
                receipt::create(db, &new_receipt(order, &job, now))?,
            ];
            if job.overlap {
                writes.push(policy::expose(db, job.agent, job.price, config.payments.overlap_exposure)?);
            }
            match db.transact(&writes).await {
                Ok(()) => break,
                Err(refused @ WriteError::Refused(_)) => {
                    if let Some(old) = refused.refused(0) {
                        // A copy of this payment was faster.
                        let old =
                            old.old.clone().ok_or_else(|| StoreError::new("a claim vanished while it was read"))?;
                        return self.repeat(order, payment, signer, &crate::store::db::parse(old)?).await;
                    }
                    if refused.refused(1).is_some() {
                        return Err(ApiError::InvalidQuote);
                    }
                    if !job.overlap {
                        return Err(ApiError::Unavailable(StoreError::new("the claim was refused without a cause")));
                    }
                    // Too much of this payer is unsettled: money first.
                    job.overlap = false;
                }
                Err(WriteError::Failed(error)) => return Err(ApiError::Unavailable(error)),
            }
        }
        let job = match order.tool.answer {
            Answer::Direct => self.engine.advance(job, Patience::Caller).await?,
            Answer::Queued => {
                queue::send_or_log(&*self.engine.queue, request_id, order.trace.clone()).await;
                self.wait(request_id, Answer::Queued).await?.unwrap_or(job)
            }
        };
        self.answer(order, payment, &job).await
    }

    fn new_job(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        request_id: RequestId,
        amount: Usdc,
        paid: Option<String>,
        now: Timestamp,
    ) -> Job {
        // A direct call holds its job from the start; a queued one waits for a worker.
        let direct = order.tool.answer == Answer::Direct;
        let patience = if direct { LEASE } else { QUEUE_PATIENCE };
        Job {
            request_id,
            tool: order.tool.name.to_owned(),
            agent: AgentId::of(payment.authorization.from),
            input: Value::Object(order.input.clone()).to_string(),
            price: amount,
            receipt_id: ReceiptId::of(request_id, now),
            payment: payment.authorization.clone(),
            settlement: if paid.is_some() { Settlement::Settled } else { Settlement::Claimed },
            overlap: paid.is_none() && policy::may_overlap(amount, &self.app.config.payments),
            intent: None,
            transaction: paid,
            refusal: None,
            outcome: None,
            result: None,
            error: None,
            credited: None,
            attempt: u32::from(direct),
            settled_in: 0,
            lease_until: direct.then(|| now.plus(LEASE)),
            holder: None,
            created: now,
            updated: now,
            open: Some(job::open_shard(request_id)),
            due: Some(now.plus(patience)),
            expires: now.plus(RETENTION).secs(),
        }
    }

    /// The job once it has come as far as its caller needs, or as far as it came in the time a caller is kept waiting.
    async fn wait(&self, request_id: RequestId, answer: Answer) -> Result<Option<Job>, StoreError> {
        let deadline = tokio::time::Instant::now() + self.app.config.payments.hold;
        let mut pause = Duration::from_millis(15);
        loop {
            let job = store::load_latest(&self.app.db, request_id).await?;
            let done = job.as_ref().is_none_or(|job| !answer::is_worth_waiting(job, answer));
            if done || tokio::time::Instant::now() + pause > deadline {
                return Ok(job);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// What a caller with this job's payment is told.
    async fn answer(&self, order: &Order<'_>, payment: &Payment, job: &Job) -> Result<Response, ApiError> {
        let response = match (job.settlement, job.outcome, order.tool.answer) {
            (Settlement::Refused, None | Some(Outcome::Failed), _) => {
                return Ok(self.refuse(order, payment, job.price, job.refusal().unwrap_or(Reason::Reverted)));
            }
            (Settlement::Void, ..) => return Err(self.processing(order, payment, job.price)),
            (_, Some(Outcome::Completed), Answer::Direct) => {
                let stored = job.result.as_ref().ok_or_else(|| StoreError::new("a completed job has no result"))?;
                let result = engine::read_result(&*self.engine.blobs, stored).await?;
                private_json(StatusCode::OK, &answer::completed(job, result))
            }
            (_, Some(Outcome::Failed), Answer::Direct) => answer::credited_back(job),
            (_, None, Answer::Direct) | (_, _, Answer::Queued) => answer::pending(job),
        };
        Ok(answer::with_settlement(response, job, &self.app.config.chain))
    }

    fn could_not_check(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        amount: Usdc,
        cause: &dyn std::fmt::Display,
    ) -> ApiError {
        crate::http::log::failure("a payment could not be checked", cause);
        self.processing(order, payment, amount)
    }

    fn processing(&self, order: &Order<'_>, payment: &Payment, amount: Usdc) -> ApiError {
        ApiError::PaymentProcessing(Box::new(self.context(order, payment, amount)))
    }
}

/// Why a payment is not taken: a word of the protocol, or an error of its own.
enum Refusal {
    Reason(Reason),
    Error(ApiError),
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Refusal {
        Refusal::Reason(reason)
    }
}

/// The quote a payment is for: from the header, or echoed inside the payment.
fn quote_token<'a>(order: &'a Order<'_>, payment: &'a Payment) -> Option<&'a str> {
    order.quote_id.or(payment.quote_id.as_deref())
}

fn check_cap(order: &Order<'_>, price: Usdc) -> Result<(), ApiError> {
    match order.max_cost {
        Some(cap) if price > cap => Err(ApiError::ExceedsCallerBudget { price, cap }),
        _ => Ok(()),
    }
}

fn new_receipt(order: &Order<'_>, job: &Job, now: Timestamp) -> Receipt {
    let settled = job.settlement == Settlement::Settled;
    Receipt {
        receipt_id: job.receipt_id.clone(),
        agent_id: job.agent,
        job_id: job.request_id,
        category: order.tool.category.to_owned(),
        subcategory: order.tool.name.to_owned(),
        amount: job.price,
        status: if settled { ReceiptStatus::Settled } else { ReceiptStatus::Pending },
        execution_status: ExecutionStatus::Pending,
        settlement_tx: job.transaction.clone(),
        goal_id: order.goal_id.clone(),
        metadata: order.metadata.clone(),
        created_at: now,
        settled_at: settled.then_some(now),
        revision: 1,
        seal: None,
    }
}

/// A JSON object, whatever else was sent being named.
pub fn parse_body(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    if content_type.is_some_and(|content_type| !is_json(content_type)) {
        return Err(ApiError::UnsupportedMediaType);
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(ApiError::InvalidRequest(vec![FieldError::new("", "the body must be a JSON object")])),
        Err(error) => {
            Err(ApiError::InvalidRequest(vec![FieldError::new("", format!("the body is not JSON: {error}"))]))
        }
    }
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.starts_with("application/") && essence.ends_with("+json")
}

/// The answer of a handler that may fail.
pub fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(IntoResponse::into_response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_objects() {
        let parse = |content_type: Option<&str>, body: &[u8]| {
            let mut headers = HeaderMap::new();
            if let Some(content_type) = content_type {
                headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            }
            parse_body(&headers, body).map_err(|error| error.code())
        };
        assert!(parse(None, b"{}").is_ok());
        assert!(parse(Some("application/json; charset=utf-8"), b"{}").is_ok());
        assert!(parse(Some("application/vnd.api+json"), b"{}").is_ok());
        assert_eq!(parse(Some("text/plain"), b"{}"), Err("unsupported_media_type"));
        for body in [&b"["[..], b"[]", b"null", b"{\"a\":1}x", b"\xff\xfe", "[".repeat(100_000).as_bytes()] {
            assert_eq!(parse(None, body), Err("invalid_request"));
        }
    }
}
