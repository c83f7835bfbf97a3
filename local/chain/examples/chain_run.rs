//! Runs a chain by hand and prints what a client needs to know about it, as one line of JSON.
//!
//! usage: cargo run --example chain_run [state folder]
//!
//! Without a folder the chain is in memory. Ctrl-C stops it cleanly.

use std::{path::Path, time::Duration};

use devchain::{DevChain, Options};
use serde_json::json;

#[tokio::main]
async fn main() {
    if let Err(error) = run().await {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let say = |line: &str| eprintln!("{line}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/anvil");
    let binary = devchain::install::ensure(&folder, &say).await?;
    let state_dir = std::env::args().nth(1).map(Into::into);
    let seconds = std::env::var("BLOCK_TIME_SECONDS").ok().map(|text| text.parse()).transpose()?;
    let options = Options { state_dir, block_time: seconds.map(Duration::from_secs), ..Options::new(binary) };
    let mut chain = DevChain::start(options).await?;
    let about = json!({
        "chain": {"rpc_url": chain.rpc_url(), "chain_id": chain.chain_id(), "token": chain.token()},
        "relayer": chain.relayer(),
        "treasury": chain.treasury(),
        "payers": chain.payers(),
    });
    println!("{about}");
    Err(chain.ended().await.into())
}
