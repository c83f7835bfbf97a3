//! Starts and stops the stack.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use base::clock::{Clock, Timestamp};
use catalog::CATALOG;
use gate::app::App;
use gate::approvals::Notices;
use gate::jobs::{Engine, job, store};
use gate::secrets::ServiceKeys;
use indexer::Indexer;
use ledger::payments::treasury::Treasury;
use ledger::signing;
use ledger::webhooks::Courier;
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use platform::store::aws::SignedHttp;
use platform::store::{Blobs, Db, Write, WriteError};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tools::{Runner, Toolbox};

use crate::blobs::FolderBlobs;
use crate::chain::{Account, DevChain};
use crate::functions::{Aggregator, GIVEN_DIRECTLY, Queues, Scheduler, SharedResources};
use crate::gateway::{self, Groups};
use crate::iam::{Guard, Roles};
use crate::queue::LocalQueue;
use crate::settings::Settings;
use crate::{Error, database, http_api, library, report, site, smtp, sockets, state, stream};

/// How often the scheduler runs here; deployed, every minute.
const SCHEDULE: Duration = Duration::from_secs(2);
/// How often the index's seeds are read; the same as deployed.
const SEEDS: Duration = Duration::from_secs(24 * 3600);
/// How many jobs are worked on at the same time, as in the template.
const WORKERS: usize = 20;
/// How many batches of deliveries are posted at the same time.
const COURIERS: usize = 4;
/// How many jobs of souls are worked on at the same time, as in the template.
const EXECUTORS: usize = 10;
/// How many tasks are done in a browser at the same time, as in the template.
const BROWSER_WORKERS: usize = 5;

/// Options of a stack.
pub struct Options {
    /// Environment variables, by name.
    pub environment: HashMap<String, String>,
    /// Folder that keeps everything between starts; `None` keeps nothing.
    pub state: Option<PathBuf>,
    /// The local chain, if there is one. Without it, `CHAIN_RPC_URL` must be set.
    pub chain: Option<Arc<DevChain>>,
    pub clock: Clock,
    pub background: Background,
    /// Replaces the deployed runners, for tests of the engine.
    pub runners: Option<&'static [&'static Runner]>,
    /// The roles of the functions; `None` for those of the project's template.
    pub roles: Option<Arc<Roles>>,
    /// The file that is written when the stack is ready to answer.
    pub announcement: Option<PathBuf>,
    /// Reads the [`library`] into the search index, in the background.
    pub library: bool,
}

/// What runs besides the gateway. Tests that count or crash things switch some of it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// The worker, the scheduler and the aggregator.
    Everything,
    /// The worker only.
    Worker,
}

/// A running stack.
pub struct Stack {
    pub base_url: String,
    pub site_url: String,
    /// Where inbound mail is taken (SMTP).
    pub smtp: SocketAddr,
    /// The variables it was started with, including defaults.
    pub environment: HashMap<String, String>,
    /// The operator's configuration, with every variable.
    pub config: Arc<Config>,
    /// The operator's, with all permissions.
    pub app: App,
    pub guard: Arc<Guard>,
    pub groups: Groups,
    /// Each function's tables and blobs, with its identity.
    pub functions: BTreeMap<&'static str, App>,
    /// Toolboxes of the functions that ask providers.
    pub toolboxes: BTreeMap<&'static str, Arc<Toolbox>>,
    pub worker: Arc<Engine>,
    pub executor: Arc<Engine>,
    pub courier: Arc<Courier>,
    pub keys: ServiceKeys,
    pub queue: Arc<LocalQueue>,
    /// The queue of jobs of souls.
    pub souls: Arc<LocalQueue>,
    /// The queue of tasks in a browser.
    pub browser: Arc<LocalQueue>,
    /// The queue of webhook events.
    pub deliveries: Arc<LocalQueue>,
    /// The queue of pages for the search index.
    pub pages: Arc<LocalQueue>,
    /// The queue of received mail.
    pub mail: Arc<LocalQueue>,
    pub chain: Option<Arc<DevChain>>,
    /// Test payers; empty without a local chain.
    pub payers: Vec<Account>,
    /// Folder of mails to approvers, if no relay is configured.
    pub outbox: PathBuf,
    pub notices: Notices,
    tasks: JoinSet<()>,
}

impl Options {
    /// For tests: keeps nothing, and takes any provider at the usual prices. Everything else is default.
    pub fn in_memory(chain: Arc<DevChain>) -> Options {
        Options {
            environment: [("LOCAL_OPEN_TO_PAGES", "true"), ("SMTP_LISTEN_PORT", "0"), ("SOLD_BELOW_COST", "*")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            state: None,
            chain: Some(chain),
            clock: Clock::system(),
            background: Background::Everything,
            runners: None,
            roles: None,
            announcement: None,
            library: false,
        }
    }

    /// Sets an environment variable.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Options {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// The environment, with values from the local chain and the embedded database where it has none.
    fn completed(&self, endpoint: &str, secret: &str, sites_url: &str) -> HashMap<String, String> {
        let mut environment = self.environment.clone();
        let mut default = |name: &str, value: &str| {
            // No default if the environment names a secret instead.
            let is_secret =
                GIVEN_DIRECTLY.iter().any(|(direct, arn)| *direct == name && environment.contains_key(*arn));
            if !is_secret {
                environment.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        };
        default("AWS_ENDPOINT_URL", endpoint);
        default("AWS_ACCESS_KEY_ID", "local");
        default("AWS_SECRET_ACCESS_KEY", "local");
        default("SERVICE_SECRET", secret);
        default("ACP_BEARER_TOKENS", "local-acp-token");
        default("EMAIL_DOMAINS", "agents.test");
        default("SITES_URL", sites_url);
        if let Some(chain) = &self.chain {
            default("CHAIN_ID", &chain.chain_id().to_string());
            default("CHAIN_RPC_URL", chain.rpc_url());
            default("PAY_TO", &chain.treasury().address);
            default("RELAYER_PRIVATE_KEY", &chain.relayer().private_key);
            default("TREASURY_PRIVATE_KEY", &chain.treasury().private_key);
            // The local chain asks for 1 gwei and more, hundreds of times the gas price of an L2.
            default("ETHER_USDC", "1");
        }
        environment
    }
}

impl Stack {
    pub async fn start(options: Options) -> Result<Stack, Error> {
        let settings = Settings::read(&options.environment)?;
        let open_to_pages = settings.open_to_pages;
        let site_listener = kept_listener(options.state.as_deref(), "site-port").await?;
        let site_address = site_listener.local_addr()?;
        let hosting_listener = kept_listener(options.state.as_deref(), "sites-port").await?;
        let sites_url = format!("http://{}", hosting_listener.local_addr()?);
        let smtp_listener = smtp::listen(settings.smtp_port).await?;
        let given = options.environment.get("AWS_ENDPOINT_URL");
        let endpoint = match (given, &options.state) {
            (Some(endpoint), _) => endpoint.clone(),
            (None, Some(folder)) => state::open(folder).await?,
            (None, None) => database::start(None).await?,
        };
        // The state's folder, if this stack runs the database.
        let kept = options.state.as_ref().filter(|_| given.is_none());
        let environment = options.completed(&endpoint, &secret(&options)?, &sites_url);
        let listener = settings.listen().await?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let mut config = Config::read(|name| environment.get(name).cloned())?;
        config.base_url.get_or_insert_with(|| base_url.clone());
        let posts = TcpListener::bind("127.0.0.1:0").await?;
        let socket_endpoint = format!("http://{}", posts.local_addr()?);
        config.aws.socket_endpoint = Some(socket_endpoint.clone());
        let config = Arc::new(config);

        // The operator's connections, with all permissions.
        let connections = Connections::open(&config)?;
        let db = Db::new(connections.aws.dynamodb(), config.tables.clone());
        if let Some(folder) = kept {
            state::claim(folder, &db).await?;
        }
        database::create_tables(&db).await?;
        if options.state.is_some() {
            release_leases(&db, options.clock.now()).await?;
        }
        let folder = options.state.clone().unwrap_or_else(scratch_folder);
        let (blob_folder, outbox) = (folder.join("blobs"), folder.join("outbox"));
        let folder = Arc::new(FolderBlobs::new(blob_folder, &base_url, options.clock.clone()));
        let blobs: Arc<dyn Blobs> = folder.clone();
        let app = App { db, blobs, clock: options.clock.clone(), ..App::new(config.clone(), &connections, &CATALOG) };
        let keys = ServiceKeys::load(&config, &connections.signed).await?;
        let notices = Notices::new(&config)?.or_folder(outbox.clone());

        let roles = match options.roles {
            Some(roles) => roles,
            None => Roles::of_project()?,
        };
        let guard = Guard::new(roles, config.tables.clone());
        let site = (site_address.ip().to_string(), site_address.port());
        let ground = SharedResources {
            environment,
            shared: connections,
            guard: guard.clone(),
            blobs: folder.clone(),
            clock: options.clock,
            policy: FetchPolicy::default().allowing_local(settings.fetch_allow.into_iter().chain([site])),
            queues: Queues::default(),
            base_url: base_url.clone(),
            socket_endpoint,
            outbox: outbox.clone(),
            runners: options.runners,
        };
        let functions = ground.functions().await?;
        let groups: Groups = Arc::new(functions.groups);
        let mailboxes = smtp::Mailboxes::new(functions.mailboxes, &config)?;

        let payers = options.chain.as_ref().map(|chain| chain.payers().to_vec()).unwrap_or_default();
        let queues = ground.queues;
        let mut stack = Stack {
            base_url,
            site_url: format!("http://{site_address}"),
            smtp: smtp_listener.local_addr()?,
            environment: ground.environment,
            config: config.clone(),
            app,
            guard: guard.clone(),
            groups: groups.clone(),
            functions: functions.apps,
            toolboxes: functions.toolboxes,
            worker: functions.worker.clone(),
            executor: functions.executor.clone(),
            courier: functions.courier.clone(),
            keys,
            queue: queues.jobs.clone(),
            souls: queues.souls.clone(),
            browser: queues.browser.clone(),
            deliveries: queues.deliveries.clone(),
            pages: queues.pages.clone(),
            mail: queues.mail.clone(),
            chain: options.chain,
            payers,
            outbox,
            notices,
            tasks: JoinSet::new(),
        };
        // Written before the first answer, so that a caller who got an answer finds it.
        if let Some(path) = &options.announcement {
            crate::write_whole(path, &report::json(&stack).to_string())?;
        }
        let tasks = &mut stack.tasks;
        let hub = sockets::Hub::new(functions.socket, guard);
        let router = gateway::router(groups.clone()).merge(sockets::router(hub.clone(), groups));
        let mut router = router.merge(crate::blobs::router(folder));
        if !open_to_pages {
            let port = stack.base_url.rsplit(':').next().unwrap_or_default();
            let own = [stack.base_url.clone(), format!("http://localhost:{port}")];
            let known: Arc<[String]> = own.into_iter().chain(config.allowed_origins.iter().cloned()).collect();
            router = router.layer(from_fn_with_state(known, gateway::keep_pages_out));
        }
        tasks.spawn(async move { drop(axum::serve(posts, sockets::management(hub)).await) });
        let router = router.into_make_service_with_connect_info::<SocketAddr>();
        tasks.spawn(async move { drop(axum::serve(listener, router).await) });
        tasks.spawn(async move { drop(axum::serve(site_listener, site::router()).await) });
        let hosting = functions.hosting.clone();
        let hosting = Router::new().fallback(move |request| {
            let hosting = hosting.clone();
            async move { http_api::handle(request, move |_, _| Some(hosting)).await }
        });
        let hosting = hosting.into_make_service_with_connect_info::<SocketAddr>();
        tasks.spawn(async move { drop(axum::serve(hosting_listener, hosting).await) });
        tasks.spawn(smtp::serve(smtp_listener, mailboxes));
        if let (Some(chain), Some(_)) = (&stack.chain, &options.state) {
            tasks.spawn(keep_time(chain.clone()));
        }
        for _ in 0..WORKERS {
            tasks.spawn(work(queues.jobs.clone(), functions.worker.clone()));
        }
        tasks.spawn(work(queues.mail.clone(), functions.worker.clone()));
        for _ in 0..COURIERS {
            tasks.spawn(deliver(queues.deliveries.clone(), functions.courier.clone()));
        }
        for _ in 0..BROWSER_WORKERS {
            tasks.spawn(work(queues.browser.clone(), functions.browser_worker.clone()));
        }
        for _ in 0..EXECUTORS {
            tasks.spawn(work(queues.souls.clone(), functions.executor.clone()));
        }
        if options.library {
            library::queue(&stack.app.db, &queues.pages, &stack.site_url).await?;
        }
        // One consumer, as deployed.
        tasks.spawn(index(queues.pages, functions.indexer.clone()));
        if options.background == Background::Everything {
            tasks.spawn(look_at_seeds(functions.indexer));
            tasks.spawn(schedule(functions.scheduler));
            if let Some((app, treasury)) = functions.payouts {
                tasks.spawn(pay_out(app, treasury));
            }
            let place = options.state.as_ref().map(|state| state.join("stream-position"));
            let http = SignedHttp::new(ground.shared.http, &config.aws);
            let Aggregator { app, mailer, deliveries } = functions.aggregator;
            let aggregator = stream::Consumer::Aggregator { mailer, deliveries, place };
            tasks.spawn(stream::follow(app.clone(), aggregator, http.clone(), endpoint.clone()));
            let pusher = stream::Consumer::Pusher(Box::new(functions.pusher));
            tasks.spawn(stream::follow(app, pusher, http, endpoint));
        }
        Ok(stack)
    }

    /// Stops everything at once without letting anything finish, like a killed process.
    pub async fn kill(mut self) {
        self.tasks.shutdown().await;
    }

    /// Waits until a part of the stack ends by itself.
    pub async fn wait(&mut self) {
        self.tasks.join_next().await;
    }
}

/// Removes all leases. Only this process uses a kept state, so their holders are dead. Deployed functions cannot know that
/// and wait for a lease to expire.
pub async fn release_leases(db: &Db, now: Timestamp) -> Result<(), Error> {
    let far = now.plus(Duration::from_secs(365 * 24 * 3600));
    for (lane, shard) in
        job::Lane::ALL.into_iter().flat_map(|lane| (0..job::OPEN_SHARDS).map(move |shard| (lane, shard)))
    {
        for open in store::due(db, lane, shard, far, 1000).await? {
            let Some(request_id) = job::request_id_of(&open.pk) else { continue };
            let write = Write::update(&db.tables.jobs, job::key(request_id), "SET #due = :now REMOVE #lease_until");
            match db.write(write.only_if("attribute_exists(#open)").bind("now", now)?).await {
                // Refused: the job has ended meanwhile.
                Ok(_) | Err(WriteError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

async fn work(queue: Arc<LocalQueue>, engine: Arc<Engine>) {
    let function = |event| {
        let engine = engine.clone();
        async move { worker::handle(&engine, event).await }
    };
    queue.work(function).await;
}

async fn deliver(queue: Arc<LocalQueue>, courier: Arc<Courier>) {
    let function = |event| {
        let courier = courier.clone();
        async move { deliveries::handle(&courier, event).await }
    };
    queue.work(function).await;
}

async fn index(queue: Arc<LocalQueue>, indexer: Arc<Indexer>) {
    let function = |event| {
        let indexer = indexer.clone();
        async move { indexer.batch(event).await }
    };
    queue.work(function).await;
}

async fn look_at_seeds(indexer: Arc<Indexer>) {
    loop {
        if let Err(error) = indexer.handle(serde_json::json!({})).await {
            platform::http::log::failure("the seeds of the index could not be read", &error);
        }
        tokio::time::sleep(SEEDS).await;
    }
}

async fn schedule(Scheduler { app, tools, souls, browser, deliveries, receipt_key }: Scheduler) {
    if let Err(error) = signing::publish(&app.db, &receipt_key).await {
        platform::http::log::failure("the receipt key could not be published", &error);
    }
    loop {
        let queues = scheduler::Queues { tools: &*tools, souls: &*souls, browser: &*browser, deliveries: &*deliveries };
        if let Err(error) = scheduler::run(&app.db, &app.chain, queues, &app.clock).await {
            platform::http::log::failure("the scheduler failed", &error);
        }
        tokio::time::sleep(SCHEDULE).await;
    }
}

async fn pay_out(app: App, treasury: Treasury) {
    loop {
        if let Err(error) = payouts::run(&app, &treasury).await {
            platform::http::log::failure("payouts failed", &error);
        }
        tokio::time::sleep(SCHEDULE).await;
    }
}

/// Mines empty blocks. The local chain mines only for transactions and checks payments against the time of its last block;
/// after some quiet minutes, a new payment would not be valid yet.
async fn keep_time(chain: Arc<DevChain>) {
    loop {
        let _ = chain.rpc().call("evm_mine", serde_json::json!([])).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

/// The service's secret, made at the first start and kept with the state.
fn secret(options: &Options) -> Result<String, Error> {
    let fresh = || evm::hex0x(&base::digest::random::<32>());
    let Some(state) = &options.state else { return Ok(fresh()) };
    let path = state.join("service-secret");
    match std::fs::read_to_string(&path) {
        Ok(secret) => Ok(secret),
        Err(_) => {
            let secret = fresh();
            crate::write_whole(&path, &secret)?;
            Ok(secret)
        }
    }
}

/// Listens on the same port as before if possible, so that earlier addresses of sites stay valid. `name`: of the file that keeps it.
async fn kept_listener(state: Option<&Path>, name: &str) -> Result<TcpListener, Error> {
    let kept = state.map(|state| state.join(name));
    let before = kept.as_ref().and_then(|kept| std::fs::read_to_string(kept).ok());
    if let Some(Ok(port)) = before.map(|port| port.parse::<u16>())
        && let Ok(listener) = TcpListener::bind(("127.0.0.1", port)).await
    {
        return Ok(listener);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    if let Some(kept) = kept {
        crate::write_whole(&kept, &listener.local_addr()?.port().to_string())?;
    }
    Ok(listener)
}

fn scratch_folder() -> PathBuf {
    std::env::temp_dir().join(format!("agora-{}", evm::hex0x(&base::digest::random::<8>())))
}
