//! The tools: one file each, with its catalog entry, its input, its result and its work.
//!
//! A tool's entry ([`crate::spec::ToolSpec`]) says what is sold; its [`Runner`] does it. A function links only the
//! runners it names.

/// The two lists of a family of tools, made of one: what is sold, and what does it. A function that only sells links nothing
/// of the work.
#[macro_export]
macro_rules! family {
    ($($tool:ident),+ $(,)?) => {
        /// What is sold.
        pub fn specs() -> Vec<&'static $crate::spec::ToolSpec> {
            vec![$(&$tool::SPEC),+]
        }

        /// What does it.
        pub fn runners() -> Vec<&'static $crate::Runner> {
            vec![$(&$tool::RUNNER),+]
        }
    };
}

pub mod availability;
pub mod bazaar;
mod needs;
pub mod pages;
pub mod picture;
pub mod snapshot;
pub mod soul;
pub mod spec;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
pub mod top_up;

use std::sync::Arc;

use base::clock::{Clock, Timestamp};
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
pub use base::tool_result::{ErrorCode, Mode, Progress, Source, ToolError, Unavailable};
use platform::config::Config;
use platform::net::{FetchPolicy, Fetcher, PlainHttp};
use platform::providers::{Browser, Dns, Model, Outbound};
use platform::store::aws::SignedHttp;
use platform::store::{Blobs, BoxFuture, Db, Queue, StoreError};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use web::search::index::Reader;

use crate::spec::ToolSpec;

/// Does a tool's work.
pub struct Runner {
    pub spec: &'static ToolSpec,
    pub run: fn(Arc<Toolbox>, Task) -> Running,
}

/// Work under way.
pub type Running = BoxFuture<'static, Result<Output, ToolError>>;

/// What is to be done, for whom, and until when.
#[derive(Clone)]
pub struct Task {
    pub tool: &'static ToolSpec,
    /// Validated against the tool's fields; members they do not name are gone.
    pub input: Map<String, Value>,
    /// Our own name for it: what a provider is told as the idempotency key.
    pub request_id: RequestId,
    /// Who asked, or whose job asked.
    pub agent: AgentId,
    /// Whether the agent's wallet itself signed for it: a payment, or a proof. Not so where an access token asked, or other
    /// work of the agent's.
    pub wallet_signed: bool,
    /// It is given up then.
    pub deadline: Timestamp,
    pub reporter: Reporter,
}

impl Task {
    /// A text of the input; empty where it was not given.
    pub fn text(&self, name: &str) -> &str {
        self.input.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A whole number of the input.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.input.get(name).and_then(Value::as_i64)
    }
}

/// Says how far long work has come. What is said faster than it can be written down is skipped.
#[derive(Clone, Debug, Default)]
pub struct Reporter(Option<mpsc::UnboundedSender<Progress>>);

impl Reporter {
    /// A reporter, and where its reports arrive.
    pub fn new() -> (Reporter, mpsc::UnboundedReceiver<Progress>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Reporter(Some(sender)), receiver)
    }

    /// `percent` of the whole are done; `message` says what is under way. Nothing of a page or an input belongs in it.
    pub fn say(&self, percent: u8, message: impl Into<String>) {
        if let Some(sender) = &self.0 {
            // Whoever listened is gone with the job; the work goes on.
            let _ = sender.send(Progress { message: Some(message.into()), percent: Some(percent.min(100)) });
        }
    }
}

/// What tools work with. Cheap to make: nothing of it connects to anything before its first use.
pub struct Toolbox {
    pub clock: Clock,
    pub db: Db,
    pub blobs: Arc<dyn Blobs>,
    pub config: Arc<Config>,
    /// For addresses that a caller or a page gave.
    pub fetcher: Fetcher,
    /// For providers that the operator configured.
    pub outbound: Outbound,
    /// Who takes a domain's mail, and what else the DNS says.
    pub dns: Dns,
    /// The browser that runs pages' scripts, where one is configured.
    pub browser: Option<Browser>,
    /// The language model, where one is configured.
    pub model: Option<Model>,
    /// What this service has read, to be searched.
    pub index: Arc<Reader>,
    /// Where pages that were read go to be indexed, if there is an indexer.
    pub index_queue: Option<Arc<dyn Queue>>,
}

impl Toolbox {
    /// The servers we read from are told who we are, and where, if that is configured.
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
            fetcher: Fetcher::new(policy, &user_agent).map_err(StoreError::new)?,
            outbound: Outbound::new(http.clone(), signed.clone(), &config.providers, &user_agent)
                .counted(db.clone(), clock.clone()),
            dns: Dns::new(config.dns_server),
            browser: config.providers.browser_url.clone().map(|url| Browser::new(url, http)),
            model: Model::configured(&config, http, signed),
            index: Arc::default(),
            index_queue: None,
            clock,
            db,
            blobs,
            config,
        })
    }
}

/// A result, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub result: Value,
    pub source: Source,
    /// Credits that were bought, in micro-USDC: where credits themselves are what is sold.
    pub credited: Option<Usdc>,
    /// No result yet: somebody outside is at it. The tool is run again when there is news, now and then, and at this time.
    pub waits_until: Option<Timestamp>,
}

impl Output {
    /// A result that credited nothing.
    pub fn new(result: Value, source: Source) -> Output {
        Output { result, source, credited: None, waits_until: None }
    }

    /// No result yet, and none before somebody outside did their part: whoever learns of it sends the job to the queue.
    pub fn waiting(until: Timestamp, source: Source) -> Output {
        Output { waits_until: Some(until), ..Output::new(Value::Null, source) }
    }
}
