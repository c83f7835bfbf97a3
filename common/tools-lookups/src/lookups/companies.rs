//! Companies: records of registries and regulators, mostly of the US.

use std::collections::BTreeMap;

use base::input::{Field, Format, Kind};
use serde_json::{Map, Value, json};
use tools::snapshot;
use tools::spec::ToolSpec;

use super::engine::days_before;
use super::row::*;

/// <https://www.sec.gov/search-filings/edgar-application-programming-interfaces> (read Nov 2026). At most ten requests a
/// second over all machines. The User-Agent must name the client; ours has the service's address.
static SEC: Source = Source {
    provider: "sec",
    origin: "https://data.sec.gov",
    name: "US Securities and Exchange Commission, EDGAR",
    url: "https://www.sec.gov/search-filings",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

/// <https://api.fdic.gov/banks/docs/> (read Nov 2026).
static FDIC: Source = Source {
    provider: "fdic",
    origin: "https://api.fdic.gov",
    name: "US Federal Deposit Insurance Corporation, BankFind",
    url: "https://banks.data.fdic.gov/bankfind-suite/",
    licence: US_PUBLIC,
    key: Key::MayQuery("api_key"),
    ..SOURCE
};

/// <https://www.gleif.org/en/lei-data/gleif-api> (read Nov 2026).
static GLEIF: Source = Source {
    provider: "gleif",
    origin: "https://api.gleif.org",
    name: "Global Legal Entity Identifier Foundation",
    url: "https://search.gleif.org/",
    licence: "CC0 1.0",
    failed: &[Failed::Unless("/errors/*/status", &["404"])],
    ..SOURCE
};

/// <https://ec.europa.eu/taxation_customs/vies/#/technical-information> (read Nov 2026).
static VIES: Source = Source {
    provider: "vies",
    origin: "https://ec.europa.eu",
    name: "European Commission, VIES",
    url: "https://ec.europa.eu/taxation_customs/vies/",
    licence: "Public information of the European Commission; for checking VAT numbers only",
    per_second: 2.0,
    failed: &[Failed::At("/errorWrappers")],
    ..SOURCE
};

/// `api_contracts/contracts/v2/search/spending_by_award.md` of fedspendingtransparency/usaspending-api (read Nov 2026).
static USASPENDING: Source = Source {
    provider: "usaspending",
    origin: "https://api.usaspending.gov",
    name: "US Department of the Treasury, USAspending.gov",
    url: "https://www.usaspending.gov/",
    licence: US_PUBLIC,
    per_second: 2.0,
    failed: &[Failed::At("/detail")],
    ..SOURCE
};

/// <https://cfpb.github.io/api/ccdb/> (read Nov 2026).
static CFPB: Source = Source {
    provider: "cfpb",
    origin: "https://www.consumerfinance.gov",
    name: "US Consumer Financial Protection Bureau, Consumer Complaint Database",
    url: "https://www.consumerfinance.gov/data-research/consumer-complaints/",
    licence: US_PUBLIC,
    failed: SEARCH_ENGINE,
    ..SOURCE
};

/// <https://echo.epa.gov/tools/web-services/facility-search-all-data> (read Nov 2026): 300 requests an hour, 1,500 a day. A
/// name that matches too many facilities is an error.
static ECHO: Source = Source {
    provider: "echo",
    origin: "https://echodata.epa.gov",
    name: "US Environmental Protection Agency, ECHO",
    url: "https://echo.epa.gov/",
    licence: US_PUBLIC,
    failed: &[Failed::At("/Results/Error")],
    ..SOURCE
};

/// <https://mobile.fmcsa.dot.gov/QCDevsite/docs/qcApi> (read Nov 2026).
static FMCSA: Source = Source {
    provider: "fmcsa",
    origin: "https://mobile.fmcsa.dot.gov",
    name: "US Federal Motor Carrier Safety Administration",
    url: "https://safer.fmcsa.dot.gov/",
    licence: US_PUBLIC,
    per_second: 2.0,
    key: Key::Query("webKey"),
    failed: &[Failed::Text("/content")],
};

/// <https://lda.gov/api/redoc/v1/> (read Nov 2026): fifteen requests a minute without a key. The older host,
/// lda.senate.gov, closed in June 2026 and redirects to a page.
static LDA: Source = Source {
    provider: "lda",
    origin: "https://lda.gov",
    name: "US Senate Office of Public Records, Lobbying Disclosure Act",
    url: "https://lda.gov/",
    licence: US_PUBLIC,
    per_second: 0.25,
    key: Key::MayHeader("authorization", "Token "),
    failed: &[Failed::At("/detail")],
};

/// <https://sanctionslist.ofac.treas.gov/Home/SdnList>: SDN.CSV, imported by the operator.
static OFAC: Source = Source {
    provider: "ofac",
    origin: "https://sanctionslistservice.ofac.treas.gov",
    name: "US Treasury, Office of Foreign Assets Control, SDN list",
    url: "https://sanctionslist.ofac.treas.gov/",
    licence: US_PUBLIC,
    ..SOURCE
};

static COPY_OF_FDIC: Snapshot = Snapshot { name: "fdic", turn: Turn::Fallback, find: snapshot::find_bank };
static COPY_OF_GLEIF: Snapshot = Snapshot { name: "gleif", turn: Turn::Fallback, find: snapshot::find_entity };
static COPY_OF_TICKERS: Snapshot = Snapshot { name: "edgar-tickers", turn: Turn::Only, find: snapshot::find_ticker };
static SANCTIONED_COMPANIES: Snapshot =
    Snapshot { name: "ofac", turn: Turn::Only, find: |copy, input| snapshot::find_sanctions(copy, input, false) };
static SANCTIONED_PERSONS: Snapshot =
    Snapshot { name: "ofac", turn: Turn::Only, find: |copy, input| snapshot::find_sanctions(copy, input, true) };

const CIK_FIELD: Field = Field::required("cik", formed(&CIK), "The SEC's number of the filer, such as 320193");
const SCORE: Field = Field::optional(
    "min_score",
    Kind::Number(base::input::Range { above: None, min: Some(0.5), max: Some(1.0) }),
    "The lowest score of a match; 0.85 where left out",
);
const SCREENING: &str = "A screening aid against one list, as it was on the day of `as_of`: never a legal determination, and not \
                         for eligibility decisions. No match does not mean that a party is clear.";
static SANCTIONS: &[Member] = &[
    integer("total", "/total").about("Entries that score at least `min_score`"),
    rows(
        "matches",
        "/matches",
        &[
            number("score", "/score").about("0 to 1"),
            text("matched_name", "/matched"),
            text("name", "/name"),
            text("entry_id", "/id"),
            text("kind", "/kind"),
            texts("programs", "/programs"),
            text("title", "/title"),
            texts("also_known_as", "/aliases"),
            text("remarks", "/remarks"),
        ],
        10,
    ),
    text("list", "/list"),
];

static VAT_NUMBER: Format = Format {
    name: None,
    pattern: Some(r"^[0-9A-Za-z .+*-]{2,40}$"),
    matches: |text| {
        (2..=40).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" .+*-".contains(&byte))
    },
    message: "must be 2 to 40 letters, digits, spaces, dots and dashes",
};
static MC_NUMBER: Format = Format {
    name: None,
    pattern: Some(r"^(MC-?)?[0-9]{1,8}$"),
    matches: |text| {
        let digits = text.strip_prefix("MC").map_or(text, |text| text.strip_prefix('-').unwrap_or(text));
        (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    },
    message: "must be 1 to 8 digits, with MC or MC- before them at most",
};

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "company_filings",
            title: "Company filings",
            summary: "A US filer's registry record and newest filings with the SEC, by its CIK: forms, dates, documents",
            paths: &["/v1/tools/lookup/company-filings"],
            input: &[
                CIK_FIELD,
                Field::optional("form", words(1, 20), "Only this form, such as 10-K"),
                day("filed_after", "Filed on or after this day"),
                day("filed_before", "Filed on or before this day"),
                limit(50),
            ],
            example: || json!({"cik": "320193", "form": "8-K", "limit": 1}),
            ..LOOKUP
        },
        source: &SEC,
        requests: &[Request {
            paths: &["/submissions/CIK{cik|cik}.json"],
            absent: &[404],
            genuine: &["/filings/recent"],
            ..GET
        }],
        reshape: filings,
        found: "/name",
        answer: &[
            text("cik", "/cik"),
            text("name", "/name"),
            text("entity_type", "/entityType"),
            text("industry_code", "/sic"),
            text("industry", "/sicDescription"),
            texts("tickers", "/tickers"),
            texts("exchanges", "/exchanges"),
            text("state_of_incorporation", "/stateOfIncorporation"),
            text("fiscal_year_end", "/fiscalYearEnd").about("MMDD"),
            text("website", "/website"),
            texts("former_names", "/formerNames/*/name"),
            text("city", "/addresses/business/city"),
            text("state_or_country", "/addresses/business/stateOrCountry"),
            rows(
                "filings",
                "/rows",
                &[
                    text("form", "/form"),
                    date("filed_on", "/filed"),
                    date("period", "/period"),
                    text("accession_number", "/accession"),
                    text("description", "/description"),
                    link("url", "/url"),
                ],
                10,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_financials",
            title: "Reported financials",
            summary: "One figure of a US public company as it reported it to the SEC, newest period first",
            paths: &["/v1/tools/lookup/company-financials"],
            input: &[
                CIK_FIELD,
                Field::required(
                    "metric",
                    Kind::Choice(&[
                        "revenue",
                        "net_income",
                        "operating_income",
                        "total_assets",
                        "total_liabilities",
                        "stockholders_equity",
                        "cash",
                        "eps_diluted",
                    ]),
                    "Which figure",
                ),
                Field::optional("period", Kind::Choice(&["annual", "quarterly"]), "annual where left out"),
                limit(20),
            ],
            example: || json!({"cik": "320193", "metric": "revenue", "limit": 2}),
            ..LOOKUP
        },
        source: &SEC,
        requests: &[Request {
            // Companies that never used a tag have no such page; older filings use older tags.
            paths: &[
                "/api/xbrl/companyconcept/CIK{cik|cik}/us-gaap/{tag}.json",
                "/api/xbrl/companyconcept/CIK{cik|cik}/us-gaap/{older_tag}.json",
            ],
            absent: &[404],
            genuine: &["/units"],
            ..GET
        }],
        derive: |input, _| {
            let (tag, older) = match input.get("metric").and_then(Value::as_str).unwrap_or_default() {
                "revenue" => ("RevenueFromContractWithCustomerExcludingAssessedTax", Some("Revenues")),
                "net_income" => ("NetIncomeLoss", Some("ProfitLoss")),
                "operating_income" => ("OperatingIncomeLoss", None),
                "total_assets" => ("Assets", None),
                "total_liabilities" => ("Liabilities", None),
                "stockholders_equity" => (
                    "StockholdersEquity",
                    Some("StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest"),
                ),
                "cash" => ("CashAndCashEquivalentsAtCarryingValue", None),
                _ => ("EarningsPerShareDiluted", None),
            };
            input.insert("tag".to_owned(), json!(tag));
            input.extend(older.map(|older| ("older_tag".to_owned(), json!(older))));
        },
        reshape: periods,
        found: "/periods",
        answer: &[
            text("company", "/entityName"),
            text("tag", "/tag"),
            text("label", "/label"),
            text("unit", "/unit"),
            rows(
                "periods",
                "/periods",
                &[
                    number("value", "/val"),
                    date("start", "/start"),
                    date("end", "/end"),
                    integer("fiscal_year", "/fy"),
                    text("fiscal_period", "/fp"),
                    text("form", "/form"),
                    date("filed_on", "/filed"),
                    text("accession_number", "/accn"),
                ],
                5,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_ticker",
            title: "Company by ticker",
            summary: "The SEC's number and registered name behind a US ticker symbol, or companies by name",
            paths: &["/v1/tools/lookup/company-ticker"],
            input: &[
                Field::optional("ticker", formed(&TOKEN), "The symbol, such as AAPL"),
                Field::optional("name", words(2, 100), "A name, or a part of it"),
                limit(20),
            ],
            check: |input, _| one_of(input, &["ticker", "name"]),
            example: || json!({"ticker": "AAPL"}),
            ..LOOKUP
        },
        source: &SEC,
        snapshot: Some(&COPY_OF_TICKERS),
        found: "/companies",
        answer: &[rows(
            "companies",
            "/companies",
            &[text("ticker", "/ticker"), text("name", "/name"), text("cik", "/cik")],
            5,
        )],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_bank_profile",
            title: "Bank profile",
            summary: "US insured banks by name or FDIC certificate: open or closed, regulator, website, assets, deposits",
            paths: &["/v1/tools/lookup/company-bank-profile"],
            input: &[
                Field::optional("name", words(2, 100), "The bank's name"),
                Field::optional("fdic_certificate", whole(1, 9_999_999), "The certificate number, which is exact"),
                limit(10),
            ],
            check: |input, _| one_of(input, &["name", "fdic_certificate"]),
            example: || json!({"fdic_certificate": 59113}),
            ..LOOKUP
        },
        source: &FDIC,
        requests: &[Request {
            paths: &["/banks/institutions"],
            query: &[
                Pair::One("filters", "CERT:{fdic_certificate}"),
                Pair::One("search", "NAME:{name|phrase}"),
                Pair::One(
                    "fields",
                    "NAME,CERT,ACTIVE,CITY,STALP,REGAGNT,BKCLASS,ESTYMD,WEBADDR,ASSET,DEP,REPDTE,ENDEFYMD",
                ),
                Pair::One("limit", "{limit=5}"),
                Pair::One("format", "json"),
            ],
            genuine: &["/data"],
            ..GET
        }],
        reshape: banks,
        snapshot: Some(&COPY_OF_FDIC),
        found: "/data",
        answer: &[
            integer("total", "/meta/total"),
            rows(
                "banks",
                "/data",
                &[
                    text("name", "/data/NAME"),
                    integer("fdic_certificate", "/data/CERT"),
                    flag("active", "/data/ACTIVE"),
                    text("city", "/data/CITY"),
                    text("state", "/data/STALP"),
                    text("regulator", "/data/REGAGNT"),
                    text("charter_class", "/data/BKCLASS"),
                    made("established_on", "/data/ESTYMD", As::DateMonthFirst),
                    text("website", "/data/WEBADDR"),
                    integer("total_assets_usd", "/data/assets_usd"),
                    integer("total_deposits_usd", "/data/deposits_usd"),
                    made("reported_on", "/data/REPDTE", As::DateMonthFirst),
                ],
                5,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_legal_identifier",
            title: "Legal entity identifier",
            summary: "Registered legal entities worldwide by LEI or name: status, jurisdiction, registration, addresses",
            paths: &["/v1/tools/lookup/company-legal-identifier"],
            input: &[
                Field::optional("lei", formed(&LEI), "The 20-character identifier, which is exact"),
                Field::optional("name", words(2, 200), "The legal name"),
                limit(10),
            ],
            check: |input, _| one_of(input, &["lei", "name"]),
            example: || json!({"lei": "DPRBOZP0K5RM2YE8UU08"}),
            ..LOOKUP
        },
        source: &GLEIF,
        requests: &[Request {
            paths: &[
                "/api/v1/lei-records/{lei|upper}",
                "/api/v1/lei-records?filter%5Bentity.legalName%5D={name}&page%5Bsize%5D={limit=5}",
            ],
            absent: &[404],
            genuine: &["/data"],
            ..GET
        }],
        reshape: |mut answer, _| {
            // One record by its identifier is an object, not a list.
            if let Some(record) = answer.get("data").filter(|data| data.is_object()).cloned() {
                answer = json!({"data": [record], "meta": {"pagination": {"total": 1}}});
            }
            answer
        },
        snapshot: Some(&COPY_OF_GLEIF),
        found: "/data",
        answer: &[
            integer("total", "/meta/pagination/total"),
            rows(
                "entities",
                "/data",
                &[
                    text("lei", "/attributes/lei"),
                    text("name", "/attributes/entity/legalName/name"),
                    texts("other_names", "/attributes/entity/otherNames/*/name"),
                    text("status", "/attributes/entity/status"),
                    text("jurisdiction", "/attributes/entity/jurisdiction"),
                    text("legal_form", "/attributes/entity/legalForm/id"),
                    text("registered_as", "/attributes/entity/registeredAs"),
                    date("created_on", "/attributes/entity/creationDate"),
                    text("registration_status", "/attributes/registration/status"),
                    date("registered_on", "/attributes/registration/initialRegistrationDate"),
                    date("updated_on", "/attributes/registration/lastUpdateDate"),
                    date("renewal_due_on", "/attributes/registration/nextRenewalDate"),
                    text("corroboration", "/attributes/registration/corroborationLevel"),
                    object("legal_address", "/attributes/entity/legalAddress", ADDRESS),
                    object("headquarters", "/attributes/entity/headquartersAddress", ADDRESS),
                ],
                5,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_vat_registration",
            title: "VAT registration",
            summary: "Whether a VAT number of the EU or Northern Ireland is registered today, with name and address where given",
            paths: &["/v1/tools/lookup/company-vat-registration"],
            input: &[
                Field::required(
                    "country",
                    Kind::Choice(&[
                        "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "EL", "ES", "FI", "FR", "HR", "HU", "IE", "IT",
                        "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK", "XI",
                    ]),
                    "The state's code in VIES: EL is Greece, XI Northern Ireland",
                ),
                Field::required("vat_number", formed(&VAT_NUMBER), "The number, with or without the country's letters"),
            ],
            example: || json!({"country": "IE", "vat_number": "6388047V"}),
            ..LOOKUP
        },
        source: &VIES,
        requests: &[Request {
            paths: &["/taxation_customs/vies/rest-api/check-vat-number"],
            body: Some(|input| json!({"countryCode": input["country"], "vatNumber": input["plain_number"]})),
            genuine: &["/valid"],
            ..GET
        }],
        derive: |input, _| {
            let number: String = input.get("vat_number").and_then(Value::as_str).unwrap_or_default().to_uppercase();
            let number: String = number.chars().filter(|letter| !" .-".contains(*letter)).collect();
            let country = input.get("country").and_then(Value::as_str).unwrap_or_default();
            let number = number.strip_prefix(country).unwrap_or(&number).to_owned();
            input.insert("plain_number".to_owned(), json!(number));
        },
        reshape: |mut answer, _| {
            // Member states that do not disclose a name or address send dashes.
            for name in ["name", "address"] {
                if answer.get(name).and_then(Value::as_str).is_some_and(|text| text.trim_matches(['-', ' ']).is_empty())
                {
                    answer[name] = Value::Null;
                }
            }
            answer
        },
        found: "/valid",
        answer: &[
            flag("registered", "/valid"),
            text("country", "/countryCode"),
            text("vat_number", "/vatNumber"),
            text("name", "/name"),
            text("address", "/address"),
            text("checked_at", "/requestDate"),
        ],
        keep: HOURS_12,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_federal_awards",
            title: "Federal awards",
            summary: "US federal contracts or grants of a recipient, largest first: value, dates, agency, description",
            paths: &["/v1/tools/lookup/company-federal-awards"],
            input: &[
                Field::optional("recipient", words(3, 120), "The recipient's name"),
                Field::optional("uei", formed(&TOKEN), "Its Unique Entity Identifier"),
                Field::required("kind", Kind::Choice(&["contracts", "grants"]), "Which awards"),
                day("active_after", "Begin of the period; three years back where left out"),
                day("active_before", "End of the period; today where left out"),
                limit(25),
            ],
            check: |input, _| one_of(input, &["recipient", "uei"]),
            example: || json!({"recipient": "LOCKHEED MARTIN CORPORATION", "kind": "contracts", "limit": 1}),
            ..LOOKUP
        },
        source: &USASPENDING,
        requests: &[Request {
            paths: &["/api/v2/search/spending_by_award/"],
            body: Some(|input| {
                let who = input.get("uei").or(input.get("recipient"));
                let codes: &[&str] = match input["kind"].as_str() {
                    Some("grants") => &["02", "03", "04", "05"],
                    _ => &["A", "B", "C", "D"],
                };
                json!({
                    "filters": {
                        "recipient_search_text": [who], "award_type_codes": codes,
                        "time_period": [{"start_date": input["from"], "end_date": input["to"]}],
                    },
                    "fields": ["Award ID", "Recipient Name", "Recipient UEI", "Start Date", "End Date", "Award Amount",
                        "Awarding Agency", "Awarding Sub Agency", "Description"],
                    "sort": "Award Amount", "order": "desc", "page": 1, "subawards": false,
                    "limit": input.get("limit").cloned().unwrap_or(json!(10)),
                })
            }),
            genuine: &["/results"],
            ..GET
        }],
        derive: |input, now| {
            let from = input.get("active_after").cloned().unwrap_or_else(|| json!(days_before(now, 3 * 365)));
            let to = input.get("active_before").cloned().unwrap_or_else(|| json!(days_before(now, 0)));
            input.insert("from".to_owned(), from);
            input.insert("to".to_owned(), to);
        },
        reshape: |mut answer, _| {
            for row in answer.get_mut("results").and_then(Value::as_array_mut).into_iter().flatten() {
                let id = row.get("generated_internal_id").and_then(Value::as_str).map(str::to_owned);
                if let (Some(id), Value::Object(row)) = (id, row) {
                    let id = base::encoding::percent_encoded(&id);
                    row.insert("url".to_owned(), json!(format!("https://www.usaspending.gov/award/{id}")));
                }
            }
            answer
        },
        found: "/results",
        answer: &[
            rows(
                "awards",
                "/results",
                &[
                    text("award_id", "/Award ID"),
                    text("recipient", "/Recipient Name"),
                    text("uei", "/Recipient UEI"),
                    number("amount_usd", "/Award Amount"),
                    date("start", "/Start Date"),
                    date("end", "/End Date"),
                    text("agency", "/Awarding Agency"),
                    text("sub_agency", "/Awarding Sub Agency"),
                    text("description", "/Description"),
                    link("url", "/url"),
                ],
                10,
            ),
            flag("has_more", "/page_metadata/hasNext"),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_consumer_complaints",
            title: "Consumer finance complaints",
            summary: "Complaints to the US CFPB about a financial company: counts by product and answer, newest complaints",
            paths: &["/v1/tools/lookup/company-consumer-complaints"],
            input: &[
                Field::required("company_name", words(2, 100), "The company's name"),
                day("since", "Received on or after this day"),
                limit(25),
            ],
            example: || json!({"company_name": "Wells Fargo", "limit": 1}),
            ..LOOKUP
        },
        source: &CFPB,
        requests: &[Request {
            paths: &["/data-research/consumer-complaints/search/api/v1/"],
            query: &[
                Pair::One("search_term", "{company_name|phrase}"),
                Pair::One("field", "company"),
                Pair::One("size", "{limit=10}"),
                Pair::One("sort", "created_date_desc"),
                Pair::One("date_received_min", "{since}"),
                Pair::One("no_highlight", "true"),
            ],
            genuine: &["/hits"],
            ..GET
        }],
        found: "/hits/hits",
        answer: &[
            integer("total", "/hits/total/value"),
            list(
                "companies",
                "/aggregations/company/company/buckets",
                &[text("company", "/key"), integer("complaints", "/doc_count")],
                5,
            ),
            list(
                "by_product",
                "/aggregations/product/product/buckets",
                &[text("product", "/key"), integer("complaints", "/doc_count")],
                5,
            ),
            list(
                "by_response",
                "/aggregations/company_response/company_response/buckets",
                &[text("response", "/key"), integer("complaints", "/doc_count")],
                5,
            ),
            rows(
                "complaints",
                "/hits/hits",
                &[
                    text("complaint_id", "/_source/complaint_id"),
                    text("company", "/_source/company"),
                    date("received_on", "/_source/date_received"),
                    text("product", "/_source/product"),
                    text("issue", "/_source/issue"),
                    text("state", "/_source/state"),
                    text("response", "/_source/company_response"),
                    flag("timely", "/_source/timely"),
                ],
                10,
            ),
        ],
        notice: Some("Complaints are consumers' reports, not findings."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_environmental_compliance",
            title: "Environmental compliance",
            summary: "US facilities by name in the EPA's records: compliance, violations, inspections, penalties of five years",
            paths: &["/v1/tools/lookup/company-environmental-compliance"],
            input: &[
                Field::required("name", words(3, 100), "Whole words of one facility's name"),
                Field::optional("state", STATE, "Only in this state"),
                limit(25),
            ],
            check: |input, _| match input.get("name").and_then(Value::as_str) {
                Some(name) if name.contains(',') => {
                    vec![base::input::FieldError::new(
                        "name",
                        "must not contain a comma, which would separate two names",
                    )]
                }
                _ => Vec::new(),
            },
            example: || json!({"name": "TESLA MOTORS INC", "state": "CA", "limit": 3}),
            ..LOOKUP
        },
        source: &ECHO,
        requests: &[
            Request {
                paths: &["/echo/echo_rest_services.get_facilities"],
                query: &[
                    Pair::One("output", "JSON"),
                    Pair::One("p_fn", "{name}"),
                    Pair::One("p_st", "{state}"),
                    Pair::One("responseset", "{limit=10}"),
                ],
                genuine: &["/Results/QueryRows"],
                take: &[Take::At("qid", "/Results/QueryID")],
                ..GET
            },
            Request {
                paths: &["/echo/echo_rest_services.get_qid"],
                query: &[Pair::One("output", "JSON"), Pair::One("qid", "{qid}"), Pair::One("pageno", "1")],
                genuine: &["/Results/Facilities"],
                ..GET
            },
        ],
        found: "/1/Results/Facilities",
        answer: &[
            integer("total_facilities", "/0/Results/QueryRows"),
            number("total_penalties_usd", "/0/Results/TotalPenalties"),
            rows(
                "facilities",
                "/1/Results/Facilities",
                &[
                    text("name", "/FacName"),
                    text("registry_id", "/RegistryID"),
                    text("street", "/FacStreet"),
                    text("city", "/FacCity"),
                    text("state", "/FacState"),
                    text("zip", "/FacZip"),
                    text("compliance_status", "/FacComplianceStatus"),
                    flag("significant_violator", "/FacSNCFlg"),
                    integer("quarters_in_violation", "/FacQtrsWithNC"),
                    integer("inspections", "/FacInspectionCount"),
                    integer("formal_actions", "/FacFormalActionCount"),
                    number("penalties_usd", "/FacTotalPenalties"),
                    made("inspected_on", "/FacDateLastInspection", As::DateMonthFirst),
                    made("penalised_on", "/FacDateLastPenalty", As::DateMonthFirst),
                ],
                10,
            ),
        ],
        notice: Some("Matched by the words of a name, not by verified ownership."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_motor_carrier",
            title: "Motor carrier record",
            summary: "A US motor carrier by DOT or MC number: names, status, operation, fleet, safety rating",
            paths: &["/v1/tools/lookup/company-motor-carrier"],
            input: &[
                Field::optional("dot_number", formed(&NUMBER_8), "The US DOT number"),
                Field::optional("mc_number", formed(&MC_NUMBER), "The motor carrier number, such as MC-1515"),
            ],
            check: |input, _| one_of(input, &["dot_number", "mc_number"]),
            example: || json!({"dot_number": "44110"}),
            ..LOOKUP
        },
        source: &FMCSA,
        requests: &[Request {
            paths: &["/qc/services/carriers/{dot_number}", "/qc/services/carriers/docket-number/{mc_number|digits}"],
            absent: &[404],
            genuine: &["/content"],
            ..GET
        }],
        found: "/content",
        answer: &[list(
            "carriers",
            "/content/carrier|/content/*/carrier",
            &[
                text("dot_number", "/dotNumber"),
                text("legal_name", "/legalName"),
                text("trade_name", "/dbaName"),
                text("status", "/statusCode"),
                flag("allowed_to_operate", "/allowedToOperate|/allowToOperate"),
                text("operation", "/carrierOperation/carrierOperationDesc"),
                text("city", "/phyCity"),
                text("state", "/phyState"),
                text("country", "/phyCountry"),
                integer("power_units", "/totalPowerUnits"),
                integer("drivers", "/totalDrivers"),
                text("safety_rating", "/safetyRating"),
                date("safety_rating_on", "/safetyRatingDate"),
                date("reviewed_on", "/reviewDate"),
            ],
            5,
        )],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_lobbying",
            title: "Lobbying",
            summary: "US federal lobbying filings for a client, newest first: firm, income, expenses, issues",
            paths: &["/v1/tools/lookup/company-lobbying"],
            input: &[
                Field::required("client_name", words(2, 100), "A part of the client's name"),
                Field::optional("filing_year", whole(1999, 2100), "Only of this year"),
                limit(25),
            ],
            example: || json!({"client_name": "Nvidia", "filing_year": 2026, "limit": 1}),
            ..LOOKUP
        },
        source: &LDA,
        requests: &[Request {
            paths: &["/api/v1/filings/"],
            query: &[
                Pair::One("client_name", "{client_name}"),
                Pair::One("filing_year", "{filing_year}"),
                Pair::One("ordering", "-dt_posted"),
                Pair::One("page_size", "{limit=10}"),
            ],
            genuine: &["/results"],
            ..GET
        }],
        found: "/results",
        answer: &[
            integer("total", "/count"),
            rows(
                "filings",
                "/results",
                &[
                    text("filing_id", "/filing_uuid"),
                    text("kind", "/filing_type_display"),
                    integer("year", "/filing_year"),
                    text("period", "/filing_period_display"),
                    text("firm", "/registrant/name"),
                    text("client", "/client/name"),
                    text("client_id", "/client/id"),
                    number("income_usd", "/income"),
                    number("expenses_usd", "/expenses"),
                    texts("issues", "/lobbying_activities/*/general_issue_code_display"),
                    texts("government_entities", "/lobbying_activities/*/government_entities/*/name"),
                    date("posted_on", "/dt_posted"),
                    link("url", "/filing_document_url"),
                ],
                10,
            ),
        ],
        notice: Some(
            "The Senate Office of Public Records cannot vouch for data or analyses after they were retrieved.",
        ),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_sanctions",
            title: "Sanctions listing (company)",
            summary: "Entries of the US Treasury's SDN list that resemble a company's name, with scores; never a clearance",
            paths: &["/v1/tools/lookup/company-sanctions"],
            input: &[Field::required("name", words(2, 200), "The company's name"), SCORE, limit(25)],
            example: || json!({"name": "Banco Nacional de Cuba", "min_score": 0.85, "limit": 10}),
            ..LOOKUP
        },
        source: &OFAC,
        snapshot: Some(&SANCTIONED_COMPANIES),
        found: "/matches",
        answer: SANCTIONS,
        notice: Some(SCREENING),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "person_sanctions",
            title: "Sanctions listing (person)",
            summary: "Entries of the US Treasury's SDN list that resemble a person's name, with scores; never a clearance",
            paths: &["/v1/tools/lookup/person-sanctions"],
            input: &[Field::required("name", words(2, 200), "The person's name"), SCORE, limit(25)],
            example: || json!({"name": "Vladimir Putin", "min_score": 0.85, "limit": 10}),
            ..LOOKUP
        },
        source: &OFAC,
        snapshot: Some(&SANCTIONED_PERSONS),
        found: "/matches",
        answer: SANCTIONS,
        notice: Some(SCREENING),
        ..ROW
    },
];

static ADDRESS: &[Member] = &[
    texts("lines", "/addressLines"),
    text("city", "/city"),
    text("region", "/region"),
    text("country", "/country"),
    text("postal_code", "/postalCode"),
];

/// Turns EDGAR's columns of recent filings into rows.
fn filings(mut answer: Value, input: &Map<String, Value>) -> Value {
    let given = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let recent = answer.pointer("/filings/recent").cloned().unwrap_or_default();
    let column = |name: &str, at: usize| recent[name][at].as_str().unwrap_or_default();
    let count = recent["form"].as_array().map_or(0, Vec::len).min(2_000);
    let cik = input.get("cik").and_then(Value::as_str).unwrap_or_default().trim_start_matches('0');
    let rows: Vec<Value> = (0..count)
        .filter(|at| {
            let (form, filed) = (column("form", *at), column("filingDate", *at));
            (given("form").is_empty() || form.eq_ignore_ascii_case(given("form").trim()))
                && (given("filed_after").is_empty() || filed >= given("filed_after"))
                && (given("filed_before").is_empty() || filed <= given("filed_before"))
        })
        .take(50)
        .map(|at| {
            let (accession, document) = (column("accessionNumber", at), column("primaryDocument", at));
            let plain: String = accession.chars().filter(char::is_ascii_digit).collect();
            let url = (!plain.is_empty() && !document.is_empty()).then(|| {
                let document: Vec<String> = document.split('/').map(base::encoding::percent_encoded).collect();
                format!("https://www.sec.gov/Archives/edgar/data/{cik}/{plain}/{}", document.join("/"))
            });
            json!({
                "form": column("form", at), "filed": column("filingDate", at), "period": column("reportDate", at),
                "accession": accession, "description": column("primaryDocDescription", at), "url": url,
            })
        })
        .collect();
    if let Value::Object(answer) = &mut answer {
        answer.insert("rows".to_owned(), Value::Array(rows));
        answer.remove("filings");
    }
    answer
}

/// Keeps the value that was filed last for each period: periods of about a year, or of about a quarter if quarterly values
/// are wanted.
fn periods(mut answer: Value, input: &Map<String, Value>) -> Value {
    let is_annual = input.get("period").and_then(Value::as_str) != Some("quarterly");
    let units = answer.get("units").and_then(Value::as_object);
    let Some((unit, values)) = units.and_then(|units| units.iter().next()) else { return answer };
    let unit = unit.clone();
    let day = |value: &Value, name: &str| {
        value[name].as_str().and_then(|text| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())
    };
    let mut by_end: BTreeMap<String, Value> = BTreeMap::new();
    for value in values.as_array().into_iter().flatten() {
        let Some(end) = day(value, "end") else { continue };
        let days = day(value, "start").map(|start| end.signed_duration_since(start).num_days());
        let fits = match (days, is_annual) {
            (Some(days), true) => (340..=380).contains(&days),
            (Some(days), false) => (80..=100).contains(&days),
            // A value at a point in time (no start): annual values are those of a full fiscal year.
            (None, true) => value["fp"] == "FY",
            (None, false) => true,
        };
        let filed = |value: &Value| value["filed"].as_str().unwrap_or_default().to_owned();
        let key = end.to_string();
        if fits && by_end.get(&key).is_none_or(|known| filed(known) <= filed(value)) {
            by_end.insert(key, value.clone());
        }
    }
    let periods: Vec<Value> = by_end.into_values().rev().take(20).collect();
    if let Value::Object(answer) = &mut answer {
        answer.remove("units");
        answer.insert("unit".to_owned(), json!(unit));
        answer.insert("periods".to_owned(), Value::Array(periods));
    }
    answer
}

/// The FDIC reports thousands of dollars.
fn banks(mut answer: Value, _: &Map<String, Value>) -> Value {
    for row in answer.get_mut("data").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(bank) = row.get_mut("data").and_then(Value::as_object_mut) else { continue };
        for (name, thousands) in [("assets_usd", "ASSET"), ("deposits_usd", "DEP")] {
            let dollars = bank.get(thousands).and_then(Value::as_i64).and_then(|amount| amount.checked_mul(1000));
            bank.insert(name.to_owned(), json!(dollars));
        }
    }
    answer
}
