//! Names and texts of strangers' documents, in the form that settings have.

use base::untrusted_text::visible;

use crate::settings::{MAX_NAME, MAX_SUMMARY, MAX_TITLE};

/// Only the beginning of a text is read: descriptions may be books.
const MAX_READ: usize = 8_000;

/// A text in one line, without markup and invisible characters.
pub fn cleaned(text: &str) -> String {
    let start: String = text.chars().take(MAX_READ).collect();
    let plain = without_tags(&visible(&start));
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Drops what looks like a tag: `<` before a letter or a slash, up to `>`.
fn without_tags(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    // Behind the last `>` nothing is a tag, so that each `<` is looked at once.
    while let Some((before, after)) = rest.split_once('<') {
        kept.push_str(before);
        let is_tag = after.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '/');
        match is_tag.then(|| after.split_once('>')).flatten() {
            Some((_, after)) => {
                kept.push(' ');
                rest = after;
            }
            None if !is_tag => {
                kept.push('<');
                rest = after;
            }
            None => {
                rest = after;
                break;
            }
        }
    }
    kept.push_str(rest);
    kept
}

/// At most `most` characters, cut between words if possible.
pub fn shortened(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    if most < 2 {
        return String::new();
    }
    let end = text[..end].char_indices().last().map_or(0, |(at, _)| at);
    let kept = text[..end].rsplit_once(' ').map_or(&text[..end], |(kept, _)| kept);
    format!("{}…", kept.trim_end_matches([',', ';', ':', ' ']))
}

/// A title and a summary: the document's own, or ones made of the name.
pub fn title_and_summary(title: &str, description: &str, name: &str) -> (String, String) {
    let (title, description) = (cleaned(title), cleaned(description));
    let named = || {
        let words = name.replace('_', " ");
        let mut letters = words.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    let shown = if title.is_empty() { named() } else { title };
    let summary = if description.is_empty() { shown.clone() } else { description };
    (shortened(&shown, MAX_TITLE), shortened(&summary, MAX_SUMMARY))
}

/// A name in snake_case of at most 40 characters: `listPetsV2` becomes `list_pets_v2`.
pub fn snake(text: &str) -> String {
    let mut name = String::new();
    let mut before = '_';
    for letter in text.chars().take(300) {
        if letter.is_ascii_alphanumeric() {
            if letter.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        before = letter;
    }
    let name = name.trim_matches('_');
    let name = name.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
    fit(name, MAX_NAME)
}

/// At most this many bytes of a name, cut between words if that leaves most of it.
fn fit(name: &str, most: usize) -> String {
    if name.len() <= most {
        return name.to_owned();
    }
    let cut = &name[..most];
    let whole = cut.rsplit_once('_').map_or(cut, |(whole, _)| whole);
    let kept = if whole.len() * 2 >= most { whole } else { cut };
    kept.trim_matches('_').to_owned()
}

/// The name with a number behind it, if it is taken.
pub fn unique(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name = if name.is_empty() { "tool" } else { name };
    if !is_taken(name) {
        return name.to_owned();
    }
    let numbered = |number: usize| format!("{}_{number}", fit(name, MAX_NAME - 6));
    (2..100_000).map(numbered).find(|name| !is_taken(name)).unwrap_or_else(|| name.to_owned())
}

/// A name of a member that models can write: letters, digits, `_`, `-`, `.`, at most 64.
pub fn member(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let name: String = name.chars().take(64).map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let trimmed = name.trim_matches('_');
    let kept = if trimmed.is_empty() { "value" } else { trimmed };
    // Underscores in a row come from brackets: filter[name][eq].
    let parts: Vec<&str> = kept.split('_').filter(|part| !part.is_empty()).collect();
    if name == kept { kept.to_owned() } else { parts.join("_") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_snake_case_and_fit() {
        for (text, name) in [
            ("listPetsV2", "list_pets_v2"),
            ("GET /pets/{id}", "get_pets_id"),
            ("2fa-Check", "fa_check"),
            ("HTTPServer", "httpserver"),
            ("über__x", "ber_x"),
            ("", ""),
            ("projects_locations_instances_databases_rollback_everything", "projects_locations_instances_databases"),
        ] {
            assert_eq!(snake(text), name, "{text}");
        }
        assert_eq!(snake(&"a".repeat(90)).len(), 40);
        assert_eq!(unique("a", |name| matches!(name, "a" | "a_2")), "a_3");
        assert_eq!(unique(&"a".repeat(40), |name| name.len() == 40), format!("{}_2", "a".repeat(34)));
        for (name, plain) in [
            ("filter[name]", "filter_name"),
            ("$top", "top"),
            ("__x", "x"),
            ("page.size", "page.size"),
            ("ä", "value"),
            ("a__b", "a__b"),
        ] {
            assert_eq!(member(name), plain);
        }
    }

    #[test]
    fn texts_are_one_line_without_markup() {
        assert_eq!(cleaned("<p>A  <b>bold</b>\nmove,\u{202e} 1 < 2 <3</p> <a"), "A bold move, 1 < 2 <3 a");
        assert_eq!(shortened("one two three", 9), "one two…");
        assert_eq!(shortened("ää", 2), "ää");
        assert_eq!(shortened("äää", 2), "ä…");
        assert_eq!(shortened("äää", 0), "");
        assert_eq!(title_and_summary("", "", "list_pets"), ("List pets".to_owned(), "List pets".to_owned()));
        cleaned(&"<a".repeat(100_000));
    }
}
