//! Receipts, spending, value and returns; the audit and its export; the explanation of one charge.

use api::operations::insights::{DECISION, OUTCOME, VALUE};
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, patch, post};
use base::ids::AgentId;
use base::input::{self, Field, FieldError};
use gate::app::App;
use gate::insights::audit as pages;
use gate::insights::audit::{Cursor, CursorKey, Page};
use gate::insights::export::{self, FIRST_HASH, Format};
use gate::insights::list::{self, Filter};
use gate::insights::span::period;
use gate::insights::sums::Period;
use gate::insights::{explain, view};
use gate::limits::{self, Class};
use gate::{MAX_BODY_BYTES, parse_body, respond};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use ledger::value::{self, DecideError, Report, Reported, Status, Subject};
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, Params, Segment, private_body, private_json, read_body};
use serde_json::{Map, Value, json};

/// Default of `period`, in days.
const DEFAULT_DAYS: usize = 30;

const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");
const HAS_MORE: HeaderName = HeaderName::from_static("x-has-more");
const EXPORT_ROWS: HeaderName = HeaderName::from_static("x-export-rows");
const EXPORT_HASH: HeaderName = HeaderName::from_static("x-export-hash");

/// State of the audit's routes: cursors are authenticated with a key.
#[derive(Clone)]
struct Audit {
    app: App,
    cursors: CursorKey,
}

/// The group's router. `cursors` is the key that authenticates cursors.
pub fn router(app: App, cursors: CursorKey) -> Router {
    let audit = Router::new()
        .route("/v1/audit/receipts", get(audit_receipts))
        .route("/v1/audit/export", get(audit_export))
        .with_state(Audit { app: app.clone(), cursors });
    let router = Router::new()
        .route("/v1/analytics/receipts", get(receipts))
        .route("/v1/analytics/receipts/{id}/value", patch(tag))
        .route("/v1/analytics/receipts/{id}/value/confirm", post(confirm_tag))
        .route("/v1/analytics/outcomes", post(outcome))
        .route("/v1/analytics/outcomes/{id}/confirm", post(confirm_outcome))
        .route("/v1/analytics/rocs", get(rocs))
        .route("/v1/analytics/rocs/by-goal", get(rocs_by_goal))
        .route("/v1/analytics/spend/breakdown", get(breakdown))
        .route("/v1/receipts/{id}/explain", get(explained));
    api::routes::finish(router.with_state(app).merge(audit))
}

/// `GET /v1/analytics/receipts`: the agent's receipts, newest first.
async fn receipts(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let filter = Filter::read(query.as_deref(), app.clock.now())?;
        let listed = list::list(&app.db, caller.agent, filter).await?;
        let response = private_body(&listed)?;
        limits::take_list(&app, limits::Subject::Agent(caller.agent), Class::Export, size_of(&response)).await?;
        Ok(response)
    };
    respond(answer.await)
}

fn size_of(response: &Response) -> usize {
    response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default()
}

/// `PATCH /v1/analytics/receipts/{id}/value`: reports the value of a purchase. Pending until the owner confirms it.
async fn tag(State(app): State<App>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Write).await?;
        let members = members(&headers, body, &VALUE).await?;
        let report = Report::read(&members, "").map_err(wrong)?;
        let receipt = explain::find(&app.db, caller.agent, &id).await?.ok_or(ApiError::ReceiptNotFound)?;
        let subject = Subject::Receipt(receipt.receipt_id);
        let tag = value::report(&app.db, caller.agent, &subject, report, app.clock.now()).await?;
        Ok(tagged(&tag))
    };
    respond(answer.await)
}

/// `POST /v1/analytics/receipts/{id}/value/confirm`: the wallet (not a token) confirms or rejects a value tag.
async fn confirm_tag(State(app): State<App>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let caller = app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let members = members(&headers, body, &DECISION).await?;
        let receipt = explain::find(&app.db, caller.agent, &id).await?.ok_or(ApiError::ReceiptNotFound)?;
        let attached = explain::attached_tag(&receipt);
        let subject = Subject::Receipt(receipt.receipt_id);
        Ok(tagged(&decide(&app, caller.agent, &subject, attached, &members).await?))
    };
    respond(answer.await)
}

fn tagged(tag: &Reported) -> Response {
    let body = json!({"success": true, "receipt_id": tag.id, "value_tag": view::value_tag(tag)});
    private_json(StatusCode::OK, &body)
}

/// `POST /v1/analytics/outcomes`: reports the value of a goal. One outcome for each goal and type; the latest counts.
async fn outcome(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Write).await?;
        let members = members(&headers, body, &OUTCOME).await?;
        let report = Report::read(&members, "").map_err(wrong)?;
        let goal_id = members.get("goal_id").and_then(Value::as_str).unwrap_or_default();
        let subject = Subject::goal(goal_id, report.kind);
        Ok(reported(&value::report(&app.db, caller.agent, &subject, report, app.clock.now()).await?))
    };
    respond(answer.await)
}

/// `POST /v1/analytics/outcomes/{id}/confirm`: the wallet (not a token) confirms or rejects an outcome.
async fn confirm_outcome(State(app): State<App>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let caller = app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let members = members(&headers, body, &DECISION).await?;
        let subject = Subject::outcome(&id).ok_or(ApiError::NotFound)?;
        Ok(reported(&decide(&app, caller.agent, &subject, None, &members).await?))
    };
    respond(answer.await)
}

fn reported(outcome: &Reported) -> Response {
    let body = json!({"success": true, "outcome_id": outcome.id, "outcome": view::outcome(outcome)});
    private_json(StatusCode::OK, &body)
}

async fn decide(
    app: &App,
    agent: AgentId,
    subject: &Subject,
    attached: Option<Reported>,
    members: &Map<String, Value>,
) -> Result<Reported, ApiError> {
    let rejected = members.get("status").is_some_and(|status| status == "rejected");
    let status = if rejected { Status::Rejected } else { Status::Confirmed };
    let amount = value::amount(members, "").map_err(wrong)?;
    let decided = value::decide(&app.db, agent, subject, attached, status, amount, app.clock.now()).await;
    decided.map_err(|error| match error {
        DecideError::NotFound => ApiError::NotFound,
        DecideError::OtherAmount(now) => {
            let now = now.map_or_else(|| "nothing".to_owned(), |now| format!("{now} USDC"));
            ApiError::field("amount", format!("is not the amount reported last: {now}"))
        }
        DecideError::Failed(error) => ApiError::Unavailable(error),
    })
}

/// `GET /v1/analytics/rocs`: the return on spending in a period.
async fn rocs(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let mut params = Params::of(query.as_deref());
        params.only(&["period"]);
        let (days, span) = period(&mut params, DEFAULT_DAYS, app.clock.now());
        params.check()?;
        let period = Period::with_value(&app.db, caller.agent, span, None).await?;
        Ok(private_json(StatusCode::OK, &period.rocs(days)))
    };
    respond(answer.await)
}

/// `GET /v1/analytics/rocs/by-goal`: the return on spending, by goal.
async fn rocs_by_goal(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let mut params = Params::of(query.as_deref());
        params.only(&["period", "goal_id"]);
        let (days, span) = period(&mut params, DEFAULT_DAYS, app.clock.now());
        let goal_id = params.short_text("goal_id", 255);
        params.check()?;
        let period = Period::with_value(&app.db, caller.agent, span, goal_id.as_deref()).await?;
        Ok(private_json(StatusCode::OK, &period.by_goal(goal_id.as_deref(), days)))
    };
    respond(answer.await)
}

/// `GET /v1/analytics/spend/breakdown`: spending by category.
async fn breakdown(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let mut params = Params::of(query.as_deref());
        params.only(&["period", "subcategories"]);
        let (days, span) = period(&mut params, DEFAULT_DAYS, app.clock.now());
        let subcategories = params.flag("subcategories").unwrap_or(false);
        params.check()?;
        let period = Period::charges(&app.db, caller.agent, span).await?;
        Ok(private_json(StatusCode::OK, &period.breakdown(subcategories, days)))
    };
    respond(answer.await)
}

/// `GET /v1/audit/receipts`: every receipt, oldest first, by cursor. Only for the wallet.
async fn audit_receipts(State(audit): State<Audit>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = audit.app.wallet_caller(&headers, Scope::Read, ApiError::WalletOnly).await?;
        let mut params = Params::of(query.as_deref());
        params.only(&["cursor", "limit"]);
        let limit = params.integer("limit", 1, 500).unwrap_or(100);
        let cursor = audit.cursor(&params, &caller)?;
        params.check()?;
        if cursor.as_ref().is_some_and(|cursor| cursor.export.is_some()) {
            return Err(ApiError::InvalidCursor);
        }
        let page = pages::page(&audit.app.db, caller.agent, cursor.as_ref().map(|cursor| &cursor.after), limit).await?;
        let next = audit.next_cursor(&page, &caller, None);
        let response = private_body(&page.body(next))?;
        let subject = limits::Subject::Agent(caller.agent);
        limits::take_bytes(&audit.app, subject, Class::Export, size_of(&response)).await?;
        Ok(response)
    };
    respond(answer.await)
}

/// `GET /v1/audit/export`: the same rows as a file, each with a running hash. Concatenated pages are one file. Paging is in
/// headers: `X-Has-More`, `X-Next-Cursor`, `X-Export-Rows`, and `X-Export-Hash`, the last row's hash.
async fn audit_export(State(audit): State<Audit>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = audit.app.wallet_caller(&headers, Scope::Read, ApiError::WalletOnly).await?;
        let mut params = Params::of(query.as_deref());
        params.only(&["format", "cursor", "limit"]);
        let limit = params.integer("limit", 1, 500).unwrap_or(500);
        let format = params.choice("format", &["csv", "jsonl"]).and_then(Format::parse).unwrap_or(Format::JsonLines);
        let cursor = audit.cursor(&params, &caller)?;
        params.check()?;
        let (after, mut hash) = match cursor {
            None => (None, FIRST_HASH.to_owned()),
            Some(Cursor { after, export: Some((of, hash)) }) if of == format => (Some(after), hash),
            Some(_) => return Err(ApiError::InvalidCursor),
        };
        let page = pages::page(&audit.app.db, caller.agent, after.as_ref(), limit).await?;
        let mut text = if after.is_none() && format == Format::Csv { export::csv_header() } else { String::new() };
        for row in &page.rows {
            let line;
            (line, hash) = export::write_line(format, row, &hash)?;
            text.push_str(&line);
        }
        limits::take_bytes(&audit.app, limits::Subject::Agent(caller.agent), Class::Export, text.len()).await?;
        let mut response = Response::new(Body::from(text));
        let filename = format!("attachment; filename=\"receipts.{}\"", format.as_str());
        let next = audit.next_cursor(&page, &caller, Some((format, hash.clone())));
        for (name, value) in [
            (header::CONTENT_TYPE, Some(format.content_type().to_owned())),
            (header::CACHE_CONTROL, Some("no-store".to_owned())),
            (header::CONTENT_DISPOSITION, Some(filename)),
            (HAS_MORE, Some(page.has_more.to_string())),
            (EXPORT_ROWS, Some(page.rows.len().to_string())),
            (EXPORT_HASH, Some(hash)),
            (NEXT_CURSOR, next),
        ] {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                response.headers_mut().insert(name, value);
            }
        }
        Ok(response)
    };
    respond(answer.await)
}

/// `GET /v1/receipts/{id}/explain`: everything about one charge.
async fn explained(State(app): State<App>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let receipt = explain::find(&app.db, caller.agent, &id).await?.ok_or(ApiError::ReceiptNotFound)?;
        let explained = {
            let (blobs, now) = (&*app.blobs, app.clock.now());
            explain::explain(&app.db, blobs, &app.config.chain, &receipt, caller.wallet, now).await?
        };
        private_body(&explained)
    };
    respond(answer.await)
}

/// The body's members, validated by the fields; no body counts as `{}`.
async fn members(headers: &HeaderMap, body: Body, fields: &[Field]) -> Result<Map<String, Value>, ApiError> {
    let body = parse_body(headers, &read_body(body, MAX_BODY_BYTES).await?)?;
    input::validate_all(fields, &[], &body).map_err(ApiError::InvalidRequest)
}

fn wrong(error: FieldError) -> ApiError {
    ApiError::InvalidRequest(vec![error])
}

impl Audit {
    fn cursor(&self, params: &Params, caller: &Caller) -> Result<Option<Cursor>, ApiError> {
        let Some(text) = params.text("cursor") else { return Ok(None) };
        Cursor::parse(text, &self.cursors, caller.agent).map(Some).ok_or(ApiError::InvalidCursor)
    }

    fn next_cursor(&self, page: &Page, caller: &Caller, export: Option<(Format, String)>) -> Option<String> {
        let after = page.last.clone().filter(|_| page.has_more)?;
        Some(Cursor { after, export }.to_text(&self.cursors, caller.agent))
    }
}
