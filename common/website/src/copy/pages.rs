//! The pages of a site: which there are, what stands on which, and what leads where.

use super::opening::Opening;
use super::sections::Maker;
use super::stock;
use super::text;
use super::topics::{self, Topic};
use crate::brief::{Brief, Kind, PageBrief};
use crate::plan::{Content, Link, Page, Section};

/// Longest number of sections of a page.
const SECTIONS: usize = 50;

/// All pages; the first is `/`.
pub fn pages(brief: &Brief, maker: &mut Maker, opening: &Opening, name: &str) -> Vec<Page> {
    let first = brief.pages.iter().find(|page| page.path == "/");
    let others: Vec<&PageBrief> = brief.pages.iter().filter(|page| page.path != "/").collect();
    let contact_page = others.iter().find(|page| is_contact(page)).map(|page| page.path.clone());
    maker.pages = others
        .iter()
        .map(|page| (topics::of(&page.name), Link { label: topics::heading(&page.name), to: page.path.clone() }))
        .collect();
    let stock = &maker.stock;
    let reached = maker.form || !stock.email.is_empty() || !stock.phone.is_empty() || !stock.address.is_empty();
    maker.contact =
        if reached { contact_page.clone().unwrap_or_else(|| "/#contact".to_owned()) } else { String::new() };

    // Pages with a subject of their own take what is known of it before the first page does.
    let further: Vec<Page> = others.iter().map(|page| further(page, maker, name)).collect();

    let ordered = std::mem::take(&mut maker.orders.sections);
    let names = match first {
        Some(page) if brief.sections.is_empty() && !page.sections.is_empty() => &page.sections,
        _ if brief.sections.is_empty() => &ordered,
        _ => &brief.sections,
    };
    let mut sections = maker.named(names);
    let mut rest = maker.of_kind();
    let mut text = opening.text.clone();
    // One sentence that fits nowhere stands in the opening rather than in a section of its own.
    let lone = |section: &Section| match &section.content {
        Content::Text { paragraphs } if section.heading == maker.words.about && paragraphs.len() == 1 => {
            Some(paragraphs[0].clone())
        }
        _ => None,
    };
    let room = 240usize.saturating_sub(text.chars().count());
    if let Some(at) = rest.iter().position(|section| lone(section).is_some_and(|text| text.chars().count() <= room)) {
        text = super::opening::joined(&text, &lone(&rest.remove(at)).unwrap_or_default());
    }
    // The contact and a call to an action end a page.
    let ends = sections
        .iter()
        .rev()
        .take_while(|section| matches!(section.content, Content::Contact { .. } | Content::Action { .. }))
        .count();
    let at = sections.len() - ends;
    sections.splice(at..at, rest);
    let has_contact = sections.iter().any(|section| matches!(section.content, Content::Contact { .. }));
    if !has_contact
        && contact_page.is_none()
        && let Some(content) = maker.contact_content()
    {
        sections.push(Section { id: "contact".to_owned(), heading: maker.words.contact.to_owned(), content });
    }
    let hero = Section {
        id: "top".to_owned(),
        heading: opening.headline.clone(),
        content: Content::Hero { text: text.clone(), actions: Vec::new() },
    };
    sections.insert(0, hero);
    sections.truncate(SECTIONS + 1);
    let joined = format!("{name} – {}", opening.headline);
    let title = if opening.headline == name || joined.chars().count() > 70 { name.to_owned() } else { joined };
    let mut home = Page {
        path: "/".to_owned(),
        name: first
            .map(|page| topics::heading(&page.name))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| maker.words.home.to_owned()),
        title,
        description: text::bounded(if text.is_empty() { &opening.headline } else { &text }, 160),
        sections,
    };
    identify(&mut home);
    lead(&mut home, maker, contact_page.as_deref());
    let mut pages = vec![home];
    pages.extend(further);
    settle(&mut pages);
    pages
}

fn is_contact(page: &PageBrief) -> bool {
    topics::of(&page.name) == Topic::Contact || page.sections.iter().any(|name| topics::of(name) == Topic::Contact)
}

/// A page besides the first.
fn further(page: &PageBrief, maker: &mut Maker, site: &str) -> Page {
    let name = text::cut(&topics::heading(&page.name), 60);
    let name = if name.is_empty() { text::capital(page.path.trim_matches('/')) } else { name };
    let purpose = stock::gather_text(page.purpose.as_deref().unwrap_or_default());
    // A purpose is often a note to the builder: only whole sentences are copy.
    let told: Vec<&str> =
        purpose.told.iter().map(|told| told.text.as_str()).filter(|text| is_sentence(text)).take(2).collect();
    let mut intro = told.iter().fold(String::new(), |intro, told| super::opening::joined(&intro, told));
    let topic = topics::of(&page.name);
    let mut sections = maker.named(&page.sections);
    if sections.is_empty() {
        let mut stems = text::stems(&page.name);
        if topic == Topic::Other {
            stems.extend(text::stems(page.purpose.as_deref().unwrap_or_default()));
        }
        // Two of a kind may be known of one topic, such as a list and sentences.
        let found = maker.content(topic, &stems);
        let heading = |heading: Option<String>, maker: &Maker| {
            let ours = match topic {
                Topic::Other => site,
                Topic::Contact => maker.words.write_us,
                _ => maker.heading(topic),
            };
            heading
                .filter(|heading| *heading != name)
                .unwrap_or_else(|| if ours == name { site.to_owned() } else { ours.to_owned() })
        };
        match found {
            // A page that says a sentence or two needs no section for them.
            Some((_, Content::Text { paragraphs }))
                if intro.is_empty() && paragraphs.len() == 1 && paragraphs[0].chars().count() <= 300 =>
            {
                intro.clone_from(&paragraphs[0]);
            }
            Some((own, content)) => {
                let heading = heading(own, maker);
                sections.push(Section { id: String::new(), heading, content });
            }
            None if intro.is_empty() => {
                let links = std::mem::take(&mut maker.pages);
                let content = maker.neutral(topic, &name);
                maker.pages = links;
                match content {
                    Content::Text { paragraphs } if paragraphs.len() == 1 => intro.clone_from(&paragraphs[0]),
                    content => sections.push(Section { id: String::new(), heading: heading(None, maker), content }),
                }
            }
            None => {}
        }
    }
    let hero = Section {
        id: "top".to_owned(),
        heading: name.clone(),
        content: Content::Hero { text: text::bounded(&intro, 300), actions: Vec::new() },
    };
    sections.insert(0, hero);
    sections.truncate(SECTIONS + 1);
    let description = if intro.is_empty() { format!("{name} – {site}") } else { text::bounded(&intro, 160) };
    let mut page = Page {
        path: page.path.clone(),
        title: text::cut(&format!("{name} – {site}"), 70),
        name,
        description,
        sections,
    };
    identify(&mut page);
    page
}

fn is_sentence(text: &str) -> bool {
    let lower = format!(" {} ", text.to_lowercase());
    let ours = [
        " we ", " our ", " i ", " my ", " nous ", " notre ", " wir ", " unser", " somos ", " nuestr", " siamo ",
        " wij ",
    ]
    .iter()
    .any(|word| lower.contains(word));
    let instructs = [
        "explain",
        "tell",
        "describe",
        "introduce",
        "present",
        "list",
        "let ",
        "help",
        "give",
        "overview",
        "allow",
        "where ",
    ]
    .iter()
    .any(|word| lower.trim_start().starts_with(word));
    ours && text.ends_with(['.', '!', '。']) && !instructs
}

/// Gives each section an id of its page.
fn identify(page: &mut Page) {
    let mut taken: Vec<String> = Vec::new();
    for section in &mut page.sections {
        let wanted = match (&section.content, section.id.as_str()) {
            // The address that actions lead to.
            (Content::Contact { .. }, _) => "contact".to_owned(),
            (content, "") => Some(text::slug(&section.heading))
                .filter(|slug| !slug.is_empty())
                .unwrap_or_else(|| kind(content).to_owned()),
            (_, id) => id.to_owned(),
        };
        section.id = text::unique(&wanted, &taken);
        taken.push(section.id.clone());
    }
}

/// The id of a section whose heading has no Latin letter.
fn kind(content: &Content) -> &'static str {
    match content {
        Content::Prices { .. } => "prices",
        Content::List { .. } => "list",
        Content::Steps { .. } => "steps",
        Content::Table { .. } => "times",
        Content::Questions { .. } => "questions",
        Content::Quotes { .. } => "quotes",
        Content::Facts { .. } => "numbers",
        _ => "text",
    }
}

/// What the opening leads to: the contact, and the first section that one looks for.
fn lead(home: &mut Page, maker: &Maker, contact_page: Option<&str>) {
    let mut links = Vec::new();
    // One person is no "us".
    let asking =
        if matches!(maker.kind, Kind::Personal | Kind::Portfolio) { maker.words.contact } else { maker.words.write_us }
            .to_owned();
    let contact = home
        .sections
        .iter()
        .find(|section| matches!(section.content, Content::Contact { .. }))
        .map(|section| format!("#{}", section.id));
    if let Some(to) = contact_page.map(str::to_owned).or(contact) {
        links.push(Link { label: asking, to });
    }
    let looked_for = home.sections.iter().find(|section| {
        matches!(section.content, Content::Prices { .. } | Content::List { .. } | Content::Table { .. })
    });
    let looked_for = looked_for.map(|section| Link { label: section.heading.clone(), to: format!("#{}", section.id) });
    for section in &mut home.sections {
        if let Content::Action { actions, .. } = &mut section.content
            && actions.is_empty()
        {
            actions.extend(looked_for.clone());
        }
    }
    if let Some(link) = looked_for {
        links.push(link);
    } else if let Some((_, link)) = maker.pages.iter().find(|(topic, _)| *topic != Topic::Contact) {
        links.push(link.clone());
    }
    // A call to an action that there is not.
    home.sections.retain(|section| !matches!(&section.content, Content::Action { actions, .. } if actions.is_empty()));
    if let Some(Content::Hero { actions, .. }) = home.sections.first_mut().map(|section| &mut section.content) {
        *actions = links;
    }
}

/// Links to the contact of the first page: from the page itself without its path; none where there is none.
fn settle(pages: &mut [Page]) {
    let there = pages[0].sections.iter().any(|section| section.id == "contact");
    for (at, page) in pages.iter_mut().enumerate() {
        for section in &mut page.sections {
            let (Content::Hero { actions, .. } | Content::Action { actions, .. }) = &mut section.content else {
                continue;
            };
            actions.retain(|link| there || link.to != "/#contact");
            for link in actions.iter_mut().filter(|link| link.to == "/#contact") {
                link.to = if at == 0 { "#contact" } else { "/" }.to_owned();
            }
        }
    }
}
