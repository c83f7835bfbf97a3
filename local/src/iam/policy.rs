//! Evaluates policies of roles like IAM: a request is refused unless a statement allows it, and refused if any statement
//! denies it.
//!
//! Only the features that this project's policies use are supported; anything else is an error when the policy is read.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Error;
use crate::template::{members, text};

/// The partition keys in a DynamoDB request.
pub const LEADING_KEYS: &str = "dynamodb:LeadingKeys";
/// The attributes in a DynamoDB request.
pub const ATTRIBUTES: &str = "dynamodb:Attributes";
/// The tag of SES identities that a deployment made: on the identity, and in a request that makes one.
pub const RESOURCE_TAG: &str = "aws:ResourceTag/agora-deployment";
pub const REQUEST_TAG: &str = "aws:RequestTag/agora-deployment";

/// An action on a resource. A transaction needs several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Action {
    /// `dynamodb:GetItem`
    pub name: String,
    /// An ARN.
    pub resource: String,
    /// The request's condition keys with their values.
    pub context: BTreeMap<&'static str, Vec<String>>,
}

impl Action {
    pub fn new(name: impl Into<String>, resource: impl Into<String>) -> Action {
        Action { name: name.into(), resource: resource.into(), context: BTreeMap::new() }
    }

    pub fn with(mut self, key: &'static str, values: Vec<String>) -> Action {
        self.context.insert(key, values);
        self
    }

    /// The values of a condition key; empty if the request does not have it.
    pub fn values(&self, key: &str) -> &[String] {
        self.context.get(key).map_or(&[], Vec::as_slice)
    }
}

/// The statements of a role.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub sid: String,
    pub effect: Effect,
    pub actions: Vec<String>,
    pub resources: Vec<String>,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Allow,
    Deny,
}

/// `ForAllValues`: every value that the request has for this key matches one of these. Of a tag there is one value, which
/// must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub operator: Operator,
    pub key: String,
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    StringEquals,
    /// `*` matches any text, `?` any character.
    StringLike,
}

impl Policy {
    /// Reads a policy document whose intrinsic functions are resolved.
    pub fn read(document: &Value) -> Result<Policy, Error> {
        only(document, &["Version", "Statement"])?;
        if document["Version"] != "2012-10-17" {
            return Err(format!("{} is not a supported policy version", document["Version"]).into());
        }
        let statements = document["Statement"].as_array().ok_or("a policy has a list of statements")?;
        Ok(Policy { statements: statements.iter().map(Statement::read).collect::<Result<_, _>>()? })
    }

    /// The statements that allow an action; `None` if it is refused.
    pub fn allows(&self, action: &Action) -> Option<Vec<&Statement>> {
        let matching: Vec<&Statement> = self.statements.iter().filter(|one| one.matches(action)).collect();
        let refused = matching.is_empty() || matching.iter().any(|one| one.effect == Effect::Deny);
        (!refused).then_some(matching)
    }
}

impl Statement {
    fn read(statement: &Value) -> Result<Statement, Error> {
        only(statement, &["Sid", "Effect", "Action", "Resource", "Condition"])?;
        let read = || {
            let effect = match text(&statement["Effect"])? {
                "Allow" => Effect::Allow,
                "Deny" => Effect::Deny,
                other => return Err(format!("{other} is not an effect").into()),
            };
            let mut conditions = Vec::new();
            for (operator, tests) in members(&statement["Condition"]) {
                let (operator, known) = match operator.as_str() {
                    "ForAllValues:StringEquals" => (Operator::StringEquals, [LEADING_KEYS, ATTRIBUTES]),
                    "ForAllValues:StringLike" => (Operator::StringLike, [LEADING_KEYS, ATTRIBUTES]),
                    "StringEquals" => (Operator::StringEquals, [RESOURCE_TAG, REQUEST_TAG]),
                    other => return Err(format!("the operator {other} is not supported").into()),
                };
                for (key, values) in members(tests) {
                    if !known.contains(&key.as_str()) {
                        return Err(format!("the condition key {key} is not supported").into());
                    }
                    conditions.push(Condition { operator, key: key.clone(), values: one_or_more(values)? });
                }
            }
            let (actions, resources) = (one_or_more(&statement["Action"])?, one_or_more(&statement["Resource"])?);
            let sid = text(&statement["Sid"])?.to_owned();
            let statement = Statement { sid, effect, actions, resources, conditions };
            let values = statement.conditions.iter().flat_map(|condition| &condition.values);
            match values.chain(&statement.resources).find(|text| text.contains("${")) {
                Some(variable) => Err(format!("the variable in {variable} is not supported").into()),
                None => Ok(statement),
            }
        };
        read().map_err(|error: Error| format!("{error}, in {statement}").into())
    }

    pub fn matches(&self, action: &Action) -> bool {
        self.covers(&action.name, &action.resource) && self.conditions.iter().all(|condition| condition.holds(action))
    }

    /// Whether it covers this action on this resource, ignoring conditions.
    pub fn covers(&self, action: &str, resource: &str) -> bool {
        self.action(action).is_some() && self.resource(resource).is_some()
    }

    /// The first of its actions that matches. Case is ignored.
    pub fn action(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.actions.iter().map(String::as_str).find(|pattern| is_like(&pattern.to_ascii_lowercase(), &name))
    }

    /// The first of its resources that matches.
    pub fn resource(&self, arn: &str) -> Option<&str> {
        self.resources.iter().map(String::as_str).find(|pattern| is_like(pattern, arn))
    }

    pub fn condition(&self, key: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.key == key)
    }
}

impl Condition {
    /// True for a request without values for this key: `ForAllValues` is defined so. Not for a tag.
    fn holds(&self, action: &Action) -> bool {
        let values = action.values(&self.key);
        let may_lack = ![RESOURCE_TAG, REQUEST_TAG].contains(&self.key.as_str());
        (may_lack || !values.is_empty()) && values.iter().all(|value| self.value(value).is_some())
    }

    /// The first of its values that matches.
    pub fn value(&self, value: &str) -> Option<&str> {
        self.values.iter().map(String::as_str).find(|pattern| match self.operator {
            Operator::StringEquals => *pattern == value,
            Operator::StringLike => is_like(pattern, value),
        })
    }
}

/// Whether a text matches a pattern in which `*` is any text and `?` any character.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return begins_with(pattern, text) == Some("") };
    let Some(mut rest) = begins_with(before, text) else { return false };
    if !after.contains(['*', '?']) {
        return rest.ends_with(after);
    }
    loop {
        if is_like(after, rest) {
            return true;
        }
        let Some(next) = rest.chars().next() else { return false };
        rest = &rest[next.len_utf8()..];
    }
}

/// Matches the start of a text against a pattern without `*`; returns the rest of the text.
fn begins_with<'text>(pattern: &str, text: &'text str) -> Option<&'text str> {
    let mut rest = text.chars();
    for expected in pattern.chars() {
        if rest.next().is_none_or(|found| expected != '?' && expected != found) {
            return None;
        }
    }
    Some(rest.as_str())
}

fn only(object: &Value, known: &[&str]) -> Result<(), Error> {
    match members(object).find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => Err(format!("{name} is not supported").into()),
        None => Ok(()),
    }
}

fn one_or_more(value: &Value) -> Result<Vec<String>, Error> {
    match value {
        Value::Array(values) if !values.is_empty() => values.iter().map(|one| Ok(text(one)?.to_owned())).collect(),
        one => Ok(vec![text(one)?.to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/agora-agents";

    fn policy(statements: Value) -> Policy {
        Policy::read(&json!({"Version": "2012-10-17", "Statement": statements})).unwrap()
    }

    fn may(policy: &Policy, action: &str, resource: &str, keys: &[&str]) -> bool {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        policy.allows(&Action::new(action, resource).with(LEADING_KEYS, keys)).is_some()
    }

    /// AWS's page on policy evaluation: "By default, all requests are implicitly denied"; "an explicit deny overrides any
    /// allow".
    #[test]
    fn requests_need_an_allow_and_a_deny_wins() {
        let own = json!({"Sid": "Own", "Effect": "Allow", "Action": ["dynamodb:GetItem", "dynamodb:Query"], "Resource": TABLE});
        let allowed = policy(json!([own]));
        assert!(may(&allowed, "dynamodb:GetItem", TABLE, &[]));
        assert!(may(&allowed, "DynamoDB:getitem", TABLE, &[]), "actions have no case");
        assert!(!may(&allowed, "dynamodb:PutItem", TABLE, &[]));
        assert!(!may(&allowed, "dynamodb:GetItem", &TABLE.to_uppercase(), &[]), "resources have a case");
        assert!(!may(&allowed, "dynamodb:Query", &format!("{TABLE}/index/inbox"), &[]), "an index is not its table");
        assert!(!may(&Policy::default(), "dynamodb:GetItem", TABLE, &[]));
        let none = json!({"Sid": "Never", "Effect": "Deny", "Action": "dynamodb:*", "Resource": "*"});
        assert!(!may(&policy(json!([own, none])), "dynamodb:GetItem", TABLE, &[]));
    }

    /// AWS's page on set operators: `ForAllValues` is true if every value of the key in the request matches one in the
    /// policy, "or if the key is missing".
    #[test]
    fn for_all_values_requires_every_value_and_passes_without_values() {
        let statement = |operator: &str, values: &[&str]| {
            json!({"Sid": "S", "Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": TABLE,
                "Condition": {operator: {LEADING_KEYS: values}}})
        };
        let like = policy(json!([statement("ForAllValues:StringLike", &["RATE#*", "AGENT#?"])]));
        let table: [(&[&str], bool); 8] = [
            (&["RATE#x"], true),
            (&["RATE#"], true),
            (&["rate#x"], false),
            (&["AGENT#1", "RATE#x"], true),
            (&["AGENT#12", "RATE#x"], false),
            (&["RATE#x", "OTHER"], false),
            (&[""], false),
            (&[], true),
        ];
        for (keys, expected) in table {
            assert_eq!(may(&like, "dynamodb:UpdateItem", TABLE, keys), expected, "{keys:?}");
        }
        assert!(like.allows(&Action::new("dynamodb:UpdateItem", TABLE)).is_some(), "a missing key passes");
        let equal = policy(json!([statement("ForAllValues:StringEquals", &["RATE#*"])]));
        assert!(
            may(&equal, "dynamodb:UpdateItem", TABLE, &["RATE#*"])
                && !may(&equal, "dynamodb:UpdateItem", TABLE, &["RATE#x"])
        );
        let two = json!([
            statement("ForAllValues:StringLike", &["RATE#*"]),
            statement("ForAllValues:StringLike", &["AGENT#*"])
        ]);
        assert!(
            !may(&policy(two), "dynamodb:UpdateItem", TABLE, &["RATE#x", "AGENT#1"]),
            "statements do not add up to one condition"
        );
    }

    /// All conditions of a statement must hold.
    #[test]
    fn all_conditions_of_a_statement_must_hold() {
        let both = policy(json!([{"Sid": "S", "Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": TABLE,
            "Condition": {"ForAllValues:StringLike": {LEADING_KEYS: ["AGENT#*"]},
                "ForAllValues:StringEquals": {ATTRIBUTES: ["pk", "sk", "used_at"]}}}]));
        let asked = |key: &str, attributes: &[&str]| {
            let attributes = attributes.iter().map(|name| (*name).to_owned()).collect();
            let action = Action::new("dynamodb:UpdateItem", TABLE).with(LEADING_KEYS, vec![key.to_owned()]);
            both.allows(&action.with(ATTRIBUTES, attributes)).is_some()
        };
        assert!(asked("AGENT#1", &["pk", "sk", "used_at"]));
        assert!(!asked("AGENT#1", &["pk", "sk", "credits"]));
        assert!(!asked("RATE#1", &["pk", "sk", "used_at"]));
    }

    #[test]
    fn wildcards_match_any_text_or_any_character() {
        let table = [
            ("arn:aws:s3:::b/results/*", "arn:aws:s3:::b/results/a/b", true),
            ("arn:aws:s3:::b/results/*", "arn:aws:s3:::b/results", false),
            ("*/index/*", "table/a/index/open", true),
            ("*/index/*/x", "table/a/index/open", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "acb", false),
            ("a?c", "a\u{e9}c", true),
            ("a?c", "ac", false),
            ("a*?", "a", false),
            ("a*?", "ab", true),
            ("", "", true),
            ("", "a", false),
            ("**", "", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_condition_on_a_tag_needs_the_tag() {
        let policy = Policy::read(&json!({"Version": "2012-10-17", "Statement": [{
            "Sid": "S", "Effect": "Allow", "Action": "ses:DeleteEmailIdentity", "Resource": "*",
            "Condition": {"StringEquals": {RESOURCE_TAG: "agora"}}}]}))
        .unwrap();
        let may = |tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            policy.allows(&Action::new("ses:DeleteEmailIdentity", "arn").with(RESOURCE_TAG, tags)).is_some()
        };
        assert_eq!((may(&["agora"]), may(&["other"]), may(&[])), (true, false, false));
    }

    #[test]
    fn unsupported_policies_are_refused() {
        let good = json!({"Sid": "S", "Effect": "Allow", "Action": "a:B", "Resource": "*"});
        let with = |name: &str, value: Value| {
            let mut statement = good.clone();
            statement[name] = value;
            Policy::read(&json!({"Version": "2012-10-17", "Statement": [statement]}))
        };
        assert!(with("Sid", json!("T")).is_ok());
        for (name, value) in [
            ("NotAction", json!("a:C")),
            ("Principal", json!("*")),
            ("Effect", json!("Perhaps")),
            ("Action", json!([])),
            ("Resource", json!("arn:${aws:PrincipalTag/x}")),
            ("Condition", json!({"StringEquals": {LEADING_KEYS: "a"}})),
            ("Condition", json!({"ForAllValues:StringLike": {"aws:SourceIp": "10.0.0.0/8"}})),
        ] {
            assert!(with(name, value).is_err(), "{name}");
        }
        assert!(Policy::read(&json!({"Version": "2008-10-17", "Statement": [good]})).is_err());
    }
}
