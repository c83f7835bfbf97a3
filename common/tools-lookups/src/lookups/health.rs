//! Health: providers, hospitals and trials.

use base::input::{Field, Kind};
use serde_json::{Value, json};
use tools::snapshot;
use tools::spec::ToolSpec;

use super::row::*;

/// <https://npiregistry.cms.hhs.gov/api-page> (version 2.1, read Nov 2026).
static NPPES: Source = Source {
    provider: "npi",
    origin: "https://npiregistry.cms.hhs.gov",
    name: "US Centers for Medicare & Medicaid Services, NPI registry",
    url: "https://npiregistry.cms.hhs.gov/",
    licence: US_PUBLIC,
    per_second: 2.0,
    failed: &[Failed::At("/Errors")],
    ..SOURCE
};

/// <https://data.cms.gov/provider-data/docs> (data set xubh-q36u, read Nov 2026).
static CARE_COMPARE: Source = Source {
    provider: "cms",
    origin: "https://data.cms.gov",
    name: "US Centers for Medicare & Medicaid Services, hospital general information",
    url: "https://data.cms.gov/provider-data/dataset/xubh-q36u",
    licence: US_PUBLIC,
    per_second: 2.0,
    failed: &[Failed::At("/message")],
    ..SOURCE
};

/// <https://clinicaltrials.gov/data-api/api> (version 2, read Nov 2026).
static TRIALS: Source = Source {
    provider: "clinicaltrials",
    origin: "https://clinicaltrials.gov",
    name: "US National Library of Medicine, ClinicalTrials.gov",
    url: "https://clinicaltrials.gov/",
    licence: "US government work; sponsors' texts as submitted",
    per_second: 0.8,
    ..SOURCE
};

static COPY_OF_PERSONS: Snapshot =
    Snapshot { name: "npi", turn: Turn::Fallback, find: |copy, input| snapshot::find_provider(copy, input, "NPI-1") };
static COPY_OF_ORGANIZATIONS: Snapshot =
    Snapshot { name: "npi", turn: Turn::Fallback, find: |copy, input| snapshot::find_provider(copy, input, "NPI-2") };

const NPI_FIELD: Field = Field::optional("npi", formed(&NPI), "The 10-digit number");
const REGISTRATION: &str = "A registration is neither a check of a licence nor proof of practice.";

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "person_health_provider",
            title: "Health provider registration",
            summary: "A US health care practitioner by NPI, or by last name and state: credential, status, specialties",
            paths: &["/v1/tools/lookup/person-health-provider"],
            input: &[
                NPI_FIELD,
                Field::optional("last_name", words(1, 100), "With state"),
                Field::optional("state", STATE, "With last_name"),
                Field::optional("first_name", words(1, 100), "Narrows a search by name"),
                Field::optional("city", words(1, 100), "Narrows a search by name"),
                limit(20),
            ],
            check: |input, _| {
                let mut errors = one_of(input, &["npi", "last_name"]);
                if input.contains_key("last_name") {
                    errors.extend(any_of(input, &["state"]));
                }
                errors
            },
            example: || json!({"npi": "1245319599"}),
            ..LOOKUP
        },
        source: &NPPES,
        requests: &[Request {
            paths: &["/api/"],
            query: &[
                Pair::One("version", "2.1"),
                Pair::One("enumeration_type", "NPI-1"),
                Pair::One("number", "{npi}"),
                Pair::One("last_name", "{last_name}"),
                Pair::One("first_name", "{first_name}"),
                Pair::One("city", "{city}"),
                Pair::One("state", "{state}"),
                Pair::One("limit", "{limit=5}"),
            ],
            genuine: &["/results"],
            ..GET
        }],
        reshape: |answer, _| of_kind(answer, "NPI-1"),
        snapshot: Some(&COPY_OF_PERSONS),
        found: "/results",
        answer: &[
            integer("total", "/result_count"),
            rows(
                "providers",
                "/results",
                &[
                    text("npi", "/number"),
                    text("first_name", "/basic/first_name"),
                    text("last_name", "/basic/last_name"),
                    text("credential", "/basic/credential"),
                    text("status", "/basic/status").about("A is active"),
                    list("specialties", "/taxonomies", SPECIALTY, 15),
                    list("practice", "/practice", PLACE, 2),
                    date("registered_on", "/basic/enumeration_date"),
                    date("updated_on", "/basic/last_updated"),
                ],
                5,
            ),
        ],
        notice: Some(REGISTRATION),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_health_provider",
            title: "Health provider registration (organization)",
            summary: "US clinics, hospitals, pharmacies and suppliers by NPI, or by name and state: status, specialties, address",
            paths: &["/v1/tools/lookup/company-health-provider"],
            input: &[
                NPI_FIELD,
                Field::optional("organization_name", words(2, 100), "How the name begins; with state"),
                Field::optional("state", STATE, "With organization_name"),
                Field::optional("city", words(2, 100), "Narrows a search by name"),
                limit(20),
            ],
            check: |input, _| {
                let mut errors = one_of(input, &["npi", "organization_name"]);
                if input.contains_key("organization_name") {
                    errors.extend(any_of(input, &["state"]));
                }
                errors
            },
            example: || json!({"npi": "1881018208"}),
            ..LOOKUP
        },
        source: &NPPES,
        requests: &[Request {
            paths: &["/api/"],
            query: &[
                Pair::One("version", "2.1"),
                Pair::One("enumeration_type", "NPI-2"),
                Pair::One("number", "{npi}"),
                Pair::One("organization_name", "{prefix}"),
                Pair::One("city", "{city}"),
                Pair::One("state", "{state}"),
                Pair::One("limit", "{limit=5}"),
            ],
            genuine: &["/results"],
            ..GET
        }],
        derive: |input, _| {
            let name = input.get("organization_name").and_then(Value::as_str);
            let prefix = name.map(|name| json!(format!("{}*", name.trim().trim_end_matches('*'))));
            input.extend(prefix.map(|prefix| ("prefix".to_owned(), prefix)));
        },
        reshape: |answer, _| of_kind(answer, "NPI-2"),
        snapshot: Some(&COPY_OF_ORGANIZATIONS),
        found: "/results",
        answer: &[
            integer("total", "/result_count"),
            rows(
                "providers",
                "/results",
                &[
                    text("npi", "/number"),
                    text("name", "/basic/organization_name"),
                    text("status", "/basic/status").about("A is active"),
                    flag("subpart", "/basic/organizational_subpart"),
                    list("specialties", "/taxonomies", SPECIALTY, 15),
                    list(
                        "addresses",
                        "/addresses",
                        &[
                            text("purpose", "/address_purpose"),
                            text("street", "/address_1"),
                            text("city", "/city"),
                            text("state", "/state"),
                            text("postal_code", "/postal_code"),
                            text("telephone", "/telephone_number"),
                        ],
                        2,
                    ),
                    text("authorized_official", "/basic/authorized_official_last_name"),
                    text("authorized_official_title", "/basic/authorized_official_title_or_position"),
                    date("registered_on", "/basic/enumeration_date"),
                    date("updated_on", "/basic/last_updated"),
                ],
                5,
            ),
        ],
        notice: Some(REGISTRATION),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_hospitals",
            title: "Hospitals",
            summary: "Hospitals registered with Medicare in a US ZIP code: type, ownership, emergency services, rating",
            paths: &["/v1/tools/lookup/place-hospitals"],
            input: &[Field::required("zip_code", formed(&ZIP), "The ZIP code"), limit(25)],
            example: || json!({"zip_code": "45220", "limit": 2}),
            ..LOOKUP
        },
        source: &CARE_COMPARE,
        requests: &[Request {
            paths: &["/provider-data/api/1/datastore/query/xubh-q36u/0"],
            query: &[
                Pair::One("conditions[0][property]", "zip_code"),
                Pair::One("conditions[0][value]", "{zip_code}"),
                Pair::One("conditions[0][operator]", "="),
                Pair::One("limit", "{limit=10}"),
            ],
            genuine: &["/results"],
            ..GET
        }],
        found: "/results",
        answer: &[
            integer("total", "/count"),
            rows(
                "hospitals",
                "/results",
                &[
                    text("facility_id", "/facility_id"),
                    text("name", "/facility_name"),
                    text("street", "/address"),
                    text("city", "/citytown"),
                    text("state", "/state"),
                    text("zip_code", "/zip_code"),
                    text("county", "/countyparish"),
                    text("telephone", "/telephone_number"),
                    text("kind", "/hospital_type"),
                    text("ownership", "/hospital_ownership"),
                    flag("emergency_services", "/emergency_services"),
                    integer("rating", "/hospital_overall_rating").about("1 to 5"),
                ],
                10,
            ),
        ],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "record_clinical_trials_find",
            title: "Clinical trials",
            summary: "Registered clinical studies on a condition or treatment, most recently updated first",
            paths: &["/v1/tools/find/record-clinical-trials"],
            input: &[
                Field::optional("condition", words(2, 120), "A condition or disease"),
                Field::optional("query", words(2, 200), "A treatment, or other words"),
                Field::optional(
                    "status",
                    Kind::Choice(&[
                        "recruiting",
                        "not_yet_recruiting",
                        "active_not_recruiting",
                        "completed",
                        "terminated",
                        "withdrawn",
                        "suspended",
                    ]),
                    "Only studies of this status",
                ),
                limit(20),
            ],
            check: |input, _| any_of(input, &["condition", "query"]),
            example: || json!({"condition": "psoriasis", "query": "secukinumab", "status": "recruiting", "limit": 1}),
            ..LOOKUP
        },
        source: &TRIALS,
        requests: &[Request {
            paths: &["/api/v2/studies"],
            query: &[
                Pair::One("query.cond", "{condition}"),
                Pair::One("query.term", "{query}"),
                Pair::One("filter.overallStatus", "{status|upper}"),
                Pair::One("sort", "LastUpdatePostDate:desc"),
                Pair::One("countTotal", "true"),
                Pair::One("pageSize", "{limit=10}"),
            ],
            genuine: &["/studies"],
            ..GET
        }],
        found: "/studies",
        answer: &[
            integer("total", "/totalCount"),
            rows(
                "studies",
                "/studies/*/protocolSection",
                &[
                    text("nct_id", "/identificationModule/nctId"),
                    text("title", "/identificationModule/briefTitle"),
                    text("status", "/statusModule/overallStatus"),
                    texts("phases", "/designModule/phases"),
                    text("kind", "/designModule/studyType"),
                    texts("conditions", "/conditionsModule/conditions"),
                    texts("interventions", "/armsInterventionsModule/interventions/*/name"),
                    text("sponsor", "/sponsorCollaboratorsModule/leadSponsor/name"),
                    integer("enrollment", "/designModule/enrollmentInfo/count"),
                    text("started", "/statusModule/startDateStruct/date"),
                    text("primary_completion", "/statusModule/primaryCompletionDateStruct/date"),
                    date("updated_on", "/statusModule/lastUpdatePostDateStruct/date"),
                ],
                10,
            ),
        ],
        notice: Some("What sponsors registered, not a finding about a treatment."),
        ..ROW
    },
];

static SPECIALTY: &[Member] = &[
    text("code", "/code"),
    text("specialty", "/desc"),
    flag("primary", "/primary"),
    text("license_state", "/state"),
    text("license", "/license"),
];

/// The place of practice. The street is left out, because an individual's practice may be their home.
static PLACE: &[Member] = &[text("city", "/city"), text("state", "/state"), text("country", "/country_code")];

/// Keeps records of one kind, because a search by number finds both kinds. Copies the practice addresses to `practice`.
fn of_kind(mut answer: Value, kind: &str) -> Value {
    let Some(results) = answer.get_mut("results").and_then(Value::as_array_mut) else { return answer };
    results.retain(|record| record["enumeration_type"] == kind);
    for record in results.iter_mut() {
        let practice: Vec<Value> = record["addresses"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|address| address["address_purpose"] == "LOCATION")
            .cloned()
            .collect();
        if let Some(record) = record.as_object_mut() {
            record.insert("practice".to_owned(), Value::Array(practice));
        }
    }
    let count = results.len();
    answer["result_count"] = json!(count);
    answer
}
