//! Compares the variables of the deployed functions with the template, and adds them to the environment, so that the
//! operator does not have to collect them.

use std::collections::{BTreeMap, HashMap};

use platform::config::Config;
use platform::connections::Connections;
use serde_json::Value;

use super::{Report, template_variables};

/// Pages of fifty; more than an account's initial limit of functions.
const MAX_PAGES: usize = 40;
/// Functions whose variables come first: one variable may name different queues in different functions.
const FIRST: [&str; 3] = ["WorkerFunction", "PayoutsFunction", "SchedulerFunction"];

/// The variables of each function of a stack, by the function's logical name.
type Deployed = BTreeMap<String, BTreeMap<String, String>>;

/// Reads the functions of the stack named by `TABLE_PREFIX` and adds their variables to the environment; variables already
/// set stay. Does nothing with an emulator, unless `AWS_ENDPOINT_URL_LAMBDA` is set.
pub async fn check(environment: &mut HashMap<String, String>, report: &mut Report) {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
    let (Some(stack), own) = (set("TABLE_PREFIX"), set("AWS_ENDPOINT_URL_LAMBDA")) else { return };
    if set("AWS_ENDPOINT_URL").is_some() && own.is_none() {
        return;
    }
    // PAY_TO is required by the configuration but not used here; the whole configuration is checked later.
    let reachable = |name: &str| match name {
        "PAY_TO" => Some("0x0000000000000000000000000000000000000001".to_owned()),
        name if name.starts_with("AWS_") => set(name),
        _ => None,
    };
    let Some(config) = Config::read(reachable).ok() else { return };
    let Ok(connections) = Connections::open(&config) else { return };
    let base = own.unwrap_or_else(|| format!("https://lambda.{}.amazonaws.com", config.aws.region));
    match list(&connections, &base, &stack).await {
        Ok(deployed) if deployed.is_empty() => {
            let remedy = "set TABLE_PREFIX to the stack's name and AWS_REGION to its region";
            report.fail(
                "functions",
                format!("there are no functions of a stack {stack} in {}", config.aws.region),
                remedy,
            );
        }
        Ok(deployed) => {
            judge(&deployed, report);
            let first = FIRST.iter().filter_map(|name| deployed.get(*name));
            for (name, value) in first.chain(deployed.values()).flatten().filter(|(_, value)| !value.is_empty()) {
                environment.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        Err(cause) => {
            let remedy = "allow these credentials lambda:ListFunctions, or set the functions' variables yourself (docs/DEPLOY.md)";
            report.warn("functions", cause, remedy);
        }
    }
}

async fn list(connections: &Connections, base: &str, stack: &str) -> Result<Deployed, String> {
    let mut names: Vec<String> = template_variables().into_values().flatten().filter(|name| name != "all").collect();
    names.sort();
    names.dedup();
    let (mut deployed, mut marker) = (Deployed::new(), None::<String>);
    for _ in 0..MAX_PAGES {
        let more: String =
            marker.iter().map(|marker| encoded(marker)).map(|marker| format!("&Marker={marker}")).collect();
        let url = format!("{base}/2015-03-31/functions/?MaxItems=50{more}");
        let answer =
            connections.signed.send("lambda", "GET", &url, &[], Vec::new()).await.map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("Lambda answers {}", answer.status));
        }
        let page: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        for function in page["Functions"].as_array().into_iter().flatten() {
            // CloudFormation's names: stack, logical name, random suffix.
            let full = function["FunctionName"].as_str().unwrap_or_default();
            let own = full
                .strip_prefix(stack)
                .and_then(|rest| rest.strip_prefix('-'))
                .and_then(|rest| rest.split('-').next());
            if let Some(own) = own.filter(|own| own.ends_with("Function")) {
                let variables =
                    serde_json::from_value(function["Environment"]["Variables"].clone()).unwrap_or_default();
                deployed.insert(own.to_owned(), variables);
            }
        }
        match page["NextMarker"].as_str() {
            Some(next) => marker = Some(next.to_owned()),
            None => return Ok(deployed),
        }
    }
    Ok(deployed)
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn judge(deployed: &Deployed, report: &mut Report) {
    let given = template_variables();
    let again = "deploy the stack again, from the same commit as this doctor";
    let mut well = true;
    for (function, variables) in deployed {
        let wanted = |name: &String| {
            given.get(name).is_some_and(|functions| functions.contains("all") || functions.contains(function))
        };
        let of_it = given.keys().filter(|name| wanted(name));
        let missing: Vec<&str> = of_it.filter(|name| !variables.contains_key(*name)).map(String::as_str).collect();
        let unknown: Vec<&str> = variables.keys().filter(|name| !wanted(name)).map(String::as_str).collect();
        let check = format!("variables of {function}");
        if !missing.is_empty() {
            report.fail(&check, format!("missing: {}", missing.join(", ")), again);
        }
        if !unknown.is_empty() {
            let remedy = "unset them, or use the template's parameters instead: the next deployment removes variables set by hand";
            report.warn(&check, format!("not set by the template: {}", unknown.join(", ")), remedy);
        }
        well &= missing.is_empty() && unknown.is_empty();
    }
    let shared = given.iter().filter(|(_, functions)| functions.contains("all")).map(|(name, _)| name);
    for name in shared {
        let mut values: Vec<&str> = deployed.values().filter_map(|of| of.get(name)).map(String::as_str).collect();
        values.sort_unstable();
        values.dedup();
        if values.len() > 1 {
            well = false;
            report.fail(&format!("variable {name}"), "it differs between functions", again);
        }
    }
    if well {
        report.ok("functions", format!("the variables of all {} functions match the template", deployed.len()));
    }
}
