//! Products in shops: found ([`search`]), bought ([`buy`], [`quote`], [`work`], with [`address`] and [`restricted`] goods checked
//! first), and followed until they have arrived ([`order`], [`tracking`], [`watch`]). [`goods`] are sold here, without any shop.

pub mod address;
pub mod buy;
pub mod feed;
pub mod goods;
pub mod order;
pub mod providers;
pub mod quote;
mod restricted;
pub mod search;
mod telling;
pub mod tracking;
pub mod watch;
mod work;

tools::family!(search, buy);
