//! Checks answers against the API description, more strictly than its readers must: an undescribed member is an error
//! too. Every answer to the tests' client is checked here.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use api::operations::document::{Facts, document};
use api::routes;
use catalog::CATALOG;
use jsonschema::Validator;
use serde_json::{Value, json};
use tools::availability::Lacking;

use super::http::Answer;

/// The description of a stack with published defaults.
pub static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    document(&Facts {
        service_name: "Agora",
        base_url: None,
        network: "eip155:84532",
        version: env!("CARGO_PKG_VERSION"),
        lacking: &Lacking::default(),
        catalog: &CATALOG,
    })
});

/// The same, with every object that lists its members closed to other members.
static CLOSED: LazyLock<Value> = LazyLock::new(|| {
    let mut closed = DESCRIPTION.clone();
    close(&mut closed["components"]["schemas"]);
    close(&mut closed["components"]["responses"]);
    for item in closed["paths"].as_object_mut().expect("paths").values_mut() {
        for operation in item.as_object_mut().expect("a path").values_mut() {
            close(&mut operation["responses"]);
        }
    }
    closed
});

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("properties").is_some_and(Value::is_object) && !members.contains_key("additionalProperties")
            {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// A part of the description, with its reference resolved.
pub fn led<'a>(description: &'a Value, part: &'a Value) -> &'a Value {
    let reference = part["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    reference.map_or(part, |path| description.pointer(path).unwrap_or(&Value::Null))
}

/// Compiled on first use.
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

fn validator(place: String, schema: &Value) -> Arc<Validator> {
    let mut kept = VALIDATORS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let build = || {
        let whole = json!({"allOf": [schema], "components": CLOSED["components"]});
        Arc::new(jsonschema::options().should_validate_formats(true).build(&whole).expect("a schema"))
    };
    kept.entry(place).or_insert_with(build).clone()
}

/// Returns what is wrong with an answer of one of the service's routes.
pub fn judge(method: &str, path: &str, answer: &Answer) -> Result<(), String> {
    let path = path.split('?').next().unwrap_or_default();
    // What the operator's own services answer is described by their deployment.
    let Some(route) = routes::find(method, path).filter(|route| *route != routes::OWN) else { return Ok(()) };
    let described = &CLOSED["paths"][route.path.replace("+}", "}")][method.to_ascii_lowercase()];
    // A deployment that sells less than everything answers so.
    let error = || serde_json::from_str::<Value>(&answer.text).map(|body| body["error"].clone()).unwrap_or_default();
    let is_off = answer.status == 404 && !described["x-payment-info"].is_null() && error() == "not_found";
    if is_off {
        return Ok(());
    }
    let response = led(&CLOSED, &described["responses"][answer.status.to_string()]);
    if response.is_null() {
        return Err(format!("{} does not answer {}", described["operationId"], answer.status));
    }
    let Some(content) = response.get("content") else {
        return if answer.text.is_empty() { Ok(()) } else { Err("it has no content".to_owned()) };
    };
    let content_type = answer.header("content-type").unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default();
    let Some(media) = content.get(content_type).or_else(|| content.get("*/*")) else {
        return Err(format!("{content_type:?} is not among its types"));
    };
    let is_packed = answer.header("content-encoding").is_some();
    if is_packed || content_type != "application/json" || content.get(content_type).is_none() {
        return Ok(());
    }
    let body: Value = serde_json::from_str(&answer.text).map_err(|error| error.to_string())?;
    // On ACP's paths the error code is in `code`. Quotes have another kind of `code` besides their `error`.
    let code = body.get("error").unwrap_or(&body["code"]);
    if let Some(codes) = response["x-error-codes"].as_array()
        && !codes.contains(code)
    {
        return Err(format!("{code} is not among {codes:?}"));
    }
    let place = format!("{method} {} {}", route.path, answer.status);
    let wrong: Vec<String> = validator(place, &media["schema"])
        .iter_errors(&body)
        .map(|error| format!("{error} (at {})", error.instance_path()))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}
