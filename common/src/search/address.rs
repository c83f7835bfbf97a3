//! Addresses of pages: in one form, compared, and judged whether they are fit to be shown to strangers.

use url::Url;

const MAX_CHARS: usize = 2048;

/// Query parameters that say where a visitor came from, and nothing of the page.
const TRACKING: [&str; 12] = [
    "fbclid", "gclid", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "igshid", "mc_cid", "mc_eid", "ref_src",
    "srsltid",
];

/// Parameters whose value lets somebody in.
const SECRETS: [&str; 26] = [
    "access_token",
    "accesskey",
    "api_key",
    "apikey",
    "auth",
    "authorization",
    "code",
    "credential",
    "hash",
    "invite",
    "jwt",
    "key",
    "magic",
    "nonce",
    "otp",
    "passwd",
    "password",
    "pwd",
    "reset",
    "secret",
    "session",
    "sessionid",
    "sid",
    "sig",
    "signature",
    "token",
];

/// The address without fragment, default port and tracking; `None` if it is none of the web.
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
        // Only what is left out changes: what stays is kept letter by letter.
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

/// The same text for addresses that nearly always lead to the same page: with or without TLS, `www.`, or a slash at the end,
/// and with their parameters in any order.
pub fn same_page(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let mut pairs: Vec<&str> = url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
    format!("{host}{port}{}{query}", url.path().trim_end_matches('/'))
}

/// Whether an address that one agent had read may be found by others. An address can be a key: what looks like a secret in
/// it (a token, a signature, a long random word) keeps the page out of the index.
pub fn is_public_knowledge(url: &Url) -> bool {
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRETS.contains(&name.as_str())
            || name.starts_with("x-amz-")
            || name.starts_with("x-goog-")
            || name.ends_with("token")
    };
    let query_is_fine =
        url.query_pairs().all(|(name, value)| !named(&name) && !value.split(['-', '_', '.', '/']).any(is_random));
    query_is_fine
        && !url.path().split('/').flat_map(|part| part.split(['-', '_', '.', '~', '=', ';', ':'])).any(is_random)
}

/// Long, and letters and digits mixed as nobody writes them. Ids of this kind are kept out too, which costs an index some
/// pages and nobody a secret.
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
    fn one_page_has_one_address() {
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
    fn addresses_that_are_keys_are_kept_to_oneself() {
        for text in [
            "https://example.org/2026/11/21/how-lighthouses-work-a-guide.html",
            "https://en.wikipedia.org/wiki/Supercalifragilisticexpialidocious",
            "https://example.org/search?q=tides&page=2",
            "https://www.gov.example/publications/form-1040-instructions-2025",
            "https://doc.example.org/AbstractSingletonProxyFactoryBean.html",
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
        ] {
            assert!(!is_public_knowledge(&Url::parse(text).unwrap()), "{text}");
        }
    }
}
