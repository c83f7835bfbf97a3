//! The gate: a paid call, from the request to the answer.
//!
//! ```text
//! read and validate ──► a name that was used: its stored answer, or 422
//!        │
//!        ▼
//! the owner's rules ──► 403
//!        │
//!        ▼
//! no payment: 402 with a quote (nothing is written; of a proven caller it is counted, and credits may be held)
//!        │
//!        ▼
//! judge the payment ──► refused: 402 with the reason (nothing is written)
//!        │                └─ known before: its stored answer, or 409
//!        ▼
//! ask chain or facilitator whether it would go through; or look for credits
//!        │
//!        ▼
//! claim, job, receipt, credits and counters in one transaction ──► somebody was faster: the stored answer
//!        │
//!        ▼
//! direct: settle, work, answer        queued: send to the queue, answer 202
//! ```
//!
//! Validation always comes before payment, and the claim before any work. [`order`] reads the call, [`rules`] asks the
//! owner's rules, [`sale`] makes the claim.

pub mod answer;
pub mod app;
pub mod approvals;
pub mod challenge;
pub mod checkout_binding;
mod claim_writes;
mod claiming;
mod dry_run;
pub mod idempotency;
pub mod insights;
pub mod jobs;
pub mod limits;
mod order;
pub mod push;
mod rules;
pub mod secrets;
pub mod stats;
pub mod status;
pub mod work;

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use base::digest::sha256;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use evm::hex0x;
use http::StatusCode;
use ledger::account::{self, Account};
use ledger::payments::claim::{self, Claim, HONOUR_FOR};
use ledger::payments::policy;
use ledger::payments::quote::{Purchase, Quote};
use ledger::payments::reason::Reason;
use ledger::payments::settle::{JobPayment, Verdict};
use ledger::payments::verify::{self, Signer, Terms};
use ledger::payments::wire::{self, Payment};
use ledger::payments::{self, idempotency::IdempotencyKey};
use ledger::{debt, hold};
use platform::auth::nonce::Use;
use platform::auth::{Caller, Scope};
use platform::http::error::{PaymentContext, Shortfall};
use platform::http::headers::CallHeaders;
use platform::http::{ApiError, headers, private_json};
use platform::net::FetchPolicy;
use platform::store::StoreError;
use ring::hmac;
use serde_json::{Map, Value};
use tools::spec::{Answer, ToolSpec};

use crate::app::App;
use crate::approvals::Notices;
use crate::jobs::engine::{self, Engine};
use crate::jobs::job::{Job, Outcome, Settlement};
use crate::jobs::store;
use crate::limits::{Class, Reader, Subject};
use challenge::Offer;
use checkout_binding::CheckoutBinding;
use claiming::Sale;
use order::Order;
pub use order::{Call, Listing, parse_body};
use rules::Proposed;

/// Largest body of a tool call (contract §0).
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// For so long a payment without a quote alone leads to what a soul sold for it.
const BARE_REPEAT: Duration = Duration::from_secs(120);

/// Sells the tools of the catalog.
pub struct Gate {
    pub app: App,
    pub engine: Engine,
    pub quote_key: hmac::Key,
    pub fetch_policy: FetchPolicy,
    /// Tells approvers of held calls.
    pub notices: Notices,
}

impl Gate {
    /// Answers a call of a paid tool.
    pub async fn call(&self, call: Call<'_>) -> Result<Response, ApiError> {
        self.call_in(call, None).await
    }

    /// The same, perhaps to complete a checkout session.
    async fn call_in(&self, call: Call<'_>, binding: Option<&CheckoutBinding>) -> Result<Response, ApiError> {
        // A proof is not needed here, but a bad one is never ignored.
        let payment = wire::payment(call.headers).map_err(|wrong| ApiError::field(wrong.header, wrong.message));
        let used_for = match &payment {
            Ok(Some(_)) => Use::Pay(call.digest()),
            Ok(None) => Use::Ask(call.digest()),
            Err(_) => Use::Once,
        };
        let caller = self.app.caller_of_call(call.headers, Scope::Read, used_for).await?;
        let payment = payment?;
        // A text is bought without a body.
        let is_text = call.listing.is_some_and(|listing| listing.service.is_none());
        let probes = is_probe(call.headers, &call.body) && !is_text;
        let is_dry_run = headers::is_dry_run(call.headers)?;
        if let Some(caller) = &caller {
            let buys = payment.is_some() || caller.token().is_some();
            if probes || is_dry_run || !buys {
                self.count_quote(caller).await?;
            }
        }
        if probes {
            return self.probe(&call).await;
        }
        let order = Order::read(&call, caller, &self.fetch_policy)?.in_checkout(binding);
        self.check_quoted(&order, payment.as_ref())?;
        if is_dry_run {
            self.check_open(&order).await?;
            return self.dry_run(order, payment.as_ref()).await;
        }
        if let Some(answer) = self.answer_named(&order, payment.as_ref(), order.caller.as_ref()).await? {
            return Ok(answer);
        }
        match payment {
            Some(payment) => {
                let answer = match payment.authorization.is_zero_cost() {
                    true => Box::pin(self.redeem_credits(&order, &payment)).await?,
                    false => Box::pin(self.redeem(&order, &payment)).await?,
                };
                match &order.caller {
                    // A fresh offer in place of an answer.
                    Some(caller) if answer.status() == StatusCode::PAYMENT_REQUIRED => self.count_quote(caller).await?,
                    _ => {}
                }
                Ok(answer)
            }
            None => match order.caller.as_ref().filter(|caller| caller.token().is_some()) {
                Some(caller) => self.spend(&order, caller).await,
                None => {
                    self.check_open(&order).await?;
                    self.quote(&order).await
                }
            },
        }
    }

    /// Refuses what its seller no longer sells, and what this deployment cannot do (contract §1.3).
    async fn check_open(&self, order: &Order<'_>) -> Result<(), ApiError> {
        order.check_open()?;
        self.check_able(order.tool, &order.input).await
    }

    async fn check_able(&self, tool: &ToolSpec, input: &Map<String, Value>) -> Result<(), ApiError> {
        let missing = self.engine.toolbox.lacks(tool, input).await?;
        missing.map_or(Ok(()), |what| Err(ApiError::NotConfigured { what }))
    }

    /// Counts what a proven caller is told of a price: its proof was written down for it, and credits may be held.
    async fn count_quote(&self, caller: &Caller) -> Result<(), ApiError> {
        limits::take(&self.app, Subject::of(caller, Class::Quote), Class::Quote).await.map(drop)
    }

    /// No bytes of body and no payment: somebody wants to know what this costs. Directories list what answers so.
    async fn probe(&self, call: &Call<'_>) -> Result<Response, ApiError> {
        let CallHeaders { max_cost, .. } = CallHeaders::read(call.headers)?;
        if let Some(listing) = call.listing {
            listing.check_open()?;
            if listing.quoted {
                return Err(ApiError::InvalidQuote);
            }
        }
        self.check_able(call.tool, &Map::new()).await?;
        let price = call.listing.map_or_else(|| call.tool.price.usual(), |listing| listing.price);
        order::check_cap(max_cost, price)?;
        let nothing = sha256(b"");
        let purchase = Purchase { tool: call.tool.name, body: &nothing };
        let (now, validity) = (self.app.clock.now(), self.app.config.payments.quote_ttl);
        let quote = Quote::offer(purchase, None, price, now, validity);
        let token = quote.to_token(&self.quote_key);
        let (config, forms, resource) = (&self.app.config, &self.app.forms, call.resource);
        let (tool, listing) = (call.tool, call.listing);
        Ok(Offer { config, forms, tool, listing, resource, quote, quote_id: &token, credits_balance: None }.unpaid())
    }

    /// Refuses a call that names a quote for something else, where it is the quote that says what is sold: otherwise any
    /// quote would buy anything at its own price.
    fn check_quoted(&self, order: &Order<'_>, payment: Option<&Payment>) -> Result<(), ApiError> {
        if !order.is_quoted() {
            return Ok(());
        }
        let token = quote_token(order, payment);
        let quote = token.and_then(|token| Quote::authentic(token, &self.quote_key)).ok_or(ApiError::InvalidQuote)?;
        let payer = payment.map(|payment| AgentId::of(payment.authorization.from));
        let agents = [payer, order.agent(), order.caller.as_ref().map(|caller| caller.agent)];
        let fits = quote.is_for(order.purchase(), agents.into_iter().flatten());
        if fits { Ok(()) } else { Err(ApiError::QuoteMismatch) }
    }

    /// A price for a call without payment. Credits of a caller that may spend them are held for it.
    async fn quote(&self, order: &Order<'_>) -> Result<Response, ApiError> {
        let Some(caller) = &order.caller else {
            order.check_cap(order.price)?;
            let quote = self.quote_to_offer(order, order.agent(), order.quote_id)?;
            return Ok(self.offer(order, quote, None, |offer| offer.unpaid()));
        };
        let account = self.account(caller.agent).await?;
        // The same quote again, if the caller names one that is still open: it may hold credits already.
        let open = match order.quote_id {
            Some(token) => self.redeem_quote(order, token, caller.agent).ok(),
            None => None,
        };
        let quote = match open {
            Some(quote) => {
                order.check_cap(quote.amount)?;
                quote
            }
            None => {
                self.check_policy(order, &account, caller.agent, order.price, false).await?;
                order.check_cap(order.price)?;
                let spendable = self.spendable(order, &account).await?;
                let credits = spendable.min(order.price);
                self.check_rules(order, &account, Proposed::by(caller, order.price, credits)).await?;
                self.holding(order, caller.agent, credits).await?
            }
        };
        let balance = Some(account.spendable());
        Ok(self.offer(order, quote, balance, |offer| offer.unpaid()))
    }

    /// An account as it stands, what it owes paid as far as it can.
    async fn account(&self, agent: AgentId) -> Result<Account, StoreError> {
        let account = account::load(&self.app.db, agent).await?;
        match account.debt {
            Usdc::ZERO => Ok(account),
            _ => debt::collect(&self.app.db, agent, account, self.app.clock.now()).await,
        }
    }

    /// The credits a quote to this caller may use.
    async fn spendable(&self, order: &Order<'_>, account: &Account) -> Result<Usdc, StoreError> {
        let Some(caller) = order.spender() else { return Ok(Usdc::ZERO) };
        let mut credits = account.spendable();
        if credits < order.price && account.reserved > Usdc::ZERO && account.debt == Usdc::ZERO {
            let released = hold::release(&self.app.db, caller.agent, false, self.app.clock.now()).await?;
            credits = credits.checked_add(released).unwrap_or(credits);
        }
        Ok(credits)
    }

    /// A quote for which so many credits are held; without, if they were spent meanwhile.
    async fn holding(&self, order: &Order<'_>, agent: AgentId, credits: Usdc) -> Result<Quote, ApiError> {
        let quote = self.quote_to_offer(order, Some(agent), order.quote_id)?;
        if credits == Usdc::ZERO {
            return Ok(quote);
        }
        let now = self.app.clock.now();
        let held = hold::place(&self.app.db, agent, &quote.uid, credits, quote.expires, now).await?;
        Ok(if held { quote.with_credits(credits) } else { quote })
    }

    /// A quote at the order's price. Terms that were quoted before are good as long as that quote, named by `token`, is: it
    /// is shown again, and never renewed.
    fn quote_to_offer(
        &self,
        order: &Order<'_>,
        agent: Option<AgentId>,
        token: Option<&str>,
    ) -> Result<Quote, ApiError> {
        if order.is_quoted() {
            let quote = token.and_then(|token| Quote::authentic(token, &self.quote_key));
            let open = quote.filter(|quote| self.app.clock.now() < quote.expires);
            return open.filter(|quote| quote.is_for(order.purchase(), agent)).ok_or(ApiError::InvalidQuote);
        }
        let payments = &self.app.config.payments;
        let validity = if order.listing.is_some() { payments.soul_quote_ttl } else { payments.quote_ttl };
        let quote = Quote::offer(order.purchase(), agent, order.price, self.app.clock.now(), validity);
        Ok(quote.under_terms(order.listing.map_or(0, |listing| listing.terms)))
    }

    /// Shows an offer.
    fn offer(
        &self,
        order: &Order<'_>,
        quote: Quote,
        credits_balance: Option<Usdc>,
        show: impl Fn(Offer<'_>) -> Response,
    ) -> Response {
        let (config, forms) = (&self.app.config, &self.app.forms);
        let token = quote.to_token(&self.quote_key);
        let (tool, listing, resource) = (order.tool, order.listing, order.resource);
        show(Offer { config, forms, tool, listing, resource, quote, quote_id: &token, credits_balance })
    }

    /// 402 for a payment that is no good, with a fresh offer.
    async fn refuse(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        amount: Usdc,
        reason: Reason,
    ) -> Result<Response, ApiError> {
        self.check_able(order.tool, &order.input).await?;
        let context = self.context(order, payment, amount);
        // A quote that was asked for by nobody in particular is anybody's; one for an agent is shown to its payer.
        let agent = order.agent().or_else(|| order.is_quoted().then(|| AgentId::of(payment.authorization.from)));
        let quote = self.quote_to_offer(order, agent, quote_token(order, Some(payment)))?;
        Ok(self.offer(order, quote, None, |offer| offer.refused(reason, &context)))
    }

    fn context(&self, order: &Order<'_>, payment: &Payment, amount: Usdc) -> PaymentContext {
        let config = &self.app.config;
        PaymentContext {
            amount,
            asset: config.chain.token.address.to_string(),
            network: config.chain.caip2(),
            pay_to: config.payments.pay_to.to_string(),
            received: payment.authorization.amount().map(Usdc::from_micro),
            quote_id: quote_token(order, Some(payment)).map(str::to_owned),
            attempt_id: hex0x(&payment.authorization.nonce),
        }
    }

    fn redeem_quote(&self, order: &Order<'_>, token: &str, payer: AgentId) -> Result<Quote, ApiError> {
        Quote::redeem(token, &self.quote_key, order.purchase(), payer, self.app.clock.now()).map_err(ApiError::from)
    }

    /// A call with a signed payment. If the chain is asked and nothing is bought, that is counted.
    async fn redeem(&self, order: &Order<'_>, payment: &Payment) -> Result<Response, ApiError> {
        let mut asks = None;
        let answer = self.redeem_asking(order, payment, &mut asks).await;
        if let Some(subject) = asks {
            limits::asked_chain_in_vain(&self.app, subject).await;
        }
        answer
    }

    /// Whose limit it counts against if the chain is asked about a payment for nothing: its source's, or, once that is used
    /// up, the payer's own, if it has paid enough before. Where many share an address, one of them does not stop the others.
    async fn may_ask_chain(&self, payer: AgentId, signer: Signer) -> Result<Subject, ApiError> {
        let source = Subject::source();
        let Err(refusal) = limits::may_ask_chain(&self.app, source) else { return Ok(source) };
        if signer != Signer::Key {
            return Err(refusal);
        }
        let account = account::load(&self.app.db, payer).await?;
        if account.settled == Usdc::ZERO || policy::counts(&account, &self.app.config.payments) {
            return Err(refusal);
        }
        limits::may_ask_chain(&self.app, Subject::Agent(payer)).map(|()| Subject::Agent(payer))
    }

    /// `asks` is who asks the chain, as long as nothing came of it.
    async fn redeem_asking(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        asks: &mut Option<Subject>,
    ) -> Result<Response, ApiError> {
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
                    Refusal::Reason(reason) => self.refuse(order, payment, order.price, reason).await,
                    Refusal::Error(error) => Err(error),
                };
            }
        };
        let amount = quote.map_or(order.price, |quote| quote.remaining());
        match self.may_ask_chain(AgentId::of(authorization.from), signer).await {
            Ok(subject) => *asks = Some(subject),
            // What was bought is told without a question.
            Err(refusal) => return self.answer_known(order, payment, signer).await?.ok_or(refusal),
        }
        if signer == Signer::Unknown {
            match self.app.chain.has_code(authorization.from).await {
                Ok(true) => {}
                Ok(false) => return self.refuse(order, payment, amount, Reason::BadSignature).await,
                Err(error) => return Err(self.could_not_check(order, payment, amount, &error)),
            }
        }
        let sale = Sale::signed(order, payment, signer, quote);
        if signer == Signer::Key {
            // The signature proves the payer as well as a proof would.
            let payer = self.payer(payment);
            if let Some(answer) = self.answer_named(order, Some(payment), Some(&payer)).await? {
                return Ok(answer);
            }
        }
        let job = self.request_id(&sale);
        let checked = self.engine.settler.check(JobPayment { authorization, job }, quote.map(|quote| quote.given));
        let refusal = match (checked.await, terms) {
            (Verdict::Good, Ok(())) => {
                let answer = Box::pin(self.claim(sale)).await;
                if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                    *asks = None;
                }
                return answer;
            }
            (Verdict::Unknown(cause), _) => {
                // What was bought is told while nobody can say more of the payment.
                let answer = self.answer_known(order, payment, signer).await?;
                return answer.ok_or_else(|| self.could_not_check(order, payment, amount, &cause));
            }
            (Verdict::AlreadyPaid { transaction }, _) => {
                if let Some(answer) = self.answer_known(order, payment, signer).await? {
                    return Ok(answer);
                }
                // A stranger broadcast it, and the money is here: it is honoured, once, while it is fresh.
                if self.may_honour(payment, signer).await? {
                    return Box::pin(self.claim(sale.paid_in(transaction))).await;
                }
                Refusal::Reason(Reason::NonceUsed)
            }
            (Verdict::PaidForAnother { transaction }, _) => Refusal::Error(ApiError::PaymentForAnother { transaction }),
            (Verdict::Good | Verdict::Refused(_), Err(late)) => late,
            (Verdict::Refused(reason), Ok(())) => Refusal::Reason(reason),
        };
        match (self.answer_known(order, payment, signer).await?, refusal) {
            (Some(answer), _) => Ok(answer),
            (None, Refusal::Reason(reason)) => self.refuse(order, payment, amount, reason).await,
            (None, Refusal::Error(error)) => Err(error),
        }
    }

    /// Everything about a payment that can be judged without asking anybody: the quote it is for, and whether its terms
    /// are met. What came too late, the authorization or the quote, is not refused here yet: it may have been broadcast
    /// in time.
    fn judge(&self, order: &Order<'_>, payment: &Payment) -> Result<(Option<Quote>, Result<(), Refusal>), Refusal> {
        let config = &self.app.config;
        let now = self.app.clock.now();
        let payer = AgentId::of(payment.authorization.from);
        verify::check_identity(payment, &config.chain, config.payments.pay_to)?;
        if order.named.is_some_and(|named| named.agent() != payer) {
            return Err(Refusal::Reason(Reason::PayerMismatch));
        }
        // Made for one quote and shown for another: it was mixed up.
        if order.quote_id.zip(payment.quote_id.as_deref()).is_some_and(|(named, made_for)| named != made_for) {
            return Err(Refusal::Error(ApiError::QuoteMismatch));
        }
        let quote = match quote_token(order, Some(payment)) {
            None => None,
            Some(token) => {
                let quote = Quote::redeem_at_any_time(token, &self.quote_key, order.purchase(), payer);
                Some(quote.map_err(|error| Refusal::Error(error.into()))?)
            }
        };
        order.check_cap(quote.map_or(order.price, |quote| quote.amount)).map_err(Refusal::Error)?;
        let amount = quote.map_or(order.price, |quote| quote.remaining());
        match verify::check_terms(payment, Terms { amount, pay_to: config.payments.pay_to }, now) {
            Ok(()) if quote.is_some_and(|quote| now >= quote.expires) => {
                Ok((quote, Err(Refusal::Error(ApiError::InvalidQuote))))
            }
            Ok(()) => Ok((quote, Ok(()))),
            Err(Reason::Expired) => Ok((quote, Err(Refusal::Reason(Reason::Expired)))),
            Err(reason) => Err(Refusal::Reason(reason)),
        }
    }

    /// A payment of nothing: the quote's credits pay for everything. Its bytes are the same on every call, so what is
    /// redeemed is the quote, and who may redeem it is who can prove to be its agent (contract §1.5).
    async fn redeem_credits(&self, order: &Order<'_>, payment: &Payment) -> Result<Response, ApiError> {
        let refuse = || self.refuse(order, payment, order.price, Reason::ZeroCostNotAllowed);
        let (Some(caller), Some(token)) = (order.spender(), quote_token(order, Some(payment))) else {
            return refuse().await;
        };
        if caller.wallet != payment.authorization.from {
            return self.refuse(order, payment, order.price, Reason::PayerMismatch).await;
        }
        let quote = Quote::redeem_at_any_time(token, &self.quote_key, order.purchase(), caller.agent)?;
        if quote.remaining() > Usdc::ZERO {
            return refuse().await;
        }
        if let Some(answer) = self.answer_quoted(order, &quote, caller).await? {
            return Ok(answer);
        }
        if self.app.clock.now() >= quote.expires {
            return Err(ApiError::InvalidQuote);
        }
        order.check_cap(quote.amount)?;
        Box::pin(self.claim(Sale::from_credits(order, caller, Some(quote)))).await
    }

    /// A call of an access token: paid from credits, at once.
    async fn spend(&self, order: &Order<'_>, caller: &Caller) -> Result<Response, ApiError> {
        let quote = match order.quote_id {
            None => None,
            Some(token) => {
                let quote = Quote::redeem_at_any_time(token, &self.quote_key, order.purchase(), caller.agent)?;
                if let Some(answer) = self.answer_quoted(order, &quote, caller).await? {
                    return Ok(answer);
                }
                if self.app.clock.now() >= quote.expires {
                    return Err(ApiError::InvalidQuote);
                }
                Some(quote)
            }
        };
        order.check_cap(quote.map_or(order.price, |quote| quote.amount))?;
        Box::pin(self.claim(Sale::from_credits(order, caller, quote))).await
    }

    /// The answer to what was bought with this quote, if anything was.
    async fn answer_quoted(
        &self,
        order: &Order<'_>,
        quote: &Quote,
        caller: &Caller,
    ) -> Result<Option<Response>, ApiError> {
        let job = self.wait(quote.request_id(), order.tool.answer).await?;
        match job {
            Some(job) if job.settlement == Settlement::Void => Ok(None),
            Some(job) if job.agent == caller.agent && job.payment.is_none() => {
                self.answer(order, None, &job, true).await.map(Some)
            }
            Some(_) => Err(ApiError::InvalidQuote),
            None => Ok(None),
        }
    }

    /// The answer to a payment that was claimed before, if it was.
    async fn answer_known(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        signer: Signer,
    ) -> Result<Option<Response>, ApiError> {
        match claim::load(&self.app.db, &payment.authorization, &self.app.config.chain).await? {
            Some(claim) if claim.reopened => Ok(None),
            Some(claim) => self.repeat(order, payment, signer, &claim).await.map(Some),
            None => Ok(None),
        }
    }

    /// The answer to a call that its caller named, if something was bought under this name.
    async fn answer_named(
        &self,
        order: &Order<'_>,
        payment: Option<&Payment>,
        caller: Option<&Caller>,
    ) -> Result<Option<Response>, ApiError> {
        let Some(request_id) = self.named(order, payment, caller).await? else { return Ok(None) };
        match self.wait(request_id, order.tool.answer).await? {
            // The job was written with the name: it is forgotten by now, or deleted.
            None => match store::load_latest(&self.app.db, request_id).await? {
                Some(job) if came_to_nothing(&job) => Ok(None),
                _ => Err(ApiError::ResultExpired),
            },
            // It came to nothing: the name is free again.
            Some(job) if came_to_nothing(&job) => Ok(None),
            Some(job) if answer::is_worth_waiting(&job, order.tool.answer) && order.tool.answer == Answer::Direct => {
                Err(ApiError::RequestInProgress)
            }
            Some(job) => self.answer(order, payment, &job, true).await.map(Some),
        }
    }

    /// What a call's name stands for, if it was used. Refused if it was used for something else.
    async fn named(
        &self,
        order: &Order<'_>,
        payment: Option<&Payment>,
        caller: Option<&Caller>,
    ) -> Result<Option<RequestId>, ApiError> {
        let Some(name) = caller.and_then(|caller| call_name(order, payment, caller.agent)) else { return Ok(None) };
        match payments::idempotency::load(&self.app.db, name).await? {
            Some(named) if named.purchase != order.purchase_digest() => Err(ApiError::IdempotencyKeyReused),
            named => Ok(named.map(|named| named.request_id)),
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
            return self.refuse(order, payment, order.price, Reason::BadSignature).await;
        }
        if !claim.is_same_payment(authorization, &self.app.config.chain) || claim.purchase != order.purchase_digest() {
            return Err(ApiError::PaymentAlreadyUsed);
        }
        // The job was written with the claim: it is forgotten by now.
        let job = self.wait(claim.request_id, order.tool.answer).await?.ok_or(ApiError::ResultExpired)?;
        if !self.may_have_again(order, payment, &job) {
            return Err(ApiError::PaymentAlreadyUsed);
        }
        self.answer(order, Some(payment), &job, true).await
    }

    /// Whether whoever shows this payment again may have what it bought. A settled payment can be read off the chain, so
    /// what a soul sold is only for who also shows what is not there: a proof of the buyer's, or the quote that was paid.
    /// A payment without a quote is enough for a moment, for clients that lost the answer.
    fn may_have_again(&self, order: &Order<'_>, payment: &Payment, job: &Job) -> bool {
        match &order.caller {
            Some(caller) if caller.agent == job.agent => return true,
            // Somebody else's proof beside it, as on the first call.
            Some(_) => return false,
            None if order.listing.is_none() => return true,
            None => {}
        }
        let quote = quote_token(order, Some(payment)).and_then(|token| Quote::authentic(token, &self.quote_key));
        let is_of_quote = quote.is_some_and(|quote| quote.request_id() == job.request_id);
        let without =
            claim::request_id(&payment.authorization, &self.app.config.chain, &self.quote_key) == job.request_id;
        is_of_quote || without && self.app.clock.now() < job.created.plus(BARE_REPEAT)
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

    /// The job once it has come as far as its caller needs, or as far as it came in the time a caller is kept waiting.
    async fn wait(&self, request_id: RequestId, answer: Answer) -> Result<Option<Job>, StoreError> {
        let deadline = tokio::time::Instant::now() + self.app.config.payments.hold;
        let mut pause = Duration::from_millis(15);
        loop {
            let now = self.app.clock.now();
            // What is to be forgotten is as good as gone: the row's own deletion comes when the database finds the time.
            let job = store::load_latest(&self.app.db, request_id).await?.filter(|job| !job.is_forgotten(now));
            let done = job.as_ref().is_none_or(|job| !answer::is_worth_waiting(job, answer));
            if done || tokio::time::Instant::now() + pause > deadline {
                return Ok(job);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// What a caller that paid for this job is told.
    async fn answer(
        &self,
        order: &Order<'_>,
        payment: Option<&Payment>,
        job: &Job,
        again: bool,
    ) -> Result<Response, ApiError> {
        let response = match (job.settlement, job.outcome, order.tool.answer) {
            // The work came first and failed: what it says is the answer, at once or to the poll.
            (Settlement::Void, _, Answer::Direct) if job.failed_unpaid() => answer::not_charged(job),
            (Settlement::Void, _, Answer::Queued) if job.failed_unpaid() => self.pending(order, payment, job),
            (Settlement::Refused, None | Some(Outcome::Failed), _) | (Settlement::Void, ..) => {
                let Some(payment) = payment else { return Err(ApiError::InvalidQuote) };
                if job.settlement == Settlement::Void {
                    return Err(self.processing(order, payment, job.price));
                }
                if let (Some(Reason::PaidForAnother), Some(transaction)) = (job.refusal(), job.transaction.clone()) {
                    return Err(ApiError::PaymentForAnother { transaction });
                }
                return self.refuse(order, payment, job.price, job.refusal().unwrap_or(Reason::Reverted)).await;
            }
            (_, Some(Outcome::Completed), Answer::Direct) if order.tool.sells_credits => {
                let account = account::load(&self.app.db, job.agent).await?;
                private_json(StatusCode::OK, &answer::topped_up(job, account.spendable(), again))
            }
            (_, Some(Outcome::Completed), Answer::Direct) => {
                let stored = job.result.as_ref().ok_or_else(|| StoreError::new("a completed job has no result"))?;
                let result = engine::read_result(&*self.engine.blobs, stored).await?.ok_or(ApiError::ResultExpired)?;
                if again {
                    limits::take_result(&self.app, job, Reader::Buyer, || result.to_string().len()).await?;
                }
                match order.listing {
                    Some(_) => private_json(StatusCode::OK, &result),
                    None if order.tool.bare => private_json(StatusCode::OK, &answer::completed_bare(job, result)),
                    None => private_json(StatusCode::OK, &answer::completed(job, result)),
                }
            }
            (_, Some(Outcome::Failed), Answer::Direct) => answer::credited_back(job),
            (_, None, Answer::Direct) | (_, _, Answer::Queued) => self.pending(order, payment, job),
        };
        Ok(answer::with_settlement(response, job, &self.app.config.chain))
    }

    /// 202, for what goes on without its caller.
    fn pending(&self, order: &Order<'_>, payment: Option<&Payment>, job: &Job) -> Response {
        let name = call_name(order, payment, job.agent).map(|name| name.name);
        answer::pending(job, order.tool, order.listing, order.origin(), name)
    }

    /// A call of a token whose credits do not suffice.
    fn insufficient(&self, order: &Order<'_>, price: Usdc, account: &Account) -> ApiError {
        ApiError::InsufficientCredits(Box::new(Shortfall {
            required: price,
            balance: account.spendable(),
            owed: account.owed(),
            held: Usdc::ZERO,
            quote_id: order.quote_id.map(str::to_owned),
            docs_url: format!("{}/", order.origin()),
        }))
    }

    /// Who signed a payment, as a caller.
    fn payer(&self, payment: &Payment) -> Caller {
        Caller::by_payment(payment.authorization.from)
    }

    fn could_not_check(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        amount: Usdc,
        cause: &dyn std::fmt::Display,
    ) -> ApiError {
        platform::http::log::failure("a payment could not be checked", cause);
        ApiError::PaymentUnchecked(Box::new(self.context(order, payment, amount)))
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

impl Refusal {
    /// The reason in a word.
    fn word(&self) -> &'static str {
        match self {
            Refusal::Reason(reason) => reason.as_str(),
            Refusal::Error(error) => error.code(),
        }
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Refusal {
        Refusal::Reason(reason)
    }
}

/// Whether a request only asks for a price: it has neither body nor payment.
pub fn is_probe(headers: &http::HeaderMap, body: &[u8]) -> bool {
    body.is_empty() && matches!(wire::payment(headers), Ok(None))
}

/// The quote that a request names, in a header or inside its payment, if it is one of ours: whatever else it says, and
/// even if it has expired. A seller's terms are those of the quote.
pub fn named_quote(headers: &http::HeaderMap, key: &hmac::Key) -> Option<Quote> {
    let token = headers::quote_id(headers).ok().flatten().map(str::to_owned);
    let token = token.or_else(|| wire::payment(headers).ok().flatten()?.quote_id);
    Quote::authentic(&token?, key)
}

/// The quote a call names: in the header, or echoed inside its payment.
fn quote_token<'a>(order: &'a Order<'_>, payment: Option<&'a Payment>) -> Option<&'a str> {
    order.quote_id.or(payment.and_then(|payment| payment.quote_id.as_deref()))
}

/// The caller's own name for its call: from the header, from the payment's extension, or from the tool's own input.
fn call_name<'a>(order: &'a Order<'_>, payment: Option<&'a Payment>, agent: AgentId) -> Option<IdempotencyKey<'a>> {
    // A tool whose own input has a key means the same by it (an identity check, contract §27).
    let own = || order.input.get("idempotency_key").and_then(Value::as_str);
    let name =
        order.idempotency_key.or_else(|| payment.and_then(|payment| payment.identifier.as_deref())).or_else(own)?;
    Some(IdempotencyKey { agent, tool: order.tool.name, name })
}

/// Nothing was bought: the payment failed before any work was done for it.
pub fn came_to_nothing(job: &Job) -> bool {
    matches!(job.settlement, Settlement::Refused | Settlement::Void) && job.outcome != Some(Outcome::Completed)
}

/// The answer of a handler that may fail.
pub fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(IntoResponse::into_response)
}
