//! `template.yaml` against the code, in both directions: the same routes, the same tables, and only variables that the
//! code reads.

use std::collections::{BTreeMap, BTreeSet};

use api::routes;
use local::template::Template;
use platform::store::table::{TABLES, TTL_ATTRIBUTE};
use serde_json::{Value, json};

use crate::support::root;

/// The template with all references resolved: `!Ref Api` becomes the name of the API.
fn template() -> Value {
    let template = local::iam::equipped(Template::of_project().expect("template.yaml is a template"));
    let mut whole = template.unresolved().clone();
    for part in ["Globals", "Resources"] {
        whole[part] = template.resolved(&whole[part]).expect("everything in it is known");
    }
    whole
}

fn of_type<'a>(template: &'a Value, kind: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    template["Resources"].as_object().unwrap().iter().filter(move |(_, resource)| resource["Type"] == kind)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// A batch ends with its slowest job, which may stall for as long as its tool may work.
#[test]
fn jobs_come_one_by_one() {
    let template = template();
    for name in ["WorkerFunction", "ExecutorFunction", "BrowserWorkerFunction"] {
        let jobs = &template["Resources"][name]["Properties"]["Events"]["Jobs"]["Properties"];
        assert_eq!(jobs["BatchSize"], 1, "{name}");
    }
}

#[test]
fn the_gateway_has_the_routes_of_the_table() {
    let template = template();
    let mut deployed = BTreeSet::new();
    for (_, function) in of_type(&template, "AWS::Serverless::Function") {
        let group = text(&function["Metadata"]["BuildProperties"]["Binary"]);
        for event in function["Properties"]["Events"].as_object().into_iter().flat_map(|events| events.values()) {
            if event["Type"] != "HttpApi" {
                continue;
            }
            let properties = &event["Properties"];
            match properties.get("Path") {
                // `GET` would exclude `HEAD`, so the gateway accepts any method and the function answers which it
                // allows.
                Some(path) => {
                    let method = text(&properties["Method"]);
                    assert_ne!(method, "GET", "{path}: say ANY, so that HEAD comes with it");
                    deployed.insert((group.clone(), method.replace("ANY", "GET"), text(path)));
                }
                // The route for every other path, of the service and of the host of sites.
                None if group == "hosting" => {
                    assert!(properties["ApiId"].to_string().contains("SitesApi"), "{properties}")
                }
                None => assert_eq!(group, "meta"),
            }
        }
    }
    // A family of tools shares one gateway route: `/v1/tools/lookup/{proxy+}` stands for all paths below it.
    let family = |group: &str, method: &str, path: &str| {
        let above = path.match_indices('/').map(|(end, _)| format!("{}/{{proxy+}}", &path[..end]));
        above.map(|path| (group.to_owned(), method.to_owned(), path)).find(|route| deployed.contains(route))
    };
    let table: BTreeSet<_> = routes::all()
        .chain([routes::OWN])
        .map(|route| {
            let own = (route.group.to_owned(), route.method.to_owned(), route.path.to_owned());
            family(route.group, route.method, route.path).unwrap_or(own)
        })
        .collect();
    assert_eq!(deployed, table);
}

#[test]
fn the_templates_tables_match_the_code() {
    let template = template();
    let mut deployed = BTreeMap::new();
    for (name, table) in of_type(&template, "AWS::DynamoDB::Table") {
        let properties = &table["Properties"];
        let word = text(&properties["TableName"]).replace("agora-", "");
        assert_eq!(table["DeletionPolicy"], "Retain", "{name}");
        assert_eq!(properties["DeletionProtectionEnabled"], true, "{name}");
        assert_eq!(properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], true, "{name}");
        assert_eq!(properties["TimeToLiveSpecification"], json!({"AttributeName": TTL_ATTRIBUTE, "Enabled": true}));
        deployed.insert(
            word,
            json!({
                "keys": properties["KeySchema"],
                "attributes": properties["AttributeDefinitions"],
                "indexes": properties["GlobalSecondaryIndexes"],
                "stream": properties["StreamSpecification"],
            }),
        );
    }
    let key = |hash: &str, range: &str| json!([{"AttributeName": hash, "KeyType": "HASH"}, {"AttributeName": range, "KeyType": "RANGE"}]);
    let table: BTreeMap<_, _> = TABLES
        .iter()
        .map(|table| {
            let mut attributes = vec![
                json!({"AttributeName": "pk", "AttributeType": "S"}),
                json!({"AttributeName": "sk", "AttributeType": "S"}),
            ];
            for index in table.indexes {
                attributes.push(json!({"AttributeName": index.partition, "AttributeType": "S"}));
                attributes.push(json!({"AttributeName": index.sort, "AttributeType": "N"}));
            }
            let indexes: Vec<Value> = table
                .indexes
                .iter()
                .map(|index| {
                    json!({
                        "IndexName": index.name,
                        "KeySchema": key(index.partition, index.sort),
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": index.included},
                    })
                })
                .collect();
            let definition = json!({
                "keys": key("pk", "sk"),
                "attributes": attributes,
                "indexes": if indexes.is_empty() { Value::Null } else { json!(indexes) },
                "stream": if table.stream { json!({"StreamViewType": "NEW_AND_OLD_IMAGES"}) } else { Value::Null },
            });
            (table.word.to_owned(), definition)
        })
        .collect();
    assert_eq!(deployed, table);
}

#[test]
fn every_variable_of_the_template_is_read_by_the_code() {
    let template = template();
    let code = ["mod.rs", "providers.rs", "email.rs"]
        .map(|file| std::fs::read_to_string(root().join("common/platform/src/config").join(file)).unwrap())
        .concat();
    let shared = template["Globals"]["Function"]["Environment"]["Variables"].as_object().unwrap().keys();
    let own = of_type(&template, "AWS::Serverless::Function")
        .filter_map(|(_, function)| function["Properties"]["Environment"]["Variables"].as_object())
        .flat_map(|variables| variables.keys());
    for name in shared.chain(own) {
        assert!(code.contains(&format!("\"{name}\"")), "nothing reads {name}");
    }
}

/// Each function exists once, with its own role and log, and no role allows every action or resource.
#[test]
fn each_function_has_its_own_role() {
    let template = template();
    let mut roles = BTreeSet::new();
    let mut binaries = BTreeSet::new();
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        assert!(roles.insert(text(&function["Properties"]["Role"])), "{name} shares its role");
        binaries.insert(text(&function["Metadata"]["BuildProperties"]["Binary"]));
    }
    let folders: BTreeSet<String> = std::fs::read_dir(root().join("functions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(binaries, folders);
    for (name, role) in of_type(&template, "AWS::IAM::Role") {
        let policies = role["Properties"]["Policies"].as_array().unwrap_or_else(|| panic!("{name} has no policy"));
        assert!(role["Properties"].get("ManagedPolicyArns").is_none(), "{name}");
        for statement in policies.iter().flat_map(|policy| policy["PolicyDocument"]["Statement"].as_array().unwrap()) {
            let said = statement["Action"].to_string();
            assert!(!said.contains('*'), "{name} may {said}");
            assert_ne!(statement["Resource"], "*", "{name}: {said}");
        }
    }
}

/// CloudWatch accepts at most ten metrics per alarm. Every function's errors must be in one.
#[test]
fn every_functions_errors_raise_an_alarm() {
    let template = template();
    let mut watched = BTreeSet::new();
    for (name, alarm) in of_type(&template, "AWS::CloudWatch::Alarm") {
        let metrics = alarm["Properties"]["Metrics"].as_array().cloned().unwrap_or_default();
        let read: Vec<&Value> = metrics.iter().filter(|metric| metric.get("MetricStat").is_some()).collect();
        assert!(read.len() <= 10, "{name} looks at {} metrics", read.len());
        let errors = read.iter().map(|metric| &metric["MetricStat"]["Metric"]);
        let errors = errors.filter(|metric| metric["MetricName"] == "Errors");
        watched.extend(errors.map(|metric| text(&metric["Dimensions"][0]["Value"])));
    }
    let functions: BTreeSet<String> =
        of_type(&template, "AWS::Serverless::Function").map(|(name, _)| format!("agora-{name}")).collect();
    assert_eq!(watched, functions);
}
