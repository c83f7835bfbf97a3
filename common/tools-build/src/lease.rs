//! How a site ends: its agent is told a month before its time is over; it is taken down; a month later its files are deleted.
//!
//! Each step is refused if the site has changed meanwhile, so several runs at once, and one that dies, do each step once. Files
//! are deleted before the rows that name them.

use base::clock::Timestamp;
use ledger::notifications::{self, Notification, NotificationKind};
use platform::http::log;
use platform::store::db::Query;
use platform::store::{Db, StoreError, Write, WriteError};
use serde_json::{Value, json};
use tools::Toolbox;
use tools::chore::{self, Chore};

use crate::site::{self, KEPT, Lease, SHARDS, Site, State, Version};

/// Sites of a partition that one run looks at.
const AT_ONCE: usize = 10;
/// Versions whose files are deleted in one look.
const VERSIONS_AT_ONCE: usize = 20;

pub static CHORE: Chore = Chore {
    name: "sites",
    run: |toolbox| {
        Box::pin(async move {
            let (done, more) = look(toolbox).await?;
            Ok(chore::Done { counts: if done > 0 { json!({"changed": done}) } else { Value::Null }, more })
        })
    },
};

/// Looks at the sites that are due. How many it changed, and whether there are more.
///
/// # Errors
/// If the list cannot be read. What cannot be done about a site is logged and left to the next run.
pub async fn look(toolbox: &Toolbox) -> Result<(u32, bool), StoreError> {
    let (mut changed, mut more) = (0, false);
    for shard in 0..SHARDS {
        let due = site::due(&toolbox.db, shard, toolbox.clock.now(), AT_ONCE).await?;
        let mut are_all_done = true;
        for lease in &due {
            match look_at(toolbox, lease).await {
                Ok(true) => changed += 1,
                Ok(false) => are_all_done = false,
                Err(error) => {
                    are_all_done = false;
                    log::failure("a site whose time is over could not be looked at", &error);
                }
            }
        }
        more |= due.len() == AT_ONCE && are_all_done;
    }
    Ok((changed, more))
}

/// Whether this run changed the site. Not if another run did, nor if there is more to delete than one run does.
async fn look_at(toolbox: &Toolbox, lease: &Lease) -> Result<bool, StoreError> {
    let db = &toolbox.db;
    let site = site::load(db, lease.build).await?.filter(|site| site.due == lease.due);
    let Some(site) = site else {
        // It has moved, and this row was left behind, or another run is about to delete it. No change of the site.
        db.write_if(lease.delete(db)).await?;
        return Ok(false);
    };
    let is_changed = change(toolbox, &site).await?;
    // Apart from the change, whose transaction tells the agent: its role may delete nothing of agents.
    if is_changed {
        db.write_if(lease.delete(db)).await?;
    }
    Ok(is_changed)
}

async fn change(toolbox: &Toolbox, site: &Site) -> Result<bool, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    match site.state {
        State::Live if now < site.ends => {
            let next = Site { due: site.ends, ..site.clone() };
            let mut writes = moved(db, site, &next)?;
            writes.push(tell(db, site, "will be taken down", Some(site.ends), now)?);
            applied(db, &writes).await
        }
        State::Live => {
            let next = Site { state: State::Ended, due: now.plus(KEPT), ..site.clone() };
            let mut writes = moved(db, site, &next)?;
            writes.push(tell(db, site, "was taken down", None, now)?);
            applied(db, &writes).await
        }
        // The operator speaks with its owner.
        State::TakenDown if now < site.ends.plus(KEPT) => {
            let next = Site { due: site.ends.plus(KEPT), ..site.clone() };
            applied(db, &moved(db, site, &next)?).await
        }
        State::Ended | State::TakenDown => delete(toolbox, site).await,
    }
}

/// The writes that change a site and give it another place in the list. The row of its old one is deleted after that.
fn moved(db: &Db, site: &Site, next: &Site) -> Result<Vec<Write>, StoreError> {
    let put = Write::put(&db.tables.agents, site::key(site.build), next)?
        .only_if("#version = :version AND #state = :state AND #due = :due")
        .bind("version", site.version)?
        .bind("state", site.state)?
        .bind("due", site.due)?;
    Ok(vec![put, next.lease().put(db)?])
}

async fn applied(db: &Db, writes: &[Write]) -> Result<bool, StoreError> {
    match db.transact(writes).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Deletes the files and rows, oldest version first.
async fn delete(toolbox: &Toolbox, site: &Site) -> Result<bool, StoreError> {
    let db = &toolbox.db;
    let partition = site::key(site.build).pk;
    let query = Query::prefixed(&db.tables.agents, &partition, "VERSION#", VERSIONS_AT_ONCE)?;
    let versions: Vec<Version> = db.query(query.latest()).await?;
    for version in &versions {
        for path in &version.files {
            toolbox.blobs.delete(&site::blob_key(site.build, version.job, path)).await?;
        }
        let row = Write::delete(&db.tables.agents, site::version_key(site.build, version.number));
        db.write_if(row).await?;
    }
    if versions.len() == VERSIONS_AT_ONCE {
        return Ok(false);
    }
    let rows = [
        Write::delete(&db.tables.agents, site::key(site.build)),
        Write::delete(&db.tables.agents, site::lock_key(site.build)),
        site.lease().delete(db),
    ];
    applied(db, &rows).await
}

fn tell(db: &Db, site: &Site, what: &str, at: Option<Timestamp>, now: Timestamp) -> Result<Write, StoreError> {
    let body = match at {
        Some(_) => {
            "Its year is over then. A change of it (POST /v1/tools/build with build_id and changes) gives it another one."
        }
        None => "Its year is over. Its files are deleted in 30 days.",
    };
    let note = Notification {
        kind: NotificationKind::SiteExpiring,
        title: format!("The site {} {what}", site.name),
        body: Some(body.to_owned()),
        payload: Some(json!({
            "build_id": site.build,
            "status": if at.is_some() { "expiring" } else { "ended" },
            "expires_at": at.map(|at| at.to_string()),
        })),
    };
    notifications::raise(db, site.agent, note, &format!("{}:{what}:{}", site.build, site.ends), now)
}
