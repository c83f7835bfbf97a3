//! Oddities of real sites: bad markup, hidden text, nothing without scripts, endless links, unusual types.

use crate::{PageKind, SitePage, Truth};

const HOST: &str = "odd.example";
const LIGHTHOUSE: [&str; 4] = [
    "The lighthouse of Calder Head has shown a white flash every eleven seconds since 1864.",
    "Its lens was ground in Ostermoor and carried up the cliff by forty people in three days.",
    "Since 1998 nobody lives there, and the lamp is looked after from Port Calder.",
    "On the first Sunday of every month visitors may climb the 211 steps to the gallery.",
];

struct Odd {
    path: &'static str,
    content_type: &'static str,
    body: String,
    boilerplate: &'static [&'static str],
    headers: Vec<(&'static str, String)>,
    noindex: bool,
    needs_browser: bool,
    empty: bool,
}

fn odd(path: &'static str, body: String, boilerplate: &'static [&'static str]) -> Odd {
    let content_type = "text/html; charset=utf-8";
    Odd {
        path,
        content_type,
        body,
        boilerplate,
        headers: Vec::new(),
        noindex: false,
        needs_browser: false,
        empty: false,
    }
}

fn paras() -> String {
    LIGHTHOUSE.iter().map(|text| format!("<p>{text}</p>\n")).collect()
}

fn shell(root: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Calder Head</title><link href=\"/static/main.css\" rel=\"stylesheet\">\
         <script defer src=\"/static/main.8f3a.js\"></script></head><body>{root}<script>window.__CONFIG__={{\"api\":\"/api\",\"page\":\"lighthouse\"}};{}</script></body></html>",
        "function a(b){return b&&b.length?a(b.slice(1)):0}".repeat(40)
    )
}

pub fn pages() -> Vec<SitePage> {
    odds().into_iter().map(page).collect()
}

fn page(odd: Odd) -> SitePage {
    SitePage {
        host: HOST.to_owned(),
        path: odd.path.to_owned(),
        content_type: odd.content_type.to_owned(),
        body: odd.body.into_bytes(),
        headers: odd.headers,
        kind: PageKind::Odd,
        topic: None,
        truth: Truth {
            title: "Calder Head".to_owned(),
            main_text: if odd.needs_browser || odd.empty { Vec::new() } else { LIGHTHOUSE.map(str::to_owned).to_vec() },
            boilerplate: odd.boilerplate.iter().map(|text| (*text).to_owned()).collect(),
            noindex: odd.noindex,
            needs_browser: odd.needs_browser,
            ..Truth::default()
        },
    }
}

fn odds() -> Vec<Odd> {
    let text = paras();
    let head = "<head><meta charset=utf-8><title>Calder Head</title></head>";
    let endless: String = (0..400).map(|n| format!("<div class=\"teaser\"><a href=\"https://{HOST}/endless?page={n}\">You might also be interested in part {n} of this endless list</a></div>")).collect();
    let menu: String = (0..150).map(|n| format!("<li><a href=\"/c/{n}\">Department {n}</a><ul><li><a href=\"/c/{n}/all\">Everything in department {n}</a></li></ul></li>")).collect();
    let spans: String = LIGHTHOUSE
        .iter()
        .map(|text| text.split(' ').map(|word| format!("<span>{word}</span> ")).collect::<String>() + "<br>")
        .collect();
    let mut list = vec![
        odd("/unclosed", format!("<html>{head}<body><div><div><h1>Calder Head<div><p>{}<p>{}<b><i>{}</b></i><td>{}</div></div></div></p></span>", LIGHTHOUSE[0], LIGHTHOUSE[1], LIGHTHOUSE[2], LIGHTHOUSE[3]), &[]),
        odd("/no-html", format!("Calder Head<br>{}", LIGHTHOUSE.join("<br>\n")), &[]),
        odd("/twice", format!("<html>{head}<body><h1>Calder Head</h1>{text}</body></html><html><body><div class=\"footer\">Hosted for free by Smallhost, upgrade today</div></body></html>"), &["Hosted for free by Smallhost, upgrade today"]),
        odd("/spans", format!("<html>{head}<body><div class=\"x\"><h1>Calder Head</h1><div>{spans}</div></div></body></html>"), &[]),
        odd("/hidden", format!(
            "<html>{head}<style>.a1{{display:none}}.a2{{position:absolute;left:-5000px}}</style><body><h1>Calder Head</h1>{text}<p class=a1>Hidden by a class of the sheet</p><p class=a2>Moved out of the window</p>\
             <p style=\"font-size:0\">Written in letters of no size</p><p hidden>Hidden by the attribute</p><p style=\"color:#fff;background:#fff\">White upon white</p><p aria-hidden=true style=\"opacity:0\">Seen through entirely</p>\
             <details><summary>More</summary>Opens at a click</details><template><p>Never shown by a browser</p></template><noscript>Shown without scripts only</noscript><!-- said in a comment --></body></html>"
        ), &["Hidden by a class of the sheet", "Moved out of the window", "Written in letters of no size", "Hidden by the attribute", "White upon white", "Seen through entirely", "Never shown by a browser", "said in a comment"]),
        odd("/endless", format!("<html>{head}<body><div class=\"article\"><h1>Calder Head</h1>{text}</div><div class=\"infinite\">{endless}</div></body></html>"), &["You might also be interested in part 7 of this endless list"]),
        odd("/menus", format!("<html>{head}<body><div class=\"mega\"><ul>{menu}</ul></div><div class=\"m\"><h1>Calder Head</h1>{text}</div><div><ul>{menu}</ul></div></body></html>"), &["Everything in department 77"]),
        odd("/banner-first", format!(
            "<html>{head}<body><div id=\"onetrust-consent-sdk\"><div id=\"onetrust-banner-sdk\"><h2>About your privacy</h2><p>By clicking accept you agree to the storing of cookies on your device to enhance site navigation, analyse site usage, and assist in our marketing efforts. You can change your mind at any time in the settings, which you find at the foot of every page, below the imprint, beside the terms.</p><button>Reject all</button></div></div><div class=\"c\"><h1>Calder Head</h1>{text}</div></body></html>"
        ), &["By clicking accept you agree to the storing of cookies on your device"]),
        odd("/comments-heavy", format!(
            "<html>{head}<body><article><h1>Calder Head</h1>{text}</article><section id=\"comments\" class=\"comments\"><h2>60 comments</h2>{}</section></body></html>",
            (0..60).map(|n| format!("<div class=\"comment\" id=\"c{n}\"><p>Comment number {n}: I have been there as well, and the steps are steeper than anybody tells you, believe me.</p></div>")).collect::<String>()
        ), &["Comment number 31: I have been there as well"]),
        odd("/iframe", format!("<html>{head}<body><iframe src=\"https://advert.example/frame\">Your browser cannot show frames</iframe><h1>Calder Head</h1>{text}<object data=x.swf>Install the plugin to see the film</object></body></html>"), &["Your browser cannot show frames", "Install the plugin to see the film"]),
    ];
    let scripts = [
        (
            "/app-react",
            shell("<noscript>You need to enable JavaScript to run this app.</noscript><div id=\"root\"></div>"),
        ),
        (
            "/app-vue",
            shell(
                "<noscript><strong>We're sorry but this site doesn't work properly without JavaScript enabled. Please enable it to continue.</strong></noscript><div id=\"app\"></div>",
            ),
        ),
        ("/app-loading", shell("<div id=\"__next\"><div class=\"spinner\">Loading...</div></div>")),
        ("/app-angular", shell("<app-root><div class=\"splash\"><img src=\"/logo.svg\" alt=\"\"></div></app-root>")),
    ];
    list.extend(scripts.map(|(path, body)| Odd { needs_browser: true, ..odd(path, body, &[]) }));
    list.push(Odd { empty: true, ..odd("/empty", String::new(), &[]) });
    list.push(Odd { noindex: true, ..odd("/noindex-meta", format!("<html><head><meta charset=utf-8><meta name=\"robots\" content=\"noindex, nofollow\"><title>Calder Head</title></head><body><h1>Calder Head</h1>{text}</body></html>"), &[]) });
    list.push(Odd {
        noindex: true,
        headers: vec![("x-robots-tag", "noindex".to_owned())],
        ..odd("/noindex-header", format!("<html>{head}<body><h1>Calder Head</h1>{text}</body></html>"), &[])
    });
    list.push(Odd {
        content_type: "text/plain; charset=utf-8",
        ..odd("/plain.txt", format!("Calder Head\n\n{}\n", LIGHTHOUSE.join("\n\n")), &[])
    });
    list.push(Odd {
        content_type: "text/markdown",
        ..odd("/page.md", format!("# Calder Head\n\n{}\n", LIGHTHOUSE.join("\n\n")), &[])
    });
    list.push(odd("/private/secret", format!("<html>{head}<body><h1>Calder Head</h1>{text}</body></html>"), &[]));
    list
}
