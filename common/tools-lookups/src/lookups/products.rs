//! Products: devices, drugs and recalls (openFDA and the CPSC), and the US tariff.

use base::input::{Field, FieldError, Kind};
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;

use super::row::*;

/// <https://open.fda.gov/apis/> (read Nov 2026): 240 requests a minute, 1,000 a day without a key. 404 means "no match".
static OPEN_FDA: Source = Source {
    provider: "openfda",
    origin: "https://api.fda.gov",
    name: "US Food and Drug Administration, openFDA",
    url: "https://open.fda.gov/",
    licence: "CC0 1.0",
    per_second: 2.0,
    key: Key::MayQuery("api_key"),
    failed: &[Failed::Unless("/error/code", &["NOT_FOUND"])],
};

/// <https://www.cpsc.gov/Recalls/CPSC-Recalls-Application-Program-Interface-API-Information> (read Nov 2026).
static CPSC: Source = Source {
    provider: "cpsc",
    origin: "https://www.saferproducts.gov",
    name: "US Consumer Product Safety Commission; Food and Drug Administration",
    url: "https://www.cpsc.gov/Recalls",
    licence: US_PUBLIC,
    ..SOURCE
};

/// <https://www.usitc.gov/documents/hts/hts_external_guide.pdf>, "Rest API" (read Nov 2026).
static USITC: Source = Source {
    provider: "usitc",
    origin: "https://hts.usitc.gov",
    name: "US International Trade Commission, Harmonized Tariff Schedule",
    url: "https://hts.usitc.gov/",
    licence: US_PUBLIC,
    ..SOURCE
};

/// openFDA answers 404 for "no match", and a list otherwise.
const FDA_GET: Request = Request { absent: &[404], genuine: &["/results"], ..GET };

const DRUG: Field = Field::required("drug_name", words(2, 100), "A generic or brand name");
const UNVERIFIED: &str = "Not to be relied on for decisions about medical care; reports do not show a cause.";

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "company_fda_registration",
            title: "FDA establishment registration",
            summary: "Medical device establishments registered with the FDA, worldwide, with the products they list",
            paths: &["/v1/tools/lookup/company-fda-registration"],
            input: &[
                Field::optional("registration_number", formed(&NUMBER_12), "The registration number"),
                Field::optional("fei_number", formed(&NUMBER_12), "The FDA establishment identifier"),
                Field::optional("firm_name", words(2, 100), "Words of the firm's name"),
                Field::optional("country", STATE, "ISO code, with firm_name"),
                limit(25),
            ],
            check: |input, _| one_of(input, &["registration_number", "fei_number", "firm_name"]),
            example: || json!({"registration_number": "1030489"}),
            ..LOOKUP
        },
        source: &OPEN_FDA,
        requests: &[Request {
            paths: &["/device/registrationlisting.json"],
            query: &[
                Pair::Joined(
                    "search",
                    " AND ",
                    &[
                        "registration.registration_number:{registration_number|phrase}",
                        "registration.fei_number:{fei_number|phrase}",
                        "registration.name:{firm_name|phrase}",
                        "registration.iso_country_code:{country|phrase}",
                    ],
                ),
                Pair::One("limit", "{limit=3}"),
            ],
            ..FDA_GET
        }],
        found: "/results",
        answer: &[
            integer("total", "/meta/results/total"),
            rows(
                "listings",
                "/results",
                &[
                    text("name", "/registration/name"),
                    text("registration_number", "/registration/registration_number"),
                    text("fei_number", "/registration/fei_number"),
                    text("city", "/registration/city"),
                    text("state", "/registration/state_code"),
                    text("country", "/registration/iso_country_code"),
                    text("registered_to_year", "/registration/reg_expiry_date_year"),
                    text("status", "/registration/status_code"),
                    texts("establishment_types", "/establishment_type"),
                    texts("proprietary_names", "/proprietary_name"),
                    list(
                        "products",
                        "/products",
                        &[
                            text("product_code", "/product_code"),
                            text("device", "/openfda/device_name"),
                            text("device_class", "/openfda/device_class"),
                            date("created_on", "/created_date"),
                        ],
                        25,
                    ),
                ],
                3,
            ),
            date("updated_on", "/meta/last_updated"),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "product_device_clearances",
            title: "Device clearances",
            summary: "Medical devices cleared by the FDA through 510(k): by number, applicant, device or product code",
            paths: &["/v1/tools/lookup/product-device-clearances"],
            input: &[
                Field::optional("k_number", formed(&TOKEN), "The clearance, such as K253582"),
                Field::optional("applicant", words(2, 100), "The company that applied"),
                Field::optional("device_name", words(2, 100), "The device"),
                Field::optional("product_code", formed(&TOKEN), "The FDA's product code"),
                limit(25),
            ],
            check: |input, _| any_of(input, &["k_number", "applicant", "device_name", "product_code"]),
            example: || json!({"applicant": "Apple Inc", "limit": 2}),
            ..LOOKUP
        },
        source: &OPEN_FDA,
        requests: &[Request {
            paths: &["/device/510k.json"],
            query: &[
                Pair::Joined(
                    "search",
                    " AND ",
                    &[
                        "k_number:{k_number|phrase}",
                        "applicant:{applicant|phrase}",
                        "device_name:{device_name|phrase}",
                        "product_code:{product_code|phrase}",
                    ],
                ),
                Pair::One("sort", "decision_date:desc"),
                Pair::One("limit", "{limit=10}"),
            ],
            ..FDA_GET
        }],
        found: "/results",
        answer: &[
            integer("total", "/meta/results/total"),
            rows(
                "clearances",
                "/results",
                &[
                    text("k_number", "/k_number"),
                    text("device", "/device_name"),
                    text("applicant", "/applicant"),
                    text("country", "/country_code"),
                    text("product_code", "/product_code"),
                    text("device_class", "/openfda/device_class"),
                    text("decision", "/decision_description"),
                    date("received_on", "/date_received"),
                    date("decided_on", "/decision_date"),
                    text("clearance_type", "/clearance_type"),
                ],
                10,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "product_device_events",
            title: "Device adverse events",
            summary: "Reports to the FDA about a medical device, newest first: what happened, kind, maker",
            paths: &["/v1/tools/lookup/product-device-events"],
            input: &[Field::required("device_name", words(2, 100), "The brand or generic name"), limit(25)],
            example: || json!({"device_name": "insulin pump", "limit": 1}),
            ..LOOKUP
        },
        source: &OPEN_FDA,
        requests: &[Request {
            paths: &["/device/event.json"],
            query: &[
                Pair::Joined(
                    "search",
                    " OR ",
                    &["device.brand_name:{device_name|phrase}", "device.generic_name:{device_name|phrase}"],
                ),
                Pair::One("sort", "date_received:desc"),
                Pair::One("limit", "{limit=10}"),
            ],
            ..FDA_GET
        }],
        found: "/results",
        answer: &[
            integer("total", "/meta/results/total"),
            rows(
                "events",
                "/results",
                &[
                    text("report_number", "/report_number"),
                    date("received_on", "/date_received"),
                    text("event_type", "/event_type"),
                    text("brand", "/device/0/brand_name"),
                    text("device", "/device/0/generic_name"),
                    text("maker", "/device/0/manufacturer_d_name"),
                    texts("problems", "/product_problems"),
                    text("description", "/mdr_text/0/text"),
                ],
                10,
            ),
        ],
        notice: Some(UNVERIFIED),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "product_drug_adverse_events",
            title: "Drug adverse events",
            summary: "Reactions most often named in reports to the FDA about a drug, with the number of reports",
            paths: &["/v1/tools/lookup/product-drug-adverse-events"],
            input: &[DRUG, limit(25)],
            example: || json!({"drug_name": "Ozempic", "limit": 3}),
            ..LOOKUP
        },
        source: &OPEN_FDA,
        requests: &[Request {
            paths: &["/drug/event.json"],
            query: &[
                Pair::One("search", "patient.drug.medicinalproduct:{drug_name|phrase}"),
                Pair::One("count", "patient.reaction.reactionmeddrapt.exact"),
                Pair::One("limit", "{limit=10}"),
            ],
            ..FDA_GET
        }],
        found: "/results",
        answer: &[rows("reactions", "/results", &[text("reaction", "/term"), integer("reports", "/count")], 10)],
        notice: Some(UNVERIFIED),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "product_drug_shortages",
            title: "Drug shortages",
            summary: "Whether the FDA lists a drug as in shortage: each presentation's status, company, reason and dates",
            paths: &["/v1/tools/lookup/product-drug-shortages"],
            input: &[
                DRUG,
                Field::optional(
                    "status",
                    Kind::Choice(&["current", "to_be_discontinued", "resolved"]),
                    "Only this status",
                ),
                limit(25),
            ],
            example: || json!({"drug_name": "quinapril", "status": "current", "limit": 1}),
            ..LOOKUP
        },
        source: &OPEN_FDA,
        requests: &[Request {
            paths: &["/drug/shortages.json"],
            query: &[
                Pair::Joined(
                    "search",
                    " AND ",
                    &[
                        "(generic_name:{drug_name|phrase} OR openfda.brand_name:{drug_name|phrase})",
                        "status:{listed|phrase}",
                    ],
                ),
                Pair::One("sort", "update_date:desc"),
                Pair::One("limit", "{limit=10}"),
            ],
            ..FDA_GET
        }],
        derive: |input, _| {
            let status = input.get("status").and_then(Value::as_str).map(|status| match status {
                "to_be_discontinued" => "To Be Discontinued",
                "resolved" => "Resolved",
                _ => "Current",
            });
            input.extend(status.map(|status| ("listed".to_owned(), json!(status))));
        },
        found: "/results",
        answer: &[
            integer("total", "/meta/results/total"),
            rows(
                "presentations",
                "/results",
                &[
                    text("generic_name", "/generic_name"),
                    texts("brand_names", "/openfda/brand_name"),
                    text("company", "/company_name"),
                    text("status", "/status"),
                    text("availability", "/availability"),
                    text("dosage_form", "/dosage_form"),
                    text("presentation", "/presentation"),
                    text("package_ndc", "/package_ndc"),
                    texts("therapeutic_categories", "/therapeutic_category"),
                    text("reason", "/shortage_reason"),
                    made("posted_on", "/initial_posting_date", As::DateMonthFirst),
                    made("updated_on", "/update_date", As::DateMonthFirst),
                ],
                10,
            ),
        ],
        notice: Some(UNVERIFIED),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "product_drug_label",
            title: "Drug label",
            summary: "What a drug's US label says: indications, dosage, warnings, interactions, maker",
            paths: &["/v1/tools/lookup/product-drug-label"],
            input: &[DRUG, limit(5)],
            example: || json!({"drug_name": "ibuprofen", "limit": 1}),
            ..LOOKUP
        },
        source: &OPEN_FDA,
        requests: &[Request {
            paths: &["/drug/label.json"],
            query: &[
                Pair::Joined(
                    "search",
                    " OR ",
                    &["openfda.brand_name:{drug_name|phrase}", "openfda.generic_name:{drug_name|phrase}"],
                ),
                Pair::One("limit", "{limit=1}"),
            ],
            ..FDA_GET
        }],
        found: "/results",
        answer: &[
            integer("total", "/meta/results/total"),
            rows(
                "labels",
                "/results",
                &[
                    text("set_id", "/set_id"),
                    date("effective_on", "/effective_time"),
                    texts("brand_names", "/openfda/brand_name"),
                    texts("generic_names", "/openfda/generic_name"),
                    texts("makers", "/openfda/manufacturer_name"),
                    text("indications", "/indications_and_usage/0"),
                    text("dosage", "/dosage_and_administration/0"),
                    text("warnings", "/warnings/0|/boxed_warning/0|/warnings_and_cautions/0"),
                    text("interactions", "/drug_interactions/0"),
                ],
                1,
            ),
        ],
        keep: DAYS_7,
        notice: Some(UNVERIFIED),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "product_drug_ndc",
            title: "Drug code",
            summary: "A US drug product by National Drug Code: names, strength, form, labeler, packages, marketing",
            paths: &["/v1/tools/lookup/product-drug-ndc"],
            input: &[Field::required("product_ndc", formed(&TOKEN), "Labeler and product, such as 0573-0164")],
            example: || json!({"product_ndc": "0573-0164"}),
            ..LOOKUP
        },
        source: &OPEN_FDA,
        requests: &[Request {
            paths: &["/drug/ndc.json"],
            query: &[Pair::One("search", "product_ndc:{product_ndc|phrase}"), Pair::One("limit", "5")],
            ..FDA_GET
        }],
        found: "/results",
        answer: &[list(
            "products",
            "/results",
            &[
                text("product_ndc", "/product_ndc"),
                text("brand_name", "/brand_name"),
                text("generic_name", "/generic_name"),
                text("labeler", "/labeler_name"),
                text("dosage_form", "/dosage_form"),
                texts("routes", "/route"),
                list("ingredients", "/active_ingredients", &[text("name", "/name"), text("strength", "/strength")], 20),
                list(
                    "packages",
                    "/packaging",
                    &[text("package_ndc", "/package_ndc"), text("description", "/description")],
                    20,
                ),
                text("marketing_category", "/marketing_category"),
                date("marketed_since", "/marketing_start_date"),
                date("listing_expires_on", "/listing_expiration_date"),
            ],
            5,
        )],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "product_recalls",
            title: "Product recalls",
            summary: "US recalls of consumer products (CPSC) and of food, drugs and devices (FDA), newest first",
            paths: &["/v1/tools/lookup/product-recalls"],
            input: &[
                Field::required("category", Kind::Choice(&["consumer", "food", "drug", "device"]), "Which regulator"),
                Field::optional("product_name", words(2, 80), "Words of the product's name"),
                Field::optional("title", words(2, 80), "Words of the recall's title; consumer only"),
                Field::optional("manufacturer", words(2, 80), "The maker, or the recalling firm"),
                Field::optional(
                    "classification",
                    Kind::Choice(&["Class I", "Class II", "Class III"]),
                    "Not for consumer products",
                ),
                day("recalled_after", "Announced on or after this day"),
                day("recalled_before", "Announced on or before this day"),
                limit(25),
            ],
            check: |input, _| {
                let is_consumer = input.get("category").and_then(Value::as_str) == Some("consumer");
                let mut errors = any_of(input, &["product_name", "title", "manufacturer"]);
                for (name, fits) in [("title", is_consumer), ("classification", !is_consumer)] {
                    if input.contains_key(name) && !fits {
                        errors.push(FieldError::new(name, "is not allowed for this category"));
                    }
                }
                errors
            },
            example: || json!({"category": "consumer", "product_name": "attic stairway", "limit": 10}),
            ..LOOKUP
        },
        source: &CPSC,
        requests: &[
            // A request is skipped if the category belongs to the other source.
            Request {
                paths: &["/RestWebServices/{cpsc}"],
                query: &[
                    Pair::One("format", "json"),
                    Pair::One("ProductName", "{product_name}"),
                    Pair::One("RecallTitle", "{title}"),
                    Pair::One("Manufacturer", "{manufacturer}"),
                    Pair::One("RecallDateStart", "{recalled_after}"),
                    Pair::One("RecallDateEnd", "{recalled_before}"),
                ],
                genuine: &[""],
                ..GET
            },
            Request {
                paths: &["/{fda}/enforcement.json"],
                query: &[
                    Pair::Joined(
                        "search",
                        " AND ",
                        &[
                            "product_description:{product_name|phrase}",
                            "recalling_firm:{manufacturer|phrase}",
                            "classification:{classification|phrase}",
                            "report_date:[{from} TO {to}]",
                        ],
                    ),
                    Pair::One("sort", "report_date:desc"),
                    Pair::One("limit", "{limit=10}"),
                ],
                source: Some(&OPEN_FDA),
                ..FDA_GET
            },
        ],
        derive: recall_query,
        reshape: recalls,
        found: "/recalls",
        answer: &[
            integer("total", "/total"),
            rows(
                "recalls",
                "/recalls",
                &[
                    text("recall_number", "/RecallNumber|/recall_number"),
                    date("announced_on", "/RecallDate|/report_date"),
                    text("title", "/Title"),
                    texts("products", "/Products/*/Name|/product_description"),
                    text("description", "/Description|/code_info"),
                    texts("hazards", "/Hazards/*/Name|/reason_for_recall"),
                    texts("remedies", "/Remedies/*/Name"),
                    texts("injuries", "/Injuries/*/Name"),
                    texts("firms", "/Manufacturers/*/Name|/Importers/*/Name|/recalling_firm"),
                    text("classification", "/classification"),
                    text("status", "/status"),
                    text("distribution", "/distribution_pattern"),
                    link("url", "/URL"),
                ],
                10,
            ),
        ],
        notice: Some("A recall does not say whether one unit was repaired."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "product_duty_rate",
            title: "Duty rate",
            summary: "Lines of the US tariff schedule for a heading or a keyword, with general, special and column 2 rates",
            paths: &["/v1/tools/lookup/product-duty-rate"],
            input: &[Field::required("query", words(2, 80), "A heading such as 7408.11, or a keyword"), limit(50)],
            example: || json!({"query": "7408.11", "limit": 2}),
            ..LOOKUP
        },
        source: &USITC,
        requests: &[Request {
            paths: &["/reststop/search"],
            query: &[Pair::One("keyword", "{query}")],
            genuine: &[""],
            ..GET
        }],
        reshape: |answer, _| json!({"total": answer.as_array().map_or(0, Vec::len), "lines": answer}),
        found: "/lines",
        answer: &[
            integer("total", "/total"),
            rows(
                "lines",
                "/lines",
                &[
                    text("heading", "/htsno"),
                    integer("indent", "/indent"),
                    text("description", "/description"),
                    text("general", "/general"),
                    text("special", "/special"),
                    text("column_2", "/other"),
                    texts("units", "/units"),
                    texts("footnotes", "/footnotes/*/value"),
                    text("additional_duties", "/additionalDuties"),
                ],
                20,
            ),
        ],
        keep: DAYS_7,
        notice: Some(
            "The scheduled rate only; trade-remedy and emergency duties come on top, and no code is chosen for a product.",
        ),
        ..ROW
    },
];

fn recall_query(input: &mut Map<String, Value>, _: base::clock::Timestamp) {
    let given = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    let category = given("category").unwrap_or_default();
    if category == "consumer" {
        input.insert("cpsc".to_owned(), json!("Recall"));
    } else {
        let plain = |text: Option<String>, default: &str| text.map_or(default.to_owned(), |text| text.replace('-', ""));
        let (from, to) = (plain(given("recalled_after"), "19000101"), plain(given("recalled_before"), "21001231"));
        input.insert("fda".to_owned(), json!(category));
        input.insert("from".to_owned(), json!(from));
        input.insert("to".to_owned(), json!(to));
    }
}

fn recalls(answers: Value, _: &Map<String, Value>) -> Value {
    if let Some(recalls) = answers[0].as_array() {
        let mut recalls = recalls.clone();
        recalls.sort_by_cached_key(|recall| {
            std::cmp::Reverse(recall["RecallDate"].as_str().unwrap_or_default().to_owned())
        });
        return json!({"total": recalls.len(), "recalls": recalls});
    }
    json!({"total": answers[1]["meta"]["results"]["total"].as_u64().unwrap_or(0), "recalls": answers[1]["results"]})
}
