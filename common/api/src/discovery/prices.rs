//! The price list: a page for people, Markdown for everybody else. Sellers set the prices of what souls sell.

use base::digest::sha256;
use base::encoding::base64_standard;
use tools::spec::{Answer, MARKET, Price, ToolSpec};
use tools::top_up;

use super::Site;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;\
color:#1a1a1a;background:#fff}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;\
padding:.5rem .75rem .5rem 0;border-bottom:1px solid #ddd}td.price{white-space:nowrap;font-variant-numeric:tabular-nums}\
code{font-size:.9em;overflow-wrap:anywhere}small{color:#555}@media(prefers-color-scheme:dark){body{color:#e8e8e8;\
background:#161616}th,td{border-color:#333}small{color:#aaa}a{color:#8ab4f8}}";

/// A tool's price in words.
pub(super) fn words(tool: &ToolSpec) -> String {
    match tool.price {
        Price::Of { .. } if tool.sells_credits => {
            format!("the amount you buy ({} to {} USDC)", top_up::LEAST, top_up::MOST)
        }
        Price::Of { usual, .. } => format!("by its input, usually {usual} USDC"),
        Price::Asked { usual, .. } => format!("by quote, from {usual} USDC"),
        Price::Fixed(price) => format!("{price} USDC"),
    }
}

/// How the result arrives, in words.
pub(super) fn answer(tool: &ToolSpec) -> &'static str {
    match tool.answer {
        Answer::Direct => "answered at once",
        Answer::Queued => "a job to poll",
    }
}

/// A row for each thing sold here: title, price, path, summary, kind of answer.
fn rows(site: &Site) -> impl Iterator<Item = [String; 5]> {
    let row = |tool: &ToolSpec, price: String| {
        [
            tool.title.to_owned(),
            price,
            format!("POST {}", tool.path()),
            tool.summary.to_owned(),
            answer(tool).to_owned(),
        ]
    };
    let market =
        MARKET.iter().map(move |tool| row(tool, format!("the seller's price, at least {} USDC", tool.price.usual())));
    site.listed().map(move |tool| row(tool, words(tool))).chain(market)
}

/// The list as a Markdown table.
pub(super) fn table(site: &Site) -> String {
    let mut table = "| tool | price | call | what it does | answer |\n|---|---|---|---|---|\n".to_owned();
    for [title, price, call, summary, answer] in rows(site) {
        let call = call.replacen(" /", &format!(" {}/", site.origin), 1);
        table.push_str(&format!("| {title} | {price} | `{call}` | {summary} | {answer} |\n"));
    }
    table
}

const TERMS: [&str; 4] = [
    "An unpaid call answers 402 with the price and what to sign. Work that fails is paid back as credits, at once.",
    "Published x402 clients sign at most 1 USD a payment unless their owner raises the cap: calls that cost more need that cap raised first.",
    "Send the same Idempotency-Key with every retry of one purchase: then nothing is bought twice.",
    "Each wallet may make 60 paid calls a minute.",
];

pub(super) fn markdown(site: &Site) -> String {
    let terms: String = TERMS.iter().map(|term| format!("- {term}\n")).collect();
    let Site { service, network, token, .. } = site;
    format!("# Prices of {service}\n\nIn USDC on {network} (`{token}`).\n\n{}\n{terms}", table(site))
}

/// The page, and its Content-Security-Policy, which allows only its own style.
pub(super) fn page(site: &Site) -> (String, String) {
    let mut table = String::new();
    for [title, price, call, summary, answer] in rows(site) {
        let [title, price, call, summary] = [title, price, call, summary].map(|text| escaped(&text));
        table.push_str(&format!(
            "<tr><td><b>{title}</b><br>{summary}<br><code>{call}</code></td><td class=price>{price}</td><td>{answer}</td></tr>"
        ));
    }
    let terms: String = TERMS.iter().map(|term| format!("<li>{}</li>", escaped(term))).collect();
    let [service, network, token] = [&site.service, &site.network, &site.token].map(|text| escaped(text));
    let html = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Prices - {service}</title>\
         <meta name=viewport content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style></head><body><main>\
         <h1>Prices of {service}</h1><p>In USDC on {network} (<code>{token}</code>).</p>\
         <table><thead><tr><th>Tool<th>Price<th>Answer</tr></thead><tbody>{table}</tbody></table><ul>{terms}</ul></main>\
         <p><small><a href=\"/pricing.md\">As Markdown</a> · <a href=\"/v1/tools/discover\">as JSON, with schemas</a> · \
         <a href=\"/guides/paying.md\">how to pay</a> · <a href=\"/llms.txt\">for agents</a></small></p></body></html>"
    );
    let style = base64_standard(&sha256(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    );
    (html, policy)
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
