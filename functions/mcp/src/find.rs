//! Two tools that make a short list enough: one finds any tool of this service, the other calls it by its name.

use api::discovery::search::discover;
use base::choose::{Ask, Chooser, Tool};
use base::input::{self, Field, FieldError};
use platform::http::ApiError;
use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use tools::availability::Lacking;

use crate::Shop;
use crate::calls::known;
use crate::tools::{Call, Entry, FIND_FIELDS, named, price, purchase_fields, work_input};

/// Tools of each kind in an answer, unless the caller sets another number.
const USUAL: u64 = 5;
/// Size limit of an answer, in bytes: a model pays for every one of them. The last tools are left out first.
const MAX_ANSWER: usize = 5 * 1024;
/// Longest text about a tool and about an argument, in characters.
const MAX_ABOUT: usize = 240;
const MAX_ARGUMENT: usize = 80;
/// Most choices of an argument that are named.
const MAX_CHOICES: usize = 8;

impl Shop {
    /// The tool of this name: as it is listed, without the prefix, or as HTTP calls it.
    pub fn named(&self, name: &str) -> Option<&Entry> {
        let is_listed = |entry: &&Entry| entry.name == name || entry.word(&self.prefix) == name;
        let is_sold = |entry: &&Entry| matches!(entry.kind, Call::Paid(spec) if spec.name == name);
        self.tools.iter().find(is_listed).or_else(|| self.tools.iter().find(is_sold))
    }

    /// The tools that fit the words: what is sold, as `GET /v1/tools/discover` finds it, and free calls.
    pub fn found(&self, arguments: &JsonObject, lacking: &Lacking) -> Result<Value, ApiError> {
        let asked = known(FIND_FIELDS, arguments)?;
        let text = |name: &str| asked.get(name).and_then(Value::as_str);
        let limit = asked.get("limit").and_then(Value::as_u64).unwrap_or(USUAL);
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for name in ["query", "category"] {
            query.append_pair(name, text(name).unwrap_or_default());
        }
        query.append_pair("limit", &limit.to_string());
        let page = discover(self.app.catalog, &self.app.config.service_name, Some(&query.finish()), lacking)?;
        let sold = page.tools.iter().filter_map(|found| self.tools.iter().find(|entry| entry.name == found.mcp_name));
        let mut sold: Vec<Value> = sold.filter_map(|entry| self.offered(entry)).collect();
        let free = self.free(text("query").unwrap_or_default());
        let free = free.into_iter().take(usize::try_from(limit).unwrap_or_default());
        let mut free: Vec<Value> = free.map(|entry| self.described(entry)).collect();
        let mut has_more = page.next_cursor.is_some();
        let size = |tools: &[Value]| tools.iter().map(|tool| tool.to_string().len()).sum::<usize>();
        while size(&sold) + size(&free) > MAX_ANSWER && sold.len() + free.len() > 1 {
            if free.len() > sold.len() {
                free.pop()
            } else {
                sold.pop()
            };
            has_more = true;
        }
        let mut told = json!({
            "tools": sold,
            "free_tools": &free,
            "has_more": has_more,
            "how_to_call": named(
                "{use_tool} with name and input; add idempotency_key and max_cost_usdc when you buy. Nothing fits? Try \
                 other words; {price_list} has everything that is sold.",
                &self.prefix,
            ),
        });
        if page.nothing_fits && free.is_empty() {
            told["nothing_fits"] = json!(true);
            let near = page.near.iter();
            let near = near.map(
                |near| json!({"name": near.mcp_name, "title": near.title, "about": short(near.summary, MAX_ABOUT)}),
            );
            told["near"] = near.collect();
        }
        // In an answer it stands before what is offered: a model takes the first that fits.
        if !page.unavailable.is_empty() {
            told["best_match_is_not_offered_here"] = json!(page.unavailable);
        }
        Ok(told)
    }

    fn offered(&self, entry: &Entry) -> Option<Value> {
        let Call::Paid(spec) = entry.kind else { return None };
        Some(json!({
            "name": entry.name,
            "title": spec.title,
            "about": short(spec.summary, MAX_ABOUT),
            "category": spec.category,
            "price": price(spec),
            "arguments": arguments(&work_input(spec, &self.prefix)),
        }))
    }

    fn described(&self, entry: &Entry) -> Value {
        let shown = entry.shown(&self.prefix);
        json!({
            "name": entry.name,
            "title": shown.title,
            "about": short(shown.description.as_deref().unwrap_or_default(), MAX_ABOUT),
            "price": "Free",
            "arguments": arguments(&shown.input_schema),
        })
    }

    /// The free tools that fit the words, best first.
    fn free(&self, query: &str) -> Vec<&Entry> {
        let free: Vec<&Entry> =
            self.tools.iter().filter(|entry| matches!(entry.kind, Call::Read(_) | Call::Request)).collect();
        let texts: Vec<(&str, String)> = free.iter().map(|entry| self.texts(entry)).collect();
        let tools: Vec<Tool> = texts.iter().map(|(name, about)| Tool { name, about, ..Tool::default() }).collect();
        let ranked = Chooser::new(&tools).ranked(query, Ask::Tool).into_iter();
        ranked.filter(|choice| choice.fit >= Ask::Tool.floor()).map(|choice| free[choice.at]).collect()
    }

    fn texts<'a>(&'a self, entry: &'a Entry) -> (&'a str, String) {
        let shown = entry.shown(&self.prefix);
        let (title, about) = (shown.title.as_deref(), shown.description.as_deref());
        (entry.word(&self.prefix), format!("{}: {}", title.unwrap_or_default(), about.unwrap_or_default()))
    }
}

/// The arguments of a schema in a line each, such as `string, required: The vehicle's number`.
fn arguments(schema: &Map<String, Value>) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array);
    let line = |(name, argument): (&String, &Value)| {
        let mut line = argument["type"].as_str().unwrap_or("string").to_owned();
        if required.is_some_and(|required| required.iter().any(|required| required == name)) {
            line.push_str(", required");
        }
        let choices = argument["enum"].as_array().filter(|choices| choices.len() <= MAX_CHOICES);
        if let Some(choices) = choices {
            let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
            line = format!("{line}, one of {}", choices.join(" "));
        }
        if let Some(about) = argument["description"].as_str() {
            line = format!("{line}: {}", short(about, MAX_ARGUMENT));
        }
        (name.clone(), json!(line))
    };
    schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(line).collect()
}

/// The beginning of a text, up to a word's end.
fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
    format!("{whole} …")
}

/// The name in a call of a tool by its name, and the arguments for that tool: its own, and those of the purchase.
///
/// # Errors
/// Every argument that nothing would read, because a misspelt cap would be ignored silently; and those of the purchase that
/// `input` has with another value.
pub fn unwrapped(fields: &[Field], arguments: JsonObject) -> Result<(String, JsonObject), ApiError> {
    let asked: Map<String, Value> = input::validate(fields, &arguments).map_err(ApiError::InvalidRequest)?;
    let mut own = asked.get("input").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    for (name, value) in arguments {
        if fields.iter().any(|field| field.name == name) {
            continue;
        }
        if !purchase_fields().any(|field| field.name == name) {
            wrong.push(FieldError::new(name, "is not an argument of this tool; the named tool's own go into input"));
        } else if own.get(&name).is_some_and(|inner| *inner != value) {
            wrong.push(FieldError::new(name, "has another value in input"));
        } else {
            own.insert(name, value);
        }
    }
    let name = asked.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if wrong.is_empty() { Ok((name, own)) } else { Err(ApiError::InvalidRequest(wrong)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::USE_FIELDS;

    /// A cap or a dry run that is not seen would cost money.
    #[test]
    fn arguments_of_the_purchase_are_never_lost() {
        let read = |arguments: Value| match unwrapped(USE_FIELDS, arguments.as_object().unwrap().clone()) {
            Ok((name, own)) => Ok(json!([name, own])),
            Err(ApiError::InvalidRequest(wrong)) => Err(wrong[0].path.clone()),
            Err(other) => panic!("{other:?}"),
        };
        for (arguments, wanted) in [
            (json!({"name": "x"}), json!(["x", {}])),
            (json!({"name": "x", "input": {"a": 1}, "memo": "m"}), json!(["x", {"a": 1, "memo": "m"}])),
            (
                json!({"name": "x", "input": {"max_cost_usdc": 1}, "max_cost_usdc": 1, "dry_run": true}),
                json!(["x", {"max_cost_usdc": 1, "dry_run": true}]),
            ),
        ] {
            assert_eq!(read(arguments), Ok(wanted));
        }
        for (arguments, path) in [
            (json!({"name": "x", "max_cost": 1}), "max_cost"),
            (json!({"name": "x", "vin": "1HG"}), "vin"),
            (json!({"name": "x", "input": {"max_cost_usdc": 5}, "max_cost_usdc": 1}), "max_cost_usdc"),
            (json!({"name": "x", "input": {"dry_run": false}, "dry_run": true}), "dry_run"),
            (json!({"name": "x", "input": "y"}), "input"),
            (json!({"input": {}}), "name"),
        ] {
            assert_eq!(read(arguments), Err(path.to_owned()));
        }
    }
}
