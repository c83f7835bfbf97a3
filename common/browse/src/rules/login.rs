//! Clauses that log in, in the ways people give a user and a password.

use super::step::{How, What};
use super::target::Target;
use super::verbs::address;
use super::words::Token;

/// Words before the user.
const USER: &[&str] = &["user", "username", "email", "e-mail", "login", "as", "account", "name"];
/// Words before the password.
const PASSWORD: &[&str] = &["password", "pass", "passphrase", "passcode"];
/// Words between a label and its value.
const BETWEEN: &[&str] = &["name", "is", "id", "address", "the", "my", "=", "user", "username", "email", "of"];
/// Words around "ada / s3cret" that say nothing more.
const AROUND: &[&str] = &[
    "in",
    "to",
    "into",
    "on",
    "at",
    "the",
    "my",
    "site",
    "website",
    "page",
    "shop",
    "account",
    "app",
    "with",
    "using",
    "as",
    "credentials",
    "these",
    "following",
    "via",
    "by",
    "details",
    "login",
    "user",
    "here",
    "there",
    "it",
];

/// Whether "out" or "up" follows "log" or "sign".
#[must_use]
pub fn is_log_out(rest: &[Token]) -> bool {
    rest.first().is_some_and(|t| t.is(&["out", "off", "up"]))
}

/// "log in with user ada and password x", "log in as ada with password x", "sign in as ada / x", "log into https://…
/// (username: ada, password: x)".
#[must_use]
pub fn read(rest: &[Token]) -> Option<Vec<What>> {
    let url = rest.iter().filter(|t| t.text.contains("://")).find_map(|t| address(&t.text));
    let words = plain(rest);
    let bare = words.iter().all(|t| t.is(AROUND)) && !words.iter().any(|t| t.is(&["with", "using", "as"]));
    let mut steps: Vec<What> = url.map(What::Open).into_iter().collect();
    if bare {
        let target = Target { name: "log in".to_owned(), full: "log in".to_owned(), ..Target::default() };
        steps.push(What::Click { target, how: How::Once, explore: false });
        return Some(steps);
    }
    let (user, password) = labelled(&words).or_else(|| unlabelled(&words))?;
    steps.push(What::LogIn { user, password });
    Some(steps)
}

/// Without addresses and brackets.
fn plain(rest: &[Token]) -> Vec<Token> {
    let opened = rest.iter().any(|t| !t.quoted && t.text.starts_with('('));
    let mut out = Vec::new();
    for token in rest.iter().filter(|t| !t.text.contains("://")) {
        let mut token = token.clone();
        if opened && !token.quoted {
            token.text = token.text.trim_start_matches('(').trim_end_matches(')').to_owned();
            // "(username:" ends in a colon, "s3cret)." in a bracket and a full stop.
            if token.text.is_empty() {
                continue;
            }
            token.low = token.text.to_lowercase();
        }
        out.push(token);
    }
    out
}

/// A value as it was written; an exclamation mark belongs to a password.
fn value(token: &Token) -> String {
    let mut text = token.text.clone();
    if !token.quoted && (token.after == Some('!') || token.mark == Some('!')) {
        text.push('!');
    }
    text
}

fn labelled(words: &[Token]) -> Option<(String, String)> {
    let after = |labels: &[&str]| {
        let label = words.iter().position(|t| t.is(labels))?;
        let at = label + 1 + words[label + 1..].iter().take_while(|t| t.is(BETWEEN)).count();
        Some((at, words.get(at)?))
    };
    let (at, password) = after(PASSWORD)?;
    let (first, user) = after(USER).or_else(|| {
        // "log in with ada and password x"
        let with = words.iter().position(|t| t.is(&["with", "using"]))?;
        Some((with + 1, words.get(with + 1)?))
    })?;
    let is_value = |token: &Token| !token.is(&["and", "with", "/", "or"]) && !token.is(PASSWORD);
    // "ada lovelace and password x": whether the user has two words, nobody knows.
    let next = words.get(first + 1);
    let ends = next.is_none_or(|t| t.is(&["and", "with", "/", "using", "or"]) || t.is(PASSWORD) || t.is(&["the"]))
        || matches!(user.after, Some(',' | ';' | '\n'));
    (at != first && ends && is_value(user) && is_value(password)).then(|| (value(user), value(password)))
}

/// "as ada / x", "as ada/x", "with ada and x".
fn unlabelled(words: &[Token]) -> Option<(String, String)> {
    let gives = words.iter().any(|t| t.quoted || t.is(&["as", "with", "using", "credentials", "/"]));
    let start = words.iter().take_while(|t| t.is(AROUND)).count();
    let both = &words[start..];
    match both {
        [user, between, password] if between.is(&["/", "and", "|"]) && gives => Some((value(user), value(password))),
        [user, password] if gives && user.quoted && password.quoted => Some((value(user), value(password))),
        [one] if gives && !one.quoted && one.text.matches('/').count() == 1 => {
            let (user, password) = one.text.split_once('/')?;
            let end = if one.after == Some('!') { "!" } else { "" };
            (!user.is_empty() && !password.is_empty()).then(|| (user.to_owned(), format!("{password}{end}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;

    #[test]
    fn user_and_password_are_read_or_nothing_is() {
        for text in [
            "in with username ada and password s3cret!",
            "in as ada with password s3cret!",
            "in with user \"ada\" and password \"s3cret!\"",
            "in as ada / s3cret!",
            "in with ada and s3cret!",
            "in to the site using the credentials ada/s3cret!",
            "into https://a.example/in (username: ada, password: s3cret!)",
        ] {
            let steps = read(&tokens(text)).unwrap_or_default();
            let is = What::LogIn { user: "ada".to_owned(), password: "s3cret!".to_owned() };
            assert_eq!(steps.last(), Some(&is), "{text}");
        }
        assert!(matches!(read(&tokens("in")).as_deref(), Some([What::Click { .. }])));
        for text in
            ["in with my account", "in as ada", "in with Ada Lovelace and password x y", "in with a and b and c"]
        {
            assert_eq!(read(&tokens(text)), None, "{text}");
        }
    }
}
