//! The release build of every function, and its size.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::cases;
use crate::{Error, Extent};

/// The folder of the built functions.
pub struct Functions {
    folder: PathBuf,
}

/// Something that answers events: a function, or a script that Node runs.
pub struct Program {
    executable: PathBuf,
    script: Option<PathBuf>,
}

impl Functions {
    /// Builds what is out of date. Cargo shows its own progress.
    pub fn build(extent: Extent) -> Result<Functions, Error> {
        // Next to this program: <target>/release, or <target>/debug.
        let folder = std::env::current_exe()?.parent().ok_or("this program lies nowhere")?.to_owned();
        let target = folder.parent().ok_or("this program lies in no target folder")?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--target-dir"]).arg(target).current_dir(workspace());
        if cfg!(not(debug_assertions)) {
            command.arg("--release");
        }
        // A test that starts this program has variables of its own package, which build scripts would see as a change.
        for (name, _) in std::env::vars_os() {
            let of_package = name.to_str().is_some_and(|name| {
                ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_"]
                    .iter()
                    .any(|start| name.starts_with(start))
            });
            if of_package {
                command.env_remove(name);
            }
        }
        match extent {
            Extent::Full => {
                for function in cases::functions() {
                    command.args(["-p", function]);
                }
                eprintln!("bench: building the functions (optimised, each takes about a minute)");
            }
            // With the features of the tests, as `make test` builds, so that nothing is compiled twice.
            Extent::Quick => {
                command.args(["--workspace", "--tests"]);
                for function in cases::functions() {
                    command.args(["--bin", function]);
                }
            }
        }
        let started = Instant::now();
        if !command.status()?.success() {
            return Err("the functions do not build".into());
        }
        eprintln!("bench: built in {} s", started.elapsed().as_secs());
        Ok(Functions { folder })
    }

    pub fn program(&self, function: &str) -> Program {
        Program { executable: self.folder.join(function), script: None }
    }

    /// A folder for files that only the benches need.
    pub fn scratch(&self) -> Result<PathBuf, Error> {
        let folder = self.folder.join("bench-scratch");
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

impl Program {
    pub fn node(script: PathBuf) -> Program {
        Program { executable: "node".into(), script: Some(script) }
    }

    pub fn is_node(&self) -> bool {
        self.script.is_some()
    }

    /// The file that is deployed.
    pub fn file(&self) -> &Path {
        self.script.as_ref().unwrap_or(&self.executable)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.args(&self.script);
        command
    }
}

/// The workspace's folder.
pub fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// The size of a file in bytes, as it is and compressed as for a deployment. Without optimisation, compressing takes
/// minutes, so the quick form skips it.
pub fn sizes(file: &Path, extent: Extent) -> Result<(u64, u64), Error> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if extent == Extent::Quick {
        return Ok((bytes.len() as u64, 0));
    }
    let mut packed = DeflateEncoder::new(Counter(0), Compression::best());
    packed.write_all(&bytes)?;
    Ok((bytes.len() as u64, packed.finish()?.0))
}

/// Counts the bytes written and discards them.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
