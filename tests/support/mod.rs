//! Shared by all tests: one runtime, one chain, a stack for each test, and callers that sign as real clients do.

pub mod books;
pub mod children;
pub mod chromium;
pub mod crashes;
pub mod crowd;
pub mod debian;
pub mod described;
pub mod findings;
pub mod http;
pub mod mailhost;
pub mod payer;
pub mod permissions;
pub mod platform;
pub mod programs;
pub mod proxy;
pub mod ranking;
pub mod receiver;
pub mod relay;
pub mod rye;
pub mod s3;
pub mod seller;
pub mod sns;
pub mod unipile;
pub mod zone;

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use ::platform::net::FetchPolicy;
use ::platform::store::{Db, Write};
use base::clock::{Clock, Timestamp};
use base::ids::{AgentId, RequestId, uuid_of};
use catalog::CATALOG;
use devchain::DevChain;
use evm::hex0x;
use evm::signature::PrivateKey;
use local::{Options, Stack};
use serde_json::{Map, json};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tools::availability::{self, Lacking};
use tools::snapshot;
use tools::spec::Need;
use tools_sms::number::Number;
use tools_sms::phone::{self, Phone};
use tools_voice::{config, settings};
use web::search::address;
use web::search::index::writer::Change;
use web::search::index::{Limits, StoredPage, Writer};

pub use http::{Answer, Client};
pub use payer::Payer;
pub use platform::Platform;
pub use seller::Seller;

/// One runtime for every test. The chain and the stacks run on it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).thread_stack_size(local::STACK_BYTES).enable_all();
    runtime.build().expect("a runtime")
});

static CHAIN: OnceCell<Arc<DevChain>> = OnceCell::const_new();

/// Runs a test. It fails if a function asked AWS for something that its role does not allow, even if the code handled
/// that.
pub fn run<T>(journey: impl Future<Output = T>) -> T {
    let watch = permissions::Watch;
    // LOGS=1 prints what the functions log.
    if std::env::var_os("LOGS").is_none() {
        ::platform::http::log::silence();
    }
    let done = RUNTIME.block_on(journey);
    watch.settle();
    done
}

/// `make bench` prints these (set `PRINT_CAPS=1`).
pub fn print_caps(of: &str, let_through: usize, calls: usize) {
    if std::env::var_os("PRINT_CAPS").is_some() {
        println!("caps: {let_through} of {calls} parallel calls were let through by a {of} for 50");
    }
}

/// The workspace's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_owned()
}

/// The chain that all tests share; each uses its own payers.
pub async fn chain() -> Arc<DevChain> {
    let start = async {
        let binary = devchain::install::ensure(&root().join(".tools/anvil"), &|line| eprintln!("{line}")).await;
        let binary = binary.expect("anvil can be installed with npm");
        // Started on the runtime's own threads, so that the chain's tasks do not end with a test.
        let chain = RUNTIME.spawn(async { DevChain::start(devchain::Options::new(binary)).await });
        Arc::new(chain.await.expect("starting the chain").expect("the chain starts"))
    };
    CHAIN.get_or_init(|| start).await.clone()
}

/// A stack with empty stores and the published defaults.
pub async fn stack() -> Stack {
    stack_with(|options| options).await
}

/// A stack on which every tool has a price: with invalid keys, a provider that is never called, and empty copies. The
/// work itself would fail.
pub async fn equipped_stack() -> Stack {
    equipped_stack_with(|options| options).await
}

/// The same with changed options.
pub async fn equipped_stack_with(change: impl FnOnce(Options) -> Options) -> Stack {
    let empty = Map::new();
    let needs: Vec<Need> = CATALOG.iter().flat_map(|tool| (tool.needs)(tool, &empty)).collect();
    let keys = needs.iter().filter_map(|need| if let Need::Key(name) = need { Some((*name, "none")) } else { None });
    let keys = keys.chain([("rye", rye::KEY)]);
    let keys = json!(keys.collect::<HashMap<_, _>>()).to_string();
    // The price of a purchase is asked there.
    let shops = rye::Rye::start().await;
    shops.script(|script| script.slow = 0);
    let equip = |options: Options| {
        options
            .with("PROVIDER_KEYS", keys)
            .with("PLACES_PROVIDERS", "google_places")
            .with("SMS_PROVIDERS", "twilio")
            .with("NETWORK_PROVIDERS", "local")
            .with("BROWSER_URL", "http://127.0.0.1:9")
            .with("PRODUCT_PROVIDERS", "shopify")
            .with("PURCHASE_PROVIDERS", "rye")
            .with("PROVIDER_URLS", json!({"rye": shops.url}).to_string())
    };
    let stack = stack_with(|options| change(equip(options))).await;
    for need in &needs {
        match need {
            Need::Copy(name) => {
                snapshot::publish(&*stack.app.blobs, name, "2026-11-20", Vec::new()).await.expect("a copy");
            }
            Need::Pages => has_pages(&stack).await,
            _ => {}
        }
    }
    let db = &stack.app.db;
    has_phone_of_examples(db, stack.app.clock.now()).await;
    // The worker may have checked before all of it was there.
    eventually("what cannot be done", || async { availability::load(db).await.expect("the list") }).await;
    availability::publish(db, &Lacking::default()).await.expect("the list");
    stack
}

/// The number of the examples is an agent's and takes calls, so a call to it needs no provider.
async fn has_phone_of_examples(db: &Db, now: Timestamp) {
    let (number, source) = (Number::parse("+14155552671").expect("a number"), phone::EMBEDDED.to_owned());
    let phone = Phone {
        id: uuid_of(&[b"phone of examples"]),
        agent: AgentId::from_bytes([7; 16]),
        number: number.clone(),
        source,
        bought_by: RequestId::random(),
        created: now,
        last_used_at: None,
        leased: false,
        lost_at: None,
        inbound: None,
        line: None,
    };
    let (agent, id, source) = (phone.agent, phone.id, phone.source.clone());
    let owner = phone::Owner { agent, id, source: source.clone(), used_at: None, free_from: None };
    for row in [
        Write::put(&db.tables.messages, phone::key_of(phone.agent, &source), &phone),
        Write::put(&db.tables.messages, phone::owner_key(&number), &owner),
    ] {
        db.write(row.expect("a row")).await.expect("a number");
    }
    let settings = json!({"prompt": "You answer for a restaurant."});
    let policy = FetchPolicy::default();
    let config = config::read(settings.as_object().expect("settings"), &policy).expect("settings");
    settings::save(db, &phone, &config, None, now).await.expect("a database").expect("a number");
}

/// Adds a page that no test searches for to the index. Tools that search pages then have a price, and find nothing.
pub async fn has_pages(stack: &Stack) {
    let (db, blobs) = (stack.app.db.clone(), stack.app.blobs.clone());
    let url = "https://example.org/of-no-use".to_owned();
    let page = StoredPage {
        same: address::same_page(&address::tidy(&url).expect("an address")),
        url,
        title: "Qwxz".to_owned(),
        text: "Qwxz vbnj.".to_owned(),
        read_at: Clock::system().now(),
        ..StoredPage::default()
    };
    let json = serde_json::to_vec(&page).expect("a page");
    blobs.put(&page.key(), "application/json", json).await.expect("a page");
    let change = Change { add: vec![page.key()], ..Change::default() };
    Writer::new(db, blobs, Clock::system(), Limits::default()).apply(&change).await.expect("an index");
}

/// A stack with changed options. Each has its own fee wallet, as each deployment has.
pub async fn stack_with(change: impl FnOnce(Options) -> Options) -> Stack {
    let chain = chain().await;
    let key: evm::Word = base::digest::random();
    let address = PrivateKey::from_bytes(&key).expect("a key").address().to_string();
    chain.rpc().call("anvil_setBalance", json!([address, "0x8ac7230489e80000"])).await.expect("gas money");
    let mut options = Options::in_memory(chain).with("RELAYER_PRIVATE_KEY", hex0x(&key));
    // Rate limits are tested in one place; other tests must not hit them.
    options = options.with("RATE_LIMIT_SCALE", "1000");
    if let Ok(endpoint) = std::env::var("AWS_TEST_ENDPOINT") {
        // Another implementation of AWS is shared by all stacks, so each gets its own tables.
        options = options.with("AWS_ENDPOINT_URL", endpoint).with("TABLE_PREFIX", format!("t{}", &hex0x(&key)[2..14]));
    }
    let options = change(options);
    start(options).await
}

/// Starts a stack and records its functions' requests to AWS, which [`run`] checks.
pub async fn start(options: Options) -> Stack {
    let stack = RUNTIME.spawn(Stack::start(options)).await.expect("starting a stack").expect("the stack starts");
    permissions::watch(&stack.guard);
    stack
}

/// The functions that sell.
pub const GATES: [&str; 7] = ["knowledge", "messaging", "voice", "credits", "checkout", "souls", "mcp"];

/// Lets each selling function read the operator's switch, so that no call does so for the next five seconds.
pub async fn look_at_the_switch(stack: &Stack) {
    for function in GATES {
        let stopped = gate::limits::stopped(&stack.functions[function]).await.expect("a database");
        assert_eq!(stopped, None, "{function}");
    }
}

/// A test hangs then. Long, because the suite has two cores: work that lost a race pauses for 30 s, sometimes twice.
const HANGS_AFTER: Duration = Duration::from_secs(180);

/// Repeats until the result is `Some`. Fails the test if that takes too long.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + HANGS_AFTER;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A Honda that all examples use.
pub const VIN: &str = "1HGCM82633A004352";
pub const VIN_PATH: &str = "/v1/tools/lookup/vehicle-identification";
pub const READ_PATH: &str = "/v1/tools/web-read";
