//! Content safety: every public text of a soul is checked here before it is stored.
//!
//! Two local checks always run: [`rules`], a short list of phrases, and [`leaks`], a scan for secrets pasted by
//! mistake. They avoid false alarms: a text that forbids something, warns of it or works against it passes. If a
//! moderation model is configured, it checks the text as well. If the model cannot be reached, the text is refused (503,
//! retry), because it was not checked.

mod leaks;
mod rules;

use base::input::FieldError;
use base::untrusted_text::visible;
use platform::http::ApiError;

use crate::Market;

/// Category of a secret in a text.
const SECRETS: &str = "secrets";

/// The violated categories of a text, sorted and without duplicates. Empty if it may be published.
pub fn categories(text: &str) -> Vec<&'static str> {
    let mut found = rules::broken(text);
    // Invisible characters must not hide a secret.
    if leaks::has_secret(&visible(text)) {
        found.push(SECRETS);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Checks `(path, text)` members with the local rules.
pub fn check(texts: &[(&str, &str)]) -> Result<(), ApiError> {
    let mut categories = Vec::new();
    let mut places = Vec::new();
    for (path, text) in texts {
        let found = self::categories(text);
        places.extend(found.iter().map(|category| FieldError::new(*path, *category)));
        categories.extend(found.into_iter().map(str::to_owned));
    }
    refuse(categories, places)
}

/// Asks the moderation model, if there is one.
pub async fn moderate(market: &Market, texts: &[(&str, &str)]) -> Result<(), ApiError> {
    let Some(moderation) = &market.moderation else { return Ok(()) };
    let asked: Vec<&str> = texts.iter().map(|(_, text)| *text).filter(|text| !text.is_empty()).collect();
    if asked.is_empty() {
        return Ok(());
    }
    refuse(moderation.judge(&asked).await?, Vec::new())
}

/// Local rules, then the moderation model.
pub async fn publishable(market: &Market, texts: &[(&str, &str)]) -> Result<(), ApiError> {
    check(texts)?;
    moderate(market, texts).await
}

fn refuse(mut categories: Vec<String>, places: Vec<FieldError>) -> Result<(), ApiError> {
    categories.sort_unstable();
    categories.dedup();
    if categories.is_empty() { Ok(()) } else { Err(ApiError::ContentBlocked { categories, places }) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cpu_time::ThreadTime;

    /// The longest possible text, made of the most expensive words.
    #[test]
    fn a_long_text_is_checked_quickly() {
        let of = |word: &str| word.repeat(50 * 1024 / word.len());
        for text in [
            of("sell "),
            of("a "),
            of("seed phrase "),
            of("private key 0x"),
            of("-----BEGIN "),
            of("- never:\n"),
            of("sk-"),
        ] {
            let begun = ThreadTime::now();
            super::categories(&text);
            assert!(begun.elapsed() < Duration::from_secs(20), "{}: {:?}", &text[..12], begun.elapsed());
        }
    }
}
