//! Blogs: six skeletons.

use super::{Doc, Extras, Marks, body, long_date, related};

const ABOUT: &str = "I write about what I see on the way. Opinions are mine, mistakes as well.";
const REPLY: &str = "Great post, exactly my experience! By the way, how do you get your photographs so sharp?";
const RIGHTS: &str = "Text and pictures may be shared for free, with a link to this place.";

pub fn render(doc: &Doc, extras: &mut Extras) -> String {
    match doc.variant % 6 {
        0 => press(doc, extras),
        1 => hand_made(doc, extras),
        2 => bullets(doc, extras),
        3 => hosted(doc, extras),
        4 => minimal(doc, extras),
        _ => breaks(doc, extras),
    }
}

/// The most widely used system, with a block theme.
fn press(doc: &Doc, extras: &mut Extras) -> String {
    let next = extras.links(&related(doc, 2), ("<div class=\"wp-block-post-navigation-link\">", "</div>"));
    let cloud: String = ["walking", "machines", "water", "bread"]
        .iter()
        .map(|tag| format!("<a href=\"/tag/{tag}\" style=\"font-size:12pt\">{tag}</a> "))
        .collect();
    format!(
        "<!DOCTYPE html><html lang=\"en-GB\"><head><meta charset=\"UTF-8\"><title>{0} – Notes</title><meta name=\"generator\" content=\"Press 6.4\">\
         <meta property=\"article:published_time\" content=\"{1}T20:11:09+00:00\"><link rel=\"alternate\" type=\"application/rss+xml\" href=\"/feed.xml\">\
         <style>.screen-reader-text{{clip:rect(1px,1px,1px,1px);position:absolute!important;height:1px;width:1px;overflow:hidden}}</style></head>\
         <body class=\"wp-singular\"><a class=\"skip-link screen-reader-text\" href=\"#wp--skip-link--target\">{2}</a>\
         <header class=\"wp-block-template-part\"><p class=\"wp-block-site-title\"><a href=\"/\">Notes</a></p><nav class=\"wp-block-navigation\"><ul><li><a href=\"/about\">About</a></li><li><a href=\"/archive\">Archive</a></li></ul></nav></header>\
         <main class=\"wp-block-group\" id=\"wp--skip-link--target\"><h1 class=\"wp-block-post-title\">{0}</h1><div class=\"wp-block-post-date\"><time datetime=\"{1}\">{3}</time></div>\
         <div class=\"entry-content wp-block-post-content is-layout-constrained\">{4}</div>\
         <div class=\"wp-block-comments\"><h2>One reply</h2><ol class=\"wp-block-comment-template\"><li><div class=\"wp-block-comment-content\"><p>{5}</p></div></li></ol></div>{next}</main>\
         <footer class=\"wp-block-template-part\"><p>{6}</p><p class=\"wp-block-tag-cloud\">{cloud}</p></footer></body></html>",
        doc.title,
        doc.date,
        extras.say("Skip to the content of this page"),
        long_date(&doc.date),
        body(&doc.blocks, Marks::P, "h2"),
        extras.say(REPLY),
        extras.say(ABOUT)
    )
}

/// Written by hand, in reading order, with hardly any classes.
fn hand_made(doc: &Doc, extras: &mut Extras) -> String {
    let older = extras.links(&related(doc, 3), ("<li>", ""));
    format!(
        "<!doctype html>\n<meta charset=utf-8>\n<title>{0}</title>\n<style>body{{max-width:40em;margin:auto}}</style>\n\
         <p><a href=/>home</a> / <a href=/posts>posts</a> / <a href=/feed.xml>feed</a>\n<h1>{0}</h1>\n<p><small>{1}</small>\n{2}\n<hr>\n\
         <footer><p>{3}<p>older:<ul>{older}</ul></footer>\n",
        doc.title,
        long_date(&doc.date),
        body(&doc.blocks, Marks::OpenP, "h2"),
        extras.say(RIGHTS)
    )
}

/// A hosted blog of twenty years ago.
fn bullets(doc: &Doc, extras: &mut Extras) -> String {
    let archive: String = (2009..2025)
        .rev()
        .map(|year| format!("<li class='archivedate'><a href='/{year}/'>► {year}</a> ({})</li>", year % 40))
        .collect();
    let links = extras.links(&related(doc, 5), ("<li>", "</li>"));
    format!(
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\"><html xmlns='http://www.w3.org/1999/xhtml'>\
         <head><meta content='text/html; charset=UTF-8' http-equiv='Content-Type'/><title>Old Lantern: {0}</title></head><body><div class='navbar section' id='navbar'><a href='#'>Next blog»</a></div>\
         <div id='outer-wrapper'><div id='header-wrapper'><h1 class='title'><a href='/'>Old Lantern</a></h1><p class='description'>{1}</p></div>\
         <div id='content-wrapper'><div id='main-wrapper'><h2 class='date-header'><span>{2}</span></h2><div class='post hentry'><h3 class='post-title entry-title'>{0}</h3>\
         <div class='post-body entry-content'>{3}<div style='clear: both;'></div></div><div class='post-footer'>Posted by {4} at <abbr class='published' title='{5}T09:00:00Z'>9:00 AM</abbr></div></div>\
         <div class='comments' id='comments'><h4>1 comment:</h4><dl><dt>Anonymous said...</dt><dd><p>{6}</p></dd></dl></div></div>\
         <div id='sidebar-wrapper'><div class='widget'><h2>Blog Archive</h2><ul>{archive}</ul></div><div class='widget'><h2>Links</h2><ul>{links}</ul></div></div></div></div></body></html>",
        doc.title,
        extras.say(ABOUT),
        long_date(&doc.date),
        body(&doc.blocks, Marks::P, "h4"),
        doc.author,
        doc.date,
        extras.say(REPLY)
    )
}

/// A hosted platform with follow buttons, claps and recommendations.
fn hosted(doc: &Doc, extras: &mut Extras) -> String {
    let more = extras.links(&related(doc, 4), ("<div class=\"ab ac\"><h2>", "</h2><p>in Calder Stories</p></div>"));
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} | by {1}</title><meta name=\"author\" content=\"{1}\"><meta property=\"article:published_time\" content=\"{2}T12:00:00.000Z\"></head>\
         <body><div id=\"root\"><div class=\"a b c\"><div class=\"d e\"><a href=\"/signin\">Sign in</a> <a href=\"/plans\">Get unlimited access</a></div>\
         <article><div class=\"f g\"><section><div><h1 class=\"pw-post-title\">{0}</h1><div class=\"h i\"><a href=\"/@x\">{1}</a> · <button>Follow</button> · <span>4 min read</span> · <span>{3}</span></div>\
         <div class=\"j k\"><button aria-label=\"clap\">128</button><button>Listen</button><button>Share</button></div>{4}</div></section></div></article>\
         <div class=\"l m\"><p>{5}</p></div><div class=\"n\"><h2>More from this author</h2>{more}</div>\
         <div class=\"overlay\" role=\"dialog\"><h2>{6}</h2></div></div></div></body></html>",
        doc.title,
        doc.author,
        doc.date,
        long_date(&doc.date),
        body(&doc.blocks, Marks::P, "h2"),
        extras.say(ABOUT),
        extras.say("Create an account to read the full story. It is free for a month.")
    )
}

/// A static generator's default theme.
fn minimal(doc: &Doc, extras: &mut Extras) -> String {
    let toc: String =
        ["Beginning", "Middle", "End"].iter().map(|name| format!("<li><a href=\"#{name}\">{name}</a></li>")).collect();
    let pager = extras.links(&related(doc, 2), ("<span class=\"pager\">", "</span>"));
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><meta name=\"description\" content=\"About {0}\"></head><body>\
         <header class=\"site-header\" role=\"banner\"><div class=\"wrapper\"><a class=\"site-title\" href=\"/\">Kitewind</a><nav class=\"site-nav\"><input type=\"checkbox\"><a href=\"/about/\">About</a></nav></div></header>\
         <main class=\"page-content\"><div class=\"wrapper\"><article class=\"post h-entry\" itemscope itemtype=\"http://schema.org/BlogPosting\"><header class=\"post-header\"><h1 class=\"p-name\" itemprop=\"headline\">{0}</h1>\
         <p class=\"post-meta\"><time class=\"dt-published\" datetime=\"{1}T00:00:00+00:00\" itemprop=\"datePublished\">{2}</time> • <span itemprop=\"author\">{3}</span></p></header>\
         <details class=\"toc\"><summary>Contents</summary><ol>{toc}</ol></details><div class=\"post-content e-content\" itemprop=\"articleBody\">{4}</div>{pager}</article></div></main>\
         <footer class=\"site-footer h-card\"><div class=\"wrapper\"><p>{5}</p><p class=\"rss-subscribe\">subscribe <a href=\"/feed.xml\">via RSS</a></p></div></footer></body></html>",
        doc.title,
        doc.date,
        long_date(&doc.date),
        doc.author,
        body(&doc.blocks, Marks::P, "h2"),
        extras.say(RIGHTS)
    )
}

/// No paragraphs, only line breaks, in a div next to a column of badges.
fn breaks(doc: &Doc, extras: &mut Extras) -> String {
    let links = extras.links(&related(doc, 6), ("", "<br>"));
    format!(
        "<html><head><meta charset=\"utf-8\"><title>{0}</title></head><body><div id=left><img src=me.gif alt=\"me\"><br>{1}<br><br>{links}</div>\
         <div id=right><h1>{0}</h1><i>{2}</i><br><br>\n{3}</div><div id=bottom><a href=\"mailto:x@oldlantern.example\">mail me</a> | <a href=\"/guestbook\">guest book</a><br>{4}</div></body></html>",
        doc.title,
        extras.say(ABOUT),
        long_date(&doc.date),
        body(&doc.blocks, Marks::Br, "b"),
        extras.say(RIGHTS)
    )
}
