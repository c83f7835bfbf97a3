//! `make run`: starts the whole stack and prints its addresses.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::clock::Clock;
use local::browser::Chromium;
use local::chain::{self, DevChain};
use local::stack::Background;
use local::{Error, Options, Stack, report, settings};
use platform::config::{SETTINGS_FILE, SettingsFile};
use platform::http::log;

/// The state's folder in the working directory.
const STATE: &str = ".local";
/// Folder for installed tools; `make reset` keeps it.
const TOOLS: &str = ".tools";
/// The gateway's port unless `PORT` is set.
const DEFAULT_PORT: &str = "8402";
const HELP: &str = "\
agora-local starts the whole service on this machine: a gateway that sells tools to agents.
It takes no arguments but these:
  --help      this text
  --version   the version
It is set by variables of the shell, and by settings.json in this folder. For example:
  PORT=9000 SERVICE_NAME=Shop ./agora-local      (PORT is 8402 if not set)
Its state is in the folder .local here, its addresses and test wallets in .local/stack.json.
Ctrl-C stops it and keeps the state; local/reset.sh deletes it.
All variables are in docs/CONFIGURATION.md, the first steps in README.md.";

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--help" | "-h"] => {
            println!("{HELP}");
            return std::process::ExitCode::SUCCESS;
        }
        ["--version" | "-V"] => {
            println!("agora-local {}", env!("CARGO_PKG_VERSION"));
            return std::process::ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("agora-local does not know {:?}; see agora-local --help", arguments.join(" "));
            return std::process::ExitCode::from(2);
        }
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.thread_stack_size(local::STACK_BYTES).enable_all().build();
    match runtime.map_err(Error::from).and_then(|runtime| runtime.block_on(run())) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot start: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Error> {
    platform::http::log::for_people();
    // An empty variable counts as not set.
    let set = std::env::vars().filter(|(_, value)| !value.trim().is_empty());
    let mut environment: HashMap<String, String> = set.collect();
    environment.entry("PORT".to_owned()).or_insert_with(|| DEFAULT_PORT.to_owned());
    let file = SettingsFile::read(Path::new(SETTINGS_FILE))?;
    for warning in settings::check(&environment, &file)? {
        eprintln!("warning: {warning}");
    }
    for (name, value) in file.into_values() {
        environment.entry(name).or_insert(value);
    }
    // A developer's agents are a network of their own. A deployment names its network, or has none.
    environment.entry("NETWORK_PROVIDERS".to_owned()).or_insert_with(|| "local".to_owned());
    if let Some(found) = environment.get("PATH").and_then(|path| espeak(path)) {
        environment.entry("ESPEAK_PATH".to_owned()).or_insert(found);
    }

    let state = PathBuf::from(STATE);
    std::fs::create_dir_all(&state)?;
    let lock = std::fs::File::create(state.join("lock"))?;
    lock.try_lock().map_err(|_| format!("another stack is running on {STATE}; stop it first"))?;
    local::state::check(&state)?;
    let announcement = state.join("stack.json");
    let _ = std::fs::remove_file(&announcement);

    let chain = match environment.contains_key("CHAIN_RPC_URL") {
        true => None,
        false => {
            eprintln!("starting the local chain");
            Some(Arc::new(start_chain(&environment, &state).await?))
        }
    };
    // Ends with the stack.
    let mut browser = None;
    if let Some(path) = environment.get("BROWSER_PATH").filter(|path| !path.is_empty()) {
        let started = Chromium::start(Path::new(path)).await?;
        environment.insert("BROWSER_URL".to_owned(), started.url.clone());
        browser = Some(started);
    }
    // Seeds of the developer's own are not mixed with an invented land.
    let library = environment.get("SEARCH_SEEDS").is_none_or(|seeds| seeds.trim().is_empty());
    eprintln!("starting the service");
    let options = Options {
        environment,
        state: Some(state),
        chain: chain.clone(),
        clock: Clock::system(),
        background: Background::Everything,
        runners: None,
        roles: None,
        announcement: Some(announcement.clone()),
        library,
    };
    let mut stack = Stack::start(options).await?;
    log::print(format_args!("{}", report::human(&stack)));
    // A person finds addresses and keys in the file.
    if !std::io::stdout().is_terminal() {
        log::print(format_args!("{}", report::json(&stack)));
    }

    tokio::select! {
        () = stopped() => eprintln!("stopping"),
        () = stack.wait() => eprintln!("a part of the stack has ended unexpectedly; stopping"),
    }
    let _ = std::fs::remove_file(&announcement);
    stack.kill().await;
    drop(browser);
    if let Some(chain) = chain.and_then(Arc::into_inner) {
        chain.stop().await?;
    }
    Ok(())
}

/// espeak-ng in one of these folders.
fn espeak(path: &str) -> Option<String> {
    let found = std::env::split_paths(path).map(|folder| folder.join("espeak-ng")).find(|file| file.is_file())?;
    found.into_os_string().into_string().ok()
}

async fn start_chain(environment: &HashMap<String, String>, state: &Path) -> Result<DevChain, Error> {
    let binary = chain::install::ensure(&Path::new(TOOLS).join("anvil"), &|line| eprintln!("{line}")).await?;
    let chain_id = environment.get("CHAIN_ID").and_then(|id| id.parse().ok()).unwrap_or(chain::node::BASE_SEPOLIA);
    let token = environment.get("USDC_ADDRESS").cloned();
    let options =
        chain::Options { chain_id, token, state_dir: Some(state.join("chain")), ..chain::Options::new(binary) };
    Ok(DevChain::start(options).await?)
}

/// Ctrl-C or SIGTERM.
async fn stopped() {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(_) => return std::future::pending().await,
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
