//! The state folder: what a chain keeps for its next start.
//!
//! | file | written by | content |
//! |---|---|---|
//! | `chain.json` | this crate, once the chain is set up | the kind of chain; without it there is no chain |
//! | `state.json` | this crate, at the start | the chain as the node loads it |
//! | `saved.gz` | this crate, while the node runs | the same, newer |
//! | `exit.json` | the node, when it ends | the same, newest; complete unless the node was killed while writing |
//! | `supervisor.sh` | this crate, at each start | the script that runs the node |
//! | `anvil.log` | the node | its messages; also **the lock** of the folder |
//!
//! This crate writes its files under another name and renames them, so they are complete or absent.
//!
//! The lock needs no process id: the open log is locked, and the supervisor and the node inherit it as standard output. The
//! kernel releases the lock when the last of them has ended, however it ended.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};

use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{ChainError, Say, contracts::unhex, rpc::Rpc};

const KIND: &str = "chain.json";
pub(crate) const STATE: &str = "state.json";
pub(crate) const EXIT: &str = "exit.json";
const SAVED: &str = "saved.gz";
const LOG: &str = "anvil.log";

/// How often to look for new blocks to save.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// After a save, wait this many times its duration. Saving three thousand blocks takes 150 ms.
const SAVE_SHARE: u32 = 10;
/// How often a dump is tried while blocks arrive during it. The last one is used: an inconsistent save is better than none.
const SAVE_TRIES: u32 = 2;

/// The kind of chain in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    pub chain_id: u64,
    pub token: String,
    /// The address of the first account; it identifies the mnemonic.
    pub first_account: String,
    /// How many payers have been funded so far.
    pub payers: usize,
}

/// A state folder owned by this process until the last handle on its log is closed.
pub struct Folder {
    path: PathBuf,
    log: File,
}

impl Folder {
    /// Takes the folder. Waits up to `patience` for an earlier node that is still saving.
    pub async fn take(path: &Path, patience: Duration, say: &Say) -> Result<Self, ChainError> {
        let deadline = Instant::now() + patience;
        let mut told = false;
        loop {
            fs::create_dir_all(path).map_err(ChainError::io(path.display().to_string()))?;
            // The node runs inside the folder, so its path must be absolute.
            let path = path.canonicalize().map_err(ChainError::io(path.display().to_string()))?;
            let log_path = path.join(LOG);
            let open = OpenOptions::new().read(true).append(true).create(true).open(&log_path);
            let mut log = open.map_err(ChainError::io(log_path.display().to_string()))?;
            match log.try_lock() {
                // If the folder was emptied meanwhile, the lock is on a deleted file.
                Ok(()) if is_at(&log, &log_path) => {
                    log.set_len(0).map_err(ChainError::io(log_path.display().to_string()))?;
                    writeln!(log, "{OWNER}{}", std::process::id()).map_err(ChainError::io(LOG))?;
                    return Ok(Self { path, log });
                }
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(ChainError::io(LOG)(error)),
            }
            let owner = owner(&log_path);
            if Instant::now() > deadline {
                return Err(ChainError::InUse { folder: path, owner });
            }
            if !told {
                say(&format!("waiting for an earlier chain node ({owner}) to leave {}", path.display()));
                told = true;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another handle on the log, for a process's output; that process then shares the lock.
    pub fn log(&self) -> Result<File, ChainError> {
        self.log.try_clone().map_err(ChainError::io(LOG))
    }

    /// The node's log so far. Works without the path: the folder may be gone when the node has ended.
    pub fn read_log(&self) -> String {
        let length = self.log.metadata().map_or(0, |data| data.len());
        let mut bytes = vec![0; length as usize];
        let read = self.log.read_at(&mut bytes, 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    pub fn kind(&self) -> Option<Kind> {
        serde_json::from_slice(&fs::read(self.path.join(KIND)).ok()?).ok()
    }

    pub fn set_kind(&self, kind: &Kind) -> Result<(), ChainError> {
        let text = serde_json::to_vec_pretty(kind).expect("plain data");
        replace(&self.path, KIND, &text).map_err(ChainError::io(KIND))
    }

    /// Chooses the state that the node loads, and reports if it is not the newest. `None` means a new chain.
    pub fn settle(&self, say: &Say) -> Result<Option<PathBuf>, ChainError> {
        if self.kind().is_none() {
            // The setup was never finished, or there was no chain.
            self.forget()?;
            return Ok(None);
        }
        let state = self.path.join(STATE);
        for (name, meaning) in [
            (EXIT, "the node was killed while it saved; continuing with the state saved shortly before"),
            (SAVED, "continuing with the chain as it was at the last start"),
            (STATE, "there is no older state"),
        ] {
            let file = self.path.join(name);
            let bytes = match fs::read(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                bytes => bytes.map_err(ChainError::io(file.display().to_string()))?,
            };
            let bytes = if name == SAVED { unpack(&bytes) } else { bytes };
            if is_complete(&bytes) {
                if name != STATE {
                    replace(&self.path, STATE, &bytes).map_err(ChainError::io(STATE))?;
                }
                remove(&self.path, &[EXIT, SAVED])?;
                return Ok(Some(state));
            }
            let aside = file.with_extension("broken");
            fs::rename(&file, &aside).map_err(ChainError::io(file.display().to_string()))?;
            say(&format!("{} is damaged (now {}): {meaning}", file.display(), aside.display()));
        }
        let loss = "balances, receipts and used authorizations of the old one are gone";
        say(&format!("{} holds no usable state: this is a new chain, {loss}", self.path.display()));
        self.forget()?;
        Ok(None)
    }

    fn forget(&self) -> Result<(), ChainError> {
        // Without `chain.json` there is no chain, so it is removed first.
        remove(&self.path, &[KIND, EXIT, SAVED, STATE])
    }
}

/// Removes the chain from a folder that no node uses.
pub async fn clear(path: &Path) -> Result<(), ChainError> {
    if !path.exists() {
        return Ok(());
    }
    let folder = Folder::take(path, Duration::from_secs(2), &|_| ()).await?;
    folder.forget()
}

/// Writes the node's whole chain to `saved.gz`. Returns the number of its last block.
pub async fn save(rpc: &Rpc, folder: &Path) -> Result<u128, ChainError> {
    // The node dumps its blocks first and its accounts a moment later. A block in between would leave a used authorization
    // without a receipt, so a dump without new blocks is preferred.
    let mut before = rpc.quantity("eth_blockNumber", json!([])).await?;
    let mut tries = 0;
    let dump = loop {
        let dump = rpc.call("anvil_dumpState", json!([])).await?;
        let after = rpc.quantity("eth_blockNumber", json!([])).await?;
        tries += 1;
        if after == before || tries == SAVE_TRIES {
            break dump;
        }
        before = after;
    };
    let folder = folder.to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let packed = dump.as_str().and_then(|text| unhex(text.strip_prefix("0x")?));
        let packed = packed.ok_or_else(|| io::Error::other("the node's answer is not hexadecimal"))?;
        replace(&folder, SAVED, &packed)
    });
    written.await.expect("writing does not panic").map_err(ChainError::io(SAVED))?;
    Ok(before)
}

/// Saves whenever there are new blocks, until it is aborted. A node that ends cleanly saves by itself; this limits the loss
/// if the node and its supervisor are killed too.
pub async fn keep_saving(rpc: Rpc, folder: PathBuf, mut saved_block: u128) {
    let mut pause = SAVE_INTERVAL;
    loop {
        sleep(pause).await;
        // An unreachable node is handled elsewhere; there is nothing to save.
        let Ok(block) = rpc.quantity("eth_blockNumber", json!([])).await else {
            continue;
        };
        if block == saved_block {
            continue;
        }
        let start = Instant::now();
        if let Ok(block) = save(&rpc, &folder).await {
            saved_block = block;
        }
        pause = SAVE_INTERVAL.max(start.elapsed() * SAVE_SHARE);
    }
}

/// Writes a file under another name, syncs it, and renames it.
fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let beside = folder.join(format!("{name}.new"));
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    fs::rename(&beside, folder.join(name))
}

fn remove(folder: &Path, names: &[&str]) -> Result<(), ChainError> {
    for name in names {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ChainError::io(name.to_string())(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Unpacks a saved state, as far as it can be read.
fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The caller checks whether the state is complete.
    let _ = GzDecoder::new(packed).read_to_end(&mut bytes);
    bytes
}

/// Whether this is a complete state file: valid JSON with the members that the node requires.
fn is_complete(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct StateFile {
        #[serde(rename = "block")]
        _block: IgnoredAny,
        #[serde(rename = "accounts")]
        _accounts: IgnoredAny,
        #[serde(rename = "blocks")]
        _blocks: IgnoredAny,
        #[serde(rename = "transactions")]
        _transactions: IgnoredAny,
    }
    serde_json::from_slice::<StateFile>(bytes).is_ok()
}

const OWNER: &str = "started by process ";

/// The owner of a folder, for a message only. The lock decides.
fn owner(log: &Path) -> String {
    let first_line = fs::read_to_string(log).ok().and_then(|text| text.lines().next().map(str::to_owned));
    first_line.filter(|line| line.starts_with(OWNER)).unwrap_or_else(|| "unknown owner".to_owned())
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |data: io::Result<fs::Metadata>| data.map(|data| (data.dev(), data.ino())).ok();
    let ours = identity(file.metadata());
    ours.is_some() && ours == identity(fs::metadata(path))
}
