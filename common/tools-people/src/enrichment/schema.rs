//! JSON Schemas of people and companies, with no additional properties.

use serde_json::{Map, Value, json};

const TEXT: [&str; 2] = ["string", "null"];

fn object(properties: Value) -> Value {
    let names: Vec<String> = properties.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn nullable(mut schema: Value) -> Value {
    schema["type"] = json!([schema["type"], "null"]);
    schema
}

fn with_texts(mut properties: Value, names: &[&str]) -> Value {
    for name in names {
        properties[*name] = json!({"type": TEXT});
    }
    properties
}

pub fn phones() -> Value {
    let country =
        json!({"type": TEXT, "description": "ISO 3166-1 alpha-2, if the number is in international form and shows it"});
    let phone = json!({"fullphone": {"type": "string"}, "type": {"type": TEXT}, "country": country});
    json!({"type": "array", "items": object(phone)})
}

pub fn person() -> Value {
    let named = || object(json!({"name": {"type": TEXT}}));
    let experience = json!({
        "company": object(json!({"name": {"type": TEXT}, "website": {"type": TEXT}})),
        "title": named(),
        "start_date": {"type": TEXT},
        "end_date": {"type": TEXT},
        "is_primary": {"type": "boolean"},
    });
    let education = json!({
        "school": named(),
        "degrees": texts(),
        "majors": texts(),
        "start_date": {"type": TEXT},
        "end_date": {"type": TEXT},
    });
    let rest = json!({
        "skills": texts(),
        "experience": {"type": "array", "items": object(experience)},
        "education": {"type": "array", "items": object(education)},
        "fullphone": phones(),
        "altemails": texts(),
        "phones_pending": {"type": "boolean", "description": "Always false: phones are never filled in later"},
    });
    let names = [
        "full_name",
        "first_name",
        "last_name",
        "title",
        "company",
        "company_domain",
        "linkedin_url",
        "location",
        "email",
        "phone",
        "summary",
        "best_work_email",
        "best_personal_email",
    ];
    object(with_texts(rest, &names))
}

pub fn company() -> Value {
    let rest = json!({
        "employee_count": {"type": ["integer", "null"]},
        "founded": {"type": ["integer", "null"]},
        "tags": texts(),
    });
    let names = [
        "name",
        "domain",
        "industry",
        "location",
        "size",
        "funding_stage",
        "description",
        "linkedin_url",
        "website",
        "ticker",
        "phone",
    ];
    object(with_texts(rest, &names))
}

/// A company, with values of its own site, DNS and RDAP.
pub fn company_profile() -> Value {
    let registration = with_texts(
        json!({"status": texts(), "name_servers": texts()}),
        &["domain", "registrar", "registered_at", "changed_at", "expires_at"],
    );
    let mut schema = company();
    let more = json!({
        "legal_name": {"type": TEXT},
        "address": {"type": TEXT},
        "emails": texts(),
        "phones": texts(),
        "social_profiles": {"type": "object", "additionalProperties": {"type": "string"}},
        "mail_provider": {"type": TEXT, "description": "Its mail provider, by the MX records"},
        "mail_hosts": texts(),
        "services": {"type": "array", "items": {"type": "string"}, "description": "By the TXT records"},
        "dmarc_policy": {"type": TEXT},
        "registration": nullable(object(registration)),
    });
    for (name, kind) in more.as_object().into_iter().flatten() {
        schema["properties"][name] = kind.clone();
        if let Some(required) = schema["required"].as_array_mut() {
            required.push(json!(name));
        }
    }
    schema
}

pub fn sources() -> Value {
    let origin = json!({
        "field": {"type": "string"},
        "source": {"type": "string", "description": "input, site, index, dns, rdap, guess, or a vendor's name"},
        "url": {"type": TEXT},
    });
    json!({"type": "array", "items": object(origin), "description": "Where each value is from"})
}

pub fn guesses() -> Value {
    let guess = json!({
        "field": {"type": "string"},
        "value": {"type": "string"},
        "basis": {"type": "string", "description": "The rule it was made by"},
        "status": {"type": "string", "enum": ["domain_takes_mail", "domain_takes_no_mail", "unverified"]},
    });
    json!({"type": "array", "items": object(guess), "description": "Values made by a rule, not found"})
}

/// A completed result, with its time.
pub fn result(mut properties: Value) -> Value {
    properties["status"] = json!({"type": "string", "enum": ["completed"]});
    properties["completed_at"] = json!({"type": "string", "format": "date-time"});
    object(properties)
}

pub fn or_null(schema: Value) -> Value {
    nullable(schema)
}

/// The search's filters, as given.
pub fn filters() -> Value {
    json!({"type": "object", "additionalProperties": {"anyOf": [texts(), {"type": ["string", "integer"]}]}})
}

pub fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

pub fn open_object(properties: Value) -> Value {
    object(properties)
}
