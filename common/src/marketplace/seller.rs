//! Who is calling a seller's route: whoever has the soul's key.

use http::HeaderMap;

use super::soul::{self, Soul};
use crate::app::App;
use crate::auth::Scope;
use crate::http::{ApiError, headers};
use crate::limits::{self, Class, Subject};

/// The soul whose key a request carries, as the latest write left it. The request counts against the soul's limit; a key
/// that opens nothing counts against its source's, so that keys cannot be guessed by the thousand.
pub async fn caller(app: &App, headers: &HeaderMap) -> Result<Soul, ApiError> {
    let secret = headers::bearer(headers)?.ok_or(ApiError::SoulKeyRequired)?;
    let Some(soul) = soul::by_key(&app.db, secret).await? else {
        limits::take(app, Subject::source(), Class::Open).await?;
        return Err(ApiError::SoulKeyRequired);
    };
    limits::take(app, Subject::Soul(soul.id()), Class::of_free(Scope::Write)).await?;
    Ok(soul)
}
