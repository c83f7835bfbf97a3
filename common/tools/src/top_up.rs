//! Buying credits with USDC from the wallet. Sold like a tool (quote, payment, job, receipt), so the same code makes sure
//! that a top-up is paid once, can be replayed after a lost answer, and survives a crash.

use std::sync::Arc;

use base::input::{Field, Kind};
use base::money::Usdc;
use serde_json::{Map, Value, json};

use super::{Output, Runner, Running, Source, Task, ToolError, Toolbox};
use crate::spec::{Price, ToolSpec};

/// Minimum and maximum of one top-up: 0.01 and 1,000 USDC.
pub const LEAST: Usdc = Usdc::from_micro(10_000);
pub const MOST: Usdc = Usdc::from_micro(1_000_000_000);

/// Body fields of both ways to buy credits.
pub static AMOUNT: &[Field] =
    &[Field::required("amount", Kind::Amount { min: LEAST, max: MOST }, "USDC to turn into credits")];

pub static SPEC: ToolSpec = ToolSpec {
    name: "credits_top_up",
    title: "Credits",
    summary: "Prepaid credits, one for each USDC paid",
    group: "credits",
    paths: &["/v1/credits/top-up"],
    price: Price::Of { input: |input, _| amount(input), usual: LEAST },
    sells_credits: true,
    category: "infrastructure",
    input: AMOUNT,
    example: || json!({"amount": "5.00"}),
    output: || json!({"type": "object", "properties": {"topped_up": {"type": "string"}}}),
    ..ToolSpec::DIRECT
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// The amount of a validated body; zero if it has none.
pub fn amount(input: &Map<String, Value>) -> Usdc {
    input.get("amount").and_then(Value::as_str).and_then(|text| Usdc::parse(text).ok()).unwrap_or_default()
}

fn run(_: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let bought = amount(&task.input);
        if bought == Usdc::ZERO {
            return Err(ToolError::internal("the stored input has no amount"));
        }
        let result = json!({"topped_up": bought.to_string()});
        Ok(Output { credited: Some(bought), ..Output::new(result, Source::embedded("ledger")) })
    })
}
