//! Reads requests to DynamoDB: which actions they need, on which tables and indexes, with which partition keys.
//!
//! A transaction needs the actions of its items; a batch has an action of its own (AWS: "Using IAM with DynamoDB
//! transactions"; "Actions, resources, and condition keys for Amazon DynamoDB").

use std::collections::BTreeMap;

use platform::store::table::TABLES;
use serde_json::Value;

use super::policy::{ATTRIBUTES, Action, LEADING_KEYS};
use crate::Error;
use crate::template::{ACCOUNT, REGION, members, text};

/// One item or query of a request.
struct Part {
    action: String,
    resource: String,
    key: Option<String>,
    attributes: Vec<String>,
}

/// The actions that a request needs. `name_in_template` maps a table's name to its name in the template.
///
/// The items of a transaction are checked twice: each alone, as AWS's page on transactions says, and all items of one table
/// together, because no page says that `dynamodb:LeadingKeys` excludes the keys of other items.
pub fn actions(operation: &str, body: &Value, name_in_template: impl Fn(&str) -> String) -> Result<Vec<Action>, Error> {
    let table = |name: &Value| -> Result<String, Error> {
        Ok(format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{}", name_in_template(text(name)?)))
    };
    let mut parts = Vec::new();
    match operation {
        "TransactWriteItems" | "TransactGetItems" => {
            for item in body["TransactItems"].as_array().into_iter().flatten() {
                let (kind, item) = members(item).next().ok_or("an empty item of a transaction")?;
                let action =
                    if kind == "ConditionCheck" { "ConditionCheckItem".to_owned() } else { format!("{kind}Item") };
                parts.push(part(&action, table(&item["TableName"])?, item)?);
            }
        }
        "BatchGetItem" => {
            for (name, asked) in members(&body["RequestItems"]) {
                for key in asked["Keys"].as_array().into_iter().flatten() {
                    let resource = table(&Value::from(name.as_str()))?;
                    let attributes = names_of(key).chain(expression_names(asked)?).collect();
                    parts.push(Part { action: operation.to_owned(), resource, key: partition(key)?, attributes });
                }
            }
        }
        "BatchWriteItem" => {
            for (name, writes) in members(&body["RequestItems"]) {
                for (_, write) in writes.as_array().into_iter().flatten().flat_map(members) {
                    parts.push(part(operation, table(&Value::from(name.as_str()))?, write)?);
                }
            }
        }
        "Query" => parts.push(query(table(&body["TableName"])?, body)?),
        "GetItem" | "PutItem" | "UpdateItem" | "DeleteItem" => {
            parts.push(part(operation, table(&body["TableName"])?, body)?);
        }
        // Any other operation: a role will not allow it.
        other => {
            let resource = body.get("TableName").map_or(Ok("*".to_owned()), table)?;
            parts.push(Part { action: other.to_owned(), resource, key: None, attributes: Vec::new() });
        }
    }
    let is_batch = operation.starts_with("Batch");
    let together = together(&parts);
    let alone = parts.into_iter().filter(|_| !is_batch).map(|part| {
        let keys = part.key.into_iter().collect();
        action(&part.action, &part.resource, keys, part.attributes)
    });
    let mut actions: Vec<Action> = alone.chain(together).collect();
    actions.sort();
    actions.dedup();
    Ok(actions)
}

/// The actions of a request, each with all of the request's keys in its table.
fn together(parts: &[Part]) -> Vec<Action> {
    let mut tables: BTreeMap<&str, (Vec<String>, Vec<String>)> = BTreeMap::new();
    for part in parts {
        let (keys, attributes) = tables.entry(&part.resource).or_default();
        keys.extend(part.key.clone());
        attributes.extend(part.attributes.iter().cloned());
    }
    let all = parts.iter().map(|part| {
        let (keys, attributes) = tables[part.resource.as_str()].clone();
        action(&part.action, &part.resource, keys, attributes)
    });
    all.collect()
}

fn action(name: &str, resource: &str, mut keys: Vec<String>, mut attributes: Vec<String>) -> Action {
    let mut action = Action::new(format!("dynamodb:{name}"), resource);
    for (key, values) in [(LEADING_KEYS, &mut keys), (ATTRIBUTES, &mut attributes)] {
        values.sort();
        values.dedup();
        if !values.is_empty() {
            action = action.with(key, std::mem::take(values));
        }
    }
    action
}

fn part(action: &str, resource: String, request: &Value) -> Result<Part, Error> {
    let item = request.get("Key").or_else(|| request.get("Item")).ok_or("a request without a key")?;
    let attributes = names_of(item).chain(expression_names(request)?).collect();
    Ok(Part { action: action.to_owned(), resource, key: partition(item)?, attributes })
}

/// The partition key of a query: the table's, or its index's.
fn query(table: String, request: &Value) -> Result<Part, Error> {
    let index = request.get("IndexName").and_then(Value::as_str);
    let resource = index.map_or(table.clone(), |index| format!("{table}/index/{index}"));
    let indexes = || TABLES.iter().flat_map(|table| table.indexes);
    let partition = match index {
        Some(name) => indexes().find(|index| index.name == name).ok_or("an unknown index")?.partition,
        None => "pk",
    };
    let condition = text(&request["KeyConditionExpression"])?;
    let named = request.get("ExpressionAttributeNames").cloned().unwrap_or_default();
    let words = words(condition);
    // `#pk = :pk`, the only condition that a partition key may have.
    let value = words.windows(2).find_map(|pair| {
        let name = named.get(pair[0]).and_then(Value::as_str).unwrap_or(pair[0]);
        (name == partition && pair[1].starts_with(':')).then(|| &request["ExpressionAttributeValues"][pair[1]]["S"])
    });
    let key = text(value.ok_or("a query without a partition key")?)?.to_owned();
    let attributes = expression_names(request)?;
    Ok(Part { action: "Query".to_owned(), resource, key: Some(key), attributes })
}

fn partition(item: &Value) -> Result<Option<String>, Error> {
    Ok(Some(text(&item["pk"]["S"])?.to_owned()))
}

fn names_of(item: &Value) -> impl Iterator<Item = String> {
    members(item).map(|(name, _)| name.clone())
}

/// The attributes in a request's expressions. For nested paths, the first name.
fn expression_names(request: &Value) -> Result<Vec<String>, Error> {
    let names = request.get("ExpressionAttributeNames").cloned().unwrap_or_default();
    let expressions = members(request).filter(|(member, _)| member.ends_with("Expression"));
    let mut found = Vec::new();
    for (_, expression) in expressions {
        for word in words(text(expression)?) {
            let first = word.split('.').next().unwrap_or_default();
            if first.starts_with('#') {
                found.push(text(&names[first])?.to_owned());
            } else if !first.starts_with([':', '.']) && !is_word_of_the_language(first) {
                found.push(first.to_owned());
            }
        }
    }
    Ok(found)
}

fn words(expression: &str) -> Vec<&str> {
    let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || "_#:.-".contains(letter));
    expression.split(is_end).filter(|word| !word.is_empty()).collect()
}

fn is_word_of_the_language(word: &str) -> bool {
    const WORDS: [&str; 9] = ["SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "BETWEEN", "IN"];
    const FUNCTIONS: [&str; 8] = [
        "attribute_exists",
        "attribute_not_exists",
        "attribute_type",
        "begins_with",
        "contains",
        "size",
        "if_not_exists",
        "list_append",
    ];
    WORDS.contains(&word.to_ascii_uppercase().as_str())
        || FUNCTIONS.contains(&word)
        || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(operation: &str, body: &Value) -> Vec<(String, String, Vec<String>)> {
        let name = |table: &str| table.replace("mine-", "agora-");
        let prefix = format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/");
        let actions = actions(operation, body, name).unwrap().into_iter();
        let shown = actions.map(|action| {
            let resource = action.resource.replace(&prefix, "");
            (action.name.clone(), resource, action.values(LEADING_KEYS).to_vec())
        });
        shown.collect()
    }

    fn row(action: &str, resource: &str, keys: &[&str]) -> (String, String, Vec<String>) {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        (format!("dynamodb:{action}"), resource.to_owned(), keys)
    }

    fn key(pk: &str) -> Value {
        json!({"pk": {"S": pk}, "sk": {"S": "x"}})
    }

    #[test]
    fn single_requests_need_their_own_action() {
        let get = json!({"TableName": "mine-jobs", "Key": key("JOB#1")});
        assert_eq!(asked("GetItem", &get), [row("GetItem", "agora-jobs", &["JOB#1"])]);
        let put =
            json!({"TableName": "mine-agents", "Item": {"pk": {"S": "AGENT#1"}, "sk": {"S": "x"}, "a": {"N": "1"}}});
        assert_eq!(asked("PutItem", &put), [row("PutItem", "agora-agents", &["AGENT#1"])]);
        assert_eq!(asked("Scan", &json!({"TableName": "mine-jobs"})), [row("Scan", "agora-jobs", &[])]);
        assert_eq!(asked("ListTables", &json!({})), [row("ListTables", "*", &[])]);
    }

    #[test]
    fn a_query_needs_its_table_or_index_with_the_partition_key() {
        let mut query = json!({
            "TableName": "mine-jobs", "KeyConditionExpression": "#pk = :pk AND begins_with(#sk, :p)",
            "ExpressionAttributeNames": {"#pk": "pk", "#sk": "sk"},
            "ExpressionAttributeValues": {":pk": {"S": "JOB#1"}, ":p": {"S": "FILE#"}},
        });
        assert_eq!(asked("Query", &query), [row("Query", "agora-jobs", &["JOB#1"])]);
        query["IndexName"] = json!("open");
        query["KeyConditionExpression"] = json!("#due <= :now AND #open = :shard");
        query["ExpressionAttributeNames"] = json!({"#open": "open", "#due": "due"});
        query["ExpressionAttributeValues"] = json!({":shard": {"S": "OPEN#1"}, ":now": {"N": "5"}});
        assert_eq!(asked("Query", &query), [row("Query", "agora-jobs/index/open", &["OPEN#1"])]);
    }

    #[test]
    fn batches_need_one_action_with_all_keys_of_a_table() {
        let get = json!({"RequestItems": {
            "mine-jobs": {"Keys": [key("JOB#1"), key("JOB#2")]}, "mine-souls": {"Keys": [key("SOUL#x")]},
        }});
        assert_eq!(
            asked("BatchGetItem", &get),
            [row("BatchGetItem", "agora-jobs", &["JOB#1", "JOB#2"]), row("BatchGetItem", "agora-souls", &["SOUL#x"])]
        );
        let write = json!({"RequestItems": {"mine-souls": [
            {"PutRequest": {"Item": key("WORD#a")}}, {"DeleteRequest": {"Key": key("WORD#b")}},
        ]}});
        assert_eq!(asked("BatchWriteItem", &write), [row("BatchWriteItem", "agora-souls", &["WORD#a", "WORD#b"])]);
    }

    #[test]
    fn transactions_are_checked_for_each_item_and_for_each_table() {
        let write = json!({"TransactItems": [
            {"Put": {"TableName": "mine-jobs", "Item": key("JOB#1")}},
            {"Update": {"TableName": "mine-agents", "Key": key("RATE#1"), "UpdateExpression": "ADD #used :one",
                "ExpressionAttributeNames": {"#used": "used"}}},
            {"Update": {"TableName": "mine-agents", "Key": key("CHECKOUT#1"), "UpdateExpression": "SET a = :a"}},
            {"ConditionCheck": {"TableName": "mine-agents", "Key": key("AGENT#1"), "ConditionExpression": "x = :x"}},
        ]});
        let all = ["AGENT#1", "CHECKOUT#1", "RATE#1"];
        let mut asked_for = asked("TransactWriteItems", &write);
        asked_for.sort();
        assert_eq!(
            asked_for,
            [
                row("ConditionCheckItem", "agora-agents", &["AGENT#1"]),
                row("ConditionCheckItem", "agora-agents", &all),
                row("PutItem", "agora-jobs", &["JOB#1"]),
                row("UpdateItem", "agora-agents", &all),
                row("UpdateItem", "agora-agents", &["CHECKOUT#1"]),
                row("UpdateItem", "agora-agents", &["RATE#1"]),
            ]
        );
        let get = json!({"TransactItems": [{"Get": {"TableName": "mine-jobs", "Key": key("JOB#1")}}]});
        assert_eq!(asked("TransactGetItems", &get), [row("GetItem", "agora-jobs", &["JOB#1"])]);
    }

    #[test]
    fn attributes_are_found_in_expressions() {
        let update = json!({
            "TableName": "mine-agents", "Key": key("AGENT#1"),
            "UpdateExpression": "SET #used = if_not_exists(#used, :zero), plain = :one, #nested.#member = :one REMOVE #open",
            "ConditionExpression": "attribute_exists(#pk) AND NOT size(other) > :one",
            "ExpressionAttributeNames": {
                "#used": "used_at", "#open": "open", "#pk": "pk", "#nested": "nested", "#member": "member",
            },
        });
        let actions = actions("UpdateItem", &update, str::to_owned).unwrap();
        assert_eq!(actions[0].values(ATTRIBUTES), ["nested", "open", "other", "pk", "plain", "sk", "used_at"]);
    }
}
