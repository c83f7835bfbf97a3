//! Vehicles: recalls, complaints and crash tests of NHTSA, fuel economy of the Department of Energy.
//! (`vehicle_identification` decodes VINs offline.)

use std::collections::BTreeMap;

use base::input::Field;
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;

use super::row::*;

/// <https://www.nhtsa.gov/nhtsa-datasets-and-apis> (read Nov 2026).
static NHTSA: Source = Source {
    provider: "nhtsa",
    origin: "https://api.nhtsa.gov",
    name: "US National Highway Traffic Safety Administration",
    url: "https://www.nhtsa.gov/nhtsa-datasets-and-apis",
    licence: US_PUBLIC,
    per_second: 2.0,
    failed: &[Failed::Unless("/Message|/message", &["Results returned", "Response returned", "No results"])],
    ..SOURCE
};

/// <https://www.fueleconomy.gov/feg/ws/index.shtml> (read Nov 2026).
static FUEL_ECONOMY: Source = Source {
    provider: "fueleconomy",
    origin: "https://www.fueleconomy.gov",
    name: "US Department of Energy and Environmental Protection Agency",
    url: "https://www.fueleconomy.gov/feg/ws/index.shtml",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

const MAKE: Field = Field::required("make", words(2, 40), "The make, such as Honda");
const MODEL: Field = Field::required("model", words(1, 60), "The model, such as CR-V");

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "vehicle_recalls",
            title: "Vehicle recalls",
            summary: "Safety recalls of a make, model and model year in the US: what is wrong, the risk, the remedy",
            paths: &["/v1/tools/lookup/vehicle-recalls"],
            input: &[MAKE, MODEL, Field::required("model_year", whole(1950, 2100), "The model year"), limit(50)],
            example: || json!({"make": "Honda", "model": "CR-V", "model_year": 2019, "limit": 2}),
            ..LOOKUP
        },
        source: &NHTSA,
        requests: &[Request {
            paths: &["/recalls/recallsByVehicle"],
            query: &[
                Pair::One("make", "{make}"),
                Pair::One("model", "{model}"),
                Pair::One("modelYear", "{model_year}"),
            ],
            // An unknown vehicle gives an empty list with this status.
            also: &[400],
            genuine: &["/results"],
            ..GET
        }],
        found: "/results",
        answer: &[
            integer("total", "/Count|/count"),
            rows(
                "recalls",
                "/results",
                &[
                    text("campaign_number", "/NHTSACampaignNumber"),
                    made("reported_on", "/ReportReceivedDate", As::DateDayFirst),
                    text("manufacturer", "/Manufacturer"),
                    text("component", "/Component"),
                    text("summary", "/Summary"),
                    text("consequence", "/Consequence"),
                    text("remedy", "/Remedy"),
                    flag("park_it", "/parkIt"),
                    flag("park_outside", "/parkOutSide"),
                    flag("over_the_air_update", "/overTheAirUpdate"),
                ],
                25,
            ),
        ],
        notice: Some("Recalls of the model; they do not say whether one vehicle was repaired."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "vehicle_complaints",
            title: "Vehicle complaints",
            summary: "What owners reported to NHTSA about a make, model and model year: counts, components, newest reports",
            paths: &["/v1/tools/lookup/vehicle-complaints"],
            input: &[MAKE, MODEL, Field::required("model_year", whole(1950, 2100), "The model year"), limit(25)],
            example: || json!({"make": "Fiat", "model": "124 Spider", "model_year": 2019, "limit": 1}),
            ..LOOKUP
        },
        source: &NHTSA,
        requests: &[Request {
            paths: &["/complaints/complaintsByVehicle"],
            query: &[
                Pair::One("make", "{make}"),
                Pair::One("model", "{model}"),
                Pair::One("modelYear", "{model_year}"),
            ],
            // An unknown vehicle gives an empty list with this status.
            also: &[400],
            genuine: &["/results"],
            ..GET
        }],
        reshape: count_complaints,
        found: "/results",
        answer: &[
            integer("total", "/count"),
            integer("crashes", "/crashes"),
            integer("fires", "/fires"),
            integer("injuries", "/injuries"),
            integer("deaths", "/deaths"),
            list(
                "components",
                "/by_component",
                &[text("component", "/component"), integer("complaints", "/count")],
                10,
            ),
            rows(
                "complaints",
                "/results",
                &[
                    text("number", "/odiNumber"),
                    made("filed_on", "/dateComplaintFiled", As::DateMonthFirst),
                    made("happened_on", "/dateOfIncident", As::DateMonthFirst),
                    text("components", "/components"),
                    flag("crash", "/crash"),
                    flag("fire", "/fire"),
                    integer("injuries", "/numberOfInjuries"),
                    integer("deaths", "/numberOfDeaths"),
                    text("summary", "/summary"),
                ],
                10,
            ),
        ],
        notice: Some("Reports of owners, not findings: a complaint does not show a defect."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "vehicle_crash_ratings",
            title: "Crash ratings",
            summary: "Stars of the US New Car Assessment Program: overall, frontal, side, rollover, and safety features",
            paths: &["/v1/tools/lookup/vehicle-crash-ratings"],
            input: &[
                Field::required("model_year", whole(1990, 2100), "The model year"),
                MAKE,
                MODEL,
                Field::optional("variant", words(1, 40), "Text of the variant, such as AWD; the first where left out"),
            ],
            example: || json!({"model_year": 2024, "make": "Toyota", "model": "Camry", "variant": "FWD"}),
            ..LOOKUP
        },
        source: &NHTSA,
        requests: &[
            Request {
                paths: &["/SafetyRatings/modelyear/{model_year}/make/{make}/model/{model}"],
                genuine: &["/Results"],
                take: &[Take::Pick("vehicle_id", |answer, input| {
                    pick(answer.pointer("/Results")?, input, "VehicleDescription", "VehicleId")
                })],
                ..GET
            },
            Request { paths: &["/SafetyRatings/VehicleId/{vehicle_id}"], genuine: &["/Results"], ..GET },
        ],
        found: "/1/Results/0",
        answer: &[
            flag("rated", "/1/Results/0/rated|/rated"),
            object(
                "ratings",
                "/1/Results/0",
                &[
                    text("description", "/VehicleDescription"),
                    integer("vehicle_id", "/VehicleId"),
                    integer("overall", "/OverallRating"),
                    integer("frontal", "/OverallFrontCrashRating"),
                    integer("side", "/OverallSideCrashRating"),
                    integer("side_pole", "/SidePoleCrashRating"),
                    integer("rollover", "/RolloverRating"),
                    number("rollover_possibility", "/RolloverPossibility"),
                    text("electronic_stability_control", "/NHTSAElectronicStabilityControl"),
                    text("forward_collision_warning", "/NHTSAForwardCollisionWarning"),
                    text("lane_departure_warning", "/NHTSALaneDepartureWarning"),
                ],
            ),
            list(
                "variants",
                "/0/Results",
                &[text("description", "/VehicleDescription"), integer("vehicle_id", "/VehicleId")],
                50,
            ),
        ],
        reshape: |mut answers, _| {
            if let Some(ratings) = answers.pointer_mut("/1/Results/0").and_then(Value::as_object_mut) {
                let rated = ratings.get("OverallRating").and_then(Value::as_str) != Some("Not Rated");
                ratings.insert("rated".to_owned(), json!(rated));
            }
            answers
        },
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "vehicle_fuel_economy",
            title: "Fuel economy",
            summary: "Federal fuel economy of a US light vehicle since 1984: mpg city, highway and combined, cost, emissions",
            paths: &["/v1/tools/lookup/vehicle-fuel-economy"],
            input: &[
                Field::required("model_year", whole(1984, 2100), "The model year"),
                MAKE,
                MODEL,
                Field::optional("variant", words(1, 60), "Text of the option, such as 4 cyl; the first where left out"),
            ],
            example: || json!({"model_year": 2020, "make": "Toyota", "model": "Camry", "variant": "4 cyl"}),
            ..LOOKUP
        },
        source: &FUEL_ECONOMY,
        requests: &[
            Request {
                paths: &["/ws/rest/vehicle/menu/options"],
                query: &[Pair::One("year", "{model_year}"), Pair::One("make", "{make}"), Pair::One("model", "{model}")],
                genuine: &["/menuItem", "null"],
                take: &[Take::Pick("id", |answer, input| pick(answer.pointer("/menuItem")?, input, "text", "value"))],
                ..GET
            },
            Request { paths: &["/ws/rest/vehicle/{id}"], genuine: &["/id"], ..GET },
        ],
        found: "/1/id",
        answer: &[
            text("make", "/1/make"),
            text("model", "/1/model"),
            integer("year", "/1/year"),
            text("vehicle_class", "/1/VClass"),
            text("drive", "/1/drive"),
            text("transmission", "/1/trany"),
            integer("cylinders", "/1/cylinders"),
            number("displacement_l", "/1/displ"),
            text("fuel", "/1/fuelType"),
            integer("city_mpg", "/1/city08"),
            integer("highway_mpg", "/1/highway08"),
            integer("combined_mpg", "/1/comb08"),
            integer("annual_fuel_cost_usd", "/1/fuelCost08"),
            number("co2_grams_per_mile", "/1/co2TailpipeGpm"),
            integer("range_miles", "/1/range"),
            list("options", "/0/menuItem", &[text("option", "/text"), text("id", "/value")], 50),
        ],
        keep: DAYS_7,
        ..ROW
    },
];

/// The id of the first item whose text has the wanted variant. In JSON made from XML, a single item is not in a list.
fn pick(items: &Value, input: &Map<String, Value>, text: &str, id: &str) -> Option<String> {
    let wanted = input.get("variant").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let items = items.as_array().map_or(std::slice::from_ref(items), Vec::as_slice);
    let fits = |item: &&Value| item[text].as_str().is_some_and(|text| text.to_lowercase().contains(wanted.trim()));
    let id = &items.iter().find(fits)?[id];
    id.as_str().map(str::to_owned).or_else(|| id.as_u64().map(|id| id.to_string()))
}

fn count_complaints(mut answer: Value, _: &Map<String, Value>) -> Value {
    let complaints = answer["results"].as_array().cloned().unwrap_or_default();
    let flagged = |name: &str| complaints.iter().filter(|complaint| complaint[name] == true).count();
    let sum = |name: &str| {
        complaints.iter().filter_map(|complaint| complaint[name].as_u64()).fold(0_u64, u64::saturating_add)
    };
    let mut by_component: BTreeMap<String, u64> = BTreeMap::new();
    for complaint in &complaints {
        for component in complaint["components"].as_str().unwrap_or_default().split(',') {
            *by_component.entry(component.trim().to_owned()).or_default() += 1;
        }
    }
    by_component.remove("");
    let mut by_component: Vec<_> = by_component.into_iter().collect();
    by_component.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let components: Vec<Value> =
        by_component.into_iter().map(|(component, count)| json!({"component": component, "count": count})).collect();
    let counts = json!({
        "crashes": flagged("crash"), "fires": flagged("fire"), "injuries": sum("numberOfInjuries"),
        "deaths": sum("numberOfDeaths"), "by_component": components, "count": complaints.len(),
    });
    // Newest first: dates are MM/DD/YYYY.
    let mut newest = complaints;
    newest.sort_by_cached_key(|complaint| {
        let filed = complaint["dateComplaintFiled"].as_str().unwrap_or_default();
        let parts: Vec<&str> = filed.splitn(3, '/').collect();
        std::cmp::Reverse(format!("{}{}", parts.get(2).unwrap_or(&""), filed))
    });
    answer = json!({"results": newest});
    if let (Value::Object(answer), Value::Object(counts)) = (&mut answer, counts) {
        answer.extend(counts);
    }
    answer
}
