//! E-mail: agents send mail, from addresses of the deployment's domains or of their own, and receive mail in mailboxes.
//!
//! What always holds:
//!
//! - Each recipient of a send gets one mail or none. A submission is recorded before the mail is handed over
//!   ([`recipient`]), and one whose outcome is not known is never repeated.
//! - Only recipients that a mailbox or a provider accepted are charged. If there are none, the job fails and everything
//!   comes back.
//! - An agent sends only from an address that it owns: one on an operator's domain that nobody else has, or one on a
//!   domain that it has proven to control ([`domain`]), and that the provider takes mail from ([`identity`]).
//! - What goes out in a day is limited for each domain of an agent, and for all agents together ([`volume`]). Who has too many mails
//!   come back sends nothing more outside ([`standing`]).
//! - A mail to an address of this deployment never leaves it. Other addresses need a provider ([`providers`]).
//! - An upload is attached only by the agent that made it ([`upload`]).
//! - Nobody gets mail who has complained, unsubscribed, or whose address has bounced ([`suppression`]).
//! - A mail that arrives never causes another mail. Its agent is told of it once (`notices`).
//! - What others wrote (addresses, names, subjects, bounce reasons) is untrusted: it is cleaned and never logged.
//!
//! Start with [`send`] (the tool) and [`quote`] (its price and the choice of the sender), then [`receive`]. Beside them
//! stand [`mailbox`] (what is stored) and [`events`] (what providers report later).

pub mod address;
mod charset;
pub mod compose;
pub mod dkim;
pub mod domain;
pub mod events;
pub mod file_link;
mod headers;
pub mod identity;
pub mod mailbox;
mod notices;
pub mod parse;
mod programs;
pub mod providers;
pub mod quote;
pub mod receive;
pub mod recipient;
pub mod room;
pub mod send;
pub mod standing;
pub mod stats;
pub mod suppression;
mod transfer;
pub mod upload;
pub mod volume;
