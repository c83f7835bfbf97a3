//! The cost that a stranger can cause the operator. Each way is used until its limit stops it, and its cost is counted.
//! The figures in `docs/ABUSE.md` must follow from the limits in the code, the template and these counts.

use base::clock::{Clock, Timestamp};
use base::digest;
use base::ids::RequestId;
use base::money::Usdc;
use evm::hex0x;
use futures_util::{SinkExt, StreamExt};
use gate::approvals::form::MAX_POLICY_BYTES;
use gate::approvals::store as approvals;
use gate::jobs::store;
use gate::limits::{Class, SMALL_ANSWER};
use gate::push::LIFETIME;
use ledger::payments::settle::relayer::MAX_GAS;
use local::stack::Background;
use local::{Options, Stack};
use market::{slots, soul, trials};
use platform::connections::Connections;
use platform::mail as own_mail;
use platform::net::FetchPolicy;
use platform::providers::outbound::{Ask, OutboundError};
use platform::store::{Key, Write};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tools::files::{self, FileRow};

mod calls;
mod inbound;
mod links;
mod mail;
mod names;
mod network;
mod workers;

use crate::souls_market::{Shop, buy};
use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy, Seen};
use crate::support::receiver::Receiver;
use crate::support::{Answer, Payer, VIN, VIN_PATH, chain, root, run, stack_with};

/// The list prices of `docs/ABUSE.md`, in USD.
mod price {
    /// One request: HTTP API 1.00 a million, function 0.20, its 10 ms of 256 MB 0.03, 0.7 KB of log lines 0.34.
    pub const REQUEST: f64 = 1.6e-6;
    /// One DynamoDB unit.
    pub const WRITE: f64 = 0.625e-6;
    pub const READ: f64 = 0.125e-6;
    /// Data sent to the internet.
    pub const GIB: f64 = 0.09;
    /// Data kept in S3 for 31 days.
    pub const KEPT_GIB: f64 = 0.023 * 31.0 / 30.0;
    /// One request to a paid chain node.
    pub const QUESTION: f64 = 11.7e-6;
    pub const MAIL: f64 = 0.1e-3;
    /// WebSockets.
    pub const CONNECTION_MINUTE: f64 = 0.25e-6;
    pub const MESSAGE: f64 = 1.0e-6;
    /// One GB of function memory for one second, on arm64.
    pub const GB_SECOND: f64 = 13.3334e-6;
    /// One gas at 0.02 gwei (a high price on Base) and 3,000 USD per ETH.
    pub const GAS: f64 = 0.02e-9 * 3_000.0;
}

/// The most that one request of each kind uses, as counted by the tests below.
mod most {
    /// Bytes of an answer that counts against no limit.
    pub const SMALL: f64 = 16.0 * 1024.0;
    /// Requests to the node for a payment that is refused.
    pub const NODE_REQUESTS: f64 = 3.0;
    /// Questions in them: the first is a batch of four.
    pub const QUESTIONS: f64 = NODE_REQUESTS + 3.0;
    /// Write units of a proven request that buys nothing: its proof and its rate limit count.
    pub const PROVEN: f64 = 2.0;
    /// Write units of the largest free write, an action policy.
    pub const WRITTEN: f64 = 16.0;
    /// Write units of an approval that stores 128 KB.
    pub const APPROVAL: f64 = 300.0;
    /// Write units of a registration.
    pub const REGISTRATION: f64 = 60.0;
    /// Write units of an agent's first addresses, on one domain of the operator's.
    pub const ADDRESS: f64 = 5.0;
    /// Read units of a search.
    pub const SEARCH: f64 = 100.0;
    /// Gas of a transfer, with its tag.
    pub const GAS: f64 = 95_000.0;
    /// Bytes of the largest public answer: the script of `/docs`, sent uncompressed.
    pub const PUBLIC: f64 = 2048.0 * 1024.0;
}

/// What limits the gas of a payment.
const GAS_LIMIT: &str = "`GAS_SHARE_PERCENT` of its amount when it is checked, twice that when it is sent";

const DAY_SECS: f64 = 86_400.0;
/// Bytes in a GiB.
const BYTES: f64 = 1024.0 * 1024.0 * 1024.0;

/// How often a limit allows something in a day.
fn a_day(class: Class) -> f64 {
    let limit = class.limit();
    f64::from(limit.count) * DAY_SECS / limit.window.as_secs_f64()
}

fn kib_a_day(class: Class) -> f64 {
    a_day(class) * 1024.0 / BYTES
}

/// A number among the template's parameter defaults.
fn parameter(name: &str) -> f64 {
    let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    let block = template.split(&format!("\n  {name}:\n")).nth(1).unwrap_or_else(|| panic!("no parameter {name}"));
    let default = block.lines().find_map(|line| line.trim().strip_prefix("Default: ")).expect("a default");
    default.trim_matches('\'').parse().unwrap_or_else(|_| panic!("{name}: {default}"))
}

fn dollars(amount: Usdc) -> f64 {
    amount.micro() as f64 / 1e6
}

fn usd(amount: f64) -> String {
    match amount {
        0.0..0.0001 => format!("{:.1} a million", amount * 1e6),
        0.0001..0.01 => format!("{amount:.4}"),
        _ => format!("{amount:.2}"),
    }
}

/// A row of the table: the kind of request, who is limited, the cost of one in USD, the limit, and the resulting cost
/// per day, for one source (or wallet, or job) and for all of them.
fn row(way: &str, who: &str, one: f64, limit: &str, each: Option<f64>, all: Option<f64>) -> String {
    let cell = |amount: Option<f64>| amount.map_or("no limit".to_owned(), usd);
    format!("| {way} | {who} | {} | {limit} | {} | {} |", usd(one), cell(each), cell(all))
}

fn window(class: Class) -> String {
    let limit = class.limit();
    let window = match limit.window.as_secs() {
        60 => "a minute",
        3600 => "an hour",
        _ => "a day",
    };
    let unit = match class {
        Class::Public | Class::Result | Class::Export | Class::Stored | Class::Files => " KiB",
        _ => "",
    };
    format!("`{}`: {}{unit} {window}", limit.name, limit.count)
}

fn rows() -> Vec<String> {
    use price::*;
    let requests = parameter("RequestsPerSecond") * DAY_SECS;
    let workers = parameter("WorkerConcurrency");
    let price = REQUEST + most::SMALL / 2.0 / BYTES * price::GIB;
    let proven = REQUEST + most::PROVEN * WRITE + 2.0 * READ;
    let balance = proven + WRITE + QUESTION;
    let refused = REQUEST + most::QUESTIONS * QUESTION + WRITE + 2.0 * READ;
    let written = proven + (most::WRITTEN - most::PROVEN) * WRITE;
    let approval = proven + most::APPROVAL * WRITE;
    let registration = REQUEST + most::REGISTRATION * WRITE + 5e-6;
    let address = proven + most::ADDRESS * WRITE;
    let search = REQUEST + most::SEARCH * READ + WRITE + most::SMALL / BYTES * price::GIB;
    let life = LIFETIME.as_secs_f64() / 60.0;
    // A message every nine minutes keeps the connection open.
    let socket = 3.0 * MESSAGE + 6.0 * WRITE + life * CONNECTION_MINUTE + life / 9.0 * (MESSAGE + REQUEST);
    let kib = 1024.0 / BYTES * price::GIB;
    vec![
        row(
            "a request that only asks a price, or finds nothing",
            "anybody",
            price,
            "`RequestsPerSecond`; alarm `ManyRequests`",
            None,
            Some(requests * price),
        ),
        row(
            "1 KiB of a large public answer",
            "source",
            kib,
            &window(Class::Public),
            Some(kib_a_day(Class::Public) * price::GIB),
            Some(requests * most::PUBLIC / BYTES * price::GIB),
        ),
        row(
            "a payment, proof or transaction about which the chain is asked in vain",
            "source",
            refused,
            &window(Class::Chain),
            Some(a_day(Class::Chain) * refused),
            Some(requests * refused),
        ),
        row(
            "a price or a dry run for a proven wallet",
            "wallet",
            proven,
            &window(Class::Quote),
            Some(a_day(Class::Quote) * proven),
            Some(requests * proven),
        ),
        row(
            "a free read",
            "wallet",
            proven,
            &window(Class::Read),
            Some(a_day(Class::Read) * proven),
            Some(requests * proven),
        ),
        row(
            "the balance of a wallet without money",
            "source",
            balance,
            &window(Class::Read),
            Some(a_day(Class::Read) * balance),
            Some(requests * balance),
        ),
        row(
            "a free write, the largest",
            "wallet",
            written,
            &window(Class::Write),
            Some(a_day(Class::Write) * written),
            Some(requests * written),
        ),
        row(
            "a freeze, a cap, a revoked token, a cancelled approval",
            "wallet",
            written,
            &window(Class::Stop),
            Some(a_day(Class::Stop) * written),
            Some(requests * written),
        ),
        row(
            "an approval with 128 KB",
            "source",
            approval,
            &format!("`approval`: {} a day", approvals::MAX_OF_SOURCE_A_DAY),
            Some(f64::from(approvals::MAX_OF_SOURCE_A_DAY) * approval),
            None,
        ),
        row(
            "a mail",
            "source",
            MAIL,
            &format!(
                "{} a day, {} to an address, {} in all",
                own_mail::MAX_OF_SOURCE_A_DAY,
                own_mail::MAX_MAILS_A_DAY,
                own_mail::MAX_IN_ALL_A_DAY
            ),
            Some(f64::from(own_mail::MAX_OF_SOURCE_A_DAY) * MAIL),
            Some(f64::from(own_mail::MAX_IN_ALL_A_DAY) * MAIL),
        ),
        row(
            "a registration",
            "source",
            registration,
            &window(Class::Register),
            Some(a_day(Class::Register) * registration),
            None,
        ),
        row(
            "the first mail addresses of a wallet without money, kept for good",
            "source",
            address,
            &window(Class::Address),
            Some(a_day(Class::Address) * address),
            None,
        ),
        row(
            "a search of the marketplace",
            "source",
            search,
            &window(Class::Search),
            Some(a_day(Class::Search) * search),
            Some(requests * search),
        ),
        row(
            "a WebSocket, for two hours",
            "source",
            socket,
            &format!("{}; {} in all", window(Class::Connect), window(Class::ConnectAll)),
            Some(a_day(Class::Connect) * socket),
            Some(a_day(Class::ConnectAll) * socket),
        ),
        row(
            "1 KiB of a large result that is read again, or of a long list of files",
            "job and reader",
            kib,
            &window(Class::Result),
            Some(kib_a_day(Class::Result) * price::GIB),
            None,
        ),
        row(
            "1 KiB of an audit, an export, or a long list of receipts or sold jobs",
            "wallet or soul",
            kib,
            &window(Class::Export),
            Some(kib_a_day(Class::Export) * price::GIB),
            None,
        ),
        row(
            "1 KiB of a file that is opened by link",
            "owner",
            kib,
            &window(Class::Files),
            Some(kib_a_day(Class::Files) * price::GIB),
            None,
        ),
        row(
            "1 MiB of an upload or a large input, kept for a month",
            "wallet",
            price::KEPT_GIB / 1024.0,
            &window(Class::Stored),
            Some(kib_a_day(Class::Stored) * price::KEPT_GIB),
            None,
        ),
        row(
            "a second of a worker (1 GB), for tools that fail and are paid back",
            "wallet",
            GB_SECOND,
            &format!("{} jobs of a buyer; `WorkerConcurrency`", gate::jobs::slots::OF_BUYER),
            Some(f64::from(gate::jobs::slots::OF_BUYER) * DAY_SECS * GB_SECOND),
            Some(workers * DAY_SECS * GB_SECOND),
        ),
        row(
            "a second of the function that posts webhooks (128 MB)",
            "all",
            GB_SECOND / 8.0,
            "`WorkerConcurrency`",
            None,
            Some(workers * DAY_SECS * GB_SECOND / 8.0),
        ),
        row(
            "a second of an executor (1 GB), for sold work that fails and used nothing",
            "soul",
            GB_SECOND,
            &format!("{} jobs of a soul, {} of a buyer; `ExecutorConcurrency`", slots::OF_SOUL, slots::OF_BUYER),
            Some(f64::from(slots::OF_SOUL) * DAY_SECS * GB_SECOND),
            Some(parameter("ExecutorConcurrency") * DAY_SECS * GB_SECOND),
        ),
        row(
            "1 USD of the model, for trials of test cases",
            "soul",
            1.0,
            "a fixed sum per soul and day, and per day in all",
            Some(dollars(trials::MODEL_A_DAY_OF_SOUL)),
            Some(dollars(trials::MODEL_A_DAY)),
        ),
        row("the gas of a payment signed by a key", "payer", most::GAS * price::GAS, GAS_LIMIT, None, None),
        row("the gas of a payment of a contract wallet", "payer", MAX_GAS as f64 * price::GAS, GAS_LIMIT, None, None),
        row(
            "1 USDC of cheap work whose payment does not come",
            "all",
            1.0,
            "`OVERLAP_TOTAL_USDC` an hour",
            None,
            Some(24.0 * parameter("OverlapTotalUsdc")),
        ),
    ]
}

/// Compares the table in the docs with the limits and prices. `PRINT_ABUSE=1` prints it.
#[test]
fn docs_show_the_costs_that_follow_from_the_limits() {
    let rows = rows();
    if std::env::var_os("PRINT_ABUSE").is_some() {
        println!("{}", rows.join("\n"));
    }
    let docs = std::fs::read_to_string(root().join("docs/ABUSE.md")).unwrap();
    let missing: Vec<_> = rows.iter().filter(|row| !docs.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "docs/ABUSE.md lacks (PRINT_ABUSE=1 prints all):\n{missing:#?}");
    let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    assert!(!template.contains("$connect: {Throttling"), "the gateway cannot tell an owner from a stranger");
    assert_eq!(most::SMALL, SMALL_ANSWER as f64);
    // Without paying, a source can cost us about a dollar a day at most, besides the requests themselves.
    for class in [Class::Public, Class::Export, Class::Files] {
        assert!(kib_a_day(class) * price::GIB < 1.0, "{class:?}");
    }
}

/// Units that the stack itself may use in the meantime.
const NOISE: f64 = 16.0;

struct Deployed {
    stack: Stack,
    database: Proxy,
    node: Proxy,
}

/// A stack with the published limits, at the beginning of a minute, with its database and its node behind proxies.
async fn deployed() -> Deployed {
    deployed_with(Background::Everything).await
}

/// The same with other work in the background: none writes beside a call whose units are counted.
async fn deployed_with(background: Background) -> Deployed {
    let database = local::database::start(None).await.expect("a database");
    let database = Proxy::start(&database, Life::immortal()).await;
    let node = Proxy::start(chain().await.rpc_url(), Life::immortal()).await;
    let now = Clock::system().now().secs();
    let clock = Clock::pinned(Timestamp::from_secs(now - now % 60));
    let stack = stack_with(|options| {
        let options = options.with("AWS_ENDPOINT_URL", &database.url).with("CHAIN_RPC_URL", &node.url);
        Options { clock, background, ..options.with("RATE_LIMIT_SCALE", "1") }
    })
    .await;
    database.take_seen();
    node.take_seen();
    Deployed { stack, database, node }
}

impl Deployed {
    /// A proof of the wallet, made at the stack's time.
    fn proof(&self, payer: &Payer, scope: &str) -> String {
        payer.proof_at(scope, self.stack.app.clock.now().secs())
    }

    /// Uses up a daily limit except for the last `but`.
    async fn use_up(&self, partition: &str, most: u64, but: u64) {
        let (db, now) = (&self.stack.app.db, self.stack.app.clock.now().secs());
        for day in [now.div_euclid(86_400), now - now.rem_euclid(86_400)] {
            let key = Key::new(partition.to_owned(), day.to_string());
            db.write(Write::put(&db.tables.agents, key, &json!({"used": most - but})).unwrap()).await.unwrap();
        }
    }
}

fn write_units(seen: &[Seen]) -> f64 {
    seen.iter().map(|seen| seen.write_units).sum()
}

fn read_units(seen: &[Seen]) -> f64 {
    seen.iter().map(|seen| seen.read_units).sum()
}

/// Repeats a request until the rate limit refuses it. Returns the answers before that.
async fn until_limited<F: Future<Output = Answer>>(most: usize, mut ask: impl FnMut(usize) -> F) -> Vec<Answer> {
    let mut through = Vec::new();
    for call in 0..most {
        let answer = ask(call).await;
        if answer.status == 429 {
            let error = answer.json()["error"].clone();
            assert!(error == "rate_limit_exceeded" || error == "rate_limited", "{}", answer.text);
            assert!(answer.header("retry-after").is_some());
            return through;
        }
        through.push(answer);
    }
    panic!("{most} came through, the last with {}", through.last().map_or(0, |last| last.status));
}

#[test]
fn large_public_answers_are_limited_to_six_mib_a_minute() {
    run(async {
        let it = deployed().await;
        let stranger = Payer::with(&it.stack, 0).await.client;
        let mut sizes = Vec::new();
        for path in
            ["/", "/llms.txt", "/skill.md", "/pricing", "/v1/tools/discover", "/.well-known/x402", "/v1/soul/templates"]
        {
            let answer = stranger.get(path, &[]).await;
            sizes.push((path, answer.text.len()));
        }
        for path in ["/llms-full.txt", "/openapi.json", "/docs/swagger-ui-bundle.js"] {
            sizes.push((path, bytes(&stranger.get(path, &[]).await)));
        }
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let accept = [("accept", "application/json, text/event-stream")];
        let list_bytes = stranger.post("/mcp?tools=all", &accept, &list).await.text.len();
        sizes.push(("tools/list", list_bytes));
        println!("{sizes:?}");
        assert!(sizes.iter().all(|(_, bytes)| (*bytes as f64) < most::PUBLIC), "{sizes:?}");

        it.stack.app.clock.advance(std::time::Duration::from_secs(60));
        it.database.take_seen();
        let through = until_limited(200, |_| stranger.get("/docs/swagger-ui-bundle.js", &[])).await;
        let sent: usize = through.iter().map(bytes).sum();
        let limit = Class::Public.limit().count as usize * 1024;
        assert!((limit..limit + most::PUBLIC as usize).contains(&sent), "{sent} bytes of {limit}");
        assert!(write_units(&it.database.take_seen()) <= through.len() as f64 + 1.0, "one each");
        assert_eq!(stranger.get("/openapi.json", &[]).await.status, 429, "all of them together");
        assert_eq!(stranger.post("/mcp?tools=all", &accept, &list).await.status, 429, "also over MCP");
        // Others at the same address go on: what a token or a payment proves is not counted for the address.
        let payer = Payer::with(&it.stack, 0).await;
        let token = payer.token(&it.stack).await;
        let held = [accept[0], ("authorization", token.as_str())];
        assert_eq!(stranger.post("/mcp?tools=all", &held, &list).await.status, 200, "a token has a limit of its own");
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        assert_eq!(stranger.post("/mcp", &accept, &ping).await.status, 200, "what is small is not counted");
        let lists = until_limited(500, async |_| stranger.post("/mcp?tools=all", &held, &list).await).await;
        assert!(lists.len() * list_bytes <= limit + list_bytes, "{} lists of {list_bytes} bytes", lists.len());
        assert_eq!(stranger.get("/health", &[]).await.status, 200, "what is small is not counted");
        it.stack.app.clock.advance(std::time::Duration::from_secs(60));
        assert_eq!(stranger.get("/openapi.json", &[]).await.status, 200);
    });
}

fn bytes(answer: &Answer) -> usize {
    answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(answer.text.len())
}

/// Wallets and signatures cost nothing, but chain queries do.
#[test]
fn refused_payments_of_a_source_query_the_chain_at_most_twenty_times_a_minute() {
    run(async {
        let it = deployed().await;
        let vin = json!({"vin": VIN});
        let pay = async |payer: &Payer| {
            let payment = header(&bare(&payer.authorize(5_000)));
            payer.client.post(VIN_PATH, &[("x-payment", &payment)], &vin).await
        };
        let known = Payer::new(&it.stack).await;
        known.has_settled(&it.stack, 50_000).await;
        it.node.take_seen();
        it.database.take_seen();
        let refused = until_limited(100, async |_| pay(&Payer::with(&it.stack, 0).await).await).await;
        assert!(refused.iter().all(|answer| answer.status == 402), "{}", refused[0].text);
        let limit = Class::Chain.limit().count as usize;
        assert_eq!(refused.len(), limit);
        let questions = it.node.take_seen().len();
        assert_eq!(questions as f64, limit as f64 * most::NODE_REQUESTS);
        let seen = it.database.take_seen();
        println!("{questions} questions, {} write and {} read units", write_units(&seen), read_units(&seen));
        assert!(write_units(&seen) <= limit as f64 + NOISE);

        // No other request of this source queries the chain, except the one by which each function learns of the limit.
        let unknown = until_limited(100, async |_| {
            known.client.get(&format!("/v1/payments/{}", hex0x(&digest::random::<32>())), &[]).await
        });
        assert_eq!(unknown.await.len(), 1);
        let mut odd: Value =
            serde_json::from_slice(&base::encoding::base64_any(&it.proof(&known, "read")).unwrap()).unwrap();
        odd["signature"] = json!(hex0x(&[1; 64]));
        let odd = base::encoding::base64_standard(odd.to_string().as_bytes());
        let odd = until_limited(100, async |_| known.client.get("/v1/agents/me", &[("x-agent-proof", &odd)]).await);
        assert_eq!(odd.await.len(), 1);
        assert!(it.node.take_seen().len() as f64 <= 2.0 * most::NODE_REQUESTS);
        // A wallet that has paid before continues, from the same address.
        let answer = pay(&known).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        it.stack.app.clock.advance(std::time::Duration::from_secs(60));
        assert_eq!(pay(&Payer::with(&it.stack, 0).await).await.status, 402, "a new minute");
    });
}

#[test]
fn odd_proofs_and_unknown_payments_query_the_chain_at_most_twenty_times_a_minute() {
    run(async {
        let it = deployed().await;
        let client = Payer::with(&it.stack, 0).await.client;
        let asked = until_limited(100, async |_| {
            let nonce = hex0x(&digest::random::<32>());
            client.get(&format!("/v1/payments/{nonce}"), &[]).await
        })
        .await;
        assert_eq!(asked.len(), Class::Chain.limit().count as usize);
        assert!(it.node.take_seen().len() as f64 <= asked.len() as f64 * most::NODE_REQUESTS);
        it.stack.app.clock.advance(std::time::Duration::from_secs(60));
        let asked = until_limited(100, async |_| {
            let payer = Payer::with(&it.stack, 0).await;
            let proof = base::encoding::base64_any(&it.proof(&payer, "read")).unwrap();
            let mut proof: Value = serde_json::from_slice(&proof).unwrap();
            proof["signature"] = json!(hex0x(&[1; 64]));
            let proof = base::encoding::base64_standard(proof.to_string().as_bytes());
            payer.client.get("/v1/agents/me", &[("x-agent-proof", &proof)]).await
        })
        .await;
        assert!(asked.iter().all(|answer| answer.status == 401));
        assert_eq!(asked.len(), Class::Chain.limit().count as usize);
        assert!(it.node.take_seen().len() as f64 <= asked.len() as f64 * most::NODE_REQUESTS);
    });
}

#[test]
fn writes_of_a_new_wallet_are_limited_in_size_and_number() {
    run(async {
        let it = deployed().await;
        let payer = Payer::with(&it.stack, 0).await;
        let vin = json!({"vin": VIN});
        let prices = until_limited(500, async |_| {
            payer.client.post(VIN_PATH, &[("x-agent-proof", &it.proof(&payer, "write"))], &vin).await
        })
        .await;
        assert_eq!(prices.len(), Class::Quote.limit().count as usize);
        let seen = it.database.take_seen();
        // The refused request also used up its proof and read its rate limit count.
        assert!(write_units(&seen) <= most::PROVEN * (prices.len() + 1) as f64 + NOISE, "{}", write_units(&seen));
        assert!(read_units(&seen) <= 2.0 * prices.len() as f64 + NOISE, "{}", read_units(&seen));
        let size = prices[0].text.len() + prices[0].header("payment-required").unwrap().len();
        println!("a price is {size} bytes");
        assert!((size as f64) < most::SMALL / 2.0);

        // The most expensive of the free writes.
        let policy = |domains: usize| {
            let names: Vec<String> = (0..100).map(|name| format!("{}{name:02}.example.com", "x".repeat(60))).collect();
            let rule = |id: usize| json!({"id": format!("r{id}"), "tool": "email", "action": "deny", "when": {"recipient_domain_not_in": names}});
            json!({"rules": (0..domains).map(rule).collect::<Vec<_>>(), "approver": {"email": "a@example.com"}})
        };
        let put = async |policy: &Value| {
            let proof = it.proof(&payer, "write");
            let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
            payer.client.send("PUT", "/v1/agents/me/action-policy", &headers, policy.to_string()).await.unwrap()
        };
        let refused = put(&policy(25)).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        it.database.take_seen();
        let largest =
            (1..25).map(policy).take_while(|policy| policy.to_string().len() < MAX_POLICY_BYTES).last().unwrap();
        let kept = put(&largest).await;
        assert_eq!(kept.status, 200, "{}", kept.text);
        let units = write_units(&it.database.take_seen());
        println!("a policy of {} bytes takes {units} write units", largest.to_string().len());
        assert!(units <= most::WRITTEN, "{units}");
        let (proof, agent) = (it.proof(&payer, "write"), json!({"what": "agent"}));
        let frozen = payer.client.post("/v1/agents/me/freezes", &[("x-agent-proof", &proof)], &agent).await;
        assert_eq!(frozen.status, 200, "{}", frozen.text);
        let units = write_units(&it.database.take_seen());
        println!("a freeze takes {units} write units");
        assert!(units <= most::WRITTEN, "{units}");
    });
}

#[test]
fn approvals_and_mails_are_limited_per_source_and_day() {
    run(async {
        let it = deployed().await;
        let source = platform::http::limit::name_of("127.0.0.1".parse().ok());
        let ask = async |body: &Value| {
            let payer = Payer::with(&it.stack, 0).await;
            let proof = it.proof(&payer, "write");
            let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
            payer.client.send("POST", "/v1/approvals", &headers, body.to_string()).await.unwrap()
        };
        let body =
            |name: &str| json!({"action_summary": "to buy", "approver": {"email": format!("{name}@example.com")}});
        let told = |answer: &Answer| answer.json()["data"]["notified"].as_bool().unwrap_or_default();
        it.use_up(&format!("MAILS#{source}"), own_mail::MAX_OF_SOURCE_A_DAY.into(), 1).await;
        assert!(told(&ask(&body("one")).await));
        assert!(!told(&ask(&body("two")).await), "whoever asks whomever");
        it.use_up(&format!("MAILS#{source}"), 10, 10).await;
        it.use_up("MAILS#all", (own_mail::MAX_IN_ALL_A_DAY - own_mail::RESERVED_A_DAY).into(), 1).await;
        assert!(told(&ask(&body("three")).await));
        assert!(!told(&ask(&body("four")).await), "the deployment's");
        // What is left is for agents with money behind them.
        let owner = Payer::with(&it.stack, 0).await;
        let ask_as_owner = async |name: &str| {
            let proof = it.proof(&owner, "write");
            let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
            owner.client.send("POST", "/v1/approvals", &headers, body(name).to_string()).await.unwrap()
        };
        assert!(!told(&ask_as_owner("four").await));
        owner.give_credits(&it.stack, 50_000).await;
        it.use_up(&format!("MAILS#agent:{}", owner.agent()), own_mail::MAX_RESERVED_OF_AGENT_A_DAY.into(), 1).await;
        assert!(told(&ask_as_owner("four").await));
        assert!(!told(&ask_as_owner("four").await), "one owner cannot use up the share of all");
        it.use_up(&format!("RATE#{source}#approval"), approvals::MAX_OF_SOURCE_A_DAY.into(), 1).await;
        assert_eq!(ask(&body("five")).await.status, 201);
        assert_eq!(ask(&body("six")).await.error(), (429, "rate_limit_exceeded".to_owned()));
        let mails = std::fs::read_dir(&it.stack.outbox).map_or(0, |files| files.count());
        assert_eq!(mails, 3);
    });
}

#[test]
fn registrations_and_searches_are_limited_per_source() {
    run(async {
        let it = deployed().await;
        let client = Payer::with(&it.stack, 0).await.client;
        it.database.take_seen();
        let registered = until_limited(20, async |call| {
            let body = json!({
                "name": "A soul", "slug": format!("words-{call}"), "bio": "words ".repeat(40).trim(),
                "soul_md": format!("# {call}\n\n{}", "It writes many words about many things. ".repeat(400)), "soul_price": 2,
                "service": {"name": "Many words", "slug": "words", "price_usd": 0.5, "executor": "worker"},
            });
            client.post("/v1/soul/register", &[], &body).await
        })
        .await;
        assert!(registered.iter().all(|answer| answer.status == 200), "{}", registered[0].text);
        assert_eq!(registered.len(), Class::Register.limit().count as usize);
        let units = write_units(&it.database.take_seen()) / registered.len() as f64;
        println!("a registration takes {units} write units");
        assert!(units <= most::REGISTRATION, "{units}");
        let searched = until_limited(500, |_| client.get("/v1/soul/search?q=many+words", &[])).await;
        assert_eq!(searched.len(), Class::Search.limit().count as usize);
        let seen = it.database.take_seen();
        let reads = read_units(&seen) / searched.len() as f64;
        println!("a search takes {reads} read units");
        assert!(reads <= most::SEARCH, "{reads}");
    });
}

#[test]
fn websockets_are_limited_per_source_across_wallets() {
    run(async {
        let it = deployed().await;
        let host = it.stack.base_url.strip_prefix("http://").unwrap();
        let mut open = Vec::new();
        let refused = loop {
            let payer = Payer::with(&it.stack, 0).await;
            let mut request = format!("ws://{host}/v1/requests/subscribe").into_client_request().unwrap();
            request.headers_mut().append("x-agent-proof", it.proof(&payer, "read").parse().unwrap());
            let stream = TcpStream::connect(host).await.unwrap();
            match tokio_tungstenite::client_async(request, stream).await {
                Ok((stream, _)) => open.push(stream),
                Err(Error::Http(answer)) => {
                    assert_eq!(answer.headers()["retry-after"], "60");
                    break answer.status().as_u16();
                }
                Err(error) => panic!("{error}"),
            }
            assert!(open.len() < 100);
        };
        assert_eq!((open.len(), refused), (Class::Connect.limit().count as usize, 429));
    });
}

/// Whether a WebSocket of this payer is accepted; the status if not.
async fn connect(it: &Deployed, payer: &Payer) -> Result<WebSocketStream<TcpStream>, u16> {
    let host = it.stack.base_url.strip_prefix("http://").unwrap();
    let mut request = format!("ws://{host}/v1/requests/subscribe").into_client_request().unwrap();
    request.headers_mut().append("x-agent-proof", it.proof(payer, "read").parse().unwrap());
    let stream = TcpStream::connect(host).await.unwrap();
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((stream, _)) => Ok(stream),
        Err(Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn strangers_cannot_use_up_the_websockets_of_agents_with_money() {
    run(async {
        let it = deployed().await;
        let (stranger, owner) = (Payer::with(&it.stack, 0).await, Payer::with(&it.stack, 0).await);
        owner.give_credits(&it.stack, 50_000).await;
        let (db, now) = (&it.stack.app.db, it.stack.app.clock.now().secs());
        for minute in 0..5 {
            let start = now - now.rem_euclid(60) + minute * 60;
            let key = Key::new("RATE#all#connects", start.to_string());
            let used = json!({"used": Class::ConnectAll.limit().count});
            db.write(Write::put(&db.tables.agents, key, &used).unwrap()).await.unwrap();
        }
        assert_eq!(connect(&it, &stranger).await.err(), Some(429));
        assert_eq!(connect(&it, &owner).await.err(), None);
    });
}

/// One cent buys a megabyte, but not unlimited traffic.
#[test]
fn repeated_reads_of_a_large_result_are_limited() {
    run(async {
        let it = deployed().await;
        let shop = Shop::open(&it.stack, "large-result").await;
        let payer = Payer::new(&it.stack).await;
        let job = buy(&shop, &payer, "words").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let result = json!({"result": "a".repeat(1_000_000)});
        assert_eq!(shop.send("POST", &format!("/jobs/{job}/complete"), &result).await.status, 200);
        let address = payer.address().to_string();
        let path = format!("/v1/soul/jobs/{job}?full=true");
        let read = until_limited(200, async |_| payer.client.get(&path, &[("x-agent-id", &address)]).await).await;
        let sent: usize = read.iter().map(|answer| answer.text.len()).sum();
        let limit = Class::Result.limit().count as usize * 1024;
        assert!((limit..limit + 1_200_000).contains(&sent), "{sent} of {limit}");
        let short = payer.client.get(&format!("/v1/soul/jobs/{job}"), &[("x-agent-id", &address)]).await;
        assert_eq!(
            (short.status, short.json()["job"]["status"] == "completed"),
            (200, true),
            "how it is, is still told"
        );
        assert!(short.text.len() < 2_000, "with a preview of {} bytes", short.text.len());
        // Neither they nor the seller used any of the buyer's limit. The buyer has the same limit for every way of
        // reading.
        let limit = Class::Result.limit();
        let request = RequestId::of_soul_job(&job).unwrap();
        it.use_up(&format!("RATE#job:{request}:seller#{}", limit.name), limit.count.into(), 0).await;
        assert_eq!(shop.get(&format!("/jobs/{job}?full=true")).await.status, 429);
        let poll = async || {
            let proof = it.proof(&payer, "read");
            payer.client.get(&format!("/v1/requests/{request}"), &[("x-agent-proof", &proof)]).await.status
        };
        assert_eq!(poll().await, 200);
        it.use_up(&format!("RATE#job:{request}#{}", limit.name), limit.count.into(), 0).await;
        assert_eq!(poll().await, 429);
    });
}

/// Previews and long lists count with the size that is sent.
#[test]
fn previews_and_long_file_lists_count_against_the_result_limit() {
    run(async {
        let it = deployed().await;
        let shop = Shop::open(&it.stack, "long-lists").await;
        let payer = Payer::new(&it.stack).await;
        let job = buy(&shop, &payer, "words").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let id = RequestId::of_soul_job(&job).unwrap();
        let bought = store::load_latest(&it.stack.app.db, id).await.unwrap().unwrap();
        let (db, blobs, now) = (&it.stack.app.db, &*it.stack.app.blobs, it.stack.app.clock.now());
        for number in 0..40 {
            let row = FileRow::of(&format!("{number:02}{}", "€".repeat(80)), "text/plain", 1, now);
            let open = Write::check(&db.tables.jobs, bought.key()).only_if("attribute_exists(#pk)");
            files::keep(db, blobs, bought.files(), open, row, Some(vec![b'x'])).await.unwrap().unwrap();
        }
        let result = json!({"result": "\u{1}".repeat(100_000)});
        assert_eq!(shop.send("POST", &format!("/jobs/{job}/complete"), &result).await.status, 200);
        let address = payer.address().to_string();
        let limit = Class::Result.limit();
        for (path, most, then) in [("", 70_000, 200), ("/files", 50_000, 429)] {
            it.use_up(&format!("RATE#job:{id}:named#{}", limit.name), limit.count.into(), 1).await;
            let read =
                async || payer.client.get(&format!("/v1/soul/jobs/{job}{path}"), &[("x-agent-id", &address)]).await;
            let (first, second) = (read().await, read().await);
            assert_eq!((first.status, second.status), (200, then), "{path}");
            assert!((16_384..most).contains(&first.text.len()), "{path}: {} bytes", first.text.len());
            assert!(second.text.len() < 3_000, "{path}: {} bytes", second.text.len());
        }
    });
}

#[test]
fn results_pushed_over_a_websocket_count_against_the_limit() {
    run(async {
        let it = deployed().await;
        let shop = Shop::open(&it.stack, "told-result").await;
        let payer = Payer::new(&it.stack).await;
        let job = buy(&shop, &payer, "words").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let result = json!({"result": "a".repeat(100_000)});
        assert_eq!(shop.send("POST", &format!("/jobs/{job}/complete"), &result).await.status, 200);
        let request = RequestId::of_soul_job(&job).unwrap();
        let host = it.stack.base_url.strip_prefix("http://").unwrap();
        let mut upgrade = format!("ws://{host}/v1/requests/subscribe").into_client_request().unwrap();
        upgrade.headers_mut().append("x-agent-proof", it.proof(&payer, "read").parse().unwrap());
        let stream = TcpStream::connect(host).await.unwrap();
        let (mut socket, _) = tokio_tungstenite::client_async(upgrade, stream).await.unwrap();
        let mut told = async || {
            socket.send(Message::text(json!({"subscribe": [request]}).to_string())).await.unwrap();
            let mut last = Value::Null;
            for _ in 0..2 {
                let message = socket.next().await.expect("a message").unwrap();
                last = serde_json::from_str(message.to_text().unwrap()).unwrap();
            }
            last
        };
        assert_eq!(told().await["status"], "completed");
        let limit = Class::Result.limit();
        it.use_up(&format!("RATE#job:{request}#{}", limit.name), limit.count.into(), 0).await;
        assert_eq!(told().await["type"], "poll");
    });
}

#[test]
fn exports_and_long_lists_are_limited_per_day() {
    run(async {
        let it = deployed().await;
        let payer = Payer::with(&it.stack, 0).await;
        let preview = json!({"text": "x".repeat(2_000)});
        let question = json!({"action_summary": "Go on", "approver": {"email": "a@example.com"}, "preview": preview});
        for _ in 0..10 {
            let proof = it.proof(&payer, "write");
            let asked = payer.client.post("/v1/approvals", &[("x-agent-proof", &proof)], &question).await;
            assert_eq!(asked.status, 201, "{}", asked.text);
        }
        let limit = Class::Export.limit();
        for path in ["/v1/audit/export?format=csv", "/v1/approvals"] {
            it.use_up(&format!("RATE#agent:{}#{}", payer.agent(), limit.name), limit.count.into(), 1).await;
            let read = async || {
                let proof = it.proof(&payer, "read");
                payer.client.get(path, &[("x-agent-proof", &proof)]).await
            };
            assert_eq!((read().await.status, read().await.status), (200, 429), "{path}");
            let refused = read().await;
            let policy = refused.header("ratelimit").unwrap_or_default();
            assert!(policy.starts_with("\"export\""), "{path}: a refusal says which limit it came to: {policy}");
        }
        // A short list uses nothing of the limit.
        let proof = it.proof(&payer, "read");
        let short = payer.client.get("/v1/approvals?limit=1", &[("x-agent-proof", &proof)]).await;
        assert_eq!(short.status, 200, "{}", short.text);

        let shop = Shop::open(&it.stack, "many-services").await;
        for number in 0..10 {
            let described = json!({"properties": {"a": {"description": "x".repeat(2_000)}}});
            let body = json!({
                "name": format!("Service {number}"), "slug": format!("service-{number}"), "price_usd": 1, "category": "data", "executor": "worker",
                "input_schema": described,
            });
            let added = shop.send("POST", "/services", &body).await;
            assert_eq!(added.status, 201, "{}", added.text);
        }
        let soul = soul::load(&it.stack.app.db, &shop.slug).await.unwrap().expect("the soul").id();
        it.use_up(&format!("RATE#soul:{soul}#{}", limit.name), limit.count.into(), 1).await;
        assert_eq!((shop.get("/services").await.status, shop.get("/services").await.status), (200, 429));
    });
}

/// A provider may charge us more than the tool's price.
#[test]
fn daily_provider_calls_are_limited_across_processes() {
    run(async {
        let receiver = Receiver::start().await;
        receiver.answer(|| {
            let body = json!({"results": [{"url": "https://example.com/", "title": "A page", "content": "words"}]});
            axum::response::IntoResponse::into_response(axum::Json(body))
        });
        let clock = Clock::pinned(Clock::system().now());
        let urls = json!({"searxng": format!("http://127.0.0.1:{}", receiver.host.1)}).to_string();
        let stack = stack_with(|options| {
            let options = options.with("SEARCH_PROVIDERS", "searxng").with("PROVIDER_URLS", urls);
            Options { clock: clock.clone(), ..options.with("PROVIDER_CALLS_PER_DAY", "brave=1, searxng=2") }
        })
        .await;
        let search = async |words: &str| {
            let end = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
            let ask = Ask::get(format!("/search?q={words}&format=json"));
            let app = stack.app.toolbox(&Connections::open(&stack.config).unwrap(), FetchPolicy::default()).unwrap();
            app.outbound.json("searxng", "", &ask, &[], end).await.map(drop)
        };
        assert_eq!(search("one").await, Ok(()));
        assert_eq!(search("two").await, Ok(()));
        assert_eq!(search("three").await, Err(OutboundError::TooMany));
        assert_eq!(receiver.count(), 2);
        clock.advance(std::time::Duration::from_secs(86_400));
        assert_eq!(search("four").await, Ok(()));
    });
}

/// An approval shows its approver the whole input, so each approval stores it.
#[test]
fn a_held_call_stores_its_input_once() {
    run(async {
        let it = deployed_with(Background::Worker).await;
        let text = json!({"type": "object", "properties": {"text": {"type": "string", "maxLength": 65_000}}});
        let shop = Shop::with(&it.stack, "held", json!({"executor": "worker", "input_schema": text})).await;
        let payer = Payer::with(&it.stack, 0).await;
        let policy = json!({
            "rules": [{"id": "all", "tool": "*", "action": "require_approval", "when": {"always": true}}],
            "approver": {"email": "held@example.com"},
        });
        let proof = it.proof(&payer, "write");
        let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
        let put = payer.client.send("PUT", "/v1/agents/me/action-policy", &headers, policy.to_string()).await.unwrap();
        assert_eq!(put.status, 200, "{}", put.text);
        it.database.take_seen();
        let input = json!({"input": {"text": "a".repeat(64_000)}});
        let proof = it.proof(&payer, "write");
        let held = payer.client.post(&shop.execute_path(), &[("x-agent-proof", &proof)], &input).await;
        assert_eq!(held.error(), (403, "approval_required".to_owned()), "{}", held.text);
        let units = write_units(&it.database.take_seen());
        println!("an approval of 64 KB takes {units} write units");
        assert!(units > 64.0 && 2.0 * units <= most::APPROVAL, "{units}");
    });
}

/// We pay for the gas.
#[test]
fn a_settlement_uses_no_more_gas_than_documented() {
    run(async {
        let it = deployed().await;
        let payer = Payer::new(&it.stack).await;
        let bought = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let transaction = bought.base64_header("payment-response")["transaction"].clone();
        let receipt = chain().await.rpc().call("eth_getTransactionReceipt", json!([transaction])).await.unwrap();
        let gas =
            receipt["gasUsed"].as_str().and_then(|gas| u64::from_str_radix(gas.trim_start_matches("0x"), 16).ok());
        println!("a payment takes {gas:?} gas");
        assert!(gas.is_some_and(|gas| gas as f64 <= most::GAS), "{receipt}");
    });
}
