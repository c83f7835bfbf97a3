//! What happens in a call that is on record, and how it ends.

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::store::{Db, StoreError};

use crate::call::{self, Event};
use crate::calls::{self, Call};

/// How often a change is tried again because another one was faster.
const TRIES: usize = 20;

/// Applies what happened to a call at this time ([`call::next`]), and stores it. Returns the call; `None` if there is no such
/// call. A call that was declined, or that has ended, stays as it is.
pub async fn apply(db: &Db, id: RequestId, at: Timestamp, event: Event) -> Result<Option<Call>, StoreError> {
    let mut tried: Option<Call> = None;
    for _ in 0..TRIES {
        let Some(found) = calls::load(db, id).await? else { return Ok(None) };
        // A write whose answer was lost is sent again by the SDK, and then refused by its own success.
        if tried.as_ref() == Some(&found) {
            return Ok(Some(found));
        }
        let (Some(config), Some(state)) = (&found.config, &found.state) else { return Ok(Some(found)) };
        let state = call::next(config, state, at, event);
        if found.state.as_ref() == Some(&state) {
            return Ok(Some(found));
        }
        let next = Call { state: Some(state), revision: found.revision.saturating_add(1), ..found };
        if calls::change(db, &next).await? {
            return Ok(Some(next));
        }
        tried = Some(next);
    }
    Err(StoreError::new("a call changes faster than it can be stored"))
}
