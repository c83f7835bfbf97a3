//! Payments: reading what a payer sends, judging it, and getting the money on chain.
//!
//! | word | file |
//! |---|---|
//! | dialects of headers and payloads | [`wire`] |
//! | price offered for one request | [`quote`] |
//! | terms, window, signature | [`verify`] |
//! | why not | [`reason`] |
//! | one payment, one purchase | [`claim`] |
//! | when work may overlap settlement | [`policy`] |
//! | facilitator, relayer | [`settle`] |
//! | what leaves for sellers | [`treasury`] |
//! | account nonces of our own wallets | [`nonces`] |
//! | fees of our own transactions | [`bid`] |
//!
//! How these make up a paid call is told in `gate`.

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
