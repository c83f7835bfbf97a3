//! Asked prices: a tool whose price follows from more than its input has a [`Quoter`]. It may read the database or ask a
//! provider. What it finds is kept with the quote and is given to the work.

use std::sync::Arc;

use base::ids::AgentId;
use base::money::Usdc;
use platform::http::ApiError;
use platform::store::BoxFuture;
use serde_json::{Map, Value};

use crate::Toolbox;
use crate::spec::{OfInput, ToolSpec};

/// Checks an input and what its quote has locked for an agent, as far as that takes a look at what is stored. The last is whether
/// the agent is proven: by a proof, a token, or the payment that its key has signed.
pub type CheckNamed = for<'a> fn(
    &'a Toolbox,
    &'a Map<String, Value>,
    &'a Map<String, Value>,
    Option<AgentId>,
    bool,
) -> BoxFuture<'a, Result<(), ApiError>>;

/// Computes the price of a call. Its tool's price is [`crate::spec::Price::Asked`].
pub struct Quoter {
    pub spec: &'static ToolSpec,
    pub quote: fn(Arc<Toolbox>, QuoteRequest) -> BoxFuture<'static, Result<AskedPrice, ApiError>>,
    /// Checks what a call that redeems a quote names beside it, before a payment is asked for and again before it is taken.
    pub check: CheckNamed,
    /// Whether asking with this input begins something at a provider, which a repeated request goes on with
    /// ([`QuoteRequest::begun`]). New questions of a source are then limited by the day.
    pub begins: OfInput,
}

/// The call whose price is asked for.
#[derive(Clone)]
pub struct QuoteRequest {
    /// The tool, at the operator's prices. The computed price has to follow its usual price in proportion.
    pub tool: &'static ToolSpec,
    /// Validated against the tool's fields.
    pub input: Map<String, Value>,
    /// The agent that the caller names.
    pub agent: Option<AgentId>,
    /// The caller proved to be the agent.
    pub proven: bool,
    /// What an earlier request for the same purchase has begun ([`ApiError::QuotePending`]); empty at first.
    pub begun: Map<String, Value>,
}

/// A price, with what it is based on.
#[derive(Clone, Debug)]
pub struct AskedPrice {
    /// The most that the call can cost, in micro-USDC.
    pub price: Usdc,
    /// Shown with the quote.
    pub context: Map<String, Value>,
    /// Given to the work as [`crate::Task::locked`]; not shown. Work that charges by what it used needs its price per unit
    /// here: the operator's prices may have changed by then, and the worker does not know them. At most a few hundred bytes.
    pub locked: Map<String, Value>,
}
