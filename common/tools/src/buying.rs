//! Calls that a goal makes for its owner, paid from the goal's purse ([`ledger::purse`]).
//!
//! The driver of goals is a tool like any other. The entrance for its calls is the gate's, behind [`Buyer`]: the same checks in the same
//! order as for an agent's call, without a payment.

use std::sync::Arc;

use base::ids::{AgentId, RequestId, TokenId};
use base::money::Usdc;
use evm::Address;
use platform::store::{BoxFuture, StoreError, Write};
use serde_json::{Map, Value};

use crate::quoting::AskedPrice;
use crate::spec::ToolSpec;
use crate::{ToolError, Toolbox};

/// Whose goal it is.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pub agent: AgentId,
    pub wallet: Address,
    /// The access token that bought the goal, if one did.
    pub token: Option<TokenId>,
}

/// One attempt of one task.
pub struct GoalCall<'a> {
    /// The request id of the goal's own job.
    pub goal: RequestId,
    pub owner: Owner,
    pub tool: &'static ToolSpec,
    pub input: &'a Map<String, Value>,
    pub task: u32,
    pub attempt: u32,
}

impl GoalCall<'_> {
    /// The id of the job that the attempt buys: a repeated run finds it, so that no attempt is bought twice.
    pub fn request_id(&self) -> RequestId {
        let (task, attempt) = (self.task.to_be_bytes(), self.attempt.to_be_bytes());
        RequestId::bought_with("goal", &[self.goal.bytes(), &task, &attempt])
    }
}

/// The outcome of a start.
#[derive(Debug)]
pub enum Started {
    /// The call is claimed, now or by an earlier run, and queued.
    Claimed,
    /// The owner's policy holds it; `approval` was asked for.
    Held { approval: String },
    /// The goal takes nothing new any more.
    Closed,
    /// The purse has less than the price.
    Poor { left: Usdc },
    /// The call is refused, and is refused again if it is repeated.
    Refused(Refused),
    /// One of the driver's own writes was refused: another run was faster.
    Outrun,
}

/// Why a call of a goal is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The code that an agent's call would be refused with.
    pub code: String,
    pub message: String,
}

/// How a call ended.
#[derive(Debug)]
pub struct Ended {
    pub result: Result<Value, ToolError>,
    /// What it cost, in micro-USDC.
    pub kept: Usdc,
}

/// Buys calls for goals.
pub trait Buyer: Send + Sync {
    /// The tools that a goal may use in this deployment, at the operator's prices.
    fn tools(&self) -> BoxFuture<'_, Vec<&'static ToolSpec>>;

    /// What the call costs at most. Checks the input as for an agent's call.
    fn price<'a>(
        &'a self,
        toolbox: &'a Arc<Toolbox>,
        call: &'a GoalCall<'a>,
    ) -> BoxFuture<'a, Result<Result<AskedPrice, Refused>, StoreError>>;

    /// Claims the call at this price, and queues it. `approval`: what the owner's policy asked for before. `moves`: writes of the driver's
    /// own in the same transaction, with their conditions.
    fn start<'a>(
        &'a self,
        toolbox: &'a Arc<Toolbox>,
        call: &'a GoalCall<'a>,
        price: &'a AskedPrice,
        approval: Option<&'a str>,
        moves: Vec<Write>,
    ) -> BoxFuture<'a, Result<Started, StoreError>>;

    /// How a call of a goal ended; `None` while it goes on.
    fn ended<'a>(&'a self, toolbox: &'a Toolbox, call: RequestId) -> BoxFuture<'a, Result<Option<Ended>, StoreError>>;
}
