//! The tools as agents see them: a projection of the catalog, and a table of free reads.

use common::catalog::input::{self, Field, Kind};
use common::catalog::{self, Answer, CATALOG, MARKET, Price, TOP_UP, ToolSpec};
use common::config::Config;
use common::limits::Class;
use common::money::Usdc;
use common::tools::lookups;
use common::tools::soul::{EXECUTION, PURCHASE};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::reads::{READS, Read, SHORT, SLUG};

/// One tool.
pub struct Entry {
    pub name: String,
    pub kind: Call,
    pub shown: Tool,
}

/// What a call of the tool is.
#[derive(Clone, Copy)]
pub enum Call {
    /// Sold by the gate, at the first of its paths.
    Paid(&'static ToolSpec),
    /// A `GET` of this service.
    Read(&'static Read),
    /// A job, to whoever had it done.
    Request,
    /// The catalog with its prices.
    Prices,
    /// Any of the lookups, by its name.
    Lookup,
}

/// Arguments of every paid tool that are about the purchase and not about the work.
pub static PURCHASE_FIELDS: &[Field] = &[
    Field::optional(
        "idempotency_key",
        Kind::Text { min: 1, max: 255, format: None },
        "Your name for this purchase. Keep the same value for every retry of one purchase: it is charged once, and a retry gets the stored answer. A new value buys again",
    ),
    Field::optional(
        "max_cost_usdc",
        Kind::Amount { min: Usdc::ZERO, max: Usdc::from_micro(1_000_000_000_000) },
        "The most you want to pay for this call, in USDC; above it nothing is bought",
    ),
    Field::optional("approval_id", SHORT, "The approval under which a held call is repeated"),
    Field::optional(
        "dry_run",
        Kind::Choice(&["true", "false"]),
        "true to be told what the call would cost, and to buy nothing",
    ),
];

/// Arguments of a lookup by name, beside those of every purchase.
pub static LOOKUP_FIELDS: &[Field] = &[
    Field::required("name", SHORT, "Which one: a name of the list in this tool's description"),
    Field::required("input", Kind::Object { fields: &[], open: true }, "Its own arguments"),
];

/// Arguments of a read of a job.
pub static REQUEST_FIELDS: &[Field] = &[
    Field::required("request_id", SHORT, "The request_id that the paid call gave"),
    Field::optional(
        "poll_key",
        SHORT,
        "The poll_key that came with it, if one did; with an access token none is needed",
    ),
];

/// What of a paid tool's arguments is in the path and not in the body.
pub fn path_fields(spec: &ToolSpec) -> &'static [Field] {
    const SERVICE: Field = Field::required("service", SHORT, "The service's slug, as in soul_profile");
    match () {
        () if std::ptr::eq(spec, &EXECUTION) => &[SLUG, SERVICE],
        () if std::ptr::eq(spec, &PURCHASE) => &[SLUG],
        () => &[],
    }
}

/// Every tool of this deployment, in the order agents see it. The lookups come last, each as a tool: there are many, and
/// who reads the list's first page only has them all in one tool by name.
pub fn all(config: &Config) -> Vec<Entry> {
    let prefix = catalog::mcp_name(&config.service_name, "");
    let paid = CATALOG.iter().chain(MARKET).chain([&TOP_UP]).copied();
    let (rows, paid): (Vec<_>, Vec<_>) = paid.partition(|spec| lookups::find(spec.name).is_some());
    let (rows, paid) = (rows.into_iter().map(Call::Paid), paid.into_iter().map(Call::Paid));
    let kinds = [Call::Prices].into_iter().chain(paid).chain([Call::Lookup, Call::Request]);
    let kinds = kinds.chain(READS.iter().map(Call::Read)).chain(rows);
    kinds
        .map(|kind| {
            let name = match kind {
                Call::Prices => format!("{prefix}price_list"),
                Call::Lookup => format!("{prefix}lookup"),
                Call::Request => format!("{prefix}get_request"),
                Call::Read(read) => format!("{prefix}{}", read.name),
                Call::Paid(spec) => spec.mcp_name(&config.service_name),
            };
            Entry { shown: shown(&name, kind, &prefix), name, kind }
        })
        .collect()
}

fn shown(name: &str, kind: Call, prefix: &str) -> Tool {
    let (title, about, input, output) = match kind {
        Call::Paid(spec) => (spec.title, paid_about(spec, prefix), paid_input(spec), paid_output(spec)),
        Call::Read(read) => (read.title, format!("{}. Free.", read.about), closed(read.fields), any_object()),
        Call::Request => (
            "A request",
            format!(
                "Where something you bought is, and its result once status is completed. Free. Ask again after 2 seconds while status is pending or processing; after {} requests a minute you are asked to wait.",
                Class::Read.limit().count
            ),
            closed(REQUEST_FIELDS),
            answered(vec![request_schema()]),
        ),
        Call::Lookup => ("Any lookup", lookup_about(prefix), lookup_input(), any_object()),
        Call::Prices => (
            "Price list",
            "Everything that is sold here, with prices in USDC and how to pay. Free, and needs no identity.".to_owned(),
            closed(&[]),
            any_object(),
        ),
    };
    let (reads, open) = match kind {
        Call::Paid(spec) => (false, spec.answer == Answer::Queued),
        Call::Lookup => (false, true),
        _ => (true, false),
    };
    let mut tool = Tool::new(name.to_owned(), about, input);
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(output.into());
    // A purchase adds, and takes nothing away but its price; called twice without a name it buys twice.
    tool.annotations =
        Some(ToolAnnotations::from_raw(Some(title.to_owned()), Some(reads), Some(false), Some(reads), Some(open)));
    tool
}

fn paid_about(spec: &ToolSpec, prefix: &str) -> String {
    let price = match spec.price {
        _ if !path_fields(spec).is_empty() => {
            "Its price is the seller's, and is told before anything is charged".to_owned()
        }
        Price::Fixed(price) => format!("Costs {price} USDC"),
        Price::Of { .. } => "Costs what its arguments say".to_owned(),
    };
    let pays = match spec.sells_credits {
        true => "Paid by x402 from a wallet (_meta[\"x402/payment\"]); an access token cannot",
        false => {
            "With an access token (Authorization: Bearer) it is paid from credits; without, the first call answers with \
             x402 payment terms and charges nothing, and the same call with _meta[\"x402/payment\"] buys"
        }
    };
    let waits = match spec.answer {
        Answer::Direct => String::new(),
        Answer::Queued => format!(" The answer is a request_id: poll {prefix}get_request for the result."),
    };
    let dear = match spec.price {
        Price::Fixed(price) if path_fields(spec).is_empty() && price <= Usdc::from_micro(1_000_000) => "",
        _ => " x402 clients refuse more than their own cap, often 1 USD: for dear calls it has to be raised first.",
    };
    format!(
        "{}. {price}. {pays}. Give idempotency_key, and keep the same value for every retry of one purchase: it is then \
         charged once.{waits}{dear}",
        spec.summary
    )
}

fn lookup_about(prefix: &str) -> String {
    let names: Vec<&str> = lookups::ROWS.iter().map(|row| row.spec.name).collect();
    format!(
        "Looks something up in public records. Each lookup is a tool of its own too, later in the list, with its \
         arguments; {prefix}price_list says what each is about and what it costs. Arguments that do not fit are named, \
         and nothing is charged. Give idempotency_key, and keep the same value for every retry of one purchase. The \
         lookups: {}",
        names.join(", ")
    )
}

fn lookup_input() -> Map<String, Value> {
    let mut schema = object(input::schema(LOOKUP_FIELDS));
    let more = object(input::schema(PURCHASE_FIELDS));
    if let (Some(Value::Object(into)), Some(Value::Object(from))) =
        (schema.get_mut("properties"), more.get("properties"))
    {
        into.extend(from.clone());
    }
    schema
}

/// JSON Schema of arguments that are all known.
fn closed(fields: &[Field]) -> Map<String, Value> {
    let mut schema = object(input::schema(fields));
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

fn paid_input(spec: &ToolSpec) -> Map<String, Value> {
    const MEMO: [Field; 1] =
        [Field::optional("memo", Kind::Text { min: 0, max: 1000, format: None }, "A note for the receipt")];
    let mut schema = object(input::schema(path_fields(spec)));
    for more in [spec.input_schema(), input::schema(&MEMO), input::schema(PURCHASE_FIELDS)] {
        let more = object(more);
        if let (Some(Value::Object(into)), Some(Value::Object(from))) =
            (schema.get_mut("properties"), more.get("properties"))
        {
            into.extend(from.clone());
        }
        let required = more.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        if !required.is_empty() {
            let all = schema.entry("required").or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|all| all.extend(required.iter().cloned()));
        }
    }
    schema
}

/// What a paid call answers. Old clients hold whatever comes against this schema, also an error: so it says too what a
/// price looks like, or they would never show it (standards §1).
fn paid_output(spec: &ToolSpec) -> Map<String, Value> {
    match (spec.answer, spec.sells_credits || spec.bare || !path_fields(spec).is_empty()) {
        (Answer::Queued, _) => answered(vec![request_schema()]),
        // What takes longer than its caller is kept waiting, on the chain for instance, is polled.
        (Answer::Direct, true) => answered(vec![spec.output_schema(), request_schema()]),
        (Answer::Direct, false) => {
            let done = json!({
                "type": "object",
                "properties": {
                    "request_id": {"type": "string"},
                    "receipt_id": {"type": "string"},
                    "status": {"type": "string"},
                    "tool": {"type": "string"},
                    "result": spec.output_schema(),
                },
                "required": ["request_id", "status", "result"],
            });
            answered(vec![done, request_schema()])
        }
    }
}

fn request_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "request_id": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "processing", "completed", "failed"]},
            "tool": {"type": "string"},
            "receipt_id": {"type": "string"},
            "poll_key": {"type": "string", "description": "Give it to get_request, if you have no access token"},
            "result": {"description": "What the tool found, once status is completed"},
            "error": {"type": "string", "description": "Why it failed, if status is failed; the price was credited back"},
        },
        "required": ["request_id", "status", "tool"],
    })
}

fn answered(mut results: Vec<Value>) -> Map<String, Value> {
    results.push(json!({
        "type": "object",
        "description": "Not paid yet: x402 payment terms",
        "properties": {"x402Version": {"type": "integer"}, "error": {"type": "string"}, "accepts": {"type": "array"}},
        "required": ["x402Version", "accepts"],
    }));
    results.push(json!({
        "type": "object",
        "description": "Refused, with what to do about it; or a rehearsal",
        "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
        "anyOf": [{"required": ["error", "message"]}, {"required": ["dry_run"]}],
    }));
    object(json!({"type": "object", "anyOf": results}))
}

fn any_object() -> Map<String, Value> {
    object(json!({"type": "object"}))
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<Entry> {
        let read = |name: &str| match name {
            "PAY_TO" => Some("0x00000000000000000000000000000000000000ff".to_owned()),
            "SERVICE_NAME" => Some("Acme-Tools".to_owned()),
            _ => None,
        };
        all(&Config::read(read).unwrap())
    }

    #[test]
    fn every_tool_has_a_lawful_name_a_schema_and_all_annotations() {
        let mut names = std::collections::HashSet::new();
        for tool in tools() {
            let name = &tool.name;
            assert!(name.starts_with("acme_tools_") && name.len() <= 128 && names.insert(name.clone()), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)), "{name}");
            let hints = tool.shown.annotations.as_ref().unwrap();
            let all = [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint];
            assert!(all.iter().all(Option::is_some), "{name}");
            for schema in [&tool.shown.input_schema, tool.shown.output_schema.as_ref().unwrap()] {
                assert_eq!(schema["type"], "object", "{name}");
            }
            if let Call::Paid(spec) = tool.kind {
                // A name that means two things would buy the wrong one.
                let own: Vec<&str> = path_fields(spec).iter().chain(PURCHASE_FIELDS).map(|field| field.name).collect();
                let twice: Vec<&str> =
                    spec.input.iter().map(|field| field.name).filter(|field| own.contains(field)).collect();
                assert!(twice.is_empty() || twice == ["idempotency_key"], "{name}: {twice:?}");
                assert!(tool.shown.description.as_ref().unwrap().contains("same value for every retry"), "{name}");
                let branches = tool.shown.output_schema.as_ref().unwrap()["anyOf"].as_array().unwrap().clone();
                let terms = json!(["x402Version", "accepts"]);
                assert!(branches.iter().any(|branch| branch["required"] == terms), "{name}");
            }
        }
    }
}
