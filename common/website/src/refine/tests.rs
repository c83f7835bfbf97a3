//! Wishes and what becomes of them.

use super::refine;
use crate::brief::{Brief, Kind};
use crate::copy::plan;
use crate::design::choose;
use crate::plan::{Content, Corners, Fonts, Layout, Mode, Plan};

fn bakery() -> Plan {
    let brief = Brief {
        name: "Levain".to_owned(),
        kind: Kind::Restaurant,
        description: "A bakery in Lyon. We bake at night. The flour comes from two mills. Sourdough 4.50, croissant 1.30. Open Tuesday to Sunday, 7 to 19. Call +33 4 78 00 11 22.".to_owned(),
        sections: ["Menu", "Opening hours", "About", "Contact"].map(str::to_owned).to_vec(),
        lead_capture: true,
        ..Brief::default()
    };
    plan(&brief, choose(&brief))
}

fn headings(plan: &Plan) -> Vec<&str> {
    plan.pages[0].sections.iter().skip(1).map(|section| section.heading.as_str()).collect()
}

/// The plan after a wish that is understood as a whole.
fn refined(changes: &str) -> Plan {
    let refined = refine(&bakery(), changes);
    assert!(refined.not_understood.is_empty() && !refined.done.is_empty(), "{changes}: {:?}", refined.not_understood);
    refined.plan
}

#[test]
fn looks_change() {
    for (changes, color) in [
        ("make it green", "#008000"),
        ("primary color #AA3300", "#aa3300"),
        ("use navy instead", "#000080"),
        ("Please use forest green for the buttons", "#228b22"),
    ] {
        assert_eq!(refined(changes).look.primary, color, "{changes}");
    }
    assert_eq!(refined("background beige").look.background.as_deref(), Some("#f5f5dc"));
    assert_eq!(refined("dark mode please").look.mode, Mode::Dark);
    assert_eq!(refined("Make it more playful").look.fonts, Fonts::Friendly);
    assert_eq!(refined("use a serif font").look.fonts, Fonts::Book);
    assert_eq!(refined("rounded corners").look.corners, Corners::Round);
    assert_eq!(refined("use the sidebar layout").look.layout, Layout::Sidebar);
    assert_ne!(refined("try another layout").look.layout, bakery().look.layout);
}

#[test]
fn words_change() {
    assert_eq!(refined("change the headline to “Bread at night”").pages[0].sections[0].heading, "Bread at night");
    assert_eq!(refined("set the tagline to Bread for Lyon").tagline, "Bread for Lyon");
    let plan = refined("replace 'two mills' with «three mills»");
    assert!(serde_json::to_string(&plan).unwrap().contains("three mills"));
    let plan = refined("The phone number is now +33 4 99 99 99 99");
    assert!(
        plan.pages[0]
            .sections
            .iter()
            .any(|section| matches!(&section.content, Content::Contact { phone, .. } if phone == "+33 4 99 99 99 99"))
    );
    let all = |plan: &Plan| serde_json::to_string(plan).unwrap();
    assert!(all(&refined("Change 4.50 to 4.80")).contains("4.80"));
    let plan = refined("change the price of sourdough to 5.00");
    assert!(all(&plan).contains("5.00") && all(&plan).contains("1.30"));
    assert!(!all(&refined("remove the phone number")).contains("78 00"));
    assert!(all(&refined("The email should be hello@levain.example")).contains("hello@levain.example"));
    let plan = refined("change the opening hours to Monday to Friday 8 to 18");
    assert!(
        plan.pages[0]
            .sections
            .iter()
            .any(|section| matches!(&section.content, Content::Table { rows, .. } if rows[0].value == "8 to 18"))
    );
}

#[test]
fn sections_and_pages_change() {
    assert_eq!(headings(&bakery()), ["Menu", "Opening hours", "About", "Contact"]);
    assert_eq!(headings(&refined("remove the opening hours section")), ["Menu", "About", "Contact"]);
    assert_eq!(
        headings(&refined("Move the contact section to the top")),
        ["Contact", "Menu", "Opening hours", "About"]
    );
    assert_eq!(headings(&refined("move the menu section after about")), ["Opening hours", "About", "Menu", "Contact"]);
    assert_eq!(headings(&refined("rename the section About to Our bakery"))[2], "Our bakery");
    let plan = refined("Add a section about our history: We began in 1998. We moved in 2004.");
    assert_eq!(headings(&plan), ["Menu", "Opening hours", "About", "Our history", "Contact"]);
    assert_eq!(
        plan.pages[0].sections[4].content,
        Content::Text { paragraphs: vec!["We began in 1998. We moved in 2004.".to_owned()] }
    );
    assert_eq!(headings(&refined("put the about section first"))[0], "About");
    let plan = refined("Add an FAQ section: Do you deliver? No, we do not. Can I order? Yes.");
    assert!(matches!(&plan.pages[0].sections[4].content, Content::Questions { items } if items.len() == 2));
    let plan = refined("add a page called Team");
    assert_eq!((plan.pages[1].path.as_str(), plan.pages[1].name.as_str()), ("/team", "Team"));
    let renamed = refine(&plan, "rename the page Team to People; remove the page People");
    assert_eq!(renamed.plan.pages.len(), 1, "{:?}", renamed.not_understood);
    let removed = refined("remove the contact section");
    assert!(!removed.lead_capture && !serde_json::to_string(&removed).unwrap().contains("#contact"));
}

#[test]
fn what_is_not_understood_changes_nothing() {
    let plan = bakery();
    for changes in [
        "Make it sing",
        "Don't make it green",
        "replace \"no such words\" with \"others\"",
        "remove the swimming pool section",
        "add a chatbot",
        "remove the home page",
        "translate everything into Greek",
        "",
        "\u{202e}\u{0}''\"“",
    ] {
        let refined = refine(&plan, changes);
        assert_eq!(refined.plan, plan, "{changes}: {:?}", refined.done);
        assert!(refined.done.is_empty());
    }
    let refined = refine(&plan, "Make it green, and add a chatbot. Use a serif font");
    assert_eq!(refined.not_understood, ["add a chatbot"]);
    assert_eq!(refined.done.len(), 2);
}

#[test]
fn slices_of_wishes_never_panic_nor_break_a_plan() {
    let wishes: Vec<char> = "Make it green, and add a section about our „history“: We began. Move the menu to the top; rename the page Home to «Ü»\nremove 'the contact' section \
        change \"Lyon\" to \"\" and put about after menu. add a page called Straße: İ. set the headline to “İıſK”, replace 4.50 with 9. the phone is now +1 555 010 2030 shorter"
        .chars()
        .collect();
    let mut seed = 11u64;
    let mut below = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most
    };
    let mut plan = bakery();
    for round in 0..400 {
        let start = below(wishes.len());
        let slice: String = wishes[start..(start + below(120)).min(wishes.len())].iter().collect();
        if round % 20 == 0 {
            plan = bakery();
        }
        plan = refine(&plan, &slice).plan;
        for page in &plan.pages {
            assert!(matches!(page.sections[0].content, Content::Hero { .. }));
            let mut ids: Vec<&str> = page.sections.iter().map(|section| section.id.as_str()).collect();
            ids.sort_unstable();
            assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?} after {slice}");
        }
    }
}
