//! Starts the four processes, prepares the calls, and ends the processes.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::digest;
use devchain::DevChain;
use evm::hex0x;
use platform::config::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::calls::Agent;
use crate::database::Consumed;
use crate::measure::{Section, cpu_of, find_below};
use crate::{DATABASE, Error};

/// The number of wallets that the chain funds.
pub const PAYERS: usize = 64;
/// The initial credits of each agent, in dollars.
const CREDITS: &str = "500.00";
/// The start takes a second or two, longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Stack {
    pub agents: Vec<Arc<Agent>>,
    database_url: String,
    chain: DevChain,
    /// In the order of [`crate::measure::PROCESSES`].
    pids: [u32; 4],
    /// Ended when this is dropped.
    service: Child,
    database: Child,
    folder: PathBuf,
}

impl Stack {
    pub async fn start(service: &str, agents: usize) -> Result<Stack, Error> {
        let service_path = PathBuf::from(service).canonicalize().map_err(|error| format!("{service}: {error}"))?;
        let binary = devchain::install::ensure(".tools/anvil".as_ref(), &|line| eprintln!("{line}")).await?;
        let chain = DevChain::start(devchain::Options { payers: PAYERS, ..devchain::Options::new(binary) }).await?;
        let mut database = Command::new(std::env::current_exe()?);
        database.arg(DATABASE).env("CHAIN_RPC_URL", chain.rpc_url()).kill_on_drop(true);
        let mut database = database.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(database.stdout.take().ok_or("the database has no output")?).lines();
        let database_url = lines.next_line().await?.ok_or("the database did not start")?;

        // Its state is stored below its working folder.
        let folder = std::env::temp_dir().join(format!("agora-load-{}", &hex0x(&digest::random::<8>())[2..]));
        std::fs::create_dir_all(&folder)?;
        let environment = [
            ("PORT", "0".to_owned()),
            ("AWS_ENDPOINT_URL", database_url.clone()),
            ("AWS_ACCESS_KEY_ID", "local".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
            ("CHAIN_ID", chain.chain_id().to_string()),
            ("CHAIN_RPC_URL", database_url.clone()),
            ("USDC_ADDRESS", chain.token().to_owned()),
            ("PAY_TO", chain.treasury().address.clone()),
            ("RELAYER_PRIVATE_KEY", chain.relayer().private_key.clone()),
            ("TREASURY_PRIVATE_KEY", chain.treasury().private_key.clone()),
            // Rate limits are tested elsewhere.
            ("RATE_LIMIT_SCALE", "100000".to_owned()),
        ];
        let log = std::fs::File::create(folder.join("log"))?;
        let mut service = Command::new(service_path);
        service.env_clear().envs(std::env::vars().filter(|(name, _)| name == "PATH")).envs(environment.clone());
        service.current_dir(&folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let mut service = service.spawn()?;
        let announced = announcement(&folder, &mut service).await?;
        let base_url = announced["base_url"].as_str().ok_or("the service says no address")?.to_owned();
        let site_url = announced["site_url"].as_str().ok_or("the service says no site")?.to_owned();

        let config =
            Config::read(|name| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()))?;
        let soul = crate::calls::open_soul(&base_url).await?;
        let mut opened = Vec::new();
        for payer in &chain.payers()[..agents] {
            let agent = Agent::open(&config, &payer.private_key, &base_url, &site_url, &soul, CREDITS).await?;
            opened.push(Arc::new(agent));
        }
        let own = std::process::id();
        let node = find_below(own, "anvil").ok_or("the chain's node is not found")?;
        let pid = |child: &Child| child.id().ok_or("a process has ended");
        let pids = [pid(&service)?, pid(&database)?, node, own];
        Ok(Stack { agents: opened, database_url, chain, pids, service, database, folder })
    }

    /// Measures the use during these calls.
    pub async fn section(&self, calls: impl Future<Output = Result<Vec<Duration>, Error>>) -> Result<Section, Error> {
        self.consumed().await?;
        let (begun, before) = (Instant::now(), self.cpu()?);
        let took = calls.await?;
        let (wall, after) = (begun.elapsed(), self.cpu()?);
        let cpu = std::array::from_fn(|process| (after[process] - before[process]).as_secs_f64());
        Ok(Section { took, wall, cpu, consumed: self.consumed().await? })
    }

    fn cpu(&self) -> Result<[Duration; 4], Error> {
        let mut cpu = [Duration::ZERO; 4];
        for (cpu, pid) in cpu.iter_mut().zip(self.pids) {
            *cpu = cpu_of(pid)?;
        }
        Ok(cpu)
    }

    async fn consumed(&self) -> Result<Consumed, Error> {
        let client = crate::calls::Client::new(&self.database_url);
        Ok(Consumed::read(&client.send("GET", "/consumed", &[], String::new()).await?.json()?))
    }

    pub async fn stop(mut self) {
        let _ = self.service.kill().await;
        let _ = self.database.kill().await;
        let _ = self.chain.stop().await;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The service's announcement once it is ready.
async fn announcement(folder: &std::path::Path, service: &mut Child) -> Result<Value, Error> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Ok(text) = std::fs::read_to_string(folder.join(".local/stack.json")) {
            let announced: Value = serde_json::from_str(&text)?;
            let client = crate::calls::Client::new(announced["base_url"].as_str().unwrap_or_default());
            if client.send("GET", "/health", &[], String::new()).await.is_ok() {
                return Ok(announced);
            }
        }
        if let Some(status) = service.try_wait()? {
            let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            return Err(format!("the service ended: {status}\n{log}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(json!({"the service is not up after": PATIENCE.as_secs()}).to_string().into())
}
