//! Reads every accepted payment format into one [`Payment`].
//!
//! | header | content |
//! |---|---|
//! | `payment-signature`, `X-Payment-Proof` | base64 JSON, x402 v2 |
//! | `X-Payment` | base64 or raw JSON: x402 v1, v2, or a bare authorization |
//! | `Authorization`, without `Bearer` | the same, perhaps behind `x402 ` or `Payment ` |
//!
//! Only the form is checked here. [`super::verify`] judges the payment.

use base::encoding::base64_any;
use evm::authorization::Authorization;
use evm::{parse_decimal_word, parse_hex0x, parse_word};
use http::HeaderMap;
use platform::http::headers;
use serde::Deserialize;

/// Larger payment headers are refused. API Gateway takes 10,240 bytes for the request line and all headers together.
pub const MAX_HEADER_BYTES: usize = 9 * 1024;
/// Largest signature. Contract wallets need more than the 65 bytes of a key's signature.
const MAX_SIGNATURE_BYTES: usize = 2 * 1024;

/// Seconds a payer has to deliver a payment; offered in every requirement as `maxTimeoutSeconds`.
pub const MAX_TIMEOUT_SECS: u64 = 300;
/// The x402 extension that carries the payer's idempotency key.
pub const PAYMENT_IDENTIFIER: &str = "payment-identifier";

/// Headers that may carry a payment, in order of precedence.
const PAYMENT_HEADERS: [&str; 4] = ["payment-signature", "x-payment", "authorization", "x-payment-proof"];

/// A payment as sent. Only its form has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub authorization: Authorization,
    /// The terms the payer says it accepted. Empty for a bare authorization.
    pub accepted: Accepted,
    /// The quote id inside the payment, as v2 clients echo it.
    pub quote_id: Option<String>,
    /// The `payment-identifier` extension's id.
    pub identifier: Option<String>,
}

/// The terms a payment says it is for. `None`: not stated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    pub version: Option<u64>,
    pub scheme: Option<String>,
    pub network: Option<String>,
    pub amount: Option<String>,
    pub asset: Option<String>,
    pub pay_to: Option<String>,
    pub token_name: Option<String>,
    pub token_version: Option<String>,
}

/// A payment header that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    pub header: &'static str,
    pub message: &'static str,
}

/// Finds and reads the payment of a request. Only the first payment header is read, in order of precedence.
pub fn payment(headers: &HeaderMap) -> Result<Option<Payment>, Malformed> {
    for header in PAYMENT_HEADERS {
        let Some(value) = headers.get(header) else { continue };
        let malformed = |message| Malformed { header, message };
        let value = value.to_str().map_err(|_| malformed("must be ASCII text"))?.trim();
        if header == "authorization" && headers::is_bearer(value) {
            continue;
        }
        if value.is_empty() {
            return Err(malformed("must have a payment, or be left out"));
        }
        if value.len() > MAX_HEADER_BYTES {
            return Err(malformed("is too large"));
        }
        let value = without_scheme_word(value);
        let json = if value.starts_with('{') {
            value.as_bytes().to_vec()
        } else {
            base64_any(value).ok_or(malformed("must be base64 of JSON"))?
        };
        return read(&json).map(Some).map_err(malformed);
    }
    Ok(None)
}

fn without_scheme_word(value: &str) -> &str {
    for word in ["x402 ", "payment "] {
        if value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) {
            return value[word.len()..].trim_start();
        }
    }
    value
}

/// The envelope of both x402 versions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    x402_version: Option<u64>,
    scheme: Option<String>,
    network: Option<String>,
    accepted: Option<Requirement>,
    payload: Option<Payload>,
    extensions: Option<Extensions>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Requirement {
    scheme: Option<String>,
    network: Option<String>,
    amount: Option<String>,
    max_amount_required: Option<String>,
    asset: Option<String>,
    pay_to: Option<String>,
    extra: Option<Extra>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extra {
    name: Option<String>,
    version: Option<String>,
    quote_id: Option<String>,
}

#[derive(Deserialize)]
struct Extensions {
    /// [`PAYMENT_IDENTIFIER`]
    #[serde(rename = "payment-identifier")]
    payment_identifier: Option<PaymentIdentifier>,
}

#[derive(Deserialize)]
struct PaymentIdentifier {
    info: Option<PaymentIdentifierInfo>,
}

#[derive(Deserialize)]
struct PaymentIdentifierInfo {
    id: Option<String>,
}

#[derive(Deserialize)]
struct Payload {
    signature: Option<String>,
    authorization: Option<Message>,
}

/// The signed message. The numbers are strings of decimal digits, never JSON numbers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    from: String,
    to: String,
    value: String,
    valid_after: String,
    valid_before: String,
    nonce: String,
}

/// An authorization without an envelope. The signature is one string or the parts v, r and s.
#[derive(Deserialize)]
struct Bare {
    #[serde(flatten)]
    message: Message,
    signature: Option<BareSignature>,
    #[serde(flatten)]
    parts: Option<SignatureParts>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BareSignature {
    Whole(String),
    Parts(SignatureParts),
}

#[derive(Deserialize)]
struct SignatureParts {
    v: u64,
    r: String,
    s: String,
}

fn read(json: &[u8]) -> Result<Payment, &'static str> {
    const NOT_A_PAYMENT: &str =
        "must hold a payment: {x402Version, payload: {signature, authorization}} with decimal strings";
    let envelope: Envelope = serde_json::from_slice(json).map_err(|_| NOT_A_PAYMENT)?;
    let Some(payload) = envelope.payload else {
        let bare: Bare = serde_json::from_slice(json).map_err(|_| NOT_A_PAYMENT)?;
        let signature = match (bare.signature, bare.parts) {
            (Some(BareSignature::Whole(hex)), _) => signature_bytes(&hex)?,
            (Some(BareSignature::Parts(parts)), _) | (None, Some(parts)) => parts.join()?,
            (None, None) => return Err("payment has no signature"),
        };
        return Ok(Payment {
            authorization: bare.message.read(signature)?,
            accepted: Accepted::default(),
            quote_id: None,
            identifier: None,
        });
    };
    let message = payload.authorization.ok_or("payload has no authorization")?;
    let signature = signature_bytes(&payload.signature.ok_or("payload has no signature")?)?;
    let mut accepted = Accepted {
        version: envelope.x402_version,
        scheme: envelope.scheme,
        network: envelope.network,
        ..Accepted::default()
    };
    let mut quote_id = None;
    if let Some(requirement) = envelope.accepted {
        let extra = requirement.extra.unwrap_or_default();
        accepted.scheme = requirement.scheme.or(accepted.scheme);
        accepted.network = requirement.network.or(accepted.network);
        accepted.amount = requirement.amount.or(requirement.max_amount_required);
        accepted.asset = requirement.asset;
        accepted.pay_to = requirement.pay_to;
        accepted.token_name = extra.name;
        accepted.token_version = extra.version;
        quote_id = extra.quote_id;
    }
    let identifier = envelope.extensions.and_then(|extensions| extensions.payment_identifier?.info?.id);
    if !identifier.as_deref().is_none_or(is_identifier) {
        return Err("the id of payment-identifier must be 16 to 128 letters, digits, _ or -");
    }
    Ok(Payment { authorization: message.read(signature)?, accepted, quote_id, identifier })
}

fn is_identifier(id: &str) -> bool {
    (16..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

impl Message {
    fn read(self, signature: Vec<u8>) -> Result<Authorization, &'static str> {
        Ok(Authorization {
            from: self.from.parse().map_err(|_| "authorization.from must be an address")?,
            to: self.to.parse().map_err(|_| "authorization.to must be an address")?,
            value: parse_decimal_word(&self.value).ok_or("authorization.value must be decimal digits")?,
            valid_after: parse_decimal_word(&self.valid_after)
                .ok_or("authorization.validAfter must be decimal digits")?,
            valid_before: parse_decimal_word(&self.valid_before)
                .ok_or("authorization.validBefore must be decimal digits")?,
            nonce: parse_word(&self.nonce).ok_or("authorization.nonce must be 0x and 64 hex digits")?,
            signature,
        })
    }
}

fn signature_bytes(hex: &str) -> Result<Vec<u8>, &'static str> {
    parse_hex0x(hex).filter(|bytes| bytes.len() <= MAX_SIGNATURE_BYTES).ok_or("signature must be 0x and hex digits")
}

impl SignatureParts {
    fn join(&self) -> Result<Vec<u8>, &'static str> {
        let part = |hex: &str| parse_word(hex).ok_or("r and s must be 0x and 64 hex digits");
        let v = u8::try_from(self.v).map_err(|_| "v must be 0, 1, 27 or 28")?;
        Ok([part(&self.r)?.as_slice(), part(&self.s)?.as_slice(), &[v]].concat())
    }
}

#[cfg(test)]
mod tests {
    use base::encoding::{base64_standard, base64_url};
    use evm::{hex0x, word_from_u64};
    use serde_json::{Value, json};

    use super::*;

    fn message() -> Value {
        json!({
            "from": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "to": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "value": "2000", "validAfter": "0", "validBefore": "1795000000", "nonce": hex0x(&[5; 32]),
        })
    }

    fn v2() -> Value {
        json!({
            "x402Version": 2,
            "accepted": {"scheme": "exact", "network": "eip155:84532", "amount": "2000", "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
                         "payTo": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "maxTimeoutSeconds": 300,
                         "extra": {"name": "USDC", "version": "2", "quoteId": "quote_abc"}},
            "payload": {"signature": hex0x(&[1; 65]), "authorization": message()},
            "resource": {"url": "http://x"},
            "extensions": {"payment-identifier": {"info": {"id": "pay_7d5d747be160e280"}}, "bazaar": {"info": {}}},
        })
    }

    fn read_header(name: &'static str, value: &str) -> Result<Option<Payment>, Malformed> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        payment(&headers)
    }

    #[test]
    fn every_header_and_encoding_gives_the_same_payment() {
        let text = v2().to_string();
        let (standard, url_safe) = (base64_standard(text.as_bytes()), base64_url(text.as_bytes()));
        let first = read_header("payment-signature", &standard).unwrap().unwrap();
        assert_eq!(first.quote_id.as_deref(), Some("quote_abc"));
        assert_eq!(first.identifier.as_deref(), Some("pay_7d5d747be160e280"));
        assert_eq!(first.accepted.network.as_deref(), Some("eip155:84532"));
        assert_eq!(first.authorization.value, word_from_u64(2000));
        for (name, value) in [
            ("payment-signature", url_safe.clone()),
            ("x-payment", standard.clone()),
            ("x-payment", text.clone()),
            ("x-payment-proof", standard.clone()),
            ("authorization", standard.clone()),
            ("authorization", text),
            ("authorization", format!("x402 {standard}")),
            ("authorization", format!("Payment {url_safe}")),
        ] {
            assert_eq!(read_header(name, &value).unwrap().as_ref(), Some(&first), "{name}: {value}");
        }
    }

    #[test]
    fn v1_and_bare_authorizations_are_read() {
        let v1 = json!({"x402Version": 1, "scheme": "exact", "network": "base-sepolia",
                        "payload": {"signature": hex0x(&[1; 65]), "authorization": message()}});
        let payment = read_header("x-payment", &base64_standard(v1.to_string().as_bytes())).unwrap().unwrap();
        assert_eq!((payment.accepted.version, payment.accepted.network.as_deref()), (Some(1), Some("base-sepolia")));

        let mut whole = message();
        whole["signature"] = json!(hex0x(&[1; 65]));
        let mut nested = message();
        nested["signature"] = json!({"v": 1, "r": hex0x(&[1; 32]), "s": hex0x(&[1; 32])});
        let mut flat = message();
        for (name, value) in [("v", json!(1)), ("r", json!(hex0x(&[1; 32]))), ("s", json!(hex0x(&[1; 32])))] {
            flat[name] = value;
        }
        for bare in [whole, nested, flat] {
            let payment = read_header("x-payment", &bare.to_string()).unwrap().unwrap();
            assert_eq!(payment.authorization.signature, [1; 65]);
            assert_eq!(payment.accepted, Accepted::default());
        }
    }

    #[test]
    fn bearer_tokens_are_ignored_and_header_precedence_holds() {
        assert_eq!(read_header("authorization", "Bearer agent_00"), Ok(None));
        assert_eq!(payment(&HeaderMap::new()), Ok(None));
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "garbage".parse().unwrap());
        headers.insert("payment-signature", v2().to_string().parse().unwrap());
        assert!(payment(&headers).unwrap().is_some());
    }

    #[test]
    fn malformed_payments_are_errors_and_never_panic() {
        let with = |pointer: &str, value: Value| {
            let mut payment = v2();
            *payment.pointer_mut(pointer).unwrap() = value;
            payment.to_string()
        };
        let nested = "[".repeat(5000);
        for text in [
            "{}".to_owned(),
            "garbage!".to_owned(),
            "{".to_owned(),
            "{\"payload\": null}".to_owned(),
            format!("{{\"extensions\": {nested}"),
            with("/payload/authorization/value", json!(2000)),
            with("/payload/authorization/value", json!("0x7d0")),
            with("/payload/authorization/value", json!("-1")),
            with("/payload/authorization/value", json!("1e3")),
            with("/payload/authorization/value", json!("9".repeat(80))),
            with("/payload/authorization/nonce", json!("0x1234")),
            with("/payload/authorization/from", json!("0x12")),
            with("/payload/signature", json!("0xzz")),
            with("/payload/signature", json!(format!("0x{}", "00".repeat(4000)))),
            with("/payload", json!([])),
            with("/x402Version", json!("2")),
            with("/extensions/payment-identifier/info/id", json!("fifteen_letters")),
            with("/extensions/payment-identifier/info/id", json!("a name with spaces")),
            with("/extensions/payment-identifier/info/id", json!("1".repeat(129))),
            "A".repeat(20_000),
        ] {
            assert!(read_header("payment-signature", &text).is_err(), "{}", &text[..text.len().min(120)]);
        }
    }
}
