//! Chat completions, as spoken by OpenAI and by every compatible server.

use serde_json::{Map, Value, json};

use super::wire::{Answer, Message, Question, Stop, call, name};
use crate::config::{ModelConfig, Tokens};

pub fn path() -> String {
    "/chat/completions".to_owned()
}

pub fn body(config: &ModelConfig, ask: &Question<'_>) -> Value {
    let mut messages = vec![json!({"role": "system", "content": ask.system})];
    for message in ask.messages {
        match message {
            Message::Asked(text) => messages.push(json!({"role": "user", "content": text})),
            Message::Answered(echo) => messages.push(echo.clone()),
            Message::Replied(replies) => messages.extend(replies.iter().map(|reply| {
                let content = if reply.ok { reply.text.clone() } else { format!("Error: {}", reply.text) };
                json!({"role": "tool", "tool_call_id": reply.id, "content": content})
            })),
        }
    }
    let mut body = json!({"model": config.name, "messages": messages});
    // OpenAI's newer models reject the old name; many other servers do not know the new one.
    let limit = if config.url.is_none() { "max_completion_tokens" } else { "max_tokens" };
    body[limit] = json!(ask.max_tokens);
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(|tool| {
            let function =
                json!({"name": tool.name(), "description": tool.description(), "parameters": tool.input_schema()});
            json!({"type": "function", "function": function})
        });
        body["tools"] = tools.collect();
    }
    body
}

pub fn answer(body: &Value) -> Option<Answer> {
    let choice = body["choices"].as_array()?.first()?;
    let message = choice["message"].as_object()?;
    let text = message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
    let refused = message.get("refusal").and_then(Value::as_str).is_some_and(|refusal| !refusal.is_empty());
    let asked = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
    let calls: Option<Vec<_>> = asked
        .iter()
        .map(|asked| {
            let function = &asked["function"];
            // A JSON text; some servers send an object instead.
            let arguments = match &function["arguments"] {
                Value::String(text) if text.trim().is_empty() => json!({}),
                Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
                other => other.clone(),
            };
            call(&asked["id"], &function["name"], arguments)
        })
        .collect();
    let calls = calls?;
    // Servers differ in the finish reason of an answer with tool calls.
    let stop = match choice["finish_reason"].as_str().unwrap_or("stop") {
        "length" => Stop::Cut,
        "content_filter" => Stop::Refused,
        _ if refused => Stop::Refused,
        _ if !calls.is_empty() => Stop::Tools,
        _ => Stop::Done,
    };
    // Only the members of the protocol: some servers add their own and reject them when they are sent back.
    let mut echo = Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), json!(text))]);
    if !asked.is_empty() {
        echo.insert("tool_calls".to_owned(), Value::Array(asked));
    }
    Some(Answer {
        text,
        calls,
        stop,
        tokens: tokens(&body["usage"]),
        model: name(&body["model"]),
        id: name(&body["id"]),
        echo: Value::Object(echo),
    })
}

/// Some servers count reasoning tokens only in the total. So output is `completion_tokens` or the total minus the input,
/// whichever is larger.
fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |name: &str| usage[name].as_u64();
    let input = count("prompt_tokens").unwrap_or_default();
    let rest = count("total_tokens").map(|total| total.saturating_sub(input));
    Some(Tokens { input, output: count("completion_tokens").max(rest)? })
}
