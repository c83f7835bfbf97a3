//! What a session's pages may ask of whom.

use base::encoding::{base64_standard, percent_decoded};
use serde_json::{Map, Value};
use url::{Host, Url};

/// A typed text shorter than this, in characters, is not looked for in addresses: it would be found by chance.
const SHORTEST_TYPED: usize = 4;
/// The beginning of a typed text counts as the text, in characters.
const BEGINNING: usize = 8;
/// The headers that hosts outside the allowed domains get. `Referer` is cut to its origin.
const OUTSIDE: [&str; 5] = ["accept", "accept-language", "origin", "range", "referer"];

/// The domains that a session acts on.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// A domain covers its subdomains. `host:port` is that host and port alone. In lower case. An empty list allows
    /// nothing.
    pub allowed: Vec<String>,
}

/// A request that a page wants to make.
pub(super) struct Wanted<'a> {
    pub method: &'a str,
    pub url: &'a Url,
    pub headers: &'a Map<String, Value>,
    pub has_body: bool,
    /// It changes what a tab shows.
    pub is_navigation: bool,
}

impl Rules {
    /// Whether pages of this address may be opened, and may get cookies and posts.
    pub fn allows(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else { return false };
        let name = host.to_string();
        matches!(url.scheme(), "http" | "https")
            && self.allowed.iter().any(|allowed| match allowed.rsplit_once(':') {
                Some((exact, number)) if number.parse() == Ok(port) => exact == name,
                _ if *allowed == name => true,
                _ => {
                    let above = name.strip_suffix(allowed.as_str()).and_then(|above| above.strip_suffix('.'));
                    matches!(host, Host::Domain(_)) && !allowed.is_empty() && above.is_some()
                }
            })
    }

    /// Decides about a request. Returns the headers it goes out with.
    ///
    /// # Errors
    /// Why it is refused, in plain words.
    pub(super) fn judge(&self, wanted: &Wanted<'_>, typed: &Typed) -> Result<Vec<(String, String)>, &'static str> {
        // The client names itself; what else tells of the browser would be untrue.
        let headers = wanted.headers.iter().filter(|(name, _)| !name.to_ascii_lowercase().starts_with("sec-ch-"));
        let headers = headers.filter_map(|(name, value)| Some((name.to_ascii_lowercase(), value.as_str()?.to_owned())));
        if self.allows(wanted.url) {
            return Ok(headers.collect());
        }
        if wanted.is_navigation {
            return Err("its domain is not allowed");
        }
        if !matches!(wanted.method, "GET" | "HEAD") || wanted.has_body {
            return Err("other domains than the allowed ones get no data");
        }
        // Key by key, no address would have enough of the text to be known by it.
        if typed.is_typing {
            return Err("other domains are not asked while something is typed");
        }
        if typed.is_in(wanted.url.as_str()) {
            return Err("it would tell another domain what was typed");
        }
        let headers = headers.filter(|(name, _)| OUTSIDE.contains(&name.as_str()));
        let headers = headers.filter_map(|(name, value)| match name.as_str() {
            "referer" => Some((name, format!("{}/", Url::parse(&value).ok()?.origin().ascii_serialization()))),
            _ => Some((name, value)),
        });
        Ok(headers.collect())
    }
}

/// The texts that were typed or uploaded.
#[derive(Default)]
pub(super) struct Typed {
    texts: Vec<Forms>,
    /// Keys are being pressed, or the page has not come to rest since.
    pub is_typing: bool,
}

/// The forms in which an address may hold a text.
struct Forms {
    /// In lower case.
    plain: String,
    /// In lower case.
    hex: String,
    /// At each of the three offsets inside a longer text, in the standard alphabet.
    base64: [String; 3],
}

impl Typed {
    /// Takes up each line of a text.
    pub fn add(&mut self, text: &str) {
        text.split(['\n', '\r', '\t']).for_each(|line| self.add_line(line.trim()));
    }

    fn add_line(&mut self, text: &str) {
        if text.chars().count() < SHORTEST_TYPED {
            return;
        }
        let end = text.char_indices().nth(BEGINNING).map_or(text.len(), |(end, _)| end);
        let text = &text[..end];
        let base64 = [0, 1, 2].map(|offset: usize| {
            let bytes = [&[0; 2][..offset], text.as_bytes()].concat();
            // Without the characters that also depend on what stands before or after.
            base64_standard(&bytes)[(offset * 8).div_ceil(6)..bytes.len() * 8 / 6].to_owned()
        });
        self.texts.push(Forms { plain: text.to_lowercase(), hex: const_hex::encode(text), base64 });
    }

    fn is_in(&self, url: &str) -> bool {
        let spaced = percent_decoded(&url.replace('+', " "));
        let decoded = percent_decoded(url);
        let twice = percent_decoded(&decoded);
        let standard = twice.replace('-', "+").replace('_', "/");
        let texts = [url, &spaced, &decoded, &twice].map(str::to_lowercase);
        self.texts.iter().any(|Forms { plain, hex, base64 }| {
            texts.iter().any(|text| text.contains(plain) || text.contains(hex))
                || base64.iter().any(|form| standard.contains(form))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules() -> Rules {
        Rules { allowed: vec!["shop.example".to_owned(), "127.0.0.1:81".to_owned()] }
    }

    fn judge(
        method: &str,
        url: &str,
        is_navigation: bool,
        typed: &Typed,
    ) -> Result<Vec<(String, String)>, &'static str> {
        let headers = json!({
            "Cookie": "a=1", "Authorization": "Basic x", "X-Own": "1", "sec-ch-ua": "x", "Accept": "*/*",
            "Referer": "https://shop.example/cart?token=1",
        });
        let (url, headers) = (Url::parse(url).unwrap(), headers.as_object().unwrap());
        let wanted = Wanted { method, url: &url, headers, has_body: method == "POST", is_navigation };
        rules().judge(&wanted, typed)
    }

    #[test]
    fn a_domain_covers_its_subdomains_and_a_local_host_one_port() {
        for (url, is_allowed) in [
            ("https://shop.example/", true),
            ("http://a.b.shop.example/x", true),
            ("https://notshop.example/", false),
            ("https://shop.example.evil.example/", false),
            ("http://127.0.0.1:81/", true),
            ("http://127.0.0.1/", false),
            ("http://127.0.0.1:82/", false),
            ("ftp://shop.example/", false),
            ("data:text/html,shop.example", false),
        ] {
            assert_eq!(rules().allows(&Url::parse(url).unwrap()), is_allowed, "{url}");
        }
    }

    #[test]
    fn other_domains_get_no_data() {
        let none = Typed::default();
        let inside = judge("POST", "https://shop.example/pay", true, &none).unwrap();
        assert!(inside.iter().any(|(name, _)| name == "cookie"));
        assert!(inside.iter().all(|(name, _)| name != "sec-ch-ua"));
        let outside = judge("GET", "https://cdn.example/a.js", false, &none).unwrap();
        let expected = [("accept", "*/*"), ("referer", "https://shop.example/")];
        assert_eq!(outside, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(judge("GET", "https://cdn.example/", true, &none).is_err());
        assert!(judge("POST", "https://cdn.example/", false, &none).is_err());
        assert!(judge("PUT", "https://cdn.example/", false, &none).is_err());
    }

    #[test]
    fn a_typed_text_is_found_in_every_usual_form() {
        let mut typed = Typed::default();
        typed.add("Pass wörd!");
        typed.add("abc");
        for found in [
            "?q=Pass%20w%C3%B6rd!",
            "?q=pass+w%c3%b6rd%21",
            "?q=Pass%2520w%25C3%25B6rd!",
            "?h=506173732077c3b67264 21",
            "?h=50617373 2077C3B6726421",
        ] {
            let url = format!("https://evil.example/{}", found.replace("64 21", "6421").replace("73 20", "7320"));
            assert!(judge("GET", &url, false, &typed).is_err(), "{url}");
            assert!(judge("GET", &url.replace("evil", "a.shop"), false, &typed).is_ok());
        }
        for before in ["", "u", "us", "user"] {
            let text = base64_standard(format!("{before}Pass wörd! and more").as_bytes());
            for text in [text.replace('+', "-").replace('/', "_"), base::encoding::percent_encoded(&text)] {
                assert!(judge("GET", &format!("https://evil.example/?b={text}"), false, &typed).is_err(), "{text}");
            }
        }
        assert!(judge("GET", "https://cdn.example/abc?q=password", false, &typed).is_ok());
    }
}
