//! What Unipile's answers mean. They are untrusted: every text is cut, and what is missing is left out.

use base::untrusted_text::visible;
use platform::providers::OutboundError;
use serde_json::Value;

use super::super::{Attachment, Attendee, CONNECTED, Chat, Fate, GONE, Heard, Member, Page, Profile};
use super::time;
use crate::account::{Tier, Word};
use crate::action::Ids;

/// Longest id or cursor.
const MAX_ID: usize = 512;
/// Longest name or line.
const MAX_LINE: usize = 300;
/// Longest text of a message, in characters.
const MAX_TEXT: usize = 20_000;
const MAX_ATTACHMENTS: usize = 20;
const MAX_ATTENDEES: usize = 50;
/// Most messages of a page, whatever was asked for.
const MAX_PAGE: usize = 250;

/// An id, as it came; none if it is too long to be one.
pub(crate) fn id(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    (!text.is_empty() && text.len() <= MAX_ID && !text.chars().any(char::is_control)).then(|| text.to_owned())
}

/// One line of somebody's words.
pub(crate) fn line(value: &Value) -> Option<String> {
    let text = visible(value.as_str()?);
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_LINE).collect();
    (!text.is_empty()).then_some(text)
}

/// 1 and true are yes.
pub(crate) fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_i64().is_some_and(|number| number != 0))
}

/// The account's own type in an error: `errors/disconnected_account`.
fn error_type(body: &Value) -> &str {
    body["type"].as_str().unwrap_or_default()
}

pub(super) fn is_logged_out(body: &Value) -> bool {
    ["disconnected_account", "expired_credentials", "account_restricted"]
        .iter()
        .any(|word| error_type(body).contains(word))
}

/// What a refusal of a change means.
pub(super) fn refusal(status: u16, body: &Value) -> Fate {
    let kind = error_type(body);
    let is = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if is_logged_out(body) {
        return Fate::Refused("account_disconnected", "the account is not logged in at the network".to_owned());
    }
    if is(&["already_connected"]) {
        return Fate::Refused(CONNECTED, "the member is a connection already".to_owned());
    }
    if is(&["not_connected", "no_connection_with_recipient", "unreachable_recipient"]) {
        return Fate::Refused("recipient_not_connected", "the member is not a connection of this account".to_owned());
    }
    if is(&["blocked_recipient", "user_unreachable"]) {
        return Fate::Refused("not_connected", "the network does not let this account reach the member".to_owned());
    }
    let too_many =
        ["cannot_resend", "already_invited_recently", "limit_exceeded", "too_many_requests", "cannot_invite"];
    if status == 429 || is(&too_many) {
        return Fate::Refused("rate_limited", "the network does not allow this now".to_owned());
    }
    if is(&["content_too_large", "invalid_message", "too_many_characters", "content"]) {
        return Fate::Refused("content_rejected", "the network does not accept this text".to_owned());
    }
    match status {
        // Our key, not the account: the operator mends it, and nothing was done.
        401 | 403 => Fate::NotNow(format!("the network's provider refused this deployment (HTTP {status})")),
        404 => Fate::Refused(GONE, "the network has no such thing".to_owned()),
        _ => Fate::Refused("provider_unavailable", format!("the network's provider refused this (HTTP {status})")),
    }
}

/// What no answer to a change means.
pub(super) fn unanswered(error: &OutboundError) -> Fate {
    let reason = format!("the network's provider {error}");
    match error {
        OutboundError::NotConfigured(_) | OutboundError::NotAsked(_) | OutboundError::TooMany => Fate::NotNow(reason),
        OutboundError::Unauthorized(_) => Fate::NotNow(reason),
        OutboundError::Refused(400..=499) => Fate::Refused("provider_unavailable", reason),
        OutboundError::Refused(_)
        | OutboundError::Unknown(_)
        | OutboundError::Unreadable(_)
        | OutboundError::Failed(_) => Fate::Unknown(reason),
    }
}

/// What a change made.
pub(super) fn done(body: &Value) -> Ids {
    Ids {
        message: id(&body["message_id"]),
        chat: id(&body["chat_id"]),
        invitation: id(&body["invitation_id"]),
        at: None,
    }
}

pub(super) fn ids_of(message: &Heard) -> Ids {
    Ids { message: Some(message.id.clone()), chat: Some(message.chat.clone()), invitation: None, at: Some(message.at) }
}

/// The ids of the member that a sent invitation is for.
pub(super) fn invited(item: &Value) -> impl Iterator<Item = &str> {
    ["invited_user_id", "invited_user_public_id", "provider_id"].into_iter().filter_map(|name| item[name].as_str())
}

pub(super) fn invitation(item: &Value) -> Ids {
    Ids { invitation: id(&item["id"]), ..Ids::default() }
}

/// An account. `None`: it is not one of the professional network.
pub(super) fn member(body: &Value) -> Option<Member> {
    if body["type"].as_str() != Some("LINKEDIN") {
        return None;
    }
    let im = &body["connection_params"]["im"];
    let sources = body["sources"].as_array().map_or(&[][..], Vec::as_slice);
    let said = sources.iter().filter_map(|source| source["status"].as_str()).find(|status| *status != "OK");
    let word = match said {
        None => Word::Ok,
        Some("CREDENTIALS" | "STOPPED") => Word::Credentials,
        Some("CONNECTING") => Word::Connecting,
        Some(_) => Word::Error,
    };
    let has_plan = im["premiumFeatures"].as_array().is_some_and(|features| !features.is_empty());
    let is_paid = has_plan || ["premiumContractId", "premiumId"].iter().any(|name| id(&im[*name]).is_some());
    Some(Member {
        id: id(&im["id"]).or_else(|| id(&im["publicIdentifier"]))?,
        name: line(&body["name"]).or_else(|| line(&im["username"])),
        tier: if is_paid { Tier::Paid } else { Tier::Free },
        word,
    })
}

pub(super) fn profile(body: &Value) -> Option<Profile> {
    let name = [line(&body["first_name"]), line(&body["last_name"])];
    let name = name.into_iter().flatten().collect::<Vec<_>>().join(" ");
    Some(Profile {
        provider_id: id(&body["provider_id"])?,
        public_identifier: id(&body["public_identifier"]),
        name: (!name.is_empty()).then_some(name),
        headline: line(&body["headline"]),
        location: line(&body["location"]),
        network_distance: line(&body["network_distance"]),
        is_open_profile: body["is_open_profile"].as_bool(),
    })
}

/// A page of messages; `None`: it has none of the list's form.
pub(super) fn page(body: &Value) -> Option<Page> {
    let items = body["items"].as_array()?;
    Some(Page { messages: items.iter().take(MAX_PAGE).filter_map(message).collect(), next: id(&body["cursor"]) })
}

pub(super) fn message(item: &Value) -> Option<Heard> {
    Some(Heard {
        id: id(&item["id"])?,
        chat: id(&item["chat_id"])?,
        is_own: flag(&item["is_sender"]),
        sender_id: id(&item["sender_id"]),
        sender_name: None,
        text: text(&item["text"]),
        at: time(&item["timestamp"])?,
        is_seen: flag(&item["seen"]),
        is_edited: flag(&item["edited"]),
        is_deleted: flag(&item["deleted"]),
        attachments: attachments(&item["attachments"]),
    })
}

/// A message's text.
pub(crate) fn text(value: &Value) -> Option<String> {
    let text: String = value.as_str()?.chars().take(MAX_TEXT).collect();
    (!text.is_empty()).then_some(text)
}

pub(crate) fn attachments(value: &Value) -> Vec<Attachment> {
    let all = value.as_array().map_or(&[][..], Vec::as_slice);
    let read = |item: &Value| Attachment {
        id: id(&item["id"]),
        kind: line(&item["type"]),
        mimetype: line(&item["mimetype"]),
        size: item["size"].as_u64().or_else(|| item["file_size"].as_u64()),
        file_name: line(&item["file_name"]),
    };
    all.iter().take(MAX_ATTACHMENTS).map(read).collect()
}

pub(super) fn chat(body: &Value, attendees: Option<&Value>) -> Chat {
    let list = attendees.and_then(|list| list["items"].as_array()).map_or(&[][..], Vec::as_slice);
    Chat {
        name: line(&body["name"]),
        subject: line(&body["subject"]),
        kind: match body["type"].as_i64() {
            Some(0) => Some("direct".to_owned()),
            Some(1) => Some("group".to_owned()),
            _ => None,
        },
        unread: body["unread_count"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or_default(),
        is_archived: flag(&body["archived"]),
        is_read_only: flag(&body["read_only"]),
        muted_until: line(&body["muted_until"]),
        attendees: list.iter().take(MAX_ATTENDEES).map(attendee).collect(),
    }
}

/// How far a member is away, in the words of profiles: chats have others.
fn distance(value: &Value) -> Option<String> {
    let said = line(value)?;
    Some(match said.as_str() {
        "DISTANCE_1" => "FIRST_DEGREE".to_owned(),
        "DISTANCE_2" => "SECOND_DEGREE".to_owned(),
        "DISTANCE_3" => "THIRD_DEGREE".to_owned(),
        _ => said,
    })
}

fn attendee(item: &Value) -> Attendee {
    let more = &item["specifics"];
    Attendee {
        provider_id: id(&item["provider_id"]),
        name: line(&item["name"]),
        is_self: flag(&item["is_self"]),
        profile_url: line(&item["profile_url"]).filter(|url| url.starts_with("https://")),
        headline: line(&more["headline"]),
        occupation: line(&more["occupation"]),
        location: line(&more["location"]),
        network_distance: distance(&more["network_distance"]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_error_leaves_the_fate_of_a_message_open() {
        let why = || "cause".to_owned();
        for (error, is_open) in [
            (OutboundError::Refused(500), true),
            (OutboundError::Refused(503), true),
            (OutboundError::Unknown(why()), true),
            (OutboundError::Unreadable(why()), true),
            (OutboundError::TooMany, false),
            (OutboundError::NotAsked(why()), false),
            (OutboundError::Unauthorized(401), false),
            (OutboundError::Refused(413), false),
        ] {
            assert_eq!(matches!(unanswered(&error), Fate::Unknown(_)), is_open, "{error:?}");
        }
    }

    #[test]
    fn refusals_have_the_contracts_words() {
        for (status, kind, reason) in [
            (422, "errors/no_connection_with_recipient", Some("recipient_not_connected")),
            (401, "errors/disconnected_account", Some("account_disconnected")),
            (422, "errors/cannot_resend_yet", Some("rate_limited")),
            (429, "", Some("rate_limited")),
            (422, "errors/cannot_resend_within_24hrs", Some("rate_limited")),
            (422, "errors/blocked_recipient", Some("not_connected")),
            (422, "errors/already_connected", Some(CONNECTED)),
            (403, "errors/account_restricted", Some("account_disconnected")),
            (400, "errors/content_too_large", Some("content_rejected")),
            (404, "errors/resource_not_found", Some(GONE)),
            (422, "errors/unprocessable_entity", Some("provider_unavailable")),
            (401, "errors/missing_credentials", None),
        ] {
            let said = match refusal(status, &json!({"type": kind})) {
                Fate::Refused(reason, _) => Some(reason),
                _ => None,
            };
            assert_eq!(said, reason, "{kind}");
        }
    }

    #[test]
    fn hostile_answers_are_cut() {
        let long = "x".repeat(100_000);
        let body = json!({"items": [
            {"id": "m1", "chat_id": "c1", "is_sender": 1, "text": long, "timestamp": "2026-11-28T10:00:00.000Z", "seen": 0,
             "attachments": vec![json!({"id": "a", "size": 5}); 100]},
            {"id": long, "chat_id": "c1", "timestamp": "2026-11-28T10:00:00.000Z"},
            {"id": "m2", "chat_id": "c1", "timestamp": "yesterday"},
            null, 7,
        ], "cursor": long});
        let page = page(&body).unwrap();
        assert_eq!((page.messages.len(), page.next), (1, None));
        let only = &page.messages[0];
        assert_eq!((only.text.as_ref().unwrap().len(), only.attachments.len(), only.is_own), (MAX_TEXT, 20, true));
        assert_eq!(member(&json!({"type": "WHATSAPP"})), None);
        let tier = |im: Value| member(&json!({"type": "LINKEDIN", "connection_params": {"im": im}})).unwrap().tier;
        assert_eq!(tier(json!({"id": "m", "premiumContractId": null, "premiumFeatures": []})), Tier::Free);
        assert_eq!(tier(json!({"id": "m", "premiumContractId": "c"})), Tier::Paid);
        assert_eq!(distance(&json!("DISTANCE_1")).as_deref(), Some("FIRST_DEGREE"));
        assert_eq!(line(&json!(" a\u{202e}\n b ")).as_deref(), Some("a b"));
    }
}
