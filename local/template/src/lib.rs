//! `template.yaml` as CloudFormation reads it: parameters, conditions and intrinsic functions are resolved, so that the
//! local stack and the tests know what a deployed function gets.
//!
//! Anything unsupported is an error: a policy that is read wrongly is worse than one that is not read.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value, json};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

pub const ACCOUNT: &str = "000000000000";
pub const REGION: &str = "us-east-1";

/// A template, and the values of its parameters.
pub struct Template {
    /// With functions in long form: `!Ref Api` is `{"Ref": "Api"}`.
    whole: Value,
    stack: String,
    parameters: BTreeMap<String, Value>,
}

impl Template {
    /// The template of this project.
    pub fn of_project() -> Result<Template, Error> {
        Template::read(&std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../template.yaml"))?)
    }

    /// A template with the defaults of its parameters, in a stack named `agora`.
    pub fn read(text: &str) -> Result<Template, Error> {
        let whole = yaml(text)?;
        let parameters = members(&whole["Parameters"])
            .filter_map(|(name, parameter)| Some((name.clone(), as_parameter(parameter.get("Default")?))))
            .collect();
        Ok(Template { whole, stack: "agora".to_owned(), parameters })
    }

    /// The same template with another value for a parameter.
    pub fn with(mut self, parameter: &str, value: impl Into<String>) -> Template {
        self.parameters.insert(parameter.to_owned(), Value::String(value.into()));
        self
    }

    /// The same template in a stack with this name.
    pub fn named(mut self, stack: &str) -> Template {
        self.stack = stack.to_owned();
        self
    }

    /// The template with functions in long form and nothing resolved.
    pub fn unresolved(&self) -> &Value {
        &self.whole
    }

    /// A part of the template with everything resolved. Parts excluded by a condition are left out.
    pub fn resolved(&self, part: &Value) -> Result<Value, Error> {
        Ok(self.resolve(part)?.unwrap_or(Value::Null))
    }

    /// The resources of a type that exist with these parameters: logical id and resolved properties.
    pub fn resources(&self, kind: &str) -> Result<Vec<(&str, Value)>, Error> {
        let mut found = Vec::new();
        for (name, resource) in members(&self.whole["Resources"]) {
            if resource["Type"] == kind && self.exists(resource)? {
                found.push((name.as_str(), self.resolved(&resource["Properties"])?));
            }
        }
        Ok(found)
    }

    fn exists(&self, resource: &Value) -> Result<bool, Error> {
        resource.get("Condition").map_or(Ok(true), |name| self.condition(text(name)?))
    }

    /// `None` stands for `AWS::NoValue`.
    fn resolve(&self, value: &Value) -> Result<Option<Value>, Error> {
        let object = match value {
            Value::Object(object) => object,
            Value::Array(items) => {
                let items: Result<Vec<Option<Value>>, Error> = items.iter().map(|item| self.resolve(item)).collect();
                return Ok(Some(Value::Array(items?.into_iter().flatten().collect())));
            }
            plain => return Ok(Some(plain.clone())),
        };
        if let (Some((name, argument)), 1) = (object.iter().next(), object.len())
            && (name == "Ref" || name.starts_with("Fn::"))
        {
            return self.call(name, argument);
        }
        let mut resolved = Map::new();
        for (name, value) in object {
            if let Some(value) = self.resolve(value)? {
                resolved.insert(name.clone(), value);
            }
        }
        Ok(Some(Value::Object(resolved)))
    }

    fn call(&self, function: &str, argument: &Value) -> Result<Option<Value>, Error> {
        if function == "Ref" {
            return self.reference(text(argument)?);
        }
        if function == "Fn::If" {
            let [condition, yes, no] = three(argument)?;
            return self.resolve(if self.condition(text(condition)?)? { yes } else { no });
        }
        let value = match function {
            "Fn::GetAtt" => self.attribute(argument)?,
            "Fn::Sub" => self.substituted(text(argument)?)?,
            "Fn::Join" => {
                let argument = self.resolved(argument)?;
                let parts = argument[1].as_array().ok_or("Fn::Join takes a list")?;
                let parts: Result<Vec<&str>, Error> = parts.iter().map(text).collect();
                Value::String(parts?.join(text(&argument[0])?))
            }
            "Fn::Select" => {
                let argument = self.resolved(argument)?;
                let index = argument[0].as_u64().and_then(|index| usize::try_from(index).ok());
                let found = index.and_then(|index| argument[1].get(index));
                // An empty parameter has no second part. CloudFormation would not evaluate this, because of a condition.
                found.cloned().unwrap_or_default()
            }
            "Fn::Split" => {
                let argument = self.resolved(argument)?;
                text(&argument[1])?.split(text(&argument[0])?).map(Value::from).collect()
            }
            _ => return Err(format!("{function} is not supported").into()),
        };
        Ok(Some(value))
    }

    fn reference(&self, name: &str) -> Result<Option<Value>, Error> {
        let pseudo = match name {
            "AWS::NoValue" => return Ok(None),
            "AWS::StackName" => Some(self.stack.as_str()),
            "AWS::Region" => Some(REGION),
            "AWS::AccountId" => Some(ACCOUNT),
            "AWS::Partition" => Some("aws"),
            "AWS::URLSuffix" => Some("amazonaws.com"),
            _ => None,
        };
        if let Some(text) = pseudo {
            return Ok(Some(Value::from(text)));
        }
        if let Some(value) = self.parameters.get(name) {
            return Ok(Some(value.clone()));
        }
        if self.whole["Parameters"].get(name).is_some() {
            // A parameter without default and value: any recognisable placeholder will do.
            return Ok(Some(Value::from(format!("<{name}>"))));
        }
        let kind = self.kind(name)?;
        Ok(Some(Value::from(match kind {
            "AWS::SQS::Queue" => format!("https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{}", self.name_of(name)?),
            "AWS::SecretsManager::Secret" | "AWS::SNS::Topic" => self.arn(name)?,
            _ => self.name_of(name)?,
        })))
    }

    fn attribute(&self, argument: &Value) -> Result<Value, Error> {
        let (name, attribute) = match argument {
            Value::Array(parts) if parts.len() == 2 => (text(&parts[0])?, text(&parts[1])?),
            one => text(one)?.split_once('.').ok_or_else(|| format!("{one} does not name an attribute"))?,
        };
        Ok(Value::from(match (self.kind(name)?, attribute) {
            // The last part is the time at which the stream was enabled.
            ("AWS::DynamoDB::Table", "StreamArn") => format!("{}/stream/2026-01-01T00:00:00.000", self.arn(name)?),
            ("AWS::Logs::LogGroup", "Arn") => format!("{}:*", self.arn(name)?),
            ("AWS::SQS::Queue", "QueueName") => self.name_of(name)?,
            ("AWS::CloudFront::Distribution", "DomainName") => "d111111abcdef8.cloudfront.net".to_owned(),
            (_, "Arn" | "FunctionARN") => self.arn(name)?,
            (kind, _) => return Err(format!("{attribute} of {kind} is not supported").into()),
        }))
    }

    fn kind(&self, name: &str) -> Result<&str, Error> {
        text(&self.whole["Resources"][name]["Type"]).map_err(|_| format!("there is no {name}").into())
    }

    /// The name of a resource: its own, or one that CloudFormation makes from its logical id.
    fn name_of(&self, resource: &str) -> Result<String, Error> {
        let properties = &self.whole["Resources"][resource]["Properties"];
        let given = ["TableName", "QueueName", "LogGroupName", "BucketName", "AlarmName", "FunctionName", "RoleName"];
        match given.iter().find_map(|given| properties.get(given)) {
            Some(name) => Ok(text(&self.resolved(name)?)?.to_owned()),
            None if self.kind(resource)? == "AWS::S3::Bucket" => {
                Ok(format!("{}-{resource}", self.stack).to_ascii_lowercase())
            }
            None => Ok(format!("{}-{resource}", self.stack)),
        }
    }

    fn arn(&self, resource: &str) -> Result<String, Error> {
        let name = self.name_of(resource)?;
        let here = |service: &str, rest: String| format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}");
        Ok(match self.kind(resource)? {
            "AWS::DynamoDB::Table" => here("dynamodb", format!("table/{name}")),
            "AWS::SQS::Queue" => here("sqs", name),
            "AWS::SNS::Topic" => here("sns", name),
            "AWS::SecretsManager::Secret" => here("secretsmanager", format!("secret:{name}-AbCdEf")),
            "AWS::Logs::LogGroup" => here("logs", format!("log-group:{name}")),
            "AWS::Serverless::Function" => here("lambda", format!("function:{name}")),
            "AWS::CloudWatch::Alarm" | "AWS::CloudWatch::CompositeAlarm" => here("cloudwatch", format!("alarm:{name}")),
            "AWS::S3::Bucket" => format!("arn:aws:s3:::{name}"),
            "AWS::IAM::Role" => format!("arn:aws:iam::{ACCOUNT}:role/{name}"),
            "AWS::CloudFront::Function" => format!("arn:aws:cloudfront::{ACCOUNT}:function/{name}"),
            kind => return Err(format!("the ARN of {kind} is not supported").into()),
        })
    }

    /// Replaces `${Name}`, `${Name.Attribute}` and `${!Literal}`.
    fn substituted(&self, pattern: &str) -> Result<Value, Error> {
        let mut made = String::new();
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or_else(|| format!("{pattern} has an unclosed ${{"))?;
            made.push_str(before);
            match name.strip_prefix('!') {
                Some(literal) => made.push_str(&format!("${{{literal}}}")),
                None if name.contains('.') => made.push_str(text(&self.attribute(&Value::from(name))?)?),
                None => {
                    let value = self.reference(name)?.ok_or_else(|| format!("{name} has no value"))?;
                    made.push_str(text(&value)?);
                }
            }
            rest = after;
        }
        made.push_str(rest);
        Ok(Value::from(made))
    }

    fn condition(&self, name: &str) -> Result<bool, Error> {
        let condition = self.whole["Conditions"].get(name).ok_or_else(|| format!("there is no condition {name}"))?;
        self.holds(condition)
    }

    fn holds(&self, condition: &Value) -> Result<bool, Error> {
        let one = condition.as_object().and_then(|object| object.iter().next());
        let (function, argument) = one.ok_or_else(|| format!("{condition} is not a condition"))?;
        let all = || argument.as_array().ok_or_else(|| format!("{function} takes a list"));
        match function.as_str() {
            "Condition" => self.condition(text(argument)?),
            "Fn::Equals" => {
                let argument = self.resolved(argument)?;
                Ok(as_parameter(&argument[0]) == as_parameter(&argument[1]))
            }
            "Fn::Not" => Ok(!self.holds(&argument[0])?),
            "Fn::And" => all()?.iter().try_fold(true, |so_far, one| Ok(so_far && self.holds(one)?)),
            "Fn::Or" => all()?.iter().try_fold(false, |so_far, one| Ok(so_far || self.holds(one)?)),
            other => Err(format!("{other} is not supported in a condition").into()),
        }
    }
}

/// The members of an object; none for other values.
pub fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The string, or an error that shows the value.
pub fn text(value: &Value) -> Result<&str, Error> {
    value.as_str().ok_or_else(|| format!("{value} is not a string").into())
}

/// Parameters are strings, however their default is written.
fn as_parameter(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.to_string()),
        Value::Bool(bool) => Value::from(bool.to_string()),
        other => other.clone(),
    }
}

fn three(argument: &Value) -> Result<[&Value; 3], Error> {
    match argument.as_array().map(Vec::as_slice) {
        Some([one, two, three]) => Ok([one, two, three]),
        _ => Err(format!("{argument} is not a list of three").into()),
    }
}

/// A YAML document. A tag becomes the function it stands for: `!Sub x` is `{"Fn::Sub": "x"}`.
pub fn yaml(text: &str) -> Result<Value, Error> {
    let mut events = Parser::new_from_str(text);
    let mut next = || -> Result<Event<'_>, Error> {
        let (event, _) = events.next().ok_or("the document ends too early")?.map_err(|error| error.to_string())?;
        Ok(event)
    };
    loop {
        match next()? {
            Event::StreamStart | Event::DocumentStart(..) => {}
            first => return node(first, &mut next),
        }
    }
}

fn node<'text>(first: Event<'text>, next: &mut impl FnMut() -> Result<Event<'text>, Error>) -> Result<Value, Error> {
    let (value, tag) = match first {
        Event::Scalar(text, style, _, tag) => {
            let value = if style == ScalarStyle::Plain { plain(&text) } else { Value::from(&*text) };
            (value, tag)
        }
        Event::SequenceStart(_, _, tag) => {
            let mut items = Vec::new();
            loop {
                match next()? {
                    Event::SequenceEnd => break,
                    first => items.push(node(first, next)?),
                }
            }
            (Value::Array(items), tag)
        }
        Event::MappingStart(_, _, tag) => {
            let mut object = Map::new();
            loop {
                let name = match next()? {
                    Event::MappingEnd => break,
                    Event::Scalar(name, ..) => name.into_owned(),
                    other => return Err(format!("{other:?} is not a name").into()),
                };
                let first = next()?;
                if object.insert(name.clone(), node(first, next)?).is_some() {
                    return Err(format!("{name} appears twice").into());
                }
            }
            (Value::Object(object), tag)
        }
        other => return Err(format!("{other:?} is not supported").into()),
    };
    Ok(match tag {
        None => value,
        Some(tag) => tagged(&tag, value)?,
    })
}

fn tagged(tag: &Tag, value: Value) -> Result<Value, Error> {
    if tag.handle() != "!" {
        return Err(format!("the tag {}{} is not supported", tag.handle(), tag.suffix()).into());
    }
    Ok(match tag.suffix() {
        name @ ("Ref" | "Condition") => json!({ name: value }),
        name => json!({ format!("Fn::{name}"): value }),
    })
}

/// A scalar without quotes. CloudFormation reads YAML 1.1; only these words for booleans are supported.
fn plain(text: &str) -> Value {
    match text {
        "" | "null" | "~" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match text.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => text.parse::<f64>().ok().filter(|_| is_number(text)).map_or(Value::from(text), Value::from),
        },
    }
}

/// `inf` and `nan` stay strings.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
Parameters:
  Url: {Type: String, Default: ''}
  Count: {Type: Number, Default: 4}
  Needed: {Type: String}
Conditions:
  HasUrl: !Not [!Equals [!Ref Url, '']]
  HasMany: !And [!Condition HasUrl, !Or [!Equals [!Ref Count, '4'], !Equals [!Ref Count, '5']]]
Resources:
  Jobs:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Sub '${AWS::StackName}-jobs'}
  Hidden:
    Type: AWS::SQS::Queue
    Condition: HasUrl
    Properties: {QueueName: hidden}
";

    fn resolved(template: &Template, part: &str) -> Value {
        template.resolved(&yaml(part).unwrap()).unwrap()
    }

    #[test]
    fn functions_are_resolved() {
        let template = Template::read(TEXT).unwrap();
        let part = "
a: !Sub '${Jobs.Arn}/index/open of ${Count} in ${!literally}'
b: !GetAtt Jobs.StreamArn
c: !If [HasUrl, !Ref Url, none]
d: [!Ref Jobs, !If [HasUrl, more, !Ref AWS::NoValue]]
e: !Ref Needed
f: !Join ['-', [x, !Ref Count]]
g: !If
  - HasUrl
  - {left: out}
  - !Ref AWS::NoValue
";
        let table = "arn:aws:dynamodb:us-east-1:000000000000:table/agora-jobs";
        assert_eq!(
            resolved(&template, part),
            json!({
                "a": format!("{table}/index/open of 4 in ${{literally}}"),
                "b": format!("{table}/stream/2026-01-01T00:00:00.000"),
                "c": "none", "d": ["agora-jobs"], "e": "<Needed>", "f": "x-4",
            })
        );
        assert_eq!(template.resources("AWS::SQS::Queue").unwrap(), []);
        let given = Template::read(TEXT).unwrap().with("Url", "https://x").named("live");
        assert_eq!(resolved(&given, "c: !If [HasMany, !Ref Jobs, no]"), json!({"c": "live-jobs"}));
        assert_eq!(given.resources("AWS::SQS::Queue").unwrap(), [("Hidden", json!({"QueueName": "hidden"}))]);
    }

    #[test]
    fn unsupported_input_is_an_error() {
        let template = Template::read(TEXT).unwrap();
        for part in ["!Cidr [a, b]", "!Ref Nobody", "!GetAtt Jobs.Nothing", "!If [Never, a, b]", "!Sub '${Jobs'"] {
            assert!(template.resolved(&yaml(part).unwrap()).is_err(), "{part}");
        }
        for text in ["a: 1\na: 2", "a: !!binary x", "a: [", "? [a]\n: b"] {
            assert!(yaml(text).is_err(), "{text}");
        }
    }

    #[test]
    fn plain_scalars_have_yaml_types() {
        let read = yaml("{a: true, b: 'true', c: 10, d: '10', e: 1.5, f: yes, g: , h: 2026-01-01, i: inf}").unwrap();
        let expected = json!({"a": true, "b": "true", "c": 10, "d": "10", "e": 1.5, "f": "yes", "g": null,
            "h": "2026-01-01", "i": "inf"});
        assert_eq!(read, expected);
    }
}
