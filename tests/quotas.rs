//! AWS quotas that the template and the code could exceed, as numbers, each with its source. What CloudFormation or a
//! service would refuse at deployment, or drop at run time, fails here.

use std::collections::BTreeMap;

use gate::push;
use gate::work::MAX_RESULT_BYTES;
use gate::work::program::MAX_PROGRAM_BYTES;
use gate::{LARGEST_BODY_BYTES, MAX_BODY_BYTES};
use local::iam::equipped;
use local::template::Template;
use market::counting;
use platform::store::queue::MAX_DELAY;
use serde_json::Value;
use tools::files;

use crate::support::root;

/// AWS CloudFormation User Guide, "Understand CloudFormation quotas" (cloudformation-limits).
mod cloudformation {
    pub const RESOURCES: usize = 500;
    pub const PARAMETERS: usize = 200;
    pub const OUTPUTS: usize = 200;
    pub const TEMPLATE_BYTES: usize = 1_000_000;
    pub const TEMPLATE_DESCRIPTION_BYTES: usize = 1_024;
    pub const PARAMETER_DESCRIPTION_CHARS: usize = 4_000;
    pub const OUTPUT_DESCRIPTION_BYTES: usize = 1_024;
    /// API Reference, "RollbackConfiguration": "a maximum of five rollback triggers".
    pub const ROLLBACK_TRIGGERS: usize = 5;
    pub const STACK_NAME_CHARS: usize = 128;
}

/// AWS Lambda Developer Guide, "Lambda quotas" (gettingstarted-limits).
mod lambda {
    /// All variables of a function together. Lambda's error messages show what it measures: names and values as one
    /// JSON object.
    pub const ENVIRONMENT_BYTES: usize = 4_096;
    /// Request and answer of a synchronous invocation; the limit holds for each.
    pub const PAYLOAD_BYTES: usize = 6 * 1024 * 1024;
    pub const TIMEOUT_SECS: u64 = 900;
    pub const MEMORY_MB: std::ops::RangeInclusive<u64> = 128..=10_240;
    /// API Reference, "CreateFunction".
    pub const DESCRIPTION_CHARS: usize = 256;
    /// API Reference, "CreateEventSourceMapping": batch size of a queue without and with a batching window, and seconds
    /// of that window; "ScalingConfig".
    pub const QUEUE_BATCH: u64 = 10;
    pub const BATCH: u64 = 10_000;
    pub const WINDOW_SECS: u64 = 300;
    pub const QUEUE_CONCURRENCY: std::ops::RangeInclusive<u64> = 2..=1_000;
    /// "Creating and configuring an Amazon SQS event source mapping": the visibility timeout is at least six times the
    /// function's timeout, plus the window.
    pub const VISIBILITY_TIMEOUTS: u64 = 6;
}

/// IAM User Guide, "IAM and AWS STS quotas" (reference_iam-quotas).
mod iam {
    /// All inline policies of a role together, without white space.
    pub const INLINE_POLICY_CHARS: usize = 10_240;
    pub const DESCRIPTION_CHARS: usize = 1_000;
}

/// API Gateway Developer Guide, "Quotas for configuring and running an HTTP API" (http-api-quotas) and "… a WebSocket API".
mod gateway {
    pub const ROUTES: usize = 300;
    pub const PAYLOAD_BYTES: usize = 10 * 1024 * 1024;
    pub const INTEGRATION_TIMEOUT_SECS: u64 = 30;
    pub const LOG_FORMAT_BYTES: usize = 3 * 1024;
    pub const SOCKET_MESSAGE_BYTES: usize = 128 * 1024;
    pub const SOCKET_LIFETIME_SECS: u64 = 2 * 3600;
    pub const SOCKET_IDLE_SECS: u64 = 10 * 60;
}

/// Amazon DynamoDB Developer Guide, "Quotas in Amazon DynamoDB" (ServiceQuotas, Constraints).
pub mod dynamodb {
    /// `support::run` checks these two in every test.
    pub const TRANSACTION_ITEMS: usize = 100;
    pub const TRANSACTION_BYTES: usize = 4 * 1024 * 1024;
    pub const ITEM_BYTES: usize = 400 * 1024;
    pub const INDEXES: usize = 20;
    pub const TABLE_NAME_CHARS: usize = 255;
    /// Attributes projected into all indexes of a table together.
    pub const PROJECTED_ATTRIBUTES: usize = 100;
}

/// Amazon EventBridge API Reference, "PutRule".
mod eventbridge {
    pub const DESCRIPTION_CHARS: usize = 512;
}

/// Amazon SQS Developer Guide, "Amazon SQS standard queue quotas" and "… message quotas".
mod sqs {
    pub const NAME_CHARS: usize = 80;
    /// AWS now allows 1 MiB; until August 2025 it was a quarter of that.
    pub const MESSAGE_BYTES: usize = 256 * 1024;
    pub const DELAY_SECS: u64 = 900;
    pub const VISIBILITY_SECS: u64 = 12 * 3600;
    pub const RETENTION_SECS: u64 = 14 * 24 * 3600;
}

/// Amazon CloudWatch User Guide, "CloudWatch service quotas" (cloudwatch_limits); API Reference, "PutCompositeAlarm".
mod cloudwatch {
    pub const METRICS_OF_AN_ALARM: usize = 10;
    pub const RULE_CHARS: usize = 10_240;
    pub const ALARM_DESCRIPTION_CHARS: usize = 1_024;
    pub const NAME_CHARS: usize = 255;
    /// CloudWatch Logs API Reference, "CreateLogGroup".
    pub const LOG_GROUP_NAME_CHARS: usize = 512;
}

/// Amazon CloudFront Developer Guide, "Quotas on CloudFront Functions"; API Reference, "CreateFunction" and
/// "DistributionConfig".
mod cloudfront {
    pub const FUNCTION_BYTES: usize = 10 * 1024;
    pub const NAME_CHARS: usize = 64;
    pub const COMMENT_CHARS: usize = 128;
}

/// Lengths of the longest region name and of the longest bucket name.
const REGION_CHARS: usize = "ap-southeast-1".len();
const BUCKET_CHARS: usize = 63;

fn template() -> Template {
    Template::of_project().expect("template.yaml is a template")
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn of_type(template: &Template, kind: &str) -> Vec<(String, Value)> {
    let found = template.resources(kind).expect("a template that can be resolved");
    found.into_iter().map(|(name, properties)| (name.to_owned(), properties)).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}

/// The longest stack name that a user may choose. The names of its resources have to fit as well.
fn longest_stack_name() -> String {
    let suffix = |kind: &str, name: &str| -> usize {
        let all = of_type(&equipped(template().named("")), kind);
        all.iter().filter_map(|(_, properties)| Some(text(properties.get(name)?).len())).max().unwrap_or_default()
    };
    let longest = [
        cloudformation::STACK_NAME_CHARS,
        sqs::NAME_CHARS - suffix("AWS::SQS::Queue", "QueueName"),
        cloudfront::NAME_CHARS - suffix("AWS::CloudFront::Function", "Name"),
        dynamodb::TABLE_NAME_CHARS - suffix("AWS::DynamoDB::Table", "TableName"),
        cloudwatch::NAME_CHARS - suffix("AWS::CloudWatch::CompositeAlarm", "AlarmName"),
        cloudwatch::LOG_GROUP_NAME_CHARS - suffix("AWS::Logs::LogGroup", "LogGroupName"),
    ];
    "s".repeat(longest.into_iter().min().unwrap_or_default())
}

/// The pipeline's stacks are named `agora-` and the stage. Users may choose longer names, up to a limit.
#[test]
fn resource_names_fit_for_any_stage_name() {
    let stage = number(&template().unresolved()["Parameters"]["Stage"]["MaxLength"]);
    assert!("agora-".len() as u64 + stage <= longest_stack_name().len() as u64, "{}", longest_stack_name().len());
    assert!(longest_stack_name().len() >= 50);
}

#[test]
fn the_template_is_within_cloudformation_limits() {
    let bytes = std::fs::read(root().join("template.yaml")).unwrap().len();
    assert!(bytes <= cloudformation::TEMPLATE_BYTES, "{bytes} bytes");
    let template = template();
    let whole = template.unresolved();
    assert!(text(&whole["Description"]).len() <= cloudformation::TEMPLATE_DESCRIPTION_BYTES);
    assert!(members(&whole["Parameters"]).count() <= cloudformation::PARAMETERS);
    for (name, parameter) in members(&whole["Parameters"]) {
        let said = text(&parameter["Description"]).chars().count();
        assert!(said <= cloudformation::PARAMETER_DESCRIPTION_CHARS, "{name}: {said} characters");
    }
    assert!(members(&whole["Outputs"]).count() <= cloudformation::OUTPUTS);
    for (name, output) in members(&whole["Outputs"]) {
        assert!(text(&output["Description"]).len() <= cloudformation::OUTPUT_DESCRIPTION_BYTES, "{name}");
    }
    // SAM adds a permission for each route, a rule and a permission for each schedule, a mapping for each queue and
    // stream, a stage for the API, and the configuration of asynchronous calls.
    let mut resources = members(&whole["Resources"]).count() + 1;
    for (_, function) in of_type(&template, "AWS::Serverless::Function") {
        resources += usize::from(function.get("EventInvokeConfig").is_some());
        resources +=
            members(&function["Events"]).map(|(_, event)| 1 + usize::from(event["Type"] == "Schedule")).sum::<usize>();
    }
    assert!(resources <= cloudformation::RESOURCES, "{resources} resources");
    assert!(resources > 200, "they are no longer counted: {resources}");
}

/// CloudFormation accepts at most five rollback alarms. They have to cover every alarm that shows a failed deployment.
#[test]
fn every_error_alarm_can_roll_back_a_deployment() {
    let template = template();
    let outputs = template.resolved(&template.unresolved()["Outputs"]).unwrap();
    let triggers: Vec<&str> = members(&outputs)
        .filter(|(name, _)| name.starts_with("Rollback"))
        .flat_map(|(_, output)| text(&output["Value"]).split(','))
        .collect();
    assert!(!triggers.is_empty() && triggers.len() <= cloudformation::ROLLBACK_TRIGGERS, "{triggers:?}");
    let script = std::fs::read_to_string(root().join(".github/release.py")).unwrap();
    let most =
        script.lines().find_map(|line| line.strip_prefix("MOST_TRIGGERS = ")).expect("how many the script names");
    assert_eq!(most.parse(), Ok(cloudformation::ROLLBACK_TRIGGERS));
    // The composite alarm has to include every alarm about errors.
    let rules = of_type(&template, "AWS::CloudWatch::CompositeAlarm");
    let rules: Vec<&str> = rules.iter().map(|(_, alarm)| text(&alarm["AlarmRule"])).collect();
    assert!(rules.iter().all(|rule| rule.len() <= cloudwatch::RULE_CHARS));
    for (name, alarm) in of_type(&template, "AWS::CloudWatch::Alarm") {
        let about_errors = members(&alarm["Metrics"]).count() + alarm["Metrics"].as_array().map_or(0, Vec::len) > 0;
        let watched = rules.iter().any(|rule| rule.contains(&format!("alarm:agora-{name}\"")));
        assert!(!about_errors || watched, "{name} does not take a deployment back");
    }
}

/// The maximum length of values in the template.
struct Longest<'a> {
    template: &'a Template,
    /// The same template with the longest stack name.
    named: Template,
}

impl Longest<'_> {
    fn parameter(&self, name: &str) -> Option<usize> {
        let parameter = self.template.unresolved()["Parameters"].get(name)?;
        if let Some(values) = parameter["AllowedValues"].as_array() {
            return values.iter().map(|value| value.as_str().map_or(value.to_string().len(), str::len)).max();
        }
        if parameter["Type"] == "Number" {
            return Some(number(&parameter["MaxValue"]).to_string().len());
        }
        let most = parameter.get("MaxLength");
        Some(usize::try_from(number(most.unwrap_or_else(|| panic!("{name} may be of any length")))).unwrap())
    }

    /// The maximum length of a secret in a variable, from its parameter's description.
    fn secret(&self, parameter: &str) -> usize {
        let description = text(&self.template.unresolved()["Parameters"][parameter]["Description"]);
        let said = description.split_once("at most ").and_then(|(_, rest)| rest.split_once(" characters"));
        let said = said.and_then(|(most, _)| most.parse().ok());
        said.unwrap_or_else(|| panic!("{parameter} does not say: at most so many characters"))
    }

    fn of(&self, value: &Value) -> usize {
        let Some((function, argument)) = value.as_object().and_then(|object| object.iter().next()) else {
            return value.as_str().map_or(value.to_string().len(), str::len);
        };
        let resolved = || {
            let value = self.named.resolved(value).unwrap();
            let text = text(&value);
            let region =
                if text.contains(local::template::REGION) { REGION_CHARS - local::template::REGION.len() } else { 0 };
            text.len() + region
        };
        match function.as_str() {
            "Ref" if text(argument).starts_with("AWS::") => resolved(),
            "Ref" if argument == "BlobBucket" => BUCKET_CHARS,
            "Ref" => self.parameter(text(argument)).unwrap_or_else(resolved),
            "Fn::If" => self.of(&argument[1]).max(self.of(&argument[2])),
            "Fn::Sub" => match text(argument).strip_prefix("{{resolve:secretsmanager:${") {
                Some(rest) if rest.starts_with("EdgeSecret}") => {
                    let secret = &self.template.unresolved()["Resources"]["EdgeSecret"]["Properties"];
                    usize::try_from(number(&secret["GenerateSecretString"]["PasswordLength"])).unwrap()
                }
                Some(rest) => self.secret(rest.split_once('}').expect("a parameter").0),
                None => resolved(),
            },
            _ => resolved(),
        }
    }
}

/// A function whose variables are too long together cannot be deployed, so the longest parameters have to fit.
#[test]
fn the_variables_of_a_function_fit_together() {
    let template = template();
    let longest = Longest { template: &template, named: Template::of_project().unwrap().named(&longest_stack_name()) };
    let whole = template.unresolved();
    let shared = &whole["Globals"]["Function"]["Environment"]["Variables"];
    for (name, function) in members(&whole["Resources"]) {
        if function["Type"] != "AWS::Serverless::Function" {
            continue;
        }
        let own = &function["Properties"]["Environment"]["Variables"];
        let sizes: BTreeMap<&String, usize> =
            members(shared).chain(members(own)).map(|(name, value)| (name, longest.of(value))).collect();
        // `"NAME":"value",`
        let total: usize = 2 + sizes.iter().map(|(name, size)| name.len() + size + 6).sum::<usize>();
        assert!(total <= lambda::ENVIRONMENT_BYTES, "{name}: {total} bytes: {sizes:?}");
    }
}

/// A function that prices or runs tools refuses a call whose provider it does not know, so each of them has all orders.
#[test]
fn functions_that_price_tools_know_who_is_asked() {
    let template = template();
    let whole = template.unresolved();
    let mut pricing = 0;
    for (name, function) in members(&whole["Resources"]) {
        let own = &function["Properties"]["Environment"]["Variables"];
        // A price below a provider's stops the start of whoever knows the provider and no limit of its calls.
        let knows_provider = members(own).any(|(name, _)| name.ends_with("_PROVIDERS"));
        assert!(!knows_provider || !own["PROVIDER_CALLS_PER_DAY"].is_null(), "{name} has no PROVIDER_CALLS_PER_DAY");
        // What these sell and do asks only the browser.
        let is_only = ["BuildsFunction", "BrowserFunction", "BrowserWorkerFunction"].contains(&name.as_str());
        if function["Type"] != "AWS::Serverless::Function" || own["BROWSER_URL"].is_null() || is_only {
            continue;
        }
        pricing += 1;
        for order in ["SEARCH_PROVIDERS", "PEOPLE_PROVIDERS", "IDENTITY_PROVIDERS", "PLACES_PROVIDERS"] {
            assert!(!own[order].is_null(), "{name} has no {order}");
        }
    }
    assert_eq!(pricing, 5, "knowledge, checkout, mcp, worker and executor");
}

#[test]
fn the_policies_of_a_role_fit() {
    let template = equipped(template().named(&longest_stack_name()));
    for (name, role) in of_type(&template, "AWS::IAM::Role") {
        let policies = role["Policies"].as_array().unwrap().iter();
        let size: usize = policies.map(|policy| policy["PolicyDocument"].to_string().len()).sum();
        assert!(size <= iam::INLINE_POLICY_CHARS, "{name}: {size} characters");
        assert!(text(&role["Description"]).len() <= iam::DESCRIPTION_CHARS, "{name}");
    }
}

#[test]
fn functions_and_queues_are_within_lambda_limits() {
    let template = template();
    let defaults = &template.unresolved()["Globals"]["Function"];
    let queues = of_type(&template, "AWS::SQS::Queue");
    let mut routes = 0;
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let setting = |setting: &str| number(function.get(setting).unwrap_or(&defaults[setting]));
        let timeout = setting("Timeout");
        assert!(timeout <= lambda::TIMEOUT_SECS, "{name}");
        assert!(lambda::MEMORY_MB.contains(&setting("MemorySize")), "{name}");
        assert!(text(&function["Description"]).len() <= lambda::DESCRIPTION_CHARS, "{name}");
        for (_, event) in members(&function["Events"]) {
            let properties = &event["Properties"];
            let window = properties.get("MaximumBatchingWindowInSeconds").map_or(0, number);
            let batch = properties.get("BatchSize").map_or(0, number);
            assert!(window <= lambda::WINDOW_SECS, "{name}");
            match text(&event["Type"]) {
                "HttpApi" => {
                    routes += 1;
                    // Otherwise the gateway times out first, and no log has the reason.
                    assert!(
                        timeout < gateway::INTEGRATION_TIMEOUT_SECS,
                        "{name} may take longer than its caller waits"
                    );
                }
                "SQS" => {
                    assert!(batch <= if window == 0 { lambda::QUEUE_BATCH } else { lambda::BATCH }, "{name}");
                    let concurrency = number(&properties["ScalingConfig"]["MaximumConcurrency"]);
                    assert!(lambda::QUEUE_CONCURRENCY.contains(&concurrency), "{name}");
                    let queue = text(&properties["Queue"]).rsplit(':').next().unwrap();
                    let (_, queue) = queues.iter().find(|(_, known)| known["QueueName"] == queue).expect("its queue");
                    let visible = number(&queue["VisibilityTimeout"]);
                    assert!(visible >= lambda::VISIBILITY_TIMEOUTS * timeout + window, "{name}: {visible} s");
                }
                "DynamoDB" => assert!(batch <= lambda::BATCH, "{name}"),
                "Schedule" => {
                    assert!(text(&properties["Description"]).len() <= eventbridge::DESCRIPTION_CHARS, "{name}");
                }
                _ => {}
            }
        }
    }
    assert!(routes <= gateway::ROUTES, "{routes} routes");
    let concurrency = &template.unresolved()["Parameters"]["WorkerConcurrency"];
    for bound in ["MinValue", "MaxValue"] {
        assert!(lambda::QUEUE_CONCURRENCY.contains(&number(&concurrency[bound])));
    }
    for (name, queue) in queues {
        assert!(queue.get("VisibilityTimeout").is_none_or(|secs| number(secs) <= sqs::VISIBILITY_SECS), "{name}");
        assert!(number(&queue["MessageRetentionPeriod"]) <= sqs::RETENTION_SECS, "{name}");
    }
}

#[test]
fn alarms_indexes_and_edge_functions_are_within_their_limits() {
    let template = equipped(template());
    for (name, alarm) in of_type(&template, "AWS::CloudWatch::Alarm") {
        let metrics = alarm["Metrics"].as_array().cloned().unwrap_or_default();
        let read = metrics.iter().filter(|metric| metric.get("MetricStat").is_some()).count();
        assert!(read <= cloudwatch::METRICS_OF_AN_ALARM, "{name} looks at {read} metrics");
        assert!(text(&alarm["AlarmDescription"]).len() <= cloudwatch::ALARM_DESCRIPTION_CHARS, "{name}");
    }
    for (name, table) in of_type(&template, "AWS::DynamoDB::Table") {
        let indexes = table["GlobalSecondaryIndexes"].as_array().cloned().unwrap_or_default();
        let projected = indexes.iter().filter_map(|index| index["Projection"]["NonKeyAttributes"].as_array());
        assert!(indexes.len() <= dynamodb::INDEXES, "{name}");
        assert!(projected.map(Vec::len).sum::<usize>() <= dynamodb::PROJECTED_ATTRIBUTES, "{name}");
    }
    for (name, function) in of_type(&template, "AWS::CloudFront::Function") {
        assert!(text(&function["FunctionCode"]).len() <= cloudfront::FUNCTION_BYTES, "{name}");
        assert!(text(&function["FunctionConfig"]["Comment"]).len() <= cloudfront::COMMENT_CHARS, "{name}");
    }
    for (name, distribution) in of_type(&template, "AWS::CloudFront::Distribution") {
        let comment = text(&distribution["DistributionConfig"]["Comment"]);
        assert!(comment.len() <= cloudfront::COMMENT_CHARS, "{name}");
    }
    // The one of the service; that of sites has no log of visits.
    let apis = of_type(&template, "AWS::Serverless::HttpApi");
    let (_, api) = apis.iter().find(|(name, _)| name == "Api").expect("the service's API");
    assert!((1..=gateway::LOG_FORMAT_BYTES).contains(&text(&api["AccessLogSettings"]["Format"]).len()));
}

/// AWS can carry everything that the code accepts: bodies, results, messages, delays.
#[test]
fn sizes_and_times_in_the_code_are_within_aws_limits() {
    // Text bodies reach a function inside JSON; others in base64, a third longer.
    for bytes in [MAX_BODY_BYTES, LARGEST_BODY_BYTES, MAX_PROGRAM_BYTES, files::MAX_BODY_BYTES] {
        assert!(
            bytes <= gateway::PAYLOAD_BYTES && bytes * 4 / 3 < lambda::PAYLOAD_BYTES,
            "{bytes} bytes do not arrive"
        );
    }
    const { assert!(MAX_RESULT_BYTES < lambda::PAYLOAD_BYTES) }
    assert!(MAX_DELAY.as_secs() <= sqs::DELAY_SECS);
    // A message names a job, a delivery, a blob or an address. It never holds their content.
    let visit = platform::store::queue::Message::Visit { url: "x".repeat(2048) };
    assert!(visit.to_json().len() < sqs::MESSAGE_BYTES);
    const { assert!(push::MAX_MESSAGE_BYTES <= gateway::SOCKET_MESSAGE_BYTES) }
    assert!(push::LIFETIME.as_secs() <= gateway::SOCKET_LIFETIME_SECS);
    assert!(push::IDLE.as_secs() <= gateway::SOCKET_IDLE_SECS);
    // Each sale of a batch is deleted and updates some counters of its soul.
    const { assert!(counting::BATCH < dynamodb::TRANSACTION_ITEMS) }
    // A batch of the stream is one transaction: its mark, the totals, and at most one agent and one hour per record.
    let template = template();
    let aggregator = &template.unresolved()["Resources"]["AggregatorFunction"]["Properties"]["Events"];
    let batch = number(&aggregator["JobChanges"]["Properties"]["BatchSize"]);
    assert!(2 * batch + 2 <= dynamodb::TRANSACTION_ITEMS as u64);
    const { assert!(market::form::MAX_TEXT_BYTES < dynamodb::ITEM_BYTES) }
    // A presigned URL expires with the credentials that signed it (Amazon S3 User Guide, "Download and upload objects
    // with presigned URLs"). Credentials of a role last at least an hour (AWS STS API Reference, "AssumeRole").
    assert!(files::SEND_VALID.max(files::FETCH_VALID).as_secs() <= 3600 / 2);
}
