//! The encyclopaedia: two skins.

use super::{Doc, Extras, Marks, body, escape, related};

pub fn render(doc: &Doc, extras: &mut Extras) -> String {
    let Doc { title, .. } = doc;
    let text = body(&doc.blocks, Marks::P, "h2")
        .replace("</h2>", "</h2><span class=\"mw-editsection\">[<a href=\"#\">edit</a>]</span>");
    let box_ = format!(
        "<table class=\"infobox vcard\"><tbody><tr><th colspan=\"2\" class=\"infobox-above\">{}</th></tr><tr><th>Country</th><td>Calderland</td></tr></tbody></table>",
        escape(title)
    );
    let navbox = extras.links(&related(doc, 8), ("<li>", "</li>"));
    let languages = "<ul><li><a href=\"#\">Deutsch</a></li><li><a href=\"#\">Français</a></li><li><a href=\"#\">Polski</a></li></ul>";
    let licence = extras.say("Text is available under a free licence; additional terms may apply.");
    match doc.variant % 2 {
        0 => format!(
            "<!DOCTYPE html><html class=\"client-nojs\" lang=\"en\" dir=\"ltr\"><head><meta charset=\"UTF-8\"><title>{title} - Calderpedia</title></head><body class=\"mediawiki ltr skin-vector\"><div id=\"mw-page-base\"></div>\
             <div id=\"content\" class=\"mw-body\" role=\"main\"><div id=\"siteNotice\">{}</div><h1 id=\"firstHeading\" class=\"firstHeading\">{title}</h1><div id=\"bodyContent\"><div id=\"siteSub\" class=\"noprint\">From Calderpedia, the encyclopaedia of a small land</div>\
             <div id=\"jump-to-nav\"></div><a class=\"mw-jump-link\" href=\"#mw-head\">Jump to navigation</a><div id=\"mw-content-text\" class=\"mw-body-content\"><div class=\"mw-parser-output\">{box_}{text}\
             <div role=\"navigation\" class=\"navbox\"><ul>{navbox}</ul></div></div></div><div id=\"catlinks\" class=\"catlinks\"><a href=\"#\">Categories</a>: <ul><li><a href=\"#\">Calderland</a></li></ul></div></div></div>\
             <div id=\"mw-navigation\"><div id=\"p-navigation\" class=\"portal\"><ul><li><a href=\"#\">Random article</a></li><li><a href=\"#\">Recent changes</a></li></ul></div>{languages}</div><div id=\"footer\" role=\"contentinfo\"><ul><li>{licence}</li></ul></div></body></html>",
            extras.say("Please help us: a donation of two crowns keeps Calderpedia running.")
        ),
        _ => format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} | Calderpedia</title></head><body class=\"skin-mobile\"><header class=\"header-container\"><form><input type=\"search\"></form></header>\
             <main id=\"content\"><div class=\"pre-content\"><h1 class=\"page-heading\">{title}</h1><ul class=\"page-actions-menu\"><li><a href=\"#\">Language</a></li><li><a href=\"#\">Watch</a></li></ul></div><div id=\"bodyContent\" class=\"content\">\
             <section class=\"mf-section-0\">{box_}{text}</section></div><div class=\"post-content\"><h2>Related articles</h2><ul>{navbox}</ul></div></main><footer class=\"minerva-footer\"><p>{licence}</p></footer></body></html>"
        ),
    }
}
