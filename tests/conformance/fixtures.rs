//! The tools, prompts and resources that the official conformance runner expects, on the production handler and behind
//! the production frame. Their names are fixed, and some do things that ours never do (ask the client, send progress
//! and logs). Never deployed.
#![allow(deprecated, reason = "the runner tests what the protocol has deprecated")]

use base::digest;
use mcp::Server;
use ring::hmac;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The production handler, with the fixtures added.
#[derive(Clone)]
pub struct Fixtures(pub Server);

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const TOOLS: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "json_schema_2020_12_tool",
];

/// A value of a library type that has no public constructor.
fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a fixture")
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

fn content(blocks: Value) -> CallToolResponse {
    of::<CallToolResult>(json!({"resultType": "complete", "content": blocks})).into()
}

fn ask(requests: Value, state: Option<&str>) -> CallToolResponse {
    let mut result = InputRequiredResult::from_input_requests(of(requests));
    result.request_state = state.map(sealed);
    result.into()
}

fn elicit(message: &str, name: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn sample(message: &str) -> Value {
    let content = json!({"type": "text", "text": message});
    json!({"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": content}], "maxTokens": 100}})
}

fn key() -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, b"conformance")
}

/// State that the client returns and cannot change.
fn sealed(state: &str) -> String {
    format!("{state}.{}", const_hex::encode(digest::hmac(&key(), state.as_bytes())))
}

fn opened(sealed: Option<&str>) -> Result<Option<String>, ErrorData> {
    let Some(sealed) = sealed else { return Ok(None) };
    let good = sealed.rsplit_once('.').filter(|(state, mac)| {
        let mac = const_hex::decode(mac).unwrap_or_default();
        hmac::verify(&key(), state.as_bytes(), &mac).is_ok()
    });
    let good = good.map(|(state, _)| Some(state.to_owned()));
    good.ok_or_else(|| ErrorData::invalid_params("the request state was changed", None))
}

/// The client's answer with this name.
fn answered<'a>(answers: Option<&'a InputResponses>, name: &str) -> Option<&'a Value> {
    answers?.get(name).filter(|answer| answer.is_object())
}

fn entered(answers: Option<&InputResponses>, name: &str, field: &str) -> Option<String> {
    Some(answered(answers, name)?["content"].get(field)?.as_str()?.to_owned())
}

fn resource(uri: &str) -> Option<Value> {
    let data = |id: &str| json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
    let template = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, template) {
        ("test://static-text" | "test://watched-resource", _) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        (_, Some(id)) => json!({"uri": uri, "mimeType": "application/json", "text": data(id)}),
        _ => return None,
    };
    Some(json!({"resultType": "complete", "contents": [contents]}))
}

impl Fixtures {
    async fn tool(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answers = request.input_responses.as_ref();
        let state = opened(request.request_state.as_deref())?;
        let embedded = json!({"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."});
        Ok(match &*request.name {
            "test_image_content" => content(json!([{"type": "image", "data": PNG, "mimeType": "image/png"}])),
            "test_audio_content" => content(json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])),
            "test_embedded_resource" => content(json!([{"type": "resource", "resource": embedded}])),
            "test_multiple_content_types" => content(json!([
                {"type": "text", "text": "Multiple content types test:"},
                {"type": "image", "data": PNG, "mimeType": "image/png"},
                {"type": "resource", "resource": embedded},
            ])),
            "test_error_handling" => {
                CallToolResult::error(vec![ContentBlock::text("This tool intentionally returns an error for testing")])
                    .into()
            }
            "test_tool_with_progress" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for progress in [0.0, 50.0, 100.0] {
                        let note = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
                        let _ = context.peer.notify_progress(note).await;
                        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    }
                }
                text("done")
            }
            "test_tool_with_logging" => {
                for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    let note = of(json!({"level": "info", "data": line}));
                    let _ = context.peer.notify_logging_message(note).await;
                }
                text("done")
            }
            "test_missing_capability" => {
                let samples = context.client_capabilities().is_some_and(|client| client.sampling.is_some());
                if !samples {
                    let required = of(json!({"sampling": {}}));
                    return Err(ErrorData::missing_required_client_capability(required));
                }
                text("sampling is declared")
            }
            "test_streaming_elicitation" => {
                ask(json!({"user_name": elicit("What is your name?", "name", "string")}), None)
            }
            "test_input_required_result_elicitation" => match entered(answers, "user_name", "name") {
                Some(name) => text(format!("Hello, {name}!")),
                None => ask(json!({"user_name": elicit("What is your name?", "name", "string")}), None),
            },
            "test_input_required_result_sampling" => match answered(answers, "capital_question") {
                Some(answer) => text(answer["content"]["text"].as_str().unwrap_or("no text").to_owned()),
                None => ask(json!({"capital_question": sample("What is the capital of France?")}), None),
            },
            "test_input_required_result_list_roots" => match answered(answers, "client_roots") {
                Some(answer) => text(format!("roots: {}", answer["roots"])),
                None => ask(json!({"client_roots": {"method": "roots/list", "params": {}}}), None),
            },
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                match (answered(answers, "confirm"), state) {
                    (Some(_), Some(_)) => text("state-ok"),
                    _ => ask(json!({"confirm": elicit("Please confirm", "ok", "boolean")}), Some("confirming")),
                }
            }
            "test_input_required_result_multiple_inputs" => {
                let all =
                    ["user_name", "greeting", "client_roots"].iter().all(|name| answered(answers, name).is_some());
                match all && state.is_some() {
                    true => text("all inputs are there"),
                    false => ask(
                        json!({
                            "user_name": elicit("What is your name?", "name", "string"),
                            "greeting": sample("Generate a greeting"),
                            "client_roots": {"method": "roots/list", "params": {}},
                        }),
                        Some("multiple"),
                    ),
                }
            }
            "test_input_required_result_multi_round" => match (state.as_deref(), answers) {
                (Some("round-2"), answers) if answered(answers, "step2").is_some() => text("both steps are done"),
                (Some("round-1"), answers) if answered(answers, "step1").is_some() => ask(
                    json!({"step2": elicit("Step 2: What is your favorite color?", "color", "string")}),
                    Some("round-2"),
                ),
                _ => ask(json!({"step1": elicit("Step 1: What is your name?", "name", "string")}), Some("round-1")),
            },
            "test_input_required_result_capabilities" => {
                let client = context.client_capabilities().unwrap_or_default();
                let mut requests = json!({});
                if client.sampling.is_some() {
                    requests["question"] = sample("What is the capital of France?");
                }
                if client.elicitation.is_some() {
                    requests["user_name"] = elicit("What is your name?", "name", "string");
                }
                ask(requests, None)
            }
            _ => text("This is a simple text response for testing."),
        })
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.0.get_info();
        let mut capabilities = serde_json::to_value(&info.capabilities).expect("JSON");
        for name in ["prompts", "resources", "completions", "logging"] {
            capabilities[name] = json!({});
        }
        // The runner would test tasks with its own tools. Ours are tested in tests/mcp_calls.rs.
        capabilities.as_object_mut().expect("an object").remove("extensions");
        info.capabilities = of(capabilities);
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.0.list_tools(request, context).await?;
        list.tools.extend(TOOLS.iter().map(|name| {
            let schema = match *name {
                "json_schema_2020_12_tool" => json!({
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "type": "object",
                    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
                        "street": {"type": "string"}, "city": {"type": "string"},
                    }}},
                    "properties": {
                        "name": {"type": "string"},
                        "address": {"$ref": "#/$defs/address"},
                        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                        "phone": {"type": "string"},
                        "email": {"type": "string"},
                    },
                    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
                    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
                    "then": {"required": ["phone"]},
                    "else": {"required": ["email"]},
                    "additionalProperties": false,
                }),
                _ => json!({"type": "object", "properties": {}}),
            };
            of::<Tool>(
                json!({"name": name, "description": "A fixture of the conformance runner", "inputSchema": schema}),
            )
        }));
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if TOOLS.contains(&&*request.name) {
            return self.tool(request, &context).await;
        }
        self.0.call_tool(request, context).await
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut found = self.0.discover(context).await?;
        found.capabilities = self.get_info().capabilities;
        Ok(found)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(of(json!({"resultType": "complete", "completion": {"values": [], "total": 0, "hasMore": false}})))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(of(json!([
            {"uri": "test://static-text", "name": "Static text", "description": "Text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "Static binary", "description": "A picture", "mimeType": "image/png"},
            {"uri": "test://watched-resource", "name": "Watched", "description": "Text", "mimeType": "text/plain"},
        ]))))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(of(json!([
            {"uriTemplate": "test://template/{id}/data", "name": "Template", "description": "Data", "mimeType": "application/json"},
        ]))))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match resource(&request.uri) {
            Some(found) => Ok(ReadResourceResponse::Complete(of(found))),
            None => Err(ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": request.uri})))),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({"name": name, "description": "An argument", "required": true});
        let prompt =
            |name: &str, arguments: Value| json!({"name": name, "description": "A fixture", "arguments": arguments});
        Ok(ListPromptsResult::with_all_items(of(json!([
            prompt("test_simple_prompt", json!([])),
            prompt("test_prompt_with_arguments", json!([argument("arg1"), argument("arg2")])),
            prompt("test_prompt_with_embedded_resource", json!([argument("resourceUri")])),
            prompt("test_prompt_with_image", json!([])),
            prompt("test_input_required_result_prompt", json!([])),
        ]))))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let says = |text: String| json!({"role": "user", "content": {"type": "text", "text": text}});
        let messages = match request.name.as_str() {
            "test_simple_prompt" => json!([says("This is a simple prompt for testing.".to_owned())]),
            "test_prompt_with_arguments" => {
                json!([says(format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    argument("arg1"),
                    argument("arg2")
                ))])
            }
            "test_prompt_with_embedded_resource" => json!([
                {"role": "user", "content": {"type": "resource", "resource": {
                    "uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing.",
                }}},
                says("Please process the embedded resource above.".to_owned()),
            ]),
            "test_prompt_with_image" => json!([
                {"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}},
                says("Please analyze the image above.".to_owned()),
            ]),
            "test_input_required_result_prompt" => {
                match entered(request.input_responses.as_ref(), "user_context", "context") {
                    Some(context) => json!([says(format!("Context: {context}"))]),
                    None => {
                        let asked =
                            json!({"user_context": elicit("What context should the prompt use?", "context", "string")});
                        return Ok(InputRequiredResult::from_input_requests(of(asked)).into());
                    }
                }
            }
            _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
        };
        Ok(GetPromptResponse::Complete(of(json!({"resultType": "complete", "messages": messages}))))
    }
}
