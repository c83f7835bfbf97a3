//! Checks `settings.json` before functions are built with it: `check-settings [file]`. Variables that the template or a secret
//! sets are assumed.

use std::path::PathBuf;
use std::process::ExitCode;

use catalog::CATALOG;
use platform::config::{Config, ConfigErrors, SETTINGS_FILE, SettingsFile};

fn main() -> ExitCode {
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            eprintln!("{problems}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<(), String> {
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from(SETTINGS_FILE), PathBuf::from);
    let file = SettingsFile::read(&path).map_err(|errors| errors.to_string())?;
    let assumed = |name: &str| (name == "PAY_TO").then(|| "0x0000000000000000000000000000000000000001".to_owned());
    let (config, mut problems) = Config::examined(assumed, &file);
    problems.extend(CATALOG.of(&config).unknown(&config));
    if problems.is_empty() { Ok(()) } else { Err(ConfigErrors(problems).to_string()) }
}
