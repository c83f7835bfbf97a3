//! Lookups: public records and reference data. Each is one row of a table (docs/LOOKUPS.md), and [`engine`] answers them
//! all. One tool needs no source: [`checks`]. Start with `row` and a family of rows.
//!
//! | file | what it has |
//! |---|---|
//! | `row` | the type of a row, and short constructors to write rows with |
//! | `fill` | input into requests |
//! | `map` | answers into results, and their schema |
//! | `engine` | answers a row: cache, operator's copy, requests, result |
//! | `checks` | identifiers checked offline |
//! | `kept` | the cache |
//! | `import` | registers' files into the operator's own copies (`tools::snapshot`) |
//! | `needs` | what a deployment must have for a row |
//! | the others | the rows, by family |

mod businesses;
pub mod checks;
mod companies;
mod engine;
mod fill;
mod genes;
mod health;
pub mod import;
mod kept;
mod map;
mod market;
mod molecules;
pub mod needs;
mod places;
mod products;
mod records;
pub mod row;
mod vehicles;

#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};
use tools::Runner;
use tools::spec::ToolSpec;

use row::Lookup;

/// All rows, by family.
pub static ROWS: LazyLock<Vec<&'static Lookup>> = LazyLock::new(|| {
    let families: [&'static [Lookup]; 10] = [
        vehicles::ROWS,
        companies::ROWS,
        businesses::ROWS,
        health::ROWS,
        products::ROWS,
        molecules::ROWS,
        genes::ROWS,
        places::ROWS,
        records::ROWS,
        market::ROWS,
    ];
    families.into_iter().flatten().collect()
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static Lookup>> =
    LazyLock::new(|| ROWS.iter().map(|row| (row.spec.name, *row)).collect());

/// The row with this tool name.
pub fn find(name: &str) -> Option<&'static Lookup> {
    BY_NAME.get(name).copied()
}

/// The tools for the catalog.
pub fn specs() -> Vec<&'static ToolSpec> {
    ROWS.iter().map(|row| &row.spec).chain([&checks::SPEC]).collect()
}

/// The runners of [`specs`].
pub fn runners() -> Vec<&'static Runner> {
    static LOOKUPS: LazyLock<Vec<Runner>> =
        LazyLock::new(|| ROWS.iter().map(|row| Runner { spec: &row.spec, run: engine::run }).collect());
    LOOKUPS.iter().chain([&checks::RUNNER]).collect()
}

/// JSON Schema of a row's result.
pub fn output(spec: &ToolSpec) -> Value {
    let Some(row) = find(spec.name) else { return json!({"type": "object"}) };
    let mut schema = map::schema(row.answer);
    let common = [
        ("found", json!({"type": "boolean", "description": "Whether the source has a matching record"})),
        (
            "source",
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "url": {"type": "string"},
                    "licence": {"type": "string"},
                },
                "required": ["name", "url", "licence"],
            }),
        ),
        ("as_of", json!({"type": "string", "description": "When the source was asked, or the day of its snapshot"})),
        ("cached", json!({"type": "boolean", "description": "Whether the answer came from the cache"})),
        ("notice", json!({"type": ["string", "null"]})),
    ];
    for (name, member) in common {
        schema["properties"][name] = member;
        if let Some(required) = schema["required"].as_array_mut() {
            required.push(json!(name));
        }
    }
    schema
}
