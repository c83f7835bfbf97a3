//! Imported entries in the settings that are there already.

use serde_json::{Value, json};

use super::words::unique;
use super::{Imported, ImportedTool};
use crate::settings::Reserved;
use crate::tool::Tool;

/// What an operator changes by hand. An entry that is replaced keeps it.
const KEPT: [&str; 12] = [
    "name",
    "price",
    "title",
    "summary",
    "category",
    "call_id_header",
    "caller_errors",
    "safe_to_retry",
    "deadline_seconds",
    "cache_seconds",
    "calls_per_day",
    "at_once",
];

impl Imported {
    /// Puts the tools among these entries, each in place of the entry that asks the same of the same service. A tool whose
    /// name belongs to another entry gets a free one. Returns how many entries were replaced.
    pub fn merge_into(&mut self, entries: &mut Vec<Value>, reserved: Reserved<'_>) -> usize {
        let mut places: Vec<Option<usize>> = vec![None; self.tools.len()];
        // Operations may differ in no more than their names, so that equal names go first.
        for needs_name in [true, false] {
            for (index, imported) in self.tools.iter().enumerate() {
                if places[index].is_some() {
                    continue;
                }
                let is_meant = |entry: &Value| !needs_name || entry["name"] == imported.entry["name"];
                places[index] = entries.iter().enumerate().position(|(place, entry)| {
                    !places.contains(&Some(place)) && is_meant(entry) && asks_the_same(entry, &imported.entry)
                });
            }
        }
        for (imported, place) in self.tools.iter_mut().zip(&places) {
            if let Some(place) = *place {
                imported.keep(&entries[place], reserved);
                entries[place] = imported.entry.clone();
            }
        }
        for (imported, _) in self.tools.iter_mut().zip(&places).filter(|(_, place)| place.is_none()) {
            let is_taken = |name: &str| reserved(name) || entries.iter().any(|entry| entry["name"] == name);
            imported.rename(unique(&imported.tool.name, is_taken));
            entries.push(imported.entry.clone());
        }
        places.iter().flatten().count()
    }
}

impl ImportedTool {
    fn keep(&mut self, before: &Value, reserved: Reserved<'_>) {
        for member in KEPT {
            if let Some(value) = before.get(member) {
                self.entry[member] = value.clone();
            }
        }
        for place in ["query", "headers"] {
            let constants = before["constants"][place].as_object().into_iter().flatten();
            constants.for_each(|(name, value)| self.keep_constant(place, name, value));
        }
        // What was changed by hand may be wrong: the settings are read as a whole later, which says so.
        match Tool::read(&self.entry, "", reserved) {
            Ok(tool) => self.tool = tool,
            Err(_) => self.tool.name = self.entry["name"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Keeps what the operator added, and the name of a secret. Constant texts of the document are the document's.
    fn keep_constant(&mut self, place: &str, name: &str, value: &Value) {
        let new = &self.entry["constants"][place][name];
        let is_media = place == "headers" && ["accept", "content-type"].contains(&name);
        if !is_media && (new.is_null() || new.is_object() && value.is_object()) {
            self.entry["constants"][place][name] = value.clone();
        }
    }

    fn rename(&mut self, name: String) {
        self.entry["name"] = Value::from(name.as_str());
        self.tool.name = name;
    }
}

/// The entries of `OWN_TOOLS` as it stands in the settings: absent, a text with JSON in it, an array, or an object with the
/// array `tools`.
///
/// # Errors
/// Says what it must be.
pub fn entries_of(own: &mut Value) -> Result<&mut Vec<Value>, String> {
    if let Some(text) = own.as_str() {
        *own = serde_json::from_str(text).map_err(|error| format!("OWN_TOOLS is a text that is not JSON: {error}"))?;
    }
    if own.is_null() {
        *own = json!({"tools": []});
    }
    let entries = if own.is_array() { own.as_array_mut() } else { own.get_mut("tools").and_then(Value::as_array_mut) };
    entries.ok_or_else(|| "OWN_TOOLS must be an array, or an object with the array tools".to_owned())
}

/// Whether an entry sends what a new one sends: the same operation, or the same tool of an MCP server.
fn asks_the_same(entry: &Value, new: &Value) -> bool {
    let address = |entry: &Value| entry["address"].as_str().map(|text| text.trim_end_matches('/').to_owned());
    let kind = |entry: &Value| entry["kind"].as_str().unwrap_or("http").to_owned();
    let is_same = |member: &str| entry[member] == new[member];
    // A path's own query stands in the constants and tells operations apart. The operator may have added others.
    let constants = new["constants"]["query"].as_object().into_iter().flatten();
    let mut texts = constants.filter(|(_, value)| value.is_string());
    kind(entry) == kind(new)
        && address(entry) == address(new)
        && ["method", "path", "tool"].into_iter().all(is_same)
        && texts.all(|(name, value)| entry["constants"]["query"][name] == *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{McpServer, Select, Selection, from_mcp, from_openapi};

    /// The operations of a service at these paths, all with the same id, so that their names collide.
    fn imported(host: &str, paths: &[&str]) -> Imported {
        let operation = json!({"operationId": "list", "responses": {"200": {"description": "ok"}}});
        let paths: serde_json::Map<String, Value> =
            paths.iter().map(|path| ((*path).to_owned(), json!({"get": operation}))).collect();
        let document = json!({"openapi": "3.0.0", "servers": [{"url": format!("https://{host}")}], "paths": paths});
        from_openapi(&document, &Selection::new(vec![Select::All], "0.01"), &|_| false)
    }

    fn shown(entries: &[Value]) -> Vec<(&str, &str)> {
        entries.iter().map(|entry| (entry["name"].as_str().unwrap(), entry["path"].as_str().unwrap())).collect()
    }

    #[test]
    fn a_name_of_another_service_or_operation_is_left_alone() {
        let mut entries = Vec::new();
        assert_eq!(imported("a.example", &["/a"]).merge_into(&mut entries, &|_| false), 0);
        entries[0]["price"] = json!("7");
        let before = entries[0].clone();
        // The same name and path elsewhere, and another path of the same service, in runs of their own.
        let mut other = imported("b.example", &["/a"]);
        assert_eq!(other.merge_into(&mut entries, &|name| name == "list_2"), 0);
        assert_eq!(
            (other.tools[0].tool.name.as_str(), other.tools[0].entry["price"].as_str()),
            ("list_3", Some("0.01"))
        );
        assert_eq!(imported("a.example", &["/b"]).merge_into(&mut entries, &|_| false), 0);
        assert_eq!(shown(&entries), [("list", "/a"), ("list_3", "/a"), ("list_2", "/b")]);
        assert_eq!(entries[0], before);
        // Paths that differ in their queries alone.
        assert_eq!(imported("a.example", &["/b?v=1"]).merge_into(&mut entries, &|_| false), 0);
    }

    #[test]
    fn a_second_run_keeps_names_and_what_was_changed_by_hand() {
        let mut entries = Vec::new();
        imported("a.example", &["/b", "/c"]).merge_into(&mut entries, &|_| false);
        entries[0]["price"] = json!("1");
        entries[0]["constants"] = json!({"query": {"key": {"secret": "mine"}}, "headers": {"accept": "old"}});
        entries[1]["price"] = json!({"per": "/q", "of": "length", "rate": "1"});
        entries[1]["title"] = json!("By hand");
        entries[1]["at_once"] = json!(3);
        entries[1]["input_schema"] = json!("old");
        entries[1]["address"] = json!("https://a.example/");
        // The new operation comes first, so that all numbers of the import move.
        let mut again = imported("a.example", &["/a", "/b", "/c"]);
        assert_eq!(again.merge_into(&mut entries, &|_| false), 2);
        assert_eq!(shown(&entries), [("list", "/b"), ("list_2", "/c"), ("list_3", "/a")]);
        assert_eq!((&entries[0]["price"], &entries[2]["price"]), (&json!("1"), &json!("0.01")));
        assert_eq!(entries[1]["price"]["per"], "/q");
        assert_eq!((&entries[1]["title"], &entries[1]["at_once"]), (&json!("By hand"), &json!(3)));
        assert_eq!(entries[1]["input_schema"]["type"], "object");
        assert_eq!(entries[0]["constants"], json!({"query": {"key": {"secret": "mine"}}}));
        assert_eq!(again.tools[1].tool.secrets(), ["mine"]);
        let names: Vec<&str> = again.tools.iter().map(|tool| tool.tool.name.as_str()).collect();
        assert_eq!(names, ["list_3", "list", "list_2"]);
    }

    #[test]
    fn tools_of_mcp_servers_are_told_apart_by_server_and_tool() {
        let list = json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]});
        let at = |address: &str| {
            let server = McpServer {
                address: address.to_owned(),
                private: false,
                only: Vec::new(),
                price: json!("0.01"),
                prefix: None,
                category: None,
                headers: serde_json::Map::new(),
            };
            from_mcp(&list, &server, &|_| false)
        };
        let mut entries = Vec::new();
        assert_eq!(at("https://a.example/mcp").merge_into(&mut entries, &|_| false), 0);
        assert_eq!(at("https://b.example/mcp").merge_into(&mut entries, &|_| false), 0);
        assert_eq!(at("https://a.example/mcp").merge_into(&mut entries, &|_| false), 1);
        let names: Vec<&Value> = entries.iter().map(|entry| &entry["name"]).collect();
        assert_eq!(names, ["echo", "echo_2"]);
    }

    #[test]
    fn the_settings_may_hold_the_entries_as_text() {
        for mut own in [json!([1]), json!({"tools": [1]}), json!("[1]"), json!(r#"{"tools": [1]}"#)] {
            assert_eq!(entries_of(&mut own), Ok(&mut vec![json!(1)]));
            entries_of(&mut own).unwrap().push(json!(2));
            assert_eq!(entries_of(&mut own).map(|entries| entries.len()), Ok(2), "{own}");
        }
        let mut none = Value::Null;
        entries_of(&mut none).unwrap().push(json!(1));
        assert_eq!(none, json!({"tools": [1]}));
        for mut wrong in [json!("{"), json!(""), json!("\"x\""), json!(1), json!({}), json!({"tools": {}})] {
            assert!(entries_of(&mut wrong).unwrap_err().starts_with("OWN_TOOLS "), "{wrong}");
        }
    }
}
