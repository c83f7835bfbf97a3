//! What a catalog entry is: a tool's name, paths, price, input and output. [`list`] holds the entries themselves.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use base::input::{Field, FieldError, Format, Kind, Range};
use base::money::Usdc;
use platform::config::{Capability, ProvidersConfig};
use platform::net::FetchPolicy;
use platform::providers::model::ModelTool;
use platform::store::StoreError;
use serde_json::Value;

/// Buying credits: sold by the same gate as the tools, but no tool.
pub static TOP_UP: &ToolSpec = &crate::top_up::SPEC;

/// What souls sell: by the same gate, at terms of their own.
pub static MARKET: &[&ToolSpec] = &[&crate::soul::EXECUTION, &crate::soul::PURCHASE];

/// How long results can be read where nothing asks for less (contract §0).
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a function sells: a list of tools, and the providers that have an adapter. A function that sells nothing is given
/// [`NOTHING`], so that it links no tool.
pub struct Catalog {
    /// In the order agents see them.
    pub tools: Vec<&'static ToolSpec>,
    /// The names that may be configured for a capability.
    pub providers: fn(Capability) -> Vec<&'static str>,
}

pub static NOTHING: Catalog = Catalog { tools: Vec::new(), providers: |_| Vec::new() };

impl Deref for Catalog {
    type Target = [&'static ToolSpec];

    fn deref(&self) -> &[&'static ToolSpec] {
        &self.tools
    }
}

impl Catalog {
    /// The entry of this wire name, what souls sell included.
    pub fn find(&self, name: &str) -> Option<&'static ToolSpec> {
        self.iter().chain(MARKET).copied().find(|tool| tool.name == name)
    }

    /// The wire name of the tool somebody means: by that name, or by one of its paths.
    pub fn name_of(&self, text: &str) -> Option<&'static str> {
        let is_path = |path: &str| path == text || path.strip_prefix("/v1/tools/") == Some(text);
        self.iter()
            .chain(MARKET)
            .find(|tool| tool.name == text || tool.paths.iter().any(|path| is_path(path)))
            .map(|tool| tool.name)
    }

    /// Checks that every configured provider has an adapter: a mistyped name stops the start, not the first sale.
    ///
    /// # Errors
    /// Names the variable, the unknown provider and the known ones.
    pub fn check_providers(&self, providers: &ProvidersConfig) -> Result<(), StoreError> {
        for (capability, variable) in Capability::ALL {
            let known = (self.providers)(capability);
            let unknown = providers.order(capability).iter().find(|name| !known.contains(&name.as_str()));
            if let Some(unknown) = unknown {
                let known = known.join(", ");
                return Err(StoreError::new(format_args!("{variable} names {unknown:?}; there are {known}")));
            }
        }
        Ok(())
    }
}

/// One thing an agent can buy.
pub struct ToolSpec {
    /// The wire name, as in `{"tool": "web_read"}`.
    pub name: &'static str,
    pub title: &'static str,
    pub summary: &'static str,
    /// The route group (and so the function) that answers its paths.
    pub group: &'static str,
    /// Paths it is posted to; the first is the one to advertise, the others are older names for the same.
    pub paths: &'static [&'static str],
    pub price: Price,
    pub answer: Answer,
    /// What is sold is credits: neither paid with credits, nor counted as spending, nor stopped by the owner's rules.
    pub sells_credits: bool,
    /// A direct result's members stand at the top of the answer instead of under `data.result` (contract §0). Beside them
    /// come `request_id`, `receipt_id`, `cost`, `provider` and `mode`, which its output schema therefore names too.
    pub bare: bool,
    /// It keeps a provider busy for long, and is limited as such ([`gate::limits::Class::Expensive`]).
    pub expensive: bool,
    /// A call under an `Idempotency-Key` can be found again by it (`GET /v1/submissions/recover`, contract §6).
    pub durable: bool,
    /// Its job waits for a person, so work that a soul sells may not use it: that work would end first.
    pub waits_for_person: bool,
    /// Receipt category (contract §22) and the finer word beside it.
    pub category: &'static str,
    /// Longest the work may take before it is given up and paid back.
    pub deadline: Duration,
    /// How long its result can be read: less where it holds personal data. The receipt stays.
    pub retention: Duration,
    pub input: &'static [Field],
    /// Any of these is needed to do it at all; empty where every deployment can.
    pub needs: fn(&ToolSpec, &serde_json::Map<String, Value>) -> Vec<Need>,
    /// What a schema cannot say about the input, checked before any price is quoted.
    pub check: fn(&serde_json::Map<String, Value>, &FetchPolicy) -> Vec<FieldError>,
    /// What a 202 has beside its usual members, from the service's origin, the request's id and the time it was made.
    /// Null for nothing.
    pub accepted: fn(&str, RequestId, Timestamp) -> Value,
    /// An input that works, shown to agents.
    pub example: fn() -> Value,
    /// JSON Schema of the result.
    pub output: fn() -> Value,
    /// In place of `output`, where the schema follows from something else about the tool.
    pub derived: Option<fn(&ToolSpec) -> Value>,
}

/// What not every deployment has: without it a tool is refused before its price is told (contract §1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A key of this name among the providers'.
    Key(&'static str),
    /// Somebody who is configured for this.
    Provider(Capability),
    /// A way to send mail.
    Mail,
    /// Something that runs pages' scripts.
    Browser,
    /// The operator's own copy of the register of this name.
    Copy(&'static str),
    /// Pages that this service has read.
    Pages,
    /// What no deployment has yet, in words that follow "this deployment has no".
    Nobody(&'static str),
}

/// In words that follow "no", with the place where an operator adds it.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Key(name) => write!(f, "key of {name} (PROVIDER_KEYS)"),
            Need::Provider(capability) => write!(f, "provider of it ({})", capability.variable()),
            Need::Mail => f.write_str("mail relay (SMTP_URL)"),
            Need::Browser => f.write_str("browser (BROWSER_URL)"),
            Need::Copy(name) => write!(f, "copy of the register (import-snapshot {name})"),
            Need::Pages => f.write_str("page in its own index yet"),
            Need::Nobody(what) => f.write_str(what),
        }
    }
}

/// What a call costs.
#[derive(Clone, Copy)]
pub enum Price {
    /// Always the same, in micro-USDC.
    Fixed(Usdc),
    /// Whatever the input says, once it was validated; and what a caller without input is told.
    Of { input: fn(&serde_json::Map<String, Value>) -> Usdc, usual: Usdc },
}

impl Price {
    /// The price of a call with this input.
    pub fn of(&self, input: &serde_json::Map<String, Value>) -> Usdc {
        match self {
            Price::Fixed(price) => *price,
            Price::Of { input: price, .. } => price(input),
        }
    }

    /// The price where no input is known: for lists and price probes.
    pub fn usual(&self) -> Usdc {
        match self {
            Price::Fixed(price) | Price::Of { usual: price, .. } => *price,
        }
    }
}

/// How the result reaches the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// In the answer to the paid call.
    Direct,
    /// By polling: the paid call answers 202 with a request id.
    Queued,
}

impl ToolSpec {
    /// What a queued tool has in common with most: to be completed with `..ToolSpec::QUEUED`.
    pub const QUEUED: ToolSpec = ToolSpec {
        name: "",
        title: "",
        summary: "",
        group: "",
        paths: &[],
        price: Price::Fixed(Usdc::ZERO),
        answer: Answer::Queued,
        sells_credits: false,
        bare: false,
        expensive: false,
        durable: false,
        waits_for_person: false,
        category: "data",
        deadline: Duration::from_secs(60),
        retention: RETENTION,
        input: &[],
        needs: |_, _| Vec::new(),
        check: |_, _| Vec::new(),
        accepted: |_, _, _| Value::Null,
        example: || Value::Null,
        output: || Value::Null,
        derived: None,
    };

    /// The same of a tool that answers at once.
    pub const DIRECT: ToolSpec =
        ToolSpec { answer: Answer::Direct, deadline: Duration::from_secs(5), ..ToolSpec::QUEUED };

    pub fn path(&self) -> &'static str {
        self.paths[0]
    }

    /// Its name as a tool of MCP: `<service>_<name>` (contract §17).
    pub fn mcp_name(&self, service: &str) -> String {
        // A verb, where a seller's service is done.
        let word = if self.name == crate::soul::EXECUTION.name { "soul_execute" } else { self.name };
        mcp_name(service, word)
    }

    /// JSON Schema of the result.
    pub fn output_schema(&self) -> Value {
        self.derived.map_or_else(|| (self.output)(), |derived| derived(self))
    }

    /// JSON Schema of the body.
    pub fn input_schema(&self) -> Value {
        base::input::schema(self.input)
    }
}

impl ModelTool for ToolSpec {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.summary
    }

    fn input_schema(&self) -> Value {
        ToolSpec::input_schema(self)
    }
}

/// The name of anything as a tool of MCP (contract §17): the service's name comes first, so that an agent with many
/// servers knows whose it is.
pub fn mcp_name(service: &str, word: &str) -> String {
    format!("{}_{word}", service.to_ascii_lowercase().replace('-', "_"))
}

/// Members every paid body may carry. They go on the receipt and never to the tool (contract §0).
pub static RECEIPT_FIELDS: &[Field] = &[
    Field::optional("memo", Kind::Text { min: 0, max: 1000, format: None }, "A note for the receipt"),
    Field::optional(
        "decisionContext",
        Kind::Object {
            fields: &[
                Field::optional("goal", Kind::Text { min: 0, max: 1000, format: None }, "What the agent is after"),
                Field::optional("goalId", Kind::Text { min: 0, max: 255, format: None }, "Groups receipts by goal"),
                Field::optional(
                    "alternatives",
                    Kind::List { of: &Kind::Text { min: 0, max: 1000, format: None }, max: 50 },
                    "What else was considered",
                ),
                Field::optional(
                    "confidence",
                    Kind::Number(Range { above: None, min: Some(0.0), max: Some(1.0) }),
                    "0 to 1",
                ),
            ],
            open: true,
        },
        "Why the agent bought this",
    ),
    Field::optional(
        "valueTag",
        Kind::Object {
            fields: &[
                Field::required(
                    "type",
                    Kind::Choice(&["revenue", "lead", "conversion", "savings", "engagement"]),
                    "Kind of value",
                ),
                Field::optional(
                    "amount",
                    Kind::Number(Range { above: Some(0.0), min: None, max: Some(1_000_000.0) }),
                    "Value in USD",
                ),
                Field::optional("label", Kind::Text { min: 0, max: 200, format: None }, "A label"),
            ],
            open: false,
        },
        "The value this call is expected to bring",
    ),
];

/// An absolute http or https URL. What may be fetched is judged separately, by the guard.
pub static URI: Format = Format {
    name: Some("uri"),
    pattern: None,
    matches: |text| url::Url::parse(text).is_ok(),
    message: "must be an absolute URL",
};
