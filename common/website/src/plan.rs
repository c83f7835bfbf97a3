//! What a site says and how it looks, before it is markup. Stored as JSON with each version, so members are only ever added, with
//! defaults.

use serde::{Deserialize, Serialize};

use crate::brief::{Kind, Picture};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// BCP 47, of the brief; words of ours are in it too.
    pub language: String,
    pub kind: Kind,
    pub name: String,
    /// One line below the name, from the brief.
    #[serde(default)]
    pub tagline: String,
    pub look: Look,
    /// The first one is `/`.
    pub pages: Vec<Page>,
    /// Whether there is a form that writes to the owner: it stands in each `Contact` section with `form`.
    #[serde(default)]
    pub lead_capture: bool,
    #[serde(default)]
    pub pictures: Vec<Picture>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// `/`, or a path such as `/about`.
    pub path: String,
    /// In the navigation.
    pub name: String,
    /// For the document's title and for search engines.
    pub title: String,
    pub description: String,
    pub sections: Vec<Section>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Of the address `#id`; unique in its page; `[a-z0-9-]`.
    pub id: String,
    pub heading: String,
    pub content: Content,
}

/// All texts are plain, and come from the brief, its source, or a small set of neutral words of ours in the plan's language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// The first thing on a page. The section's heading is the headline.
    Hero {
        text: String,
        actions: Vec<Link>,
    },
    Text {
        paragraphs: Vec<String>,
    },
    /// Services, features, dishes, dates, works: whatever is a list.
    List {
        intro: String,
        items: Vec<Item>,
    },
    /// What happens in order.
    Steps {
        intro: String,
        items: Vec<Item>,
    },
    /// Only prices that the brief names.
    Prices {
        intro: String,
        offers: Vec<Offer>,
    },
    Questions {
        items: Vec<Item>,
    },
    /// Only words that the brief or its source quotes.
    Quotes {
        quotes: Vec<Quoted>,
    },
    /// Numbers that the brief names, with what they count.
    Facts {
        facts: Vec<Fact>,
    },
    /// Opening hours, a programme: rows of two columns.
    Table {
        intro: String,
        rows: Vec<Fact>,
    },
    /// How to reach the owner. `form`: the form of the site's lead capture.
    Contact {
        text: String,
        email: String,
        phone: String,
        address: String,
        form: bool,
    },
    /// One thing to do, at the end of a page.
    Action {
        text: String,
        actions: Vec<Link>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub title: String,
    #[serde(default)]
    pub text: String,
    /// A price or a date at the item's edge, from the brief.
    #[serde(default)]
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub name: String,
    pub price: String,
    pub text: String,
    pub points: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    pub text: String,
    pub who: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub value: String,
    pub label: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub label: String,
    /// A page's path, `#id`, `mailto:` or `tel:`.
    pub to: String,
}

/// The choices that `design` made or the buyer asked for. Colours are `#rrggbb` in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    pub layout: Layout,
    pub fonts: Fonts,
    /// The buyer's colour, or ours by kind and name.
    pub primary: String,
    /// The page's own colour, if the buyer named it.
    #[serde(default)]
    pub background: Option<String>,
    /// The page's own colour where the buyer named none.
    #[serde(default)]
    pub ground: Ground,
    #[serde(default)]
    pub mode: Mode,
    pub corners: Corners,
    pub density: Density,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ground {
    /// White, or nearly black.
    #[default]
    Plain,
    /// A tint of the primary colour.
    Tint,
}

/// Families of layouts, each with its own header, opening, rhythm of sections and footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A wide column with a margin for headings, like a magazine.
    Editorial,
    /// A fixed side with the name and the navigation, the content beside it.
    Sidebar,
    /// Full-width bands that alternate, big type.
    Poster,
    /// A strict grid with rules, small type, tables.
    Ledger,
    /// Two halves: words left, drawing or picture right, alternating.
    Split,
    /// One narrow column, like a letter.
    Letter,
}

/// Pairs of font families, all OFL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fonts {
    /// A text serif with a humanist sans.
    Book,
    /// A grotesque alone, in weights.
    Swiss,
    /// A display serif with a quiet sans.
    Review,
    /// A rounded sans.
    Friendly,
    /// A condensed display with a text sans.
    Notice,
    /// A monospaced face with a sans.
    Workshop,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Follows the reader's setting.
    #[default]
    Both,
    Light,
    Dark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Corners {
    Square,
    Soft,
    Round,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Density {
    Compact,
    Normal,
    Airy,
}
