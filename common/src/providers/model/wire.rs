//! What is asked of a model and what it answers, in no protocol's words.

use serde_json::Value;

use crate::catalog::ToolSpec;

/// One question: everything, each time, for models remember nothing.
pub struct Question<'a> {
    pub system: &'a str,
    pub messages: &'a [Message],
    pub tools: &'a [&'static ToolSpec],
}

/// What was said so far.
pub enum Message {
    /// By us.
    Asked(String),
    /// By the model, in the protocol's own words, which it wants to see again as they were.
    Answered(Value),
    /// By us, to each call of the last answer.
    Replied(Vec<Reply>),
}

/// What came of a call.
pub struct Reply {
    /// The call's id.
    pub id: String,
    pub text: String,
    pub ok: bool,
}

/// What the model said.
#[derive(Debug)]
pub struct Answer {
    pub text: String,
    pub calls: Vec<Call>,
    pub stop: Stop,
    /// Of question and answer together.
    pub tokens: Option<u64>,
    pub model: Option<String>,
    pub id: Option<String>,
    /// For [`Message::Answered`].
    pub echo: Value,
}

/// A tool the model wants.
#[derive(Debug)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// An object, if the model kept to the protocol.
    pub arguments: Value,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Done,
    Tools,
    /// At a limit on length.
    Cut,
    /// It, or its provider's filter, would not.
    Refused,
}

/// A short text that names something: a model, a request. Never long, never with controls, whoever sent it.
pub fn name(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty() && text.len() <= 200)?;
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}

/// The id and name of a call, which both have to be there.
pub fn call(id: &Value, name: &Value, arguments: Value) -> Option<Call> {
    Some(Call { id: id.as_str()?.to_owned(), name: name.as_str()?.to_owned(), arguments })
}
