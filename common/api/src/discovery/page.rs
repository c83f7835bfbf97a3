//! What the HTML pages of this service have in common. They load nothing: no script, no font, no picture from anywhere.

use base::digest::sha256;
use base::encoding::base64_standard;

/// The one style sheet. On a phone, the rows of a table become blocks.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff;overflow-wrap:anywhere}\
h1{line-height:1.2}h2{margin-top:2rem;line-height:1.25}.lead{font-size:1.15rem}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.5rem .75rem .5rem 0}\
tr{border-bottom:1px solid #8886}td.price{white-space:nowrap;font-variant-numeric:tabular-nums}\
code,pre{font-size:.9em}pre{overflow:auto;padding:.75rem;border:1px solid #8886;border-radius:.4rem}\
summary{cursor:pointer;padding:.25rem 0}small{color:#555}li{margin:.25rem 0}\
figure{margin:1.5rem 0}svg{width:100%;max-width:30rem;height:auto}\
@media(max-width:40rem){body{margin:1rem auto}table,tbody,tr,td{display:block}thead{display:none}tr{padding:.75rem 0}\
td{padding:0}td.price{white-space:normal;font-weight:600}}\
@media(prefers-color-scheme:dark){body{color:#e8e8e8;background:#161616}small{color:#aaa}a{color:#8ab4f8}}";

/// A page with this HTML, in which all texts are [`escaped`], and its Content-Security-Policy, which allows only its own
/// style.
pub(super) fn page(title: &str, main: &str) -> (String, String) {
    let title = escaped(title);
    let html = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>\
         <meta name=viewport content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style></head>\
         <body><main>{main}</main></body></html>"
    );
    let style = base64_standard(&sha256(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    );
    (html, policy)
}

/// Escapes text for HTML elements and quoted attributes.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
