//! The table of routes: which group answers which path. Paid paths come from the catalog, the rest are listed here.
//!
//! `template.yaml` lists the same routes, and a test compares the two. Requests without a route are answered from the table
//! too: 404 for unknown paths, 405 with `Allow` for known ones, and `OPTIONS` for browsers.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use catalog::CATALOG;
use gate::guard;
use http::{HeaderValue, Method, StatusCode, header};
use market::checkout;
use platform::http::headers::is_dry_run;
use platform::http::{ApiError, limit, log};
use tools::spec::{Catalog, TOP_UP};

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub group: &'static str,
    pub method: &'static str,
    /// `{name}` stands for one segment, `{name+}` for all that follow, as API Gateway writes it.
    pub path: &'static str,
}

/// Routes that are not tools.
const FREE: &[Route] = &[
    Route { group: "account", method: "GET", path: "/v1/agents/me" },
    Route { group: "account", method: "GET", path: "/v1/agents/me/budgets" },
    Route { group: "account", method: "PUT", path: "/v1/agents/me/budgets" },
    Route { group: "account", method: "GET", path: "/v1/agents/me/access-tokens" },
    Route { group: "account", method: "POST", path: "/v1/agents/me/access-tokens" },
    Route { group: "account", method: "DELETE", path: "/v1/agents/me/access-tokens/{id}" },
    Route { group: "account", method: "GET", path: "/v1/agents/me/freezes" },
    Route { group: "account", method: "POST", path: "/v1/agents/me/freezes" },
    Route { group: "account", method: "POST", path: "/v1/agents/me/freezes/lift" },
    Route { group: "account", method: "GET", path: "/v1/tools/balance" },
    Route { group: "credits", method: "POST", path: "/v1/credits/checkout" },
    Route { group: "credits", method: "POST", path: "/v1/credits/webhook" },
    Route { group: "account", method: "GET", path: "/v1/tools/notifications" },
    Route { group: "account", method: "PATCH", path: "/v1/tools/notifications/read-all" },
    Route { group: "account", method: "PATCH", path: "/v1/tools/notifications/{id}/read" },
    Route { group: "approvals", method: "PUT", path: "/v1/agents/me/action-policy" },
    Route { group: "approvals", method: "GET", path: "/v1/agents/me/action-policy" },
    Route { group: "approvals", method: "DELETE", path: "/v1/agents/me/action-policy" },
    Route { group: "approvals", method: "POST", path: "/v1/agents/me/action-policy/backtest" },
    Route { group: "approvals", method: "POST", path: "/v1/approvals" },
    Route { group: "approvals", method: "GET", path: "/v1/approvals" },
    Route { group: "approvals", method: "GET", path: "/v1/approvals/{id}" },
    Route { group: "approvals", method: "POST", path: "/v1/approvals/{id}/cancel" },
    Route { group: "approvals", method: "GET", path: "/approve/{token}" },
    Route { group: "approvals", method: "POST", path: "/approve/{token}" },
    Route { group: "approvals", method: "GET", path: "/identity/{id}" },
    Route { group: "approvals", method: "POST", path: "/identity/{id}" },
    Route { group: "approvals", method: "POST", path: "/v1/identity/webhook" },
    Route { group: "checkout", method: "POST", path: "/acp/checkout_sessions" },
    Route { group: "checkout", method: "GET", path: "/acp/checkout_sessions/{id}" },
    Route { group: "checkout", method: "POST", path: "/acp/checkout_sessions/{id}" },
    Route { group: "checkout", method: "POST", path: "/acp/checkout_sessions/{id}/complete" },
    Route { group: "checkout", method: "POST", path: "/acp/checkout_sessions/{id}/cancel" },
    Route { group: "checkout", method: "POST", path: "/v1/checkout_sessions" },
    Route { group: "checkout", method: "GET", path: "/v1/checkout_sessions/{id}" },
    Route { group: "checkout", method: "POST", path: "/v1/checkout_sessions/{id}" },
    Route { group: "checkout", method: "POST", path: "/v1/checkout_sessions/{id}/complete" },
    Route { group: "checkout", method: "POST", path: "/v1/checkout_sessions/{id}/cancel" },
    Route { group: "checkout", method: "GET", path: "/acp/handlers/{handler}/{document}" },
    Route { group: "checkout", method: "GET", path: "/.well-known/acp/manifest.json" },
    Route { group: "requests", method: "GET", path: "/v1/requests" },
    Route { group: "requests", method: "GET", path: "/v1/requests/{id}" },
    Route { group: "requests", method: "GET", path: "/v1/requests/{id}/files" },
    Route { group: "requests", method: "GET", path: "/v1/requests/{id}/files/{path+}" },
    Route { group: "requests", method: "GET", path: "/v1/payments/{reference}" },
    Route { group: "requests", method: "GET", path: "/v1/submissions/recover" },
    Route { group: "compute", method: "GET", path: "/v1/compute" },
    Route { group: "compute", method: "GET", path: "/v1/compute/{id}" },
    Route { group: "compute", method: "GET", path: "/v1/compute/{id}/tasks" },
    Route { group: "compute", method: "GET", path: "/v1/compute/{id}/budget" },
    Route { group: "compute", method: "GET", path: "/v1/compute/{id}/outputs" },
    Route { group: "compute", method: "GET", path: "/v1/compute/{id}/outputs/{key}" },
    Route { group: "compute", method: "POST", path: "/v1/compute/{id}/cancel" },
    Route { group: "compute", method: "POST", path: "/v1/compute/{id}/pause" },
    Route { group: "compute", method: "POST", path: "/v1/compute/{id}/resume" },
    Route { group: "compute", method: "POST", path: "/v1/compute/{id}/respond" },
    Route { group: "compute", method: "POST", path: "/v1/compute/{id}/fund" },
    Route { group: "insights", method: "GET", path: "/v1/analytics/receipts" },
    Route { group: "insights", method: "PATCH", path: "/v1/analytics/receipts/{id}/value" },
    Route { group: "insights", method: "POST", path: "/v1/analytics/receipts/{id}/value/confirm" },
    Route { group: "insights", method: "POST", path: "/v1/analytics/outcomes" },
    Route { group: "insights", method: "POST", path: "/v1/analytics/outcomes/{id}/confirm" },
    Route { group: "insights", method: "GET", path: "/v1/analytics/rocs" },
    Route { group: "insights", method: "GET", path: "/v1/analytics/rocs/by-goal" },
    Route { group: "insights", method: "GET", path: "/v1/analytics/spend/breakdown" },
    Route { group: "insights", method: "GET", path: "/v1/audit/receipts" },
    Route { group: "insights", method: "GET", path: "/v1/audit/export" },
    Route { group: "insights", method: "GET", path: "/v1/receipts/{id}/explain" },
    Route { group: "souls", method: "GET", path: "/v1/soul" },
    Route { group: "souls", method: "GET", path: "/v1/soul/" },
    Route { group: "souls", method: "GET", path: "/v1/soul/browse" },
    Route { group: "souls", method: "GET", path: "/v1/soul/search" },
    Route { group: "souls", method: "GET", path: "/v1/soul/stats" },
    Route { group: "souls", method: "GET", path: "/v1/soul/ranking" },
    Route { group: "souls", method: "POST", path: "/v1/soul/register" },
    Route { group: "souls", method: "GET", path: "/v1/soul/service-types" },
    Route { group: "souls", method: "GET", path: "/v1/soul/templates" },
    Route { group: "souls", method: "GET", path: "/v1/soul/{slug}" },
    Route { group: "souls", method: "GET", path: "/v1/soul/{slug}/versions" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me" },
    Route { group: "seller", method: "PUT", path: "/v1/soul/me" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/statistics" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/services" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/services" },
    Route { group: "seller", method: "PUT", path: "/v1/soul/me/services/{service}" },
    Route { group: "seller", method: "DELETE", path: "/v1/soul/me/services/{service}" },
    Route { group: "seller", method: "PUT", path: "/v1/soul/me/services/{service}/program" },
    Route { group: "seller", method: "PUT", path: "/v1/soul/me/soul" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/soul/versions" },
    Route { group: "seller", method: "PUT", path: "/v1/soul/me/soul-price" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/rotate-key" },
    Route { group: "souls", method: "GET", path: "/v1/soul/jobs/{id}" },
    Route { group: "souls", method: "GET", path: "/v1/soul/jobs/{id}/files" },
    Route { group: "souls", method: "GET", path: "/v1/soul/jobs/{id}/files/{path+}" },
    Route { group: "souls", method: "POST", path: "/v1/soul/jobs/{id}/rate" },
    Route { group: "commerce", method: "GET", path: "/goods/{id}" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/goods" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/goods" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/goods/{id}" },
    Route { group: "seller", method: "PATCH", path: "/v1/soul/me/goods/{id}" },
    Route { group: "seller", method: "DELETE", path: "/v1/soul/me/goods/{id}" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/orders" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/orders/{id}" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/orders/{id}/ship" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/orders/{id}/delivered" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/orders/{id}/cancel" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/jobs" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/jobs/{id}" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/jobs/{id}/claim" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/jobs/{id}/progress" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/jobs/{id}/files" },
    Route { group: "seller", method: "PUT", path: "/v1/soul/me/jobs/{id}/files/{path+}" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/jobs/{id}/complete" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/jobs/{id}/fail" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/balance" },
    Route { group: "seller", method: "PUT", path: "/v1/soul/me/link-wallet" },
    Route { group: "seller", method: "POST", path: "/v1/soul/me/payout" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/payouts" },
    Route { group: "seller", method: "GET", path: "/v1/soul/me/statement" },
    Route { group: "webhooks", method: "GET", path: "/v1/webhooks" },
    Route { group: "webhooks", method: "POST", path: "/v1/webhooks" },
    Route { group: "webhooks", method: "GET", path: "/v1/webhooks/{id}" },
    Route { group: "webhooks", method: "PATCH", path: "/v1/webhooks/{id}" },
    Route { group: "webhooks", method: "DELETE", path: "/v1/webhooks/{id}" },
    Route { group: "webhooks", method: "POST", path: "/v1/webhooks/{id}/rotate-secret" },
    Route { group: "webhooks", method: "POST", path: "/v1/webhooks/{id}/test" },
    Route { group: "webhooks", method: "GET", path: "/v1/webhooks/{id}/deliveries" },
    Route { group: "webhooks", method: "POST", path: "/v1/webhooks/{id}/deliveries/{event}/replay" },
    Route { group: "messaging", method: "POST", path: "/v1/tools/email/quote" },
    Route { group: "messaging", method: "POST", path: "/v1/tools/email/uploads" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/email/analytics/{domain}" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/email/domains" },
    Route { group: "messaging", method: "POST", path: "/v1/tools/email/domains/{domain}/pause" },
    Route { group: "messaging", method: "POST", path: "/v1/tools/email/domains/{domain}/resume" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/email/unsubscribe/{token}" },
    Route { group: "messaging", method: "POST", path: "/v1/tools/email/unsubscribe/{token}" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/inbox" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/inbox/{emailId}" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/inbox/files/{token}" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/sms/inbox" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/sms/inbox/{messageId}" },
    Route { group: "messaging", method: "GET", path: "/v1/tools/voice/numbers" },
    Route { group: "messaging", method: "POST", path: "/v1/providers/ses" },
    Route { group: "messaging", method: "POST", path: "/v1/providers/sms" },
    Route { group: "messaging", method: "POST", path: "/v1/providers/twilio/status" },
    Route { group: "messaging", method: "POST", path: "/v1/providers/twilio/inbound" },
    Route { group: "voice", method: "GET", path: "/v1/tools/voice/numbers/{id}/inbound" },
    Route { group: "voice", method: "PUT", path: "/v1/tools/voice/numbers/{id}/inbound" },
    Route { group: "voice", method: "DELETE", path: "/v1/tools/voice/numbers/{id}/inbound" },
    Route { group: "voice", method: "GET", path: "/v1/tools/voice/inbound" },
    Route { group: "voice", method: "GET", path: "/v1/tools/voice/inbound/{id}" },
    Route { group: "voice", method: "GET", path: "/v1/tools/voice/recordings/{token}" },
    Route { group: "voice", method: "POST", path: "/v1/tools/voice/exchange" },
    Route { group: "voice", method: "GET", path: "/v1/tools/voice/exchange/{id}" },
    Route { group: "voice", method: "POST", path: "/v1/tools/voice/exchange/{id}/turns" },
    Route { group: "voice", method: "POST", path: "/v1/tools/voice/exchange/{id}/hang-up" },
    Route { group: "voice", method: "POST", path: "/v1/providers/vapi" },
    Route { group: "voice", method: "POST", path: "/v1/providers/telnyx" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/connect" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/connect/{id}" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/connect/callback/{token}" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/accounts" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/accounts/{id}" },
    Route { group: "network", method: "DELETE", path: "/v1/tools/linkedin/accounts/{id}" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/accounts/{id}/reconnect" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/accounts/{id}/sync" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/accounts/{id}/conversations" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/accounts/{id}/messages" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/accounts/{id}/invitations" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/accounts/{id}/invitations/{invitation}" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/sync/{run}" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/webhook/account-status" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/webhook/messaging" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/webhook/relations" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/local" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/local/code" },
    Route { group: "network", method: "GET", path: "/v1/tools/linkedin/local/login/{token}" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/local/login/{token}" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/local/invitations/{from}/accept" },
    Route { group: "network", method: "POST", path: "/v1/tools/linkedin/local/posts" },
    Route { group: "mcp", method: "POST", path: "/mcp" },
    Route { group: "meta", method: "GET", path: "/" },
    Route { group: "meta", method: "GET", path: "/health" },
    Route { group: "meta", method: "GET", path: "/v1/stats" },
    Route { group: "meta", method: "GET", path: "/v1/status" },
    Route { group: "meta", method: "GET", path: "/v1/tools/discover" },
    Route { group: "meta", method: "GET", path: "/llms.txt" },
    Route { group: "meta", method: "GET", path: "/llms-full.txt" },
    Route { group: "meta", method: "GET", path: "/skill.md" },
    Route { group: "meta", method: "GET", path: "/guides/{page}" },
    Route { group: "meta", method: "GET", path: "/pricing" },
    Route { group: "meta", method: "GET", path: "/pricing.md" },
    Route { group: "meta", method: "GET", path: "/.well-known/x402" },
    Route { group: "meta", method: "GET", path: "/.well-known/jwks.json" },
    Route { group: "meta", method: "GET", path: "/.well-known/acp.json" },
    Route { group: "meta", method: "GET", path: "/.well-known/ucp-agent.json" },
    Route { group: "meta", method: "GET", path: "/.well-known/{document}" },
    Route { group: "meta", method: "GET", path: "/openapi.json" },
    Route { group: "meta", method: "GET", path: "/docs" },
    Route { group: "meta", method: "GET", path: "/docs/{asset}" },
];

/// The operator's own services, as the gateway knows them. Their function knows which there are.
pub const OWN: Route = Route { group: "knowledge", method: "POST", path: "/v1/tools/own/{name}" };

/// Every route of the service itself. Those of the operator's own services ([`OWN`]) depend on the deployment.
pub fn all() -> impl Iterator<Item = Route> {
    of(&CATALOG)
}

/// Every route of a deployment that sells this catalog.
pub fn of(catalog: &'static Catalog) -> impl Iterator<Item = Route> {
    let sold = catalog.iter().chain(catalog.market).chain([&TOP_UP]);
    let paid = sold.flat_map(|tool| tool.paths.iter().map(|path| Route { group: tool.group, method: "POST", path }));
    FREE.iter().copied().chain(paid)
}

/// The route of a request. Compared from the left, a literal segment wins over a variable one.
pub fn find(method: &str, path: &str) -> Option<Route> {
    all()
        .chain([OWN])
        .filter(|route| route.method == method && matches(route.path, path))
        .min_by_key(|route| spelled_out(route.path))
}

/// The group that answers a request. `HEAD` goes where `GET` goes (RFC 9110, 9.3.2); requests without a route go to `meta`.
/// On AWS the gateway does the same: `ANY` where there is a `GET`, and `$default`.
pub fn group_of(method: &str, path: &str) -> &'static str {
    let method = if method == "HEAD" { "GET" } else { method };
    find(method, path).map_or("meta", |route| route.group)
}

/// The value of `Allow` for a path; `None` for unknown paths.
fn allowed(path: &str) -> Option<String> {
    let candidates: Vec<Route> = all().chain([OWN]).filter(|route| matches(route.path, path)).collect();
    // Routers choose the path pattern first and the method second, so methods of other matching patterns do not count.
    let meant = candidates.iter().map(|route| spelled_out(route.path)).min()?;
    let of_path = candidates.iter().filter(|route| spelled_out(route.path) == meant);
    let mut allowed: Vec<&str> = of_path.map(|route| route.method).collect();
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    allowed.push("OPTIONS");
    allowed.sort_unstable();
    allowed.dedup();
    Some(allowed.join(", "))
}

/// Sort key: smaller for patterns that win.
fn spelled_out(pattern: &str) -> Vec<bool> {
    pattern.split('/').map(|segment| segment.starts_with('{')).collect()
}

/// Completes a group's router: JSON for unknown paths and methods, dry runs refused where they are not supported, rate
/// limit headers, CORS, and one log line for each request.
pub fn finish(router: Router) -> Router {
    with_middleware(router.fallback(unrouted).method_not_allowed_fallback(unrouted))
}

/// The same for a router that answers every path itself.
pub fn with_middleware(router: Router) -> Router {
    // One layer for all of it: axum builds each layer once for every route at start, and boxes it for every request.
    router.layer(middleware::from_fn(around))
}

async fn around(request: Request, next: Next) -> Response {
    let limited = async |request| limit::headers(request, async |request| dry_runs(request, next).await).await;
    log::requests(request, async |request| cross_origin(request, limited).await).await
}

/// How long browsers may cache a preflight, in seconds. No browser caches it longer.
const PREFLIGHT_KEPT: HeaderValue = HeaderValue::from_static("7200");
const ANYBODY: HeaderValue = HeaderValue::from_static("*");
/// `*` covers all headers except `authorization`, which has to be listed.
const ANY_HEADER: HeaderValue = HeaderValue::from_static("*, authorization");

/// `OPTIONS`, and CORS for pages of any origin. All origins are allowed because nothing here depends on cookies or other
/// credentials that a browser adds by itself: callers authenticate by explicit headers or by the URL. The pages on which
/// people decide are excluded.
async fn cross_origin(request: Request, next: impl AsyncFnOnce(Request) -> Response) -> Response {
    let path = request.uri().path();
    let pages = ["/approve/", "/identity/", "/v1/tools/email/unsubscribe/"];
    let is_open = !pages.iter().any(|pages| path.starts_with(pages));
    let preflight = (request.method() == Method::OPTIONS).then(|| allowed(path)).flatten();
    let allow = preflight.and_then(|allow| HeaderValue::from_str(&allow).ok());
    let mut response = match &allow {
        Some(allow) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            response.headers_mut().insert(header::ALLOW, allow.clone());
            response
        }
        None => next(request).await,
    };
    if is_open {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANYBODY);
        match allow {
            Some(methods) => {
                headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ANY_HEADER);
                headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_KEPT);
            }
            None => drop(headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, ANYBODY)),
        }
    }
    response
}

/// Refuses a dry run, a cap or an idempotency key in the address of a priced call, where nobody reads it; and `X-Dry-Run` on
/// free routes that change something, so that nothing changes by surprise. The gate handles dry runs of priced calls; a read is
/// the same either way.
async fn dry_runs(request: Request, next: Next) -> Response {
    if let Some(query) = request.uri().query()
        && request.method() == Method::POST
        && find("POST", request.uri().path()).is_some_and(|route| !FREE.contains(&route))
    {
        let mut names = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
        if let Some((name, header)) = names.find_map(|name| Some((name.to_string(), guard(&name)?))) {
            let refusal = ApiError::field(&name, format!("is not read in the address; send the header {header}"));
            return refused(&request, refusal);
        }
    }
    let refusal = match is_dry_run(request.headers()) {
        Ok(false) => return next.run(request).await,
        Ok(true) => ApiError::field("X-Dry-Run", "only priced calls can be dry runs"),
        Err(misspelt) => misspelt,
    };
    let (method, path) = (request.method().as_str(), request.uri().path());
    let changes = !matches!(method, "GET" | "HEAD") && find(method, path).is_some_and(|route| FREE.contains(&route));
    if changes { refused(&request, refusal) } else { next.run(request).await }
}

/// Marks the answer of a router that has no such route.
#[derive(Clone, Copy, Debug)]
pub struct Unrouted;

/// The answer to a request without a route.
pub async fn unrouted(request: Request) -> Response {
    let path = request.uri().path();
    let allow = allowed(path).filter(|allow| allow.split(", ").all(|method| method != request.method().as_str()));
    // A function that does not answer a method that the table names does not sell it: this deployment has switched it off.
    let mut answer = refused(&request, allow.map_or(ApiError::NotFound, |allow| ApiError::MethodNotAllowed { allow }));
    answer.extensions_mut().insert(Unrouted);
    answer
}

/// A group that this deployment has switched off: no path is there.
pub fn switched_off() -> Router {
    with_middleware(Router::new().fallback(async |request: Request| refused(&request, ApiError::NotFound)))
}

/// The error in the path's own format: ACP has its own. Both paths of checkout repeat the request's id.
fn refused(request: &Request, error: ApiError) -> Response {
    let path = request.uri().path();
    if path.starts_with("/acp/") {
        return checkout::error::unrouted(request.headers(), error);
    }
    let mut answer = error.into_response();
    if path.starts_with("/v1/checkout_sessions") {
        checkout::echo(request.headers(), &mut answer);
    }
    answer
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            // The rest of the path, at least one segment.
            (Some(pattern), Some(segment)) if pattern.ends_with("+}") => return !segment.is_empty(),
            (Some(pattern), Some(segment)) if pattern == segment || pattern.starts_with('{') && !segment.is_empty() => {
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_segments() {
        assert!(matches("/v1/requests/{id}", "/v1/requests/abc"));
        assert!(!matches("/v1/requests/{id}", "/v1/requests/"));
        assert!(!matches("/v1/requests/{id}", "/v1/requests/a/b"));
        assert!(matches("/", "/"));
        assert!(!matches("/health", "/health/"));
    }

    #[test]
    fn routes_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for route in all() {
            assert!(seen.insert((route.method, route.path)), "{route:?}");
        }
    }
}
