//! An agent's spending by UTC day: one item per day. Its counters enforce every cap of a day under concurrency.
//!
//! `committed` counts against the daily cap: everything charged on that day and not refunded. `in_flight` is the part
//! whose work or money is still open. Both change in the transactions that begin and end the charge, so they are exact.
//! Each day has its own item: a new day starts at zero, and a charge that ends after midnight changes the day it was made
//! on.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{AgentId, TokenId};
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::account::{minus, plus};
use super::agent_partition;
use super::budget::{Budget, Cap};
use super::freeze::SERVICE_PAYEE;

/// Days are kept this long, for statistics and baselines.
const KEEP_SECS: i64 = 400 * 24 * 3600;

/// A day's counters, in micro-USDC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    #[serde(default)]
    pub committed: Usdc,
    #[serde(default)]
    pub in_flight: Usdc,
    /// The owner was warned on that day.
    #[serde(default)]
    pub warned: bool,
    /// No warning mail is sent before this time: one was sent, or a retry is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mail_after: Option<Timestamp>,
    /// Sums by tool (`t_<name>`), token (`k_<id>`) and payee (`p_<id>`); when a token last paid (`u_<id>`, unix seconds);
    /// and that the owner was told that a cap stopped a call (`s_<cap>`, for a token's own `s_<cap>_<id>`).
    #[serde(flatten)]
    parts: HashMap<String, serde_json::Value>,
}

/// A charge that counts against the caps of a day.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    pub day: &'a str,
    /// micro-USDC
    pub amount: Usdc,
    pub tool: &'a str,
    pub payee: &'a str,
    pub token: Option<TokenId>,
}

impl Day {
    /// Whether a warning mail for this day may be sent now.
    pub fn may_mail(&self, now: Timestamp) -> bool {
        self.mail_after.is_none_or(|after| after <= now)
    }

    pub fn of_tool(&self, tool: &str) -> Usdc {
        self.part(&tool_part(tool))
    }

    pub fn of_payee(&self, payee: &str) -> Usdc {
        self.part(&payee_part(payee))
    }

    pub fn of_token(&self, token: TokenId) -> Usdc {
        self.part(&token_part(token))
    }

    /// What was charged with each token, the most first.
    pub fn by_token(&self) -> Vec<(TokenId, Usdc)> {
        let tokens = self.parts.keys().filter_map(|name| const_hex::decode_to_array(name.strip_prefix("k_")?).ok());
        let mut spent: Vec<(TokenId, Usdc)> =
            tokens.map(TokenId::from_bytes).map(|token| (token, self.of_token(token))).collect();
        spent.retain(|(_, spent)| *spent > Usdc::ZERO);
        spent.sort_unstable_by_key(|(token, spent)| (std::cmp::Reverse(*spent), *token));
        spent
    }

    /// When a token last paid on this day.
    pub fn used_by(&self, token: TokenId) -> Option<Timestamp> {
        self.parts.get(&used_part(token)).and_then(serde_json::Value::as_i64).map(Timestamp::from_secs)
    }

    /// Whether the owner was told that this cap stopped a call. `token`: the one whose own cap it is.
    pub fn told_of(&self, cap: &str, token: Option<TokenId>) -> bool {
        self.parts.contains_key(&told_part(cap, token))
    }

    fn part(&self, name: &str) -> Usdc {
        self.parts.get(name).and_then(serde_json::Value::as_u64).map(Usdc::from_micro).unwrap_or_default()
    }

    /// What the caps of a budget leave for one more charge without a token, in micro-USDC; `None` if none applies. `counted`: its
    /// amount does not matter.
    pub fn room(&self, budget: &Budget, counted: Counted<'_>) -> Option<Usdc> {
        let [daily, tool, payee] = of_budget(Some(budget), counted);
        let spent = [self.committed, self.of_tool(counted.tool), self.of_payee(counted.payee)];
        let left = [daily, tool, payee].into_iter().zip(spent);
        let left = left.filter_map(|(cap, spent)| Some(cap?.checked_sub(spent).unwrap_or_default()));
        left.chain(budget.per_transaction).min()
    }

    /// The first cap that this charge would exceed, with its limit and the amount already spent: the budget's caps, then
    /// the daily cap of the token that pays.
    pub fn passes(
        &self,
        budget: Option<&Budget>,
        token_daily: Option<Usdc>,
        counted: Counted<'_>,
    ) -> Option<(Cap, Usdc, Usdc)> {
        let [daily, tool, payee] = of_budget(budget, counted);
        let caps = [
            (Cap::Daily, daily, self.committed),
            (Cap::Tool, tool, self.of_tool(counted.tool)),
            (Cap::Payee, payee, self.of_payee(counted.payee)),
            (Cap::TokenDaily, token_daily, counted.token.map(|token| self.of_token(token)).unwrap_or_default()),
        ];
        caps.into_iter().find_map(|(cap, limit, spent)| {
            let limit = limit?;
            let passed = spent.checked_add(counted.amount).is_none_or(|sum| sum > limit);
            passed.then_some((cap, limit, spent))
        })
    }
}

/// The UTC day of a time: `2026-11-21`.
pub fn name(now: Timestamp) -> String {
    now.to_string().chars().take(10).collect()
}

/// When the next UTC day begins.
pub fn resets_at(now: Timestamp) -> Timestamp {
    const DAY_SECS: i64 = 24 * 3600;
    Timestamp::from_secs((now.secs().div_euclid(DAY_SECS) + 1) * DAY_SECS)
}

fn tool_part(tool: &str) -> String {
    format!("t_{}", word(tool))
}

fn payee_part(payee: &str) -> String {
    format!("p_{}", word(payee))
}

fn token_part(token: TokenId) -> String {
    format!("k_{}", const_hex::encode(token.bytes()))
}

fn used_part(token: TokenId) -> String {
    format!("u_{}", const_hex::encode(token.bytes()))
}

fn told_part(cap: &str, token: Option<TokenId>) -> String {
    let of_token = token.map(|token| format!("_{}", const_hex::encode(token.bytes()))).unwrap_or_default();
    format!("s_{}{of_token}", word(cap))
}

/// Replaces characters that are not allowed in an expression's attribute name.
fn word(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// A budget's limits for the day, for the tool and for the payee of a charge.
fn of_budget(budget: Option<&Budget>, counted: Counted<'_>) -> [Option<Usdc>; 3] {
    budget.map_or([None; 3], |budget| {
        [budget.daily_limit(), budget.tools.get(counted.tool).copied(), budget.payees.get(counted.payee).copied()]
    })
}

fn key(agent: AgentId, day: &str) -> Key {
    Key::new(agent_partition(agent), format!("DAY#{day}"))
}

/// The write that counts a charge. Refused if it would exceed a cap of the budget, or `token_daily`: the daily cap of the
/// token that pays, in micro-USDC.
pub fn commit(
    db: &Db,
    agent: AgentId,
    counted: Counted<'_>,
    budget: Option<&Budget>,
    token_daily: Option<Usdc>,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let (tool, payee) = (tool_part(counted.tool), payee_part(counted.payee));
    let [daily_cap, tool_cap, payee_cap] = of_budget(budget, counted);
    let mut counters =
        vec![("committed".to_owned(), daily_cap), ("in_flight".to_owned(), None), (tool, tool_cap), (payee, payee_cap)];
    let mut used = None;
    if let Some(token) = counted.token {
        counters.push((token_part(token), token_daily));
        used = Some(used_part(token));
    }
    add_under_caps(db, agent, counted, &counters, used.as_deref(), now)
}

/// The write that counts a call which its goal pays. The goal counts against the day already; the call counts for its tool, and for its
/// payee if that is a seller. Refused if it would exceed the budget's cap of one of them.
pub fn commit_within(
    db: &Db,
    agent: AgentId,
    counted: Counted<'_>,
    budget: Option<&Budget>,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let [_, tool_cap, payee_cap] = of_budget(budget, counted);
    let caps = [tool_cap, payee_cap];
    let counters: Vec<_> = parts_within(counted).into_iter().zip(caps).collect();
    add_under_caps(db, agent, counted, &counters, None, now)
}

/// The counters of a call that its goal pays: its tool's, and its seller's.
fn parts_within(counted: Counted<'_>) -> Vec<String> {
    let of_seller = (counted.payee != SERVICE_PAYEE).then(|| payee_part(counted.payee));
    [tool_part(counted.tool)].into_iter().chain(of_seller).collect()
}

/// The write that takes back what no longer counts of a call that its goal pays.
pub fn end_within(db: &Db, agent: AgentId, counted: Counted<'_>, back: Usdc) -> Result<Write, StoreError> {
    let adds: Vec<String> = parts_within(counted).iter().map(|part| format!("#{part} :back")).collect();
    Write::update(&db.tables.ledger, key(agent, counted.day), &format!("ADD {}", adds.join(", ")))
        .bind("back", minus(back)?)
}

/// The write that adds the amount to these counters, each under its cap. `used`: the member that gets the time.
fn add_under_caps(
    db: &Db,
    agent: AgentId,
    counted: Counted<'_>,
    counters: &[(String, Option<Usdc>)],
    used: Option<&str>,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let mut sets = "#expires = :expires".to_owned();
    if let Some(used) = used {
        sets.push_str(&format!(", #{used} = :now"));
    }
    let adds: Vec<String> = counters.iter().map(|(name, _)| format!("#{name} :amount")).collect();
    let mut conditions = Vec::new();
    let mut rooms = Vec::new();
    for (name, cap) in counters {
        let Some(cap) = cap else { continue };
        match cap.checked_sub(counted.amount) {
            Some(room) => {
                conditions.push(format!("(attribute_not_exists(#{name}) OR #{name} <= :room_{name})"));
                rooms.push((format!("room_{name}"), room));
            }
            // The amount exceeds the whole cap: this condition is never true.
            None => conditions.push("attribute_exists(#never)".to_owned()),
        }
    }
    let expression = format!("SET {sets} ADD {}", adds.join(", "));
    let mut write = Write::update(&db.tables.ledger, key(agent, counted.day), &expression)
        .bind("amount", plus(counted.amount)?)?
        .bind("expires", now.secs() + KEEP_SECS)?;
    if used.is_some() {
        write = write.bind("now", now.secs())?;
    }
    if !conditions.is_empty() {
        write = write.only_if(&conditions.join(" AND "));
    }
    for (name, room) in rooms {
        write = write.bind(&name, room)?;
    }
    Ok(write)
}

/// The write that ends a counted charge. `back` (micro-USDC) is the part that no longer counts.
pub fn end(db: &Db, agent: AgentId, counted: Counted<'_>, back: Usdc) -> Result<Write, StoreError> {
    let mut adds = "#in_flight :minus".to_owned();
    if back > Usdc::ZERO {
        adds.push_str(&format!(", {}", back_parts(counted)));
    }
    let write = Write::update(&db.tables.ledger, key(agent, counted.day), &format!("ADD {adds}"))
        .bind("minus", minus(counted.amount)?)?;
    if back > Usdc::ZERO { write.bind("back", minus(back)?) } else { Ok(write) }
}

/// The write after which `back` (micro-USDC) of an ended charge no longer counts.
pub fn give_back(db: &Db, agent: AgentId, counted: Counted<'_>, back: Usdc) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent, counted.day), &format!("ADD {}", back_parts(counted)))
        .bind("back", minus(back)?)
}

/// The parts of a day that count less when something comes back.
fn back_parts(counted: Counted<'_>) -> String {
    let mut parts =
        format!("#committed :back, #{} :back, #{} :back", tool_part(counted.tool), payee_part(counted.payee));
    if let Some(token) = counted.token {
        parts.push_str(&format!(", #{} :back", token_part(token)));
    }
    parts
}

/// The write that puts an ended charge in flight again.
pub fn resume(db: &Db, agent: AgentId, counted: Counted<'_>) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent, counted.day), "ADD #in_flight :plus")
        .bind("plus", plus(counted.amount)?)
}

/// A day's counters, from a strongly consistent read.
pub async fn load(db: &Db, agent: AgentId, day: &str) -> Result<Day, StoreError> {
    Ok(db.get_latest(&db.tables.ledger, key(agent, day)).await?.unwrap_or_default())
}

/// Days up to `last` on which anything was charged, newest first, at most `limit`.
pub async fn until(db: &Db, agent: AgentId, last: &str, limit: usize) -> Result<Vec<Day>, StoreError> {
    let to = format!("DAY#{last}");
    db.query(Query::between(&db.tables.ledger, &agent_partition(agent), "DAY#", &to, limit)?.newest_first()).await
}

/// The write that marks the day as warned. Refused if it is already.
pub fn warn(db: &Db, agent: AgentId, day: &str) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent, day), "SET #warned = :yes")
        .only_if("attribute_not_exists(#warned)")
        .bind("yes", true)
}

/// The write that marks the owner as told that a cap stopped a call. Refused if it is marked already. It may be the first of
/// the day, before any charge.
pub fn tell(
    db: &Db,
    agent: AgentId,
    day: &str,
    cap: &str,
    token: Option<TokenId>,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let part = told_part(cap, token);
    Write::update(&db.tables.ledger, key(agent, day), &format!("SET #{part} = :yes, #expires = :expires"))
        .only_if(&format!("attribute_not_exists(#{part})"))
        .bind("yes", true)?
        .bind("expires", now.secs() + KEEP_SECS)
}

/// Claims the day's warning mail. `false` if somebody else has claimed it.
pub async fn take_mail(db: &Db, agent: AgentId, day: &str, now: Timestamp) -> Result<bool, StoreError> {
    let write = Write::update(&db.tables.ledger, key(agent, day), "SET #mail_after = :never")
        .only_if("attribute_exists(#committed) AND (attribute_not_exists(#mail_after) OR #mail_after <= :now)")
        .bind("never", Timestamp::from_secs(now.secs() + KEEP_SECS))?
        .bind("now", now)?;
    db.write_if(write).await
}

/// Returns the day's mail, to be retried from `until` on.
pub async fn postpone_mail(db: &Db, agent: AgentId, day: &str, until: Timestamp) -> Result<(), StoreError> {
    let write = Write::update(&db.tables.ledger, key(agent, day), "SET #mail_after = :until");
    db.write(write.bind("until", until)?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_budget_is_judged_before_the_tokens_own_cap() {
        let (micro, token) = (Usdc::from_micro, TokenId::made_at(Timestamp::from_secs(1_795_000_000)));
        let today: Day = serde_json::from_value(json!({"committed": 10, (token_part(token)): 7})).unwrap();
        let budget = Budget { daily: Some(micro(12)), ..Budget::default() };
        let stopped_by = |budget: Option<&Budget>, amount: u64| {
            let (tool, payee) = ("vin_decode", "service");
            let counted = Counted { day: "2026-11-21", amount: micro(amount), tool, payee, token: Some(token) };
            today.passes(budget, Some(micro(9)), counted)
        };
        assert_eq!(stopped_by(Some(&budget), 2), None, "a cap may be used up");
        assert_eq!(stopped_by(Some(&budget), 3), Some((Cap::Daily, micro(12), micro(10))));
        assert_eq!(stopped_by(None, 3), Some((Cap::TokenDaily, micro(9), micro(7))));
    }
}
