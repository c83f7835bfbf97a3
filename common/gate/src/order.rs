//! A call, read and validated: what is bought, by which caller, and under which conditions (cap, quote, key).

use std::borrow::Cow;

use axum::body::{Body, Bytes};
use base::digest::{canonical_json, sha256, sha256_parts};
use base::ids::{AgentId, RequestId};
use base::input::{self, FieldError};
use base::money::Usdc;
use evm::Word;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ledger::freeze::SERVICE_PAYEE;
use ledger::payments::quote::Purchase;
use ledger::payments::wire::Payment;
use ledger::receipt;
use platform::auth::{AgentName, Caller, Scope, Session};
use platform::config::FeeShare;
use platform::http::headers::CallHeaders;
use platform::http::{ApiError, MarketError, headers, read_body};
use platform::net::FetchPolicy;
use platform::store::Blobs;
use serde_json::{Map, Value};
use tools::spec::{RECEIPT_FIELDS, ToolSpec};

use super::asked::Asked;
use super::checkout_binding::CheckoutBinding;
use crate::jobs::input::Unread;
use crate::jobs::job::{Job, Lane};

/// Largest memo, decision context and value tag together, in bytes: they are stored in the receipt's item.
const MAX_METADATA_BYTES: usize = 16 * 1024;
/// Largest validated input of a tool, as JSON. Numbers may be longer than in the body.
const MAX_INPUT_BYTES: usize = crate::LARGEST_BODY_BYTES;

/// A service's schema for its input, and an input that is valid for it.
#[derive(Clone, Debug)]
pub struct InputShape {
    pub schema: Option<Value>,
    pub example: Option<Value>,
}

/// The seller's offer that this call buys, at the terms that apply to it.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The soul's slug.
    pub soul: String,
    /// The service's slug, or `None` if the soul's text is sold.
    pub service: Option<String>,
    /// Version of the service's terms, or of the text.
    pub terms: u32,
    /// micro-USDC
    pub price: Usdc,
    /// The platform's fee on this sale.
    pub fee: FeeShare,
    /// The most that is kept of the price if the work fails, in micro-USDC.
    pub kept_up_to: Usdc,
    /// The same for a purchase without a quote. After the seller raised this limit, the earlier, lower one applies here
    /// until quotes from before the raise have expired.
    pub kept_up_to_without_quote: Usdc,
    /// The queue of the jobs that this sale creates.
    pub lane: Lane,
    pub title: String,
    pub summary: String,
    /// What a service asks for in `input`, for the 402's description of the call. `None` for a text.
    pub input: Option<InputShape>,
    /// Members added to the 402's `context`.
    pub context: Map<String, Value>,
    /// Members added to the 202.
    pub accepted: Map<String, Value>,
    /// The terms or the fee are those of the quote that the call names, not the current ones. Then only that quote can buy, and no new
    /// quote is made from them.
    pub quoted: bool,
    /// Why nothing new is sold here. Earlier purchases are still replayed.
    pub closed: Option<MarketError>,
}

impl Listing {
    /// Refuses a listing that is closed.
    pub fn check_open(&self) -> Result<(), ApiError> {
        self.closed.clone().map_or(Ok(()), |closed| Err(closed.into()))
    }
}

/// A call of something that is sold.
pub struct Call<'a> {
    pub tool: &'static ToolSpec,
    /// The seller's listing; `None` for our own tools.
    pub listing: Option<&'a Listing>,
    /// Full URL of the request.
    pub resource: &'a str,
    pub headers: &'a HeaderMap,
    pub body: Bytes,
}

impl Call<'_> {
    /// SHA-256 of URL and body: the same for the request that asks for the price and the one that pays it.
    pub fn digest(&self) -> [u8; 32] {
        sha256_parts(&[self.resource.as_bytes(), &self.body])
    }

    /// SHA-256 of the call and of what pays it. A payment of zero is the same for every call, so the quote counts too.
    pub fn paid_digest(&self, payment: &Payment) -> [u8; 32] {
        let authorization = &payment.authorization;
        let header = |name| self.headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
        sha256_parts(&[
            &self.digest(),
            &authorization.nonce,
            &authorization.signature,
            payment.quote_id.as_deref().unwrap_or_default().as_bytes(),
            header("x-quote-id"),
            header("x-dry-run"),
        ])
    }
}

/// What public clients send beside a tool's input, and is no mistake.
const NOT_INPUT: [&str; 1] = ["timeout"];
/// What nobody sends but to guard a purchase, by its letters, and the header that does it here. To drop one would be to spend
/// what its sender has forbidden, or to buy again what it repeats.
const GUARDS: [(&str, &str); 5] = [
    ("maxcost", "X-Max-Cost-USDC"),
    ("maxcostusd", "X-Max-Cost-USDC"),
    ("maxcostusdc", "X-Max-Cost-USDC"),
    ("dryrun", "X-Dry-Run"),
    ("idempotencykey", "Idempotency-Key"),
];
/// Most members that an answer names as ignored.
const MAX_IGNORED: usize = 20;

/// A validated call.
pub struct Order<'a> {
    pub tool: &'static ToolSpec,
    pub listing: Option<&'a Listing>,
    pub resource: &'a str,
    /// The agent that the caller names, without proof.
    pub named: Option<AgentName>,
    /// The caller, if a proof or an access token authenticates it.
    pub caller: Option<Caller>,
    pub max_cost: Option<Usdc>,
    pub quote_id: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
    pub approval_id: Option<&'a str>,
    pub input: Map<String, Value>,
    /// Paths of the body's members that nothing reads.
    pub ignored: Vec<String>,
    /// Price in micro-USDC.
    pub price: Usdc,
    pub metadata: Option<String>,
    pub goal_id: Option<String>,
    /// The quote behind an asked price.
    pub asked: Option<Asked>,
    /// SHA-256 of the canonical body. For a listing, soul and service are part of it.
    pub body: [u8; 32],
    /// SHA-256 of what a quote is bound to, if that is not the whole body.
    pub quoted: Option<[u8; 32]>,
    pub trace: Option<String>,
    /// The checkout session that this call completes.
    pub binding: Option<&'a CheckoutBinding>,
}

impl<'a> Order<'a> {
    /// Reads and validates a call. The error lists every invalid field.
    pub fn read(call: &Call<'a>, caller: Option<Caller>, policy: &FetchPolicy) -> Result<Order<'a>, ApiError> {
        let body = parse_body(call.headers, &call.body)?;
        let input = known_input(call.tool, &body)?;
        let attached = input::validate(RECEIPT_FIELDS, &body).map_err(ApiError::InvalidRequest)?;
        let mut wrong = misplaced_guards(call, &body);
        wrong.extend(call.tool.check(&input, policy));
        if !wrong.is_empty() {
            return Err(ApiError::InvalidRequest(wrong));
        }
        if let Some(Value::Object(tag)) = attached.get("valueTag") {
            ledger::value::amount(tag, "valueTag.").map_err(|wrong| ApiError::InvalidRequest(vec![wrong]))?;
        }
        let metadata = receipt::metadata(&attached);
        if metadata.as_ref().is_some_and(|metadata| metadata.len() > MAX_METADATA_BYTES) {
            let path = if attached.contains_key("decisionContext") { "decisionContext" } else { "memo" };
            return Err(ApiError::field(
                path,
                format!("memo, decisionContext and valueTag may have {MAX_METADATA_BYTES} bytes together"),
            ));
        }
        let goal_id = goal_id(attached.get("decisionContext"))?;
        let said = CallHeaders::read(call.headers)?;
        let ignored = ignored(call.tool, &body);
        if call.tool.strict && !ignored.is_empty() {
            let unknown = ignored.iter().map(|path| FieldError::new(path, "is not a member of this body"));
            return Err(ApiError::InvalidRequest(unknown.collect()));
        }
        let canonical = canonical_json(&Value::Object(body));
        let quoted = (!call.tool.quoted_fields.is_empty()).then(|| {
            let of_quote = |(name, _): &(&String, &Value)| call.tool.quoted_fields.contains(&name.as_str());
            let fields = input.iter().filter(of_quote).map(|(name, value)| (name.clone(), value.clone()));
            sha256(canonical_json(&Value::Object(fields.collect())).as_bytes())
        });
        Ok(Order {
            tool: call.tool,
            listing: call.listing,
            resource: call.resource,
            named: caller.as_ref().map(|caller| AgentName::Wallet(caller.wallet)).or(said.agent),
            caller,
            max_cost: said.max_cost,
            quote_id: said.quote_id,
            idempotency_key: said.idempotency_key,
            approval_id: said.approval_id,
            price: call.listing.map_or_else(|| call.tool.price.of(&input), |listing| listing.price),
            input,
            ignored,
            metadata,
            goal_id,
            asked: None,
            quoted,
            body: match call.listing {
                None => sha256(canonical.as_bytes()),
                // The same body sent to another seller is another purchase.
                Some(listing) => sha256_parts(&[
                    listing.soul.as_bytes(),
                    listing.service.as_deref().unwrap_or_default().as_bytes(),
                    canonical.as_bytes(),
                ]),
            },
            trace: headers::text(call.headers, "x-amzn-trace-id")?.map(str::to_owned),
            binding: None,
        })
    }

    /// A call that a goal makes for a task of its own. The same body in another task is another call.
    pub fn of_goal(
        tool: &'static ToolSpec,
        body: &Map<String, Value>,
        (goal, task): (RequestId, u32),
        policy: &FetchPolicy,
    ) -> Result<Order<'static>, ApiError> {
        let input = valid_input(tool, body, policy)?;
        let canonical = canonical_json(&Value::Object(body.clone()));
        Ok(Order {
            tool,
            listing: None,
            resource: "",
            named: None,
            caller: None,
            max_cost: None,
            quote_id: None,
            idempotency_key: None,
            approval_id: None,
            price: tool.price.of(&input),
            input,
            ignored: Vec::new(),
            metadata: None,
            goal_id: Some(goal.goal()),
            asked: None,
            quoted: None,
            body: sha256_parts(&[b"goal", goal.bytes(), &task.to_be_bytes(), canonical.as_bytes()]),
            trace: None,
            binding: None,
        })
    }

    /// Binds the call to a checkout session. The same body in another session is another purchase.
    pub fn in_checkout(self, binding: Option<&'a CheckoutBinding>) -> Order<'a> {
        match binding {
            None => self,
            Some(binding) => Order {
                body: binding.bind(&self.body),
                quoted: self.quoted.map(|quoted| binding.bind(&quoted)),
                binding: Some(binding),
                ..self
            },
        }
    }

    /// Refuses a call without an idempotency key where the tool needs one. A checkout session has a name of its own.
    pub fn check_key(&self) -> Result<(), ApiError> {
        if !self.tool.needs_key || self.idempotency_key.is_some() || self.binding.is_some() {
            return Ok(());
        }
        Err(ApiError::Tool {
            status: StatusCode::BAD_REQUEST,
            code: "idempotency_key_required",
            message: "send an Idempotency-Key: this cannot be taken back, and a repeat with the same key does it once"
                .to_owned(),
        })
    }

    pub fn purchase(&self) -> Purchase<'_> {
        Purchase { tool: self.tool.name, body: self.quoted.as_ref().unwrap_or(&self.body) }
    }

    /// The digest of tool and body that a payment or an idempotency key is claimed for.
    pub fn purchase_digest(&self) -> Word {
        sha256_parts(&[self.tool.name.as_bytes(), &self.body])
    }

    /// The agent that the quote is for, if it is known.
    pub fn agent(&self) -> Option<AgentId> {
        self.named.map(|named| named.agent())
    }

    /// The agent that an unpaid call is shown its price for: the one that it names, or else the one that the asked quote was
    /// given to. Clients of the x402 protocol name nobody before they pay. Who has the quote's id may see the quote; only its
    /// agent can pay it.
    pub fn shown_to(&self) -> Option<AgentId> {
        self.agent().or_else(|| self.asked.as_ref()?.agent)
    }

    /// The proven caller, if its credits may be used. A proof with read scope spends nothing, unless the call has an
    /// idempotency key.
    pub fn spender(&self) -> Option<&Caller> {
        let caller = self.caller.as_ref()?;
        let may_spend = match caller.session {
            Session::Wallet(Scope::Write | Scope::Submit) | Session::Token { .. } => true,
            Session::Wallet(Scope::Read) => self.idempotency_key.is_some(),
        };
        (may_spend && !self.tool.sells_credits).then_some(caller)
    }

    /// The caller whose credits pay this call at once, without a payment: an access token's, and of some tools every wallet
    /// that may spend.
    pub fn pays_at_once(&self) -> Option<&Caller> {
        let pays =
            |caller: &&Caller| caller.token().is_some() || self.tool.pays_from_credits && self.spender().is_some();
        self.caller.as_ref().filter(pays)
    }

    /// The quote that the call names: in the header, or, where callers ask for a quote first, in the member `quote_id` of
    /// the body.
    pub fn named_quote(&self) -> Option<&str> {
        let in_body = || self.input.get("quote_id").and_then(Value::as_str).filter(|_| self.tool.quote_path.is_some());
        self.quote_id.or_else(in_body)
    }

    /// What the owner's rules and its approver see: the input, and what the quote fixed beside it (the recipients of a reply, the
    /// sender). What else it fixed is for the work: its prices are in micro-USDC, and the approver sees the whole price.
    pub fn seen_by_rules(&self) -> Cow<'_, Map<String, Value>> {
        const SEEN: [&str; 2] = ["to_address", "from_address"];
        let Some(asked) = &self.asked else { return Cow::Borrowed(&self.input) };
        let mut seen = asked.locked.clone();
        seen.retain(|name, _| SEEN.contains(&name.as_str()));
        seen.extend(self.input.clone());
        Cow::Owned(seen)
    }

    /// Refuses the replay of a quote's purchase to a call with another input. A quote may be bound to a part of the input.
    ///
    /// # Errors
    /// 400 `quote_mismatch`; 410 `result_expired` if the input that was bought is no longer stored.
    pub async fn check_same(&self, job: &Job, blobs: &dyn Blobs) -> Result<(), ApiError> {
        if self.tool.quoted_fields.is_empty() {
            return Ok(());
        }
        let without_quote = |mut input: Map<String, Value>| {
            input.remove("quote_id");
            input
        };
        let bought = job.input.read(blobs).await.map_err(|unread| match unread {
            Unread::Lost => ApiError::ResultExpired,
            Unread::Failed(error) => ApiError::Unavailable(error),
        })?;
        let is_same = without_quote(bought) == without_quote(self.input.clone());
        if is_same { Ok(()) } else { Err(ApiError::QuoteMismatch) }
    }

    /// Whether the terms come from a quote that the call names.
    pub fn is_quoted(&self) -> bool {
        self.listing.is_some_and(|listing| listing.quoted) || self.asked.is_some()
    }

    /// Refuses a listing that is closed.
    pub fn check_open(&self) -> Result<(), ApiError> {
        self.listing.map_or(Ok(()), Listing::check_open)
    }

    /// The payee as the owner's rules name it: a soul's slug, or `SERVICE_PAYEE` for this service.
    pub fn payee(&self) -> &str {
        self.listing.map_or(SERVICE_PAYEE, |listing| &listing.soul)
    }

    /// The service's own origin, as the caller sees it.
    pub fn origin(&self) -> &str {
        self.resource.split_once("/v1/").map_or(self.resource, |(origin, _)| origin)
    }

    /// Refuses a price above the caller's own cap.
    pub fn check_cap(&self, price: Usdc) -> Result<(), ApiError> {
        check_cap(self.max_cost, price)
    }
}

/// The tool's own input, in a body that may have more.
fn known_input(tool: &ToolSpec, body: &Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    if let Some(refusal) = (tool.refuse)(body) {
        return Err(refusal);
    }
    let mut input = input::validate(tool.input, body).map_err(ApiError::InvalidRequest)?;
    if tool.own.is_some_and(upstream::Tool::takes_others) {
        let others = body.iter().filter(|(name, _)| RECEIPT_FIELDS.iter().all(|field| field.name != name.as_str()));
        input.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    }
    if serde_json::to_vec(&input).map_or(0, |input| input.len()) > MAX_INPUT_BYTES {
        return Err(ApiError::PayloadTooLarge { limit_bytes: MAX_INPUT_BYTES });
    }
    Ok(input)
}

/// The tool's own input, checked by its own rules too.
fn valid_input(
    tool: &ToolSpec,
    body: &Map<String, Value>,
    policy: &FetchPolicy,
) -> Result<Map<String, Value>, ApiError> {
    let input = known_input(tool, body)?;
    let wrong = tool.check(&input, policy);
    if wrong.is_empty() { Ok(input) } else { Err(ApiError::InvalidRequest(wrong)) }
}

/// The header of a guard that a name means, however it is spelt: `max_cost`, `dryRun`.
pub fn guard(name: &str) -> Option<&'static str> {
    // A longer name is none, and must not fill the error.
    if name.len() > 32 {
        return None;
    }
    let letters = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let letters = letters.strip_prefix('x').unwrap_or(&letters);
    GUARDS.iter().find(|(guard, _)| *guard == letters).map(|(_, header)| *header)
}

/// Refuses a guard of the purchase where nobody reads it: in the body, or in a header of another name. (In the address, the
/// routes refuse it.)
fn misplaced_guards(call: &Call<'_>, body: &Map<String, Value>) -> Vec<FieldError> {
    let is_own = |name: &str| call.tool.input.iter().any(|field| field.name == name);
    let inside = body
        .keys()
        .filter(|name| !is_own(name))
        .filter_map(|name| Some(FieldError::new(name, format!("is not read here; send the header {}", guard(name)?))));
    let misspelt = call.headers.keys().filter_map(|name| {
        let meant = guard(name.as_str()).filter(|meant| !call.headers.contains_key(*meant))?;
        Some(FieldError::new(name.as_str(), format!("is not read; the header is {meant}")))
    });
    inside.chain(misspelt).take(MAX_IGNORED).collect()
}

/// The goal of a decision context: `goalId`, or `goal_id`, as receipts spell it.
fn goal_id(context: Option<&Value>) -> Result<Option<String>, ApiError> {
    let read = |name: &str| context.and_then(|context| context[name].as_str());
    match (read("goalId"), read("goal_id")) {
        (Some(first), Some(second)) if first != second => {
            Err(ApiError::field("decisionContext.goal_id", "must be the same as goalId, or be left out"))
        }
        (first, second) => Ok(first.or(second).map(str::to_owned)),
    }
}

/// The paths of a body's members that nothing reads, the first 20. They are dropped, and the answer names them: nobody should
/// pay for a misspelt one unseen.
pub fn ignored(tool: &ToolSpec, body: &Map<String, Value>) -> Vec<String> {
    let of_receipt = || RECEIPT_FIELDS.iter().map(|field| field.name);
    let also: Vec<&str> = of_receipt().chain(NOT_INPUT).collect();
    // Of the receipt's members, only what is inside them.
    let attached: Map<String, Value> =
        of_receipt().filter_map(|name| Some((name.to_owned(), body.get(name)?.clone()))).collect();
    let takes_others = tool.own.is_some_and(upstream::Tool::takes_others);
    let unknown = if takes_others { Vec::new() } else { input::unknown(tool.input, &also, body) };
    let unread = unknown.into_iter().chain(input::unknown(RECEIPT_FIELDS, &[], &attached));
    unread.map(|unread| unread.path).take(MAX_IGNORED).collect()
}

/// Refuses a price above the caller's cap, if there is one.
pub fn check_cap(cap: Option<Usdc>, price: Usdc) -> Result<(), ApiError> {
    match cap {
        Some(cap) if price > cap => Err(ApiError::ExceedsCallerBudget { price, cap }),
        _ => Ok(()),
    }
}

/// Parses a body as a JSON object without a member said twice. An empty body is an empty object.
pub fn parse_body(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    if content_type.is_some_and(|content_type| !is_json(content_type)) {
        return Err(ApiError::UnsupportedMediaType);
    }
    let wrong = match input::parse(body) {
        Ok(Value::Object(body)) => match input::check_depth(&body) {
            Ok(()) => return Ok(body),
            Err(wrong) => wrong,
        },
        Ok(_) => vec![FieldError::new("", "the body must be a JSON object")],
        Err(wrong) => vec![wrong],
    };
    Err(ApiError::InvalidRequest(wrong))
}

/// Reads the body of a request that sets nothing: there is none, or an object without members.
pub async fn empty_body(headers: &HeaderMap, body: Body) -> Result<(), ApiError> {
    let body = parse_body(headers, &read_body(body, crate::MAX_BODY_BYTES).await?)?;
    let unknown = input::only(&[], &[], &body, "");
    if unknown.is_empty() { Ok(()) } else { Err(ApiError::InvalidRequest(unknown)) }
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.starts_with("application/") && essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_objects() {
        let parse = |content_type: Option<&str>, body: &[u8]| {
            let mut headers = HeaderMap::new();
            if let Some(content_type) = content_type {
                headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            }
            parse_body(&headers, body).map_err(|error| error.code())
        };
        assert!(parse(None, b"{}").is_ok());
        assert!(parse(Some("application/json; charset=utf-8"), b"{}").is_ok());
        assert!(parse(Some("application/vnd.api+json"), b"{}").is_ok());
        assert_eq!(parse(Some("text/plain"), b"{}"), Err("unsupported_media_type"));
        for body in [
            &b"["[..],
            b"[]",
            b"null",
            b"{\"a\":1}x",
            b"{\"a\":1,\"a\":1}",
            b"\xff\xfe",
            "[".repeat(100_000).as_bytes(),
        ] {
            assert_eq!(parse(None, body), Err("invalid_request"));
        }
    }
}
