//! Newspapers: six skeletons.

use super::{Doc, Extras, Marks, body, long_date, related};

const COOKIES: &str =
    "We and our 214 partners store and access information on your device, such as cookies and browsing data.";
const LETTER: &str = "Sign up for our morning briefing and never miss a story from your region.";
const RIGHTS: &str = "All rights reserved. Reproduction in whole or in part without permission is prohibited.";
const COMMENT: &str = "Typical. They always find money for that, but my street has not been swept since spring.";
const SECOND_COMMENT: &str = "As somebody who was there I can only say that it was nothing like this.";

pub fn render(doc: &Doc, extras: &mut Extras) -> String {
    match doc.variant % 6 {
        0 => modern(doc, extras),
        1 => classic(doc, extras),
        2 => tables(doc, extras),
        3 => amp(doc, extras),
        4 => tabloid(doc, extras),
        _ => utility(doc, extras),
    }
}

fn head(doc: &Doc, more: &str) -> String {
    let Doc { host, path, title, author, date, .. } = doc;
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title} | {host}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta property=\"og:title\" content=\"{title}\">\n<meta property=\"og:type\" content=\"article\">\n\
         <meta property=\"article:published_time\" content=\"{date}T07:30:00Z\">\n<meta name=\"author\" content=\"{author}\">\n\
         <link rel=\"canonical\" href=\"https://{host}{path}\">\n{more}</head>\n"
    )
}

/// A publisher's current system: generated class names, a consent layer, blocks of teasers between the paragraphs.
fn modern(doc: &Doc, extras: &mut Extras) -> String {
    let ld = format!(
        "<script type=\"application/ld+json\">{{\"@context\":\"https://schema.org\",\"@type\":\"NewsArticle\",\"headline\":\"{}\",\
         \"datePublished\":\"{}T07:30:00Z\",\"author\":{{\"@type\":\"Person\",\"name\":\"{}\"}}}}</script>\n",
        doc.title, doc.date, doc.author
    );
    let sections = ["Home", "Region", "Politics", "Business", "Culture", "Sport", "Weather", "Puzzles"];
    let nav: String = sections
        .iter()
        .map(|name| format!("<li class=\"sc-1x\"><a href=\"/{}\">{name}</a></li>", name.to_lowercase()))
        .collect();
    let text = body(&doc.blocks, Marks::P, "h2");
    let cut = text.match_indices("</p>").nth(1).map_or(text.len(), |(at, _)| at + 4);
    let (before, after) = text.split_at(cut);
    let teaser = extras.links(&related(doc, 1), ("<span class=\"css-promo\">Read also: ", "</span>"));
    let more = extras.links(&related(doc, 8), ("<div class=\"css-card\"><h3>", "</h3><p>2 min read</p></div>"));
    format!(
        "{}<body class=\"app\"><div id=\"root\"><div class=\"consent-layer\" role=\"dialog\" aria-modal=\"true\"><h2>Your privacy</h2><p>{}</p>\
         <button>Accept all</button><button>Settings</button></div>\
         <header class=\"css-1a\"><a class=\"logo\" href=\"/\">Harbour Post</a><nav><ul>{nav}</ul></nav><form role=\"search\"><input name=q></form></header>\
         <main class=\"css-2b\"><article class=\"css-3c\"><header><p class=\"kicker\">Region</p><h1>{}</h1><div class=\"css-by\">By {} · \
         <time datetime=\"{}\">{}</time></div><ul class=\"share\"><li><a href=\"#\">Share on Chirp</a></li><li><a href=\"#\">Send by mail</a></li></ul></header>\
         <figure><img src=\"/i/1.jpg\" alt=\"\"><figcaption>Picture: Harbour Post</figcaption></figure>\
         <section class=\"css-body\">{before}<aside class=\"css-in\">{teaser}</aside>{after}</section>\
         <div class=\"newsletter-box\"><h3>Morning briefing</h3><p>{}</p><input type=email><button>Subscribe</button></div></article>\
         <section class=\"css-more\" aria-label=\"More stories\"><h2>More from the region</h2>{more}</section></main>\
         <footer><p>© 2026 Harbour Post Media. {}</p><a href=\"/imprint\">Imprint</a> <a href=\"/terms\">Terms</a></footer></div>\
         <script>window.__STATE__={{\"user\":null}}</script></body></html>",
        head(doc, &ld),
        extras.say(COOKIES),
        doc.title,
        doc.author,
        doc.date,
        long_date(&doc.date),
        extras.say(LETTER),
        extras.say(RIGHTS)
    )
}

/// The blog-like system of smaller papers, with a side bar and comments.
fn classic(doc: &Doc, extras: &mut Extras) -> String {
    let menu: String = ["News", "Sport", "Obituaries", "Classifieds", "Letters"]
        .iter()
        .map(|name| format!("<li class=\"menu-item\"><a href=\"#\">{name}</a></li>"))
        .collect();
    let popular = extras.links(&related(doc, 6), ("<li>", "</li>"));
    format!(
        "{}<body class=\"single single-post\"><div id=\"page\" class=\"site\"><div id=\"masthead\"><div class=\"site-branding\"><a href=\"/\">The Paper</a>\
         <p class=\"site-description\">Independent since 1871</p></div><div class=\"main-navigation\"><ul id=\"primary-menu\">{menu}</ul></div></div>\
         <div id=\"content\" class=\"site-content\"><div id=\"primary\"><div id=\"main\"><article class=\"post type-post hentry\">\
         <header class=\"entry-header\"><h1 class=\"entry-title\">{}</h1><div class=\"entry-meta\"><span class=\"posted-on\">{}</span> \
         <span class=\"byline\">by <a rel=\"author\" href=\"#\">{}</a></span></div></header><div class=\"entry-content\">{}\
         <div class=\"sharedaddy\"><h3>Share this:</h3><ul><li><a href=\"#\">Facepage</a></li><li><a href=\"#\">Print</a></li></ul></div></div></article>\
         <div id=\"comments\" class=\"comments-area\"><h2>2 thoughts on this</h2><ol class=\"comment-list\"><li class=\"comment\"><b>grumbler</b><p>{}</p></li>\
         <li class=\"comment\"><b>eye witness</b><p>{}</p></li></ol><form><textarea></textarea><button>Post Comment</button></form></div></div></div>\
         <div id=\"secondary\" class=\"widget-area sidebar\"><section class=\"widget\"><h2>Most read</h2><ul>{popular}</ul></section>\
         <section class=\"widget\"><h2>Newsletter</h2><p>{}</p></section></div></div>\
         <div id=\"colophon\" class=\"site-footer\">{}</div></div></body></html>",
        head(doc, ""),
        doc.title,
        long_date(&doc.date),
        doc.author,
        body(&doc.blocks, Marks::P, "h3"),
        extras.say(COMMENT),
        extras.say(SECOND_COMMENT),
        extras.say(LETTER),
        extras.say(RIGHTS)
    )
}

/// Table layout, as papers once had it and some still do.
fn tables(doc: &Doc, extras: &mut Extras) -> String {
    let left = extras.links(&related(doc, 7), ("<tr><td bgcolor=\"#dddddd\"><font size=1>", "</font></td></tr>"));
    format!(
        "<HTML><HEAD><TITLE>{0}</TITLE><META NAME=\"date\" CONTENT=\"{1}\"></HEAD><BODY BGCOLOR=\"#FFFFFF\">\
         <TABLE WIDTH=\"100%\" BORDER=0><TR><TD COLSPAN=3 ALIGN=center><FONT SIZE=6>THE CALDER LEDGER</FONT></TD></TR>\
         <TR><TD WIDTH=\"18%\" VALIGN=top><TABLE>{left}</TABLE></TD><TD WIDTH=\"60%\" VALIGN=top><H1>{0}</H1>\
         <FONT SIZE=2><I>{2}, {3}</I></FONT><BR>{4}</TD><TD VALIGN=top BGCOLOR=\"#eeeeee\"><B>Subscribe!</B><BR>{5}</TD></TR>\
         <TR><TD COLSPAN=3 ALIGN=center><FONT SIZE=1>{6}</FONT></TD></TR></TABLE></BODY></HTML>",
        doc.title,
        doc.date,
        doc.author,
        long_date(&doc.date),
        body(&doc.blocks, Marks::OpenP, "H3"),
        extras.say(LETTER),
        extras.say(RIGHTS)
    )
}

/// The reduced form for phones.
fn amp(doc: &Doc, extras: &mut Extras) -> String {
    let more = extras.links(&related(doc, 5), ("<li>", "</li>"));
    format!(
        "{}<body><amp-sidebar id=\"menu\" layout=\"nodisplay\"><ul><li><a href=\"/\">Front page</a></li><li><a href=\"/local\">Local</a></li></ul></amp-sidebar>\
         <header class=\"bar\"><button on=\"tap:menu.toggle\">☰</button> The Paper</header>\
         <article><h1>{}</h1><p class=\"meta\">{} <time datetime=\"{}\">{}</time></p><amp-img src=\"/1.jpg\" width=\"4\" height=\"3\"></amp-img>{}\
         <amp-ad width=\"300\" height=\"250\"><div placeholder>{}</div></amp-ad></article>\
         <section class=\"recommend\"><h3>Recommended for you</h3><ul>{more}</ul></section>\
         <amp-consent id=\"c\" layout=\"nodisplay\"><div id=\"ui\"><p>{}</p></div></amp-consent><footer>{}</footer></body></html>",
        head(doc, "<script async src=\"https://cdn.ampproject.org/v0.js\"></script>\n"),
        doc.title,
        doc.author,
        doc.date,
        long_date(&doc.date),
        body(&doc.blocks, Marks::P, "h2"),
        extras.say("Advertisement: cheap loans from Fennel Finance"),
        extras.say(COOKIES),
        extras.say(RIGHTS)
    )
}

/// A tabloid: teasers everywhere, a list of key points, and an empty advert frame between all paragraphs.
fn tabloid(doc: &Doc, extras: &mut Extras) -> String {
    let text = body(&doc.blocks, Marks::Div("article__text"), "h4");
    let advert = extras.say("Sponsored: ten tricks that plumbers do not want you to know");
    let text = text.replacen(
        "</div>\n",
        &format!("</div>\n<div class=\"ad-slot\" data-ad=\"1\"><span>{advert}</span></div>\n"),
        1,
    );
    let ticker = extras.links(&related(doc, 10), ("<div class=\"ticker__item\">", "</div>"));
    let rail = extras.links(
        &related(doc, 4),
        ("<div class=\"rail__teaser\"><img src=x.jpg alt=\"\">", "<span class=\"cta\">Watch now</span></div>"),
    );
    format!(
        "{}<body><div class=\"cookie-banner\" style=\"position:fixed;bottom:0\"><span>{}</span><a href=\"#\">OK</a></div><div class=\"ticker\">{ticker}</div>\
         <div class=\"wrap\"><div class=\"col-main\"><div class=\"article\"><div class=\"article__head\"><h1>{}</h1><div class=\"article__meta\">{} | {}</div></div>\
         <div class=\"article__body\">{text}</div><div class=\"article__tags\"><a href=\"#\">#calderland</a> <a href=\"#\">#topstory</a></div></div>\
         <div class=\"reader-comments\"><h3>Readers say</h3><div class=\"c\"><i>anon</i> <p>{}</p></div></div></div>\
         <div class=\"col-rail\">{rail}<div class=\"poll\"><p>{}</p><label><input type=radio> Yes</label><label><input type=radio> No</label></div></div></div>\
         <div class=\"bottom\">{}</div></body></html>",
        head(doc, "<style>.sr{position:absolute;left:-9999px}</style>"),
        extras.say(COOKIES),
        doc.title,
        doc.author,
        long_date(&doc.date),
        extras.say(COMMENT),
        extras.say("Today's poll: should the clocks still be changed twice a year?"),
        extras.say(RIGHTS)
    )
}

/// Class names that describe the look and not the meaning.
fn utility(doc: &Doc, extras: &mut Extras) -> String {
    let menu: String = ["Latest", "Longreads", "Opinion", "Audio"]
        .iter()
        .map(|name| format!("<a class=\"px-2 py-1 text-sm\" href=\"#\">{name}</a>"))
        .collect();
    let cards = extras.links(
        &related(doc, 6),
        (
            "<div class=\"w-1/3 p-4 rounded shadow\"><div class=\"font-bold\">",
            "</div><div class=\"text-xs\">5 min</div></div>",
        ),
    );
    let marks = Marks::Div("mb-4 leading-7 text-lg");
    format!(
        "{}<body class=\"bg-white text-gray-900\"><div class=\"sticky top-0 flex\">{menu}<span class=\"hidden\">{}</span></div>\
         <div class=\"max-w-prose mx-auto\"><div class=\"text-4xl font-serif\"><h1>{}</h1></div><div class=\"flex text-xs\"><div>{}</div>\
         <time datetime=\"{}\">{}</time></div><div class=\"mt-8\">{}</div></div>\
         <div class=\"bg-gray-100 p-8\"><div class=\"text-xl\">Up next</div><div class=\"flex flex-wrap\">{cards}</div></div>\
         <div class=\"bg-black text-white p-8\"><div>{}</div><div class=\"text-xs\">{}</div></div></body></html>",
        head(doc, "<style>.hidden{display:none}.mx-auto{margin:0 auto}</style>"),
        extras.say("Menu for members who have signed in with a subscription"),
        doc.title,
        doc.author,
        doc.date,
        long_date(&doc.date),
        body(&doc.blocks, marks, "h2"),
        extras.say(LETTER),
        extras.say(RIGHTS)
    )
}
