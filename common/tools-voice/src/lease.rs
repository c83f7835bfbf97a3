//! Numbers that nobody uses are announced, and released two weeks later. The list is in [`tools_sms::lease`]; a number's
//! settings for calls go with it, which is why this is done here.
//!
//! Each step is one transaction, refused if the number's row in the list has moved. So several runs at once, and one that dies,
//! announce once and release once. The release is refused, too, if the number was used since it was looked at: a text or a call
//! that comes in at that moment is either taken, and the number stays, or finds that nobody has the number.
//!
//! A call or a job with a number notes its use when it begins, and none lasts for months: so no number is released under it.

use base::clock::Timestamp;
use ledger::notifications::{self, Notification, NotificationKind};
use platform::http::log;
use platform::store::{Db, StoreError, Write, WriteError};
use serde_json::{Value, json};
use tools::Toolbox;
use tools::chore::{self, Chore};
use tools_sms::lease::{self, Lease, NOTICE, SHARDS, UNUSED};
use tools_sms::phone::{self, Phone};

use crate::settings;

/// Numbers of a partition that one run looks at.
pub const AT_ONCE: usize = 25;

/// What a run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    pub announced: u32,
    pub released: u32,
    /// More numbers may be due.
    pub more: bool,
}

enum Done {
    /// It was used, or is not its agent's any more.
    Kept,
    Announced,
    Released,
    /// Somebody else changed it meanwhile; it is looked at again by the next run.
    Not,
}

/// [`look`], every hour.
pub static CHORE: Chore = Chore {
    name: "phones",
    run: |toolbox| {
        Box::pin(async move {
            let looked = look(toolbox).await?;
            let counts = json!({"announced": looked.announced, "released": looked.released});
            let has_done = looked.announced + looked.released > 0;
            Ok(chore::Done { counts: if has_done { counts } else { Value::Null }, more: looked.more })
        })
    },
};

/// Looks at the numbers that are due, at most [`AT_ONCE`] of a partition.
///
/// # Errors
/// If the list cannot be read. What cannot be done about a number is logged and left to the next run.
pub async fn look(toolbox: &Toolbox) -> Result<Looked, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let mut looked = Looked::default();
    for shard in 0..SHARDS {
        let due = lease::due(db, shard, now, AT_ONCE).await?;
        let mut are_all_done = true;
        for lease in &due {
            match look_at(db, lease, now).await {
                Ok(Done::Kept) => {}
                Ok(Done::Announced) => looked.announced += 1,
                Ok(Done::Released) => looked.released += 1,
                Ok(Done::Not) => are_all_done = false,
                Err(error) => {
                    are_all_done = false;
                    log::failure("the lease of a phone number could not be looked at", &error);
                }
            }
        }
        // A number that could not be done is left to the next run; asking at once would find it again.
        looked.more |= due.len() == AT_ONCE && are_all_done;
    }
    Ok(looked)
}

async fn look_at(db: &Db, lease: &Lease, now: Timestamp) -> Result<Done, StoreError> {
    let phone = phone::of_agent(db, lease.agent, &lease.source).await?;
    let owner = phone::owner_of(db, &lease.number).await?.filter(|owner| owner.agent == lease.agent);
    let mut writes = vec![lease.delete(db)];
    let done = match (phone, owner) {
        (Some(phone), Some(owner)) if phone.number == lease.number => {
            let due = lease::last_use(&phone, &owner).plus(UNUSED);
            if now < due {
                writes.push(Lease { due, announced: false, ..lease.clone() }.put(db)?);
                Done::Kept
            } else if !lease.announced {
                let until = now.plus(NOTICE);
                writes.push(Lease { due: until, announced: true, ..lease.clone() }.put(db)?);
                writes.push(announcement(db, &phone, until, now)?);
                Done::Announced
            } else {
                writes.extend(phone::release(db, &phone, &owner, now)?);
                writes.extend(settings::ended(db, &phone, now).await?);
                writes.push(end(db, &phone, now)?);
                Done::Released
            }
        }
        // The provider no longer has it, and its agent has another one. It takes no calls any more.
        (Some(phone), Some(owner)) => {
            let lost = Phone { id: owner.id, number: lease.number.clone(), ..phone };
            writes.extend(settings::ended(db, &lost, now).await?);
            Done::Kept
        }
        _ => Done::Kept,
    };
    match db.transact(&writes).await {
        Ok(()) => Ok(done),
        Err(WriteError::Refused(_)) => Ok(Done::Not),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Tells the agent that its number will be released.
fn announcement(db: &Db, phone: &Phone, until: Timestamp, now: Timestamp) -> Result<Write, StoreError> {
    let body = "It has not been used for 90 days. It stays yours if it sends or gets a text or a call before then, or if you \
                put its settings for calls.";
    let note = Notification {
        kind: NotificationKind::PhoneExpiring,
        title: format!("The number {} will be released", phone.number.as_str()),
        body: Some(body.to_owned()),
        payload: Some(json!({
            "phone_number": phone.number,
            "phone_number_id": phone.id,
            "status": "expiring",
            "expires_at": until.to_string(),
        })),
    };
    notifications::raise(db, phone.agent, note, &format!("{}:expiring", phone.id), now)
}

/// Tells the agent that its number was released.
fn end(db: &Db, phone: &Phone, now: Timestamp) -> Result<Write, StoreError> {
    let note = Notification {
        kind: NotificationKind::PhoneExpiring,
        title: format!("The number {} was released", phone.number.as_str()),
        body: Some("It was not used. It gets no texts and takes no calls, and its settings are deleted.".to_owned()),
        payload: Some(json!({"phone_number": phone.number, "phone_number_id": phone.id, "status": "released"})),
    };
    notifications::raise(db, phone.agent, note, &format!("{}:released", phone.id), now)
}
