//! Secrets of endpoints, and the headers of a signed delivery.
//!
//! Secrets are never stored. Each is derived from a secret of the service, the endpoint, and a number that each rotation
//! raises.

use base::clock::Timestamp;
use base::digest::{self, sha256_parts};
use base::encoding::base64_standard;
use base::ids::{AgentId, EndpointId};
use evm::Word;
use ring::hmac;

/// The key from which the endpoints' secrets are derived (`ServiceKeys::webhooks`).
#[derive(Clone)]
pub struct SigningKey(hmac::Key);

/// The 32 bytes that sign a delivery.
pub struct Secret(Word);

impl SigningKey {
    pub fn new(bytes: &[u8]) -> SigningKey {
        SigningKey(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    pub fn secret(&self, agent: AgentId, endpoint: EndpointId, number: u32) -> Secret {
        let named = sha256_parts(&[b"endpoint", agent.bytes(), &endpoint.ulid().to_bytes(), &number.to_be_bytes()]);
        Secret(digest::hmac(&self.0, &named))
    }
}

impl Secret {
    /// A secret from the configuration.
    pub fn of(key: Word) -> Secret {
        Secret(key)
    }

    /// The text its owner is shown once, in the format of Standard Webhooks.
    pub fn to_text(&self) -> String {
        format!("whsec_{}", base64_standard(&self.0))
    }
}

fn mac(secret: &[u8], text: &str) -> [u8; 32] {
    digest::hmac(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes())
}

/// A Standard Webhooks signature, as listed in `webhook-signature`.
pub fn standard(secret: &[u8], id: &str, at: i64, body: &str) -> String {
    format!("v1,{}", base64_standard(&mac(secret, &format!("{id}.{at}.{body}"))))
}

/// The message to sign.
pub struct Message<'a> {
    /// The event's id.
    pub id: &'a str,
    pub body: &'a str,
    /// An order's event also gets ACP's header.
    pub is_order: bool,
}

/// The headers of an attempt at `now`, signed with each secret (several during a rotation). There are those of Standard
/// Webhooks, and our own: `X-Webhook-Id` and `X-<ServiceName>-Signature: t=<unix>,v1=<hex>` over `<t>.<body>`. An
/// order also gets ACP's `Merchant-Signature` in the same format.
pub fn headers(message: &Message<'_>, secrets: &[Secret], service_name: &str, now: Timestamp) -> Vec<(String, String)> {
    let (id, body, at) = (message.id, message.body, now.secs());
    let standard: Vec<String> = secrets.iter().map(|secret| standard(&secret.0, id, at, body)).collect();
    let own =
        secrets.iter().map(|secret| format!(",v1={}", const_hex::encode(mac(&secret.0, &format!("{at}.{body}")))));
    let own = format!("t={at}{}", own.collect::<String>());
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("webhook-id".to_owned(), id.to_owned()),
        ("webhook-timestamp".to_owned(), at.to_string()),
        ("webhook-signature".to_owned(), standard.join(" ")),
        ("x-webhook-id".to_owned(), id.to_owned()),
        (own_header(service_name), own.clone()),
    ];
    if message.is_order {
        headers.push(("merchant-signature".to_owned(), own));
    }
    headers
}

/// `x-<servicename>-signature` in lower case, without characters that a header name cannot have.
pub fn own_header(service_name: &str) -> String {
    let name: String = service_name.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
    format!("x-{}-signature", if name.is_empty() { "service".to_owned() } else { name.to_ascii_lowercase() })
}

#[cfg(test)]
mod tests {
    use evm::Address;

    use super::*;

    #[test]
    fn a_secret_depends_on_its_endpoint_and_number() {
        let key = SigningKey::new(&[7; 32]);
        let agent = AgentId::of(Address::ZERO);
        let (one, other) = (EndpointId::random(), EndpointId::random());
        let secret = |endpoint, number| key.secret(agent, endpoint, number).to_text();
        assert_eq!(secret(one, 1), secret(one, 1));
        assert_ne!(secret(one, 1), secret(one, 2));
        assert_ne!(secret(one, 1), secret(other, 1));
        assert_eq!(secret(one, 1).len(), "whsec_".len() + 44);
    }

    /// The test vector of the Standard Webhooks reference libraries.
    #[test]
    fn signs_as_the_reference_libraries_do() {
        let secret = base::encoding::base64_any("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = standard(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn both_secrets_sign_every_header_during_a_rotation() {
        let secrets = [Secret([1; 32]), Secret([2; 32])];
        let message = Message { id: "evt_1", body: "{}", is_order: true };
        let headers = headers(&message, &secrets, "My Shop", Timestamp::from_secs(10));
        let of = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap();
        assert_eq!(of("webhook-signature").split(' ').count(), 2);
        let own: Vec<&str> = of("x-myshop-signature").split(',').collect();
        assert_eq!((own.len(), own[0]), (3, "t=10"));
        assert!(own[1..].iter().all(|part| part.strip_prefix("v1=").is_some_and(|mac| mac.len() == 64)));
        assert_ne!(own[1], own[2]);
        assert_eq!(of("merchant-signature"), of("x-myshop-signature"));
        assert_eq!(own_header(" \r\n:"), "x-service-signature");
    }
}
