//! E-mail addresses: which ones are accepted, and their one written form.

use base::contact::is_email;
use serde::{Deserialize, Serialize};
use tools::safety::scripts;

/// Maximum length of an address in bytes (RFC 5321, 4.5.3.1.3: a path has 256 with its angle brackets).
pub const MAX_ADDRESS_BYTES: usize = 254;

/// An e-mail address that is safe in headers. ASCII; the domain is lower case (IDN in punycode, mixed-script labels refused).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(String);

impl Address {
    /// Reads an address as a caller wrote it. The error is a sentence part for the caller.
    ///
    /// A domain in another script is accepted in Unicode or punycode. Refused are labels that mix scripts, labels that look
    /// like Latin ones but are not, and letters in no common use (Unicode TR 39, 5.2 "highly restrictive", and the rule of
    /// browsers for labels).
    pub fn parse(text: &str) -> Result<Address, &'static str> {
        let (local, domain) = text.rsplit_once('@').ok_or("an e-mail address has an @")?;
        if !local.is_ascii() {
            return Err("the part before the @ must be ASCII");
        }
        // The parser of hosts also reads percent-encoding, which a mail domain does not have.
        if domain.contains(|letter: char| letter == '%' || letter.is_whitespace() || letter.is_control()) {
            return Err("the domain is not valid");
        }
        let Ok(url::Host::Domain(domain)) = url::Host::parse(domain) else { return Err("the domain is not valid") };
        if domain.split('.').any(|label| label.starts_with("xn--")) {
            let (shown, valid) = idna::domain_to_unicode(&domain);
            if valid.is_err() {
                return Err("the domain is not valid");
            }
            let top_is_latin = shown.rsplit('.').next().is_some_and(str::is_ascii);
            if shown.split('.').any(|label| may_deceive(label, top_is_latin)) {
                return Err("the domain mixes letters of different scripts or imitates another");
            }
        }
        let address = format!("{local}@{domain}");
        if address.len() > MAX_ADDRESS_BYTES || !is_email(&address) {
            return Err("not a valid e-mail address");
        }
        Ok(Address(address))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part after the `@`, lower case.
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }

    /// The part before the `@`, as it was written.
    pub fn local(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(local, _)| local)
    }

    /// For lookups: the whole address in lower case.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

/// Whether a reader may take a label for a different one.
fn may_deceive(label: &str, top_is_latin: bool) -> bool {
    scripts::mixes(label)
        || label.chars().any(scripts::is_odd_latin)
        || (top_is_latin && scripts::imitates_latin(label))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_form_for_each_accepted_address() {
        for (written, read) in [
            ("a@b.co", "a@b.co"),
            ("First.Last+tag@Mail.EXAMPLE.com", "First.Last+tag@mail.example.com"),
            ("o'neill@example.org", "o'neill@example.org"),
            ("a@bücher.example", "a@xn--bcher-kva.example"),
            ("a@BÜCHER.example", "a@xn--bcher-kva.example"),
            ("a@xn--bcher-kva.example", "a@xn--bcher-kva.example"),
            ("a@почта.рф", "a@xn--80a1acny.xn--p1ai"),
            ("a@москва.com", "a@xn--80adxhks.com"),
            ("a@日本語かな.jp", "a@xn--u8j2c547sncbk91h.jp"),
            ("a@한국.kr", "a@xn--3e0b707e.kr"),
            ("a@ｅｘａｍｐｌｅ.com", "a@example.com"),
            ("a@ኢትዮጵያ.com", "a@xn--m0d3gwjla96a.com"),
            ("a@azərbaycan.com", "a@xn--azrbaycan-h4d.com"),
        ] {
            assert_eq!(Address::parse(written).map(|address| address.0), Ok(read.to_owned()), "{written}");
        }
        let address = Address::parse("Jo.E@Example.com").unwrap();
        assert_eq!((address.local(), address.domain()), ("Jo.E", "example.com"));
        assert_eq!(address.folded(), "jo.e@example.com");
        assert_eq!(serde_json::to_string(&address).unwrap(), "\"Jo.E@example.com\"");
    }

    #[test]
    fn unsafe_and_deceiving_addresses_are_refused() {
        for bad in [
            "",
            "a",
            "@b.co",
            "a@",
            "a@b",
            "a b@c.de",
            " a@b.co",
            "a@b.co ",
            "a@b.co\r\nBcc: x@y.zz",
            "a\0@b.co",
            "a@b.co\0",
            "\"a\"@b.co",
            "a@b@c.co",
            "a@b.co,c@d.ef",
            "<a@b.co>",
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "a@0x7f.1",
            "a@ex%61mple.com",
            "ä@example.com",
            "a@exa\u{202e}mple.com",
            // A Cyrillic а in Latin labels, also in punycode; then labels of look-alikes only.
            "a@pаypal.com",
            "a@xn--pypal-4ve.com",
            "a@аррӏе.com",
            "a@xn--80ak6aa92e.com",
            "a@gооgle.com",
            "a@ɡoogle.com",
            "a@ꓐꓑꓓ.com",
            "a@αpple.com",
            "a@xn--.com",
            "a@xn--zzzzzzzz-.com",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Address::parse(&format!("{}@example.com", "a".repeat(65))).is_err());
        assert!(Address::parse(&format!("a@{}com", "abcdefgh.".repeat(30))).is_err());
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_plain_and_stable(text in "\\PC{0,8}[a-z.\r\n\"<>]{0,6}@\\PC{0,12}(\\.com|\\.рф|)") {
            if let Ok(address) = Address::parse(&text) {
                let safe = |byte: u8| byte.is_ascii_graphic() && !b"<>()[],;:\"\\".contains(&byte);
                prop_assert!(address.as_str().bytes().all(safe), "{address:?}");
                prop_assert_eq!(Address::parse(address.as_str()), Ok(address.clone()));
            }
        }
    }
}
