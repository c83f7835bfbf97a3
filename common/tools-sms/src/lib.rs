//! SMS: agents get phone numbers, send texts and receive them.
//!
//! What always holds:
//!
//! - Each recipient of a send gets one text or none. A submission is recorded before the text is handed over
//!   ([`messages::recipient`]), and one whose outcome is not known is never repeated.
//! - Only recipients that an inbox or a provider accepted are charged, and a number only by the job that bought it.
//! - Quote, send and receipt count segments by one function, of one text ([`segments`]).
//! - Emergency numbers, short codes and special rates get no texts ([`number`]).
//! - Nobody gets a text who has told the sending number to stop ([`opt_out`]).
//! - A text to a number of this deployment never leaves it. Other numbers need a provider ([`providers`]), and have limits of
//!   their own ([`velocity`]).
//! - A text that arrives causes no other text, but the one answer to STOP, START and HELP ([`receive`]).
//! - What others wrote (numbers, texts, reasons) is untrusted: it is cleaned and never logged.
//!
//! Start with [`send`] (the tool) and [`quote`] (its price), then [`receive`]. Beside them stand [`phone`] (agents' numbers),
//! [`lease`] (until when they have them), [`buy`] (buying one by itself), [`inbox`] (what is stored) and [`events`] (what providers report later). [`segments`],
//! [`number`], [`keywords`] and [`signature`] are rules that need neither a database nor a provider.

pub mod buy;
mod digits;
pub mod events;
pub mod inbox;
pub mod keywords;
pub mod lease;
pub mod named;
mod notices;
pub mod number;
pub mod opt_out;
pub mod phone;
pub mod providers;
pub mod quote;
pub mod receive;
pub mod segments;
pub mod send;
pub mod signature;
pub mod velocity;
