//! Freezes: an owner stops an agent, a token, a tool or a payee with one call. Nothing frozen can buy, queued work is
//! cancelled and refunded, and the credits held by quotes are released.

use std::collections::BTreeSet;

use base::ids::TokenId;
use serde::{Deserialize, Serialize};

/// Everything that is frozen for one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freezes {
    /// The agent itself: no purchase at all.
    #[serde(default)]
    pub agent: bool,
    #[serde(default)]
    pub tokens: BTreeSet<TokenId>,
    /// Tools by wire name.
    #[serde(default)]
    pub tools: BTreeSet<String>,
    /// Payees: `service`, or a seller.
    #[serde(default)]
    pub payees: BTreeSet<String>,
}

/// The payee of this service's own tools.
pub const SERVICE_PAYEE: &str = "service";

impl Freezes {
    pub fn is_empty(&self) -> bool {
        *self == Freezes::default()
    }

    /// The kind of freeze that stops this purchase: `agent`, `token`, `tool` or `payee`.
    pub fn stops(&self, token: Option<TokenId>, tool: &str, payee: &str) -> Option<&'static str> {
        if self.agent {
            return Some("agent");
        }
        if token.is_some_and(|token| self.tokens.contains(&token)) {
            return Some("token");
        }
        if self.tools.contains(tool) {
            return Some("tool");
        }
        self.payees.contains(payee).then_some("payee")
    }
}
