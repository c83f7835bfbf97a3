//! Edits of sections and pages: added, removed, renamed, moved, shortened.

use super::clauses::Wish;
use crate::copy::topics::{self, Topic};
use crate::copy::words::words;
use crate::copy::{sections, sentences, stock, text};
use crate::plan::{Content, Page, Plan, Section};

#[rustfmt::skip]
pub const REMOVING: &[&str] = &[
    "remove", "delete", "drop", "hide", "entferne", "lösche", "supprime", "supprimez", "retire", "enlève", "elimina",
    "quita", "borra",
];
#[rustfmt::skip]
const ADDING: &[&str] = &[
    "add", "insert", "create", "new", "include", "füge", "ajoute", "ajoutez", "añade", "agrega",
];
const MOVING: &[&str] = &["move", "put", "place", "verschiebe", "déplace", "déplacez", "mueve"];
const RENAMING: &[&str] = &["rename", "retitle", "call", "renomme", "renommez", "renombra", "benenne"];
const SHORTENING: &[&str] = &["shorter", "shorten", "kürzer", "kürze", "court", "corto"];
const PAGES: &[&str] = &["page", "seite", "página"];
/// Words around a name.
#[rustfmt::skip]
const AROUND: &[&str] = &[
    "the", "a", "an", "section", "sections", "page", "part", "block", "our", "my", "called", "named", "titled",
    "on", "for", "with", "new", "from", "site", "website", "abschnitt", "den", "die", "das", "eine", "einen",
    "seite", "hinzu", "la", "le", "une", "un", "una", "sección", "página", "to",
];

const MOST_PAGES: usize = 9;
const MOST_SECTIONS: usize = 60;

/// Does the edit, and says what it was.
pub fn edit(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let page = wish.says(PAGES) && !wish.has(&["section", "abschnitt", "sección"]);
    if wish.says(SHORTENING) {
        return shorten(plan, wish);
    }
    if wish.says(RENAMING) {
        return if page { rename_page(plan, wish) } else { rename_section(plan, wish) };
    }
    if wish.says(REMOVING) {
        return if page { remove_page(plan, wish) } else { remove_section(plan, wish) };
    }
    if wish.says(MOVING)
        && wish.has(&[" to the ", " after ", " before ", " above ", " below ", " up", " down", " first", " last"])
    {
        return move_section(plan, wish);
    }
    if wish.says(ADDING) {
        return if page { add_page(plan, wish) } else { add_section(plan, wish) };
    }
    None
}

/// The name in "the pricing section", without the words around it.
fn name_of(text: &str, verbs: &[&str]) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '&').to_lowercase();
    let noise = |word: &str| AROUND.contains(&bare(word).as_str()) || verbs.contains(&bare(word).as_str());
    // "the about section" has a name; in "the section about dogs" it only joins.
    let joins = |words: &[&str]| bare(words[0]) == "about" && !AROUND.contains(&bare(words[1]).as_str());
    while words.len() > 1 && (noise(words[0]) || joins(&words)) {
        words.remove(0);
    }
    while words.len() > 1 && words.last().is_some_and(|word| noise(word) || bare(word).is_empty()) {
        words.pop();
    }
    text::fold(words.join(" ").trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '"' | '“' | '”' | '„' | '\'' | '«' | '»' | ',' | '.' | ':')
    }))
}

fn topic_of(section: &Section) -> Topic {
    match section.content {
        Content::Prices { .. } => Topic::Prices,
        Content::Questions { .. } => Topic::Questions,
        Content::Quotes { .. } => Topic::Quotes,
        Content::Facts { .. } => Topic::Numbers,
        Content::Steps { .. } => Topic::Steps,
        Content::Contact { .. } => Topic::Contact,
        Content::Hero { .. } => Topic::Hero,
        _ => topics::of(&section.heading),
    }
}

pub fn is_about_hours(section: &Section) -> bool {
    topics::of(&section.heading) == Topic::Hours
}

/// The section that a buyer calls so: by its heading, else by its topic. The opening is none.
fn find(plan: &Plan, name: &str) -> Option<(usize, usize)> {
    let lower = name.to_lowercase();
    let places = || {
        plan.pages.iter().enumerate().flat_map(|(page, of)| (1..of.sections.len()).map(move |section| (page, section)))
    };
    let at = |(page, section): (usize, usize)| &plan.pages[page].sections[section];
    if lower.chars().count() < 2 {
        return None;
    }
    let topic = topics::of(name);
    places()
        .find(|place| at(*place).heading.to_lowercase() == lower)
        .or_else(|| places().find(|place| text::stems(&at(*place).heading) == text::stems(name)))
        .or_else(|| places().find(|place| topic != Topic::Other && topic_of(at(*place)) == topic))
        .or_else(|| places().find(|place| at(*place).heading.to_lowercase().contains(&lower)))
}

/// Adds a section at the end of a page, before its contact.
pub fn insert(page: &mut Page, mut section: Section) {
    let taken: Vec<String> = page.sections.iter().map(|section| section.id.clone()).collect();
    let wanted = if matches!(section.content, Content::Contact { .. }) {
        "contact".to_owned()
    } else {
        text::slug(&section.heading)
    };
    section.id = text::unique(&wanted, &taken);
    let last = page
        .sections
        .last()
        .is_some_and(|last| matches!(last.content, Content::Contact { .. } | Content::Action { .. }));
    let at = page.sections.len() - usize::from(last);
    page.sections.insert(at.max(1).min(page.sections.len()), section);
}

/// The name and the text of "add a section about our history: We began small."
fn named_and_text(wish: &Wish) -> (String, Vec<String>) {
    let (head, body) = wish.text.split_once(": ").unwrap_or((&wish.text, ""));
    let name = match wish.quotes.first() {
        Some(quoted) => quoted.clone(),
        None => ["called ", "named ", "titled ", "about ", " on ", " for ", " sur ", " über ", " sobre "]
            .iter()
            .find_map(|mark| head.find(mark).map(|at| head[at + mark.len()..].trim().to_owned()))
            .unwrap_or_else(|| name_of(head, ADDING)),
    };
    let name = name.trim_end_matches([',', '.', ' ']).trim_start_matches("the ").to_owned();
    let mut paragraphs = Vec::new();
    if wish.quotes.first().is_none_or(|quoted| !body.contains(quoted.as_str())) {
        paragraphs =
            sentences::split(&text::fold(body)).iter().map(|sentence| text::bounded(sentence, 600)).collect::<Vec<_>>();
    }
    // The last full stop went with the clause.
    if let Some(last) = paragraphs.last_mut().filter(|last| last.ends_with(char::is_alphanumeric) && last.contains(' '))
    {
        last.push('.');
    }
    let joined = text::fold(&paragraphs.join(" "));
    (
        text::cut(&topics::heading(&name), 70),
        if joined.is_empty() { Vec::new() } else { vec![text::bounded(&joined, 1_200)] },
    )
}

fn neutral(plan: &Plan, heading: &str) -> Vec<String> {
    let reached = plan
        .pages
        .iter()
        .flat_map(|page| &page.sections)
        .any(|section| matches!(section.content, Content::Contact { .. }));
    let words = words(&plan.language);
    if plan.language == "en" {
        return vec![sections::line(topics::of(heading), heading, &plan.name, reached)];
    }
    vec![if reached { words.ask_more } else { words.to_come }.to_owned()]
}

/// Questions, quotes or a list, if the text is nothing else.
fn sorted(body: &str) -> Option<Content> {
    let stock = stock::gather_text(body);
    let mut lists = stock.lists;
    if !stock.told.is_empty() || !stock.orders.is_empty() {
        return None;
    }
    match (stock.questions.is_empty(), stock.quotes.is_empty(), lists.len()) {
        (false, true, 0) => Some(Content::Questions { items: stock.questions }),
        (true, false, 0) => Some(Content::Quotes { quotes: stock.quotes }),
        (true, true, 1) => Some(Content::List { intro: String::new(), items: lists.remove(0).items }),
        _ => None,
    }
}

fn add_section(plan: &mut Plan, wish: &Wish) -> Option<String> {
    if !wish.has(&["section", "abschnitt", "sección"]) {
        return None;
    }
    let (heading, mut paragraphs) = named_and_text(wish);
    // A form needs an inbox, which a wish does not bring.
    if heading.is_empty()
        || wish.says(&["form", "formular", "formulaire", "formulario"])
        || plan.pages[0].sections.len() >= MOST_SECTIONS
    {
        return None;
    }
    if paragraphs.is_empty() {
        paragraphs = neutral(plan, &heading);
    }
    let body = wish.text.split_once(": ").map_or("", |(_, body)| body);
    let content = sorted(body).unwrap_or(Content::Text { paragraphs });
    insert(plan.pages.first_mut()?, Section { id: String::new(), heading: heading.clone(), content });
    Some(format!("The section “{heading}” is added."))
}

fn add_page(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let (name, mut paragraphs) = named_and_text(wish);
    if name.is_empty()
        || name.chars().count() > 60
        || plan.pages.len() >= MOST_PAGES
        || plan.pages.iter().any(|page| page.name.eq_ignore_ascii_case(&name))
    {
        return None;
    }
    if paragraphs.is_empty() {
        paragraphs = neutral(plan, &name);
    }
    let taken: Vec<String> = plan.pages.iter().map(|page| page.path.trim_start_matches('/').to_owned()).collect();
    let slug = text::slug(&name);
    let path = format!("/{}", text::unique(if slug.is_empty() { "page" } else { &slug }, &taken));
    let hero = Section {
        id: "top".to_owned(),
        heading: name.clone(),
        content: Content::Hero { text: paragraphs.join(" "), actions: Vec::new() },
    };
    let title = text::cut(&format!("{name} – {}", plan.name), 70);
    plan.pages.push(Page { path, name: name.clone(), description: title.clone(), title, sections: vec![hero] });
    Some(format!("The page “{name}” is added."))
}

fn find_page(plan: &Plan, name: &str) -> Option<usize> {
    let lower = name.to_lowercase();
    let stems = text::stems(name);
    plan.pages
        .iter()
        .position(|page| page.name.to_lowercase() == lower || page.path == lower)
        .or_else(|| plan.pages.iter().position(|page| !stems.is_empty() && text::stems(&page.name) == stems))
}

fn remove_page(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let name = wish.quotes.first().cloned().unwrap_or_else(|| name_of(&wish.text, REMOVING));
    // The first page is the site.
    let at = find_page(plan, &name).filter(|at| *at > 0)?;
    let page = plan.pages.remove(at);
    Some(format!("The page “{}” is removed.", page.name))
}

/// The two names of "rename the page X to Y".
fn old_and_new(wish: &Wish) -> Option<(String, String)> {
    if let [old, new] = wish.quotes.as_slice() {
        return Some((old.clone(), new.clone()));
    }
    let (old, new) = [" to ", " into ", " en ", " in ", " a "].iter().find_map(|mark| wish.text.split_once(mark))?;
    let new = wish.quotes.first().cloned().unwrap_or_else(|| new.trim().to_owned());
    let old = name_of(old, RENAMING);
    (!old.is_empty() && !new.is_empty()).then_some((old, new))
}

fn rename_page(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let (old, new) = old_and_new(wish)?;
    let at = find_page(plan, &old)?;
    let new = text::cut(&new, 60);
    let page = &mut plan.pages[at];
    if let Some(hero) = page.sections.first_mut().filter(|hero| hero.heading == page.name) {
        hero.heading.clone_from(&new);
    }
    if at > 0 {
        page.title = text::cut(&format!("{new} – {}", plan.name), 70);
    }
    let old = std::mem::replace(&mut page.name, new.clone());
    let path = page.path.clone();
    for section in plan.pages.iter_mut().flat_map(|page| &mut page.sections) {
        if let Content::Hero { actions, .. } | Content::Action { actions, .. } = &mut section.content {
            actions
                .iter_mut()
                .filter(|link| link.to == path && link.label == old)
                .for_each(|link| link.label.clone_from(&new));
        }
    }
    Some(format!("The page “{old}” is now called “{new}”."))
}

fn rename_section(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let (old, new) = old_and_new(wish)?;
    let (page, at) = find(plan, &old)?;
    let new = text::cut(&new, 70);
    let page = &mut plan.pages[page];
    let (id, old) = (page.sections[at].id.clone(), std::mem::replace(&mut page.sections[at].heading, new.clone()));
    for section in &mut page.sections {
        if let Content::Hero { actions, .. } = &mut section.content {
            actions
                .iter_mut()
                .filter(|link| link.to == format!("#{id}") && link.label == old)
                .for_each(|link| link.label.clone_from(&new));
        }
    }
    Some(format!("The section “{old}” is now called “{new}”."))
}

fn remove_section(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let name = wish.quotes.first().cloned().unwrap_or_else(|| name_of(&wish.text, REMOVING));
    let (page, at) = find(plan, &name)?;
    let section = plan.pages[page].sections.remove(at);
    Some(format!("The section “{}” is removed.", section.heading))
}

fn move_section(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let places = [
        " to the top",
        " to the bottom",
        " to the end",
        " to the beginning",
        " to the start",
        " after ",
        " before ",
        " above ",
        " below ",
        " up",
        " down",
        " first",
        " last",
    ];
    let (place, at) =
        places.iter().filter_map(|place| wish.lower.find(place).map(|at| (*place, at))).min_by_key(|(_, at)| *at)?;
    let (page, from) = find(plan, &name_of(wish.text.get(..at)?, MOVING))?;
    let to = match place {
        " after " | " below " | " before " | " above " => {
            let name = name_of(wish.text.get(at + place.len()..)?, &[]);
            let hero = topics::of(&name) == Topic::Hero;
            let (other, at) = if hero { (page, 0) } else { find(plan, &name)? };
            if other != page || at == from {
                return None;
            }
            let at = if at > from { at - 1 } else { at };
            if matches!(place, " after " | " below ") || hero { at + 1 } else { at }
        }
        " up" => from.saturating_sub(1).max(1),
        " down" => (from + 1).min(plan.pages[page].sections.len() - 1),
        " to the bottom" | " to the end" | " last" => plan.pages[page].sections.len() - 1,
        _ => 1,
    };
    let sections = &mut plan.pages[page].sections;
    let section = sections.remove(from);
    let heading = section.heading.clone();
    sections.insert(to, section);
    Some(format!("The section “{heading}” is moved."))
}

/// Fewer sentences: of a named section, or of all.
fn shorten(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let name = name_of(wish.text.to_lowercase().replace("shorter", "").trim(), &["make", "shorten", "please"]);
    let all = matches!(name.as_str(), "" | "it" | "text" | "texts" | "copy" | "everything" | "all");
    let one = if all { None } else { Some(find(plan, &name)?) };
    let mut changed = false;
    for (number, page) in plan.pages.iter_mut().enumerate() {
        for (at, section) in
            page.sections.iter_mut().enumerate().filter(|(at, _)| one.is_none_or(|one| one == (number, *at)))
        {
            match &mut section.content {
                Content::Text { paragraphs } => {
                    let half = paragraphs.len().div_ceil(2);
                    changed |= half < paragraphs.len();
                    paragraphs.truncate(half);
                    for paragraph in paragraphs {
                        changed |= halve(paragraph);
                    }
                }
                Content::Hero { text, .. } if at == 0 => changed |= halve(text),
                Content::List { intro, .. } | Content::Steps { intro, .. } => changed |= halve(intro),
                _ => {}
            }
        }
    }
    changed.then(|| "The texts are shorter.".to_owned())
}

/// Keeps the first half of the sentences.
fn halve(text: &mut String) -> bool {
    let all = sentences::split(text);
    if all.len() < 2 {
        return false;
    }
    *text = all[..all.len().div_ceil(2)].join(" ");
    all.len().div_ceil(2) < all.len()
}
