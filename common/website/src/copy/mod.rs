//! From a brief to a plan: which sections there are and what they say.

pub(crate) mod contact;
mod language;
mod money;
mod opening;
mod orders;
mod pages;
mod quoted;
pub(crate) mod sections;
pub(crate) mod sentences;
pub(crate) mod stock;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod times;
pub(crate) mod topics;
pub mod words;

use crate::brief::Brief;
use crate::plan::{Look, Plan};

/// Plans a site. `look` was chosen by `design::choose`.
pub fn plan(brief: &Brief, look: Look) -> Plan {
    let language = language::detect(&brief.description);
    let words = words::words(language);
    let mut stock = stock::gather(brief);
    let name = text::cut(&text::fold(&brief.name), 80);
    let orders = orders::read(&std::mem::take(&mut stock.orders), &name);
    let opening = opening::opening(&mut stock, &orders, brief, &name);
    let mut maker = sections::Maker {
        stock,
        orders,
        words,
        kind: brief.kind,
        name: name.clone(),
        english: language == "en",
        form: brief.lead_capture,
        contact: String::new(),
        pages: Vec::new(),
        said_neutral: false,
    };
    let pages = pages::pages(brief, &mut maker, &opening, &name);
    Plan {
        language: language.to_owned(),
        kind: brief.kind,
        name,
        tagline: opening.tagline,
        look,
        pages,
        lead_capture: brief.lead_capture,
        pictures: brief.pictures.clone(),
    }
}
