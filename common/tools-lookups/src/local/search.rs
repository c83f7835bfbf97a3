//! `local_search`: businesses of a kind at places.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base::input::{Field, FieldError, Kind, Range};
use base::money::Usdc;
use platform::config::Capability;
use platform::net::FetchPolicy;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::spec::{Need, Price, ToolSpec};
use tools::{Output, Runner, Running, Task, Toolbox};

use super::business::{self, Business};
use crate::lookups::row::words;

/// Maximum number of requests to the provider in one search (places times kinds).
const MAX_QUESTIONS: usize = 25;
/// This many results with the same name count as a chain.
const CHAIN: usize = 3;

static WORD: Kind = words(1, 100);

pub static SPEC: ToolSpec = ToolSpec {
    name: "local_search",
    title: "Local business search",
    summary: "Businesses of a kind at places: name, website, phone, address, rating, coordinates",
    group: "knowledge",
    paths: &["/v1/tools/local/search", "/v1/tools/find/business"],
    price: Price::Fixed(Usdc::from_micro(10_000)),
    deadline: Duration::from_secs(60),
    needs: |_, _| vec![Need::Provider(Capability::Places)],
    input: &[
        Field::required("location", Kind::List { of: &WORD, max: 50 }, "Cities or neighbourhoods, such as Austin, TX"),
        Field::optional("category", Kind::List { of: &WORD, max: 10 }, "Kinds of business"),
        Field::optional("keywords", Kind::List { of: &WORD, max: 10 }, "Words, in place of kinds"),
        Field::optional(
            "min_rating",
            Kind::Number(Range { above: None, min: Some(0.0), max: Some(5.0) }),
            "Minimum rating, in stars",
        ),
        Field::optional("min_review_count", Kind::Integer { min: 0, max: 1_000_000 }, "Minimum number of reviews"),
        Field::optional("is_chain", Kind::Bool, "true: only chains; false: no known chains"),
        Field::optional("has_domain", Kind::Bool, "true: only those with a website"),
        Field::optional("operating_status", Kind::Choice(&["open", "any"]), "Default: open"),
        Field::optional("limit", Kind::Integer { min: 1, max: 500 }, "Default: 100"),
    ],
    check,
    example: || json!({"category": ["hvac contractor"], "location": ["Austin, TX"], "limit": 25}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn list<'a>(input: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    input.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn check(input: &Map<String, Value>, _: &FetchPolicy) -> Vec<FieldError> {
    let (places, kinds) =
        (list(input, "location").len(), list(input, "category").len() + list(input, "keywords").len());
    let mut errors = Vec::new();
    if places == 0 {
        errors.push(FieldError::new("location", "needs at least one place"));
    }
    if kinds == 0 {
        errors.push(FieldError::new("category", "a category or a keyword is needed"));
    }
    errors
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let limit = task.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(100);
        let deadline = Instant::now() + SPEC.deadline.saturating_sub(Duration::from_secs(2));
        let places = list(&task.input, "location");
        let kinds = [list(&task.input, "category"), list(&task.input, "keywords")].concat();
        let questions: Vec<(&str, &str)> =
            places.iter().flat_map(|place| kinds.iter().map(move |kind| (*kind, *place))).collect();
        let (mut all, mut seen, mut calls, mut said) = (Vec::new(), HashSet::new(), 0, None);
        for (index, (kind, place)) in questions.iter().take(MAX_QUESTIONS).enumerate() {
            task.reporter.say(u8::try_from(index * 100 / questions.len()).unwrap_or(99), "searching");
            let found = business::find(&toolbox, kind, place, limit, deadline).await?;
            calls += found.calls;
            all.extend(found.businesses.into_iter().filter(|business| seen.insert(business.id.clone())));
            said = Some((found.source, found.attribution));
            if all.len() >= limit * 2 {
                break;
            }
        }
        let asked_all = calls as usize >= questions.len();
        mark_chains(&mut all);
        let kept: Vec<&Business> = all.iter().filter(|business| fits(business, &task.input)).collect();
        let total = kept.len();
        let results: Vec<Value> = kept.into_iter().take(limit).map(Business::to_json).collect();
        let (source, attribution) = said.ok_or_else(|| tools::ToolError::internal("nothing was asked"))?;
        let result = json!({
            "results": results, "total_found": total, "truncated": total > limit || !asked_all, "vendor_calls": calls,
            "attribution": attribution,
        });
        Ok(Output::new(result, source))
    })
}

fn mark_chains(businesses: &mut [Business]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for business in businesses.iter() {
        *counts.entry(business.name.to_lowercase()).or_default() += 1;
    }
    for business in businesses {
        business.is_chain |= counts[&business.name.to_lowercase()] >= CHAIN;
    }
}

fn fits(business: &Business, input: &Map<String, Value>) -> bool {
    let flag = |name: &str| input.get(name).and_then(Value::as_bool);
    let number = |name: &str| input.get(name).and_then(Value::as_f64);
    number("min_rating").is_none_or(|least| business.rating.is_some_and(|rating| rating >= least))
        && number("min_review_count").is_none_or(|least| business.review_count.unwrap_or(0) as f64 >= least)
        && flag("is_chain").is_none_or(|chain| business.is_chain == chain)
        && flag("has_domain").is_none_or(|has| business.domain().is_some() == has)
        && (input.get("operating_status").and_then(Value::as_str) == Some("any") || business.is_open != Some(false))
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "results": {"type": "array", "items": business::schema()},
            "total_found": {"type": "integer"},
            "truncated": {"type": "boolean"},
            "vendor_calls": {"type": "integer"},
            "attribution": {"type": "string"},
        },
        "required": ["results", "total_found", "truncated", "vendor_calls", "attribution"],
    })
}
