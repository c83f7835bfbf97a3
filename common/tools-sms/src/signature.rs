//! The signature of Twilio's requests, `X-Twilio-Signature`.
//! <https://www.twilio.com/docs/usage/security#validating-requests>
//!
//! Base64 of the HMAC-SHA1, under the account's auth token, of the URL as Twilio called it (with its query), and of the
//! form's fields, sorted: name and value without anything between. It has no time in it: whoever applies a request must
//! recognise a repeated one by its message.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use url::{Url, form_urlencoded};

/// Whether Twilio signed this request. `url`: as Twilio called it; `body`: the form as it was posted, empty for none.
pub fn is_signed(auth_token: &str, url: &str, body: &[u8], signature: &str) -> bool {
    // Anybody can sign with an empty key.
    if auth_token.is_empty() {
        return false;
    }
    let Ok(tag) = STANDARD.decode(signature.trim()) else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, auth_token.as_bytes());
    // Of a repeated name each value counts once.
    let fields: BTreeSet<_> = form_urlencoded::parse(body).collect();
    let fields: String = fields.into_iter().flat_map(|(name, value)| [name, value]).collect();
    // `verify` compares in constant time.
    let fits = |url: &str| hmac::verify(&key, format!("{url}{fields}").as_bytes(), &tag).is_ok();
    fits(url) || with_other_port(url).is_some_and(|url| fits(&url))
}

/// The decoded fields of a form; of a repeated name the first.
pub fn form(body: &[u8]) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(body) {
        fields.entry(name.into_owned()).or_insert_with(|| value.into_owned());
    }
    fields
}

/// The URL without its port, or with the scheme's usual one if it has none: Twilio signs either. The rest is not touched.
fn with_other_port(url: &str) -> Option<String> {
    let port = Url::parse(url).ok()?.port_or_known_default()?;
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.strip_suffix(&format!(":{port}"));
    Some(match host {
        Some(host) => format!("{scheme}://{host}{path}"),
        None => format!("{scheme}://{authority}:{port}{path}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Token, URL, fields and signatures are those of the tests of Twilio's own libraries (twilio-python,
    /// `tests/unit/test_request_validator.py`).
    const TOKEN: &str = "12345";
    const URL: &str = "https://mycompany.com/myapp.php?foo=1&bar=2";
    const FIELDS: &[u8] =
        b"CallSid=CA1234567890ABCDE&Digits=1234&From=%2B14158675309&To=%2B18005551212&Caller=%2B14158675309";
    const SIGNATURE: &str = "RSOYDt4T1cUTdK1PDd93/VVr8B8=";

    #[test]
    fn twilios_own_examples_are_signed() {
        let http = URL.replace("https", "http");
        let at = |url: &str, port: &str| url.replace(".com", &format!(".com:{port}"));
        let repeated = b"Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234".as_slice();
        for (url, body, signature) in [
            (URL.to_owned(), FIELDS, SIGNATURE),
            (URL.to_owned(), repeated, "IK+Dwps556ElfBT0I3Rgjkr1wJU="),
            // Signed without the port, and with it.
            (at(URL, "1234"), FIELDS, SIGNATURE),
            (at(&http, "1234"), FIELDS, "Zmvh+3yNM1Phv2jhDCwEM3q5ebU="),
            (URL.to_owned(), FIELDS, "kvajT1Ptam85bY51eRf/AJRuM3w="),
            (http, FIELDS, "0ZXoZLH/DfblKGATFgpif+LLRf4="),
        ] {
            assert!(is_signed(TOKEN, &url, body, signature), "{url} {signature}");
        }
    }

    #[test]
    fn the_order_of_the_fields_does_not_matter_and_everything_else_does() {
        let text = std::str::from_utf8(FIELDS).unwrap();
        let backwards: Vec<&str> = text.split('&').rev().collect();
        assert!(is_signed(TOKEN, URL, backwards.join("&").as_bytes(), SIGNATURE));
        let changed = text.replace("1234&", "1235&");
        let more = format!("{text}&Body=STOP");
        let other = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        for (token, url, body, signature) in [
            ("12346", URL, text, SIGNATURE),
            ("", URL, text, SIGNATURE),
            (TOKEN, "https://mycompany.com/myapp.php?foo=1&bar=3", text, SIGNATURE),
            (TOKEN, "https://mycompany.com.evil.test/myapp.php?foo=1&bar=2", text, SIGNATURE),
            (TOKEN, "", text, SIGNATURE),
            (TOKEN, URL, &changed, SIGNATURE),
            (TOKEN, URL, &more, SIGNATURE),
            (TOKEN, URL, "", SIGNATURE),
            (TOKEN, URL, text, other),
            (TOKEN, URL, text, &SIGNATURE[..24]),
            (TOKEN, URL, text, ""),
            (TOKEN, URL, text, "not base64"),
        ] {
            assert!(!is_signed(token, url, body.as_bytes(), signature), "{token} {url} {body} {signature}");
        }
    }

    #[test]
    fn fields_are_decoded() {
        let form = form(b"Body=Gr%C3%BC%C3%9Fe+%26+more&From=%2B14155550100&From=second&Empty=");
        assert_eq!(form["Body"], "Grüße & more");
        assert_eq!((form["From"].as_str(), form["Empty"].as_str()), ("+14155550100", ""));
    }
}
