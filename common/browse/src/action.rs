//! What a planner may do in a session.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::view::View;

/// One act, as JSON `{"do": "click", "id": "e12"}`. Unknown members are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    Open {
        url: String,
    },
    Click {
        id: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        double: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        right: bool,
    },
    ClickAt {
        x: f64,
        y: f64,
    },
    /// Types into the element, or into what has the focus; with `clear` instead of what it holds, with `enter` and the
    /// Enter key.
    Type {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        text: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        clear: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        enter: bool,
    },
    Clear {
        id: String,
    },
    Select {
        id: String,
        options: Vec<String>,
    },
    Check {
        id: String,
        on: bool,
    },
    /// Of a field that is not typed into: date, time, colour, range.
    Set {
        id: String,
        value: String,
    },
    /// A key, or keys held together: `Control+A`.
    Press {
        keys: String,
    },
    Hover {
        id: String,
    },
    Drag {
        from: Spot,
        to: Spot,
    },
    /// In pixels.
    Scroll {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default)]
        dx: f64,
        #[serde(default)]
        dy: f64,
    },
    Upload {
        id: String,
        files: Vec<String>,
    },
    Back {},
    Tab {
        number: u32,
    },
    CloseTab {},
    Wait {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<f64>,
    },
    Screenshot {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    Dialog {
        accept: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    Done {
        success: Option<bool>,
        #[serde(default)]
        output: Value,
    },
}

/// An element, or a point in CSS pixels of the main viewport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Spot {
    Element(String),
    Point([f64; 2]),
}

impl Action {
    /// Reads an act that somebody else wrote, and checks it against what is on the page.
    ///
    /// # Errors
    /// What is wrong with it, in plain words.
    pub fn read(value: Value, view: &View) -> Result<Self, String> {
        let action: Self = serde_json::from_value(value).map_err(|e| format!("this is no action: {e}"))?;
        for id in action.ids() {
            if view.element(id).is_none() {
                return Err(format!("there is no element {id} on the page"));
            }
        }
        match &action {
            Self::Tab { number } if view.tabs.iter().all(|tab| tab.number != *number) => {
                Err(format!("there is no tab {number}"))
            }
            Self::Dialog { .. } if view.dialog.is_none() => Err("no dialog is open".to_owned()),
            Self::Open { url } => match url::Url::parse(url) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(action),
                _ => Err(format!("{url} is no web address")),
            },
            _ => Ok(action),
        }
    }

    /// Elements that it names.
    #[must_use]
    pub fn ids(&self) -> Vec<&str> {
        match self {
            Self::Click { id, .. }
            | Self::Clear { id }
            | Self::Select { id, .. }
            | Self::Check { id, .. }
            | Self::Set { id, .. }
            | Self::Hover { id }
            | Self::Upload { id, .. } => vec![id],
            Self::Type { id, .. } | Self::Scroll { id, .. } => id.iter().map(String::as_str).collect(),
            Self::Drag { from, to } => [from, to]
                .into_iter()
                .filter_map(|spot| match spot {
                    Spot::Element(id) => Some(id.as_str()),
                    Spot::Point(_) => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// JSON Schema of one action, for a model's answer.
#[must_use]
pub fn schema() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    let flag = json!({"type": "boolean"});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let spot = json!({"anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    ]});
    let one = |name: &str, needed: &[(&str, &Value)], also: &[(&str, &Value)]| {
        let mut members = serde_json::Map::new();
        members.insert("do".to_owned(), json!({"const": name}));
        for (member, kind) in needed.iter().chain(also) {
            members.insert((*member).to_owned(), (*kind).clone());
        }
        let required: Vec<&str> = std::iter::once("do").chain(needed.iter().map(|(member, _)| *member)).collect();
        json!({"type": "object", "properties": members, "required": required, "additionalProperties": false})
    };
    json!({"anyOf": [
        one("open", &[("url", &text)], &[]),
        one("click", &[("id", &text)], &[("double", &flag), ("right", &flag)]),
        one("click_at", &[("x", &number), ("y", &number)], &[]),
        one("type", &[("text", &text)], &[("id", &text), ("clear", &flag), ("enter", &flag)]),
        one("clear", &[("id", &text)], &[]),
        one("select", &[("id", &text), ("options", &texts)], &[]),
        one("check", &[("id", &text), ("on", &flag)], &[]),
        one("set", &[("id", &text), ("value", &text)], &[]),
        one("press", &[("keys", &text)], &[]),
        one("hover", &[("id", &text)], &[]),
        one("drag", &[("from", &spot), ("to", &spot)], &[]),
        one("scroll", &[], &[("id", &text), ("dx", &number), ("dy", &number)]),
        one("upload", &[("id", &text), ("files", &texts)], &[]),
        one("back", &[], &[]),
        one("tab", &[("number", &json!({"type": "integer"}))], &[]),
        one("close_tab", &[], &[]),
        one("wait", &[], &[("text", &text), ("seconds", &number)]),
        one("screenshot", &[], &[("name", &text)]),
        one("dialog", &[("accept", &flag)], &[("text", &text)]),
        one("done", &[("success", &json!({"type": ["boolean", "null"]})), ("output", &json!({}))], &[]),
    ]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_refused_with_unknown_members_or_elements() {
        let view: View =
            serde_json::from_value(json!({"nodes": [{"id": "e1", "role": "button", "box": [0, 0, 1, 1]}]}))
                .expect("a view");
        let click = json!({"do": "click", "id": "e1"});
        let read = Action::read(click.clone(), &view).expect("an action");
        assert_eq!(serde_json::to_value(read).expect("JSON"), click);
        for (bad, why) in [
            (json!({"do": "click", "id": "e2"}), "no element e2"),
            (json!({"do": "click", "id": "e1", "force": true}), "unknown field"),
            (json!({"do": "back", "times": 2}), "unknown field"),
            (json!({"do": "drag", "from": "e7", "to": [1, 2]}), "no element e7"),
            (json!({"do": "open", "url": "file:///etc/passwd"}), "no web address"),
            (json!({"do": "dialog", "accept": true}), "no dialog"),
        ] {
            let said = Action::read(bad, &view).expect_err("refused");
            assert!(said.contains(why), "{said}");
        }
    }
}
