//! Opens every function of a stack with its own identity, the variables that the template gives it, and the queues they
//! name. It mirrors the `main.rs` of each function.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use approvals::ApprovalsState;
use axum::Router;
use base::clock::Clock;
use catalog::CATALOG;
use gate::app::{self, App};
use gate::approvals::Notices;
use gate::jobs::{self, Engine};
use gate::push::{Pusher, Sender};
use gate::secrets::{self, ServiceKeys};
use gate::{Gate, GoalCalls};
use hosting::Hosting;
use indexer::Indexer;
use ledger::cards::Cards;
use ledger::payments::treasury::Treasury;
use ledger::webhooks::Courier;
use market::checkout::Checkout;
use market::service_runner::SoulServiceRunner;
use market::{Market, webhook};
use platform::config::{Config, browser_queue_beside};
use platform::connections::Connections;
use platform::mail::Mailer;
use platform::net::FetchPolicy;
use platform::store::queue::NoQueue;
use platform::store::{Db, Queue};
use socket::Socket;
use tools::buying::Buyer;
use tools::{Runner, Toolbox};
use web::search::index::{Limits, Writer};
use webhooks::Hooks;

use crate::Error;
use crate::blobs::FolderBlobs;
use crate::iam::wire::{GuardedBlobs, GuardedQueue, guarded};
use crate::iam::{Guard, KEY_PREFIX};
use crate::queue::LocalQueue;

type Runners = &'static [&'static Runner];

/// The resources that the functions of a stack share.
pub struct SharedResources {
    pub environment: HashMap<String, String>,
    /// All functions share the sockets; only the signing identity differs.
    pub shared: Connections,
    pub guard: Arc<Guard>,
    pub blobs: Arc<FolderBlobs>,
    pub clock: Clock,
    pub policy: FetchPolicy,
    pub queues: Queues,
    pub base_url: String,
    pub socket_endpoint: String,
    pub outbox: PathBuf,
    /// Replaces each function's own runners, for tests of the engine.
    pub runners: Option<Runners>,
}

/// The queues of the template.
#[derive(Clone)]
pub struct Queues {
    pub jobs: Arc<LocalQueue>,
    /// Jobs of sellers' services.
    pub souls: Arc<LocalQueue>,
    pub browser: Arc<LocalQueue>,
    /// Webhook events.
    pub deliveries: Arc<LocalQueue>,
    /// Pages for the search index.
    pub pages: Arc<LocalQueue>,
    /// Received mail.
    pub mail: Arc<LocalQueue>,
}

impl Default for Queues {
    fn default() -> Queues {
        let of_jobs = || Arc::new(LocalQueue::of_single_messages());
        let (deliveries, pages) = Default::default();
        Queues { jobs: of_jobs(), souls: of_jobs(), browser: of_jobs(), deliveries, pages, mail: of_jobs() }
    }
}

impl Queues {
    /// The queue at a URL from the template's variables.
    fn at(&self, url: &str) -> Result<Arc<LocalQueue>, Error> {
        let queue = match url.rsplit('/').next().unwrap_or_default() {
            "agora-jobs" => &self.jobs,
            "agora-soul-jobs" => &self.souls,
            "agora-browser-jobs" => &self.browser,
            "agora-deliveries" => &self.deliveries,
            "agora-index" => &self.pages,
            "agora-mail" => &self.mail,
            other => return Err(format!("the local stack has no queue {other}").into()),
        };
        Ok(queue.clone())
    }
}

/// Every function of a stack.
pub struct Functions {
    /// The router of each group, by the group's name.
    pub groups: HashMap<&'static str, Router>,
    /// The function that shows sites, on a host of its own.
    pub hosting: Router,
    /// Each function's tables and blobs, with its identity.
    pub apps: BTreeMap<&'static str, App>,
    /// Toolboxes of the functions that ask providers.
    pub toolboxes: BTreeMap<&'static str, Arc<Toolbox>>,
    pub worker: Arc<Engine>,
    pub executor: Arc<Engine>,
    pub browser_worker: Arc<Engine>,
    pub courier: Arc<Courier>,
    pub indexer: Arc<Indexer>,
    pub scheduler: Scheduler,
    /// `None` without a treasury key: payouts then stay pending.
    pub payouts: Option<(App, Treasury)>,
    pub aggregator: Aggregator,
    pub pusher: Pusher,
    pub socket: Socket,
    /// The toolbox of the function that takes inbound mail.
    pub mailboxes: Arc<Toolbox>,
}

pub struct Scheduler {
    pub app: App,
    pub tools: Arc<dyn Queue>,
    pub souls: Arc<dyn Queue>,
    pub browser: Arc<dyn Queue>,
    pub deliveries: Arc<dyn Queue>,
    pub receipt_key: ledger::signing::PublicKey,
}

pub struct Aggregator {
    pub app: App,
    pub mailer: Mailer,
    pub deliveries: Arc<dyn Queue>,
}

impl SharedResources {
    pub async fn functions(&self) -> Result<Functions, Error> {
        let mut apps = BTreeMap::new();
        let mut open = async |name: &'static str| -> Result<Function<'_>, Error> {
            let function = Function::open(self, name).await?;
            apps.insert(name, function.app.clone());
            Ok(function)
        };

        let knowledge = open("knowledge").await?;
        let knowledge = knowledge.gate(&knowledge::RUNNERS).await?;
        let messaging = open("messaging").await?.gate(messaging::RUNNERS).await?;
        let voice = open("voice").await?;
        let call_hooks = voice.keys().await?.webhooks;
        let voice = voice.gate(&[]).await?;
        let builds = open("builds").await?.gate(&[]).await?;
        let browser = open("browser").await?.gate(&[]).await?;
        let network = open("network").await?.gate(&[]).await?;
        let commerce = open("commerce").await?.gate(&[]).await?;
        let compute = open("compute").await?.gate(&[]).await?;
        let hosting = open("hosting").await?;
        let hosting = hosting::router(Hosting::new(hosting.app.clone(), hosting.queue("JOB_QUEUE_URL")?));
        let credits = open("credits").await?;
        let cards = Cards::configured(&credits.config, &credits.connections.http);
        let credits = credits.gate(credits::RUNNERS).await?;
        let checkout = open("checkout").await?;
        let checkout = Checkout::new(
            Arc::new(checkout.gate(checkout::RUNNERS).await?),
            Arc::new(checkout.market(checkout::RUNNERS).await?),
        );
        let souls = open("souls").await?.market(souls::RUNNERS).await?;
        let seller = open("seller").await?.market(seller::RUNNERS).await?;
        let requests = open("requests").await?.app;
        let account = open("account").await?.app;
        let insights = open("insights").await?;
        let cursors = insights.keys().await?.cursors;
        let approvals = open("approvals").await?;
        let state = ApprovalsState {
            signer: approvals.keys().await?.receipts,
            notices: approvals.notices()?,
            queue: approvals.queue("JOB_QUEUE_URL")?,
            app: approvals.app,
        };
        let webhooks = open("webhooks").await?;
        let hooks = Hooks {
            queue: webhooks.queue("DELIVERY_QUEUE_URL")?,
            keys: webhooks.keys().await?.webhooks,
            policy: self.policy.clone(),
            app: webhooks.app,
        };
        let meta = open("meta").await?;
        let queues = [("queue", "JOB_QUEUE_URL"), ("soul_queue", "SOUL_QUEUE_URL")];
        let queues = queues.into_iter().filter_map(|(name, variable)| Some((name, meta.queue(variable).ok()?)));
        let queues = queues.collect();
        let mcp = open("mcp").await?;
        let gate = Arc::new(mcp.gate(&mcp::RUNNERS).await?);
        let market = Arc::new(mcp.market(souls::RUNNERS).await?);
        let (quotes, mcp_toolbox) = (gate.quote_key.clone(), gate.engine.toolbox.clone());
        let keys = mcp.keys().await?;
        let behind_mcp = mcp::groups(gate, market, keys.cursors, keys.webhooks);
        let mut toolboxes = BTreeMap::from([
            ("knowledge", knowledge.engine.toolbox.clone()),
            ("checkout", checkout.gate.engine.toolbox.clone()),
            ("mcp", mcp_toolbox),
            ("messaging", messaging.engine.toolbox.clone()),
            ("voice", voice.engine.toolbox.clone()),
            ("builds", builds.engine.toolbox.clone()),
            ("browser", browser.engine.toolbox.clone()),
            ("network", network.engine.toolbox.clone()),
            ("commerce", commerce.engine.toolbox.clone()),
        ]);
        let groups = HashMap::from([
            (knowledge::GROUP, knowledge::router(Arc::new(knowledge))),
            (messaging::GROUP, messaging::router(Arc::new(messaging))),
            (voice::GROUP, voice::router(Arc::new(voice), call_hooks)),
            (builds::GROUP, builds::router(Arc::new(builds))),
            (browser::GROUP, browser::router(Arc::new(browser))),
            (network::GROUP, network::router(Arc::new(network))),
            (commerce::GROUP, commerce::router(Arc::new(commerce))),
            (compute::GROUP, compute::router(Arc::new(compute))),
            ("credits", credits::router(Arc::new(credits), cards)),
            ("checkout", checkout::router(Arc::new(checkout))),
            ("souls", souls::router(Arc::new(souls))),
            ("seller", seller::router(Arc::new(seller))),
            ("requests", requests::router(requests)),
            ("account", account::router(account)),
            ("insights", insights::router(insights.app, cursors)),
            ("approvals", approvals::router(state)),
            ("webhooks", webhooks::router(hooks)),
            ("meta", meta::router(meta.app, queues)),
            ("mcp", mcp::router(mcp.app, behind_mcp, &quotes)),
        ]);

        let worker = open("worker").await?;
        let (mut engine, keys) = worker.engine(&worker::RUNNERS).await?;
        let handing_over = SoulServiceRunner::handing_over(&worker.app, &engine.toolbox, webhook::key(&keys.quotes));
        engine.sellers = Some(Arc::new(handing_over));
        let worker = engine;
        let mailboxes = worker.toolbox.clone();
        let executor = open("executor").await?;
        let (mut engine, keys) = executor.engine(&worker::RUNNERS).await?;
        engine.sellers =
            Some(Arc::new(executor::service_runner(&executor.app, &keys, &engine.toolbox, engine.runners)?));
        let executor = engine;
        let (browser_worker, _) = open("browser-worker").await?.engine(&browser_worker::RUNNERS).await?;
        toolboxes.extend([
            ("worker", worker.toolbox.clone()),
            ("executor", executor.toolbox.clone()),
            ("browser-worker", browser_worker.toolbox.clone()),
        ]);
        let deliveries = open("deliveries").await?;
        let courier = Courier::new(
            deliveries.app.db.clone(),
            deliveries.app.clock.clone(),
            deliveries.queue("DELIVERY_QUEUE_URL")?,
            deliveries.keys().await?.webhooks,
            &deliveries.config,
            self.policy.clone(),
        )?;
        let indexer = open("indexer").await?;
        let app = &indexer.app;
        let indexer = Indexer {
            writer: Writer::new(app.db.clone(), app.blobs.clone(), app.clock.clone(), Limits::default()),
            toolbox: Arc::new(indexer.toolbox()?),
            queue: indexer.queue("INDEX_QUEUE_URL")?,
        };
        let scheduler = open("scheduler").await?;
        let scheduler = Scheduler {
            tools: scheduler.queue("JOB_QUEUE_URL")?,
            souls: scheduler.queue("SOUL_QUEUE_URL")?,
            browser: scheduler.browser_queue()?,
            deliveries: scheduler.queue("DELIVERY_QUEUE_URL")?,
            receipt_key: scheduler.keys().await?.receipts.public(),
            app: scheduler.app,
        };
        let payouts = open("payouts").await?;
        let aws = &payouts.config.aws;
        let payouts = match aws.treasury_key.is_some() || aws.treasury_secret_arn.is_some() {
            true => {
                let treasury = app::treasury(&payouts.app, &payouts.connections).await?;
                Some((payouts.app, treasury))
            }
            false => None,
        };
        let aggregator = open("aggregator").await?;
        let aggregator = Aggregator {
            mailer: Mailer::new(&aggregator.config)?.or_folder(self.outbox.clone()),
            deliveries: aggregator.queue("DELIVERY_QUEUE_URL")?,
            app: aggregator.app,
        };
        let pusher = open("pusher").await?;
        let sender = Sender::new(&pusher.config, &pusher.connections.http)?;
        let pusher = Pusher { db: pusher.app.db, blobs: pusher.app.blobs, sender };
        let socket = open("socket").await?;
        let sender = Sender::new(&socket.config, &socket.connections.http)?;
        let socket = Socket { app: socket.app, sender };
        Ok(Functions {
            groups,
            hosting,
            apps,
            toolboxes,
            worker: Arc::new(worker),
            executor: Arc::new(executor),
            browser_worker: Arc::new(browser_worker),
            courier: Arc::new(courier),
            indexer: Arc::new(indexer),
            scheduler,
            payouts,
            aggregator,
            pusher,
            socket,
            mailboxes,
        })
    }
}

/// A function while it is being opened.
struct Function<'a> {
    ground: &'a SharedResources,
    name: &'static str,
    config: Arc<Config>,
    connections: Connections,
    app: App,
}

/// Variables that a deployed function reads from `settings.json`, so that the template does not name them. Every function of a
/// local stack gets them.
const IN_SETTINGS_FILE: [&str; 23] = [
    "PRICES",
    "SOUL_REQUIRE_PROOF",
    "EMAIL_DAILY_MAILS",
    "SMS_COUNTRIES",
    "SMS_DAILY_SEGMENTS",
    "SMS_TOPICS",
    "SMS_CONFIGURATION_SET",
    "VOICE_PROVIDERS",
    "NETWORK_PROVIDERS",
    "NETWORK_ACCOUNTS",
    "VOICE_COUNTRIES",
    "ESPEAK_PATH",
    "PRODUCT_PROVIDERS",
    "PURCHASE_PROVIDERS",
    "COMMERCE_MAX_USDC",
    "GOODS_SELLERS",
    "OWN_TOOLS",
    "TOOLS",
    "SOLD_BELOW_COST",
    "MARKETPLACE",
    "REGISTRATION",
    "VOICE_DAILY_MINUTES",
    "HOST_PLACES",
];

/// Variables that a local stack sets directly, and the ones that name a secret in a deployed stack.
pub const GIVEN_DIRECTLY: [(&str, &str); 6] = [
    ("SERVICE_SECRET", "SERVICE_SECRET_ARN"),
    ("RELAYER_PRIVATE_KEY", "RELAYER_SECRET_ARN"),
    ("TREASURY_PRIVATE_KEY", "TREASURY_SECRET_ARN"),
    ("PROVIDER_KEYS", "PROVIDER_KEYS_SECRET_ARN"),
    ("ACP_BEARER_TOKENS", "ACP_SECRET_ARN"),
    ("ACP_WEBHOOKS", "ACP_SECRET_ARN"),
];

impl<'a> Function<'a> {
    async fn open(ground: &'a SharedResources, name: &'static str) -> Result<Function<'a>, Error> {
        let roles = &ground.guard.roles;
        let config = Config::read(|variable| {
            let secret = GIVEN_DIRECTLY.iter().find(|(direct, _)| *direct == variable);
            match variable {
                "AWS_ACCESS_KEY_ID" => Some(format!("{KEY_PREFIX}{name}")),
                _ if IN_SETTINGS_FILE.contains(&variable) => ground.environment.get(variable).cloned(),
                _ if !roles.gives(name, secret.map_or(variable, |(_, secret)| secret)) => None,
                _ => ground.environment.get(variable).cloned(),
            }
        });
        let mut config = config.map_err(|errors| format!("{name}: {errors}"))?;
        config.base_url.get_or_insert_with(|| ground.base_url.clone());
        if config_gives(ground, name, "SOCKET_ENDPOINT") {
            config.aws.socket_endpoint = Some(ground.socket_endpoint.clone());
        }
        let connections = ground.shared.acting_as(&config.aws);
        let config = Arc::new(secrets::with_platforms(config, &connections.signed).await?);
        let mut app = App::new(config.clone(), &connections, &CATALOG);
        app.db = Db::new(guarded(&ground.guard, app.db.client()), config.tables.clone());
        let (inner, guard) = (ground.blobs.clone(), ground.guard.clone());
        app.blobs = Arc::new(GuardedBlobs { inner, guard, function: name });
        app.clock = ground.clock.clone();
        Ok(Function { ground, name, config, connections, app })
    }

    /// The queue that a variable names, if the template gives the function this variable.
    fn queue(&self, variable: &str) -> Result<Arc<dyn Queue>, Error> {
        self.queue_at(self.variable(variable)?)
    }

    fn variable(&self, variable: &str) -> Result<&str, Error> {
        let role = self.ground.guard.roles.get(self.name);
        let value = role.and_then(|role| role.variables.get(variable)?.as_str());
        Ok(value.ok_or_else(|| format!("the template does not give {} the variable {variable}", self.name))?)
    }

    /// The browser worker's queue, if the template gives the function the job queue's.
    fn browser_queue(&self) -> Result<Arc<dyn Queue>, Error> {
        let url = browser_queue_beside(self.variable("JOB_QUEUE_URL")?);
        self.queue_at(&url.ok_or("the job queue's name does not end in jobs")?)
    }

    fn queue_at(&self, url: &str) -> Result<Arc<dyn Queue>, Error> {
        let arn = url.trim_start_matches("https://").split(['.', '/']).collect::<Vec<_>>();
        let [_, region, .., account, queue] = arn.as_slice() else { return Err(format!("no queue at {url}").into()) };
        let arn = format!("arn:aws:sqs:{region}:{account}:{queue}");
        let (inner, guard) = (self.ground.queues.at(url)?, self.ground.guard.clone());
        Ok(Arc::new(GuardedQueue { inner, guard, function: self.name, arn }))
    }

    async fn keys(&self) -> Result<ServiceKeys, Error> {
        Ok(ServiceKeys::load(&self.config, &self.connections.signed).await?)
    }

    fn notices(&self) -> Result<Notices, Error> {
        Ok(Notices::new(&self.config)?.or_folder(self.ground.outbox.clone()))
    }

    fn toolbox(&self) -> Result<Toolbox, Error> {
        let (index_queue, job_queue) = (self.queue("INDEX_QUEUE_URL").ok(), self.queue("JOB_QUEUE_URL").ok());
        let toolbox = self.app.toolbox(&self.connections, self.ground.policy.clone())?;
        let mail_queue = self.queue("MAIL_QUEUE_URL").ok();
        Ok(Toolbox { index_queue, job_queue, mail_queue, ..toolbox })
    }

    async fn engine(&self, runners: Runners) -> Result<(Engine, ServiceKeys), Error> {
        let keys = self.keys().await?;
        let souls = self.queue("SOUL_QUEUE_URL").unwrap_or_else(|_| Arc::new(NoQueue("SOUL_QUEUE_URL is not set")));
        let browser = self.browser_queue()?;
        let queues = jobs::Queues { tools: self.queue("JOB_QUEUE_URL")?, souls, browser };
        let (app, policy) = (self.app.clone(), self.ground.policy.clone());
        let calls = GoalCalls { app, queues: queues.clone(), notices: self.notices()?, policy };
        let buyer: Option<Arc<dyn Buyer>> = Some(Arc::new(calls));
        let (mail_secret, sealer, signer) = (keys.mail, Some(keys.sealer.clone()), Some(keys.receipts.clone()));
        let engine = Engine {
            db: self.app.db.clone(),
            blobs: self.app.blobs.clone(),
            queues,
            clock: self.app.clock.clone(),
            chain: self.config.chain.clone(),
            settler: app::settler(&self.app, &self.connections, &keys).await?,
            signer: keys.receipts.clone(),
            runners: self.app.catalog.runners(self.ground.runners.unwrap_or(runners)),
            toolbox: Arc::new(Toolbox { mail_secret, sealer, signer, buyer, ..self.toolbox()? }),
            sellers: None,
        };
        Ok((engine, keys))
    }

    async fn gate(&self, runners: Runners) -> Result<Gate, Error> {
        let (engine, keys) = self.engine(runners).await?;
        let fetch_policy = self.ground.policy.clone();
        Ok(Gate { app: self.app.clone(), engine, quote_key: keys.quotes, fetch_policy, notices: self.notices()? })
    }

    async fn market(&self, runners: Runners) -> Result<Market, Error> {
        Ok(Market::handing_over(self.gate(runners).await?, &self.connections.http))
    }
}

fn config_gives(ground: &SharedResources, function: &str, variable: &str) -> bool {
    ground.guard.roles.get(function).is_some_and(|role| role.variables.contains_key(variable))
}
