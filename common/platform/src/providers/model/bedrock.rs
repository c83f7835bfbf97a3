//! Amazon Bedrock Converse.

use base::encoding::percent_encoded;
use serde_json::{Value, json};

use super::wire::{Answer, Message, Question, Stop, call};
use crate::config::{ModelConfig, Tokens};

pub fn path(config: &ModelConfig) -> String {
    // As one path segment: an id contains a colon, an ARN also slashes.
    format!("/model/{}/converse", percent_encoded(&config.name))
}

pub fn body(ask: &Question<'_>) -> Value {
    let messages = ask.messages.iter().map(|message| match message {
        Message::Asked(text) => json!({"role": "user", "content": [{"text": text}]}),
        Message::Answered(echo) => echo.clone(),
        Message::Replied(replies) => {
            let results = replies.iter().map(|reply| {
                let status = if reply.ok { "success" } else { "error" };
                let content = json!([{"text": reply.text}]);
                json!({"toolResult": {"toolUseId": reply.id, "content": content, "status": status}})
            });
            json!({"role": "user", "content": results.collect::<Value>()})
        }
    });
    let messages: Value = messages.collect();
    let inference = json!({"maxTokens": ask.max_tokens});
    let mut body = json!({"system": [{"text": ask.system}], "messages": messages, "inferenceConfig": inference});
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(|tool| {
            let schema = json!({"json": tool.input_schema()});
            json!({"toolSpec": {"name": tool.name(), "description": tool.description(), "inputSchema": schema}})
        });
        body["toolConfig"] = json!({"tools": tools.collect::<Value>()});
    }
    body
}

/// The response names neither the model nor the request.
pub fn answer(config: &ModelConfig, body: &Value) -> Option<Answer> {
    let message = &body["output"]["message"];
    let content = message["content"].as_array()?;
    let text: String = content.iter().filter_map(|block| block["text"].as_str()).collect();
    let calls: Option<Vec<_>> = content
        .iter()
        .filter_map(|block| block.get("toolUse"))
        .map(|asked| call(&asked["toolUseId"], &asked["name"], asked["input"].clone()))
        .collect();
    let stop = match body["stopReason"].as_str()? {
        "tool_use" => Stop::Tools,
        "max_tokens" | "model_context_window_exceeded" => Stop::Cut,
        "end_turn" | "stop_sequence" => Stop::Done,
        // `guardrail_intervened`, `content_filtered`, `malformed_…`, and unknown reasons.
        _ => Stop::Refused,
    };
    let count = |name: &str| body["usage"][name].as_u64();
    let tokens = count("inputTokens").zip(count("outputTokens")).map(|(input, output)| Tokens { input, output });
    let model = Some(config.name.clone());
    Some(Answer { text, calls: calls?, stop, tokens, model, id: None, echo: message.clone() })
}
