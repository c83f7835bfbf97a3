//! OpenStreetMap, by Overpass: <https://wiki.openstreetmap.org/wiki/Overpass_API/Overpass_QL> and
//! <https://wiki.openstreetmap.org/wiki/Overpass_API> (read Nov 2026). It has no ratings or reviews.

use base::encoding::percent_encoded;
use base::tool_result::Source;
use platform::config::Capability;
use platform::providers::{Amount, Ask, Charge, Outbound, OutboundError};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::business::{Business, Found, line, web};

pub const NAME: &str = "overpass";
const ORIGIN: &str = "https://overpass-api.de";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Places,
    tools: &["local_search", "local_resolve"],
    amount: Amount::Unknown("a public server that asks nothing"),
};
/// Keys whose values are kinds of places.
const KINDS: [&str; 6] = ["amenity", "shop", "craft", "office", "healthcare", "leisure"];

pub async fn find(
    outbound: &Outbound,
    words: &str,
    place: &str,
    most: usize,
    deadline: Instant,
) -> Result<Found, OutboundError> {
    // In "Austin, TX" the first part names the area.
    let area = place.split(',').next().unwrap_or(place).trim();
    let query = query(words, area, most);
    let body = format!("data={}", percent_encoded(&query)).into_bytes();
    let ask = Ask {
        method: http::Method::POST,
        body: Some(("application/x-www-form-urlencoded", body)),
        per_second: 0.5,
        ..Ask::get("/api/interpreter")
    };
    let (_, answer) = outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
    let businesses = elements(&answer)?.iter().take(most).filter_map(business).collect();
    Ok(Found {
        businesses,
        source: Source::upstream(NAME, None),
        calls: 1,
        attribution: "© OpenStreetMap contributors, ODbL 1.0",
    })
}

/// The elements of an answer. A query that ran out of time or memory has status 200, few or no elements, and a remark: that
/// is an error.
fn elements(answer: &Value) -> Result<&Vec<Value>, OutboundError> {
    if let Some(remark) = answer["remark"].as_str().filter(|remark| remark.contains("error")) {
        return Err(OutboundError::Failed(remark.chars().take(200).collect()));
    }
    let elements = answer["elements"].as_array();
    elements.ok_or_else(|| OutboundError::Unreadable("not what its documentation says".to_owned()))
}

/// The Overpass query for places with a name, in the area, whose kind or name matches.
fn query(words: &str, area: &str, most: usize) -> String {
    let pattern = escaped(words);
    let kind = escaped(&words.to_lowercase()).replace(' ', "_");
    let mut query =
        format!("[out:json][timeout:20];area[\"name\"=\"{}\"][\"boundary\"=\"administrative\"]->.a;(", quoted(area));
    for key in KINDS {
        query.push_str(&format!("nwr(area.a)[\"name\"][\"{key}\"~\"{kind}\",i];"));
        query.push_str(&format!("nwr(area.a)[\"name\"~\"{pattern}\",i][\"{key}\"];"));
    }
    query.push_str(&format!(");out center tags {most};"));
    query
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The text as a literal regular expression inside quotes.
fn escaped(text: &str) -> String {
    let literal: String = text
        .chars()
        .flat_map(|letter| {
            let special = !letter.is_alphanumeric() && letter != ' ';
            special.then_some('\\').into_iter().chain([letter])
        })
        .collect();
    quoted(&literal)
}

fn business(element: &Value) -> Option<Business> {
    let tags: &Map<String, Value> = element["tags"].as_object()?;
    let tag = |name: &str| line(tags.get(name));
    let street = tag("addr:street").map(|street| format!("{} {street}", tag("addr:housenumber").unwrap_or_default()));
    let parts = [street, tag("addr:city"), tag("addr:state"), tag("addr:postcode")];
    let address: Vec<String> = parts.into_iter().flatten().map(|part| part.trim().to_owned()).collect();
    let at = |name: &str| element[name].as_f64().or_else(|| element["center"][name].as_f64());
    let kind = KINDS.iter().find_map(|key| tag(key));
    let socials = ["contact:facebook", "contact:instagram", "contact:twitter"].iter();
    Some(Business {
        id: format!("{}/{}", element["type"].as_str()?, element["id"].as_u64()?),
        name: tag("name")?,
        website: web(tags.get("website").or(tags.get("contact:website"))),
        phone: tag("phone").or_else(|| tag("contact:phone")),
        address: (!address.is_empty()).then(|| address.join(", ")),
        category: kind.map(|kind| kind.replace('_', " ")),
        // Places that closed lose these tags or get them with a prefix.
        is_open: Some(!tags.keys().any(|key| key.starts_with("disused:") || key.starts_with("abandoned:"))),
        is_chain: tags.contains_key("brand:wikidata"),
        socials: socials.filter_map(|name| web(tags.get(*name))).collect(),
        latitude: at("lat"),
        longitude: at("lon"),
        ..Business::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aborted_query_is_an_error_not_an_empty_result() {
        let of = |text: &str| elements(&serde_json::from_str(text).unwrap()).map(Vec::len);
        assert_eq!(of(r#"{"elements":[]}"#), Ok(0));
        let broken =
            r#"{"elements":[],"remark":"runtime error: Query timed out in \"query\" at line 1 after 20 seconds."}"#;
        assert!(matches!(of(broken), Err(OutboundError::Failed(_))));
        assert!(matches!(of("{}"), Err(OutboundError::Unreadable(_))));
    }

    #[test]
    fn words_are_escaped_in_the_query() {
        let query = query("Bob's \"Best\" (BBQ); out;", "Au\"stin\\", 5);
        assert!(query.contains(r#"area["name"="Au\"stin\\"]"#), "{query}");
        assert!(query.contains(r#"~"Bob\\'s \\\"Best\\\" \\(BBQ\\)\\; out\\;",i"#), "{query}");
    }
}
