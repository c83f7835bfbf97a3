//! `GET /v1/status`: whether everything this service depends on works. The dependencies are checked on request, but at most
//! every few seconds and one check at a time, so that requests cannot overload them.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use gate::app::App;
use gate::jobs::sweep;
use gate::stats;
use http::{HeaderValue, StatusCode, header};
use platform::http::{json, log};
use platform::store::Queue;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Cache TTL of an answer.
const KEPT: Duration = Duration::from_secs(5);
/// Timeout for one dependency. All are checked at the same time.
const PATIENCE: Duration = Duration::from_secs(4);
/// A scheduler that runs every minute has missed several runs by then.
const SWEEP_LATE_SECS: i64 = 300;
/// A job that is still retried this long after its creation will not end by itself.
const JOB_LATE_SECS: u64 = 3600;

/// The queues to check, by name.
pub type Queues = Vec<(&'static str, Arc<dyn Queue>)>;

/// Checks the dependencies and caches the last answer.
pub struct Watch {
    queues: Queues,
    last: Mutex<Option<(Instant, bool, Value)>>,
}

/// The state of one dependency: whether it is healthy, and details.
type Seen = (bool, Value);

impl Watch {
    pub fn new(queues: Queues) -> Watch {
        Watch { queues, last: Mutex::new(None) }
    }

    /// The answer: 200 if everything is healthy, otherwise 503 with the same body.
    pub async fn answer(&self, app: &App) -> Response {
        // The lock is held during the check, so that concurrent requests share one check.
        let mut last = self.last.lock().await;
        let (well, body) = match &*last {
            Some((at, well, body)) if at.elapsed() < KEPT => (*well, body.clone()),
            _ => {
                let (well, body) = self.look(app).await;
                *last = Some((Instant::now(), well, body.clone()));
                (well, body)
            }
        };
        drop(last);
        let mut response = json(if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &body);
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=5"));
        if !well {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
        }
        response
    }

    async fn look(&self, app: &App) -> Seen {
        let queues = async {
            let mut seen = Vec::new();
            for (name, queue) in &self.queues {
                seen.push((*name, look("queue", waiting(&**queue)).await));
            }
            seen
        };
        let (database, chain, sweep, queues) =
            tokio::join!(look("database", database(app)), look("chain", chain(app)), look("sweep", swept(app)), queues);
        let all = [("database", database), ("chain", chain), ("sweep", sweep)].into_iter().chain(queues);
        let all: Vec<(&str, Seen)> = all.collect();
        let well = all.iter().all(|(_, (well, _))| *well);
        let dependencies: serde_json::Map<String, Value> =
            all.into_iter().map(|(name, (_, seen))| (name.to_owned(), seen)).collect();
        let body = json!({
            "status": if well { "healthy" } else { "degraded" },
            "observed_at": app.clock.now().to_string(),
            "dependencies": dependencies,
        });
        (well, body)
    }
}

/// Checks one dependency. The cause of an error goes only to the log, because it may contain addresses and keys.
async fn look(what: &str, asked: impl Future<Output = Result<Seen, String>>) -> Seen {
    let started = Instant::now();
    let seen = match timeout(PATIENCE, asked).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(cause)) => {
            log::failure(&format!("status: {what}"), &cause);
            (false, json!({"message": "it does not answer"}))
        }
        Err(_) => (false, json!({"message": "it does not answer in time"})),
    };
    let (well, mut body) = seen;
    body["status"] = json!(if well { "healthy" } else { "degraded" });
    body["ms"] = json!(started.elapsed().as_millis() as u64);
    (well, body)
}

async fn database(app: &App) -> Result<Seen, String> {
    stats::load(&app.db).await.map_err(|error| error.to_string())?;
    Ok((true, json!({})))
}

async fn chain(app: &App) -> Result<Seen, String> {
    let head = app.chain.head().await.map_err(|error| error.to_string())?;
    let ours = app.config.chain.chain_id;
    let mut seen = json!({"chain_id": head.chain_id, "block": head.number});
    if head.chain_id != ours {
        seen["message"] = json!(format!("it is not chain {ours}"));
    }
    Ok((head.chain_id == ours, seen))
}

async fn swept(app: &App) -> Result<Seen, String> {
    let Some(last) = sweep::last(&app.db).await.map_err(|error| error.to_string())? else {
        return Ok((false, json!({"message": "the scheduler has not completed a run yet"})));
    };
    let age = app.clock.now().secs().saturating_sub(last.at.secs());
    let well = age <= SWEEP_LATE_SECS && last.oldest_secs <= JOB_LATE_SECS;
    Ok((well, json!({"last_at": last.at.to_string(), "sent_again": last.sent, "oldest_open_secs": last.oldest_secs})))
}

async fn waiting(queue: &dyn Queue) -> Result<Seen, String> {
    let waiting = queue.waiting().await.map_err(|error| error.to_string())?;
    Ok((true, json!({"waiting": waiting})))
}
