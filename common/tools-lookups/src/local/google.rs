//! Google Places, Text Search (New): <https://developers.google.com/maps/documentation/places/web-service/text-search>
//! (read Nov 2026). At most three pages of 20; the field mask decides the price.

use base::tool_result::Source;
use platform::config::Capability;
use platform::providers::{Amount, Ask, Charge, Outbound, OutboundError};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::business::{Business, Found, line, web};

pub const NAME: &str = "google_places";
const ORIGIN: &str = "https://places.googleapis.com";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Places,
    tools: &["local_search", "local_resolve"],
    amount: Amount::public(
        35_000,
        "a page of a Text Search with phone numbers",
        "https://developers.google.com/maps/billing-and-pricing/pricing",
        "2026-10",
    ),
};
const FIELDS: &str = "places.id,places.displayName,places.formattedAddress,places.internationalPhoneNumber,places.websiteUri,\
                      places.rating,places.userRatingCount,places.businessStatus,places.location,places.primaryType,nextPageToken";
const PAGE: usize = 20;
const MAX_PAGES: u64 = 3;

pub async fn find(
    outbound: &Outbound,
    words: &str,
    place: &str,
    most: usize,
    deadline: Instant,
) -> Result<Found, OutboundError> {
    let key = outbound.needed_key(NAME).await?;
    let (mut businesses, mut token, mut calls) = (Vec::new(), None::<String>, 0);
    loop {
        let mut body = json!({"textQuery": format!("{words} in {place}"), "pageSize": PAGE.min(most.max(1))});
        if let Some(token) = &token {
            body["pageToken"] = json!(token);
        }
        // Each page is billed, so a request that may have been answered is not repeated.
        let ask = Ask { repeatable: false, per_second: 5.0, ..Ask::post("/v1/places:searchText", &body) };
        let ask = ask.header("x-goog-api-key", key.expose()).header("x-goog-fieldmask", FIELDS);
        let (_, answer) = outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
        calls += 1;
        if let Some(refusal) = refusal(&answer) {
            return Err(refusal);
        }
        businesses.extend(answer["places"].as_array().into_iter().flatten().filter_map(business));
        token = line(answer.get("nextPageToken"));
        if token.is_none() || businesses.len() >= most || calls == MAX_PAGES {
            return Ok(Found { businesses, source: Source::upstream(NAME, None), calls, attribution: "Google Maps" });
        }
    }
}

/// An error in an answer with a success status. An empty object means "nothing found". Errors may have this API's form or
/// the older one (`status`), which some proxies still use.
fn refusal(answer: &Value) -> Option<OutboundError> {
    let said = answer.pointer("/error/status").or(answer.get("status")).and_then(Value::as_str);
    let is_answer = answer.as_object().is_some_and(|members| {
        members.is_empty() || (members.get("places").is_some_and(Value::is_array) && !members.contains_key("error"))
    });
    match said {
        None | Some("OK" | "ZERO_RESULTS") if is_answer => None,
        Some("REQUEST_DENIED" | "PERMISSION_DENIED" | "UNAUTHENTICATED") => Some(OutboundError::Unauthorized(403)),
        Some("OVER_QUERY_LIMIT" | "OVER_DAILY_LIMIT" | "RESOURCE_EXHAUSTED") => Some(OutboundError::TooMany),
        Some(said) => Some(OutboundError::Failed(said.chars().take(100).collect())),
        None if answer.get("error").is_some() => Some(OutboundError::Failed("an error without a status".to_owned())),
        None => Some(OutboundError::Unreadable("not what its documentation says".to_owned())),
    }
}

fn business(place: &Value) -> Option<Business> {
    Some(Business {
        id: line(place.get("id"))?,
        name: line(place.pointer("/displayName/text"))?,
        website: web(place.get("websiteUri")),
        phone: line(place.get("internationalPhoneNumber")),
        address: line(place.get("formattedAddress")),
        category: line(place.get("primaryType")).map(|kind| kind.replace('_', " ")),
        is_open: match place["businessStatus"].as_str() {
            Some("OPERATIONAL") => Some(true),
            Some("CLOSED_TEMPORARILY" | "CLOSED_PERMANENTLY") => Some(false),
            _ => None,
        },
        rating: place["rating"].as_f64(),
        review_count: place["userRatingCount"].as_u64(),
        latitude: place.pointer("/location/latitude").and_then(Value::as_f64),
        longitude: place.pointer("/location/longitude").and_then(Value::as_f64),
        ..Business::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_with_a_success_status_are_not_empty_results() {
        let of = |text: &str| refusal(&serde_json::from_str(text).unwrap());
        for answer in ["{}", r#"{"places":[]}"#, r#"{"places":[{"id":"x"}],"nextPageToken":"n"}"#] {
            assert_eq!(of(answer), None, "{answer}");
        }
        for (answer, refusal) in [
            (r#"{"status":"REQUEST_DENIED","error_message":"no","results":[]}"#, OutboundError::Unauthorized(403)),
            (r#"{"status":"OVER_QUERY_LIMIT","results":[]}"#, OutboundError::TooMany),
            (r#"{"error":{"code":403,"status":"PERMISSION_DENIED"},"places":[]}"#, OutboundError::Unauthorized(403)),
            (r#"{"status":"UNKNOWN_ERROR","places":[]}"#, OutboundError::Failed("UNKNOWN_ERROR".to_owned())),
        ] {
            assert_eq!(of(answer), Some(refusal), "{answer}");
        }
        for answer in ["[]", "null", r#"{"results":[]}"#, r#"{"error":{},"places":[]}"#, r#"{"places":{}}"#] {
            assert!(of(answer).is_some(), "{answer}");
        }
    }
}
