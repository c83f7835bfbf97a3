//! DynamoDB, SQS, S3, Secrets Manager and WebSocket management behind one endpoint, over TLS 1.3 with a P-256
//! certificate created for the run.
//!
//! Puts are stored and can be read back. Conditions are not checked and updates change nothing: other tests check what
//! a function does with an answer, here only the cost of the requests counts.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::encoding::base64_standard;
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{self, ServerConfig, ServerConnection, StreamOwned};

use super::http::{self, Answer, Request};
use crate::Error;

/// The content of every secret.
pub const SECRET: &str = "a generated secret as long as they usually are: 0123456789abcdefghijklmnopqrstuvwxyz";

/// The end of the ARN of the secret that lists agent platforms, and the token of the only platform.
pub const PLATFORMS_SECRET: &str = ":secret:platforms";
pub const PLATFORM_TOKEN: &str = "bench-platform-token";

pub struct Aws {
    /// A host name and not an address, so that names are resolved as in production.
    pub endpoint: String,
    /// The root certificate of the run, as PEM.
    pub root: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Items by table, partition and sort key.
    items: Mutex<BTreeMap<(String, String, String), Value>>,
    /// Every item that was put, in order, with its table.
    puts: Mutex<Vec<(String, Value)>>,
    /// Blobs by path.
    blobs: Mutex<BTreeMap<String, Vec<u8>>>,
    requests: AtomicU64,
}

impl Aws {
    pub fn start() -> Result<Aws, Error> {
        let (root, tls) = certificate()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let endpoint = format!("https://localhost:{}", listener.local_addr()?.port());
        let state = Arc::new(State::default());
        let serving = state.clone();
        http::serve(listener, move |stream| {
            let answer = || -> Result<(), Error> {
                let stream = StreamOwned::new(ServerConnection::new(tls.clone())?, stream);
                Ok(http::answer_all(stream, |request| Some(serving.answer(&request)))?)
            };
            // A killed function drops its connection, which is not an error.
            let _ = answer();
        });
        Ok(Aws { endpoint, root, state })
    }

    /// Requests answered so far.
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }

    pub fn put(&self, table: &str, item: Value) {
        self.state.put(table, item);
    }

    /// The item put last whose partition key starts with this prefix.
    pub fn last_put(&self, table: &str, partition: &str) -> Option<Value> {
        let puts = lock(&self.state.puts);
        let is_of = |(of, item): &&(String, Value)| {
            of == table && item["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with(partition))
        };
        puts.iter().rev().find(is_of).map(|(_, item)| item.clone())
    }
}

impl State {
    fn put(&self, table: &str, item: Value) {
        lock(&self.puts).push((table.to_owned(), item.clone()));
        lock(&self.items).insert(key(table, &item), item);
    }

    fn delete(&self, table: &str, key_of: &Value) {
        lock(&self.items).remove(&key(table, key_of));
    }

    fn answer(&self, request: &Request) -> Answer {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let path = request.path.split('?').next().unwrap_or_default();
        match request.method.as_str() {
            "POST" if path.contains("/@connections/") => return Answer::json(200, &json!({})),
            "PUT" => {
                lock(&self.blobs).insert(path.to_owned(), request.body.clone());
                return Answer::json(200, &Value::Null);
            }
            "GET" => {
                let blob = lock(&self.blobs).get(path).cloned();
                let status = if blob.is_some() { 200 } else { 404 };
                return Answer { status, headers: Vec::new(), body: blob.unwrap_or_default() };
            }
            _ => {}
        }
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let table = asked["TableName"].as_str().unwrap_or_default();
        let action = request.header("x-amz-target").and_then(|target| target.split('.').nth(1)).unwrap_or_default();
        let answer = match action {
            "GetItem" => match lock(&self.items).get(&key(table, &asked["Key"])) {
                Some(item) => json!({"Item": item}),
                None => json!({}),
            },
            "Query" => {
                let value = |name: &str| asked["ExpressionAttributeValues"][name]["S"].as_str();
                let partition = value(":pk");
                // The two forms of `platform::store::db::Query`: by a prefix of the sort key, or between two sort keys.
                let (prefix, from, to) = (value(":prefix"), value(":from"), value(":to"));
                let asked_for = |sk: &str| {
                    prefix.is_none_or(|prefix| sk.starts_with(prefix))
                        && from.is_none_or(|from| sk >= from)
                        && to.is_none_or(|to| sk <= to)
                };
                let items = lock(&self.items);
                let found: Vec<&Value> = items
                    .iter()
                    .filter(|((of, pk, sk), _)| of == table && Some(pk.as_str()) == partition && asked_for(sk))
                    .map(|(_, item)| item)
                    .collect();
                json!({"Count": found.len(), "ScannedCount": found.len(), "Items": found})
            }
            "PutItem" => {
                self.put(table, asked["Item"].clone());
                json!({})
            }
            "UpdateItem" => match lock(&self.items).get(&key(table, &asked["Key"])) {
                Some(item) => json!({"Attributes": taken_up(item)}),
                // The count of the first request in its rate limit window.
                None => json!({"Attributes": {"used": {"N": "1"}}}),
            },
            "DeleteItem" => {
                self.delete(table, &asked["Key"]);
                json!({})
            }
            "TransactWriteItems" => {
                for write in asked["TransactItems"].as_array().into_iter().flatten() {
                    let (put, delete) = (&write["Put"], &write["Delete"]);
                    if let Some(table) = put["TableName"].as_str() {
                        self.put(table, put["Item"].clone());
                    }
                    if let Some(table) = delete["TableName"].as_str() {
                        self.delete(table, &delete["Key"]);
                    }
                }
                json!({})
            }
            "BatchWriteItem" => {
                for (table, writes) in asked["RequestItems"].as_object().into_iter().flatten() {
                    for write in writes.as_array().into_iter().flatten() {
                        match &write["PutRequest"]["Item"] {
                            Value::Null => self.delete(table, &write["DeleteRequest"]["Key"]),
                            item => self.put(table, item.clone()),
                        }
                    }
                }
                json!({"UnprocessedItems": {}})
            }
            "BatchGetItem" => {
                let items = lock(&self.items);
                let found = |table: &str, keys: &Value| {
                    let keys = keys["Keys"].as_array().into_iter().flatten();
                    keys.filter_map(|asked| items.get(&key(table, asked)).cloned()).collect::<Vec<_>>()
                };
                let tables = asked["RequestItems"].as_object().into_iter().flatten();
                let responses = tables.map(|(table, keys)| (table.clone(), json!(found(table, keys))));
                json!({"Responses": responses.collect::<serde_json::Map<_, _>>(), "UnprocessedKeys": {}})
            }
            "GetSecretValue" => {
                let is_of_platforms = asked["SecretId"].as_str().is_some_and(|arn| arn.ends_with(PLATFORMS_SECRET));
                let platforms = json!({"bearer_tokens": PLATFORM_TOKEN, "webhooks": ""}).to_string();
                let text = if is_of_platforms { platforms.as_str() } else { SECRET };
                json!({"ARN": asked["SecretId"], "Name": "secret", "SecretString": text})
            }
            "SendMessage" => json!({"MessageId": "5fea7756-0ea4-451a-a703-a558b933e274", "MD5OfMessageBody": ""}),
            unknown => {
                return Answer::json(400, &json!({"__type": "UnknownOperationException", "message": unknown}));
            }
        };
        let mut answer = Answer::json(200, &answer);
        answer.headers = [
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amzn-requestid", "VNHQUGNIE0GBL5Q24T3LAQ2UTVVV4KQNSO5AEMVJF66Q9ASUAAJG"),
            ("server", "Server"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        answer
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(table: &str, attributes: &Value) -> (String, String, String) {
    let text = |name: &str| attributes[name]["S"].as_str().unwrap_or_default().to_owned();
    (table.to_owned(), text("pk"), text("sk"))
}

/// The job as the update that starts an attempt returns it.
fn taken_up(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(attempt) = item["attempt"]["N"].as_str().and_then(|attempt| attempt.parse::<u32>().ok()) {
        item["attempt"]["N"] = json!((attempt + 1).to_string());
    }
    item
}

/// A root certificate and the configuration of a server that it certifies.
fn certificate() -> Result<(String, Arc<ServerConfig>), Error> {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
    let root_key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    // It needs a name of its own: a certificate with the name of its issuer counts as self-signed.
    params.distinguished_name.push(DnType::CommonName, "bench root");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&root_key)?;
    let issuer = Issuer::new(params, root_key);

    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .map_err(io::Error::other)?;
    Ok((pem(root.der()), Arc::new(config)))
}

/// A certificate as PEM, in lines of the usual length.
fn pem(der: &[u8]) -> String {
    let lines: Vec<String> = der.chunks(48).map(base64_standard).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
