//! JSON Schemas of bodies that have readers of their own. Each function names the reader it describes; limits are taken
//! from the reader where it exports them.

use base::input::{self, Field, Format};
use base::money::Usdc;
use catalog::CATALOG;
use ledger::webhooks::form;
use market::form::{LEAST_FOR_TEXT, MAX_TEXT_BYTES, MOST_FOR_TEXT};
use market::service_form;
use serde_json::{Map, Value, json};
use tools::spec::MARKET;
use tools_voice::config;

use super::shared::amount;

/// A decimal number, also in exponent form.
pub static DECIMAL: Format = Format {
    name: None,
    pattern: Some(r"^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$"),
    matches: |text| Usdc::parse_cap(text).is_ok(),
    message: "must be a decimal number",
};

/// ISO 8601; a date alone means midnight; empty counts as absent.
pub static TIME: Format = Format {
    name: None,
    pattern: Some(
        r"^([0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?)?)?$",
    ),
    matches: |_| true,
    message: "must be a time such as 2026-11-21T08:15:30Z",
};

const MOST: f64 = 1e12;

fn dollars(usdc: Usdc) -> Value {
    usdc.to_number()
}

/// A schema, or null.
fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// The schema of an object with these fields, for readers that count `null` as absent.
pub fn nullable(fields: &[Field]) -> Value {
    let mut schema = input::closed_schema(fields);
    for member in schema["properties"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        match member.get("type").cloned() {
            Some(kind) => member["type"] = json!([kind, "null"]),
            None => *member = or_null(member.take()),
        }
    }
    schema
}

/// The schema with members of answers, which the reader accepts and ignores.
fn ignoring(mut schema: Value, names: &[&str]) -> Value {
    for name in names {
        schema["properties"][name] = json!({"description": "Of an answer that is sent back; ignored"});
    }
    schema
}

/// `functions/account`, `Change::read` in `budgets.rs`.
pub fn budgets(tools: &[&str]) -> Value {
    let cap = |about: &str| or_null(amount(0.000_001, MOST, about));
    let share =
        |about: &str| json!({"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1, "description": about});
    let named = |about: &str, names: Value| {
        let mut caps = json!({"type": ["object", "null"], "maxProperties": 50, "additionalProperties": cap("A daily cap"),
            "description": about});
        caps["propertyNames"] = names;
        caps
    };
    let mut schema = strict(
        json!({
            "daily": cap("The most that may be charged in a day (UTC)"),
            "daily_usdc": cap("The same as `daily`, by its name in answers: send one"),
            "per_transaction": cap("The most that one call may cost"),
            "per_transaction_usdc": cap("The same as `per_transaction`, by its name in answers: send one"),
            "alert_at": share("Share of `daily` at which the owner is warned, at the latest at `pause_at`; default 0.8"),
            "pause_at": share("Share of `daily` at which charges stop; default 1"),
            "alert_email": {"type": ["string", "null"], "format": "email", "description": "Where the warning is mailed to"},
            "tools": named("Daily caps by tool", json!({"enum": tools})),
            "payees": named(
                "Daily caps by payee: `service`, or a soul's slug",
                json!({"pattern": "^[a-z0-9-]{3,100}$"}),
            ),
        }),
        &[],
    );
    schema["example"] = json!({"daily": 2, "per_transaction": 0.5, "tools": {"web_read": 1}});
    ignoring(schema, &["spent_today_usdc", "remaining_usdc", "pct_used", "resets_at", "token"])
}

/// Tool names in policies and caps.
fn tools() -> Vec<&'static str> {
    CATALOG.iter().chain(MARKET).map(|tool| tool.name).collect()
}

fn strict(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

fn contact() -> Value {
    strict(
        json!({
            "email": {"type": ["string", "null"], "format": "email"},
            "phone": {"type": ["string", "null"], "pattern": r"^\+?[1-9][0-9]{1,14}$", "description": "E.164"},
        }),
        &[],
    )
}

fn seconds(about: &str) -> Value {
    json!({"type": ["integer", "null"], "minimum": 60, "maximum": 604_800, "description": about})
}

/// `approvals::form::policy`.
pub fn policy() -> Value {
    let time = json!({"type": ["string", "integer"], "pattern": "^[0-9]{2}:[0-9]{2}$", "minimum": 0, "maximum": 24});
    let hours = strict(
        json!({
            "timezone": {"type": "string", "description": "IANA, such as Europe/Berlin"},
            "start": time,
            "end": time,
            "days": {"type": ["array", "null"], "maxItems": 8, "items": {"type": "integer", "minimum": 0, "maximum": 7}},
        }),
        &["timezone", "start", "end"],
    );
    let one = |name: &str, schema: Value| strict(json!({name: schema}), &[name]);
    let when = json!({"oneOf": [
        one("always", json!({"const": true})),
        one("amount_over_usdc", amount(0.0, MOST, "Matches calls that cost more")),
        one("recipients_over", json!({"type": "integer", "minimum": 0, "maximum": 1000})),
        one("recipient_domain_not_in", json!({"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "string"}})),
        one("outside_hours", hours),
    ]});
    let rule = strict(
        json!({
            "id": {"type": ["string", "null"], "pattern": "^[A-Za-z0-9_.-]{1,64}$"},
            "tool": {"type": "string", "description": "email, sms, voice, commerce, identity, the name of a tool, or *"},
            "action": {"enum": ["require_approval", "deny"]},
            "when": when,
        }),
        &["tool", "action", "when"],
    );
    let mut policy = strict(
        json!({
            "enabled": {"type": ["boolean", "null"]},
            "rules": {"type": "array", "maxItems": 25, "items": rule},
            "approver": or_null(contact()),
            "timezone": {
                "type": ["string", "null"],
                "description": "IANA, such as Europe/Berlin: in which the approver is told times. If absent, that of the first rule about hours, or else UTC",
            },
            "timeout_seconds": seconds("How long a held call waits for its approver; default 3600"),
            "updated_at": {"description": "As the policy was shown; not changed by this"},
        }),
        &["rules"],
    );
    policy["example"] = json!({
        "approver": {"email": "you@example.com"},
        "rules": [{"tool": "*", "action": "require_approval", "when": {"amount_over_usdc": "0.50"}}],
    });
    ignoring(policy, &["updated_at"])
}

/// `approvals::form::request`.
pub fn approval() -> Value {
    let mut schema = strict(
        json!({
            "action_summary": {"type": "string", "minLength": 1, "maxLength": 2000},
            "approver": or_null(contact()),
            "preview": {"type": ["object", "null"], "description": "Shown to the approver; at most 4000 characters as JSON"},
            "expires_in_seconds": seconds("How long the approver may take to decide; default 3600"),
        }),
        &["action_summary"],
    );
    schema["example"] = json!({"action_summary": "Send the offer", "approver": {"email": "you@example.com"}});
    schema
}

/// The form on the decision page.
pub fn decision() -> Value {
    json!({
        "type": "object",
        "required": ["decision"],
        "properties": {
            "decision": {"enum": ["approve", "deny"]},
            "note": {"type": "string", "maxLength": 500},
        },
    })
}

/// The form on the page of an identity check. Without a code, it requests one by mail.
pub fn identity_answer() -> Value {
    json!({"type": "object", "properties": {"code": {"type": "string", "maxLength": 20}}})
}

/// `webhooks::form::Draft::read` for a change.
pub fn webhook() -> Value {
    let mut schema = endpoint(form::CHANGE);
    schema["example"] = json!({"events": ["request.completed", "request.failed"]});
    ignoring(schema, &form::OF_ANSWERS)
}

fn endpoint(fields: &[Field]) -> Value {
    let mut schema = nullable(fields);
    schema["properties"]["url"]["format"] = json!("uri");
    schema["properties"]["events"]["minItems"] = json!(1);
    schema
}

/// The same for a new webhook.
pub fn new_webhook() -> Value {
    let mut schema = endpoint(form::CREATE);
    schema["properties"]["url"]["type"] = json!("string");
    schema["example"] = json!({"url": "https://example.org/hook", "events": ["request.completed", "request.failed"]});
    schema
}

/// `market::form::dollars`.
fn price(least: f64, most: Usdc, about: &str) -> Value {
    json!({"type": "number", "minimum": least, "maximum": dollars(most), "description": about})
}

fn slug(about: &str) -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9-]{3,100}$", "description": about})
}

/// `market::service_form::Change::read`.
pub fn service() -> Value {
    let mut schema = offered();
    schema["properties"]["slug"] = slug("The one in the path: it cannot change");
    schema
}

fn offered() -> Value {
    let schema = |about: &str| json!({"type": ["object", "null"], "description": about});
    let most = Usdc::from_micro(1_000_000_000);
    let service = strict(
        json!({
            "name": {"type": "string", "minLength": 1, "maxLength": 255},
            "price_usd": price(0.01, most, "USD"),
            "description": {"type": ["string", "null"], "maxLength": 2000},
            "category": {"enum": ["research", "build", "voice", "sms", "email", "judgment", "creative", "data", "custom"]},
            "active": {"type": "boolean"},
            "sandbox": {"type": "boolean", "description": "The work runs a program of yours. The price is then at least 0.5 USD"},
            "input_schema": schema("JSON Schema of the `input` that a buyer sends"),
            "output_schema": schema("JSON Schema that every result has to satisfy"),
            "deadline_seconds": {"type": ["integer", "null"], "minimum": 10, "maximum": 604_800},
            "executor": {"enum": ["model", "worker", "program"]},
            "tools": {"type": ["array", "null"], "maxItems": 20, "items": {"enum": tools()}},
            "tool_budget_usd": {"type": ["number", "null"], "minimum": 0, "maximum": dollars(most)},
            "webhook_url": {"type": ["string", "null"], "format": "uri", "maxLength": 2048},
            "test_cases": {"type": ["array", "null"], "maxItems": 10, "items": test_case()},
            "tests": {"type": ["object", "null"], "description": "Of an answer that is sent back; ignored"},
        }),
        &[],
    );
    ignoring(service, &service_form::OF_ANSWERS)
}

fn test_case() -> Value {
    let mut check = strict(
        json!({
            "path": {"type": "string", "description": "JSON pointer into the output"},
            "equals": {},
            "matches": {"type": "string"},
            "exists": {"type": "boolean"},
            "max_length": {"type": "integer", "minimum": 0},
        }),
        &[],
    );
    check["description"] = json!("`path` and one of equals, matches, exists, max_length");
    strict(
        json!({
            "name": {"type": "string", "minLength": 1, "maxLength": 100},
            "input": {"type": "object"},
            "checks": {"type": "array", "minItems": 1, "maxItems": 20, "items": check},
        }),
        &["name", "input", "checks"],
    )
}

/// `market::service_form::create`: the members of a change, some of them required.
pub fn new_service() -> Value {
    let mut schema = offered();
    // When there is no old value to keep, null means the same as absent.
    for member in ["category", "active", "sandbox", "executor"] {
        let given = schema["properties"][member].take();
        schema["properties"][member] = or_null(given);
    }
    schema["properties"]["slug"] = slug("The service's name in paths");
    schema["required"] = json!(["slug", "name", "price_usd"]);
    schema["example"] =
        json!({"slug": "statistics", "name": "Word statistics", "price_usd": 0.5, "executor": "worker"});
    schema
}

/// `market::form::SoulForm::read`, with an optional first service.
pub fn registration() -> Value {
    let mut schema = strict(
        json!({
            "name": {"type": "string", "minLength": 1, "maxLength": 255},
            "slug": slug("The soul's name in paths"),
            "bio": {"type": ["string", "null"], "maxLength": 1000},
            "avatar_url": {"type": ["string", "null"], "format": "uri", "maxLength": 2048},
            "soul_md": {"type": "string", "minLength": 3, "maxLength": MAX_TEXT_BYTES, "description": "10 bytes to 50 KB"},
            "soul_price": price_of_text(),
            "service": or_null(new_service()),
        }),
        &["name", "slug", "soul_md"],
    );
    schema["example"] =
        json!({"name": "Counter", "slug": "counter", "soul_md": "# Counter\n\nYou count words.", "soul_price": 15});
    schema
}

/// `market::form::ProfileChange::read`.
pub fn profile() -> Value {
    let mut schema = strict(
        json!({
            "name": {"type": "string", "minLength": 1, "maxLength": 255},
            "bio": {"type": ["string", "null"], "maxLength": 1000},
            "avatar_url": {"type": ["string", "null"], "format": "uri", "maxLength": 2048},
        }),
        &[],
    );
    for (name, _) in market::form::AS_SHOWN {
        schema["properties"][name] = json!({"description": "Of an answer that is sent back; it cannot change here"});
    }
    schema["example"] = json!({"name": "Counter of words", "bio": "Counts words and letters"});
    ignoring(schema, &market::form::OF_ANSWERS)
}

/// `functions/seller`, soul: `change_text`.
pub fn soul_text() -> Value {
    let mut schema = strict(
        json!({
            "soul_md": {"type": "string", "minLength": 3, "maxLength": MAX_TEXT_BYTES, "description": "10 bytes to 50 KB"},
            "change_note": {"type": ["string", "null"], "maxLength": 500},
        }),
        &["soul_md"],
    );
    schema["example"] = json!({"soul_md": "# Counter\n\nYou count words and letters.", "change_note": "letters too"});
    schema
}

/// `market::form::text_price`, or `null`.
fn price_of_text() -> Value {
    json!({
        "anyOf": [
            {"type": "number", "minimum": dollars(LEAST_FOR_TEXT), "maximum": dollars(MOST_FOR_TEXT)},
            {"const": 0},
            {"type": "null"},
        ],
        "description": "USDC; 0 gives the text away, null does not sell it",
    })
}

/// `functions/seller`, soul: `change_price`.
pub fn soul_price() -> Value {
    let mut schema = strict(json!({"soul_price": price_of_text()}), &["soul_price"]);
    schema["example"] = json!({"soul_price": 15});
    schema
}

/// `functions/seller`, money: `link_wallet`.
pub fn wallet() -> Value {
    let mut schema = strict(
        json!({
            "wallet_address": {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"},
            "proof": {"type": ["string", "object", "null"], "description": "An agent proof of the wallet"},
        }),
        &["wallet_address"],
    );
    schema["example"] = json!({"wallet_address": "0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc"});
    schema
}

/// `functions/seller`, money: `read_amount`.
pub fn payout() -> Value {
    let amount = json!({"type": ["number", "null"], "minimum": 0, "maximum": MOST, "description": "USDC; default: the whole balance"});
    let mut schema = strict(json!({"amount": amount}), &[]);
    schema["example"] = json!({"amount": 10});
    schema
}

/// `tools_voice::config::read`.
pub fn answering() -> Value {
    ignoring(nullable(config::FIELDS), &config::OF_ANSWERS)
}
