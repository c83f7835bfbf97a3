//! Prints plans of objectives, a line of JSON each: `{"text": …, "params": {…}}` on stdin. The argument names a file with an
//! array of tools; a line may bring its own as `tools`.

use std::io::{BufRead, stdin};

use goalplan::{Objective, Tool, plan};
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let catalog: Value = match std::env::args().nth(1) {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path)?)?,
        None => Value::Null,
    };
    for line in stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        let listed = if asked["tools"].is_array() { &asked["tools"] } else { &catalog };
        let text = |tool: &'_ Value, name: &str| tool[name].as_str().unwrap_or_default().to_owned();
        let tools: Vec<(&Value, [String; 4])> = listed
            .as_array()
            .into_iter()
            .flatten()
            .map(|tool| (tool, ["name", "title", "about", "also"].map(|name| text(tool, name))))
            .collect();
        let tools: Vec<Tool> = tools
            .iter()
            .map(|(tool, [name, title, about, also])| Tool {
                name,
                title,
                about,
                also,
                input: &tool["input"],
                output: &tool["output"],
                acts: tool["acts"] == true,
            })
            .collect();
        let params: Map<String, Value> = asked["params"].as_object().cloned().unwrap_or_default();
        let text = asked["text"].as_str().unwrap_or_default();
        let planned = match plan(&Objective { text, params: &params }, &tools) {
            Ok(plan) => json!({ "plan": plan }),
            Err(refusal) => json!({ "refusal": refusal }),
        };
        println!("{planned}");
    }
    Ok(())
}
