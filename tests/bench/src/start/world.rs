//! The world in which functions are started: the stand-ins for AWS and a chain, the environment from the template, and
//! the data of earlier requests.

use std::path::{Path, PathBuf};

use base::clock::Clock;
use base::ids::{AgentId, EndpointId};
use gate::secrets::ServiceKeys;
use ledger::webhooks::event::{Event, EventKind};
use ledger::webhooks::{Endpoint, endpoint, outbox};
use platform::config::Config;
use platform::connections::Connections;
use platform::store::blob::S3Blobs;
use platform::store::lists::List;
use platform::store::queue::Message;
use platform::store::{Blobs, Db};
use serde_json::{Value, json};
use web::search::index::StoredPage;

use super::build::Functions;
use super::cases::{self, Case};
use super::process;
use super::template::{REGION, StandIns, Template};
use crate::Error;
use crate::payer::Payer;
use crate::stubs::aws::{self, Aws, PLATFORMS_SECRET};
use crate::stubs::chain::Chain;
use crate::stubs::runtime::RuntimeApi;

/// A WebSocket connection that is subscribed to the tool's job.
pub const CONNECTION: &str = "JKJaXmPLvHcESHA=";

/// Everything that the functions use when they start.
pub struct World {
    pub functions: Functions,
    pub runtime: RuntimeApi,
    lambda: Lambda,
    chain: Chain,
    pub config: Config,
    pub keys: ServiceKeys,
    pub payer: Payer,
    /// A paid call of a tool.
    pub job: LeftBehind,
    /// A paid execution of a soul's service.
    pub sold: LeftBehind,
    /// That soul's API key.
    pub soul_key: String,
    /// A message to deliver an event.
    pub delivery: Option<Message>,
    /// A message to index a page.
    pub page: Option<Message>,
}

/// The sources of a function's environment.
struct Lambda {
    template: Template,
    aws: Aws,
    /// File with the root certificate for the AWS stand-in.
    root_file: PathBuf,
}

/// A paid job whose function died before it started the work.
#[derive(Default)]
pub struct LeftBehind {
    pub request_id: String,
    pub nonce: String,
    pub item: Value,
}

impl World {
    pub fn start(functions: Functions) -> Result<World, Error> {
        let aws = Aws::start()?;
        let root_file = functions.scratch()?.join("root.pem");
        std::fs::write(&root_file, &aws.root)?;
        let chain = Chain::start()?;
        let parameters = vec![
            ("PayTo", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".to_owned()),
            ("ChainRpcUrl", chain.url.clone()),
            ("AcpSecretArn", format!("arn:aws:secretsmanager:us-east-1:123456789012{PLATFORMS_SECRET}")),
        ];
        let secret = |member: Option<&str>| match member {
            None => aws::SECRET.to_owned(),
            Some("bearer_tokens") => aws::PLATFORM_TOKEN.to_owned(),
            Some(_) => String::new(),
        };
        let template = Template::read(StandIns { parameters, endpoint: aws.endpoint.clone(), secret })?;
        let forgotten: Vec<&str> = template.functions().difference(&cases::functions()).copied().collect();
        if !forgotten.is_empty() {
            return Err(format!("no case starts {}", forgotten.join(", ")).into());
        }
        let runtime = RuntimeApi::start()?;
        let lambda = Lambda { template, aws, root_file };
        let config = lambda.config("knowledge", &runtime)?;
        let mut world = World {
            functions,
            runtime,
            lambda,
            chain,
            config,
            keys: ServiceKeys::derive(aws::SECRET)?,
            payer: Payer::random(),
            job: LeftBehind::default(),
            sold: LeftBehind::default(),
            soul_key: String::new(),
            delivery: None,
            page: None,
        };
        world.settle_in()?;
        Ok(world)
    }

    /// Creates the data that the cases need. The stub stores puts and ignores updates, so a job stays as it was
    /// claimed, however often it is worked on.
    fn settle_in(&mut self) -> Result<(), Error> {
        self.job = self.buy(&cases::PAID)?;
        let registered = process::first_answer(self, &self.functions.program("souls"), &cases::REGISTER)?.answer;
        let registered: Value = serde_json::from_str(registered["body"].as_str().unwrap_or_default())?;
        self.soul_key = registered["soul_key"].as_str().ok_or("a registration gave no key")?.to_owned();
        self.sold = self.buy(&cases::EXECUTION)?;
        let watched = json!({
            "pk": {"S": format!("WATCH#{}", self.job.request_id)}, "sk": {"S": CONNECTION},
            "until": {"N": "4102444800000"}, "expires": {"N": "4102444800"},
        });
        self.lambda.aws.put(&self.config.tables.agents, watched);
        // Mark the scheduler's lists as empty for good.
        let empty = List::ALL.map(|list| (format!("{}_empty", list.name()), json!({"N": "4102444800000"})));
        let mut lists = json!({"pk": {"S": "SWEEP"}, "sk": {"S": "LISTS"}});
        lists.as_object_mut().expect("an object").extend(empty);
        self.lambda.aws.put(&self.config.tables.ledger, lists);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (delivery, page) = runtime.block_on(self.leave_messages())?;
        (self.delivery, self.page) = (Some(delivery), Some(page));
        Ok(())
    }

    /// Buys something once. Returns the job and its claim.
    fn buy(&self, case: &Case) -> Result<LeftBehind, Error> {
        process::first_answer(self, &self.functions.program(case.function), case)?;
        let kept = |prefix: &str| {
            let item = self.lambda.aws.last_put(&self.config.tables.jobs, prefix);
            let item = item.ok_or_else(|| format!("{}, {}: no {prefix} was put", case.function, case.what))?;
            let name = item["pk"]["S"].as_str().and_then(|pk| pk.strip_prefix(prefix)).unwrap_or_default().to_owned();
            Ok::<_, Error>((item, name))
        };
        let ((item, request_id), (_, nonce)) = (kept("JOB#")?, kept("PAYMENT#")?);
        Ok(LeftBehind { request_id, nonce, item })
    }

    /// An event to be delivered to an endpoint, and a page to be indexed.
    async fn leave_messages(&self) -> Result<(Message, Message), Error> {
        let config = self.lambda.config("seller", &self.runtime)?;
        let connections = Connections::open(&config)?;
        let db = Db::new(connections.aws.dynamodb(), config.tables.clone());
        let bucket = config.aws.bucket.as_deref().ok_or("the function seller has no bucket")?;
        let blobs = S3Blobs::new(connections.signed.clone(), bucket);
        let now = Clock::system().now();
        let agent = AgentId::of(self.payer.key.address());
        // An address that the fetch guard refuses, so that nothing is sent over the internet.
        let url = "https://127.0.0.1/hook".to_owned();
        let receiver = Endpoint::new(EndpointId::random(), agent, url, Vec::new(), now);
        endpoint::create(&db, &receiver).await?;
        let event = Event::new(agent, EventKind::Test, "bench", now, json!({"message": "a test"}));
        outbox::to(&db, &event, std::iter::once(receiver.id), now)?.keep(&db).await?;
        let page = StoredPage {
            url: "https://example.com/".to_owned(),
            same: "example.com/".to_owned(),
            title: "Example".to_owned(),
            text: "fog nets harvest water out of the wind that comes from the sea ".repeat(50),
            read_at: now,
            ..StoredPage::default()
        };
        let key = page.key();
        blobs.put(&key, "application/json", serde_json::to_vec(&page)?).await?;
        Ok((Message::Delivery { agent, endpoint: receiver.id, event: event.id }, Message::Page { key }))
    }

    /// Requests made to AWS and the chain so far.
    pub fn calls(&self) -> u64 {
        self.lambda.aws.requests() + self.chain.requests()
    }

    /// The environment of a function that gets its events from `runtime`.
    pub fn environment(&self, function: &str, runtime: &RuntimeApi) -> Result<Vec<(String, String)>, Error> {
        self.lambda.environment(function, runtime)
    }

    pub fn root_file(&self) -> &Path {
        &self.lambda.root_file
    }
}

impl Lambda {
    /// The variables that Lambda and the template set for a function.
    fn environment(&self, function: &str, runtime: &RuntimeApi) -> Result<Vec<(String, String)>, Error> {
        let lambda = [
            ("AWS_LAMBDA_RUNTIME_API", runtime.address.to_string()),
            ("AWS_LAMBDA_FUNCTION_NAME", function.to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128".to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
            ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{function}")),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/21/[$LATEST]0123456789abcdef".to_owned()),
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
            ("AWS_REGION", REGION.to_owned()),
            ("AWS_ACCESS_KEY_ID", "ASIAIOSFODNN7EXAMPLE".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            ("AWS_SESSION_TOKEN", "IQoJb3JpZ2luX2VjEJr".repeat(40)),
            ("AWS_ENDPOINT_URL", self.aws.endpoint.clone()),
            ("AWS_CA_BUNDLE", self.root_file.display().to_string()),
            ("TZ", ":UTC".to_owned()),
            ("LANG", "en_US.UTF-8".to_owned()),
        ];
        let mut environment: Vec<(String, String)> =
            lambda.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        // It is not deployed, so the template does not have it.
        if function != cases::HELLO {
            environment.extend(self.template.environment(function)?);
        }
        Ok(environment)
    }

    fn config(&self, function: &str, runtime: &RuntimeApi) -> Result<Config, Error> {
        let environment = self.environment(function, runtime)?;
        Ok(Config::read(|name| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))?)
    }
}
