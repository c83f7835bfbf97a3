//! An operator's own HTTP services and MCP servers as tools that agents buy. Pure: no network, no clock, no store.
//!
//! An operator describes each tool in a settings file. This crate reads the file, checks and prices a call, builds its request
//! and judges the response. The caller sends the request, resolves secrets, takes the money and keeps the counts.
//!
//! # A call, step by step
//!
//! ```
//! use serde_json::json;
//! use upstream::{AnswerContent, Outcome, Response, Settings, build, judge};
//!
//! let file = r#"{"tools": [{
//!     "name": "parcel_status", "title": "Parcel status", "summary": "Where a parcel is", "price": "0.01",
//!     "method": "GET", "address": "https://api.example.com/v2", "path": "/parcels/{number}",
//!     "constants": {"headers": {"authorization": {"secret": "parcel_key", "prefix": "Bearer "}}},
//!     "input_schema": {"type": "object", "required": ["number"], "properties": {
//!         "number": {"type": "string"}, "language": {"type": "string"}}}
//! }]}"#;
//! // At the start. The second argument says whether a name is taken. Errors list every problem with its JSON pointer.
//! let settings = Settings::parse(file, &|name| name == "web_read").unwrap();
//! assert!(settings.secrets().contains("parcel_key"));
//!
//! // Before a price is quoted: the input is checked, and the call is priced.
//! let tool = settings.find("parcel_status").unwrap();
//! let input = json!({"number": "A 1", "language": "de"});
//! let input = input.as_object().unwrap();
//! assert_eq!(tool.check(input).unwrap().to_string(), "0.010000");
//!
//! // The work. Until `filled`, the request has no secret in it and may be stored.
//! let request = build(tool, input).unwrap();
//! let ready = request.filled(|name| (name == "parcel_key").then_some("s3cret")).unwrap();
//! assert_eq!(ready.url, "https://api.example.com/v2/parcels/A%201?language=de");
//!
//! // After at most `tool.deadline`, and at most `tool.max_response_bytes + 1` bytes of a body:
//! let body = br#"{"state": "delivered"}"#;
//! let response = Response { status: 200, content_type: Some("application/json"), length: None, rpc_id: None, body };
//! let Outcome::Answer(AnswerContent::Json(answer)) = judge(tool, &response) else { panic!() };
//! assert_eq!(answer["state"], "delivered");
//! ```
//!
//! What the caller has to do itself:
//!
//! - **Addresses.** A public name may lead to a private host. Connect through the network policy; if [`Ready::private`] is
//!   set, and only then, a private host is allowed. Do not follow redirects: a 3xx is a failure.
//! - **Time and size.** Stop at [`Tool::deadline`]; read at most one byte more than [`Tool::max_response_bytes`], after
//!   decompression. No response at all (timeout, refused connection) is the caller's own failure.
//! - **Repeats.** Put a call's own id through [`Request::for_call`], the same for each repeat. Send a call again only if [`Tool::safe_to_retry`] and [`Reason::may_pass`] hold.
//! - **Counts.** [`Tool::calls_per_day`] and [`Tool::at_once`] are limits of all callers together.
//! - **Cache.** For [`Tool::cache`] seconds, a GET with the same [`Request::digest`] may have the same answer.
//! - **Money.** [`Outcome::Answer`] is charged. [`Outcome::Failed`] is not. [`Outcome::CallersFault`] is told to the caller;
//!   whether it is charged is a rule of the deployment. MCP servers do not say whose fault an error is, so that theirs
//!   should not be.
//!
//! A tool of an MCP server goes the same way. If its server has sessions, send [`mcp::initialize`] and [`mcp::initialized`]
//! first and put the call through [`Request::in_session`]. Give each call an id of its own ([`Request::with_rpc_id`]); [`mcp::wants_session`] tells that a session has ended.
//!
//! # The settings file
//!
//! `{"tools": [ … ]}`; each entry has these members, and no others:
//!
//! | member | |
//! |---|---|
//! | `name` | snake_case, at most 40 characters, of no other tool |
//! | `title`, `summary` | at most 80 and 500 characters |
//! | `category` | snake_case; optional |
//! | `price` | `"0.01"`, from 0.000001 to 1000; or `{"per": "/count", "of": "number" or "length", "rate": "0.001", "minimum": "0.01", "maximum": "5"}`. `rate` has up to twelve decimals; the product is rounded up to six and kept within the bounds. `per` names a required member |
//! | `kind` | `http` (default) or `mcp` |
//! | `address` | `https://…`, with a path that all requests begin with. `http` only for private hosts |
//! | `private` | `true` for a host on the operator's own network |
//! | `method`, `path` | of `http`. `/items/{id}`: a required member of the input is one segment or a part of one. `/files/{+path}`: it may have slashes |
//! | `slots` | of `http`: see below |
//! | `constants` | `{"query": {…}, "headers": {…}}`: a text, or `{"secret": "name", "prefix": "Bearer ", "encoding": "base64"}` (prefix and encoding are optional; base64 is for `user:password`). Of `mcp`: headers only |
//! | `call_id_header` | of `http`: a header such as `idempotency-key` that gets the id of the call, so that the service does a repeated call once; optional |
//! | `tool` | of `mcp`: the tool's name on the server |
//! | `input_schema` | JSON Schema of type `object`. Other members than its `properties` are refused, unless it says something about `additionalProperties` itself |
//! | `output_schema` | JSON Schema; an answer that does not match is a failure. Answers are then at most 1 MB |
//! | `answers` | content types, such as `["image/png"]`. Default: `["application/json"]`. See [`Media`] |
//! | `example` | an input, shown to agents; optional. See [`Tool::example_input`] |
//! | `caller_errors` | statuses that are the caller's fault. Default: 400, 404, 409, 422. Never 401, 403, 429: wrong keys and used-up rates are the operator's |
//! | `safe_to_retry` | default: true for GET, PUT and DELETE, and with a `call_id_header` |
//! | `deadline_seconds` | 1 to 600; default 20 |
//! | `cache_seconds` | 0 to 86400, only for GET; default 0 |
//! | `calls_per_day`, `at_once` | limits; optional |
//! | `max_response_bytes` | up to 4 MB, or 1 MB beside an `output_schema`; default 1 MB |
//!
//! `slots` says where members of the input go. Everything is optional: without it, what is not in the path goes into the query
//! (GET, DELETE) or into a JSON body (POST, PUT, PATCH). Every member of `input_schema` needs a slot.
//!
//! | member | |
//! |---|---|
//! | `path` | `{"id": "item_id"}`: a placeholder and its member, if their names differ |
//! | `query` | `"rest"`, `["q", "page"]`, or `{"q": "text", "ids": {"member": "ids", "style": ","}}`. Styles: `repeated` (default: the name for each item), `,`, ` `, `\|`, or `brackets` (`a[b]=c`) |
//! | `headers` | `{"x-region": "region"}`. ASCII only, and no header of the connection or the login |
//! | `body` | `"none"`, `"input"` (all members), `"rest"`, or `{"member": "document"}` |
//! | `body_format` | `json` (default), `form`, or `form_with_brackets` |
//!
//! Absent members are left out; null ones too, except in a JSON body.
//!
//! # Imports
//!
//! [`from_openapi`] (OpenAPI 3.0 and 3.1, Swagger 2.0; YAML through [`from_yaml`]) and [`from_mcp`] make such entries, and say
//! what they could not take and what they changed. Recursive schemas are cut, not refused: below the cut any value passes.
//! Output schemas are relaxed: no member is required, each may be null, integers may have decimals, numbers may be strings, and enums, patterns,
//! lengths and ranges are not checked. `oneOf` becomes `anyOf` in both directions. `examples/import.rs` prints the result for
//! a file.

mod example;
mod import;
pub mod mcp;
mod numbers;
mod outcome;
mod price;
mod problem;
mod request;
mod settings;
mod tool;
mod yaml;

pub use import::{Imported, ImportedTool, McpServer, Refused, Select, Selection, entries_of, from_mcp, from_openapi};
pub use outcome::{Content as AnswerContent, Failure, Media, Outcome, Reason, Response, judge};
pub use price::{LEAST_PRICE, MOST_PRICE, Measure, PerUnit, Price};
pub use problem::Problem;
pub use request::{CALL_HEADER, Ready, Request, SecretProblem, build};
pub use settings::{MAX_TOOLS, Reserved, Settings};
pub use tool::{
    Body, Constant, Content, HeaderSlot, HttpTarget, McpTarget, Method, PathPart, QuerySlot, SecretUse, Segment,
    Server, Style, Target, Tool,
};
pub use yaml::from_yaml;
