//! The merged view of a page: its elements and the texts between them, in document order.

mod lines;

use serde::{Deserialize, Deserializer, Serialize};

pub use lines::changed;

/// Left, top, width and height in CSS pixels of the main viewport.
pub type Bounds = [i64; 4];

/// No page is larger; sums of such numbers cannot overflow.
const MOST_PIXELS: f64 = 10_000_000.0;

/// A page as a planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct View {
    pub url: String,
    pub title: String,
    pub width: f64,
    pub height: f64,
    pub scroll: Scroll,
    /// In document order; nodes of a frame follow the node of the frame.
    pub nodes: Vec<Node>,
    pub tabs: Vec<Tab>,
    /// While it is open, nothing else can be used.
    pub dialog: Option<Dialog>,
    /// Names of files that the page gave so far.
    pub downloads: Vec<String>,
    /// Whether the page has more nodes than a view holds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scroll {
    pub x: f64,
    pub y: f64,
    pub max_x: f64,
    pub max_y: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tab {
    pub number: u32,
    pub url: String,
    pub title: String,
    pub current: bool,
}

/// A dialog of the browser itself: alert, confirm, prompt, beforeunload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dialog {
    pub kind: String,
    pub message: String,
    pub default: Option<String>,
}

/// An element that can be used (it has an `id`), or a text (it has a `text`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// `e12`, in a frame `f1.e12`; stays with the element as long as its document lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tag: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Of an input: `email`, `date` and so on.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Of a heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub href: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub frame: bool,
    /// Least and greatest value of a slider or a number field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[Option<f64>; 2]>,
    /// Colour and shape, of drawings and of elements without a name: `red circle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<String>,
    /// Words of the classes and pictures of an element without a name: `trash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The nearest element around it that can be used too.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Table of the page, row, column, each from 0 (tables from 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<[i64; 3]>,
    #[serde(rename = "box", deserialize_with = "bounds")]
    pub bounds: Bounds,
}

fn bounds<'de, D: Deserializer<'de>>(reader: D) -> Result<Bounds, D::Error> {
    let read = <[f64; 4]>::deserialize(reader)?;
    #[expect(clippy::cast_possible_truncation, reason = "clamped first, and a cast of a float saturates")]
    Ok(read.map(|side| side.round().clamp(-MOST_PIXELS, MOST_PIXELS) as i64))
}

impl Node {
    /// Whether it has this state.
    #[must_use]
    pub fn is(&self, state: &str) -> bool {
        self.states.iter().any(|own| own == state)
    }

    /// The text or the name.
    #[must_use]
    pub fn words(&self) -> &str {
        self.text.as_deref().unwrap_or(&self.name)
    }

    /// Whether text can be typed into it.
    #[must_use]
    pub fn takes_text(&self) -> bool {
        match self.role.as_str() {
            "textbox" | "searchbox" | "spinbutton" => true,
            "combobox" => self.tag != "select" && self.value.is_some(),
            _ => false,
        }
    }

    /// Right edge, in pixels.
    #[must_use]
    pub fn right(&self) -> i64 {
        self.bounds[0] + self.bounds[2]
    }

    /// Lower edge, in pixels.
    #[must_use]
    pub fn bottom(&self) -> i64 {
        self.bounds[1] + self.bounds[3]
    }

    /// Middle, in pixels.
    #[must_use]
    pub fn middle(&self) -> [i64; 2] {
        [self.bounds[0] + self.bounds[2] / 2, self.bounds[1] + self.bounds[3] / 2]
    }
}

impl View {
    /// The element with this id.
    #[must_use]
    pub fn element(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id.as_deref() == Some(id))
    }
}
