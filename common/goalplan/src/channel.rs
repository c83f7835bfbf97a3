//! How something is sent.

use crate::clauses::{Clause, message_at};
use crate::meaning::Meaning;
use crate::values::Found;

/// How something is sent: the words for it, and what names the recipient.
pub(crate) struct Channel {
    pub verbs: &'static [&'static str],
    pub nouns: &'static [&'static str],
    pub meaning: Meaning,
}

const CHANNELS: &[Channel] = &[
    Channel { verbs: &["email", "e-mail", "mail"], nouns: &["email", "e-mail", "mail"], meaning: Meaning::Email },
    Channel { verbs: &["text", "sms"], nouns: &["text", "sms", "message"], meaning: Meaning::Phone },
    Channel { verbs: &["call", "phone", "ring", "dial"], nouns: &["call", "ring"], meaning: Meaning::Phone },
];
/// Verbs that send by one of the channels.
const SENDS: &[&str] =
    &["send", "write", "drop", "forward", "shoot", "notify", "message", "make", "give", "reply", "draft"];
/// By which channel a clause sends, if it does.
pub(crate) fn channel(clause: &Clause, lead: &str, found: &[Found]) -> Option<&'static Channel> {
    if let Some(channel) = CHANNELS.iter().find(|channel| channel.verbs.contains(&lead)) {
        return Some(channel);
    }
    if !SENDS.contains(&lead) {
        return None;
    }
    let end = message_at(&clause.tokens).unwrap_or(clause.tokens.len());
    let words = &clause.tokens[..end.min(clause.tokens.len())];
    // "Make a call", but not "make a website": the noun stands near the verb.
    let near = words.iter().take(5).skip(1).take_while(|token| !token.is(&["about", "of", "for", "with"]));
    let by_noun = CHANNELS.iter().find(|channel| near.clone().any(|token| token.is(channel.nouns)));
    let delivers = matches!(lead, "send" | "forward" | "write" | "notify" | "message" | "shoot" | "drop");
    let has = |meaning: Meaning| found.iter().any(|one| one.meaning == meaning);
    match by_noun {
        Some(channel) if lead == "message" || channel.nouns[0] != "text" || !has(Meaning::Email) => Some(channel),
        _ if !delivers => None,
        _ if has(Meaning::Email) => Some(&CHANNELS[0]),
        _ if has(Meaning::Phone) => Some(&CHANNELS[1]),
        _ if words.iter().any(|token| token.is(&["me", "us", "her", "him", "them"])) => Some(&CHANNELS[0]),
        _ => None,
    }
}
