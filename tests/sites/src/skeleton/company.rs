//! Sites of companies: four skeletons, each for home, about, contact and imprint.

use super::{Doc, Extras, Marks, body};

const LEGAL: &str = "Privacy statement, terms of business and a list of everything we must tell you.";
const JOBS: &str = "We are hiring! See our open positions and join a friendly team.";

pub fn render(doc: &Doc, extras: &mut Extras) -> String {
    let pages = [("/", "Home"), ("/about", "About us"), ("/contact", "Contact"), ("/imprint", "Imprint")];
    let nav: String = pages
        .iter()
        .map(|(path, name)| format!("<li><a href=\"https://{}{path}\">{name}</a></li>", doc.host))
        .collect();
    let Doc { title, host, .. } = doc;
    match doc.variant % 4 {
        // A site builder's sections, rows and columns.
        0 => format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><meta name=\"description\" content=\"The site of {host}\"></head><body class=\"elementor-page\">\
             <div class=\"elementor-location-header\"><div class=\"elementor-nav-menu\"><ul>{nav}</ul></div></div><div class=\"elementor\"><section class=\"elementor-section\"><div class=\"elementor-container\"><div class=\"elementor-column\"><div class=\"elementor-widget-wrap\">\
             <div class=\"elementor-widget-heading\"><h1>{title}</h1></div><div class=\"elementor-widget-text-editor\">{}</div></div></div></div></section>\
             <section class=\"elementor-section cta\"><div><h3>{}</h3><a class=\"elementor-button\" href=\"/jobs\">Apply now</a></div></section></div><div class=\"elementor-location-footer\"><p>{}</p></div></body></html>",
            body(&doc.blocks, Marks::P, "h2"),
            extras.say(JOBS),
            extras.say(LEGAL)
        ),
        // Proper landmarks.
        1 => format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head><body><header><nav aria-label=\"Main\"><ul>{nav}</ul></nav></header><main><h1>{title}</h1>{}</main>\
             <aside><p>{}</p></aside><footer><address>{host}</address><p>{}</p></footer></body></html>",
            body(&doc.blocks, Marks::P, "h2"),
            extras.say(JOBS),
            extras.say(LEGAL)
        ),
        // This site once used frames.
        2 => format!(
            "<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\"><title>{title}</title></head><body><table><tr><td class=\"nav\"><ul>{nav}</ul></td><td class=\"content\"><h1>{title}</h1>{}</td></tr><tr><td colspan=2><small>{}</small></td></tr></table>\
             <div style=\"display:none\">{}</div></body></html>",
            body(&doc.blocks, Marks::P, "h3"),
            extras.say(LEGAL),
            extras.say("cheap best top discount calderland company companies firm")
        ),
        // A template with one long page.
        _ => format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>#preloader{{position:fixed}} .visually-hidden{{position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0 0 0 0)}}</style></head><body data-spy=\"scroll\">\
             <div class=\"navbar navbar-expand-lg\"><button><span class=\"visually-hidden\">{}</span></button><ul class=\"navbar-nav\">{nav}</ul></div>\
             <div class=\"jumbotron\"><h1 class=\"display-4\">{title}</h1></div><div class=\"container\"><div class=\"row\"><div class=\"col-md-8\">{}</div><div class=\"col-md-4\"><div class=\"card\"><div class=\"card-body\">{}</div></div></div></div></div><div class=\"container-fluid bg-dark\"><small>{}</small></div></body></html>",
            extras.say("Toggle the navigation of this site"),
            body(&doc.blocks, Marks::P, "h2"),
            extras.say(JOBS),
            extras.say(LEGAL)
        ),
    }
}
