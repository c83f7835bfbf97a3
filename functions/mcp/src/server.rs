//! The protocol's methods. Their work is done in the other modules.

use std::sync::Arc;

use base::encoding::{base64_any, base64_url};
use base::input;
use http::request::Parts;
use platform::http::ApiError;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tools_lookups::lookups;

use crate::Shop;
use crate::answers::{UNAUTHORIZED, structured};
use crate::calls::Answered;
use crate::find::unwrapped;
use crate::prompts;
use crate::requests::{TaskError, unknown_task};
use crate::tools::{self, Call, Entry, LOOKUP_FIELDS, REQUEST_FIELDS, Selection, USE_FIELDS};
use crate::transport::Aside;

/// Lookups on one page of the whole list. The first page has all other tools and no lookups.
const PAGE: usize = 50;
/// How long clients may cache the list and the description, in milliseconds: they change with a deployment.
pub const KEPT_MS: u64 = 300_000;

/// Answers MCP.
#[derive(Clone)]
pub struct Server(pub Arc<Shop>);

/// The HTTP request of a message.
fn parts_of(context: &RequestContext<RoleServer>) -> Result<&Parts, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    parts.ok_or_else(|| ErrorData::internal_error("the message has no HTTP request", None))
}

impl Server {
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.tools.iter().find(|entry| entry.name == name)
    }

    /// The lookup that a call names, with its arguments.
    fn lookup(&self, arguments: JsonObject) -> Result<(&Entry, JsonObject), ApiError> {
        let (name, arguments) = unwrapped(LOOKUP_FIELDS, arguments)?;
        let is_row = |entry: &&Entry| matches!(entry.kind, Call::Paid(spec) if spec.name == name);
        let row = lookups::find(&name).and_then(|_| self.0.tools.iter().find(is_row));
        let row = row.ok_or_else(|| ApiError::field("name", "is not a lookup; see the tool's description"))?;
        Ok((row, arguments))
    }

    /// The tool that a call names, with its arguments.
    fn used(&self, arguments: JsonObject) -> Result<(&Entry, JsonObject), ApiError> {
        let (name, arguments) = unwrapped(USE_FIELDS, arguments)?;
        let prefix = &self.0.prefix;
        match self.0.named(&name) {
            Some(entry) if matches!(entry.kind, Call::Use) => Err(ApiError::field("name", "is this tool itself")),
            Some(entry) => Ok((entry, arguments)),
            None => Err(ApiError::field("name", format!("is not a tool; {prefix}find_tools finds tools"))),
        }
    }

    async fn call(
        &self,
        entry: &Entry,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (shop, parts, meta) = (&*self.0, parts_of(context)?, &context.meta.0);
        let aside = Aside::of(parts);
        let answered = match entry.kind {
            Call::Prices => {
                let prices = shop.prices(&*shop.app.lacking().await);
                return Ok(CallToolResult::structured(prices).into());
            }
            Call::Find => match shop.found(&arguments, &*shop.app.lacking().await) {
                Ok(found) => return Ok(structured(found).into()),
                Err(error) => Answered::from(error),
            },
            Call::Lookup(_) | Call::Use => {
                let named = match entry.kind {
                    Call::Lookup(_) => self.lookup(arguments),
                    _ => self.used(arguments),
                };
                match named {
                    Ok((entry, arguments)) => return Box::pin(self.call(entry, arguments, context)).await,
                    Err(error) => Answered::from(error),
                }
            }
            Call::Paid(spec) => {
                let answered = shop.buy(spec, parts, meta, arguments).await.unwrap_or_else(Answered::from);
                let accepted = answered.is_accepted();
                let result = answered.result(entry, Some(spec), &shop.prefix, &aside)?;
                if !accepted {
                    return Ok(result.into());
                }
                let knows_tasks = context.client_capabilities().is_some_and(|client| client.supports_tasks());
                match shop.accepted(result, parts, meta, knows_tasks).await {
                    Ok(response) => return Ok(response),
                    Err(error) => Answered::from(error),
                }
            }
            Call::Read(read) => shop.read(read, parts, meta, &arguments).await.unwrap_or_else(Answered::from),
            Call::Request => {
                let answered = async {
                    let asked = input::validate(REQUEST_FIELDS, &arguments).map_err(ApiError::InvalidRequest)?;
                    let text = |name: &str| asked.get(name).and_then(|value| value.as_str());
                    shop.request(parts, meta, text("request_id").unwrap_or_default(), text("poll_key")).await
                };
                match answered.await {
                    Ok((_, body)) => return Ok(structured(body).into()),
                    Err(error) => Answered::from(error),
                }
            }
        };
        answered.result(entry, None, &shop.prefix, &aside).map(CallToolResponse::from)
    }

    /// The protocol's error for a refusal; `unknown` if there is no such thing for this caller.
    fn refusal(&self, refused: Answered, unknown: ErrorData, context: &RequestContext<RoleServer>) -> ErrorData {
        let Some(entry) = self.0.tools.iter().find(|entry| matches!(entry.kind, Call::Request)) else {
            return unknown;
        };
        let Ok(parts) = parts_of(context) else { return unknown };
        let body = refused.body.clone();
        match (refused.status.as_u16(), refused.result(entry, None, &self.0.prefix, &Aside::of(parts))) {
            (_, Err(error)) if error.code == UNAUTHORIZED => error,
            (404, _) => unknown,
            (400, _) => ErrorData::invalid_params(said(&body).to_owned(), Some(body)),
            _ => ErrorData::internal_error(said(&body).to_owned(), Some(body)),
        }
    }

    fn task_error(&self, error: TaskError, context: &RequestContext<RoleServer>) -> ErrorData {
        self.refusal(error.0, unknown_task(), context)
    }
}

/// The message of a refusal.
fn said(body: &Value) -> &str {
    body["message"].as_str().unwrap_or("try again")
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let name = &self.0.app.config.service_name;
        let capabilities =
            ServerCapabilities::builder().enable_prompts().enable_resources().enable_tools().enable_tasks().build();
        let mut server = Implementation::new(name.clone(), env!("CARGO_PKG_VERSION"));
        server.title = Some(name.clone());
        server.website_url = self.0.app.config.base_url.clone();
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(tools::named(
            "Descriptions say which tools cost money. With an access token (Authorization: Bearer), a call is paid from \
             credits at once: dry_run shows the price first, and max_cost_usdc limits it. Without one, it answers with x402 \
             payment terms, and nothing is charged until you repeat the same call with the signed payment in \
             _meta[\"x402/payment\"]. Give every purchase an idempotency_key and keep the \
             same value for every retry of it. x402 clients refuse calls above their own cap: raise it first for expensive \
             calls. Slow tools answer with a request_id: poll {get_request} for the result. The list of tools is short: \
             {find_tools} finds all others, and {use_tool} calls them. Guides are among the resources.",
            &self.0.prefix,
        ))
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let mut found = DiscoverResult::from_server_info(versions, self.get_info());
        found.ttl_ms = KEPT_MS;
        found.cache_scope = CacheScope::Public;
        Ok(found)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (tools, prefix) = (&self.0.tools, &self.0.prefix);
        let cursor = request.and_then(|request| request.cursor);
        let (listed, next): (Vec<&Entry>, Option<usize>) = match Selection::of(parts_of(&context)?.uri.query()) {
            Selection::All => {
                let first = tools::first_page(tools);
                let (start, end) = match cursor {
                    None => (0, first),
                    Some(cursor) => {
                        let start = page_start(&cursor)
                            .filter(|start| {
                                (first..tools.len()).contains(start) && (start - first).is_multiple_of(PAGE)
                            })
                            .ok_or_else(foreign_cursor)?;
                        (start, tools.len().min(start + PAGE))
                    }
                };
                (tools[start..end].iter().collect(), (end < tools.len()).then_some(end))
            }
            _ if cursor.is_some() => return Err(foreign_cursor()),
            Selection::Usual => (tools::usual(tools, prefix), None),
            Selection::Named(words) => (tools::chosen(tools, prefix, &words).map_err(|words| unknown(&words))?, None),
        };
        // Unavailable tools are left out of their page without moving the others, so old cursors stay valid.
        let lacking = self.0.app.lacking().await;
        let can = |entry: &&Entry| !matches!(entry.kind, Call::Paid(spec) if !lacking.can(spec));
        let page = listed.into_iter().filter(can).map(|entry| entry.shown(prefix).clone());
        let mut list = ListToolsResult::with_all_items(page.collect());
        list.next_cursor = next.map(page_cursor);
        list.ttl_ms = Some(KEPT_MS);
        list.cache_scope = Some(CacheScope::Public);
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = self.entry(&request.name) else {
            return Err(ErrorData::invalid_params(
                format!("there is no tool {:?}; {}find_tools finds tools", request.name, self.0.prefix),
                None,
            ));
        };
        self.call(entry, request.arguments.unwrap_or_default(), &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let found = self.0.task(parts_of(&context)?, &context.meta.0, &request.task_id).await;
        found.map(GetTaskResult::new).map_err(|error| self.task_error(error, &context))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let found = self.0.task_exists(parts_of(&context)?, &context.meta.0, &request.task_id).await;
        found.map_err(|error| self.task_error(error, &context))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let found = self.0.task_exists(parts_of(&context)?, &context.meta.0, &request.task_id).await;
        found.map_err(|error| self.task_error(error, &context))
    }

    /// Methods that the library does not know, and known ones whose parameters it cannot read. The protocol counts the
    /// latter as invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        match wanted(&method) {
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
            Some(wanted) => {
                let given = params.unwrap_or_default();
                let wrong = wanted.iter().find_map(|member| member.wrong_in(&given));
                let wrong = wrong.unwrap_or_else(|| "params do not fit this method".to_owned());
                Err(ErrorData::invalid_params(format!("{method}: {wrong}"), None))
            }
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        one_page(request)?;
        let list = ListResourcesResult::with_all_items(self.0.resources());
        Ok(list.with_ttl_ms(KEPT_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        let list = ListResourceTemplatesResult::with_all_items(self.0.templates());
        Ok(list.with_ttl_ms(KEPT_MS).with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let found = self.0.resource(parts_of(&context)?, &context.meta.0, &request.uri).await;
        found.map(ReadResourceResponse::from).map_err(|refused| {
            let about = Some(json!({"uri": request.uri}));
            let unknown = ErrorData::resource_not_found("there is no such resource, or it is not yours", about);
            self.refusal(refused, unknown, &context)
        })
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        one_page(request)?;
        let list = ListPromptsResult::with_all_items(prompts::all(&|word| self.0.has(word)));
        Ok(list.with_ttl_ms(KEPT_MS).with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::filled(&request, &self.0.prefix, &|word| self.0.has(word)).map(GetPromptResponse::from)
    }

    /// Not declared. The library would answer with an empty list.
    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

/// A parameter of a method.
struct Wanted {
    name: &'static str,
    needed: bool,
    kind: fn(&Value) -> bool,
    /// What it has to be, for the error message.
    is: &'static str,
}

impl Wanted {
    fn wrong_in(&self, params: &Value) -> Option<String> {
        let Wanted { name, needed, kind, is } = self;
        match params.get(name).filter(|value| !value.is_null()) {
            None => needed.then(|| format!("params.{name} is missing; it is {is}")),
            Some(value) => (!kind(value)).then(|| format!("params.{name} has to be {is}")),
        }
    }
}

/// The parameters of the methods served here; `None` for other methods.
fn wanted(method: &str) -> Option<&'static [Wanted]> {
    const NAME: Wanted =
        Wanted { name: "name", needed: true, kind: Value::is_string, is: "the tool's or prompt's name, a string" };
    const URI: Wanted = Wanted { name: "uri", needed: true, kind: Value::is_string, is: "a resource's URI, a string" };
    const ARGUMENTS: Wanted = Wanted { name: "arguments", needed: false, kind: Value::is_object, is: "an object" };
    const TASK: Wanted = Wanted { name: "taskId", needed: true, kind: Value::is_string, is: "the task's id, a string" };
    const REVISION: Wanted =
        Wanted { name: "protocolVersion", needed: true, kind: Value::is_string, is: "a revision, a string" };
    const CAPABILITIES: Wanted = Wanted { name: "capabilities", needed: true, kind: Value::is_object, is: "an object" };
    const CLIENT: Wanted =
        Wanted { name: "clientInfo", needed: true, kind: Value::is_object, is: "an object with name and version" };
    match method {
        "initialize" => Some(&[REVISION, CAPABILITIES, CLIENT]),
        "ping" | "server/discover" | "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            Some(&[])
        }
        "tools/call" | "prompts/get" => Some(&[NAME, ARGUMENTS]),
        "resources/read" => Some(&[URI]),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some(&[TASK]),
        _ => None,
    }
}

/// For a list with one page, which no cursor belongs to.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => Err(foreign_cursor()),
        None => Ok(()),
    }
}

fn foreign_cursor() -> ErrorData {
    ErrorData::invalid_params("the cursor does not belong to this list", None)
}

/// The error for words of `?tools=` that name no tool.
fn unknown(words: &[String]) -> ErrorData {
    let words: Vec<String> = words.iter().take(10).map(|word| format!("{word:?}")).collect();
    let message = format!(
        "tools={} in the address: there is no such tool. Give names, the first words of names, categories, or all",
        words.join(",")
    );
    ErrorData::invalid_params(message, None)
}

/// The cursor of a page: where it starts. It is readable, but clients should not rely on its form.
fn page_cursor(start: usize) -> String {
    base64_url(json!({"from": start}).to_string().as_bytes())
}

fn page_start(cursor: &str) -> Option<usize> {
    let cursor: Value = serde_json::from_slice(&base64_any(cursor)?).ok()?;
    usize::try_from(cursor["from"].as_u64()?).ok()
}
