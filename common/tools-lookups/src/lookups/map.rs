//! Maps answers to results: takes out the members that a row names, bounds them and converts their types. The schema
//! follows from the same members. Answers are untrusted; the result always fits the schema.

use base::untrusted_text;
use serde_json::{Map, Value, json};

use super::row::{As, Member};

/// Maximum length of a nested list.
const MOST: usize = 100;

/// The members of an answer. `limit` bounds the row's own list, if the caller gave one.
pub fn members(members: &[Member], answer: &Value, limit: Option<usize>) -> Map<String, Value> {
    members.iter().map(|member| (member.name.to_owned(), value(member, answer, limit))).collect()
}

fn value(member: &Member, answer: &Value, limit: Option<usize>) -> Value {
    let found = find(answer, member.from);
    match member.kind {
        As::Texts(most) => {
            let texts = found.iter().flat_map(|value| match value {
                Value::Array(items) => items.iter().filter_map(|item| text(item, 500)).collect(),
                value => text(value, 500).into_iter().collect::<Vec<_>>(),
            });
            texts.take(most).collect()
        }
        As::Rows(of, usual) => self::rows(of, &found, limit.unwrap_or(usual), limit),
        As::List(of, most) => self::rows(of, &found, most, limit),
        As::Object(of) => match found.iter().find(|value| value.is_object()) {
            Some(value) => Value::Object(members(of, value, limit)),
            None => Value::Null,
        },
        kind => found.iter().find_map(|value| scalar(kind, value)).unwrap_or(Value::Null),
    }
}

fn rows(of: &[Member], found: &[&Value], most: usize, limit: Option<usize>) -> Value {
    let rows = found.iter().flat_map(|value| match value {
        Value::Array(items) => items.iter().collect::<Vec<_>>(),
        value => vec![*value],
    });
    let rows = rows.filter(|row| row.is_object()).take(most.min(MOST));
    rows.map(|row| Value::Object(members(of, row, limit))).filter(|row| !says_nothing(row)).collect()
}

/// Whether a value is empty at every depth.
pub fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(members) => members.values().all(says_nothing),
        _ => false,
    }
}

/// Whether `found` points at a scalar although members are read from inside it.
pub fn is_misshapen(answer: &Value, found: &str, members: &[Member]) -> bool {
    let lies_in = |from: &str| from.strip_prefix(found).is_some_and(|rest| rest.starts_with('/'));
    let has_parts = members
        .iter()
        .any(|member| member.from.split('|').any(lies_in) || member.from == found && member.kind.is_list());
    has_parts && !find(answer, found).iter().any(|value| value.is_array() || value.is_object())
}

fn scalar(kind: As, value: &Value) -> Option<Value> {
    match kind {
        As::Text(most) => text(value, most),
        As::Link => {
            let text = value.as_str()?.trim();
            let is_link = text.len() <= 2_000 && (text.starts_with("https://") || text.starts_with("http://"));
            (is_link && url::Url::parse(text).is_ok()).then(|| Value::from(untrusted_text::visible(text)))
        }
        As::Integer => {
            let number = to_number(value)?;
            (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then(|| Value::from(number as i64))
        }
        As::Number => serde_json::Number::from_f64(to_number(value)?).map(Value::Number),
        As::Flag => match value {
            Value::Bool(flag) => Some(Value::Bool(*flag)),
            Value::Number(number) => match number.as_i64()? {
                0 => Some(Value::Bool(false)),
                1 => Some(Value::Bool(true)),
                _ => None,
            },
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" | "1" | "t" => Some(Value::Bool(true)),
                "n" | "no" | "false" | "0" | "f" => Some(Value::Bool(false)),
                _ => None,
            },
            _ => None,
        },
        As::Date | As::DateMonthFirst | As::DateDayFirst | As::DateMillis => day(kind, value).map(Value::from),
        _ => None,
    }
}

fn text(value: &Value, most: usize) -> Option<Value> {
    let text = match value {
        Value::String(text) => untrusted_text::visible(text),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return None,
    };
    let text = text.trim();
    (!text.is_empty()).then(|| Value::from(text.chars().take(most).collect::<String>()))
}

fn to_number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        // Registers also write `1,234.50` and `$1,234`.
        Value::String(text) if text.len() <= 40 => {
            let plain: String = text.trim().chars().filter(|letter| !",$%".contains(*letter)).collect();
            plain.parse().ok().filter(|_| plain.bytes().any(|byte| byte.is_ascii_digit()))?
        }
        _ => return None,
    };
    number.is_finite().then_some(number)
}

fn day(kind: As, value: &Value) -> Option<String> {
    use chrono::NaiveDate;
    if let As::DateMillis = kind {
        let millis = value.as_i64().or_else(|| value.as_f64().map(|millis| millis as i64))?;
        return Some(chrono::DateTime::from_timestamp_millis(millis)?.format("%Y-%m-%d").to_string())
            .filter(|day| day.len() == 10);
    }
    let number = value.as_u64().map(|number| number.to_string());
    let text = value.as_str().map(str::trim).or(number.as_deref())?;
    // Also `8/1/2024 0:00`.
    let head: String = text.split_whitespace().next().unwrap_or_default().chars().take(10).collect();
    let parsed = match kind {
        As::DateMonthFirst => NaiveDate::parse_from_str(&head, "%m/%d/%Y"),
        As::DateDayFirst => NaiveDate::parse_from_str(&head, "%d/%m/%Y"),
        _ => NaiveDate::parse_from_str(&head, "%Y/%m/%d"),
    };
    // Registers mix date formats.
    let iso = || NaiveDate::parse_from_str(&head, "%Y-%m-%d");
    let compact = || NaiveDate::parse_from_str(&text.chars().take(8).collect::<String>(), "%Y%m%d");
    let parsed = parsed.or_else(|_| iso()).or_else(|_| compact());
    // Refuses years without four digits, such as ClinVar's "1/01/01 00:00".
    Some(parsed.ok()?.format("%Y-%m-%d").to_string()).filter(|day| day.len() == 10 && !day.starts_with(['-', '0']))
}

/// The values at a pointer; several if it has a `*`.
pub fn find<'a>(value: &'a Value, pointer: &str) -> Vec<&'a Value> {
    for alternative in pointer.split('|') {
        let found = follow(value, alternative);
        if found.iter().any(|value| !value.is_null()) {
            return found;
        }
    }
    Vec::new()
}

fn follow<'a>(value: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    for word in pointer.split('/').skip(1) {
        let mut next = Vec::new();
        for value in found {
            match (value, word) {
                (Value::Array(items), "*") => next.extend(items.iter().take(1_000)),
                (Value::Object(members), "*") => next.extend(members.values().take(1_000)),
                (Value::Array(items), index) => {
                    next.extend(index.parse().ok().and_then(|index: usize| items.get(index)))
                }
                (Value::Object(members), name) => next.extend(members.get(name.replace("~1", "/").as_str())),
                _ => {}
            }
        }
        found = next;
    }
    found
}

/// Whether the answer has the member, even if it is null.
pub fn is_said(value: &Value, pointer: &str) -> bool {
    !follow(value, pointer).is_empty()
}

/// Whether the pointer leads to anything that is not empty.
pub fn is_there(value: &Value, pointer: &str) -> bool {
    find(value, pointer).iter().any(|value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) => true,
    })
}

/// JSON Schema of the members.
pub fn schema(of: &[Member]) -> Value {
    let properties: Map<String, Value> = of.iter().map(|member| (member.name.to_owned(), described(member))).collect();
    let required: Vec<&str> = of.iter().map(|member| member.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn described(member: &Member) -> Value {
    let mut schema = match member.kind {
        As::Text(most) => json!({"type": ["string", "null"], "maxLength": most}),
        As::Link => json!({"type": ["string", "null"]}),
        As::Integer => json!({"type": ["integer", "null"]}),
        As::Number => json!({"type": ["number", "null"]}),
        As::Flag => json!({"type": ["boolean", "null"]}),
        As::Date | As::DateMonthFirst | As::DateDayFirst | As::DateMillis => {
            json!({"type": ["string", "null"], "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
        }
        As::Texts(_) => json!({"type": "array", "items": {"type": "string"}}),
        As::Rows(of, _) | As::List(of, _) => json!({"type": "array", "items": self::schema(of)}),
        As::Object(of) => {
            let mut schema = self::schema(of);
            schema["type"] = json!(["object", "null"]);
            schema
        }
    };
    if !member.about.is_empty() {
        schema["description"] = json!(member.about);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::super::row::{date, flag, integer, link, list, made, number, object, rows, text, texts};
    use super::*;

    static MEMBERS: &[Member] = &[
        text("name", "/n|/other"),
        integer("count", "/c"),
        number("share", "/s"),
        flag("open", "/o"),
        date("on", "/d"),
        made("us", "/us", As::DateMonthFirst),
        made("millis", "/ms", As::DateMillis),
        link("url", "/u"),
        texts("tags", "/t/*/v"),
        rows("rows", "/rows", &[text("a", "/a")], 2),
        list("nested", "/keyed/*", &[integer("k", "/k")], 5),
        object("inner", "/in", &[text("b", "")]),
    ];

    #[test]
    fn values_are_converted_to_their_types() {
        let answer = json!({
            "other": " A\u{202e}cme ", "c": "1,234", "s": "0.5", "o": "Y", "d": "20240131T00", "us": "1/31/2024 0:00",
            "ms": 1_700_000_000_000_i64, "u": "https://a.b/c", "t": [{"v": "x"}, {"v": 2}, {"w": 3}],
            "rows": [{"a": 1}, {"a": 2}, {"a": 3}], "keyed": {"uids": ["1"], "1": {"k": 7}}, "in": {"b": 1},
        });
        let expected = json!({
            "name": "Acme", "count": 1234, "share": 0.5, "open": true, "on": "2024-01-31", "us": "2024-01-31",
            "millis": "2023-11-14", "url": "https://a.b/c", "tags": ["x", "2"], "rows": [{"a": "1"}, {"a": "2"}],
            "nested": [{"k": 7}], "inner": {"b": null},
        });
        assert_eq!(Value::Object(members(MEMBERS, &answer, None)), expected);
        assert_eq!(members(MEMBERS, &answer, Some(1))["rows"].as_array().unwrap().len(), 1);
        assert_eq!(members(MEMBERS, &json!({"d": "1/01/01 00:00"}), None)["on"], Value::Null, "a day that is none");
        let nothing = members(MEMBERS, &Value::Null, None);
        assert_eq!((&nothing["name"], &nothing["rows"], &nothing["inner"]), (&Value::Null, &json!([]), &Value::Null));
    }
}
