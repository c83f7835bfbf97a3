//! Bodies that create or change a service: reading the members, and checking the resulting service.

use base::clock::Timestamp;
use base::input::{self, FieldError};
use base::money::Usdc;
use gate::work::allowance::may_be_used;
use gate::work::checks::{self, Case, Check};
use ledger::fee::Split;
use ledger::webhooks::form::check_address;
use platform::config::{FeeShare, ModelPrices};
use platform::net::FetchPolicy;
use serde_json::{Map, Value};
use tools::spec::Catalog;

use super::afford::{self, TextOf};
use super::category::Category;
use super::form::{Reader, Wrong, boolean, dollars, shown, slug, text, whole, wrong};
use super::service::{Executor, MAX_TEST_CASES, Service, Terms, TestCase};
use super::service_runner::MOST_EXECUTION;
use super::soul::Slug;
use schema::under;

const LEAST_PRICE: Usdc = Usdc::from_micro(10_000);
const MOST_PRICE: Usdc = Usdc::from_micro(1_000_000_000);
const LEAST_SANDBOX_PRICE: Usdc = Usdc::from_micro(500_000);
const DEADLINES: (u32, u32) = (10, 7 * 24 * 3600);
const MOST_EXECUTION_SECS: u32 = MOST_EXECUTION.as_secs() as u32;
const MAX_TOOLS: usize = 20;
const MAX_CHECKS: usize = 20;
/// Largest size of a service's test cases as JSON, in bytes.
const MAX_TESTS_BYTES: usize = 32 * 1024;

/// The members that a body sets.
const MEMBERS: [&str; 14] = [
    "name",
    "price_usd",
    "description",
    "category",
    "active",
    "sandbox",
    "input_schema",
    "output_schema",
    "deadline_seconds",
    "executor",
    "tools",
    "tool_budget_usd",
    "webhook_url",
    "test_cases",
];
/// Members of a service's view that are accepted and ignored, so that an answer can be sent back.
pub const OF_ANSWERS: [&str; 8] = [
    "id",
    "total_executions",
    "version",
    "kept_if_failed_up_to",
    "program",
    "test_failures",
    "created_at",
    "updated_at",
];

/// The limits that depend on the deployment.
pub struct DeploymentLimits<'a> {
    /// The tools that services may use.
    pub catalog: &'a Catalog,
    /// Prices of the deployment's model, if it has one.
    pub model: Option<ModelPrices>,
    /// The platform's fee.
    pub fee: FeeShare,
    /// The text of the soul that offers the service.
    pub text: TextOf<'a>,
    /// The addresses that webhooks may use.
    pub policy: &'a FetchPolicy,
}

/// The members that a body sets. `Some(None)` removes a member.
#[derive(Debug, Default)]
pub struct Change {
    name: Option<String>,
    price: Option<Usdc>,
    description: Option<Option<String>>,
    category: Option<Category>,
    active: Option<bool>,
    sandbox: Option<bool>,
    input_schema: Option<Option<Value>>,
    output_schema: Option<Option<Value>>,
    deadline_seconds: Option<Option<u32>>,
    executor: Option<Executor>,
    tools: Option<Option<Vec<String>>>,
    tool_budget: Option<Option<Usdc>>,
    webhook_url: Option<Option<String>>,
    test_cases: Option<Option<Vec<TestCase>>>,
}

impl Change {
    /// Reads the body of a change of the service `slug`. Every member is optional. The slug cannot be changed; it may be sent
    /// as it is.
    pub fn read(
        body: &Map<String, Value>,
        slug: &str,
        ground: &DeploymentLimits<'_>,
    ) -> Result<Change, Vec<FieldError>> {
        let mut errors = unknown(body);
        if body.get("slug").is_some_and(|given| given != slug) {
            errors.push(FieldError::new("slug", "cannot change"));
        }
        match Change::members(body, ground) {
            Ok(change) if errors.is_empty() => Ok(change),
            change => {
                errors.extend(change.err().unwrap_or_default());
                Err(errors)
            }
        }
    }

    fn members(body: &Map<String, Value>, ground: &DeploymentLimits<'_>) -> Result<Change, Vec<FieldError>> {
        let mut reader = Reader::new(body);
        let change = Change {
            name: reader.given("name", shown(1, 255, false)),
            price: reader.given("price_usd", dollars(LEAST_PRICE, MOST_PRICE)),
            description: reader.nullable("description", shown(0, 2000, true)),
            category: reader.given("category", category),
            active: reader.given("active", boolean),
            sandbox: reader.given("sandbox", boolean),
            input_schema: reader.nullable("input_schema", admitted),
            output_schema: reader.nullable("output_schema", admitted),
            deadline_seconds: reader.nullable("deadline_seconds", whole(DEADLINES.0, DEADLINES.1)),
            executor: reader.given("executor", executor),
            tools: reader.nullable("tools", |value| tools(ground.catalog, value)),
            tool_budget: reader.nullable("tool_budget_usd", dollars(Usdc::ZERO, MOST_PRICE)),
            webhook_url: reader.nullable("webhook_url", |value| webhook(value, ground.policy)),
            test_cases: reader.nullable("test_cases", test_cases),
        };
        if reader.errors.is_empty() { Ok(change) } else { Err(reader.errors) }
    }

    /// The texts of this change that are published, by member.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let mut texts = Vec::new();
        texts.extend(self.name.clone().map(|name| ("name", name)));
        texts.extend(self.description.clone().flatten().map(|description| ("description", description)));
        for (path, schema) in [("input_schema", &self.input_schema), ("output_schema", &self.output_schema)] {
            if let Some(Some(schema)) = schema {
                let mut words = String::new();
                strings(schema, &mut words);
                texts.push((path, words));
            }
        }
        texts
    }

    /// The changed service, or its conflicts. The caller raises the version of the terms.
    pub fn apply(&self, service: &Service, ground: &DeploymentLimits<'_>) -> Result<Service, Vec<FieldError>> {
        let mut changed = service.clone();
        let terms = &mut changed.terms;
        set(&mut terms.name, self.name.clone());
        set(&mut terms.price, self.price);
        set(&mut terms.sandbox, self.sandbox);
        set(&mut terms.input_schema, self.input_schema.clone());
        set(&mut terms.output_schema, self.output_schema.clone());
        set(&mut terms.tools, self.tools.clone().map(Option::unwrap_or_default));
        set(&mut terms.tool_budget, self.tool_budget.map(Option::unwrap_or_default));
        if let Some(url) = self.webhook_url.clone().filter(|url| *url != terms.webhook_url) {
            terms.webhook_number += u32::from(url.is_some());
            terms.webhook_url = url;
        }
        let executor = self.executor(service, ground);
        terms.executor = executor.unwrap_or_else(|| follow(terms, ground));
        let default_before = default_deadline(service.terms.executor);
        match self.deadline_seconds {
            Some(Some(seconds)) => terms.deadline_seconds = seconds,
            Some(None) => terms.deadline_seconds = default_deadline(terms.executor),
            None if terms.deadline_seconds == default_before => {
                terms.deadline_seconds = default_deadline(terms.executor);
            }
            None => {}
        }
        if terms.executor != Executor::Program {
            (terms.program, terms.program_copy) = (None, None);
        }
        set(&mut changed.description, self.description.clone());
        changed.description = changed.description.filter(|description| !description.is_empty());
        set(&mut changed.category, self.category);
        set(&mut changed.active, self.active);
        set(&mut changed.test_cases, self.test_cases.clone().map(Option::unwrap_or_default));
        let errors = self.conflicts(&changed, executor.is_some(), ground);
        if errors.is_empty() { Ok(changed) } else { Err(errors) }
    }

    /// The executor that the body sets. The one that the service is shown with sets nothing: without a model, a model's
    /// service is shown as a worker's. A webhook says that a worker is meant.
    fn executor(&self, service: &Service, ground: &DeploymentLimits<'_>) -> Option<Executor> {
        let (stored, shown) = (service.terms.executor, service.terms.done_by(ground.model.is_some()));
        let has_webhook = self.webhook_url.as_ref().is_some_and(Option::is_some);
        self.executor.filter(|given| *given == stored || *given != shown || has_webhook)
    }

    /// Conflicts between members. `names_executor`: the body sets the executor.
    fn conflicts(&self, service: &Service, names_executor: bool, ground: &DeploymentLimits<'_>) -> Vec<FieldError> {
        let terms = &service.terms;
        let mut errors = Vec::new();
        let mut wrong = |path: &str, message: &str| errors.push(FieldError::new(path, message));
        if terms.sandbox && terms.price < LEAST_SANDBOX_PRICE {
            wrong("price_usd", "must be at least 0.5 with sandbox");
        }
        match terms.executor {
            Executor::Model if names_executor && ground.model.is_none() => {
                wrong("executor", "this deployment has no model; use worker, or program with sandbox");
            }
            Executor::Worker if terms.sandbox => wrong("sandbox", "must be false for a worker; use program"),
            Executor::Program if !terms.sandbox => wrong("sandbox", "must be true for a program"),
            _ => {}
        }
        if terms.webhook_url.is_some() && terms.executor != Executor::Worker {
            wrong("webhook_url", "is only allowed for a worker");
        }
        if !terms.tools.is_empty() {
            if terms.executor == Executor::Worker {
                wrong("tools", "must be empty for a worker, which calls tools itself");
            }
            if terms.tool_budget == Usdc::ZERO {
                wrong("tool_budget_usd", "must be above 0 with tools");
            }
        }
        if terms.tool_budget > Split::of(terms.price, ground.fee).revenue {
            wrong("tool_budget_usd", "must be at most your share of the price");
        }
        if terms.executor != Executor::Worker && terms.deadline_seconds > MOST_EXECUTION_SECS {
            let message = format!("must be at most {MOST_EXECUTION_SECS} for a model or a program");
            wrong("deadline_seconds", &message);
        }
        if let Some(least) = afford::too_cheap(ground.catalog, ground.model, ground.fee, ground.text, service) {
            let message = format!(
                "must be at least {least}: the platform's fee in it pays for the model, which reads the soul's text, \
                 the schema and the tools before it answers"
            );
            wrong("price_usd", &message);
        }
        if let Some(schema) = &terms.input_schema {
            for (index, case) in service.test_cases.iter().enumerate() {
                let wrong = schema::validate(schema, &case.input).err().unwrap_or_default();
                errors.extend(under(&format!("test_cases.{index}.input"), wrong));
            }
        }
        errors
    }
}

/// Reads the body that creates a service.
pub fn create(
    body: &Map<String, Value>,
    ground: &DeploymentLimits<'_>,
    now: Timestamp,
) -> Result<(Service, Change), Vec<FieldError>> {
    let mut errors = unknown(body);
    // At creation, `null` means absent.
    let body: Map<String, Value> =
        body.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut reader = Reader::new(&body);
    let slug = reader.required("slug", slug);
    errors.extend(reader.errors);
    let missing = ["name", "price_usd"].into_iter().filter(|name| !body.contains_key(*name));
    errors.extend(missing.map(|name| FieldError::new(name, "is required")));
    let change = Change::members(&body, ground);
    match (slug, change) {
        (Some(slug), Ok(change)) if errors.is_empty() => {
            let executor =
                if change.webhook_url.is_some() || ground.model.is_none() { Executor::Worker } else { Executor::Model };
            let service = change.apply(&blank(slug, executor, now), ground)?;
            Ok((service, change))
        }
        (_, change) => {
            errors.extend(change.err().unwrap_or_default());
            Err(errors)
        }
    }
}

/// Refuses what is no member of a service, neither of those that a body sets nor of those that an answer shows.
fn unknown(body: &Map<String, Value>) -> Vec<FieldError> {
    let also: Vec<&str> = ["slug", "tests"].into_iter().chain(OF_ANSWERS).collect();
    let mut errors = input::only(&MEMBERS, &also, body, "");
    // An answer has an object there, or null; a list is meant as something else.
    if body.get("tests").is_some_and(|tests| !(tests.is_null() || tests.is_object())) {
        errors.push(FieldError::new("tests", "is what the last trial found; test cases are `test_cases`"));
    }
    errors
}

fn blank(slug: Slug, executor: Executor, now: Timestamp) -> Service {
    let terms = Terms {
        version: 1,
        name: String::new(),
        price: Usdc::ZERO,
        input_schema: None,
        output_schema: None,
        deadline_seconds: default_deadline(executor),
        sandbox: false,
        executor,
        tools: Vec::new(),
        tool_budget: Usdc::ZERO,
        program: None,
        program_copy: None,
        webhook_url: None,
        webhook_number: 0,
        raised: None,
    };
    Service {
        slug,
        description: None,
        active: true,
        category: Category::default(),
        terms,
        test_cases: Vec::new(),
        trial: None,
        total_executions: 0,
        created: now,
        updated: now,
    }
}

/// The executor if the body does not name one: the present one, unless it conflicts with `sandbox`.
fn follow(terms: &Terms, ground: &DeploymentLimits<'_>) -> Executor {
    match terms.executor {
        Executor::Worker if terms.sandbox && ground.model.is_some() => Executor::Model,
        Executor::Worker if terms.sandbox => Executor::Program,
        Executor::Program if !terms.sandbox && ground.model.is_some() => Executor::Model,
        Executor::Program if !terms.sandbox => Executor::Worker,
        executor => executor,
    }
}

/// Default deadline in seconds. Long for a worker, because a person may do the work.
fn default_deadline(executor: Executor) -> u32 {
    match executor {
        Executor::Model | Executor::Program => 240,
        Executor::Worker => 24 * 3600,
    }
}

fn set<T>(to: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *to = value;
    }
}

fn admitted(value: &Value) -> Result<Value, Wrong> {
    schema::admit(value)?;
    Ok(value.clone())
}

fn category(value: &Value) -> Result<Category, Wrong> {
    value.as_str().unwrap_or_default().parse().or_else(wrong)
}

fn executor(value: &Value) -> Result<Executor, Wrong> {
    match value.as_str() {
        Some("model") => Ok(Executor::Model),
        Some("worker") => Ok(Executor::Worker),
        Some("program") => Ok(Executor::Program),
        _ => wrong("must be one of model, worker, program"),
    }
}

/// Tool names in the catalog's spelling.
fn tools(catalog: &Catalog, value: &Value) -> Result<Vec<String>, Wrong> {
    let Some(names) = value.as_array().filter(|names| names.len() <= MAX_TOOLS) else {
        return wrong(format!("must be an array of at most {MAX_TOOLS} names of tools"));
    };
    let mut found: Vec<String> = Vec::new();
    let mut errors = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match catalog.name_of(name.as_str().unwrap_or_default()) {
            Some(name) if catalog.find(name).is_some_and(|tool| !may_be_used(tool)) => {
                errors.push(FieldError::new(index.to_string(), "is not available to services"));
            }
            Some(name) if found.iter().any(|known| known == name) => {}
            Some(name) => found.push(name.to_owned()),
            None => errors.push(FieldError::new(index.to_string(), "is not a tool of this deployment")),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// Checks only the URL's text. The address that it resolves to is checked at each call.
fn webhook(value: &Value, policy: &FetchPolicy) -> Result<String, Wrong> {
    let text = text(1, 2048)(value)?;
    match check_address(&text, policy) {
        Ok(_) => Ok(text),
        Err(refused) => wrong(refused),
    }
}

fn test_cases(value: &Value) -> Result<Vec<TestCase>, Wrong> {
    let Some(cases) = value.as_array().filter(|cases| cases.len() <= MAX_TEST_CASES) else {
        return wrong(format!("must be an array of at most {MAX_TEST_CASES} test cases"));
    };
    let bytes = value.to_string().len();
    if bytes > MAX_TESTS_BYTES {
        return wrong(format!("may have at most {MAX_TESTS_BYTES} bytes together, have {bytes}"));
    }
    let cases = each(cases, test_case)?;
    let judged: Vec<Case> =
        cases.iter().map(|case| Case { input: case.input.clone(), checks: case.checks.clone() }).collect();
    let errors = checks::problems(&judged, "");
    if errors.is_empty() {
        return Ok(cases);
    }
    let at = |error: FieldError| FieldError { path: error.path.trim_start_matches('.').to_owned(), ..error };
    Err(errors.into_iter().map(at).collect())
}

fn test_case(value: &Value) -> Result<TestCase, Wrong> {
    let Some(body) = value.as_object() else { return wrong("must be an object") };
    let mut reader = Reader::new(body);
    reader.only(&["name", "input", "checks"], &[]);
    let name = reader.required("name", text(1, 100));
    let input = reader.required("input", |value| match value {
        Value::Object(_) => Ok(value.clone()),
        _ => wrong("must be an object"),
    });
    let checks = reader.required("checks", |value| match value.as_array() {
        Some(checks) if (1..=MAX_CHECKS).contains(&checks.len()) => each(checks, check),
        _ => wrong(format!("must be an array of 1 to {MAX_CHECKS} checks")),
    });
    match (name, input, checks) {
        (Some(name), Some(input), Some(checks)) if reader.errors.is_empty() => Ok(TestCase { name, input, checks }),
        _ => Err(reader.errors),
    }
}

fn check(value: &Value) -> Result<Check, Wrong> {
    let words = ["equals", "matches", "exists", "max_length"];
    let known: Vec<&str> = words.into_iter().chain(["path"]).collect();
    let unknown = value.as_object().map(|check| input::only(&known, &[], check, "")).unwrap_or_default();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let given = words.iter().filter(|word| value.get(**word).is_some()).count();
    match serde_json::from_value(value.clone()) {
        Ok(check) if given == 1 => Ok(check),
        _ => wrong(format!("must have a path (a JSON pointer) and one of {}", words.join(", "))),
    }
}

fn each<T>(items: &[Value], parse: impl Fn(&Value) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
    let mut read = Vec::new();
    let mut errors = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match parse(item) {
            Ok(item) => read.push(item),
            Err(wrong) => errors.extend(under(&index.to_string(), wrong)),
        }
    }
    if errors.is_empty() { Ok(read) } else { Err(errors) }
}

/// All strings of a schema, one per line: its descriptions are published too.
fn strings(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(members) => members.values().for_each(|member| strings(member, into)),
        _ => {}
    }
}
