//! Businesses and buildings in the open data of cities and states, all on Socrata (<https://dev.socrata.com/docs/queries/>,
//! read Nov 2026; columns as listed on each data set's page).

use base::input::{Field, Kind};
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;

use super::row::*;

/// Data sets 43nn-pn8j (inspections) and ipu4-2q9a (permits).
static NEW_YORK_CITY: Source = Source {
    provider: "socrata_nyc",
    origin: "https://data.cityofnewyork.us",
    name: "NYC Open Data",
    url: "https://opendata.cityofnewyork.us/",
    licence: "NYC Open Data, no restrictions on use",
    ..SODA
};

/// Data sets 4ijn-s7e5 (food inspections), r5kz-chrr (licences) and ydr8-5enu (permits).
static CHICAGO: Source = Source {
    provider: "socrata_chicago",
    origin: "https://data.cityofchicago.org",
    name: "Chicago Data Portal",
    url: "https://data.cityofchicago.org/",
    licence: "City of Chicago, terms of use of the data portal",
    ..SODA
};

/// Data set n9v6-gdp6.
static NEW_YORK_STATE: Source = Source {
    provider: "socrata_ny",
    origin: "https://data.ny.gov",
    name: "New York State Department of State, active corporations",
    url: "https://data.ny.gov/Economic-Development/Active-Corporations-Beginning-1800/n9v6-gdp6",
    licence: "NY Open Data, terms of use",
    ..SODA
};

const ZIP_FIELD: Field = Field::optional("zipcode", formed(&ZIP), "Only in this ZIP code");

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "business_health_inspections",
            title: "Health inspections (New York City)",
            summary: "Food businesses of New York City and what health inspectors cited, newest first: scores, grades, violations",
            paths: &["/v1/tools/lookup/business-health-inspections"],
            input: &[
                Field::optional("establishment_id", formed(&NUMBER_12), "The city's number of the business (CAMIS)"),
                Field::optional("name", words(2, 100), "A part of the trade name"),
                ZIP_FIELD,
                limit(50),
            ],
            check: |input, _| any_of(input, &["establishment_id", "name"]),
            example: || json!({"establishment_id": "40732665", "limit": 3}),
            ..LOOKUP
        },
        source: &NEW_YORK_CITY,
        requests: &[Request {
            paths: &["/resource/43nn-pn8j.json"],
            query: &[
                Pair::Joined(
                    "$where",
                    " AND ",
                    &["camis={establishment_id|soql}", "upper(dba) like {name|soql_part}", "zipcode={zipcode|soql}"],
                ),
                Pair::One("$order", "inspection_date DESC"),
                Pair::One("$limit", "{limit=20}"),
            ],
            ..SODA_GET
        }],
        found: "",
        answer: &[rows(
            "violations",
            "",
            &[
                text("establishment_id", "/camis"),
                text("name", "/dba"),
                text("borough", "/boro"),
                text("street", "/street"),
                text("zipcode", "/zipcode"),
                text("cuisine", "/cuisine_description"),
                date("inspected_on", "/inspection_date"),
                text("inspection", "/inspection_type"),
                text("action", "/action"),
                text("code", "/violation_code"),
                text("violation", "/violation_description"),
                text("critical", "/critical_flag"),
                integer("score", "/score"),
                text("grade", "/grade"),
                date("graded_on", "/grade_date"),
            ],
            20,
        )],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "business_food_inspections",
            title: "Food inspections (Chicago)",
            summary: "Food inspections of a Chicago business by name or licence, newest first: result, risk, violations",
            paths: &["/v1/tools/lookup/business-food-inspections"],
            input: &[
                Field::optional("license", formed(&NUMBER_12), "The city's licence number"),
                Field::optional("name", words(2, 100), "A part of the trade name"),
                ZIP_FIELD,
                limit(25),
            ],
            check: |input, _| any_of(input, &["license", "name"]),
            example: || json!({"name": "Lou Malnati", "limit": 2}),
            ..LOOKUP
        },
        source: &CHICAGO,
        requests: &[Request {
            paths: &["/resource/4ijn-s7e5.json"],
            query: &[
                Pair::Joined(
                    "$where",
                    " AND ",
                    &["license_={license|soql}", "upper(dba_name) like {name|soql_part}", "zip={zipcode|soql}"],
                ),
                Pair::One("$order", "inspection_date DESC"),
                Pair::One("$limit", "{limit=10}"),
            ],
            ..SODA_GET
        }],
        found: "",
        answer: &[rows(
            "inspections",
            "",
            &[
                text("inspection_id", "/inspection_id"),
                text("name", "/dba_name"),
                text("license", "/license_"),
                text("facility", "/facility_type"),
                text("risk", "/risk"),
                text("address", "/address"),
                text("zipcode", "/zip"),
                date("inspected_on", "/inspection_date"),
                text("inspection", "/inspection_type"),
                text("result", "/results"),
                text("violations", "/violations"),
            ],
            10,
        )],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "business_license",
            title: "Business licence (Chicago)",
            summary: "Business licences of Chicago by number or name: kind, activity, status, dates",
            paths: &["/v1/tools/lookup/business-license"],
            input: &[
                Field::optional("license_number", formed(&NUMBER_12), "The licence's number"),
                Field::optional("name", words(2, 100), "A part of the legal or trade name"),
                ZIP_FIELD,
                limit(25),
            ],
            check: |input, _| any_of(input, &["license_number", "name"]),
            example: || json!({"name": "Garrett Popcorn", "limit": 1}),
            ..LOOKUP
        },
        source: &CHICAGO,
        requests: &[Request {
            paths: &["/resource/r5kz-chrr.json"],
            query: &[
                Pair::Joined(
                    "$where",
                    " AND ",
                    &[
                        "license_number={license_number|soql}",
                        "(upper(legal_name) like {name|soql_part} OR upper(doing_business_as_name) like {name|soql_part})",
                        "zip_code={zipcode|soql}",
                    ],
                ),
                Pair::One("$order", "license_start_date DESC"),
                Pair::One("$limit", "{limit=10}"),
            ],
            ..SODA_GET
        }],
        found: "",
        answer: &[rows(
            "licenses",
            "",
            &[
                text("license_number", "/license_number"),
                text("legal_name", "/legal_name"),
                text("trade_name", "/doing_business_as_name"),
                text("kind", "/license_description"),
                text("activity", "/business_activity"),
                text("status", "/license_status"),
                text("city", "/city"),
                text("state", "/state"),
                text("zipcode", "/zip_code"),
                date("starts_on", "/license_start_date"),
                date("expires_on", "/expiration_date"),
                date("issued_on", "/date_issued"),
            ],
            10,
        )],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_state_registration",
            title: "State registration (New York)",
            summary: "Active corporations on file with New York State, by name or DOS number: kind, jurisdiction, county, date",
            paths: &["/v1/tools/lookup/company-state-registration"],
            input: &[
                Field::required("state", Kind::Choice(&["NY"]), "Whose register"),
                Field::optional("dos_id", formed(&NUMBER_12), "The Department of State's number"),
                Field::optional("name", words(3, 100), "A part of the name"),
                limit(25),
            ],
            check: |input, _| one_of(input, &["dos_id", "name"]),
            example: || json!({"state": "NY", "name": "Steinway Musical", "limit": 2}),
            ..LOOKUP
        },
        source: &NEW_YORK_STATE,
        requests: &[Request {
            paths: &["/resource/n9v6-gdp6.json"],
            query: &[
                Pair::Joined(
                    "$where",
                    " AND ",
                    &["dos_id={dos_id|soql}", "upper(current_entity_name) like {name|soql_part}"],
                ),
                Pair::One("$limit", "{limit=10}"),
            ],
            ..SODA_GET
        }],
        found: "",
        answer: &[rows(
            "companies",
            "",
            &[
                text("dos_id", "/dos_id"),
                text("name", "/current_entity_name"),
                date("filed_on", "/initial_dos_filing_date"),
                text("county", "/county"),
                text("jurisdiction", "/jurisdiction"),
                text("kind", "/entity_type"),
            ],
            10,
        )],
        notice: Some(
            "Only active corporations are in the register: an empty list does not say that there never was one.",
        ),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_permits",
            title: "Building permits",
            summary: "Building permits at a street address in Chicago or (until DOB NOW) New York City, newest first",
            paths: &["/v1/tools/lookup/place-permits"],
            input: &[
                Field::required(
                    "street_address",
                    words(3, 120),
                    "Number and street as the city writes them, without unit",
                ),
                Field::required("city", Kind::Choice(&["Chicago", "New York City"]), "Which city"),
                Field::required("state", STATE, "IL or NY"),
                Field::optional(
                    "borough",
                    Kind::Choice(&["MANHATTAN", "BRONX", "BROOKLYN", "QUEENS", "STATEN ISLAND"]),
                    "Needed in New York City",
                ),
                limit(100),
                Field::optional("offset", whole(0, 10_000), "How many to skip"),
            ],
            check: |input, _| {
                let is_chicago = input.get("city").and_then(Value::as_str) == Some("Chicago");
                let wrong = |path, message| vec![base::input::FieldError::new(path, message)];
                if input.get("state").and_then(Value::as_str) != Some(if is_chicago { "IL" } else { "NY" }) {
                    return wrong("state", "must be IL for Chicago and NY for New York City");
                }
                if !is_chicago && !input.contains_key("borough") {
                    return wrong("borough", "is needed in New York City");
                }
                Vec::new()
            },
            example: || json!({"street_address": "7529 N CLARK ST", "city": "Chicago", "state": "IL", "limit": 5}),
            ..LOOKUP
        },
        source: &CHICAGO,
        // A request is skipped if its city's parts of the address are missing.
        requests: &[
            Request {
                paths: &[
                    "/resource/ydr8-5enu.json?$where={chicago}&$order=issue_date%20DESC&$limit={limit=50}&$offset={offset=0}",
                ],
                ..SODA_GET
            },
            Request {
                paths: &["/resource/ipu4-2q9a.json?$where={new_york}&$limit={limit=50}&$offset={offset=0}"],
                source: Some(&NEW_YORK_CITY),
                ..SODA_GET
            },
        ],
        derive: permit_query,
        reshape: |answers, _| {
            let rows = answers.as_array().into_iter().flatten().find(|answer| answer.is_array());
            rows.cloned().unwrap_or_default()
        },
        found: "",
        answer: &[rows(
            "permits",
            "",
            &[
                text("permit", "/permit_|/permit_si_no|/job__"),
                text("kind", "/permit_type"),
                text("status", "/permit_status"),
                made("issued_on", "/issue_date|/issuance_date", As::DateMonthFirst),
                made("expires_on", "/expiration_date", As::DateMonthFirst),
                text("description", "/work_description|/job_type"),
                number("declared_cost_usd", "/reported_cost"),
                text("contractor", "/permittee_s_business_name"),
            ],
            50,
        )],
        notice: Some("No match does not prove that no work was done."),
        ..ROW
    },
];

/// Splits the address into the city's columns: number, direction and name.
fn permit_query(input: &mut Map<String, Value>, _: base::clock::Timestamp) {
    let address = input.get("street_address").and_then(Value::as_str).unwrap_or_default().to_uppercase();
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut words = address.split_whitespace();
    let number = words.next().unwrap_or_default().to_owned();
    let rest: Vec<&str> = words.collect();
    if input.get("city").and_then(Value::as_str) == Some("Chicago") {
        let (direction, street) = match rest.split_first() {
            Some((direction, street)) if ["N", "S", "E", "W"].contains(direction) => {
                (Some((*direction).to_owned()), street.to_vec())
            }
            _ => (None, rest.clone()),
        };
        let mut query =
            format!("street_number={} AND upper(street_name)={}", quoted(&number), quoted(&street.join(" ")));
        if let Some(direction) = direction {
            query.push_str(&format!(" AND street_direction={}", quoted(&direction)));
        }
        input.insert("chicago".to_owned(), json!(query));
    } else {
        let borough = input.get("borough").and_then(Value::as_str).unwrap_or_default();
        let query = format!(
            "borough={} AND house__={} AND street_name={}",
            quoted(borough),
            quoted(&number),
            quoted(&rest.join(" "))
        );
        input.insert("new_york".to_owned(), json!(query));
    }
}
