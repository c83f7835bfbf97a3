//! Fills request templates with the input and escapes each value for its place.

use base::encoding::percent_encoded;
use serde_json::{Map, Value};

use super::row::{Pair, Request};

/// The paths that can be filled in, with the query, in the order in which they are tried.
pub fn paths(request: &Request, input: &Map<String, Value>) -> Vec<String> {
    let query = query(request.query, input);
    let paths = request.paths.iter().filter_map(|path| fill(path, input, percent_encoded));
    // A path may contain a query of its own, as older APIs need.
    paths.map(|path| if query.is_empty() { path } else { format!("{path}?{query}") }).collect()
}

fn query(pairs: &[Pair], input: &Map<String, Value>) -> String {
    let plain = |text: &str| text.to_owned();
    let filled = pairs.iter().filter_map(|pair| match pair {
        Pair::One(name, template) => Some((*name, fill(template, input, plain)?)),
        Pair::Joined(name, between, clauses) => {
            let clauses: Vec<String> = clauses.iter().filter_map(|clause| fill(clause, input, plain)).collect();
            (!clauses.is_empty()).then(|| (*name, clauses.join(between)))
        }
    });
    let pairs: Vec<String> =
        filled.map(|(name, value)| format!("{}={}", percent_encoded(name), percent_encoded(&value))).collect();
    pairs.join("&")
}

/// Fills a template, each member escaped; `None` if a member is missing.
pub fn fill(template: &str, input: &Map<String, Value>, escape: fn(&str) -> String) -> Option<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (placeholder, after) = after.split_once('}')?;
        filled.push_str(before);
        let (name, form) = placeholder.split_once('|').unwrap_or((placeholder, ""));
        let (name, default) = name.split_once('=').map_or((name, None), |(name, default)| (name, Some(default)));
        let given = input.get(name).and_then(plain).filter(|text| !text.is_empty());
        filled.push_str(&escape(&formed(form, &given.or(default.map(str::to_owned))?)));
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Converts a member to the form that the source wants.
fn formed(form: &str, text: &str) -> String {
    match form {
        "upper" => text.to_uppercase(),
        "lower" => text.to_lowercase(),
        // EDGAR's identifiers have ten digits.
        "cik" => format!("{text:0>10}"),
        "digits" => text.chars().filter(char::is_ascii_digit).collect(),
        // Removes what could end a quoted phrase in Lucene and similar query languages.
        "phrase" => {
            let safe: String = text.chars().map(|letter| if "\"\\".contains(letter) { ' ' } else { letter }).collect();
            format!("\"{}\"", safe.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        // Four digits, about ten metres: weather.gov redirects requests that are more precise.
        "degrees" => match text.parse::<f64>() {
            Ok(degrees) => ((degrees * 10_000.0).round() / 10_000.0 + 0.0).to_string(),
            Err(_) => text.to_owned(),
        },
        // A literal of SoQL, in SQL's form (dev.socrata.com/docs/datatypes/text.html).
        "soql" => format!("'{}'", text.replace('\'', "''")),
        "soql_part" => {
            // SoQL has no escape for LIKE's wildcards.
            let text: String = text.to_uppercase().chars().filter(|letter| !"%_".contains(*letter)).collect();
            format!("'%{}%'", text.replace('\'', "''"))
        }
        _ => text.to_owned(),
    }
}

/// The forms that [`fill`] knows.
#[cfg(test)]
pub const FORMS: [&str; 9] = ["", "upper", "lower", "cik", "digits", "phrase", "degrees", "soql", "soql_part"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::row::GET;
    use super::*;

    #[test]
    fn missing_members_are_left_out_and_values_are_escaped() {
        let request = Request {
            paths: &["/by/{id}", "/all/{name|upper}.json"],
            query: &[
                Pair::One("limit", "{limit=5}"),
                Pair::One("since", "{since}"),
                Pair::Joined("q", " AND ", &["name:{name|phrase}", "state:{state}", "where={name|soql}"]),
            ],
            ..GET
        };
        let input = json!({"name": "O'Neil \"x\" & Söhne/../?", "state": ""});
        assert_eq!(
            paths(&request, input.as_object().unwrap()),
            [
                "/all/O%27NEIL%20%22X%22%20%26%20S%C3%96HNE%2F..%2F%3F.json?limit=5&q=name%3A%22O%27Neil%20x%20%26%20S%C3%B6hne\
              %2F..%2F%3F%22%20AND%20where%3D%27O%27%27Neil%20%22x%22%20%26%20S%C3%B6hne%2F..%2F%3F%27"
            ]
        );
        let degrees = |text: &str| formed("degrees", text);
        assert_eq!([degrees("38.89767631"), degrees("-97.1"), degrees("-0.00001")], ["38.8977", "-97.1", "0"]);
        let input = json!({"id": "a/b", "name": "n", "limit": 7});
        assert_eq!(paths(&request, input.as_object().unwrap()).len(), 2);
        assert!(paths(&request, input.as_object().unwrap())[0].starts_with("/by/a%2Fb?limit=7&q="));
    }
}
