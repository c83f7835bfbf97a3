//! A local chain for development and tests: a real EVM node (anvil), with a test dollar at the address where clients expect
//! USDC, so that published payment clients work unchanged.
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
//! - the node never outlives the process that started it, even if that process is killed with `kill -9` ([`node`],
//!   `supervisor.sh`);
//! - a kept state file is always complete: it is written under another name and then renamed ([`state`]);
//! - two nodes never use one state folder at the same time ([`state`]).
//!
//! Where to look: [`install`] gets the program, [`node`] runs it, [`state`] is the folder, [`rpc`] talks to it,
//! [`contracts`] has the compiled contracts of `contracts/` and encodes calls to them.

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

/// Receives one line of progress for the user.
pub type Say = dyn Fn(&str) + Send + Sync;
