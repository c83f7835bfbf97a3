//! A request with its secrets.

use std::fmt;

use base::encoding::base64_standard;

use super::{Request, pair};
use crate::tool::{Constant, Method, SecretUse};

/// Shortest secret that is looked for in answers, in bytes.
const LEAST_SECRET: usize = 8;
/// Longest secret, in bytes.
const MAX_SECRET: usize = 8 * 1024;

/// A request that can be sent. It contains secrets, and its `Debug` does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct Ready {
    pub method: Method,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub private: bool,
    /// The values of its secrets, as they are stored and as they are sent.
    secrets: Vec<String>,
}

impl Ready {
    /// Whether an answer repeats a secret of the request. Nobody may be shown such an answer. Short values are not looked for:
    /// they may stand in it by chance.
    pub fn is_repeated_in(&self, body: &[u8]) -> bool {
        let long = self.secrets.iter().filter(|secret| secret.len() >= LEAST_SECRET);
        long.map(String::as_bytes).any(|secret| body.windows(secret.len()).any(|part| part == secret))
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").field("method", &self.method).field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// A secret that cannot be used. The operator has to store it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretProblem {
    /// The store has no entry with this name.
    Missing(String),
    /// The value of this entry cannot be sent: it is empty, too long, or has characters that are not visible ASCII.
    Unfit(String),
}

impl fmt::Display for SecretProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretProblem::Missing(name) => write!(f, "the secret {name} is not in the secret store"),
            SecretProblem::Unfit(name) => {
                write!(
                    f,
                    "the secret {name} must have 1 to {MAX_SECRET} visible ASCII characters, without a line break at its end"
                )
            }
        }
    }
}

impl std::error::Error for SecretProblem {}

impl Request {
    /// Puts the secrets in. `secret` looks one up by its name.
    ///
    /// # Errors
    /// A secret is missing, or cannot be sent.
    pub fn filled<'s>(&self, secret: impl Fn(&str) -> Option<&'s str>) -> Result<Ready, SecretProblem> {
        let mut secrets = Vec::new();
        let mut value = |used: &SecretUse| -> Result<String, SecretProblem> {
            let value = secret(&used.secret).ok_or_else(|| SecretProblem::Missing(used.secret.clone()))?;
            let is_fit = !value.is_empty() && value.len() <= MAX_SECRET && value.trim() == value;
            if !is_fit || !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                return Err(SecretProblem::Unfit(used.secret.clone()));
            }
            secrets.push(value.to_owned());
            let value = if used.base64 { base64_standard(value.as_bytes()) } else { value.to_owned() };
            if used.base64 {
                secrets.push(value.clone());
            }
            Ok(format!("{}{value}", used.prefix))
        };
        let mut url = self.url.clone();
        for (name, used) in &self.query_secrets {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&pair(name, &value(used)?));
        }
        let mut headers = Vec::new();
        for (name, constant) in &self.headers {
            let text = match constant {
                Constant::Text(text) => text.clone(),
                Constant::Secret(used) => value(used)?,
            };
            headers.push((name.clone(), text));
        }
        Ok(Ready { method: self.method, url, headers, body: self.body.clone(), private: self.private, secrets })
    }
}
