//! What may not be published: everything a soul shows to strangers passes here before it is stored.
//!
//! Two checks of our own always run: [`rules`], a short list of phrases, and [`leaks`], a scan for secrets that somebody
//! pasted by mistake. They are precise rather than complete: a text that forbids a thing, warns of it or works against it
//! is not one that offers it. A moderation model, where one is configured, adds its own judgement; if it cannot be
//! reached, the text is not published (503, and the caller may try again), for nobody has judged it.

mod leaks;
mod rules;

use base::input::FieldError;
use base::untrusted_text::visible;
use platform::http::ApiError;

use crate::Market;

/// Category of a secret in a text.
const SECRETS: &str = "secrets";

/// What is wrong with a text, each category once, in order; nothing, if it may be published.
pub fn categories(text: &str) -> Vec<&'static str> {
    let mut found = rules::broken(text);
    // What is put in to hide a secret does not show to whoever copies it.
    if leaks::has_secret(&visible(text)) {
        found.push(SECRETS);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Judges members of a body by our own rules: `(path, text)`.
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

/// Asks the moderation model as well, if there is one.
pub async fn moderate(market: &Market, texts: &[(&str, &str)]) -> Result<(), ApiError> {
    let Some(moderation) = &market.moderation else { return Ok(()) };
    let asked: Vec<&str> = texts.iter().map(|(_, text)| *text).filter(|text| !text.is_empty()).collect();
    if asked.is_empty() {
        return Ok(());
    }
    refuse(moderation.judge(&asked).await?, Vec::new())
}

/// Both.
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

    /// The longest text there may be, made of what costs most to look at.
    #[test]
    fn a_long_text_is_judged_in_little_time() {
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
