//! Lookups as agents buy them: paid and answered at once, cached, paid back if no source answers; imported copies of
//! registers; local businesses and solicitations against contract servers.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use local::stack::Stack;
use serde_json::{Value, json};
use tools::snapshot;
use tools_lookups::lookups::import;

use crate::support::payer::{header, v1};
use crate::support::{Payer, run, stack, stack_with};

type Asked = Arc<Mutex<Vec<(String, HeaderMap, String)>>>;

/// A server that answers by path prefix and records its requests.
async fn serve(answers: &'static [(&'static str, u16, &'static str)]) -> (String, Asked) {
    #[derive(Clone)]
    struct Told(&'static [(&'static str, u16, &'static str)], Asked);
    async fn answer(
        State(Told(answers, asked)): State<Told>,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Response<Body> {
        asked.lock().unwrap().push((format!("{method} {uri}"), headers, String::from_utf8_lossy(&body).into_owned()));
        let fitting = answers.iter().find(|(path, ..)| uri.path().starts_with(path));
        let (_, status, text) = fitting.copied().unwrap_or(("", 404, "{}"));
        Response::builder().status(status).body(Body::from(text)).unwrap()
    }
    let asked = Asked::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Told(answers, asked.clone()));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, asked)
}

async fn stack_of(url: &str) -> Stack {
    let names = ["nhtsa", "gleif", "openfda", "nvd", "google_places", "overpass", "sam"];
    let urls: Value =
        names.iter().map(|name| ((*name).to_owned(), json!(url))).collect::<serde_json::Map<_, _>>().into();
    let keys = json!({"google_places": "places-key", "sam": "sam-key"});
    stack_with(|options| {
        options
            .with("PROVIDER_URLS", urls.to_string())
            .with("PROVIDER_KEYS", keys.to_string())
            .with("PLACES_PROVIDERS", "google_places,overpass")
    })
    .await
}

const RECALLS: &str = r#"{"Count":1,"results":[{"NHTSACampaignNumber":"20V771000","ReportReceivedDate":"15/12/2020","Component":"WINDOW","Summary":"It may not close."}]}"#;
const PLACES: &str = r#"{"places":[{"id":"p1","displayName":{"text":"Franklin Barbecue"},"formattedAddress":"900 E 11th St, Austin, TX 78702, USA","internationalPhoneNumber":"+1 512-653-1187","websiteUri":"https://www.franklinbbq.com/","rating":4.7,"userRatingCount":6500,"businessStatus":"OPERATIONAL","location":{"latitude":30.27,"longitude":-97.73},"primaryType":"barbecue_restaurant"},{"id":"p2","displayName":{"text":"Closed Pit"},"businessStatus":"CLOSED_PERMANENTLY"}]}"#;
const NOTICES: &str = r#"{"totalRecords":2,"opportunitiesData":[{"noticeId":"n1","title":"Custom software","solicitationNumber":"S-1","fullParentPathName":"GENERAL SERVICES ADMINISTRATION","type":"Sources Sought","naicsCode":"541511","postedDate":"2026-11-10","responseDeadLine":"2099-12-20T17:00:00-05:00","active":"Yes","pointOfContact":[{"fullName":"Pat Doe","email":"pat@gsa.example","phone":"1"}],"placeOfPerformance":{"state":{"code":"DC"}},"uiLink":"https://sam.gov/opp/n1/view","description":"http://169.254.169.254/"},{"noticeId":"n2","title":"Past","active":"No"}]}"#;

#[test]
fn a_lookup_is_answered_at_once_and_cached() {
    run(async {
        let (url, asked) = serve(&[("/recalls/", 200, RECALLS)]).await;
        let stack = stack_of(&url).await;
        let payer = Payer::new(&stack).await;
        let body = json!({"make": "Honda", "model": "CR-V", "model_year": 2019});
        let first = payer.buy("/v1/tools/lookup/vehicle-recalls", &body).await;
        assert_eq!(first.status, 200, "{}", first.text);
        let data = &first.json()["data"];
        assert_eq!((&data["tool"], &data["status"]), (&json!("vehicle_recalls"), &json!("completed")));
        let result = &data["result"];
        assert_eq!((&result["found"], &result["cached"]), (&json!(true), &json!(false)));
        assert_eq!(result["recalls"][0]["reported_on"], "2020-12-15");
        assert_eq!(result["source"]["name"], "US National Highway Traffic Safety Administration");

        // Another agent asks the same, with the members in another order and the number written differently.
        let other = Payer::new(&stack).await;
        let body = json!({"model_year": 2019.0, "model": "CR-V", "make": "Honda", "memo": "mine"});
        let second = other.buy("/v1/tools/lookup/vehicle-recalls", &body).await;
        let kept = &second.json()["data"]["result"];
        assert_eq!((&kept["cached"], &kept["recalls"]), (&json!(true), &result["recalls"]));
        assert_eq!(kept["as_of"], result["as_of"]);
        assert_eq!(asked.lock().unwrap().len(), 1);
        assert_eq!(other.balance(&stack).await, 1_000_000 - 5_000, "what is kept costs the same");
    });
}

#[test]
fn a_lookup_is_paid_back_when_its_source_fails() {
    run(async {
        let (url, _) = serve(&[("/rest/", 500, "{}"), ("/drug/", 404, "{}")]).await;
        let stack = stack_of(&url).await;
        let payer = Payer::new(&stack).await;
        let down = payer.buy("/v1/tools/lookup/record-vulnerability", &json!({"cve_id": "CVE-2021-44228"})).await;
        assert_eq!(down.status, 503, "{}", down.text);
        let body = down.json();
        assert_eq!((&body["error"], &body["credited_usdc"]), (&json!("provider_unavailable"), &json!("0.005000")));
        // "Nothing found" is an answer.
        let none = payer.buy("/v1/tools/lookup/product-drug-label", &json!({"drug_name": "nosuchdrug"})).await;
        assert_eq!((none.status, &none.json()["data"]["result"]["found"]), (200, &json!(false)), "{}", none.text);
        // Input that is visibly wrong is refused before a price is given.
        let both = json!({"lei": "DPRBOZP0K5RM2YE8UU08", "name": "Lockheed"});
        let refused = payer.client.post("/v1/tools/lookup/company-legal-identifier", &[], &both).await;
        assert_eq!(refused.error(), (400, "invalid_request".to_owned()));
    });
}

#[test]
fn imported_copies_answer_without_their_source() {
    run(async {
        let (url, _) = serve(&[("/api/v1/lei-records", 500, "{}")]).await;
        let stack = stack_of(&url).await;
        let payer = Payer::new(&stack).await;
        let sdn = "306,\"BANCO NACIONAL DE CUBA\",-0-,\"CUBA\",-0-,-0-,-0-,-0-,-0-,-0-,-0-,-0-\n";
        let records = import::records("ofac", sdn, None).unwrap();
        snapshot::publish(&*stack.app.blobs, "ofac", "2026-11-20", records).await.unwrap();
        let found =
            payer.buy("/v1/tools/lookup/company-sanctions", &json!({"name": "banco nacional de CUBA, S.A."})).await;
        assert_eq!(found.status, 200, "{}", found.text);
        let result = &found.json()["data"]["result"];
        assert_eq!((&result["total"], &result["as_of"]), (&json!(1), &json!("2026-11-20")));
        assert_eq!(result["matches"][0]["score"], 1.0);
        // The source is down, and the copy is used instead.
        let csv = "LEI,Entity.LegalName\nDPRBOZP0K5RM2YE8UU08,LOCKHEED MARTIN CORPORATION\n";
        let records = import::records("gleif", csv, None).unwrap();
        snapshot::publish(&*stack.app.blobs, "gleif", "2026-11-19", records).await.unwrap();
        let body = json!({"lei": "DPRBOZP0K5RM2YE8UU08"});
        let found = payer.buy("/v1/tools/lookup/company-legal-identifier", &body).await;
        let result = &found.json()["data"]["result"];
        assert_eq!(result["entities"][0]["name"], "LOCKHEED MARTIN CORPORATION", "{}", found.text);
        assert_eq!(result["as_of"], "2026-11-19");
    });
}

#[test]
fn businesses_and_solicitations_come_from_their_providers() {
    run(async {
        let (url, asked) = serve(&[
            ("/v1/places:searchText", 200, PLACES),
            ("/opportunities/", 200, NOTICES),
            ("/prod/", 200, r#"{"description":"Build\u202e it."}"#),
        ])
        .await;
        let stack = stack_of(&url).await;
        let payer = Payer::new(&stack).await;
        let body = json!({"category": ["barbecue"], "location": ["Austin, TX"], "has_domain": true, "limit": 25});
        let accepted = payer.buy("/v1/tools/find/business", &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let job = payer.finished(accepted.json()["request_id"].as_str().unwrap()).await;
        let result = &job["result"];
        assert_eq!((&result["total_found"], &result["vendor_calls"]), (&json!(1), &json!(1)), "{job}");
        assert_eq!(result["results"][0]["domain"], "franklinbbq.com");
        {
            let asked = asked.lock().unwrap();
            assert_eq!(asked[0].1["x-goog-api-key"], "places-key");
            assert!(asked[0].1["x-goog-fieldmask"].to_str().unwrap().contains("places.displayName"));
            assert_eq!(serde_json::from_str::<Value>(&asked[0].2).unwrap()["textQuery"], "barbecue in Austin, TX");
        }
        let body = json!({"name": "Franklin Barbecue", "address": "900 E 11th St", "city": "Austin"});
        let accepted = payer.buy("/v1/tools/local/resolve", &body).await;
        let job = payer.finished(accepted.json()["request_id"].as_str().unwrap()).await;
        assert_eq!((&job["result"]["found"], &job["result"]["result"]["id"]), (&json!(true), &json!("p1")), "{job}");

        let accepted = payer.buy("/v1/tools/gov/solicitations", &json!({"naics": ["541511"]})).await;
        let job = payer.finished(accepted.json()["request_id"].as_str().unwrap()).await;
        let result = &job["result"];
        assert_eq!((&result["total_found"], &result["description_fetches"]), (&json!(1), &json!(1)), "{job}");
        assert_eq!(result["results"][0]["description"], "Build it.");
        let asked = asked.lock().unwrap();
        let (search, description) = (&asked[asked.len() - 2].0, &asked[asked.len() - 1].0);
        assert!(search.contains("ncode=541511") && search.contains("ptype=r%2Cp"), "{search}");
        assert!(description.starts_with("GET /prod/opportunities/v1/noticedesc?noticeid=n1"), "{description}");
    });
}

#[test]
fn unavailable_lookups_have_no_price() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let empty = json!("");
        for (path, body, what) in [
            ("/v1/tools/local/search", json!({"category": ["cafe"], "location": ["Austin"]}), "PLACES_PROVIDERS"),
            ("/v1/tools/gov/solicitations", json!({"naics": ["541511"]}), "key for sam "),
            ("/v1/tools/find/record-court-cases", json!({"query": "patent"}), "key for courtlistener "),
            ("/v1/tools/research/articles", json!({"name": "Ada Stone", "company": "Brightkiln"}), "SEARCH_PROVIDERS"),
            ("/v1/tools/lookup/company-sanctions", json!({"name": "Banco Nacional de Cuba"}), "import-snapshot ofac"),
        ] {
            let payment = header(&v1(&payer.authorize(5_000)));
            let proof = payer.proof("write");
            let calls = [
                (&empty, vec![]),
                (&body, vec![]),
                (&body, vec![("x-dry-run", "true")]),
                (&body, vec![("x-agent-proof", proof.as_str())]),
                (&body, vec![("payment-signature", payment.as_str())]),
            ];
            for (body, headers) in calls {
                let text = if *body == empty { String::new() } else { body.to_string() };
                let answer = payer.client.send("POST", path, &headers, text).await.unwrap();
                assert_eq!(
                    answer.error(),
                    (503, "provider_unavailable".to_owned()),
                    "{path} {headers:?}: {}",
                    answer.text
                );
                let told = answer.json();
                assert_eq!(told["reason"], "provider_not_configured", "{told}");
                assert!(told["message"].as_str().unwrap().contains(what), "{told}");
            }
            // Invalid input is refused, whether or not the tool is available.
            assert_eq!(payer.client.post(path, &[], &json!({})).await.status, 400, "{path}");
        }
        assert_eq!(payer.balance(&stack).await, 1_000_000);
        // Checks that need no provider work.
        let checked = payer
            .buy("/v1/tools/lookup/identifier-check", &json!({"kind": "lei", "value": "DPRBOZP0K5RM2YE8UU08"}))
            .await;
        assert_eq!(
            (checked.status, &checked.json()["data"]["result"]["valid"]),
            (200, &json!(true)),
            "{}",
            checked.text
        );
    });
}

/// Prints how much an agent has to read to find a tool, to watch the sizes as lookups are added.
#[test]
fn long_tool_lists_are_paged_and_bounded_in_size() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let (mut names, mut cursor, mut largest) = (Vec::new(), String::new(), 0);
        loop {
            let page = payer.client.get(&format!("/v1/tools/discover?limit=20&cursor={cursor}"), &[]).await;
            assert_eq!(page.status, 200, "{}", page.text);
            largest = largest.max(page.text.len());
            let page = page.json();
            names.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].to_string()));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "no tool is on two pages");
        assert!(largest < 200_000, "a page of 20 has {largest} bytes");
        let found = payer.client.get("/v1/tools/discover?query=recalls+of+a+vehicle&limit=1", &[]).await.json();
        assert_eq!(found["tools"][0]["name"], "vehicle_recalls");

        let version = "2025-11-25";
        let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", version)];
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        let short = payer.client.post("/mcp", &headers, &list).await;
        assert!(short.text.len() < 40_000, "tools/list has {} bytes", short.text.len());
        let list = payer.client.post("/mcp?tools=all", &headers, &list).await;
        let openapi = payer.client.get("/openapi.json", &[]).await;
        println!(
            "{count} tools: discover by 20: at most {largest} bytes; MCP tools/list {} bytes ({} tools), first page of all {} bytes ({} tools); openapi.json {} bytes",
            short.text.len(),
            short.text.matches("\"inputSchema\"").count(),
            list.text.len(),
            list.text.matches("\"inputSchema\"").count(),
            openapi.text.len()
        );
    });
}
