//! DKIM signatures (RFC 6376) with Ed25519 (RFC 8463), canonicalisation relaxed/relaxed.
//!
//! The key of a domain is derived from the service secret, so there is nothing to store: every instance signs alike, and the
//! DNS record can be shown at any time. It signs the mails that a relay sends; SES signs with keys of its own. Receivers that
//! do not know Ed25519 yet ignore the signature.

use base::digest::{hmac, sha256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use platform::store::StoreError;
use ring::signature::{Ed25519KeyPair, KeyPair};

/// The name under which the record is looked up: `agora._domainkey.<domain>`.
pub const SELECTOR: &str = "agora";

/// Headers that are signed, if the mail has them.
const SIGNED: [&str; 14] = [
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "reply-to",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "auto-submitted",
];
/// Headers that are signed once more than the mail has them, so that nobody can add another (RFC 6376, 8.15).
const SEALED: [&str; 4] = ["from", "to", "subject", "date"];

/// Signs the mails of one domain.
pub struct Signer {
    domain: String,
    /// `None` if ring refuses the seed, which it does not do for 32 bytes.
    key: Option<Ed25519KeyPair>,
}

impl Signer {
    /// Ed25519 key derived from `secret` and the domain; selector `agora`.
    pub fn derived(secret: &[u8], domain: &str) -> Signer {
        let domain = domain.to_ascii_lowercase();
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        let seed = hmac(&secret, format!("dkim ed25519 {SELECTOR} {domain}").as_bytes());
        Signer { domain, key: Ed25519KeyPair::from_seed_unchecked(&seed).ok() }
    }

    /// The TXT record of `agora._domainkey.<domain>`: `v=DKIM1; k=ed25519; p=…`.
    pub fn dns_record(&self) -> String {
        let public = self.key.as_ref().map(|key| STANDARD.encode(key.public_key())).unwrap_or_default();
        format!("v=DKIM1; k=ed25519; p={public}")
    }

    /// The message with a `DKIM-Signature` in front. All line ends become CRLF, as on the way through SMTP.
    /// Fails for a mail without a `From`, which must not be signed (RFC 6376, 5.4).
    pub fn sign(&self, raw: &[u8]) -> Result<Vec<u8>, StoreError> {
        let key = self.key.as_ref().ok_or_else(|| StoreError::new("the DKIM key could not be derived"))?;
        let raw = with_crlf(raw);
        let (headers, body) = split(&raw);
        let fields = fields(headers);
        let mut names = Vec::new();
        for name in SIGNED {
            let times = fields.iter().filter(|field| field.name() == name).count();
            let seal = usize::from(SEALED.contains(&name));
            names.extend(std::iter::repeat_n(name, times + seal));
        }
        // The header that names the agent (`X-<service>-Agent`).
        let agents = fields.iter().map(Field::name).find(|name| name.starts_with("x-") && name.ends_with("-agent"));
        names.extend(agents.as_deref());
        if !fields.iter().any(|field| field.name() == "from") {
            return Err(StoreError::new("a mail without From cannot be signed"));
        }
        let mut listed = String::new();
        for (index, name) in names.iter().enumerate() {
            listed.push_str(match index {
                0 => "",
                _ if index % 5 == 0 => ":\r\n\t ",
                _ => ":",
            });
            listed.push_str(name);
        }
        let unsigned = format!(
            "v=1; a=ed25519-sha256; c=relaxed/relaxed; s={SELECTOR};\r\n\td={};\r\n\th={listed};\r\n\tbh={};\r\n\tb=",
            self.domain,
            STANDARD.encode(sha256(&relaxed_body(body))),
        );
        let signature = STANDARD.encode(key.sign(&sha256(&signed_headers(&fields, &names, &unsigned))));
        let mut signed = Vec::with_capacity(raw.len() + 1000);
        signed.extend_from_slice(b"DKIM-Signature: ");
        signed.extend_from_slice(unsigned.as_bytes());
        for (index, line) in signature.as_bytes().chunks(70).enumerate() {
            if index > 0 {
                signed.extend_from_slice(b"\r\n\t ");
            }
            signed.extend_from_slice(line);
        }
        signed.extend_from_slice(b"\r\n");
        signed.extend_from_slice(&raw);
        Ok(signed)
    }
}

/// The mail as SMTP transports it: CRLF at the end of every line, and nowhere else CR or LF.
fn with_crlf(raw: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(raw.len() + raw.len() / 40 + 2);
    let mut before = 0;
    for &byte in raw {
        match byte {
            b'\n' if before == b'\r' => {}
            b'\r' | b'\n' => lines.extend_from_slice(b"\r\n"),
            byte => lines.push(byte),
        }
        before = byte;
    }
    if !lines.ends_with(b"\r\n") {
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

/// Headers, with the CRLF of the last one, and body.
fn split(raw: &[u8]) -> (&[u8], &[u8]) {
    match raw.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
        Some(end) => (&raw[..end + 2], &raw[end + 4..]),
        None => (raw, &[]),
    }
}

/// A header field, with its folding and without its last CRLF.
struct Field<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

impl Field<'_> {
    fn name(&self) -> String {
        String::from_utf8_lossy(self.name).trim().to_ascii_lowercase()
    }
}

fn fields(headers: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    let mut begin = 0;
    let mut at = 0;
    while at < headers.len() {
        let end =
            headers[at..].windows(2).position(|bytes| bytes == b"\r\n").map_or(headers.len(), |length| at + length);
        at = (end + 2).min(headers.len());
        if headers.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            continue;
        }
        let field = &headers[begin..end];
        if let Some(colon) = field.iter().position(|&byte| byte == b':') {
            fields.push(Field { name: &field[..colon], value: &field[colon + 1..] });
        }
        begin = at;
    }
    fields
}

/// What is signed: the named headers, of equal ones the last first, and the signature's own with an empty `b=`
/// (RFC 6376, 3.7 and 5.4.2).
fn signed_headers(fields: &[Field<'_>], names: &[&str], unsigned: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let mut used = vec![false; fields.len()];
    for name in names {
        let field = fields.iter().enumerate().rev().find(|(index, field)| !used[*index] && field.name() == *name);
        // A name without a header stands for its absence and adds nothing.
        if let Some((index, field)) = field {
            used[index] = true;
            relaxed_header(name, field.value, &mut text);
            text.extend_from_slice(b"\r\n");
        }
    }
    relaxed_header("dkim-signature", unsigned.as_bytes(), &mut text);
    text
}

/// RFC 6376, 3.4.2: unfolded, runs of white space become one space, none at the ends.
fn relaxed_header(name: &str, value: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(name.as_bytes());
    text.push(b':');
    let mut words = value.split(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).filter(|word| !word.is_empty());
    if let Some(first) = words.next() {
        text.extend_from_slice(first);
    }
    for word in words {
        text.push(b' ');
        text.extend_from_slice(word);
    }
}

/// RFC 6376, 3.4.4: runs of white space become one space, none at the end of lines; no empty lines at the end.
fn relaxed_body(body: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(body.len() + 2);
    // Where the text ends if only empty lines follow.
    let mut end = 0;
    let mut rest = body;
    while !rest.is_empty() {
        let length = rest.windows(2).position(|bytes| bytes == b"\r\n").unwrap_or(rest.len());
        let (line, after) = rest.split_at(length);
        let mut gap = false;
        let begin = text.len();
        for &byte in line {
            match byte {
                b' ' | b'\t' => gap = true,
                _ => {
                    if gap {
                        text.push(b' ');
                    }
                    gap = false;
                    text.push(byte);
                }
            }
        }
        let is_empty = text.len() == begin;
        text.extend_from_slice(b"\r\n");
        if !is_empty {
            end = text.len();
        }
        rest = after.get(2..).unwrap_or_default();
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail_auth::common::parse::TxtRecordParser;
    use mail_auth::common::verify::{DomainKey, VerifySignature};
    use mail_auth::{AuthenticatedMessage, DkimResult, MessageAuthenticator, Parameters, ResolverCache, Txt};
    use proptest::prelude::*;
    use std::borrow::Borrow;
    use std::hash::Hash;
    use std::sync::Arc;

    #[test]
    fn the_examples_of_rfc_6376() {
        // 3.4.5
        let (headers, body) = split(b"A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n");
        let mut text = Vec::new();
        for field in fields(headers) {
            relaxed_header(&field.name(), field.value, &mut text);
            text.extend_from_slice(b"\r\n");
        }
        assert_eq!(text, b"a:X\r\nb:Y Z\r\n");
        assert_eq!(relaxed_body(body), b" C\r\nD E\r\n");
        // 3.4.4: the hash of an empty body.
        assert_eq!(STANDARD.encode(sha256(&relaxed_body(b""))), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(relaxed_body(b"\r\n \r\n\r\n"), b"");
        assert_eq!(relaxed_body(b"no end"), b"no end\r\n");
    }

    #[test]
    fn the_example_of_rfc_8463() {
        let mail = with_crlf(
            b"From: Joe SixPack <joe@football.example.com>\nTo: Suzie Q <suzie@shopping.example.net>\n\
              Subject: Is dinner ready?\nDate: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\n\
              Message-ID: <20030712040037.46341.5F8J@football.example.com>\n\nHi.\n\n\
              We lost the game.  Are you hungry yet?\n\nJoe.\n",
        );
        let seed = STANDARD.decode("nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=").unwrap();
        let key = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        assert_eq!(STANDARD.encode(key.public_key()), "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
        let (headers, body) = split(&mail);
        let body_hash = STANDARD.encode(sha256(&relaxed_body(body)));
        assert_eq!(body_hash, "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=");
        let unsigned = format!(
            "v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n d=football.example.com; i=@football.example.com;\r\n \
             q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n subject : date : message-id : from : subject : date;\r\n \
             bh={body_hash};\r\n b="
        );
        let names = ["from", "to", "subject", "date", "message-id", "from", "subject", "date"];
        let digest = sha256(&signed_headers(&fields(headers), &names, &unsigned));
        assert_eq!(
            STANDARD.encode(key.sign(&digest)),
            "/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw=="
        );
    }

    /// Has the one record of a signer, and nothing else.
    struct Records(String, String);

    impl ResolverCache<Box<str>, Txt> for Records {
        fn get<Q>(&self, name: &Q) -> Option<Txt>
        where
            Box<str>: Borrow<Q>,
            Q: Hash + Eq + ?Sized,
        {
            let known: Box<str> = self.0.clone().into();
            (known.borrow() == name).then(|| Txt::DomainKey(Arc::new(DomainKey::parse(self.1.as_bytes()).unwrap())))
        }

        fn remove<Q>(&self, _: &Q) -> Option<Txt>
        where
            Box<str>: Borrow<Q>,
            Q: Hash + Eq + ?Sized,
        {
            None
        }

        fn insert(&self, _: Box<str>, _: Txt, _: std::time::Instant) {}
    }

    /// What mail-auth says of a mail, by the record of `signer`.
    fn verdict(signer: &Signer, mail: &[u8]) -> Result<String, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let message = AuthenticatedMessage::parse(mail).ok_or("not a mail")?;
            let records = Records(format!("{SELECTOR}._domainkey.{}.", signer.domain), signer.dns_record());
            let verifier = MessageAuthenticator::new_cloudflare().unwrap();
            let results = verifier.verify_dkim(Parameters::new(&message).with_txt_cache(&records)).await;
            match &results[..] {
                [only] if *only.result() == DkimResult::Pass => Ok(only.signature().unwrap().domain().to_owned()),
                other => Err(format!("{other:?}")),
            }
        })
    }

    #[test]
    fn another_implementation_accepts_it_and_notices_changes() {
        let signer = Signer::derived(b"a secret", "Mail.Example.com");
        let mail = b"From: A <a@mail.example.com>\nTo: b@example.org\nSubject: =?utf-8?Q?=C3=A4?=\n  folded \n\tsubject\n\
            X-Other: not signed\nDate: Mon, 23 Nov 2026 15:00:00 +0000\nMessage-ID: <1@x>\n\n one  two\t\n\n.\nlast\n\n\n";
        let signed = signer.sign(mail).unwrap();
        assert_eq!(verdict(&signer, &signed), Ok("mail.example.com".to_owned()));
        let text = String::from_utf8(signed).unwrap();
        assert!(text.lines().all(|line| line.len() < 100), "{text}");
        let changed = |from: &str, to: &str| verdict(&signer, text.replacen(from, to, 1).as_bytes());
        assert!(changed("X-Other: not", "X-Other: also not").is_ok());
        for (from, to) in [
            ("last", "lost"),
            ("b@example.org", "c@example.org"),
            ("X-Other:", "Subject: another\r\nX-Other:"),
            ("X-Other:", "From: x@y.zz\r\nX-Other:"),
            ("Date: Mon, 23", "Date: Mon, 24"),
        ] {
            assert!(changed(from, to).is_err(), "{from} -> {to}");
        }
        let other = Signer::derived(b"another secret", "mail.example.com");
        assert!(verdict(&other, text.as_bytes()).is_err());
        assert_ne!(signer.dns_record(), Signer::derived(b"a secret", "example.com").dns_record());
        assert_eq!(signer.dns_record(), Signer::derived(b"a secret", "mail.example.com").dns_record());
        assert!(signer.sign(b"Subject: no sender\r\n\r\nx").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_body_and_subject_verify(subject in "[ -~]{0,60}", body in "[ a-z\t\r\n.\u{e4}]{0,80}") {
            let signer = Signer::derived(b"s", "example.com");
            // Implementations differ about white space in the last lines, which our mails never have.
            let mail = format!("From: a@example.com\r\nSubject: {subject}\r\n\r\n{body}.\r\n\r\n");
            let signed = signer.sign(mail.as_bytes()).unwrap();
            prop_assert_eq!(verdict(&signer, &signed), Ok("example.com".to_owned()));
        }
    }
}
