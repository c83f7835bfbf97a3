//! Goods that are sold here: listed by sellers and by the operator, bought with the same tool as products of shops, and sent by
//! their seller. No provider is asked.
//!
//! | module | contents |
//! |---|---|
//! | [`good`] | a good, its stock, and their rows |
//! | [`form`], [`listing`] | bodies of sellers' requests; creating, changing and deleting a good |
//! | [`finding`] | search by words |
//! | [`price`] | what a purchase costs |
//! | [`buying`] | the quote, the writes of the claim, and the run that places the order |
//! | [`sale`] | an order, its moves as a pure function, and its rows |
//! | [`moving`] | moves an order, with the money and the stock that follow |
//! | [`watch`] | what time does to orders, every hour |
//! | [`view`], [`page`] | goods and orders on the wire, and the page of a good |

pub mod buying;
pub mod finding;
pub mod form;
pub mod good;
pub mod listing;
pub mod moving;
pub mod page;
pub mod price;
pub mod sale;
pub mod view;
pub mod watch;
