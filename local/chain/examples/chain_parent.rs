//! Holds a chain until it is killed; the lifetime tests kill it.
//!
//! usage: chain_parent <anvil> <state folder>
//!
//! Prints the RPC address on one line and then waits until a signal kills it.

use std::sync::Arc;

use devchain::{DevChain, Options};

#[tokio::main]
async fn main() {
    if let Err(error) = run().await {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

async fn run() -> Result<(), devchain::ChainError> {
    let mut args = std::env::args().skip(1);
    let (Some(binary), Some(folder)) = (args.next(), args.next()) else {
        eprintln!("usage: chain_parent <anvil> <state folder>");
        std::process::exit(2);
    };
    let options =
        Options { state_dir: Some(folder.into()), say: Arc::new(|line| eprintln!("{line}")), ..Options::new(binary) };
    // Also where this process inherited an ignored SIGINT, as every background job of a shell does.
    tokio::spawn(async {
        let _ = tokio::signal::ctrl_c().await;
        std::process::exit(130);
    });
    let mut chain = DevChain::start(options).await?;
    println!("{}", chain.rpc_url());
    Err(chain.ended().await)
}
