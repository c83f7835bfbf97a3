//! Markets: rates and indices published by governments.

use base::input::{Field, Format, Kind};
use serde_json::{Value, json};
use tools::spec::ToolSpec;

use super::row::*;

/// <https://open.gsa.gov/api/dx-calc-api/> (version 3, read Nov 2026).
static CALC: Source = Source {
    provider: "gsa_calc",
    origin: "https://api.gsa.gov",
    name: "US General Services Administration, CALC+",
    url: "https://buy.gsa.gov/pricing/",
    licence: US_PUBLIC,
    failed: SEARCH_ENGINE,
    ..SOURCE
};

/// Data set bw6n-ddqk, <https://data.bts.gov/Research-and-Statistics/Transportation-Services-Index-and-Seasonally-Adjus/bw6n-ddqk>
/// (read Nov 2026).
static BTS: Source = Source {
    provider: "socrata_bts",
    origin: "https://data.bts.gov",
    name: "US Bureau of Transportation Statistics, Transportation Services Index",
    url: "https://data.bts.gov/Research-and-Statistics/Transportation-Services-Index-and-Seasonally-Adjus/bw6n-ddqk",
    licence: US_PUBLIC,
    ..SODA
};

/// <https://frankfurter.dev/> (version 1, read Nov 2026).
static FRANKFURTER: Source = Source {
    provider: "frankfurter",
    origin: "https://api.frankfurter.dev",
    name: "European Central Bank reference rates, by Frankfurter",
    url: "https://frankfurter.dev/",
    licence: "Rates of the European Central Bank, free to use with attribution",
    per_second: 2.0,
    ..SOURCE
};

/// <https://fiscaldata.treasury.gov/api-documentation/> (read Nov 2026).
static FISCAL_DATA: Source = Source {
    provider: "fiscaldata",
    origin: "https://api.fiscaldata.treasury.gov",
    name: "US Department of the Treasury, Fiscal Data",
    url: "https://fiscaldata.treasury.gov/datasets/average-interest-rates-treasury-securities/",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

/// <https://datahelpdesk.worldbank.org/knowledgebase/articles/889392> (version 2, read Nov 2026).
static WORLD_BANK: Source = Source {
    provider: "worldbank",
    origin: "https://api.worldbank.org",
    name: "World Bank, Indicators",
    url: "https://data.worldbank.org/",
    licence: "CC BY 4.0",
    per_second: 2.0,
    failed: &[Failed::Unless("/0/message/*/id", &["120", "175"])],
    ..SOURCE
};

static MONTH: Format = Format {
    name: None,
    pattern: Some("^[0-9]{4}-(0[1-9]|1[0-2])$"),
    matches: |text| text.len() == 7 && chrono::NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d").is_ok(),
    message: "must be a month, as YYYY-MM",
};
static CURRENCY: Format = Format {
    name: None,
    pattern: Some("^[A-Z]{3}$"),
    matches: |text| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()),
    message: "must be three capital letters",
};

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "market_federal_labor_rates",
            title: "Federal labor rates",
            summary: "Ceiling hourly rates of contractors on US federal schedules for a role, lowest first, with the median",
            paths: &["/v1/tools/lookup/market-federal-labor-rates"],
            input: &[
                Field::required("role", words(2, 80), "Words of the labor category"),
                Field::optional("min_years_experience", whole(0, 45), "Minimum years of experience"),
                Field::optional(
                    "education",
                    Kind::Choice(&["high_school", "associates", "bachelors", "masters", "doctorate"]),
                    "Exactly this level",
                ),
                limit(20),
            ],
            example: || json!({"role": "software engineer", "limit": 1}),
            ..LOOKUP
        },
        source: &CALC,
        requests: &[Request {
            paths: &["/acquisition/calc/v3/api/ceilingrates/"],
            query: &[
                Pair::One("keyword", "{role}"),
                Pair::One("filter", "experience_range:{min_years_experience},45"),
                Pair::One("filter", "education_level:{level}"),
                Pair::One("ordering", "current_price"),
                Pair::One("sort", "asc"),
                // This source returns twenty rows whatever the size, and ignores filters that it does not know.
                Pair::One("page", "1"),
                Pair::One("page_size", "{limit=10}"),
            ],
            genuine: &["/hits/hits"],
            ..GET
        }],
        derive: |input, _| {
            let level = input.get("education").and_then(Value::as_str).map(|level| match level {
                "high_school" => "HS",
                "associates" => "AA",
                "bachelors" => "BA",
                "masters" => "MA",
                _ => "PHD",
            });
            input.extend(level.map(|level| ("level".to_owned(), json!(level))));
        },
        found: "/hits/hits",
        answer: &[
            integer("total", "/hits/total/value"),
            number("average", "/aggregations/wage_stats/avg"),
            number("low", "/aggregations/wage_stats/min"),
            number("high", "/aggregations/wage_stats/max"),
            number("median", "/aggregations/histogram_percentiles/values/50.0"),
            rows(
                "rates",
                "/hits/hits/*/_source",
                &[
                    text("labor_category", "/labor_category"),
                    number("hourly_usd", "/current_price"),
                    text("contractor", "/vendor_name"),
                    text("contract", "/idv_piid"),
                    text("business_size", "/business_size"),
                    text("education", "/education_level"),
                    integer("years_experience", "/min_years_experience"),
                    text("clearance", "/security_clearance"),
                    text("worksite", "/worksite"),
                    date("contract_ends_on", "/contract_end"),
                ],
                10,
            ),
        ],
        notice: Some("Ceilings that contracts allow, not what was paid."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "market_freight_index",
            title: "Freight index",
            summary: "The US Freight Transportation Services Index by month, newest first (2000 = 100)",
            paths: &["/v1/tools/lookup/market-freight-index"],
            input: &[
                Field::optional("months", whole(1, 60), "How many months; 12 where left out"),
                Field::optional("start_month", formed(&MONTH), "Not before this month"),
            ],
            example: || json!({"months": 1}),
            ..LOOKUP
        },
        source: &BTS,
        requests: &[Request {
            paths: &["/resource/bw6n-ddqk.json"],
            query: &[
                Pair::One("$where", "obs_date >= '{start_month}-01T00:00:00'"),
                Pair::One("$order", "obs_date DESC"),
                Pair::One("$limit", "{months=12}"),
            ],
            ..SODA_GET
        }],
        found: "",
        answer: &[list(
            "months",
            "",
            &[
                date("month", "/obs_date"),
                number("freight", "/tsi_freight"),
                number("passenger", "/tsi_passenger"),
                number("total", "/tsi_total"),
            ],
            60,
        )],
        notice: Some("Volume, not prices; recent months are revised."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "market_exchange_rate",
            title: "Exchange rate",
            summary: "Reference rates of the European Central Bank between two currencies, today's or of a day since 1999",
            paths: &["/v1/tools/lookup/market-exchange-rate"],
            input: &[
                Field::required("base", formed(&CURRENCY), "From this currency"),
                Field::required("quote", formed(&CURRENCY), "Into this one"),
                day("day", "Of this day; the newest where left out"),
            ],
            example: || json!({"base": "USD", "quote": "EUR", "day": "2026-11-20"}),
            ..LOOKUP
        },
        source: &FRANKFURTER,
        requests: &[Request {
            paths: &["/v1/{day=latest}"],
            query: &[Pair::One("base", "{base}"), Pair::One("symbols", "{quote}")],
            absent: &[404, 422],
            genuine: &["/rates"],
            ..GET
        }],
        reshape: |mut answer, input| {
            let quote = input.get("quote").and_then(Value::as_str).unwrap_or_default();
            let rate = answer["rates"].get(quote).cloned().unwrap_or_default();
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("rate".to_owned(), rate);
            }
            answer
        },
        found: "/rate",
        answer: &[text("base", "/base"), number("rate", "/rate"), date("day", "/date")],
        notice: Some("Reference rates, set once a working day; not an offer."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "market_treasury_rates",
            title: "Treasury interest rates",
            summary: "Average interest rates on US Treasury securities by month and kind, newest first",
            paths: &["/v1/tools/lookup/market-treasury-rates"],
            input: &[Field::optional("security", words(3, 60), "Such as Treasury Bills"), limit(50)],
            example: || json!({"security": "Treasury Bills", "limit": 1}),
            ..LOOKUP
        },
        source: &FISCAL_DATA,
        requests: &[Request {
            paths: &["/services/api/fiscal_service/v2/accounting/od/avg_interest_rates"],
            query: &[
                Pair::One("filter", "security_desc:eq:{security}"),
                Pair::One("sort", "-record_date"),
                Pair::One("page[size]", "{limit=20}"),
            ],
            genuine: &["/data"],
            ..GET
        }],
        found: "/data",
        answer: &[rows(
            "rates",
            "/data",
            &[
                date("month", "/record_date"),
                text("kind", "/security_type_desc"),
                text("security", "/security_desc"),
                number("percent", "/avg_interest_rate_amt"),
            ],
            20,
        )],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "market_country_indicator",
            title: "Country indicator",
            summary: "A World Bank indicator of a country by year, newest first: output, inflation, population and others",
            paths: &["/v1/tools/lookup/market-country-indicator"],
            input: &[
                Field::required("country", formed(&TOKEN), "ISO code, such as DE or DEU"),
                Field::required("indicator", formed(&TOKEN), "The World Bank's code, such as NY.GDP.MKTP.CD"),
                limit(50),
            ],
            example: || json!({"country": "DE", "indicator": "NY.GDP.MKTP.CD", "limit": 1}),
            ..LOOKUP
        },
        source: &WORLD_BANK,
        requests: &[Request {
            paths: &["/v2/country/{country}/indicator/{indicator}"],
            query: &[Pair::One("format", "json"), Pair::One("per_page", "{limit=20}")],
            // An unknown country or indicator gives a message in place of the page.
            genuine: &["/0/page", "/0/message"],
            ..GET
        }],
        found: "/1",
        answer: &[
            text("indicator", "/1/0/indicator/value"),
            text("country", "/1/0/country/value"),
            integer("total", "/0/total"),
            date("updated_on", "/0/lastupdated"),
            rows("years", "/1", &[text("year", "/date"), number("value", "/value")], 20),
        ],
        keep: DAYS_7,
        ..ROW
    },
];
