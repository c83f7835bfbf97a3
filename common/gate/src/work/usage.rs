//! What work uses of what is paid for: tools, and the deployment's model. It is written down before it is used, so that
//! it counts whatever becomes of the process, and what turns out not to have been used is given back.

use base::money::Usdc;
use platform::http::log;
use platform::store::{BoxFuture, StoreError};
use serde::{Deserialize, Serialize};

/// Amounts used, or that may be used, in micro-USDC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default)]
    pub tools: Usdc,
    #[serde(default)]
    pub model: Usdc,
}

/// What is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Tools,
    Model,
}

impl Usage {
    pub const NONE: Usage = Usage { tools: Usdc::ZERO, model: Usdc::ZERO };

    pub fn total(self) -> Usdc {
        self.tools.checked_add(self.model).unwrap_or(Usdc::from_micro(u64::MAX))
    }

    /// The part of it that stays within `most` in all: first of the model, without which there is no work.
    pub fn at_most(self, most: Usdc) -> Usage {
        let model = self.model.min(most);
        Usage { tools: self.tools.min(most.checked_sub(model).unwrap_or_default()), model }
    }

    pub fn is_none(&self) -> bool {
        *self == Usage::NONE
    }

    fn of(self, resource: Resource) -> Usdc {
        match resource {
            Resource::Tools => self.tools,
            Resource::Model => self.model,
        }
    }

    fn with(self, resource: Resource, amount: Usdc) -> Usage {
        match resource {
            Resource::Tools => Usage { tools: amount, ..self },
            Resource::Model => Usage { model: amount, ..self },
        }
    }
}

/// Keeps what is used, outside of this process.
pub trait Meter: Send + Sync {
    /// Replaces what was used before. After an error nothing more may be used: it is not known, or not ours to say.
    fn record<'a>(&'a self, before: Usage, after: Usage) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Keeps nothing: for work that nobody pays for.
pub struct Unrecorded;

impl Meter for Unrecorded {
    fn record<'a>(&'a self, _: Usage, _: Usage) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}

/// What one piece of work may use, over all attempts at it, and what it has used.
pub struct Spending {
    budget: Usage,
    used: Usage,
    meter: Box<dyn Meter>,
}

/// Why something must not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// So much is left, in micro-USDC.
    OverBudget {
        left: Usdc,
    },
    NotRecorded,
}

impl Spending {
    /// Spending that goes on from what earlier attempts used.
    pub fn new(budget: Usage, used: Usage, meter: impl Meter + 'static) -> Spending {
        Spending { budget, used, meter: Box::new(meter) }
    }

    pub fn used(&self) -> Usage {
        self.used
    }

    pub fn left(&self, resource: Resource) -> Usdc {
        self.budget.of(resource).checked_sub(self.used.of(resource)).unwrap_or_default()
    }

    /// Takes an amount before it is used.
    pub async fn take(&mut self, resource: Resource, amount: Usdc) -> Result<(), NotTaken> {
        let left = self.left(resource);
        if amount > left {
            return Err(NotTaken::OverBudget { left });
        }
        if amount == Usdc::ZERO {
            return Ok(());
        }
        let sum = self.used.of(resource).checked_add(amount).ok_or(NotTaken::OverBudget { left })?;
        let after = self.used.with(resource, sum);
        if let Err(error) = self.meter.record(self.used, after).await {
            log::failure("what work uses could not be written down", &error);
            return Err(NotTaken::NotRecorded);
        }
        self.used = after;
        Ok(())
    }

    /// Gives back what was taken and not used. If that cannot be written down, another attempt has so much less; what this
    /// one reports is right.
    pub async fn give_back(&mut self, resource: Resource, amount: Usdc) {
        if amount == Usdc::ZERO {
            return;
        }
        let before = self.used;
        let rest = before.of(resource).checked_sub(amount).unwrap_or_default();
        self.used = before.with(resource, rest);
        if let Err(error) = self.meter.record(before, self.used).await {
            log::failure("what work did not use could not be given back", &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Keeps nothing, and nothing at all while it is broken.
    struct Fragile(Arc<AtomicBool>);

    impl Meter for Fragile {
        fn record<'a>(&'a self, _: Usage, _: Usage) -> BoxFuture<'a, Result<(), StoreError>> {
            let broken = self.0.load(Ordering::SeqCst);
            Box::pin(async move { if broken { Err(StoreError::new("broken")) } else { Ok(()) } })
        }
    }

    #[tokio::test]
    async fn nothing_is_taken_beyond_the_budget_or_unrecorded() {
        let micro = Usdc::from_micro;
        let broken = Arc::new(AtomicBool::new(false));
        let budget = Usage { tools: micro(100), model: micro(10) };
        let earlier = Usage { tools: micro(30), model: Usdc::ZERO };
        let mut spending = Spending::new(budget, earlier, Fragile(broken.clone()));
        assert_eq!(spending.take(Resource::Tools, micro(71)).await, Err(NotTaken::OverBudget { left: micro(70) }));
        assert_eq!(spending.take(Resource::Tools, micro(70)).await, Ok(()));
        assert_eq!(spending.take(Resource::Model, micro(10)).await, Ok(()), "each has a budget of its own");
        spending.give_back(Resource::Tools, micro(20)).await;
        assert_eq!((spending.used().total(), spending.left(Resource::Tools)), (micro(90), micro(20)));
        broken.store(true, Ordering::SeqCst);
        assert_eq!(spending.take(Resource::Tools, micro(1)).await, Err(NotTaken::NotRecorded));
        spending.give_back(Resource::Model, micro(4)).await;
        assert_eq!(spending.used(), Usage { tools: micro(80), model: micro(6) });
    }
}
