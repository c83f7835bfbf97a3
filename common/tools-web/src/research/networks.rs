//! Social networks by URL: which are never read, and which URLs are profiles.

use url::Url;

/// Professional networks, which are never read: their members did not publish profiles to have them collected, and their
/// operators sue over it.
const PROFESSIONAL: [&str; 5] = ["linkedin.com", "lnkd.in", "xing.com", "viadeo.com", "rocketreach.co"];
/// Networks that need a login or scripts, or forbid machine reading. Their URLs are passed on, never read.
const CLOSED: [&str; 8] = [
    "facebook.com",
    "instagram.com",
    "tiktok.com",
    "threads.net",
    "twitter.com",
    "x.com",
    "snapchat.com",
    "pinterest.com",
];

/// A network and the form of its profile URLs: hosts, and the path before the name.
struct Network {
    name: &'static str,
    hosts: &'static [&'static str],
    before: &'static [&'static str],
    /// Names of the network's own pages, which are not profiles.
    not: &'static [&'static str],
}

const NOT_ANYWHERE: &[&str] = &[
    "about",
    "accounts",
    "contact",
    "explore",
    "features",
    "hashtag",
    "help",
    "home",
    "i",
    "intent",
    "jobs",
    "legal",
    "login",
    "p",
    "pages",
    "policies",
    "privacy",
    "search",
    "settings",
    "share",
    "sharer",
    "sharer.php",
    "signup",
    "terms",
    "topics",
    "tos",
    "watch",
];

const NETWORKS: &[Network] = &[
    Network {
        name: "github",
        hosts: &["github.com"],
        before: &[""],
        not: &["sponsors", "orgs", "marketplace", "pricing"],
    },
    Network { name: "gitlab", hosts: &["gitlab.com"], before: &[""], not: &[] },
    Network { name: "codeberg", hosts: &["codeberg.org"], before: &[""], not: &[] },
    Network { name: "x", hosts: &["x.com", "twitter.com"], before: &[""], not: &[] },
    Network {
        name: "facebook",
        hosts: &["facebook.com", "fb.com"],
        before: &[""],
        not: &["groups", "events", "profile.php"],
    },
    Network { name: "instagram", hosts: &["instagram.com"], before: &[""], not: &["reel", "stories"] },
    Network { name: "threads", hosts: &["threads.net"], before: &["@"], not: &[] },
    Network { name: "tiktok", hosts: &["tiktok.com"], before: &["@"], not: &[] },
    Network { name: "youtube", hosts: &["youtube.com"], before: &["@", "c/", "user/", "channel/"], not: &[] },
    Network { name: "linkedin", hosts: &["linkedin.com"], before: &["in/", "company/"], not: &[] },
    Network { name: "xing", hosts: &["xing.com"], before: &["profile/"], not: &[] },
    Network { name: "bluesky", hosts: &["bsky.app"], before: &["profile/"], not: &[] },
    Network { name: "medium", hosts: &["medium.com"], before: &["@"], not: &[] },
    Network { name: "reddit", hosts: &["reddit.com"], before: &["user/", "u/"], not: &[] },
    Network { name: "telegram", hosts: &["t.me"], before: &[""], not: &["s", "joinchat"] },
    Network { name: "orcid", hosts: &["orcid.org"], before: &[""], not: &[] },
    Network { name: "stackoverflow", hosts: &["stackoverflow.com"], before: &["users/"], not: &[] },
    Network { name: "hackernews", hosts: &["news.ycombinator.com"], before: &[], not: &[] },
    Network { name: "npm", hosts: &["npmjs.com"], before: &["~"], not: &[] },
    Network { name: "keybase", hosts: &["keybase.io"], before: &[""], not: &[] },
];

/// A profile, from its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub network: &'static str,
    pub username: String,
    pub url: String,
}

/// Whether the URL is on a professional network.
pub fn is_professional(url: &str) -> bool {
    is_on(url, &PROFESSIONAL)
}

/// Whether the URL is on a network that is not read.
pub fn is_closed(url: &str) -> bool {
    is_professional(url) || is_on(url, &CLOSED)
}

fn is_on(url: &str, hosts: &[&str]) -> bool {
    Url::parse(url).is_ok_and(|url| url.host_str().is_some_and(|host| hosts.iter().any(|known| is_below(host, known))))
}

fn is_below(host: &str, known: &str) -> bool {
    host.trim_end_matches('.').strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The profile in a URL, if it is on a known network or may be on the fediverse (`https://any.host/@name`). `is_me`: the
/// URL comes from a `rel="me"` link; then `https://any.host/users/name` counts too.
pub fn profile(url: &str, is_me: bool) -> Option<Profile> {
    let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = parsed.host_str()?;
    let path = parsed.path().trim_matches('/');
    if let Some(network) = NETWORKS.iter().find(|network| network.hosts.iter().any(|known| is_below(host, known))) {
        let name = network.before.iter().find_map(|before| path.strip_prefix(before))?;
        let name = name.split('/').next().unwrap_or_default();
        let is_all = network.before != [""] || !path.contains('/');
        let lower = name.to_ascii_lowercase();
        let is_page = NOT_ANYWHERE.contains(&lower.as_str()) || network.not.contains(&lower.as_str());
        let fits = is_all && is_name(name) && !is_page;
        return fits.then(|| Profile { network: network.name, username: name.to_owned(), url: plain(&parsed) });
    }
    let account = account(url).filter(|_| is_me || path.starts_with('@'))?;
    Some(Profile { network: "mastodon", username: account.name, url: plain(&parsed) })
}

fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    !name.is_empty() && name.len() <= 100 && name.chars().all(fits)
}

/// The URL without query, fragment and trailing slash.
fn plain(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

/// An account on a server that may support Mastodon's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Scheme, host and port.
    pub origin: String,
    pub name: String,
}

/// The account in a URL of the form `https://host/@name` or `https://host/users/name`.
pub fn account(url: &str) -> Option<Account> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let path = url.path().trim_matches('/');
    let name = path.strip_prefix('@').or_else(|| path.strip_prefix("users/"))?;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '@');
    let is_known = NETWORKS
        .iter()
        .any(|network| network.hosts.iter().any(|known| url.host_str().is_some_and(|host| is_below(host, known))));
    let fits = !name.is_empty() && name.len() <= 200 && name.chars().all(fits) && !is_known;
    fits.then(|| Account { origin: url.origin().ascii_serialization(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_recognised_by_url() {
        let told = |url: &str| profile(url, false).map(|profile| format!("{} {}", profile.network, profile.username));
        for (url, expected) in [
            ("https://github.com/ada/", Some("github ada")),
            ("https://github.com/ada/project", None),
            ("https://github.com/features", None),
            ("https://www.linkedin.com/in/ada-stone?trk=x", Some("linkedin ada-stone")),
            ("https://twitter.com/intent/tweet?text=x", None),
            ("https://mobile.twitter.com/ada", Some("x ada")),
            ("https://www.youtube.com/@ada", Some("youtube ada")),
            ("https://www.youtube.com/watch?v=1", None),
            ("https://social.example/@ada", Some("mastodon ada")),
            ("https://social.example/users/ada", None),
            ("https://evilgithub.com/ada", None),
            ("https://github.com.evil.example/ada", None),
            ("javascript:alert(1)", None),
            ("https://t.me/share/url?url=x", None),
            ("https://facebook.com/sharer.php?u=x", None),
        ] {
            assert_eq!(told(url).as_deref(), expected, "{url}");
        }
        assert_eq!(profile("https://social.example/users/ada", true).unwrap().network, "mastodon");
    }

    #[test]
    fn professional_networks_are_recognised_in_any_spelling() {
        for url in ["https://linkedin.com/in/x", "http://de.LinkedIn.com./in/x", "https://www.xing.com/profile/x"] {
            assert!(is_professional(url), "{url}");
        }
        assert!(!is_professional("https://notlinkedin.com/") && is_closed("https://x.com/ada"));
        assert!(!is_closed("https://mastodon.example/@ada") && !is_closed("https://xx.com/"));
    }
}
