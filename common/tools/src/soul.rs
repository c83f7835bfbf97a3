//! Catalog entries of what souls sell: executions of services, and their own texts. Price, title and terms come from the
//! seller with each call (`gate::Listing`); the rest is here.

use std::time::Duration;

use base::input::{Field, Kind};
use base::money::Usdc;
use serde_json::{Value, json};

use crate::spec::{Price, ToolSpec};

/// Minimum price of a service: 0.01 USDC.
const LEAST: Usdc = Usdc::from_micro(10_000);

/// `POST /v1/soul/{slug}/services/{service}/execute`
pub static EXECUTION: ToolSpec = ToolSpec {
    name: "soul",
    title: "A soul's service",
    summary: "Has a soul do one of its services",
    group: "souls",
    paths: &["/v1/soul/{slug}/services/{service}/execute"],
    price: Price::Fixed(LEAST),
    category: "agent_to_agent",
    deadline: Duration::from_secs(240),
    input: &[Field::required(
        "input",
        Kind::Object { fields: &[], open: true },
        "What the service works on; its input_schema says what it must look like",
    )],
    example: || json!({"input": {"topic": "heat pumps"}}),
    output: || {
        json!({
            "type": "object",
            "properties": {
                "result": {"type": "string"},
                "soul_job_id": {"type": "string"},
            },
            "required": ["result", "soul_job_id"],
        })
    },
    ..ToolSpec::QUEUED
};

/// `POST /v1/soul/{slug}/purchase`
pub static PURCHASE: ToolSpec = ToolSpec {
    name: "soul_purchase",
    title: "A soul's text",
    summary: "The soul.md of a soul, to read and to use",
    group: "souls",
    paths: &["/v1/soul/{slug}/purchase"],
    price: Price::Fixed(LEAST),
    category: "agent_to_agent",
    input: &[Field::optional("quantity", Kind::Integer { min: 1, max: 1 }, "A text is bought once; only 1 is allowed")],
    example: || json!({}),
    output: purchased,
    ..ToolSpec::DIRECT
};

fn purchased() -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "soul": {"type": "object"},
            "soul_md": {"type": "string"},
            "purchase": {"type": "object"},
        },
        "required": ["success", "soul", "soul_md", "purchase"],
    })
}
