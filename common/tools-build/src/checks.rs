//! What a browser finds on the pages of a site before it is published. A page that fails a needed check is not published.

use platform::providers::browser::{SiteView, Viewed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Widths at which every page is looked at, in CSS pixels.
pub const WIDTHS: [u32; 3] = [320, 768, 1280];
/// Lowest contrast of text with its background (WCAG 2.2, 1.4.3), and of large text.
const CONTRAST: f64 = 4.5;
const CONTRAST_LARGE: f64 = 3.0;
/// Longest line of running text, in characters.
const MEASURE: f64 = 90.0;

/// Measures the page that it is evaluated in.
pub const SCRIPT: &str = include_str!("measure.js");

/// What the script found on a page.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Pixels by which the page is wider than its window.
    pub overflow: f64,
    /// Texts that are cut off by their box.
    pub clipped: Vec<String>,
    pub h1: usize,
    /// A heading skips a level.
    pub skipped: Vec<String>,
    /// Pictures without an `alt`, fields without a label, links without a text.
    pub unnamed: Vec<String>,
    /// Targets smaller than 24 px (WCAG 2.2, 2.5.8) that are not in a line of text.
    pub small: Vec<String>,
    /// Texts, their contrast, and whether they are large.
    pub contrast: Vec<(String, f64, bool)>,
    /// Links whose target is not on the page.
    pub lost: Vec<String>,
    /// Characters in the longest line of a paragraph.
    pub measure: f64,
    /// Smallest size of a text in pixels.
    pub smallest: f64,
    pub has_language: bool,
    pub has_title: bool,
    pub has_description: bool,
    pub landmarks: usize,
    /// Characters of text that can be seen.
    pub letters: usize,
}

/// One line of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub passed: bool,
    /// Where it failed first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub found: String,
    #[serde(skip)]
    pub is_needed: bool,
    #[serde(skip)]
    weight: u32,
}

/// The pages at every width in light, and at the widest in dark.
pub fn views(paths: &[String], has_dark: bool) -> Vec<SiteView> {
    let mut views = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        for width in WIDTHS {
            let with_picture = index == 0 && width == WIDTHS[2];
            views.push(SiteView { path: path.clone(), width, is_dark: false, with_picture });
        }
        if has_dark {
            views.push(SiteView { path: path.clone(), width: WIDTHS[2], is_dark: true, with_picture: false });
        }
    }
    views
}

/// Judges what was seen. `largest`: the largest page in bytes, with what it loads.
pub fn judge(viewed: &[Viewed], largest: usize) -> Vec<Check> {
    let pages: Vec<(&Viewed, Measured)> = viewed
        .iter()
        .map(|viewed| (viewed, serde_json::from_value(viewed.measured.clone()).unwrap_or_default()))
        .collect();
    let check = |name, weight, is_needed, find: &dyn Fn(&Viewed, &Measured) -> Option<String>| {
        let found = pages.iter().find_map(|(viewed, measured)| {
            let found = find(viewed, measured)?;
            Some(format!("{} at {} px: {found}", viewed.view.path, viewed.view.width))
        });
        Check { name, passed: found.is_none(), found: found.unwrap_or_default(), is_needed, weight }
    };
    let first = |list: &[String]| list.first().cloned();
    let mut checks = vec![
        check("no_overflow", 12, true, &|_, page| {
            (page.overflow > 0.5).then(|| format!("{} px too wide", page.overflow))
        }),
        check("no_clipped_text", 8, true, &|_, page| first(&page.clipped)),
        check("contrast", 12, true, &|_, page| {
            let low =
                |(_, ratio, large): &&(String, f64, bool)| *ratio < if *large { CONTRAST_LARGE } else { CONTRAST };
            page.contrast.iter().find(low).map(|(text, ratio, _)| format!("{ratio:.2} of \u{201c}{text}\u{201d}"))
        }),
        check("nothing_missing", 12, true, &|viewed, _| first(&viewed.errors)),
        check("links_lead_somewhere", 8, true, &|_, page| first(&page.lost)),
        check("one_main_heading", 6, true, &|_, page| (page.h1 != 1).then(|| format!("{} h1", page.h1))),
        check("names_for_all", 8, true, &|_, page| first(&page.unnamed)),
        check("says_something", 8, true, &|_, page| (page.letters < 20).then(|| "almost no text".to_owned())),
        check("headings_in_order", 6, false, &|_, page| first(&page.skipped)),
        check("targets_large_enough", 6, false, &|_, page| first(&page.small)),
        check("lines_not_too_long", 4, false, &|_, page| {
            (page.measure > MEASURE).then(|| format!("{:.0} characters", page.measure))
        }),
        check("text_not_too_small", 4, false, &|_, page| {
            (page.smallest < 12.0).then(|| format!("{} px", page.smallest))
        }),
        check("described", 4, false, &|_, page| {
            (!(page.has_language && page.has_title && page.has_description))
                .then(|| "language, title or description".to_owned())
        }),
        check("landmarks", 2, false, &|_, page| (page.landmarks < 2).then(|| format!("{}", page.landmarks))),
    ];
    let found = if largest > MAX_PAGE_BYTES { format!("{largest} bytes") } else { String::new() };
    checks.push(Check { name: "light", passed: found.is_empty(), found, is_needed: false, weight: 4 });
    checks
}

/// Most bytes of a page with all that it loads.
const MAX_PAGE_BYTES: usize = 300 * 1024;

/// 0 to 100.
pub fn score(checks: &[Check]) -> f64 {
    let sum = |only_passed: bool| -> u32 {
        checks.iter().filter(|check| check.passed || !only_passed).map(|check| check.weight).sum()
    };
    (f64::from(sum(true)) * 1000.0 / f64::from(sum(false).max(1))).round() / 10.0
}

/// Whether the site may be published.
pub fn passes(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.passed || !check.is_needed)
}

pub fn to_json(checks: &[Check]) -> Value {
    json!(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(measured: Value) -> Vec<Viewed> {
        let view = SiteView { path: "/".to_owned(), width: 320, is_dark: false, with_picture: false };
        vec![Viewed { view, measured, errors: Vec::new(), picture: None }]
    }

    fn good() -> Value {
        json!({"overflow": 0, "h1": 1, "measure": 60, "smallest": 16, "has_language": true, "has_title": true,
               "has_description": true, "landmarks": 3, "letters": 500, "contrast": [["a", 4.6, false], ["b", 3.1, true]]})
    }

    #[test]
    fn a_page_is_published_only_if_it_passes_what_is_needed() {
        let checks = judge(&seen(good()), 1_000);
        assert!(passes(&checks), "{checks:?}");
        assert_eq!(score(&checks), 100.0);
        for (member, bad, is_needed) in [
            ("overflow", json!(3), true),
            ("clipped", json!(["x"]), true),
            ("h1", json!(2), true),
            ("contrast", json!([["x", 4.4, false]]), true),
            ("lost", json!(["#x"]), true),
            ("unnamed", json!(["img"]), true),
            ("letters", json!(3), true),
            ("measure", json!(120), false),
            ("smallest", json!(9), false),
            ("has_title", json!(false), false),
            ("small", json!(["a"]), false),
        ] {
            let mut page = good();
            page[member] = bad;
            let checks = judge(&seen(page), 1_000);
            assert_eq!(passes(&checks), !is_needed, "{member}");
            assert!(score(&checks) < 100.0, "{member}");
        }
        // A script that found nothing passes nothing.
        assert!(!passes(&judge(&seen(Value::Null), 1_000)));
    }
}
