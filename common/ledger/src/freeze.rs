//! Freezes: what an owner stopped with one call. A frozen thing buys nothing, work that waits for it is given up and paid
//! back, and the credits its quotes hold are released.

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
    /// Those who are paid: `service`, or a seller.
    #[serde(default)]
    pub payees: BTreeSet<String>,
}

/// Who is paid for a tool of this service.
pub const SERVICE_PAYEE: &str = "service";

impl Freezes {
    pub fn is_empty(&self) -> bool {
        *self == Freezes::default()
    }

    /// What stops this purchase, in a word: `agent`, `token`, `tool` or `payee`.
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
