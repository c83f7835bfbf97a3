//! Base64 as it comes and as we send it.

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

/// URL-safe base64 without padding, for ids, keys and signatures.
pub fn base64_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// With everything escaped but what RFC 3986 leaves to names: good for a path segment, and for a header's `filename*`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let bytes = [0xfb, 0xff, 0xfe, 0x01];
        for text in ["+//+AQ==", "+//+AQ", "-__-AQ==", "-__-AQ"] {
            assert_eq!(base64_any(text).as_deref(), Some(&bytes[..]), "{text}");
        }
        assert_eq!(base64_any("not base64!"), None);
        assert_eq!(base64_standard(&bytes), "+//+AQ==");
        assert_eq!(base64_url(&bytes), "-__-AQ");
    }
}
