//! Ids of messages: UUIDs version 7, so that the keys of an agent's messages sort by time.

use base::clock::Timestamp;
use base::digest::sha256_parts;
use uuid::Uuid;

/// The largest time in a UUID version 7, in milliseconds.
const MAX_MILLIS: u64 = (1 << 48) - 1;

/// UUID version 7 of a time and of what identifies the message, so that a repeated write writes the same item. The first part
/// names the kind: `mail` or `sms`.
pub fn message_uuid(at: Timestamp, parts: &[&[u8]]) -> Uuid {
    let digest = sha256_parts(parts);
    let mut rest = [0; 10];
    rest.copy_from_slice(&digest[..10]);
    uuid_at(at, &rest)
}

fn uuid_at(at: Timestamp, rest: &[u8; 10]) -> Uuid {
    let millis = u64::try_from(at.millis()).unwrap_or_default().min(MAX_MILLIS);
    uuid::Builder::from_unix_timestamp_millis(millis, rest).into_uuid()
}

/// The time in a UUID version 7.
pub fn time_of(id: Uuid) -> Timestamp {
    let millis = id.as_bytes().iter().take(6).fold(0, |millis: i64, byte| (millis << 8) | i64::from(*byte));
    Timestamp::from_millis(millis)
}

/// The sort keys of a page of messages, both included: those made at `since` or later and older than the message `before`.
/// The keys are `prefix` and the id. `None`: nothing can be on the page.
pub fn page(prefix: &str, since: Option<Timestamp>, before: Option<Uuid>) -> Option<(String, String)> {
    let first = since.map_or(Uuid::nil(), |since| uuid_at(since, &[0; 10]));
    // Texts of UUIDs sort like their numbers.
    let last = match before {
        Some(before) => Uuid::from_u128(before.as_u128().checked_sub(1)?),
        None => Uuid::from_u128(u128::MAX),
    };
    (first <= last).then(|| (format!("{prefix}{first}"), format!("{prefix}{last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_repeat() {
        let (early, late) = (Timestamp::from_millis(1_795_249_530_250), Timestamp::from_millis(1_795_249_530_251));
        let id = message_uuid(early, &[b"mail", b"event", b"agent"]);
        assert_eq!(id, message_uuid(early, &[b"mail", b"event", b"agent"]));
        assert_ne!(id, message_uuid(early, &[b"mail", b"even", b"tagent"]));
        assert_eq!((id.get_version_num(), time_of(id)), (7, early));
        for part in [b"a", b"b", b"c", b"d"] {
            let (early, late) = (message_uuid(early, &[part]), message_uuid(late, &[b"event"]));
            assert!(early.to_string() < late.to_string());
        }
    }

    #[test]
    fn a_page_is_after_since_and_before_the_cursor() {
        let at = |secs| message_uuid(Timestamp::from_secs(secs), &[b"x"]);
        let rows = [
            // since, before, message, whether it is on the page
            (None, None, at(100), true),
            (Some(100), None, at(100), true),
            (Some(101), None, at(100), false),
            (None, Some(at(100)), at(100), false),
            (None, Some(at(100)), at(99), true),
            (None, Some(at(99)), at(100), false),
            (Some(99), Some(at(100)), at(99), true),
            (Some(100), Some(at(99)), at(99), false),
            (None, Some(Uuid::nil()), at(100), false),
        ];
        for (since, before, message, expected) in rows {
            let key = format!("IN#{message}");
            let page = page("IN#", since.map(Timestamp::from_secs), before);
            let is_in = page.is_some_and(|(from, to)| from <= key && key <= to);
            assert_eq!(is_in, expected, "{since:?} {before:?} {message}");
        }
    }
}
