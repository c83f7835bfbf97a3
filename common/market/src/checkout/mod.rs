//! Checkout for agent platforms: the Agentic Commerce Protocol (ACP, version 2026-01-30), and a simpler shape under
//! `/v1/checkout_sessions`. Both are views of one stored session.
//!
//! | file | contents |
//! |---|---|
//! | [`goods`] | what is sold, and under which ids |
//! | [`request`] | request bodies, in ACP's form and in the two older ones |
//! | [`session`] | the stored session and its state |
//! | [`handlers`] | the ways to pay |
//! | [`once`] | requests with an `Idempotency-Key` |
//! | [`view`] | both response shapes |
//! | [`error`] | both error shapes |
//! | [`events`] | order webhooks to platforms |
//! | [`manifest`] | discovery document and product manifest |
//!
//! Invariant: a session is completed if and only if it was charged, and it is charged once. Its quote names the job
//! that it buys. One transaction claims the payment, makes the job and takes the session (`gate::checkout_binding`), on
//! condition that the session still has the version that was read. Whether it was paid is read from the job, so nothing
//! has to be marked afterwards.
//!
//! | crash | state afterwards |
//! |---|---|
//! | before the claim | the session is unchanged; the same request may be sent again |
//! | after the claim, before settlement | `complete_in_progress`: the sweeper settles the job |
//! | after settlement, before the response | `completed`; the same request, or a read, returns it |

pub mod error;
pub mod events;
pub mod goods;
pub mod handlers;
pub mod manifest;
pub mod once;
pub mod request;
pub mod session;
pub mod view;

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use base::ids::random_uuid;
use base::input::FieldError;
use gate::app::App;
use gate::checkout_binding::CheckoutBinding;
use gate::jobs::Job;
use gate::secrets::with_platforms;
use gate::{Call, Gate};
use http::HeaderName;
use ledger::payments::wire;
use platform::config::Config;
use platform::connections::Connections;
use platform::http::{ApiError, MarketError, log};
use platform::store::{StoreError, WriteError};
use serde_json::{Map, Value, json};
use tools::Runner;
use tools::spec::Catalog;
use uuid::Uuid;

use crate::Market;
use error::{CheckoutError, json_path};
use goods::{Found, Goods};
use request::{Asked, Cart, Credential};
use schema::under;
use session::{Message, Price, Session, State, VALIDITY};
use view::View;

/// The supported version of ACP.
pub const VERSION: &str = "2026-01-30";
/// The currency of every price.
pub const CURRENCY: &str = "usd";
/// Longer headers are not repeated in an answer.
pub const MAX_ECHOED_BYTES: usize = 255;
/// Retries of a change when another writer changed the session first.
const CHANGE_RETRIES: u32 = 5;

/// Sells to agent platforms.
pub struct Checkout {
    pub app: App,
    /// Sells our own tools.
    pub gate: Arc<Gate>,
    /// Sells souls' texts and services.
    pub market: Arc<Market>,
    manifest: manifest::CachedManifest,
}

/// A session as it is now.
pub struct Current {
    pub session: Session,
    pub job: Option<Job>,
    pub state: State,
}

/// One request to complete a session.
pub struct Attempt<'a> {
    pub credential: &'a Credential,
    /// The stored form of the request's idempotency key (a digest).
    pub name: Option<&'a str>,
    pub resource: &'a str,
    /// `https://host`
    pub origin: &'a str,
    pub trace: Option<&'a HeaderValue>,
    /// `X-Approval-Id`: the approval for a purchase that was held.
    pub approval: Option<&'a HeaderValue>,
}

impl Checkout {
    pub fn new(gate: Arc<Gate>, market: Arc<Market>) -> Checkout {
        Checkout { app: gate.app.clone(), gate, market, manifest: manifest::CachedManifest::default() }
    }

    /// The checkout of a deployed function. It can enqueue tools and services.
    pub async fn open(
        config: Config,
        catalog: &'static Catalog,
        runners: &'static [&'static Runner],
    ) -> Result<Checkout, StoreError> {
        let connections = Connections::open(&config)?;
        let config = Arc::new(with_platforms(config, &connections.signed).await?);
        let gate = Gate::open(&connections, config.clone(), catalog, runners).await?;
        let market = Market::open(&connections, config, catalog, runners).await?;
        Ok(Checkout::new(Arc::new(gate), Arc::new(market)))
    }

    /// The current session. Not found if it belongs to another platform.
    pub async fn find_session(&self, id: &str, platform: Uuid) -> Result<Current, CheckoutError> {
        let id: Uuid = id.parse().map_err(|_| CheckoutError::NotFound)?;
        let session = session::load(&self.app.db, id, platform).await?.ok_or(CheckoutError::NotFound)?;
        self.current(session).await
    }

    async fn current(&self, session: Session) -> Result<Current, CheckoutError> {
        let job = session::job(&self.app.db, &session).await?;
        let state = session.state(job.as_ref(), self.app.clock.now());
        Ok(Current { session, job, state })
    }

    /// Creates a session. If the id exists already, returns that session.
    pub async fn create(&self, asked: Asked, platform: Uuid, id: Option<Uuid>) -> Result<Current, CheckoutError> {
        let now = self.app.clock.now();
        let Some(cart) = asked.cart else { return Err(CheckoutError::Missing(vec!["line_items".to_owned()])) };
        let expires_at = now.plus(VALIDITY);
        let mut session = Session {
            id: id.unwrap_or_else(random_uuid),
            platform,
            version: 1,
            item: String::new(),
            quantity: 1,
            input: "{}".to_owned(),
            offer: None,
            price: None,
            messages: Vec::new(),
            said: json!(asked.said).to_string(),
            canceled: false,
            attempted: false,
            attempt: None,
            created: now,
            updated: now,
            expires_at,
            expires: Session::kept_until(expires_at),
        };
        self.fill(&mut session, &cart, asked.input, asked.currency.as_deref()).await?;
        match self.app.db.write(session.create(&self.app.db)?).await {
            Ok(_) => self.current(session).await,
            Err(WriteError::Refused(_)) => {
                let made = session::load(&self.app.db, session.id, platform).await?.ok_or(CheckoutError::NotFound)?;
                self.current(made).await
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// Changes the session's content. Everything is priced again, and earlier quotes become invalid.
    pub async fn update(&self, asked: Asked, id: &str, platform: Uuid) -> Result<Current, CheckoutError> {
        for _ in 0..CHANGE_RETRIES {
            let Current { mut session, state, .. } = self.find_session(id, platform).await?;
            check_open(state)?;
            if asked.option_ids.iter().any(|option| option != view::DIGITAL) {
                let wrong = format!("must be {}, the one option there is", view::DIGITAL);
                let path = "selected_fulfillment_options.0.option_id";
                return Err(CheckoutError::Invalid(vec![FieldError::new(path, wrong)]));
            }
            let now = self.app.clock.now();
            let mut said: Map<String, Value> = serde_json::from_str(&session.said).unwrap_or_default();
            said.extend(asked.said.clone());
            session.said = Value::Object(said).to_string();
            let cart = asked.cart.clone().unwrap_or_else(|| Cart {
                item: session.item.clone(),
                quantity: session.quantity,
                input: None,
                second: None,
                expected_cents: None,
            });
            let before: Map<String, Value> = serde_json::from_str(&session.input).unwrap_or_default();
            let keeps_input = cart.item == session.item && cart.input.is_none();
            let input = asked.input.clone().or_else(|| keeps_input.then_some(before));
            self.fill(&mut session, &cart, input, asked.currency.as_deref()).await?;
            session.version += 1;
            session.attempted = false;
            session.attempt = None;
            session.updated = now;
            match self.app.db.write(session.change(&self.app.db)?).await {
                Ok(_) => return self.current(session).await,
                Err(WriteError::Refused(_)) => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Err(changes_too_fast())
    }

    /// Cancels a session that was not paid.
    pub async fn cancel(&self, id: &str, platform: Uuid) -> Result<Current, CheckoutError> {
        for _ in 0..CHANGE_RETRIES {
            let Current { mut session, state, .. } = self.find_session(id, platform).await?;
            if !state.is_open() {
                return Err(CheckoutError::NotCancelable(state));
            }
            session.version += 1;
            session.canceled = true;
            session.updated = self.app.clock.now();
            match self.app.db.write(session.change(&self.app.db)?).await {
                Ok(_) => return self.current(session).await,
                // Another change or a payment came first.
                Err(WriteError::Refused(_)) => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Err(changes_too_fast())
    }

    /// Looks up the item, prices it, and records the problems as messages.
    async fn fill(
        &self,
        session: &mut Session,
        cart: &Cart,
        input: Option<Map<String, Value>>,
        currency: Option<&str>,
    ) -> Result<(), CheckoutError> {
        let input = cart.input.clone().or(input).unwrap_or_default();
        session.item = cart.item.clone();
        session.quantity = cart.quantity;
        session.input = Value::Object(input.clone()).to_string();
        (session.offer, session.price, session.messages) = (None, None, Vec::new());
        let say = |session: &mut Session, code: &str, param: &str, content: String| {
            let (code, param) = (Some(code.to_owned()), param.to_owned());
            session.messages.push(Message { code, param, content, is_warning: false });
        };
        if currency.is_some_and(|currency| !currency.eq_ignore_ascii_case(CURRENCY)) {
            say(session, "unsupported", "$.currency", format!("everything is priced in {CURRENCY}"));
        }
        if let Some(index) = cart.second {
            let content = "a session buys one item; make another session for the next one".to_owned();
            say(session, "unsupported", &format!("$.line_items[{index}]"), content);
        }
        let offer = match self.find(&cart.item).await? {
            Found::Sold(offer) => offer,
            Found::NotSold => {
                let content = "nothing is sold under this id; GET /.well-known/acp/manifest.json lists the valid ids";
                say(session, "not_found", "$.line_items[0]", content.to_owned());
                return Ok(());
            }
            Found::Ambiguous => {
                let content = "several services have this id; write a slash between the soul's and the service's name";
                say(session, "conflict", "$.line_items[0]", content.to_owned());
                return Ok(());
            }
        };
        if cart.quantity > offer.goods.most() {
            let content = format!("at most {} of this item can be bought per session", offer.goods.most());
            say(session, "quantity_exceeded", "$.line_items[0].quantity", content);
        }
        let unit = goods::cents(offer.unit).and_then(|unit| i64::try_from(unit).ok());
        if cart.expected_cents.is_some_and(|expected| Some(expected) != unit) {
            session.messages.push(Message {
                code: Some("price_change".to_owned()),
                param: "$.line_items[0].unit_amount".to_owned(),
                content: "the price differs from the unit_amount that was sent".to_owned(),
                is_warning: true,
            });
        }
        let goods = offer.goods.clone();
        session.offer = Some(offer);
        // Nobody should pay for a misspelt member unseen. ACP has no warning code for it, so it is an information.
        for path in goods.unread(&input, self.app.catalog) {
            let param = json_path(&format!("metadata.input.{path}"));
            let content = format!("{param} is not used; perhaps it is misspelt");
            session.messages.push(Message { code: None, param, content, is_warning: true });
        }
        let in_the_way = session.messages.iter().any(|message| !message.is_warning);
        if in_the_way {
            return Ok(());
        }
        match self.priced(session, &goods, &input).await {
            Ok(price) if goods::cents(price.amount).is_some() => session.price = Some(price),
            Ok(_) => say(session, "unsupported", "$.line_items[0]", "its price has fractions of a cent".to_owned()),
            Err(ApiError::InvalidRequest(errors) | ApiError::Market(MarketError::InvalidInput(errors))) => {
                for wrong in under("metadata.input", errors) {
                    let code = if wrong.message == "is required" { "missing" } else { "invalid" };
                    let content = format!("{} {}", json_path(&wrong.path), wrong.message);
                    say(session, code, &json_path(&wrong.path), content);
                }
            }
            Err(ApiError::Market(_)) => {
                session.offer = None;
                say(session, "out_of_stock", "$.line_items[0]", "it is no longer sold".to_owned());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn priced(&self, session: &Session, goods: &Goods, input: &Map<String, Value>) -> Result<Price, ApiError> {
        let nothing = HeaderMap::new();
        let listing = self.listing(goods, input, &nothing).await?;
        let tool = goods.tool(self.app.catalog).ok_or(ApiError::NotFound)?;
        let body = Bytes::from(goods.body(input, session.quantity).to_string());
        let call = Call { tool, listing: listing.as_ref(), resource: "", headers: &nothing, body };
        let binding = CheckoutBinding { ordered: session.ordered("", None), taken: None };
        let priced = self.gate_of(goods).price(&call, &binding, VALIDITY).await?;
        Ok(Price { amount: priced.amount, quote: priced.quote, request_id: priced.request_id })
    }

    fn gate_of(&self, goods: &Goods) -> &Gate {
        match goods {
            Goods::Credits | Goods::Tool(_) => &self.gate,
            Goods::Text(_) | Goods::Service { .. } => &self.market.gate,
        }
    }

    /// Pays a session and starts the work.
    ///
    /// # Errors
    /// [`CheckoutError::PaymentFailed`] if the payment was refused. The session is then unchanged.
    pub async fn complete(&self, current: Current, attempt: &Attempt<'_>) -> Result<Current, CheckoutError> {
        if self.is_same_attempt(&current, attempt) {
            return Ok(current);
        }
        check_open(current.state).or_else(|error| match (&error, attempt.credential) {
            // A payment that was broadcast in time is honoured. The gate checks the quote's expiry as well.
            (CheckoutError::Expired, Credential::Payment(_)) => Ok(()),
            _ => Err(error),
        })?;
        let session = &current.session;
        let (Some(offer), Some(price)) = (&session.offer, &session.price) else {
            return Err(CheckoutError::InvalidState(State::NotReady));
        };
        // Credits cannot buy credits. The session does not offer this handler either.
        if offer.goods == Goods::Credits && matches!(attempt.credential, Credential::Token(_)) {
            return Err(CheckoutError::PaymentFailed("credits are bought with USDC, not with credits".to_owned()));
        }
        let input: Map<String, Value> = serde_json::from_str(&session.input).unwrap_or_default();
        let headers = headers_of(attempt, &price.quote)?;
        let answer = async {
            let listing = self.listing(&offer.goods, &input, &headers).await?;
            let tool = offer.goods.tool(self.app.catalog).ok_or(ApiError::NotFound)?;
            let body = Bytes::from(offer.goods.body(&input, session.quantity).to_string());
            let call = Call { tool, listing: listing.as_ref(), resource: attempt.resource, headers: &headers, body };
            let taken = session.take(&self.app.db, attempt.name, self.app.clock.now())?;
            let hook = events::endpoint_of(&self.app, session.platform).await?.map(|hook| hook.to_string());
            let binding = CheckoutBinding { ordered: session.ordered(attempt.origin, hook), taken: Some(taken) };
            // This future is large: boxing it keeps the caller's stack small.
            Box::pin(self.gate_of(&offer.goods).complete(call, &binding)).await
        };
        let answer = answer.await;
        // The gate may fail after it took the payment. So the result is read from the session, not from the gate's answer.
        let after = self.find_session(&session.id.to_string(), session.platform).await?;
        if self.is_same_attempt(&after, attempt) {
            return Ok(after);
        }
        match answer {
            Ok(refused) if refused.status() == StatusCode::PAYMENT_REQUIRED => {
                Err(CheckoutError::PaymentFailed(reason(refused).await))
            }
            // The attempt created its own job, and the payment of that job failed.
            Ok(_) if after.state.is_open() => Err(CheckoutError::PaymentFailed(declined(after.job.as_ref()))),
            Ok(_) => Err(state_error(after.state)),
            Err(error) => Err(refusal(error, &after)),
        }
    }

    /// Whether this attempt (same idempotency key or same payment) completed the session or is completing it.
    fn is_same_attempt(&self, current: &Current, attempt: &Attempt<'_>) -> bool {
        let Some(job) = current.job.as_ref().filter(|_| !current.state.is_open()) else { return false };
        if !matches!(current.state, State::Completed | State::InProgress) {
            return false;
        }
        if attempt.name.is_some() && attempt.name == current.session.attempt.as_deref() {
            return true;
        }
        let Credential::Payment(token) = attempt.credential else { return false };
        let sent = payment_of(token);
        sent.is_some_and(|sent| job.payment.as_ref().is_some_and(|paid| *paid == sent.authorization))
    }

    pub fn view<'a>(&'a self, current: &'a Current, origin: &'a str) -> View<'a> {
        View { checkout: self, session: &current.session, job: current.job.as_ref(), state: current.state, origin }
    }
}

/// Repeats a request's `Request-Id` and `Idempotency-Key` in its answer, as ACP asks for.
pub fn echo(sent: &HeaderMap, answer: &mut Response) {
    for name in ["request-id", "idempotency-key"] {
        if let Some(value) = sent.get(name).filter(|value| value.len() <= MAX_ECHOED_BYTES) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
}

fn check_open(state: State) -> Result<(), CheckoutError> {
    if state.is_open() { Ok(()) } else { Err(state_error(state)) }
}

fn state_error(state: State) -> CheckoutError {
    match state {
        State::Expired => CheckoutError::Expired,
        state => CheckoutError::InvalidState(state),
    }
}

fn changes_too_fast() -> CheckoutError {
    StoreError::new("other requests keep changing the session; try again").into()
}

/// The headers of the paying call, as the gate reads them.
fn headers_of(attempt: &Attempt<'_>, quote: &str) -> Result<HeaderMap, CheckoutError> {
    let mut headers = HeaderMap::new();
    let (name, value) = match attempt.credential {
        Credential::Payment(token) => ("payment-signature", token.clone()),
        Credential::Token(token) => ("authorization", format!("Bearer {token}")),
    };
    let wrong = |message: &str| {
        CheckoutError::Invalid(vec![FieldError::new("payment_data.instrument.credential.token", message)])
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| wrong("must be printable ASCII"))?;
    value.set_sensitive(true);
    headers.insert(HeaderName::from_static(name), value);
    if let Credential::Payment(_) = attempt.credential {
        let read = wire::payment(&headers).map_err(|malformed| wrong(malformed.message))?;
        // A zero-cost payment is no payment here: credits are paid with a token.
        if read.is_none_or(|payment| payment.authorization.is_zero_cost()) {
            return Err(wrong("must hold a signed payment"));
        }
    }
    if let Ok(quote) = HeaderValue::from_str(quote) {
        headers.insert(HeaderName::from_static("x-quote-id"), quote);
    }
    for (name, value) in [("x-amzn-trace-id", attempt.trace), ("x-approval-id", attempt.approval)] {
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), value.clone());
        }
    }
    Ok(headers)
}

fn payment_of(token: &str) -> Option<wire::Payment> {
    let mut headers = HeaderMap::new();
    headers.insert("payment-signature", HeaderValue::from_str(token).ok()?);
    wire::payment(&headers).ok().flatten()
}

/// The gate's message for a refused payment.
async fn reason(refused: Response) -> String {
    let body = platform::http::read_body(refused.into_body(), 64 * 1024).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    body["message"].as_str().unwrap_or("the payment was refused; nothing was charged").to_owned()
}

fn declined(job: Option<&Job>) -> String {
    let error = job.and_then(|job| job.error.as_ref());
    error.map_or_else(|| "the payment failed; nothing was charged".to_owned(), |error| error.message.clone())
}

/// Maps an error of the gate to one of the session.
fn refusal(error: ApiError, after: &Current) -> CheckoutError {
    match error {
        // The quote is the session's own. If it is invalid, the session has changed.
        ApiError::InvalidQuote | ApiError::QuoteMismatch if !after.state.is_open() => state_error(after.state),
        ApiError::InvalidQuote | ApiError::QuoteMismatch => {
            CheckoutError::PaymentFailed("the session was changed meanwhile; read it again".to_owned())
        }
        // The client must send this id to complete the session after the approval.
        ApiError::ApprovalRequired { approval_id: Some(approval_id), message, .. } => {
            CheckoutError::PaymentFailed(format!("{message}: {approval_id}"))
        }
        ApiError::PaymentAlreadyUsed
        | ApiError::PaymentForAnother { .. }
        | ApiError::InsufficientCredits(_)
        | ApiError::AccessTokenInvalid
        | ApiError::SoulKeyNotForAgents
        | ApiError::AccessTokenRevoked
        | ApiError::BudgetExceeded(_)
        | ApiError::Frozen { .. }
        | ApiError::ActionDenied { .. }
        | ApiError::ApprovalInvalid(_)
        | ApiError::ExceedsCallerBudget { .. } => CheckoutError::PaymentFailed(error.message()),
        ApiError::Market(_) => CheckoutError::PaymentFailed("it is no longer sold; nothing was charged".to_owned()),
        error => {
            log::failure("a session could not be completed", &error.code());
            error.into()
        }
    }
}
