//! Placeholder.

use serde_json::{Value, json};

pub fn service_types() -> Value {
    json!({"types": [], "categories": []})
}

pub fn templates() -> Value {
    json!({"templates": []})
}
