//! What AWS posts and checks: messages of SNS, signed with a key of the tests, and the signatures of requests to it. A contract
//! server answers [`CERTIFICATE`] at [`CERTIFICATE_PATH`] in the place of SNS (`PROVIDER_URLS` name `sns`).

use axum::http::{HeaderMap, Method};
use base::clock::Clock;
use base::digest::sha256;
use local::Stack;
pub use platform::providers::sns::testing::{CERTIFICATE, CERTIFICATE_PATH, signed};
use ring::hmac;
use serde_json::{Value, json};

use super::{Answer, Client};

/// The region of the deployments whose requests [`assert_signed`] checks.
pub const REGION: &str = "eu-west-1";

/// A message of SNS with this text, not signed yet.
pub fn notification(topic: &str, id: &str, text: &str) -> Value {
    json!({
        "Type": "Notification", "MessageId": format!("22b80b92-fdea-4c2c-8f9d-{id}"), "TopicArn": topic,
        "Subject": "Amazon Event Notification", "Message": text, "Timestamp": Clock::system().now().to_string(),
    })
}

/// Posts as SNS does.
pub async fn post(stack: &Stack, path: &str, message: &Value) -> Answer {
    let headers = [("content-type", "text/plain; charset=UTF-8"), ("x-amz-sns-message-type", "Notification")];
    let client = Client::new(&stack.base_url);
    client.send("POST", path, &headers, message.to_string()).await.expect("an answer")
}

/// Posts an event with a good signature.
pub async fn publish(stack: &Stack, path: &str, topic: &str, id: &str, event: &Value) {
    let answer = post(stack, path, &signed(notification(topic, id, &event.to_string()))).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"received": true})), "{id}");
}

/// Recomputes the Signature Version 4 of a function's request without a query to an AWS service in [`REGION`].
pub fn assert_signed(service: &str, function: &str, method: &Method, path: &str, headers: &HeaderMap, raw: &[u8]) {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let authorization = header("authorization");
    let part = |name: &str| {
        let rest = authorization.split_once(name).unwrap_or_else(|| panic!("{name} in {authorization}")).1;
        rest.split([',', ' ']).next().unwrap().to_owned()
    };
    let time = header("x-amz-date");
    let scope = format!("{}/{REGION}/{service}/aws4_request", &time[..8]);
    assert_eq!(part("Credential="), format!("local-{function}/{scope}"));
    let names = part("SignedHeaders=");
    let lines: String = names.split(';').map(|name| format!("{name}:{}\n", header(name).trim())).collect();
    let body = const_hex::encode(sha256(raw));
    let canonical = format!("{method}\n{path}\n\n{lines}\n{names}\n{body}");
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", const_hex::encode(sha256(canonical.as_bytes())));
    let mac =
        |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec();
    let key = [REGION, service, "aws4_request"].iter().fold(mac(b"AWS4local", &time[..8]), |key, part| mac(&key, part));
    assert_eq!(part("Signature="), const_hex::encode(mac(&key, &to_sign)));
}
