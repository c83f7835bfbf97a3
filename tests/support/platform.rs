//! An agent platform that opens checkout sessions, and ACP's own schemas to check the answers against.

use std::sync::LazyLock;

use base::digest;
use evm::hex0x;
use jsonschema::{Draft, Validator};
use local::Stack;
use serde_json::{Value, json};

use super::payer::{header, v2};
use super::{Answer, Client, Payer, root};

/// The token that every local stack has.
pub const TOKEN: &str = "local-acp-token";

#[derive(Clone)]
pub struct Platform {
    client: Client,
    token: String,
    approval: Option<String>,
    /// `/acp` or `/v1`
    prefix: &'static str,
}

impl Platform {
    pub fn acp(stack: &Stack) -> Platform {
        Platform { client: Client::new(&stack.base_url), token: TOKEN.to_owned(), approval: None, prefix: "/acp" }
    }

    pub fn simple(stack: &Stack) -> Platform {
        Platform { prefix: "/v1", ..Platform::acp(stack) }
    }

    pub fn with_token(&self, token: &str) -> Platform {
        Platform { token: token.to_owned(), ..self.clone() }
    }

    /// The same platform, sending the approval that releases a held call.
    pub fn with_approval(&self, id: &str) -> Platform {
        Platform { approval: Some(id.to_owned()), ..self.clone() }
    }

    /// Sends a request, with a fresh idempotency key unless one is given.
    pub async fn try_send(&self, method: &str, path: &str, name: Option<&str>, body: &Value) -> Option<Answer> {
        let fresh = hex0x(&digest::random::<12>());
        let bearer = format!("Bearer {}", self.token);
        let mut headers = vec![("authorization", bearer.as_str()), ("api-version", "2026-01-30")];
        headers.extend(self.approval.as_deref().map(|id| ("x-approval-id", id)));
        let body = if method == "GET" {
            String::new()
        } else {
            headers.push(("content-type", "application/json"));
            headers.push(("idempotency-key", name.unwrap_or(&fresh)));
            body.to_string()
        };
        self.client.send(method, &format!("{}/checkout_sessions{path}", self.prefix), &headers, body).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_send("POST", path, None, body).await.expect("an answer")
    }

    pub async fn named(&self, name: &str, path: &str, body: &Value) -> Answer {
        self.try_send("POST", path, Some(name), body).await.expect("an answer")
    }

    pub async fn read(&self, session: &Value) -> Value {
        let answer = self.try_send("GET", &at(session, ""), None, &Value::Null).await.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text);
        self.check("CheckoutSession", &answer);
        answer.json()
    }

    /// A new session for one item.
    pub async fn open(&self, item: &str, input: Value) -> Value {
        let body = json!({
            "line_items": [{"id": item}], "currency": "usd",
            "capabilities": {"interventions": {"supported": ["3ds"]}}, "metadata": {"input": input},
        });
        let answer = self.post("", &body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        self.check("CheckoutSession", &answer);
        answer.json()
    }

    pub async fn complete(&self, session: &Value, body: &Value) -> Answer {
        self.post(&at(session, "/complete"), body).await
    }

    /// Checks an answer of ACP's paths against its schema.
    #[track_caller]
    pub fn check(&self, schema: &str, answer: &Answer) {
        if self.prefix == "/acp" {
            validate(schema, &answer.json());
        }
    }

    pub fn send(&self) -> &Client {
        &self.client
    }
}

/// The path of a session, relative to the path of all sessions.
pub fn at(session: &Value, action: &str) -> String {
    format!("/{}{action}", session["id"].as_str().expect("a session has an id"))
}

/// The payment terms in a session's x402 handler.
#[track_caller]
pub fn asked(session: &Value) -> Value {
    let handlers = session.pointer("/capabilities/payment/handlers").or_else(|| session.get("payment_handlers"));
    let handlers = handlers.and_then(Value::as_array).expect("payment handlers");
    let x402 = handlers.iter().find(|handler| handler["id"] == "x402").expect("the x402 handler");
    x402["config"]["accepts"][0].clone()
}

/// The body that pays a session from a wallet.
pub fn payment(session: &Value, payer: &Payer) -> Value {
    let accepts = asked(session);
    let amount = accepts["amount"].as_str().and_then(|amount| amount.parse().ok()).expect("an amount");
    paid_with("x402", &header(&v2(&payer.authorize(amount), &accepts)))
}

pub fn paid_with(handler: &str, token: &str) -> Value {
    json!({"payment_data": {
        "handler_id": handler, "instrument": {"type": handler, "credential": {"type": handler, "token": token}},
    }})
}

/// The folder of ACP's own files, if present. It is next to the project, not in it.
pub fn published() -> Option<std::path::PathBuf> {
    let found = root().ancestors().map(|folder| folder.join("shared/acp/2026-01-30")).find(|folder| folder.is_dir());
    if found.is_none() {
        println!("skipped: ../shared/acp is not here, so answers are not held to ACP's own schemas");
    }
    found
}

static SCHEMAS: LazyLock<Option<Value>> = LazyLock::new(|| {
    let text = std::fs::read(published()?.join("json-schema/schema.agentic_checkout.json")).expect("the schema");
    Some(serde_json::from_slice(&text).expect("the schema is JSON"))
});

/// A validator for one definition of ACP's schema.
pub fn schema(name: &str) -> Option<Validator> {
    let all = SCHEMAS.as_ref()?;
    assert!(all["$defs"].get(name).is_some(), "{name}");
    let one = json!({"$schema": all["$schema"], "$defs": all["$defs"], "$ref": format!("#/$defs/{name}")});
    let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
    Some(options.build(&one).expect("ACP's schema compiles"))
}

#[track_caller]
pub fn validate(name: &str, value: &Value) {
    let Some(validator) = schema(name) else { return };
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "not a {name}: {errors:#?}\n{value:#}");
}
