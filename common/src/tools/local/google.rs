//! Google Places, Text Search (New): <https://developers.google.com/maps/documentation/places/web-service/text-search> (read
//! Nov 2026). Pages of 20, three at most; a field mask says what is paid for.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::business::{Business, Found, line, web};
use crate::outcome::Source;
use crate::providers::{Ask, Outbound, OutboundError};

pub const NAME: &str = "google_places";
const ORIGIN: &str = "https://places.googleapis.com";
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
        // Each page is billed, so that one that may have been answered is not asked for again.
        let ask = Ask { repeatable: false, per_second: 5.0, ..Ask::post("/v1/places:searchText", &body) };
        let ask = ask.header("x-goog-api-key", key.expose()).header("x-goog-fieldmask", FIELDS);
        let (_, answer) = outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
        calls += 1;
        if !answer.is_object() {
            return Err(OutboundError::Unreadable("not what its documentation says".to_owned()));
        }
        businesses.extend(answer["places"].as_array().into_iter().flatten().filter_map(business));
        token = line(answer.get("nextPageToken"));
        if token.is_none() || businesses.len() >= most || calls == MAX_PAGES {
            return Ok(Found { businesses, source: Source::upstream(NAME, None), calls, attribution: "Google Maps" });
        }
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
