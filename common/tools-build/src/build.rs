//! The catalog's entry: a website from a brief, or a change of one.

use std::time::Duration;

use base::input::{Field, FieldError, Format, Kind};
use base::money::Usdc;
use platform::http::ApiError;
use platform::net::{FetchPolicy, check_url};
use serde_json::{Map, Value, json};
use tools::spec::{Claiming, Need, Price, ToolSpec, URI};
use tools::{Runner, Toolbox, lock};
use tools_email::address::Address;
use uuid::Uuid;

use crate::{quote, site, work};

/// The price of a site with one page and five sections.
pub const USUAL: Usdc = Usdc::from_micro(1_000_000);
/// No brief costs more.
const MOST: Usdc = Usdc::from_micro(40_000_000);
/// Longest work: a build of eight pages takes a fraction of it.
const DEADLINE: Duration = Duration::from_secs(120);
pub const MAX_PAGES: usize = 8;
pub const MAX_SECTIONS: usize = 50;
const MAX_PAGE_SECTIONS: usize = 20;
pub const KINDS: [&str; 8] = ["saas", "portfolio", "agency", "personal", "product", "funnel", "restaurant", "event"];

pub static LETTERS: Format = Format {
    name: None,
    pattern: None,
    matches: |text| text.chars().any(char::is_alphabetic),
    message: "must have letters",
};

pub static COLOR: Format = Format {
    name: None,
    pattern: Some("^#[0-9A-Fa-f]{6}$"),
    matches: |text| {
        text.strip_prefix('#')
            .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    },
    message: "must be a colour such as #0a5c36",
};

static PATH: Format = Format {
    name: None,
    pattern: Some("^/([a-z0-9-]+(/[a-z0-9-]+)*)?$"),
    matches: |text| {
        let part =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        text == "/" || text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(part))
    },
    message: "must be a path of a-z, 0-9 and -, such as /about",
};

static UUID: Format = Format {
    name: Some("uuid"),
    pattern: None,
    matches: |text| Uuid::try_parse(text).is_ok(),
    message: "must be a UUID",
};

static EMAIL: Format = Format {
    name: Some("email"),
    pattern: None,
    matches: |text| Address::parse(text).is_ok(),
    message: "must be an e-mail address",
};

const SECTION: Kind = Kind::Text { min: 1, max: 100, format: Some(&LETTERS) };
const URL: Kind = Kind::Text { min: 1, max: 2048, format: Some(&URI) };

const PRODUCT: &[Field] = &[
    Field::required("name", Kind::Text { min: 1, max: 255, format: Some(&LETTERS) }, "Its name"),
    Field::required(
        "description",
        Kind::Text { min: 10, max: 5_000, format: Some(&LETTERS) },
        "What it is, in any language: facts, offers, prices, hours, contacts. The site says nothing that is not here or in source_url",
    ),
    Field::optional("industry", Kind::Text { min: 0, max: 500, format: None }, "Its trade"),
    Field::optional("pricing", Kind::Text { min: 0, max: 500, format: None }, "What it costs"),
];

const PAGE: Kind = Kind::Object {
    fields: &[
        Field::required(
            "path",
            Kind::Text { min: 1, max: 100, format: Some(&PATH) },
            "Such as /about; / is the first page",
        ),
        Field::required("name", Kind::Text { min: 1, max: 60, format: Some(&LETTERS) }, "Its name in the navigation"),
        Field::optional("purpose", Kind::Text { min: 0, max: 1_000, format: None }, "What it is for, and what it says"),
        Field::optional("sections", Kind::List { of: &SECTION, max: MAX_PAGE_SECTIONS }, "Names of its sections"),
    ],
    open: false,
};

pub static SPEC: ToolSpec = ToolSpec {
    name: "build",
    title: "Website build",
    summary: "Builds a website from a brief, checks it in a browser and hosts it for a year; or changes one it has built",
    group: "builds",
    paths: &["/v1/tools/build"],
    price: Price::Asked { usual: USUAL, most: MOST },
    expensive: true,
    category: "build",
    deadline: DEADLINE,
    waits_for_hosts: Some(|input| input.get("source_url").is_some()),
    input: &[
        Field::optional(
            "product",
            Kind::Object { fields: PRODUCT, open: false },
            "What the site is about. Needed unless build_id and changes are given",
        ),
        Field::optional("type", Kind::Choice(&KINDS), "The kind of site. Default: saas"),
        Field::optional(
            "source_url",
            URL,
            "A page to take facts from. It is read when the site is built; its fee comes back if it cannot be read",
        ),
        Field::optional(
            "sections",
            Kind::List { of: &SECTION, max: MAX_SECTIONS },
            "Names of the first page's sections",
        ),
        Field::optional("pages", Kind::List { of: &PAGE, max: MAX_PAGES }, "The pages, if there is more than one"),
        Field::optional(
            "brand",
            Kind::Object {
                fields: &[
                    Field::optional(
                        "primary_color",
                        Kind::Text { min: 7, max: 7, format: Some(&COLOR) },
                        "Such as #0a5c36",
                    ),
                    Field::optional(
                        "font",
                        Kind::Text { min: 0, max: 100, format: None },
                        "A font family; the nearest that is kept here is used",
                    ),
                    Field::optional(
                        "tone",
                        Kind::Choice(&["professional", "playful", "bold", "minimal"]),
                        "How it feels",
                    ),
                ],
                open: false,
            },
            "How it looks. Default: chosen by the brief",
        ),
        Field::optional(
            "images",
            Kind::Object {
                fields: &[
                    Field::optional("hero", URL, "A picture for the first page"),
                    Field::optional("logo", URL, "A logo"),
                ],
                open: false,
            },
            "Pictures to use. Not available yet: a body that has one is refused",
        ),
        Field::optional(
            "lead_capture",
            Kind::Object {
                fields: &[
                    Field::optional(
                        "enabled",
                        Kind::Bool,
                        "true: the site has a form; what visitors write arrives in your mailbox",
                    ),
                    Field::optional(
                        "inbox_email",
                        Kind::Text { min: 3, max: 320, format: Some(&EMAIL) },
                        "An address of yours at this service. Default: your first",
                    ),
                ],
                open: false,
            },
            "A form for visitors. Default: none",
        ),
        Field::optional(
            "domain",
            Kind::Text { min: 1, max: 255, format: None },
            "Not available: a body that has one is refused",
        ),
        Field::optional(
            "build_id",
            Kind::Text { min: 32, max: 36, format: Some(&UUID) },
            "The site to change: the build_id of its first build",
        ),
        Field::optional(
            "changes",
            Kind::Text { min: 1, max: 5_000, format: Some(&LETTERS) },
            "What to change, in words",
        ),
    ],
    judged: &["product", "sections", "pages", "changes"],
    refusals: &[(404, "build_not_found"), (409, "build_busy"), (503, "provider_unavailable")],
    needs,
    check,
    claims: |toolbox, claiming| Box::pin(claims(toolbox, claiming)),
    accepted: |_, _, _, input, _| accepted(input),
    example: || json!({"product": {"name": "Four Miche", "description": "A bakery in Lyon. Sourdough bread 4.50 EUR, croissants 1.30 EUR. Open Tuesday to Sunday, 7:00 to 19:00."}}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: work::run };

/// Whether it is a change of a site.
pub fn is_refinement(input: &Map<String, Value>) -> bool {
    input.contains_key("build_id") || input.contains_key("changes")
}

/// Whether the site has a form.
pub fn has_form(input: &Map<String, Value>) -> bool {
    input.get("lead_capture").is_some_and(|lead| lead["enabled"] == true)
}

/// The site that is changed.
pub fn build_id(input: &Map<String, Value>) -> Option<Uuid> {
    Uuid::try_parse(input.get("build_id")?.as_str()?).ok()
}

/// No page is published that was not looked at in a browser.
fn needs(_: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    if input.contains_key("domain") {
        return vec![Need::Nobody("domains of others")];
    }
    if input.get("images").is_some_and(|images| images.as_object().is_some_and(|images| !images.is_empty())) {
        return vec![Need::Nobody("pictures from outside yet")];
    }
    vec![Need::Browser]
}

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let has = |name: &str| input.contains_key(name);
    if is_refinement(input) {
        for name in ["build_id", "changes"].into_iter().filter(|name| !has(name)) {
            wrong.push(FieldError::new(name, "is needed: a change names both the site and what to change"));
        }
        let others = SPEC.input.iter().map(|field| field.name).filter(|name| !["build_id", "changes"].contains(name));
        // Public clients send these with their defaults.
        let others = others.filter(|name| has(name) && !["type", "product"].contains(name));
        wrong.extend(others.map(|name| FieldError::new(name, "cannot be sent with build_id: say it in changes")));
        return wrong;
    }
    if !has("product") {
        wrong.push(FieldError::new("product", "is required, or build_id with changes"));
    }
    if let Some(Err(refused)) = input.get("source_url").and_then(Value::as_str).map(|url| check_url(url, policy)) {
        wrong.push(FieldError::new("source_url", refused.to_string()));
    }
    let pages = input.get("pages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, page) in pages.iter().enumerate() {
        let path = page["path"].as_str().unwrap_or_default();
        if pages[..index].iter().any(|other| other["path"] == path) {
            wrong.push(FieldError::new(format!("pages[{index}].path"), "is the path of another page"));
        }
        if site::is_reserved(path) {
            wrong.push(FieldError::new(format!("pages[{index}].path"), "is kept for the site's own files"));
        }
    }
    wrong
}

/// A site is changed by one job at a time.
async fn claims(toolbox: &Toolbox, claiming: Claiming<'_>) -> Result<Vec<platform::store::Write>, ApiError> {
    let Some(build) = build_id(claiming.input) else { return Ok(Vec::new()) };
    quote::own_site(&toolbox.db, build, Some(claiming.agent)).await?;
    let table = &toolbox.db.tables.agents;
    let taken = lock::take(&toolbox.db, table, site::lock_key(build), claiming.request_id, claiming.now).await?;
    taken.map(|write| vec![write]).map_err(|job| ApiError::Tool {
        status: http::StatusCode::CONFLICT,
        code: "build_busy",
        message: format!("the site is being changed by {job}: wait until that has ended"),
    })
}

/// Public clients read the address that visitors' messages go to.
fn accepted(input: &Map<String, Value>) -> Value {
    let email = input.get("lead_capture").filter(|_| has_form(input)).and_then(|lead| lead["inbox_email"].as_str());
    match email {
        Some(email) => json!({"build": {"lead_capture_email": email}}),
        None => json!({"build": {}}),
    }
}

fn output() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "required": ["status", "success", "build_id", "production_url", "preview_url", "design_score"],
        "properties": {
            "status": text("completed"),
            "success": {"type": "boolean"},
            "build_id": text("Names the site when you change it"),
            "production_url": text("The site's address; always the current version"),
            "preview_url": text("The address of this version, as long as the site exists"),
            "version": {"type": "integer"},
            "design_score": {"type": "number", "description": "0 to 100: the share of the checks that passed, by weight"},
            "checks": {"type": "array", "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "passed": {"type": "boolean"}, "found": {"type": "string"},
            }}},
            "iterations": {"type": "integer", "description": "Designs that were tried until one passed"},
            "pages": {"type": "array", "items": {"type": "object", "properties": {
                "path": {"type": "string"}, "name": {"type": "string"}, "sections": {"type": "array", "items": {"type": "string"}},
            }}},
            "changed": {"type": "array", "items": {"type": "string"}, "description": "Of a refinement: what was changed"},
            "not_understood": {"type": "array", "items": {"type": "string"}, "description": "Parts of the wish that were not followed"},
            "notes": {"type": "array", "items": {"type": "string"}},
            "hosted_until": text("The site is announced and taken down then, unless it is changed before"),
            "cost": {"type": "string", "description": "What was charged, in USDC"},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(body: Value) -> Vec<String> {
        check(body.as_object().unwrap(), &FetchPolicy::default()).into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn a_body_is_a_brief_or_a_change() {
        let product = json!({"name": "A", "description": "Ten letters and more"});
        assert_eq!(wrong(json!({"product": product})), Vec::<String>::new());
        assert_eq!(wrong(json!({})), ["product"]);
        let id = Uuid::nil().to_string();
        assert_eq!(wrong(json!({"build_id": id})), ["changes"]);
        assert_eq!(wrong(json!({"changes": "make it green"})), ["build_id"]);
        assert_eq!(wrong(json!({"build_id": id, "changes": "make it green", "type": "saas"})), Vec::<String>::new());
        assert_eq!(wrong(json!({"build_id": id, "changes": "make it green", "sections": ["A"]})), ["sections"]);
        assert_eq!(wrong(json!({"product": product, "source_url": "http://127.0.0.1/"})), ["source_url"]);
        let page = |path: &str| json!({"path": path, "name": "A"});
        let pages = json!([page("/"), page("/a"), page("/a"), page("/fonts")]);
        assert_eq!(wrong(json!({"product": product, "pages": pages})), ["pages[2].path", "pages[3].path"]);
    }

    #[test]
    fn paths_are_plain() {
        for path in ["/", "/about", "/a/b-2"] {
            assert!((PATH.matches)(path), "{path}");
        }
        for path in ["", "about", "/About", "//", "/a/", "/../a", "/a b", "/é"] {
            assert!(!(PATH.matches)(path), "{path}");
        }
    }
}
