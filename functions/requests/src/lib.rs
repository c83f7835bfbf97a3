//! The state of jobs, for their owners, and of payments, for anybody.

use api::operations::requests::DURABLE;
use api::operations::shared::VISIBLE;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use base::ids::RequestId;
use catalog::CATALOG;
use gate::app::App;
use gate::jobs::job::Outcome;
use gate::jobs::list::{self, Filter};
use gate::jobs::{Job, store, view};
use gate::limits::{self, Class, Subject};
use gate::{came_to_nothing, links, respond, status};
use http::{HeaderMap, Method, StatusCode};
use ledger::payments::idempotency::{self, IdempotencyKey};
use platform::auth::Scope;
use platform::http::headers::MAX_KEY_BYTES;
use platform::http::{ApiError, Params, Segment, private_json};
use platform::store::StoreError;
use serde_json::{Value, json};
use tools::files::{self, Reader};
use tools_email::{domain, recipient, send};

pub fn router(app: App) -> Router {
    let router = Router::new()
        .route("/v1/requests", get(requests))
        .route("/v1/requests/{id}", get(request))
        .route("/v1/requests/{id}/files", get(list_files))
        .route("/v1/requests/{id}/files/{*path}", get(file))
        .route("/v1/payments/{reference}", get(payment))
        .route("/v1/submissions/recover", get(recover));
    api::routes::finish(router.with_state(app))
}

/// `GET /v1/requests`: the caller's jobs, newest first, for an agent that lost an id.
async fn requests(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let filter = Filter::read(query.as_deref(), app.catalog)?;
        let page = list::list(&app.db, caller.agent, &filter, app.clock.now()).await?;
        let body = json!({"requests": page.requests, "next_before": page.next});
        limits::take_list(&app, Subject::Agent(caller.agent), Class::Export, body.to_string().len()).await?;
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// `GET /v1/requests/{id}`: a job, for its owner. Costs one eventually consistent read, and the proof's nonce. For sent
/// e-mail also the reads of some of its recipients; of all, at most every half minute. For texts those of its recipients,
/// 100 at most.
async fn request(State(app): State<App>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        // An agent platform may read the jobs that its checkout sessions bought.
        let platform = app.platform(&headers)?.map(|platform| platform.id);
        let agent = match platform {
            Some(platform) => {
                limits::take(&app, Subject::Platform(platform), Class::Checkout).await?;
                None
            }
            None => Some(app.caller(&headers, Scope::Read).await?.agent),
        };
        let id: RequestId = id.parse().map_err(|_| ApiError::NotFound)?;
        let now = app.clock.now();
        let job = store::load(&app.db, id).await?.filter(|job| !job.is_forgotten(now)).filter(|job| match agent {
            Some(agent) => job.agent == agent,
            None => job.ordered.as_ref().map(|ordered| ordered.platform) == platform,
        });
        let job = job.ok_or(ApiError::NotFound)?;
        let body = polled(&app, &job).await?;
        limits::take_result(&app, &job, Reader::Buyer, || body.to_string().len()).await?;
        Ok(gate::answer::with_settlement(private_json(StatusCode::OK, &body), &job, &app.config.chain))
    };
    respond(answer.await)
}

/// The caller's own job, and the files that its tool has made. What souls sold has routes of its own.
///
/// # Errors
/// 404 `not_found`, also while the job is not completed.
async fn with_files(app: &App, headers: &HeaderMap, id: &str) -> Result<Job, ApiError> {
    let agent = app.caller(headers, Scope::Read).await?.agent;
    let id: RequestId = id.parse().map_err(|_| ApiError::NotFound)?;
    let now = app.clock.now();
    let job = store::load(&app.db, id).await?.filter(|job| !job.is_forgotten(now) && job.agent == agent);
    job.filter(|job| job.sold.is_none() && job.outcome == Some(Outcome::Completed)).ok_or(ApiError::NotFound)
}

/// `GET /v1/requests/{id}/files`: the files of a completed job.
async fn list_files(State(app): State<App>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let job = with_files(&app, &headers, &id).await?;
        let id = job.request_id.to_string();
        let files = files::of_job(&app.db, job.request_id).await?;
        let folder = format!("/v1/requests/{id}/files");
        gate::files::list(&app, &job, Reader::Buyer, ("request_id", &id), &folder, &files).await
    };
    respond(answer.await)
}

/// `GET /v1/requests/{id}/files/{path}`: the content, or a redirect to a large file.
async fn file(
    State(app): State<App>,
    path: Result<Path<(String, String)>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let Path((id, path)) = path.map_err(|_| ApiError::NotFound)?;
        let job = with_files(&app, &headers, &id).await?;
        gate::files::serve(&app, &job, Reader::Buyer, &path, &method, &headers).await
    };
    respond(answer.await)
}

/// A job as its owner polls it, over HTTP or MCP.
pub async fn polled(app: &App, job: &Job) -> Result<Value, ApiError> {
    let mut body = view::poll(&*app.blobs, job).await?;
    if let Some(result) = body.get_mut("result") {
        links::add_picture(app, job, result).await?;
    }
    if job.tool == send::SPEC.name {
        add_tracking(app, job, &mut body).await?;
    } else if job.tool == tools_sms::send::SPEC.name
        && let Some(tracking) = tools_sms::send::tracking(&app.db, job.agent, job.request_id).await?
    {
        body["sms_tracking"] = tracking;
    } else if job.tool == tools_commerce::buy::SPEC.name
        && let Some(tracking) = tools_commerce::tracking::of(&app.db, job.request_id).await?
    {
        body["order_tracking"] = tracking;
    }
    Ok(body)
}

/// Adds what became of a sent e-mail so far, and the sender's domain. Nothing before the work has begun.
async fn add_tracking(app: &App, job: &Job, body: &mut Value) -> Result<(), StoreError> {
    let has_ended = job.outcome.is_some();
    let tracking = recipient::tracking(&app.db, job.agent, job.request_id, has_ended, app.clock.now()).await?;
    let Some(tracking) = tracking else { return Ok(()) };
    let domain = tracking["from"].as_str().and_then(|from| from.rsplit_once('@')).map(|(_, domain)| domain.to_owned());
    body["email_tracking"] = tracking;
    if let Some(name) = domain {
        let known = domain::load(&app.db, job.agent, &name).await?;
        body["domain_info"] = json!({"domain": name});
        if let Some(known) = known {
            body["domain_info"]["status"] = json!(known.provisioning);
        }
    }
    Ok(())
}

/// `GET /v1/payments/{nonce or transaction hash}`: the state of a payment. Both values are public on the chain, so no proof
/// is required. Only the payer also gets the job's id, because that is half of what is needed to read a soul's work.
async fn payment(State(app): State<App>, Segment(reference): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let reference = evm::parse_word(&reference).ok_or_else(|| {
            ApiError::field("reference", "must be a nonce or a transaction hash: 0x and 64 hex digits")
        })?;
        let caller = app.caller_if_proven(&headers, Scope::Read).await?;
        if let Some(caller) = &caller {
            limits::take(&app, Subject::of(caller, Class::Read), Class::Read).await?;
        }
        // The chain may have to be asked, so this is limited for every caller.
        limits::may_ask_chain(&app, Subject::source())?;
        let found = status::find(&app.db, &app.chain, &app.config.chain, &reference).await;
        if !found.as_ref().is_ok_and(|payments| payments.iter().any(|payment| payment.is_known_by(&reference))) {
            limits::asked_chain_in_vain(&app, Subject::source()).await;
        }
        let payments = found?;
        let state = payments.first().map_or("never_seen", |payment| payment.state);
        let payments: Vec<_> = payments.iter().map(|payment| payment.to_json(caller.as_ref())).collect();
        Ok(private_json(
            StatusCode::OK,
            &json!({"reference": evm::hex0x(&reference), "state": state, "payments": payments}),
        ))
    };
    respond(answer.await)
}

/// `GET /v1/submissions/recover`: what the caller's wallet bought under an idempotency key, if the answer was lost.
/// Includes work that failed before it was charged, although its key is free again; refused payments bought nothing and are
/// left out.
async fn recover(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.wallet_caller(&headers, Scope::Read, ApiError::WalletOnly).await?;
        let mut params = Params::of(query.as_deref());
        let endpoint = params.choice("endpoint", DURABLE);
        let key = params.short_text("key", MAX_KEY_BYTES);
        for name in ["endpoint", "key"] {
            if params.text(name).is_none() {
                params.refuse(name, "is required");
            }
        }
        if key.as_deref().is_some_and(|key| !(VISIBLE.matches)(key)) {
            params.refuse("key", VISIBLE.message);
        }
        params.check()?;
        let (Some(endpoint), Some(key)) = (endpoint, key) else { return Err(ApiError::SubmissionNotFound) };
        let tool = CATALOG.name_of(endpoint).ok_or(ApiError::SubmissionNotFound)?;
        let name = IdempotencyKey { agent: caller.agent, tool, name: &key };
        let named = idempotency::load(&app.db, name).await?.ok_or(ApiError::SubmissionNotFound)?;
        let job = store::load_latest(&app.db, named.request_id).await?;
        let now = app.clock.now();
        let was_accepted = |job: &Job| !came_to_nothing(job) || job.failed_unpaid();
        let is_kept = |job: &Job| job.agent == caller.agent && was_accepted(job) && !job.is_forgotten(now);
        let job = job.filter(is_kept).ok_or(ApiError::SubmissionNotFound)?;
        Ok(private_json(
            StatusCode::OK,
            &json!({
                "request_id": job.request_id,
                "receipt_id": job.receipt_id,
                "status": job.status(),
                "settlement_status": job.settlement_status(),
                "idempotency_key": key,
                "tool": job.tool,
            }),
        ))
    };
    respond(answer.await)
}
