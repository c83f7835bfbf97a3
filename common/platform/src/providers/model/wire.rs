//! What is asked of a model and what it answers, in no protocol's words.

use serde_json::Value;

use crate::config::Tokens;

/// What a provider adds to a question by itself, in tokens: for each message, and where there are tools.
const PER_MESSAGE: u64 = 16;
const FOR_TOOLS: u64 = 1_000;

/// A tool that a model may call.
pub trait ModelTool: Sync {
    fn name(&self) -> &str;
    fn description(&self) -> &str;
    /// JSON Schema of its arguments.
    fn input_schema(&self) -> Value;
}

/// One question: everything, each time, for models remember nothing.
pub struct Question<'a> {
    pub system: &'a str,
    pub messages: &'a [Message],
    pub tools: &'a [&'static dyn ModelTool],
    /// Most tokens of the answer.
    pub max_tokens: u32,
}

impl Question<'_> {
    /// More tokens than this the question has not: a token is at least a byte.
    pub fn most_tokens(&self) -> u64 {
        let messages: u64 = self.messages.iter().map(Message::most_tokens).sum();
        most_tokens_of_frame(self.system.len(), self.tools.iter().copied()) + messages
    }
}

/// The same of everything but the messages.
pub fn most_tokens_of_frame(system_bytes: usize, tools: impl Iterator<Item = &'static dyn ModelTool>) -> u64 {
    let tools: u64 =
        tools.map(|tool| count(tool.description().len() + tool.input_schema().to_string().len() + 64)).sum();
    count(system_bytes) + PER_MESSAGE + if tools > 0 { tools + FOR_TOOLS } else { 0 }
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
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

impl Message {
    /// More tokens than this it has not.
    pub fn most_tokens(&self) -> u64 {
        let bytes = match self {
            Message::Asked(text) => text.len(),
            Message::Answered(echo) => echo.to_string().len(),
            Message::Replied(replies) => replies.iter().map(|reply| reply.id.len() + reply.text.len() + 32).sum(),
        };
        count(bytes) + PER_MESSAGE
    }
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
    /// As the provider counts them.
    pub tokens: Option<Tokens>,
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
