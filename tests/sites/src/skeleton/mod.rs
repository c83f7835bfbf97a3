//! The markup around a page's content: skeletons by kind of site, each after the structure of real ones.

mod blog;
mod company;
mod docs;
mod forum;
mod news;
mod shop;
mod wiki;

use crate::PageKind;
use crate::write::escape;

/// A document without markup.
pub struct Doc {
    pub host: String,
    pub path: String,
    pub title: String,
    pub author: String,
    pub date: String,
    /// Whether the page shows its date.
    pub dated: bool,
    pub blocks: Vec<Block>,
    /// Index of the skeleton.
    pub variant: usize,
}

pub enum Block {
    Heading(String),
    Para(String),
    List(Vec<String>),
    Quote(String),
    Code(String),
    /// Rows of cells.
    Table(Vec<Vec<String>>),
    Post {
        author: String,
        paras: Vec<String>,
    },
}

impl Block {
    /// The texts of this block.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Block::Heading(text) | Block::Para(text) | Block::Quote(text) => vec![text.clone()],
            Block::Code(text) => text.lines().map(str::to_owned).collect(),
            Block::List(items) => items.clone(),
            Block::Table(rows) => rows.iter().flatten().cloned().collect(),
            Block::Post { paras, .. } => paras.clone(),
        }
    }
}

/// The markup of paragraphs.
#[derive(Clone, Copy)]
pub enum Marks {
    P,
    /// Each in a `div` with this class.
    Div(&'static str),
    /// Separated by `<br>`.
    Br,
    /// `<p>` that is never closed.
    OpenP,
}

/// The blocks as HTML.
pub fn body(blocks: &[Block], marks: Marks, heading: &str) -> String {
    let mut html = String::new();
    for block in blocks {
        let part = match block {
            Block::Heading(text) => format!("<{heading}>{}</{heading}>\n", escape(text)),
            Block::Para(text) => match marks {
                Marks::P => format!("<p>{}</p>\n", escape(text)),
                Marks::Div(class) => format!("<div class=\"{class}\">{}</div>\n", escape(text)),
                Marks::Br => format!("{}<br><br>\n", escape(text)),
                Marks::OpenP => format!("<P>{}\n", escape(text)),
            },
            Block::List(items) => {
                let items: String = items.iter().map(|item| format!("<li>{}</li>\n", escape(item))).collect();
                format!("<ul>\n{items}</ul>\n")
            }
            Block::Quote(text) => format!("<blockquote><p>{}</p></blockquote>\n", escape(text)),
            Block::Code(text) => format!("<div class=\"highlight\"><pre><code>{}</code></pre></div>\n", escape(text)),
            Block::Table(rows) => {
                let row = |row: &Vec<String>| {
                    let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
                    format!("<tr>{cells}</tr>\n")
                };
                format!("<table>\n{}</table>\n", rows.iter().map(row).collect::<String>())
            }
            Block::Post { author, paras } => {
                let paras: String = paras.iter().map(|para| format!("<p>{}</p>", escape(para))).collect();
                format!("<div class=\"post\"><b>{author}</b>{paras}</div>\n")
            }
        };
        html.push_str(&part);
    }
    html
}

/// The parts of a page besides its content. They are written into the page, and recorded as text that must not be
/// extracted.
#[derive(Default)]
pub struct Extras {
    pub kept: Vec<String>,
}

impl Extras {
    /// Text of the page that is not content.
    pub fn say(&mut self, text: &str) -> String {
        self.kept.push(text.to_owned());
        escape(text)
    }

    /// Links to other pages, which are not content either.
    pub fn links(&mut self, links: &[(String, String)], wrap: (&str, &str)) -> String {
        let link =
            |(url, title): &(String, String)| format!("{}<a href=\"{url}\">{}</a>{}", wrap.0, escape(title), wrap.1);
        self.kept.extend(links.iter().map(|(_, title)| title.clone()).filter(|title| title.len() > 20));
        links.iter().map(link).collect()
    }
}

/// The page, and its texts that are not content.
pub fn render(doc: &Doc, kind: PageKind) -> (String, Vec<String>) {
    let mut extras = Extras::default();
    let html = match kind {
        PageKind::News => news::render(doc, &mut extras),
        PageKind::Blog => blog::render(doc, &mut extras),
        PageKind::Docs => docs::render(doc, &mut extras),
        PageKind::Forum => forum::render(doc, &mut extras),
        PageKind::Product => shop::product(doc, &mut extras),
        PageKind::Recipe => shop::recipe(doc, &mut extras),
        PageKind::Wiki => wiki::render(doc, &mut extras),
        _ => company::render(doc, &mut extras),
    };
    // A teaser may repeat a sentence of the page itself.
    let own: Vec<String> = doc.blocks.iter().flat_map(Block::texts).collect();
    extras
        .kept
        .retain(|text| !own.iter().any(|part| part.contains(text.as_str())) && !doc.title.contains(text.as_str()));
    (html, extras.kept)
}

/// Other pages of the same site, as links with their titles.
pub fn related(doc: &Doc, count: usize) -> Vec<(String, String)> {
    let topics = crate::topics::topics();
    let start = doc.title.len() + doc.variant * 5;
    let picked = (0..count).map(|step| &topics[(start + step * 7) % topics.len()]);
    let others = picked.filter(|topic| !doc.path.contains(&topic.key));
    let folder = doc.path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    others.map(|topic| (format!("https://{}{folder}/{}", doc.host, topic.key), topic.headlines[0].clone())).collect()
}

/// A date as people write it.
pub fn long_date(date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut parts = date.split('-').map(|part| part.parse::<usize>().unwrap_or(1));
    let (year, month, day) = (parts.next().unwrap_or(2025), parts.next().unwrap_or(1), parts.next().unwrap_or(1));
    format!("{day} {} {year}", MONTHS[(month - 1) % 12])
}
