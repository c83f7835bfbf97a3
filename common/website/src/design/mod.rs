//! From a plan to files.

pub mod assets;
mod choose;
mod color;
mod drawing;
mod fonts;
mod mark;
mod names;
mod page;
mod random;
mod sections;
mod site;
mod style;
mod subjects;
#[cfg(test)]
mod tests;
mod wishes;

pub use choose::choose;
pub(crate) use fonts::nearest as nearest_fonts;
pub(crate) use wishes::wishes;

use color::text_on;
use drawing::Inks;
use site::Site;
use style::Grounds;

use crate::plan::{Content, Layout, Mode, Plan};

/// One file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its address below the site's root, such as `/about/index.html` or `/style.css`.
    pub path: String,
    pub content_type: &'static str,
    pub bytes: Vec<u8>,
}

/// Renders all files except the buyer's pictures. `root` is the site's address path, `""` or `/abc/v3`; `leads` is the address
/// that the form posts to, if there is one.
pub fn render(plan: &Plan, root: &str, leads: Option<&str>) -> Vec<File> {
    let site = Site::new(plan, root, leads);
    let mut files: Vec<File> = site
        .pages
        .iter()
        .map(|(path, page)| text(format!("{path}index.html"), HTML, page::page(&site, path, page)))
        .collect();
    files.push(text("/404.html", HTML, page::not_found(&site)));
    files.push(text("/style.css", "text/css; charset=utf-8", style::sheet(&plan.look, site.root)));
    for family in fonts::families(plan.look.fonts) {
        for (path, bytes, _) in family.files() {
            files.push(File { path, content_type: "font/woff2", bytes: bytes.to_vec() });
        }
    }
    files.extend(drawings(plan));
    files.push(text("/robots.txt", "text/plain; charset=utf-8", "User-agent: *\nAllow: /\n".to_owned()));
    files
}

const HTML: &str = "text/html; charset=utf-8";
const SVG: &str = "image/svg+xml";

fn text(path: impl Into<String>, content_type: &'static str, text: String) -> File {
    File { path: path.into(), content_type, bytes: text.into_bytes() }
}

fn drawings(plan: &Plan) -> Vec<File> {
    let primary = Grounds::of(&plan.look, false).primary;
    let subject = drawing::subject(plan.kind, &subject_texts(plan));
    let inks = Inks::of(primary, plan.look.mode == Mode::Dark, subject, &plan.name);
    let icon = mark::icon(&plan.name, primary, text_on(primary), plan.look.corners);
    let (path, drawn) = match plan.look.layout {
        Layout::Letter => ("/stamp.svg", drawing::stamp(subject, &inks, &plan.name)),
        layout => {
            let (width, height) = drawing::size(layout);
            ("/drawing.svg", drawing::draw(subject, &inks, &plan.name, width, height))
        }
    };
    vec![text("/icon.svg", SVG, icon), text(path, SVG, drawn)]
}

/// The texts that say what a site is about: its name, its line and what opens it.
fn subject_texts(plan: &Plan) -> String {
    let mut texts = format!("{} {}", plan.name, plan.tagline);
    if let Some(page) = plan.pages.first() {
        texts.push_str(&format!(" {} {}", page.title, page.description));
        for section in &page.sections {
            if let Content::Hero { text, .. } = &section.content {
                texts.push_str(&format!(" {} {text}", section.heading));
            }
        }
    }
    texts
}
