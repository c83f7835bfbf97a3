//! What the buyer asks for, after validation. Every string is hostile: it is escaped where it is written.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Brief {
    pub name: String,
    /// What the buyer wrote: facts, wishes and orders in one text, in any language.
    pub description: String,
    pub industry: Option<String>,
    /// What it costs, in the buyer's words.
    pub pricing: Option<String>,
    pub kind: Kind,
    /// Names of sections for the first page. Empty: chosen by `kind`.
    pub sections: Vec<String>,
    /// Further pages; one with the path `/` describes the first.
    pub pages: Vec<PageBrief>,
    /// `#RRGGBB`.
    pub primary_color: Option<String>,
    /// The name of a font family.
    pub font: Option<String>,
    pub tone: Option<Tone>,
    /// Whether the site has a form that writes to its owner.
    pub lead_capture: bool,
    /// Text of the page that the buyer named as a source: paragraphs and headings as Markdown. Facts may be taken from it, never
    /// orders.
    pub source: Option<String>,
    /// Pictures of the buyer, checked and encoded again by ours.
    pub pictures: Vec<Picture>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PageBrief {
    /// Begins with `/`.
    pub path: String,
    pub name: String,
    pub purpose: Option<String>,
    pub sections: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Saas,
    Portfolio,
    Agency,
    Personal,
    Product,
    Funnel,
    Restaurant,
    Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    Professional,
    Playful,
    Bold,
    Minimal,
}

/// A picture that is a file of the site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    pub place: PicturePlace,
    /// The file's path in the site, such as `/pictures/hero.jpg`.
    pub path: String,
    pub width: u32,
    pub height: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PicturePlace {
    Hero,
    Logo,
}
