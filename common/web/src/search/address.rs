//! Page addresses: normal form, comparison, and whether an address may be shown to others.

use std::borrow::Cow;

use base::encoding::percent_decoded;
use url::Url;

const MAX_CHARS: usize = 2048;

/// Query parameters that only track visitors.
const TRACKING: [&str; 12] = [
    "fbclid", "gclid", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "igshid", "mc_cid", "mc_eid", "ref_src",
    "srsltid",
];

/// Names of parameters whose value grants access or identifies a person. Compared in lower case and without separators
/// (`access_token`, `X-Amz-Signature`).
const SECRETS: [&str; 18] = [
    "auth",
    "authorization",
    "cfid",
    "code",
    "credential",
    "hash",
    "invite",
    "jwt",
    "magic",
    "mail",
    "nonce",
    "otp",
    "passwd",
    "pwd",
    "reset",
    "sid",
    "sig",
    "ticket",
];
/// The same for names that contain, end with or start with one of these.
const SECRET_PARTS: [&str; 6] = ["email", "password", "secret", "session", "signature", "token"];
const SECRET_ENDS: [&str; 2] = ["key", "sessid"];
const SECRET_STARTS: [&str; 3] = ["xamz", "xgoog", "xms"];

/// The address without fragment, default port and tracking parameters. `None` if it is not http or https, has a user name
/// or password, or is too long.
pub fn tidy(text: &str) -> Option<Url> {
    if text.chars().count() > MAX_CHARS {
        return None;
    }
    let mut url = Url::parse(text.trim()).ok()?;
    let web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty());
    if !web || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_fragment(None);
    if url.query().is_some() {
        let is_tracking = |name: &str| name.starts_with("utm_") || TRACKING.contains(&name);
        // Filter the raw query instead of encoding it anew: the parameters that stay must not change.
        let kept: Vec<&str> = url
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter(|pair| !is_tracking(&pair.split('=').next().unwrap_or_default().to_ascii_lowercase()))
            .collect();
        let kept = kept.join("&");
        url.set_query(Some(kept.as_str()).filter(|query| !query.is_empty()));
    }
    Some(url)
}

/// Comparison key: equal for addresses that nearly always lead to the same page. Ignores scheme, `www.`, a trailing slash
/// and the order of parameters.
pub fn same_page(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let mut pairs: Vec<&str> = url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
    format!("{host}{port}{}{query}", url.path().trim_end_matches('/'))
}

/// Whether a page that one agent had read may be found by others under this address. False if the address contains
/// something like a secret (user name and password, session, signature, UUID, long random word) or a mail address, because
/// the address alone may then give access.
pub fn is_public_knowledge(url: &Url) -> bool {
    if !url.username().is_empty() || url.password().is_some() {
        return false;
    }
    let path = percent_decoded(url.path());
    // Parameters in a path: `/page;jsessionid=1`.
    let in_path = path.split('/').flat_map(|part| part.split(';').skip(1)).filter_map(|pair| pair.split_once('='));
    let in_query =
        |(name, value): (Cow<'_, str>, Cow<'_, str>)| is_secret(&name) || is_telling(&name) || is_telling(&value);
    !in_path.into_iter().any(|(name, _)| is_secret(name))
        && !path.split('/').any(is_telling)
        && !url.query_pairs().any(in_query)
}

fn is_secret(name: &str) -> bool {
    let joined: String = name.to_lowercase().chars().filter(|letter| letter.is_alphanumeric()).collect();
    SECRETS.contains(&joined.as_str())
        || SECRET_PARTS.iter().any(|part| joined.contains(part))
        || SECRET_ENDS.iter().any(|end| joined.ends_with(end))
        || SECRET_STARTS.iter().any(|start| joined.starts_with(start))
}

/// Whether a part of an address may be a key, or somebody's mail address.
fn is_telling(part: &str) -> bool {
    let between = |letter: char| !letter.is_alphanumeric();
    has_uuid(part.as_bytes()) || is_mail(part) || part.split(between).any(is_random)
}

/// A UUID anywhere in the part: `3fa85f64-5717-4562-b3fc-2c963f66afa6`.
fn has_uuid(part: &[u8]) -> bool {
    let is_uuid = |run: &[u8]| {
        run.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    part.windows(36).any(is_uuid)
}

/// `jo@example.org`, but not `@jo@example.org` (a profile) or `react@18.2.0`.
fn is_mail(part: &str) -> bool {
    part.split([' ', ',', ';', '=', '<', '>']).any(|word| {
        word.split_once('@').is_some_and(|(name, host)| {
            let top = host.rsplit('.').next().unwrap_or_default();
            let is_host = host.contains('.') && top.len() > 1 && top.chars().all(char::is_alphabetic);
            !name.is_empty() && is_host && !host.contains('@')
        })
    })
}

/// A long word that mixes letters and digits, or cases, in a way that people do not write. Harmless ids match too, so some
/// pages are not indexed. That is better than leaking a secret.
fn is_random(word: &str) -> bool {
    let (mut digits, mut letters, mut upper, mut changes) = (0, 0, 0, 0);
    let mut before = None;
    for byte in word.bytes() {
        digits += usize::from(byte.is_ascii_digit());
        letters += usize::from(byte.is_ascii_alphabetic());
        upper += usize::from(byte.is_ascii_uppercase());
        let kind = (byte.is_ascii_digit(), byte.is_ascii_uppercase());
        changes += usize::from(before.is_some_and(|before| before != kind));
        before = Some(kind);
    }
    let long = word.len() >= 16;
    (long && digits >= 2 && letters >= 2 && changes >= 5)
        || (word.len() >= 22 && upper >= 3 && upper < letters && changes * 3 >= word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pages_have_equal_normal_forms() {
        for (text, tidy_text) in [
            ("HTTPS://Example.org:443/a?utm_source=x&b=2&fbclid=1#top", "https://example.org/a?b=2"),
            ("http://example.org?utm_campaign=x", "http://example.org/"),
            ("http://example.org/?a=%2F&c", "http://example.org/?a=%2F&c"),
        ] {
            assert_eq!(tidy(text).unwrap().as_str(), tidy_text);
        }
        for text in
            ["javascript:alert(1)", "ftp://a.org/", "data:text/html,x", "http://u:p@a.org/", "/x", "mailto:a@b.c", ""]
        {
            assert_eq!(tidy(text), None, "{text}");
        }
        let same = |one: &str, other: &str| same_page(&tidy(one).unwrap()) == same_page(&tidy(other).unwrap());
        assert!(same("http://www.example.org/a/?x=1&y=2", "https://example.org/a?y=2&x=1#z"));
        assert!(!same("http://example.org/a", "http://example.org/A"));
        assert!(!same("http://example.org:8080/a", "http://example.org/a"));
    }

    #[test]
    fn addresses_with_secrets_or_mail_are_not_public() {
        for text in [
            "https://example.org/2026/11/21/how-lighthouses-work-a-guide.html",
            "https://en.wikipedia.org/wiki/Supercalifragilisticexpialidocious",
            "https://example.org/search?q=tides&page=2",
            "https://www.gov.example/publications/form-1040-instructions-2025",
            "https://doc.example.org/AbstractSingletonProxyFactoryBean.html",
            "https://social.example/@jo@other.example/1",
            "https://cdn.example/npm/react@18.2.0/umd",
            "https://example.org/tides;lang=en?keyword=moon&author=jo",
            "https://example.org/standards/iso-8601-1-2019",
            "https://de.example.org/wiki/%C3%9Cberpr%C3%BCfung_der_Gezeiten",
        ] {
            assert!(is_public_knowledge(&Url::parse(text).unwrap()), "{text}");
        }
        for text in [
            "https://example.org/reset?token=abc",
            "https://example.org/a?X-Amz-Signature=0",
            "https://docs.example.org/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit",
            "https://example.org/share/9f86d081884c7d659a2feaa0c55ad015",
            "https://example.org/u/3fa85f6457174562b3fc",
            "https://example.org/p?doc=ZXlKaGJHY2lPaUpJVXpJMU5pSjkx",
            "https://example.org/share/3fa85f64-5717-4562-b3fc-2c963f66afa6",
            "https://example.org/share/doc-3FA85F64-5717-4562-B3FC-2C963F66AFA6.html",
            "https://example.org/a?id=3fa85f64-5717-4562-b3fc-2c963f66afa6",
            "https://example.org/a?3fa85f64-5717-4562-b3fc-2c963f66afa6",
            "https://example.org/share/%33fa85f64-5717-4562-b3fc-2c963f66afa6",
            "https://example.org/shop;jsessionid=1",
            "https://example.org/shop;x=1;JSESSIONID=1/item",
            "https://example.org/shop%3Bjsessionid=1",
            "https://example.org/a?PHPSESSID=1",
            "https://example.org/a?sid=1",
            "https://example.org/a?b=1&Session=1",
            "https://example.org/a?accessToken=1",
            "https://example.org/a?key=1",
            "https://example.org/a?api-key=1",
            "https://example.org/a?sig=1",
            "https://example.org/a?user[email]=1",
            "https://example.org/a?u=jo%40example.org",
            "https://example.org/unsubscribe/jo@example.org",
            "https://jo:word@example.org/",
            "https://jo@example.org/",
        ] {
            assert!(!is_public_knowledge(&Url::parse(text).unwrap()), "{text}");
        }
    }
}
