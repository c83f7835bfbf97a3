//! The catalog entry of a tool: name, paths, price, input and output. The crate `catalog` has the list of all entries.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use base::input::{Field, FieldError, Format, Kind, Range};
use base::money::Usdc;
use platform::config::{Capability, Config, ConfigErrors, PriceTable};
use platform::http::ApiError;
use platform::net::FetchPolicy;
use platform::providers::Charge;
use platform::providers::model::ModelTool;
use platform::store::lists::List;
use platform::store::{BoxFuture, StoreError, Write};
use serde_json::{Map, Value};

use crate::quoting::{CheckNamed, Quoter};
use crate::{Runner, Toolbox};
use crate::{charges, own};

/// Buying credits: sold through the same gate as tools, but not listed as a tool.
pub static TOP_UP: &ToolSpec = &crate::top_up::SPEC;

/// Souls sell these through the same gate; each seller sets price and terms.
pub static MARKET: &[&ToolSpec] = &[&crate::soul::EXECUTION, &crate::soul::PURCHASE];

/// How long results can be read, unless a tool's entry sets less: 30 days.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// The tools that a function sells, and the providers that have an adapter. A function that sells nothing uses [`NOTHING`]
/// and so links no tool.
pub struct Catalog {
    /// In the order in which agents see them.
    pub tools: Vec<&'static ToolSpec>,
    /// What `TOOLS` leaves out. Nothing shows or sells it.
    pub left_out: Vec<&'static ToolSpec>,
    /// The quoters of the tools with asked prices.
    pub quoters: Vec<&'static Quoter>,
    /// The provider names that may be configured for a capability.
    pub providers: fn(Capability) -> Vec<&'static str>,
    /// All names that `PROVIDER_KEYS`, `PROVIDER_URLS` and `PROVIDER_CALLS_PER_DAY` may have: what is asked, and keys with
    /// names of their own.
    pub asked: fn() -> Vec<&'static str>,
    /// What the providers charge.
    pub charges: fn() -> Vec<Charge>,
    /// Whether a country (ISO 3166-1 alpha-2) has phone numbers.
    pub has_country: fn(&str) -> bool,
    /// What souls sell: [`MARKET`], or nothing where there is no marketplace.
    pub market: &'static [&'static ToolSpec],
    /// What is wrong with `OWN_TOOLS` and `TOOLS`.
    pub problems: Vec<String>,
}

pub static NOTHING: Catalog = Catalog {
    tools: Vec::new(),
    left_out: Vec::new(),
    quoters: Vec::new(),
    providers: |_| Vec::new(),
    asked: Vec::new,
    charges: Vec::new,
    has_country: |_| true,
    market: MARKET,
    problems: Vec::new(),
};

impl Deref for Catalog {
    type Target = [&'static ToolSpec];

    fn deref(&self) -> &[&'static ToolSpec] {
        &self.tools
    }
}

impl Catalog {
    /// The entry with this wire name, including what souls sell.
    pub fn find(&self, name: &str) -> Option<&'static ToolSpec> {
        self.iter().chain(self.market).copied().find(|tool| tool.name == name)
    }

    /// The wire names of all tools, including what souls sell.
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().chain(self.market).map(|tool| tool.name).collect()
    }

    /// The wire name of a tool, given that name or one of its paths.
    pub fn name_of(&self, text: &str) -> Option<&'static str> {
        let is_path = |path: &str| path == text || path.strip_prefix("/v1/tools/") == Some(text);
        self.iter()
            .chain(self.market)
            .find(|tool| tool.name == text || tool.paths.iter().any(|path| is_path(path)))
            .map(|tool| tool.name)
    }

    /// The catalog as this deployment sells it: at the operator's prices, with the operator's own services, without what it does
    /// not sell. Everything that
    /// shows or charges a price has to read it from this one.
    pub fn of(&'static self, config: &Config) -> &'static Catalog {
        self.priced(&config.prices).with_own(config.own_tools.as_deref()).chosen(config)
    }

    /// The catalog with what `OWN_TOOLS` describes. A function that sells nothing needs none of it.
    fn with_own(&'static self, text: Option<&str>) -> &'static Catalog {
        let Some(text) = text.filter(|_| !self.tools.is_empty()) else { return self };
        let (own, problems) = match own::read(text, self) {
            Ok(own) => (own, Vec::new()),
            Err(problems) => (Vec::new(), problems.iter().map(|problem| format!("OWN_TOOLS {problem}")).collect()),
        };
        let tools = self.tools.iter().copied().chain(own).collect();
        Box::leak(Box::new(Catalog { tools, left_out: Vec::new(), quoters: self.quoters.clone(), problems, ..*self }))
    }

    /// The catalog without the tools that `TOOLS` leaves out, and without the marketplace if there is none.
    fn chosen(&'static self, config: &Config) -> &'static Catalog {
        if self.tools.is_empty() || (config.tools.is_everything() && config.marketplace) {
            return self;
        }
        let (sold, left_out): (Vec<_>, Vec<_>) =
            self.tools.iter().copied().partition(|tool| config.tools.sells(tool.name, tool.own.is_some()));
        let names: Vec<_> = sold.iter().chain(&left_out).map(|tool| (tool.name, tool.own.is_some())).collect();
        let mut problems = self.problems.clone();
        problems.extend(config.tools.unknown(&names).map(|word| format!("TOOLS names {word:?}, which is no tool")));
        if sold.is_empty() {
            problems.push("TOOLS leaves no tool to sell".to_owned());
        }
        let market = if config.marketplace { self.market } else { &[] };
        Box::leak(Box::new(Catalog { tools: sold, left_out, market, quoters: self.quoters.clone(), problems, ..*self }))
    }

    /// The catalog at the operator's prices. Changed entries are never freed: a process makes them once.
    pub fn priced(&'static self, prices: &PriceTable) -> &'static Catalog {
        if prices.tools.is_empty() {
            return self;
        }
        let is_changed = |tool: &ToolSpec| prices.tools.contains_key(tool.name);
        let usual = |tool: &ToolSpec| prices.tools.get(tool.name).copied().unwrap_or_else(|| tool.price.usual());
        let priced = |tool: &&'static ToolSpec| -> &'static ToolSpec {
            if !is_changed(tool) && !tool.may_include.is_some_and(is_changed) {
                return tool;
            }
            let included = tool.may_include.map(|other| (other.price.usual(), usual(other)));
            Box::leak(Box::new(ToolSpec { price: tool.price.at(usual(tool), included), ..**tool }))
        };
        let tools = self.tools.iter().map(priced).collect();
        Box::leak(Box::new(Catalog {
            tools,
            quoters: self.quoters.clone(),
            left_out: Vec::new(),
            problems: Vec::new(),
            ..*self
        }))
    }

    /// These runners, and one for each of the operator's own services if they have the work of those ([`own::RUNNER`]). Never
    /// freed: a process makes them once.
    pub fn runners(&self, runners: &'static [&'static Runner]) -> &'static [&'static Runner] {
        // Jobs of what is not sold any more go on.
        let all = self.tools.iter().chain(&self.left_out).copied();
        let own: Vec<_> = all.filter(|tool| tool.own.is_some()).collect();
        let work = runners.iter().find(|runner| runner.spec.name == own::RUNNER);
        let Some(work) = work.filter(|_| !own.is_empty()) else { return runners };
        let own =
            own.into_iter().map(|spec| -> &'static Runner { Box::leak(Box::new(Runner { spec, run: work.run })) });
        Box::leak(runners.iter().copied().chain(own).collect::<Vec<_>>().into_boxed_slice())
    }

    /// Stops the start if the configuration has a name that is unknown here, so that a mistyped one does not show at the first
    /// sale.
    ///
    /// # Errors
    /// All of [`Catalog::unknown`].
    pub fn check(&self, config: &Config) -> Result<(), ConfigErrors> {
        let unknown = self.unknown(config);
        if unknown.is_empty() { Ok(()) } else { Err(ConfigErrors(unknown)) }
    }

    /// One problem for each name in the configuration that is unknown here: of tools, providers and countries. A function that
    /// sells nothing knows no names, and has none.
    pub fn unknown(&self, config: &Config) -> Vec<String> {
        if self.tools.is_empty() && self.left_out.is_empty() {
            return Vec::new();
        }
        let mut problems: Vec<String> =
            config.prices.tools.keys().filter_map(|name| self.why_not_priced(name)).collect();
        problems.extend(self.problems.iter().cloned());
        let losses = charges::losses(self, config);
        problems.extend(losses.iter().filter(|loss| loss.is_open()).map(|loss| format!("{loss}: {}", loss.remedy())));
        let (tools, words) = (self.iter().chain(&self.left_out), &config.sold_below_cost);
        let names: Vec<&str> = tools.map(|tool| tool.name).collect();
        let unknown = words.iter().filter(|word| *word != "*" && !names.contains(&word.as_str()));
        problems.extend(unknown.map(|word| format!("SOLD_BELOW_COST names {word:?}, which is no tool")));
        for (capability, variable) in Capability::ALL {
            let known = (self.providers)(capability);
            let unknown = config.providers.named(capability).iter().filter(|name| !known.contains(&name.as_str()));
            let known = known.join(", ");
            problems.extend(
                unknown.map(|name| {
                    format!("{variable} names {name:?}, which is not a known provider. Known are: {known}")
                }),
            );
        }
        let providers = &config.providers;
        let asked = [(self.asked)(), own::secrets(&self.tools), own::secrets(&self.left_out)].concat();
        let named: [(&str, Vec<&String>); 3] = [
            ("PROVIDER_KEYS", providers.keys.keys().collect()),
            ("PROVIDER_URLS", providers.urls.keys().collect()),
            ("PROVIDER_CALLS_PER_DAY", providers.calls_a_day.keys().collect()),
        ];
        for (variable, names) in named {
            let unknown = names.into_iter().filter(|name| !asked.contains(&name.as_str()));
            // A key may stand where its name belongs.
            let is_name = |name: &str| {
                name.len() <= 24 && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
            };
            problems.extend(unknown.map(|name| match is_name(name) {
                true => format!("{variable} names {name:?}, which is not a known provider"),
                false => format!("{variable} has a name that is not shown here, because no provider has one like it"),
            }));
        }
        let countries = [("SMS_COUNTRIES", &config.sms.countries), ("VOICE_COUNTRIES", &config.voice.countries)];
        for (variable, countries) in countries {
            // One that has not two letters is a problem of its form.
            let unknown = countries.iter().filter(|country| country.len() == 2 && !(self.has_country)(country));
            problems.extend(unknown.map(|country| format!("{variable} names {country:?}, which is not a country")));
        }
        problems
    }

    /// Why the operator sets no price of this name; `None` if it is a tool's.
    fn why_not_priced(&self, name: &str) -> Option<String> {
        let why = if let Some(tool) = self.tools.iter().chain(&self.left_out).find(|tool| tool.name == name) {
            if tool.own.is_some() {
                return Some(format!("PRICES names {name:?}, whose price is set in OWN_TOOLS"));
            }
            let fee = tool.fee?;
            return Some(format!("PRICES names {name:?}, whose price is what it may spend; its fee is {fee}"));
        } else if MARKET.iter().any(|tool| tool.name == name) {
            "whose price the sellers set"
        } else if TOP_UP.name == name {
            "whose price is the amount that is bought"
        } else {
            "which is not a tool"
        };
        Some(format!("PRICES names {name:?}, {why}"))
    }
}

/// Which function works on an open job. Each lane has its own queue and its own shards of the index of open jobs, so that one
/// with long work does not stop the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The worker: our own tools, and seller jobs that are only settled and handed over.
    Tools,
    /// The executor: model calls and sellers' programs, which may take minutes.
    Souls,
    /// The browser worker: tasks in a browser, which take minutes and a costly session each.
    Browser,
}

impl Lane {
    pub const ALL: [Lane; 3] = [Lane::Tools, Lane::Souls, Lane::Browser];

    /// The due list of its open jobs.
    pub const fn list(self) -> List {
        match self {
            Lane::Tools => List::Tools,
            Lane::Souls => List::Souls,
            Lane::Browser => List::Browser,
        }
    }
}

/// A question that a tool answers from its input.
pub type OfInput = fn(&Map<String, Value>) -> bool;

/// Checks an input against what the quote locked ([`crate::quoting::AskedPrice::locked`]).
pub type CheckQuoted = fn(&Map<String, Value>, &Map<String, Value>) -> Result<(), ApiError>;

/// Checks who pays, if that is known: the named agent or the payment's signer.
pub type CheckPayer = for<'a> fn(&'a Toolbox, Option<AgentId>) -> BoxFuture<'a, Result<(), ApiError>>;

/// The writes of a tool's own in the transaction that claims a call of it, each with a condition (a lock is free, a counter has room), or the
/// tool's refusal. Asked again whenever one of them was refused; it then sees why. A call whose money arrived before its claim is claimed
/// without them if they are refused, so **the work looks whether it holds what it claimed**. Nothing takes them back if the job
/// ends before its first run: a lock names its job and is free when that job has ended.
pub type Claims = for<'a> fn(&'a Toolbox, Claiming<'a>) -> BoxFuture<'a, Result<Vec<Write>, ApiError>>;

/// Takes back what was claimed for a job that came to nothing.
pub type Release = for<'a> fn(&'a Toolbox, RequestId) -> BoxFuture<'a, Result<(), StoreError>>;

/// The call that is being claimed.
#[derive(Clone, Copy)]
pub struct Claiming<'a> {
    pub agent: AgentId,
    pub request_id: RequestId,
    pub input: &'a Map<String, Value>,
    /// What its quote fixed for the work; empty without an asked price.
    pub locked: &'a Map<String, Value>,
    /// micro-USDC
    pub price: Usdc,
    pub now: Timestamp,
}

/// Makes members of a 202 answer from the service's origin, the request id, the time of the request, its input, and what an
/// asked quote fixed for the work.
pub type Accepted = fn(&str, RequestId, Timestamp, &Map<String, Value>, &Map<String, Value>) -> Value;

pub struct ToolSpec {
    /// The wire name, as in `{"tool": "web_read"}`.
    pub name: &'static str,
    pub title: &'static str,
    pub summary: &'static str,
    /// The route group (and so the function) that serves its paths.
    pub group: &'static str,
    /// The paths to POST to. The first is advertised; the others are older aliases.
    pub paths: &'static [&'static str],
    pub price: Price,
    pub answer: Answer,
    /// A wallet that proves itself, with a scope that may spend, pays from its credits at once, as an access token does. With
    /// too few credits it gets 402 `insufficient_credits`.
    pub pays_from_credits: bool,
    /// It sells credits: it cannot be paid with credits, does not count as spending, and the owner's spending rules do not
    /// apply.
    pub sells_credits: bool,
    /// The members of a direct result are at the top of the answer instead of under `data.result`. The answer adds
    /// `request_id`, `receipt_id`, `cost`, `provider` and `mode`, so the output schema must name these too.
    pub bare: bool,
    /// A call occupies a provider for a long time, so the tool has its own rate limit (`gate::limits::Class::Expensive`).
    pub expensive: bool,
    /// `GET /v1/submissions/recover` finds a call of this tool by its idempotency key.
    pub durable: bool,
    /// Its job waits for a person. A seller's program (a soul's service) may not call it, because the program's own
    /// deadline would pass first.
    pub waits_for_person: bool,
    /// Its work does things that cannot be taken back, and records each of them. A job that is given up (after a freeze, or
    /// when its attempts are used up, or because its input is lost) then runs once more, with [`crate::Task::is_over`], and is
    /// charged by the record. What souls sell may not call it.
    pub keeps_record: bool,
    /// Its work buys other calls for its owner, from a purse that its price fills ([`crate::buying`]).
    pub buys: bool,
    /// The price passes money on to others, so `PRICES` cannot set it: the name in `PRICES` of the fee that is added. The work begins
    /// only after the money has arrived.
    pub fee: Option<&'static str>,
    /// The free route that gives a quote. Callers must ask there first; the tool's own path then refuses a call without a
    /// quote id. `None`: the tool's own path gives the quote, as for any tool.
    pub quote_path: Option<&'static str>,
    /// How long its quotes are valid; `None`: as long as the service's other quotes.
    pub quote_ttl: Option<Duration>,
    /// The members of the input that a quote is bound to; empty: the whole body.
    pub quoted_fields: &'static [&'static str],
    /// Checks the input of a paid call against what its quote locked.
    pub check_quoted: CheckQuoted,
    /// Refuses a payer whom the tool would sell nothing, before a payment is asked for and again before it is taken.
    pub check_payer: CheckPayer,
    /// Refuses what its rows forbid (a cap that is used up, a thing that is not the caller's), before a payment is asked for and again
    /// before it is taken. A tool with a quoter has that one's check too.
    pub check_stored: CheckNamed,
    /// What it writes itself in the transaction that claims a call.
    pub claims: Claims,
    /// Takes that back when a job has come to nothing: its payment was refused or released. Done once at best, so something else has
    /// to find what it missed.
    pub release: Release,
    /// Members of the body that nothing reads are refused instead of named: a misspelt one would change what is sent.
    pub strict: bool,
    /// A call has to have an `Idempotency-Key`: what it does cannot be taken back, and a repeat without one would do it twice.
    pub needs_key: bool,
    /// A tool that its quote may sell along with it, once: its price is a part of the highest possible one.
    pub may_include: Option<&'static ToolSpec>,
    /// Status and code of refusals that only this tool has.
    pub refusals: &'static [(u16, &'static str)],
    /// Receipt category. The subcategory is the tool name (`soul` for what souls sell).
    pub category: &'static str,
    /// Which function works on its jobs.
    pub lane: Lane,
    /// Time limit of the work; after it the call fails and is refunded.
    pub deadline: Duration,
    /// Whether the work waits for hosts that this input names; `None`: never. Such a run takes one of a few places in the workers, and is
    /// broken off and begun anew later if it takes long while too many others do ([`crate::Reporter::must_end`]).
    pub waits_for_hosts: Option<OfInput>,
    /// How long the result can be read: shorter for personal data. The receipt is kept.
    pub retention: Duration,
    pub input: &'static [Field],
    /// The members of `input` whose texts are judged before a price is quoted ([`crate::safety`]): what is sent to somebody
    /// or published. Every string in these members counts. `member.name` stands for the member `name` of the objects in a
    /// list.
    pub judged: &'static [&'static str],
    /// The deployment needs at least one of these to serve a call with this input. Empty: every deployment can.
    pub needs: fn(&ToolSpec, &serde_json::Map<String, Value>) -> Vec<Need>,
    /// A refusal of the body with an error of its own, looked for before anything of it is validated. Its members may have any
    /// type and any length.
    pub refuse: fn(&serde_json::Map<String, Value>) -> Option<ApiError>,
    /// Checks on the input that a schema cannot express, made before a price is quoted.
    pub check: fn(&serde_json::Map<String, Value>, &FetchPolicy) -> Vec<FieldError>,
    /// Additional members of the 202 answer. Null for none.
    pub accepted: Accepted,
    /// A valid input, shown to agents.
    pub example: fn() -> Value,
    /// JSON Schema of the result.
    pub output: fn() -> Value,
    /// Replaces `output` if the schema is derived from the entry.
    pub derived: Option<fn(&ToolSpec) -> Value>,
    /// The operator's own service that does the work ([`crate::own`]). Then input, price, example and needs are its.
    pub own: Option<&'static upstream::Tool>,
}

/// Something that a deployment may lack. A tool that needs it is then refused before a price is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A key with this name in `PROVIDER_KEYS`.
    Key(&'static str),
    /// A provider configured for this capability.
    Provider(Capability),
    /// A mail relay.
    Mail,
    /// A browser to run the scripts of pages.
    Browser,
    /// The operator's imported copy of the register with this name.
    Copy(&'static str),
    /// The operator's imported feed of products.
    Products,
    /// Sellers of goods in this deployment.
    Goods,
    /// Pages in this service's own index.
    Pages,
    /// Something that no deployment has yet; the text follows "this deployment has no".
    Nobody(&'static str),
}

/// The blob that says which imported products are current.
pub const PRODUCTS: &str = "snapshots/products/pointer.json";

/// Text that follows "this deployment has no", with the setting or command that adds it.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Key(name) => write!(f, "key for {name} (PROVIDER_KEYS)"),
            Need::Provider(capability) => write!(f, "provider for this tool ({})", capability.variable()),
            Need::Mail => f.write_str("mail relay (SMTP_URL)"),
            Need::Browser => f.write_str("browser (BROWSER_URL)"),
            Need::Copy(name) => write!(f, "copy of the register (import-snapshot {name})"),
            Need::Products => f.write_str("feed of products (import-products)"),
            Need::Goods => f.write_str("sellers of goods (GOODS_SELLERS)"),
            Need::Pages => f.write_str("page in its own index yet"),
            Need::Nobody(what) => f.write_str(what),
        }
    }
}

#[derive(Clone, Copy)]
pub enum Price {
    /// A fixed price in micro-USDC.
    Fixed(Usdc),
    /// A price computed from the validated input and the usual price, which is shown when no input is known. The operator
    /// changes the usual price, so the computed one has to follow it in proportion.
    Of { input: fn(&serde_json::Map<String, Value>, Usdc) -> Usdc, usual: Usdc },
    /// A price that the tool's quoter computes ([`crate::quoting`]): the price shown when no input is known, and the highest
    /// possible one.
    Asked { usual: Usdc, most: Usdc },
    /// A price by the input, as the operator's settings describe it, of a tool of its own.
    Own(&'static upstream::Price),
}

impl Price {
    /// The price of a call with this input. Of an asked price, the usual one: a call is charged what its quote says.
    pub fn of(&self, input: &serde_json::Map<String, Value>) -> Usdc {
        match self {
            Price::Fixed(price) | Price::Asked { usual: price, .. } => *price,
            Price::Of { input: price, usual } => price(input, *usual),
            // An input without what is measured is refused before its price is asked for ([`ToolSpec::check`]).
            Price::Own(price) => price.of(&Value::Object(input.clone())).unwrap_or_else(|_| price.highest()),
        }
    }

    /// The same price, after the operator changed the usual one. `included`: what the tool of [`ToolSpec::may_include`] cost
    /// before and costs now; that part of the highest price does not follow the usual one.
    fn at(&self, usual: Usdc, included: Option<(Usdc, Usdc)>) -> Price {
        match *self {
            Price::Fixed(_) => Price::Fixed(usual),
            Price::Own(price) => Price::Own(price),
            Price::Of { input, .. } => Price::Of { input, usual },
            Price::Asked { usual: before, most } => {
                let (was, is) = included.unwrap_or_default();
                let own = most.checked_sub(was).unwrap_or_default();
                let own = u128::from(own.micro()) * u128::from(usual.micro());
                let own = own.div_ceil(u128::from(before.micro().max(1)));
                let most = u64::try_from(own).unwrap_or(u64::MAX).saturating_add(is.micro());
                Price::Asked { usual, most: Usdc::from_micro(most) }
            }
        }
    }

    /// The price when no input is known, for lists and price probes.
    pub fn usual(&self) -> Usdc {
        match self {
            Price::Fixed(price) | Price::Of { usual: price, .. } | Price::Asked { usual: price, .. } => *price,
            Price::Own(price) => price.lowest(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// In the answer to the paid call itself.
    Direct,
    /// By polling: the paid call answers 202 with a request id.
    Queued,
}

impl ToolSpec {
    /// Defaults of a queued tool; use as `..ToolSpec::QUEUED`.
    pub const QUEUED: ToolSpec = ToolSpec {
        name: "",
        title: "",
        summary: "",
        group: "",
        paths: &[],
        price: Price::Fixed(Usdc::ZERO),
        answer: Answer::Queued,
        pays_from_credits: false,
        sells_credits: false,
        bare: false,
        expensive: false,
        durable: false,
        waits_for_person: false,
        keeps_record: false,
        buys: false,
        fee: None,
        quote_path: None,
        quote_ttl: None,
        quoted_fields: &[],
        check_quoted: |_, _| Ok(()),
        check_payer: |_, _| Box::pin(async { Ok(()) }),
        check_stored: |_, _, _, _, _| Box::pin(async { Ok(()) }),
        claims: |_, _| Box::pin(async { Ok(Vec::new()) }),
        release: |_, _| Box::pin(async { Ok(()) }),
        strict: false,
        needs_key: false,
        may_include: None,
        refusals: &[],
        category: "data",
        lane: Lane::Tools,
        deadline: Duration::from_secs(60),
        waits_for_hosts: None,
        retention: RETENTION,
        input: &[],
        judged: &[],
        needs: |_, _| Vec::new(),
        refuse: |_| None,
        check: |_, _| Vec::new(),
        accepted: |_, _, _, _, _| Value::Null,
        example: || Value::Null,
        output: || Value::Null,
        derived: None,
        own: None,
    };

    /// Defaults of a direct tool.
    pub const DIRECT: ToolSpec =
        ToolSpec { answer: Answer::Direct, deadline: Duration::from_secs(5), ..ToolSpec::QUEUED };

    pub fn path(&self) -> &'static str {
        self.paths[0]
    }

    /// Its name as an MCP tool: `<service>_<name>`.
    pub fn mcp_name(&self, service: &str) -> String {
        // MCP names are verbs: a soul's service is executed.
        let word = if self.name == crate::soul::EXECUTION.name { "soul_execute" } else { self.name };
        mcp_name(service, word)
    }

    /// JSON Schema of the result.
    pub fn output_schema(&self) -> Value {
        self.derived.map_or_else(|| (self.output)(), |derived| derived(self))
    }

    /// JSON Schema of the body.
    pub fn input_schema(&self) -> Value {
        self.own.map_or_else(|| base::input::schema(self.input), |own| own.input_schema.clone())
    }

    /// A valid input, shown to agents.
    pub fn example(&self) -> Value {
        match self.own {
            None => (self.example)(),
            Some(own) => Value::Object(own.example_input().unwrap_or_default()),
        }
    }

    /// What is wrong with an input beyond its fields.
    pub fn check(&self, input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
        match self.own {
            None => (self.check)(input, policy),
            Some(own) => own.check(input).err().unwrap_or_default(),
        }
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
        base::model_schema::for_models(&ToolSpec::input_schema(self))
    }
}

/// An MCP tool name. It begins with the service's name, so that an agent with many servers can tell them apart.
pub fn mcp_name(service: &str, word: &str) -> String {
    format!("{}_{word}", service.to_ascii_lowercase().replace('-', "_"))
}

/// Members that the body of every paid call may have. They are stored on the receipt and are not passed to the tool.
pub static RECEIPT_FIELDS: &[Field] = &[
    Field::optional("memo", Kind::Text { min: 0, max: 1000, format: None }, "A note for the receipt"),
    Field::optional(
        "decisionContext",
        Kind::Object {
            fields: &[
                Field::optional("goal", Kind::Text { min: 0, max: 1000, format: None }, "What the agent is after"),
                Field::optional("goalId", Kind::Text { min: 0, max: 255, format: None }, "Groups receipts by goal"),
                Field::optional("goal_id", Kind::Text { min: 0, max: 255, format: None }, "The same as goalId"),
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

/// An absolute URL. The tool and the fetch guard check its scheme and whether it may be fetched.
pub static URI: Format = Format {
    name: Some("uri"),
    pattern: None,
    matches: |text| url::Url::parse(text).is_ok(),
    message: "must be an absolute URL",
};

#[cfg(test)]
mod tests {
    use super::*;

    static FIXED: ToolSpec =
        ToolSpec { name: "fixed", price: Price::Fixed(Usdc::from_micro(1_000)), ..ToolSpec::DIRECT };
    static COMPUTED: ToolSpec = ToolSpec {
        name: "computed",
        price: Price::Of {
            input: |input, usual| Usdc::from_micro(usual.micro() * input.len() as u64),
            usual: Usdc::from_micro(1_000),
        },
        ..ToolSpec::DIRECT
    };
    static ASKED: ToolSpec = ToolSpec {
        name: "asked",
        price: Price::Asked { usual: Usdc::from_micro(3_000), most: Usdc::from_micro(30_001) },
        ..ToolSpec::DIRECT
    };
    static WITH_FIXED: ToolSpec = ToolSpec {
        name: "with_fixed",
        price: Price::Asked { usual: Usdc::from_micro(10), most: Usdc::from_micro(1_100) },
        may_include: Some(&FIXED),
        ..ToolSpec::DIRECT
    };

    fn catalog() -> &'static Catalog {
        let tools = vec![&FIXED, &COMPUTED, &ASKED, &WITH_FIXED];
        Box::leak(Box::new(Catalog {
            tools,
            left_out: Vec::new(),
            quoters: Vec::new(),
            providers: |capability| if capability == Capability::Search { vec!["one", "two"] } else { Vec::new() },
            asked: || vec!["one", "two", "register"],
            charges: Vec::new,
            has_country: |country| country != "XX",
            market: MARKET,
            problems: Vec::new(),
        }))
    }

    fn table(prices: &[(&str, u64)]) -> PriceTable {
        let tools = prices.iter().map(|(name, price)| ((*name).to_owned(), Usdc::from_micro(*price))).collect();
        PriceTable { tools, ..PriceTable::default() }
    }

    #[test]
    fn the_operators_prices_replace_the_catalogs() {
        let catalog = catalog();
        assert!(std::ptr::eq(catalog.priced(&PriceTable::default()), catalog));
        let priced = catalog.priced(&table(&[("fixed", 2_500), ("computed", 7), ("asked", 1_000)]));
        let input: Map<String, Value> = serde_json::from_value(serde_json::json!({"a": 1, "b": 2})).unwrap();
        let price = |name: &str| priced.find(name).unwrap().price;
        assert_eq!((price("fixed").of(&input).micro(), price("fixed").usual().micro()), (2_500, 2_500));
        assert_eq!((price("computed").of(&input).micro(), price("computed").usual().micro()), (14, 7));
        let Price::Asked { usual, most } = price("asked") else { panic!("still asked") };
        assert_eq!((usual.micro(), most.micro()), (1_000, 10_001));
        // Others keep theirs, and the catalog itself is not changed.
        let priced = catalog.priced(&table(&[("asked", 1_000)]));
        assert!(std::ptr::eq(priced.find("fixed").unwrap(), &FIXED));
        assert_eq!(catalog.find("asked").unwrap().price.usual().micro(), 3_000);
    }

    #[test]
    fn the_price_of_an_included_tool_is_its_own() {
        for (prices, usual, most) in [
            (vec![("with_fixed", 20)], 20, 1_200),
            (vec![("fixed", 5_000)], 10, 5_100),
            (vec![("with_fixed", 5), ("fixed", 2_000)], 5, 2_050),
        ] {
            let priced = catalog().priced(&table(&prices));
            let price = priced.find("with_fixed").unwrap().price;
            let Price::Asked { usual: is, most: at_most } = price else { panic!("still asked") };
            assert_eq!((is.micro(), at_most.micro()), (usual, most), "{prices:?}");
        }
    }

    #[test]
    fn every_unknown_name_is_reported() {
        let config = |variables: &[(&str, &str)]| {
            let variables = [variables, &[("PAY_TO", "0x00000000000000000000000000000000000000ff")]].concat();
            let given =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            Config::read(given).unwrap()
        };
        let good = config(&[
            ("PRICES", r#"{"fixed": "1", "asked": "1"}"#),
            ("SEARCH_PROVIDERS", "two,one"),
            ("PROVIDER_KEYS", r#"{"one": "k"}"#),
            ("PROVIDER_URLS", r#"{"register": "http://127.0.0.1:1"}"#),
        ]);
        assert!(catalog().check(&good).is_ok());
        let bad = config(&[
            ("PRICES", r#"{"fixed": "1", "fxed": "1", "soul": "1", "credits_top_up": "1"}"#),
            ("SEARCH_PROVIDERS", "one,thre,four"),
            ("VOICE_PROVIDERS", "one"),
            ("PROVIDER_KEYS", r#"{"on": "k"}"#),
            ("PROVIDER_URLS", r#"{"registre": "http://127.0.0.1:1"}"#),
            ("PROVIDER_CALLS_PER_DAY", "too=5"),
            ("SMS_COUNTRIES", "US,XX"),
            ("VOICE_COUNTRIES", "xx"),
        ]);
        let problems = catalog().unknown(&bad);
        let told = [
            r#"PRICES names "credits_top_up", whose price is"#,
            r#"PRICES names "fxed", which is not a tool"#,
            r#"PRICES names "soul", whose price the sellers"#,
            r#"SEARCH_PROVIDERS names "thre", which is not a known provider. Known are: one, two"#,
            r#"SEARCH_PROVIDERS names "four""#,
            r#"VOICE_PROVIDERS names "one""#,
            r#"PROVIDER_KEYS names "on""#,
            r#"PROVIDER_URLS names "registre""#,
            r#"PROVIDER_CALLS_PER_DAY names "too""#,
            r#"SMS_COUNTRIES names "XX""#,
            r#"VOICE_COUNTRIES names "XX""#,
        ];
        assert_eq!(problems.len(), told.len(), "{problems:?}");
        for (problem, told) in problems.iter().zip(told) {
            assert!(problem.starts_with(told), "{problem}, not {told}");
        }
        assert_eq!(NOTHING.unknown(&bad), [""; 0]);
    }
}
