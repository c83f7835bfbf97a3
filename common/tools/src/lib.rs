//! The types that every tool is made of; the tools themselves are in the `tools-*` crates.
//!
//! A tool has a catalog entry ([`spec::ToolSpec`]: what is sold) and a [`Runner`] (the work). A function links only the
//! runners it names, so a function that only quotes prices links none. Start with [`spec`]; then [`Task`], [`Toolbox`] and
//! [`Output`] are what a runner gets and returns.

/// Defines the two lists of a tool family, `specs` and `runners`, from one list of modules.
#[macro_export]
macro_rules! family {
    ($($tool:ident),+ $(,)?) => {
        /// The catalog entries.
        pub fn specs() -> Vec<&'static $crate::spec::ToolSpec> {
            vec![$(&$tool::SPEC),+]
        }

        /// The runners, in the same order.
        pub fn runners() -> Vec<&'static $crate::Runner> {
            vec![$(&$tool::RUNNER),+]
        }
    };
}

pub mod availability;
pub mod bazaar;
pub mod buying;
pub mod charges;
pub mod chore;
pub mod files;
pub mod lock;
mod needs;
pub mod own;
pub mod pages;
pub mod picture;
pub mod quoting;
pub mod run;
pub mod safety;
pub mod snapshot;
pub mod soul;
pub mod spec;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
pub mod top_up;
pub mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::ids::{AgentId, ReceiptId, RequestId, TokenId};
use base::money::Usdc;
pub use base::tool_result::{ErrorCode, Mode, Progress, Source, ToolError, Unavailable};
use evm::Address;
use ledger::budget::Budget;
use ledger::signing::ReceiptSigner;
use platform::config::Config;
use platform::net::{FetchPolicy, Fetcher, PlainHttp};
use platform::providers::{Browser, Dns, Model, Outbound};
use platform::seal::Sealer;
use platform::store::aws::SignedHttp;
use platform::store::{Blobs, BoxFuture, Db, Queue, StoreError, Write};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use web::search::index::Reader;

use crate::buying::Buyer;
use crate::safety::Judge;
use crate::spec::ToolSpec;

/// The implementation of a tool.
pub struct Runner {
    pub spec: &'static ToolSpec,
    pub run: fn(Arc<Toolbox>, Task) -> Running,
}

/// A running tool.
pub type Running = BoxFuture<'static, Result<Output, ToolError>>;

/// One call of a tool.
#[derive(Clone)]
pub struct Task {
    pub tool: &'static ToolSpec,
    /// Validated against the tool's fields; unknown members are removed.
    pub input: Map<String, Value>,
    /// What the quote fixed for the work ([`quoting::AskedPrice::locked`]); empty without an asked price.
    pub locked: Map<String, Value>,
    /// What the call costs at most, in micro-USDC. The tool's entry has the catalog's price, not the operator's.
    pub price: Usdc,
    /// Also the idempotency key sent to providers.
    pub request_id: RequestId,
    /// The receipt of the call; none for a call that another job's work makes.
    pub receipt_id: Option<ReceiptId>,
    /// The agent that called the tool, directly or through its own job.
    pub agent: AgentId,
    /// Whether the agent's wallet signed this call (a payment or a proof). False for access tokens and for calls that the
    /// agent's own job made.
    pub wallet_signed: bool,
    /// The access token that bought it, if one did.
    pub token: Option<TokenId>,
    /// For tools that buy for their caller ([`ToolSpec::buys`]).
    pub funds: Option<Funds>,
    /// The job ends now: the run only says what the earlier ones have done. Only set for tools that keep a record
    /// ([`ToolSpec::keeps_record`]). `input` may be empty then, if it is lost.
    pub is_over: bool,
    /// The work is abandoned at this time.
    pub deadline: Timestamp,
    pub reporter: Reporter,
}

/// What a tool that buys for its caller has to know of its own purchase.
#[derive(Clone, Copy, Debug)]
pub struct Funds {
    pub wallet: Address,
    /// The part of the price that was bought by card, in micro-USDC.
    pub card: Usdc,
    /// When it was bought.
    pub at: Timestamp,
}

impl Task {
    /// A string of the input; empty if it is missing.
    pub fn text(&self, name: &str) -> &str {
        self.input.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// An integer of the input.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.input.get(name).and_then(Value::as_i64)
    }
}

/// Reports the progress of a long job. Reports that come faster than they can be stored are skipped.
#[derive(Clone, Debug, Default)]
pub struct Reporter {
    progress: Option<mpsc::UnboundedSender<Progress>>,
    must_end: Arc<AtomicBool>,
}

impl Reporter {
    /// A reporter, and the receiver of its reports.
    pub fn new() -> (Reporter, mpsc::UnboundedReceiver<Progress>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Reporter { progress: Some(sender), must_end: Arc::default() }, receiver)
    }

    /// Reports that `percent` of the work is done; `message` says what is running. It must not contain text of a page or an
    /// input.
    pub fn say(&self, percent: u8, message: impl Into<String>) {
        if let Some(sender) = &self.progress {
            // The receiver is gone; the work continues.
            let _ = sender.send(Progress { message: Some(message.into()), percent: Some(percent.min(100)) });
        }
    }

    /// From here on the work does what costs money or cannot be repeated: its run is not broken off for others.
    pub fn must_end(&self) {
        self.must_end.store(true, Ordering::SeqCst);
    }

    /// Whether the work has said so.
    pub fn is_to_end(&self) -> bool {
        self.must_end.load(Ordering::SeqCst)
    }
}

/// Everything that tools use. Cheap to create: nothing connects before its first use.
pub struct Toolbox {
    pub clock: Clock,
    pub db: Db,
    pub blobs: Arc<dyn Blobs>,
    pub config: Arc<Config>,
    /// Fetches addresses given by a caller or a page, with guards.
    pub fetcher: Arc<Fetcher>,
    /// Calls the providers that the operator configured.
    pub outbound: Outbound,
    /// Calls addresses on the operator's own network, which only its settings name.
    pub plain: PlainHttp,
    /// DNS: mail servers and other records of a domain.
    pub dns: Dns,
    /// Runs the scripts of pages, if configured.
    pub browser: Option<Browser>,
    /// Derives the keys that sign agents' mails, and authenticates links in them. Zero in functions that send none.
    pub mail_secret: [u8; 32],
    /// Seals what agents keep here in secret. `None` in functions without the service's secret.
    pub sealer: Option<Sealer>,
    /// The language model, if configured.
    pub model: Option<Model>,
    /// Judges the texts of inputs.
    pub judge: Judge,
    /// The search index of this service.
    pub index: Arc<Reader>,
    /// Queue of pages to index, if there is an indexer.
    pub index_queue: Option<Arc<dyn Queue>>,
    /// Queue of the jobs of tools, for work whose end another job waits for. `None` in functions that queue none.
    pub job_queue: Option<Arc<dyn Queue>>,
    /// Queue of received mail. `None` in functions that are not told of any.
    pub mail_queue: Option<Arc<dyn Queue>>,
    /// Signs receipts that are revised after their call. `None` in functions without the service's secret.
    pub signer: Option<ReceiptSigner>,
    /// Buys calls for goals. `None` where no goal is driven.
    pub buyer: Option<Arc<dyn Buyer>>,
    /// Begins jobs that no call buys. `None` in tests of single tools.
    pub begin_job: Option<BeginJob>,
}

/// A job that no call buys: work that begins elsewhere (a phone rings), paid from its agent's credits.
pub struct NewJob {
    pub request_id: RequestId,
    pub tool: &'static ToolSpec,
    pub agent: AgentId,
    /// Stored in the job's item, so it has to be small.
    pub input: Map<String, Value>,
    /// Taken from the credits when the job begins, in micro-USDC. What the work does not use is credited when it ends
    /// ([`Output::charging`]).
    pub price: Usdc,
    /// As read: the revision of the owner's rules. The job does not begin if they have changed.
    pub rules: u32,
    /// As read: the owner's budget, whose caps the price counts against. Its cap of one call is for the caller to check.
    pub budget: Option<Budget>,
    /// As read: the credits bought by card, in micro-USDC.
    pub card: Usdc,
    /// It waits for an outside event until then.
    pub until: Timestamp,
    /// The work is looked at from then on, in case the event is lost.
    pub look: Timestamp,
    pub now: Timestamp,
}

/// The writes that begin a job, for one transaction: the account's (refused if its rules changed or its credits do not
/// suffice), the entry of the credits, the job's (refused if it exists), the receipt's.
pub type BeginJob = fn(&Db, &NewJob) -> Result<Vec<Write>, StoreError>;

impl Toolbox {
    /// The user agent names this service and its address, if one is configured.
    pub fn new(
        config: Arc<Config>,
        clock: Clock,
        db: Db,
        blobs: Arc<dyn Blobs>,
        http: &PlainHttp,
        signed: &SignedHttp,
        policy: FetchPolicy,
    ) -> Result<Toolbox, StoreError> {
        let contact = config.base_url.as_deref().unwrap_or("tools for software agents");
        let user_agent = format!("{}/{} (+{contact})", config.service_name, env!("CARGO_PKG_VERSION"));
        Ok(Toolbox {
            fetcher: Arc::new(Fetcher::new(policy, &user_agent).map_err(StoreError::new)?),
            outbound: Outbound::new(http.clone(), signed.clone(), &config.providers, &user_agent)
                .counted(db.clone(), clock.clone()),
            plain: http.clone(),
            dns: Dns::new(config.dns_server),
            browser: config.providers.browser_url.clone().map(|url| Browser::new(url, http)),
            model: Model::configured(&config, http, signed),
            mail_secret: [0; 32],
            sealer: None,
            judge: Judge::configured(&config, http, clock.clone()),
            index: Arc::default(),
            index_queue: None,
            job_queue: None,
            mail_queue: None,
            signer: None,
            buyer: None,
            begin_job: None,
            clock,
            db,
            blobs,
            config,
        })
    }
}

/// A pause in a tool's work, during which its job occupies no worker. What the tool has done so far is in rows of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The job runs again at this time at the latest, then at intervals. The tool itself decides when to give up.
    pub until: Timestamp,
    /// The job runs again after this time. Without it, it waits for a person or an outside event, and also runs at growing
    /// intervals, because an event may get lost.
    pub again_after: Option<Duration>,
}

/// The result of a tool, and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub result: Value,
    pub source: Source,
    /// Credits bought, in micro-USDC; only for tools that sell credits.
    pub credited: Option<Usdc>,
    /// What the work used of the price, in micro-USDC; `None`: all of it. The rest is credited when the job ends.
    pub used: Option<Usdc>,
    /// What the work spent on other calls of its caller, in micro-USDC, which have receipts of their own.
    pub passed_on: Option<Usdc>,
    /// Set if there is no result yet: the job runs again later.
    pub waits: Option<Wait>,
    /// Writes of the tool's own in the transaction that ends the job.
    pub writes: Vec<Write>,
}

impl Output {
    pub fn new(result: Value, source: Source) -> Output {
        Output { result, source, credited: None, used: None, passed_on: None, waits: None, writes: Vec::new() }
    }

    /// Charges `used` micro-USDC of the price, at most all of it. The rest is credited when the job ends.
    pub fn charging(self, used: Usdc) -> Output {
        Output { used: Some(used), ..self }
    }

    /// Says that so much of what is charged was spent on other calls.
    pub fn passing_on(self, spent: Usdc) -> Output {
        Output { passed_on: Some(spent), ..self }
    }

    /// Adds writes to the transaction that ends the job: what it made is shown exactly if it is charged. If one is refused, the
    /// job does not end, and its next run decides anew. At most 20.
    pub fn with(self, writes: Vec<Write>) -> Output {
        Output { writes, ..self }
    }

    /// No result yet. The code that receives the outside event must queue the job again.
    pub fn waiting(until: Timestamp, source: Source) -> Output {
        Output { waits: Some(Wait { until, again_after: None }), ..Output::new(Value::Null, source) }
    }

    /// No result yet: there is more work than fits in one run. The job runs again after `pause`.
    pub fn again(pause: Duration, until: Timestamp, source: Source) -> Output {
        Output { waits: Some(Wait { until, again_after: Some(pause) }), ..Output::new(Value::Null, source) }
    }
}
