//! Checks the environment against what `Config` reads and what the template sets.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use catalog::CATALOG;
use platform::config::{Config, SettingsFile};

use super::Report;

const TEMPLATE: &str = include_str!("../../../template.yaml");

/// Variables without a default that AWS needs.
const NEEDED_IN_AWS: [&str; 5] =
    ["TABLE_PREFIX", "JOB_QUEUE_URL", "SOUL_QUEUE_URL", "BLOB_BUCKET", "SERVICE_SECRET_ARN"];

/// Variables that only the doctor, the local stack and its tools read.
const NOT_THE_SERVICES: [&str; 4] = ["RELAYER_ADDRESS", "TREASURY_ADDRESS", "SERVICE_SECRET", "BLOB_FOLDER"];

/// Reads the configuration. Reports variables that are wrong, missing, or read by nothing.
pub fn check(environment: &HashMap<String, String>, report: &mut Report) -> Option<Config> {
    let known = read_by_config();
    let given = template_variables();
    let unread: Vec<&str> = given.keys().filter(|name| !known.contains(*name)).map(String::as_str).collect();
    if unread.is_empty() {
        report.ok("template", format!("every one of its {} variables is read", given.len()));
    } else {
        let remedy = "the template and this doctor are of different versions: use both from one commit";
        report.fail("template", format!("it sets variables that nothing reads: {}", unread.join(", ")), remedy);
    }
    unknown(environment, &known, report);
    let (config, mut problems) = Config::examined(|name| environment.get(name).cloned(), &SettingsFile::default());
    problems.extend(CATALOG.of(&config).unknown(&config));
    if !problems.is_empty() {
        for problem in problems {
            let name = problem.split(' ').next().unwrap_or_default().to_owned();
            report.fail("configuration", problem, format!("correct {name} ({})", place(&name, &given)));
        }
        return None;
    }
    report.ok("configuration", "every variable is well formed");
    if config.aws.endpoint.is_some() {
        report.ok("variables of AWS", "not needed: AWS_ENDPOINT_URL names an emulator");
        return Some(config);
    }
    for name in NEEDED_IN_AWS.iter().filter(|name| environment.get(**name).is_none_or(String::is_empty)) {
        report.fail(
            &format!("variable {name}"),
            "it is not set",
            format!("set it to the stack's value ({})", place(name, &given)),
        );
    }
    Some(config)
}

/// Where a deployed function gets a variable from.
fn place(name: &str, given: &BTreeMap<String, BTreeSet<String>>) -> String {
    match given.get(name).map(|functions| functions.iter().cloned().collect::<Vec<_>>()) {
        Some(functions) if functions == ["all"] => "template.yaml sets it for all functions".to_owned(),
        Some(functions) => format!("template.yaml sets it for {}", functions.join(", ")),
        None => "docs/CONFIGURATION.md".to_owned(),
    }
}

/// Warns of names that resemble the service's variables but are read by nothing, mostly misspellings.
fn unknown(environment: &HashMap<String, String>, known: &BTreeSet<String>, report: &mut Report) {
    let first = |name: &str| name.split('_').next().unwrap_or_default().to_owned();
    let ours: BTreeSet<String> = known.iter().map(|name| first(name)).filter(|word| word != "AWS").collect();
    let mut names: Vec<&String> = environment.keys().collect();
    names.sort();
    for name in names {
        let is_known = known.contains(name) || NOT_THE_SERVICES.contains(&name.as_str());
        if is_known || !name.contains('_') || !ours.contains(&first(name)) {
            continue;
        }
        let nearest = known.iter().min_by_key(|known| distance(known, name)).map_or("", String::as_str);
        let remedy = format!("unset it, or correct the spelling: {nearest}?");
        report.warn(&format!("variable {name}"), "nothing reads it", remedy);
    }
}

/// The variables whose name is one edit from one that is read, with the name that is meant. Short names are words of other
/// programs, too.
pub fn misspelt(environment: &HashMap<String, String>) -> Vec<(String, String)> {
    let mut known = read_by_config();
    known.extend(NOT_THE_SERVICES.into_iter().chain(crate::settings::READ).map(str::to_owned));
    let mut names: Vec<&String> = environment.keys().filter(|name| !known.contains(*name)).collect();
    names.sort();
    let meant = |name: &str| known.iter().find(|known| known.len() > 4 && distance(known, name) == 1);
    names.into_iter().filter_map(|name| Some((name.clone(), meant(name)?.clone()))).collect()
}

/// Edit distance (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = line + 1;
        for column in 0..other.len() {
            let changed = before + usize::from(letter != other[column]);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The names that `Config` reads.
fn read_by_config() -> BTreeSet<String> {
    let asked = RefCell::new(BTreeSet::new());
    let _ = Config::read(|name| {
        asked.borrow_mut().insert(name.to_owned());
        // Some are only read if another is set.
        matches!(name, "FACILITATOR_URL" | "MODERATION_URL").then(|| "http://localhost".to_owned())
    });
    asked.into_inner()
}

/// The variables that the template sets, and for which functions (`all`: every one).
pub fn template_variables() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut section, mut resource, mut block) = ("", String::new(), None);
    for line in TEMPLATE.lines() {
        let (indent, text) = (line.len() - line.trim_start().len(), line.trim());
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if indent == 0 {
            section = text;
        }
        if indent == 2 && text.ends_with(':') {
            resource = text.trim_end_matches(':').to_owned();
        }
        match block {
            Some(start) if indent <= start => block = None,
            Some(start) if indent == start + 2 => {
                let name = text.split(':').next().unwrap_or_default().to_owned();
                let function = if section == "Globals:" { "all".to_owned() } else { resource.clone() };
                found.entry(name).or_default().insert(function);
            }
            _ => {}
        }
        if text == "Variables:" {
            block = Some(indent);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_sets_variables_that_are_read() {
        let (given, known) = (template_variables(), read_by_config());
        assert!(given.keys().all(|name| known.contains(name)), "{given:?}");
        assert!(NEEDED_IN_AWS.iter().all(|name| given.contains_key(*name)), "{given:?}");
        assert_eq!(given["CHAIN_ID"], BTreeSet::from(["all".to_owned()]));
        assert!(given["JOB_QUEUE_URL"].contains("WorkerFunction") && !given["JOB_QUEUE_URL"].contains("all"));
        assert_eq!(distance("CHAIN_RPC_URL", "CHAIN_RPC_ULR"), 2);
    }

    #[test]
    fn one_wrong_letter_is_a_misspelling() {
        let names =
            ["SERVICE_NAM", "SEARCH_PROVIDER", "SMTP_LISTENPORT", "PRICE", "SERVICE_NAME", "PORTS", "PATH", "HOME"];
        let environment = names.map(|name| (name.to_owned(), "x".to_owned())).into();
        let found = misspelt(&environment);
        let found: Vec<(&str, &str)> = found.iter().map(|(name, meant)| (name.as_str(), meant.as_str())).collect();
        let expected = [
            ("PRICE", "PRICES"),
            ("SEARCH_PROVIDER", "SEARCH_PROVIDERS"),
            ("SERVICE_NAM", "SERVICE_NAME"),
            ("SMTP_LISTENPORT", "SMTP_LISTEN_PORT"),
        ];
        assert_eq!(found, expected);
    }
}
