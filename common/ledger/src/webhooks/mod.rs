//! Outgoing webhooks: what happened to an agent, posted to the addresses it named.
//!
//! | file | what |
//! |---|---|
//! | [`event`] | what happened: its id, its type, the body a receiver reads |
//! | [`endpoint`] | an address an agent named: what it wants, its secrets, whether it rests |
//! | [`form`] | what callers may send for one |
//! | [`secret`] | secrets, which no table holds, and the headers made with them |
//! | [`delivery`] | one event on its way to one endpoint: states, the retry plan, the log of attempts |
//! | [`outbox`] | how a caller puts an event in with its own transaction; what the sweeper sends again |
//! | [`courier`] | takes a delivery, posts it, and writes down what became of it |
//! | [`view`] | endpoints and deliveries as their owner reads them |
//!
//! # For who raises an event
//!
//! ```text
//! let event = Event::new(agent, EventKind::OrderCreate, &cause, happened, data);
//! let outgoing = outbox::put(db, &event, now).await?;     // one cheap read; empty if nobody listens
//! writes.extend(outgoing.writes());                       // at most ten, in the caller's own transaction
//! db.transact(&writes).await?;
//! outgoing.announce(queue).await;                         // only for speed: the sweeper does it within a minute
//! ```
//!
//! `cause` and `happened` name the event: the same two give the same id, and the write of an event that is there already
//! is refused. So what may be raised again (a stream that is read twice) goes through [`outbox::Outgoing::keep`], which
//! takes a refusal for done; in a caller's transaction, a refusal of one of these writes means that the whole was done
//! before.
//!
//! # What dies where
//!
//! | what dies or is lost | what is found |
//! |---|---|
//! | the caller, before its transaction | nothing: neither the change nor the event happened |
//! | the caller, after it, before the queue has the message | a delivery that is due: the sweeper sends it, within a minute |
//! | the message | the same |
//! | a message that comes twice, or two workers with one delivery | one takes the lease, the other has nothing to do |
//! | the worker, before the receiver has the request | a lease that lapses after a minute; that attempt counts, and the sweeper sends the next |
//! | the worker, after the receiver had it | the same: the receiver sees the event again, with the same `webhook-id` |
//! | the write of what became of an attempt | the same |
//! | the message of the next attempt | the row is due at its time: the sweeper sends it |
//! | the receiver, for good | after the sixth attempt the delivery is `dead` and its owner is told (contract §14); `replay` starts it anew |
//! | the endpoint, meanwhile disabled or deleted | the delivery is `cancelled`, without an attempt |
//!
//! An event is delivered at least once, and events come in no promised order.

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
