//! Of whole sites: the sample plans in every layout.

use std::collections::HashSet;
use std::fs;

use super::*;
use crate::plan::{Link, Page, Section};

const LEADS: &str = "https://leads.example/form";
const LAYOUTS: [Layout; 6] =
    [Layout::Editorial, Layout::Sidebar, Layout::Poster, Layout::Ledger, Layout::Split, Layout::Letter];

fn samples() -> Vec<Plan> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/plans");
    let files = fs::read_dir(folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let plans: Vec<Plan> = files.map(|bytes| serde_json::from_slice(&bytes).unwrap()).collect();
    plans.iter().flat_map(|plan| LAYOUTS.map(|layout| with(plan, layout))).collect()
}

fn with(plan: &Plan, layout: Layout) -> Plan {
    let mut plan = plan.clone();
    plan.look.layout = layout;
    plan
}

/// The values of an attribute.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    html.split(&format!(" {attribute}=\"")).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

fn html(files: &[File]) -> Vec<(&str, &str)> {
    let pages = files.iter().filter(|file| file.path.ends_with(".html"));
    pages.map(|file| (file.path.as_str(), std::str::from_utf8(&file.bytes).unwrap())).collect()
}

#[test]
fn every_address_in_a_site_exists() {
    for plan in samples() {
        let files = render(&plan, "/s/v1", Some(LEADS));
        let paths: HashSet<String> = files.iter().map(|file| format!("/s/v1{}", file.path)).collect();
        let pages = html(&files);
        for (path, page) in &pages {
            let ids = values(page, "id");
            assert_eq!(ids.len(), ids.iter().collect::<HashSet<_>>().len(), "ids of {path} repeat");
            for to in values(page, "href").into_iter().chain(values(page, "src")) {
                let (file, id) = to.split_once('#').map_or((to, None), |(file, id)| (file, Some(id)));
                let index = if file.ends_with('/') { format!("{file}index.html") } else { file.to_owned() };
                let outside = to.starts_with("mailto:") || to.starts_with("tel:");
                assert!(outside || file.is_empty() || paths.contains(&index), "{to} of {path}");
                let target = if file.is_empty() {
                    page
                } else {
                    pages.iter().find(|p| index.ends_with(p.0)).map_or(page, |p| &p.1)
                };
                assert!(id.is_none_or(|id| values(target, "id").contains(&id)), "{to} of {path}");
            }
            assert_eq!(page.matches("<h1").count(), 1, "{path}");
            assert!(!page.contains(" style=") && !page.contains("<script") && !page.contains("<style"), "{path}");
        }
        let css = files.iter().find(|file| file.path == "/style.css").unwrap();
        for address in std::str::from_utf8(&css.bytes).unwrap().split("url(\"").skip(1) {
            assert!(paths.contains(address.split('"').next().unwrap()));
        }
        assert_eq!(files, render(&plan, "/s/v1", Some(LEADS)), "the same plan has the same bytes");
    }
}

#[test]
fn sites_are_light() {
    for plan in samples() {
        let files = render(&plan, "", Some(LEADS));
        let fonts = files.iter().filter(|file| file.path.ends_with(".woff2"));
        assert!(fonts.clone().all(|font| font.bytes.len() < 60 * 1024));
        let once: usize = files.iter().filter(|file| !file.path.ends_with(".html")).map(|file| file.bytes.len()).sum();
        for (_, page) in html(&files) {
            assert!(once + page.len() < 300 * 1024, "{} bytes", once + page.len());
        }
    }
}

#[test]
fn the_form_stands_only_where_somebody_listens() {
    let mut plan = samples().remove(0);
    let forms = |plan: &Plan, leads| {
        html(&render(plan, "", leads)).iter().map(|(_, page)| page.matches("<form").count()).sum::<usize>()
    };
    assert_eq!(forms(&plan, Some(LEADS)), 1);
    assert_eq!(forms(&plan, None), 0);
    plan.lead_capture = false;
    assert_eq!(forms(&plan, Some(LEADS)), 0);
}

#[test]
fn strings_of_others_stay_text() {
    let evil = r#""><script>alert(1)</script><a href='javascript:alert(1)' onclick=x style="a">"#;
    let sample = samples().remove(0);
    // Every string of the plan that is neither a choice of ours nor an id.
    let mut json = serde_json::to_value(&sample).unwrap();
    fn spoil(value: &mut serde_json::Value, evil: &str) {
        match value {
            serde_json::Value::String(text) => *text = evil.to_owned(),
            serde_json::Value::Array(values) => values.iter_mut().for_each(|value| spoil(value, evil)),
            serde_json::Value::Object(members) => {
                members
                    .iter_mut()
                    .filter(|(key, _)| !["kind", "id", "look"].contains(&key.as_str()))
                    .for_each(|(_, value)| spoil(value, evil));
            }
            _ => {}
        }
    }
    spoil(&mut json, evil);
    let mut plan: Plan = serde_json::from_value(json).unwrap();
    plan.look.primary = "red;}body{display:none".to_owned();
    plan.look.background = Some("</style>".to_owned());
    plan.pages.push(Page {
        path: "/../../etc".to_owned(),
        name: "Up".to_owned(),
        title: String::new(),
        description: String::new(),
        sections: vec![Section {
            id: "go".to_owned(),
            heading: "Go".to_owned(),
            content: Content::Action {
                text: String::new(),
                actions: ["javascript:alert(1)", "data:text/html,x", "//evil.example", "https://evil.example", "/none"]
                    .map(|to| Link { label: "Go".to_owned(), to: to.to_owned() })
                    .to_vec(),
            },
        }],
    });
    for layout in LAYOUTS {
        let files = render(&with(&plan, layout), "", Some(LEADS));
        assert!(files.iter().all(|file| !file.path.contains("..")), "{layout:?}");
        for (_, page) in html(&files) {
            assert!(!page.contains("<script") && !page.contains("href=\"javascript"), "{layout:?}");
            assert!(!page.contains("evil.example") && !page.contains("href=\"data:"), "{layout:?}");
        }
        let css = files.iter().find(|file| file.path == "/style.css").unwrap();
        assert!(!String::from_utf8_lossy(&css.bytes).contains("display:none"));
    }
}
