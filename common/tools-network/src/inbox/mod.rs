//! Conversations and messages of an account, as far as they were read here: by syncs, by the provider's posts, by sending. They come
//! twice and in any order: a message is one row whatever it was heard by, and what was said last about it stands.
//!
//! | item (table messages) | key |
//! |---|---|
//! | a conversation | `NETCONV#<account>` / `<conversation>` |
//! | its place among them ([`crate::pages`]) | `NETCONVAT#<account>` / `<time of its latest message>#<conversation>` |
//! | a message | `NETMSG#<account>` / `<time>#<message>` |
//! | where a message is | `NETMSGID#<message>` / `AT` |
//!
//! Messages are kept for 30 days after they were last heard of. A sync brings older ones back.

mod conversation;
mod listing;
mod message;
mod taking;

use std::time::Duration;

pub use conversation::{Conversation, conversation, conversation_id, describe};
pub use listing::{Choice, Filter, conversations, list};
pub use message::{By, Message, known, message_id};
pub use taking::{Taken, take};

/// How long a message is kept after it was last heard of.
pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
