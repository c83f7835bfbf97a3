//! Telnyx's phone numbers, which are for calls: those that belong to the operator's Call Control application.
//! <https://developers.telnyx.com/api-reference/phone-number-configurations/list-phone-numbers>
//!
//! Calls themselves are in the crate `tools-voice`, with the same [`NAME`], [`ORIGIN`] and [`ask`].

use base::encoding::percent_encoded;
use platform::config::Redacted;
use platform::providers::{Ask, Outbound, OutboundError};
use serde_json::Value;
use tokio::time::Instant;
use tools::Toolbox;

use super::{Line, Listed, MAX_NUMBERS};
use crate::number::Number;

pub const NAME: &str = "telnyx";
pub const ORIGIN: &str = "https://api.telnyx.com/v2";
/// The names in `PROVIDER_KEYS` of the application's id, of the key that Telnyx signs with, and of the assistant that calls have.
pub const CONNECTION: &str = "telnyx_connection";
pub const PUBLIC_KEY: &str = "telnyx_public_key";
pub const ASSISTANT: &str = "telnyx_assistant";

const HOOK_PATH: &str = "/v1/providers/telnyx";
/// Telnyx publishes no number for all requests; it takes 30 new calls a second.
const PER_SECOND: f64 = 20.0;
/// Most numbers of a page.
const PAGE: usize = 250;

/// The key of `PROVIDER_KEYS`.
pub async fn key(outbound: &Outbound) -> Result<Redacted, OutboundError> {
    outbound.needed_key(NAME).await
}

/// The id of the operator's application. Numbers belong to it, and calls are made by it.
pub async fn connection(outbound: &Outbound) -> Result<Redacted, OutboundError> {
    outbound.needed_key(CONNECTION).await
}

/// A request of the account.
pub fn ask(key: &Redacted, ask: Ask) -> Ask {
    Ask { per_second: PER_SECOND, ..ask }.header("authorization", format!("Bearer {}", key.expose()))
}

/// The address that the application has to have: Telnyx tells there what happens in calls.
pub fn hook_url(base: &str) -> String {
    format!("{base}{HOOK_PATH}")
}

/// A path with its query. Names like `filter[to]` and all values are encoded.
pub fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", percent_encoded(name), percent_encoded(value))).collect();
    format!("{path}?{}", pairs.join("&"))
}

/// The application's numbers, at most [`MAX_NUMBERS`].
pub async fn list(toolbox: &Toolbox, deadline: Instant) -> Result<Listed, OutboundError> {
    let (key, connection) = (key(&toolbox.outbound).await?, connection(&toolbox.outbound).await?);
    let mut found = Listed::default();
    for page in 1..=MAX_NUMBERS / PAGE {
        let (size, number) = (PAGE.to_string(), page.to_string());
        let pairs = [
            ("filter[connection_id]", connection.expose()),
            ("page[size]", size.as_str()),
            ("page[number]", number.as_str()),
        ];
        let ask = ask(&key, Ask::get(query("/phone_numbers", &pairs)));
        let (_, answer) = toolbox.outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
        let no_list = || OutboundError::Unreadable("its numbers are no list".to_owned());
        let phones = answer["data"].as_array().ok_or_else(no_list)?;
        sort(phones, &mut found);
        if phones.len() < PAGE {
            break;
        }
    }
    Ok(found)
}

/// The addresses that the application posts to, and to which it posts again what was not taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    pub first: Option<String>,
    pub failover: Option<String>,
}

/// The application's addresses.
/// <https://developers.telnyx.com/api-reference/call-control-applications/retrieve-a-call-control-application>
pub async fn addresses(toolbox: &Toolbox, deadline: Instant) -> Result<Addresses, OutboundError> {
    let (key, connection) = (key(&toolbox.outbound).await?, connection(&toolbox.outbound).await?);
    let ask = ask(&key, Ask::get(format!("/call_control_applications/{}", percent_encoded(connection.expose()))));
    let (_, answer) = toolbox.outbound.json(NAME, ORIGIN, &ask, &[404], deadline).await?;
    let address = |name: &str| answer["data"][name].as_str().map(str::to_owned);
    Ok(Addresses { first: address("webhook_event_url"), failover: address("webhook_event_failover_url") })
}

/// Only a number whose status is `active` makes and takes calls. Calls name the number itself, so that is its id.
fn sort(phones: &[Value], found: &mut Listed) {
    for phone in phones {
        let number = phone["phone_number"].as_str().and_then(|number| Number::parse(number).ok());
        match number {
            Some(number) if phone["status"] == "active" => {
                found.usable.push(Line { id: number.as_str().to_owned(), number });
            }
            other => {
                found.not_ready += 1;
                found.others.extend(other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_active_numbers_are_used() {
        let phones = [
            json!({"id": "1", "phone_number": "+12065552001", "status": "active"}),
            json!({"id": "2", "phone_number": "+12065552002", "status": "purchase-pending"}),
            json!({"id": "3", "phone_number": "sip:a@b", "status": "active"}),
            json!({}),
        ];
        let mut found = Listed::default();
        sort(&phones, &mut found);
        let number = Number::parse("+12065552001").unwrap();
        assert_eq!(found.usable, [Line { id: "+12065552001".to_owned(), number }]);
        assert_eq!((found.not_ready, found.elsewhere), (3, 0));
    }

    #[test]
    fn a_query_is_encoded() {
        let path = query("/call_events", &[("filter[to]", "+1 2"), ("a", "&=")]);
        assert_eq!(path, "/call_events?filter%5Bto%5D=%2B1%202&a=%26%3D");
    }
}
