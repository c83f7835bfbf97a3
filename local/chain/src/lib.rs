//! A local chain for the development runner and for tests: a real EVM node (anvil) with a test dollar planted at the
//! address where clients expect USDC, so that stock payment clients trust it.
//!
//! ```no_run
//! # async fn example() -> Result<(), devchain::ChainError> {
//! use devchain::{DevChain, Options};
//!
//! let binary = devchain::install::ensure(".local/anvil".as_ref(), &|line| eprintln!("{line}")).await?;
//! let chain = DevChain::start(Options { state_dir: Some(".local/chain".into()), ..Options::new(binary) }).await?;
//! println!("{} holds test dollars on {}", chain.payers()[0].address, chain.rpc_url());
//! chain.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! What always holds:
//! - the node never outlives the process that started it, not even when that process is killed with `kill -9`
//!   ([`node`], `supervisor.sh`);
//! - a kept state file is always a complete one: it is written beside and renamed into place ([`state`]);
//! - two nodes never run on one state folder at a time ([`state`]).
//!
//! Where to look: [`install`] gets the binary, [`node`] runs it, [`state`] is the folder, [`rpc`] talks to it,
//! [`contracts`] holds the compiled contracts of `contracts/` and encodes calls to them.

#![cfg(unix)]

pub mod contracts;
mod error;
pub mod install;
pub mod node;
pub mod rpc;
pub mod state;

pub use error::ChainError;
pub use node::{Account, DevChain, Options};
pub use rpc::{Rpc, RpcError};

/// Receives one line of progress for the person who waits.
pub type Say = dyn Fn(&str) + Send + Sync;
