//! Outgoing webhooks: events of an agent, posted to the endpoints it registered.
//!
//! | module | content |
//! |---|---|
//! | [`event`] | an event: its id, its type, the body |
//! | [`endpoint`] | a registered address: subscriptions, secrets, rest after timeouts |
//! | [`form`] | request bodies for endpoints |
//! | [`secret`] | secrets (never stored) and the signed headers |
//! | [`delivery`] | one event for one endpoint: states, retry plan, log of attempts |
//! | [`outbox`] | writes an event with the caller's transaction; the sweeper |
//! | [`courier`] | leases a delivery, posts it, and stores the outcome |
//! | [`view`] | endpoints and deliveries as their owner reads them |
//!
//! # How to raise an event
//!
//! ```text
//! let event = Event::new(agent, EventKind::OrderCreate, &cause, happened, data);
//! let outgoing = outbox::put(db, &event, now).await?;     // one cheap read; empty if nobody subscribed
//! writes.extend(outgoing.writes());                       // at most ten, in the caller's own transaction
//! db.transact(&writes).await?;
//! outgoing.announce(queue).await;                         // optional: without it the sweeper sends within a minute
//! ```
//!
//! `cause` and `happened` determine the event's id. The write of an event that exists already is refused. So an event that
//! may be raised again (from a stream that is read twice) goes through [`outbox::Outgoing::keep`], which treats a refusal
//! as done. In a caller's transaction, a refusal of one of these writes means that the whole transaction was done before.
//!
//! # What happens on failures
//!
//! | what fails | consequence |
//! |---|---|
//! | the caller dies before its transaction | nothing: neither the change nor the event happened |
//! | the caller dies after it, before the message is queued | the delivery is due: the sweeper sends it within a minute |
//! | the message is lost | the same |
//! | a message comes twice, or two workers get one delivery | one takes the lease, the other does nothing |
//! | the worker dies before the receiver has the request | the lease expires after a minute; the attempt counts, and the sweeper sends the next |
//! | the worker dies after the receiver has it | the same: the receiver gets the event again, with the same `webhook-id` |
//! | the write of an attempt's outcome | the same |
//! | the message of the next attempt is lost | the row is due at its time: the sweeper sends it |
//! | the receiver, permanently | after the sixth attempt the delivery is `dead` and its owner gets a notification; `replay` restarts it |
//! | the endpoint was disabled or deleted meanwhile | the delivery is `cancelled`, without an attempt |
//!
//! An event is delivered at least once. The order of events is not guaranteed.

pub mod courier;
pub mod delivery;
pub mod endpoint;
pub mod event;
pub mod form;
pub mod outbox;
pub mod secret;
pub mod view;

pub use courier::Courier;
pub use delivery::{Delivery, DeliveryState};
pub use endpoint::Endpoint;
pub use event::{Event, EventKind};
pub use outbox::Outgoing;
