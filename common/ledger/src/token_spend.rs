//! What an access token with a cap for life has spent. Only such tokens have the row, in their owner's partition.
//!
//! | row | holds |
//! |---|---|
//! | `AGENT#<id>` / `SPENT#<token id>` | `spent`: all that was charged with the token and not paid back, in micro-USDC |
//!
//! It changes in the transactions that begin and end a charge, as the counters of its day do ([`super::day`]): at every
//! moment it is the sum of what the days count for the token. It has no expiry: a counter that disappears is a cap that
//! starts again.

use base::ids::{AgentId, TokenId};
use base::money::Usdc;
use futures_util::future::join_all;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::account::{minus, plus};
use super::agent_partition;

/// What a token has spent; zero before its first charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSpend {
    /// micro-USDC; includes what is in flight.
    #[serde(default)]
    pub spent: Usdc,
}

impl TokenSpend {
    /// Whether a charge of `amount` would exceed `cap`.
    pub fn exceeds(self, cap: Usdc, amount: Usdc) -> bool {
        self.spent.checked_add(amount).is_none_or(|sum| sum > cap)
    }
}

fn key(agent: AgentId, token: TokenId) -> Key {
    Key::new(agent_partition(agent), format!("SPENT#{token}"))
}

/// The write that counts a charge. Refused if it would exceed the cap.
pub fn commit(db: &Db, agent: AgentId, token: TokenId, amount: Usdc, cap: Usdc) -> Result<Write, StoreError> {
    let write =
        Write::update(&db.tables.ledger, key(agent, token), "ADD #spent :amount").bind("amount", plus(amount)?)?;
    match cap.checked_sub(amount) {
        Some(room) => write.only_if("attribute_not_exists(#spent) OR #spent <= :room").bind("room", room),
        // The amount exceeds the whole cap: this condition is never true.
        None => Ok(write.only_if("attribute_exists(#never)")),
    }
}

/// The write that takes back the part of a counted charge that no longer counts.
pub fn give_back(db: &Db, agent: AgentId, token: TokenId, back: Usdc) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent, token), "ADD #spent :back").bind("back", minus(back)?)
}

/// What a token has spent, from a strongly consistent read.
pub async fn load(db: &Db, agent: AgentId, token: TokenId) -> Result<TokenSpend, StoreError> {
    Ok(db.get_latest(&db.tables.ledger, key(agent, token)).await?.unwrap_or_default())
}

/// [`load`] for several tokens of an agent, in their order.
pub async fn load_all(db: &Db, agent: AgentId, tokens: &[TokenId]) -> Result<Vec<TokenSpend>, StoreError> {
    join_all(tokens.iter().map(|token| load(db, agent, *token))).await.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_may_be_used_up_and_not_passed() {
        let micro = Usdc::from_micro;
        let spend = TokenSpend { spent: micro(7) };
        assert!(!spend.exceeds(micro(10), micro(3)));
        assert!(spend.exceeds(micro(10), micro(4)));
        assert!(spend.exceeds(micro(u64::MAX), micro(u64::MAX)), "more than can be counted");
    }
}
