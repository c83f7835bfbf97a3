//! The environment that `template.yaml` gives each function, with stand-ins for what CloudFormation makes of it.
//!
//! Nothing is listed by hand: a variable that a function is given in the template is given to it here, and a reference
//! that this module cannot follow is an error.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};
use serde_saphyr::Tagged;

use super::build::workspace;
use crate::Error;

const ACCOUNT: &str = "123456789012";
pub const REGION: &str = "us-east-1";

/// The template, with its intrinsic functions as JSON writes them (`{"Ref": "Api"}`).
pub struct Template {
    body: Value,
    stand_ins: StandIns,
}

/// What is put in place of what a deployment has.
pub struct StandIns {
    /// In place of the defaults of these parameters.
    pub parameters: Vec<(&'static str, String)>,
    /// In place of every endpoint of AWS.
    pub endpoint: String,
    /// The text of a secret, or of a member of it.
    pub secret: fn(Option<&str>) -> String,
}

impl Template {
    pub fn read(stand_ins: StandIns) -> Result<Template, Error> {
        let text = std::fs::read_to_string(workspace().join("template.yaml"))?;
        let options = serde_saphyr::options! { strict_booleans: true };
        let Node(body) = serde_saphyr::from_str_with_options(&text, options)?;
        Ok(Template { body, stand_ins })
    }

    /// The binaries of all functions.
    pub fn functions(&self) -> BTreeSet<&str> {
        self.resources().filter_map(|(_, resource)| binary(resource)).collect()
    }

    /// The variables of a function, those of all functions among them.
    pub fn environment(&self, function: &str) -> Result<Vec<(String, String)>, Error> {
        let own = self.resources().find(|(_, resource)| binary(resource) == Some(function));
        let (_, own) = own.ok_or_else(|| format!("template.yaml has no function {function:?}"))?;
        let shared = &self.body["Globals"]["Function"]["Environment"]["Variables"];
        let own = &own["Properties"]["Environment"]["Variables"];
        let variables = [shared, own].into_iter().filter_map(Value::as_object).flatten();
        variables.map(|(name, value)| Ok((name.clone(), self.text(value)?))).collect()
    }

    fn resources(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.body["Resources"].as_object().into_iter().flatten()
    }

    /// What a value is once the stack is deployed.
    fn text(&self, value: &Value) -> Result<String, Error> {
        match value {
            Value::String(text) => self.secrets_in(text),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => match function(value) {
                Some(("Ref", Value::String(name))) => self.reference(name),
                Some(("Fn::GetAtt", Value::String(path))) => self.attribute(path),
                Some(("Fn::Sub", Value::String(text))) => self.secrets_in(&self.substituted(text)?),
                Some(("Fn::If", Value::Array(branches))) => match branches.as_slice() {
                    [Value::String(condition), then, otherwise] => {
                        self.text(if self.holds(&json!({"Condition": condition}))? { then } else { otherwise })
                    }
                    _ => Err(unknown(value)),
                },
                _ => Err(unknown(value)),
            },
        }
    }

    fn holds(&self, condition: &Value) -> Result<bool, Error> {
        match function(condition) {
            Some(("Condition", Value::String(name))) => self.holds(&self.body["Conditions"][name]),
            Some(("Fn::Equals", Value::Array(sides))) if sides.len() == 2 => {
                Ok(self.text(&sides[0])? == self.text(&sides[1])?)
            }
            Some(("Fn::Not", Value::Array(of))) if of.len() == 1 => Ok(!self.holds(&of[0])?),
            Some((all @ ("Fn::And" | "Fn::Or"), Value::Array(of))) => {
                let each: Vec<bool> = of.iter().map(|one| self.holds(one)).collect::<Result<_, _>>()?;
                Ok(if all == "Fn::And" { each.into_iter().all(|one| one) } else { each.into_iter().any(|one| one) })
            }
            _ => Err(unknown(condition)),
        }
    }

    fn reference(&self, name: &str) -> Result<String, Error> {
        match name {
            "AWS::StackName" => return Ok("agora".to_owned()),
            "AWS::Region" => return Ok(REGION.to_owned()),
            "AWS::AccountId" => return Ok(ACCOUNT.to_owned()),
            "AWS::Partition" => return Ok("aws".to_owned()),
            "AWS::URLSuffix" => return Ok("amazonaws.com".to_owned()),
            _ => {}
        }
        if let Some((_, value)) = self.stand_ins.parameters.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        if let Some(default) = self.body["Parameters"][name].get("Default") {
            return self.text(default);
        }
        match self.body["Resources"][name]["Type"].as_str() {
            Some("AWS::SQS::Queue") => Ok(format!("{}/{ACCOUNT}/{name}", self.stand_ins.endpoint)),
            Some("AWS::SecretsManager::Secret") => self.attribute(&format!("{name}.Arn")),
            Some(
                "AWS::DynamoDB::Table" | "AWS::S3::Bucket" | "AWS::ApiGatewayV2::Api" | "AWS::Serverless::HttpApi",
            ) => Ok(name.to_lowercase()),
            _ => Err(format!("template.yaml: it is not known what {name} refers to").into()),
        }
    }

    fn attribute(&self, path: &str) -> Result<String, Error> {
        let (name, attribute) = path.split_once('.').unwrap_or((path, ""));
        let service = match self.body["Resources"][name]["Type"].as_str() {
            Some("AWS::SQS::Queue") => "sqs",
            Some("AWS::SecretsManager::Secret") => "secretsmanager",
            Some("AWS::DynamoDB::Table") => "dynamodb",
            _ => "",
        };
        if attribute != "Arn" || service.is_empty() {
            return Err(format!("template.yaml: it is not known what {path} is").into());
        }
        Ok(format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{name}"))
    }

    /// A text with its `${…}` followed. An endpoint of AWS becomes the stand-in's.
    fn substituted(&self, text: &str) -> Result<String, Error> {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or_else(|| format!("template.yaml: {text}"))?;
            whole.push_str(before);
            whole.push_str(&if name.contains('.') { self.attribute(name)? } else { self.reference(name)? });
            rest = after;
        }
        whole.push_str(rest);
        let host = whole.strip_prefix("https://").and_then(|whole| whole.split('/').next());
        match host.filter(|host| host.ends_with(".amazonaws.com")) {
            Some(host) => Ok(whole.replace(&format!("https://{host}"), &self.stand_ins.endpoint)),
            None => Ok(whole),
        }
    }

    /// A text with its `{{resolve:secretsmanager:<ARN>[:SecretString:<member>]}}` looked up.
    fn secrets_in(&self, text: &str) -> Result<String, Error> {
        let Some(reference) = text.strip_prefix("{{resolve:secretsmanager:").and_then(|text| text.strip_suffix("}}"))
        else {
            return Ok(text.to_owned());
        };
        Ok((self.stand_ins.secret)(reference.split_once(":SecretString:").map(|(_, member)| member)))
    }
}

fn binary(resource: &Value) -> Option<&str> {
    resource["Metadata"]["BuildProperties"]["Binary"].as_str()
}

/// The intrinsic function that a value is, and what it is of.
fn function(value: &Value) -> Option<(&str, &Value)> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.iter().next().map(|(name, of)| (name.as_str(), of))
}

fn unknown(value: &Value) -> Error {
    format!("template.yaml: it is not known what {value} is").into()
}

/// YAML with its tags as members: `!Sub text` is `{"Fn::Sub": "text"}`.
struct Node(Value);

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let Tagged(Plain(value), tag) = Tagged::deserialize(deserializer)?;
        Ok(Node(match tag.as_deref().and_then(|tag| tag.strip_prefix('!')) {
            Some(name @ ("Ref" | "Condition")) => json!({name: value}),
            Some(name) => json!({format!("Fn::{name}"): value}),
            None => value,
        }))
    }
}

/// A value whose own tag is left out, and those inside it are not.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Plain, D::Error> {
        deserializer.deserialize_any(PlainVisitor).map(Plain)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("YAML")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(json!(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(json!(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(json!(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(json!(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(json!(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Node(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Node(member))) = members.next_entry::<String, Node>()? {
            all.insert(name, member);
        }
        Ok(Value::Object(all))
    }
}
