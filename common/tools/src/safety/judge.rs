//! Judges the texts of a tool's input before a price is quoted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::digest::sha256_parts;
use base::input::FieldError;
use platform::config::Config;
use platform::http::{ApiError, log};
use platform::net::PlainHttp;
use serde_json::{Map, Value};

use super::moderation::{self, Moderation};
use crate::spec::ToolSpec;

/// The moderation server may take this long. Then the local rules decide alone.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a verdict is kept: longer than a quote, so that the paid request does not ask again.
const KEPT: Duration = Duration::from_secs(600);
/// The same for a verdict without the moderation server's answer.
const KEPT_UNASKED: Duration = Duration::from_secs(30);
/// Most verdicts that are kept.
const MOST_KEPT: usize = 2_000;
/// What the moderation server says about the subject of a text, not about harm to its reader. A news digest or a message to
/// a doctor may be about these.
const SUBJECTS: &[&str] = &["sexual", "self-harm", "self-harm/intent", "violence", "violence/graphic"];

/// A text that may not be sent. `places` names the fields if the local rules found them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub categories: Vec<String>,
    pub places: Vec<FieldError>,
}

impl From<Blocked> for ApiError {
    fn from(blocked: Blocked) -> ApiError {
        ApiError::ContentBlocked { categories: blocked.categories, places: blocked.places }
    }
}

type Verdict = Result<(), Blocked>;

/// A text of an input, and the field that it is in.
pub type JudgedText<'a> = (&'static str, &'a str);

/// The texts of an input that are judged: every string in the fields that the tool's entry names.
pub fn judged_texts<'a>(tool: &ToolSpec, input: &'a Map<String, Value>) -> Vec<JudgedText<'a>> {
    let mut texts = Vec::new();
    for &field in tool.judged {
        let (name, member) = field.split_once('.').map_or((field, None), |(name, member)| (name, Some(member)));
        collect(field, member, input.get(name).unwrap_or(&Value::Null), &mut texts);
    }
    texts
}

/// The strings of a value; with `only`, of its objects' members of this name.
fn collect<'a>(field: &'static str, only: Option<&str>, value: &'a Value, texts: &mut Vec<JudgedText<'a>>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => texts.push((field, text)),
        Value::Array(items) => items.iter().for_each(|item| collect(field, only, item, texts)),
        Value::Object(members) => {
            let named = members.iter().filter(|(name, _)| only.is_none_or(|only| only == name.as_str()));
            named.for_each(|(_, member)| collect(field, None, member, texts));
        }
        _ => {}
    }
}

/// Judges tool inputs by the local rules, and by the moderation server if this function has one. Verdicts are cached in
/// this process. Clones share the cache.
#[derive(Clone)]
pub struct Judge {
    moderation: Option<Moderation>,
    clock: Clock,
    verdicts: Arc<Mutex<HashMap<[u8; 32], Kept>>>,
}

struct Kept {
    verdict: Verdict,
    until: Timestamp,
}

impl Judge {
    pub fn new(moderation: Option<Moderation>, clock: Clock) -> Judge {
        Judge { moderation, clock, verdicts: Arc::default() }
    }

    pub fn configured(config: &Config, http: &PlainHttp, clock: Clock) -> Judge {
        Judge::new(moderation::configured(config, http), clock)
    }

    /// Judges the texts of an input that the tool's entry names. See [`Judge::judge`].
    ///
    /// # Errors
    /// The texts may not be sent.
    pub async fn check(&self, tool: &ToolSpec, input: &Map<String, Value>) -> Result<(), Blocked> {
        self.judge(&judged_texts(tool, input)).await
    }

    /// The verdict on these texts, if no question to the moderation server is needed for it.
    pub fn known(&self, texts: &[JudgedText<'_>]) -> Option<Verdict> {
        if texts.is_empty() {
            return Some(Ok(()));
        }
        let digest = digest(texts);
        if let Some(verdict) = self.kept(&digest) {
            return Some(verdict);
        }
        let by_rules = by_rules(texts);
        if by_rules.is_ok() && self.moderation.is_some() {
            return None;
        }
        self.keep(digest, by_rules.clone(), KEPT);
        Some(by_rules)
    }

    /// The verdict on these texts. Asks the moderation server at most once for the same texts, unless it did not answer.
    ///
    /// # Errors
    /// The texts may not be sent.
    pub async fn judge(&self, texts: &[JudgedText<'_>]) -> Result<(), Blocked> {
        if let Some(verdict) = self.known(texts) {
            return verdict;
        }
        let Some(moderation) = &self.moderation else { return Ok(()) };
        let asked: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
        let answer = match tokio::time::timeout(PATIENCE, moderation.judge(&asked)).await {
            Ok(Ok(categories)) => Some(categories),
            Ok(Err(error)) => {
                log::failure("the moderation server gave no verdict; the local rules decided alone", &error);
                None
            }
            Err(late) => {
                log::failure("the moderation server took too long; the local rules decided alone", &late);
                None
            }
        };
        let keep_for = if answer.is_some() { KEPT } else { KEPT_UNASKED };
        let mut categories = answer.unwrap_or_default();
        categories.retain(|category| !SUBJECTS.contains(&category.as_str()));
        let verdict = if categories.is_empty() { Ok(()) } else { Err(Blocked { categories, places: Vec::new() }) };
        self.keep(digest(texts), verdict.clone(), keep_for);
        verdict
    }

    fn kept(&self, digest: &[u8; 32]) -> Option<Verdict> {
        let now = self.clock.now();
        let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.get(digest).filter(|kept| now < kept.until).map(|kept| kept.verdict.clone())
    }

    fn keep(&self, digest: [u8; 32], verdict: Verdict, keep_for: Duration) {
        let now = self.clock.now();
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if verdicts.len() >= MOST_KEPT {
            verdicts.retain(|_, kept| now < kept.until);
        }
        if verdicts.len() >= MOST_KEPT {
            verdicts.clear();
        }
        verdicts.insert(digest, Kept { verdict, until: now.plus(keep_for) });
    }
}

/// The verdict of the local rules.
fn by_rules(texts: &[JudgedText<'_>]) -> Verdict {
    let mut categories = Vec::new();
    let mut places = Vec::new();
    for (field, text) in texts {
        let found = super::sent(text);
        places.extend(found.iter().map(|category| FieldError::new(*field, *category)));
        categories.extend(found.into_iter().map(str::to_owned));
    }
    categories.sort_unstable();
    categories.dedup();
    if categories.is_empty() { Ok(()) } else { Err(Blocked { categories, places }) }
}

fn digest(texts: &[JudgedText<'_>]) -> [u8; 32] {
    let parts: Vec<&[u8]> = texts.iter().flat_map(|(field, text)| [field.as_bytes(), text.as_bytes()]).collect();
    sha256_parts(&parts)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base::input::{Field, Kind};
    use platform::store::{BoxFuture, StoreError};
    use serde_json::json;

    use super::*;
    use crate::safety::moderation::Moderate;

    static LETTER: ToolSpec = ToolSpec {
        name: "letter",
        input: &[
            Field::required("to", Kind::Text { min: 1, max: 100, format: None }, "Recipient"),
            Field::required("subject", Kind::Text { min: 1, max: 100, format: None }, "Subject"),
            Field::required("body", Kind::Text { min: 1, max: 1000, format: None }, "Text"),
        ],
        judged: &["subject", "body"],
        ..ToolSpec::QUEUED
    };

    fn letter(body: &Value) -> Map<String, Value> {
        let input = json!({"to": "i will kill you", "subject": "Hello", "body": body});
        input.as_object().unwrap().clone()
    }

    /// A moderation server that flags "rude" and counts its questions.
    #[derive(Default)]
    struct Server {
        asked: AtomicUsize,
        fails: bool,
        sleeps: bool,
    }

    impl Moderate for Server {
        fn judge<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
            Box::pin(async move {
                self.asked.fetch_add(1, Ordering::Relaxed);
                if self.sleeps {
                    std::future::pending::<()>().await;
                }
                if self.fails {
                    return Err(StoreError::new("down"));
                }
                let mut found = vec!["violence".to_owned()];
                found.extend(texts.iter().any(|text| text.contains("rude")).then(|| "harassment".to_owned()));
                Ok(found)
            })
        }
    }

    fn judge(server: &Arc<Server>, clock: &Clock) -> Judge {
        Judge::new(Some(Arc::clone(server) as Moderation), clock.clone())
    }

    fn clock() -> Clock {
        Clock::pinned(Timestamp::from_secs(1_000_000))
    }

    #[test]
    fn only_the_named_fields_are_judged() {
        let input = letter(&json!(["a", {"b": "c", "n": 1}, ""]));
        assert_eq!(judged_texts(&LETTER, &input), [("subject", "Hello"), ("body", "a"), ("body", "c")]);
        assert!(judged_texts(&ToolSpec::QUEUED, &input).is_empty());
        let parcel = ToolSpec { judged: &["files.name"], ..ToolSpec::QUEUED };
        let input = json!({"files": [{"name": "a.pdf", "content": "x"}, {"content": "y"}, {"name": "b.pdf"}]});
        let names = [("files.name", "a.pdf"), ("files.name", "b.pdf")];
        assert_eq!(judged_texts(&parcel, input.as_object().unwrap()), names);
    }

    #[tokio::test]
    async fn without_a_server_the_rules_decide() {
        let judge = Judge::new(None, clock());
        let (good, bad) = (letter(&json!("See you on Monday.")), letter(&json!("I will kill you.")));
        assert_eq!(judge.known(&judged_texts(&LETTER, &good)), Some(Ok(())));
        let blocked = judge.judge(&judged_texts(&LETTER, &bad)).await.unwrap_err();
        assert_eq!(blocked.categories, ["violence"]);
        assert_eq!(blocked.places, [FieldError::new("body", "violence")]);
        let error = ApiError::from(blocked);
        let body = error.body();
        assert_eq!((error.status().as_u16(), &body["error"]), (400, &json!("content_blocked")));
        assert_eq!(body["categories"], json!(["violence"]));
    }

    #[tokio::test]
    async fn the_server_is_asked_once_for_the_same_texts() {
        let (server, clock) = (Arc::new(Server::default()), clock());
        let judge = judge(&server, &clock);
        let (good, rude) = (letter(&json!("Hello")), letter(&json!("rude words")));
        let texts = judged_texts(&LETTER, &good);
        assert_eq!(judge.known(&texts), None);
        for _ in 0..3 {
            assert_eq!(judge.judge(&texts).await, Ok(()), "a subject is no harm");
        }
        assert_eq!(judge.known(&texts), Some(Ok(())));
        for _ in 0..3 {
            let blocked = judge.clone().judge(&judged_texts(&LETTER, &rude)).await.unwrap_err();
            assert_eq!((blocked.categories, blocked.places), (vec!["harassment".to_owned()], Vec::new()));
        }
        assert_eq!(server.asked.load(Ordering::Relaxed), 2);
        clock.advance(KEPT);
        assert_eq!(judge.known(&texts), None);
        let bad = letter(&json!("I will kill you."));
        assert!(judge.judge(&judged_texts(&LETTER, &bad)).await.is_err());
        assert_eq!(server.asked.load(Ordering::Relaxed), 2, "the rules suffice");
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_blocks_nothing() {
        for (fails, sleeps) in [(true, false), (false, true)] {
            let (server, clock) = (Arc::new(Server { fails, sleeps, ..Server::default() }), clock());
            let judge = judge(&server, &clock);
            let input = letter(&json!("rude words"));
            let texts = judged_texts(&LETTER, &input);
            assert_eq!(judge.judge(&texts).await, Ok(()));
            assert_eq!(judge.judge(&texts).await, Ok(()));
            assert_eq!(server.asked.load(Ordering::Relaxed), 1, "not again at once");
            clock.advance(KEPT_UNASKED);
            assert_eq!(judge.known(&texts), None);
        }
    }
}
