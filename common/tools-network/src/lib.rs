//! Accounts of the professional network: how they are connected ([`intent`], [`connect`], [`account`]), what is read of them
//! ([`sync`], [`syncing`], [`inbox`]), and what agents do with them ([`sold`], [`claiming`], [`action`], [`work`]).
//!
//! | file | content |
//! |---|---|
//! | [`providers`] | the networks: a local one, and Unipile |
//! | [`events`] | what a provider posts |
//! | [`limits`] | how much an account may do in a day |
//! | [`invitations`] | invitations and what became of them |
//! | [`pages`] | lists in the order of time |
//! | [`revoke`], [`idle`] | how an account is given up |
//! | [`settle`] | what the operator says of an action whose fate is unknown |
//!
//! An owner's grant is asked when a call is sold and again just before it is sent. What was sent may be unknown; it is never sent
//! twice ([`action`]).

pub mod account;
pub mod action;
pub mod claiming;
pub mod connect;
pub mod events;
pub mod idle;
pub mod inbox;
pub mod intent;
pub mod invitations;
pub mod limits;
mod notices;
pub mod pages;
pub mod providers;
pub mod revoke;
pub mod settle;
pub mod sold;
pub mod sync;
pub mod syncing;
#[cfg(test)]
mod testing;
pub mod view;
pub mod work;

use sold::{invite, message, profile_view, react, reply, withdraw};

/// The route group that sells the tools.
pub const GROUP: &str = "network";

tools::family!(sync, reply, message, profile_view, react, invite, withdraw);
