//! Products in shops: found ([`search`]), bought ([`buy`], [`quote`], [`work`], with [`address`] and [`restricted`] goods checked
//! first), and followed until they have arrived ([`order`], [`tracking`], [`watch`]).

pub mod address;
pub mod buy;
pub mod order;
pub mod providers;
pub mod quote;
mod restricted;
pub mod tracking;
mod work;

tools::family!(buy);
