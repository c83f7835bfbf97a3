//! The contents of sections. What surrounds them is the layout's.

use maud::{Markup, html};

use super::site::{Site, reach};
use crate::brief::Kind;
use crate::plan::{Content, Item, Offer, Section};

/// The class of a section, by what it holds.
pub fn class(section: &Section) -> &'static str {
    match &section.content {
        Content::Hero { .. } | Content::Action { .. } => "action",
        Content::Text { paragraphs } if paragraphs.iter().map(String::len).sum::<usize>() < 500 => "text brief",
        Content::Text { .. } => "text",
        Content::List { .. } => "list",
        Content::Steps { .. } => "stages",
        Content::Prices { .. } => "prices",
        Content::Questions { .. } => "asked",
        Content::Quotes { .. } => "words-of",
        Content::Facts { .. } => "numbers",
        Content::Table { .. } => "hours",
        Content::Contact { .. } => "contact",
    }
}

/// What a section says below its heading, on the page at `here`.
pub fn body(site: &Site, section: &Section, here: &str) -> Markup {
    match &section.content {
        Content::Hero { text, actions } | Content::Action { text, actions } => html! {
            @if !text.is_empty() { p { (text) } }
            (site.actions(actions, here))
        },
        Content::Text { paragraphs } => html! { @for paragraph in paragraphs { p { (paragraph) } } },
        Content::List { intro, items } => html! { (opening(intro)) (list(site, items)) },
        Content::Steps { intro, items } => html! {
            (opening(intro))
            ol.steps { @for item in items { li { div { (line(item)) (text(&item.text)) } } } }
        },
        Content::Prices { intro, offers } => html! {
            (opening(intro))
            ul.offers { @for offer in offers { (priced(offer)) } }
        },
        Content::Questions { items } => html! {
            ul.questions { @for item in items { li { h3 { (item.title) } (text(&item.text)) } } }
        },
        Content::Quotes { quotes } => html! {
            div.quotes {
                @for quote in quotes {
                    figure {
                        blockquote { p { (quote.text) } }
                        @if !quote.who.is_empty() { figcaption { (quote.who) } }
                    }
                }
            }
        },
        Content::Facts { facts } => html! {
            dl.facts { @for fact in facts { div { dt { (fact.label) } dd.long[fact.value.chars().count() > 8] { (fact.value) } } } }
        },
        Content::Table { intro, rows } => html! {
            (opening(intro))
            table { tbody { @for row in rows { tr { th scope="row" { (row.label) } td { (row.value) } } } } }
        },
        Content::Contact { text, email, phone, address, form } => html! {
            @if !text.is_empty() { p.intro { (text) } }
            div.reach {
                (reach(email, phone, address))
                @if let (true, Some(leads)) = (*form, site.leads) { (form_to(site, &section.id, leads)) }
            }
        },
    }
}

/// A section with a form in two parts: how to reach the owner, and the form.
pub fn contact(site: &Site, section: &Section) -> Option<(Markup, Markup)> {
    match (&section.content, site.leads) {
        (Content::Contact { text: words, email, phone, address, form: true }, Some(leads)) => {
            Some((html! { (text(words)) (reach(email, phone, address)) }, form_to(site, &section.id, leads)))
        }
        _ => None,
    }
}

fn opening(intro: &str) -> Markup {
    html! { @if !intro.is_empty() { p.intro { (intro) } } }
}

fn text(text: &str) -> Markup {
    html! { @if !text.is_empty() { p { (text) } } }
}

fn line(item: &Item) -> Markup {
    html! { div.line { h3 { (item.title) } @if !item.note.is_empty() { span.note { (item.note) } } } }
}

fn list(site: &Site, items: &[Item]) -> Markup {
    let noted = items.iter().any(|item| !item.note.is_empty());
    let class =
        match (noted && site.plan.kind == Kind::Restaurant, noted, items.iter().all(|item| item.text.is_empty())) {
            (true, ..) => "items dishes",
            (_, true, _) => "items noted",
            (.., true) => "items plain short",
            _ => "items plain",
        };
    html! {
        ul class=(class) {
            @for item in items { li.rich[!item.text.is_empty()] { (line(item)) (text(&item.text)) } }
        }
    }
}

fn priced(offer: &Offer) -> Markup {
    html! {
        li {
            h3 { (offer.name) }
            p.price { (offer.price) }
            div.about {
                (text(&offer.text))
                @if !offer.points.is_empty() { ul.points { @for point in &offer.points { li { (point) } } } }
            }
        }
    }
}

/// The form of the lead capture. `id` is the section's, so that two forms of a page do not share ids.
fn form_to(site: &Site, id: &str, leads: &str) -> Markup {
    let words = site.words;
    let [name, email, message] = ["name", "email", "message"].map(|field| format!("{id}-{field}"));
    html! {
        form method="post" action=(leads) {
            div { label for=(name) { (words.name) } input id=(name) name="name" type="text" autocomplete="name" maxlength="200" required; }
            div { label for=(email) { (words.email) } input id=(email) name="email" type="email" autocomplete="email" maxlength="254" required; }
            div { label for=(message) { (words.message) } textarea id=(message) name="message" rows="5" maxlength="5000" required {} }
            p.note { (words.privacy_note) }
            button type="submit" { (words.send) }
        }
    }
}
