//! The account: an agent's balance and the owner's rules for spending it. Both are in one item, so that one write checks
//! and changes both.

use base::ids::AgentId;
use base::money::Usdc;
use platform::store::{Db, Key, StoreError, Write, WriteError, db};
use serde::{Deserialize, Serialize};

use super::agent_partition;
use super::budget::Budget;
use super::freeze::Freezes;

/// An agent's account. An unknown agent has an empty one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Credits that can be spent, in micro-USDC.
    #[serde(default)]
    pub credits: Usdc,
    /// Credits held by open quotes, in micro-USDC.
    #[serde(default)]
    pub reserved: Usdc,
    /// The part of both that was bought by card, in micro-USDC. It is spent first. After a top-up that raced with a charge it
    /// may exceed them.
    #[serde(default)]
    pub card: Usdc,
    /// Credits taken back and not yet paid, in micro-USDC (see [`super::debt`]).
    #[serde(default)]
    pub debt: Usdc,
    /// Revision of the rules below. A charge is refused if the rules changed after it was judged.
    #[serde(default)]
    pub rules: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    #[serde(default, skip_serializing_if = "Freezes::is_empty")]
    pub frozen: Freezes,
    /// There is an action policy, which must be read to judge a call.
    #[serde(default)]
    pub policy: bool,
    /// Sum of settled payments for completed work, in micro-USDC. Counted only while it matters: up to
    /// `OVERLAP_EXPOSURE_USDC` (`payments::policy`).
    #[serde(default)]
    pub settled: Usdc,
}

/// Enough money to prove that an agent is no stranger.
const PROVEN: Usdc = Usdc::from_micro(50_000);

impl Account {
    /// Whether there is real money behind the agent: credits, or payments that settled. Wallets without it cost nothing, so
    /// limits that all agents share keep a part for those with it.
    pub fn is_proven(&self) -> bool {
        self.spendable().checked_add(self.settled).is_none_or(|money| money >= PROVEN)
    }

    /// Credits less debt.
    pub fn spendable(&self) -> Usdc {
        self.credits.checked_sub(self.debt).unwrap_or_default()
    }

    /// Debt that the credits do not cover.
    pub fn owed(&self) -> Usdc {
        self.debt.checked_sub(self.credits).unwrap_or_default()
    }
}

/// The change that a write makes to an account.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// micro-USDC, added to the spendable credits
    pub credits: i64,
    /// micro-USDC, added to the held credits
    pub reserved: i64,
    /// micro-USDC, added to the settled sum
    pub settled: i64,
    /// micro-USDC, added to the part that was bought by card
    pub card: i64,
    /// micro-USDC, added to the debt
    pub debt: i64,
    /// The rules must still have this revision.
    pub under_rules: Option<u32>,
}

/// An amount to add.
pub fn plus(amount: Usdc) -> Result<i64, StoreError> {
    i64::try_from(amount.micro()).map_err(StoreError::new)
}

/// An amount to subtract.
pub fn minus(amount: Usdc) -> Result<i64, StoreError> {
    plus(amount).map(|amount| -amount)
}

fn key(agent: AgentId) -> Key {
    Key::new(agent_partition(agent), "ACCOUNT")
}

impl Change {
    /// The write. Refused if a counter would become negative, if it spends credits while there is debt, or if the rules
    /// have changed.
    pub fn write(self, db: &Db, agent: AgentId) -> Result<Write, StoreError> {
        let mut sets = Vec::new();
        let mut conditions = Vec::new();
        let changes = [
            ("credits", self.credits),
            ("reserved", self.reserved),
            ("card", self.card),
            ("settled", self.settled),
            ("debt", self.debt),
        ];
        for (name, change) in changes {
            if change != 0 {
                sets.push(format!("#{name} :{name}"));
            }
            if change < 0 {
                conditions.push(format!("#{name} >= :needed_{name}"));
            }
        }
        // An agent with debt can neither spend nor hold credits.
        let spends = self.debt == 0 && (self.credits < 0 || self.credits == 0 && self.reserved < 0);
        if spends {
            conditions.push("(attribute_not_exists(#debt) OR #debt = :no_debt)".to_owned());
        }
        match self.under_rules {
            None => {}
            Some(0) => conditions.push("attribute_not_exists(#rules)".to_owned()),
            Some(_) => conditions.push("#rules = :rules".to_owned()),
        }
        let table = &db.tables.ledger;
        let mut write = match sets.as_slice() {
            [] => Write::check(table, key(agent)),
            sets => Write::update(table, key(agent), &format!("ADD {}", sets.join(", "))),
        };
        if !conditions.is_empty() {
            write = write.only_if(&conditions.join(" AND "));
        }
        for (name, change) in changes {
            if change != 0 {
                write = write.bind(name, change)?;
            }
            if change < 0 {
                write = write.bind(&format!("needed_{name}"), -change)?;
            }
        }
        if spends {
            write = write.bind("no_debt", 0)?;
        }
        match self.under_rules {
            Some(rules) if rules > 0 => write.bind("rules", rules),
            _ => Ok(write),
        }
    }
}

/// The account, from a strongly consistent read.
pub async fn load(db: &Db, agent: AgentId) -> Result<Account, StoreError> {
    Ok(db.get_latest(&db.tables.ledger, key(agent)).await?.unwrap_or_default())
}

/// The account, from an eventually consistent read.
pub async fn glance(db: &Db, agent: AgentId) -> Result<Account, StoreError> {
    Ok(db.get(&db.tables.ledger, key(agent)).await?.unwrap_or_default())
}

/// Reads the rules, applies `change` and writes them. Repeats if a concurrent call changed them.
pub async fn change_rules(db: &Db, agent: AgentId, change: impl Fn(&mut Account)) -> Result<Account, StoreError> {
    loop {
        let mut account = load(db, agent).await?;
        let before = account.rules;
        change(&mut account);
        account.rules = before + 1;
        let condition = if before == 0 { "attribute_not_exists(#rules)" } else { "#rules = :before" };
        let mut expression = "SET #rules = :rules, #frozen = :frozen, #policy = :policy".to_owned();
        expression.push_str(if account.budget.is_some() { ", #budget = :budget" } else { " REMOVE #budget" });
        let mut write = Write::update(&db.tables.ledger, key(agent), &expression)
            .only_if(condition)
            .bind("rules", account.rules)?
            .bind("frozen", &account.frozen)?
            .bind("policy", account.policy)?;
        if let Some(budget) = &account.budget {
            write = write.bind("budget", budget)?;
        }
        if before > 0 {
            write = write.bind("before", before)?;
        }
        match db.write(write).await {
            Ok(item) => return db::parse(item),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
}
