//! Content safety: what may not be published or sent.
//!
//! Local checks always run: a list of phrases ([`published()`] for sellers' texts, [`sent()`] for the texts of tool inputs),
//! and a scan for secrets pasted by mistake. They avoid false alarms: a text that forbids something, warns of it or works
//! against it passes. If a moderation server is configured ([`moderation`]), it is asked as well.
//!
//! The market checks sellers' texts (`market::safety`). [`Judge`] checks tool inputs: the fields that a tool's entry names
//! in [`ToolSpec::judged`](crate::spec::ToolSpec::judged).

mod judge;
mod leaks;
pub mod moderation;
pub mod names;
mod phrases;
mod published;
pub mod scripts;
mod sent;

use base::untrusted_text::visible;

pub use judge::{Blocked, Judge, judged_texts};

/// Category of a secret in a text.
const SECRETS: &str = "secrets";

/// The violated categories of a text that strangers would read, sorted and without duplicates. Empty if it may be
/// published.
pub fn published(text: &str) -> Vec<&'static str> {
    let mut found = published::PUBLISHED.broken(text);
    // Invisible characters must not hide a secret.
    if leaks::has_secret(&visible(text)) {
        found.push(SECRETS);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The violated categories of a text that would be sent to somebody, sorted and without duplicates. Empty if it may be
/// sent.
pub fn sent(text: &str) -> Vec<&'static str> {
    sent::categories(text)
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
            of("<a "),
            of("if you do not pay "),
            of("i will kill "),
            of("pay pay send us "),
        ] {
            let begun = ThreadTime::now();
            super::published(&text);
            super::sent(&text);
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{}: {:?}",
                &text[..12.min(text.len())],
                begun.elapsed()
            );
        }
    }
}
