//! Documentation: four skeletons.

use super::{Doc, Extras, Marks, body, related};

const CHAPTERS: [&str; 9] = [
    "Overview",
    "Installation",
    "First steps",
    "Configuration",
    "Plugins",
    "Command line",
    "Errors",
    "Upgrading",
    "Glossary",
];
const HELPFUL: &str = "Was this page helpful? Tell us what we can do better.";

pub fn render(doc: &Doc, extras: &mut Extras) -> String {
    match doc.variant % 4 {
        0 => tree(doc, extras),
        1 => app(doc, extras),
        2 => book(doc, extras),
        _ => generated(doc, extras),
    }
}

fn chapters(open: &str, close: &str) -> String {
    CHAPTERS
        .iter()
        .map(|name| {
            format!(
                "{open}<a class=\"reference internal\" href=\"/{}.html\">{name}</a>{close}",
                name.to_lowercase().replace(' ', "-")
            )
        })
        .collect()
}

/// reStructuredText, built by the usual generator, with its theme's side bar.
fn tree(doc: &Doc, extras: &mut Extras) -> String {
    format!(
        "<!DOCTYPE html><html class=\"writer-html5\" lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} — documentation</title></head><body class=\"wy-body-for-nav\"><div class=\"wy-grid-for-nav\">\
         <nav data-toggle=\"wy-nav-shift\" class=\"wy-nav-side\"><div class=\"wy-side-nav-search\"><a href=\"/\">docs</a><form><input type=\"text\" name=\"q\" placeholder=\"Search docs\"></form></div>\
         <div class=\"wy-menu wy-menu-vertical\"><ul class=\"current\">{1}</ul></div></nav><section class=\"wy-nav-content-wrap\"><div class=\"wy-nav-content\"><div class=\"rst-content\">\
         <div role=\"navigation\"><ul class=\"wy-breadcrumbs\"><li><a href=\"/\">Docs</a> »</li><li>{0}</li><li class=\"wy-breadcrumbs-aside\"><a href=\"#\">View page source</a></li></ul><hr></div>\
         <div role=\"main\" class=\"document\"><div itemprop=\"articleBody\"><section id=\"start\"><h1>{0}<a class=\"headerlink\" href=\"#start\" title=\"Link to this heading\">¶</a></h1>{2}</section></div></div>\
         <footer><div class=\"rst-footer-buttons\"><a href=\"#\">Previous</a><a href=\"#\">Next</a></div><hr><div role=\"contentinfo\"><p>{3}</p></div></footer></div></div></section></div></body></html>",
        doc.title,
        chapters("<li class=\"toctree-l1\">", "</li>"),
        body(&doc.blocks, Marks::P, "h2"),
        extras.say("Built with Thistle using a theme provided by Read the Manual.")
    )
}

/// A documentation app, rendered on the server, with a menu for every screen size.
fn app(doc: &Doc, extras: &mut Extras) -> String {
    let menu = chapters("<li class=\"menu__list-item\">", "</li>");
    format!(
        "<!doctype html><html lang=\"en\" data-theme=\"light\"><head><meta charset=\"UTF-8\"><title>{0} | Docs</title></head><body><div id=\"__docusaurus\">\
         <div role=\"region\" aria-label=\"Skip to main content\"><a class=\"skipToContent\" href=\"#main\">{1}</a></div>\
         <div class=\"announcementBar\" role=\"banner\">{2}</div><nav class=\"navbar navbar--fixed-top\"><a href=\"/docs\">Docs</a><a href=\"/blog\">Blog</a></nav>\
         <div class=\"docMainContainer\"><aside class=\"theme-doc-sidebar-container\"><ul class=\"theme-doc-sidebar-menu menu__list\">{menu}</ul></aside>\
         <main id=\"main\"><div class=\"container\"><div class=\"row\"><div class=\"col docItemCol\"><article><nav class=\"theme-doc-breadcrumbs\"><ul><li>Guides</li></ul></nav><div class=\"tocMobile\"><button>On this page</button></div>\
         <div class=\"theme-doc-markdown markdown\"><header><h1>{0}</h1></header>{3}</div><footer class=\"theme-doc-footer\"><a href=\"#\">Edit this page</a></footer></article>\
         <nav class=\"pagination-nav\"><a href=\"#\">Next: Plugins</a></nav></div><div class=\"col col--3\"><div class=\"table-of-contents\"><ul><li><a href=\"#installation\">Installation</a></li></ul></div></div></div></div></main></div>\
         <div class=\"feedback-widget\"><p>{4}</p><button>👍</button><button>👎</button></div></div></body></html>",
        doc.title,
        extras.say("Skip to main content of these docs"),
        extras.say("Version 5 is out in beta, and we would love to hear what you think!"),
        body(&doc.blocks, Marks::P, "h2"),
        extras.say(HELPFUL)
    )
}

/// A book with chapters.
fn book(doc: &Doc, extras: &mut Extras) -> String {
    format!(
        "<!DOCTYPE HTML><html lang=\"en\" class=\"light\"><head><meta charset=\"UTF-8\"><title>{0} - The Book</title></head><body><div id=\"body-container\">\
         <script>try {{ let theme = localStorage.getItem('theme'); }} catch (e) {{ }}</script><nav id=\"sidebar\" class=\"sidebar\"><div class=\"sidebar-scrollbox\"><ol class=\"chapter\">{1}</ol></div></nav>\
         <div id=\"page-wrapper\" class=\"page-wrapper\"><div class=\"page\"><div id=\"menu-bar\" class=\"menu-bar\"><h1 class=\"menu-title\">The Book</h1><a href=\"/print.html\">Print</a></div>\
         <div id=\"search-wrapper\" class=\"hidden\" style=\"display:none\"><div id=\"searchresults-header\">{2}</div></div>\
         <div id=\"content\" class=\"content\"><main><h1 id=\"t\"><a class=\"header\" href=\"#t\">{0}</a></h1>{3}</main><nav class=\"nav-wrapper\"><a rel=\"next\" href=\"#\">›</a></nav></div></div></div></div></body></html>",
        doc.title,
        chapters("<li class=\"chapter-item\">", "</li>"),
        extras.say("Type a word to search all the chapters of the book"),
        body(&doc.blocks, Marks::P, "h2")
    )
}

/// An API reference generated from source code: definition lists, anchors, signatures.
fn generated(doc: &Doc, extras: &mut Extras) -> String {
    let more = extras.links(&related(doc, 3), ("<li>", "</li>"));
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title></head><body class=\"mod\"><div id=\"top\"><ul class=\"index\">{1}</ul></div>\
         <table class=\"layout\"><tr><td class=\"menu\"><b>All items</b><ul><li><a href=\"#\">open()</a><li><a href=\"#\">close()</a><li><a href=\"#\">sweep()</a></ul><p>See also</p><ul>{more}</ul></td>\
         <td class=\"main\"><h1>{0}</h1><div class=\"docblock\">{2}</div></td></tr></table><div class=\"generated\">{3}</div></body></html>",
        doc.title,
        chapters("<li>", ""),
        body(&doc.blocks, Marks::P, "h3"),
        extras.say("This file was generated by autodox 3.1; do not edit it by hand.")
    )
}
