//! What each function is asked, and the world in which it answers.

use std::path::PathBuf;

use common::catalog::ToolSpec;
use common::clock::Clock;
use common::config::{Config, ConfigErrors};
use common::digest::{canonical_json, sha256};
use common::evm::hex0x;
use common::payments::quote::{Purchase, Quote};
use common::secrets::ServiceKeys;
use common::tools::vehicle_identification;
use serde_json::{Value, json};

use super::build::Functions;
use super::process;
use crate::Error;
use crate::payer::{Payer, Terms, payment_header};
use crate::stubs::aws::{self, Aws};
use crate::stubs::chain::Chain;
use crate::stubs::runtime::RuntimeApi;

/// One event for one function.
pub struct Case {
    pub function: &'static str,
    pub what: &'static str,
    pub event: fn(&World) -> Value,
    /// Whether the answer is the one that was to be measured.
    pub is_good: fn(&Value) -> bool,
    /// The handler under `node/` that does the same work.
    pub node: Option<&'static str>,
}

/// The function that does nothing.
pub const HELLO: &str = "hello";

/// A priced call without a payment.
pub static UNPAID: Case = Case {
    function: "knowledge",
    what: "402 to an unpaid call",
    event: |_| http_event("POST", VIN_PATH, &[], Some(vin())),
    is_good: |answer| answer["statusCode"] == 402,
    node: Some("knowledge"),
};

/// A route that anybody may ask.
pub static HEALTH: Case = Case {
    function: "meta",
    what: "health",
    event: |_| http_event("GET", "/health", &[], None),
    is_good: |answer| answer["statusCode"] == 200,
    node: None,
};

static PAID: Case = Case {
    function: "knowledge",
    what: "paid call, settled",
    event: paid_call,
    is_good: |answer| answer["statusCode"] == 200,
    node: None,
};

/// Every case that is started, hello-world first.
pub static ALL: &[&Case] = &[
    &Case {
        function: HELLO,
        what: "nothing",
        event: |_| http_event("GET", "/", &[], None),
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &UNPAID,
    &PAID,
    &Case {
        function: "requests",
        what: "payment status",
        event: |world| http_event("GET", &format!("/v1/payments/{}", world.job.nonce), &[], None),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"state\":\"claimed\""),
        node: Some("requests"),
    },
    &Case {
        function: "requests",
        what: "poll with proof",
        event: |world| {
            let proof = world.payer.proof(&world.config.service_name);
            let path = format!("/v1/requests/{}", world.job.request_id);
            http_event("GET", &path, &[("x-agent-proof", &proof)], None)
        },
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"status\":\"processing\""),
        node: None,
    },
    &Case {
        function: "account",
        what: "balance with proof",
        event: |world| {
            let proof = world.payer.proof(&world.config.service_name);
            http_event("GET", "/v1/tools/balance", &[("x-agent-proof", &proof)], None)
        },
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"on_chain_balance\":\"5.000000\""),
        node: Some("account"),
    },
    &Case {
        function: "credits",
        what: "402 to an unpaid top-up",
        event: |_| http_event("POST", "/v1/credits/top-up", &[], Some(json!({"amount": "5.00"}))),
        is_good: |answer| answer["statusCode"] == 402,
        node: None,
    },
    &Case {
        function: "approvals",
        what: "policy with proof",
        event: |world| proven(world, "/v1/agents/me/action-policy"),
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &Case {
        function: "insights",
        what: "receipts with proof",
        event: |world| proven(world, "/v1/analytics/receipts"),
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &Case {
        function: "meta",
        what: "statistics",
        event: |_| http_event("GET", "/v1/stats", &[], None),
        is_good: |answer| answer["statusCode"] == 200,
        node: Some("meta"),
    },
    &Case {
        function: "worker",
        what: "settle, work, finish",
        event: |world| {
            let message = json!({"kind": "job", "request_id": world.job.request_id}).to_string();
            json!({"Records": [{
                "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d", "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
                "body": message, "attributes": {"ApproximateReceiveCount": "1"}, "messageAttributes": {},
                "md5OfBody": "", "eventSource": "aws:sqs", "awsRegion": "us-east-1",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:jobs",
            }]})
        },
        is_good: |answer| answer["batchItemFailures"] == json!([]),
        node: Some("worker"),
    },
    &Case {
        function: "scheduler",
        what: "a minute without work",
        event: |_| {
            json!({
                "version": "0", "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa", "detail-type": "Scheduled Event",
                "source": "aws.events", "account": "123456789012", "time": "2026-11-21T04:00:00Z", "region": "us-east-1",
                "resources": ["arn:aws:events:us-east-1:123456789012:rule/every-minute"], "detail": {},
            })
        },
        is_good: |answer| answer["sent"] == 0,
        node: Some("scheduler"),
    },
    &Case {
        function: "aggregator",
        what: "a finished job",
        event: |world| {
            let mut new = world.job.item.clone();
            new["settlement"] = json!({"S": "settled"});
            new["outcome"] = json!({"S": "completed"});
            json!({"Records": [{
                "eventID": "c4ca4238a0b923820dcc509a6f75849b", "eventName": "MODIFY", "eventVersion": "1.1",
                "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
                "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/agora-jobs/stream/2026",
                "dynamodb": {
                    "ApproximateCreationDateTime": 1795000000, "SequenceNumber": "4421584500000000017450439091",
                    "SizeBytes": 1800, "StreamViewType": "NEW_AND_OLD_IMAGES",
                    "Keys": {"pk": new["pk"], "sk": new["sk"]}, "NewImage": new, "OldImage": world.job.item,
                },
            }]})
        },
        is_good: |answer| !has(answer, "error"),
        node: Some("aggregator"),
    },
];

/// A question about the agent's own.
fn proven(world: &World, path: &str) -> Value {
    let proof = world.payer.proof(&world.config.service_name);
    http_event("GET", path, &[("x-agent-proof", &proof)], None)
}

/// Every function that is built, each once.
pub fn functions() -> Vec<&'static str> {
    let mut functions: Vec<_> = ALL.iter().map(|case| case.function).collect();
    functions.dedup();
    functions
}

/// What the functions find when they start: AWS, a chain, an environment, and a job that somebody paid for.
pub struct World {
    pub functions: Functions,
    pub runtime: RuntimeApi,
    aws: Aws,
    chain: Chain,
    pub config: Config,
    keys: ServiceKeys,
    payer: Payer,
    /// File with the certificate that AWS is to be trusted by.
    pub root_file: PathBuf,
    job: LeftBehind,
}

/// A paid job whose function died before it did anything for it.
#[derive(Default)]
struct LeftBehind {
    request_id: String,
    nonce: String,
    item: Value,
}

impl World {
    pub fn start(functions: Functions) -> Result<World, Error> {
        let config = config()?;
        let aws = Aws::start()?;
        let root_file = functions.scratch()?.join("root.pem");
        std::fs::write(&root_file, &aws.root)?;
        let mut world = World {
            functions,
            runtime: RuntimeApi::start()?,
            chain: Chain::start(config.chain.token.address)?,
            aws,
            config,
            keys: ServiceKeys::derive(aws::SECRET)?,
            payer: Payer::random(),
            root_file,
            job: LeftBehind::default(),
        };
        world.job = world.leave_a_job()?;
        Ok(world)
    }

    /// Buys something once. The stub keeps what is put and ignores what is updated, so the job stays as it was claimed.
    fn leave_a_job(&self) -> Result<LeftBehind, Error> {
        process::first_answer(self, &self.functions.program(PAID.function), &PAID)?;
        let kept = |partition: &str| {
            self.aws.item_of(&self.config.tables.jobs, partition).ok_or("the paid call put no claim or no job")
        };
        let (item, claim) = (kept("JOB#")?, kept("PAYMENT#")?);
        let key = |item: &Value, prefix: &str| {
            item["pk"]["S"].as_str().and_then(|pk| pk.strip_prefix(prefix)).unwrap_or_default().to_owned()
        };
        Ok(LeftBehind { request_id: key(&item, "JOB#"), nonce: key(&claim, "PAYMENT#"), item })
    }

    /// Requests that were made of AWS and the chain.
    pub fn calls(&self) -> u64 {
        self.aws.requests() + self.chain.requests()
    }

    /// What Lambda and the template put into a function's environment.
    pub fn environment(&self, case: &Case, runtime: &RuntimeApi) -> Vec<(&'static str, String)> {
        let mut environment: Vec<(&str, String)> = vec![
            ("AWS_LAMBDA_RUNTIME_API", runtime.address.to_string()),
            ("AWS_LAMBDA_FUNCTION_NAME", case.function.to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128".to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
            ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", case.function)),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/21/[$LATEST]0123456789abcdef".to_owned()),
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "ASIAIOSFODNN7EXAMPLE".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            ("AWS_SESSION_TOKEN", "IQoJb3JpZ2luX2VjEJr".repeat(40)),
            ("AWS_ENDPOINT_URL", self.aws.endpoint.clone()),
            ("AWS_CA_BUNDLE", self.root_file.display().to_string()),
            ("TZ", ":UTC".to_owned()),
            ("LANG", "en_US.UTF-8".to_owned()),
        ];
        environment.push(("CHAIN_RPC_URL", self.chain.url.clone()));
        environment
            .push(("SERVICE_SECRET_ARN", "arn:aws:secretsmanager:us-east-1:123456789012:secret:service".to_owned()));
        environment
            .push(("RELAYER_SECRET_ARN", "arn:aws:secretsmanager:us-east-1:123456789012:secret:relayer".to_owned()));
        environment.push(("JOB_QUEUE_URL", format!("{}/123456789012/jobs", self.aws.endpoint)));
        environment.push(("BLOB_BUCKET", "agora-blobs".to_owned()));
        environment.extend(OWN_VARIABLES.map(|(name, value)| (name, value.to_owned())));
        environment
    }
}

/// What the functions and this process must agree on.
const OWN_VARIABLES: [(&str, &str); 2] =
    [("PAY_TO", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"), ("CHAIN_ID", "84532")];

fn config() -> Result<Config, ConfigErrors> {
    // A relayer's key is required where no secret is named; this process relays nothing.
    let unused_key = ("RELAYER_PRIVATE_KEY", "0x0000000000000000000000000000000000000000000000000000000000000001");
    let variables = [OWN_VARIABLES[0], OWN_VARIABLES[1], unused_key];
    Config::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

const TOOL: &ToolSpec = &vehicle_identification::SPEC;
const VIN_PATH: &str = "/v1/tools/lookup/vehicle-identification";

fn vin() -> Value {
    (TOOL.example)()
}

/// The call a stock client makes after its 402: the quote redeemed, the payment signed.
fn paid_call(world: &World) -> Value {
    let body = vin();
    let purchase = Purchase { tool: TOOL.name, body: &sha256(canonical_json(&body).as_bytes()) };
    let now = Clock::system().now();
    let quote = Quote::offer(purchase, None, TOOL.price.usual(), now, world.config.payments.quote_ttl);
    let terms = Terms {
        token: &world.config.chain.token,
        chain_id: world.config.chain.chain_id,
        pay_to: world.config.payments.pay_to,
        amount: TOOL.price.usual(),
        quote_id: &quote.to_token(&world.keys.quotes),
    };
    let payment = payment_header(&world.payer.authorize(&terms, now), &terms);
    http_event("POST", VIN_PATH, &[("payment-signature", &payment)], Some(body))
}

/// A request as an HTTP API hands it over (payload format 2.0).
fn http_event(method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Value {
    let mut event = json!({
        "version": "2.0",
        "routeKey": format!("{method} {path}"),
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "accept": "*/*",
            "accept-encoding": "gzip, deflate, br",
            "content-type": "application/json",
            "host": "abcdefghij.execute-api.us-east-1.amazonaws.com",
            "user-agent": "x402-fetch/2.27",
            "x-amzn-trace-id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700",
            "x-forwarded-for": "203.0.113.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdefghij",
            "domainName": "abcdefghij.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "abcdefghij",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7", "userAgent": "x402-fetch/2.27"},
            "requestId": hex0x(&[7; 8]),
            "routeKey": format!("{method} {path}"),
            "stage": "$default",
            "time": "21/Nov/2026:04:00:00 +0000",
            "timeEpoch": 1795000000000_u64,
        },
        "isBase64Encoded": false,
    });
    for (name, value) in headers {
        event["headers"][name] = json!(value);
    }
    if let Some(body) = body {
        event["body"] = json!(body.to_string());
    }
    event
}

/// Whether an answer's body, or an answer that has none, holds a text.
fn has(answer: &Value, text: &str) -> bool {
    match answer["body"].as_str() {
        Some(body) => body.contains(text),
        None => answer.to_string().contains(text),
    }
}
