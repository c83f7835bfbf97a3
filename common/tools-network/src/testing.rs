//! What tests of several files use.

use base::clock::Timestamp;
use base::ids::AgentId;
use uuid::Uuid;

use crate::account::{Account, Grant, Status, Tier};

/// A connected account without a grant.
pub fn account() -> Account {
    Account {
        id: Uuid::from_u128(1),
        agent: AgentId::from_bytes([1; 16]),
        provider: "local".to_owned(),
        upstream: "up".to_owned(),
        status: Status::Connected,
        display_name: None,
        member: Some("member".to_owned()),
        tier: Tier::Free,
        grant: Grant::default(),
        grant_version: 1,
        connected_at: Timestamp::default(),
        reconnected_at: None,
        last_status_at: None,
        revoked_at: None,
        idle_revoke_at: Timestamp::default(),
        forgotten: false,
        revision: 0,
    }
}
