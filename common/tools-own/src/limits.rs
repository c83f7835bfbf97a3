//! Limits that hold for all callers of a service together, and the row that keeps a request from being sent twice.

use std::time::Duration;

use base::digest::sha256;
use base::tool_result::{ErrorCode, ToolError, Unavailable};
use platform::http::log;
use platform::store::{Key, StoreError, Write, daily};
use tools::{Task, Toolbox, own};
use upstream::Tool;

/// A place is free again after the service's time and this.
const MARGIN: Duration = Duration::from_secs(30);

/// Counts a call of the day. [`tools::own::check_room`] refuses one that has no chance before it is paid for.
pub async fn count(toolbox: &Toolbox, tool: &Tool) -> Result<(), ToolError> {
    let Some(most) = tool.calls_per_day else { return Ok(()) };
    match daily::take(&toolbox.db, own::counted(tool), most, toolbox.clock.now()).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(busy("the service has answered as many calls as it does in a day; try again tomorrow")),
        Err(error) => Err(uncounted(&error)),
    }
}

/// A place among the calls at one time.
pub struct Place {
    key: Key,
    holder: String,
}

/// Takes a place, if the service has only so many.
pub async fn enter(toolbox: &Toolbox, task: &Task, tool: &Tool) -> Result<Option<Place>, ToolError> {
    let Some(places) = tool.at_once else { return Ok(None) };
    let (now, holder) = (toolbox.clock.now(), task.request_id.to_string());
    let until = now.plus(tool.deadline + MARGIN);
    let places = places.max(1);
    // Calls begin at different places, so that a free one is found soon.
    let first = u32::from(sha256(holder.as_bytes())[0]);
    for place in (0..places).map(|step| (first + step) % places) {
        let key = Key::new(format!("RATE#own:{}#places", tool.name), format!("{place:05}"));
        let take = || {
            Write::update(
                &toolbox.db.tables.agents,
                key.clone(),
                "SET #holder = :holder, #until = :until, #expires = :expires",
            )
            .only_if("attribute_not_exists(#pk) OR #until <= :now OR #holder = :holder")
            .bind("holder", &holder)?
            .bind("until", until)?
            .bind("expires", until.secs() + 3600)?
            .bind("now", now)
        };
        let taken = match take() {
            Ok(write) => toolbox.db.write_if(write).await,
            Err(error) => Err(error),
        };
        match taken {
            Ok(true) => return Ok(Some(Place { key, holder })),
            Ok(false) => {}
            Err(error) => return Err(uncounted(&error)),
        }
    }
    Err(busy("the service answers as many calls as it can; try again in a moment"))
}

/// Gives the place back. One that cannot be given back is free when its time is over.
pub async fn leave(toolbox: &Toolbox, place: Option<Place>) {
    let Some(Place { key, holder }) = place else { return };
    let leave = async {
        let write = Write::update(&toolbox.db.tables.agents, key, "SET #until = :now")
            .only_if("#holder = :holder")
            .bind("holder", &holder)?
            .bind("now", toolbox.clock.now())?;
        toolbox.db.write_if(write).await
    };
    if let Err(error) = leave.await {
        log::failure("a place of an own service could not be given back", &error);
    }
}

/// Notes that the request is sent now, before it is. Refused if that was noted before: a process died meanwhile, and the
/// service may have done what it was asked.
pub async fn only_once(toolbox: &Toolbox, task: &Task) -> Result<(), ToolError> {
    let noted = async {
        let key = Key::new(Key::of_job(task.request_id).pk, "SENT");
        // No job is kept longer.
        let expires = toolbox.clock.now().plus(tools::spec::RETENTION * 2).secs();
        let write = Write::put(&toolbox.db.tables.jobs, key, &serde_json::json!({"expires": expires}))?;
        toolbox.db.write_if(write.only_if_new()).await
    };
    match noted.await {
        Ok(true) => Ok(()),
        Ok(false) => Err(ToolError::unavailable(
            Unavailable::SourceUnavailable,
            "the service was asked, and whether it did what it was asked is not known; it is not asked twice",
        )),
        Err(error) => Err(uncounted(&error)),
    }
}

fn busy(message: &str) -> ToolError {
    ToolError::new(ErrorCode::RateLimited, message)
}

fn uncounted(error: &StoreError) -> ToolError {
    log::failure("a call of an own service could not be counted", error);
    ToolError::unavailable(Unavailable::SourceUnavailable, "the call could not be counted; try again")
}
