//! Why there is no chain.

use std::{fmt, io, path::PathBuf};

use crate::rpc::RpcError;

#[derive(Debug)]
pub enum ChainError {
    /// The node's program could not be installed; the text says what to do.
    Install(String),
    /// The options contradict each other or ask for something impossible.
    Options(String),
    /// Another node still runs on the state folder.
    InUse {
        folder: PathBuf,
        owner: String,
    },
    /// The state folder belongs to a different chain; the text names the difference.
    OtherChain(String),
    /// The node ended or did not start; the text has the end of its log.
    Node(String),
    Rpc(RpcError),
    Io {
        what: String,
        source: io::Error,
    },
}

impl ChainError {
    /// For `map_err`: adds the file or program to the system's error.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(text) | Self::Options(text) | Self::OtherChain(text) | Self::Node(text) => f.write_str(text),
            Self::InUse { folder, owner } => write!(
                f,
                "another chain node ({owner}) uses {}; stop it first, or choose another folder",
                folder.display()
            ),
            Self::Rpc(error) => error.fmt(f),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for ChainError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Rpc(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<RpcError> for ChainError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}
