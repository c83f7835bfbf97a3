//! `local_resolve`: the one business with a name at an address, and how certain the match is.

use std::sync::Arc;
use std::time::Duration;

use base::input::{Field, FieldError};
use base::money::Usdc;
use platform::config::Capability;
use platform::net::FetchPolicy;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::snapshot::{normal, similarity};
use tools::spec::{Need, Price, ToolSpec};
use tools::{Output, Runner, Running, Task, Toolbox};

use super::business::{self, Business};
use crate::lookups::row::{any_of, words};

/// Minimum confidence of a match.
const SURE: f64 = 0.8;

pub static SPEC: ToolSpec = ToolSpec {
    name: "local_resolve",
    title: "Local business resolve",
    summary: "The business of a name at an address, city, postal code or phone: website, phone, status, with a confidence",
    group: "knowledge",
    paths: &["/v1/tools/local/resolve", "/v1/tools/resolve/business"],
    price: Price::Fixed(Usdc::from_micro(5_000)),
    deadline: Duration::from_secs(30),
    needs: |_, _| vec![Need::Provider(Capability::Places)],
    input: &[
        Field::required("name", words(1, 200), "The business's name"),
        Field::optional("address", words(1, 200), "Its street address"),
        Field::optional("city", words(1, 100), "Its city"),
        Field::optional("region", words(1, 100), "Its state or province"),
        Field::optional("postal_code", words(1, 20), "Its postal code"),
        Field::optional("phone", words(5, 30), "Its phone number, the strongest evidence"),
    ],
    check: |input: &Map<String, Value>, _: &FetchPolicy| -> Vec<FieldError> {
        any_of(input, &["address", "city", "postal_code", "phone"])
    },
    example: || json!({"name": "Franklin Barbecue", "address": "900 E 11th St", "city": "Austin", "region": "TX"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let deadline = Instant::now() + SPEC.deadline.saturating_sub(Duration::from_secs(2));
        let parts: Vec<&str> = ["city", "address", "region", "postal_code"]
            .iter()
            .map(|name| task.text(name))
            .filter(|text| !text.is_empty())
            .collect();
        let place = if parts.is_empty() { task.text("phone").to_owned() } else { parts.join(", ") };
        let found = business::find(&toolbox, task.text("name"), &place, 20, deadline).await?;
        let mut scored: Vec<(f64, &Business)> =
            found.businesses.iter().map(|business| (confidence(business, &task.input), business)).collect();
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        let best = scored.first().map(|(score, business)| (*score, business.to_json()));
        let (score, business) = best.map_or((0.0, None), |(score, business)| (score, Some(business)));
        let is_it = score >= SURE;
        let result = json!({
            "found": is_it, "confidence": score,
            "result": business.clone().filter(|_| is_it), "closest_match": business.filter(|_| !is_it),
            "candidates_considered": found.businesses.len(), "attribution": found.attribution,
        });
        Ok(Output::new(result, found.source))
    })
}

/// Confidence of a match, 0 to 1. The name counts most, a phone number decides, an address supports.
fn confidence(business: &Business, input: &Map<String, Value>) -> f64 {
    let given = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let (ours, theirs) = (normal(given("name")), normal(&business.name));
    let split = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (ours, theirs) = (split(&ours), split(&theirs));
    let name = similarity(
        &ours.iter().map(String::as_str).collect::<Vec<_>>(),
        &theirs.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let phone = digits(given("phone"));
    let theirs = digits(business.phone.as_deref().unwrap_or_default());
    let tail = |digits: &str| digits.chars().rev().take(9).collect::<String>();
    if phone.len() >= 7 && theirs.len() >= 7 && tail(&phone) == tail(&theirs) {
        return (0.5 + name / 2.0).min(1.0);
    }
    let address = normal(business.address.as_deref().unwrap_or_default());
    let has = |part: &str| {
        let part = normal(part);
        !part.is_empty() && part.split(' ').all(|word| address.split(' ').any(|theirs| theirs == word))
    };
    let parts = ["address", "city", "postal_code"].iter().filter(|part| !given(part).is_empty());
    let (said, fitting) =
        parts.fold((0, 0), |(said, fitting), part| (said + 1, fitting + usize::from(has(given(part)))));
    let place = if said == 0 { 0.5 } else { fitting as f64 / said as f64 };
    ((name * 0.7 + place * 0.3) * 1_000.0).round() / 1_000.0
}

fn output() -> Value {
    let mut or_null = business::schema();
    or_null["type"] = json!(["object", "null"]);
    json!({
        "type": "object",
        "properties": {
            "found": {"type": "boolean"},
            "confidence": {"type": "number"},
            "result": or_null,
            "closest_match": or_null,
            "candidates_considered": {"type": "integer"},
            "attribution": {"type": "string"},
        },
        "required": ["found", "confidence", "result", "closest_match", "candidates_considered", "attribution"],
    })
}
