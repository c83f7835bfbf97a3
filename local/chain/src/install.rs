//! Installs the node's program: anvil, from the npm packages pinned in `anvil/package-lock.json`.
//!
//! The npm package `@foundry-rs/anvil` is a wrapper script; the program is in a package for each platform. The program is
//! started directly, because the script costs more than a second for each start.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{process::Command, time::interval};

use crate::{ChainError, Say};

const PACKAGE: &str = include_str!("../anvil/package.json");
const LOCK: &str = include_str!("../anvil/package-lock.json");
const VERSION: &str = "1.7.1";
/// Path of the user's own anvil, which is then used instead.
pub const BINARY_VARIABLE: &str = "ANVIL_BIN";

/// The path of the program; installs it into `folder` if it is missing. `ANVIL_BIN` overrides everything.
pub async fn ensure(folder: &Path, say: &Say) -> Result<PathBuf, ChainError> {
    if let Some(binary) = std::env::var_os(BINARY_VARIABLE) {
        let binary = PathBuf::from(binary);
        if binary.is_file() {
            return Ok(binary);
        }
        return Err(ChainError::Install(format!("{BINARY_VARIABLE} is {}, which is not a file", binary.display())));
    }
    let platform = platform_package()?;
    if let Some(binary) = installed(folder, &platform) {
        return Ok(binary);
    }
    let io = |source| ChainError::io(folder.display().to_string())(source);
    fs::create_dir_all(folder).map_err(io)?;
    // Two processes may try to install at the same time.
    let guard = File::create(folder.join("install.lock")).map_err(io)?;
    let guard =
        tokio::task::spawn_blocking(move || guard.lock().map(|()| guard)).await.expect("locking").map_err(io)?;
    if let Some(binary) = installed(folder, &platform) {
        return Ok(binary);
    }

    say(&format!("installing the chain node ({platform} {VERSION}, 43 MB) with npm into {}", folder.display()));
    fs::write(folder.join("package.json"), PACKAGE).map_err(io)?;
    npm_ci(folder, say).await?;
    // npm never changes this copy, so it shows what is installed.
    fs::write(folder.join("installed-lock.json"), LOCK).map_err(io)?;
    drop(guard);
    installed(folder, &platform).ok_or_else(|| {
        ChainError::Install(format!("npm did not find {platform} {VERSION} in its registry; {}", how_to_help_oneself()))
    })
}

fn installed(folder: &Path, platform: &str) -> Option<PathBuf> {
    let lock = fs::read_to_string(folder.join("installed-lock.json")).ok()?;
    let binary = folder.join("node_modules").join(platform).join("bin/anvil");
    (lock == LOCK && binary.is_file()).then_some(binary)
}

/// The package with the program for this machine.
fn platform_package() -> Result<String, ChainError> {
    let system = match std::env::consts::OS {
        "linux" => "linux",
        "macos" => "darwin",
        other => return Err(unsupported(other)),
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => return Err(unsupported(other)),
    };
    Ok(format!("@foundry-rs/anvil-{system}-{processor}"))
}

fn unsupported(what: &str) -> ChainError {
    ChainError::Install(format!("there is no npm package of anvil for {what}; {}", how_to_help_oneself()))
}

fn how_to_help_oneself() -> String {
    format!("install Foundry from its own site and set {BINARY_VARIABLE} to its anvil")
}

async fn npm_ci(folder: &Path, say: &Say) -> Result<(), ChainError> {
    fs::write(folder.join("package-lock.json"), LOCK).map_err(ChainError::io(folder.display().to_string()))?;
    let mut npm = Command::new("npm");
    // The packages' scripts only set up the wrapper, which is not used.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]).current_dir(folder);
    npm.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let npm = npm.spawn().map_err(|error| {
        ChainError::Install(format!(
            "npm could not be started ({error}): it comes with Node.js; {}",
            how_to_help_oneself()
        ))
    })?;

    let mut output = Box::pin(npm.wait_with_output());
    let mut tick = interval(Duration::from_secs(5));
    let mut waited = 0;
    let output = loop {
        tokio::select! {
            output = &mut output => break output.map_err(ChainError::io("npm"))?,
            _ = tick.tick() => {
                if waited > 0 {
                    say(&format!("still installing the chain node ({waited} s)"));
                }
                waited += 5;
            }
        }
    };
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ChainError::Install(format!("npm ci failed in {} ({}):\n{complaint}", folder.display(), output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_version_is_the_same_everywhere() {
        let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap();
        assert_eq!(lock["packages"]["node_modules/@foundry-rs/anvil"]["version"], VERSION);
        let package: serde_json::Value = serde_json::from_str(PACKAGE).unwrap();
        assert_eq!(package["dependencies"]["@foundry-rs/anvil"], VERSION);
    }

    #[test]
    fn the_lock_has_every_supported_platform() {
        let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap();
        for system in ["linux", "darwin"] {
            for processor in ["amd64", "arm64"] {
                let entry = &lock["packages"][format!("node_modules/@foundry-rs/anvil-{system}-{processor}")];
                assert_eq!(entry["version"], VERSION, "{system}-{processor}");
            }
        }
    }
}
