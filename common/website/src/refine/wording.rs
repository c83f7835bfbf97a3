//! Edits of words: headlines, names, how to reach the owner, and anything that is quoted.

use serde_json::Value;

use super::clauses::Wish;
use super::structure;
use crate::copy::{contact, text, times};
use crate::plan::{Content, Plan, Section};

#[rustfmt::skip]
const CHANGING: &[&str] = &[
    "change", "replace", "set", "update", "make", "rename", "put", "use", "swap", "ersetze", "ändere", "setze",
    "remplace", "remplacez", "changez", "mets", "mettez", "cambia", "reemplaza", "pon", "is", "now", "should",
];

/// Does the edit, and says what it was.
pub fn edit(plan: &mut Plan, wish: &Wish) -> Option<String> {
    if let Some(done) = forget(plan, wish) {
        return Some(done);
    }
    let changes = wish.says(CHANGING) || wish.text.contains(": ");
    if !changes || wish.has(&["section about", "new section", "new page", "a page", "a section"]) {
        return None;
    }
    if wish.has(&["tagline", "slogan", "subtitle", "untertitel", "sous-titre"]) {
        plan.tagline = text::bounded(&wish.value()?, 120);
        return Some(format!("The line below the name is now “{}”.", plan.tagline));
    }
    if wish.has(&[
        "headline",
        "hero title",
        "main title",
        "main heading",
        "überschrift",
        "titre principal",
        "título principal",
    ]) {
        let headline = text::cut(&wish.value()?, 120);
        let hero = plan.pages.first_mut()?.sections.first_mut()?;
        hero.heading.clone_from(&headline);
        return Some(format!("The headline is now “{headline}”."));
    }
    if wish.has(&[
        "site name",
        "name of the site",
        "business name",
        "company name",
        "name of the business",
        "name of the company",
        "brand name",
        "the name to",
        "change the name of the ",
        "our name to",
    ]) {
        return Some(rename_site(plan, &text::cut(&wish.value()?, 80)));
    }
    price(plan, wish).or_else(|| reach(plan, wish)).or_else(|| replace(plan, wish))
}

fn rename_site(plan: &mut Plan, name: &str) -> String {
    let old = std::mem::replace(&mut plan.name, name.to_owned());
    for page in &mut plan.pages {
        page.title = page.title.replace(&old, name);
        page.description = page.description.replace(&old, name);
        for section in page.sections.iter_mut().filter(|section| section.heading == old) {
            section.heading = name.to_owned();
        }
    }
    format!("The site is now called “{name}”.")
}

/// `remove the phone number`.
fn forget(plan: &mut Plan, wish: &Wish) -> Option<String> {
    if !wish.says(structure::REMOVING) {
        return None;
    }
    let mut gone = false;
    let mut clear = |text: &mut String| {
        gone |= !text.is_empty();
        text.clear();
    };
    let what = match () {
        () if wish.has(&["phone number", "the phone", "telephone", "telefonnummer"]) => "phone number",
        () if wish.has(&["email address", "e-mail address", "the email", "the e-mail"]) => "e-mail address",
        () if wish.has(&["our address", "the address", "postal address"]) => "address",
        () => return None,
    };
    for section in plan.pages.iter_mut().flat_map(|page| &mut page.sections) {
        if let Content::Contact { email, phone, address, .. } = &mut section.content {
            clear(match what {
                "phone number" => phone,
                "e-mail address" => email,
                _ => address,
            });
        }
    }
    gone.then(|| format!("The {what} is removed."))
}

/// Telephone, e-mail, address and hours.
fn reach(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let value = wish.value().unwrap_or_else(|| wish.text.clone());
    if wish.says(&["phone", "telephone", "telefon", "telefonnummer", "téléphone", "teléfono"]) {
        let new = contact::phone(&format!("phone {value}"))?;
        each_contact(plan, |_, phone, _| phone.clone_from(&new));
        return Some(format!("The phone number is now {new}."));
    }
    if wish.says(&["email", "e-mail", "mail", "correo"]) {
        let new = contact::email(&value)?;
        each_contact(plan, |email, _, _| email.clone_from(&new));
        return Some(format!("The e-mail address is now {new}."));
    }
    if wish.says(&["address", "adresse", "dirección", "indirizzo"]) {
        let new = text::cut(&wish.value()?, 120);
        each_contact(plan, |_, _, address| address.clone_from(&new));
        return Some(format!("The address is now {new}."));
    }
    if wish.has(&["hours", "öffnungszeiten", "horaires", "horario"]) {
        let rows = times::hours(&wish.value()?)?;
        let found = plan
            .pages
            .iter_mut()
            .flat_map(|page| &mut page.sections)
            .find(|section| structure::is_about_hours(section));
        match found {
            Some(section) => section.content = Content::Table { intro: String::new(), rows },
            None => {
                let heading = crate::copy::words::words(&plan.language).opening_hours.to_owned();
                structure::insert(
                    plan.pages.first_mut()?,
                    Section { id: String::new(), heading, content: Content::Table { intro: String::new(), rows } },
                );
            }
        }
        return Some("The opening hours are changed.".to_owned());
    }
    None
}

/// Edits all contacts; adds one to the first page if there is none.
fn each_contact(plan: &mut Plan, change: impl Fn(&mut String, &mut String, &mut String)) {
    let is_contact = |section: &Section| matches!(section.content, Content::Contact { .. });
    if !plan.pages.iter().flat_map(|page| &page.sections).any(is_contact)
        && let Some(first) = plan.pages.first_mut()
    {
        let heading = crate::copy::words::words(&plan.language).contact.to_owned();
        let content = Content::Contact {
            text: String::new(),
            email: String::new(),
            phone: String::new(),
            address: String::new(),
            form: false,
        };
        structure::insert(first, Section { id: String::new(), heading, content });
    }
    for section in plan.pages.iter_mut().flat_map(|page| &mut page.sections) {
        if let Content::Contact { email, phone, address, .. } = &mut section.content {
            change(email, phone, address);
        }
    }
}

/// `change "A" to "B"`, wherever A stands.
fn replace(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let (old, new) = match wish.quotes.as_slice() {
        [old, new] => (old.clone(), new.clone()),
        [] => unquoted_pair(wish)?,
        _ => return None,
    };
    let old = old.as_str();
    let new = text::bounded(&new, 600);
    let mut count = 0;
    for text in [&mut plan.name, &mut plan.tagline] {
        count += text.matches(old).count();
        *text = text.replace(old, &new);
    }
    let mut pages = serde_json::to_value(&plan.pages).ok()?;
    replace_in(&mut pages, old, &new, &mut count);
    plan.pages = serde_json::from_value(pages).ok()?;
    (count > 0).then(|| format!("“{old}” is now “{new}”."))
}

/// `change 4.50 to 4.80`: the two texts without quotes.
fn unquoted_pair(wish: &Wish) -> Option<(String, String)> {
    let rest = ["change ", "replace ", "ersetze ", "remplace ", "cambia "]
        .iter()
        .find_map(|verb| wish.lower.starts_with(verb).then(|| wish.text.get(verb.len()..)).flatten())?;
    let (old, new) = [" to ", " with ", " durch ", " par ", " por "].iter().find_map(|mark| rest.split_once(mark))?;
    (old.chars().count() >= 3 && !new.is_empty()).then(|| (old.to_owned(), new.to_owned()))
}

/// `change the price of sourdough to 5.00`.
fn price(plan: &mut Plan, wish: &Wish) -> Option<String> {
    let (_, rest) = wish.text.split_once("price of ").or_else(|| wish.text.split_once("price for "))?;
    let (name, price) = rest.split_once(" to ")?;
    let name = name.trim_start_matches("the ").to_lowercase();
    if !price.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    for section in plan.pages.iter_mut().flat_map(|page| &mut page.sections) {
        let found = match &mut section.content {
            Content::Prices { offers, .. } => offers
                .iter_mut()
                .map(|offer| (&offer.name, &mut offer.price))
                .find(|(thing, _)| thing.to_lowercase() == name),
            Content::List { items, .. } => items
                .iter_mut()
                .map(|item| (&item.title, &mut item.note))
                .find(|(thing, old)| thing.to_lowercase() == name && !old.is_empty()),
            _ => None,
        };
        let Some((thing, old)) = found else { continue };
        *old = text::cut(price, 40);
        return Some(format!("The price of “{thing}” is now {old}."));
    }
    None
}

fn replace_in(value: &mut Value, old: &str, new: &str, count: &mut usize) {
    match value {
        Value::String(text) if text.contains(old) => {
            *count += 1;
            *text = text.replace(old, new);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| replace_in(value, old, new, count)),
        // Addresses and kinds are not words.
        Value::Object(members) => members
            .iter_mut()
            .filter(|(name, _)| !matches!(name.as_str(), "id" | "path" | "to" | "kind"))
            .for_each(|(_, value)| replace_in(value, old, new, count)),
        _ => {}
    }
}
