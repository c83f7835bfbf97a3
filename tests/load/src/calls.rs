//! The calls that agents make: signing wallets, tokens, polls.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use base::clock::Clock;
use base::digest;
use base::encoding::base64_standard;
use evm::authorization::Authorization;
use evm::signature::PrivateKey;
use evm::{Address, Word, eip712, hex0x, keccak256, word_from_u64, word_to_u64};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use platform::config::{Config, Token};
use serde_json::{Value, json};

use crate::Error;

const LOOKUP: &str = "/v1/tools/lookup/vehicle-identification";
const LOOKUP_PRICE: u64 = 5_000;
const READ: &str = "/v1/tools/web-read";
const READ_PRICE: u64 = 2_000;
const SOUL: &str = "counter";
/// A program that counts words.
const PROGRAM: &[u8] = include_bytes!("../../../local/examples/wordcount.wasm");
/// The interval between two polls of a job.
const POLL: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);
const MCP_VERSION: &str = "2026-07-28";

type Calling = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A kind of call.
pub struct Kind {
    pub name: &'static str,
    pub call: fn(Arc<Agent>) -> Calling,
}

/// Every kind. The first is the reference for the ratios of the others.
pub static KINDS: [Kind; 9] = [
    Kind { name: "free route (GET /health)", call: |agent| Box::pin(async move { agent.free("/health").await }) },
    Kind {
        name: "free read (a soul's page)",
        call: |agent| Box::pin(async move { agent.free("/v1/soul/counter").await }),
    },
    Kind { name: "unpaid 402", call: |agent| Box::pin(async move { agent.unpaid().await }) },
    Kind { name: "lookup, paid by x402", call: |agent| Box::pin(async move { agent.lookup_by_payment().await }) },
    Kind { name: "lookup, from credits", call: |agent| Box::pin(async move { agent.lookup_by_token().await }) },
    Kind { name: "web read by x402, to its end", call: |agent| Box::pin(async move { agent.read_page().await }) },
    Kind { name: "poll with a proof", call: |agent| Box::pin(async move { agent.poll().await }) },
    Kind { name: "soul's program, to its end", call: |agent| Box::pin(async move { agent.execute().await }) },
    Kind { name: "MCP call, from credits", call: |agent| Box::pin(async move { agent.call_mcp().await }) },
];

/// An HTTP client with its own connections.
#[derive(Clone)]
pub struct Client {
    base_url: String,
    http: hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>,
}

pub struct Answer {
    pub status: u16,
    pub body: Bytes,
}

impl Client {
    pub fn new(base_url: &str) -> Client {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Client { base_url: base_url.to_owned(), http }
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, Error> {
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.base_url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.http.request(request.body(Full::new(body.into()))?).await?;
        let status = answer.status().as_u16();
        Ok(Answer { status, body: answer.into_body().collect().await?.to_bytes() })
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Result<Answer, Error> {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send("POST", path, &all, body.to_string()).await
    }
}

impl Answer {
    pub fn json(&self) -> Result<Value, Error> {
        serde_json::from_slice(&self.body)
            .map_err(|_| format!("{} {}", self.status, String::from_utf8_lossy(&self.body)).into())
    }

    fn expect(self, status: u16) -> Result<Answer, Error> {
        if self.status == status {
            return Ok(self);
        }
        Err(format!("{} instead of {status}: {}", self.status, String::from_utf8_lossy(&self.body)).into())
    }
}

/// Registers the soul whose program is run.
pub async fn open_soul(base_url: &str) -> Result<String, Error> {
    let client = Client::new(base_url);
    let service = json!({
        "name": "Words", "slug": "words", "description": "Counts words", "price_usd": 0.5, "executor": "program", "sandbox": true,
        "input_schema": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
    });
    let soul = json!({
        "name": "Counter", "slug": SOUL, "soul_md": "# Counter\n\nYou count words.", "soul_price": 15,
        "service": service,
    });
    let registered = client.post("/v1/soul/register", &[], &soul).await?.expect(200)?.json()?;
    let key = format!("Bearer {}", registered["soul_key"].as_str().ok_or("no soul key")?);
    let headers = [("authorization", key.as_str()), ("content-type", "application/wasm")];
    client.send("PUT", "/v1/soul/me/services/words/program", &headers, PROGRAM).await?.expect(200)?;
    Ok(format!("/v1/soul/{SOUL}/services/words/execute"))
}

/// A wallet with credits, an access token and a finished job.
pub struct Agent {
    client: Client,
    key: PrivateKey,
    pay_to: Address,
    token: Token,
    service_name: String,
    /// An `Authorization` header.
    access: String,
    page: String,
    execute: String,
    finished: Mutex<String>,
}

impl Agent {
    pub async fn open(
        config: &Config,
        private_key: &str,
        base_url: &str,
        site_url: &str,
        execute: &str,
        credits: &str,
    ) -> Result<Agent, Error> {
        let mut agent = Agent {
            client: Client::new(base_url),
            key: PrivateKey::parse(private_key).ok_or("a payer's key is none")?,
            pay_to: config.payments.pay_to,
            token: config.chain.token.clone(),
            service_name: config.service_name.clone(),
            access: String::new(),
            page: format!("{site_url}/article"),
            execute: execute.to_owned(),
            finished: Mutex::default(),
        };
        let micro = credits.replace('.', "").parse::<u64>()? * 10_000;
        let headers = [("x-payment", agent.payment(micro))];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        agent.client.post("/v1/credits/top-up", &headers, &json!({"amount": credits})).await?.expect(200)?;
        let proof = agent.proof("write");
        let minted = json!({"name": "load", "expires_in_days": 1});
        let minted = agent
            .client
            .post("/v1/agents/me/access-tokens", &[("x-agent-proof", &proof)], &minted)
            .await?
            .expect(201)?;
        let minted = minted.json()?;
        let secret = minted["token"].as_str().or(minted["data"]["token"].as_str());
        agent.access = format!("Bearer {}", secret.ok_or_else(|| format!("no access token in {minted}"))?);
        agent.read_page().await?;
        Ok(agent)
    }

    async fn free(&self, path: &str) -> Result<(), Error> {
        self.client.send("GET", path, &[], String::new()).await?.expect(200).map(drop)
    }

    async fn unpaid(&self) -> Result<(), Error> {
        self.client.post(LOOKUP, &[], &vin()).await?.expect(402).map(drop)
    }

    async fn lookup_by_payment(&self) -> Result<(), Error> {
        let payment = self.payment(LOOKUP_PRICE);
        self.client.post(LOOKUP, &[("x-payment", &payment)], &vin()).await?.expect(200).map(drop)
    }

    async fn lookup_by_token(&self) -> Result<(), Error> {
        self.client.post(LOOKUP, &[("authorization", &self.access)], &vin()).await?.expect(200).map(drop)
    }

    async fn read_page(&self) -> Result<(), Error> {
        let payment = self.payment(READ_PRICE);
        let body = json!({"url": self.page});
        let accepted = self.client.post(READ, &[("x-payment", &payment)], &body).await?.expect(202)?.json()?;
        let id = accepted["request_id"].as_str().ok_or("no request id")?.to_owned();
        self.wait_for(&id).await?;
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = id;
        Ok(())
    }

    async fn poll(&self) -> Result<(), Error> {
        let path = format!("/v1/requests/{}", self.finished.lock().unwrap_or_else(PoisonError::into_inner));
        let proof = self.proof("read");
        self.client.send("GET", &path, &[("x-agent-proof", &proof)], String::new()).await?.expect(200).map(drop)
    }

    async fn execute(&self) -> Result<(), Error> {
        let body = json!({"input": {"text": "fog nets harvest water out of the wind"}});
        let headers = [("authorization", self.access.as_str())];
        let accepted = self.client.post(&self.execute, &headers, &body).await?.expect(202)?.json()?;
        self.wait_for(accepted["request_id"].as_str().ok_or("no request id")?).await
    }

    async fn call_mcp(&self) -> Result<(), Error> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MCP_VERSION, "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": "agora_vin_decode", "arguments": vin(), "_meta": meta});
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", MCP_VERSION),
            ("mcp-method", "tools/call"),
            ("mcp-name", "agora_vin_decode"),
            ("authorization", self.access.as_str()),
        ];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = self.client.post("/mcp", &headers, &body).await?.expect(200)?.json()?;
        match answer["result"]["isError"].as_bool() {
            Some(true) | None if answer["result"].get("content").is_none() || answer["result"]["isError"] == true => {
                Err(format!("a tool call came to {answer}").into())
            }
            _ => Ok(()),
        }
    }

    /// Polls until a job is completed.
    async fn wait_for(&self, id: &str) -> Result<(), Error> {
        let (path, until) = (format!("/v1/requests/{id}"), Instant::now() + PATIENCE);
        loop {
            let headers = [("authorization", self.access.as_str())];
            let job = self.client.send("GET", &path, &headers, String::new()).await?.expect(200)?.json()?;
            match job["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("pending" | "processing") if Instant::now() < until => tokio::time::sleep(POLL).await,
                _ => return Err(format!("a job came to {job}").into()),
            }
        }
    }

    /// A signed payment as x402 clients send it.
    fn payment(&self, micro: u64) -> String {
        let now = Clock::system().now().secs().unsigned_abs();
        let mut authorization = Authorization {
            from: self.key.address(),
            to: self.pay_to,
            value: word_from_u64(micro),
            valid_after: word_from_u64(now - 300),
            valid_before: word_from_u64(now + 3600),
            nonce: digest::random(),
            signature: Vec::new(),
        };
        authorization.signature = self.key.sign(&authorization.digest(&self.token.domain)).to_bytes().to_vec();
        let number = |word: &Word| word_to_u64(word).unwrap_or_default().to_string();
        let payment = json!({
            "x402Version": 1,
            "scheme": "exact",
            "network": "base-sepolia",
            "payload": {
                "signature": hex0x(&authorization.signature),
                "authorization": {
                    "from": authorization.from.to_string(), "to": authorization.to.to_string(),
                    "value": number(&authorization.value), "validAfter": number(&authorization.valid_after),
                    "validBefore": number(&authorization.valid_before), "nonce": hex0x(&authorization.nonce),
                },
            },
        });
        base64_standard(payment.to_string().as_bytes())
    }

    fn proof(&self, scope: &str) -> String {
        let issued_at = Clock::system().now().secs();
        let nonce: Word = digest::random();
        let domain = eip712::named_domain(&format!("{} Agent Auth", self.service_name), "1");
        let message = eip712::hash_struct([
            keccak256(b"AgentReadAuth(address agent,string scope,uint256 issuedAt,bytes32 nonce)"),
            self.key.address().word(),
            keccak256(scope.as_bytes()),
            word_from_u64(issued_at.unsigned_abs()),
            nonce,
        ]);
        let signature = self.key.sign(&eip712::digest(&domain, &message)).to_bytes();
        let proof = json!({
            "agent": self.key.address().to_string(), "scope": scope, "issuedAt": issued_at,
            "nonce": hex0x(&nonce), "signature": hex0x(&signature),
        });
        base64_standard(proof.to_string().as_bytes())
    }
}

fn vin() -> Value {
    json!({"vin": "1HGCM82633A004352"})
}
