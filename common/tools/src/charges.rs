//! What providers charge for one use of a tool. A price below that loses money with every sale, so it stops the start, unless
//! the operator limits the provider or says that it is meant.

use std::fmt;

use base::money::Usdc;
use platform::config::Config;
use platform::providers::{Amount, Charge};

use crate::spec::Catalog;

/// A tool that is sold for less than a provider charges.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub tool: &'static str,
    price: Usdc,
    charge: Charge,
    /// How many calls a day the operator allows.
    most: Option<u32>,
    is_meant: bool,
}

impl Loss {
    /// Whether nothing bounds it, and nobody said that it is meant.
    pub fn is_open(&self) -> bool {
        self.most.is_none() && !self.is_meant
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        let (tool, provider) = (self.tool, self.charge.provider);
        format!(
            "raise the price of {tool} in PRICES, set {provider}=N in PROVIDER_CALLS_PER_DAY, or name {tool} in SOLD_BELOW_COST"
        )
    }
}

/// "web_search is sold for 0.001 USDC, and brave charges 0.005 USD for a search (https://…, 2026-11)".
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { tool, price, charge, most, .. } = self;
        let Amount::Public { usd, unit, source, as_of } = charge.amount else { return Ok(()) };
        let provider = charge.provider;
        write!(f, "{tool} is sold for {price} USDC, and {provider} charges {usd} USD for {unit} ({source}, {as_of})")?;
        match most {
            Some(most) => write!(f, "; at most {most} times a day"),
            None => Ok(()),
        }
    }
}

/// Every sold tool whose usual price is below what one of the configured providers charges for it.
pub fn losses(catalog: &Catalog, config: &Config) -> Vec<Loss> {
    let mut losses = Vec::new();
    for charge in (catalog.charges)() {
        let used = config.providers.order(charge.capability);
        let Amount::Public { usd, .. } = charge.amount else { continue };
        if !used.iter().any(|name| name == charge.provider) {
            continue;
        }
        for tool in catalog.iter().filter(|tool| charge.tools.contains(&tool.name)) {
            let price = config.prices.tools.get(tool.name).copied().unwrap_or_else(|| tool.price.usual());
            if price >= usd {
                continue;
            }
            losses.push(Loss {
                tool: tool.name,
                price,
                charge,
                most: config.providers.calls_a_day.get(charge.provider).copied(),
                is_meant: config.sold_below_cost.iter().any(|word| word == "*" || word == tool.name),
            });
        }
    }
    losses
}
