//! E-mail addresses: their form, and whether they are on the built-in lists. No network access.

use base::contact;
use base::digest::sha256;
use url::Host;

/// A valid e-mail address (RFC 5321 §4.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailAddress {
    /// As given: only the mail host knows whether case matters.
    pub local: String,
    /// Lower case, in ASCII: `bücher.example` is `xn--bcher-kva.example`.
    pub domain: String,
}

/// Local parts that name a role, not a person.
const ROLES: [&str; 45] = [
    "abuse",
    "accounting",
    "accounts",
    "admin",
    "administrator",
    "all",
    "billing",
    "careers",
    "compliance",
    "contact",
    "customerservice",
    "enquiries",
    "everyone",
    "feedback",
    "finance",
    "hello",
    "help",
    "helpdesk",
    "hostmaster",
    "hr",
    "info",
    "inquiries",
    "invoices",
    "it",
    "jobs",
    "legal",
    "mail",
    "mailer-daemon",
    "marketing",
    "media",
    "no-reply",
    "noreply",
    "office",
    "orders",
    "postmaster",
    "press",
    "privacy",
    "recruiting",
    "sales",
    "security",
    "service",
    "support",
    "team",
    "webmaster",
    "whois",
];

/// Providers of free mailboxes.
const FREE: [&str; 52] = [
    "126.com",
    "139.com",
    "163.com",
    "aim.com",
    "aol.com",
    "bk.ru",
    "email.com",
    "fastmail.com",
    "free.fr",
    "freenet.de",
    "gmail.com",
    "gmx.at",
    "gmx.ch",
    "gmx.com",
    "gmx.de",
    "gmx.net",
    "googlemail.com",
    "hey.com",
    "hotmail.co.uk",
    "hotmail.com",
    "hotmail.de",
    "hotmail.fr",
    "icloud.com",
    "inbox.ru",
    "laposte.net",
    "libero.it",
    "list.ru",
    "live.com",
    "mac.com",
    "mail.com",
    "mail.ru",
    "me.com",
    "msn.com",
    "naver.com",
    "outlook.com",
    "outlook.de",
    "outlook.fr",
    "proton.me",
    "protonmail.com",
    "qq.com",
    "rediffmail.com",
    "seznam.cz",
    "t-online.de",
    "tutanota.com",
    "web.de",
    "yahoo.co.jp",
    "yahoo.co.uk",
    "yahoo.com",
    "yahoo.de",
    "yahoo.fr",
    "yandex.ru",
    "ymail.com",
];

/// Domains that are often mistyped. All are well known and long enough that a domain one letter away is a typing error, not
/// another company.
const OFTEN_MEANT: [&str; 12] = [
    "gmail.com",
    "googlemail.com",
    "hotmail.com",
    "icloud.com",
    "outlook.com",
    "protonmail.com",
    "rediffmail.com",
    "t-online.de",
    "tutanota.com",
    "yahoo.co.uk",
    "yahoo.com",
    "fastmail.com",
];

/// The first five bytes of the SHA-256 of each disposable domain, sorted (see `assets/disposable/make.py`).
static DISPOSABLE: &[u8] = include_bytes!("../../assets/disposable/domains.bin");
const MARK: usize = 5;

impl MailAddress {
    /// Parses an address. Quoted local parts are accepted. Address literals (`user@[192.0.2.1]`) are not: no public mail
    /// goes there.
    pub fn parse(text: &str) -> Option<MailAddress> {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@')?;
        if !is_local(local) || domain.contains('%') {
            return None;
        }
        let Ok(Host::Domain(domain)) = Host::parse(domain) else { return None };
        let domain = domain.to_ascii_lowercase();
        // No top-level domain is numeric (RFC 3696 §2).
        let top = domain.rsplit('.').next().unwrap_or_default();
        let is_number = top.bytes().all(|byte| byte.is_ascii_digit());
        let fits = contact::is_domain(&domain) && !is_number && local.len() + domain.len() < 254;
        fits.then(|| MailAddress { local: local.to_owned(), domain })
    }

    /// The address as sent in SMTP and used in storage keys.
    pub fn ascii(&self) -> String {
        format!("{}@{}", self.local, self.domain)
    }

    /// Whether the mail host must support SMTPUTF8.
    pub fn needs_utf8(&self) -> bool {
        !self.local.is_ascii()
    }

    /// Whether the address is a role's: `info`, `sales+eu`.
    pub fn is_role(&self) -> bool {
        let word = self.local.split('+').next().unwrap_or_default().to_ascii_lowercase();
        ROLES.contains(&word.as_str())
    }

    pub fn is_free(&self) -> bool {
        FREE.contains(&self.domain.as_str())
    }

    /// Whether its domain, or a parent of it, is on the list of disposable domains.
    pub fn is_disposable(&self) -> bool {
        let mut name = self.domain.as_str();
        loop {
            if is_listed(name) {
                return true;
            }
            match name.split_once('.') {
                Some((_, parent)) if parent.contains('.') => name = parent,
                _ => return false,
            }
        }
    }

    /// The address that was probably meant, if the domain is one typing error away from a well-known one.
    pub fn suggestion(&self) -> Option<String> {
        if FREE.contains(&self.domain.as_str()) {
            return None;
        }
        let meant = OFTEN_MEANT.iter().find(|known| strsim::osa_distance(known, &self.domain) == 1)?;
        Some(format!("{}@{meant}", self.local))
    }
}

/// A dot-atom (with letters of every script, RFC 6531), or printable ASCII in quotes.
fn is_local(local: &str) -> bool {
    if !(1..=64).contains(&local.len()) {
        return false;
    }
    if let Some(quoted) = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        let is_text = |byte: u8| matches!(byte, 0x20..=0x7e) && !matches!(byte, b'"' | b'\\' | b'<' | b'>');
        return !quoted.is_empty() && quoted.bytes().all(is_text);
    }
    let is_atom = |letter: char| {
        letter.is_ascii_alphanumeric()
            || "!#$%&'*+-/=?^_`{|}~".contains(letter)
            || !letter.is_ascii() && { letter.is_alphanumeric() && !base::untrusted_text::is_invisible(letter) }
    };
    local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_listed(domain: &str) -> bool {
    let hash = sha256(domain.as_bytes());
    let count = DISPOSABLE.len() / MARK;
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from.midpoint(to);
        match DISPOSABLE[middle * MARK..][..MARK].cmp(&hash[..MARK]) {
            std::cmp::Ordering::Less => from = middle + 1,
            std::cmp::Ordering::Greater => to = middle,
            std::cmp::Ordering::Equal => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<String> {
        MailAddress::parse(text).map(|address| address.ascii())
    }

    #[test]
    fn valid_and_invalid_addresses_are_told_apart() {
        for (text, ascii) in [
            ("a@b.co", "a@b.co"),
            ("First.Last+tag@Mail.Example.ORG", "First.Last+tag@mail.example.org"),
            ("o'neill!#$%&*=?^_`{|}~@example.org", "o'neill!#$%&*=?^_`{|}~@example.org"),
            ("jo@b\u{fc}cher.example", "jo@xn--bcher-kva.example"),
            ("jo@\u{4f8b}\u{5b50}.\u{6d4b}\u{8bd5}", "jo@xn--fsqu00a.xn--0zwm56d"),
            ("\u{7528}\u{6237}@example.org", "\u{7528}\u{6237}@example.org"),
            ("\"two words\"@example.org", "\"two words\"@example.org"),
            ("  padded@example.org ", "padded@example.org"),
        ] {
            assert_eq!(parse(text).as_deref(), Some(ascii), "{text}");
        }
        let long_local = format!("{}@example.org", "a".repeat(65));
        let long = format!("a@{}.org", vec!["a".repeat(60); 5].join("."));
        let wrong = [
            "",
            "@",
            "a",
            "a@",
            "@b.co",
            "a@b",
            "a@.co",
            "a@b..co",
            "a@-b.co",
            "a@b-.co",
            ".a@b.co",
            "a.@b.co",
            "a..b@b.co",
            "a b@c.de",
            "a@b.co\r\nRCPT TO:<x@y.zz>",
            "a\r\n@b.co",
            "\"a\"b@c.de",
            "\"a\\\"b\"@c.de",
            "a<b@c.de",
            "a@[192.0.2.1]",
            "a@192.0.2.1",
            "a@0x7f.1",
            "a@b.123",
            "a@b.co,c@d.ef",
            "a@b%2eco",
            "a\u{200b}b@c.de",
            "a@b c.de",
            "\"\"@c.de",
            long_local.as_str(),
            long.as_str(),
        ];
        for text in wrong {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn lists_know_role_free_and_disposable_addresses() {
        let address = |text: &str| MailAddress::parse(text).unwrap();
        assert!(address("Info@example.org").is_role() && address("sales+eu@example.org").is_role());
        assert!(!address("ines@example.org").is_role());
        assert!(address("ada@gmail.com").is_free() && !address("ada@example.org").is_free());
        for disposable in ["x@mailinator.com", "x@guerrillamail.com", "x@deep.below.guerrillamail.com", "x@33mail.com"]
        {
            assert!(address(disposable).is_disposable(), "{disposable}");
        }
        for lasting in ["x@gmail.com", "x@example.org", "x@outlook.com", "x@mit.edu", "x@proton.me", "x@gov.uk"] {
            assert!(!address(lasting).is_disposable(), "{lasting}");
        }
        assert!(DISPOSABLE.len() > 50_000 * MARK && DISPOSABLE.len().is_multiple_of(MARK));
        assert!(DISPOSABLE.chunks(MARK).is_sorted(), "or it could not be searched");
        for list in [&ROLES[..], &FREE[..]] {
            assert!(list.is_sorted(), "so that nothing is in it twice");
        }
    }

    #[test]
    fn typing_errors_are_found_and_other_domains_are_not() {
        for (typed, meant) in [
            ("ada@gmial.com", "ada@gmail.com"),
            ("ada@gmai.com", "ada@gmail.com"),
            ("ada@gmail.co", "ada@gmail.com"),
            ("ada@hotmial.com", "ada@hotmail.com"),
            ("ada@outlok.com", "ada@outlook.com"),
            ("ada@yahooo.com", "ada@yahoo.com"),
        ] {
            assert_eq!(MailAddress::parse(typed).unwrap().suggestion().as_deref(), Some(meant), "{typed}");
        }
        for right in
            ["a@gmail.com", "a@ymail.com", "a@email.com", "a@gm.com", "a@line.com", "a@example.org", "a@mail.com"]
        {
            assert_eq!(MailAddress::parse(right).unwrap().suggestion(), None, "{right}");
        }
    }
}
