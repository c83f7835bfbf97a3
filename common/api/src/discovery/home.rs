//! The page that a person sees at `/`: what this is, what it costs, how to pay, and where to go on. Programs get JSON there.

use super::page::{self, escaped};
use super::{CLIENTS, Site, families, first};

/// One paid call as a picture.
const CALL: &str = include_str!("texts/call.svg");

/// The page, and its Content-Security-Policy.
pub(super) fn page(site: &Site) -> (String, String) {
    let families: String = families::sold(site)
        .iter()
        .map(|(family, tools)| {
            let [title, about, extent] = [family.title, family.about, &families::extent(tools)].map(escaped);
            format!(
                "<tr><td><a href=\"/pricing#{}\">{title}</a><br>{about}</td><td class=price>{extent}</td></tr>",
                family.name
            )
        })
        .collect();
    let (first_path, first_body) = first(site);
    let texts = [("first_path", first_path), ("first_body", first_body.as_str())];
    let clients: String = snippets(CLIENTS)
        .map(|(language, code)| {
            let language = if language == "js" { "JavaScript" } else { "Python" };
            let code = escaped(&site.fill(code, &texts));
            format!("<details><summary>A client in {language}</summary><pre><code>{code}</code></pre></details>")
        })
        .collect();
    let [service, origin, network, token] =
        [&site.service, &site.origin, &site.network, &site.token].map(|text| escaped(text));
    let count = site.tools().count();
    let first = escaped(&format!("curl -i -X POST {}{first_path}", site.origin));
    let main = format!(
        "<h1>{service}</h1>\
         <p class=lead>{count} tools for software agents, sold call by call. There are no accounts and no API keys: a wallet \
         with USDC is enough.</p>\
         <figure>{CALL}<figcaption><small>One paid call. A published client does all of it.</small></figcaption></figure>\
         <h2>What it costs</h2><table><tbody>{families}</tbody></table>\
         <p><a href=\"/pricing\">Every tool with its price</a>. What is not sold in this deployment is not listed.</p>\
         <h2>How to pay</h2><ol>\
         <li>Give the agent a wallet with USDC on {network} (<code>{token}</code>). It needs no other coin.</li>\
         <li>Let it call through a published x402 client, which signs the price and sends the call again. Such clients sign \
         at most 1 USD a payment unless you raise that cap.</li>\
         <li>Or keep the key: buy credits, and give the agent an access token that spends them within your budget \
         (<a href=\"/guides/paying.md\">how</a>).</li>\
         <li>Work that fails is paid back as credits, at once. With an <code>Idempotency-Key</code>, no retry buys twice.\
         </li></ol>\
         <p>To see a price, which is free:</p><pre><code>{first}</code></pre>{clients}\
         <h2>Where to go on</h2><ul>\
         <li>You: <a href=\"/pricing\">prices</a>, <a href=\"/docs\">every operation</a>, \
         <a href=\"/guides/security.md\">what is trusted and what is not</a>, <a href=\"/v1/status\">status</a></li>\
         <li>Your agent: <a href=\"/llms.txt\">llms.txt</a>, <a href=\"/skill.md\">a skill</a>, \
         <a href=\"/openapi.json\">OpenAPI</a>, MCP at <code>{origin}/mcp</code></li>\
         <li>Sellers: <a href=\"/guides/marketplace.md\">selling texts and services</a>, \
         <a href=\"/v1/soul/browse\">who sells already</a></li></ul>\
         <p><small>Programs get this page as JSON: send <code>Accept: application/json</code>.</small></p>"
    );
    page::page(&format!("{}: tools for agents", site.service), &main)
}

/// The fenced blocks of a Markdown text, each with its language.
fn snippets(text: &str) -> impl Iterator<Item = (&str, &str)> {
    // Odd parts are inside of a fence.
    text.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clients_are_on_the_page() {
        let languages: Vec<&str> = snippets(CLIENTS).map(|(language, _)| language).collect();
        assert_eq!(languages, ["js", "python"]);
        assert!(snippets(CLIENTS).all(|(_, code)| code.contains("AGENT_KEY") && !code.contains("```")));
    }
}
