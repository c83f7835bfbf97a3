//! Records: regulations, court cases, vulnerabilities, publications, government registrations.

use base::input::{Field, Format, Kind};
use serde_json::{Value, json};
use tools::spec::ToolSpec;

use super::row::*;

/// <https://www.federalregister.gov/developers/documentation/api/v1> (read Nov 2026).
static FEDERAL_REGISTER: Source = Source {
    provider: "federalregister",
    origin: "https://www.federalregister.gov",
    name: "US Office of the Federal Register",
    url: "https://www.federalregister.gov/",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

/// <https://www.courtlistener.com/help/api/rest/search/> (version 4, read Nov 2026).
static COURT_LISTENER: Source = Source {
    provider: "courtlistener",
    origin: "https://www.courtlistener.com",
    name: "Free Law Project, CourtListener",
    url: "https://www.courtlistener.com/",
    licence: "Public domain court records; CourtListener's terms of use",
    key: Key::Header("authorization", "Token "),
    failed: &[Failed::At("/detail")],
    ..SOURCE
};

/// <https://nvd.nist.gov/developers/vulnerabilities> (version 2.0, read Nov 2026): 5 requests in 30 seconds, 50 with a key.
static NVD: Source = Source {
    provider: "nvd",
    origin: "https://services.nvd.nist.gov",
    name: "US National Vulnerability Database (this product uses the NVD API but is not endorsed or certified by the NVD)",
    url: "https://nvd.nist.gov/",
    licence: US_PUBLIC,
    per_second: 0.2,
    key: Key::MayHeader("apikey", ""),
    failed: &[Failed::At("/error"), Failed::At("/message")],
};

/// <https://google.github.io/osv.dev/api/> (read Nov 2026).
static OSV: Source = Source {
    provider: "osv",
    origin: "https://api.osv.dev",
    name: "OSV, open source vulnerabilities",
    url: "https://osv.dev/",
    licence: "CC BY 4.0 and the databases' own",
    per_second: 5.0,
    failed: &[Failed::At("/code")],
    ..SOURCE
};

/// <https://api.crossref.org/swagger-ui/index.html> (read Nov 2026).
static CROSSREF: Source = Source {
    provider: "crossref",
    origin: "https://api.crossref.org",
    name: "Crossref",
    url: "https://www.crossref.org/",
    licence: "Metadata free to use",
    per_second: 3.0,
    failed: &[Failed::Unless("/status", &["ok"])],
    ..SOURCE
};

/// <https://open.gsa.gov/api/entity-api/> (version 3, read Nov 2026).
static SAM: Source = Source {
    provider: "sam",
    origin: "https://api.sam.gov",
    name: "US General Services Administration, SAM.gov",
    url: "https://sam.gov/",
    licence: US_PUBLIC,
    key: Key::Query("api_key"),
    failed: &[Failed::At("/error"), Failed::At("/errorCode")],
    ..SOURCE
};

static DOI: Format = Format {
    name: None,
    pattern: Some("^10\\.[0-9]{4,9}/[^ ]{1,180}$"),
    matches: |text| {
        text.strip_prefix("10.").and_then(|rest| rest.split_once('/')).is_some_and(|(prefix, suffix)| {
            (4..=9).contains(&prefix.len())
                && prefix.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
                && !suffix.is_empty()
                && suffix.bytes().all(|byte| byte.is_ascii_graphic())
        })
    },
    message: "must be a DOI, such as 10.1038/nature12373",
};

static PUBLICATION: &[Member] = &[
    text("doi", "/DOI"),
    texts("titles", "/title"),
    texts("authors", "/named_authors"),
    texts("journals", "/container-title"),
    text("publisher", "/publisher"),
    text("kind", "/type"),
    integer("year", "/published/date-parts/0/0|/issued/date-parts/0/0"),
    integer("cited_by", "/is-referenced-by-count"),
    link("url", "/URL"),
];

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "record_federal_register_find",
            title: "Federal Register documents",
            summary: "US rules, proposed rules, notices and presidential documents by words, newest first, with abstract",
            paths: &["/v1/tools/find/record-federal-register"],
            input: &[
                Field::required("query", words(2, 200), "Search words"),
                Field::optional(
                    "type",
                    Kind::Choice(&["rule", "proposed_rule", "notice", "presidential"]),
                    "Only this kind",
                ),
                Field::optional("agency", formed(&TOKEN), "The agency's slug, such as federal-aviation-administration"),
                day("published_after", "Published on or after this day"),
                day("published_before", "Published on or before this day"),
                limit(20),
            ],
            example: || json!({"query": "drone registration", "type": "rule", "limit": 1}),
            ..LOOKUP
        },
        source: &FEDERAL_REGISTER,
        requests: &[Request {
            paths: &["/api/v1/documents.json"],
            query: &[
                Pair::One("conditions[term]", "{query}"),
                Pair::One("conditions[type][]", "{code}"),
                Pair::One("conditions[agencies][]", "{agency}"),
                Pair::One("conditions[publication_date][gte]", "{published_after}"),
                Pair::One("conditions[publication_date][lte]", "{published_before}"),
                Pair::One("order", "newest"),
                Pair::One("per_page", "{limit=10}"),
            ],
            genuine: &["/count"],
            ..GET
        }],
        derive: |input, _| {
            let code = input.get("type").and_then(Value::as_str).map(|kind| match kind {
                "rule" => "RULE",
                "proposed_rule" => "PRORULE",
                "notice" => "NOTICE",
                _ => "PRESDOCU",
            });
            input.extend(code.map(|code| ("code".to_owned(), json!(code))));
        },
        found: "/results",
        answer: &[
            integer("total", "/count"),
            rows(
                "documents",
                "/results",
                &[
                    text("document_number", "/document_number"),
                    text("title", "/title"),
                    text("kind", "/type"),
                    text("abstract", "/abstract"),
                    date("published_on", "/publication_date"),
                    texts("agencies", "/agencies/*/name"),
                    link("url", "/html_url"),
                    link("pdf_url", "/pdf_url"),
                ],
                10,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "record_court_cases_find",
            title: "Court cases",
            summary: "Published US court opinions or federal dockets by words: names, courts, dates, citations, links",
            paths: &["/v1/tools/find/record-court-cases"],
            input: &[
                Field::required("query", words(1, 500), "Search words; quotes for a phrase, AND, OR, NOT"),
                Field::optional("kind", Kind::Choice(&["opinions", "dockets"]), "opinions where left out"),
                Field::optional("court", formed(&TOKEN), "The court's short id, such as scotus"),
                day("filed_after", "Filed on or after this day"),
                day("filed_before", "Filed on or before this day"),
                Field::optional("case_name", words(1, 200), "Words of the case's name"),
                Field::optional("docket_number", words(1, 100), "The docket number"),
                limit(20),
            ],
            example: || json!({"query": "patent", "court": "cafc", "case_name": "Merck", "filed_after": "2025-01-01", "limit": 1}),
            ..LOOKUP
        },
        source: &COURT_LISTENER,
        requests: &[Request {
            paths: &["/api/rest/v4/search/"],
            query: &[
                Pair::One("q", "{query}"),
                Pair::One("type", "{code}"),
                Pair::One("court", "{court}"),
                Pair::One("filed_after", "{filed_after}"),
                Pair::One("filed_before", "{filed_before}"),
                Pair::One("case_name", "{case_name}"),
                Pair::One("docket_number", "{docket_number}"),
                Pair::One("order_by", "score desc"),
            ],
            genuine: &["/results"],
            ..GET
        }],
        derive: |input, _| {
            let is_docket = input.get("kind").and_then(Value::as_str) == Some("dockets");
            input.insert("code".to_owned(), json!(if is_docket { "r" } else { "o" }));
        },
        reshape: |mut answer, _| {
            for row in answer.get_mut("results").and_then(Value::as_array_mut).into_iter().flatten() {
                let path = row["absolute_url"].as_str().or(row["docket_absolute_url"].as_str()).map(str::to_owned);
                if let (Some(path), Some(row)) = (path.filter(|path| path.starts_with('/')), row.as_object_mut()) {
                    row.insert("url".to_owned(), json!(format!("https://www.courtlistener.com{path}")));
                }
            }
            answer
        },
        found: "/results",
        answer: &[
            integer("total", "/count"),
            rows(
                "cases",
                "/results",
                &[
                    text("case_name", "/caseName"),
                    text("court", "/court"),
                    text("court_id", "/court_id"),
                    date("filed_on", "/dateFiled"),
                    text("docket_number", "/docketNumber"),
                    texts("citations", "/citation"),
                    made("excerpt", "/opinions/0/snippet|/recap_documents/0/snippet|/snippet", As::Text(500)),
                    link("url", "/url"),
                ],
                10,
            ),
        ],
        notice: Some(
            "Not for credit, insurance, employment, housing or other eligibility decisions under the US Fair Credit Reporting \
             Act. Coverage varies by court.",
        ),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "record_vulnerability",
            title: "Vulnerability",
            summary: "A CVE in the US National Vulnerability Database: description, severity, weaknesses, known exploitation",
            paths: &["/v1/tools/lookup/record-vulnerability"],
            input: &[Field::required("cve_id", formed(&CVE), "The identifier, such as CVE-2021-44228")],
            example: || json!({"cve_id": "CVE-2021-44228"}),
            ..LOOKUP
        },
        source: &NVD,
        requests: &[Request {
            paths: &["/rest/json/cves/2.0"],
            // An unknown CVE gives an empty list; 404 means a wrong key.
            query: &[Pair::One("cveId", "{cve_id|upper}")],
            genuine: &["/vulnerabilities"],
            ..GET
        }],
        reshape: |answer, _| {
            let mut cve = answer.pointer("/vulnerabilities/0/cve").cloned().unwrap_or_default();
            // The newest CVSS version, and its primary score.
            let metrics = ["cvssMetricV40", "cvssMetricV31", "cvssMetricV30", "cvssMetricV2"];
            let scores =
                metrics.iter().find_map(|version| cve["metrics"][*version].as_array()).cloned().unwrap_or_default();
            let primary = scores.iter().find(|score| score["type"] == "Primary").or(scores.first()).cloned();
            let english =
                cve["descriptions"].as_array().into_iter().flatten().find(|text| text["lang"] == "en").cloned();
            if let Some(cve) = cve.as_object_mut() {
                cve.insert("score".to_owned(), primary.unwrap_or_default());
                cve.insert("english".to_owned(), english.unwrap_or_default());
                let exploited = cve.contains_key("cisaExploitAdd");
                cve.insert("exploited".to_owned(), json!(exploited));
            }
            cve
        },
        found: "/id",
        answer: &[
            text("cve_id", "/id"),
            text("status", "/vulnStatus"),
            made("description", "/english/value", As::Text(5_000)),
            text("published_at", "/published"),
            text("modified_at", "/lastModified"),
            number("score", "/score/cvssData/baseScore"),
            text("severity", "/score/cvssData/baseSeverity|/score/baseSeverity"),
            text("vector", "/score/cvssData/vectorString"),
            texts("weaknesses", "/weaknesses/*/description/*/value"),
            flag("known_exploited", "/exploited"),
            date("known_exploited_on", "/cisaExploitAdd"),
            date("action_due_on", "/cisaActionDue"),
            text("required_action", "/cisaRequiredAction"),
            list("references", "/references", &[link("url", "/url"), texts("tags", "/tags")], 10),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "record_package_vulnerabilities",
            title: "Package vulnerabilities",
            summary: "Known vulnerabilities of an open source package, at a version where one is given (OSV)",
            paths: &["/v1/tools/lookup/record-package-vulnerabilities"],
            input: &[
                Field::required(
                    "ecosystem",
                    Kind::Choice(&[
                        "npm",
                        "PyPI",
                        "crates.io",
                        "Go",
                        "Maven",
                        "NuGet",
                        "RubyGems",
                        "Packagist",
                        "Pub",
                        "Hex",
                    ]),
                    "Where it is published",
                ),
                Field::required("package", words(1, 200), "Its name there"),
                Field::optional("version", words(1, 60), "Only what affects this version"),
                limit(50),
            ],
            example: || json!({"ecosystem": "PyPI", "package": "jinja2", "version": "2.4.1", "limit": 1}),
            ..LOOKUP
        },
        source: &OSV,
        requests: &[Request {
            paths: &["/v1/query"],
            body: Some(|input| {
                let mut body = json!({"package": {"name": input.get("package"), "ecosystem": input.get("ecosystem")}});
                if let Some(version) = input.get("version") {
                    body["version"] = version.clone();
                }
                body
            }),
            // No known vulnerability is an empty object.
            genuine: &["{}"],
            ..GET
        }],
        reshape: |mut answer, _| {
            let count = answer["vulns"].as_array().map_or(0, Vec::len);
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("total".to_owned(), json!(count));
            }
            answer
        },
        found: "/vulns",
        answer: &[
            integer("total", "/total"),
            rows(
                "vulnerabilities",
                "/vulns",
                &[
                    text("id", "/id"),
                    text("summary", "/summary"),
                    made("details", "/details", As::Text(1_000)),
                    texts("aliases", "/aliases"),
                    texts("severity", "/severity/*/score"),
                    texts("fixed_in", "/affected/*/ranges/*/events/*/fixed"),
                    date("published_on", "/published"),
                    date("modified_on", "/modified"),
                    list("references", "/references", &[text("kind", "/type"), link("url", "/url")], 5),
                ],
                20,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "record_publication",
            title: "Publication",
            summary: "A scholarly work by DOI: titles, authors, journal, publisher, year, citations",
            paths: &["/v1/tools/lookup/record-publication"],
            input: &[Field::required("doi", formed(&DOI), "The DOI")],
            example: || json!({"doi": "10.1038/nature12373"}),
            ..LOOKUP
        },
        source: &CROSSREF,
        requests: &[Request { paths: &["/works/{doi}"], absent: &[404], genuine: &["/message/DOI"], ..GET }],
        reshape: |mut answer, _| {
            answer.get_mut("message").into_iter().for_each(name_authors);
            answer
        },
        found: "/message/DOI",
        answer: &[object("publication", "/message", PUBLICATION)],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "record_publications_find",
            title: "Publications",
            summary: "Scholarly works by words of title, author or journal, best match first",
            paths: &["/v1/tools/find/record-publications"],
            input: &[
                Field::required("query", words(2, 200), "Words of the title, an author, a journal"),
                day("published_after", "Published on or after this day"),
                limit(20),
            ],
            example: || json!({"query": "nanometre scale thermometry living cell", "limit": 1}),
            ..LOOKUP
        },
        source: &CROSSREF,
        requests: &[Request {
            paths: &["/works"],
            query: &[
                Pair::One("query.bibliographic", "{query}"),
                Pair::One("filter", "from-pub-date:{published_after}"),
                Pair::One("rows", "{limit=10}"),
            ],
            genuine: &["/message/items"],
            ..GET
        }],
        reshape: |mut answer, _| {
            let items = answer.pointer_mut("/message/items").and_then(Value::as_array_mut);
            items.into_iter().flatten().for_each(name_authors);
            answer
        },
        found: "/message/items",
        answer: &[integer("total", "/message/total-results"), rows("publications", "/message/items", PUBLICATION, 10)],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "company_government_registration",
            title: "Government registration",
            summary: "A US federal contractor's registration in SAM.gov by UEI, CAGE code or name: status, dates, place",
            paths: &["/v1/tools/lookup/company-government-registration"],
            input: &[
                Field::optional("uei", formed(&TOKEN), "The Unique Entity Identifier"),
                Field::optional("cage_code", formed(&TOKEN), "The CAGE code"),
                Field::optional("name", words(2, 120), "The legal name, or a part of it"),
                limit(10),
            ],
            check: |input, _| one_of(input, &["uei", "cage_code", "name"]),
            example: || json!({"uei": "ZFN2JJXBLZT3"}),
            ..LOOKUP
        },
        source: &SAM,
        requests: &[Request {
            paths: &["/entity-information/v3/entities"],
            query: &[
                Pair::One("ueiSAM", "{uei|upper}"),
                Pair::One("cageCode", "{cage_code|upper}"),
                Pair::One("legalBusinessName", "{name}"),
                Pair::One("includeSections", "entityRegistration,coreData"),
            ],
            genuine: &["/totalRecords"],
            ..GET
        }],
        found: "/entityData",
        answer: &[
            integer("total", "/totalRecords"),
            rows(
                "entities",
                "/entityData",
                &[
                    text("uei", "/entityRegistration/ueiSAM"),
                    text("name", "/entityRegistration/legalBusinessName"),
                    text("trade_name", "/entityRegistration/dbaName"),
                    text("cage_code", "/entityRegistration/cageCode"),
                    text("status", "/entityRegistration/registrationStatus"),
                    text("purpose", "/entityRegistration/purposeOfRegistrationDesc"),
                    flag("excluded", "/entityRegistration/exclusionStatusFlag"),
                    date("registered_on", "/entityRegistration/registrationDate"),
                    date("expires_on", "/entityRegistration/registrationExpirationDate"),
                    text("city", "/coreData/physicalAddress/city"),
                    text("state", "/coreData/physicalAddress/stateOrProvinceCode"),
                    text("country", "/coreData/physicalAddress/countryCode"),
                    link("website", "/coreData/entityInformation/entityURL"),
                ],
                5,
            ),
        ],
        ..ROW
    },
];

/// Authors as one string each: given and family name, or the name of a group.
fn name_authors(work: &mut Value) {
    let names: Vec<String> = work["author"]
        .as_array()
        .into_iter()
        .flatten()
        .take(30)
        .map(|author| match author["name"].as_str() {
            Some(name) => name.to_owned(),
            None => {
                let part = |name: &str| author[name].as_str().unwrap_or_default();
                format!("{} {}", part("given"), part("family")).trim().to_owned()
            }
        })
        .collect();
    if let Some(work) = work.as_object_mut() {
        work.insert("named_authors".to_owned(), json!(names));
    }
}
