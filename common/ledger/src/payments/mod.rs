//! Payments: reads what a payer sends, verifies it, and settles it on chain.
//!
//! | topic | module |
//! |---|---|
//! | headers and payload formats | [`wire`] |
//! | price offered for one request | [`quote`] |
//! | checks of terms, validity window and signature | [`verify`] |
//! | reasons for a refusal | [`reason`] |
//! | one payment buys one thing | [`claim`] |
//! | idempotency keys | [`idempotency`] |
//! | when work may start before settlement | [`policy`] |
//! | settlement by facilitator or relayer | [`settle`] |
//! | transfers to sellers | [`treasury`] |
//! | account nonces of our own wallets | [`nonces`] |
//! | fees of our own transactions | [`bid`] |
//!
//! The crate `gate` combines these into a paid call.

pub mod bid;
pub mod claim;
pub mod idempotency;
pub mod nonces;
pub mod policy;
pub mod quote;
pub mod reason;
pub mod settle;
pub mod treasury;
pub mod verify;
pub mod wire;
