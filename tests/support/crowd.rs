//! A marketplace with any number of souls, generated from a seed, for the bench and the test of what a search reads.
//! The table is filled with the rows that `market` would write, in big batches that bypass the SDK client.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use base::clock::Timestamp;
use dynoxide::types::{AttributeValue, Item};
use dynoxide::{Database, ImportOptions};
use fastrand::Rng;
use market::category::CATEGORIES;
use market::listing;
use market::posting::{Entry, Indexed, Posting};
use market::ranking::Standing;
use market::soul::{self, Soul, SoulStatus};
use market::vocabulary::{self, Bucket};
use platform::config::Tables;
use platform::store::{Db, Key};
use serde_json::{Value, json};

/// The most frequent words, as in real profiles. The rest of the vocabulary is made of syllables.
const COMMON: &str = "research agent data code review writing trading crypto analysis audit smart contract market \
    voice email assistant expert automation python rust design copy translation legal summary report security \
    monitoring support sales content strategy finance tax news sports weather travel image video music brand seo web \
    scraping testing solidity defi wallet risk credit lead generation planning coaching fitness health recipe science \
    math physics biology chemistry history law patent startup growth product pricing survey interview transcript \
    spanish german french japanese invoice bookkeeping payroll logistics shipping supply energy climate game story \
    poetry logo brand slides spreadsheet database cloud devops kubernetes terraform debugging refactoring documentation";
const VOCABULARY: usize = 30_000;
const SYLLABLES: &[&str] = &[
    "ba", "cor", "de", "fin", "ga", "hel", "in", "jo", "ka", "lum", "mo", "nex", "or", "pra", "qui", "ra", "sol", "ta",
    "ul", "ver", "wi", "xen", "yo", "zen", "tra", "pli", "gno", "ster", "via", "mar",
];
/// Rows per import.
const ROWS: usize = 20_000;

pub const TABLE: &str = "crowd-souls";

/// A vocabulary, with frequent words first.
struct Words {
    all: Vec<String>,
    /// Cumulative Zipf weights.
    up_to: Vec<f64>,
}

impl Words {
    fn new(rng: &mut Rng) -> Words {
        let mut all: Vec<String> = COMMON.split_whitespace().map(str::to_owned).collect();
        let mut known: std::collections::HashSet<String> = all.iter().cloned().collect();
        while all.len() < VOCABULARY {
            let word: String = (0..rng.usize(2..=4)).filter_map(|_| rng.choice(SYLLABLES)).copied().collect();
            if known.insert(word.clone()) {
                all.push(word);
            }
        }
        let mut sum = 0.0;
        let up_to = (0..all.len()).map(|rank| {
            sum += 1.0 / (rank as f64 + 3.0);
            sum
        });
        let up_to = up_to.collect();
        Words { all, up_to }
    }

    fn draw(&self, rng: &mut Rng) -> &str {
        let at = rng.f64() * self.up_to.last().copied().unwrap_or_default();
        &self.all[self.up_to.partition_point(|sum| *sum < at).min(self.all.len() - 1)]
    }
}

/// The souls of a seed.
pub fn souls(count: usize, seed: u64) -> impl Iterator<Item = Soul> {
    let mut rng = Rng::with_seed(seed);
    let words = Words::new(&mut rng);
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    (0..count).map(move |number| {
        let draw = |least: usize, most: usize, rng: &mut Rng| -> Vec<String> {
            (0..rng.usize(least..=most)).map(|_| words.draw(rng).to_owned()).collect()
        };
        let name = draw(2, 3, &mut rng);
        let times = taken.entry(name.join("-")).and_modify(|times| *times += 1).or_insert(1);
        let slug = if *times == 1 { name.join("-") } else { format!("{}-{times}", name.join("-")) };
        let bio = draw(3, 6, &mut rng).join(" ");
        let jobs = (1.0 / (1.0 - rng.f64()).powf(1.2)) as u64 - 1;
        let rating_count = jobs * 3 / 10;
        let stars = rng.f64() * 2.0 + 3.0;
        Soul {
            slug: slug.parse().expect("a slug"),
            name: name.join(" "),
            bio: Some(format!("I do {bio} for you.")),
            avatar_url: None,
            status: SoulStatus::Active,
            key_hash: "0".repeat(64),
            price: None,
            version: 1,
            text_hash: "0".repeat(64),
            wallet: None,
            wallet_verified: false,
            ens_name: None,
            jobs: jobs.min(1 << 40),
            purchases: 0,
            buyers: jobs.min(1 << 40),
            standing: Standing {
                backing: jobs.min(1 << 40),
                vote_weight: rating_count * 50_000,
                vote_stars: (rating_count as f64 * stars * 50_000.0) as u64,
            },
            text_bytes: None,
            rating_sum: (rating_count as f64 * stars) as u64,
            rating_count,
            services: 0,
            listed: Some(listing::place(None, &slug)),
            created: Timestamp::from_secs(1_700_000_000 + number as i64),
            updated: Timestamp::from_secs(1_700_000_000),
        }
    })
}

/// Fills an empty database.
pub fn fill(database: &Database, count: usize, seed: u64, mut say: impl FnMut(&str)) -> dynoxide::Result<()> {
    create_table(database)?;
    database.enable_bulk_loading()?;
    let mut rng = Rng::with_seed(seed);
    let mut postings: Vec<Posting> = Vec::with_capacity(count);
    let mut rows: Vec<(String, String, u32)> = Vec::new();
    let mut records: Vec<Item> = Vec::new();
    let mut used: BTreeMap<String, u64> = BTreeMap::new();
    let mut batch = Batch { database, items: Vec::new() };
    for (number, soul) in souls(count, seed).enumerate() {
        let mut indexed = Indexed::of(&soul, &[], None);
        indexed.level = Standing::from(&soul).level(None);
        indexed.services.insert(CATEGORIES[rng.usize(..CATEGORIES.len())], 1);
        for word in indexed.words().into_iter().filter(|word| word.chars().count() >= 3) {
            *used.entry(word.to_owned()).or_default() += 1;
        }
        for (key, entry) in indexed.entries(soul.slug.as_str()) {
            match entry {
                Entry::Posting(posting) => {
                    if postings.len() == number {
                        postings.push(posting);
                    }
                    rows.push((key.pk, key.sk, number as u32));
                }
                Entry::Place(place) => records.push(item(key, &serde_json::to_value(place).expect("a place"))),
            }
        }
        records.push(item(soul::key(soul.slug.as_str()), &serde_json::to_value(&soul).expect("a soul")));
        if records.len() >= ROWS {
            batch.write(std::mem::take(&mut records))?;
        }
    }
    batch.write(records)?;
    say(&format!("{count} souls, {} postings, {} words", rows.len(), used.len()));
    // In key order, which is the fastest for a B-tree.
    rows.sort_unstable();
    for (pk, sk, number) in rows {
        let posting = &postings[number as usize];
        let mut item = Item::with_capacity(5);
        item.insert("n".to_owned(), AttributeValue::S(posting.name.clone()));
        if !posting.print.is_empty() {
            item.insert("b".to_owned(), AttributeValue::B(posting.print.clone()));
        }
        item.insert("c".to_owned(), AttributeValue::N(posting.categories.to_string()));
        item.insert("pk".to_owned(), AttributeValue::S(pk));
        item.insert("sk".to_owned(), AttributeValue::S(sk));
        batch.add(item)?;
    }
    let mut words: Vec<(String, u64)> = used.into_iter().collect();
    words.sort_by_key(|(_, souls)| std::cmp::Reverse(*souls));
    let mut buckets: BTreeMap<Key, Bucket> = BTreeMap::new();
    for (word, souls) in &words {
        for key in vocabulary::buckets(word) {
            let bucket = buckets.entry(key).or_default();
            bucket.revision = 1;
            bucket.offer(word, vocabulary::band(*souls));
        }
    }
    for (key, bucket) in buckets {
        batch.add(item(key, &serde_json::to_value(bucket).expect("a bucket")))?;
    }
    batch.write(Vec::new())?;
    database.disable_bulk_loading()
}

struct Batch<'a> {
    database: &'a Database,
    items: Vec<Item>,
}

impl Batch<'_> {
    fn add(&mut self, item: Item) -> dynoxide::Result<()> {
        self.items.push(item);
        if self.items.len() >= ROWS { self.write(Vec::new()) } else { Ok(()) }
    }

    fn write(&mut self, items: Vec<Item>) -> dynoxide::Result<()> {
        self.items.extend(items);
        let items = std::mem::take(&mut self.items);
        self.database.import_items(TABLE, items, ImportOptions::default()).map(drop)
    }
}

fn item(key: Key, record: &Value) -> Item {
    let AttributeValue::M(mut item) = attribute(record) else { panic!("a record is an object") };
    item.insert("pk".to_owned(), AttributeValue::S(key.pk));
    item.insert("sk".to_owned(), AttributeValue::S(key.sk));
    item
}

fn attribute(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::NULL(true),
        Value::Bool(value) => AttributeValue::BOOL(*value),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Array(values) => AttributeValue::L(values.iter().map(attribute).collect()),
        Value::Object(members) => AttributeValue::M(
            members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), attribute(value)))
                .collect(),
        ),
    }
}

fn create_table(database: &Database) -> dynoxide::Result<()> {
    let key = |hash: &str, range: &str| json!([{"AttributeName": hash, "KeyType": "HASH"}, {"AttributeName": range, "KeyType": "RANGE"}]);
    let request = json!({
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
            {"AttributeName": "listed", "AttributeType": "S"},
            {"AttributeName": "jobs", "AttributeType": "N"},
        ],
        "KeySchema": key("pk", "sk"),
        "GlobalSecondaryIndexes": [{
            "IndexName": "listed",
            "KeySchema": key("listed", "jobs"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["slug"]},
        }],
    });
    database.create_table(serde_json::from_value(request).expect("a request")).map(drop)
}

/// Counts what a client reads.
#[derive(Default)]
pub struct Counted {
    items: AtomicU64,
    /// Read units in halves.
    halves: AtomicU64,
    requests: AtomicU64,
}

/// Reads since the last call: requests, items, read units.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Reads {
    pub requests: u64,
    pub items: u64,
    pub units: f64,
}

impl Counted {
    pub fn take(&self) -> Reads {
        let take = |count: &AtomicU64| count.swap(0, Ordering::SeqCst);
        Reads { requests: take(&self.requests), items: take(&self.items), units: take(&self.halves) as f64 / 2.0 }
    }
}

#[derive(Clone)]
struct Wire {
    database: Database,
    counted: Arc<Counted>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

/// The real SDK client for a database in the same process, and a counter of its reads.
pub fn connect(database: &Database) -> (Db, Arc<Counted>) {
    let counted = Arc::new(Counted::default());
    let wire = SharedHttpConnector::new(Wire { database: database.clone(), counted: counted.clone() });
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "crowd"))
        .endpoint_url("http://database.invalid")
        .http_client(http_client_fn(move |_, _| wire.clone()))
        .build();
    let name = |word: &str| format!("crowd-{word}");
    let tables = Tables {
        jobs: name("jobs"),
        ledger: name("ledger"),
        agents: name("agents"),
        souls: TABLE.to_owned(),
        messages: name("messages"),
    };
    (Db::new(aws_sdk_dynamodb::Client::from_conf(config), tables), counted)
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let operation = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = operation.rsplit('.').next().unwrap_or_default();
        let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).expect("JSON");
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let answer = match operation {
            "Query" => {
                let request = serde_json::from_value(body).expect("a query");
                self.database.query(request).map(|answer| serde_json::to_value(answer).expect("an answer"))
            }
            "BatchGetItem" => {
                let request = serde_json::from_value(body).expect("a batch");
                self.database.batch_get_item(request).map(|answer| serde_json::to_value(answer).expect("an answer"))
            }
            other => panic!("finding souls asks for no {other}"),
        };
        let answer = answer.expect("the database answers");
        let found = answer["ScannedCount"].as_u64();
        let items = found.unwrap_or_else(|| answer["Responses"][TABLE].as_array().map_or(0, Vec::len) as u64);
        let capacity = &answer["ConsumedCapacity"];
        let units = capacity["CapacityUnits"].as_f64().or_else(|| capacity[0]["CapacityUnits"].as_f64());
        self.counted.requests.fetch_add(1, Ordering::SeqCst);
        self.counted.items.fetch_add(items, Ordering::SeqCst);
        self.counted.halves.fetch_add((units.unwrap_or_default() * 2.0).round() as u64, Ordering::SeqCst);
        let mut response = HttpResponse::new(200.try_into().expect("a status"), SdkBody::from(answer.to_string()));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        HttpConnectorFuture::ready(Ok(response))
    }
}

/// The kinds of queries, with examples of each that suit any number of souls.
pub fn questions(count: usize, seed: u64) -> Vec<(&'static str, Vec<String>)> {
    let some: Vec<Soul> = souls(count.min(2_000), seed).step_by(10).take(60).collect();
    let common: Vec<&str> = COMMON.split_whitespace().take(60).collect();
    let cut = |word: &str| word.chars().take(4).collect::<String>();
    let mistyped = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.remove(letters.len() / 2);
        letters.into_iter().collect::<String>()
    };
    vec![
        ("exact name", some.iter().map(|soul| soul.name.clone()).collect()),
        ("prefix", common.iter().map(|word| cut(word)).collect()),
        ("two words", common.windows(2).map(|pair| pair.join(" ")).collect()),
        ("typo", common.iter().filter(|word| word.len() >= 6).cycle().take(60).map(|word| mistyped(word)).collect()),
        ("absent", (0..60).map(|number| format!("zzqx{number}kkw")).collect()),
    ]
}
