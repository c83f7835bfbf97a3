//! Anthropic Messages.

use serde_json::{Value, json};

use super::wire::{Answer, Message, Question, Stop, call, name};
use crate::config::{ModelConfig, Tokens};

/// The protocol's version, sent with every request.
pub const VERSION: &str = "2023-06-01";

pub fn path() -> String {
    "/v1/messages".to_owned()
}

pub fn body(config: &ModelConfig, ask: &Question<'_>) -> Value {
    let messages = ask.messages.iter().map(|message| match message {
        Message::Asked(text) => json!({"role": "user", "content": text}),
        Message::Answered(echo) => json!({"role": "assistant", "content": echo}),
        Message::Replied(replies) => {
            let results = replies.iter().map(|reply| {
                json!({"type": "tool_result", "tool_use_id": reply.id, "content": reply.text, "is_error": !reply.ok})
            });
            json!({"role": "user", "content": results.collect::<Value>()})
        }
    });
    let messages: Value = messages.collect();
    let mut body =
        json!({"model": config.name, "max_tokens": ask.max_tokens, "system": ask.system, "messages": messages});
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(
            |tool| json!({"name": tool.name(), "description": tool.description(), "input_schema": tool.input_schema()}),
        );
        body["tools"] = tools.collect();
    }
    body
}

pub fn answer(body: &Value) -> Option<Answer> {
    let content = body["content"].as_array()?;
    let of_type = |kind: &'static str| content.iter().filter(move |block| block["type"] == kind);
    let text: String = of_type("text").filter_map(|block| block["text"].as_str()).collect();
    let calls: Option<Vec<_>> =
        of_type("tool_use").map(|block| call(&block["id"], &block["name"], block["input"].clone())).collect();
    let stop = match body["stop_reason"].as_str()? {
        "tool_use" => Stop::Tools,
        "max_tokens" | "model_context_window_exceeded" => Stop::Cut,
        "end_turn" | "stop_sequence" => Stop::Done,
        // `refusal` and unknown reasons. The answer may be incomplete, so it is not used.
        _ => Stop::Refused,
    };
    let usage = &body["usage"];
    let count = |name: &str| usage[name].as_u64();
    let tokens = count("input_tokens").zip(count("output_tokens")).map(|(input, output)| {
        let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"].into_iter().filter_map(count);
        Tokens { input: cached.fold(input, u64::saturating_add), output }
    });
    let (model, id) = (name(&body["model"]), name(&body["id"]));
    Some(Answer { text, calls: calls?, stop, tokens, model, id, echo: body["content"].clone() })
}
