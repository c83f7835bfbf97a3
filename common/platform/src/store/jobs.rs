//! What code below the engine of jobs may do with a job: wake it.

use base::ids::RequestId;

use super::db::Write;
use super::queue::{self, Queue};
use super::{Db, Key, StoreError};

/// Wakes an open job that waits for an outside event. It runs soon, also if one of its runs is just ending: the engine counts
/// wake-ups, and a run that ends sees that there was one. What cannot be written or sent only delays it until its next look.
pub async fn wake(db: &Db, queue: &dyn Queue, request_id: RequestId) {
    match count(db, request_id).await {
        Ok(true) => {}
        // It has ended.
        Ok(false) => return,
        Err(error) => crate::http::log::failure("the wake-up of a job could not be counted", &error),
    }
    queue::send_or_log(queue, request_id, None).await;
}

async fn count(db: &Db, request_id: RequestId) -> Result<bool, StoreError> {
    let woken = Write::update(&db.tables.jobs, Key::of_job(request_id), "ADD #woken :one");
    db.write_if(woken.only_if("attribute_exists(#open)").bind("one", 1)?).await
}
