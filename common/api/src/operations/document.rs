//! `GET /openapi.json`: the descriptions, the catalog and the table of routes as one OpenAPI 3.1 document.

use std::collections::{BTreeMap, HashMap};

use base::input::{self, Field, kind_schema};
use base::money::Usdc;
use market::checkout::handlers::{CREDITS, X402};
use market::form::MOST_FOR_TEXT;
use serde_json::{Map, Value, json};
use tools::availability::Lacking;
use tools::spec::{Catalog, MARKET, Price, RECEIPT_FIELDS, ToolSpec};
use tools::top_up;

use super::checkout::ACP_ERROR;
use super::shape::{Shape, Writer};
use super::shared::{ERROR, INSUFFICIENT_CREDITS, PAYMENT_REQUIRED, refusals_of};
use super::{Answer, Auth, Body, Content, Link, Operation, schemas};
use crate::discovery::prices;
use crate::routes;

/// Facts about the deployment that the document contains.
pub struct Facts<'a> {
    pub service_name: &'a str,
    /// The origin agents use. If absent, the one the document was fetched from.
    pub base_url: Option<&'a str>,
    /// CAIP-2.
    pub network: &'a str,
    pub version: &'a str,
    /// Unavailable tools; they are described too, and marked.
    pub lacking: &'a Lacking,
    /// The tools, at the operator's prices.
    pub catalog: &'static Catalog,
}

/// Groups as readers see them, in this order: group, tag, description.
const TAGS: [(&str, &str, &str); 19] = [
    ("knowledge", "Tools", "The tools for sale. Every call is paid"),
    ("messaging", "Messages", "E-mail and texts: sending, your domains, your numbers, your inboxes"),
    ("voice", "Calls", "Voice: placing calls, how your numbers answer, the calls that they took"),
    ("builds", "Sites", "Websites from briefs, built, checked, hosted and changed"),
    ("compute", "Goals", "Objectives that are planned and reached in several calls, within a budget"),
    ("network", "Professional network", "Accounts of the professional network, and what agents do with them"),
    ("commerce", "Shopping", "Products in shops, searched and bought"),
    ("browser", "Browser", "Tasks on real pages, done in a browser"),
    ("credits", "Credits", "Prepaid credits, bought with USDC or by card"),
    ("checkout", "Checkout", "Checkout sessions for agent platforms: strict ACP, and a simpler form"),
    ("requests", "Requests", "The state of calls and payments"),
    ("account", "Account", "Your agent: budgets, access tokens, freezes, balance, notifications"),
    ("approvals", "Approvals", "The action policy, and approvals by a human"),
    ("insights", "Insights", "Receipts, spending, value, audit"),
    ("souls", "Marketplace", "Souls and their services, for buyers"),
    ("seller", "Sellers", "Souls, services, jobs and earnings, for sellers"),
    ("webhooks", "Webhooks", "Events, posted to your endpoints"),
    ("mcp", "MCP", "The same tools over the Model Context Protocol"),
    ("meta", "Service", "Status, prices, keys and documentation of the service"),
];

/// The tag of a call's other paths: last, so that nobody who looks around reads every call twice. `docs.js` folds it.
const ALIASES: (&str, &str) = ("Aliases", "Other paths of calls that are described above");

/// Components that many operations share. Writing each once keeps the document small for readers and for the process that
/// makes it.
#[derive(Default)]
struct Common {
    writer: Writer,
    parameters: Map<String, Value>,
    responses: Map<String, Value>,
    /// Names of refusal components, by status, codes and form.
    refusals: HashMap<(u16, Vec<&'static str>, &'static str), String>,
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// The whole document.
pub fn document(facts: &Facts<'_>) -> Value {
    let mut common = Common::default();
    for named in [&ERROR, &ACP_ERROR, &PAYMENT_REQUIRED, &INSUFFICIENT_CREDITS] {
        common.writer.schema(&Shape::Ref(named), None);
    }
    let groups: BTreeMap<(&str, &str), &str> =
        routes::of(facts.catalog).map(|route| ((route.method, route.path), route.group)).collect();
    let mut paths = Map::new();
    for operation in super::all_of(facts.catalog) {
        let is_marketplace = operation.path.starts_with("/v1/soul");
        if is_marketplace && facts.catalog.market.is_empty() {
            continue;
        }
        let group = groups.get(&(operation.method, operation.path)).copied().unwrap_or("meta");
        let item = paths.entry(operation.path.replace("+}", "}")).or_insert_with(|| json!({}));
        let described = describe(&operation, group, facts, &mut common);
        item[operation.method.to_ascii_lowercase()] = described;
    }
    let named = TAGS.map(|(_, name, about)| (name, about)).into_iter().chain([ALIASES]);
    let tags: Vec<Value> = named.map(|(name, about)| json!({"name": name, "description": about})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": facts.service_name,
            "version": facts.version,
            "summary": "Tools for agents, paid by the call",
            "description": about(facts),
        },
        "servers": [{"url": facts.base_url.unwrap_or("/")}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": common.writer.components,
            "parameters": common.parameters,
            "responses": common.responses,
            "securitySchemes": schemes(facts),
        },
    })
}

fn about(facts: &Facts<'_>) -> String {
    format!(
        "{} sells tools to agents. A paid call without payment is answered 402 with a quote: sign it with a wallet (x402, \
         USDC on {}) and repeat the request with `PAYMENT-SIGNATURE`, or send an access token that pays from credits. \
         Queued calls are answered 202: poll `GET /v1/requests/{{id}}`.\n\n\
         Give every purchase an `Idempotency-Key` and keep the same value for every retry of it: it is then charged once. \
         Calls that cost more than your client's own cap need that cap raised first. `X-Dry-Run: true` says what a paid call \
         would cost, free of charge.\n\n\
         Every refusal is JSON with `error` and `message` (on ACP's paths with `code` and `message`). An unknown path is answered \
         404, an unsupported method 405 with `Allow`. `x-error-codes` lists the codes of each status, `x-also-checked` the \
         checks that no schema can express, and `x-unavailable` says why a tool cannot be called here.",
        facts.service_name, facts.network
    )
}

fn schemes(facts: &Facts<'_>) -> Value {
    json!({
        "walletProof": {
            "type": "apiKey",
            "in": "header",
            "name": "x-agent-proof",
            "description": format!(
                "A signature by the wallet that calls: EIP-712, domain `{} Agent Auth` version 1, type `AgentReadAuth(address \
                 agent,string scope,uint256 issuedAt,bytes32 nonce)`, sent as base64 of JSON with its signature. Valid for \
                 five minutes and one request; `issuedAt` in Unix seconds, scope `read` for GET, `write` for requests that \
                 change something.",
                facts.service_name
            ),
        },
        "accessToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "An access token of a wallet (POST /v1/agents/me/access-tokens). It pays from credits, within the \
                            owner's budget.",
        },
        "soulKey": {
            "type": "http",
            "scheme": "bearer",
            "description": "The key of a soul, from POST /v1/soul/register.",
        },
        "platformToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "The token of an agent platform, issued by the operator of the service.",
        },
        "agentId": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Agent-ID",
            "description": "The address or id of a job's buyer or seller, without proof. Refused where the deployment requires proof.",
        },
    })
}

fn security(auth: Auth) -> Value {
    match auth {
        Auth::Nobody => json!([]),
        Auth::Agent => json!([{"walletProof": []}, {"accessToken": []}]),
        Auth::Wallet { .. } => json!([{"walletProof": []}]),
        Auth::Buyer => json!([{}, {"walletProof": []}, {"accessToken": []}]),
        Auth::WalletBuyer => json!([{}, {"walletProof": []}]),
        Auth::SoulKey => json!([{"soulKey": []}]),
        Auth::Platform => json!([{"platformToken": []}]),
        Auth::Party => json!([{"walletProof": []}, {"accessToken": []}, {"soulKey": []}, {"agentId": []}]),
    }
}

fn describe(operation: &Operation, group: &str, facts: &Facts<'_>, common: &mut Common) -> Value {
    let tag = TAGS.iter().find(|(known, ..)| *known == group).map_or("Service", |(_, name, _)| name);
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [tag],
        "security": security(operation.auth),
        "responses": responses(operation, common),
    });
    let parameters = parameters(operation, common);
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if !operation.about.is_empty() {
        described["description"] = json!(operation.about);
    }
    if let Some(body) = request_body(operation, facts.catalog, &mut common.writer) {
        described["requestBody"] = body;
    }
    if !operation.beyond_schema.is_empty() {
        described["x-also-checked"] = json!(operation.beyond_schema);
    }
    if let Some(tool) = operation.sells {
        let tool = facts.catalog.find(tool.name).unwrap_or(tool);
        match facts.lacking.of(tool) {
            // Directories of paid resources list what has a price.
            None => {
                described["summary"] = json!(format!("{}: {}", prices::price(tool), operation.summary));
                described["x-payment-info"] = json!({"price": price(tool), "protocols": [{"x402": {}}]});
            }
            Some(what) => {
                described["summary"] = json!(format!("Not available here: {}", operation.summary));
                described["x-unavailable"] = json!(format!("this deployment has no {what}"));
            }
        }
        if operation.path != tool.path() {
            described["tags"] = json!([ALIASES.0]);
            described["deprecated"] = json!(true);
            described["x-alias-of"] = json!(tool.path());
        }
    }
    described
}

/// The price in the format of x402 directories. The 402 of the call itself is binding.
fn price(tool: &ToolSpec) -> Value {
    let text = |amount: Usdc| amount.to_number().to_string();
    let between =
        |min: Usdc, max: Usdc| json!({"mode": "dynamic", "currency": "USD", "min": text(min), "max": text(max)});
    let is_soul = MARKET.iter().any(|sold| sold.name == tool.name);
    match tool.price {
        Price::Of { .. } => between(top_up::LEAST, top_up::MOST),
        Price::Asked { usual, most } => between(usual, most),
        Price::Own(price) => between(price.lowest(), price.highest()),
        Price::Fixed(least) if is_soul => between(least, MOST_FOR_TEXT),
        Price::Fixed(price) => json!({"mode": "fixed", "currency": "USD", "amount": text(price)}),
    }
}

fn parameters(operation: &Operation, common: &mut Common) -> Vec<Value> {
    let mut parameters = Vec::new();
    for segment in operation.path.split('/') {
        if let Some(name) = segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            let name = name.trim_end_matches('+');
            let (schema, about) = path_parameter(name, operation.path);
            parameters
                .push(json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema}));
        }
    }
    let names_itself = matches!(operation.auth, Auth::Agent | Auth::Wallet { .. } | Auth::Buyer | Auth::WalletBuyer);
    if names_itself {
        let schema = json!({"type": "string", "pattern": "^(0x[0-9a-fA-F]{40}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$"});
        let about = "Your wallet's address or your agent's id. Optional; if sent, it has to match the caller";
        let parameter = || json!({"name": "X-Agent-ID", "in": "header", "description": about, "schema": schema});
        parameters.push(common.parameter("X-Agent-ID", about, parameter));
    }
    let described = |place: &str, field: &Field| {
        let schema = kind_schema(&field.kind);
        let mut parameter = json!({"name": field.name, "in": place, "description": field.about, "schema": schema});
        if field.required {
            parameter["required"] = json!(true);
        }
        parameter
    };
    parameters.extend(operation.query.iter().map(|field| described("query", field)));
    for field in operation.headers {
        parameters.push(common.parameter(field.name, field.about, || described("header", field)));
    }
    parameters
}

impl Common {
    /// A header that several operations read, as one component. A header with the same name and another description is
    /// written in place.
    fn parameter(&mut self, name: &str, about: &str, make: impl FnOnce() -> Value) -> Value {
        match self.parameters.get(name) {
            Some(known) if known["description"] != about => return make(),
            Some(_) => {}
            None => drop(self.parameters.insert(name.to_owned(), make())),
        }
        reference("parameters", name)
    }

    /// The response component of this name.
    fn response(&mut self, name: &str, make: impl FnOnce(&mut Writer) -> Value) -> Value {
        if !self.responses.contains_key(name) {
            let response = make(&mut self.writer);
            self.responses.insert(name.to_owned(), response);
        }
        reference("responses", name)
    }

    /// The component for these refusals of one status.
    fn refusal(&mut self, status: u16, codes: Vec<&'static str>, form: &'static str) -> Value {
        let key = (status, codes, form);
        if let Some(name) = self.refusals.get(&key) {
            return reference("responses", name);
        }
        let plain = format!("{status}-{}", key.1.first().copied().unwrap_or("refused"));
        let mut names = (1_u32..).map(|number| if number == 1 { plain.clone() } else { format!("{plain}-{number}") });
        let name = names.find(|name| !self.responses.contains_key(name)).unwrap_or_default();
        let words: Vec<String> = key.1.iter().map(|code| format!("`{code}`")).collect();
        let mut response = json!({"description": words.join(", ")});
        refuse(&mut response, status, &key.1, form);
        self.responses.insert(name.clone(), response);
        let reference = reference("responses", &name);
        self.refusals.insert(key, name);
        reference
    }
}

/// Schema and description of a path parameter. Unknown values are answered 404, whatever their format.
fn path_parameter(name: &str, path: &str) -> (Value, &'static str) {
    let text = || json!({"type": "string", "minLength": 1});
    let example = |example: &str| json!({"type": "string", "minLength": 1, "examples": [example]});
    match (name, path) {
        ("reference", _) => (
            json!({"type": "string", "pattern": "^0x[0-9a-fA-F]{64}$"}),
            "Nonce of the authorization, or transaction hash",
        ),
        ("slug", _) => (example("counter"), "The soul's slug"),
        ("service", _) => (example("statistics"), "The service's slug"),
        ("token", path) if path.contains("/callback/") => (text(), "From the address that the provider was given"),
        ("token", path) if path.contains("/linkedin/") => (text(), "From the login link"),
        ("run", _) => (json!({"type": "string", "format": "uuid"}), "The sync's id"),
        ("from", _) => (json!({"type": "string", "format": "uuid"}), "The member who invites you"),
        ("invitation", _) => (json!({"type": "string", "format": "uuid"}), "The invitation's id"),
        (_, path) if path.starts_with("/v1/tools/linkedin/connect") => {
            (json!({"type": "string", "format": "uuid"}), "The intent's id")
        }
        (_, path) if path.starts_with("/v1/tools/linkedin") => {
            (json!({"type": "string", "format": "uuid"}), "The account's id")
        }
        ("token", path) if path.contains("/voice/") => (text(), "From the call's `recording_url`"),
        ("token", _) => (text(), "From the link in the mail"),
        ("domain", _) => (example("mail.example.com"), "One of your sending domains"),
        ("emailId" | "messageId", _) => (json!({"type": "string", "format": "uuid"}), "The `id` from the inbox"),
        ("handler", _) => (json!({"type": "string", "enum": [X402, CREDITS]}), "The payment handler's id"),
        ("document", path) if path.starts_with("/acp/") => (
            json!({"type": "string", "enum": ["spec.md", "config.json", "instrument.json"]}),
            "The specification, or the JSON Schema of its configuration or of its instruments",
        ),
        ("document", _) => (example("agora-receipts.json"), "`<service>-receipts.json`"),
        ("page", _) => (example("paying.md"), "The guide's name, in any case"),
        ("event", _) => (example("evt_01ARZ3NDEKTSV4RRFFQ69G5FAV"), "The event's id"),
        ("asset", _) => (text(), "Its name"),
        ("path", _) => (example("report.pdf"), "The file's path among the job's files; may contain slashes"),
        (_, path) if path.contains("/checkout_sessions") => {
            (json!({"type": "string", "format": "uuid"}), "The session's id")
        }
        ("key", _) => (example("task_0000"), "The output's key, from the list"),
        (_, path) if path.starts_with("/v1/compute") => {
            (example("goal_0123456789abcdef0123456789abcdef"), "The goal's id")
        }
        (_, path) if path.starts_with("/v1/requests") => {
            (json!({"type": "string", "format": "uuid"}), "The `request_id` from the answer to the call")
        }
        (_, path) if path.starts_with("/v1/soul/") => (example("job_0123456789abcdef0123456789abcdef"), "The job's id"),
        (_, path) if path.contains("receipts") => (example("rcpt_01ARZ3NDEKTSV4RRFFQ69G5FAV"), "The receipt's id"),
        (_, path) if path.contains("approvals") => (example("appr_01ARZ3NDEKTSV4RRFFQ69G5FAV"), "The approval's id"),
        (_, path) if path.contains("notifications") => {
            (example("note_01ARZ3NDEKTSV4RRFFQ69G5FAV"), "The notification's id")
        }
        (_, path) if path.contains("webhooks") => (example("wh_01ARZ3NDEKTSV4RRFFQ69G5FAV"), "The endpoint's id"),
        (_, path) if path.contains("access-tokens") => (json!({"type": "string", "format": "uuid"}), "The token's id"),
        (_, path) if path.contains("/voice/numbers/") => {
            (json!({"type": "string", "format": "uuid"}), "The `id` from the list of your numbers")
        }
        (_, path) if path.contains("/voice/") => (json!({"type": "string", "format": "uuid"}), "The call's id"),
        _ => (text(), "Its id"),
    }
}

fn request_body(operation: &Operation, catalog: &Catalog, writer: &mut Writer) -> Option<Value> {
    let is_needed = |schema: &Value| schema.get("required").is_some();
    let json_body = |required: bool, mut schema: Value| {
        let example = schema.as_object_mut().and_then(|schema| schema.remove("example"));
        let mut content = json!({"schema": schema});
        if let Some(example) = example {
            content["example"] = example;
        }
        json!({"required": required, "content": {"application/json": content}})
    };
    Some(match operation.body {
        Body::None => return None,
        Body::Fields(fields) => {
            let schema = input::closed_schema(fields);
            json_body(is_needed(&schema), schema)
        }
        Body::Nullable(fields) => {
            let schema = schemas::nullable(fields);
            json_body(is_needed(&schema), schema)
        }
        Body::Open(fields) => {
            let schema = input::schema(fields);
            json_body(is_needed(&schema), schema)
        }
        Body::Json { schema, required } => json_body(required, schema()),
        Body::Tools { schema, required } => json_body(required, schema(&catalog.names())),
        Body::Rpc(schema) => json_body(true, schema()),
        Body::Sold => {
            let tool = operation.sells?;
            let mut schema = tool.input_schema();
            for field in RECEIPT_FIELDS {
                let name = format!("receipt.{}", field.name);
                if !writer.components.contains_key(&name) {
                    let attached = input::schema(std::slice::from_ref(field))["properties"][field.name].take();
                    writer.components.insert(name.clone(), attached);
                }
                schema["properties"][field.name] = reference("schemas", &name);
            }
            schema["example"] = tool.example();
            // Without a body, most paid calls answer with their price.
            let is_soul = MARKET.iter().any(|sold| sold.name == tool.name);
            json_body(is_soul && is_needed(&schema), schema)
        }
        Body::Bytes { content_type, about } => {
            json!({"description": about, "required": false, "content": {content_type: {"schema": {}}}})
        }
        Body::Form(schema) => {
            json!({"required": true, "content": {"application/x-www-form-urlencoded": {"schema": schema()}}})
        }
    })
}

/// Every refusal of an operation: its own, and those that follow from its other members.
pub fn refusals(operation: &Operation) -> Vec<(u16, &'static str)> {
    if matches!(operation.body, Body::Rpc(_)) {
        return operation.refusals.to_vec();
    }
    let is_marketplace = operation.path.starts_with("/v1/soul");
    let mut refusals = refusals_of(operation.auth, is_marketplace);
    refusals.extend(operation.refusals);
    if operation.path.contains('{') {
        refusals.push((404, "not_found"));
    }
    let changes = operation.method != "GET";
    // Large public answers are rate limited by bytes (`limits::weigh`).
    let is_public = matches!(operation.auth, Auth::Nobody) && !changes;
    if is_public && matches!(routes::group_of(operation.method, operation.path), "meta" | "souls") {
        refusals.push((429, if is_marketplace { "rate_limited" } else { "rate_limit_exceeded" }));
    }
    let is_form = matches!(operation.body, Body::Form(_));
    if changes || !operation.query.is_empty() || !operation.headers.is_empty() {
        refusals.push((400, "invalid_request"));
    }
    if !is_form && !matches!(operation.body, Body::None) {
        refusals.push((413, "payload_too_large"));
    }
    if !is_form && !matches!(operation.body, Body::None | Body::Bytes { .. }) {
        refusals.push((415, "unsupported_media_type"));
    }
    refusals.sort_unstable();
    refusals.dedup();
    refusals
}

fn responses(operation: &Operation, common: &mut Common) -> Value {
    let mut responses = Map::new();
    for answer in operation.answers {
        let links: Vec<&Link> = operation.links.iter().filter(|link| link.status == answer.status).collect();
        let response = match &answer.content {
            // Paid operations share this answer: it is the same for every tool.
            Content::Json(Shape::Ref(named)) if operation.sells.is_some() => {
                let words: Vec<&str> = std::iter::once(named.name).chain(links.iter().map(|link| link.name)).collect();
                common.response(&words.join("-"), |writer| answered(answer, &links, None, writer))
            }
            _ => answered(answer, &links, operation.sells, &mut common.writer),
        };
        responses.insert(answer.status.to_string(), response);
    }
    let mut by_status: BTreeMap<u16, Vec<&'static str>> = BTreeMap::new();
    for (status, code) in refusals(operation) {
        by_status.entry(status).or_default().push(code);
    }
    let form = if operation.path.starts_with("/acp/") {
        ACP_ERROR.name
    } else if operation.sells.is_some() {
        PAYMENT_REQUIRED.name
    } else {
        ERROR.name
    };
    for (status, codes) in by_status {
        // On paid operations only 402 has the quote's form.
        let form = if form == PAYMENT_REQUIRED.name && status != 402 { ERROR.name } else { form };
        match responses.get_mut(&status.to_string()) {
            Some(response) => refuse(response, status, &codes, form),
            None => drop(responses.insert(status.to_string(), common.refusal(status, codes, form))),
        }
    }
    responses.insert("431".to_owned(), common.response("headers-too-large", |_| headers_too_large()));
    Value::Object(responses)
}

/// The gateway's answer, not a function's. It has no schema: the body is not ours, and generated clients would get a second
/// error type.
fn headers_too_large() -> Value {
    json!({
        "description":
            "The request line and the header values are longer than 10,240 bytes together. The gateway answers this, in JSON with \
             only a `message`",
    })
}

/// An answer that is not a refusal.
fn answered(answer: &Answer, links: &[&Link], sold: Option<&'static ToolSpec>, writer: &mut Writer) -> Value {
    let mut response = json!({"description": answer.about});
    let (shape, types) = match &answer.content {
        Content::Json(shape) => (Some(shape), [].as_slice()),
        Content::Other(types) => (None, *types),
        Content::JsonOr(shape, types) => (Some(shape), *types),
    };
    if let Some(shape) = shape {
        response["content"]["application/json"] = json!({"schema": writer.schema(shape, sold)});
    }
    for content_type in types {
        response["content"][*content_type] = json!({"schema": {"type": "string"}});
    }
    for (name, always, about) in answer.headers {
        response["headers"][*name] = header(*always, about);
    }
    for link in links {
        let parameters: Map<String, Value> =
            link.parameters.iter().map(|(name, expression)| ((*name).to_owned(), json!(expression))).collect();
        response["links"][link.name] = json!({"operationId": link.to, "parameters": parameters});
    }
    response
}

/// Adds the description of refusals to a response. `form` is the component's name.
fn refuse(response: &mut Value, status: u16, codes: &[&str], form: &str) {
    let schema = |name: &str| reference("schemas", name);
    response["content"]["application/json"]["schema"] = match form == PAYMENT_REQUIRED.name {
        true => json!({"anyOf": [schema(PAYMENT_REQUIRED.name), schema(INSUFFICIENT_CREDITS.name)]}),
        false => schema(form),
    };
    response["x-error-codes"] = json!(codes);
    match status {
        402 if form == PAYMENT_REQUIRED.name => {
            response["headers"]["PAYMENT-REQUIRED"] = header(false, "x402 v2 terms, base64 of JSON; with every quote")
        }
        429 => {
            response["headers"]["Retry-After"] = header(true, "Seconds");
            response["headers"]["RateLimit"] = header(true, "What is left of the limit (IETF draft 11)");
        }
        503 => response["headers"]["Retry-After"] = header(false, "Seconds"),
        _ => {}
    }
}

fn header(always: bool, about: &str) -> Value {
    json!({"required": always, "description": about, "schema": {"type": "string"}})
}
