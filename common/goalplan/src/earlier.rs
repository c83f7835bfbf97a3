//! Members of earlier results that an argument can take, read from the output schemas.

use serde_json::Value;

use crate::meaning::{Meaning, Slot, is_of, meaning_of, shape};
use crate::words::name_parts;

/// A member of a result.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// A JSON pointer; the first of every list.
    pub pointer: String,
    pub parts: Vec<String>,
    pub meaning: Meaning,
    pub is_text: bool,
    pub depth: usize,
}

const MAX_OUTPUTS: usize = 300;
const MAX_DEPTH: usize = 6;
/// Members that belong to the call rather than to what was found.
const OF_CALL: &[&str] = &[
    "request_id",
    "receipt_id",
    "provider_request_id",
    "cost",
    "status",
    "completed_at",
    "checked_at",
    "cached",
    "as_of",
    "source",
    "sources",
    "notice",
    "provider",
    "mode",
    "index",
    "query",
    "filters",
    "warning",
    "found",
    "model",
    "suggestion",
    "report_gcs_uri",
    "report_path",
    "attribution",
    "vendor_calls",
];

pub(crate) fn outputs(schema: &Value) -> Vec<Output> {
    let mut found = Vec::new();
    walk(schema, "", 0, &mut found);
    found
}

fn walk(schema: &Value, at: &str, depth: usize, found: &mut Vec<Output>) {
    let Some(members) = schema["properties"].as_object() else { return };
    for (name, member) in members {
        if found.len() >= MAX_OUTPUTS || depth >= MAX_DEPTH {
            return;
        }
        if OF_CALL.contains(&name.as_str()) {
            continue;
        }
        let (one, is_list, _) = shape(member);
        let pointer = format!("{at}/{}{}", name.replace('~', "~0").replace('/', "~1"), if is_list { "/0" } else { "" });
        if one["properties"].is_object() {
            walk(one, &pointer, depth + 1, found);
            continue;
        }
        let parts = name_parts(name);
        let meaning = meaning_of(&parts, one, one["description"].as_str().unwrap_or_default());
        found.push(Output { pointer, parts, meaning, is_text: is_of(one, "string"), depth });
    }
}

/// Forms that mean the same wherever they stand.
pub(crate) const EXACT: &[Meaning] =
    &[Meaning::Email, Meaning::Phone, Meaning::Url, Meaning::Domain, Meaning::Vin, Meaning::Iban];

/// The member that an argument can take. `is_named`: the clause points to what was found before.
pub(crate) fn matching(slot: &Slot, outputs: &[Output], is_named: bool) -> Option<String> {
    let (one, ..) = shape(&slot.schema);
    let wants_text = is_of(one, "string");
    let score = |output: &Output| -> Option<usize> {
        if output.is_text != wants_text {
            return None;
        }
        let same_name = output.parts == slot.parts;
        let ends_alike = output.parts.last() == slot.parts.last();
        let points = match slot.meaning {
            Meaning::Body | Meaning::Subject | Meaning::Bool | Meaning::Choice | Meaning::Count | Meaning::Date => {
                return None;
            }
            _ if same_name && is_telling(slot) => 40,
            _ if same_name && is_named => 30,
            exact if EXACT.contains(&exact) && output.meaning == exact => 20 + 10 * usize::from(ends_alike),
            Meaning::Company | Meaning::Person | Meaning::Name | Meaning::Query if is_named => name_like(slot, output)?,
            _ => return None,
        };
        Some(points * 10 - output.depth)
    };
    let best = outputs.iter().filter_map(|output| score(output).map(|points| (points, output)));
    best.rev().max_by_key(|(points, _)| *points).map(|(_, output)| output.pointer.clone())
}

/// A name that says enough by itself: `latitude`, `gene_id`, `make`; not `name` or `id`.
fn is_telling(slot: &Slot) -> bool {
    let plain = [
        "name", "id", "title", "query", "text", "type", "kind", "state", "country", "limit", "year", "city", "address",
        "value",
    ];
    slot.parts.len() > 1 || !plain.contains(&slot.name.as_str())
}

fn name_like(slot: &Slot, output: &Output) -> Option<usize> {
    let is_name = |words: &[&str]| output.is_text && output.parts.iter().any(|part| words.contains(&part.as_str()));
    match slot.meaning {
        Meaning::Company => is_name(&["company", "employer", "organization"]).then_some(15),
        _ if output.meaning == slot.meaning => Some(14),
        _ => is_name(&["name", "title"]).then_some(12),
    }
}

/// The member that says best what a result is, for a message; the whole result where there is none.
pub(crate) fn telling(schema: &Value) -> String {
    const TELLING: &[&str] = &[
        "report_content",
        "report",
        "summary",
        "answer",
        "markdown",
        "transcript",
        "text",
        "results",
        "result",
        "profile",
        "company",
        "output",
    ];
    let has = |name: &&&str| schema["properties"][**name].is_object();
    TELLING.iter().find(has).map(|name| format!("/{name}")).unwrap_or_default()
}

/// The pointer for another item of the first list: `/results/0/url` becomes `/results/2/url`.
pub(crate) fn of_item(pointer: &str, item: usize) -> Option<String> {
    let at = pointer.find("/0")?;
    let rest = &pointer[at + 2..];
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}/{item}{rest}", &pointer[..at]))
}
