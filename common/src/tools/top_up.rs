//! Buying credits with USDC from the wallet. It is sold like a tool (quote, payment, job, receipt), so that a top-up is
//! paid once, answered again when its answer is lost, and survives a crash, by the same code.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Mode, Output, Runner, Running, ToolError, Toolbox};
use crate::catalog::input::{Field, Kind};
use crate::catalog::{Answer, Price, ToolSpec};
use crate::money::Usdc;

/// Least and most of one top-up (contract §21).
pub const LEAST: Usdc = Usdc::from_micro(10_000);
pub const MOST: Usdc = Usdc::from_micro(1_000_000_000);

/// Members of the body of both ways to buy credits.
pub static AMOUNT: &[Field] =
    &[Field::required("amount", Kind::Amount { min: LEAST, max: MOST }, "USDC to turn into credits")];

pub static SPEC: ToolSpec = ToolSpec {
    name: "credits_top_up",
    title: "Credits",
    summary: "Prepaid credits, one for each USDC paid",
    group: "credits",
    paths: &["/v1/credits/top-up"],
    price: Price::Of { input: amount, usual: LEAST },
    answer: Answer::Direct,
    sells_credits: true,
    category: "infrastructure",
    deadline: Duration::from_secs(5),
    input: AMOUNT,
    check: |_, _| Vec::new(),
    example: || json!({"amount": "5.00"}),
    output: || json!({"type": "object", "properties": {"topped_up": {"type": "string"}}}),
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// The amount of a validated body; nothing if it has none.
pub fn amount(input: &Map<String, Value>) -> Usdc {
    input.get("amount").and_then(Value::as_str).and_then(|text| Usdc::parse(text).ok()).unwrap_or_default()
}

fn run(_: Arc<Toolbox>, input: Map<String, Value>) -> Running {
    Box::pin(async move {
        let bought = amount(&input);
        if bought == Usdc::ZERO {
            return Err(ToolError::internal("the stored input has no amount"));
        }
        Ok(Output {
            result: json!({"topped_up": bought.to_string()}),
            provider: "ledger",
            provider_request_id: None,
            mode: Mode::Embedded,
            credited: Some(bought),
            tools_cost: Usdc::ZERO,
        })
    })
}
