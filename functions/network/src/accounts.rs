//! An agent's accounts.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use gate::respond;
use http::{HeaderMap, StatusCode};
use platform::auth::Scope;
use platform::http::{ApiError, Params, Segment, private_json};
use serde_json::json;
use tools_network::account::{self, Status};
use tools_network::{claiming, revoke as giving_up, view};

use crate::{Shared, counted, own, queue, toolbox};

/// Accounts that a list shows.
const MOST: usize = 50;

/// `GET /v1/tools/linkedin/accounts`: the newest first.
pub async fn list(State(gate): Shared, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let with_revoked = params.flag("include_revoked").unwrap_or(false);
        params.check()?;
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let (db, now) = (&gate.app.db, gate.app.clock.now());
        let mut shown = Vec::new();
        let all = account::list(db, caller.agent).await?;
        for account in all.iter().filter(|account| with_revoked || account.status != Status::Revoked).take(MOST) {
            shown.push(view::account(db, account, now).await?);
        }
        counted(&gate, &caller, &json!({"accounts": shown})).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/linkedin/accounts/{id}`
pub async fn show(State(gate): Shared, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let (_, account) = own(&gate, &headers, Scope::Read, &id).await?;
        let shown = view::account(&gate.app.db, &account, gate.app.clock.now()).await?;
        Ok(private_json(StatusCode::OK, &shown))
    };
    respond(answer.await)
}

/// `DELETE /v1/tools/linkedin/accounts/{id}`: ends the grant. Again changes nothing more, and tries to delete the account at the
/// provider if that did not work before.
pub async fn revoke(State(gate): Shared, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let (_, account) = own(&gate, &headers, Scope::Write, &id).await?;
        let revoked = giving_up::revoke(toolbox(&gate), queue(&gate), &account).await?;
        let revoked = revoked.ok_or_else(claiming::account_not_found)?;
        Ok::<_, ApiError>(private_json(
            StatusCode::OK,
            &json!({
                "id": revoked.account.id,
                "status": "revoked",
                "revoked_at": revoked.account.revoked_at.map(|at| at.to_string()),
                "cancelled_sends": revoked.cancelled,
                "upstream_deleted": revoked.is_deleted,
            }),
        ))
    };
    respond(answer.await)
}
