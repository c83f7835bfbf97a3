//! Security schemes as constants that refer to secrets.

use serde_json::{Map, Value, json};

use super::super::words::snake;
use super::operation::Operation;
use super::{Selection, Version, items, members};
use crate::settings::is_word;

/// Constants of an entry.
#[derive(Default)]
pub struct Constants {
    pub query: Map<String, Value>,
    pub headers: Map<String, Value>,
    /// Place and name of what secrets fill, so that no parameter does.
    pub names: Vec<(&'static str, String)>,
}

impl Constants {
    pub fn into_value(self) -> Option<Value> {
        let parts = [("query", self.query), ("headers", self.headers)];
        let parts: Map<String, Value> = parts
            .into_iter()
            .filter(|(_, part)| !part.is_empty())
            .map(|(name, part)| (name.to_owned(), Value::Object(part)))
            .collect();
        (!parts.is_empty()).then_some(Value::Object(parts))
    }
}

/// What the first requirement that can be met needs. An operation without security needs nothing.
pub fn constants(
    operation: &Operation<'_>,
    selection: &Selection,
    notes: &mut Vec<String>,
) -> Result<Constants, String> {
    let own = operation.value.get("security").or_else(|| operation.document.root.get("security"));
    let requirements = items(own.unwrap_or(&Value::Null));
    if requirements.is_empty() {
        return Ok(Constants::default());
    }
    let mut why = String::new();
    // One that asks for nothing comes last: with a key, services answer more.
    let (empty, named): (Vec<&Value>, Vec<&Value>) =
        requirements.iter().partition(|requirement| requirement.as_object().is_some_and(Map::is_empty));
    for requirement in named {
        match met(operation, requirement, selection, notes) {
            Ok(constants) => return Ok(constants),
            Err(problem) => why = problem,
        }
    }
    if empty.is_empty() { Err(why) } else { Ok(Constants::default()) }
}

fn met(
    operation: &Operation<'_>,
    requirement: &Value,
    selection: &Selection,
    notes: &mut Vec<String>,
) -> Result<Constants, String> {
    let root = operation.document.root;
    let schemes = match operation.version {
        Version::Swagger2 => &root["securityDefinitions"],
        Version::OpenApi3 => &root["components"]["securitySchemes"],
    };
    let mut constants = Constants::default();
    for (name, _) in members(requirement) {
        let scheme =
            schemes.get(name).ok_or_else(|| format!("needs the security scheme {name}, which is not described"))?;
        let scheme = operation.document.resolved(scheme)?;
        let secret = secret_name(selection, name);
        add(&mut constants, scheme, &secret, notes)
            .map_err(|why| format!("needs the security scheme {name}, {why}"))?;
    }
    Ok(constants)
}

fn add(constants: &mut Constants, scheme: &Value, secret: &str, notes: &mut Vec<String>) -> Result<(), String> {
    let kind = scheme["type"].as_str().unwrap_or_default();
    let http = scheme["scheme"].as_str().unwrap_or_default().to_ascii_lowercase();
    let mut authorization = |value: Value| {
        constants.headers.insert("authorization".to_owned(), value);
        constants.names.push(("header", "authorization".to_owned()));
    };
    match (kind, http.as_str()) {
        ("basic", _) | ("http", "basic") => {
            authorization(json!({"secret": secret, "prefix": "Basic ", "encoding": "base64"}));
            notes.push(format!("store user:password as the secret {secret}"));
        }
        ("http", "bearer") => {
            authorization(json!({"secret": secret, "prefix": "Bearer "}));
            notes.push(format!("store the token as the secret {secret}"));
        }
        ("oauth2" | "openIdConnect", _) => {
            authorization(json!({"secret": secret, "prefix": "Bearer "}));
            notes.push(format!("store an OAuth access token as the secret {secret}; it is not renewed here"));
        }
        ("apiKey", _) => {
            let name = scheme["name"].as_str().ok_or("whose name is missing")?;
            match scheme["in"].as_str() {
                Some("header") => {
                    let name = name.to_ascii_lowercase();
                    constants.names.push(("header", name.clone()));
                    constants.headers.insert(name, json!({"secret": secret}));
                }
                Some("query") => {
                    constants.names.push(("query", name.to_owned()));
                    constants.query.insert(name.to_owned(), json!({"secret": secret}));
                }
                _ => return Err("a key in a cookie, which is not supported".to_owned()),
            }
            notes.push(format!("store the key as the secret {secret}"));
        }
        _ => return Err("of a kind that is not supported".to_owned()),
    }
    Ok(())
}

/// Names of parameters whose values are the operator's, whatever the document's security says.
const SECRETS: [&str; 10] = [
    "token",
    "apikey",
    "xapikey",
    "accesstoken",
    "authtoken",
    "xauthtoken",
    "clientsecret",
    "apisecret",
    "appkey",
    "authorization",
];

/// Takes a parameter that is a secret by its name: a buyer has none. `false` for every other one.
pub fn takes(
    constants: &mut Constants,
    selection: &Selection,
    place: &str,
    name: &str,
    notes: &mut Vec<String>,
) -> bool {
    if !is_secret(name) {
        return false;
    }
    let secret = secret_name(selection, name);
    let value = json!({"secret": secret});
    match place {
        "header" => constants.headers.insert(name.to_ascii_lowercase(), value),
        "query" => constants.query.insert(name.to_owned(), value),
        _ => return false,
    };
    let whole = if name.eq_ignore_ascii_case("authorization") { "whole " } else { "" };
    notes
        .push(format!("store the {whole}{place} parameter {name} as the secret {secret}, or remove it from constants"));
    true
}

/// Whether a parameter's name says that its value is a secret.
pub fn is_secret(name: &str) -> bool {
    let plain: String = name.to_ascii_lowercase().replace(['-', '_'], "");
    SECRETS.contains(&plain.as_str())
}

/// The name of the entry in the secret store: the prefix and the scheme's name.
fn secret_name(selection: &Selection, scheme: &str) -> String {
    let prefix = selection.prefix.as_deref().unwrap_or_default();
    let name = snake(&format!("{prefix} {scheme}"));
    let name = if name.is_empty() { "key".to_owned() } else { name };
    // Double underscores come from odd names.
    if is_word(&name) { name } else { "service_key".to_owned() }
}
