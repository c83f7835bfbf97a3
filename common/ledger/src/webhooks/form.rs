//! Request bodies for endpoints.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, EndpointId};
use base::input::{self, Field, FieldError, Kind, validate};
use platform::net::{FetchPolicy, check_url};
use serde_json::{Map, Value};
use url::Url;

use super::EventKind;
use super::endpoint::{Disabled, Endpoint, OVERLAP};

/// Largest page of deliveries.
pub const MOST_DELIVERIES: usize = 100;
/// Subscribes to all events.
pub const ALL: &str = "*";
/// The names a subscription may contain: [`ALL`], and each event.
const NAMES: [&str; EventKind::SUBSCRIBABLE.len() + 1] = {
    let mut names = [ALL; EventKind::SUBSCRIBABLE.len() + 1];
    let mut next = 0;
    while next < EventKind::SUBSCRIBABLE.len() {
        names[next + 1] = EventKind::SUBSCRIBABLE[next].0.as_str();
        next += 1;
    }
    names
};
const URL: Kind = Kind::Text { min: 1, max: 2048, format: None };
const EVENTS: Kind = Kind::List { of: &Kind::Choice(&NAMES), max: NAMES.len() };
const DESCRIPTION: Kind = Kind::Text { min: 0, max: 200, format: None };
const ENABLED: Field = Field::optional("enabled", Kind::Bool, "Whether events are posted");

/// The body of `POST /v1/webhooks`.
pub static CREATE: &[Field] = &[
    Field::required("url", URL, "Where events are posted: https, on port 80 or 443"),
    Field::optional("events", EVENTS, "The events to post; all of them if this is left out or contains *"),
    Field::optional("description", DESCRIPTION, "What it is for"),
    ENABLED,
];
/// The body of `PATCH /v1/webhooks/{id}`.
pub static CHANGE: &[Field] = &[
    Field::optional("url", URL, "Where events are posted: https, on port 80 or 443"),
    Field::optional("events", EVENTS, "The events to post; all of them if this contains *"),
    Field::optional("description", DESCRIPTION, "What it is for"),
    ENABLED,
];
/// Members of an endpoint's view that a change accepts and ignores, so that an answer can be sent back.
pub const OF_ANSWERS: [&str; 8] = [
    "id",
    "phone_number_id",
    "disabled_reason",
    "resting_until",
    "old_secret_until",
    "created_at",
    "updated_at",
    "secret",
];
/// The body of `POST /v1/webhooks/{id}/rotate-secret`.
pub static ROTATE: &[Field] = &[Field::optional(
    "overlap_hours",
    Kind::Integer { min: 0, max: 168 },
    "How many hours the old secret still signs beside the new one; 24 if left out",
)];

/// A validated body: the members that are present are changed.
#[derive(Debug, Default, PartialEq)]
pub struct Draft {
    pub url: Option<String>,
    pub events: Option<Vec<EventKind>>,
    pub description: Option<String>,
    pub enabled: Option<bool>,
}

/// Checks the text of a webhook URL. The address it resolves to is checked at each delivery. The URL must be https, except
/// a local one: `policy` allows local URLs only in the development runner.
pub fn check_address(text: &str, policy: &FetchPolicy) -> Result<Url, String> {
    let url = check_url(text, policy).map_err(|refused| refused.to_string())?;
    let is_local = check_url(text, &FetchPolicy::default()).is_err();
    if url.scheme() == "https" || is_local { Ok(url) } else { Err("must be an https URL".to_owned()) }
}

impl Draft {
    /// Reads a body with these members. `also`: members of answers, which are ignored.
    pub fn read(
        fields: &'static [Field],
        also: &[&str],
        body: &Map<String, Value>,
        policy: &FetchPolicy,
    ) -> Result<Draft, Vec<FieldError>> {
        // `null` counts as absent for optional members.
        let optional = |name: &str| fields.iter().any(|field| field.name == name && !field.required);
        let given: Map<String, Value> = body
            .iter()
            .filter(|(name, value)| !(value.is_null() && optional(name)))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect();
        let mut errors = input::unknown(fields, also, body);
        let kept = validate(fields, &given).unwrap_or_else(|wrong| {
            errors.extend(wrong);
            Map::new()
        });
        let text = |name: &str| kept.get(name).and_then(Value::as_str);
        let mut draft = Draft { description: text("description").map(str::to_owned), ..Draft::default() };
        if let Some(url) = text("url") {
            match check_address(url, policy) {
                Ok(url) => draft.url = Some(url.to_string()),
                Err(refused) => errors.push(FieldError::new("url", refused)),
            }
        }
        if let Some(names) = kept.get("events").and_then(Value::as_array) {
            if names.is_empty() {
                errors.push(FieldError::new("events", "must name at least one, or *"));
            }
            let all = names.iter().any(|name| name == ALL);
            let kinds = names.iter().filter_map(|name| EventKind::subscribable(name.as_str()?));
            let mut kinds: Vec<EventKind> = if all { Vec::new() } else { kinds.collect() };
            kinds.sort_unstable();
            kinds.dedup();
            draft.events = Some(kinds);
        }
        draft.enabled = kept.get("enabled").and_then(Value::as_bool);
        if errors.is_empty() { Ok(draft) } else { Err(errors) }
    }

    /// A new endpoint. `None` without a URL, which [`CREATE`] requires.
    pub fn endpoint(self, agent: AgentId, now: Timestamp) -> Option<Endpoint> {
        let new = Endpoint::new(EndpointId::random(), agent, self.url?, self.events.unwrap_or_default(), now);
        Some(Endpoint {
            description: self.description.filter(|text| !text.is_empty()),
            disabled: (self.enabled == Some(false)).then_some(Disabled::ByOwner),
            ..new
        })
    }

    /// Applies the change. Enabling the endpoint, or changing its URL, ends its rest.
    pub fn apply(&self, before: &Endpoint) -> Endpoint {
        let mut after = before.clone();
        if let Some(url) = &self.url {
            after.url.clone_from(url);
        }
        if let Some(events) = &self.events {
            after.events.clone_from(events);
        }
        if let Some(description) = &self.description {
            after.description = Some(description.clone()).filter(|text| !text.is_empty());
        }
        match self.enabled {
            None => {}
            Some(true) => after.disabled = None,
            Some(false) => after.disabled = after.disabled.or(Some(Disabled::ByOwner)),
        }
        if self.enabled == Some(true) || after.url != before.url {
            after.strikes = 0;
            after.resting = None;
        }
        after
    }
}

/// How long the old secret signs beside the new one.
pub fn overlap(body: &Map<String, Value>) -> Result<Duration, Vec<FieldError>> {
    // `null` counts as absent, but its name is checked too.
    let mut errors = input::unknown(ROTATE, &[], body);
    let given = body.iter().filter(|(_, value)| !value.is_null()).map(|(n, v)| (n.clone(), v.clone())).collect();
    let kept = validate(ROTATE, &given).unwrap_or_else(|wrong| {
        errors.extend(wrong);
        Map::new()
    });
    if !errors.is_empty() {
        return Err(errors);
    }
    let hours = kept.get("overlap_hours").and_then(Value::as_u64);
    Ok(hours.map_or(OVERLAP, |hours| Duration::from_secs(hours * 3600)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<Draft, Vec<String>> {
        let draft = Draft::read(CREATE, &[], body.as_object().unwrap(), &FetchPolicy::default());
        draft.map_err(|errors| errors.into_iter().map(|error| error.path).collect())
    }

    #[test]
    fn subscription_names_are_the_event_names() {
        let kinds: Vec<&str> = EventKind::SUBSCRIBABLE.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(NAMES[1..], kinds);
    }

    #[test]
    fn every_wrong_member_is_reported() {
        let good =
            read(json!({"url": "https://Example.org/hook#x", "events": ["order_create", "order_create"]})).unwrap();
        assert_eq!(good.url.as_deref(), Some("https://example.org/hook#x"));
        assert_eq!(good.events, Some(vec![EventKind::OrderCreate]));
        let all = read(json!({"url": "https://example.org/", "events": ["order_create", "*"], "description": null}));
        assert_eq!(all.unwrap().events, Some(Vec::new()));
        for (body, paths) in [
            (json!({}), vec!["url"]),
            (json!({"url": null}), vec!["url"]),
            (
                json!({"url": 5, "events": "x", "description": [], "enabled": "yes"}),
                vec!["url", "events", "description", "enabled"],
            ),
            (json!({"url": "https://example.org/", "events": []}), vec!["events"]),
            (json!({"url": "https://example.org/", "events": ["webhook.test"]}), vec!["events.0"]),
            (json!({"url": "https://example.org/", "event": null, "id": "wh_1"}), vec!["event", "id"]),
        ] {
            assert_eq!(read(body.clone()), Err(paths.into_iter().map(str::to_owned).collect()), "{body}");
        }
    }

    #[test]
    fn addresses_are_public_and_https() {
        for url in [
            "http://example.org/",
            "ftp://example.org/",
            "https://u:p@example.org/",
            "https://example.org:8443/",
            "https://localhost/",
            "https://127.0.0.1/",
            "https://169.254.169.254/",
            "https://[::1]/",
            "https://10.0.0.1/",
            "https://metadata.google.internal/",
            "https://0x7f.1/",
            "not a url",
            "https://",
        ] {
            assert_eq!(read(json!({"url": url})), Err(vec!["url".to_owned()]), "{url}");
        }
        let local = FetchPolicy::default().allowing_local([("127.0.0.1".to_owned(), 9000)]);
        assert!(check_address("http://127.0.0.1:9000/x", &local).is_ok());
        assert!(check_address("http://127.0.0.1:9001/x", &local).is_err());
        assert!(check_address("http://example.org/", &local).is_err());
    }
}
