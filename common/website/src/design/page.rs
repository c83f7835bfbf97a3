//! Whole pages. Each layout arranges the same parts in its own way; the styles beside this file belong to the same names.

use maud::{DOCTYPE, Markup, html};

use super::drawing;
use super::sections::{body, class, contact};
use super::site::Site;
use super::style::Grounds;
use crate::brief::PicturePlace;
use crate::copy::words::dir;
use crate::plan::{Content, Layout, Link, Mode, Page, Section};

/// What opens a page: the headline and what belongs to it.
struct Opening<'a> {
    headline: &'a str,
    text: &'a str,
    actions: &'a [Link],
}

/// One page of the plan, at its address.
pub fn page(site: &Site, here: &str, page: &Page) -> String {
    let (opening, rest) = match page.sections.split_first() {
        Some((Section { heading, content: Content::Hero { text, actions }, .. }, rest)) => {
            (Opening { headline: heading, text, actions }, rest)
        }
        _ => (Opening { headline: &page.name, text: "", actions: &[] }, page.sections.as_slice()),
    };
    let id = match page.sections.first() {
        Some(Section { id, content: Content::Hero { .. }, .. }) => Some(id.as_str()),
        _ => None,
    };
    let title = if page.title.is_empty() { &site.plan.name } else { &page.title };
    let opening =
        Opening { headline: if opening.headline.is_empty() { &page.name } else { opening.headline }, ..opening };
    document(site, title, &page.description, arranged(site, here, &opening, id, rest))
}

/// The page for addresses that do not exist.
pub fn not_found(site: &Site) -> String {
    let back = [Link { label: site.words.back_home.to_owned(), to: "/".to_owned() }];
    let opening = Opening { headline: site.words.page_not_found, text: "", actions: &back };
    document(site, site.words.page_not_found, "", arranged(site, "", &opening, None, &[]))
}

fn document(site: &Site, title: &str, description: &str, body: Markup) -> String {
    let look = &site.plan.look;
    let grounds = (Grounds::of(look, false), Grounds::of(look, true));
    let language = &site.plan.language;
    let markup = html! {
        (DOCTYPE)
        html lang=(language) dir=(dir(language)) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                @if !description.is_empty() {
                    meta name="description" content=(description);
                    meta property="og:description" content=(description);
                }
                meta property="og:title" content=(title);
                meta property="og:type" content="website";
                @match look.mode {
                    Mode::Both => {
                        meta name="theme-color" media="(prefers-color-scheme: light)" content=(grounds.0.page.bg.hex());
                        meta name="theme-color" media="(prefers-color-scheme: dark)" content=(grounds.1.page.bg.hex());
                    }
                    Mode::Light => meta name="theme-color" content=(grounds.0.page.bg.hex());,
                    Mode::Dark => meta name="theme-color" content=(grounds.1.page.bg.hex());,
                }
                link rel="icon" type="image/svg+xml" href=(site.at("/icon.svg"));
                link rel="stylesheet" href=(site.at("/style.css"));
            }
            body {
                a.skip href="#main" { (site.words.skip_to_content) }
                (body)
            }
        }
    };
    markup.into_string()
}

fn arranged(site: &Site, here: &str, opening: &Opening, id: Option<&str>, rest: &[Section]) -> Markup {
    match site.layout() {
        Layout::Editorial => editorial(site, here, opening, id, rest),
        Layout::Sidebar => sidebar(site, here, opening, id, rest),
        Layout::Poster => poster(site, here, opening, id, rest),
        Layout::Ledger => ledger(site, here, opening, id, rest),
        Layout::Split => split(site, here, opening, id, rest),
        Layout::Letter => letter(site, here, opening, id, rest),
    }
}

fn editorial(site: &Site, here: &str, opening: &Opening, id: Option<&str>, rest: &[Section]) -> Markup {
    html! {
        header.head { (site.brand()) (site.tagline()) (site.nav(here, site.words.menu)) }
        main id="main" {
            section.opening.grid id=[id] { (headline(opening)) (stand(site, here, opening)) (plate(site, here)) }
            @for section in rest {
                section.section.grid.(class(section)) id=(section.id) {
                    (heading(site, section))
                    div.body { (body(site, section, here)) }
                }
            }
        }
        footer.foot.grid.on-deep {
            div.who { (site.name()) (site.tagline()) }
            (site.lines())
        }
    }
}

fn sidebar(site: &Site, here: &str, opening: &Opening, id: Option<&str>, rest: &[Section]) -> Markup {
    html! {
        header.side.on-primary {
            div.inner { (site.brand()) (site.tagline()) (site.nav(here, site.words.menu)) (site.lines()) }
        }
        main id="main" {
            section.opening id=[id] { (plate(site, here)) (headline(opening)) (stand(site, here, opening)) }
            @for section in rest {
                section.section.(class(section)) id=(section.id) {
                    (heading(site, section))
                    div.body { (body(site, section, here)) }
                }
            }
        }
        footer.foot { p { (site.plan.name) } }
    }
}

fn poster(site: &Site, here: &str, opening: &Opening, id: Option<&str>, rest: &[Section]) -> Markup {
    // Neighbours never share a ground, and the last band differs from the footer's.
    let grounds = ["", "on-deep", "on-surface", "on-primary"];
    let ground = |number: usize| match grounds[number % 4] {
        "on-primary" if number + 1 == rest.len() => "on-surface",
        ground => ground,
    };
    html! {
        header.head.on-primary { (site.brand()) (site.nav(here, site.words.menu)) }
        main id="main" {
            section.opening.band.on-primary id=[id] {
                div.wrap {
                    (headline(opening))
                    @if !opening.text.is_empty() { p.stand { (opening.text) } }
                    (site.actions(opening.actions, here))
                }
                (plate(site, here))
            }
            @for (number, section) in rest.iter().enumerate() {
                section.band.(class(section)).(ground(number)) id=(section.id) {
                    div.wrap { (heading(site, section)) div.body { (body(site, section, here)) } }
                }
            }
        }
        footer.foot.on-primary {
            (site.name())
            div.below { (site.tagline()) (site.lines()) }
        }
    }
}

fn ledger(site: &Site, here: &str, opening: &Opening, id: Option<&str>, rest: &[Section]) -> Markup {
    html! {
        div.sheet {
            header.head { (site.brand()) (site.nav(here, site.words.menu)) }
            main id="main" {
                section.opening id=[id] {
                    div.words { (headline(opening)) (stand(site, here, opening)) }
                    (plate(site, here))
                }
                @for section in rest {
                    section.section.(class(section)) id=(section.id) {
                        (heading(site, section))
                        div.body { (body(site, section, here)) }
                    }
                }
            }
            footer.foot.on-surface {
                p { strong { (site.plan.name) } }
                div { (site.tagline()) }
                div { (site.lines()) }
            }
        }
    }
}

fn split(site: &Site, here: &str, opening: &Opening, id: Option<&str>, rest: &[Section]) -> Markup {
    let grounds = ["on-surface", "on-primary", "on-surface", "on-deep"];
    html! {
        header.head.many[site.pages.len() > 5] { (site.brand()) (site.nav(here, site.words.menu)) }
        main id="main" {
            section.opening id=[id] {
                div.words { (headline(opening)) (stand(site, here, opening)) }
                (plate(site, here))
            }
            @for (number, section) in rest.iter().enumerate() {
                section.section.flip[number % 2 == 1].(class(section)) id=(section.id) {
                    @if let Some((words, form)) = contact(site, section) {
                        div.half.title.(grounds[number % 4]) { (heading(site, section)) (words) }
                        div.half.body { (form) }
                    } @else {
                        div.half.title.(grounds[number % 4]) { (heading(site, section)) }
                        div.half.body { (body(site, section, here)) }
                    }
                }
            }
        }
        footer.foot {
            div.half.who.on-primary { (site.name()) (site.tagline()) }
            div.half.on-deep { (site.lines()) }
        }
    }
}

fn letter(site: &Site, here: &str, opening: &Opening, id: Option<&str>, rest: &[Section]) -> Markup {
    html! {
        div.page {
            header.head {
                div { (site.brand()) (site.tagline()) }
                img.stamp src=(site.at("/stamp.svg")) width="240" height="288" alt="";
                (site.nav(here, site.words.menu))
            }
            main id="main" {
                section.opening id=[id] {
                    (headline(opening))
                    (stand(site, here, opening))
                    @if here == "/" && site.picture(PicturePlace::Hero).is_some() { (plate(site, here)) }
                }
                @for section in rest {
                    section.section.(class(section)) id=(section.id) {
                        (heading(site, section))
                        div.body { (body(site, section, here)) }
                    }
                }
                p.sign { (site.plan.name) }
            }
            footer.foot { (site.lines()) }
        }
    }
}

fn headline(opening: &Opening) -> Markup {
    let class = match opening.headline.chars().count() {
        0..=20 => None,
        21..=44 => Some("middle"),
        _ => Some("long"),
    };
    html! { h1 class=[class] { (opening.headline) } }
}

fn stand(site: &Site, here: &str, opening: &Opening) -> Markup {
    html! {
        div.stand {
            @if !opening.text.is_empty() { p { (opening.text) } }
            (site.actions(opening.actions, here))
        }
    }
}

/// The owner's picture on the first page, else our drawing. Both decorate.
fn plate(site: &Site, here: &str) -> Markup {
    let hero = site.picture(PicturePlace::Hero).filter(|_| here == "/");
    let (width, height) = drawing::size(site.layout());
    html! {
        div.plate {
            @if let Some(hero) = hero {
                img src=(site.at(&hero.path)) width=(hero.width) height=(hero.height) alt="";
            } @else {
                img src=(site.at("/drawing.svg")) width=(width) height=(height) alt="";
            }
        }
    }
}

fn heading(site: &Site, section: &Section) -> Markup {
    let text = if section.heading.is_empty() { &site.plan.name } else { &section.heading };
    html! { h2 { (text) } }
}
