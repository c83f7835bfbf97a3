//! Checks a deployment's settings (docs/DEPLOY.md): `doctor [--json] [--stack .local/stack.json]`. Reads the environment as
//! the functions do. Exit code 1 if a check fails.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use local::doctor::{self, Level};
use platform::config::{SETTINGS_FILE, SettingsFile};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut environment: HashMap<String, String> = std::env::vars().collect();
    let mut as_json = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let path = if argument == "--stack" { arguments.next() } else { None };
        match (argument.as_str(), path) {
            ("--json", _) => as_json = true,
            ("--stack", Some(path)) => {
                if let Err(error) = doctor::of_stack(&mut environment, Path::new(&path)) {
                    eprintln!("{path}: {error}; is the stack running?");
                    return ExitCode::FAILURE;
                }
            }
            _ => {
                eprintln!("usage: doctor [--json] [--stack .local/stack.json]");
                return ExitCode::FAILURE;
            }
        }
    }
    // What the deployed functions read beside the variables that the template gives them.
    match SettingsFile::read(Path::new(SETTINGS_FILE)) {
        Ok(file) => {
            let given = doctor::template_variables();
            for (name, value) in file.into_values().into_iter().filter(|(name, _)| !given.contains_key(name)) {
                environment.entry(name).or_insert(value);
            }
        }
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::FAILURE;
        }
    }
    let report = doctor::examine(&environment).await;
    if as_json {
        println!("{}", serde_json::to_string(&report.0).unwrap_or_default());
    } else {
        print!("{}", report.text());
    }
    if report.worst() == Level::Fail { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
