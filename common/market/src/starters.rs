//! Starting points for sellers: service types with working input schemas, and template souls. A text can be registered
//! only once, so a template must be changed before it is registered a second time.

use base::money::Usdc;
use serde_json::{Value, json};

use super::category::{CATEGORIES, Category};

/// A type of service.
pub struct ServiceType {
    pub slug: &'static str,
    pub name: &'static str,
    pub description: &'static str,
    pub category: Category,
    /// Usual price, in micro-USDC.
    pub price: Usdc,
    /// Whether such a service runs the seller's program.
    pub requires_sandbox: bool,
    pub input_schema: fn() -> Value,
}

/// A template soul.
pub struct Template {
    pub key: &'static str,
    pub name: &'static str,
    pub description: &'static str,
    pub category: Category,
    pub soul_md: &'static str,
    /// Slugs of [`TYPES`].
    pub services: &'static [&'static str],
}

const fn cents(cents: u64) -> Usdc {
    Usdc::from_micro(cents * 10_000)
}

/// Schema of an object with these members and no others; `required` names the required ones.
fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

fn words(description: &str, most: u32) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": most, "description": description})
}

fn choice(description: &str, choices: &[&str]) -> Value {
    json!({"type": "string", "enum": choices, "description": description})
}

fn list(description: &str, of: Value, most: u32) -> Value {
    json!({"type": "array", "minItems": 1, "maxItems": most, "items": of, "description": description})
}

fn url(description: &str) -> Value {
    json!({"type": "string", "format": "uri", "pattern": "^https?://", "maxLength": 2048, "description": description})
}

const LANGUAGE: &str = "Language of the result, as BCP 47: en, de, pt-BR";

fn language() -> Value {
    json!({"type": "string", "pattern": "^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", "maxLength": 35, "description": LANGUAGE})
}

pub static TYPES: &[ServiceType] = &[
    ServiceType {
        slug: "research-report",
        name: "Research report",
        description: "Answers a question from sources, and says how sure it is",
        category: Category::Research,
        price: cents(200),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["question"],
                json!({
                    "question": words("What is to be found out", 2000),
                    "context": words("What is known already, and what the answer is for", 8000),
                    "sources": list("Pages to read first", url("A page"), 20),
                    "depth": choice("How far to go", &["brief", "standard", "thorough"]),
                    "language": language(),
                }),
            )
        },
    },
    ServiceType {
        slug: "page-summary",
        name: "Summary of a page",
        description: "Reads a public page or a text and sums it up",
        category: Category::Research,
        price: cents(10),
        requires_sandbox: false,
        input_schema: || {
            let mut schema = object(
                &[],
                json!({
                    "url": url("The page"),
                    "text": words("The text, instead of a page", 40_000),
                    "max_words": {"type": "integer", "minimum": 20, "maximum": 1000},
                    "language": language(),
                }),
            );
            schema["anyOf"] = json!([{"required": ["url"]}, {"required": ["text"]}]);
            schema
        },
    },
    ServiceType {
        slug: "code-review",
        name: "Code review",
        description: "Finds what will break in a change, and the smallest fix",
        category: Category::Build,
        price: cents(150),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["diff"],
                json!({
                    "diff": words("The change, as a unified diff", 50_000),
                    "purpose": words("What the change is for", 2000),
                    "language": words("Programming language", 50),
                    "focus": list("What matters most", choice("", &["correctness", "security", "performance", "tests", "clarity"]), 5),
                }),
            )
        },
    },
    ServiceType {
        slug: "landing-page",
        name: "Landing page",
        description: "One page as a single HTML file, with words, style and no trackers",
        category: Category::Build,
        price: cents(500),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["product", "action"],
                json!({
                    "product": words("What the page is about, and for whom", 4000),
                    "action": words("The one thing a visitor should do", 300),
                    "facts": list("What may be claimed", words("A fact", 500), 20),
                    "colours": list("Colours of the brand", json!({"type": "string", "pattern": "^#[0-9a-fA-F]{6}$"}), 5),
                    "language": language(),
                }),
            )
        },
    },
    ServiceType {
        slug: "run-program",
        name: "Run of a program",
        description: "The seller's program, run on your input without a network",
        category: Category::Build,
        price: cents(50),
        requires_sandbox: true,
        input_schema: || {
            object(
                &["input"],
                json!({
                    "input": {"type": ["object", "array", "string"], "description": "Whatever the program reads"},
                    "options": {"type": "object", "maxProperties": 20, "description": "Settings of the program"},
                }),
            )
        },
    },
    ServiceType {
        slug: "call-plan",
        name: "Plan of a telephone call",
        description: "What to say, what to ask, and what to do with each answer",
        category: Category::Voice,
        price: cents(75),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["purpose", "business"],
                json!({
                    "purpose": words("What the call should achieve", 1000),
                    "business": words("On whose behalf", 500),
                    "facts": list("What may be said", words("A fact", 500), 30),
                    "tone": choice("How it should sound", &["formal", "friendly", "brief"]),
                    "language": language(),
                }),
            )
        },
    },
    ServiceType {
        slug: "call-notes",
        name: "Notes of a call",
        description: "Decisions, actions and open questions from a transcript",
        category: Category::Voice,
        price: cents(40),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["transcript"],
                json!({
                    "transcript": words("Who said what", 50_000),
                    "participants": list("Who took part", words("A name", 100), 30),
                    "language": language(),
                }),
            )
        },
    },
    ServiceType {
        slug: "text-message",
        name: "Text message",
        description: "A message that fits into few segments, and its variants",
        category: Category::Sms,
        price: cents(10),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["purpose", "sender"],
                json!({
                    "purpose": words("What the message is for", 1000),
                    "sender": words("Who sends it", 100),
                    "max_characters": {"type": "integer", "minimum": 40, "maximum": 480},
                    "variants": {"type": "integer", "minimum": 1, "maximum": 5},
                    "language": language(),
                }),
            )
        },
    },
    ServiceType {
        slug: "outreach-email",
        name: "First e-mail",
        description: "Subject, body and one follow-up, from facts only",
        category: Category::Email,
        price: cents(30),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["recipient", "offer", "sender"],
                json!({
                    "recipient": words("Who will read it, and what is known of them", 2000),
                    "offer": words("What they gain", 2000),
                    "sender": words("Who writes, and why", 1000),
                    "ask": words("The one thing asked of them", 300),
                    "language": language(),
                }),
            )
        },
    },
    ServiceType {
        slug: "compare",
        name: "Verdict",
        description: "Compares works by criteria and says which is better, and why",
        category: Category::Judgment,
        price: cents(50),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["task", "candidates"],
                json!({
                    "task": words("What was asked for", 4000),
                    "candidates": {"type": "array", "minItems": 2, "maxItems": 6, "items": words("A work", 10_000)},
                    "criteria": list(
                        "What counts, with weights",
                        object(&["name"], json!({"name": words("Criterion", 200), "weight": {"type": "number", "minimum": 0, "maximum": 100}})),
                        10,
                    ),
                }),
            )
        },
    },
    ServiceType {
        slug: "fact-check",
        name: "Check of claims",
        description: "Says of each claim whether it is supported, and by what",
        category: Category::Judgment,
        price: cents(100),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["claims"],
                json!({
                    "claims": list("What is claimed", words("A claim", 1000), 20),
                    "sources": list("Pages to check against", url("A page"), 20),
                    "language": language(),
                }),
            )
        },
    },
    ServiceType {
        slug: "copywriting",
        name: "Copy",
        description: "Words for a product, an advertisement or a profile",
        category: Category::Creative,
        price: cents(60),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["brief"],
                json!({
                    "brief": words("What it is for, who reads it, what it should do", 4000),
                    "facts": list("What may be claimed", words("A fact", 500), 30),
                    "format": choice("What to write", &["headline", "advertisement", "product_page", "profile", "story"]),
                    "max_words": {"type": "integer", "minimum": 5, "maximum": 2000},
                    "variants": {"type": "integer", "minimum": 1, "maximum": 5},
                    "language": language(),
                }),
            )
        },
    },
    ServiceType {
        slug: "clean-table",
        name: "Cleaned table",
        description: "Rows in one form, with an account of every change",
        category: Category::Data,
        price: cents(80),
        requires_sandbox: false,
        input_schema: || {
            let cell = json!({"type": ["string", "number", "boolean", "null"]});
            object(
                &["rows"],
                json!({
                    "rows": {
                        "type": "array", "minItems": 1, "maxItems": 1000,
                        "items": {"type": "object", "maxProperties": 50, "additionalProperties": cell},
                    },
                    "key": list("Columns that name a row", words("A column", 100), 5),
                    "date_order": choice("How ambiguous dates are read", &["day_first", "month_first"]),
                }),
            )
        },
    },
    ServiceType {
        slug: "transform-data",
        name: "Transformed data",
        description: "The seller's program turns your data into another form",
        category: Category::Data,
        price: cents(50),
        requires_sandbox: true,
        input_schema: || {
            object(
                &["data", "to"],
                json!({
                    "data": {"type": ["string", "array", "object"], "description": "What is to be transformed"},
                    "to": choice("The form wanted", &["json", "csv", "markdown", "html"]),
                }),
            )
        },
    },
    ServiceType {
        slug: "custom-task",
        name: "Custom task",
        description: "Anything else the soul is good at",
        category: Category::Custom,
        price: cents(100),
        requires_sandbox: false,
        input_schema: || {
            object(
                &["task"],
                json!({
                    "task": words("What is to be done", 8000),
                    "material": words("What it is to be done with", 40_000),
                    "language": language(),
                }),
            )
        },
    },
];

pub static TEMPLATES: &[Template] = &[
    Template {
        key: "research-analyst",
        name: "Research analyst",
        description: "Answers questions from sources that the reader can check",
        category: Category::Research,
        soul_md: include_str!("../assets/souls/research-analyst.md"),
        services: &["research-report", "page-summary", "fact-check"],
    },
    Template {
        key: "code-reviewer",
        name: "Code reviewer",
        description: "Finds what will break in a change, and shows the fix",
        category: Category::Build,
        soul_md: include_str!("../assets/souls/code-reviewer.md"),
        services: &["code-review"],
    },
    Template {
        key: "landing-page-builder",
        name: "Builder of small web pages",
        description: "One-page sites without trackers that everybody can read",
        category: Category::Build,
        soul_md: include_str!("../assets/souls/landing-page-builder.md"),
        services: &["landing-page", "copywriting"],
    },
    Template {
        key: "voice-concierge",
        name: "Concierge on the telephone",
        description: "Plans calls for an assistant that speaks for a business",
        category: Category::Voice,
        soul_md: include_str!("../assets/souls/voice-concierge.md"),
        services: &["call-plan"],
    },
    Template {
        key: "meeting-notes",
        name: "Keeper of minutes",
        description: "Turns transcripts into decisions and actions",
        category: Category::Voice,
        soul_md: include_str!("../assets/souls/meeting-notes.md"),
        services: &["call-notes"],
    },
    Template {
        key: "outreach-writer",
        name: "Writer of first messages",
        description: "Short e-mails and text messages with a good reason",
        category: Category::Email,
        soul_md: include_str!("../assets/souls/outreach-writer.md"),
        services: &["outreach-email", "text-message"],
    },
    Template {
        key: "fair-judge",
        name: "Fair judge",
        description: "Compares works by agreed criteria and explains the verdict",
        category: Category::Judgment,
        soul_md: include_str!("../assets/souls/fair-judge.md"),
        services: &["compare"],
    },
    Template {
        key: "data-cleaner",
        name: "Cleaner of data",
        description: "Brings tables into one form and accounts for every change",
        category: Category::Data,
        soul_md: include_str!("../assets/souls/data-cleaner.md"),
        services: &["clean-table", "transform-data"],
    },
];

/// The service type with this slug.
pub fn find_type(slug: &str) -> Option<&'static ServiceType> {
    TYPES.iter().find(|kind| kind.slug == slug)
}

/// The body of `GET /v1/soul/service-types`. The price has two names: `default_price` and `suggested_price`.
pub fn service_types() -> Value {
    let types: Vec<Value> = TYPES
        .iter()
        .map(|kind| {
            json!({
                "slug": kind.slug,
                "name": kind.name,
                "description": kind.description,
                "category": kind.category,
                "default_price": kind.price.to_number(),
                "suggested_price": kind.price.to_number(),
                "requires_sandbox": kind.requires_sandbox,
                "input_schema": (kind.input_schema)(),
            })
        })
        .collect();
    json!({"types": types, "categories": CATEGORIES})
}

/// The body of `GET /v1/soul/templates`.
pub fn templates() -> Value {
    let templates: Vec<Value> = TEMPLATES
        .iter()
        .map(|template| {
            let services = template.services.iter().filter_map(|slug| find_type(slug));
            let services: Vec<Value> = services
                .map(|kind| json!({"name": kind.name, "slug": kind.slug, "price_usd": kind.price.to_number()}))
                .collect();
            json!({
                "key": template.key,
                "name": template.name,
                "description": template.description,
                "category": template.category,
                "example_soul_md": template.soul_md,
                "suggested_services": services,
            })
        })
        .collect();
    json!({"templates": templates})
}
