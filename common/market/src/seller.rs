//! Authentication of sellers' routes by the soul key.

use gate::app::App;
use gate::limits::{self, Class, Subject};
use http::HeaderMap;
use platform::auth::Scope;
use platform::http::{ApiError, headers};

use super::soul::{self, Soul};

/// The soul whose key a request carries, by a consistent read. The request counts against the soul's rate limit.
///
/// # Errors
/// 401 `unauthorized`; 429.
pub async fn caller(app: &App, headers: &HeaderMap) -> Result<Soul, ApiError> {
    let soul = by_key(app, headers).await?;
    limits::take(app, Subject::Soul(soul.id()), Class::of_free(Scope::Write)).await?;
    Ok(soul)
}

/// The same without a rate limit, for work on jobs: jobs are paid for, which limits their number. An invalid key counts
/// against its source's rate limit, so that keys cannot be guessed in bulk.
pub async fn by_key(app: &App, headers: &HeaderMap) -> Result<Soul, ApiError> {
    let secret = headers::bearer(headers)?.ok_or(ApiError::SoulKeyRequired)?;
    match soul::by_key(&app.db, secret).await? {
        Some(soul) => Ok(soul),
        None => {
            limits::take(app, Subject::source(), Class::Open).await?;
            Err(match secret.starts_with(headers::SOUL_KEY_PREFIX) {
                true => ApiError::SoulKeyUnknown,
                false => ApiError::SoulKeyRequired,
            })
        }
    }
}
