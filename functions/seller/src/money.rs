//! The seller's money: balance, linked wallet, payouts and statement.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post, put};
use base::digest::{canonical_json, sha256};
use base::encoding::base64_standard;
use base::input;
use base::money::Usdc;
use evm::Address;
use gate::{parse_body, respond};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ledger::maturing;
use ledger::payments::{nonces, treasury};
use ledger::payout::{self, Name, Payout, Refusal};
use ledger::seller;
use market::counting::{self, ROUNDS};
use market::seller::caller;
use market::{Market, payouts, soul, statement, wallet};
use platform::auth::{AgentName, Scope};
use platform::http::{ApiError, Params, headers, private_json, read_body};
use serde_json::{Map, Value, json};

const MAX_BODY_BYTES: usize = 16 * 1024;
/// How many payouts, and how many earnings that mature, the balance lists.
const RECENT: usize = 10;

pub fn routes() -> Router<Arc<Market>> {
    Router::new()
        .route("/v1/soul/me/balance", get(balance))
        .route("/v1/soul/me/link-wallet", put(link_wallet))
        .route("/v1/soul/me/payout", post(ask))
        .route("/v1/soul/me/payouts", get(list))
        .route("/v1/soul/me/statement", get(show_statement))
}

/// `GET /v1/soul/me/balance`: first counts sales that are not counted yet, up to a limit.
async fn balance(State(market): State<Arc<Market>>, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = caller(&market.app, &headers).await?;
        let (db, slug) = (&market.app.db, soul.slug.as_str());
        let counted = counting::fold(db, slug, ROUNDS, market.app.clock.now()).await?;
        let window = market.app.config.payments.card_dispute_window;
        let (balance, more) = maturing::ripen(db, slug, counted.balance, window, market.app.clock.now()).await?;
        let waiting = match balance.maturing {
            Usdc::ZERO => Vec::new(),
            _ => maturing::next(db, slug, RECENT).await?,
        };
        let waiting = waiting.iter().map(|row| {
            let at = row.ended.plus(window).to_string();
            json!({"job_id": row.request_id, "amount_usdc": row.amount.to_number(), "matures_at": at})
        });
        let recent = payout::list(db, slug, None, RECENT).await?;
        let (pending, total) = (balance.pending.to_number(), balance.total_earnings.to_number());
        let mut body = json!({
            "balance": {"pending": pending, "total_earnings": total, "total_jobs": balance.total_jobs},
            "recent_payouts": recent.iter().map(payouts::to_json).collect::<Vec<Value>>(),
            "available_usdc": balance.available().to_number(),
            "maturing_usdc": balance.maturing.to_number(),
            "maturing": waiting.collect::<Vec<Value>>(),
            "pending_usdc": pending,
            "total_earned_usdc": total,
            "total_paid_out_usdc": balance.paid_out.to_number(),
            "payout_address": soul.wallet.map(|wallet| wallet.to_string()),
            "payout_address_verified": soul.wallet_verified,
        });
        if counted.more || more {
            // More sales have ended or matured than one request counts; the next request continues.
            body["uncounted"] = json!(true);
        }
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// `PUT /v1/soul/me/link-wallet`, with or without a proof of the wallet: the header `x-agent-proof`, or `proof` in the
/// body, as the header's text or as the object it encodes.
async fn link_wallet(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = parse_body(&headers, &read_body(body, MAX_BODY_BYTES).await?)?;
        let soul = caller(&market.app, &headers).await?;
        only(&["wallet_address", "proof"], &body)?;
        let wallet = read_wallet(&body)?;
        if let Some(what) = own_address(&market, wallet).await? {
            return Err(ApiError::field("wallet_address", format!("must not be {what}")));
        }
        let proof = proof_text(&headers, &body)?;
        if let Some(proof) = &proof {
            market.app.proof(proof, Scope::Write, Some(AgentName::Wallet(wallet))).await?;
        }
        let now = market.app.clock.now();
        if !wallet::link(&market.app.db, &soul.slug, wallet, proof.is_some(), now).await? {
            return Err(ApiError::WalletAlreadyLinked);
        }
        let verified = soul::load_latest(&market.app.db, soul.slug.as_str()).await?;
        let verified = verified.is_some_and(|soul| soul.wallet == Some(wallet) && soul.wallet_verified);
        let message =
            "payouts go to this wallet from now on; a payout already requested still goes to the wallet of that time";
        let body = json!({"success": true, "message": message, "wallet": wallet.to_string(), "verified": verified});
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

fn only(known: &[&str], body: &Map<String, Value>) -> Result<(), ApiError> {
    let unknown = input::only(known, &[], body, "");
    if unknown.is_empty() { Ok(()) } else { Err(ApiError::InvalidRequest(unknown)) }
}

fn read_wallet(body: &Map<String, Value>) -> Result<Address, ApiError> {
    let Some(given) = body.get("wallet_address") else { return Err(ApiError::field("wallet_address", "is required")) };
    // `0X` is not accepted, as in the schema.
    let text = given.as_str().filter(|text| text.starts_with("0x")).unwrap_or_default();
    let Ok(wallet) = text.parse::<Address>() else {
        return Err(ApiError::field("wallet_address", "must be 0x and 40 hex digits"));
    };
    // A payout cannot be taken back, so a typing error is refused if it can be seen.
    if wallet.is_mistyped(text) {
        let message = "its capitals do not fit its digits (EIP-55): check it for a typing error";
        return Err(ApiError::field("wallet_address", message));
    }
    Ok(wallet)
}

/// Why an address cannot receive payouts.
async fn own_address(market: &Market, wallet: Address) -> Result<Option<&'static str>, ApiError> {
    let config = &market.app.config;
    Ok(if wallet == Address::ZERO {
        Some("the zero address")
    } else if wallet == config.chain.token.address {
        Some("the token's contract")
    } else if wallet == config.payments.pay_to
        || treasury::known(&market.app.db).await? == Some(wallet)
        || nonces::is_ours(&market.app.db, &market.app.chain, wallet).await?
    {
        Some("an address of this service")
    } else {
        None
    })
}

fn proof_text(headers: &HeaderMap, body: &Map<String, Value>) -> Result<Option<String>, ApiError> {
    match body.get("proof") {
        None | Some(Value::Null) => Ok(headers::text(headers, "x-agent-proof")?.map(str::to_owned)),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(object @ Value::Object(_)) => Ok(Some(base64_standard(object.to_string().as_bytes()))),
        Some(_) => Err(ApiError::field("proof", "must be an agent proof")),
    }
}

/// `POST /v1/soul/me/payout`, with an optional `Idempotency-Key`.
async fn ask(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = parse_body(&headers, &read_body(body, MAX_BODY_BYTES).await?)?;
        let soul = caller(&market.app, &headers).await?;
        // A misspelt amount would pay out everything.
        only(&["amount"], &body)?;
        let amount = read_amount(&body)?;
        let key = headers::idempotency_key(&headers)?;
        let digest = sha256(canonical_json(&Value::Object(body)).as_bytes());
        let name = key.map(|key| Name { key, body: &digest });
        let (db, slug, now) = (&market.app.db, soul.slug.as_str(), market.app.clock.now());
        if let Some(name) = name
            && let Some(known) = payout::named(db, slug, name, now).await?
        {
            return accepted(known);
        }
        let counted = counting::fold(db, slug, ROUNDS, now).await?;
        maturing::ripen(db, slug, counted.balance, market.app.config.payments.card_dispute_window, now).await?;
        accepted(payouts::request(db, &soul, amount, name, now).await?.ok_or(ApiError::WalletNotLinked)?)
    };
    respond(answer.await)
}

/// An amount, or `None` for all that is available.
fn read_amount(body: &Map<String, Value>) -> Result<Option<Usdc>, ApiError> {
    match body.get("amount") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => match Usdc::parse(&number.to_string()) {
            Ok(amount) => Ok(Some(amount)),
            Err(error) => Err(ApiError::field("amount", error.to_string())),
        },
        Some(_) => Err(ApiError::field("amount", "must be a number of USDC")),
    }
}

fn accepted(asked: Result<Payout, Refusal>) -> Result<Response, ApiError> {
    let payout = asked.map_err(refused)?;
    // A replay returns the first answer; the payout's current state is in the list.
    let body = json!({
        "success": true,
        "payout": {"id": payout.id, "amount": payout.amount.to_number(), "status": "pending"},
        "message": format!("{} USDC will be sent to {}", payout.amount, payout.wallet),
        "payout_id": payout.id,
        "amount_usdc": payout.amount.to_number(),
        "status": "pending",
    });
    Ok(private_json(StatusCode::OK, &body))
}

fn refused(refusal: Refusal) -> ApiError {
    let (reason, message) = match refusal {
        Refusal::BelowLeast => ("below_minimum", format!("a payout is at least {} USDC", payout::LEAST)),
        Refusal::Short { available, maturing: Usdc::ZERO } => {
            ("balance_short", format!("the balance is {available} USDC"))
        }
        Refusal::Short { available, maturing } => (
            "balance_short",
            format!(
                "{available} USDC can be paid out; {maturing} USDC more were paid by card and have not matured \
                 (GET /v1/soul/me/balance shows when)"
            ),
        ),
        Refusal::InFlight(id) => ("in_flight", format!("{id} is not finished; wait until it has ended")),
        Refusal::Unlinked => return ApiError::WalletNotLinked,
        Refusal::NameReused => return ApiError::IdempotencyKeyReused,
        Refusal::Busy => return ApiError::RequestInProgress,
    };
    ApiError::PayoutFailed { reason, message }
}

/// `GET /v1/soul/me/payouts`: newest first. `before` is the id of the last payout on the previous page.
async fn list(State(market): State<Arc<Market>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = caller(&market.app, &headers).await?;
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, 100).unwrap_or(20);
        let before = params.text("before").map(|text| text.parse().map_err(|()| ApiError::InvalidCursor));
        params.check()?;
        let before = before.transpose()?;
        let mut found = payout::list(&market.app.db, soul.slug.as_str(), before.as_ref(), limit + 1).await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let payouts: Vec<Value> = found.iter().map(payouts::to_json).collect();
        Ok(private_json(StatusCode::OK, &json!({"payouts": payouts, "has_more": has_more})))
    };
    respond(answer.await)
}

/// `GET /v1/soul/me/statement`: entries booked from `from` to `to`, oldest first, as JSON or as CSV (by `format` or
/// `Accept`). With CSV the cursor is in the header `X-Next-Cursor`.
async fn show_statement(State(market): State<Arc<Market>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = caller(&market.app, &headers).await?;
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, statement::MOST).unwrap_or(100);
        let (from, to) = (params.time("from"), params.time("to"));
        let format = params.choice("format", &["json", "csv"]);
        let cursor = params.text("cursor").map(str::to_owned);
        params.check()?;
        if from.zip(to).is_some_and(|(from, to)| to < from) {
            return Err(ApiError::field("to", "must not be before from"));
        }
        let after = cursor.map(|cursor| statement::after(&cursor).ok_or(ApiError::InvalidCursor)).transpose()?;
        let (db, slug) = (&market.app.db, soul.slug.as_str());
        let counted = counting::fold(db, slug, ROUNDS, market.app.clock.now()).await?;
        let window = market.app.config.payments.card_dispute_window;
        let mut rows = seller::entries(db, slug, from, to, after, limit + 1).await?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(statement::cursor);
        let accepts_csv = headers::text(&headers, "accept")?.is_some_and(|accept| accept.contains("text/csv"));
        if format == Some("csv") || format.is_none() && accepts_csv {
            return Ok(csv(statement::csv(&rows, after.is_none(), window), next));
        }
        let rows: Vec<Value> = rows.iter().map(|entry| statement::row(entry, window)).collect();
        let mut body = json!({
            "soul": slug, "currency": "USDC", "entries": rows, "count": rows.len(), "has_more": has_more,
            "next_cursor": next,
        });
        if counted.more {
            body["uncounted"] = json!(true);
        }
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

fn csv(text: String, next: Option<String>) -> Response {
    let mut response = private_json(StatusCode::OK, &Value::Null);
    *response.body_mut() = Body::from(text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    if let Some(Ok(next)) = next.map(|next| HeaderValue::from_str(&next)) {
        headers.insert("x-next-cursor", next);
    }
    response
}
