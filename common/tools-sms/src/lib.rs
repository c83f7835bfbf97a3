//! SMS: the rules that need neither a database nor a provider.
//!
//! - [`segments`]: into how many segments a message is split. Quote, send and receipt use this one count.
//! - [`number`]: phone numbers, and which of them get no texts: emergency numbers, short codes, special rates.
//! - [`keywords`]: STOP, START and HELP.
//! - [`signature`]: whether a request is Twilio's.

pub mod keywords;
pub mod number;
pub mod segments;
pub mod signature;
