//! What providers charge. Each adapter says it of itself; the crate `tools` compares it with prices.

use base::money::Usdc;

use crate::config::Capability;

/// What a provider charges for one use of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    /// Its name in the variable of the capability.
    pub provider: &'static str,
    pub capability: Capability,
    /// The tools that ask it so, by name.
    pub tools: &'static [&'static str],
    pub amount: Amount,
}

#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// Why there is no public price of one use.
    Unknown(&'static str),
    /// The lowest public price.
    Public {
        usd: Usdc,
        /// What is charged for: "a search".
        unit: &'static str,
        /// Where that is said, and the month in which it was read: `2026-11`. Some were read by others.
        source: &'static str,
        as_of: &'static str,
    },
}

impl Amount {
    /// A public price in millionths of a US dollar.
    pub const fn public(micro: u64, unit: &'static str, source: &'static str, as_of: &'static str) -> Amount {
        Amount::Public { usd: Usdc::from_micro(micro), unit, source, as_of }
    }
}
