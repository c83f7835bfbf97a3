//! Shops, four skeletons, and recipes, three.

use super::{Block, Doc, Extras, Marks, body, related};

const RETURNS: &str = "Free delivery from 60 crowns, and thirty days to send things back.";
const REVIEW: &str = "Five stars for the parcel service, the box came a day early.";

pub fn product(doc: &Doc, extras: &mut Extras) -> String {
    match doc.variant % 4 {
        0 => hosted(doc, extras),
        1 => market(doc, extras),
        2 => plain(doc, extras),
        _ => tabs(doc, extras),
    }
}

/// A hosted shop's theme.
fn hosted(doc: &Doc, extras: &mut Extras) -> String {
    let cards = extras.links(
        &related(doc, 4),
        (
            "<li class=\"grid__item\"><div class=\"card\"><h3>",
            "</h3><span class=\"price\">from 19 crowns</span></div></li>",
        ),
    );
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} – Shop</title><meta property=\"og:type\" content=\"product\"><meta property=\"og:title\" content=\"{0}\">\
         <script type=\"application/ld+json\">{{\"@context\":\"https://schema.org/\",\"@type\":\"Product\",\"name\":\"{0}\"}}</script></head><body class=\"template-product\">\
         <div class=\"announcement-bar\"><p>{1}</p></div><header class=\"header\"><a href=\"/\">Shop</a><details><summary>Menu</summary><ul><li><a href=\"/collections/new\">New in</a></li><li><a href=\"/collections/sale\">Sale</a></li></ul></details><a href=\"/cart\">Cart (0)</a></header>\
         <main id=\"MainContent\"><section class=\"product\"><div class=\"product__media\"><img src=\"//cdn/x.jpg\" alt=\"{0}\"></div><div class=\"product__info\"><h1>{0}</h1><form><select><option>Moss</option><option>Ash</option></select><button>Add to cart</button></form>\
         <div class=\"product__description rte\">{2}</div></div></section><section class=\"related-products\"><h2>You may also like</h2><ul>{cards}</ul></section></main>\
         <footer class=\"footer\"><p>{3}</p><ul><li><a href=\"/policies/refund\">Refund policy</a></li></ul></footer></body></html>",
        doc.title,
        extras.say(RETURNS),
        body(&doc.blocks, Marks::P, "h3"),
        extras.say("Subscribe to our emails and get ten percent off your first order.")
    )
}

/// A marketplace: bullets, tables, reviews and "bought together" everywhere.
fn market(doc: &Doc, extras: &mut Extras) -> String {
    let together = extras.links(&related(doc, 3), ("<div class=\"a-carousel-card\">", "<span>24.90</span></div>"));
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} : Fellmarket</title></head><body><div id=\"navbar\"><a href=\"/\">Fellmarket</a><ul><li><a href=\"#\">Departments</a></li><li><a href=\"#\">Your lists</a></li><li><a href=\"#\">Gift cards</a></li></ul></div>\
         <div id=\"dp-container\"><div id=\"leftCol\"><img alt=\"\" src=x.jpg></div><div id=\"centerCol\"><h1 id=\"title\"><span id=\"productTitle\">{0}</span></h1><div id=\"averageCustomerReviews\"><span>4.3 out of 5</span> <a href=\"#reviews\">87 ratings</a></div>\
         <div id=\"feature-bullets\">{1}</div></div><div id=\"rightCol\"><div id=\"buybox\"><p>{2}</p><button>Buy now</button></div></div></div>\
         <div id=\"sims\"><h2>Frequently bought together</h2>{together}</div><div id=\"reviews\"><h2>Top reviews</h2><div class=\"review\"><span>parcelfan</span><div class=\"review-text\">{3}</div></div></div>\
         <div id=\"navFooter\"><a href=\"#\">Back to top</a><p>{4}</p></div></body></html>",
        doc.title,
        body(&doc.blocks, Marks::P, "h4"),
        extras.say(RETURNS),
        extras.say(REVIEW),
        extras.say("Conditions of use and sale. Interest-based adverts notice.")
    )
}

/// A maker's own page without a shop system.
fn plain(doc: &Doc, extras: &mut Extras) -> String {
    format!(
        "<!DOCTYPE html><html><head><meta charset=utf-8><title>{0}</title></head><body><div class=top><a href=/>Start</a> <a href=/products>Products</a> <a href=/dealers>Dealers</a></div>\
         <div class=text><h1>{0}</h1>{1}</div><div class=box>{2}</div></body></html>",
        doc.title,
        body(&doc.blocks, Marks::P, "h2"),
        extras.say(RETURNS)
    )
}

/// Text in tabs, of which only the first is open.
fn tabs(doc: &Doc, extras: &mut Extras) -> String {
    let (first, rest) = doc.blocks.split_at(doc.blocks.len() / 2);
    let crumbs = "<ol class=\"breadcrumb\"><li><a href=\"/\">Home</a></li><li><a href=\"/all\">All</a></li></ol>";
    let upsell = extras.links(&related(doc, 4), ("<article class=\"product-miniature\"><h2>", "</h2></article>"));
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title></head><body id=\"product\"><nav class=\"header-nav\"><a href=\"/contact\">Contact us</a><a href=\"/login\">Sign in</a></nav>{crumbs}\
         <section id=\"main\"><h1>{0}</h1><div class=\"tabs\"><ul class=\"nav nav-tabs\" role=\"tablist\"><li><a data-toggle=\"tab\" href=\"#description\">Description</a></li><li><a data-toggle=\"tab\" href=\"#details\">Product details</a></li></ul>\
         <div class=\"tab-content\"><div class=\"tab-pane active\" id=\"description\" role=\"tabpanel\">{1}</div><div class=\"tab-pane\" id=\"details\" role=\"tabpanel\">{2}</div></div></div></section>\
         <section class=\"crossselling\"><p class=\"h5\">Customers also bought</p>{upsell}</section><div class=\"modal\" style=\"display:none\"><p>{3}</p></div><footer id=\"footer\"><p>{4}</p></footer></body></html>",
        doc.title,
        body(first, Marks::P, "h3"),
        body(rest, Marks::P, "h3"),
        extras.say("The product was added to your cart. Continue shopping?"),
        extras.say(RETURNS)
    )
}

pub fn recipe(doc: &Doc, extras: &mut Extras) -> String {
    let more = extras.links(&related(doc, 6), ("<div class=\"recipe-card\">", "</div>"));
    let nutrition = extras.say("Rate this recipe and tell your friends about it.");
    let date = &doc.date;
    match doc.variant % 3 {
        0 => format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} | Salt and Rye</title><meta property=\"article:published_time\" content=\"{date}\"></head><body><header><nav><a href=\"/\">Recipes</a><a href=\"/seasons\">Seasons</a></nav></header>\
             <main><article class=\"tasty-recipes-wrap\"><h1>{0}</h1><button>Jump to recipe</button><div class=\"entry\">{1}</div><div class=\"rating\">{nutrition}</div></article></main><aside class=\"sidebar\"><h4>More to cook</h4>{more}</aside></body></html>",
            doc.title,
            body(&doc.blocks, Marks::P, "h2")
        ),
        1 => {
            let steps =
                body(&doc.blocks, Marks::P, "h3").replace("<ul>", "<ol class=\"steps\">").replace("</ul>", "</ol>");
            format!(
                "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><script type=\"application/ld+json\">{{\"@type\":\"Recipe\",\"name\":\"{0}\",\"datePublished\":\"{date}\"}}</script></head>\
                 <body><div class=\"page\"><div class=\"hero\"><h1 class=\"hero__title\">{0}</h1></div><div class=\"columns\"><div class=\"wprm-recipe-container\" itemscope itemtype=\"http://schema.org/Recipe\">{steps}</div><div class=\"ads\"><p>{nutrition}</p></div></div><div class=\"more\">{more}</div></div></body></html>",
                doc.title
            )
        }
        _ => {
            let intro: Vec<&Block> = doc.blocks.iter().collect();
            format!(
                "<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><meta name=\"date\" content=\"{date}\"></head><body><table width=700 align=center data-blocks={2}><tr><td><a href=/>Index</a></td></tr><tr><td><h1>{0}</h1>{1}</td></tr><tr><td>{nutrition}<br>{more}</td></tr></table></body></html>",
                doc.title,
                body(&doc.blocks, Marks::P, "h3"),
                intro.len()
            )
        }
    }
}
