//! The state shared by every function (configuration, clock, tables, blobs, chain), and authentication of callers.

use std::sync::Arc;

use base::clock::Clock;
use base::ids::AgentId;
use http::HeaderMap;
use ledger::payments::bid::FeeCap;
use ledger::payments::policy::Gauge;
use ledger::payments::settle::{Evidence, Facilitator, Relayer, Settler};
use ledger::payments::treasury::Treasury;
use platform::auth::nonce::{self, Use};
use platform::auth::proof::{Proof, ProofError, Scope};
use platform::auth::token::{self, AccessToken, TokenError};
use platform::auth::{AgentName, Caller, Session};
use platform::config::{Config, Platform, SettlementConfig};
use platform::connections::Connections;
use platform::http::{ApiError, headers, limit};
use platform::net::FetchPolicy;
use platform::providers::Chain;
use platform::store::blob::S3Blobs;
use platform::store::queue::{NoQueue, SqsQueue};
use platform::store::{Blobs, Db, Queue, StoreError};
use tools::availability::{self, Lacking};
use tools::buying::Buyer;
use tools::spec::Catalog;
use tools::{Runner, Toolbox};

use crate::approvals::Notices;
use crate::challenge::Forms;
use crate::jobs::{Engine, Queues, own};
use crate::limits::{self, Class, Exhausted, StopSwitch, Subject};
use crate::secrets::{self, ServiceKeys};
use crate::{Gate, GoalCalls};

/// Everything that a read-only function needs.
#[derive(Clone)]
pub struct App {
    pub config: Arc<Config>,
    pub clock: Clock,
    pub db: Db,
    pub blobs: Arc<dyn Blobs>,
    pub chain: Chain,
    pub stop: StopSwitch,
    pub exhausted: Exhausted,
    pub exposure: Gauge,
    /// Rendered 402 templates of this process.
    pub forms: Forms,
    pub availability: availability::Known,
    /// The tools that are sold here, at the operator's prices.
    pub catalog: &'static Catalog,
}

impl App {
    /// The app of a deployed function.
    pub fn new(config: Arc<Config>, connections: &Connections, catalog: &'static Catalog) -> App {
        if let Some(secret) = &config.aws.edge_secret {
            platform::http::limit::trust_edge(secret.expose());
        }
        let bucket = config.aws.bucket.as_deref().unwrap_or("agora");
        App {
            clock: Clock::system(),
            db: Db::new(connections.aws.dynamodb(), config.tables.clone()),
            blobs: Arc::new(S3Blobs::new(connections.signed.clone(), bucket)),
            chain: Chain::new(connections.http.clone(), &config.chain),
            stop: StopSwitch::default(),
            exhausted: Exhausted::default(),
            exposure: Gauge::default(),
            forms: Forms::default(),
            availability: availability::Known::default(),
            catalog: catalog.of(&config),
            config,
        }
    }

    /// The clients and stores that this app's tools use. An error if the configuration names a tool, a provider or a country
    /// that is unknown.
    pub fn toolbox(&self, connections: &Connections, policy: FetchPolicy) -> Result<Toolbox, StoreError> {
        self.catalog.check(&self.config).map_err(StoreError::new)?;
        let (db, blobs) = (self.db.clone(), self.blobs.clone());
        let (http, signed) = (&connections.http, &connections.signed);
        let toolbox = Toolbox::new(self.config.clone(), self.clock.clone(), db, blobs, http, signed, policy)?;
        let queue = |url: &Option<String>| {
            url.as_deref().map(|url| Arc::new(SqsQueue::new(&connections.aws, url)) as Arc<dyn Queue>)
        };
        let aws = &self.config.aws;
        let (index_queue, job_queue) = (queue(&aws.index_queue_url), queue(&aws.queue_url));
        let mail_queue = queue(&aws.mail_queue_url);
        Ok(Toolbox { index_queue, job_queue, mail_queue, begin_job: Some(own::begin), ..toolbox })
    }

    /// The tools that this deployment cannot run, with the configuration that each one lacks. As last published. Cached.
    pub async fn lacking(&self) -> Arc<Lacking> {
        self.availability.get(&self.db, &self.clock).await
    }

    /// The full URL of a request, as its caller sees it.
    pub fn resource_url(&self, request: &http::request::Parts) -> String {
        format!("{}{}", self.origin(&request.headers), request.uri.path())
    }

    /// The service's origin: the configured one, or the request's `Host`.
    pub fn origin(&self, headers: &HeaderMap) -> String {
        if let Some(base) = &self.config.base_url {
            return base.clone();
        }
        let host = headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).filter(|host| is_host(host));
        format!("https://{}", host.unwrap_or("localhost"))
    }

    /// Authenticates the caller of a free route that reads or changes an agent's data: a wallet by its proof, or an access
    /// token. The request counts against the caller's rate limit.
    pub async fn caller(&self, headers: &HeaderMap, needed: Scope) -> Result<Caller, ApiError> {
        self.caller_again(headers, needed, Use::Once).await
    }

    /// Like [`App::caller`], for a proof that is valid for more than one request (`used_for`).
    pub async fn caller_again(&self, headers: &HeaderMap, needed: Scope, used_for: Use) -> Result<Caller, ApiError> {
        let class = Class::of_free(needed);
        self.caller_counted(headers, needed, class, class, used_for).await
    }

    /// Like [`App::caller`], for routes that stop spending or list what can be stopped. They have a rate limit of their own
    /// (`stop`), so that a flood of other requests cannot lock an owner out. Reads with an access token count as ordinary
    /// reads.
    pub async fn stopping_caller(&self, headers: &HeaderMap, needed: Scope) -> Result<Caller, ApiError> {
        let of_token = match needed {
            Scope::Read => Class::Read,
            Scope::Write | Scope::Submit => Class::Stop,
        };
        self.caller_counted(headers, needed, Class::Stop, of_token, Use::Once).await
    }

    /// Counts against `class` for a wallet's proof, and against `of_token` for an access token.
    async fn caller_counted(
        &self,
        headers: &HeaderMap,
        needed: Scope,
        class: Class,
        of_token: Class,
        used_for: Use,
    ) -> Result<Caller, ApiError> {
        if let Some(secret) = headers::bearer(headers)? {
            let (caller, token) = self.token_caller(headers, secret).await?;
            limits::take(self, Subject::of(&caller, of_token), of_token).await?;
            token::note_use(&self.db, &token, secret, self.clock.now()).await;
            return Ok(caller);
        }
        let caller = self.caller_of_call(headers, needed, used_for).await?.ok_or(ApiError::ProofRequired)?;
        limits::take(self, Subject::of(&caller, class), class).await?;
        Ok(caller)
    }

    /// Authenticates the caller of a route that access tokens may not use. A token gets `refusal`.
    pub async fn wallet_caller(
        &self,
        headers: &HeaderMap,
        needed: Scope,
        refusal: ApiError,
    ) -> Result<Caller, ApiError> {
        self.caller(headers, needed).await?.wallet_only(refusal)
    }

    /// The caller, if the request has a proof or a token. No rate limit is counted. A bad proof or token is an error on
    /// every route.
    pub async fn caller_if_proven(&self, headers: &HeaderMap, needed: Scope) -> Result<Option<Caller>, ApiError> {
        self.caller_of_call(headers, needed, Use::Once).await
    }

    /// Like [`App::caller_if_proven`], for proofs that are valid for more than one request (`used_for`).
    pub async fn caller_of_call(
        &self,
        headers: &HeaderMap,
        needed: Scope,
        used_for: Use,
    ) -> Result<Option<Caller>, ApiError> {
        if let Some(secret) = headers::bearer(headers)? {
            return self.token_caller(headers, secret).await.map(|(caller, _)| Some(caller));
        }
        let Some(header) = headers::text(headers, "x-agent-proof")? else { return Ok(None) };
        let proof = self.used_proof(header, needed, headers::agent_name(headers)?, used_for).await?;
        let (agent, wallet) = (AgentId::of(proof.agent), proof.agent);
        Ok(Some(Caller { agent, wallet, session: Session::Wallet(proof.scope) }))
    }

    async fn token_caller(&self, headers: &HeaderMap, secret: &str) -> Result<(Caller, AccessToken), ApiError> {
        let found = token::find(&self.db, &self.config.token_prefixes, secret, self.clock.now()).await?;
        let token = found.map_err(|error| match error {
            TokenError::Invalid if secret.starts_with(headers::SOUL_KEY_PREFIX) => ApiError::SoulKeyNotForAgents,
            TokenError::Invalid => ApiError::AccessTokenInvalid,
            TokenError::Revoked => ApiError::AccessTokenRevoked,
        })?;
        let agent = AgentId::of(token.wallet);
        if headers::agent_name(headers)?.is_some_and(|named| named.agent() != agent) {
            return Err(ApiError::AgentMismatch);
        }
        limit::note_owner();
        Ok((Caller { agent, wallet: token.wallet, session: Session::Token { id: token.id, caps: token.caps } }, token))
    }

    /// The agent whose valid access token the request carries, if any. No rate limit is counted.
    pub async fn token_holder(&self, headers: &HeaderMap) -> Result<Option<AgentId>, ApiError> {
        match headers::bearer(headers)? {
            Some(secret) => self.token_caller(headers, secret).await.map(|(caller, _)| Some(caller.agent)),
            None => Ok(None),
        }
    }

    /// The agent platform (checkout) whose token the request carries, if any.
    pub fn platform(&self, headers: &HeaderMap) -> Result<Option<&Platform>, ApiError> {
        Ok(headers::bearer(headers)?.and_then(|secret| self.config.platforms.by_secret(secret)))
    }

    /// Checks a proof given as text, not necessarily from the header, and uses it up.
    pub async fn proof(&self, header: &str, needed: Scope, named: Option<AgentName>) -> Result<Proof, ApiError> {
        self.used_proof(header, needed, named, Use::Once).await
    }

    async fn used_proof(
        &self,
        header: &str,
        needed: Scope,
        named: Option<AgentName>,
        used_for: Use,
    ) -> Result<Proof, ApiError> {
        let proof = Proof::parse(header).map_err(ApiError::InvalidProof)?;
        proof.check(self.clock.now(), needed, named).map_err(ApiError::InvalidProof)?;
        if !self.is_signed(&proof).await? {
            return Err(ApiError::InvalidProof(ProofError::Invalid));
        }
        // A nonce is burned only for a valid proof.
        nonce::burn(&self.db, &proof, used_for).await?.map_err(ApiError::InvalidProof)?;
        limit::note_owner();
        Ok(proof)
    }

    async fn is_signed(&self, proof: &Proof) -> Result<bool, ApiError> {
        let service = &self.config.service_name;
        if proof.signed_by_key(service) {
            return Ok(true);
        }
        // A contract wallet verifies its own signatures (EIP-1271), so the chain has to be asked.
        let source = Subject::source();
        limits::may_ask_chain(self, source)?;
        let asked = async {
            Ok::<bool, platform::providers::chain::ChainError>(
                self.chain.has_code(proof.agent).await?
                    && self.chain.is_valid_signature(proof.agent, &proof.digest(service), &proof.signature).await?,
            )
        };
        let asked = asked.await.map_err(|error| ApiError::Unavailable(StoreError::new(error)));
        if !matches!(asked, Ok(true)) {
            limits::asked_chain_in_vain(self, source).await;
        }
        asked
    }
}

/// The `Host` header is untrusted: only something that looks like a host is repeated.
fn is_host(text: &str) -> bool {
    text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
}

/// The engine of a deployed function that settles and finishes jobs.
pub async fn engine(
    app: &App,
    connections: &Connections,
    runners: &'static [&'static Runner],
) -> Result<(Engine, ServiceKeys), StoreError> {
    let config = &app.config;
    let keys = ServiceKeys::load(config, &connections.signed).await?;
    let settler = settler(app, connections, &keys).await?;
    let souls: Arc<dyn Queue> = match &config.aws.soul_queue_url {
        Some(_) => soul_queue(config, connections)?,
        None => Arc::new(NoQueue("SOUL_QUEUE_URL is not set")),
    };
    let browser = browser_queue(config, connections)?;
    let queues = Queues { tools: job_queue(config, connections)?, souls, browser };
    let sealer = Some(keys.sealer.clone());
    let policy = FetchPolicy::default();
    let notices = Notices::new(config)?;
    let calls = GoalCalls { app: app.clone(), queues: queues.clone(), notices, policy: policy.clone() };
    let buyer: Option<Arc<dyn Buyer>> = Some(Arc::new(calls));
    let signer = Some(keys.receipts.clone());
    let toolbox = Toolbox { mail_secret: keys.mail, sealer, signer, buyer, ..app.toolbox(connections, policy)? };
    let engine = Engine {
        db: app.db.clone(),
        blobs: app.blobs.clone(),
        queues,
        clock: app.clock.clone(),
        chain: config.chain.clone(),
        settler,
        signer: keys.receipts.clone(),
        runners: app.catalog.runners(runners),
        toolbox: Arc::new(toolbox),
        sellers: None,
    };
    Ok((engine, keys))
}

/// The queue of tool jobs.
pub fn job_queue(config: &Config, connections: &Connections) -> Result<Arc<dyn Queue>, StoreError> {
    let url = config.aws.queue_url.as_deref().ok_or_else(|| StoreError::new("JOB_QUEUE_URL is not set"))?;
    Ok(Arc::new(SqsQueue::new(&connections.aws, url)))
}

/// The queue of the executor's jobs, for functions that send to it.
pub fn soul_queue(config: &Config, connections: &Connections) -> Result<Arc<dyn Queue>, StoreError> {
    let url = config.aws.soul_queue_url.as_deref().ok_or_else(|| StoreError::new("SOUL_QUEUE_URL is not set"))?;
    Ok(Arc::new(SqsQueue::new(&connections.aws, url)))
}

/// The queue of the browser worker's jobs.
pub fn browser_queue(config: &Config, connections: &Connections) -> Result<Arc<dyn Queue>, StoreError> {
    let url = config.aws.browser_queue_url();
    let url = url.ok_or_else(|| StoreError::new("JOB_QUEUE_URL does not end in jobs"))?;
    Ok(Arc::new(SqsQueue::new(&connections.aws, &url)))
}

/// The queue of events for webhooks.
pub fn delivery_queue(config: &Config, connections: &Connections) -> Result<Arc<dyn Queue>, StoreError> {
    let url = config.aws.delivery_queue_url.as_deref();
    let url = url.ok_or_else(|| StoreError::new("DELIVERY_QUEUE_URL is not set"))?;
    Ok(Arc::new(SqsQueue::new(&connections.aws, url)))
}

/// The queue of pages to index.
pub fn index_queue(config: &Config, connections: &Connections) -> Result<Arc<dyn Queue>, StoreError> {
    let url = config.aws.index_queue_url.as_deref().ok_or_else(|| StoreError::new("INDEX_QUEUE_URL is not set"))?;
    Ok(Arc::new(SqsQueue::new(&connections.aws, url)))
}

/// The configured settler: a facilitator, or our own relayer.
pub async fn settler(app: &App, connections: &Connections, keys: &ServiceKeys) -> Result<Box<dyn Settler>, StoreError> {
    let (config, tags) = (&app.config, keys.settlements.clone());
    Ok(match &config.settlement {
        SettlementConfig::Facilitator { url, token } => Box::new(Facilitator::new(
            connections.http.clone(),
            url,
            token.clone(),
            config.chain.clone(),
            Evidence::new(app.chain.clone(), tags),
            app.clock.clone(),
        )),
        SettlementConfig::Relayer => {
            let key = secrets::relayer_key(config, &connections.signed).await?;
            let (chain, db, clock) = (app.chain.clone(), app.db.clone(), app.clock.clone());
            Box::new(Relayer::new(chain, tags, db, clock, key, FeeCap::of(config)))
        }
    })
}

/// The wallet that pays sellers.
pub async fn treasury(app: &App, connections: &Connections) -> Result<Treasury, StoreError> {
    let key = secrets::treasury_key(&app.config, &connections.signed).await?;
    Ok(Treasury::new(app.chain.clone(), app.db.clone(), key, FeeCap::of(&app.config)))
}

impl Gate {
    /// The gate of a deployed function that sells tools.
    pub async fn open(
        connections: &Connections,
        config: Arc<Config>,
        catalog: &'static Catalog,
        runners: &'static [&'static Runner],
    ) -> Result<Gate, StoreError> {
        let app = App::new(config, connections, catalog);
        let (engine, keys) = engine(&app, connections, runners).await?;
        let notices = Notices::new(&app.config)?;
        Ok(Gate { app, engine, quote_key: keys.quotes, fetch_policy: FetchPolicy::default(), notices })
    }
}
