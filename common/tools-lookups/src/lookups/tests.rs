//! Every row against a mock server: its request for the example, its result for a documented answer, and that no answer
//! makes it panic or break its schema.
//!
//! `fixtures/<family>.json` has for each row the answers (shapes as on the pages named beside the row's source, read Nov
//! 2026 in stored copies), the requests, and the result. `BLESS=1 cargo test -p tools-lookups lookups::tests` rewrites
//! requests and results; read the changes before you commit them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::Timestamp;
use base::input::validate;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::snapshot::{self, Record};
use tools::{Toolbox, testing};

use super::row::{Lookup, Turn};
use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_795_255_200);
const FAMILIES: [&str; 10] =
    ["vehicles", "companies", "businesses", "health", "products", "molecules", "genes", "places", "records", "market"];

fn fixtures() -> BTreeMap<&'static str, Map<String, Value>> {
    let read = |family: &'static str| {
        let text = std::fs::read_to_string(file(family)).expect("a file of fixtures");
        (family, serde_json::from_str(&text).expect("JSON"))
    };
    FAMILIES.into_iter().map(read).collect()
}

fn file(family: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("src/lookups/fixtures/{family}.json"))
}

/// The answers to one row, in order, and its requests.
#[derive(Clone, Default)]
struct Contract {
    answers: Arc<Mutex<Vec<(u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
    key_headers: Arc<Mutex<BTreeSet<String>>>,
}

/// A minimal HTTP server: one request per connection.
async fn serve(contract: Contract) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    async fn answer(contract: Contract, mut stream: tokio::net::TcpStream) -> std::io::Result<()> {
        let mut read = Vec::new();
        let (head, mut body) = loop {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).await?;
            read.extend(&piece[..count]);
            let text = String::from_utf8_lossy(&read).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                break (head.to_owned(), body.to_owned());
            }
            if count == 0 {
                return Ok(());
            }
        };
        let header = |name: &str| {
            let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
            lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        let length = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        while body.len() < length {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).await?;
            body.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        assert!(header("user-agent").unwrap().contains("(+"), "who asks is said");
        for name in ["authorization", "x-app-token", "apikey"] {
            let said = header(name).map(|value| format!("{name}: {value}"));
            contract.key_headers.lock().unwrap().extend(said);
        }
        let asked = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1");
        let body = if body.is_empty() { String::new() } else { format!(" {body}") };
        contract.asked.lock().unwrap().push(format!("{asked}{body}"));
        let (status, text) = {
            let mut answers = contract.answers.lock().unwrap();
            if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
        };
        let head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
        stream.write_all(format!("{head}{text}").as_bytes()).await
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(contract.clone(), stream));
        }
    });
    url
}

/// A toolbox whose sources are all at one address, with a key for each source that takes one.
fn toolbox_at(url: &str) -> Arc<Toolbox> {
    let mut urls = Map::new();
    let mut keys = Map::new();
    for row in ROWS.iter() {
        for source in row.requests.iter().filter_map(|request| request.source).chain([row.source]) {
            urls.insert(source.provider.to_owned(), json!(url));
            keys.insert(source.provider.to_owned(), json!("a-key"));
        }
    }
    let (urls, keys) = (Value::Object(urls).to_string(), Value::Object(keys).to_string());
    testing::toolbox(&[("PROVIDER_URLS", &urls), ("PROVIDER_KEYS", &keys), ("BASE_URL", "https://tools.example")])
}

fn example(row: &Lookup) -> Map<String, Value> {
    let example = row.spec.example();
    validate(row.spec.input, example.as_object().unwrap()).unwrap()
}

async fn fresh(row: &Lookup, url: &str) -> Result<Value, platform::providers::OutboundError> {
    let deadline = Instant::now() + Duration::from_secs(20);
    engine::fresh(&toolbox_at(url), row, &example(row), NOW, deadline).await
}

/// The schema with additional properties forbidden.
fn closed(mut schema: Value) -> Value {
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(members) => {
                if members.contains_key("properties") {
                    members.insert("additionalProperties".to_owned(), json!(false));
                }
                members.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut schema);
    schema
}

#[tokio::test]
async fn every_row_matches_its_fixture() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut fixtures = fixtures();
    let mut tried = BTreeSet::new();
    for (family, rows) in &mut fixtures {
        for (name, fixture) in rows.iter_mut() {
            let row = find(name).unwrap_or_else(|| panic!("{name} is no row"));
            tried.insert(row.spec.name);
            let answers = fixture["answers"].as_array().unwrap();
            let contract = Contract::default();
            *contract.answers.lock().unwrap() = answers.iter().map(|answer| (200, answer.to_string())).collect();
            let url = serve(contract.clone()).await;
            let mut result = fresh(row, &url).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            let validator = jsonschema::validator_for(&closed(output(&row.spec))).unwrap();
            assert!(validator.is_valid(&result), "{name}: {:?}", validator.iter_errors(&result).collect::<Vec<_>>());
            assert_eq!(result["found"], true, "{name} finds its example: {result}");
            for member in ["source", "as_of", "cached", "notice"] {
                result.as_object_mut().unwrap().remove(member);
            }
            let requests = json!(*contract.asked.lock().unwrap());
            let (_, keyed) = (family, contract.key_headers.lock().unwrap());
            assert!(keyed.iter().all(|header| header.ends_with("a-key")), "{name}: {keyed:?}");
            if bless {
                fixture["requests"] = requests;
                fixture["result"] = result;
            } else {
                assert_eq!(fixture["requests"], requests, "{name}");
                assert_eq!(fixture["result"], result, "{name}");
            }
        }
    }
    if bless {
        for (family, rows) in &fixtures {
            std::fs::write(file(family), serde_json::to_string_pretty(rows).unwrap() + "\n").unwrap();
        }
    }
    let asking = ROWS.iter().filter(|row| !row.requests.is_empty()).map(|row| row.spec.name);
    assert_eq!(asking.collect::<BTreeSet<_>>(), tried, "every row that asks somebody has a fixture");
    assert!(ROWS.len() >= 60, "{}", ROWS.len());
}

#[tokio::test]
async fn failing_sources_and_malformed_answers_are_errors() {
    let row = find("vehicle_recalls").unwrap();
    for (status, text) in [
        (200, "<html><title>Maintenance</title>"),
        (200, "{\"error\": \"later\"}"),
        (200, "[]"),
        (200, ""),
        (500, "{}"),
        (401, "{}"),
        (302, ""),
    ] {
        let contract = Contract::default();
        *contract.answers.lock().unwrap() = vec![(status, text.to_owned())];
        let url = serve(contract.clone()).await;
        assert!(fresh(row, &url).await.is_err(), "{status} {text}");
    }
    // A 429 is retried after the time it names.
    let contract = Contract::default();
    *contract.answers.lock().unwrap() =
        vec![(429, String::new()), (200, json!({"results": [], "Count": 0}).to_string())];
    let url = serve(contract.clone()).await;
    let nothing = fresh(row, &url).await.unwrap();
    assert_eq!((&nothing["found"], &nothing["recalls"], &nothing["total"]), (&json!(false), &json!([]), &json!(0)));
    assert_eq!(contract.asked.lock().unwrap().len(), 2);
    // "No such record", reported by the status.
    let contract = Contract::default();
    *contract.answers.lock().unwrap() = vec![(404, "{\"error\":{\"code\":\"NOT_FOUND\"}}".to_owned())];
    let url = serve(contract).await;
    let nothing = fresh(find("product_drug_label").unwrap(), &url).await.unwrap();
    assert_eq!((&nothing["found"], &nothing["labels"]), (&json!(false), &json!([])));
    // A missing key where one is required.
    let keyless = testing::toolbox(&[]);
    let row = find("record_court_cases_find").unwrap();
    let deadline = Instant::now() + Duration::from_secs(1);
    let error = engine::fresh(&keyless, row, &example(row), NOW, deadline).await.unwrap_err();
    assert!(matches!(error, platform::providers::OutboundError::NotConfigured(_)), "{error}");
}

/// Failures that sources report with a success status (or with the status of "no such record"). Next to each failure is the
/// same source's "nothing found". A failure is refunded; "nothing found" is a result.
#[tokio::test]
async fn failures_inside_answers_are_errors() {
    const FAILED: bool = false;
    const NOTHING: bool = true;
    for (name, status, text, outcome) in [
        // GraphQL.
        (
            "gene_diseases",
            200,
            r#"{"errors":[{"message":"Internal server error"}],"data":{"target":null,"search":null}}"#,
            FAILED,
        ),
        ("gene_diseases", 200, r#"{"data":{"search":{"hits":[]}}}"#, NOTHING),
        ("protein_structure", 200, r#"{"status":500,"message":"later","result_set":[]}"#, FAILED),
        // NCBI.
        (
            "gene_resolve",
            200,
            r#"{"header":{},"esearchresult":{"ERROR":"Search Backend failed","count":"0","idlist":[]}}"#,
            FAILED,
        ),
        ("gene_resolve", 200, r#"{"error":"API rate limit exceeded","esearchresult":{"idlist":[]}}"#, FAILED),
        (
            "gene_resolve",
            200,
            r#"{"esearchresult":{"count":"0","idlist":[],"errorlist":{"phrasesnotfound":["X"]}}}"#,
            NOTHING,
        ),
        ("gene_publications", 200, r#"{"linksets":[{"ids":["7157"],"ERROR":"timed out"}]}"#, FAILED),
        // ArcGIS.
        (
            "place_flood_zone",
            200,
            r#"{"error":{"code":400,"message":"Unable to complete operation."},"features":[]}"#,
            FAILED,
        ),
        ("place_flood_zone", 200, r#"{"features":[]}"#, NOTHING),
        // Raw search engine answers.
        ("company_consumer_complaints", 200, r#"{"timed_out":true,"hits":{"hits":[],"total":{"value":0}}}"#, FAILED),
        ("market_federal_labor_rates", 200, r#"{"_shards":{"failed":2},"hits":{"hits":[]}}"#, FAILED),
        (
            "company_consumer_complaints",
            200,
            r#"{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[]}}"#,
            NOTHING,
        ),
        // A list of the wrong type, or with wrong entries.
        ("record_court_cases_find", 200, r#"{"results":"x","count":0}"#, FAILED),
        ("record_court_cases_find", 200, r#"{"results":[null,1,"x",{}],"count":3}"#, FAILED),
        ("record_court_cases_find", 200, r#"{"results":{"detail":"throttled"},"count":1}"#, FAILED),
        ("company_lobbying", 200, r#"{"results":"x","count":1}"#, FAILED),
        ("product_drug_label", 200, r#"{"meta":{"results":{"total":1}},"results":"x"}"#, FAILED),
        // Messages that report success or failure.
        ("vehicle_recalls", 200, r#"{"Count":0,"Message":"An error occurred","results":[]}"#, FAILED),
        ("vehicle_recalls", 400, r#"{"Count":0,"Message":"Results returned successfully","results":[]}"#, NOTHING),
        ("vehicle_recalls", 400, "<h1>Bad Request</h1>", FAILED),
        (
            "vehicle_crash_ratings",
            200,
            r#"{"Count":0,"Message":"No results found for this request","Results":[]}"#,
            NOTHING,
        ),
        (
            "record_publication",
            200,
            r#"{"status":"failed","message-type":"validation-failure","message":{"DOI":null}}"#,
            FAILED,
        ),
        // Error codes.
        (
            "market_country_indicator",
            200,
            r#"[{"message":[{"id":"105","key":"Service currently unavailable","value":""}]}]"#,
            FAILED,
        ),
        ("market_country_indicator", 200, r#"[{"message":[{"id":"120","key":"Invalid value","value":""}]}]"#, NOTHING),
        ("record_package_vulnerabilities", 200, r#"{"code":14,"message":"unavailable"}"#, FAILED),
        ("record_package_vulnerabilities", 200, "{}", NOTHING),
        // Error members.
        (
            "company_vat_registration",
            200,
            r#"{"actionSucceed":false,"valid":false,"errorWrappers":[{"error":"MS_UNAVAILABLE"}]}"#,
            FAILED,
        ),
        (
            "company_vat_registration",
            200,
            r#"{"countryCode":"IE","vatNumber":"1","valid":false,"name":"---"}"#,
            NOTHING,
        ),
        (
            "company_environmental_compliance",
            200,
            r#"{"Results":{"QueryRows":"0","Error":{"ErrorMessage":"Queryset Limit would be exceeded"}}}"#,
            FAILED,
        ),
        (
            "person_health_provider",
            200,
            r#"{"Errors":[{"description":"unavailable","number":"1"}],"results":[]}"#,
            FAILED,
        ),
        ("person_health_provider", 200, r#"{"result_count":0,"results":[]}"#, NOTHING),
        ("place_tides", 200, r#"{"error":{"message":"No Predictions data was found."},"predictions":[]}"#, FAILED),
        ("company_government_registration", 200, r#"{"errorCode":"X1","totalRecords":0,"entityData":[]}"#, FAILED),
        // A text instead of a record, and a wrong key with the status of "no such record".
        ("company_motor_carrier", 200, r#"{"content":"Webkey not found"}"#, FAILED),
        ("company_motor_carrier", 404, r#"{"content":"Webkey not found"}"#, FAILED),
        ("company_motor_carrier", 200, r#"{"content":null}"#, NOTHING),
        ("record_vulnerability", 404, "", FAILED),
        ("record_vulnerability", 200, r#"{"totalResults":0,"vulnerabilities":[]}"#, NOTHING),
        ("product_drug_label", 404, r#"{"error":{"code":"API_KEY_INVALID"}}"#, FAILED),
        ("product_drug_label", 404, r#"{"error":{"code":"NOT_FOUND","message":"No matches found!"}}"#, NOTHING),
        ("compound_properties", 404, r#"{"Fault":{"Code":"PUGREST.ServerBusy"}}"#, FAILED),
        ("compound_properties", 404, r#"{"Fault":{"Code":"PUGREST.NotFound","Message":"No CID found"}}"#, NOTHING),
        ("company_legal_identifier", 404, r#"{"errors":[{"status":"404","title":"Not Found"}]}"#, NOTHING),
    ] {
        let contract = Contract::default();
        *contract.answers.lock().unwrap() = vec![(status, text.to_owned())];
        let url = serve(contract.clone()).await;
        let answered = fresh(find(name).unwrap(), &url).await;
        match outcome {
            NOTHING => assert_eq!(answered.unwrap()["found"], false, "{name}: {text}"),
            FAILED => assert!(answered.is_err(), "{name} is paid for: {text}"),
        }
    }
}

/// Any JSON value.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "\\PC{0,20}".prop_map(Value::from),
        "[0-9/:TZ.,$-]{0,14}".prop_map(Value::from),
        Just(json!("9".repeat(400))),
        Just(json!("2".to_owned() + &"\u{202e}x".repeat(30_000))),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::btree_map("[a-z]{1,8}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Replaces the nth value.
fn spoil(value: &mut Value, count: &mut usize, with: &Value) -> bool {
    if *count == 0 {
        *value = with.clone();
        return true;
    }
    *count -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| spoil(item, count, with)),
        Value::Object(members) => members.values_mut().any(|item| spoil(item, count, with)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The result fits its schema whatever the answer is.
    #[test]
    fn no_answer_breaks_a_schema(hostile in anything(), places in proptest::collection::vec(0_usize..60, 4)) {
        static ALL: std::sync::LazyLock<Vec<(&'static Lookup, Vec<Value>, jsonschema::Validator)>> =
            std::sync::LazyLock::new(|| {
                let fixtures = fixtures();
                let answers = |name: &str| {
                    fixtures.values().find_map(|rows| rows.get(name)?["answers"].as_array().cloned()).unwrap_or_default()
                };
                ROWS.iter()
                    .map(|row| {
                        let validator = jsonschema::validator_for(&closed(output(&row.spec))).unwrap();
                        (*row, answers(row.spec.name), validator)
                    })
                    .collect()
            });
        for (row, documented, validator) in ALL.iter() {
            let mut input = example(row);
            (row.derive)(&mut input, NOW);
            let mut spoiled = documented.clone();
            spoiled.resize(row.requests.len().max(1), Value::Null);
            let mut answers = vec![hostile.clone(), Value::Array(vec![hostile.clone(); row.requests.len()])];
            for place in &places {
                let mut one = Value::Array(spoiled.clone());
                spoil(&mut one, &mut (place + 1), &hostile);
                answers.push(if row.requests.len() > 1 { one } else { one[0].clone() });
            }
            for answer in answers {
                for request in row.requests {
                    for take in request.take {
                        if let row::Take::Pick(_, pick) = take {
                            let _ = pick(&answer, &input);
                        }
                    }
                }
                let result = engine::result(row, (row.reshape)(answer.clone(), &input), &example(row), "2026-11-21");
                prop_assert!(
                    validator.is_valid(&result),
                    "{}: {:?}\n{answer}",
                    row.spec.name,
                    validator.iter_errors(&result).map(|error| error.to_string()).collect::<Vec<_>>()
                );
            }
        }
    }

    /// Any input can be filled in, and the request stays at its source.
    #[test]
    fn no_input_changes_the_source_of_a_request(text in "\\PC{1,40}") {
        for row in ROWS.iter() {
            let mut input = example(row);
            for value in input.values_mut().filter(|value| value.is_string()) {
                *value = json!(text);
            }
            (row.derive)(&mut input, NOW);
            for request in row.requests {
                for path in fill::paths(request, &input) {
                    prop_assert!(path.starts_with('/') && path.is_ascii(), "{path}");
                    prop_assert!(path.parse::<http::Uri>().is_ok(), "{path}");
                }
                let _ = request.body.map(|body| body(&input));
            }
        }
    }
}

#[test]
fn rows_are_complete_and_templates_are_valid() {
    let mut providers: BTreeMap<&str, &str> = BTreeMap::new();
    for row in ROWS.iter() {
        let name = row.spec.name;
        let sources = row.requests.iter().filter_map(|request| request.source).chain([row.source]);
        for source in sources {
            assert!(source.origin.starts_with("https://") && source.url.starts_with("https://"), "{name}");
            assert!(!source.licence.is_empty() && source.per_second > 0.0, "{name}");
            assert_eq!(*providers.entry(source.provider).or_insert(source.origin), source.origin, "{name}");
        }
        assert!(!row.requests.is_empty() || row.snapshot.is_some_and(|snapshot| snapshot.turn == Turn::Only), "{name}");
        let mut known: BTreeSet<String> = row.spec.input.iter().map(|field| field.name.to_owned()).collect();
        let templates = row.requests.iter().flat_map(|request| {
            let pairs = request.query.iter().flat_map(|pair| match pair {
                row::Pair::One(_, template) => vec![*template],
                row::Pair::Joined(_, _, clauses) => clauses.to_vec(),
            });
            request.paths.iter().copied().chain(pairs).collect::<Vec<_>>()
        });
        for template in templates {
            for placeholder in template.split('{').skip(1).filter_map(|rest| rest.split_once('}')) {
                let form = placeholder.0.split_once('|').map_or("", |(_, form)| form);
                assert!(fill::FORMS.contains(&form), "{name}: {template}");
                known.insert(placeholder.0.to_owned());
            }
        }
        let title = row.spec.title;
        assert!(title.len() <= 60 && row.spec.summary.len() <= 130, "{name}: {}", row.spec.summary.len());
        assert!(row.spec.paths[0].starts_with("/v1/tools/"), "{name}");
    }
}

struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl platform::store::Blobs for Memory {
    fn put<'a>(
        &'a self,
        key: &'a str,
        _: &'a str,
        bytes: Vec<u8>,
    ) -> platform::store::BoxFuture<'a, Result<(), platform::store::StoreError>> {
        self.0.lock().unwrap().insert(key.to_owned(), bytes);
        Box::pin(async { Ok(()) })
    }
    fn get<'a>(
        &'a self,
        key: &'a str,
    ) -> platform::store::BoxFuture<'a, Result<Option<Vec<u8>>, platform::store::StoreError>> {
        let found = self.0.lock().unwrap().get(key).cloned();
        Box::pin(async { Ok(found) })
    }
    fn part<'a>(
        &'a self,
        _: &'a str,
        _: u64,
        _: u64,
    ) -> platform::store::BoxFuture<'a, Result<Option<Vec<u8>>, platform::store::StoreError>> {
        Box::pin(async { Err(platform::store::StoreError::new("no parts here")) })
    }

    fn size<'a>(
        &'a self,
        _: &'a str,
    ) -> platform::store::BoxFuture<'a, Result<Option<u64>, platform::store::StoreError>> {
        Box::pin(async { Ok(None) })
    }
    fn delete<'a>(&'a self, key: &'a str) -> platform::store::BoxFuture<'a, Result<(), platform::store::StoreError>> {
        self.0.lock().unwrap().remove(key);
        Box::pin(async { Ok(()) })
    }
    fn url(
        &self,
        _: &str,
        _: platform::store::blob::Access<'_>,
        _: Duration,
    ) -> Result<String, platform::store::StoreError> {
        Err(platform::store::StoreError::new("none"))
    }
}

#[tokio::test]
async fn snapshots_match_by_key_and_similarity_and_never_clear_a_name() {
    let blobs = Memory(Mutex::default());
    assert!(snapshot::open(&blobs, "ofac").await.unwrap().is_none());
    let entry = |id: &str, kind: &str, names: &[&str]| Record {
        key: id.to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        value: json!({"id": id, "kind": kind, "name": names[0], "programs": ["CUBA"], "aliases": &names[1..]}),
    };
    let records = vec![
        entry("306", "entity", &["BANCO NACIONAL DE CUBA", "NATIONAL BANK OF CUBA", "BNC"]),
        entry("35096", "individual", &["PUTIN, Vladimir Vladimirovich"]),
        entry("2674", "individual", &["ABBAS, Abu", "ZAYDAN, Muhammad"]),
    ];
    let pointer = snapshot::publish(&blobs, "ofac", "2026-11-20", records).await.unwrap();
    assert_eq!(pointer.records, 3);
    let copy = snapshot::open(&blobs, "ofac").await.unwrap().unwrap();
    let look = |row: &str, name: &str| {
        let row = find(row).unwrap();
        let input = json!({"name": name});
        let found = (row.snapshot.unwrap().find)(&copy, input.as_object().unwrap());
        engine::result(row, found, input.as_object().unwrap(), &copy.as_of)
    };
    for name in
        ["Banco Nacional de Cuba", "nacional de cuba, BANCO", "Banco Naçional de Cuba S.A.", "National Bank of Cuba"]
    {
        let result = look("company_sanctions", name);
        assert_eq!(
            (&result["found"], &result["matches"][0]["entry_id"]),
            (&json!(true), &json!("306")),
            "{name}: {result}"
        );
        assert_eq!(result["as_of"], "2026-11-20");
        assert!(result["notice"].as_str().unwrap().contains("does not mean"), "never a clearance");
    }
    assert_eq!(look("person_sanctions", "Vladimir Putin")["matches"][0]["entry_id"], "35096");
    assert_eq!(look("person_sanctions", "Muhammed Zaydan")["matches"][0]["entry_id"], "2674");
    for (row, name) in [
        ("person_sanctions", "Banco Nacional de Cuba"),
        ("company_sanctions", "Acme Widgets"),
        ("person_sanctions", "Jane Doe"),
    ] {
        let miss = look(row, name);
        assert_eq!((&miss["found"], &miss["total"]), (&json!(false), &json!(0)), "{name}");
        // A miss names the list and its date, and says that it does not clear the name.
        assert_eq!((&miss["list"], &miss["as_of"]), (&json!("SDN"), &json!("2026-11-20")));
        assert!(miss["notice"].as_str().unwrap().contains("No match does not mean that a party is clear"));
    }
    // A newer copy is used at once; a copy that is already open does not change.
    let newer = vec![entry("1", "entity", &["ACME WIDGETS"])];
    snapshot::publish(&blobs, "ofac", "2026-11-21", newer).await.unwrap();
    let now = snapshot::open(&blobs, "ofac").await.unwrap().unwrap();
    assert_eq!((now.as_of.as_str(), now.by_key("1").len(), copy.by_key("306").len()), ("2026-11-21", 1, 1));
}
