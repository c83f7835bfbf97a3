//! The tools as agents see them: made from the catalog and the table of free calls.

use std::sync::OnceLock;

use api::discovery::search::{MAX_CATEGORY, MAX_QUERY};
use base::input::{self, Field, Kind};
use base::model_schema::for_models;
use base::money::Usdc;
use gate::limits::Class;
use http::Method;
use platform::config::Config;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use tools::soul::{EXECUTION, PURCHASE};
use tools::spec::{self, Answer, Catalog, Price, RECEIPT_FIELDS, TOP_UP, ToolSpec};
use tools_lookups::lookups;

use crate::reads::{READS, Read, SHORT, SLUG};

/// One tool.
pub struct Entry {
    pub name: String,
    pub kind: Call,
    /// Made when it is first listed. A call does not need it, and making all of them would dominate the start.
    shown: OnceLock<Tool>,
}

impl Entry {
    /// The tool as agents see it. `prefix` is the prefix of all names.
    pub fn shown(&self, prefix: &str) -> &Tool {
        self.shown.get_or_init(|| shown(&self.name, self.kind, prefix))
    }

    /// Its name without the prefix.
    pub fn word(&self, prefix: &str) -> &str {
        self.name.strip_prefix(prefix).unwrap_or(&self.name)
    }

    /// Whether a word of `?tools=` means this tool: its name, with or without the prefix; the first words of its name, as
    /// `research` for all that begin with `research_`; or its category.
    fn is_named(&self, prefix: &str, word: &str) -> bool {
        let own = self.word(prefix);
        let is_family = own.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        is_family
            || self.name == word
            || matches!(self.kind, Call::Paid(spec) if spec.name == word || spec.category == word)
    }
}

/// The tools of a list that was asked for without naming any: what most agents need, and the way to all others. Hosts show
/// the whole list to their model with every question, so a long one costs more than it helps.
pub const USUAL: &[&str] = &[
    "price_list",
    "find_tools",
    "use_tool",
    "web_search",
    "web_read",
    "email",
    "sms",
    "voice",
    "research",
    "verify_email",
    "soul_execute",
    "soul_purchase",
    "lookup",
    "get_request",
    "balance",
    "budgets",
    "inbox",
    "soul_search",
    "soul_profile",
];

/// Most of the operator's own services beside [`USUAL`].
const MOST_OWN: usize = 20;

/// What is listed for who names nothing: [`USUAL`], and the first of the operator's own services.
pub fn usual<'a>(tools: &'a [Entry], prefix: &str) -> Vec<&'a Entry> {
    let mut own = 0;
    let is_listed = |entry: &&Entry| match entry.kind {
        Call::Paid(spec) if spec.own.is_some() => {
            own += 1;
            own <= MOST_OWN
        }
        _ => USUAL.contains(&entry.word(prefix)),
    };
    tools.iter().filter(is_listed).collect()
}

/// The tools that a client lists: by `tools` in the query of the address that it connects to. Calls do not depend on it.
#[derive(Debug, PartialEq, Eq)]
pub enum Selection {
    /// [`usual`].
    Usual,
    /// Every tool, page by page.
    All,
    /// These; see [`chosen`].
    Named(Vec<String>),
}

impl Selection {
    pub fn of(query: Option<&str>) -> Selection {
        let mut words = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if name == "tools" {
                let given = value.split(',').map(|word| word.trim().to_ascii_lowercase());
                words.extend(given.filter(|word| !word.is_empty()));
            }
        }
        match words {
            words if words.is_empty() => Selection::Usual,
            words if words.iter().any(|word| word == "all") => Selection::All,
            words => Selection::Named(words),
        }
    }
}

/// The tools that these words name. With a tool that is sold comes the one that polls, without which its result is lost.
///
/// # Errors
/// The words that name no tool.
pub fn chosen<'a>(tools: &'a [Entry], prefix: &str, words: &[String]) -> Result<Vec<&'a Entry>, Vec<String>> {
    let is_known = |word: &&String| tools.iter().any(|entry| entry.is_named(prefix, word));
    let unknown: Vec<String> = words.iter().filter(|word| !is_known(word)).cloned().collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let is_chosen = |entry: &Entry| words.iter().any(|word| entry.is_named(prefix, word));
    let sells = |entry: &Entry| matches!(entry.kind, Call::Paid(_) | Call::Lookup(_) | Call::Use);
    let polls = tools.iter().any(|entry| sells(entry) && is_chosen(entry));
    let listed = |entry: &&Entry| is_chosen(entry) || (polls && matches!(entry.kind, Call::Request));
    Ok(tools.iter().filter(listed).collect())
}

/// What a call of the tool does.
#[derive(Clone, Copy)]
pub enum Call {
    /// Buys at the gate, by the first of the tool's paths.
    Paid(&'static ToolSpec),
    /// A free route of this service.
    Read(&'static Read),
    /// Polls a job, for its owner.
    Request,
    /// The catalog with prices.
    Prices,
    /// Any lookup, by its name: one of these.
    Lookup(&'static [&'static str]),
    /// Finds tools by words.
    Find,
    /// Calls any tool, by its name.
    Use,
}

/// Arguments of every paid tool that concern the purchase, not the work.
pub static PURCHASE_FIELDS: &[Field] = &[
    Field::optional(
        "idempotency_key",
        Kind::Text { min: 1, max: 255, format: None },
        "Idempotency key: a retry with the same value gets the stored answer and costs nothing; a new value buys again",
    ),
    Field::optional(
        "max_cost_usdc",
        Kind::Amount { min: Usdc::ZERO, max: Usdc::from_micro(1_000_000_000_000) },
        "Price limit in USDC; above it nothing is bought",
    ),
    Field::optional("approval_id", SHORT, "Id of the approval that releases a held call"),
    Field::optional("dry_run", Kind::Choice(&["true", "false"]), "true: only answers the price"),
];

/// The member of every purchase that is not a header but a part of the body.
static MEMO: Field = Field::optional("memo", Kind::Text { min: 0, max: 1000, format: None }, "A note for the receipt");

/// Every argument of a purchase.
pub fn purchase_fields() -> impl Iterator<Item = &'static Field> {
    std::iter::once(&MEMO).chain(PURCHASE_FIELDS)
}

/// Arguments for finding tools.
pub static FIND_FIELDS: &[Field] = &[
    Field::required(
        "query",
        Kind::Text { min: 1, max: MAX_QUERY, format: None },
        "What you want to do, in a few words, such as: recalls of a vehicle",
    ),
    Field::optional(
        "category",
        Kind::Text { min: 1, max: MAX_CATEGORY, format: None },
        "Only what is sold in this category, as in an earlier answer",
    ),
    Field::optional("limit", Kind::Integer { min: 1, max: 20 }, "At most this many tools of each kind, usually 5"),
];

/// Arguments for calling a tool by its name, besides those of every purchase.
pub static USE_FIELDS: &[Field] = &[
    Field::required("name", SHORT, "The tool's name, as in {find_tools}"),
    Field::optional("input", Kind::Object { fields: &[], open: true }, "The tool's own arguments"),
];

/// Arguments of a lookup by name, besides those of every purchase.
pub static LOOKUP_FIELDS: &[Field] = &[
    Field::required("name", SHORT, "The lookup's name"),
    Field::required("input", Kind::Object { fields: &[], open: true }, "The lookup's own arguments"),
];

/// Arguments for polling a job.
pub static REQUEST_FIELDS: &[Field] = &[
    Field::required("request_id", SHORT, "The request_id from the answer to the paid call"),
    Field::optional(
        "poll_key",
        SHORT,
        "The poll_key from the same answer, if there is one; not needed with an access token",
    ),
];

/// Arguments of a paid tool that go into the path instead of the body.
pub fn path_fields(spec: &ToolSpec) -> &'static [Field] {
    const SERVICE: Field = Field::required("service", SHORT, "The service's slug, as in {soul_profile}");
    match () {
        () if std::ptr::eq(spec, &EXECUTION) => &[SLUG, SERVICE],
        () if std::ptr::eq(spec, &PURCHASE) => &[SLUG],
        () => &[],
    }
}

/// How many tools come before the lookups. They form the first page of the whole list, for clients that read only one.
pub fn first_page(tools: &[Entry]) -> usize {
    let is_row = |entry: &Entry| matches!(entry.kind, Call::Paid(spec) if lookups::find(spec.name).is_some());
    tools.iter().position(is_row).unwrap_or(tools.len())
}

/// The prefix of all tool names of this deployment.
pub fn prefix(config: &Config) -> String {
    spec::mcp_name(&config.service_name, "")
}

/// Every tool of this deployment, in the order agents see them. The lookups come last, each as a tool of its own, because
/// there are many. Clients that read only the first page reach all of them through one tool, by name.
pub fn all(config: &Config, catalog: &Catalog) -> Vec<Entry> {
    let prefix = prefix(config);
    let paid = catalog.iter().chain(catalog.market).chain([&TOP_UP]).copied();
    let (rows, paid): (Vec<_>, Vec<_>) = paid.partition(|spec| lookups::find(spec.name).is_some());
    // Never freed: a process makes them once.
    let names: &'static [&'static str] = Box::leak(rows.iter().map(|spec| spec.name).collect());
    let lookup = (!names.is_empty()).then_some(Call::Lookup(names));
    let (rows, paid) = (rows.into_iter().map(Call::Paid), paid.into_iter().map(Call::Paid));
    let kinds = [Call::Prices, Call::Find, Call::Use].into_iter().chain(paid).chain(lookup).chain([Call::Request]);
    let is_there = |read: &&Read| !catalog.market.is_empty() || !matches!(read.group, "souls" | "seller");
    let kinds = kinds.chain(READS.iter().filter(is_there).map(Call::Read)).chain(rows);
    kinds
        .map(|kind| {
            let name = match kind {
                Call::Prices => format!("{prefix}price_list"),
                Call::Find => format!("{prefix}find_tools"),
                Call::Use => format!("{prefix}use_tool"),
                Call::Lookup(_) => format!("{prefix}lookup"),
                Call::Request => format!("{prefix}get_request"),
                Call::Read(read) => format!("{prefix}{}", read.name),
                Call::Paid(spec) => spec.mcp_name(&config.service_name),
            };
            Entry { name, kind, shown: OnceLock::new() }
        })
        .collect()
}

fn shown(name: &str, kind: Call, prefix: &str) -> Tool {
    let (title, about, input, output) = match kind {
        Call::Paid(spec) => (spec.title, paid_about(spec, prefix), paid_input(spec, prefix), paid_output(spec, prefix)),
        Call::Read(read) => {
            (read.title, format!("{}. Free.", named(read.about, prefix)), closed(read.fields, prefix), any_object())
        }
        Call::Request => (
            "A request",
            format!(
                "The state of something you bought, and its result once status is completed. Free. Poll every 2 seconds while status is pending or processing; the limit is {} requests a minute.",
                Class::Read.limit().count
            ),
            closed(REQUEST_FIELDS, prefix),
            answered(vec![request_schema(prefix)]),
        ),
        Call::Lookup(names) => ("Any lookup", lookup_about(prefix), lookup_input(names, prefix), any_object()),
        Call::Find => (
            "Find tools",
            named(
                "Finds tools of this service by what they do, with names, prices and arguments: public records, research, \
                 people and companies, e-mail, SMS, calls, the marketplace, your account. Free, and needs no identity. Call \
                 what you find with {use_tool}.",
                prefix,
            ),
            closed(FIND_FIELDS, prefix),
            any_object(),
        ),
        Call::Use => (
            "Use a tool",
            named(
                "Calls any tool of this service by its name, also one that is not in your list; {find_tools} tells names, \
                 prices and arguments. Costs what that tool costs. An access token pays from credits at once: dry_run shows the \
                 price first, max_cost_usdc limits it. Without one, the first call only answers x402 payment terms; repeat it \
                 with _meta[\"x402/payment\"] to buy. Wrong arguments are listed in the error, and nothing is charged. Give \
                 idempotency_key the same value for every retry of one purchase.",
                prefix,
            ),
            buying(USE_FIELDS, prefix),
            any_object(),
        ),
        Call::Prices => (
            "Price list",
            "Everything that is sold here, with prices in USDC and how to pay. Free, and needs no identity.".to_owned(),
            closed(&[], prefix),
            any_object(),
        ),
    };
    let (reads, open) = match kind {
        Call::Paid(spec) => (false, spec.answer == Answer::Queued),
        Call::Lookup(_) | Call::Use => (false, true),
        // What it does reaches another agent.
        Call::Read(read) if read.method != Method::GET => (false, true),
        _ => (true, false),
    };
    let mut tool = Tool::new(name.to_owned(), about, input);
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(output.into());
    // A purchase adds something and deletes nothing. It is not idempotent: without a key, two calls buy twice.
    tool.annotations =
        Some(ToolAnnotations::from_raw(Some(title.to_owned()), Some(reads), Some(false), Some(reads), Some(open)));
    tool
}

/// What a tool costs, in words.
pub fn price(spec: &ToolSpec) -> String {
    match spec.price {
        _ if !path_fields(spec).is_empty() => "The seller sets its price; dry_run shows it".to_owned(),
        Price::Fixed(price) => format!("Costs {price} USDC"),
        Price::Of { .. } | Price::Own(_) | Price::Asked { .. } => "The price depends on its arguments".to_owned(),
    }
}

fn paid_about(spec: &ToolSpec, prefix: &str) -> String {
    let price = price(spec);
    let pays = match spec.sells_credits {
        true => "Paid by x402 from a wallet (_meta[\"x402/payment\"]); access tokens cannot pay for it",
        false => {
            "An access token pays from credits; without one, the first call only answers x402 payment terms; repeat it with \
             _meta[\"x402/payment\"] to buy"
        }
    };
    let waits = match spec.answer {
        Answer::Direct => String::new(),
        Answer::Queued => format!(" Answers a request_id: poll {prefix}get_request for the result."),
    };
    let dear = match spec.price {
        Price::Fixed(price) if path_fields(spec).is_empty() && price <= Usdc::from_micro(1_000_000) => "",
        _ => " x402 clients refuse calls above their own cap, often 1 USD: raise it first for expensive calls.",
    };
    format!(
        "{}. {price}. {pays}. Give idempotency_key the same value for every retry of one purchase.{waits}{dear}",
        spec.summary
    )
}

fn lookup_about(prefix: &str) -> String {
    format!(
        "Looks something up in public records, by the lookup's name. Each lookup is also a tool of its own: {prefix}find_tools \
         shows its arguments and its price. Wrong arguments are listed in the error, and nothing is charged. Give \
         idempotency_key, and keep the same value for every retry of one purchase."
    )
}

fn lookup_input(names: &[&str], prefix: &str) -> Map<String, Value> {
    let mut schema = buying(LOOKUP_FIELDS, prefix);
    // Not in the description, which hosts limit.
    if let Some(Value::Object(name)) = schema.get_mut("properties").and_then(|properties| properties.get_mut("name")) {
        name.retain(|word, _| word == "type" || word == "description");
        name.insert("enum".to_owned(), json!(names));
    }
    schema
}

/// The schema of these fields and the arguments of a purchase. Allows no others.
fn buying(fields: &[Field], prefix: &str) -> Map<String, Value> {
    let mut schema = closed(fields, prefix);
    members(&mut schema).extend(of_purchase());
    schema
}

/// The members of an object's schema. A schema without any has no list of them, because some hosts refuse an empty one.
fn members(schema: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let members = schema.entry("properties").or_insert_with(|| json!({}));
    members.as_object_mut().expect("the members of an object")
}

/// Schemas of the purchase arguments. The list repeats them for every paid tool, so they contain only type and description;
/// the limits are in the error messages.
fn of_purchase() -> Map<String, Value> {
    let brief = purchase_fields().map(|field| {
        let mut schema = match &field.kind {
            kind if is_flag(kind) => flag(),
            // An amount too: text is exact.
            _ => json!({"type": "string"}),
        };
        schema["description"] = json!(field.about);
        (field.name.to_owned(), schema)
    });
    brief.collect()
}

/// Whether these are the choices of a flag: `true` and `false`, as text for a query or a header. A boolean counts too.
fn is_flag(kind: &Kind) -> bool {
    matches!(kind, Kind::Choice(choices) if *choices == ["true", "false"])
}

/// The schema of a flag. Text counts too, but model hosts refuse a value of two types.
fn flag() -> Value {
    json!({"type": "boolean"})
}

/// The schema of fields of this crate, with tools named as this deployment calls them.
fn own(fields: &[Field], prefix: &str) -> Map<String, Value> {
    let mut schema = object(for_models(&input::schema(fields)));
    for field in fields {
        let property = schema.get_mut("properties").and_then(|properties| properties.get_mut(field.name));
        if let Some(property) = property {
            if is_flag(&field.kind) {
                *property = flag();
            }
            property["description"] = json!(named(field.about, prefix));
        }
    }
    schema
}

/// A text of this crate that names tools in braces, as in `{get_request}`, with their names in this deployment.
pub fn named(text: &str, prefix: &str) -> String {
    text.replace('{', prefix).replace('}', "")
}

/// A schema that allows no other arguments.
fn closed(fields: &[Field], prefix: &str) -> Map<String, Value> {
    let mut schema = own(fields, prefix);
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

/// The schema of a paid tool's own arguments: what its path and its body take.
pub fn work_input(spec: &ToolSpec, prefix: &str) -> Map<String, Value> {
    let mut schema = own(path_fields(spec), prefix);
    let mut work = object(for_models(&spec.input_schema()));
    members(&mut schema).append(members(&mut work));
    let required = work.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if !required.is_empty() {
        let all = schema.entry("required").or_insert_with(|| json!([]));
        if let Some(all) = all.as_array_mut() {
            all.extend(required);
        }
    }
    schema
}

fn paid_input(spec: &ToolSpec, prefix: &str) -> Map<String, Value> {
    let mut schema = work_input(spec, prefix);
    schema.insert("additionalProperties".to_owned(), json!(false));
    let into = members(&mut schema);
    // An argument that the work also has keeps the work's own schema, which says more.
    for (name, brief) in of_purchase() {
        into.entry(name).or_insert(brief);
    }
    // Of the receipt's members, the rarer ones only by name and type.
    for field in RECEIPT_FIELDS {
        let kind = if matches!(field.kind, Kind::Object { .. }) { "object" } else { "string" };
        into.entry(field.name).or_insert_with(|| json!({"type": kind}));
    }
    if spec.needs_key {
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            required.push(json!("idempotency_key"));
        }
    }
    schema
}

/// The possible answers of a paid call. Older clients validate every answer against this schema, errors too. So it includes
/// the payment terms; otherwise those clients would not show them.
fn paid_output(spec: &ToolSpec, prefix: &str) -> Map<String, Value> {
    match (spec.answer, spec.sells_credits || spec.bare || !path_fields(spec).is_empty()) {
        (Answer::Queued, _) => answered(vec![accepted(prefix)]),
        // Direct calls that take too long, for example to settle on chain, are polled.
        (Answer::Direct, true) => answered(vec![spec.output_schema(), accepted(prefix)]),
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
            answered(vec![done, accepted(prefix)])
        }
    }
}

/// An accepted request. Its members are described only by the polling tool; here they would be repeated for every tool.
fn accepted(prefix: &str) -> Value {
    json!({"description": format!("Accepted: poll {prefix}get_request"), "required": ["request_id", "status", "tool"]})
}

fn request_schema(prefix: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "request_id": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "processing", "active", "completed", "failed"]},
            "tool": {"type": "string"},
            "receipt_id": {"type": "string"},
            "poll_key": {
                "type": "string",
                "description": format!("Pass it to {prefix}get_request if you have no access token"),
            },
            "result": {"description": "The tool's result, once status is completed"},
            "error": {"type": "string", "description": "Why it failed, if status is failed; credited_usdc was paid back as credits"},
        },
        "required": ["request_id", "status", "tool"],
    })
}

/// Any of these, or an answer that every paid call may get.
fn answered(mut results: Vec<Value>) -> Map<String, Value> {
    results.push(json!({"description": "Not paid yet: x402 terms", "required": ["x402Version", "accepts"]}));
    results.push(json!({"description": "Refused", "required": ["error", "message"]}));
    results.push(json!({"description": "A dry run", "required": ["dry_run"]}));
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
    use ::catalog::CATALOG;

    use super::*;

    fn tools() -> Vec<Entry> {
        let read = |name: &str| match name {
            "PAY_TO" => Some("0x00000000000000000000000000000000000000ff".to_owned()),
            "SERVICE_NAME" => Some("Acme-Tools".to_owned()),
            _ => None,
        };
        all(&Config::read(read).unwrap(), &CATALOG)
    }

    /// What a host shows to its model with every question. The whole list has more than 100 tools and 300 KB.
    #[test]
    fn the_default_list_is_short() {
        let all = tools();
        let usual: Vec<&Entry> = all.iter().filter(|entry| USUAL.contains(&entry.word("acme_tools_"))).collect();
        assert_eq!(usual.len(), USUAL.len(), "a name of the list is no tool's");
        assert!(usual.len() <= 20, "{}", usual.len());
        let shown: Vec<&Tool> = usual.iter().map(|entry| entry.shown("acme_tools_")).collect();
        let bytes = serde_json::to_string(&shown).unwrap().len();
        assert!(bytes < 40_000, "{bytes}");
    }

    /// A service of an operator's would be called, and paid, in place of the free tool of its name.
    #[test]
    fn no_own_service_has_the_name_of_a_free_tool() {
        for entry in tools() {
            let word = entry.word("acme_tools_");
            let is_free = !matches!(entry.kind, Call::Paid(_));
            assert!(!is_free || ::tools::own::RESERVED.contains(&word), "{word}");
        }
    }

    #[test]
    fn a_query_chooses_tools_by_name_family_and_category() {
        let words = |query: &str| match Selection::of(Some(query)) {
            Selection::Named(words) => words,
            other => panic!("{other:?}"),
        };
        for (query, wanted) in [
            (None, Selection::Usual),
            (Some("tools="), Selection::Usual),
            (Some("tool=all"), Selection::Usual),
            (Some("a=b&tools=ALL"), Selection::All),
            (Some("tools=sms,all"), Selection::All),
            (Some("tools=sms&tools=%20Inbox,"), Selection::Named(vec!["sms".to_owned(), "inbox".to_owned()])),
        ] {
            assert_eq!(Selection::of(query), wanted, "{query:?}");
        }
        let all = tools();
        let names = |query: &str| -> Result<Vec<String>, Vec<String>> {
            let found = chosen(&all, "acme_tools_", &words(query))?;
            Ok(found.into_iter().map(|entry| entry.word("acme_tools_").to_owned()).collect())
        };
        assert_eq!(names("tools=budgets,acme_tools_balance").unwrap(), ["balance", "budgets"]);
        assert_eq!(names("tools=vin_decode").unwrap(), ["vin_decode", "get_request"]);
        assert_eq!(names("tools=verification").unwrap(), ["verify_email", "identity_start", "get_request"]);
        let sms = names("tools=sms").unwrap();
        assert_eq!(sms, ["sms", "get_request", "sms_inbox", "sms_message"]);
        // A part of a word is no family.
        assert_eq!(names("tools=sms,vo,nonsense").unwrap_err(), ["vo", "nonsense"]);
    }

    /// The first page of the whole list has everything except the lookups. Its size grows with the families that there
    /// are; that of one tool is bounded, so that none repeats everything about purchases.
    #[test]
    fn the_first_page_is_short_and_tools_are_made_lazily() {
        let all = tools();
        assert!(all.iter().all(|entry| entry.shown.get().is_none()));
        let page: Vec<&Tool> = all[..first_page(&all)].iter().map(|entry| entry.shown("acme_tools_")).collect();
        assert!(page.iter().any(|tool| tool.name == "acme_tools_lookup"));
        assert!(page.len() < all.len() * 3 / 5, "{} of {}", page.len(), all.len());
        let bytes = serde_json::to_string(&page).unwrap().len();
        assert!(bytes < 1_750 * page.len(), "{bytes} for {} tools", page.len());
    }

    /// Texts are for models, which call a tool by the name that they read.
    #[test]
    fn descriptions_name_tools_as_they_are_called() {
        fn told(value: &Value, texts: &mut Vec<String>) {
            match value {
                Value::Object(members) => {
                    for (name, member) in members {
                        match member {
                            Value::String(text) if name == "description" => texts.push(text.clone()),
                            member => told(member, texts),
                        }
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| told(item, texts)),
                _ => {}
            }
        }
        let all = tools();
        let names: Vec<&str> = all.iter().map(|entry| entry.name.as_str()).collect();
        // One word is a word of English, too.
        let bare = |name: &&&str| name.strip_prefix("acme_tools_").is_some_and(|name| name.contains('_'));
        let bare: Vec<&str> = names.iter().filter(bare).filter_map(|name| name.strip_prefix("acme_tools_")).collect();
        let mut named = 0;
        for entry in &all {
            let mut texts = Vec::new();
            told(&serde_json::to_value(entry.shown("acme_tools_")).unwrap(), &mut texts);
            for text in texts {
                assert!(!text.contains(['{', '}']), "{}: {text}", entry.name);
                for word in text.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
                    // The lookups by name have names of their own.
                    let is_bare = bare.contains(&word) && !matches!(entry.kind, Call::Lookup(_));
                    assert!(!is_bare, "{}: {word} in {text}", entry.name);
                    let is_tool = names.contains(&word);
                    assert!(is_tool || !word.starts_with("acme_tools_"), "{}: no {word}, as in {text}", entry.name);
                    named += usize::from(is_tool);
                }
            }
        }
        assert!(named > all.len() / 2, "{named} names");
    }

    /// Strict clients send what the schema says, and models write flags as booleans.
    #[test]
    fn flags_are_published_as_booleans() {
        for (name, flag) in [
            ("acme_tools_vin_decode", "dry_run"),
            ("acme_tools_company_filings", "dry_run"),
            ("acme_tools_lookup", "dry_run"),
            ("acme_tools_inbox", "include_body"),
            ("acme_tools_voice_calls", "include_transcript"),
            ("acme_tools_soul_job", "full"),
        ] {
            let tool = tools().into_iter().find(|tool| tool.name == name).unwrap();
            let schema = &tool.shown("acme_tools_").input_schema["properties"][flag];
            assert_eq!(schema["type"], "boolean", "{name}: {schema}");
            assert!(schema.get("enum").is_none(), "{name}: {schema}");
        }
    }

    /// One tool that a host refuses takes all others with it.
    #[test]
    fn every_model_host_takes_every_tool() {
        for tool in tools() {
            let name = &tool.name;
            let shown = tool.shown("acme_tools_");
            let input = Value::Object((*shown.input_schema).clone());
            assert_eq!(base::model_schema::refused(&input), Vec::<String>::new(), "{name}");
            let about = shown.description.as_ref().map_or(0, |text| text.chars().count());
            assert!((1..=base::model_schema::MAX_DESCRIPTION).contains(&about), "{name}: {about} characters");
            // OpenAI and Google: at most 64, no points.
            let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
            assert!(name.len() <= 64 && name.chars().all(fits), "{name}");
            if let Call::Paid(spec) = tool.kind {
                let of_souls = platform::providers::model::ModelTool::input_schema(spec);
                assert_eq!(base::model_schema::refused(&of_souls), Vec::<String>::new(), "{name} for models of souls");
            }
        }
    }

    #[test]
    fn every_tool_has_a_valid_name_a_schema_and_all_annotations() {
        let mut names = std::collections::HashSet::new();
        for tool in tools() {
            let name = &tool.name;
            assert!(name.starts_with("acme_tools_") && name.len() <= 128 && names.insert(name.clone()), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)), "{name}");
            let shown = tool.shown("acme_tools_");
            let hints = shown.annotations.as_ref().unwrap();
            let all = [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint];
            assert!(all.iter().all(Option::is_some), "{name}");
            for schema in [&shown.input_schema, shown.output_schema.as_ref().unwrap()] {
                assert_eq!(schema["type"], "object", "{name}");
            }
            if let Call::Paid(spec) = tool.kind {
                // An ambiguous argument could buy the wrong thing.
                let own: Vec<&str> = path_fields(spec).iter().chain(PURCHASE_FIELDS).map(|field| field.name).collect();
                let twice: Vec<&str> =
                    spec.input.iter().map(|field| field.name).filter(|field| own.contains(field)).collect();
                assert!(twice.is_empty() || twice == ["idempotency_key"], "{name}: {twice:?}");
                assert!(shown.description.as_ref().unwrap().contains("same value for every retry"), "{name}");
                let required = shown.input_schema.get("required").and_then(Value::as_array);
                let asks_for_key = required.is_some_and(|names| names.contains(&json!("idempotency_key")));
                assert!(asks_for_key || !spec.needs_key, "{name} is refused without a key");
                let branches = shown.output_schema.as_ref().unwrap()["anyOf"].as_array().unwrap().clone();
                let terms = json!(["x402Version", "accepts"]);
                assert!(branches.iter().any(|branch| branch["required"] == terms), "{name}");
            }
        }
    }
}
