//! A Chromium on this machine, for pages that need scripts (`BROWSER_PATH`).
//!
//! It has a new, empty profile and no network access of its own (see `common/platform/src/providers/browser`), and ends
//! with the stack.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use crate::Error;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// Chromium itself makes no requests: the service's own client fetches what a page asks for.
const ARGUMENTS: [&str; 12] = [
    "--headless",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-quic",
    "--disable-gpu",
    "--mute-audio",
    "--no-pings",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
];

/// Runs the command after the profile's path until its standard input is closed, then removes the profile.
const GUARDED: &str =
    r#"profile=$1; shift; "$@" & child=$!; cat >/dev/null; kill -9 $child; wait $child; rm -rf "$profile""#;

pub struct Chromium {
    process: Child,
    /// The URL of its debugging port: `BROWSER_URL`.
    pub url: String,
}

impl Chromium {
    /// Starts Chromium and waits until its debugging port is open.
    ///
    /// # Errors
    /// If it does not start, or ends at once.
    pub async fn start(binary: &Path) -> Result<Chromium, Error> {
        let name = format!("agora-chromium-{}", const_hex::encode(base::digest::random::<8>()));
        let profile = std::env::temp_dir().join(name);
        if !binary.exists() {
            return Err(format!("{} does not exist", binary.display()).into());
        }
        // A shell ends it and removes its profile when this process is gone, however it ended.
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED, "sh"]).arg(&profile).arg(binary);
        command.args(ARGUMENTS).arg(format!("--user-data-dir={}", profile.display()));
        // Chromium's sandbox does not work as root; for other users it stays on.
        if is_root() {
            command.arg("--no-sandbox");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| format!("{}: {error}", binary.display()))?;
        let mut browser = Chromium { process, url: String::new() };
        let started = Instant::now();
        let port = profile.join("DevToolsActivePort");
        while started.elapsed() < PATIENCE {
            if let Some(port) =
                std::fs::read_to_string(&port).ok().and_then(|text| text.lines().next()?.parse::<u16>().ok())
            {
                browser.url = format!("http://127.0.0.1:{port}");
                return Ok(browser);
            }
            if let Some(status) = browser.process.try_wait()? {
                return Err(format!("{} ended at once ({status})", binary.display()).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(format!("{} did not start within {} s", binary.display(), PATIENCE.as_secs()).into())
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Closing its standard input ends the shell.
        drop(self.process.stdin.take());
        for _ in 0..100 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}
