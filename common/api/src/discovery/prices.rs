//! The price list: a page for people, Markdown for everybody else. Sellers set the prices of what souls sell.

use gate::limits::Class;
use tools::spec::{Answer, MARKET, Price, ToolSpec};
use tools::top_up;

use super::page::{self, escaped};
use super::{Site, families};

/// The page folds the tools of a family that has more than these.
const FOLDED_ABOVE: usize = 8;

/// A tool's price in words.
pub(super) fn words(tool: &ToolSpec) -> String {
    match tool.price {
        Price::Of { .. } if tool.sells_credits => {
            format!("the amount you buy ({} to {} USDC)", top_up::LEAST, top_up::MOST)
        }
        Price::Of { usual, .. } => format!("by its input, usually {usual} USDC"),
        Price::Asked { usual, .. } => format!("by quote, from {usual} USDC"),
        Price::Own(price) => format!("by its input, {} to {} USDC", price.lowest(), price.highest()),
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

/// The same; sellers set the prices of what souls sell.
pub(crate) fn price(tool: &ToolSpec) -> String {
    let is_sellers = MARKET.iter().any(|sold| sold.name == tool.name);
    if is_sellers { format!("the seller's price, at least {} USDC", tool.price.usual()) } else { words(tool) }
}

/// The row of a thing that is sold: title, price, path, summary, kind of answer.
fn row(tool: &ToolSpec) -> [String; 5] {
    let call = format!("POST {}", tool.path());
    [tool.title.to_owned(), price(tool), call, tool.summary.to_owned(), answer(tool).to_owned()]
}

/// The list as a Markdown table.
pub(super) fn table(site: &Site) -> String {
    let mut table = "| tool | price | call | what it does | answer |\n|---|---|---|---|---|\n".to_owned();
    for [title, price, call, summary, answer] in site.listed().chain(site.catalog.market.iter().copied()).map(row) {
        let call = call.replacen(" /", &format!(" {}/", site.origin), 1);
        table.push_str(&format!("| {title} | {price} | `{call}` | {summary} | {answer} |\n"));
    }
    table
}

const TERMS: [&str; 3] = [
    "An unpaid call answers 402 with the price and what to sign. Work that fails is paid back as credits, at once.",
    "Published x402 clients sign at most 1 USD a payment unless their owner raises the cap: calls that cost more need that cap raised first.",
    "Send the same Idempotency-Key with every retry of one purchase: then nothing is bought twice.",
];

/// The terms, with the limits of paid calls.
fn terms(site: &Site) -> Vec<String> {
    let [usual, slow] = [Class::Paid, Class::Expensive].map(|class| class.limit().count);
    let mut limits = format!("Each wallet may make {usual} paid calls a minute.");
    let titles: Vec<&str> = site.listed().filter(|tool| tool.expensive).map(|tool| tool.title).collect();
    if !titles.is_empty() {
        limits.push_str(&format!(" Some are counted apart, {slow} a minute together: {}.", titles.join(", ")));
    }
    TERMS.iter().map(|term| (*term).to_owned()).chain([limits]).collect()
}

pub(super) fn markdown(site: &Site) -> String {
    let terms: String = terms(site).iter().map(|term| format!("- {term}\n")).collect();
    let Site { service, network, token, .. } = site;
    format!("# Prices of {service}\n\nIn USDC on {network} (`{token}`).\n\n{}\n{terms}", table(site))
}

/// The page, and its Content-Security-Policy.
pub(super) fn page(site: &Site) -> (String, String) {
    let (mut contents, mut sections) = (Vec::new(), String::new());
    for (family, tools) in families::sold(site) {
        let rows: String = tools.iter().map(|tool| html_row(tool)).collect();
        let table = format!("<table><thead><tr><th>Tool<th>Price<th>Answer</tr></thead><tbody>{rows}</tbody></table>");
        let table = match tools.len() {
            many if many > FOLDED_ABOVE => format!("<details><summary>All {many} tools</summary>{table}</details>"),
            _ => table,
        };
        let [title, about, extent] = [family.title, family.about, &families::extent(&tools)].map(escaped);
        let name = family.name;
        contents.push(format!("<a href=\"#{name}\">{title}</a>"));
        sections.push_str(&format!("<h2 id=\"{name}\">{title}</h2><p>{extent}: {about}.</p>{table}"));
    }
    let terms: String = terms(site).iter().map(|term| format!("<li>{}</li>", escaped(term))).collect();
    let [service, network, token] = [&site.service, &site.network, &site.token].map(|text| escaped(text));
    let main = format!(
        "<h1>Prices of {service}</h1><p>In USDC on {network} (<code>{token}</code>).</p><p>{}</p>\
         {sections}<h2>Terms</h2><ul>{terms}</ul>\
         <p><small><a href=\"/\">What this is</a> · <a href=\"/pricing.md\">as Markdown</a> · \
         <a href=\"/v1/tools/discover\">as JSON, with schemas</a> · <a href=\"/guides/paying.md\">how to pay</a> · \
         <a href=\"/llms.txt\">for agents</a></small></p>",
        contents.join(" · ")
    );
    page::page(&format!("Prices - {}", site.service), &main)
}

fn html_row(tool: &ToolSpec) -> String {
    let [title, price, call, summary, answer] = row(tool).map(|text| escaped(&text));
    format!(
        "<tr><td><b>{title}</b><br>{summary}<br><code>{call}</code></td><td class=price>{price}</td><td>{answer}</td></tr>"
    )
}

#[cfg(test)]
mod tests {
    use catalog::CATALOG;

    use super::*;

    #[test]
    fn the_guide_names_the_limits_and_every_tool_that_is_counted_apart() {
        let guide = include_str!("../../../../docs/PAYING.md");
        let (_, limits) = guide.split_once("## Limits").expect("a chapter");
        assert!(limits.contains(&format!("{} paid calls", Class::Paid.limit().count)));
        assert!(limits.contains(&format!("{} a minute together", Class::Expensive.limit().count)));
        for tool in CATALOG.iter().filter(|tool| tool.expensive) {
            let path = tool.path().trim_start_matches("/v1/tools/");
            assert!(limits.contains(&format!("`{path}`")), "{path}");
        }
    }
}
