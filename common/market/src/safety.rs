//! Content safety: every public text of a soul is checked here before it is stored, by the rules of [`tools::safety`] and,
//! if one is configured, by the moderation server. If that server cannot be reached, the text is refused (503, retry),
//! because it was not checked.

use base::input::FieldError;
use platform::http::ApiError;
use tools::safety::published;

use crate::Market;

/// Checks `(path, text)` members with the local rules.
pub fn check(texts: &[(&str, &str)]) -> Result<(), ApiError> {
    let mut categories = Vec::new();
    let mut places = Vec::new();
    for (path, text) in texts {
        let found = published(text);
        places.extend(found.iter().map(|category| FieldError::new(*path, *category)));
        categories.extend(found.into_iter().map(str::to_owned));
    }
    refuse(categories, places)
}

/// Asks the moderation server, if there is one.
pub async fn moderate(market: &Market, texts: &[(&str, &str)]) -> Result<(), ApiError> {
    let Some(moderation) = &market.moderation else { return Ok(()) };
    let asked: Vec<&str> = texts.iter().map(|(_, text)| *text).filter(|text| !text.is_empty()).collect();
    if asked.is_empty() {
        return Ok(());
    }
    refuse(moderation.judge(&asked).await?, Vec::new())
}

/// Local rules, then the moderation server.
pub async fn publishable(market: &Market, texts: &[(&str, &str)]) -> Result<(), ApiError> {
    check(texts)?;
    moderate(market, texts).await
}

fn refuse(mut categories: Vec<String>, places: Vec<FieldError>) -> Result<(), ApiError> {
    categories.sort_unstable();
    categories.dedup();
    if categories.is_empty() { Ok(()) } else { Err(ApiError::ContentBlocked { categories, places }) }
}
