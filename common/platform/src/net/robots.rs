//! Parses robots.txt (RFC 9309). Pure functions.

use std::time::Duration;

/// Maximum bytes of the file that are read; RFC 9309 §2.5 requires at least this limit.
pub(super) const MAX_BYTES: usize = 500 * 1024;
/// Longer patterns are ignored: no URL of ours is that long.
const MAX_PATTERN_BYTES: usize = 2048;
/// Longer crawl delays are shortened to this.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// The rules for our product token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// `Crawl-delay`, the pause between two requests. Not part of the RFC, but sites use it.
    pub(super) delay: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    allow: bool,
    /// Normalised by [`normal`], with its `*` and `$`.
    pattern: String,
}

impl Rules {
    /// Reads the groups for `product` (a product token in lower case), or the groups for `*` if there are none.
    pub(super) fn parse(body: &[u8], product: &str) -> Rules {
        let body = &body[..body.len().min(MAX_BYTES)];
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let (mut ours, mut everybodys) = (None::<Rules>, Rules::default());
        // Whether the current group is for us, is for `*`, and has had a rule.
        let (mut for_us, mut for_all, mut begun) = (false, false, false);
        for line in body.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (key, value) = (line[..colon].trim_ascii().to_ascii_lowercase(), line[colon + 1..].trim_ascii());
            if key == b"user-agent" {
                let value = String::from_utf8_lossy(value);
                if begun {
                    (for_us, for_all, begun) = (false, false, false);
                }
                for_all |= value.split_ascii_whitespace().next() == Some("*");
                if token(&value) == product && !product.is_empty() {
                    for_us = true;
                    // A group without rules counts too: it allows everything.
                    ours.get_or_insert_default();
                }
                continue;
            }
            // Only a rule ends the list of agents: other records must not change the groups (RFC 9309 §2.2.4).
            begun |= matches!(key.as_slice(), b"allow" | b"disallow");
            if for_us && let Some(ours) = &mut ours {
                ours.add(&key, value);
            }
            if for_all {
                everybodys.add(&key, value);
            }
        }
        ours.unwrap_or(everybodys)
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"crawl-delay" => {
                let seconds = std::str::from_utf8(value).ok().and_then(|value| value.parse::<f32>().ok());
                let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
                self.delay =
                    seconds.map(|seconds| Duration::from_secs_f32(seconds.min(60.0)).min(MAX_DELAY)).or(self.delay);
            }
            b"allow" | b"disallow" if !value.is_empty() && value.len() <= MAX_PATTERN_BYTES => {
                self.rules.push(Rule { allow: key == b"allow", pattern: normal_pattern(value) });
            }
            _ => {}
        }
    }

    /// Whether this path and query may be fetched. The longest matching pattern decides; with equal length, `allow` wins.
    pub(super) fn allow(&self, target: &str) -> bool {
        // Signs that mean something in a pattern are literal in an address.
        let target = normal(target.as_bytes()).replace('*', "%2A").replace('$', "%24");
        let fitting = self.rules.iter().filter(|rule| fits(&rule.pattern, &target));
        let best = fitting.max_by_key(|rule| (rule.pattern.len(), rule.allow));
        target == "/robots.txt" || best.is_none_or(|rule| rule.allow)
    }
}

/// The product token at the start of a `User-Agent`, in lower case.
pub fn token(user_agent: &str) -> String {
    let letters = user_agent.chars().take_while(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_'));
    letters.collect::<String>().to_ascii_lowercase()
}

/// Normalises a pattern. A `$` that is not at its end is literal.
fn normal_pattern(pattern: &[u8]) -> String {
    let pattern = normal(pattern);
    match pattern.strip_suffix('$') {
        Some(start) => format!("{}$", start.replace('$', "%24")),
        None => pattern.replace('$', "%24"),
    }
}

/// Normalises a path for comparison (RFC 9309 §2.2.2): needless escapes are decoded, others are in upper case, and
/// non-ASCII bytes are escaped, whatever their encoding.
fn normal(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(plain) if plain.is_ascii_alphanumeric() || b"-._~".contains(&plain) => out.push(char::from(plain)),
            Some(other) => out.push_str(&format!("%{other:02X}")),
            None if byte.is_ascii_graphic() => out.push(char::from(byte)),
            None => out.push_str(&format!("%{byte:02X}")),
        }
        at += if escaped.is_some() { 3 } else { 1 };
    }
    out
}

/// Whether a pattern matches a prefix of the target, in linear time: the parts between the stars are searched one after
/// the other.
fn fits(pattern: &str, target: &str) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = target.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(at) = rest.find(before) else { return false };
            rest = &rest[at + before.len()..];
        }
    }
    match last {
        None => !to_the_end || rest.is_empty(),
        Some(part) if to_the_end => rest.ends_with(part),
        Some(part) => rest.contains(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(robots: &str, target: &str) -> bool {
        Rules::parse(robots.as_bytes(), "agora").allow(target)
    }

    #[test]
    fn our_own_group_replaces_the_general_one() {
        let robots = "User-agent: *\nDisallow: /\n\nUser-agent: OTHER\nUser-Agent: Agora/2.0\nDisallow: /no\n\
                      Crawl-delay: 2.5\nuser-agent: agora\ndisallow: /neither";
        assert!(allows(robots, "/yes"));
        assert!(!allows(robots, "/no/x") && !allows(robots, "/neither"), "groups with the same name are merged");
        assert_eq!(Rules::parse(robots.as_bytes(), "agora").delay, Some(Duration::from_millis(2_500)));
        assert!(!Rules::parse(robots.as_bytes(), "somebody").allow("/yes"));
        assert!(
            allows("User-agent: *\nDisallow: /\nUser-agent: agora\nDisallow:\n", "/x"),
            "an empty rule forbids nothing"
        );
        assert!(allows("User-agent: agorafan\nDisallow: /", "/x"), "another product");
        assert!(allows("Disallow: /", "/x"), "a rule outside a group is ignored");
    }

    #[test]
    fn the_longest_pattern_decides() {
        let robots = "User-agent: *\nDisallow: /\nAllow: /public\nDisallow: /public/not\nAllow: /same\nDisallow: /same";
        assert!(allows(robots, "/public/x") && !allows(robots, "/public/not/x") && allows(robots, "/same"));
        assert!(!allows(robots, "/") && allows(robots, "/robots.txt"));
    }

    #[test]
    fn stars_and_ends() {
        // From the table "URL matching" of https://developers.google.com/crawling/docs/robots-txt/robots-txt-spec.
        for (pattern, yes, no) in [
            ("/fish", "/fish/salmon.html", "/Fish.asp"),
            ("/fish*", "/fishheads/yummy.html", "/catfish"),
            ("/fish/", "/fish/?id=anything", "/fish"),
            ("/*.php", "/folder/filename.php?parameters", "/windows.PHP"),
            ("/*.php$", "/folder/filename.php", "/filename.php?parameters"),
            ("/fish*.php", "/fishheads/catfish.php?parameters", "/Fish.PHP"),
            ("*/x*y$", "/a/x/y/y", "/a/x/y/z"),
            ("/a$b", "/a$b/c", "/a"),
            ("/%7euser/ü", "/~user/%C3%BC", "/user/%C3%BC"),
            ("/a%2Ab", "/a*b", "/axb"),
            ("/price%24", "/price$", "/price"),
        ] {
            let robots = format!("User-agent: *\nDisallow: {pattern}");
            assert!(!allows(&robots, yes), "{pattern} {yes}");
            assert!(allows(&robots, no), "{pattern} {no}");
        }
    }

    #[test]
    fn paths_are_compared_by_bytes() {
        let rules = Rules::parse(b"User-agent: *\nDisallow: /caf\xe9\n", "agora");
        assert!(!rules.allow("/caf%e9/menu"));
        assert!(rules.allow("/caf%C3%A9") && rules.allow("/caf%EF%BF%BD"));
    }

    #[test]
    fn a_line_that_is_no_rule_does_not_end_the_list_of_agents() {
        for line in ["Crawl-delay: 1", "Sitemap: https://a.example/x.xml", "Host: a.example", "unknown: /"] {
            let robots = format!("User-agent: agora\n{line}\nUser-agent: other\nDisallow: /x");
            assert!(!allows(&robots, "/x") && allows(&robots, "/y"), "{line}");
        }
    }

    #[test]
    fn hostile_files_are_parsed_quickly() {
        let star = format!("User-agent: *\n{}", "Disallow: /*a*a*a*a*a*a*a*b$\n".repeat(17_000));
        let begun = std::time::Instant::now();
        assert!(allows(&star, &format!("/{}", "a".repeat(2_000))));
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(allows("<html><body>User-agent: *: Disallow: /", "/"));
        assert!(allows("\u{feff}User-agent: *\rDisallow: /x\r", "/y"));
        assert!(!allows("\u{feff}User-agent: *\rDisallow: /x\r", "/x"));
        let _ = Rules::parse(&[0xff; 1000], "agora");
    }
}
