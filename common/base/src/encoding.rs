//! Base64 and percent encoding.

use std::fmt::Write;

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE_NO_PAD};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD_LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE_LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Decodes standard or URL-safe base64, padded or not: clients send all four.
pub fn base64_any(text: &str) -> Option<Vec<u8>> {
    STANDARD_LENIENT.decode(text).or_else(|_| URL_SAFE_LENIENT.decode(text)).ok()
}

/// Standard base64 with padding, as x402 headers carry it.
pub fn base64_standard(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Appends standard base64 to a text.
pub fn push_base64(bytes: &[u8], text: &mut String) {
    STANDARD.encode_string(bytes, text);
}

/// URL-safe base64 without padding, for ids, keys and signatures.
pub fn base64_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Percent-encodes everything but the unreserved characters of RFC 3986. Fit for a path segment and for a header's
/// `filename*`.
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Decodes percent escapes. Bytes that are not UTF-8 become `\u{fffd}`; a `%` that begins no escape stays.
pub fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|digits| *byte == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let escaped = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_escapes_are_decoded_and_encoded() {
        for (text, plain) in
            [("%C3%9Cber%2f", "Über/"), ("100%", "100%"), ("%+1%zz%4", "%+1%zz%4"), ("%ff", "\u{fffd}")]
        {
            assert_eq!(percent_decoded(text), plain, "{text}");
        }
        assert_eq!(percent_decoded(&percent_encoded("ä b/%1")), "ä b/%1");
    }

    #[test]
    fn every_base64_form_is_read() {
        let bytes = [0xfb, 0xff, 0xfe, 0x01];
        for text in ["+//+AQ==", "+//+AQ", "-__-AQ==", "-__-AQ"] {
            assert_eq!(base64_any(text).as_deref(), Some(&bytes[..]), "{text}");
        }
        assert_eq!(base64_any("not base64!"), None);
        assert_eq!(base64_standard(&bytes), "+//+AQ==");
        assert_eq!(base64_url(&bytes), "-__-AQ");
    }
}
