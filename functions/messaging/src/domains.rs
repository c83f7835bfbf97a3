//! An agent's sending domains: the list, pausing, and what became of the mails of each.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::clock::Timestamp;
use gate::limits::{self, Class, Subject};
use gate::{empty_body, respond};
use http::{HeaderMap, StatusCode};
use platform::auth::Scope;
use platform::http::{ApiError, Segment, private_json};
use serde_json::{Value, json};
use tools_email::domain::{self, PoolStatus, SendingDomain};
use tools_email::{identity, stats};

use crate::{Messaging, domain_not_found};

/// Longest domain name in bytes (RFC 1035, 2.3.4).
const MAX_DOMAIN_BYTES: usize = 253;

/// `GET /v1/tools/email/domains`: oldest first. The first call makes the agent's addresses on the operator's domains. Domains
/// of its own that cannot be sent from are looked at again.
pub async fn list(State(state): State<Messaging>, headers: HeaderMap) -> Response {
    let answer = async {
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let now = app.clock.now();
        // They stay for good, and a wallet costs nothing.
        if domain::is_new_without_money(&app.db, &app.config, caller.agent).await? {
            limits::take(app, Subject::source(), Class::Address).await?;
        }
        let mut found = domain::ensure_default(&app.db, &app.config, caller.agent, now).await?;
        found.retain(|domain| !matches!(domain.pool_status, PoolStatus::Removed));
        found.sort_by(|one, other| (one.created, &one.domain).cmp(&(other.created, &other.domain)));
        let domains = identity::views(state.toolbox(), found, now).await?;
        let body = json!({"agent_id": caller.wallet.to_string(), "domains": domains});
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// `POST /v1/tools/email/domains/{domain}/pause`: nothing is sent from it until it is resumed.
pub async fn pause(
    State(state): State<Messaging>,
    Segment(domain): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    respond(set_status(&state, &domain, &headers, body, PoolStatus::Paused).await)
}

/// `POST /v1/tools/email/domains/{domain}/resume`
pub async fn resume(
    State(state): State<Messaging>,
    Segment(domain): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    respond(set_status(&state, &domain, &headers, body, PoolStatus::Active).await)
}

async fn set_status(
    state: &Messaging,
    domain: &str,
    headers: &HeaderMap,
    body: Body,
    status: PoolStatus,
) -> Result<Response, ApiError> {
    empty_body(headers, body).await?;
    let app = state.app();
    // Older clients send a proof with scope `read` here. The method makes it count as a write.
    let caller = app.caller(headers, Scope::Read).await?;
    let domain = named(domain)?;
    let now = app.clock.now();
    let changed = domain::set_status(&app.db, caller.agent, &domain, status, now).await?;
    Ok(private_json(StatusCode::OK, &status_view(&changed.ok_or_else(domain_not_found)?, now)))
}

fn status_view(domain: &SendingDomain, now: Timestamp) -> Value {
    let mut view = json!({
        "domain": domain.domain,
        "pool_status": domain.pool_status,
        "warmup_state": domain.warmup(now),
    });
    if let Some(reason) = &domain.pause_reason {
        view["pause_reason"] = json!(reason);
    }
    view
}

/// `GET /v1/tools/email/analytics/{domain}`: the last 30 days.
pub async fn analytics(State(state): State<Messaging>, Segment(domain): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let domain = named(&domain)?;
        let now = app.clock.now();
        domain::load(&app.db, caller.agent, &domain).await?.ok_or_else(domain_not_found)?;
        let body = stats::analytics(&app.db, caller.agent, &domain, now).await?;
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// A domain of the path, in lower case. It becomes part of a key, so only what can be a domain goes on.
fn named(text: &str) -> Result<String, ApiError> {
    let is_domain = !text.is_empty()
        && text.len() <= MAX_DOMAIN_BYTES
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    if is_domain { Ok(text.to_ascii_lowercase()) } else { Err(domain_not_found()) }
}
