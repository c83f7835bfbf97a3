//! Secrets pasted into a text. What is published or sent cannot be taken back.

/// A kind of token: its prefix, and the least number of characters after it.
struct Token {
    prefix: &'static str,
    least: usize,
}

/// Tokens of common providers, by their documented prefixes.
const TOKENS: &[Token] = &[
    Token { prefix: "ghp_", least: 36 },
    Token { prefix: "gho_", least: 36 },
    Token { prefix: "ghu_", least: 36 },
    Token { prefix: "ghs_", least: 36 },
    Token { prefix: "ghr_", least: 36 },
    Token { prefix: "github_pat_", least: 50 },
    Token { prefix: "glpat-", least: 20 },
    Token { prefix: "xoxb-", least: 24 },
    Token { prefix: "xoxp-", least: 24 },
    Token { prefix: "xoxa-", least: 24 },
    Token { prefix: "xoxs-", least: 24 },
    Token { prefix: "sk_live_", least: 16 },
    Token { prefix: "rk_live_", least: 16 },
    Token { prefix: "whsec_", least: 24 },
    Token { prefix: "sk-", least: 32 },
    Token { prefix: "AIza", least: 35 },
    Token { prefix: "SG.", least: 60 },
    Token { prefix: "npm_", least: 36 },
    Token { prefix: "hf_", least: 30 },
    Token { prefix: "pypi-", least: 60 },
];

/// After these words, a long hex number is a private key and a row of words a recovery phrase.
const KEY_WORDS: &[&str] = &["private key", "private_key", "privatekey", "secret key", "secret_key"];
const PRIVATE_KEY_WORDS: &[&str] = &["private key", "private_key", "privatekey"];
const PHRASE_WORDS: &[&str] =
    &["seed phrase", "recovery phrase", "mnemonic", "secret phrase", "backup phrase", "seed words", "recovery words"];
/// Distance between such a word and the secret, in bytes.
const NEAR: usize = 60;
/// Words in a recovery phrase.
const PHRASE: usize = 12;
/// Short words that are common in prose but in no recovery phrase.
const PROSE: &[&str] =
    &["the", "and", "for", "with", "are", "from", "has", "was", "not", "but", "its", "his", "them", "were"];

/// Tokens that senders make themselves and may give to a recipient.
const GIVEN: &[&str] = &["whsec_"];

/// For texts that are published.
pub fn has_secret(text: &str) -> bool {
    has_pem(text) || text.split(|letter: char| !is_of_token(letter)).any(is_token) || follows_its_name(text, KEY_WORDS)
}

/// For texts that are sent to somebody. Links are skipped, and so are tokens that any service makes for its users: a mail
/// with a login link is no leak.
pub fn was_leaked(text: &str) -> bool {
    let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '<' | '>' | '(' | ')');
    let text: String = text.split_inclusive(is_end).filter(|word| !word.contains("://")).collect();
    has_pem(&text)
        || text.split(|letter: char| !is_of_token(letter)).any(|word| is_of_provider(word) && !is_given(word))
        || follows_its_name(&text, PRIVATE_KEY_WORDS)
}

fn is_given(word: &str) -> bool {
    GIVEN.iter().any(|prefix| word.trim_start_matches(['.', '-']).starts_with(prefix))
}

fn has_pem(text: &str) -> bool {
    text.split("-----BEGIN ").skip(1).any(|rest| {
        let name = rest.split("-----").next().unwrap_or_default();
        // The header alone, as in an explanation, is no key: key data must follow.
        let body = rest.get(name.len() + 5..).unwrap_or_default();
        let base64 =
            body.chars().filter(|letter| !letter.is_whitespace()).take_while(|letter| is_base64(*letter)).count();
        name.ends_with("PRIVATE KEY") && base64 >= 32
    })
}

fn is_base64(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=')
}

fn is_of_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

fn is_token(word: &str) -> bool {
    let trimmed = word.trim_matches(['.', '-']);
    is_of_provider(word) || is_aws_key_id(trimmed) || is_jwt(trimmed) || is_ours(trimmed)
}

/// A token of one of [`TOKENS`].
fn is_of_provider(word: &str) -> bool {
    let word = word.trim_matches(['.', '-']);
    let known = TOKENS.iter().filter_map(|token| Some((token, word.strip_prefix(token.prefix)?)));
    for (token, rest) in known {
        // Placeholders: `sk-xxxxxxxx…`, `AKIA…EXAMPLE`.
        let varied = rest.bytes().any(|byte| byte.is_ascii_digit()) && distinct(rest) >= 8;
        if rest.len() >= token.least && varied && !word.ends_with("EXAMPLE") {
            return true;
        }
    }
    false
}

/// An AWS access key id: sixteen base32 characters after its prefix.
fn is_aws_key_id(word: &str) -> bool {
    let rest = word.strip_prefix("AKIA").or_else(|| word.strip_prefix("ASIA"));
    rest.is_some_and(|rest| {
        let base32 = rest.bytes().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte));
        rest.len() == 16 && base32 && distinct(rest) >= 8 && !word.ends_with("EXAMPLE")
    })
}

/// A signed JSON Web Token: two JSON objects and a signature, in base64url.
fn is_jwt(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let [head, claims, signature] = parts[..] else { return false };
    head.starts_with("eyJ") && claims.starts_with("eyJ") && signature.len() >= 20 && distinct(signature) >= 8
}

/// Soul keys and access tokens of this service.
fn is_ours(word: &str) -> bool {
    word.rsplit_once('_')
        .is_some_and(|(prefix, rest)| !prefix.is_empty() && rest.len() == 64 && is_hex(rest) && distinct(rest) >= 8)
}

fn distinct(text: &str) -> usize {
    let mut seen = [false; 256];
    text.bytes().for_each(|byte| seen[usize::from(byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Secrets without a form of their own are found by the words before them.
fn follows_its_name(text: &str, key_words: &'static [&'static str]) -> bool {
    // ASCII lower-casing keeps the byte offsets.
    let lower = text.to_ascii_lowercase();
    let behind = |names: &'static [&'static str]| {
        let lower = &lower;
        names.iter().flat_map(move |name| lower.match_indices(name).map(move |(at, _)| at + name.len()))
    };
    behind(key_words).any(|at| {
        let words = near(text, at).split(|letter: char| !letter.is_ascii_alphanumeric());
        words
            .map(|word| word.strip_prefix("0x").unwrap_or(word))
            .any(|word| word.len() >= 64 && word.get(..64).is_some_and(|hex| is_hex(hex) && distinct(hex) >= 8))
    }) || behind(PHRASE_WORDS).any(|at| {
        let rest = text.get(at..).unwrap_or_default();
        let words: Vec<&str> =
            rest.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty()).take(40).collect();
        words.windows(PHRASE).any(|row| {
            row.iter().all(|word| {
                (3..=8).contains(&word.len())
                    && word.bytes().all(|byte| byte.is_ascii_lowercase())
                    && !PROSE.contains(word)
            })
        })
    })
}

/// The text after a position, long enough for a key that starts within [`NEAR`].
fn near(text: &str, at: usize) -> &str {
    let mut end = (at + NEAR + 70).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(at..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "4f3edf983ac636a65a842ce7c78d9aa706d3b113bce9c46f30d7d21715b23b1d";

    #[test]
    fn pasted_secrets_are_found() {
        let pem = format!(
            "-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----",
            "MHcCAQEEIIrYSSNQFaA2".repeat(3)
        );
        for text in [
            pem.as_str(),
            "aws_access_key_id = AKIAY3RXBN7QKD5TL2VM",
            "AKIAQRSTXYABCDEFGHIJ",
            "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            "token: ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "key=sk-proj-9fQ2mX7aLkR4tYv8WzB1cD3eF5gH6jK0pN",
            "AIzaSyD4x7Qm2kLp9Rt5Vw8Yz1Bc3De6Fg0HjKn",
            &format!("my key is soul_{HEX}."),
            &format!("private key: 0x{HEX}"),
            &format!("PRIVATE_KEY={HEX}"),
            "seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow",
        ] {
            assert!(has_secret(text), "{text}");
        }
    }

    #[test]
    fn writing_about_secrets_is_allowed() {
        for text in [
            "Never show your private key, and keep the seed phrase on paper in a safe place that nobody else can open.",
            "Paste -----BEGIN PRIVATE KEY----- never.",
            "Set OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx first.",
            "AKIA and ASIA begin them; eyJhbGciOiJIUzI1NiJ9.payload.signature is a token's form.",
            "AKIAIOSFODNN7EXAMPLE is the key of the documentation.",
            &format!("transaction 0x{HEX} was confirmed; sha256 {HEX}"),
            "sk-learn-contrib, risk-based-authentication-and-authorization-framework",
            "soul_md, soul_price and file_names_with_underscores",
        ] {
            assert!(!has_secret(text), "{text}");
        }
    }

    #[test]
    fn what_a_service_gives_to_its_own_users_is_no_leak() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        for text in [
            &format!("Log in: https://app.example/?t={jwt}"),
            &format!("Your token is {jwt}, your key key_{HEX}."),
            "Your signing secret is whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw1x2y",
            "<img src=\"https://maps.example/?key=AIzaSyD4x7Qm2kLp9Rt5Vw8Yz1Bc3De6Fg0HjKn\">",
        ] {
            assert!(has_secret(text) && !was_leaked(text), "{text}");
        }
        for text in ["ghp_16C7e42F292c6912E7710c838347Ae178B4a", &format!("her private key: 0x{HEX}")] {
            assert!(was_leaked(text), "{text}");
        }
    }
}
