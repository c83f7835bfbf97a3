//! Every operation of the service, described once beside its route: what it takes, what it answers, who may call it.
//!
//! `GET /openapi.json` is a projection of these descriptions, the catalog and the table of routes ([`document`]), so it
//! cannot name a route that is not there, and a test fails for a route without a description. What an operation accepts
//! is described by the [`Field`]s that its handler validates with, wherever a handler does that; what it answers by
//! [`Shape`]s, and every answer that passes through the journeys in `tests/` is judged by them.
//!
//! To add an operation: a [`Route`](crate::routes::Route), and an entry of the same method and path in the file of
//! its group here.

pub mod account;
pub mod approvals;
pub mod checkout;
pub mod credits;
pub mod document;
pub mod insights;
pub mod mcp;
pub mod meta;
pub mod requests;
pub mod schemas;
pub mod seller;
pub mod shape;
pub mod shared;
pub mod souls;
pub mod tools;
pub mod webhooks;

use ::tools::spec::ToolSpec;
use base::input::{Field, Kind};
use serde_json::Value;

pub use shape::{Member, Named, Shape};

/// What one route does.
#[derive(Clone, Copy)]
pub struct Operation {
    pub method: &'static str,
    /// As the table of routes writes it.
    pub path: &'static str,
    /// `operationId`: what generated clients call it.
    pub id: &'static str,
    pub summary: &'static str,
    /// Markdown; what the summary leaves out.
    pub about: &'static str,
    pub auth: Auth,
    /// What the segments of the path are that are called otherwise than elsewhere; the others are known by name.
    pub query: &'static [Field],
    pub headers: &'static [Field],
    pub body: Body,
    pub answers: &'static [Answer],
    /// Statuses and codes of refusals, beside those that follow from the rest.
    pub refusals: &'static [(u16, &'static str)],
    pub links: &'static [Link],
    /// What is checked that no schema can say: input that satisfies the schemas may be refused for it.
    pub beyond_schema: &'static str,
    /// What is sold, if it is a paid operation.
    pub sells: Option<&'static ToolSpec>,
}

/// Who may call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    Nobody,
    /// A wallet by its proof, or an access token.
    Agent,
    /// A wallet by its proof; a token is told the code.
    Wallet {
        token_is_told: &'static str,
    },
    /// Anybody; a proof or a token lets credits pay.
    Buyer,
    /// Anybody with a wallet; a token is refused.
    WalletBuyer,
    /// A seller by its soul's key.
    SoulKey,
    /// An agent platform by its token.
    Platform,
    /// A job's buyer or seller, by proof, token, soul key, or (unless the deployment asks for proof) its bare address.
    Party,
}

/// What an operation reads from the body.
#[derive(Clone, Copy)]
pub enum Body {
    None,
    /// JSON with these members, as `catalog::input` validates it.
    Fields(&'static [Field]),
    /// The same, and `null` is as good as absent.
    Nullable(&'static [Field]),
    /// JSON that is read by rules of its own; its schema, and whether there has to be a body at all.
    Json {
        schema: fn() -> Value,
        required: bool,
    },
    /// Bytes of any type.
    Bytes {
        content_type: &'static str,
        about: &'static str,
    },
    /// A form that a browser sends.
    Form(fn() -> Value),
    /// A message of JSON-RPC; what is wrong with it is said in that form, and listed among the answers.
    Rpc(fn() -> Value),
    /// What the tool takes, and what every paid body may carry.
    Sold,
}

/// An answer that is no refusal.
#[derive(Clone, Copy)]
pub struct Answer {
    pub status: u16,
    pub about: &'static str,
    pub content: Content,
    /// Headers of this answer worth a word: name, whether it is always there, what it says.
    pub headers: &'static [(&'static str, bool, &'static str)],
}

#[derive(Clone, Copy)]
pub enum Content {
    Json(Shape),
    /// Text or bytes of these types.
    Other(&'static [&'static str]),
    /// JSON, or text of these types, as was asked for.
    JsonOr(Shape, &'static [&'static str]),
}

/// What to call next with something of an answer.
#[derive(Clone, Copy)]
pub struct Link {
    pub name: &'static str,
    /// The answer it starts from.
    pub status: u16,
    /// `operationId` of what to call.
    pub to: &'static str,
    /// Parameter of that operation, and the runtime expression of its value.
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

/// Yes or no in a query.
pub const FLAG: Kind = Kind::Choice(&["true", "false", "1", "0"]);

/// A caller's own name for a request.
pub const IDEMPOTENCY_KEY: Field = Field::optional(
    "Idempotency-Key",
    Kind::Text { min: 1, max: 255, format: Some(&shared::VISIBLE) },
    "Your own name for this request. Keep the same value for every retry of one purchase or change: it is then made once, and \
     each retry gets the first answer; with another body it is refused (422)",
);

/// Every operation, in the order of the table of routes' groups.
pub fn all() -> impl Iterator<Item = Operation> {
    let described = [
        account::OPERATIONS,
        credits::OPERATIONS,
        checkout::OPERATIONS,
        approvals::OPERATIONS,
        requests::OPERATIONS,
        insights::OPERATIONS,
        souls::OPERATIONS,
        seller::OPERATIONS,
        webhooks::OPERATIONS,
        mcp::OPERATIONS,
        meta::OPERATIONS,
    ];
    tools::operations().chain(described.into_iter().flatten().copied())
}

/// The description of a route.
pub fn find(method: &str, path: &str) -> Option<Operation> {
    all().find(|operation| operation.method == method && operation.path == path)
}
