//! Runs the node: starts it, sets up the test dollar, stops it.
//!
//! The node runs under `supervisor.sh`, which ends it cleanly when this process is gone. That file explains why this works
//! after `kill -9` too.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    process::{Child, ChildStdin, Command},
    sync::Mutex,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::{
    ChainError, Say,
    contracts::{Arg, Artifact, MULTICALL, TEST_DOLLAR},
    rpc::{Rpc, RpcError},
    state::{self, Folder, Kind},
};

/// Base Sepolia, the chain of test payments.
pub const BASE_SEPOLIA: u64 = 84532;
/// Anvil's test phrase. Its keys are public, so nobody mistakes them for real ones.
pub const MNEMONIC: &str = "test test test test test test test test test test test junk";
/// Initial balance of a payer, in micro-USDC: 100,000 test dollars.
pub const PAYER_BALANCE: u128 = 100_000_000_000;

/// Accounts before the payers: relayer, treasury, and a helper that sets up contracts and mints.
const OWN_ACCOUNTS: usize = 3;
/// Balances and storage can be read for this many past blocks. Receipts, transactions and logs are kept for ever. Without a
/// limit, the node writes a file for each block to `~/.foundry` and never removes them.
const HISTORY_BLOCKS: u32 = 256;
/// The contract that stores old block hashes (EIP-2935). It is removed, because the node hashes its growing storage again
/// for every block.
const BLOCK_HASH_CONTRACT: &str = "0x0000F90827F1C53a10cb7A02335B175320002935";
/// Where client libraries expect Multicall3, on every chain.
pub const MULTICALL_ADDRESS: &str = "0xcA11bde05977b3631167028862bE2a173976CA11";
/// Loading 100 MB of state takes one or two seconds; a busy machine needs much longer.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// The supervisor gives the node 60 s to save, then kills it.
const STOP_TIMEOUT: Duration = Duration::from_secs(65);

#[derive(Clone)]
pub struct Options {
    /// The program, as [`crate::install::ensure`] returns it.
    pub binary: PathBuf,
    pub chain_id: u64,
    /// The token's address. `None`: the address at which clients expect USDC on this chain.
    pub token: Option<String>,
    /// Where the chain is kept between starts; `None` keeps it only in memory.
    pub state_dir: Option<PathBuf>,
    /// `None` picks a free port.
    pub port: Option<u16>,
    /// `None` mines a block for each transaction at once; otherwise one block for each interval.
    pub block_time: Option<Duration>,
    pub mnemonic: String,
    pub payers: usize,
    /// How long to wait for an earlier node that still uses the state folder.
    pub patience: Duration,
    /// Receives a line whenever something happens that the user should know.
    pub say: Arc<Say>,
}

impl Options {
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            chain_id: BASE_SEPOLIA,
            token: None,
            state_dir: None,
            port: None,
            block_time: None,
            mnemonic: MNEMONIC.to_owned(),
            payers: 12,
            patience: Duration::from_secs(30),
            say: Arc::new(|line| eprintln!("{line}")),
        }
    }
}

/// The checksummed address at which clients expect USDC.
pub fn usdc_address(chain_id: u64) -> Option<&'static str> {
    match chain_id {
        8453 => Some("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
        BASE_SEPOLIA => Some("0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
        _ => None,
    }
}

/// A test account. Its key is public, so it may be printed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Account {
    /// With EIP-55 checksum.
    pub address: String,
    /// 32 bytes in hexadecimal with `0x`.
    pub private_key: String,
}

/// A running node. Dropping it stops the node cleanly without waiting.
pub struct DevChain {
    rpc: Rpc,
    chain_id: u64,
    token: String,
    accounts: Vec<Account>,
    folder: Folder,
    saver: Option<JoinHandle<()>>,
    supervisor: Child,
    /// Closing this stops the node.
    lifeline: Option<ChildStdin>,
    /// Held while the helper account sends: the node would give two concurrent transactions the same nonce.
    sending: Mutex<()>,
}

impl DevChain {
    pub async fn start(options: Options) -> Result<Self, ChainError> {
        let token = token_address(&options)?;
        if options.payers == 0 {
            return Err(ChainError::Options("payers must be 1 or more".into()));
        }

        let binary = options.binary.canonicalize().map_err(ChainError::io(options.binary.display().to_string()))?;

        let kept = options.state_dir.is_some();
        let place = options.state_dir.clone().unwrap_or_else(scratch_folder);
        let folder = Folder::take(&place, options.patience, &*options.say).await?;
        let loaded = folder.settle(&*options.say)?;

        let (supervisor, lifeline) = spawn(&binary, &options, &folder, loaded.is_some())?;
        let mut chain = Self {
            rpc: Rpc::new(""),
            chain_id: options.chain_id,
            token,
            accounts: Vec::new(),
            folder,
            saver: None,
            supervisor,
            lifeline: Some(lifeline),
            sending: Mutex::new(()),
        };
        // From here on, a failure drops `chain`, which stops the node.
        let (address, accounts) = chain.await_banner(OWN_ACCOUNTS + options.payers).await?;
        chain.rpc = Rpc::new(format!("http://{address}"));
        chain.accounts = accounts;
        chain.plant(kept).await?;

        if kept {
            let block = chain.rpc.quantity("eth_blockNumber", json!([])).await?;
            let saving = state::keep_saving(chain.rpc.clone(), chain.folder.path().to_owned(), block);
            chain.saver = Some(tokio::spawn(saving));
        }
        Ok(chain)
    }

    /// An origin without a trailing slash.
    pub fn rpc_url(&self) -> &str {
        self.rpc.url()
    }

    pub fn rpc(&self) -> &Rpc {
        &self.rpc
    }

    pub fn chain_id(&self) -> u64 {
        self.chain_id
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// Has gas and no test dollars; for the service that settles payments.
    pub fn relayer(&self) -> &Account {
        &self.accounts[0]
    }

    /// Has gas and no test dollars; receives payments and pays out.
    pub fn treasury(&self) -> &Account {
        &self.accounts[1]
    }

    /// Each has gas and [`PAYER_BALANCE`].
    pub fn payers(&self) -> &[Account] {
        &self.accounts[OWN_ACCOUNTS..]
    }

    /// In micro-USDC.
    pub async fn balance_of(&self, address: &str) -> Result<u128, RpcError> {
        let data = TEST_DOLLAR.call("balanceOf(address)", &[Arg::address(address)]);
        self.rpc.quantity("eth_call", json!([{"to": self.token, "data": data}, "latest"])).await
    }

    /// Mints test dollars; the amount is in micro-USDC.
    pub async fn mint(&self, to: &str, amount: u128) -> Result<(), RpcError> {
        let data = TEST_DOLLAR.call("mint(address,uint256)", &[Arg::address(to), Arg::uint(amount)]);
        self.send(&self.token, &data).await.map(drop)
    }

    /// Sends a transaction from the helper account and returns its receipt.
    pub async fn send(&self, to: &str, data: &str) -> Result<Value, RpcError> {
        let _one_at_a_time = self.sending.lock().await;
        self.rpc.send(json!({"from": self.helper(), "to": to, "data": data})).await
    }

    /// Deploys a contract and returns its address.
    pub async fn deploy(&self, contract: &Artifact, args: &[Arg]) -> Result<String, RpcError> {
        let _one_at_a_time = self.sending.lock().await;
        let receipt = self.rpc.send(json!({"from": self.helper(), "data": contract.deployment(args)})).await?;
        Ok(receipt["contractAddress"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the node ends by itself; the error says how it ended.
    pub async fn ended(&mut self) -> ChainError {
        let how = match self.supervisor.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        ChainError::Node(format!("the chain node ended ({how}){}", self.log_tail()))
    }

    /// Stops the node and waits until the chain is saved and the state folder is free.
    pub async fn stop(mut self) -> Result<(), ChainError> {
        if let Some(saver) = self.saver.take() {
            saver.abort();
            let _ = saver.await;
        }
        self.lifeline = None;
        match timeout(STOP_TIMEOUT, self.supervisor.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(ChainError::Node(format!("the chain node ended with {status}{}", self.log_tail()))),
            Ok(Err(error)) => Err(ChainError::io("waiting for the chain node")(error)),
            Err(_) => Err(ChainError::Node(format!("the chain node did not end within {STOP_TIMEOUT:?}"))),
        }
    }

    fn helper(&self) -> &str {
        &self.accounts[2].address
    }

    /// Waits until the node listens. Its banner contains its address, and all accounts and keys.
    async fn await_banner(&mut self, accounts: usize) -> Result<(String, Vec<Account>), ChainError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(banner) = Banner::parse(&self.folder.read_log()) {
                let listed = banner.accounts.len();
                if listed != accounts {
                    let text = format!("the chain node lists {listed} accounts instead of {accounts}");
                    return Err(ChainError::Node(text));
                }
                return Ok((banner.address, banner.accounts));
            }
            if let Ok(Some(status)) = self.supervisor.try_wait() {
                return Err(ChainError::Node(format!("the chain node did not start ({status}){}", self.log_tail())));
            }
            if Instant::now() > deadline {
                let text = format!("the chain node was not ready within {START_TIMEOUT:?}{}", self.log_tail());
                return Err(ChainError::Node(text));
            }
            sleep(Duration::from_millis(3)).await;
        }
    }

    /// Sets up a new chain with the token and the payers' balances; checks the kind of a loaded one.
    async fn plant(&self, kept: bool) -> Result<(), ChainError> {
        // Otherwise the node writes a log line for every call.
        self.rpc.call("anvil_setLoggingEnabled", json!([false])).await?;
        let wanted = Kind {
            chain_id: self.chain_id,
            token: self.token.clone(),
            first_account: self.accounts[0].address.clone(),
            payers: self.payers().len(),
        };
        // A folder without this file was emptied before the start, so the chain is new.
        let already_paid = match self.folder.kind() {
            Some(found) => {
                check_kind(&found, &wanted, self.folder.path())?;
                found.payers
            }
            None => {
                self.rpc.call("anvil_setCode", json!([BLOCK_HASH_CONTRACT, "0x"])).await?;
                0
            }
        };
        // On a kept chain too: the contracts may have changed since.
        let planted = [(self.token.as_str(), &TEST_DOLLAR), (MULTICALL_ADDRESS, &MULTICALL)];
        for (address, contract) in planted {
            self.rpc.call("anvil_setCode", json!([address, contract.runtime])).await?;
        }
        if already_paid < wanted.payers {
            self.fund(&self.payers()[already_paid..]).await?;
            if kept {
                state::save(&self.rpc, self.folder.path()).await?;
                self.folder.set_kind(&wanted)?;
            }
        }
        Ok(())
    }

    async fn fund(&self, payers: &[Account]) -> Result<(), ChainError> {
        for payer in payers {
            let data =
                TEST_DOLLAR.call("mint(address,uint256)", &[Arg::address(&payer.address), Arg::uint(PAYER_BALANCE)]);
            let mint = json!([{"from": self.helper(), "to": self.token, "data": data}]);
            self.rpc.call("eth_sendTransaction", mint).await?;
        }
        // With a block time the transactions would wait for the next block at every start.
        self.rpc.call("evm_mine", json!([])).await?;
        for payer in payers {
            let balance = self.balance_of(&payer.address).await?;
            if balance < PAYER_BALANCE {
                let text = format!("planting failed: {} holds {balance} of {PAYER_BALANCE}", payer.address);
                return Err(ChainError::Node(text));
            }
        }
        Ok(())
    }

    fn log_tail(&self) -> String {
        let log = self.folder.read_log();
        let said: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).skip(1).collect();
        let tail = &said[said.len().saturating_sub(8)..];
        if tail.is_empty() { String::new() } else { format!(":\n{}", tail.join("\n")) }
    }
}

impl Drop for DevChain {
    fn drop(&mut self) {
        if let Some(saver) = self.saver.take() {
            saver.abort();
        }
        // Closing the lifeline makes the supervisor stop the node.
    }
}

fn token_address(options: &Options) -> Result<String, ChainError> {
    let address = match (&options.token, usdc_address(options.chain_id)) {
        (Some(address), _) => address,
        (None, Some(address)) => address,
        (None, None) => {
            let text = format!("chain {} has no known USDC address: set one for the test token", options.chain_id);
            return Err(ChainError::Options(text));
        }
    };
    let digits = address.strip_prefix("0x").unwrap_or_default();
    if digits.len() != 40 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(ChainError::Options(format!("{address} is not an address (0x and 40 hexadecimal digits)")));
    }
    Ok(address.to_owned())
}

fn check_kind(found: &Kind, wanted: &Kind, folder: &Path) -> Result<(), ChainError> {
    let difference = if found.chain_id != wanted.chain_id {
        format!("chain id {} instead of {}", found.chain_id, wanted.chain_id)
    } else if !found.token.eq_ignore_ascii_case(&wanted.token) {
        format!("its token at {} instead of {}", found.token, wanted.token)
    } else if found.first_account != wanted.first_account {
        "accounts of another mnemonic".to_owned()
    } else {
        return Ok(());
    };
    let text = format!("the chain kept in {} has {difference}; clear it or change the settings back", folder.display());
    Err(ChainError::OtherChain(text))
}

fn scratch_folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("devchain-{}-{number}", std::process::id()))
}

fn spawn(binary: &Path, options: &Options, folder: &Folder, load: bool) -> Result<(Child, ChildStdin), ChainError> {
    let kept = options.state_dir.is_some();
    let scratch = if kept { Path::new("") } else { folder.path() };

    // As a file, so that process lists stay readable.
    let script = folder.path().join("supervisor.sh");
    fs::write(&script, include_str!("supervisor.sh")).map_err(ChainError::io(script.display().to_string()))?;
    let mut command = Command::new("/bin/sh");
    command.arg(script).arg(scratch).arg(binary);
    command.args(["--host", "127.0.0.1", "--port", &options.port.unwrap_or(0).to_string()]);
    command.args(["--chain-id", &options.chain_id.to_string()]);
    command.args(["--mnemonic", &options.mnemonic]);
    command.args(["--accounts", &(OWN_ACCOUNTS + options.payers).to_string()]);
    command.args(["--prune-history", &HISTORY_BLOCKS.to_string()]);
    // Web pages must not reach this node.
    command.arg("--no-cors");
    if let Some(interval) = options.block_time {
        command.args(["--block-time", &interval.as_secs_f64().to_string()]);
    }
    if kept {
        command.args(["--dump-state", state::EXIT]);
    }
    if load {
        command.args(["--load-state", state::STATE]);
    }
    // The working directory keeps the node away from other foundry.toml files. The node writes relative to it, so the node
    // of a deleted folder does not write into a new folder of the same name.
    command.current_dir(folder.path()).env("HOME", folder.path()).env_remove("ANVIL_IP_ADDR");
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(folder.log()?).stderr(folder.log()?);

    let mut supervisor = command.spawn().map_err(ChainError::io("/bin/sh"))?;
    let lifeline = supervisor.stdin.take().expect("stdin is piped");
    Ok((supervisor, lifeline))
}

/// What the node prints when it is ready.
#[derive(Debug, PartialEq)]
struct Banner {
    address: String,
    accounts: Vec<Account>,
}

impl Banner {
    /// `None` until the last line, which has the address, is complete.
    fn parse(log: &str) -> Option<Self> {
        let ready = log.split_once("Listening on ")?.1;
        let address = ready.split_once('\n')?.0.trim().to_owned();
        // "(0) 0x..." lists the addresses first, then the keys; they differ in length.
        let listed = |length: usize| {
            log.lines()
                .filter_map(|line| line.strip_prefix('(')?.split_once(") ")?.1.split_whitespace().next())
                .filter(move |word| word.starts_with("0x") && word.len() == length)
        };
        let accounts = listed(42)
            .zip(listed(66))
            .map(|(address, key)| Account { address: address.to_owned(), private_key: key.to_owned() })
            .collect();
        Some(Self { address, accounts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_pairs_addresses_with_keys() {
        let (address, key) = (format!("0x{}", "aB".repeat(20)), format!("0x{}", "0f".repeat(32)));
        let log = format!(
            "Available Accounts\n===\n\n(0) {address} (10000.000 ETH)\n\nPrivate Keys\n===\n\n(0) {key}\n\nListening on 127.0.0.1:8545\n"
        );
        let account = Account { address, private_key: key };
        let banner = Banner { address: "127.0.0.1:8545".to_owned(), accounts: vec![account] };
        assert_eq!(Banner::parse(&log), Some(banner));
        assert_eq!(Banner::parse(log.trim_end()), None, "half a line is not an address");
    }

    #[test]
    fn a_chain_needs_a_token_address() {
        let mut options = Options { chain_id: 1337, ..Options::new("anvil") };
        assert!(matches!(token_address(&options), Err(ChainError::Options(_))));
        options.token = Some("0x12".to_owned());
        assert!(matches!(token_address(&options), Err(ChainError::Options(_))));
        options.token = Some(format!("0x{}", "1".repeat(40)));
        assert!(token_address(&options).is_ok());
    }
}
