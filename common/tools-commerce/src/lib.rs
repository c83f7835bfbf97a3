//! Products in shops: found ([`search`]), bought ([`buy`], [`quote`], [`work`], with [`address`] and [`restricted`] goods checked
//! first), and followed until they have arrived ([`order`], [`tracking`], [`watch`]).

pub mod address;
pub mod buy;
pub mod feed;
pub mod order;
pub mod providers;
pub mod quote;
mod restricted;
pub mod search;
pub mod tracking;
pub mod watch;
mod work;

tools::family!(search, buy);
