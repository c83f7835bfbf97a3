//! The chain as its users see it: the token, contract wallets, and what survives each way to end.

mod authorization;
mod lifetime;
mod token;
mod wallet;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use devchain::{DevChain, Options};
use tokio::sync::OnceCell;

/// The node's program, installed on first use.
async fn anvil() -> PathBuf {
    static BINARY: OnceCell<PathBuf> = OnceCell::const_new();
    let install = async || {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("anvil");
        devchain::install::ensure(&folder, &|line| eprintln!("{line}")).await.expect("anvil can be installed")
    };
    BINARY.get_or_init(install).await.clone()
}

/// A new chain in memory that mines at once.
async fn memory_chain() -> DevChain {
    DevChain::start(Options::new(anvil().await)).await.expect("the chain starts")
}

/// Collects the messages of a chain.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn listener(&self) -> Arc<devchain::Say> {
        let lines = self.0.clone();
        Arc::new(move |line| lines.lock().unwrap().push(line.to_owned()))
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}
