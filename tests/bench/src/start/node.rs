//! The same work in Node: handlers under `node/`, each bundled into one file as for a deployment.
//!
//! They use the usual packages: the AWS SDK's clients and viem. The runtime is a loop of twenty lines instead of
//! Lambda's own, which favours Node.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::build::{Program, workspace};
use super::cases;
use crate::Error;
use crate::machine;
use crate::start::Functions;

/// The bundled handlers.
pub struct Bundles {
    folder: PathBuf,
}

impl Bundles {
    pub fn program(&self, handler: &str) -> Program {
        Program::node(self.folder.join(format!("{handler}.cjs")))
    }
}

/// Installs the packages on first use, into a folder that git ignores, and bundles every handler.
pub fn bundle(functions: &Functions) -> Result<Bundles, Error> {
    machine::version("node").ok_or("there is no node")?;
    let sources = workspace().join("tests/bench/node");
    let tools = workspace().join(".tools/bench-node");
    install(&sources, &tools)?;
    let folder = functions.scratch()?;
    let mut esbuild = Command::new(tools.join("node_modules/.bin/esbuild"));
    esbuild.args(cases::ALL.iter().filter_map(|case| case.node).map(|handler| sources.join(format!("{handler}.mjs"))));
    esbuild.args(["--bundle", "--minify", "--platform=node", "--target=node20", "--format=cjs"]);
    esbuild.args(["--out-extension:.js=.cjs", "--log-level=warning"]);
    esbuild.arg(format!("--outdir={}", folder.display()));
    // The packages are not in the sources' folder.
    esbuild.env("NODE_PATH", tools.join("node_modules"));
    run(&mut esbuild)?;
    Ok(Bundles { folder })
}

fn install(sources: &Path, tools: &Path) -> Result<(), Error> {
    let wanted = std::fs::read(sources.join("package.json"))?;
    let installed = tools.join("installed.json");
    if std::fs::read(&installed).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    eprintln!("bench: installing the packages of the Node handlers into {}", tools.display());
    std::fs::create_dir_all(tools)?;
    std::fs::write(tools.join("package.json"), &wanted)?;
    run(Command::new("npm").args(["install", "--no-audit", "--no-fund", "--no-package-lock"]).current_dir(tools))?;
    Ok(std::fs::write(installed, wanted)?)
}

fn run(command: &mut Command) -> Result<Output, Error> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{program}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
