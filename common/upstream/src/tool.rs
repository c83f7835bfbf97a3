//! A tool that an operator's own service does, as it was read from the settings.

use std::fmt;
use std::time::Duration;

use base::input::FieldError;
use base::money::Usdc;
use serde_json::{Map, Value};

use crate::outcome::Media;
use crate::price::Price;

/// One tool, validated. Made by [`Settings`](crate::Settings) and by the imports only.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The wire name: snake_case, at most 40 characters.
    pub name: String,
    pub title: String,
    pub summary: String,
    /// For browsing: snake_case.
    pub category: Option<String>,
    pub price: Price,
    pub target: Target,
    /// JSON Schema of the input, an object. [`schema::admit`] has accepted it. Closed at its root, unless the settings
    /// say otherwise.
    pub input_schema: Value,
    /// A valid input of the operator's.
    pub example: Option<Map<String, Value>>,
    /// JSON Schema of the answer. Answers are checked against it.
    pub output_schema: Option<Value>,
    /// What an answer may be.
    pub answers: Vec<Media>,
    /// Statuses that are the caller's fault, sorted. Empty for an MCP server.
    pub caller_errors: Vec<u16>,
    /// Whether a call whose end is unknown may be sent again.
    pub safe_to_retry: bool,
    pub deadline: Duration,
    /// How long an answer to the same input may be given again; zero: never.
    pub cache: Duration,
    /// Most calls a day, for all callers together.
    pub calls_per_day: Option<u32>,
    /// Most calls at one time.
    pub at_once: Option<u32>,
    /// Largest body of an answer, in bytes. Read one byte more at most.
    pub max_response_bytes: usize,
}

/// Where the work is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Http(Box<HttpTarget>),
    Mcp(McpTarget),
}

/// An HTTP operation.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpTarget {
    pub method: Method,
    pub server: Server,
    pub path: Vec<Segment>,
    pub query: Vec<QuerySlot>,
    pub headers: Vec<HeaderSlot>,
    pub body: Body,
    pub constant_query: Vec<(String, Constant)>,
    pub constant_headers: Vec<(String, Constant)>,
    /// The header that gets an id of the call, so that the service knows a repeated one: `idempotency-key`.
    pub call_id_header: Option<String>,
}

/// A tool of an MCP server with the transport "Streamable HTTP".
#[derive(Clone, Debug, PartialEq)]
pub struct McpTarget {
    /// The server's endpoint.
    pub server: Server,
    /// The tool's name there.
    pub tool: String,
    pub headers: Vec<(String, Constant)>,
}

/// An origin, and the path that all requests begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `https://api.example.com/base`, without a slash at the end.
    pub address: String,
    /// The host is on the operator's own network. A public address is refused there, and a private one elsewhere.
    pub private: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub(crate) const ALL: [Method; 5] = [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete];

    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    /// Whether its requests have a body by default.
    pub(crate) const fn has_body(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }

    /// Whether HTTP promises that two requests do what one does.
    pub(crate) const fn is_idempotent(self) -> bool {
        matches!(self, Method::Get | Method::Put | Method::Delete)
    }
}

/// One segment of a path: texts and members of the input, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment(pub Vec<PathPart>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// Text of the template, percent-encoded already.
    Text(String),
    /// A member of the input. With `slashes` (`{+member}`) it may have several segments.
    Member { member: String, slashes: bool },
}

/// A member of the input in the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuerySlot {
    /// The name in the query.
    pub name: String,
    pub member: String,
    pub style: Style,
}

/// A member of the input in a header. Items of an array stand in one value, with commas between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderSlot {
    /// The header's name in lower case.
    pub name: String,
    pub member: String,
}

/// What is sent as the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    None,
    Json(Content),
    /// `application/x-www-form-urlencoded`
    Form(Content, Style),
}

/// Which part of the input the body is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All members.
    Input,
    /// The members that no other slot has.
    Rest,
    /// The value of one member. In a form it is an object.
    Member(String),
}

/// How arrays and objects are written in a query or a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The name is repeated for each item of an array. A call with an object is refused.
    Repeated,
    /// Items of an array stand in one value, with this between them. A call with an object is refused.
    Joined(char),
    /// `a[b]=c` for an object, and `a[0]=c` for an array.
    Brackets,
}

/// A value that every request has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    Text(String),
    Secret(SecretUse),
}

/// A reference to an entry of the operator's secret store. The value is never in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretUse {
    /// Name of the entry: snake_case.
    pub secret: String,
    /// Stands before the value: `Bearer `.
    pub prefix: String,
    /// The value is sent as base64: `user:password` of HTTP's basic authentication.
    pub base64: bool,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Tool {
    /// Checks an input that an agent sent, and tells the price of the call: everything that can be known before money is
    /// asked for. [`crate::build`] then makes the request.
    ///
    /// # Errors
    /// Every problem: the input does not match the schema, a member cannot be sent in its slot, or the price depends on a
    /// member that is not there. Paths name members of the input.
    pub fn check(&self, input: &Map<String, Value>) -> Result<Usdc, Vec<FieldError>> {
        let value = Value::Object(input.clone());
        schema::validate(&self.input_schema, &value)?;
        let mut rounded = Vec::new();
        crate::numbers::rounded("", &value, &mut rounded);
        if !rounded.is_empty() {
            return Err(rounded);
        }
        crate::request::build(self, input)?;
        self.price.of(&value)
    }

    /// A valid input, to show agents how a call looks: the operator's, or one made of the schema. `None` if the schema is too
    /// special for that.
    pub fn example_input(&self) -> Option<Map<String, Value>> {
        let made = match &self.example {
            Some(example) => return Some(example.clone()),
            None => crate::example::of(&self.input_schema),
        };
        match made {
            Value::Object(made) if self.check(&made).is_ok() => Some(made),
            _ => None,
        }
    }

    /// Whether its input may have other members than its schema names.
    pub fn takes_others(&self) -> bool {
        self.input_schema["additionalProperties"] != Value::Bool(false)
    }

    /// Names of all secrets that its requests need, each once.
    pub fn secrets(&self) -> Vec<&str> {
        let constants: Vec<&(String, Constant)> = match &self.target {
            Target::Http(http) => http.constant_query.iter().chain(&http.constant_headers).collect(),
            Target::Mcp(mcp) => mcp.headers.iter().collect(),
        };
        let mut names: Vec<&str> = constants
            .into_iter()
            .filter_map(|(_, constant)| match constant {
                Constant::Secret(secret) => Some(secret.secret.as_str()),
                Constant::Text(_) => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether anything but JSON may be an answer.
    pub fn answers_bytes(&self) -> bool {
        self.answers.iter().any(|media| *media != Media::Json)
    }

    /// Where its requests go.
    pub fn server(&self) -> &Server {
        match &self.target {
            Target::Http(http) => &http.server,
            Target::Mcp(mcp) => &mcp.server,
        }
    }
}
