//! Decodes vehicle identification numbers offline, from the public US vPIC data.

use std::sync::Arc;

use base::input::{Field, Format, Kind};
use base::money::Usdc;
use serde_json::{Value, json};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox};
use vin::Vin;

pub static SPEC: ToolSpec = ToolSpec {
    name: "vin_decode",
    title: "Vehicle identification",
    summary: "Decodes a 17-character vehicle identification number: make, model, year, body, engine, plant, check digit",
    group: "knowledge",
    paths: &["/v1/tools/lookup/vehicle-identification", "/v1/tools/lookup/vin"],
    price: Price::Fixed(Usdc::from_micro(5_000)),
    input: &[
        Field::required(
            "vin",
            Kind::Text { min: 17, max: 17, format: Some(&VIN) },
            "The number: 17 digits and letters without I, O and Q",
        ),
        Field::optional("model_year", Kind::Integer { min: 1981, max: 2100 }, "The model year, where it is known"),
    ],
    example: || json!({"vin": "1HGCM82633A004352"}),
    output,
    ..ToolSpec::DIRECT
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

static VIN: Format = Format {
    name: None,
    pattern: Some("^[0-9A-HJ-NPR-Za-hj-npr-z]{17}$"),
    matches: |text| Vin::parse(text).is_ok(),
    message: "must be digits and letters without I, O and Q",
};

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let vin = Vin::parse(task.text("vin")).ok();
        let vin = vin.ok_or_else(|| ToolError::internal("the stored input is not a VIN"))?;
        let model_year = task.number("model_year").and_then(|year| u16::try_from(year).ok());
        let decoded = vin::decode(&vin, model_year, toolbox.clock.now().year());
        let result = serde_json::to_value(&decoded).map_err(|error| ToolError::internal(error.to_string()))?;
        Ok(Output::new(result, Source::embedded("vpic")))
    })
}

fn output() -> Value {
    const TEXTS: [&str; 15] = [
        "make",
        "model",
        "trim",
        "series",
        "body_class",
        "vehicle_type",
        "drive_type",
        "fuel_type",
        "transmission",
        "gross_vehicle_weight_rating",
        "manufacturer",
        "plant_city",
        "plant_state",
        "plant_country",
        "suggested_vin",
    ];
    const NUMBERS: [&str; 5] =
        ["model_year", "doors", "engine_cylinders", "engine_displacement_l", "engine_horsepower"];
    let mut properties = json!({
        "vin": {"type": "string"},
        "decoded": {"type": "boolean", "description": "Whether make and model year are known"},
        "check_digit_valid": {"type": "boolean"},
        "notes": {"type": "array", "items": {"type": "string"}, "description": "What was wrong with the number"},
    });
    for name in TEXTS {
        properties[name] = json!({"type": ["string", "null"]});
    }
    for name in NUMBERS {
        properties[name] = json!({"type": ["number", "null"]});
    }
    let required: Vec<String> = properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

#[cfg(test)]
mod tests {
    use base::clock::{Clock, Timestamp};
    use base::input::validate;
    use platform::net::FetchPolicy;
    use tools::testing;

    use super::*;

    #[test]
    fn invalid_vins_are_refused_before_a_price_is_quoted() {
        for vin in ["1HGCM82633A00435", "1HGCM82633A0043521", "1HGCM82633A00435O", "", "1HGCM82633A00435\u{e9}"] {
            let body = json!({"vin": vin});
            let errors = validate(SPEC.input, body.as_object().unwrap()).unwrap_err();
            assert_eq!(errors[0].path, "vin", "{vin}");
        }
        for year in [json!(1980), json!(2101), json!("2003"), json!(2003.5)] {
            let body = json!({"vin": "1HGCM82633A004352", "model_year": year});
            assert_eq!(validate(SPEC.input, body.as_object().unwrap()).unwrap_err()[0].path, "model_year");
        }
    }

    #[tokio::test]
    async fn a_decoded_vin_has_every_member_of_the_schema() {
        let clock = Clock::pinned(Timestamp::from_secs(1_795_000_000));
        let toolbox = testing::toolbox_at(&[], clock, FetchPolicy::default());
        let output = testing::run(&toolbox, &RUNNER, json!({"vin": "1hgcm82633a004352"})).await.unwrap();
        assert_eq!(output.result["make"], "Honda");
        assert_eq!(output.result["model_year"], 2003);
        for name in super::output()["required"].as_array().unwrap() {
            assert!(output.result.get(name.as_str().unwrap()).is_some(), "{name}");
        }
    }
}
