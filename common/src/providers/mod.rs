//! Adapters to what lies outside: the chain. (Facilitator and relayer live with the payments they settle.)

pub mod chain;

pub use chain::Chain;
