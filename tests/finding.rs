//! Finding souls: the order of results, visibility of changes, crashes, races, and the number of items read.

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::money::Usdc;
use market::category::Category;
use market::listing::{self, Cursor};
use market::ranking::Standing;
use market::search::{MAX_ITEMS, search};
use market::service::{self, Executor, Service, Terms};
use market::soul::{self, Slug, Soul, SoulStatus};
use market::{index, totals};
use platform::store::db::Query;
use platform::store::{Db, Write};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::support::crowd;
use crate::support::proxy::{Life, Proxy};
use crate::support::{Client, run, stack, stack_with};

fn slug(text: &str) -> Slug {
    text.parse().expect("a slug")
}

fn made(name: &str, bio: &str, jobs: u64, votes: u64, stars: u64) -> Soul {
    let mut plain = name.to_ascii_lowercase().replace(' ', "-");
    plain.retain(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let slug = slug(&plain);
    Soul {
        listed: Some(listing::place(None, slug.as_str())),
        slug,
        name: name.to_owned(),
        bio: Some(bio.to_owned()),
        avatar_url: None,
        status: SoulStatus::Active,
        key_hash: "0".repeat(64),
        price: None,
        version: 1,
        text_hash: "0".repeat(64),
        wallet: None,
        wallet_verified: false,
        ens_name: None,
        jobs,
        purchases: 0,
        // As many as jobs, each with weight one, so that one number sets the rank.
        buyers: jobs,
        standing: Standing { backing: jobs, vote_weight: votes * 50_000, vote_stars: votes * stars * 50_000 },
        text_bytes: None,
        rating_sum: votes * stars,
        rating_count: votes,
        services: 0,
        created: Timestamp::from_secs(1_700_000_000),
        updated: Timestamp::from_secs(1_700_000_000),
    }
}

/// Writes a soul as the registry does: with its mark, in one transaction.
async fn write(db: &Db, soul: &Soul, now: Timestamp) {
    let record = Write::put(&db.tables.souls, soul::key(soul.slug.as_str()), soul).unwrap();
    db.transact(&[record, index::pending(db, &soul.slug, now).unwrap()]).await.unwrap();
}

async fn publish(db: &Db, soul: &Soul) {
    let now = Clock::system().now();
    write(db, soul, now).await;
    index::update(db, &soul.slug, now).await.unwrap();
}

async fn offer(db: &Db, soul: &Soul, category: Category, active: bool) {
    let terms = Terms {
        version: 1,
        name: "Work".to_owned(),
        price: Usdc::from_micro(1_000_000),
        input_schema: None,
        output_schema: None,
        deadline_seconds: 60,
        sandbox: false,
        executor: Executor::Worker,
        tools: Vec::new(),
        tool_budget: Usdc::ZERO,
        program: None,
        program_copy: None,
        webhook_url: None,
        webhook_number: 0,
        raised: None,
    };
    let (created, updated, description) = (soul.created, soul.updated, None);
    let name = slug("work");
    let (total_executions, test_cases) = (0, Vec::new());
    let service = Service {
        slug: name,
        description,
        active,
        category,
        terms,
        test_cases,
        total_executions,
        trial: None,
        created,
        updated,
    };
    let write = Write::put(&db.tables.souls, service::key(soul.slug.as_str(), "work"), &service).unwrap();
    db.write(write).await.unwrap();
    index::update(db, &soul.slug, Clock::system().now()).await.unwrap();
}

async fn found(db: &Db, query: &str) -> Vec<String> {
    let results = search(db, query, None, 20).await.unwrap();
    results.found.into_iter().map(|(soul, _)| soul.slug.to_string()).collect()
}

fn slugs(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["slug"].as_str().unwrap()).collect()
}

#[test]
fn the_best_match_is_first_and_says_why() {
    run(async {
        let stack = stack().await;
        let (db, client) = (&stack.app.db, Client::new(&stack.base_url));
        for soul in [
            made("Atlas Research", "Deep dives into markets.", 3, 1, 5),
            made("Atlas Research Pro", "Deep dives, longer.", 90, 40, 5),
            made("Market Atlas", "Maps of markets for research.", 500, 100, 4),
            made("Night Writer", "Copy and stories; research on request.", 10, 4, 4),
            made("One Vote Wonder", "Solidity audit of contracts.", 1, 1, 5),
            made("Many Votes", "Solidity audit of contracts.", 200, 90, 5),
            made("Bad Votes", "Solidity audit of contracts.", 30, 30, 1),
            made("Zürich Übersetzer", "Überträgt Verträge.", 0, 0, 0),
            made("数据 分析 Bot", "深層学習の研究", 0, 0, 0),
        ] {
            publish(db, &soul).await;
        }
        for (query, expected) in [
            // Exact matches come before prefix matches, whatever the rank; then all words anywhere; then some words.
            ("atlas research", "atlas-research atlas-research-pro market-atlas night-writer"),
            ("ATLAS-research", "atlas-research atlas-research-pro market-atlas night-writer"),
            ("atlas", "atlas-research-pro atlas-research market-atlas"),
            ("research", "atlas-research-pro atlas-research market-atlas night-writer"),
            ("resea", "atlas-research-pro market-atlas night-writer atlas-research"),
            ("solidity audit", "many-votes one-vote-wonder bad-votes"),
            ("audit solidity", "many-votes one-vote-wonder bad-votes"),
            ("soldity audti", "many-votes one-vote-wonder bad-votes"),
            ("wrtier", "night-writer"),
            ("zurich", "zrich-bersetzer"),
            ("ubertragt vertrage", "zrich-bersetzer"),
            ("深層学習", "--bot"),
            ("the of and", ""),
            ("zzqxkw", ""),
            ("🦀🦀", ""),
        ] {
            assert_eq!(found(db, query).await.join(" "), expected, "{query}");
        }
        let answer = client.get("/v1/soul/search?q=soldity%20audit&limit=1", &[]).await;
        let body = answer.json();
        assert_eq!((answer.status, &body["query"], &body["total"]), (200, &json!("soldity audit"), &json!(3)));
        assert_eq!(slugs(&body["results"]), ["many-votes"]);
        assert_eq!(body["results"][0]["why"], "\"audit\" in its bio; \"soldity\" read as \"solidity\"");
        assert_eq!(
            body["results"][0]["stats"],
            json!({
                "total_jobs": 200, "avg_rating": 5.0, "rating_count": 90, "distinct_buyers": 200, "backing": 200,
                "weighted_votes": 90.0, "weighted_stars": 450.0,
            })
        );
        assert!(answer.headers.contains_key("ratelimit-limit"));

        for (query, path) in [
            ("search", "q"),
            ("search?q=a", "q"),
            ("search?query=%20a%20", "query"),
            ("search?q=abc&limit=51", "limit"),
            ("search?q=abc&limit=0", "limit"),
            ("search?q=abc&category=cooking", "category"),
            (&format!("search?q={}", "x".repeat(201)), "q"),
            ("?limit=101", "limit"),
            ("?limit=-1", "limit"),
            ("?limit=1.5", "limit"),
            ("?offset=10001", "offset"),
            ("?offset=99999999999999999999999", "offset"),
            ("browse?category=", "category"),
        ] {
            let answer = client.get(&format!("/v1/soul/{query}"), &[]).await;
            assert_eq!((answer.status, &answer.json()["details"][0]["path"]), (400, &json!(path)), "{query}");
        }
        let answer = client.get("/v1/soul?cursor=nonsense", &[]).await;
        assert_eq!(answer.error(), (400, "invalid_cursor".to_owned()));
        let ranking = client.get("/v1/soul/ranking", &[]).await.json();
        assert_eq!(ranking["bounds"]["items_read_per_search"], json!(MAX_ITEMS));
    });
}

#[test]
fn paging_the_list_by_jobs_misses_no_soul() {
    run(async {
        let stack = stack().await;
        let (db, client) = (&stack.app.db, Client::new(&stack.base_url));
        let empty = client.get("/v1/soul", &[]).await.json();
        let pagination = json!({"limit": 50, "offset": 0, "next_cursor": null});
        assert_eq!(empty, json!({"souls": [], "pagination": pagination}));
        let count = 30;
        for number in 0..count {
            // Pairs with the same number of jobs.
            let soul = made(&format!("Soul {number}"), "Works.", number / 2, 0, 0);
            publish(db, &soul).await;
            if number % 3 == 0 {
                offer(db, &soul, Category::Voice, true).await;
            }
        }
        let all = client.get("/v1/soul/?limit=100", &[]).await.json();
        let jobs: Vec<u64> =
            all["souls"].as_array().unwrap().iter().map(|soul| soul["stats"]["total_jobs"].as_u64().unwrap()).collect();
        assert_eq!(jobs.len() as u64, count);
        assert!(jobs.is_sorted_by(|one, next| one >= next), "{jobs:?}");
        let everybody = slugs(&all["souls"]);
        for limit in [1, 7, 30] {
            let mut seen: Vec<String> = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let text = cursor.take().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
                let page = client.get(&format!("/v1/soul?limit={limit}{text}"), &[]).await.json();
                seen.extend(slugs(&page["souls"]).into_iter().map(str::to_owned));
                match page["pagination"]["next_cursor"].as_str() {
                    Some(next) => cursor = Some(next.to_owned()),
                    None => break,
                }
            }
            assert_eq!(seen, everybody, "pages of {limit}");
            let page = client.get(&format!("/v1/soul?limit={limit}&offset=9"), &[]).await.json();
            assert_eq!(slugs(&page["souls"]), everybody[9..(9 + limit).min(30)], "behind nine");
        }
        let voices = client.get("/v1/soul/browse?category=voice&limit=3", &[]).await.json();
        assert_eq!((&voices["total"], slugs(&voices["souls"]).len()), (&json!(10), 3));
        assert_eq!(voices["souls"][0]["slug"], "soul-27");
        let stats = client.get("/v1/soul/stats", &[]).await.json();
        assert_eq!((&stats["total_souls"], &stats["active_services"]), (&json!(count), &json!(10)));
    });
}

#[test]
fn search_finds_changes_at_once_and_old_words_no_more() {
    run(async {
        let stack = stack().await;
        let db = &stack.app.db;
        let mut soul = made("Quick Fox", "Jumps over lazy dogs.", 0, 0, 0);
        publish(db, &soul).await;
        offer(db, &soul, Category::Data, true).await;
        assert_eq!(found(db, "lazy dogs").await, ["quick-fox"]);
        soul.name = "Slow Turtle".to_owned();
        soul.bio = Some("Carries houses.".to_owned());
        publish(db, &soul).await;
        assert_eq!(found(db, "turtle houses").await, ["quick-fox"]);
        assert_eq!(found(db, "lazy").await, [""; 0], "the old bio");
        assert_eq!(found(db, "quick").await, ["quick-fox"], "the slug stays");
        assert_eq!(rows(db, "WORD#lazy").await, 0);
        // Jobs are counted in an attribute. The rows of its categories follow.
        soul.jobs = 900;
        publish(db, &soul).await;
        let page = listing::page(db, &Cursor::start(Some(Category::Data)), 0, 1).await.unwrap();
        assert_eq!(page.souls[0].jobs, 900);
        // Suspended: not listed, not found, not counted. Active again: as before.
        for (status, there) in [(SoulStatus::Suspended, 0), (SoulStatus::Active, 1)] {
            soul.status = status;
            publish(db, &soul).await;
            assert_eq!(found(db, "turtle").await.len(), there);
            for category in [None, Some(Category::Data)] {
                assert_eq!(listing::page(db, &Cursor::start(category), 0, 5).await.unwrap().souls.len(), there);
                assert_eq!(totals::load(db).await.unwrap().souls(category), there as u64);
            }
            soul = soul::load_latest(db, "quick-fox").await.unwrap().unwrap();
        }
        offer(db, &soul, Category::Sms, false).await;
        assert_eq!(totals::load(db).await.unwrap().souls(Some(Category::Data)), 0, "its service is disabled");
        assert_eq!(rows(db, "PENDING-INDEX#0").await + rows(db, "PENDING-INDEX#1").await, 0);
    });
}

async fn rows(db: &Db, partition: &str) -> usize {
    let query = Query::new(&db.tables.souls, "#pk = :pk", 100).bind("pk", partition).unwrap();
    db.query::<BTreeMap<String, IgnoredAny>>(query).await.unwrap().len()
}

/// An update is killed at each of its requests, before or after the request arrives. The scheduler finishes it.
#[test]
fn the_scheduler_finishes_interrupted_updates() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let stack = stack_with(|options| options.with("AWS_ENDPOINT_URL", &database)).await;
        let db = &stack.app.db;
        let later = |secs: u64| Clock::system().now().plus(Duration::from_secs(secs));
        for (number, arrives) in (1..=14).flat_map(|number| [(number, false), (number, true)]) {
            let life = Life::ending_at(number, arrives);
            let proxy = Proxy::start(&database, life).await;
            let config = db.client().config().to_builder().endpoint_url(&proxy.url);
            let config = config.retry_config(aws_sdk_dynamodb::config::retry::RetryConfig::disabled()).build();
            let dying = Db::new(aws_sdk_dynamodb::Client::from_conf(config), db.tables.clone());
            let name = format!("Phoenix {number}{}", if arrives { "a" } else { "b" });
            let mut soul = made(&name, &format!("Burned{number}{arrives} down."), 0, 0, 0);
            publish(db, &soul).await;
            soul.name = format!("Risen{number}{arrives}");
            soul.bio = None;
            let now = Clock::system().now();
            write(db, &soul, now).await;
            let _ = index::update(&dying, &soul.slug, now).await;
            index::finish(db, later(61)).await.unwrap();
            index::finish(db, later(130)).await.unwrap();
            assert_eq!(found(db, &soul.name).await.first(), Some(&soul.slug.to_string()), "killed at {number}");
            assert_eq!(rows(db, &format!("WORD#burned{number}{arrives}")).await, 0, "killed at {number}");
        }
        let marks = rows(db, "PENDING-INDEX#0").await + rows(db, "PENDING-INDEX#1").await;
        assert_eq!(marks + rows(db, "PENDING-INDEX#2").await + rows(db, "PENDING-INDEX#3").await, 0);
        assert_eq!(totals::load(db).await.unwrap().souls(None), 28, "each counted once");
    });
}

#[test]
fn the_last_of_two_concurrent_changes_stays() {
    run(async {
        let stack = stack().await;
        let db = &stack.app.db;
        let mut soul = made("Racer", "Runs.", 0, 0, 0);
        publish(db, &soul).await;
        for round in 0..10 {
            let (one, other) = (format!("alpha{round}"), format!("omega{round}"));
            let mut renames = Vec::new();
            for name in [&one, &other] {
                soul.name = name.clone();
                let (db, soul) = (db.clone(), soul.clone());
                renames.push(tokio::spawn(async move { publish(&db, &soul).await }));
            }
            for rename in renames {
                rename.await.unwrap();
            }
            let now = soul::load_latest(db, "racer").await.unwrap().unwrap().name;
            let past = if now == one { &other } else { &one };
            assert_eq!(found(db, &now).await, ["racer"], "round {round}");
            assert_eq!(found(db, past).await.len(), 0, "round {round}");
            let later = |secs: u64| Clock::system().now().plus(Duration::from_secs(secs));
            index::finish(db, later(61)).await.unwrap();
            index::finish(db, later(130)).await.unwrap();
            assert_eq!((rows(db, &format!("WORD#{past}")).await, rows(db, &format!("WORD#{now}")).await), (0, 1));
        }
        assert_eq!(totals::load(db).await.unwrap().souls(None), 1);
    });
}

#[test]
fn search_rate_limit_errors_have_the_marketplaces_form() {
    run(async {
        let stack = stack_with(|options| options.with("RATE_LIMIT_SCALE", "0.03")).await;
        let client = Client::new(&stack.base_url);
        for _ in 0..3 {
            assert_eq!(client.get("/v1/soul/search?q=anything", &[]).await.status, 200);
        }
        let refused = client.get("/v1/soul/search?q=anything", &[]).await;
        assert_eq!(refused.error(), (429, "rate_limited".to_owned()));
        assert!(refused.header("retry-after").is_some() && refused.json()["retry_after"].is_u64());
        assert_eq!(client.get("/v1/soul", &[]).await.status, 200, "the list is not limited");
    });
}

/// Counts items, not time: twice as many souls do not double the reads, and no query exceeds the bound.
#[test]
fn search_reads_do_not_grow_with_the_number_of_souls() {
    let cost = |souls: usize| {
        let database = dynoxide::Database::memory().unwrap();
        crowd::fill(&database, souls, 7, |_| {}).unwrap();
        let (db, counted) = crowd::connect(&database);
        run(async move {
            let mut sum = 0;
            for (kind, queries) in crowd::questions(1_000, 7) {
                for query in queries.iter().take(15) {
                    search(&db, query, None, 20).await.unwrap();
                    let reads = counted.take();
                    assert!(reads.items <= MAX_ITEMS as u64, "{kind} {query}: {reads:?}");
                    sum += reads.items;
                }
            }
            listing::page(&db, &Cursor::start(None), 0, 50).await.unwrap();
            let list = counted.take();
            assert!(list.items <= 250, "{list:?}");
            (sum, list.items)
        })
    };
    let (some, more) = (cost(1_500), cost(3_000));
    assert!(more.0 * 10 <= some.0 * 15, "{some:?} {more:?}");
    assert!(more.1 * 10 <= some.1 * 15, "{some:?} {more:?}");
}

#[test]
fn batch_get_keeps_the_order_of_its_keys() {
    run(async {
        let stack = stack().await;
        let db = &stack.app.db;
        let key = |number: usize| platform::store::Key::new("BATCH", format!("{number:03}"));
        let puts = (0..130).step_by(2).map(|number| Write::put(&db.tables.souls, key(number), &json!({"n": number})));
        db.batch_write(puts.collect::<Result<_, _>>().unwrap()).await.unwrap();
        let keys: Vec<_> = (0..130).rev().map(key).collect();
        let found: Vec<Option<Value>> = db.batch_get(&db.tables.souls, &keys, true).await.unwrap();
        let numbers: Vec<Option<u64>> = found.iter().map(|item| item.as_ref()?["n"].as_u64()).collect();
        let expected: Vec<Option<u64>> = (0..130).rev().map(|number| (number % 2 == 0).then_some(number)).collect();
        assert_eq!(numbers, expected);
        let update = Write::update(&db.tables.souls, key(0), "SET #n = :n").bind("n", 1).unwrap();
        assert!(db.batch_write(vec![update]).await.is_err(), "a batch knows no updates");
    });
}
