//! The service's own secrets: keys for quotes, cursors and receipts, and the private keys of its wallets.
//!
//! The keys are derived from one generated text, each with its purpose. The text comes from the environment when the
//! service runs locally, and from AWS Secrets Manager when it is deployed.

use base::digest;
use evm::Word;
use evm::signature::PrivateKey;
use ledger::payments::settle::Tags;
use ledger::signing::ReceiptSigner;
use ledger::webhooks::secret::SigningKey;
use platform::config::{Config, Platforms};
use platform::seal::Sealer;
use platform::store::StoreError;
use platform::store::aws::SignedHttp;
use ring::hmac;

use crate::insights::audit::CursorKey;

/// Keys derived from the one secret.
pub struct ServiceKeys {
    /// Authenticates quotes.
    pub quotes: hmac::Key,
    /// Authenticates the audit's cursors.
    pub cursors: CursorKey,
    /// Signs receipts.
    pub receipts: ReceiptSigner,
    /// Marks the transactions that settle payments here.
    pub settlements: Tags,
    /// Derives the secrets of webhook endpoints.
    pub webhooks: SigningKey,
    /// Derives the keys that sign mails, and authenticates links in them.
    pub mail: Word,
    /// Seals what agents keep here in secret.
    pub sealer: Sealer,
}

impl ServiceKeys {
    /// Derives the keys from the secret text.
    pub fn derive(secret: &str) -> Result<ServiceKeys, StoreError> {
        Ok(ServiceKeys {
            quotes: hmac::Key::new(hmac::HMAC_SHA256, &derived(secret, "quotes")),
            cursors: CursorKey::new(&derived(secret, "cursors")),
            settlements: Tags::new(&derived(secret, "settlements")),
            webhooks: SigningKey::new(&derived(secret, "webhooks")),
            mail: derived(secret, "mail"),
            sealer: Sealer::new(derived(secret, "sealed")),
            receipts: ReceiptSigner::from_seed(&derived(secret, "receipts")).map_err(StoreError::new)?,
        })
    }

    /// Derived from `SERVICE_SECRET`, or from the secret that `SERVICE_SECRET_ARN` names.
    pub async fn load(config: &Config, http: &SignedHttp) -> Result<ServiceKeys, StoreError> {
        match (&config.aws.service_secret, &config.aws.service_secret_arn) {
            (Some(secret), _) => ServiceKeys::derive(secret.expose()),
            (None, Some(arn)) => ServiceKeys::derive(&http.secret(arn).await?),
            (None, None) => Err(StoreError::new("neither SERVICE_SECRET nor SERVICE_SECRET_ARN is set")),
        }
    }
}

/// Adds the agent platforms from the secret that `ACP_SECRET_ARN` names, if it is set.
pub async fn with_platforms(config: Config, http: &SignedHttp) -> Result<Config, StoreError> {
    let Some(arn) = &config.aws.acp_secret_arn else { return Ok(config) };
    let unreadable = || StoreError::new("the secret of ACP_SECRET_ARN is not a JSON object");
    let secret: serde_json::Value = serde_json::from_str(&http.secret(arn).await?).map_err(|_| unreadable())?;
    let member = |name: &str| secret[name].as_str().unwrap_or_default();
    let platforms = Platforms::read(member("bearer_tokens"), member("webhooks")).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(|(name, what)| format!("{name} {what}")).collect();
        StoreError::new(format_args!("the secret of ACP_SECRET_ARN: {}", problems.join("; ")))
    })?;
    Ok(Config { platforms, ..config })
}

/// The relayer's key: `RELAYER_PRIVATE_KEY`, or the secret that `RELAYER_SECRET_ARN` names. The secret is a key in hex, or
/// any generated text from which the key is derived.
pub async fn relayer_key(config: &Config, http: &SignedHttp) -> Result<PrivateKey, StoreError> {
    let (given, arn) = (&config.aws.relayer_key, &config.aws.relayer_secret_arn);
    let missing = "neither RELAYER_PRIVATE_KEY nor RELAYER_SECRET_ARN is set";
    wallet_key(given.as_ref(), arn.as_deref(), "relayer", missing, http).await
}

/// The treasury's key: `TREASURY_PRIVATE_KEY`, or the secret that `TREASURY_SECRET_ARN` names, in the same two forms.
pub async fn treasury_key(config: &Config, http: &SignedHttp) -> Result<PrivateKey, StoreError> {
    let (given, arn) = (&config.aws.treasury_key, &config.aws.treasury_secret_arn);
    let missing = "neither TREASURY_PRIVATE_KEY nor TREASURY_SECRET_ARN is set";
    wallet_key(given.as_ref(), arn.as_deref(), "treasury", missing, http).await
}

async fn wallet_key(
    given: Option<&PrivateKey>,
    arn: Option<&str>,
    purpose: &str,
    missing: &str,
    http: &SignedHttp,
) -> Result<PrivateKey, StoreError> {
    match (given, arn) {
        (Some(key), _) => Ok(key.clone()),
        (None, Some(arn)) => {
            let secret = http.secret(arn).await?;
            PrivateKey::parse(&secret)
                .or_else(|| PrivateKey::from_bytes(&derived(&secret, purpose)))
                .ok_or_else(|| StoreError::new(format_args!("the {purpose} secret is not a usable private key")))
        }
        (None, None) => Err(StoreError::new(missing)),
    }
}

fn derived(secret: &str, purpose: &str) -> Word {
    digest::hmac(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), purpose.as_bytes())
}
