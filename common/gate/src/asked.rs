//! Quotes whose price a tool's quoter computed. Such a quote is a token like any other; what the quoter found is stored
//! until the quote has expired, because the token has no room for it.

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use ledger::hold;
use ledger::payments::quote::Quote;
use ledger::payments::verify::{self, Signer};
use ledger::payments::wire::Payment;
use platform::auth::proof::Scope;
use platform::http::ApiError;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::own;
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools::spec::Price;

use super::asking;
use super::order::{Call, Order};
use super::{Gate, quote_token};
use crate::approvals::check_before_price;
use crate::limits::{self, Class, Subject};

/// How long a quote's row is kept after the quote has expired, in seconds.
const KEPT_AFTER_EXPIRY_SECS: i64 = 3600;

/// The quote that a call redeems or was given, with what the quoter found.
#[derive(Clone, Debug)]
pub struct Asked {
    pub token: String,
    pub quote: Quote,
    /// Shown with the quote.
    pub context: Map<String, Value>,
    /// Given to the work.
    pub locked: Map<String, Value>,
    /// The agent that alone can redeem it.
    pub agent: Option<AgentId>,
    /// The quote was made for this request.
    pub is_new: bool,
}

/// The answer to a free request for a quote.
#[derive(Clone, Debug)]
pub struct GivenQuote {
    pub quote_id: String,
    pub expires_at: Timestamp,
    /// micro-USDC
    pub price: Usdc,
    pub context: Map<String, Value>,
    /// The agent that alone can redeem it.
    pub agent: Option<AgentId>,
    /// Paths of the body's members that nothing reads.
    pub ignored: Vec<String>,
}

/// The stored row. The members are JSON, so that a reader does not depend on what a quoter stores.
#[derive(Serialize, Deserialize)]
struct Row {
    context: String,
    locked: String,
    /// The agent that the quote was given to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentId>,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

fn key(uid: &[u8; 12]) -> Key {
    Key::new(format!("QUOTE#{}", const_hex::encode(uid)), "QUOTE")
}

/// What is stored with a quote.
#[derive(Default)]
struct Kept {
    context: Map<String, Value>,
    locked: Map<String, Value>,
    agent: Option<AgentId>,
}

async fn keep(db: &Db, quote: &Quote, agent: Option<AgentId>, asked: &AskedPrice) -> Result<(), StoreError> {
    let row = Row {
        context: Value::Object(asked.context.clone()).to_string(),
        locked: Value::Object(asked.locked.clone()).to_string(),
        agent,
        expires: quote.expires.secs() + KEPT_AFTER_EXPIRY_SECS,
    };
    db.write(Write::put(&db.tables.jobs, key(&quote.uid), &row)?).await.map(drop).map_err(StoreError::new)
}

/// What is stored with a quote; `None` if its row is gone.
async fn kept(db: &Db, quote: &Quote) -> Result<Option<Kept>, StoreError> {
    let row: Option<Row> = db.get_latest(&db.tables.jobs, key(&quote.uid)).await?;
    let parse = |text: &str| serde_json::from_str(text).map_err(StoreError::new);
    row.map(|row| Ok(Kept { context: parse(&row.context)?, locked: parse(&row.locked)?, agent: row.agent })).transpose()
}

impl Gate {
    /// Answers a free request for a quote, for the tool of an asked price. The body is the one of the paid call, as far as
    /// the quote is bound to it.
    pub async fn quote_only(&self, call: Call<'_>) -> Result<GivenQuote, ApiError> {
        self.check_sold(call.tool)?;
        let caller = self.app.caller_if_proven(call.headers, Scope::Read).await?;
        match &caller {
            Some(caller) => self.count_quote(caller).await?,
            None => drop(limits::take(&self.app, Subject::source(), Class::Quote).await?),
        }
        let order = Order::read(&call, caller, &self.fetch_policy)?;
        self.check_able(order.tool, &order.input).await?;
        let asked = self.ask(&order).await?;
        order.check_cap(asked.quote.amount)?;
        Ok(GivenQuote {
            quote_id: asked.token,
            expires_at: asked.quote.expires,
            price: asked.quote.amount,
            context: asked.context,
            agent: order.agent(),
            ignored: order.ignored,
        })
    }

    /// Whether a call of a tool with an asked price names no quote.
    pub(super) fn lacks_quote(&self, order: &Order<'_>, payment: Option<&Payment>) -> bool {
        matches!(order.tool.price, Price::Asked { .. }) && quote_token(order, payment).is_none()
    }

    /// The order with the price of the quote that the call names. Without one, the quoter is asked, unless the tool's
    /// callers must ask for a quote first.
    pub(super) async fn priced<'a>(&self, order: Order<'a>, payment: Option<&Payment>) -> Result<Order<'a>, ApiError> {
        if !matches!(order.tool.price, Price::Asked { .. }) {
            return Ok(order);
        }
        let asked = match quote_token(&order, payment) {
            Some(token) => {
                let quote = Quote::authentic(token, &self.quote_key).ok_or(ApiError::InvalidQuote)?;
                // The row of an expired quote may be gone. Its purchase can still be replayed.
                let Kept { context, locked, agent: given_to } = match kept(&self.app.db, &quote).await? {
                    Some(kept) => kept,
                    None if self.app.clock.now() >= quote.expires => Default::default(),
                    None => return Err(ApiError::InvalidQuote),
                };
                // An earlier request may have held credits for this quote: its id says so only if it is the one of that 402.
                let agent = order.agent().or(payment.map(|payment| AgentId::of(payment.authorization.from)));
                let held = match agent.filter(|_| quote.credits == Usdc::ZERO) {
                    Some(agent) => hold::load(&self.app.db, agent, &quote.uid).await?,
                    None => None,
                };
                let quote = held.map_or(quote, |held| quote.with_credits(held.credits));
                let token = quote.to_token(&self.quote_key);
                Asked { token, quote, context, locked, agent: given_to, is_new: false }
            }
            None if payment.is_some() || order.tool.quote_path.is_some() => {
                return Err(ApiError::QuoteIdRequired { at: order.tool.quote_path.unwrap_or(order.tool.path()) });
            }
            None => {
                // A caller with a proof was counted already; one with a token pays at once, as a rule.
                let subject = match &order.caller {
                    None => Some(Subject::source()),
                    Some(caller) => caller.token().map(|_| Subject::of(caller, Class::Quote)),
                };
                if let Some(subject) = subject {
                    limits::take(&self.app, subject, Class::Quote).await?;
                }
                self.check_able(order.tool, &order.input).await?;
                self.ask(&order).await?
            }
        };
        (order.tool.check_quoted)(&order.input, &asked.locked)?;
        Ok(Order { price: asked.quote.amount, asked: Some(asked), ..order })
    }

    fn quoter(&self, order: &Order<'_>) -> Option<&'static Quoter> {
        self.app.catalog.quoters.iter().copied().find(|quoter| quoter.spec.name == order.tool.name)
    }

    /// Checks what the call names beside its quote, and its payer.
    pub(super) async fn check_named(&self, order: &Order<'_>, payment: Option<&Payment>) -> Result<(), ApiError> {
        let payer = payment.map(|payment| AgentId::of(payment.authorization.from));
        let agent = order.agent().or(payer).or_else(|| order.shown_to());
        let none = Map::new();
        let locked = order.asked.as_ref().map_or(&none, |asked| &asked.locked);
        (order.tool.check_payer)(&self.engine.toolbox, agent).await?;
        own::check_room(&self.engine.toolbox, order.tool).await?;
        // The payment may be somebody else's than the agent that the call names.
        let has_signed = |payment: &Payment| {
            let authorization = &payment.authorization;
            let is_payer = agent == Some(AgentId::of(authorization.from));
            is_payer && verify::signer(authorization, &self.app.config.chain) == Signer::Key
        };
        let is_proven = order.caller.is_some() || payment.is_some_and(has_signed);
        (order.tool.check_stored)(&self.engine.toolbox, &order.input, locked, agent, is_proven).await?;
        match self.quoter(order) {
            Some(quoter) => (quoter.check)(&self.engine.toolbox, &order.input, locked, agent, is_proven).await,
            None => Ok(()),
        }
    }

    /// Like [`Gate::check_named`]. What was bought before is not checked again: a replay sells nothing new.
    pub(super) async fn check_named_anew(&self, order: &Order<'_>, payment: Option<&Payment>) -> Result<(), ApiError> {
        let refused = match self.check_named(order, payment).await {
            Ok(()) => return Ok(()),
            Err(error @ ApiError::Unavailable(_)) => return Err(error),
            Err(refused) => refused,
        };
        match self.bought_already(order, payment).await {
            Ok(Some(_)) => Ok(()),
            Err(error @ ApiError::Unavailable(_)) => Err(error),
            Ok(None) | Err(_) => Err(refused),
        }
    }

    /// Asks the tool's quoter, and keeps what it found with a new quote.
    async fn ask(&self, order: &Order<'_>) -> Result<Asked, ApiError> {
        self.judge_content(order).await?;
        let quoter = self.quoter(order);
        let what = || format!("quoter for {}", order.tool.name);
        let quoter = quoter.ok_or_else(|| ApiError::NotConfigured { what: what() })?;
        if let (true, Some(caller)) = ((quoter.begins)(&order.input), &order.caller) {
            let (db, now) = (&self.app.db, self.app.clock.now());
            check_before_price(db, caller.agent, order.tool, &order.input, now).await?;
        }
        let request = QuoteRequest {
            tool: order.tool,
            input: order.input.clone(),
            agent: order.agent(),
            proven: order.caller.is_some(),
            begun: Map::new(),
        };
        let is_new = async {
            let of_caller = order.caller.as_ref().map(|caller| Subject::of(caller, Class::Begin));
            limits::take(&self.app, of_caller.unwrap_or_else(Subject::source), Class::Begin).await.map(drop)
        };
        let found = asking::ask(&self.engine.toolbox, quoter, request, order.purchase(), is_new).await?;
        let validity = self.app.config.payments.quote_validity(order.tool.quote_ttl);
        let quote = Quote::offer(order.purchase(), order.agent(), found.price, self.app.clock.now(), validity);
        keep(&self.app.db, &quote, order.agent(), &found).await?;
        let token = quote.to_token(&self.quote_key);
        Ok(Asked { token, quote, context: found.context, locked: found.locked, agent: order.agent(), is_new: true })
    }
}
