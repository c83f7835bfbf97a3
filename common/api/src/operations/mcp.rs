//! The one path of MCP, in outline. The contents of its messages are defined by the protocol.

use base::input::{Field, Kind};
use serde_json::{Value, json};

use super::shape::{Shape, has, may};
use super::shared::ERROR;
use super::{Answer, Body, Content, Operation};

/// A message of MCP.
fn message() -> Value {
    json!({
        "type": "object",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer"]},
            "method": {"type": "string"},
            "params": {"type": "object"},
        },
        "example": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    })
}

const ANSWER: Shape = Shape::Object(&[
    has("jsonrpc", Shape::Choice(&["2.0"])),
    may("id", Shape::Any),
    may("result", Shape::Map(&Shape::Any)),
    may("error", PROBLEM),
]);
const PROBLEM: Shape =
    Shape::Object(&[has("code", Shape::Integer), has("message", Shape::Text), may("data", Shape::Any)]);

/// A JSON-RPC error.
const fn refused(status: u16, about: &'static str) -> Answer {
    Answer::json(status, about, ANSWER)
}

pub static OPERATIONS: &[Operation] = &[Operation::post(
    "/mcp",
    "mcp",
    "Every paid tool and most free reads, over the Model Context Protocol",
)
.query(&[Field::optional(
    "tools",
    Kind::Text { min: 0, max: 1000, format: None },
    "What tools/list lists: all, or names, first words of names and categories, separated by commas. Usually a short list, \
     from which the tools find_tools and use_tool lead to all others. Any tool can be called, whatever is listed.",
)])
.about(
    "Stateless Streamable HTTP, revisions 2026-07-28 and 2025-11-25. An access token goes into `Authorization`, a \
             signed payment into `_meta[\"x402/payment\"]`; an error in a tool call is a result with `isError`.",
)
.body(Body::Rpc(message))
.answers(&[
    Answer {
        status: 200,
        about: "The answer, or a list of answers to a batch (older revisions only)",
        content: Content::JsonOr(Shape::Either(&[ANSWER, Shape::List(&ANSWER)]), &["text/event-stream"]),
        headers: &[],
    },
    Answer::other(202, "A notification: there is no answer", &[]),
    Answer::json(400, "Not a valid message", Shape::Either(&[ANSWER, Shape::Ref(&ERROR)])),
    refused(401, "The access token or the proof is invalid").headers(&[(
        "WWW-Authenticate",
        true,
        "How to authenticate",
    )]),
    refused(403, "The request names another host, or comes from a page of another origin"),
    refused(404, "No such method"),
    refused(406, "The caller accepts neither JSON nor an event stream"),
    refused(413, "Too large"),
    refused(415, "Not application/json"),
    Answer::json(
        429,
        "This IP address, or the wallet of this token, has received too many bytes within a minute",
        Shape::Ref(&ERROR),
    ),
    refused(500, "It failed"),
])];
