//! The usage of paid resources by work: tools, and the deployment's model. It is recorded before it happens, so that it
//! counts even after a crash. The unused part is given back.

use base::money::Usdc;
use platform::http::log;
use platform::store::{BoxFuture, StoreError};
use serde::{Deserialize, Serialize};

/// Amounts used or reserved for use, in micro-USDC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default)]
    pub tools: Usdc,
    #[serde(default)]
    pub model: Usdc,
}

/// A paid resource.
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

    /// This usage cut to `most` in total. The model's part has priority, because without the model there is no work.
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

/// Records usage outside this process.
pub trait Meter: Send + Sync {
    /// Replaces the recorded usage `before` by `after`. After an error nothing more may be used: the stored state is
    /// unknown, or another attempt has the job.
    fn record<'a>(&'a self, before: Usage, after: Usage) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Records nothing: for work that nobody pays for.
pub struct Unrecorded;

impl Meter for Unrecorded {
    fn record<'a>(&'a self, _: Usage, _: Usage) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}

/// The budget and usage of one piece of work, over all attempts.
pub struct Spending {
    budget: Usage,
    used: Usage,
    meter: Box<dyn Meter>,
}

/// Why a resource must not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Amount left, in micro-USDC.
    OverBudget {
        left: Usdc,
    },
    NotRecorded,
}

impl Spending {
    /// Starts from what earlier attempts used.
    pub fn new(budget: Usage, used: Usage, meter: impl Meter + 'static) -> Spending {
        Spending { budget, used, meter: Box::new(meter) }
    }

    pub fn used(&self) -> Usage {
        self.used
    }

    pub fn left(&self, resource: Resource) -> Usdc {
        self.budget.of(resource).checked_sub(self.used.of(resource)).unwrap_or_default()
    }

    /// Reserves an amount before it is used.
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
            log::failure("the usage of work could not be recorded", &error);
            return Err(NotTaken::NotRecorded);
        }
        self.used = after;
        Ok(())
    }

    /// Gives back what was reserved and not used. If that cannot be recorded, a later attempt has less budget; this
    /// attempt's own report stays right.
    pub async fn give_back(&mut self, resource: Resource, amount: Usdc) {
        if amount == Usdc::ZERO {
            return;
        }
        let before = self.used;
        let rest = before.of(resource).checked_sub(amount).unwrap_or_default();
        self.used = before.with(resource, rest);
        if let Err(error) = self.meter.record(before, self.used).await {
            log::failure("unused budget of work could not be given back", &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Records nothing, and fails while it is broken.
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
