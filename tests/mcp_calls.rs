//! MCP: invalid messages, authentication, one payment sent many times at once, and who may read a task.

use base::encoding::base64_standard;
use futures_util::future::join_all;
use local::Stack;
use serde_json::{Value, json};
use tools_lookups::lookups;

use crate::approvals::{APPROVER, POLICY, decide, link};
use crate::souls_market::{Shop, text};
use crate::support::{Answer, Client, Payer, VIN, VIN_PATH, equipped_stack, eventually, payer, run, stack, stack_with};

const NOW: &str = "2026-07-28";
const BUY: &str = "agora_vin_decode";
const READ: &str = "agora_web_read";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Sends one message of the current revision.
async fn ask(client: &Client, headers: &[(&str, &str)], method: &str, params: Value, capabilities: Value) -> Answer {
    ask_at("/mcp", client, headers, method, params, capabilities).await
}

/// Sends one message to this address.
async fn ask_at(
    address: &str,
    client: &Client,
    headers: &[(&str, &str)],
    method: &str,
    mut params: Value,
    capabilities: Value,
) -> Answer {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(NOW);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    let name = ["name", "taskId", "uri"].iter().find_map(|name| params[*name].as_str()).unwrap_or_default().to_owned();
    let mut all =
        vec![("accept", "application/json, text/event-stream"), ("mcp-protocol-version", NOW), ("mcp-method", method)];
    if !name.is_empty() {
        all.push(("mcp-name", &name));
    }
    all.extend_from_slice(headers);
    client.post(address, &all, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await
}

/// Calls a tool and returns its result.
pub async fn call(client: &Client, headers: &[(&str, &str)], tool: &str, arguments: Value, meta: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let answer = ask(client, headers, "tools/call", params, json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["result"].clone()
}

/// The names of all tools, page by page.
pub async fn tool_names(client: &Client) -> Vec<Vec<String>> {
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tool_list(client).await.iter().map(|page| page.iter().map(name).collect()).collect()
}

/// The names that a client at this address lists, on one page.
async fn listed(client: &Client, address: &str) -> Vec<String> {
    let list = ask_at(address, client, &[], "tools/list", json!({}), json!({})).await.json()["result"].clone();
    assert!(list.get("nextCursor").is_none(), "{address}: {list}");
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// All tools, page by page.
pub async fn tool_list(client: &Client) -> Vec<Vec<Value>> {
    let (mut pages, mut next) = (Vec::new(), Some(json!({})));
    while let Some(asked) = next {
        let list = ask_at("/mcp?tools=all", client, &[], "tools/list", asked, json!({})).await;
        let list = list.json()["result"].clone();
        pages.push(list["tools"].as_array().unwrap().clone());
        next = list.get("nextCursor").map(|cursor| json!({"cursor": cursor}));
    }
    pages
}

/// The payment for the terms of an unpaid call, as `_meta` carries it.
fn payment(payer: &Payer, terms: &Value) -> Value {
    let accepted = &terms["accepts"][0];
    let amount = accepted["amount"].as_str().and_then(|amount| amount.parse().ok()).expect("an amount");
    json!({"x402/payment": payer::v2(&payer.authorize(amount), accepted)})
}

#[test]
fn invalid_messages_get_protocol_errors() {
    run(async {
        let stack = stack().await;
        let client = Client::new(&stack.base_url);
        let host = stack.base_url.trim_start_matches("http://").to_owned();
        let (json_type, both) =
            (("content-type", "application/json"), ("accept", "application/json, text/event-stream"));
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned();
        let many = |n: usize| format!("[{}]", vec![ping.as_str(); n].join(","));
        let deep = "[".repeat(5000);
        let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(1024 * 1024));
        let evil = ("origin", "https://evil.example.com");
        type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, u16, Option<i64>);
        let (two, none, too_many) = (many(2), "[]".to_owned(), many(21));
        let cases: Vec<Case> = vec![
            ("a ping", vec![json_type, both], &ping, 200, None),
            ("no Accept", vec![json_type], &ping, 200, None),
            ("a batch", vec![json_type, both], &two, 200, None),
            ("no JSON", vec![json_type, both], "{", 400, Some(-32700)),
            ("too deep", vec![json_type, both], &deep, 400, Some(-32700)),
            ("no object", vec![json_type, both], "7", 400, Some(-32600)),
            ("no message", vec![json_type, both], r#"{"a":1}"#, 400, Some(-32600)),
            ("no type", vec![both], &ping, 415, Some(-32600)),
            ("another type", vec![("content-type", "text/plain"), both], &ping, 415, Some(-32600)),
            ("another answer", vec![json_type, ("accept", "text/html")], &ping, 406, Some(-32600)),
            ("too large", vec![json_type, both], &large, 413, Some(-32600)),
            ("an empty batch", vec![json_type, both], &none, 400, Some(-32600)),
            ("a large batch", vec![json_type, both], &too_many, 400, Some(-32600)),
            ("a late batch", vec![json_type, both, ("mcp-protocol-version", "2025-11-25")], &two, 400, Some(-32600)),
            ("another host", vec![json_type, both, ("host", "evil.example.com")], &ping, 403, Some(-32600)),
            ("another page", vec![json_type, both, evil], &ping, 403, Some(-32600)),
            ("its own page", vec![json_type, both, ("host", &host), ("origin", &stack.base_url)], &ping, 200, None),
        ];
        for (what, headers, body, status, code) in cases {
            let answer = client.send("POST", "/mcp", &headers, body.to_owned()).await.expect("an answer");
            assert_eq!(
                (answer.status, answer.json()["error"]["code"].as_i64()),
                (status, code),
                "{what}: {}",
                answer.text
            );
            assert_eq!(answer.header("content-type"), Some("application/json"), "{what}");
            assert!(answer.header("mcp-session-id").is_none());
        }
        let two = client.send("POST", "/mcp", &[json_type, both], two).await.expect("an answer").json();
        assert_eq!(two.as_array().map(Vec::len), Some(2), "{two}");
        for method in ["GET", "DELETE", "PUT"] {
            let answer = client.send(method, "/mcp", &[both], "").await.expect("an answer");
            assert_eq!((answer.status, answer.header("allow")), (405, Some("OPTIONS, POST")), "{method}");
        }
        let events =
            client.send("POST", "/mcp", &[json_type, ("accept", "text/event-stream")], ping).await.expect("an answer");
        assert_eq!(events.header("content-type"), Some("text/event-stream"));
        assert_eq!(events.text, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
        let completion = json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}});
        for (method, params, status, code) in [
            ("no/such/method", json!({}), 404, -32601),
            ("completion/complete", completion, 404, -32601),
            ("prompts/list", json!({"cursor": "nonsense"}), 200, -32602),
            ("prompts/get", json!({"name": "no_such_prompt"}), 200, -32602),
            ("resources/list", json!({"cursor": "nonsense"}), 200, -32602),
            ("subscriptions/listen", json!({"notifications": {}}), 404, -32601),
            ("tools/list", json!({"cursor": "nonsense"}), 200, -32602),
            ("tools/call", json!({"name": "agora_no_such_tool"}), 200, -32602),
        ] {
            let answer = ask(&client, &[], method, params, json!({})).await;
            assert_eq!(
                (answer.status, answer.json()["error"]["code"].as_i64()),
                (status, Some(code)),
                "{method}: {}",
                answer.text
            );
        }
        malformed_parameters(&client).await;
        let discovered = ask(&client, &[], "server/discover", json!({}), json!({})).await.json()["result"].clone();
        assert_eq!((&discovered["resultType"], &discovered["cacheScope"]), (&json!("complete"), &json!("public")));
        assert!(discovered["capabilities"]["extensions"].get(TASKS).is_some(), "{discovered}");
    });
}

/// A known method with invalid parameters: -32602 in both revisions, never "method not found". The error names the
/// parameter and has the request's id.
async fn malformed_parameters(client: &Client) {
    let now = json!({"io.modelcontextprotocol/protocolVersion": NOW, "io.modelcontextprotocol/clientCapabilities": {TASKS: {}}});
    for (method, params, says) in [
        ("tools/call", Value::Null, "params.name is missing"),
        ("tools/call", json!({}), "params.name is missing"),
        ("tools/call", json!({"name": 7}), "params.name has to be"),
        ("tools/call", json!({"name": ["agora_balance"]}), "params.name has to be"),
        ("tools/call", json!({"name": BUY, "arguments": [VIN]}), "params.arguments has to be"),
        ("tools/call", json!({"name": BUY, "arguments": VIN}), "params.arguments has to be"),
        ("tools/call", json!({"name": "agora_no_such_tool"}), "agora_no_such_tool"),
        ("tools/call", json!([BUY, {"vin": VIN}]), "params has to be an object"),
        ("tools/call", json!("agora_balance"), "params has to be an object"),
        ("tools/list", json!(7), "params has to be an object"),
        ("prompts/get", json!({"arguments": {}}), "params.name is missing"),
        ("resources/read", json!({}), "params.uri is missing"),
        ("tasks/get", json!({}), "params.taskId is missing"),
        ("tasks/cancel", json!({"taskId": {}}), "params.taskId has to be"),
    ] {
        for revision in ["2025-11-25", NOW] {
            let modern = revision == NOW;
            let mut params = params.clone();
            if modern && (params.is_null() || params.is_object()) {
                params["_meta"] = now.clone();
            }
            let name = params["name"].as_str().unwrap_or_default().to_owned();
            let mut headers =
                vec![("accept", "application/json, text/event-stream"), ("mcp-protocol-version", revision)];
            if modern {
                headers.push(("mcp-method", method));
                headers.extend((!name.is_empty()).then_some(("mcp-name", name.as_str())));
            }
            let mut message = json!({"jsonrpc": "2.0", "id": "mine", "method": method, "params": params});
            if message["params"].is_null() {
                message.as_object_mut().unwrap().remove("params");
            }
            let answer = client.post("/mcp", &headers, &message).await;
            let (error, id) = (&answer.json()["error"], &answer.json()["id"]);
            assert_eq!(
                (error["code"].as_i64(), id),
                (Some(-32602), &json!("mine")),
                "{revision} {message}: {}",
                answer.text
            );
            assert!(error["message"].as_str().unwrap().contains(says), "{revision} {message}: {error}");
        }
    }
}

#[test]
fn one_payment_sent_ten_times_over_http_and_mcp_runs_the_tool_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let client = &payer.client;
        let arguments = json!({"vin": VIN});
        let unpaid = call(client, &[], BUY, arguments.clone(), json!({})).await;
        let terms = &unpaid["structuredContent"];
        assert_eq!((&unpaid["isError"], &terms["x402Version"]), (&json!(true), &json!(2)), "{unpaid}");
        assert_eq!(terms["resource"]["url"], format!("mcp://tool/{BUY}"));
        assert_eq!(serde_json::from_str::<Value>(unpaid["content"][0]["text"].as_str().unwrap()).unwrap(), *terms);

        let meta = payment(&payer, terms);
        let header = base64_standard(meta["x402/payment"].to_string().as_bytes());
        let over_mcp = (0..10).map(|_| call(client, &[], BUY, arguments.clone(), meta.clone()));
        let headers = [("payment-signature", header.as_str())];
        let over_http = (0..3).map(|_| client.post(VIN_PATH, &headers, &arguments));
        let (over_mcp, over_http) = tokio::join!(join_all(over_mcp), join_all(over_http));
        let mut ids = std::collections::BTreeSet::new();
        for answer in &over_mcp {
            ids.insert(answer["structuredContent"]["request_id"].to_string());
        }
        for answer in &over_http {
            let body = answer.json();
            ids.insert(body["data"].get("request_id").unwrap_or(&body["request_id"]).to_string());
        }
        assert_eq!(ids.len(), 1, "{over_mcp:?} {over_http:?}");
        let later = call(client, &[], BUY, arguments.clone(), meta.clone()).await;
        assert_eq!(later["structuredContent"]["result"]["make"], "Honda", "{later}");
        assert_eq!(later["_meta"]["x402/payment-response"]["success"], true, "{later}");
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 5_000);
        // The payment is refused for other arguments.
        let other = call(client, &[], BUY, json!({"vin": VIN, "model_year": 2003}), meta).await;
        assert_eq!(other["structuredContent"]["error"], "payment_already_used", "{other}");
    });
}

#[test]
fn an_idempotency_key_is_charged_once_over_http_and_mcp() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 20_000).await;
        let token = payer.token(&stack).await;
        let identity = [("authorization", token.as_str())];
        let named = json!({"vin": VIN, "idempotency_key": "the-car"});
        let all = join_all((0..10).map(|_| call(&payer.client, &identity, BUY, named.clone(), json!({})))).await;
        let bought: Vec<&Value> = all.iter().filter(|answer| answer["isError"] == false).collect();
        let id = &bought.first().expect("one of them")["structuredContent"]["request_id"];
        for answer in &all {
            let body = &answer["structuredContent"];
            assert!(body["request_id"] == *id || body["error"] == "request_in_progress", "{answer}");
        }
        // The same idempotency key in `_meta` or over HTTP is the same purchase.
        let meta = json!({"idempotency-key": "the-car"});
        assert_eq!(
            call(&payer.client, &identity, BUY, json!({"vin": VIN}), meta.clone()).await["structuredContent"]["request_id"],
            *id
        );
        let headers = [identity[0], ("idempotency-key", "the-car")];
        let answer = payer.client.post(VIN_PATH, &headers, &json!({"vin": VIN})).await.json();
        assert_eq!(answer["data"]["request_id"], *id, "{answer}");
        let other = call(&payer.client, &identity, BUY, json!({"vin": VIN, "model_year": 2003}), meta).await;
        assert_eq!(other["structuredContent"]["error"], "idempotency_key_reused", "{other}");
        let balance = call(&payer.client, &identity, "agora_balance", json!({}), json!({})).await;
        assert_eq!(balance["structuredContent"]["credits_balance"], "0.015000", "{balance}");
    });
}

#[test]
fn errors_say_what_to_do() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 1_000).await;
        let token = payer.token(&stack).await;
        let identity = [("authorization", token.as_str())];
        let client = &payer.client;
        let refused = async |tool: &str, arguments: Value, meta: Value| {
            let result = call(client, &identity, tool, arguments, meta).await;
            assert_eq!(result["isError"], true, "{result}");
            let body = result["structuredContent"].clone();
            assert_eq!(serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap(), body);
            assert!(body["what_to_do"].as_str().is_some_and(|todo| todo.len() > 10), "{body}");
            let path = body["details"][0]["path"].as_str().unwrap_or_default().to_owned();
            (body["error"].as_str().unwrap_or_default().to_owned(), path)
        };
        for (tool, arguments, meta, error, path) in [
            (BUY, json!({"vin": "short"}), json!({}), "invalid_request", "vin"),
            (BUY, json!({"vin": VIN, "idempotency_key": 7}), json!({}), "invalid_request", "idempotency_key"),
            (BUY, json!({"vin": VIN}), json!({"x402/payment": "e30="}), "invalid_request", "x402/payment"),
            (BUY, json!({"vin": VIN}), json!({}), "insufficient_credits", ""),
            (BUY, json!({"vin": VIN, "max_cost_usdc": 0.001}), json!({}), "exceeds_caller_budget", "X-Max-Cost-USDC"),
            (READ, json!({"url": "http://169.254.169.254/"}), json!({}), "invalid_request", "url"),
            (
                "agora_soul_execute",
                json!({"slug": "a/b", "service": "x", "input": {}}),
                json!({}),
                "invalid_request",
                "slug",
            ),
            ("agora_soul_execute", json!({"service": "x", "input": {}}), json!({}), "invalid_request", "slug"),
            ("agora_soul_profile", json!({"slug": "nobody"}), json!({}), "not_found", ""),
            ("agora_soul_search", json!({"q": "x", "lmit": 3}), json!({}), "invalid_request", "q"),
            ("agora_balance", json!({"of": "you"}), json!({}), "invalid_request", "of"),
            ("agora_get_request", json!({}), json!({}), "invalid_request", "request_id"),
            (
                "agora_get_request",
                json!({"request_id": "7f1e0d4c-0000-4000-8000-000000000000"}),
                json!({}),
                "not_found",
                "",
            ),
        ] {
            assert_eq!(
                refused(tool, arguments.clone(), meta).await,
                (error.to_owned(), path.to_owned()),
                "{tool} {arguments}"
            );
        }
        // Authentication is required only for private data. HTTP then answers 401 as well.
        for headers in [&[][..], &[("authorization", "Bearer agent_0000")]] {
            let answer = ask(client, headers, "tools/call", json!({"name": "agora_balance"}), json!({})).await;
            assert_eq!(
                (answer.status, answer.json()["error"]["code"].as_i64()),
                (401, Some(-32001)),
                "{}",
                answer.text
            );
            assert!(answer.header("www-authenticate").is_some_and(|scheme| scheme.starts_with("Bearer")));
        }
        // A wallet's proof is accepted too, in a header or in `_meta`.
        let meta = json!({"x-agent-id": payer.address().to_string(), "x-agent-proof": payer.proof("read")});
        let balance = call(client, &[], "agora_balance", json!({}), meta).await;
        assert_eq!(balance["structuredContent"]["credits_balance"], "0.001000", "{balance}");
    });
}

/// Models write flags as booleans, older clients as text. Clients that check arguments against the schema send both.
#[test]
fn dry_run_may_be_a_boolean() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 20_000).await;
        let token = payer.token(&stack).await;
        let identity = [("authorization", token.as_str())];
        let tools = tool_list(&payer.client).await.concat();
        let schema = &tools.iter().find(|tool| tool["name"] == BUY).expect("the tool")["inputSchema"];
        assert_eq!(schema["properties"]["dry_run"]["type"], "boolean", "model hosts take one type");
        for flag in [json!(true), json!("true")] {
            let arguments = json!({"vin": VIN, "dry_run": flag});
            let rehearsed = call(&payer.client, &identity, BUY, arguments, json!({})).await;
            assert_eq!(rehearsed["structuredContent"]["dry_run"], true, "{flag}: {rehearsed}");
        }
        let wrong = call(&payer.client, &identity, BUY, json!({"vin": VIN, "dry_run": "yes"}), json!({})).await;
        assert_eq!(wrong["structuredContent"]["details"][0]["path"], "dry_run", "{wrong}");
        let balance = call(&payer.client, &identity, "agora_balance", json!({}), json!({})).await;
        assert_eq!(balance["structuredContent"]["credits_balance"], "0.020000", "{balance}");
    });
}

/// A wallet with a number, and its access token.
async fn with_number(stack: &Stack) -> (Payer, String, Value) {
    let payer = Payer::new(stack).await;
    payer.give_credits(stack, 10_000_000).await;
    let bought = payer.change("POST", "/v1/tools/voice/numbers", &json!({})).await;
    assert_eq!(bought.status, 201, "{}", bought.text);
    let token = payer.token(stack).await;
    (payer, token, bought.json()["data"].clone())
}

/// Free tools that change something: a model calls another agent, and the other reads what was said.
#[test]
fn a_model_dials_talks_and_hangs_up() {
    run(async {
        let stack = stack().await;
        let ((caller, token, _), (callee, callees, number)) = (with_number(&stack).await, with_number(&stack).await);
        let path = format!("/v1/tools/voice/numbers/{}/inbound", number["id"].as_str().unwrap());
        let put = callee.change("PUT", &path, &json!({"prompt": "A loaf of rye costs 4.50 euros."})).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let does = async |token: &str, tool: &str, arguments: Value| {
            let result = call(&caller.client, &[("authorization", token)], tool, arguments, json!({})).await;
            assert_ne!(result["isError"], true, "{tool}: {result}");
            result["structuredContent"].clone()
        };
        let rang = does(&token, "agora_voice_dial", json!({"to": number["phone_number"]})).await;
        let id = rang["call"]["id"].clone();
        let said = does(&token, "agora_voice_say", json!({"call_id": id, "text": "How much does rye cost?"})).await;
        assert_eq!(
            (&said["said"], &said["status"]),
            (&json!("A loaf of rye costs 4.50 euros."), &json!("in-progress"))
        );
        let busy = json!({"to": number["phone_number"]});
        let busy = call(&caller.client, &[("authorization", &token)], "agora_voice_dial", busy, json!({})).await;
        let (error, todo) = (&busy["structuredContent"]["error"], &busy["structuredContent"]["what_to_do"]);
        assert!(
            error == "line_busy" && todo.as_str().is_some_and(|todo| todo.contains("agora_voice_hang_up")),
            "{busy}"
        );
        assert_eq!(does(&token, "agora_voice_hang_up", json!({"call_id": id})).await["status"], "ended");
        let listed = does(&callees, "agora_voice_calls", json!({"limit": 1})).await;
        assert_eq!(listed["calls"][0]["id"], id, "{listed}");
        let read = does(&callees, "agora_voice_call_detail", json!({"call_id": id})).await;
        let heard = "Caller: How much does rye cost?\nAssistant: A loaf of rye costs 4.50 euros.";
        assert!(read["transcript"].as_str().is_some_and(|text| text.ends_with(heard)), "{read}");
        let answering = does(&callees, "agora_voice_answering", json!({"number_id": number["id"]})).await;
        assert_eq!(answering["enabled"], true, "{answering}");
        // What was said and cannot be said again is an error with advice.
        let arguments = json!({"call_id": id, "text": "Hello?"});
        let late = call(&caller.client, &[("authorization", &token)], "agora_voice_say", arguments, json!({})).await;
        assert_eq!((&late["isError"], &late["structuredContent"]["error"]), (&json!(true), &json!("call_ended")));
        // Arguments that are none of the tool's are refused, in a body too.
        let strange = json!({"to": number["phone_number"], "number": "+12025550123"});
        let refused = call(&caller.client, &[("authorization", &token)], "agora_voice_dial", strange, json!({})).await;
        assert_eq!(refused["structuredContent"]["error"], "invalid_request", "{refused}");
    });
}

/// A model buys a goal, answers its question, and reads what became of it.
#[test]
fn a_model_runs_a_goal() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 10_000_000).await;
        let token = payer.token(&stack).await;
        let does = async |tool: &str, arguments: Value| {
            let result = call(&payer.client, &[("authorization", &token)], tool, arguments, json!({})).await;
            assert_ne!(result["isError"], true, "{tool}: {result}");
            result["structuredContent"].clone()
        };
        let goal = json!({"objective": "Verify the email address of my customer"});
        let mut bought = does("agora_compute", goal.clone()).await;
        if bought["goal_id"].is_null() {
            // The price was not seen before.
            bought = does("agora_compute", goal).await;
        }
        let id = bought["goal_id"].clone();
        assert!(id.is_string(), "{bought}");
        let waiting = eventually("a question", || async {
            let tasks = does("agora_goal_tasks", json!({"goal_id": id})).await.to_string();
            tasks.contains("waiting").then_some(tasks)
        })
        .await;
        assert!(waiting.contains("human_approval"), "{waiting}");
        does("agora_goal_respond", json!({"goal_id": id, "response": "ada@example.com"})).await;
        let ended = eventually("its end", || async {
            let goal = does("agora_goal", json!({"goal_id": id})).await;
            (goal["phase_status"] == "completed").then_some(goal)
        })
        .await;
        assert!(ended["result"]["results"].to_string().contains("ada@example.com"), "{ended}");
        let (named, headers) = (json!({"goal_id": id}), [("authorization", token.as_str())]);
        let late = call(&payer.client, &headers, "agora_goal_cancel", named, json!({})).await;
        assert_eq!((&late["isError"], &late["structuredContent"]["error"]), (&json!(true), &json!("invalid_state")));
        assert!(does("agora_goals", json!({})).await.to_string().contains(id.as_str().unwrap()));
    });
}

/// Its arguments take the place of the headers of HTTP.
#[test]
fn a_model_dials_once_with_an_approval() {
    run(async {
        let stack = stack().await;
        let ((caller, token, _), (callee, _, number)) = (with_number(&stack).await, with_number(&stack).await);
        let path = format!("/v1/tools/voice/numbers/{}/inbound", number["id"].as_str().unwrap());
        let put = callee.change("PUT", &path, &json!({"prompt": "A loaf of rye costs 4.50 euros."})).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let rules = json!([{"tool": "voice", "action": "require_approval", "when": {"always": true}}]);
        let put = caller.change("PUT", POLICY, &json!({"rules": rules, "approver": {"email": APPROVER}})).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let does = async |tool: &str, arguments: Value| {
            let result = call(&caller.client, &[("authorization", &token)], tool, arguments, json!({})).await;
            result["structuredContent"].clone()
        };
        let to = &number["phone_number"];
        let held = does("agora_voice_dial", json!({"to": to})).await;
        assert_eq!(held["error"], "approval_required", "{held}");
        let page = link(&stack, &held["approval"]);
        assert_eq!(decide(&caller, &page, "decision=approve").await.status, 200);
        let approved = json!({"to": to, "approval_id": held["approval_id"], "idempotency_key": "dial"});
        let rang = does("agora_voice_dial", approved.clone()).await;
        let id = rang["call"]["id"].clone();
        assert!(id.is_string(), "{rang}");
        assert_eq!(does("agora_voice_dial", approved).await["call"]["id"], id);

        let turn = json!({"call_id": id, "text": "How much does rye cost?", "idempotency_key": "turn"});
        let said = does("agora_voice_say", turn.clone()).await;
        assert_eq!(said["said"], "A loaf of rye costs 4.50 euros.", "{said}");
        assert_eq!(does("agora_voice_say", turn).await, said);
        let seen = caller.get(&format!("/v1/tools/voice/exchange/{}", id.as_str().unwrap())).await.json();
        let transcript = seen["data"]["transcript"].as_str().expect("a transcript");
        assert_eq!(transcript.lines().count(), 3, "{transcript}");
    });
}

#[test]
fn long_work_is_a_task_that_only_its_owner_can_read() {
    run(async {
        let stack = stack().await;
        let (payer, stranger) = tokio::join!(Payer::new(&stack), Payer::new(&stack));
        payer.give_credits(&stack, 20_000).await;
        let (token, other) = (payer.token(&stack).await, stranger.token(&stack).await);
        let (owner, stranger) = ([("authorization", token.as_str())], [("authorization", other.as_str())]);
        let knows = json!({"extensions": {TASKS: {}}});
        let client = &payer.client;
        let of_task = async |headers: &[(&str, &str)], method: &str, id: &str, capabilities: &Value| {
            let answer = ask(client, headers, method, json!({"taskId": id}), capabilities.clone()).await;
            (answer.status, answer.json())
        };
        let page = json!({"url": format!("{}/plain", stack.site_url)});

        let bought = async |headers: &[(&str, &str)], meta: Value| {
            let params = json!({"name": READ, "arguments": page, "_meta": meta});
            ask(client, headers, "tools/call", params, knows.clone()).await.json()["result"].clone()
        };
        let done = async |headers: &[(&str, &str)], id: &str| {
            eventually("the task to be completed", || async {
                let (_, answer) = of_task(headers, "tasks/get", id, &knows).await;
                (answer["result"]["status"] == "completed").then_some(answer["result"].clone())
            })
            .await
        };
        // With a token, the task id is the request id, and the token's owner can read the task.
        let task = bought(&owner, json!({})).await;
        assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
        let id = task["taskId"].as_str().expect("an id");
        let finished = done(&owner, id).await;
        assert_eq!(finished["result"]["structuredContent"]["status"], "completed", "{finished}");
        assert_eq!(of_task(&stranger, "tasks/get", id, &knows).await.1["error"]["code"], -32602);
        assert_eq!(of_task(&[], "tasks/get", id, &knows).await.0, 401);
        assert_eq!(of_task(&owner, "tasks/get", id, &json!({})).await.1["error"]["code"], -32021);
        assert_eq!(
            of_task(&owner, "tasks/get", "7f1e0d4c-0000-4000-8000-000000000000", &knows).await.1["error"]["code"],
            -32602
        );
        assert_eq!(of_task(&owner, "tasks/cancel", id, &knows).await.1["result"]["resultType"], "complete");
        assert_eq!(of_task(&stranger, "tasks/cancel", id, &knows).await.1["error"]["code"], -32602);
        // A caller that paid by x402 has no other credentials, so the task id contains a key.
        let terms = bought(&[], json!({})).await["structuredContent"].clone();
        let meta = payment(&payer, &terms);
        let task = bought(&[], meta.clone()).await;
        let id = task["taskId"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
        assert_eq!(task["_meta"]["x402/payment-response"]["success"], true, "{task}");
        assert_eq!(bought(&[], meta.clone()).await["taskId"], id.as_str());
        done(&[], &id).await;
        let (request, _) = id.split_once('.').expect("a key");
        assert_eq!(of_task(&[], "tasks/get", request, &knows).await.0, 401);
        let forged = format!("{request}.{}", "A".repeat(43));
        assert_eq!(of_task(&[], "tasks/get", &forged, &knows).await.1["error"]["code"], -32602);
        // The payment without its quote is public on chain, and opens nothing.
        let mut copied = meta.clone();
        copied["x402/payment"]["accepted"]["extra"].as_object_mut().expect("extra").remove("quoteId");
        assert_eq!(bought(&[], copied).await["taskId"], request);
        // Failed work is returned as a result with `isError`.
        let dead = json!({"name": READ, "arguments": {"url": "http://no-such-host.invalid/"}});
        let task = ask(client, &owner, "tools/call", dead, knows.clone()).await.json()["result"].clone();
        let failed = done(&owner, task["taskId"].as_str().expect("an id")).await;
        assert_eq!(failed["result"]["isError"], true, "{failed}");
    });
}

/// The caller's context is nested in other answers later, so its depth is limited on arrival.
#[test]
fn deeply_nested_contexts_are_refused() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 1_000_000).await;
        let token = payer.token(&stack).await;
        let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
        let bought = async |depth: usize| {
            let (open, close) = ("{\"a\":".repeat(depth), "}".repeat(depth));
            let body = format!("{{\"vin\":\"{VIN}\",\"decisionContext\":{open}1{close}}}");
            payer.client.send("POST", VIN_PATH, &headers, body).await.unwrap()
        };
        for depth in [63, 100, 124, 126] {
            let refused = bought(depth).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{depth}");
            assert_eq!(refused.json()["details"][0]["path"], "decisionContext", "{depth}");
        }
        assert_eq!(bought(62).await.status, 200);
        let told = call(&payer.client, &headers[..1], "agora_receipts", json!({"limit": 1}), json!({})).await;
        assert_eq!(told["structuredContent"]["count"], 1, "{told}");
    });
}

#[test]
fn souls_sell_over_mcp() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "sells-to-models").await;
        let payer = Payer::with(&stack, 50_000_000).await;
        let client = &payer.client;
        let buy = async |tool: &str, arguments: Value| {
            let unpaid = call(client, &[], tool, arguments.clone(), json!({})).await;
            let meta = payment(&payer, &unpaid["structuredContent"]);
            call(client, &[], tool, arguments, meta).await
        };
        let soul = buy("agora_soul_purchase", json!({"slug": "sells-to-models"})).await;
        assert_eq!(soul["structuredContent"]["soul_md"], "# sells-to-models\n\nI sum up texts.", "{soul}");
        let service = shop.execute_path();
        let service = service.split('/').nth(5).expect("a service");
        let mut arguments = text("two words");
        arguments["slug"] = json!("sells-to-models");
        arguments["service"] = json!(service);
        let accepted = buy("agora_soul_execute", arguments).await["structuredContent"].clone();
        let job = accepted["soul_job_id"].as_str().unwrap_or_else(|| panic!("{accepted}"));
        assert_eq!(shop.claim(job).await.json()["job"]["input"]["text"], "two words");
        shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "done"})).await;
        let found = call(client, &[], "agora_get_request", accepted["poll"]["arguments"].clone(), json!({})).await;
        assert_eq!(found["structuredContent"]["result"]["result"], "done", "{found}");
        let meta = json!({"x-agent-id": payer.address().to_string()});
        let seen = call(client, &[], "agora_soul_job", json!({"job_id": job}), meta).await;
        assert_eq!(seen["structuredContent"]["job"]["result"], "done", "{seen}");
    });
}

/// The limit per address counts the caller's address, not that of this function.
#[test]
fn searches_are_limited_by_the_callers_address() {
    run(async {
        let stack: Stack = stack_with(|options| options.with("RATE_LIMIT_SCALE", "0.02")).await;
        let client = Client::new(&stack.base_url);
        let mut last = json!({});
        for _ in 0..3 {
            last = call(&client, &[], "agora_soul_search", json!({"q": "words"}), json!({})).await;
        }
        assert_eq!(last["structuredContent"]["error"], "rate_limited", "{last}");
        assert_eq!(client.get("/v1/soul/search?q=words", &[]).await.status, 429);
    });
}

/// There are many lookups. The first page of the whole list has one tool that runs any of them; each is also a tool of
/// its own on later pages.
#[test]
fn every_lookup_is_a_tool_and_one_tool_runs_any_lookup() {
    run(async {
        let stack = equipped_stack().await;
        let payer = Payer::new(&stack).await;
        let client = &payer.client;
        let names = tool_names(client).await;
        assert!(names.len() > 1 && names[0].contains(&"agora_lookup".to_owned()), "{names:?}");
        let all: Vec<&String> = names.iter().flatten().collect();
        for row in lookups::ROWS.iter() {
            assert!(all.contains(&&row.spec.mcp_name("Agora")), "{}", row.spec.name);
            assert!(!["agora_balance", "agora_get_request"].iter().any(|name| !names[0].contains(&(*name).to_owned())));
        }
        // By its name a lookup has its own price, and invalid input is named before a price is given.
        let arguments = json!({"name": "company_filings", "input": {"cik": "320193"}, "idempotency_key": "a"});
        let unpaid = call(client, &[], "agora_lookup", arguments, json!({})).await;
        let terms = &unpaid["structuredContent"];
        assert_eq!(terms["accepts"][0]["amount"], "5000", "{unpaid}");
        assert_eq!(terms["resource"]["url"], "mcp://tool/agora_company_filings");
        for (arguments, path) in [
            (json!({"name": "company_filings", "input": {}}), "cik"),
            (json!({"name": "no_such_lookup", "input": {}}), "name"),
            (json!({"name": "company_filings"}), "input"),
            (json!({"name": "company_filings", "input": {"cik": "320193"}, "max_cost": 0.001}), "max_cost"),
            (json!({"name": "web_search", "input": {"query": "x"}}), "name"),
        ] {
            let refused = call(client, &[], "agora_lookup", arguments.clone(), json!({})).await;
            let body = &refused["structuredContent"];
            assert_eq!(
                (&body["error"], &body["details"][0]["path"]),
                (&json!("invalid_request"), &json!(path)),
                "{refused}"
            );
        }
    });
}

/// A host shows its model only the tools of the list. From the short one, two tools lead to all others, at the same prices
/// and under the same rules.
#[test]
fn any_tool_is_found_and_used_from_the_short_list() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 20_000).await;
        let token = payer.token(&stack).await;
        let (identity, client) = ([("authorization", token.as_str())], &payer.client);
        let names = listed(client, "/mcp").await;
        assert!(names.len() <= 20, "{names:?}");
        for name in ["agora_find_tools", "agora_use_tool", "agora_get_request", READ] {
            assert!(names.contains(&name.to_owned()), "{name} is not in {names:?}");
        }
        assert!(!names.contains(&BUY.to_owned()), "{names:?}");

        let found = async |query: &str| {
            let found = call(client, &[], "agora_find_tools", json!({"query": query, "limit": 3}), json!({})).await;
            found["structuredContent"].clone()
        };
        let sold = found("decode a VIN").await;
        let tool = &sold["tools"][0];
        assert_eq!((&tool["name"], &tool["price"]), (&json!(BUY), &json!("Costs 0.005000 USDC")), "{sold}");
        assert!(tool["arguments"]["vin"].as_str().is_some_and(|line| line.starts_with("string, required")), "{sold}");
        for query in ["decode a VIN", "my calls and messages and receipts", "research companies people"] {
            let all = call(client, &[], "agora_find_tools", json!({"query": query, "limit": 20}), json!({})).await;
            let bytes = all["structuredContent"].to_string().len();
            assert!(bytes < 7 * 1024, "{query}: {bytes} bytes for a model to read");
        }
        let free = found("what did I buy: my receipts").await;
        assert_eq!(free["free_tools"][0]["name"], "agora_receipts", "{free}");

        // By x402, and by its name it is the same purchase.
        let arguments = json!({"name": tool["name"], "input": {"vin": VIN}});
        let unpaid = call(client, &[], "agora_use_tool", arguments.clone(), json!({})).await;
        assert_eq!(unpaid["structuredContent"]["resource"]["url"], format!("mcp://tool/{BUY}"), "{unpaid}");
        let meta = payment(&payer, &unpaid["structuredContent"]);
        let bought = call(client, &[], "agora_use_tool", arguments, meta.clone()).await;
        assert_eq!(bought["structuredContent"]["result"]["make"], "Honda", "{bought}");
        let again = call(client, &[], BUY, json!({"vin": VIN}), meta).await;
        assert_eq!(again["structuredContent"], bought["structuredContent"]);
        // With a token, by the names of HTTP and of free tools, too.
        let does = async |arguments: Value| {
            let answer = call(client, &identity, "agora_use_tool", arguments, json!({})).await;
            answer["structuredContent"].clone()
        };
        let bought = does(json!({"name": "vin_decode", "input": {"vin": VIN}, "idempotency_key": "one"})).await;
        assert_eq!(bought["result"]["make"], "Honda", "{bought}");
        let told = does(json!({"name": "agora_receipts", "input": {"limit": 1}})).await;
        assert_eq!(told["count"], 1, "{told}");
        // Nothing of these is charged, and nothing that limits a purchase is lost.
        let rehearsed = does(json!({"name": BUY, "input": {"vin": VIN}, "dry_run": true})).await;
        assert_eq!(rehearsed["dry_run"], true, "{rehearsed}");
        // Where a quote comes first, it is asked for, and the purchase is rehearsed.
        let mail = json!({"to_address": "ada@agents.test", "subject": "Hello", "body": "How are you?"});
        let rehearsed = does(json!({"name": "agora_email", "input": mail, "dry_run": true})).await;
        assert_eq!(
            (&rehearsed["dry_run"], &rehearsed["price_usdc"]),
            (&json!(true), &json!("0.005000")),
            "{rehearsed}"
        );
        for (arguments, error, path) in [
            (
                json!({"name": BUY, "input": {"vin": VIN}, "max_cost_usdc": 0.001}),
                "exceeds_caller_budget",
                "X-Max-Cost-USDC",
            ),
            (json!({"name": BUY, "input": {"vin": VIN}, "max_cost": 0.001}), "invalid_request", "max_cost"),
            (json!({"name": BUY, "vin": VIN}), "invalid_request", "vin"),
            (json!({"name": "no_such_tool", "input": {}}), "invalid_request", "name"),
            (json!({"name": "use_tool", "input": {"name": BUY}}), "invalid_request", "name"),
        ] {
            let refused = does(arguments.clone()).await;
            let at = refused["details"][0]["path"].as_str().unwrap_or_default();
            assert_eq!((&refused["error"], at), (&json!(error), path), "{arguments}: {refused}");
        }
        let balance = does(json!({"name": "balance"})).await;
        assert_eq!(balance["credits_balance"], "0.015000", "{balance}");
    });
}

/// The address that a client connects to chooses what it lists, and nothing else.
#[test]
fn a_configured_subset_lists_only_that() {
    run(async {
        let stack = stack().await;
        let client = Client::new(&stack.base_url);
        assert_eq!(listed(&client, "/mcp?tools=budgets,agora_balance").await, ["agora_balance", "agora_budgets"]);
        assert_eq!(listed(&client, "/mcp?tools=vin_decode").await, [BUY, "agora_get_request"]);
        let souls = listed(&client, "/mcp?tools=soul").await;
        let is_of_souls = |name: &String| name.starts_with("agora_soul_") || name == "agora_get_request";
        assert!(souls.len() > 5 && souls.iter().all(is_of_souls), "{souls:?}");

        let list = async |address: &str, params: Value| {
            ask_at(address, &client, &[], "tools/list", params, json!({})).await.json()
        };
        let wrong = list("/mcp?tools=balance,nonsense", json!({})).await;
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
        let says = wrong["error"]["message"].as_str().unwrap();
        assert!(says.contains("nonsense") && !says.contains("balance"), "{says}");
        // A cursor of the whole list belongs to that list.
        let page = list("/mcp?tools=all", json!({})).await;
        let next = json!({"cursor": page["result"]["nextCursor"]});
        assert!(list("/mcp?tools=all", next.clone()).await["result"]["tools"].is_array());
        assert_eq!(list("/mcp", next).await["error"]["code"], -32602);
        // What is not listed can be called.
        let unlisted = json!({"name": BUY, "arguments": {"vin": VIN}});
        let unpaid = ask_at("/mcp?tools=balance", &client, &[], "tools/call", unlisted, json!({})).await.json();
        assert_eq!(unpaid["result"]["structuredContent"]["accepts"][0]["amount"], "5000", "{unpaid}");
    });
}

/// What a client attaches to a conversation without a tool call. It never buys, and what is private stays so.
#[test]
fn guides_and_own_results_are_resources() {
    run(async {
        let stack = stack().await;
        Shop::open(&stack, "tells-its-owner").await;
        let (payer, stranger) = tokio::join!(Payer::new(&stack), Payer::new(&stack));
        payer.give_credits(&stack, 10_000_000).await;
        stranger.give_credits(&stack, 10_000_000).await;
        let (token, other) = (payer.token(&stack).await, stranger.token(&stack).await);
        let (owner, stranger) = ([("authorization", token.as_str())], [("authorization", other.as_str())]);
        let client = &payer.client;
        let read = async |headers: &[(&str, &str)], uri: &str| {
            let answer = ask(client, headers, "resources/read", json!({"uri": uri}), json!({})).await;
            (answer.status, answer.json())
        };
        let text = |answer: &Value| answer["result"]["contents"][0]["text"].as_str().map(str::to_owned);

        let listed = ask(client, &[], "resources/list", json!({}), json!({})).await.json()["result"].clone();
        let guides = listed["resources"].as_array().expect("resources").clone();
        assert!(guides.len() > 3, "{listed}");
        for guide in &guides {
            let uri = guide["uri"].as_str().expect("a URI");
            let (_, answer) = read(&[], uri).await;
            let name = uri.strip_prefix("agora://guides/").expect("a guide");
            let page = client.get(&format!("/guides/{name}"), &[]).await.text;
            assert_eq!(text(&answer), Some(page), "{uri}");
            assert_eq!(answer["result"]["contents"][0]["mimeType"], "text/markdown");
            assert_eq!(answer["result"]["cacheScope"], "public");
        }
        let templates = ask(client, &[], "resources/templates/list", json!({}), json!({})).await.json();
        let of_souls = json!("agora://souls/{slug}");
        let templates = templates["result"]["resourceTemplates"].as_array().expect("templates").clone();
        assert!(templates.iter().any(|template| template["uriTemplate"] == of_souls), "{templates:?}");

        // A result, for its owner.
        let bought = call(client, &owner, BUY, json!({"vin": VIN}), json!({})).await;
        let id = bought["structuredContent"]["request_id"].as_str().expect("an id");
        let result = format!("agora://requests/{id}");
        let (_, answer) = read(&owner, &result).await;
        let told: Value = serde_json::from_str(&text(&answer).unwrap_or_else(|| panic!("{answer}"))).expect("JSON");
        assert_eq!((&told["status"], &told["result"]["make"]), (&json!("completed"), &json!("Honda")), "{told}");
        assert_eq!(answer["result"]["cacheScope"], "private", "{answer}");
        assert_eq!(read(&stranger, &result).await.1["error"]["code"], -32602);
        assert_eq!(read(&[], &result).await.0, 401);

        // A text: not before it is bought, and by its buyer only. With enough credits to buy it, reading does not.
        let soul = "agora://souls/tells-its-owner";
        for headers in [&owner[..], &stranger[..], &[]] {
            let (_, answer) = read(headers, soul).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        let paid = json!({"slug": "tells-its-owner"});
        let paid = call(client, &owner, "agora_soul_purchase", paid, json!({})).await;
        assert_eq!(paid["structuredContent"]["success"], true, "{paid}");
        let (_, answer) = read(&owner, soul).await;
        assert_eq!(text(&answer).as_deref(), Some("# tells-its-owner\n\nI sum up texts."), "{answer}");
        assert_eq!(read(&stranger, soul).await.1["error"]["code"], -32602);
        let balance = async |headers: &[(&str, &str)]| {
            let told = call(client, headers, "agora_balance", json!({}), json!({})).await;
            told["structuredContent"]["credits_balance"].clone()
        };
        assert_eq!((balance(&owner).await, balance(&stranger).await), (json!("7.995000"), json!("10.000000")));

        for uri in [
            "agora://guides/nothing.md",
            "agora://requests/7f1e0d4c-0000-4000-8000-000000000000",
            "agora://souls/no-such-soul",
            "agora://souls/a/b",
            "agora://secrets/x",
            "other://guides/paying.md",
            "file:///etc/passwd",
            "nonsense",
        ] {
            let (_, answer) = read(&owner, uri).await;
            assert_eq!(answer["error"]["code"], -32602, "{uri}: {answer}");
        }
    });
}

#[test]
fn prompts_are_listed() {
    run(async {
        let stack = stack().await;
        let client = Client::new(&stack.base_url);
        let listed = ask(&client, &[], "prompts/list", json!({}), json!({})).await.json()["result"].clone();
        let prompts = listed["prompts"].as_array().expect("prompts").clone();
        assert_eq!(prompts.len(), 3, "{listed}");
        let get = async |name: &Value, arguments: Value| {
            let params = json!({"name": name, "arguments": arguments});
            ask(&client, &[], "prompts/get", params, json!({})).await.json()
        };
        // Braces and brackets of an argument are text.
        let value = "{price_list} of <b>kites</b>";
        let names = tool_names(&client).await.concat();
        for prompt in &prompts {
            let arguments = prompt["arguments"].as_array().expect("arguments");
            let named = arguments.iter().map(|argument| argument["name"].as_str().expect("a name").to_owned());
            let given: serde_json::Map<String, Value> = named.map(|name| (name, json!(value))).collect();
            let got = get(&prompt["name"], Value::Object(given.clone())).await;
            let text = got["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{got}"));
            assert!(text.contains(value) && !text.replace(value, "").contains(['{', '}', '<', '>']), "{text}");
            let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let tools: Vec<&str> = words.filter(|word| word.starts_with("agora_")).collect();
            assert!(tools.iter().all(|tool| names.contains(&(*tool).to_owned())), "{tools:?}");
            for name in given.keys() {
                let mut fewer = given.clone();
                fewer.remove(name);
                let wrong = get(&prompt["name"], Value::Object(fewer)).await;
                assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
                assert!(wrong["error"]["message"].as_str().is_some_and(|says| says.contains(name.as_str())), "{wrong}");
            }
        }
    });
}
