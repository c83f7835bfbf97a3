//! Adapters to what lies outside: the chain and the card processor. (Facilitator and relayer live with the payments they
//! settle.)

pub mod cards;
pub mod chain;

pub use cards::Cards;
pub use chain::Chain;
