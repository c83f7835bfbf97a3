//! A model of the chain: balances, single-use authorizations, and transactions that wait, are mined, revert or vanish.
//! Also the two ways of settling on it, as in `payments::settle`, with their timeouts before and after a broadcast.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::digest::sha256_parts;
use evm::authorization::Authorization;
use evm::{Address, Word, hex0x};
use ledger::payments::reason::Reason;
use ledger::payments::settle::{Found, Intent, JobPayment, Prepared, Settled, Settler, Verdict};
use platform::store::{BoxFuture, Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::faults::Fate;

/// How an authorization was used. Nonces are random, so a nonce identifies its authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub transaction: Word,
    /// It moved money, and was not cancelled.
    pub moved: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The fee wallet, with this account nonce.
    Us(u64),
    Others,
}

struct Waiting {
    transaction: Word,
    authorization: Authorization,
    by: By,
    /// The earliest time for a block, in milliseconds.
    lands: i64,
}

#[derive(Default)]
struct State {
    balances: HashMap<Address, u64>,
    received: u64,
    uses: BTreeMap<Word, Use>,
    waiting: Vec<Waiting>,
    /// Mined transactions, and whether they moved money.
    mined: HashMap<Word, bool>,
    /// The fee wallet's next account nonce.
    count: u64,
    broadcasts: u64,
}

pub struct Chain {
    state: Mutex<State>,
    clock: Clock,
    fate: Arc<Fate>,
}

impl Chain {
    pub fn new(clock: Clock, fate: Arc<Fate>) -> Chain {
        Chain { state: Mutex::default(), clock, fate }
    }

    /// The state as of now.
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap();
        let now = self.clock.now();
        loop {
            let count = state.count;
            let ready = |one: &Waiting| {
                one.lands <= now.millis() && if let By::Us(nonce) = one.by { nonce == count } else { true }
            };
            let Some(index) = state.waiting.iter().position(ready) else { return state };
            let one = state.waiting.remove(index);
            if let By::Us(nonce) = one.by {
                state.count = nonce + 1;
                // No other transaction with this nonce can be mined any more.
                state.waiting.retain(|other| other.by != By::Us(nonce));
            }
            let moved = state.transfer(&one.authorization, one.transaction, now.secs());
            state.mined.insert(one.transaction, moved);
        }
    }

    pub fn fund(&self, wallet: Address, micro: u64) {
        *self.state().balances.entry(wallet).or_default() += micro;
    }

    /// The wallet spends everything elsewhere.
    pub fn drain(&self, wallet: Address) {
        self.state().balances.insert(wallet, 0);
    }

    /// The payer cancels an authorization, if it was not used.
    pub fn cancel(&self, authorization: &Authorization) {
        let transaction = sha256_parts(&[b"cancel", &authorization.nonce]);
        self.state().uses.entry(authorization.nonce).or_insert(Use { transaction, moved: false });
    }

    pub fn used(&self, authorization: &Authorization) -> Option<Use> {
        self.state().uses.get(&authorization.nonce).copied()
    }

    /// micro-USDC that arrived.
    pub fn received(&self) -> u64 {
        self.state().received
    }

    /// Anyone broadcasts an authorization. Returns the transaction's hash.
    pub fn broadcast(&self, authorization: &Authorization, delay: Duration) -> Word {
        let mut state = self.state();
        state.broadcasts += 1;
        let transaction = sha256_parts(&[b"transaction", &authorization.nonce, &state.broadcasts.to_be_bytes()]);
        let lands = self.clock.now().plus(delay).millis();
        let authorization = authorization.clone();
        state.waiting.push(Waiting { transaction, authorization, by: By::Others, lands });
        transaction
    }

    fn broadcast_ours(&self, authorization: &Authorization, intent: &Intent, delay: Duration) -> bool {
        let mut state = self.state();
        if intent.account_nonce < state.count {
            return false;
        }
        if !state.waiting.iter().any(|waiting| waiting.transaction == intent.hash) {
            let lands = self.clock.now().plus(delay).millis();
            let (authorization, by) = (authorization.clone(), By::Us(intent.account_nonce));
            state.waiting.push(Waiting { transaction: intent.hash, authorization, by, lands });
        }
        true
    }

    /// The hash of a waiting transaction with this authorization.
    fn waits(&self, authorization: &Authorization) -> Option<Word> {
        let state = self.state();
        let mut of = state.waiting.iter().filter(|one| one.authorization.nonce == authorization.nonce);
        of.next().map(|one| one.transaction)
    }

    /// The waiting transactions and the fee wallet's next nonce, for messages.
    pub fn describe(&self) -> String {
        let state = self.state();
        let waiting: Vec<_> = state.waiting.iter().map(|one| (one.by, hex0x(&one.transaction))).collect();
        format!("next account nonce {}, waiting {waiting:?}", state.count)
    }

    fn knows(&self, transaction: &Word) -> bool {
        self.state().waiting.iter().any(|waiting| waiting.transaction == *transaction)
    }

    /// A node forgets a waiting transaction.
    pub fn forget_one(&self) {
        let mut state = self.state();
        if !state.waiting.is_empty() && self.fate.strikes("transaction dropped by the node", 1000) {
            state.waiting.pop();
        }
    }

    /// The chain's verdict on a transfer at this moment.
    fn judge(&self, authorization: &Authorization) -> Verdict {
        let state = self.state();
        match state.uses.get(&authorization.nonce) {
            Some(used) if used.moved => Verdict::AlreadyPaid { transaction: hex0x(&used.transaction) },
            Some(_) => Verdict::Refused(Reason::NonceUsed),
            None => state.refusal(authorization, self.clock.now().secs()).map_or(Verdict::Good, Verdict::Refused),
        }
    }

    fn explain(&self, authorization: &Authorization, fallback: Reason) -> Settled {
        match self.judge(authorization) {
            Verdict::AlreadyPaid { transaction } => Settled::Yes { transaction },
            Verdict::Refused(reason) => Settled::No(reason),
            Verdict::Good | Verdict::PaidForAnother { .. } | Verdict::Unknown(_) => Settled::No(fallback),
        }
    }
}

impl State {
    fn refusal(&self, authorization: &Authorization, now: i64) -> Option<Reason> {
        let now = now.unsigned_abs();
        let balance = self.balances.get(&authorization.from).copied().unwrap_or_default();
        if now >= authorization.valid_before_secs() {
            Some(Reason::Expired)
        } else if now <= authorization.valid_after_secs() {
            Some(Reason::NotYetValid)
        } else if balance < authorization.amount().unwrap() {
            Some(Reason::InsufficientFunds)
        } else {
            None
        }
    }

    fn transfer(&mut self, authorization: &Authorization, transaction: Word, now: i64) -> bool {
        if self.uses.contains_key(&authorization.nonce) || self.refusal(authorization, now).is_some() {
            return false;
        }
        let amount = authorization.amount().unwrap();
        *self.balances.get_mut(&authorization.from).unwrap() -= amount;
        self.received += amount;
        self.uses.insert(authorization.nonce, Use { transaction, moved: true });
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Facilitator,
    Relayer,
}

/// One process's way of settling.
pub struct Model {
    pub way: Way,
    pub chain: Arc<Chain>,
    pub fate: Arc<Fate>,
    pub db: Db,
    pub clock: Clock,
}

#[derive(Serialize, Deserialize)]
struct AccountNonces {
    next: u64,
}

impl Model {
    /// The time until a transaction is mined: mostly soon, sometimes after every timeout.
    fn delay(&self) -> Duration {
        match self.fate.dice.roll(10) {
            0 => Duration::from_secs(13 + self.fate.dice.roll(60)),
            1..4 => self.fate.dice.millis(3_000),
            _ => self.fate.dice.millis(60),
        }
    }

    fn nonces(&self) -> Key {
        Key::new("RELAYER#simulation", "NONCES")
    }

    async fn prepare(&self, authorization: &Authorization) -> Result<Prepared, Settled> {
        self.fate.step(async {}).await;
        if self.way == Way::Facilitator {
            return Ok(Prepared { intent: None, allocation: None });
        }
        if self.fate.strikes("chain unavailable", 20) {
            return Err(Settled::NotSent("the chain is unavailable".to_owned()));
        }
        match self.chain.judge(authorization) {
            Verdict::Good => {}
            _ => return Err(self.chain.explain(authorization, Reason::Reverted)),
        }
        let not_sent = |error: StoreError| Settled::NotSent(error.to_string());
        let table = &self.db.tables.ledger;
        let stored = self.db.get_latest::<AccountNonces>(table, self.nonces()).await.map_err(not_sent)?;
        let nonce = stored.as_ref().map_or(0, |stored| stored.next);
        let hash = sha256_parts(&[b"ours", &authorization.nonce, &nonce.to_be_bytes()]);
        let intent = Intent {
            relayer: Address::ZERO,
            account_nonce: nonce,
            gas_limit: 90_000,
            max_fee: 2,
            priority_fee: 1,
            hash,
            replaced: Default::default(),
        };
        let write = Write::update(table, self.nonces(), "SET #next = :after");
        let write = match stored {
            Some(stored) => write.only_if("#next = :stored").bind("stored", stored.next),
            None => Ok(write.only_if("attribute_not_exists(#next)")),
        };
        let allocation = write.and_then(|write| write.bind("after", nonce + 1)).map_err(not_sent)?;
        Ok(Prepared { intent: Some(intent), allocation: Some(allocation) })
    }

    async fn submit(&self, authorization: &Authorization, intent: Option<&Intent>) -> Settled {
        self.fate.step(async {}).await;
        match (self.way, intent) {
            (Way::Facilitator, _) => self.ask_facilitator(authorization).await,
            (Way::Relayer, Some(intent)) => self.relay(authorization, intent).await,
            (Way::Relayer, None) => Settled::Dropped,
        }
    }

    async fn ask_facilitator(&self, authorization: &Authorization) -> Settled {
        let fate = &self.fate;
        if fate.strikes("facilitator not reached", 60) {
            return Settled::NotSent("the facilitator was not reached".to_owned());
        }
        if fate.strikes("facilitator timeout before broadcast", 40) {
            return Settled::Pending { transaction: None };
        }
        let transaction = match (self.chain.judge(authorization), self.chain.waits(authorization)) {
            (Verdict::AlreadyPaid { transaction }, _) => return Settled::Yes { transaction },
            // It follows its earlier broadcast, and does not repeat it.
            (_, Some(transaction)) => return Settled::Pending { transaction: Some(hex0x(&transaction)) },
            (Verdict::Refused(reason), None) => return Settled::No(reason),
            _ => self.chain.broadcast(authorization, self.delay()),
        };
        if fate.strikes("facilitator timeout after broadcast", 60) {
            return Settled::Pending { transaction: None };
        }
        self.wait_for(authorization, &[hex0x(&transaction)]).await
    }

    async fn relay(&self, authorization: &Authorization, intent: &Intent) -> Settled {
        let fate = &self.fate;
        let hash = hex0x(&intent.hash);
        if fate.strikes("chain timeout before broadcast", 40) {
            return Settled::Pending { transaction: Some(hash) };
        }
        if fate.strikes("chain refuses the transaction", 20) {
            return Settled::Pending { transaction: None };
        }
        if !self.chain.broadcast_ours(authorization, intent, self.delay()) {
            return self.after_spent_nonce(authorization, intent);
        }
        if fate.strikes("chain timeout after broadcast", 60) {
            return Settled::Pending { transaction: Some(hash) };
        }
        self.wait_for(authorization, &intent.hashes()).await
    }

    async fn wait_for(&self, authorization: &Authorization, hashes: &[String]) -> Settled {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(12);
        while tokio::time::Instant::now() < deadline {
            if let Some(settled) = self.mined(authorization, hashes) {
                return settled;
            }
            self.fate.step(tokio::time::sleep(Duration::from_millis(300))).await;
        }
        Settled::Pending { transaction: hashes.first().cloned() }
    }

    /// The result of the mined one among all transactions signed for an account nonce.
    fn mined(&self, authorization: &Authorization, hashes: &[String]) -> Option<Settled> {
        let mined = self.chain.state().mined.clone();
        let (transaction, moved) = mined.into_iter().find(|(hash, _)| hashes.contains(&hex0x(hash)))?;
        Some(match moved {
            true => Settled::Yes { transaction: hex0x(&transaction) },
            false => self.chain.explain(authorization, Reason::Reverted),
        })
    }

    fn after_spent_nonce(&self, authorization: &Authorization, intent: &Intent) -> Settled {
        self.mined(authorization, &intent.hashes()).unwrap_or(Settled::Dropped)
    }

    async fn reconcile(&self, authorization: &Authorization, intent: Option<&Intent>) -> Result<Found, StoreError> {
        self.fate.step(async {}).await;
        if self.fate.strikes("chain unavailable", 20) {
            return Err(StoreError::new("the chain is unavailable"));
        }
        if let Some(settled) = intent.and_then(|intent| self.mined(authorization, &intent.hashes())) {
            return Ok(Found::Known(settled));
        }
        let used = self.chain.used(authorization).map(|used| match used.moved {
            true => Settled::Yes { transaction: hex0x(&used.transaction) },
            false => Settled::No(Reason::NonceUsed),
        });
        let Some(intent) = intent else {
            return Ok(Found::Known(match used {
                Some(known) => known,
                None => self.reconcile_without_intent(authorization).await,
            }));
        };
        if self.chain.state().count > intent.account_nonce {
            return Ok(Found::Known(used.unwrap_or_else(|| self.after_spent_nonce(authorization, intent))));
        }
        if self.fate.strikes("fees outgrew the transaction", 300) {
            // Some nodes keep the earlier bids. Once one is mined, the others never can be.
            let mut raised = Intent { max_fee: intent.max_fee.saturating_mul(2), ..intent.clone() };
            raised.replaced.push(intent.hash);
            raised.hash = sha256_parts(&[b"raised", &intent.hash]);
            return Ok(Found::Outgrown(raised));
        }
        if self.chain.knows(&intent.hash) {
            return Ok(Found::Known(Settled::Pending { transaction: Some(hex0x(&intent.hash)) }));
        }
        Ok(Found::Known(self.submit(authorization, Some(intent)).await))
    }

    async fn reconcile_without_intent(&self, authorization: &Authorization) -> Settled {
        if authorization.valid_before_secs() + 120 < self.clock.now().secs().unsigned_abs() {
            return Settled::No(Reason::Expired);
        }
        self.submit(authorization, None).await
    }

    async fn check(&self, authorization: &Authorization) -> Verdict {
        self.fate.step(async {}).await;
        if self.fate.strikes("check without an answer", 20) {
            return Verdict::Unknown("nobody could be asked".to_owned());
        }
        self.chain.judge(authorization)
    }
}

impl Settler for Model {
    fn check<'a>(&'a self, payment: JobPayment<'a>, _: Option<Timestamp>) -> BoxFuture<'a, Verdict> {
        Box::pin(self.check(payment.authorization))
    }

    fn prepare<'a>(
        &'a self,
        payment: JobPayment<'a>,
        _lost: Option<Intent>,
    ) -> BoxFuture<'a, Result<Prepared, Settled>> {
        Box::pin(self.prepare(payment.authorization))
    }

    fn submit<'a>(&'a self, payment: JobPayment<'a>, intent: Option<&'a Intent>) -> BoxFuture<'a, Settled> {
        Box::pin(self.submit(payment.authorization, intent))
    }

    fn reconcile<'a>(
        &'a self,
        payment: JobPayment<'a>,
        intent: Option<&'a Intent>,
    ) -> BoxFuture<'a, Result<Found, StoreError>> {
        Box::pin(self.reconcile(payment.authorization, intent))
    }
}
