//! `settings.json`: variables that a deployed function reads from a file beside its binary.
//!
//! Lambda gives the variables of a function 4 KB together, which a table of prices can fill alone. A file in the function's
//! archive has room, costs no request at the start, and a change of it is a deployment like any other. It is not for secrets.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::ConfigErrors;

pub const SETTINGS_FILE: &str = "settings.json";

/// A JSON object of variable names and values. A value that is not a string counts as its JSON text.
#[derive(Debug, Default)]
pub struct SettingsFile {
    values: BTreeMap<String, String>,
    /// The names that were looked up.
    asked: RefCell<BTreeSet<String>>,
}

impl SettingsFile {
    /// The file in the folder of the running Lambda function; nothing elsewhere.
    pub fn of_function() -> Result<SettingsFile, ConfigErrors> {
        match std::env::var_os("LAMBDA_TASK_ROOT") {
            Some(folder) => SettingsFile::read(&Path::new(&folder).join(SETTINGS_FILE)),
            None => Ok(SettingsFile::default()),
        }
    }

    /// A file that does not exist sets nothing.
    pub fn read(path: &Path) -> Result<SettingsFile, ConfigErrors> {
        match std::fs::read_to_string(path) {
            Ok(text) => SettingsFile::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(SettingsFile::default()),
            Err(error) => Err(ConfigErrors(vec![format!("{} cannot be read: {error}", path.display())])),
        }
    }

    fn parse(text: &str) -> Result<SettingsFile, ConfigErrors> {
        let values: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|error| {
            ConfigErrors(vec![format!("{SETTINGS_FILE} must be a JSON object of variables and values: {error}")])
        })?;
        let unset: Vec<String> = values
            .iter()
            .filter(|(_, value)| value.is_null())
            .map(|(name, _)| format!("{name} in {SETTINGS_FILE} must have a value"))
            .collect();
        if !unset.is_empty() {
            return Err(ConfigErrors(unset));
        }
        let as_text = |value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let values = values.into_iter().map(|(name, value)| (name, as_text(value))).collect();
        Ok(SettingsFile { values, asked: RefCell::default() })
    }

    pub fn get(&self, name: &str) -> Option<String> {
        self.asked.borrow_mut().insert(name.to_owned());
        self.values.get(name).cloned()
    }

    pub fn into_values(self) -> BTreeMap<String, String> {
        self.values
    }

    /// A problem for each variable that was not looked up: most likely its name is misspelt.
    pub fn unknown(&self) -> Vec<String> {
        let asked = self.asked.borrow();
        let unknown = self.values.keys().filter(|name| !asked.contains(*name));
        unknown.map(|name| format!("{name} in {SETTINGS_FILE} is not a variable that is read")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const PAY_TO: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

    fn config(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let given =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Config::with_settings(given, &SettingsFile::parse(file)?)
    }

    #[test]
    fn variables_win_over_the_file() {
        let file = r#"{"PAY_TO": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "QUOTE_TTL_SECONDS": 60,
            "SERVICE_NAME": "Filed", "PRICES": {"web_read": "0.003"}}"#;
        let config = config(file, &[("SERVICE_NAME", "Given"), ("QUOTE_TTL_SECONDS", " ")]).unwrap();
        assert_eq!(config.service_name, "Given");
        assert_eq!(config.payments.quote_ttl.as_secs(), 60, "an empty variable is not set");
        assert_eq!(config.prices.tools["web_read"].micro(), 3_000);
    }

    #[test]
    fn a_bad_file_stops_the_start() {
        let unknown = config(r#"{"PRICE": {}, "METRIC_NAMESPACE": "x"}"#, &[("PAY_TO", PAY_TO)]).unwrap_err();
        assert_eq!(unknown.0, ["PRICE in settings.json is not a variable that is read"]);
        let null = config(r#"{"SERVICE_NAME": null}"#, &[("PAY_TO", PAY_TO)]).unwrap_err();
        assert_eq!(null.0, ["SERVICE_NAME in settings.json must have a value"]);
        for text in ["", "[]", "{"] {
            let error = config(text, &[("PAY_TO", PAY_TO)]).unwrap_err().to_string();
            assert!(error.contains("settings.json must be a JSON object"), "{error}");
        }
    }

    #[test]
    fn a_missing_file_sets_nothing() {
        assert!(SettingsFile::read(Path::new("/nowhere/settings.json")).unwrap().values.is_empty());
        assert!(SettingsFile::read(Path::new("/")).is_err(), "a folder is not a file");
    }
}
