//! The one path of MCP, in outline: what its messages hold is the protocol's to say.

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

/// A message that is not done, in JSON-RPC's words.
const fn refused(status: u16, about: &'static str) -> Answer {
    Answer::json(status, about, ANSWER)
}

pub static OPERATIONS: &[Operation] = &[Operation::post(
    "/mcp",
    "mcp",
    "Every paid tool and most free reads, over the Model Context Protocol",
)
.about(
    "Stateless Streamable HTTP, revisions 2026-07-28 and 2025-11-25. An access token goes into `Authorization`, a \
             signed payment into `_meta[\"x402/payment\"]`; what is wrong with a tool's call is a result that says so.",
)
.body(Body::Rpc(message))
.answers(&[
    Answer {
        status: 200,
        about: "The answer; of a batch, which only old revisions have, all of them",
        content: Content::JsonOr(Shape::Either(&[ANSWER, Shape::List(&ANSWER)]), &["text/event-stream"]),
        headers: &[],
    },
    Answer::other(202, "There is nothing to answer", &[]),
    Answer::json(400, "Not a message", Shape::Either(&[ANSWER, Shape::Ref(&ERROR)])),
    refused(401, "The access token or the proof is not good").headers(&[(
        "WWW-Authenticate",
        true,
        "How to name oneself",
    )]),
    refused(403, "Another host's name, or a page of somebody else's"),
    refused(404, "No such method"),
    refused(406, "Neither JSON nor an event stream is accepted"),
    refused(413, "Too large"),
    refused(415, "Not application/json"),
    Answer::json(429, "Too many bytes went to this address within a minute", Shape::Ref(&ERROR)),
    refused(500, "It failed"),
])];
