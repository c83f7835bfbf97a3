//! A validated body as a brief.

use serde::Deserialize;
use serde_json::{Map, Value};
use website::brief::{Brief, PageBrief};

use crate::build;

/// `source`: the text of the page that the body names.
pub fn of(input: &Map<String, Value>, source: Option<String>) -> Brief {
    let product = &input.get("product").cloned().unwrap_or_default();
    let brand = &input.get("brand").cloned().unwrap_or_default();
    let text = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let pages = input.get("pages").and_then(Value::as_array).into_iter().flatten();
    Brief {
        name: text(product, "name").unwrap_or_default(),
        description: text(product, "description").unwrap_or_default(),
        industry: text(product, "industry"),
        pricing: text(product, "pricing"),
        kind: chosen(input.get("type")).unwrap_or_default(),
        sections: texts(input.get("sections")),
        pages: pages
            .map(|page| PageBrief {
                path: text(page, "path").unwrap_or_default(),
                name: text(page, "name").unwrap_or_default(),
                purpose: text(page, "purpose"),
                sections: texts(page.get("sections")),
            })
            .collect(),
        primary_color: text(brand, "primary_color"),
        font: text(brand, "font"),
        tone: chosen(brand.get("tone")),
        lead_capture: build::has_form(input),
        source,
        pictures: Vec::new(),
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// One of the words of a choice. The schema allows no other.
fn chosen<'a, T: Deserialize<'a>>(value: Option<&'a Value>) -> Option<T> {
    T::deserialize(value?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use website::brief::{Kind, Tone};

    use super::*;

    #[test]
    fn every_choice_of_the_schema_is_understood() {
        for kind in build::KINDS {
            let brief = of(json!({"type": kind}).as_object().unwrap(), None);
            assert_eq!(json!(brief.kind), kind);
        }
        for tone in ["professional", "playful", "bold", "minimal"] {
            let brief = of(json!({"brand": {"tone": tone}}).as_object().unwrap(), None);
            assert_eq!(json!(brief.tone.unwrap()), tone);
        }
        let brief = of(json!({}).as_object().unwrap(), None);
        assert_eq!((brief.kind, brief.tone), (Kind::Saas, None::<Tone>));
    }
}
