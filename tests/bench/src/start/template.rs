//! The environment that `template.yaml` gives each function, with stand-ins for values that only a deployment has.
//!
//! No variable is listed by hand: each variable of the template is set here.

use std::collections::BTreeSet;

pub use sam_template::REGION;
use serde_json::Value;

use crate::Error;

/// The template with its stand-ins.
pub struct Template {
    template: sam_template::Template,
    stand_ins: StandIns,
}

/// Replacements for values of a deployment.
pub struct StandIns {
    /// Replace the defaults of these parameters.
    pub parameters: Vec<(&'static str, String)>,
    /// Replaces every AWS endpoint.
    pub endpoint: String,
    /// The text of a secret, or of one member of it.
    pub secret: fn(Option<&str>) -> String,
}

impl Template {
    pub fn read(stand_ins: StandIns) -> Result<Template, Error> {
        let mut template = sam_template::Template::of_project()?;
        for (parameter, value) in &stand_ins.parameters {
            template = template.with(parameter, value);
        }
        Ok(Template { template, stand_ins })
    }

    /// The binaries of all functions.
    pub fn functions(&self) -> BTreeSet<&str> {
        self.resources().filter_map(binary).collect()
    }

    /// The variables of a function, including those of all functions.
    pub fn environment(&self, function: &str) -> Result<Vec<(String, String)>, Error> {
        let own = self.resources().find(|resource| binary(resource) == Some(function));
        let own = own.ok_or_else(|| format!("template.yaml has no function {function:?}"))?;
        let shared = &self.template.unresolved()["Globals"]["Function"]["Environment"]["Variables"];
        let own = &own["Properties"]["Environment"]["Variables"];
        let mut variables = Vec::new();
        for given in [shared, own] {
            for (name, value) in self.template.resolved(given)?.as_object().into_iter().flatten() {
                variables.push((name.clone(), self.stood_in(value)));
            }
        }
        Ok(variables)
    }

    fn resources(&self) -> impl Iterator<Item = &Value> {
        self.template.unresolved()["Resources"].as_object().into_iter().flat_map(serde_json::Map::values)
    }

    /// A value with its secrets looked up, and with AWS endpoints replaced by the stand-in's address.
    fn stood_in(&self, value: &Value) -> String {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let reference = text.strip_prefix("{{resolve:secretsmanager:").and_then(|text| text.strip_suffix("}}"));
        if let Some(reference) = reference {
            return (self.stand_ins.secret)(reference.split_once(":SecretString:").map(|(_, member)| member));
        }
        let host = text.strip_prefix("https://").and_then(|text| text.split('/').next());
        match host.filter(|host| host.ends_with(".amazonaws.com")) {
            Some(host) => text.replace(&format!("https://{host}"), &self.stand_ins.endpoint),
            None => text,
        }
    }
}

fn binary(resource: &Value) -> Option<&str> {
    resource["Metadata"]["BuildProperties"]["Binary"].as_str()
}
