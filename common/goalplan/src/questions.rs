//! Questions to the owner for what is missing.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::build::Builder;
use crate::clauses::Clause;
use crate::meaning::{Meaning, Slot, shape};
use crate::{Asked, Kind, Refusal, Source, Task, Tool};

impl Builder<'_> {
    /// Asks the owner for what is missing.
    pub(crate) fn ask(
        &mut self,
        clause: &Clause,
        at: usize,
        input: &mut BTreeMap<String, Source>,
    ) -> Result<(), Refusal> {
        let tool = self.picker.tools[at];
        for slot in self.picker.slots[at].clone() {
            if !slot.required || input.contains_key(&slot.name) {
                continue;
            }
            let text = question(&slot, &tool, &clause.text);
            let schema = tool.input["properties"][&slot.name].clone();
            let asks = Asked { text: text.clone(), argument: slot.name.clone(), meaning: slot.meaning, schema };
            let known = self.tasks.iter().position(|task| task.asks.as_ref() == Some(&asks));
            let task = match known {
                Some(task) => task,
                None => {
                    // What was found before may be what the owner needs to answer.
                    let needs: Vec<usize> = self.last.iter().copied().filter(|task| !self.acts(*task)).collect();
                    let reason =
                        format!("{} needs {}, and neither the objective nor its params have it", tool.name, slot.name);
                    self.push(Task {
                        kind: Kind::Question,
                        tool: None,
                        description: text,
                        reason,
                        phase: 1,
                        needs,
                        input: BTreeMap::new(),
                        asks: Some(asks),
                    })?
                }
            };
            input.insert(slot.name.clone(), Source::Answer { task });
        }
        Ok(())
    }
}

fn question(slot: &Slot, tool: &Tool, clause: &str) -> String {
    let clause: String = clause.chars().take(120).collect();
    let wanted = match slot.meaning {
        Meaning::Email if tool.acts => "Which address should the mail go to".to_owned(),
        Meaning::Phone if tool.acts => "Which phone number, with its country code".to_owned(),
        Meaning::Body => "What should the message say".to_owned(),
        Meaning::Query if tool.acts => "What is to be done".to_owned(),
        Meaning::Subject => "Which subject should it have".to_owned(),
        Meaning::Money => "Which amount".to_owned(),
        Meaning::Url => "Which web address".to_owned(),
        Meaning::Domain => "Which domain".to_owned(),
        _ => format!("Which {}", slot.parts.join(" ")),
    };
    let (one, ..) = shape(&slot.schema);
    let choices: Vec<&str> = one["enum"].as_array().into_iter().flatten().take(12).filter_map(Value::as_str).collect();
    let about = match (choices.is_empty(), slot.about.is_empty()) {
        (false, _) => format!(" ({})", choices.join(", ")),
        (true, false) => {
            format!(" ({})", slot.about.split(". ").next().unwrap_or_default().chars().take(120).collect::<String>())
        }
        _ => String::new(),
    };
    format!("{wanted} for \u{201c}{clause}\u{201d}?{about}")
}
