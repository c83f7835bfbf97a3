//! Questions to a model and its answers, independent of a protocol.

use serde_json::Value;

use crate::config::Tokens;

/// Tokens a provider adds by itself: for each message, and once if there are tools.
const PER_MESSAGE: u64 = 16;
const FOR_TOOLS: u64 = 1_000;

/// A tool that a model may call.
pub trait ModelTool: Sync {
    fn name(&self) -> &str;
    fn description(&self) -> &str;
    /// JSON Schema of its arguments.
    fn input_schema(&self) -> Value;
}

/// One question. Models have no memory, so it contains the whole conversation.
pub struct Question<'a> {
    pub system: &'a str,
    pub messages: &'a [Message],
    pub tools: &'a [&'static dyn ModelTool],
    /// Maximum number of output tokens.
    pub max_tokens: u32,
}

impl Question<'_> {
    /// Upper bound of the input tokens: a token is at least one byte.
    pub fn most_tokens(&self) -> u64 {
        let messages: u64 = self.messages.iter().map(Message::most_tokens).sum();
        most_tokens_of_frame(self.system.len(), self.tools.iter().copied()) + messages
    }
}

/// Upper bound of the input tokens without the messages.
pub fn most_tokens_of_frame(system_bytes: usize, tools: impl Iterator<Item = &'static dyn ModelTool>) -> u64 {
    let tools: u64 =
        tools.map(|tool| count(tool.description().len() + tool.input_schema().to_string().len() + 64)).sum();
    count(system_bytes) + PER_MESSAGE + if tools > 0 { tools + FOR_TOOLS } else { 0 }
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// One message of the conversation.
pub enum Message {
    /// Ours.
    Asked(String),
    /// The model's, in the protocol's own form: it has to be sent back unchanged.
    Answered(Value),
    /// Our results of the tool calls in the last answer.
    Replied(Vec<Reply>),
}

impl Message {
    /// Upper bound of its tokens.
    pub fn most_tokens(&self) -> u64 {
        let bytes = match self {
            Message::Asked(text) => text.len(),
            Message::Answered(echo) => echo.to_string().len(),
            Message::Replied(replies) => replies.iter().map(|reply| reply.id.len() + reply.text.len() + 32).sum(),
        };
        count(bytes) + PER_MESSAGE
    }
}

/// The result of a tool call.
pub struct Reply {
    /// The call's id.
    pub id: String,
    pub text: String,
    pub ok: bool,
}

/// The model's answer.
#[derive(Debug)]
pub struct Answer {
    pub text: String,
    pub calls: Vec<Call>,
    pub stop: Stop,
    /// As the provider counted them.
    pub tokens: Option<Tokens>,
    pub model: Option<String>,
    pub id: Option<String>,
    /// For [`Message::Answered`].
    pub echo: Value,
}

/// A tool call the model asks for.
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
    /// A length limit was reached.
    Cut,
    /// The model or its provider's filter refused.
    Refused,
}

/// A short name (of a model, a request) from an untrusted answer: at most 200 bytes, no control characters.
pub fn name(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty() && text.len() <= 200)?;
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}

/// A tool call; `None` without an id or a name.
pub fn call(id: &Value, name: &Value, arguments: Value) -> Option<Call> {
    Some(Call { id: id.as_str()?.to_owned(), name: name.as_str()?.to_owned(), arguments })
}
