//! Agent platforms, which may open checkout sessions. Each has a bearer token from the configuration. Each token is a
//! separate principal, which sees only its own sessions.

use std::fmt;

use base::digest::sha256;
use base::encoding::base64_any;
use base::ids::{AgentId, uuid_of};
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// Shorter tokens could be guessed.
const MIN_TOKEN_BYTES: usize = 12;

/// The configured platforms. `ACP_BEARER_TOKENS`: comma-separated tokens. `ACP_WEBHOOKS`: comma-separated `<token> <url>
/// <secret>` for platforms that want order events; the secret is `whsec_` and base64 of the 32 byte key that signs the
/// events. Default: no platforms, no checkout.
#[derive(Clone, Debug, Default)]
pub struct Platforms(Vec<Platform>);

/// One platform. Only a hash of its token is stored.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Derived from the token: a new token is a new principal.
    pub id: Uuid,
    hash: [u8; 32],
    /// The endpoint for order events, if it has one.
    pub webhook: Option<Hook>,
}

#[derive(Clone)]
pub struct Hook {
    pub url: String,
    /// The key that signs events.
    pub key: [u8; 32],
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hook({})", self.url)
    }
}

impl Platform {
    /// The owner of its webhook endpoint.
    pub fn owner(&self) -> AgentId {
        AgentId::from_bytes(*self.id.as_bytes())
    }
}

impl Platforms {
    /// Reads both variables. A problem names the variable, never a token.
    pub fn read(tokens: &str, webhooks: &str) -> Result<Platforms, Vec<(&'static str, &'static str)>> {
        let mut problems = Vec::new();
        let mut platforms: Vec<Platform> = Vec::new();
        for token in listed(tokens) {
            let printable = token.bytes().all(|byte| byte.is_ascii_graphic());
            if token.len() < MIN_TOKEN_BYTES || !printable {
                problems.push(("ACP_BEARER_TOKENS", "must be tokens of at least 12 printable ASCII characters each"));
            }
            platforms.push(Platform { id: id_of(token), hash: sha256(token.as_bytes()), webhook: None });
        }
        for line in listed(webhooks) {
            let parts: Vec<&str> = line.split_ascii_whitespace().collect();
            let [token, url, secret] = parts[..] else {
                problems.push(("ACP_WEBHOOKS", "must be entries of a token, a URL and a secret, separated by spaces"));
                continue;
            };
            let is_https = url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
            let key = secret.strip_prefix("whsec_").and_then(base64_any).and_then(|key| <[u8; 32]>::try_from(key).ok());
            let (true, Some(key)) = (is_https, key) else {
                problems
                    .push(("ACP_WEBHOOKS", "must have an absolute URL, and a secret of whsec_ and base64 of 32 bytes"));
                continue;
            };
            let id = id_of(token);
            match platforms.iter_mut().find(|platform| platform.id == id) {
                Some(platform) => {
                    platform.webhook = Some(Hook { url: url.to_owned(), key });
                }
                None => problems.push(("ACP_WEBHOOKS", "names a token that is not in ACP_BEARER_TOKENS")),
            }
        }
        if problems.is_empty() { Ok(Platforms(platforms)) } else { Err(problems) }
    }

    /// The platform with this token. All hashes are compared, each in constant time.
    pub fn by_secret(&self, secret: &str) -> Option<&Platform> {
        let hash = sha256(secret.as_bytes());
        let mut found = None;
        for platform in &self.0 {
            if bool::from(platform.hash.ct_eq(&hash)) {
                found = Some(platform);
            }
        }
        found
    }

    /// The key that signs events of this owner's orders. Platforms own webhook endpoints as agents do.
    pub fn key_of(&self, owner: AgentId) -> Option<[u8; 32]> {
        let platform = self.0.iter().find(|platform| platform.owner() == owner)?;
        platform.webhook.as_ref().map(|hook| hook.key)
    }

    pub fn by_id(&self, id: Uuid) -> Option<&Platform> {
        self.0.iter().find(|platform| platform.id == id)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

fn id_of(token: &str) -> Uuid {
    uuid_of(&[b"agent platform", token.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_a_principal_and_is_never_shown() {
        let secret = format!("whsec_{}", base::encoding::base64_standard(&[7; 32]));
        let hooks = format!("second-token-2 https://agent.example/orders {secret}");
        assert!(Platforms::read("first-token-1", &hooks).is_err());
        let platforms = Platforms::read(" first-token-1, second-token-2,", &hooks).unwrap();
        let of = |token: &str| platforms.by_secret(token).map(|platform| platform.id);
        let (first, second) = (of("first-token-1"), of("second-token-2"));
        assert!(first.is_some() && second.is_some() && first != second);
        for wrong in ["first-token-", "first-token-11", "", ","] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert!(platforms.by_id(second.unwrap()).unwrap().webhook.is_some());
        let shown = format!("{platforms:?}");
        assert!(!shown.contains("first-token") && !shown.contains("whsec_") && !shown.contains("7, 7"), "{shown}");
        for (tokens, hooks) in
            [("short", ""), ("with a space in it", ""), ("", "a-token-of-12 https://x/ 0123456789abcdef")]
        {
            assert!(Platforms::read(tokens, hooks).is_err(), "{tokens} {hooks}");
        }
    }
}
