//! What survives each way to end, and that no process is left running.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use devchain::{
    ChainError, DevChain, Options, Rpc,
    contracts::{Arg, TEST_DOLLAR},
    node::PAYER_BALANCE,
    state,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{Said, anvil, authorization::*};

/// A state folder for one test, empty at the start.
fn fresh_folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("chains").join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

async fn options(folder: &Path) -> Options {
    Options { state_dir: Some(folder.to_owned()), ..Options::new(anvil().await) }
}

async fn start(folder: &Path) -> DevChain {
    DevChain::start(options(folder).await).await.expect("the chain starts")
}

async fn start_and_listen(folder: &Path) -> (DevChain, String) {
    let said = Said::default();
    let options = Options { say: said.listener(), ..options(folder).await };
    let chain = DevChain::start(options).await.expect("the chain starts");
    (chain, said.text())
}

/// A payment, and what the test checks about it later.
struct Payment {
    authorization: Authorization,
    call: String,
    receipt: Value,
}

/// Pays one test dollar from a payer to the treasury.
async fn pay(chain: &DevChain, nonce: u8) -> Payment {
    let payer = &chain.payers()[0];
    let authorization = Authorization::new(&payer.address, &chain.treasury().address, 1_000_000, nonce);
    let call = authorization.bytes_call(BYTES_TRANSFER, &sign(payer, &authorization.digest(chain)));
    let relayer = &chain.relayer().address;
    let receipt = chain.rpc().send(json!({"from": relayer, "to": chain.token(), "data": call})).await.unwrap();
    Payment { authorization, call, receipt }
}

/// Everything the service relies on is as before the stop.
async fn assert_remembered(chain: &DevChain, payments: &[Payment]) {
    let rpc = chain.rpc();
    let paid = 1_000_000 * payments.len() as u128;
    assert_eq!(chain.balance_of(&chain.treasury().address).await.unwrap(), paid);
    assert_eq!(chain.balance_of(&chain.payers()[0].address).await.unwrap(), PAYER_BALANCE - paid);
    let count = rpc.quantity("eth_getTransactionCount", json!([chain.relayer().address, "latest"])).await.unwrap();
    assert_eq!(count, payments.len() as u128);

    let filter = json!([{
        "address": chain.token(),
        "fromBlock": "0x0",
        "toBlock": "latest",
        "topics": [event("AuthorizationUsed(address,bytes32)")],
    }]);
    let logs = rpc.call("eth_getLogs", filter).await.unwrap();
    assert_eq!(logs.as_array().unwrap().len(), payments.len());

    for (payment, log) in payments.iter().zip(logs.as_array().unwrap()) {
        let hash = &payment.receipt["transactionHash"];
        assert_eq!(rpc.call("eth_getTransactionReceipt", json!([hash])).await.unwrap(), payment.receipt);
        assert_eq!(&rpc.call("eth_getTransactionByHash", json!([hash])).await.unwrap()["hash"], hash);
        assert_eq!(&log["transactionHash"], hash);
        let block = rpc.call("eth_getBlockByHash", json!([payment.receipt["blockHash"], false])).await.unwrap();
        assert_eq!(block["number"], payment.receipt["blockNumber"]);

        let used = [Arg::address(&payment.authorization.from), Arg::Word(payment.authorization.nonce)];
        let used = TEST_DOLLAR.call("authorizationState(address,bytes32)", &used);
        assert_eq!(rpc.eth_call(chain.token(), &used).await.unwrap(), topic(&Arg::uint(1)));
        let replay = rpc.eth_call(chain.token(), &payment.call).await.unwrap_err();
        assert_eq!(replay.revert_reason().as_deref(), Some("FiatTokenV2: authorization is used or canceled"));
    }
}

async fn assert_gone(url: &str) {
    let rpc = Rpc::new(url);
    let deadline = Instant::now() + Duration::from_secs(10);
    while rpc.call("eth_chainId", json!([])).await.is_ok() {
        assert!(Instant::now() < deadline, "the node at {url} is still there");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_clean_stop_keeps_everything() {
    let folder = fresh_folder("stop");
    let chain = start(&folder).await;
    let url = chain.rpc_url().to_owned();
    let mut payments = vec![pay(&chain, 1).await, pay(&chain, 2).await];
    chain.stop().await.unwrap();
    assert_gone(&url).await;

    let (chain, said) = start_and_listen(&folder).await;
    assert_eq!(said, "");
    assert_remembered(&chain, &payments).await;
    payments.push(pay(&chain, 3).await);
    chain.stop().await.unwrap();
    let chain = start(&folder).await;
    assert_remembered(&chain, &payments).await;
    chain.stop().await.unwrap();
}

#[tokio::test]
async fn a_dropped_chain_is_saved_and_the_next_start_waits_for_it() {
    let folder = fresh_folder("drop");
    let chain = start(&folder).await;
    let payments = [pay(&chain, 1).await];
    drop(chain);
    let chain = start(&folder).await;
    assert_remembered(&chain, &payments).await;
    chain.stop().await.unwrap();
}

#[tokio::test]
async fn a_chain_in_memory_leaves_nothing_behind() {
    let chain = crate::memory_chain().await;
    let url = chain.rpc_url().to_owned();
    chain.stop().await.unwrap();
    assert_gone(&url).await;
    let prefix = format!("devchain-{}-", std::process::id());
    let deadline = Instant::now() + Duration::from_secs(5);
    // Other tests of this process have chains too; find this one by its address in the log.
    let left = || {
        fs::read_dir(std::env::temp_dir())
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.to_string_lossy().contains(&prefix))
            .filter(|path| fs::read_to_string(path.join("anvil.log")).is_ok_and(|log| log.contains(&url[7..])))
            .count()
    };
    while left() > 0 {
        assert!(Instant::now() < deadline, "the scratch folder is still there");
        sleep(Duration::from_millis(10)).await;
    }
}

/// The example program that holds a chain, in its own process group.
struct Parent(Child);

impl Parent {
    async fn start(folder: &Path) -> (Self, String) {
        // Test programs are in target/<profile>/deps, examples in target/<profile>/examples.
        let here = std::env::current_exe().unwrap();
        let program = here.parent().and_then(Path::parent).unwrap().join("examples/chain_parent");
        let mut command = Command::new(program);
        command.arg(anvil().await).arg(folder).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("cargo test builds the example");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("http"), "the example prints an address, not {line:?}");
        (Self(child), line.trim().to_owned())
    }

    /// Kills one or more processes, this one among them, and waits for its end.
    fn kill(&mut self, targets: &str, signal: &str) {
        // By the shell, because this crate has no unsafe code. Some targets may have ended already; the shell's errors are
        // ignored.
        let kill = format!("kill -{signal} {targets} 2>/dev/null");
        Command::new("/bin/sh").args(["-c", &kill]).status().unwrap();
        self.0.wait().unwrap();
    }
}

/// A test that fails before it kills must not leave the chain running.
impl Drop for Parent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Pays on a chain held by another process.
async fn pay_at(url: &str, book: &DevChain, nonce: u8) -> Payment {
    let payer = &book.payers()[0];
    let authorization = Authorization::new(&payer.address, &book.treasury().address, 1_000_000, nonce);
    let call = authorization.bytes_call(BYTES_TRANSFER, &sign(payer, &authorization.digest(book)));
    let transaction = json!({"from": book.relayer().address, "to": book.token(), "data": call});
    let receipt = Rpc::new(url).send(transaction).await.unwrap();
    Payment { authorization, call, receipt }
}

/// Kills the parent right after a payment, before `keep_saving` could have saved it.
async fn survives_kill(name: &str, target: impl Fn(u32) -> String) {
    let folder = fresh_folder(name);
    // Only for its accounts, which are the same on every chain.
    let book = crate::memory_chain().await;
    let (mut parent, url) = Parent::start(&folder).await;
    let payments = [pay_at(&url, &book, 1).await, pay_at(&url, &book, 2).await];
    let target = target(parent.0.id());
    parent.kill(&target, "KILL");
    assert_gone(&url).await;

    let (chain, said) = start_and_listen(&folder).await;
    assert!(!said.contains("damaged") && !said.contains("new chain"), "{said}");
    assert_remembered(&chain, &payments).await;
    chain.stop().await.unwrap();
}

#[tokio::test]
async fn the_chain_survives_kill_9_of_its_parent() {
    survives_kill("kill-parent", |pid| pid.to_string()).await;
}

#[tokio::test]
async fn the_chain_survives_kill_9_of_the_parents_group() {
    survives_kill("kill-group", |pid| format!("-{pid}")).await;
}

#[tokio::test]
async fn the_chain_survives_ctrl_c_at_the_parents_group() {
    survives_kill_by("ctrl-c", "INT").await;
    survives_kill_by("term", "TERM").await;
}

async fn survives_kill_by(name: &str, signal: &str) {
    let folder = fresh_folder(name);
    let book = crate::memory_chain().await;
    let (mut parent, url) = Parent::start(&folder).await;
    let payments = [pay_at(&url, &book, 1).await];
    let group = format!("-{}", parent.0.id());
    parent.kill(&group, signal);
    let chain = start(&folder).await;
    assert_remembered(&chain, &payments).await;
    chain.stop().await.unwrap();
}

/// The processes whose working directory is the state folder: the node first, then supervisor and watcher.
#[cfg(target_os = "linux")]
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let is_node = |process: &PathBuf| fs::read_to_string(process.join("comm")).is_ok_and(|name| name == "anvil\n");
    let mut processes: Vec<PathBuf> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder))
        .collect();
    processes.sort_by_key(|process| !is_node(process));
    let number = |process: &PathBuf| process.file_name().unwrap().to_string_lossy().into_owned();
    processes.iter().map(number).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn killing_everything_loses_at_most_the_last_second() {
    let folder = fresh_folder("kill-all");
    let book = crate::memory_chain().await;
    let (mut parent, url) = Parent::start(&folder).await;
    let payments = [pay_at(&url, &book, 1).await];
    sleep(Duration::from_millis(2_500)).await;
    let all = processes_in(&folder);
    assert!(all.len() >= 2, "supervisor and node run in the folder: {all:?}");
    // The node first: if another process ended first, the node would end cleanly.
    parent.kill(&format!("{} {}", all.join(" "), parent.0.id()), "KILL");
    assert_gone(&url).await;
    assert!(!folder.join("exit.json").exists(), "nothing was left to save it");

    let (chain, said) = start_and_listen(&folder).await;
    assert!(!said.contains("damaged"), "{said}");
    assert_remembered(&chain, &payments).await;
    chain.stop().await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(2);
    while !processes_in(&folder).is_empty() {
        assert!(Instant::now() < deadline, "left running: {:?}", processes_in(&folder));
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_damaged_state_is_put_aside_and_reported() {
    let folder = fresh_folder("damaged");
    let damage = |name: &str| {
        let bytes = fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        fs::write(folder.join(name), &bytes[..bytes.len() / 2]).unwrap();
    };
    let chain = start(&folder).await;
    let mut payments = vec![pay(&chain, 1).await];
    chain.stop().await.unwrap();

    // This start loads the chain with its first payment, and saves the second one while it runs.
    let chain = start(&folder).await;
    payments.push(pay(&chain, 2).await);
    let deadline = Instant::now() + Duration::from_secs(5);
    while !folder.join("saved.gz").exists() {
        assert!(Instant::now() < deadline, "nothing is saved");
        sleep(Duration::from_millis(20)).await;
    }
    chain.stop().await.unwrap();
    let saved = fs::read(folder.join("saved.gz")).unwrap();

    // Killed while writing its last state: the state saved before is used.
    damage("exit.json");
    let (chain, said) = start_and_listen(&folder).await;
    assert!(said.contains("exit.json is damaged") && said.contains("exit.broken"), "{said}");
    assert_remembered(&chain, &payments).await;
    chain.stop().await.unwrap();

    // That one is damaged too: the state of the last start is used.
    fs::write(folder.join("exit.json"), "").unwrap();
    fs::write(folder.join("saved.gz"), &saved[..saved.len() / 2]).unwrap();
    let (chain, said) = start_and_listen(&folder).await;
    assert!(said.contains("exit.json is damaged") && said.contains("saved.gz is damaged"), "{said}");
    assert_remembered(&chain, &payments).await;
    chain.stop().await.unwrap();

    // No state is left: a new chain, with a message.
    damage("exit.json");
    damage("state.json");
    let (chain, said) = start_and_listen(&folder).await;
    assert!(said.contains("state.json is damaged") && said.contains("this is a new chain"), "{said}");
    assert_remembered(&chain, &[]).await;
    chain.stop().await.unwrap();
}

#[tokio::test]
async fn a_folder_serves_one_node_at_a_time() {
    let folder = fresh_folder("busy");
    let chain = start(&folder).await;
    let said = Said::default();
    let impatient = Options { patience: Duration::from_millis(200), say: said.listener(), ..options(&folder).await };
    let Err(error) = DevChain::start(impatient).await else { panic!("two nodes on one folder") };
    assert!(matches!(error, ChainError::InUse { .. }), "{error}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(said.text().contains("waiting for an earlier chain node"), "{}", said.text());
    assert!(matches!(state::clear(&folder).await, Err(ChainError::InUse { .. })));
    chain.stop().await.unwrap();

    state::clear(&folder).await.unwrap();
    let chain = start(&folder).await;
    assert_remembered(&chain, &[]).await;
    chain.stop().await.unwrap();
}

#[tokio::test]
async fn a_kept_chain_of_another_kind_is_refused() {
    let folder = fresh_folder("kind");
    start(&folder).await.stop().await.unwrap();
    let other_mnemonic =
        "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";
    let cases = [
        (Options { chain_id: 8453, ..options(&folder).await }, "chain id 84532 instead of 8453"),
        (Options { mnemonic: other_mnemonic.to_owned(), ..options(&folder).await }, "another mnemonic"),
        (Options { token: Some(format!("0x{}", "ab".repeat(20))), ..options(&folder).await }, "its token at"),
    ];
    for (options, difference) in cases {
        let Err(error) = DevChain::start(options).await else { panic!("started although it has {difference}") };
        assert!(matches!(error, ChainError::OtherChain(_)) && error.to_string().contains(difference), "{error}");
    }
    // More payers are not a different chain: the new ones are funded.
    let chain = DevChain::start(Options { payers: 14, ..options(&folder).await }).await.unwrap();
    for payer in chain.payers() {
        assert_eq!(chain.balance_of(&payer.address).await.unwrap(), PAYER_BALANCE);
        let gas = chain.rpc().quantity("eth_getBalance", json!([payer.address, "latest"])).await.unwrap();
        assert!(gas > 0, "{} has gas", payer.address);
    }
    chain.stop().await.unwrap();
}

#[tokio::test]
async fn a_node_that_cannot_start_says_why() {
    let chain = crate::memory_chain().await;
    let port: u16 = chain.rpc_url().rsplit(':').next().unwrap().parse().unwrap();
    let taken = Options { port: Some(port), ..Options::new(anvil().await) };
    let Err(error) = DevChain::start(taken).await else { panic!("two nodes on one port") };
    assert!(error.to_string().contains("Address already in use"), "{error}");
    let absent = DevChain::start(Options::new("/nonexistent/anvil")).await;
    assert!(matches!(absent, Err(ChainError::Io { .. })));
}

#[tokio::test]
async fn with_a_block_time_blocks_are_mined_at_intervals() {
    let options = Options { block_time: Some(Duration::from_secs(1)), ..Options::new(anvil().await) };
    let start = Instant::now();
    let chain = DevChain::start(options).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "planting does not wait for blocks");
    let before = chain.rpc().quantity("eth_blockNumber", json!([])).await.unwrap();
    pay(&chain, 1).await;
    sleep(Duration::from_secs(2)).await;
    let after = chain.rpc().quantity("eth_blockNumber", json!([])).await.unwrap();
    assert!((2..=5).contains(&(after - before)), "{before} to {after}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_node_that_dies_is_noticed() {
    let folder = fresh_folder("dies");
    let mut chain = start(&folder).await;
    let payments = [pay(&chain, 1).await];
    sleep(Duration::from_millis(2_500)).await;
    let node = &processes_in(&folder)[0];
    let killed = Command::new("kill").args(["-KILL", node]).status().unwrap();
    assert!(killed.success());
    let error = tokio::time::timeout(Duration::from_secs(5), chain.ended()).await.expect("the end is noticed");
    assert!(error.to_string().contains("the chain node ended"), "{error}");
    drop(chain);
    let chain = start(&folder).await;
    assert_remembered(&chain, &payments).await;
    chain.stop().await.unwrap();
}

/// Prints how long a start takes; run with `--ignored --nocapture`.
#[tokio::test]
#[ignore = "a measurement"]
async fn measure_the_start() {
    let binary = anvil().await;
    for _ in 0..5 {
        let begin = Instant::now();
        let chain = DevChain::start(Options::new(&binary)).await.unwrap();
        let started = begin.elapsed();
        chain.stop().await.unwrap();
        println!("in memory: start {started:?}, with stop {:?}", begin.elapsed());
    }
    let folder = fresh_folder("measure");
    for round in 0..3 {
        let begin = Instant::now();
        let chain = start(&folder).await;
        let started = begin.elapsed();
        let begin = Instant::now();
        chain.stop().await.unwrap();
        println!("kept, round {round}: start {started:?}, stop {:?}", begin.elapsed());
    }
}
