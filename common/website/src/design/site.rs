//! What all parts of a page share: addresses, the names of pages, the brand, the navigation.

use maud::{Markup, html};

use super::labels::{Labels, labels};
use crate::brief::{Picture, PicturePlace};
use crate::plan::{Content, Layout, Link, Page, Plan};

/// A plan that is being rendered.
pub struct Site<'a> {
    pub plan: &'a Plan,
    /// The address path that all files stand below.
    pub root: &'a str,
    /// Where the form posts to.
    pub leads: Option<&'a str>,
    pub labels: Labels,
    /// Pages with their addresses below the root: `/`, `/about/`.
    pub pages: Vec<(String, &'a Page)>,
}

impl<'a> Site<'a> {
    pub fn new(plan: &'a Plan, root: &'a str, leads: Option<&'a str>) -> Site<'a> {
        let mut pages: Vec<(String, &Page)> = Vec::new();
        for (number, page) in plan.pages.iter().enumerate() {
            let path = if number == 0 { "/".to_owned() } else { address(&page.path) };
            if !pages.iter().any(|(other, _)| *other == path) {
                pages.push((path, page));
            }
        }
        let root = root.trim_end_matches('/');
        Site { plan, root, leads: leads.filter(|_| plan.lead_capture), labels: labels(&plan.language), pages }
    }

    /// An address of one of our files or pages.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    pub fn layout(&self) -> Layout {
        self.plan.look.layout
    }

    /// Where a link leads from the page at `here`. `None` for what is no address of ours, a page or id that does not exist, and
    /// any scheme but mail and telephone.
    pub fn target(&self, to: &str, here: &str) -> Option<String> {
        if to.starts_with("mailto:") || to.starts_with("tel:") {
            return Some(to.to_owned());
        }
        let (path, id) = to.split_once('#').map_or((to, None), |(path, id)| (path, Some(id)));
        let has = |page: &Page, id: &str| page.sections.iter().any(|section| section.id == id);
        let wanted = (!path.is_empty()).then(|| if path == "/" { "/".to_owned() } else { address(path) });
        let mut pages: Vec<_> =
            self.pages.iter().filter(|(path, _)| wanted.as_ref().is_none_or(|w| w == path)).collect();
        // An id alone is first one of this page, then one of any page.
        pages.sort_by_key(|(path, _)| path != here);
        let (path, _) = pages.into_iter().find(|(_, page)| id.is_none_or(|id| has(page, id)))?;
        match id {
            Some(id) if path == here => Some(format!("#{id}")),
            Some(id) => Some(format!("{}{path}#{id}", self.root)),
            None => Some(self.at(path)),
        }
    }

    pub fn picture(&self, place: PicturePlace) -> Option<&Picture> {
        self.plan.pictures.iter().find(|picture| picture.place == place)
    }

    /// The name with the owner's logo or our mark, as a link to the first page.
    pub fn brand(&self) -> Markup {
        html! {
            a.name href=(self.at("/")) {
                @if let Some(logo) = self.picture(PicturePlace::Logo) {
                    img.logo src=(self.at(&logo.path)) width=(logo.width) height=(logo.height) alt=(self.plan.name);
                } @else {
                    img.mark src=(self.at("/icon.svg")) width="64" height="64" alt="";
                    span { (self.plan.name) }
                }
            }
        }
    }

    /// The name alone, for the end of a page.
    pub fn name(&self) -> Markup {
        html! { p.name { (self.plan.name) } }
    }

    pub fn tagline(&self) -> Markup {
        html! { @if !self.plan.tagline.is_empty() { p.tagline { (self.plan.tagline) } } }
    }

    /// Links to all pages, or to the sections of a site of one page. `label` tells two navigations of a page apart.
    pub fn nav(&self, here: &str, label: &str) -> Markup {
        let links = self.links(here);
        html! {
            @if !links.is_empty() {
                nav aria-label=(label) {
                    ul.links {
                        @for (name, to, current) in links {
                            li { a href=(to) aria-current=[current.then_some("page")] { (name) } }
                        }
                    }
                }
            }
        }
    }

    fn links(&self, here: &str) -> Vec<(&'a str, String, bool)> {
        if self.pages.len() > 1 {
            return self.pages.iter().map(|(path, page)| (page.name.as_str(), self.at(path), path == here)).collect();
        }
        let sections = self.pages.first().map(|(_, page)| page.sections.as_slice()).unwrap_or_default();
        let named = sections.iter().filter(|s| {
            !matches!(s.content, Content::Hero { .. } | Content::Action { .. } | Content::Facts { .. })
                && !s.heading.is_empty()
        });
        // Long headings are no names for a navigation.
        let short = named.filter(|s| s.heading.chars().count() <= 24).take(6);
        short.filter_map(|s| Some((s.heading.as_str(), self.target(&format!("/#{}", s.id), here)?, false))).collect()
    }

    /// How to reach the owner, from the first section that says it.
    pub fn lines(&self) -> Markup {
        let contact =
            self.plan.pages.iter().flat_map(|page| &page.sections).find_map(|section| match &section.content {
                Content::Contact { email, phone, address, .. } => Some((email, phone, address)),
                _ => None,
            });
        html! { @if let Some((email, phone, address)) = contact { (reach(email, phone, address)) } }
    }

    /// Actions: the first is a button, the others are links.
    pub fn actions(&self, actions: &[Link], here: &str) -> Markup {
        let links: Vec<_> = actions.iter().filter_map(|a| Some((&a.label, self.target(&a.to, here)?))).collect();
        html! {
            @if !links.is_empty() {
                p.actions {
                    @for (number, (label, to)) in links.iter().enumerate() {
                        a class=(if number == 0 { "do" } else { "go" }) href=(to) { (label) }
                        " "
                    }
                }
            }
        }
    }
}

/// Lines of an address, with links where one can follow them.
pub fn reach(email: &str, phone: &str, address: &str) -> Markup {
    let dial: String = phone.chars().filter(|c| c.is_ascii_digit() || *c == '+').collect();
    html! {
        @if !(email.is_empty() && phone.is_empty() && address.is_empty()) {
            address.lines {
                @if !email.is_empty() { p { a href=(format!("mailto:{}", email.trim())) { (email) } } }
                @if !phone.is_empty() { p { a href=(format!("tel:{dial}")) { bdi { (phone) } } } }
                @if !address.is_empty() { p.address { (address) } }
            }
        }
    }
}

/// The address of a page: lower case, `/a/b/`, of characters that need no escape.
pub fn address(path: &str) -> String {
    let clean = |part: &str| -> String {
        let part = part.to_lowercase();
        let kept = part.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' });
        kept.collect::<String>().trim_matches('-').to_owned()
    };
    let parts: Vec<String> = path.split('/').map(clean).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "/page/".to_owned() } else { format!("/{}/", parts.join("/")) }
}
