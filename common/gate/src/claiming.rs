//! The claim: everything a purchase changes, in one transaction, and how each refusal of it is handled.

use axum::response::Response;
use base::clock::Timestamp;
use base::ids::{AgentId, RequestId, TokenId};
use base::money::Usdc;
use evm::Address;
use ledger::account::Account;
use ledger::charge::Charge;
use ledger::earning::Sold;
use ledger::fee::Split;
use ledger::payments::claim::{self, Claim};
use ledger::payments::idempotency::{self, IdempotencyKey};
use ledger::payments::policy;
use ledger::payments::quote::Quote;
use ledger::payments::verify::Signer;
use ledger::payments::wire::Payment;
use ledger::receipt::{self, Judged, Quoted, Receipt, ReceiptStatus};
use ledger::{day, hold};
use platform::auth::Caller;
use platform::auth::token::TokenCaps;
use platform::http::ApiError;
use platform::store::{StoreError, Write, WriteError, db, queue};
use serde_json::Map;
use tools::spec::{Answer, Claiming};

use super::claim_writes::{ClaimPart, ClaimWrites};
use super::order::Order;
use super::rules::{Proposed, check_account, counted, day_is_full, token_is_spent};
use super::{Gate, call_name, came_to_nothing};
use crate::approvals::gate::approval_was_used;
use crate::jobs::engine::RunMode;
use crate::jobs::input::StoredInput;
use crate::jobs::job::{self, Job, LEASE, Outcome, RETENTION, Settlement};
use crate::jobs::{own, store};
use crate::limits::{self, Class, RateLimitSlot, Subject};

/// The sweeper looks for a queued job after this long, in case its message was lost.
const QUEUE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
/// How many times a claim is tried again because the account or an idempotency key changed in the meantime.
const CLAIM_RETRIES: u32 = 10;

/// A purchase that was judged good and can be claimed.
pub struct Sale<'a> {
    order: &'a Order<'a>,
    agent: AgentId,
    wallet: Address,
    token: Option<TokenId>,
    caps: TokenCaps,
    quote: Option<Quote>,
    /// The signed payment, and how its signer was recognised.
    payment: Option<(&'a Payment, Signer)>,
    /// The transaction that already moved the money.
    paid: Option<String>,
}

impl<'a> Sale<'a> {
    /// Paid with a signature, and with the credits that its quote holds, if any.
    pub fn signed(order: &'a Order<'a>, payment: &'a Payment, signer: Signer, quote: Option<Quote>) -> Sale<'a> {
        let wallet = payment.authorization.from;
        let token = order.caller.as_ref().and_then(Caller::token);
        let caps = order.caller.as_ref().map(Caller::caps).unwrap_or_default();
        let agent = AgentId::of(wallet);
        Sale { order, agent, wallet, token, caps, quote, payment: Some((payment, signer)), paid: None }
    }

    /// Paid with credits alone.
    pub fn from_credits(order: &'a Order<'a>, caller: &Caller, quote: Option<Quote>) -> Sale<'a> {
        let (agent, wallet, token, caps) = (caller.agent, caller.wallet, caller.token(), caller.caps());
        Sale { order, agent, wallet, token, caps, quote, payment: None, paid: None }
    }

    pub fn paid_in(self, transaction: String) -> Sale<'a> {
        Sale { paid: Some(transaction), ..self }
    }

    fn price(&self) -> Usdc {
        self.quote.map_or(self.order.price, |quote| quote.amount)
    }

    /// The part of the price that credits pay, in micro-USDC.
    fn credits(&self) -> Usdc {
        match self.payment {
            Some(_) => self.quote.map_or(Usdc::ZERO, |quote| quote.credits),
            None => self.price(),
        }
    }

    fn held(&self) -> Option<hold::HoldId> {
        self.quote.filter(|quote| quote.credits > Usdc::ZERO).map(|quote| quote.uid)
    }

    fn proposed(&self) -> Proposed {
        Proposed { agent: self.agent, token: self.token, caps: self.caps, price: self.price() }
    }
}

impl Gate {
    /// Claims a purchase, then runs or queues its job and answers.
    pub(super) async fn claim(&self, sale: Sale<'_>) -> Result<Response, ApiError> {
        let order = sale.order;
        // A call whose money has already arrived goes on, even if the listing is closed or a provider is missing: the work
        // then fails and the price is credited back.
        if sale.paid.is_none() {
            self.check_open(order).await?;
        }
        let now = self.app.clock.now();
        let request_id = self.request_id(&sale);
        let class = if order.tool.expensive { Class::Expensive } else { Class::Paid };
        let turn = RateLimitSlot::now(&self.app, Subject::Agent(sale.agent), class);
        let (stopped, account, used) =
            tokio::join!(limits::stopped(&self.app), self.account(sale.agent), turn.used(&self.app));
        if let Some(reason) = stopped? {
            return Err(ApiError::ServicePaused(reason));
        }
        // Only a hint, for the headers and to skip a transaction that would fail. The claim itself counts exactly.
        let used = used.ok();
        if used.is_some_and(|used| turn.is_over(used)) {
            return self.copy_or(&sale, turn.refusal()).await;
        }
        let mut account = account?;
        let mut dead = Dead::default();
        let payments = &self.app.config.payments;
        let mut overlap = sale.paid.is_none()
            && sale.payment.is_some()
            && !order.tool.sells_credits
            // It spends the money.
            && order.tool.fee.is_none()
            // A seller's work starts only after settlement.
            && order.listing.is_none()
            && order.binding.is_none()
            && policy::may_overlap(sale.price(), policy::room(&account, payments), payments)
            && self.app.exposure.has_room(&self.app.db, payments, now).await;
        let mut kept = None;
        for _ in 0..CLAIM_RETRIES {
            let judged = self.check_policy(order, &account, (sale.wallet, sale.token), sale.price(), true).await;
            let (judged, approval) = match judged {
                Ok(judged) => judged,
                // A concurrent copy of this call may have used the approval.
                Err(refused @ ApiError::ApprovalInvalid(_)) => return self.copy_or(&sale, refused).await,
                Err(refused) => return Err(refused),
            };
            if let Err(refused) = check_account(order, &account, sale.proposed()) {
                return self.copy_or_tell(&sale, refused).await;
            }
            // On the heap: nested and unoptimised, the futures overflow a thread's stack.
            let own = match Box::pin(self.own_writes(&sale, request_id, now)).await {
                Ok(own) => own,
                Err(error @ ApiError::Unavailable(_)) => return Err(error),
                // The work finds that it does not hold what it needs.
                Err(_) if sale.paid.is_some() => Vec::new(),
                Err(refused) => return self.copy_or(&sale, refused).await,
            };
            let vouches = sale.payment.is_some() && policy::counts(&account, payments);
            let card = account.card.min(sale.credits());
            let input = match kept.take() {
                Some(input) => input,
                None => match self.keep_input(&sale, request_id).await {
                    Ok(input) => input,
                    Err(refused @ ApiError::RateLimited(_)) => return self.copy_or(&sale, refused).await,
                    Err(error) => return Err(error),
                },
            };
            let job = Self::new_job(&sale, request_id, input.clone(), card, overlap, vouches, now);
            kept = Some(input);
            let mut claim_writes = self.claim_writes(&sale, &job, &account, judged, &dead)?;
            claim_writes.add(ClaimPart::Rate, turn.count(&self.app)?);
            if let Some(approval) = approval {
                claim_writes.add(ClaimPart::Approval, approval);
            }
            if let Some(taken) = order.binding.and_then(|binding| binding.taken.clone()) {
                claim_writes.add(ClaimPart::Session, taken);
            }
            for write in own {
                claim_writes.add(ClaimPart::Own, write);
            }
            let refusal = match self.app.db.transact(claim_writes.writes()).await {
                Ok(()) => {
                    if let Some(used) = used {
                        turn.note(used);
                    }
                    return Box::pin(self.claimed(&sale, job, &account)).await;
                }
                Err(WriteError::Failed(error)) => return Err(ApiError::Unavailable(error)),
                Err(refusal) => refusal,
            };
            let Some((part, old)) = claim_writes.refused_by(&refusal) else {
                return Err(ApiError::Unavailable(StoreError::new("the claim was refused without a cause")));
            };
            match part {
                ClaimPart::Payment => {
                    // A concurrent copy of this payment was faster.
                    let old = old.ok_or_else(|| StoreError::new("a claim vanished while it was read"))?;
                    let Some((payment, signer)) = sale.payment else { return Err(ApiError::InvalidQuote) };
                    return self.repeat(order, payment, signer, &db::parse(old)?).await;
                }
                ClaimPart::Job => return self.bought_before(&sale, request_id).await,
                ClaimPart::Receipt => return Err(ApiError::Unavailable(StoreError::new("the receipt exists already"))),
                ClaimPart::Day => {
                    let day = old.and_then(|old| db::parse(old).ok()).unwrap_or_default();
                    let refused = day_is_full(order, &account, &day, sale.proposed(), now);
                    return self.copy_or_tell(&sale, refused).await;
                }
                ClaimPart::Token => {
                    let spend = old.and_then(|old| db::parse(old).ok()).unwrap_or_default();
                    return self.copy_or_tell(&sale, token_is_spent(spend, sale.proposed())).await;
                }
                ClaimPart::Credits => return Err(ApiError::InvalidQuote),
                ClaimPart::Account => match self.again(&sale, &account).await {
                    Ok(now) => account = now,
                    Err(refused) => return self.copy_or(&sale, refused).await,
                },
                ClaimPart::Name => match self.used_meanwhile(&sale).await? {
                    UsedKey::Answer(answer) => return Ok(*answer),
                    UsedKey::Dead(request_id) => dead.name = Some(request_id),
                },
                ClaimPart::Text => {
                    let old = old.ok_or_else(|| StoreError::new("a purchase vanished while it was read"))?;
                    match self.bought_meanwhile(order, &db::parse::<idempotency::KeyRecord>(old)?).await? {
                        UsedKey::Answer(answer) => return Ok(*answer),
                        UsedKey::Dead(request_id) => dead.text = Some(request_id),
                    }
                }
                ClaimPart::Rate => return self.copy_or(&sale, turn.refusal()).await,
                ClaimPart::Approval => return self.copy_or(&sale, approval_was_used()).await,
                // The session was changed, cancelled or completed in the meantime.
                ClaimPart::Session => return self.copy_or(&sale, ApiError::InvalidQuote).await,
                // The tool is asked again, and sees why.
                ClaimPart::Own => {}
                // This payer has too much unsettled work, so settle first and then work.
                ClaimPart::Exposure => overlap = false,
            }
        }
        Err(ApiError::Unavailable(StoreError::new("the account changes faster than a claim can be made")))
    }

    /// The tool's own writes in the claim.
    async fn own_writes(&self, sale: &Sale<'_>, request_id: RequestId, now: Timestamp) -> Result<Vec<Write>, ApiError> {
        let (order, none) = (sale.order, Map::new());
        let claiming = Claiming {
            agent: sale.agent,
            request_id,
            input: &order.input,
            locked: order.asked.as_ref().map_or(&none, |asked| &asked.locked),
            price: sale.price(),
            now,
        };
        (order.tool.claims)(&self.engine.toolbox, claiming).await
    }

    /// All writes of a purchase.
    fn claim_writes(
        &self,
        sale: &Sale<'_>,
        job: &Job,
        account: &Account,
        judged: Judged,
        dead: &Dead,
    ) -> Result<ClaimWrites, StoreError> {
        let now = job.created;
        let (db, config, order) = (&self.app.db, &self.app.config, sale.order);
        let mut all = ClaimWrites::default();
        let purchase = order.purchase_digest();
        if let Some((payment, _)) = sale.payment {
            let authorization = &payment.authorization;
            // A claim is kept for the full retention, even if the job is deleted sooner.
            let keep_until = now.plus(RETENTION).secs();
            let claim = Claim::new(authorization, &config.chain, purchase, job.request_id, now, keep_until);
            all.add(ClaimPart::Payment, claim::put(db, &claim, authorization, &config.chain)?);
        }
        all.add(ClaimPart::Job, store::create(db, job)?);
        all.add(ClaimPart::Receipt, receipt::create(db, &new_receipt(sale, job, judged))?);
        let budget = account.budget.as_ref();
        if let Some(count) = job.charge.count(db, job.purchase(), budget, sale.caps.daily, now)? {
            all.add(ClaimPart::Day, count);
        }
        if let Some(count) = job.charge.count_for_life(db, job.purchase(), sale.caps.lifetime)? {
            all.add(ClaimPart::Token, count);
        }
        let held = sale.held();
        let taken = job.charge.take(db, job.purchase(), held.as_ref(), account.rules, now)?;
        for (index, write) in taken.into_iter().enumerate() {
            all.add(if index == 0 { ClaimPart::Account } else { ClaimPart::Credits }, write);
        }
        if let Some(name) = call_name(order, sale.payment.map(|(payment, _)| payment), sale.agent) {
            all.add(ClaimPart::Name, idempotency::take(db, name, job.request_id, purchase, dead.name, now)?);
        }
        // Concurrent purchases of one text: only one pays.
        if let Some(listing) = order.listing.filter(|listing| listing.service.is_none()) {
            let name = format!("{}#{}", listing.soul, listing.terms);
            let name = IdempotencyKey { agent: sale.agent, tool: "text", name: &name };
            all.add(ClaimPart::Text, idempotency::take(db, name, job.request_id, purchase, dead.text, now)?);
        }
        if job.overlap {
            all.add(
                ClaimPart::Exposure,
                policy::expose(db, job.agent, job.price, policy::room(account, &config.payments))?,
            );
        }
        Ok(all)
    }

    /// After the claim: work, or queue the work, and answer.
    async fn claimed(&self, sale: &Sale<'_>, job: Job, account: &Account) -> Result<Response, ApiError> {
        let order = sale.order;
        let request_id = job.request_id;
        // The owner is warned while the work runs, so the warning adds no delay.
        let (agent, charge) = (job.agent, job.charge.clone());
        let warning = self.warn_of_budget(agent, &charge, account);
        let job = match order.tool.answer {
            Answer::Direct => tokio::join!(Box::pin(self.engine.advance(job, RunMode::Caller)), warning).0?,
            Answer::Queued => {
                queue::send_or_log(self.engine.queues.of(job.lane()), request_id, order.trace.clone()).await;
                tokio::join!(self.wait(request_id, Answer::Queued), warning).0?.unwrap_or(job)
            }
        };
        self.answer(order, sale.payment.map(|(payment, _)| payment), &job, false).await
    }

    /// The account's condition failed: its rules changed, or its credits (all, or those bought by card) were spent, since it
    /// was read. Returns the account to claim with, or the refusal.
    async fn again(&self, sale: &Sale<'_>, before: &Account) -> Result<Account, ApiError> {
        let db = &self.app.db;
        let now = self.account(sale.agent).await?;
        if now.rules != before.rules || now.card < before.card || sale.credits() == Usdc::ZERO {
            return Ok(now);
        }
        if sale.held().is_some() {
            return Err(ApiError::InvalidQuote);
        }
        if now.debt > Usdc::ZERO {
            return Err(self.insufficient(sale.order, sale.price(), &now));
        }
        if now.credits >= sale.credits() {
            return Ok(now);
        }
        // Expired quotes may still hold the missing credits.
        if now.reserved > Usdc::ZERO && hold::release(db, sale.agent, false, self.app.clock.now()).await? > Usdc::ZERO {
            return Ok(self.account(sale.agent).await?);
        }
        Err(self.insufficient(sale.order, sale.price(), &now))
    }

    /// Replays the same payment or idempotency key if a copy of the call was faster; otherwise returns `refusal`.
    async fn copy_or(&self, sale: &Sale<'_>, refusal: ApiError) -> Result<Response, ApiError> {
        let payment = sale.payment.map(|(payment, _)| payment);
        if let Some((payment, signer)) = sale.payment
            && let Some(answer) = self.answer_known(sale.order, payment, signer).await?
        {
            return Ok(answer);
        }
        let caller = Caller::by_payment(sale.wallet);
        if let Some(answer) = self.answer_named(sale.order, payment, Some(&caller)).await? {
            return Ok(answer);
        }
        if let (None, Some(quote)) = (payment, &sale.quote)
            && let Some(answer) = self.answer_quoted(sale.order, quote, &caller).await?
        {
            return Ok(answer);
        }
        Err(refusal)
    }

    /// [`Gate::copy_or`]: a copy of the call that was faster may have taken the last room under a cap. The owner is told of a cap
    /// only if the call was really refused.
    async fn copy_or_tell(&self, sale: &Sale<'_>, refusal: ApiError) -> Result<Response, ApiError> {
        let answer = self.copy_or(sale, refusal).await;
        if let Err(refused) = &answer {
            self.tell_over_budget(sale.agent, sale.token, refused).await;
        }
        answer
    }

    /// A job with this id exists: it was bought with the same quote.
    async fn bought_before(&self, sale: &Sale<'_>, request_id: RequestId) -> Result<Response, ApiError> {
        let job = self.wait(request_id, sale.order.tool.answer).await?;
        match job {
            Some(job) if job.agent == sale.agent && job.payment.is_none() && sale.payment.is_none() => {
                sale.order.check_same(&job, &*self.engine.blobs).await?;
                self.answer(sale.order, None, &job, true).await
            }
            // A copy with the same idempotency key may have bought it.
            _ => self.copy_or(sale, ApiError::InvalidQuote).await,
        }
    }

    /// The idempotency key was taken in the meantime, perhaps by a purchase that failed.
    async fn used_meanwhile(&self, sale: &Sale<'_>) -> Result<UsedKey, ApiError> {
        let payment = sale.payment.map(|(payment, _)| payment);
        let caller = Caller::by_payment(sale.wallet);
        if let Some(answer) = self.answer_named(sale.order, payment, Some(&caller)).await? {
            return Ok(UsedKey::Answer(Box::new(answer)));
        }
        let named = match call_name(sale.order, payment, sale.agent) {
            Some(name) => idempotency::load(&self.app.db, name).await?,
            None => None,
        };
        let named = named.ok_or(ApiError::RequestInProgress)?;
        let job = store::load_latest(&self.app.db, named.request_id).await?;
        if job.is_none_or(|job| came_to_nothing(&job)) {
            Ok(UsedKey::Dead(named.request_id))
        } else {
            Err(ApiError::RequestInProgress)
        }
    }

    /// This version of the text was bought in the meantime, perhaps by a purchase that failed.
    async fn bought_meanwhile(&self, order: &Order<'_>, bought: &idempotency::KeyRecord) -> Result<UsedKey, ApiError> {
        match self.wait(bought.request_id, order.tool.answer).await? {
            Some(job) if job.outcome == Some(Outcome::Failed) || came_to_nothing(&job) => {
                Ok(UsedKey::Dead(bought.request_id))
            }
            Some(job) if job.outcome.is_none() => Err(ApiError::RequestInProgress),
            Some(job) => Ok(UsedKey::Answer(Box::new(self.answer(order, None, &job, true).await?))),
            None => Ok(UsedKey::Dead(bought.request_id)),
        }
    }

    /// The id of the job that a sale buys.
    pub(super) fn request_id(&self, sale: &Sale<'_>) -> RequestId {
        match (sale.quote, sale.payment) {
            (Some(quote), _) => quote.request_id(),
            (None, Some((payment, _))) => {
                claim::request_id(&payment.authorization, &self.app.config.chain, &self.quote_key)
            }
            (None, None) => RequestId::random(),
        }
    }

    /// Stores the input of a sale that nothing has refused so far. The bytes of large ones are limited: the price of work
    /// that fails is paid back, and the blob stays.
    async fn keep_input(&self, sale: &Sale<'_>, request_id: RequestId) -> Result<StoredInput, ApiError> {
        let tool = sale.order.tool;
        let json = serde_json::to_string(&sale.order.input).map_err(StoreError::new)?;
        if StoredInput::is_large(json.len()) {
            limits::take_bytes(&self.app, Subject::Agent(sale.agent), Class::Stored, json.len()).await?;
        }
        Ok(StoredInput::keep(&*self.engine.blobs, request_id, tool.retention < RETENTION, json).await?)
    }

    /// `card` is the part of the sale's credits that was bought by card.
    fn new_job(
        sale: &Sale<'_>,
        request_id: RequestId,
        input: StoredInput,
        card: Usdc,
        overlap: bool,
        vouches: bool,
        now: Timestamp,
    ) -> Job {
        let order = sale.order;
        // A direct call leases its job from the start. A queued job waits for a worker.
        let direct = order.tool.answer == Answer::Direct;
        let patience = if direct { LEASE } else { QUEUE_PATIENCE };
        let is_paid = sale.paid.is_some() || sale.payment.is_none();
        let lane = order.listing.map_or(order.tool.lane, |listing| listing.lane);
        let sold = order.listing.map(|listing| Sold {
            soul: listing.soul.clone(),
            service: listing.service.clone(),
            terms: listing.terms,
            split: Split::of(sale.price(), listing.fee),
            kept_up_to: match sale.quote {
                Some(_) => listing.kept_up_to,
                None => listing.kept_up_to_without_quote,
            },
        });
        let charge = Charge {
            credits: sale.credits(),
            card,
            counted: counted(order.tool, sale.price()),
            day: day::name(now),
            token: sale.token,
            for_life: sale.token.is_some() && sale.caps.lifetime.is_some(),
            purse: None,
            funds: order.tool.buys,
        };
        Job {
            wallet: order.tool.buys.then_some(sale.wallet),
            locked: order.asked.as_ref().map(|asked| serde_json::Value::Object(asked.locked.clone()).to_string()),
            payment: sale.payment.map(|(payment, _)| payment.authorization.clone()),
            ordered: order.binding.map(|binding| binding.ordered.clone()),
            // The sale of a text is not a job for the seller.
            sold_by: sold.as_ref().filter(|sold| sold.service.is_some()).map(|sold| job::sold_by(&sold.soul, None)),
            sold,
            settlement: if is_paid { Settlement::Settled } else { Settlement::Claimed },
            overlap,
            vouches,
            transaction: sale.paid.clone(),
            attempt: u32::from(direct),
            queued_at: (!direct).then_some(now),
            lease_until: direct.then(|| now.plus(LEASE)),
            open: Some(job::open_shard(request_id, lane)),
            due: Some(now.plus(patience)),
            ..Job::begun(order.tool, sale.agent, request_id, input, sale.price(), charge, now)
        }
    }
}

/// Purchases that bought nothing. Their idempotency records may be overwritten.
#[derive(Default)]
struct Dead {
    name: Option<RequestId>,
    text: Option<RequestId>,
}

/// The use of a taken idempotency key.
enum UsedKey {
    Answer(Box<Response>),
    /// The key belongs to a purchase that bought nothing.
    Dead(RequestId),
}

fn new_receipt(sale: &Sale<'_>, job: &Job, judged: Judged) -> Receipt {
    let (order, now) = (sale.order, job.created);
    let settled = job.settlement == Settlement::Settled;
    Receipt {
        // Receipts use one subcategory for everything that souls sell, texts and services.
        subcategory: if order.listing.is_some() { "soul" } else { order.tool.name }.to_owned(),
        service_fee: job.sold.as_ref().map(|sold| sold.split.fee),
        quote: sale.quote.map(|quote| Quoted { id: const_hex::encode(quote.uid), expires_at: quote.expires }),
        status: if settled { ReceiptStatus::Settled } else { ReceiptStatus::Pending },
        settlement_tx: job.transaction.clone(),
        goal_id: order.goal_id.clone().or_else(|| order.tool.buys.then(|| job.request_id.goal())),
        metadata: order.metadata.clone(),
        settled_at: settled.then_some(now),
        ..own::new_receipt(order.tool, job, judged)
    }
}
