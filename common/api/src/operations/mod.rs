//! Every operation of the service, described once: what it takes, what it answers, who may call it.
//!
//! `GET /openapi.json` is made of these descriptions, the catalog and the table of routes ([`document`]), so it cannot list
//! a route that does not exist; a test fails for a route without a description. Inputs are described by the [`Field`]s that
//! the handler validates with, wherever there are any, and answers by [`Shape`]s. The tests in `tests/` check every answer
//! they get against them.
//!
//! To add an operation: a [`Route`](crate::routes::Route), and an entry with the same method and path in its group's file
//! here.

pub mod account;
pub mod approvals;
pub mod checkout;
pub mod compute;
pub mod credits;
pub mod document;
#[cfg(test)]
mod error_guide;
pub mod files;
pub mod goods;
pub mod insights;
pub mod mcp;
pub mod messaging;
pub mod meta;
pub mod network;
pub mod requests;
pub mod schemas;
pub mod seller;
pub mod shape;
pub mod shared;
pub mod sms;
pub mod souls;
pub mod tools;
pub mod voice;
pub mod webhooks;

use ::catalog::CATALOG;
use ::tools::spec::{Catalog, ToolSpec};
use base::input::{Field, Kind};
use serde_json::Value;

pub use shape::{Member, Named, Shape};

/// The description of one route.
#[derive(Clone, Copy)]
pub struct Operation {
    pub method: &'static str,
    /// As in the table of routes.
    pub path: &'static str,
    /// `operationId`: the method name in generated clients.
    pub id: &'static str,
    pub summary: &'static str,
    /// Markdown; what the summary leaves out.
    pub about: &'static str,
    pub auth: Auth,
    /// Query parameters. Path parameters are described by `document`.
    pub query: &'static [Field],
    pub headers: &'static [Field],
    pub body: Body,
    pub answers: &'static [Answer],
    /// Statuses and error codes, besides those that follow from the other members.
    pub refusals: &'static [(u16, &'static str)],
    pub links: &'static [Link],
    /// Checks that no schema can express: input that satisfies the schemas may still be refused by them.
    pub beyond_schema: &'static str,
    /// The tool, for paid operations.
    pub sells: Option<&'static ToolSpec>,
}

/// Who may call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    Nobody,
    /// A wallet by its proof, or an access token.
    Agent,
    /// A wallet by its proof. An access token is refused with this code.
    Wallet {
        token_is_told: &'static str,
    },
    /// Anybody. With a proof or a token, credits can pay.
    Buyer,
    /// Anybody with a wallet. An access token is refused.
    WalletBuyer,
    /// A seller, by the soul key.
    SoulKey,
    /// An agent platform by its token.
    Platform,
    /// A job's buyer or seller, by proof, token or soul key; by its bare address too, unless the deployment requires proof.
    Party,
}

/// The request body of an operation.
#[derive(Clone, Copy)]
pub enum Body {
    None,
    /// JSON with these members and no others (`base::input::validate_all`).
    Fields(&'static [Field]),
    /// The same; `null` counts as absent.
    Nullable(&'static [Field]),
    /// JSON with these members; others are ignored (`base::input::validate`). For bodies that set nothing.
    Open(&'static [Field]),
    /// JSON with a reader of its own: its schema, and whether a body is required.
    Json {
        schema: fn() -> Value,
        required: bool,
    },
    /// The same, with the names of all tools of the deployment.
    Tools {
        schema: fn(&[&str]) -> Value,
        required: bool,
    },
    /// Bytes of any type.
    Bytes {
        content_type: &'static str,
        about: &'static str,
    },
    /// A form sent by a browser.
    Form(fn() -> Value),
    /// A JSON-RPC message. Its errors are JSON-RPC too, and listed among the answers.
    Rpc(fn() -> Value),
    /// The tool's input, and the members every paid body may have.
    Sold,
}

/// An answer that is not a refusal.
#[derive(Clone, Copy)]
pub struct Answer {
    pub status: u16,
    pub about: &'static str,
    pub content: Content,
    /// Headers of this answer: name, whether it is always present, description.
    pub headers: &'static [(&'static str, bool, &'static str)],
}

#[derive(Clone, Copy)]
pub enum Content {
    Json(Shape),
    /// Text or bytes of these types.
    Other(&'static [&'static str]),
    /// JSON, or text of these types if the caller accepts that.
    JsonOr(Shape, &'static [&'static str]),
}

/// An operation to call next with a value of an answer.
#[derive(Clone, Copy)]
pub struct Link {
    pub name: &'static str,
    /// The status of the answer it starts from.
    pub status: u16,
    /// The `operationId` to call.
    pub to: &'static str,
    /// Parameter of that operation, and the runtime expression (OpenAPI) of its value.
    pub parameters: &'static [(&'static str, &'static str)],
}

impl Operation {
    const fn new(method: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> Operation {
        Operation {
            method,
            path,
            id,
            summary,
            about: "",
            auth: Auth::Nobody,
            query: &[],
            headers: &[],
            body: Body::None,
            answers: &[],
            refusals: &[],
            links: &[],
            beyond_schema: "",
            sells: None,
        }
    }

    pub const fn get(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
        Operation::new("GET", path, id, summary)
    }

    pub const fn post(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
        Operation::new("POST", path, id, summary)
    }

    pub const fn put(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
        Operation::new("PUT", path, id, summary)
    }

    pub const fn patch(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
        Operation::new("PATCH", path, id, summary)
    }

    pub const fn delete(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
        Operation::new("DELETE", path, id, summary)
    }

    pub const fn about(self, about: &'static str) -> Operation {
        Operation { about, ..self }
    }

    pub const fn auth(self, auth: Auth) -> Operation {
        Operation { auth, ..self }
    }

    pub const fn query(self, query: &'static [Field]) -> Operation {
        Operation { query, ..self }
    }

    pub const fn headers(self, headers: &'static [Field]) -> Operation {
        Operation { headers, ..self }
    }

    pub const fn body(self, body: Body) -> Operation {
        Operation { body, ..self }
    }

    pub const fn answers(self, answers: &'static [Answer]) -> Operation {
        Operation { answers, ..self }
    }

    pub const fn refuses(self, refusals: &'static [(u16, &'static str)]) -> Operation {
        Operation { refusals, ..self }
    }

    pub const fn links(self, links: &'static [Link]) -> Operation {
        Operation { links, ..self }
    }

    pub const fn beyond_schema(self, beyond_schema: &'static str) -> Operation {
        Operation { beyond_schema, ..self }
    }
}

impl Answer {
    /// 200 with JSON.
    pub const fn ok(about: &'static str, shape: Shape) -> Answer {
        Answer::json(200, about, shape)
    }

    pub const fn json(status: u16, about: &'static str, shape: Shape) -> Answer {
        Answer { status, about, content: Content::Json(shape), headers: &[] }
    }

    pub const fn other(status: u16, about: &'static str, types: &'static [&'static str]) -> Answer {
        Answer { status, about, content: Content::Other(types), headers: &[] }
    }

    pub const fn headers(self, headers: &'static [(&'static str, bool, &'static str)]) -> Answer {
        Answer { headers, ..self }
    }
}

/// A boolean in a query or header.
pub const FLAG: Kind = Kind::Choice(&["true", "false", "1", "0"]);

/// The caller's idempotency key.
pub const IDEMPOTENCY_KEY: Field = Field::optional(
    "Idempotency-Key",
    Kind::Text { min: 1, max: 255, format: Some(&shared::VISIBLE) },
    "Your idempotency key. Keep the same value for every retry of one purchase or change: it is then made once, and \
     each retry gets the first answer. The same key with another body is refused (422)",
);

/// Every operation of this service itself, grouped as in the table of routes.
pub fn all() -> impl Iterator<Item = Operation> {
    all_of(&CATALOG)
}

/// Every operation of a deployment that sells this catalog.
pub fn all_of(catalog: &'static Catalog) -> impl Iterator<Item = Operation> {
    let described = [
        account::OPERATIONS,
        credits::OPERATIONS,
        checkout::OPERATIONS,
        approvals::OPERATIONS,
        requests::OPERATIONS,
        insights::OPERATIONS,
        souls::OPERATIONS,
        seller::OPERATIONS,
        goods::OPERATIONS,
        webhooks::OPERATIONS,
        messaging::OPERATIONS,
        sms::OPERATIONS,
        voice::OPERATIONS,
        compute::OPERATIONS,
        network::OPERATIONS,
        mcp::OPERATIONS,
        meta::OPERATIONS,
    ];
    tools::operations(catalog).chain(described.into_iter().flatten().copied())
}

/// The description of a route.
pub fn find(method: &str, path: &str) -> Option<Operation> {
    all().find(|operation| operation.method == method && operation.path == path)
}
