//! A paid call, from the request to the answer.
//!
//! ```text
//! read and validate ──► idempotency key was used: replay its answer, or 422
//!        │
//!        ▼
//! judge the texts ──► 400 (a replay is answered without it)
//!        │
//!        ▼
//! check the owner's rules ──► 403
//!        │
//!        ▼
//! no payment: 402 with a quote (an anonymous caller costs no write; a proven one is counted and may get a hold on credits)
//!        │
//!        ▼
//! judge the payment ──► refused: 402 with the reason (nothing is written)
//!        │                └─ claimed before: replay its answer, or 409
//!        ▼
//! simulate it (chain or facilitator), or check the credits
//!        │
//!        ▼
//! write claim, job, receipt, credits and counters in one transaction ──► lost a race: replay the winner's answer
//!        │
//!        ▼
//! direct: settle, work, answer        queued: send to the queue, answer 202
//! ```
//!
//! Validation always comes before payment, and the claim before any work. Start with [`Gate::call`]. `order` reads the
//! call, `content` judges its texts, `rules` checks the owner's rules, `claiming` makes the claim. `limits` has the rate
//! limits, `goal_call` is the entrance for calls that a goal makes, `jobs` what happens after the claim, `work` the model calls and programs that jobs run.

pub mod answer;
pub mod app;
pub mod approvals;
mod asked;
mod asking;
pub mod challenge;
pub mod checkout_binding;
mod claim_writes;
mod claiming;
mod content;
mod dry_run;
pub mod files;
mod goal_call;
pub mod idempotency;
pub mod insights;
pub mod jobs;
pub mod limits;
pub mod links;
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
use platform::http::{ApiError, headers, limit, private_json};
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
use crate::limits::{Class, Subject};
pub use asked::GivenQuote;
use challenge::Offer;
use checkout_binding::CheckoutBinding;
use claiming::Sale;
pub use goal_call::GoalCalls;
use order::Order;
pub use order::{Call, InputShape, Listing, empty_body, guard, ignored, parse_body};
use rules::Proposed;
use tools::files::Reader;

/// Largest body of a tool call, unless its route takes more.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Largest body of the routes that take more. Lambda takes events of 6 MiB, and a body that is not text stands in them in
/// base64, a third longer; what is left is for the headers. While a call is read and claimed, texts of this size are held
/// some six times, 25 MB; a body of many small values takes 130 MB while it is parsed. Such routes need 512 MB.
pub const LARGEST_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Time after the purchase in which a payment without a quote is enough to replay what a soul sold. Later, a replay needs
/// proof of the buyer or the quote.
const BARE_REPEAT: Duration = Duration::from_secs(120);

/// Sells the tools of the catalog, and souls' texts and services.
pub struct Gate {
    pub app: App,
    pub engine: Engine,
    pub quote_key: hmac::Key,
    pub fetch_policy: FetchPolicy,
    /// Notifies approvers of held calls.
    pub notices: Notices,
}

impl Gate {
    /// Answers a call of a paid tool or listing.
    pub async fn call(&self, call: Call<'_>) -> Result<Response, ApiError> {
        self.call_in(call, None).await
    }

    /// Refuses what this deployment does not sell, although its function has a route for it.
    fn check_sold(&self, tool: &ToolSpec) -> Result<(), ApiError> {
        let is_left_out = self.app.catalog.left_out.iter().any(|left_out| left_out.name == tool.name);
        if is_left_out { Err(ApiError::NotFound) } else { Ok(()) }
    }

    /// Like [`Gate::call`]. With a `binding`, the call completes a checkout session.
    async fn call_in(&self, call: Call<'_>, binding: Option<&CheckoutBinding>) -> Result<Response, ApiError> {
        self.check_sold(call.tool)?;
        // A proof is optional here, but an invalid one is always an error.
        let payment = wire::payment(call.headers).map_err(|wrong| ApiError::field(wrong.header, wrong.message));
        let used_for = match &payment {
            Ok(Some(payment)) => Use::Pay { call: call.digest(), request: call.paid_digest(payment) },
            Ok(None) => Use::Ask { call: call.digest() },
            Err(_) => Use::Once,
        };
        let caller = self.app.caller_of_call(call.headers, Scope::Read, used_for).await?;
        let payment = payment?;
        // Buying a soul's text needs no body, so an empty body is not a probe.
        let is_text = call.listing.is_some_and(|listing| listing.service.is_none());
        // Nor is one of a token, which pays no quote of a probe: it is told what its input lacks.
        let by_token = caller.as_ref().is_some_and(|caller| caller.token().is_some());
        let probes = is_probe(call.headers, &call.body) && !is_text && !by_token;
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
        if let Err(refused) = order.check_key() {
            // What cannot be bought at all needs no key.
            self.check_open(&order).await?;
            return Err(refused);
        }
        let ignored = order.ignored.clone();
        let answer = Box::pin(self.sell(order, payment, is_dry_run)).await?;
        Ok(if ignored.is_empty() { answer } else { answer::naming(answer, &ignored).await })
    }

    /// Answers a validated call: a price, the answer to a purchase, or a dry run's.
    async fn sell(&self, order: Order<'_>, payment: Option<Payment>, is_dry_run: bool) -> Result<Response, ApiError> {
        if !is_dry_run
            && self.lacks_quote(&order, payment.as_ref())
            && let Some(answer) = self.answer_named(&order, payment.as_ref(), order.caller.as_ref()).await?
        {
            return Ok(answer);
        }
        let order = Box::pin(self.priced(order, payment.as_ref())).await?;
        self.check_quoted(&order, payment.as_ref())?;
        if is_dry_run {
            self.check_open(&order).await?;
            return self.dry_run(order, payment.as_ref()).await;
        }
        if let Some(answer) = self.answer_named(&order, payment.as_ref(), order.caller.as_ref()).await? {
            return Ok(answer);
        }
        self.check_content(&order, payment.as_ref()).await?;
        self.check_named_anew(&order, payment.as_ref()).await?;
        match payment {
            Some(payment) => {
                let answer = match payment.authorization.is_zero_cost() {
                    true => Box::pin(self.redeem_credits(&order, &payment)).await?,
                    false => Box::pin(self.redeem(&order, &payment)).await?,
                };
                match &order.caller {
                    // The answer is another offer: count it like a quote.
                    Some(caller) if answer.status() == StatusCode::PAYMENT_REQUIRED => self.count_quote(caller).await?,
                    _ => {}
                }
                Ok(answer)
            }
            None => match order.pays_at_once() {
                // The caller has not seen this price yet.
                Some(_) if order.asked.as_ref().is_some_and(|asked| asked.is_new) => self.quote(&order).await,
                Some(caller) => self.spend(&order, caller).await,
                None => {
                    self.check_open(&order).await?;
                    self.quote(&order).await
                }
            },
        }
    }

    /// Refuses a listing that is closed, and a tool that this deployment has no provider for.
    async fn check_open(&self, order: &Order<'_>) -> Result<(), ApiError> {
        order.check_open()?;
        self.check_able(order.tool, &order.input).await
    }

    async fn check_able(&self, tool: &ToolSpec, input: &Map<String, Value>) -> Result<(), ApiError> {
        let missing = self.engine.toolbox.lacks(tool, input).await?;
        let missing = missing.map(|what| ApiError::NotConfigured { what: format!("{what}; `{}` needs it", tool.name) });
        missing.map_or(Ok(()), Err)
    }

    /// Counts a price answer to a proven caller against the `quote` limit: it costs a write (the proof's nonce), and it may
    /// hold credits.
    async fn count_quote(&self, caller: &Caller) -> Result<(), ApiError> {
        limits::take(&self.app, Subject::of(caller, Class::Quote), Class::Quote).await.map(drop)
    }

    /// Answers a request with neither body nor payment: a 402 with the tool's usual price. Directories of x402 services
    /// list only endpoints that answer such a request.
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
        let (asked, credits_balance, by_token) = (None, None, false);
        let quote_id = &token;
        let offer = Offer { config, forms, tool, listing, asked, resource, quote, quote_id, credits_balance, by_token };
        Ok(offer.unpaid())
    }

    /// If the listing's terms come from a quote, checks that the named quote is authentic and made for this purchase.
    /// Without this check, any quote could buy anything at its own price.
    fn check_quoted(&self, order: &Order<'_>, payment: Option<&Payment>) -> Result<(), ApiError> {
        if !order.is_quoted() {
            return Ok(());
        }
        let token = quote_token(order, payment);
        let quote = token.and_then(|token| Quote::authentic(token, &self.quote_key)).ok_or(ApiError::InvalidQuote)?;
        let payer = match payment {
            Some(payment) => Some(AgentId::of(payment.authorization.from)),
            None => order.shown_to(),
        };
        let agents = [payer, order.agent(), order.caller.as_ref().map(|caller| caller.agent)];
        let fits = quote.is_for(order.purchase(), agents.into_iter().flatten());
        if fits { Ok(()) } else { Err(ApiError::QuoteMismatch) }
    }

    /// 402 with a price, for a call without payment. Holds credits if the caller may spend them.
    async fn quote(&self, order: &Order<'_>) -> Result<Response, ApiError> {
        let Some(caller) = &order.caller else {
            order.check_cap(order.price)?;
            let quote = self.quote_to_offer(order, order.shown_to(), quote_token(order, None))?;
            return Ok(self.offer(order, quote, None, |offer| offer.unpaid()));
        };
        let account = self.account(caller.agent).await?;
        // An open quote that the caller names is shown again: it may hold credits already.
        let open = match quote_token(order, None) {
            Some(token) => self.redeem_quote(order, token, caller.agent).ok(),
            None => None,
        };
        // A quote from the free route holds no credits yet.
        let open = open.filter(|quote| order.asked.is_none() || quote.credits > Usdc::ZERO);
        let quote = match open {
            Some(quote) => {
                order.check_cap(quote.amount)?;
                quote
            }
            None => {
                self.check_policy(order, &account, (caller.wallet, caller.token()), order.price, false).await?;
                order.check_cap(order.price)?;
                // Whoever pays from credits at once needs no hold: it redeems the quote with credits that are free then, and
                // asking again must not keep the price twice.
                let credits = match order.pays_at_once() {
                    Some(_) => Usdc::ZERO,
                    None => self.spendable(order, &account).await?.min(order.price),
                };
                self.check_rules(order, &account, Proposed::by(caller, order.price)).await?;
                self.holding(order, caller.agent, credits).await?
            }
        };
        let balance = Some(account.spendable());
        Ok(self.offer(order, quote, balance, |offer| offer.unpaid()))
    }

    /// Loads an account. Collects its debt first, as far as its credits go.
    async fn account(&self, agent: AgentId) -> Result<Account, StoreError> {
        let account = account::load(&self.app.db, agent).await?;
        match account.debt {
            Usdc::ZERO => Ok(account),
            _ => debt::collect(&self.app.db, agent, account, self.app.clock.now()).await,
        }
    }

    /// The credits that a quote to this caller may use, in micro-USDC. If they do not cover the price, releases expired
    /// holds.
    async fn spendable(&self, order: &Order<'_>, account: &Account) -> Result<Usdc, StoreError> {
        let Some(caller) = order.spender() else { return Ok(Usdc::ZERO) };
        let mut credits = account.spendable();
        if credits < order.price && account.reserved > Usdc::ZERO && account.debt == Usdc::ZERO {
            let released = hold::release(&self.app.db, caller.agent, false, self.app.clock.now()).await?;
            credits = credits.checked_add(released).unwrap_or(credits);
        }
        Ok(credits)
    }

    /// A new quote with `credits` held for it. If they were spent in the meantime, the quote has no credits.
    async fn holding(&self, order: &Order<'_>, agent: AgentId, credits: Usdc) -> Result<Quote, ApiError> {
        let quote = self.quote_to_offer(order, Some(agent), quote_token(order, None))?;
        if credits == Usdc::ZERO {
            return Ok(quote);
        }
        let now = self.app.clock.now();
        if hold::place(&self.app.db, agent, &quote.uid, credits, quote.expires, now).await? {
            return Ok(quote.with_credits(credits));
        }
        // A repeated request for the same asked price finds its earlier hold.
        let held = match order.asked {
            Some(_) => hold::load(&self.app.db, agent, &quote.uid).await?,
            None => None,
        };
        Ok(held.map_or(quote, |held| quote.with_credits(held.credits)))
    }

    /// A quote at the order's price. If the order's terms come from a quote, returns that quote (named by `token`) while it
    /// is open; it is never renewed.
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
        Ok(order.listing.map_or(quote, |listing| quote.under_terms(listing.terms, listing.fee)))
    }

    /// Renders an offer.
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
        let asked = order.asked.as_ref().map(|asked| &asked.context);
        let by_token = order.caller.as_ref().is_some_and(|caller| caller.token().is_some());
        let quote_id = &token;
        show(Offer { config, forms, tool, listing, asked, resource, quote, quote_id, credits_balance, by_token })
    }

    /// 402 for a refused payment, with a fresh offer.
    async fn refuse(
        &self,
        order: &Order<'_>,
        payment: &Payment,
        amount: Usdc,
        reason: Reason,
    ) -> Result<Response, ApiError> {
        self.check_able(order.tool, &order.input).await?;
        let context = self.context(order, payment, amount);
        // A quote made for no agent fits anybody. A quote made for an agent is shown only to that agent, here the payer.
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

    /// A call with a signed payment. Counts against the `chain` limit if it caused a chain request and bought nothing.
    async fn redeem(&self, order: &Order<'_>, payment: &Payment) -> Result<Response, ApiError> {
        let mut asks = None;
        let answer = self.redeem_asking(order, payment, &mut asks).await;
        if let Some(subject) = asks {
            limits::asked_chain_in_vain(&self.app, subject).await;
        }
        answer
    }

    /// The subject whose `chain` limit counts this payment's chain request if it buys nothing: the source address. Once
    /// that limit is used up, it is the payer, if it signed with its own key and has settled enough payments before. So one
    /// user of a shared address cannot block the others.
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

    /// Sets `asks` to the subject that a chain request counts for, and clears it after a successful purchase.
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
                // It may have been valid when it was claimed.
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
            // The limit is used up, but a replay needs no chain request.
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
            // The signature proves the payer as well as an agent proof does.
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
                // The chain does not answer now, but a replay does not need it.
                let answer = self.answer_known(order, payment, signer).await?;
                return answer.ok_or_else(|| self.could_not_check(order, payment, amount, &cause));
            }
            (Verdict::AlreadyPaid { transaction }, _) => {
                if let Some(answer) = self.answer_known(order, payment, signer).await? {
                    return Ok(answer);
                }
                // Somebody else broadcast the transfer and the money is here. Honour it once, while it is fresh.
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

    /// Whether two ids are of one quote. They differ if credits were held for it in between.
    fn is_same_quote(&self, one: &str, other: &str) -> bool {
        let uid = |token: &str| Quote::authentic(token, &self.quote_key).map(|quote| quote.uid);
        one == other || uid(one).is_some_and(|of_one| uid(other) == Some(of_one))
    }

    /// Everything about a payment that can be judged without a network request: its quote, and whether it meets the terms.
    /// Lateness (an expired authorization or quote) is returned in the inner result and is not refused here, because the
    /// payment may have been broadcast in time.
    fn judge(&self, order: &Order<'_>, payment: &Payment) -> Result<(Option<Quote>, Result<(), Refusal>), Refusal> {
        let config = &self.app.config;
        let now = self.app.clock.now();
        let payer = AgentId::of(payment.authorization.from);
        verify::check_identity(payment, &config.chain, config.payments.pay_to)?;
        if order.named.is_some_and(|named| named.agent() != payer) {
            return Err(Refusal::Reason(Reason::PayerMismatch));
        }
        // The payment was made for one quote, and the call names another.
        let is_other = |(named, made_for): (&str, &str)| !self.is_same_quote(named, made_for);
        if order.named_quote().zip(payment.quote_id.as_deref()).is_some_and(is_other) {
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

    /// A payment of zero: the quote's credits cover the whole price. Such a payment proves nothing, because its bytes are
    /// always the same. So the quote is redeemed, and the caller must prove to be the quote's agent.
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

    /// A call with an access token: paid from credits at once.
    async fn spend(&self, order: &Order<'_>, caller: &Caller) -> Result<Response, ApiError> {
        let quote = match quote_token(order, None) {
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

    /// Replays the purchase made with this quote, if there is one.
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
                order.check_same(&job, &*self.engine.blobs).await?;
                self.answer(order, None, &job, true).await.map(Some)
            }
            Some(_) => Err(ApiError::InvalidQuote),
            None => Ok(None),
        }
    }

    /// Replays the purchase of a payment that was claimed before, if there is one.
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

    /// Replays the purchase made under the call's idempotency key, if there is one.
    async fn answer_named(
        &self,
        order: &Order<'_>,
        payment: Option<&Payment>,
        caller: Option<&Caller>,
    ) -> Result<Option<Response>, ApiError> {
        let Some(request_id) = self.named(order, payment, caller).await? else { return Ok(None) };
        match self.wait(request_id, order.tool.answer).await? {
            // The job was written together with the key, so it has expired or was deleted.
            None => match store::load_latest(&self.app.db, request_id).await? {
                Some(job) if came_to_nothing(&job) => Ok(None),
                _ => Err(ApiError::ResultExpired),
            },
            // Nothing was bought, so the key is free again.
            Some(job) if came_to_nothing(&job) => Ok(None),
            Some(job) if answer::is_worth_waiting(&job, order.tool.answer) && order.tool.answer == Answer::Direct => {
                Err(ApiError::RequestInProgress)
            }
            Some(job) => self.answer(order, payment, &job, true).await.map(Some),
        }
    }

    /// The job behind the call's idempotency key, if the key was used. An error if it was used for another purchase.
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

    /// Replays a claimed payment. An error if it was claimed for another purchase.
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
        // The job was written together with the claim, so it has expired.
        let job = self.wait(claim.request_id, order.tool.answer).await?.ok_or(ApiError::ResultExpired)?;
        if !self.may_have_again(order, payment, &job) {
            return Err(ApiError::PaymentAlreadyUsed);
        }
        self.answer(order, Some(payment), &job, true).await
    }

    /// Whether a caller that sends this payment again may get its purchase again. A settled payment is public on the chain.
    /// So for a soul's listing the caller must also prove to be the buyer, or name the quote that was paid. For
    /// [`BARE_REPEAT`] the payment alone is enough, for clients that lost the answer.
    fn may_have_again(&self, order: &Order<'_>, payment: &Payment, job: &Job) -> bool {
        match &order.caller {
            Some(caller) if caller.agent == job.agent => return true,
            // The proof is another agent's: refused, as on the first call.
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

    /// Whether a transfer that somebody else broadcast may still buy something. Two conditions: the authorization expired
    /// less than [`HONOUR_FOR`] ago (claims are kept longer, so a used payment is always recognised), and the caller shows
    /// the payer's valid signature.
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

    /// Waits until the job needs no more waiting for this kind of answer, or for at most `config.payments.hold`.
    async fn wait(&self, request_id: RequestId, answer: Answer) -> Result<Option<Job>, StoreError> {
        let deadline = tokio::time::Instant::now() + self.app.config.payments.hold;
        let mut pause = Duration::from_millis(15);
        loop {
            let now = self.app.clock.now();
            // An expired row counts as gone. DynamoDB deletes it later.
            let job = store::load_latest(&self.app.db, request_id).await?.filter(|job| !job.is_forgotten(now));
            let done = job.as_ref().is_none_or(|job| !answer::is_worth_waiting(job, answer));
            if done || tokio::time::Instant::now() + pause > deadline {
                return Ok(job);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// The answer to a caller that paid for this job. `again` marks a replay.
    async fn answer(
        &self,
        order: &Order<'_>,
        payment: Option<&Payment>,
        job: &Job,
        again: bool,
    ) -> Result<Response, ApiError> {
        limit::note_owner();
        let response = match (job.settlement, job.outcome, order.tool.answer) {
            // The work ran before settlement and failed. A direct call gets the failure now, a queued one when it polls.
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
                    Some(_) => private_json(StatusCode::OK, &answer::handed_over(job, result)),
                    None if order.tool.bare => private_json(StatusCode::OK, &answer::completed_bare(job, result)),
                    None => private_json(StatusCode::OK, &answer::completed(job, result)),
                }
            }
            (_, Some(Outcome::Failed), Answer::Direct) => answer::credited_back(job),
            (_, None, Answer::Direct) | (_, _, Answer::Queued) => self.pending(order, payment, job),
        };
        let mut response = answer::with_settlement(response, job, &self.app.config.chain);
        if again {
            response.extensions_mut().insert(Replayed);
        }
        Ok(response)
    }

    /// 202 for a job that goes on after this answer.
    fn pending(&self, order: &Order<'_>, payment: Option<&Payment>, job: &Job) -> Response {
        let name = call_name(order, payment, job.agent).map(|name| name.name);
        answer::pending(job, order.tool, &order.input, order.listing, order.origin(), name)
    }

    /// A call that is paid from credits alone, and that they do not cover.
    fn insufficient(&self, order: &Order<'_>, price: Usdc, account: &Account) -> ApiError {
        ApiError::InsufficientCredits(Box::new(Shortfall {
            required: price,
            balance: account.spendable(),
            owed: account.owed(),
            held: Usdc::ZERO,
            quote_id: order.named_quote().map(str::to_owned),
            docs_url: format!("{}/", order.origin()),
        }))
    }

    /// The signer of a payment, as a caller.
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

/// Stands in the extensions of an answer that an earlier call bought.
#[derive(Clone, Copy, Debug)]
pub struct Replayed;

/// Why a payment is refused: a reason of the x402 protocol, or another error.
enum Refusal {
    Reason(Reason),
    Error(ApiError),
}

impl Refusal {
    /// The reason or error code as a word.
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

/// Whether a request only asks for a price: no body and no payment.
pub fn is_probe(headers: &http::HeaderMap, body: &[u8]) -> bool {
    body.is_empty() && matches!(wire::payment(headers), Ok(None))
}

/// The quote that a request names in a header or inside its payment, if this service issued it. Neither its purchase nor
/// its expiry is checked: it tells which version of a seller's terms applies.
pub fn named_quote(headers: &http::HeaderMap, key: &hmac::Key) -> Option<Quote> {
    let token = headers::quote_id(headers).ok().flatten().map(str::to_owned);
    let token = token.or_else(|| wire::payment(headers).ok().flatten()?.quote_id);
    Quote::authentic(&token?, key)
}

/// The token of the quote that a call names, in the header or inside its payment.
fn quote_token<'a>(order: &'a Order<'_>, payment: Option<&'a Payment>) -> Option<&'a str> {
    let asked = order.asked.as_ref().map(|asked| asked.token.as_str());
    asked.or(order.named_quote()).or(payment.and_then(|payment| payment.quote_id.as_deref()))
}

/// The idempotency key of a call: from the header, the payment's extension, or the tool's own input.
fn call_name<'a>(order: &'a Order<'_>, payment: Option<&'a Payment>, agent: AgentId) -> Option<IdempotencyKey<'a>> {
    // A tool with an `idempotency_key` in its own input (an identity check) means the same thing.
    let own = || order.input.get("idempotency_key").and_then(Value::as_str);
    let name =
        order.idempotency_key.or_else(|| payment.and_then(|payment| payment.identifier.as_deref())).or_else(own)?;
    Some(IdempotencyKey { agent, tool: order.tool.name, name })
}

/// Whether nothing was bought: the payment failed or was released, and no work was completed.
pub fn came_to_nothing(job: &Job) -> bool {
    matches!(job.settlement, Settlement::Refused | Settlement::Void) && job.outcome != Some(Outcome::Completed)
}

/// Turns a handler's error into a response.
pub fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(IntoResponse::into_response)
}
