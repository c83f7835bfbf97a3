//! Accounts that nobody uses are given up: each may cost the operator money by the month, and a grant that is forgotten is a risk. One
//! that was given up, and that its provider has not deleted, is deleted there.

use platform::http::log;
use platform::store::StoreError;
use serde_json::{Value, json};
use tools::Toolbox;
use tools::chore::{Chore, Done};

use crate::account::{self, Place, SHARDS, Status};
use crate::{notices, revoke};

/// Accounts of a partition that one run looks at.
const AT_ONCE: usize = 20;

pub static CHORE: Chore = Chore { name: "network accounts", run: |toolbox| Box::pin(look(toolbox)) };

async fn look(toolbox: &Toolbox) -> Result<Done, StoreError> {
    let (mut given_up, mut more) = (0, false);
    for shard in 0..SHARDS {
        let due = account::idle(&toolbox.db, shard, toolbox.clock.now(), AT_ONCE).await?;
        let mut is_all_done = true;
        for place in &due {
            match look_at(toolbox, *place).await {
                Ok(is_given_up) => given_up += u32::from(is_given_up),
                Err(error) => {
                    is_all_done = false;
                    log::failure("an idle account could not be looked at", &error);
                }
            }
        }
        more |= due.len() == AT_ONCE && is_all_done;
    }
    Ok(Done { counts: if given_up > 0 { json!({"given_up": given_up}) } else { Value::Null }, more })
}

/// Whether the account was given up. One that was used meanwhile is looked at later.
async fn look_at(toolbox: &Toolbox, place: Place) -> Result<bool, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let account = account::load(db, place.agent, place.account).await?;
    let mut given_up = false;
    if let Some(account) = account {
        if account.status == Status::Revoked {
            revoke::forget(toolbox, &account).await?;
        } else if !account.is_open() {
            // The provider says that it is gone.
        } else if account.idle_revoke_at > now {
            db.write(account::idle_row(db, place, account.idle_revoke_at)?).await?;
        } else {
            let queue = toolbox.job_queue.as_ref().ok_or_else(|| StoreError::new("no queue of jobs"))?;
            let revoked = revoke::revoke(toolbox, &**queue, &account).await?;
            if let Some(revoked) = revoked
                && let Some(note) = notices::of(db, &revoked.account, now)?
            {
                db.write(note).await?;
            }
            given_up = true;
        }
    }
    db.write_if(account::idle_done(db, place)).await?;
    Ok(given_up)
}
