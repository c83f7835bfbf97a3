//! Configuration, read once at start from the environment and `settings.json`.
//!
//! The doc comment of each field names its variable; docs/CONFIGURATION.md has a table of them. A bad value stops the start,
//! and all bad values are reported together.

mod choice;
mod email;
mod goods;
mod platforms;
mod price_table;
mod prices;
mod providers;
mod settings_file;
mod sms;
mod voice;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use base::money::Usdc;
use evm::signature::PrivateKey;
use evm::{Address, Word, eip712};
use rust_decimal::Decimal;

pub use choice::ToolChoice;
pub use email::EmailConfig;
pub use goods::GoodsSellers;
pub use platforms::{Platform, Platforms};
pub use price_table::{COMMERCE_FEE, FeeShare, PLATFORM_FEE, PriceTable};
pub use prices::{ModelPrices, Tokens};
pub use providers::{Capability, ProvidersConfig, is_header};
pub use settings_file::{SETTINGS_FILE, SettingsFile};
pub use sms::SmsConfig;
pub use voice::VoiceConfig;

#[derive(Clone, Debug)]
pub struct Config {
    /// `SERVICE_NAME`: shown to agents; also the name in the agent proof's EIP-712 domain, `<name> Agent Auth`. Default
    /// `Agora`.
    pub service_name: String,
    /// `METRIC_NAMESPACE`: CloudWatch namespace of the metrics, which have no dimensions, so that each costs once. Default:
    /// `Agora/` and `TABLE_PREFIX`, which tells apart the stacks of an account; without a prefix the service's name.
    pub metric_namespace: String,
    /// `PUBLIC_BASE_URL`: the origin agents use, without a trailing slash. Default: taken from each request's host.
    pub base_url: Option<String>,
    /// `SITES_URL`: the origin of the sites that agents have built, without a trailing slash. It must be another host than the
    /// service's. Default: none; no site can be built.
    pub sites_url: Option<String>,
    /// `ALLOWED_ORIGINS`: comma-separated origins of web pages that may call `/mcp`, beside the service's own. Default:
    /// none.
    pub allowed_origins: Vec<String>,
    /// `ACCESS_TOKEN_PREFIXES`: comma-separated. New tokens get the first; all are accepted. Default `agent_`.
    pub token_prefixes: Vec<String>,
    /// `RATE_LIMIT_SCALE`: a number above 0 that multiplies every rate limit (`limits::Class`). Default 1.
    pub rate_limit_scale: Decimal,
    /// `HOST_PLACES`: how many workers at once may wait for hosts that callers name, from 2 to 250; the others settle
    /// payments and do other work. Default 10, half of the template's workers.
    pub host_places: u8,
    /// `COMMERCE_MAX_USDC`: the most that a shop may take for one purchase, without the fee; at most 5,000. Default 500.
    pub largest_purchase: Usdc,
    /// `TOOLS`: what is sold.
    pub tools: ToolChoice,
    /// `SOLD_BELOW_COST`: comma-separated names of tools whose price may be below what a provider charges; `*`: all. Default: none.
    pub sold_below_cost: Vec<String>,
    /// `MARKETPLACE`: if `false`, no souls register, are shown or sell here. Default `true`.
    pub marketplace: bool,
    /// `REGISTRATION`: if `closed`, no new souls register; those that are here go on. Default `open`.
    pub registration: bool,
    /// `OWN_TOOLS`: the operator's own HTTP services and MCP servers that are sold as tools, as JSON (docs/SELLING.md). Default:
    /// none.
    pub own_tools: Option<String>,
    /// `NETWORK_ACCOUNTS`: most open accounts of all agents at a provider of the professional network that bills each of them, from 1
    /// to a million. Default 100.
    pub network_accounts: u32,
    /// `GOODS_SELLERS`: who may sell goods here.
    pub goods_sellers: GoodsSellers,
    pub chain: ChainConfig,
    pub payments: PaymentConfig,
    /// `PRICES`: the operator's prices.
    pub prices: PriceTable,
    pub settlement: SettlementConfig,
    pub cards: Option<CardConfig>,
    pub mail: MailConfig,
    pub email: EmailConfig,
    pub sms: SmsConfig,
    pub voice: VoiceConfig,
    pub moderation: Option<ModerationConfig>,
    /// `SOUL_REQUIRE_PROOF`: if `true`, reading or rating a job needs a proof. Default: `X-Agent-ID` alone is enough.
    pub soul_require_proof: bool,
    /// `ACP_BEARER_TOKENS`, `ACP_WEBHOOKS`: the agent platforms that may open checkout sessions.
    pub platforms: Platforms,
    pub model: Option<ModelConfig>,
    pub providers: ProvidersConfig,
    /// `DNS_SERVER`: address and port of the name server for DNS tools. Default: the system's.
    pub dns_server: Option<SocketAddr>,
    pub probe: Option<ProbeConfig>,
    /// `IDENTITY_WEBHOOK_SECRET`: the secret the identity vendor signs its events with. Default: none; no event is
    /// accepted.
    pub identity_webhook_secret: Option<Redacted>,
    pub aws: AwsConfig,
    pub tables: Tables,
}

/// The network payments are made on, and its USDC token.
#[derive(Clone, Debug)]
pub struct ChainConfig {
    /// `CHAIN_ID`: 8453 (Base, production) or 84532 (Base Sepolia, staging and local). Any other needs `CHAIN_RPC_URL`,
    /// `USDC_ADDRESS` and `USDC_NAME`. Default 84532.
    pub chain_id: u64,
    /// `CHAIN_RPC_URL`: JSON-RPC endpoint. Default: the network's public one.
    pub rpc_url: String,
    /// `USDC_ADDRESS`, with `USDC_NAME` and `USDC_VERSION` for its EIP-712 domain. Default: the network's USDC.
    pub token: Token,
}

/// The token contract and its EIP-712 domain.
#[derive(Clone, Debug)]
pub struct Token {
    pub address: Address,
    pub name: String,
    pub version: String,
    /// The EIP-712 domain hash, computed once.
    pub domain: Word,
}

#[derive(Clone, Debug)]
pub struct PaymentConfig {
    /// `PAY_TO`: the address every payment goes to. Required.
    pub pay_to: Address,
    /// `QUOTE_TTL_SECONDS`: validity of every quote. Default 900.
    pub quote_ttl: Duration,
    /// Validity of a quote for a soul or its service: `QUOTE_TTL_SECONDS`, or 1800 if that is not set.
    pub soul_quote_ttl: Duration,
    /// Whether `QUOTE_TTL_SECONDS` is set: then it applies to every quote.
    pub one_quote_ttl: bool,
    /// `OVERLAP_BELOW_USDC`: below this price, work may start before settlement. Default 0.002.
    pub overlap_below: Usdc,
    /// `OVERLAP_EXPOSURE_USDC`: maximum unsettled amount of one payer's overlapping calls. Default 0.05.
    pub overlap_exposure: Usdc,
    /// `OVERLAP_TOTAL_USDC`: maximum unsettled amount of all overlapping calls in one hour. Default 1.
    pub overlap_total: Usdc,
    /// `PAYMENT_HOLD_MS`: how long the response to an accepted call waits for settlement, so that it can name the
    /// transaction. Default 800.
    pub hold: Duration,
    /// `TRANSACTION_FEE_CAP_GWEI`: maximum fee of one transaction of the fee wallet or the treasury, in gwei for all its
    /// gas. Default 1000000 (0.001 ETH).
    pub fee_cap_gwei: u64,
    /// `GAS_SHARE_PERCENT`: the relayer refuses a payment whose gas would cost more than this share of its amount. Default
    /// 100.
    pub gas_share_percent: u64,
    /// `ETHER_USDC`: the price of one unit of the chain's own currency, for `GAS_SHARE_PERCENT`. Default 3000.
    pub ether: Usdc,
    /// `CARD_DISPUTE_DAYS`: how long a seller's earnings that were paid with credits bought by card mature before they can
    /// be paid out. Default 120 days, in which card holders may dispute most payments.
    pub card_dispute_window: Duration,
}

pub const WEI_PER_GWEI: u64 = 1_000_000_000;

impl PaymentConfig {
    /// The validity of a tool's quote; `own` is the tool's own one.
    pub fn quote_validity(&self, own: Option<Duration>) -> Duration {
        own.filter(|_| !self.one_quote_ttl).unwrap_or(self.quote_ttl)
    }

    /// The fee cap of one transaction, in wei.
    pub fn fee_cap_wei(&self) -> u128 {
        u128::from(self.fee_cap_gwei) * u128::from(WEI_PER_GWEI)
    }

    /// The most that the gas of a payment may cost, in wei. `amount` in micro-USDC.
    pub fn gas_share_wei(&self, amount: u64) -> u128 {
        const WEI_PER_ETHER: u128 = 1_000_000_000 * WEI_PER_GWEI as u128;
        let share = u128::from(amount).saturating_mul(u128::from(self.gas_share_percent)).saturating_mul(WEI_PER_ETHER);
        share / (100 * u128::from(self.ether.micro().max(1)))
    }
}

/// The way payments are put on chain.
#[derive(Clone, Debug)]
pub enum SettlementConfig {
    /// `FACILITATOR_URL`: an x402 facilitator, with `FACILITATOR_TOKEN` as its bearer token if it needs one.
    Facilitator { url: String, token: Option<Redacted> },
    /// Our own relayer, whose key comes from `RELAYER_PRIVATE_KEY` or the secret store.
    Relayer,
}

/// The card processor that sells credits: `CARD_PROCESSOR_KEY` with `CARD_WEBHOOK_SECRET`, and `CARD_PROCESSOR_URL`
/// (default `https://api.stripe.com`). Default: none.
#[derive(Clone, Debug)]
pub struct CardConfig {
    pub url: String,
    pub key: Redacted,
    pub webhook_secret: Redacted,
}

/// A second moderation of sellers' texts and of what tools send, after the service's own rules: `MODERATION_URL`, the origin of a server with
/// OpenAI's `POST /v1/moderations`, `MODERATION_KEY` (its bearer token, if it needs one) and `MODERATION_MODEL` (default
/// `omni-moderation-latest`). Default: none.
#[derive(Clone, Debug)]
pub struct ModerationConfig {
    pub url: String,
    pub key: Option<Redacted>,
    pub model: String,
}

/// The language model for services that run on one. Default: none; such services then need a worker.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// `MODEL_PROVIDER`: `openai`, `anthropic` or `bedrock`.
    pub provider: ModelProvider,
    /// `MODEL_URL`: prefix of the protocol's paths, without a trailing slash. Default: the provider's own. With `openai`,
    /// any server that speaks chat completions, by its `…/v1`.
    pub url: Option<String>,
    /// `MODEL_NAME`: the provider's name of the model; with `bedrock`, a model id, inference profile or ARN.
    pub name: String,
    /// `MODEL_KEY`: set only in functions that call the model; without it they do not, if the provider needs one. Not used
    /// with `bedrock`: those requests are signed with the function's own credentials.
    pub key: Option<Redacted>,
    /// `MODEL_MAX_TOKENS`: maximum number of output tokens per call. Default 4096.
    pub max_tokens: u32,
    /// `MODEL_TIMEOUT_SECONDS`: longest wait for one call. Default 120.
    pub timeout: Duration,
    /// `MODEL_INPUT_USD_PER_MILLION`, `MODEL_OUTPUT_USD_PER_MILLION`: price of a million input and output tokens; cached
    /// ones count like others. Default: 3 and 15, the prices of an expensive model.
    pub prices: ModelPrices,
}

/// The API protocol of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelProvider {
    /// OpenAI chat completions.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
    /// Amazon Bedrock Converse.
    Bedrock,
}

/// SMTP probes: asking a mail host whether it would accept a mail. Needs outbound port 25.
#[derive(Clone, Debug)]
pub struct ProbeConfig {
    /// `SMTP_PROBE`: `on` or `off`. Default `off`: Lambda functions cannot reach port 25.
    /// `SMTP_PROBE_NAME`: the host name we give in EHLO; it should resolve to our address. Default: the host of
    /// `PUBLIC_BASE_URL`, or `localhost`.
    pub name: String,
    /// `SMTP_PROBE_PORT`: for tests. Default 25.
    pub port: u16,
}

/// The service's own mails, to people who approve or are warned. Without both settings, none is sent. With
/// `EMAIL_PROVIDERS=smtp`, the same relay takes the mails of agents.
#[derive(Clone, Debug)]
pub struct MailConfig {
    /// `SMTP_URL`: a relay, `smtps://user:password@host:465` or `smtp://user:password@host:587?tls=required`. TLS is
    /// required, except to localhost.
    pub smtp_url: Option<Redacted>,
    /// `MAIL_FROM`: the sender's address.
    pub from: Option<String>,
}

/// AWS, or an emulator in its place.
#[derive(Clone, Debug)]
pub struct AwsConfig {
    /// `AWS_REGION`. Default `us-east-1`.
    pub region: String,
    /// `AWS_ENDPOINT_URL`: one endpoint for all AWS services, for emulators.
    pub endpoint: Option<String>,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`: set by Lambda.
    pub credentials: aws_credential_types::Credentials,
    /// `AWS_CA_BUNDLE`: PEM file of root certificates to trust instead of Amazon's.
    pub ca_bundle: Option<String>,
    /// `JOB_QUEUE_URL`: the queue of jobs.
    pub queue_url: Option<String>,
    /// `SOUL_QUEUE_URL`: the queue of the executor, which runs sellers' services.
    pub soul_queue_url: Option<String>,
    /// `SOCKET_ENDPOINT`: API Gateway's management API, where messages to WebSocket connections are posted.
    pub socket_endpoint: Option<String>,
    /// `EDGE_SECRET`: the secret that requests from our distribution (CDN) carry, if there is one.
    pub edge_secret: Option<Redacted>,
    /// `DELIVERY_QUEUE_URL`: the queue of webhook deliveries.
    pub delivery_queue_url: Option<String>,
    /// `INDEX_QUEUE_URL`: the queue of pages to index. Without it nothing is indexed.
    pub index_queue_url: Option<String>,
    /// `MAIL_QUEUE_URL`: the queue of received mail. Without it none is taken from SES.
    pub mail_queue_url: Option<String>,
    /// `BLOB_BUCKET`: the S3 bucket for large results and files.
    pub bucket: Option<String>,
    /// `SERVICE_SECRET_ARN`: the generated secret that quotes and receipts are signed with.
    pub service_secret_arn: Option<String>,
    /// `RELAYER_SECRET_ARN`: the secret with the relayer's private key.
    pub relayer_secret_arn: Option<String>,
    /// `SERVICE_SECRET`: the value of the secret behind `SERVICE_SECRET_ARN`, for local runs.
    pub service_secret: Option<Redacted>,
    /// `RELAYER_PRIVATE_KEY`: 32 bytes of hex, for local runs.
    pub relayer_key: Option<PrivateKey>,
    /// `TREASURY_SECRET_ARN`: the secret with the private key of the wallet that pays sellers.
    pub treasury_secret_arn: Option<String>,
    /// `TREASURY_PRIVATE_KEY`: 32 bytes of hex, for local runs.
    pub treasury_key: Option<PrivateKey>,
    /// `ACP_SECRET_ARN`: a secret whose members `bearer_tokens` and `webhooks` replace `ACP_BEARER_TOKENS` and
    /// `ACP_WEBHOOKS`: the lists may be too long for environment variables.
    pub acp_secret_arn: Option<String>,
}

impl AwsConfig {
    /// The queue of the browser worker. It has no variable of its own, because functions that sell everything have no room for
    /// one: the template names it after the job queue.
    pub fn browser_queue_url(&self) -> Option<String> {
        self.queue_url.as_deref().and_then(browser_queue_beside)
    }
}

/// The browser worker's queue, beside this job queue: `…-jobs` and `…-browser-jobs`.
pub fn browser_queue_beside(job_queue: &str) -> Option<String> {
    job_queue.strip_suffix("jobs").map(|stack| format!("{stack}browser-jobs"))
}

/// Table names: `TABLE_PREFIX` (default `agora`), a hyphen and `jobs`, `ledger`, `agents`, `souls` or `messages`.
#[derive(Clone, Debug)]
pub struct Tables {
    pub jobs: String,
    pub ledger: String,
    pub agents: String,
    pub souls: String,
    pub messages: String,
}

/// A secret. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Redacted(String);

impl Redacted {
    pub fn new(text: impl Into<String>) -> Redacted {
        Redacted(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(redacted)")
    }
}

/// Every problem of the environment.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<String>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        writeln!(f, "the configuration has {} problem{plural}:", self.0.len())?;
        for problem in &self.0 {
            writeln!(f, "  - {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl ChainConfig {
    /// CAIP-2 name, as x402 v2 writes it.
    pub fn caip2(&self) -> String {
        format!("eip155:{}", self.chain_id)
    }

    /// The network's x402 v1 name; networks without one keep the CAIP-2 name.
    pub fn v1_name(&self) -> String {
        match self.chain_id {
            8453 => "base".to_owned(),
            84532 => "base-sepolia".to_owned(),
            _ => self.caip2(),
        }
    }
}

impl Token {
    pub fn new(chain_id: u64, address: Address, name: &str, version: &str) -> Token {
        let domain = eip712::token_domain(name, version, chain_id, address);
        Token { address, name: name.to_owned(), version: version.to_owned(), domain }
    }
}

/// The public endpoint and the USDC contract of a network. USDC's EIP-712 name differs per network.
struct KnownNetwork {
    chain_id: u64,
    rpc_url: &'static str,
    usdc: &'static str,
    usdc_name: &'static str,
}

const KNOWN_NETWORKS: [KnownNetwork; 2] = [
    KnownNetwork {
        chain_id: 8453,
        rpc_url: "https://mainnet.base.org",
        usdc: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        usdc_name: "USD Coin",
    },
    KnownNetwork {
        chain_id: 84532,
        rpc_url: "https://sepolia.base.org",
        usdc: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
        usdc_name: "USDC",
    },
];

impl Config {
    /// Reads the process environment.
    pub fn from_env() -> Result<Config, ConfigErrors> {
        Config::with_settings(|name| std::env::var(name).ok(), &SettingsFile::of_function()?)
    }

    /// Reads variables through `lookup`, and those that it does not set from the file. Every name in the file must be one that
    /// is read.
    pub fn with_settings(lookup: impl Fn(&str) -> Option<String>, file: &SettingsFile) -> Result<Config, ConfigErrors> {
        without_problems(Config::examined(lookup, file))
    }

    /// Like [`Config::with_settings`], but returns the problems beside what could be read in spite of them. So a caller can look
    /// for further problems and report all of them at once.
    pub fn examined(lookup: impl Fn(&str) -> Option<String>, file: &SettingsFile) -> (Config, Vec<String>) {
        let (config, mut problems) = Config::read_whole(|name| {
            let filed = file.get(name);
            lookup(name).filter(|text| !text.trim().is_empty()).or(filed)
        });
        problems.extend(file.unknown());
        (config, problems)
    }

    /// Reads variables through `lookup`. An empty value counts as not set.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigErrors> {
        without_problems(Config::read_whole(lookup))
    }

    fn read_whole(lookup: impl Fn(&str) -> Option<String>) -> (Config, Vec<String>) {
        let mut env = Reader { lookup: &lookup, problems: Vec::new() };
        let chain = env.chain();
        let is_set = env.text("QUOTE_TTL_SECONDS").is_some();
        let quote_ttl = Duration::from_secs(env.number("QUOTE_TTL_SECONDS", 900, 1..=86_400));
        let payments = PaymentConfig {
            pay_to: env.pay_to(),
            quote_ttl,
            soul_quote_ttl: if is_set { quote_ttl } else { Duration::from_secs(1800) },
            one_quote_ttl: is_set,
            overlap_below: env.parsed("OVERLAP_BELOW_USDC").unwrap_or(Usdc::from_micro(2_000)),
            overlap_exposure: env.parsed("OVERLAP_EXPOSURE_USDC").unwrap_or(Usdc::from_micro(50_000)),
            overlap_total: env.parsed("OVERLAP_TOTAL_USDC").unwrap_or(Usdc::from_micro(1_000_000)),
            hold: Duration::from_millis(env.number("PAYMENT_HOLD_MS", 800, 0..=10_000)),
            fee_cap_gwei: env.number("TRANSACTION_FEE_CAP_GWEI", 1_000_000, 1..=1_000_000_000),
            gas_share_percent: env.number("GAS_SHARE_PERCENT", 100, 1..=100_000),
            ether: env.parsed("ETHER_USDC").unwrap_or(Usdc::from_micro(3_000_000_000)),
            card_dispute_window: Duration::from_secs(env.number("CARD_DISPUTE_DAYS", 120, 0..=1_000) * 24 * 3600),
        };
        let settlement = match env.url("FACILITATOR_URL") {
            Some(url) => SettlementConfig::Facilitator { url, token: env.text("FACILITATOR_TOKEN").map(Redacted) },
            None => SettlementConfig::Relayer,
        };
        let cards = env.cards();
        let relayer_key = env.private_key("RELAYER_PRIVATE_KEY");
        let treasury_key = env.private_key("TREASURY_PRIVATE_KEY");
        let service_secret = env.text("SERVICE_SECRET").map(Redacted);
        if service_secret.as_ref().is_some_and(|secret| secret.expose().len() < 32) {
            env.problem("SERVICE_SECRET", "must have at least 32 characters");
        }
        let aws = AwsConfig {
            region: env.text("AWS_REGION").unwrap_or_else(|| "us-east-1".to_owned()),
            endpoint: env.url("AWS_ENDPOINT_URL"),
            credentials: aws_credential_types::Credentials::new(
                env.text("AWS_ACCESS_KEY_ID").unwrap_or_default(),
                env.text("AWS_SECRET_ACCESS_KEY").unwrap_or_default(),
                env.text("AWS_SESSION_TOKEN"),
                None,
                "environment",
            ),
            ca_bundle: env.text("AWS_CA_BUNDLE"),
            queue_url: env.url("JOB_QUEUE_URL"),
            soul_queue_url: env.url("SOUL_QUEUE_URL"),
            socket_endpoint: env.url("SOCKET_ENDPOINT"),
            edge_secret: env.text("EDGE_SECRET").map(Redacted),
            delivery_queue_url: env.url("DELIVERY_QUEUE_URL"),
            index_queue_url: env.url("INDEX_QUEUE_URL"),
            mail_queue_url: env.url("MAIL_QUEUE_URL"),
            bucket: env.text("BLOB_BUCKET"),
            service_secret_arn: env.text("SERVICE_SECRET_ARN"),
            relayer_secret_arn: env.text("RELAYER_SECRET_ARN"),
            service_secret,
            relayer_key,
            treasury_secret_arn: env.text("TREASURY_SECRET_ARN"),
            treasury_key,
            acp_secret_arn: env.text("ACP_SECRET_ARN"),
        };
        let prefix = env.text("TABLE_PREFIX").unwrap_or_else(|| "agora".to_owned());
        let service_name = env.service_name();
        let config = Config {
            metric_namespace: env.metric_namespace().unwrap_or_else(|| service_name.clone()),
            service_name,
            base_url: env.url("PUBLIC_BASE_URL"),
            sites_url: env.url("SITES_URL"),
            allowed_origins: env.allowed_origins(),
            token_prefixes: env.token_prefixes(),
            rate_limit_scale: env.rate_limit_scale(),
            host_places: u8::try_from(env.number("HOST_PLACES", 10, 2..=250)).unwrap_or(10),
            largest_purchase: env.largest_purchase(),
            tools: env.tools(),
            sold_below_cost: env.list("SOLD_BELOW_COST"),
            marketplace: env.parsed("MARKETPLACE").unwrap_or(true),
            registration: env.registration(),
            own_tools: env.text("OWN_TOOLS"),
            network_accounts: u32::try_from(env.number("NETWORK_ACCOUNTS", 100, 1..=1_000_000)).unwrap_or(100),
            goods_sellers: env.goods_sellers(),
            chain,
            payments,
            prices: PriceTable::read(&mut env),
            settlement,
            cards,
            mail: env.mail(),
            email: EmailConfig::read(&mut env),
            sms: SmsConfig::read(&mut env),
            voice: VoiceConfig::read(&mut env),
            moderation: env.moderation(),
            soul_require_proof: env.parsed("SOUL_REQUIRE_PROOF").unwrap_or(false),
            platforms: env.platforms(),
            model: env.model(),
            providers: ProvidersConfig::read(&mut env),
            dns_server: env.parsed("DNS_SERVER"),
            probe: env.probe(),
            identity_webhook_secret: env.text("IDENTITY_WEBHOOK_SECRET").map(Redacted),
            aws,
            tables: Tables {
                jobs: format!("{prefix}-jobs"),
                ledger: format!("{prefix}-ledger"),
                agents: format!("{prefix}-agents"),
                souls: format!("{prefix}-souls"),
                messages: format!("{prefix}-messages"),
            },
        };
        (config, env.problems)
    }
}

fn without_problems((config, problems): (Config, Vec<String>)) -> Result<Config, ConfigErrors> {
    if problems.is_empty() { Ok(config) } else { Err(ConfigErrors(problems)) }
}

/// Reads variables and collects their problems.
struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn problem(&mut self, name: &str, what: impl fmt::Display) {
        self.problems.push(format!("{name} {what}"));
    }

    fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn registration(&mut self) -> bool {
        match self.text("REGISTRATION").as_deref() {
            None | Some("open") => true,
            Some("closed") => false,
            Some(_) => {
                self.problem("REGISTRATION", "must be open or closed");
                true
            }
        }
    }

    fn largest_purchase(&mut self) -> Usdc {
        const MOST: Usdc = Usdc::from_micro(5_000_000_000);
        let largest = self.parsed("COMMERCE_MAX_USDC").unwrap_or(Usdc::from_micro(500_000_000));
        if largest.is_zero() || largest > MOST {
            self.problem("COMMERCE_MAX_USDC", format_args!("must be above 0 and at most {MOST}"));
        }
        largest
    }

    fn parsed<T: FromStr<Err: fmt::Display>>(&mut self, name: &str) -> Option<T> {
        let text = self.text(name)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(name, format_args!("{error} (got {text:?})"));
                None
            }
        }
    }

    fn required<T: FromStr<Err: fmt::Display>>(&mut self, name: &str) -> Option<T> {
        if self.text(name).is_none() {
            self.problem(name, "is required");
        }
        self.parsed(name)
    }

    fn private_key(&mut self, name: &str) -> Option<PrivateKey> {
        let key = PrivateKey::parse(&self.text(name)?);
        if key.is_none() {
            // The value is a secret, so the message does not repeat it.
            self.problem(name, "must be 32 bytes of hex");
        }
        key
    }

    fn cards(&mut self) -> Option<CardConfig> {
        let url = self.url("CARD_PROCESSOR_URL").unwrap_or_else(|| "https://api.stripe.com".to_owned());
        match (self.text("CARD_PROCESSOR_KEY"), self.text("CARD_WEBHOOK_SECRET")) {
            (Some(key), Some(secret)) => {
                Some(CardConfig { url, key: Redacted::new(key), webhook_secret: Redacted::new(secret) })
            }
            (None, None) => None,
            (Some(_), None) => {
                self.problem("CARD_WEBHOOK_SECRET", "is required with CARD_PROCESSOR_KEY");
                None
            }
            (None, Some(_)) => {
                self.problem("CARD_PROCESSOR_KEY", "is required with CARD_WEBHOOK_SECRET");
                None
            }
        }
    }

    fn moderation(&mut self) -> Option<ModerationConfig> {
        let model = self.text("MODERATION_MODEL").unwrap_or_else(|| "omni-moderation-latest".to_owned());
        Some(ModerationConfig {
            url: self.url("MODERATION_URL")?,
            key: self.text("MODERATION_KEY").map(Redacted),
            model,
        })
    }

    fn platforms(&mut self) -> Platforms {
        let (tokens, webhooks) = (self.text("ACP_BEARER_TOKENS"), self.text("ACP_WEBHOOKS"));
        let read = Platforms::read(&tokens.unwrap_or_default(), &webhooks.unwrap_or_default());
        read.unwrap_or_else(|problems| {
            problems.into_iter().for_each(|(name, what)| self.problem(name, what));
            Platforms::default()
        })
    }

    fn mail(&mut self) -> MailConfig {
        let smtp_url = self.text("SMTP_URL");
        let from = self.text("MAIL_FROM");
        if smtp_url.as_deref().is_some_and(|url| !is_safe_relay(url)) {
            // The value may hold a password, so the message does not repeat it.
            self.problem("SMTP_URL", "must be smtps://… or smtp://…?tls=required");
        }
        if from.as_deref().is_some_and(|from| !base::contact::is_email(from)) {
            self.problem("MAIL_FROM", "must be an e-mail address");
        }
        if smtp_url.is_some() && from.is_none() {
            self.problem("MAIL_FROM", "is required with SMTP_URL");
        }
        MailConfig { smtp_url: smtp_url.map(Redacted), from }
    }

    fn probe(&mut self) -> Option<ProbeConfig> {
        let own = self.text("PUBLIC_BASE_URL").and_then(|url| Some(url::Url::parse(&url).ok()?.host_str()?.to_owned()));
        let name = self.text("SMTP_PROBE_NAME").or(own).unwrap_or_else(|| "localhost".to_owned());
        if name != "localhost" && !base::contact::is_domain(&name) && self.text("SMTP_PROBE").is_some() {
            self.problem("SMTP_PROBE_NAME", "must be a host name, as PUBLIC_BASE_URL has none");
        }
        let port = u16::try_from(self.number("SMTP_PROBE_PORT", 25, 1..=65_535)).unwrap_or(25);
        match self.text("SMTP_PROBE").as_deref() {
            Some("on") => Some(ProbeConfig { name, port }),
            None | Some("off") => None,
            Some(other) => {
                self.problem("SMTP_PROBE", format_args!("must be on or off (got {other:?})"));
                None
            }
        }
    }

    fn model(&mut self) -> Option<ModelConfig> {
        let max_tokens = self.number("MODEL_MAX_TOKENS", 4096, 16..=200_000);
        let timeout = self.number("MODEL_TIMEOUT_SECONDS", 120, 1..=840);
        let prices = ModelPrices {
            input: self.model_price("MODEL_INPUT_USD_PER_MILLION", ModelPrices::DEFAULT.input),
            output: self.model_price("MODEL_OUTPUT_USD_PER_MILLION", ModelPrices::DEFAULT.output),
        };
        let (url, name, key) = (self.url("MODEL_URL"), self.text("MODEL_NAME"), self.text("MODEL_KEY").map(Redacted));
        let provider = match self.text("MODEL_PROVIDER")?.as_str() {
            "openai" => ModelProvider::OpenAi,
            "anthropic" => ModelProvider::Anthropic,
            "bedrock" => ModelProvider::Bedrock,
            other => {
                self.problem("MODEL_PROVIDER", format_args!("must be openai, anthropic or bedrock (got {other:?})"));
                return None;
            }
        };
        if name.is_none() {
            self.problem("MODEL_NAME", "is required with MODEL_PROVIDER");
        }
        // The key becomes a header; this error must not repeat it.
        if key.as_ref().is_some_and(|key| !is_header(key.expose())) {
            self.problem("MODEL_KEY", "must be printable ASCII without spaces");
        }
        Some(ModelConfig {
            provider,
            url,
            name: name.unwrap_or_default(),
            key,
            max_tokens: u32::try_from(max_tokens).unwrap_or(u32::MAX),
            timeout: Duration::from_secs(timeout),
            prices,
        })
    }

    fn model_price(&mut self, name: &str, default: Usdc) -> Usdc {
        const MOST: Usdc = Usdc::from_micro(10_000_000_000);
        let price = self.parsed(name).unwrap_or(default);
        if price > MOST {
            self.problem(name, format_args!("must be at most {MOST} (got {price})"));
        }
        price
    }

    /// A comma-separated list.
    fn list(&self, name: &str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        text.split(',').map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect()
    }

    /// A comma-separated list of countries (ISO 3166-1 alpha-2), in upper case; `unset` without any.
    fn countries(&mut self, name: &str, unset: &[String]) -> Vec<String> {
        let countries: Vec<String> = self.list(name).iter().map(|country| country.to_ascii_uppercase()).collect();
        let is_country = |code: &String| code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
        if !countries.iter().all(is_country) {
            self.problem(name, "must be country codes of two letters such as US, separated by commas");
        }
        if countries.is_empty() { unset.to_vec() } else { countries }
    }

    /// A JSON object whose values are strings.
    fn names(&mut self, name: &str) -> BTreeMap<String, String> {
        let Some(text) = self.text(name) else { return BTreeMap::new() };
        serde_json::from_str(&text).unwrap_or_else(|_| {
            // The values may be secrets, so the message does not repeat them.
            self.problem(name, "must be a JSON object whose values are strings");
            BTreeMap::new()
        })
    }

    fn metric_namespace(&self) -> Option<String> {
        self.text("METRIC_NAMESPACE").or_else(|| Some(format!("Agora/{}", self.text("TABLE_PREFIX")?)))
    }

    fn token_prefixes(&mut self) -> Vec<String> {
        let text = self.text("ACCESS_TOKEN_PREFIXES").unwrap_or_else(|| "agent_".to_owned());
        let prefixes: Vec<String> = text.split(',').map(|prefix| prefix.trim().to_owned()).collect();
        let is_word = |prefix: &String| {
            (2..=20).contains(&prefix.len())
                && prefix.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        // `soul_` is the prefix of sellers' keys.
        if !prefixes.iter().all(is_word) || prefixes.iter().any(|prefix| prefix.starts_with("soul_")) {
            self.problem(
                "ACCESS_TOKEN_PREFIXES",
                "must be words of 2 to 20 lower-case letters, digits and _, and must not begin with soul_",
            );
        }
        prefixes
    }

    fn allowed_origins(&mut self) -> Vec<String> {
        let origins = self.list("ALLOWED_ORIGINS");
        let is_origin = |origin: &String| {
            url::Url::parse(origin)
                .is_ok_and(|url| url.origin().is_tuple() && url.path() == "/" && url.query().is_none())
        };
        if !origins.iter().all(is_origin) {
            self.problem("ALLOWED_ORIGINS", "must be origins such as https://app.example.com");
        }
        origins
    }

    fn rate_limit_scale(&mut self) -> Decimal {
        let scale = self.parsed("RATE_LIMIT_SCALE").unwrap_or(Decimal::ONE);
        if scale <= Decimal::ZERO || scale > Decimal::from(1_000_000) {
            self.problem("RATE_LIMIT_SCALE", format_args!("must be above 0 and at most 1000000 (got {scale})"));
        }
        scale
    }

    /// The payment address; the zero address is refused.
    fn pay_to(&mut self) -> Address {
        let pay_to = self.required("PAY_TO");
        if pay_to == Some(Address::ZERO) {
            self.problem("PAY_TO", "must not be the zero address");
        }
        pay_to.unwrap_or(Address::ZERO)
    }

    fn number(&mut self, name: &str, default: u64, bounds: std::ops::RangeInclusive<u64>) -> u64 {
        match self.parsed::<u64>(name) {
            Some(number) if !bounds.contains(&number) => {
                self.problem(name, format_args!("must be from {} to {} (got {number})", bounds.start(), bounds.end()));
                default
            }
            Some(number) => number,
            None => default,
        }
    }

    /// An http or https URL, stored without its trailing slash.
    fn url(&mut self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        match url::Url::parse(&text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Some(text.trim_end_matches('/').to_owned()),
            _ => {
                self.problem(name, format_args!("must be an http or https URL (got {text:?})"));
                None
            }
        }
    }

    fn service_name(&mut self) -> String {
        let name = self.text("SERVICE_NAME").unwrap_or_else(|| "Agora".to_owned());
        // The name becomes part of header names and paths, and of tool names, which MCP clients cut off at 64 characters.
        let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
        if name.len() > 31 || !is_plain || !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let rule = "must be at most 31 letters, digits and hyphens, and begin with a letter";
            self.problem("SERVICE_NAME", format_args!("{rule} (got {name:?})"));
        }
        name
    }

    fn chain(&mut self) -> ChainConfig {
        let chain_id = self.number("CHAIN_ID", 84532, 1..=u64::from(u32::MAX));
        let known = KNOWN_NETWORKS.iter().find(|network| network.chain_id == chain_id);
        let address = self.parsed("USDC_ADDRESS").or_else(|| known?.usdc.parse().ok());
        let name = self.text("USDC_NAME").or_else(|| known.map(|network| network.usdc_name.to_owned()));
        let rpc_url = self.url("CHAIN_RPC_URL").or_else(|| known.map(|network| network.rpc_url.to_owned()));
        for (variable, missing) in
            [("USDC_ADDRESS", address.is_none()), ("USDC_NAME", name.is_none()), ("CHAIN_RPC_URL", rpc_url.is_none())]
        {
            if missing && known.is_none() {
                self.problem(variable, format_args!("is required for chain {chain_id}"));
            }
        }
        let version = self.text("USDC_VERSION").unwrap_or_else(|| "2".to_owned());
        ChainConfig {
            chain_id,
            rpc_url: rpc_url.unwrap_or_default(),
            token: Token::new(chain_id, address.unwrap_or(Address::ZERO), &name.unwrap_or_default(), &version),
        }
    }
}

/// Whether the connection to this relay is encrypted, or stays on this machine.
fn is_safe_relay(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else { return false };
    let local = matches!(url.host_str(), Some("localhost" | "127.0.0.1"));
    match url.scheme() {
        "smtps" => url.host_str().is_some(),
        "smtp" => local || url.query_pairs().any(|(name, value)| name == "tls" && value == "required"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        Config::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    const PAY_TO: (&str, &str) = ("PAY_TO", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");

    #[test]
    fn only_the_payment_address_is_required() {
        let config = read(&[PAY_TO]).unwrap();
        assert_eq!(config.service_name, "Agora");
        assert_eq!(config.chain.caip2(), "eip155:84532");
        assert_eq!(config.chain.v1_name(), "base-sepolia");
        assert_eq!(config.chain.token.name, "USDC");
        assert_eq!(config.tables.jobs, "agora-jobs");
        assert_eq!(read(&[PAY_TO, ("CHAIN_ID", "8453")]).unwrap().chain.token.name, "USD Coin");
    }

    #[test]
    fn the_documents_have_every_variable_and_no_other() {
        let asked = RefCell::new(BTreeSet::new());
        let _ = Config::read(|name| {
            asked.borrow_mut().insert(name.to_owned());
            // Some are only read if another is set.
            matches!(name, "FACILITATOR_URL" | "MODERATION_URL").then(|| "http://localhost".to_owned())
        });
        let (tables, _of_the_local_stack) =
            include_str!("../../../../docs/CONFIGURATION.md").split_once("## Only the local stack").unwrap();
        let cells = tables.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
        let documented: BTreeSet<String> =
            cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
        assert_eq!(asked.into_inner(), documented, "read (left), documented (right)");
    }

    #[test]
    fn all_problems_are_reported_together_without_secrets() {
        let errors = read(&[
            ("CHAIN_ID", "1"),
            ("QUOTE_TTL_SECONDS", "soon"),
            ("FACILITATOR_URL", "ftp://x"),
            ("RELAYER_PRIVATE_KEY", "0xsecret"),
            ("SERVICE_NAME", "two words"),
            ("OVERLAP_BELOW_USDC", "-1"),
            ("TRANSACTION_FEE_CAP_GWEI", "0"),
            ("GAS_SHARE_PERCENT", "0"),
            ("ETHER_USDC", "much"),
            ("RATE_LIMIT_SCALE", "0"),
            ("SMTP_URL", "smtp://user:secret@mail.example.com:587"),
            ("MODEL_PROVIDER", "anthropic"),
            ("MODEL_KEY", "model secret"),
            ("MODEL_TIMEOUT_SECONDS", "0"),
            ("MODEL_INPUT_USD_PER_MILLION", "free"),
            ("MODEL_OUTPUT_USD_PER_MILLION", "10001"),
            ("EMAIL_DOMAINS", "localhost"),
            ("EMAIL_TOPICS", "arn:aws:sqs:us-east-1:000000000000:events"),
            ("EMAIL_CONFIGURATION_SET", "two words"),
            ("EMAIL_DAILY_MAILS", "0"),
            ("SMS_COUNTRIES", "USA"),
            ("VOICE_COUNTRIES", "+44"),
            ("ESPEAK_PATH", "/nowhere/espeak-ng"),
            ("VOICE_DAILY_MINUTES", "0"),
            ("HOST_PLACES", "1"),
            ("NETWORK_ACCOUNTS", "0"),
        ])
        .unwrap_err();
        let text = errors.to_string();
        for name in [
            "PAY_TO is required",
            "USDC_ADDRESS",
            "USDC_NAME",
            "CHAIN_RPC_URL",
            "QUOTE_TTL_SECONDS",
            "FACILITATOR_URL",
            "RELAYER_PRIVATE_KEY",
            "SERVICE_NAME",
            "OVERLAP_BELOW_USDC",
            "TRANSACTION_FEE_CAP_GWEI",
            "GAS_SHARE_PERCENT",
            "ETHER_USDC",
            "RATE_LIMIT_SCALE",
            "SMTP_URL",
            "MAIL_FROM",
            "MODEL_NAME",
            "MODEL_KEY",
            "MODEL_TIMEOUT_SECONDS",
            "MODEL_INPUT_USD_PER_MILLION",
            "MODEL_OUTPUT_USD_PER_MILLION",
            "EMAIL_DOMAINS",
            "EMAIL_TOPICS",
            "EMAIL_CONFIGURATION_SET",
            "EMAIL_DAILY_MAILS",
            "SMS_COUNTRIES",
            "VOICE_COUNTRIES",
            "ESPEAK_PATH",
            "VOICE_DAILY_MINUTES",
            "HOST_PLACES",
            "NETWORK_ACCOUNTS",
        ] {
            assert!(text.contains(name), "{name} in {text}");
        }
        assert!(text.starts_with(&format!("the configuration has {} problems:", errors.0.len())), "{text}");
        let twice = read(&[PAY_TO, ("PUBLIC_BASE_URL", "not a URL")]).unwrap_err().to_string();
        assert_eq!(twice.matches("PUBLIC_BASE_URL").count(), 1, "{twice}");
        assert!(twice.starts_with("the configuration has 1 problem:"), "{twice}");
        assert!(!text.contains("secret@") && !text.contains("0xsecret") && !text.contains("model secret"));
    }
}
