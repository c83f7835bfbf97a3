//! The main path: an agent with a wallet calls a tool, gets a quote, pays, and gets a real result.

use std::time::{Duration, Instant};

use evm::hex0x;
use ledger::payments::claim;
use ledger::receipt::{self, ExecutionStatus, ReceiptStatus};
use platform::http::limit::Arrived;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::mcp_calls;
use crate::souls_market::{Shop, text};
use crate::support::payer::{bare, header, v1, v2};
use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, books, eventually, run, stack};

#[test]
fn a_direct_call_that_ran_out_of_time_is_finished_by_the_worker() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 20_000).await;
        let request = http::Request::post(VIN_PATH)
            .header("content-type", "application/json")
            .header("authorization", payer.token(&stack).await);
        let mut request = request.body(axum::body::Body::from(json!({"vin": VIN}).to_string())).unwrap();
        // As if checks and the chain had taken all but three seconds.
        let arrived = Instant::now().checked_sub(Duration::from_secs(22)).unwrap();
        request.extensions_mut().insert(Arrived(arrived));
        let answer = stack.groups["knowledge"].clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 202);
        let body = platform::http::read_body(answer.into_body(), 100_000).await.unwrap();
        let accepted: Value = serde_json::from_slice(&body).unwrap();
        let ended = payer.finished(accepted["request_id"].as_str().unwrap()).await;
        assert_eq!(ended["status"], "completed", "{ended}");
    });
}

#[test]
fn a_direct_call_returns_the_result_and_the_transaction() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN, "memo": "a car"})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let data = &answer.json()["data"];
        assert_eq!((&data["status"], &data["tool"]), (&json!("completed"), &json!("vin_decode")));
        assert_eq!((&data["result"]["make"], &data["result"]["model_year"]), (&json!("Honda"), &json!(2003)));

        let settled = answer.base64_header("payment-response");
        assert_eq!((&settled["success"], &settled["payer"]), (&json!(true), &json!(payer.address().to_string())));
        assert_eq!(settled["network"], "eip155:84532");
        assert_eq!(answer.base64_header("x-payment-response")["network"], "base-sepolia");
        let transaction = settled["transaction"].as_str().unwrap();
        let receipt = stack.chain.as_ref().unwrap().rpc().receipt(transaction).await.unwrap();
        assert_eq!(receipt["status"], "0x1");
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 5_000);

        // Only its owner can poll the job.
        let id = data["request_id"].as_str().unwrap();
        let polled = payer.finished(id).await;
        assert_eq!(polled["result"], data["result"]);
        assert_eq!(polled["settlement_status"], "settled");
        let stranger = Payer::with(&stack, 0).await;
        assert_eq!(stranger.get(&format!("/v1/requests/{id}")).await.error(), (404, "not_found".to_owned()));
    });
}

/// An agent that lost the ids of what it bought finds them by proof, by token and over MCP. Nobody else does.
#[test]
fn lost_request_ids_are_found_in_the_list() {
    run(async {
        let stack = stack().await;
        let (payer, stranger) = (Payer::new(&stack).await, Payer::with(&stack, 0).await);
        let shop = Shop::open(&stack, "lost-and-found").await;
        let direct = request_id(&payer.buy(VIN_PATH, &json!({"vin": VIN})).await);
        payer.finished(&direct).await;
        let url = format!("{}/plain", stack.site_url);
        let queued = request_id(&payer.buy(READ_PATH, &json!({"url": url})).await);
        payer.finished(&queued).await;
        let accepted = payer.buy(&shop.execute_path(), &text("two words")).await.json();
        let sold = accepted["request_id"].as_str().unwrap().to_owned();
        let all = [sold.clone(), queued.clone(), direct.clone()];

        let listed = payer.get("/v1/requests").await.json();
        assert_eq!((ids(&listed), &listed["next_before"]), (all.to_vec(), &Value::Null), "{listed}");
        let rows = listed["requests"].as_array().unwrap();
        let amounts: Vec<&Value> = rows.iter().map(|row| &row["amount_usdc"]).collect();
        assert_eq!(amounts, ["0.500000", "0.002000", "0.005000"]);
        assert_eq!((&rows[0]["tool"], &rows[0]["soul_job_id"]), (&json!("soul"), &accepted["soul_job_id"]));
        for row in &rows[1..] {
            let polled = payer.get(&format!("/v1/requests/{}", row["request_id"].as_str().unwrap())).await.json();
            for name in ["tool", "status", "settlement_status", "receipt_id", "created_at", "updated_at"] {
                assert_eq!(row[name], polled[name], "{name}: {row}");
            }
            assert!(row.get("result").is_none() && row.get("soul_job_id").is_none(), "{row}");
        }
        let token = payer.token(&stack).await;
        let bearer = [("authorization", token.as_str())];
        assert_eq!(ids(&payer.client.get("/v1/requests", &bearer).await.json()), all);
        let arguments = json!({"limit": 2});
        let over_mcp = mcp_calls::call(&payer.client, &bearer, "agora_requests", arguments, json!({})).await;
        assert_eq!(ids(&over_mcp["structuredContent"]), all[..2]);
        assert_eq!(stranger.get("/v1/requests").await.json(), json!({"requests": [], "next_before": null}));
        let nobody = payer.client.get("/v1/requests", &[]).await;
        assert_eq!(nobody.error(), (401, "proof_required".to_owned()));

        let (mut seen, mut before) = (Vec::new(), String::new());
        for _ in 0..all.len() {
            let page = payer.get(&format!("/v1/requests?limit=1{before}")).await.json();
            seen.extend(ids(&page));
            before = page["next_before"].as_str().map(|next| format!("&before={next}")).unwrap_or_default();
        }
        assert_eq!((seen, before.as_str()), (all.to_vec(), ""), "each once, and then no page");
        let newest = rows[0]["created_at"].as_str().unwrap();
        assert_eq!(ids(&payer.get(&format!("/v1/requests?before={newest}")).await.json()), all[1..], "a time");
        for (query, expected) in [
            ("status=completed", &all[1..]),
            ("status=failed", &all[..0]),
            ("status=completed&limit=1", &all[1..2]),
            ("tool=web_read", &all[1..2]),
            ("tool=web-read", &all[1..2]),
            ("tool=%2Fv1%2Fcredits%2Ftop-up", &all[..0]),
            ("tool=voice_inbound", &all[..0]),
            ("tool=soul", &all[..1]),
            ("tool=soul_purchase", &all[..0]),
            ("tool=web_read&status=failed", &all[..0]),
            ("before=2020-01-01", &all[..0]),
        ] {
            assert_eq!(ids(&payer.get(&format!("/v1/requests?{query}")).await.json()), expected, "{query}");
        }
        for (query, path) in [
            ("limit=0", "limit"),
            ("limit=101", "limit"),
            ("limit=x", "limit"),
            ("before=yesterday", "before"),
            ("before=", "before"),
            ("status=done", "status"),
            ("tool=nonsense", "tool"),
        ] {
            let refused = payer.get(&format!("/v1/requests?{query}")).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{query}");
            assert_eq!(refused.json()["details"][0]["path"], path, "{query}");
        }
    });
}

/// The ids of a page of requests.
fn ids(page: &Value) -> Vec<String> {
    let rows = page["requests"].as_array().unwrap_or_else(|| panic!("{page}"));
    rows.iter().map(|row| row["request_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_queued_call_reads_a_page() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let url = format!("{}/moved", stack.site_url);
        let answer = payer.buy(READ_PATH, &json!({"url": url})).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let accepted = answer.json();
        assert_eq!((&accepted["tool"], &accepted["status"]), (&json!("web_read"), &json!("processing")));
        let job = payer.finished(accepted["request_id"].as_str().unwrap()).await;
        assert_eq!(job["status"], "completed", "{job}");
        assert_eq!((&job["provider"], &job["mode"]), (&json!("web"), &json!("embedded")));
        let result = &job["result"];
        assert_eq!(result["url"], format!("{}/article", stack.site_url), "redirects are followed");
        assert_eq!(result["metadata"]["statusCode"], 200);
        assert_eq!(result["truncated"], false);
        let markdown = result["markdown"].as_str().unwrap();
        assert!(markdown.contains("two white flashes every eleven seconds"), "{markdown}");
        assert!(!markdown.contains("send your money"), "hidden text is no content: {markdown}");
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 2_000);
    });
}

/// Both tools, with every documented payment header and payload form.
#[test]
fn every_payment_form_is_accepted() {
    run(async {
        let stack = stack().await;
        let tools = [
            (VIN_PATH, json!({"vin": VIN}), 200),
            (READ_PATH, json!({"url": format!("{}/plain", stack.site_url)}), 202),
        ];
        for (path, body, status) in &tools {
            let payer = Payer::new(&stack).await;
            let mut paid = 0;
            for dialect in [
                "v2",
                "v2 raw",
                "v2 url-safe",
                "v1",
                "bare",
                "bare parts",
                "authorization",
                "authorization x402",
                "proof header",
            ] {
                for with_quote in [false, true] {
                    let unpaid = payer.client.post(path, &[], body).await;
                    let quote_id = unpaid.json()["quote_id"].as_str().unwrap().to_owned();
                    let (name, value) = dialect_of(dialect, &payer, &unpaid);
                    let mut headers = vec![(name, value.as_str())];
                    if with_quote {
                        headers.push(("X-Quote-ID", quote_id.as_str()));
                    }
                    let answer = payer.client.post(path, &headers, body).await;
                    assert_eq!(answer.status, *status, "{dialect} on {path}: {}", answer.text);
                    paid += 1;
                    let id = request_id(&answer);
                    assert_eq!(payer.finished(&id).await["status"], "completed");
                }
            }
            let price = if *status == 200 { 5_000 } else { 2_000 };
            assert_eq!(payer.balance(&stack).await, 1_000_000 - paid * price, "each call is charged once");
        }
    });
}

fn dialect_of(dialect: &str, payer: &Payer, unpaid: &Answer) -> (&'static str, String) {
    let challenge = unpaid.base64_header("payment-required");
    let amount = unpaid.json()["accepts"][0]["maxAmountRequired"].as_str().unwrap().parse().unwrap();
    let authorization = payer.authorize(amount);
    let v2 = v2(&authorization, &challenge["accepts"][0]);
    match dialect {
        "v2" => ("payment-signature", header(&v2)),
        "v2 raw" => ("payment-signature", v2.to_string()),
        "v2 url-safe" => ("PAYMENT-SIGNATURE", base::encoding::base64_url(v2.to_string().as_bytes())),
        "v1" => ("X-Payment", header(&v1(&authorization))),
        "bare" => ("X-PAYMENT", header(&bare(&authorization))),
        "bare parts" => {
            let mut parts = bare(&authorization);
            let bytes = &authorization.signature;
            parts["signature"] = json!({"v": bytes[64], "r": hex0x(&bytes[..32]), "s": hex0x(&bytes[32..64])});
            ("x-payment", parts.to_string())
        }
        "authorization" => ("Authorization", header(&v2)),
        "authorization x402" => ("Authorization", format!("x402 {}", header(&bare(&authorization)))),
        _ => ("X-Payment-Proof", header(&v2)),
    }
}

fn request_id(answer: &Answer) -> String {
    let body = answer.json();
    let id = body["request_id"].as_str().or_else(|| body["data"]["request_id"].as_str());
    id.expect("a request id").to_owned()
}

#[test]
fn one_402_serves_every_client() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let unpaid = payer.client.post(VIN_PATH, &[], &json!({"vin": VIN})).await;
        assert_eq!(unpaid.status, 402);
        assert_eq!(unpaid.header("cache-control"), Some("no-store"));
        let body = unpaid.json();
        for (pointer, value) in [
            ("/error", json!("payment_required")),
            ("/code", json!(402)),
            ("/amount_usdc", json!("0.005000")),
            ("/network", json!("eip155:84532")),
            ("/payment_request/chain_id", json!(84532)),
            ("/payment_request/amount", json!("0.005000")),
            ("/payment_request/recipient", body["pay_to"].clone()),
            ("/context/tool", json!("vin_decode")),
            ("/context/total", json!("0.005000")),
            ("/context/quote_id", body["quote_id"].clone()),
            ("/x402Version", json!(1)),
            ("/accepts/0/network", json!("base-sepolia")),
            ("/accepts/0/maxAmountRequired", json!("5000")),
            ("/accepts/0/extra", json!({"name": "USDC", "version": "2"})),
        ] {
            assert_eq!(body.pointer(pointer), Some(&value), "{pointer}");
        }
        let header = unpaid.header("payment-required").unwrap();
        assert!(header.len() < 3 * 1024, "clients echo it whole: {} bytes", header.len());
        let challenge = unpaid.base64_header("payment-required");
        assert_eq!(challenge["accepts"][0]["extra"]["quoteId"], body["quote_id"]);
        assert_eq!(challenge["accepts"][0]["amount"], "5000");
        assert_eq!(challenge["resource"]["url"], format!("{}{VIN_PATH}", stack.base_url));
    });
}

#[test]
fn a_body_is_optional_for_a_price_and_validated_before_payment() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        for path in [VIN_PATH, "/v1/tools/lookup/vin", READ_PATH] {
            for headers in [&[][..], &[("content-type", "application/json")][..]] {
                let probe = client.send("POST", path, headers, "").await.unwrap();
                assert_eq!(probe.status, 402, "{path}");
                assert!(probe.json()["quote_id"].is_string());
                // A request that would be refused gets no price.
                let refused = client.send("POST", path, &[("x-agent-id", "<(G")], "").await.unwrap();
                assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{path}");
                let capped = client.send("POST", path, &[("x-max-cost-usdc", "0.0001")], "").await.unwrap();
                assert_eq!(capped.error(), (400, "exceeds_caller_budget".to_owned()), "{path}");
            }
            for body in ["{}", " ", "{\"vin\":1,\"url\":1}"] {
                let answer = client.send("POST", path, &[("content-type", "application/json")], body).await.unwrap();
                assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{path} {body}");
            }
        }
        // A payment does not make an empty body valid, and is not used.
        let payer = Payer::new(&stack).await;
        let authorization = payer.authorize(5_000);
        let payment = header(&bare(&authorization));
        let answer = payer.client.send("POST", VIN_PATH, &[("x-payment", &payment)], "").await.unwrap();
        assert_eq!(answer.error(), (400, "invalid_request".to_owned()));
        assert_eq!(payer.payment_state(&authorization).await["state"], "never_seen");
    });
}

#[test]
fn receipts_verify_with_the_published_key() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN, "memo": "a car", "decisionContext": {"goalId": "g1", "mood": "curious"}, "valueTag": {"type": "lead", "amount": 2}});
        let answer = payer.buy(VIN_PATH, &body).await.json();
        let job: base::ids::RequestId = answer["data"]["request_id"].as_str().unwrap().parse().unwrap();
        let job = gate::jobs::store::load_latest(&stack.app.db, job).await.unwrap().unwrap();
        let receipt = receipt::load(&stack.app.db, payer.agent(), &job.receipt_id).await.unwrap().unwrap();
        assert_eq!(receipt.receipt_id.as_str(), answer["data"]["receipt_id"].as_str().unwrap());
        assert_eq!((receipt.status, receipt.execution_status), (ReceiptStatus::Settled, ExecutionStatus::Completed));
        assert_eq!(receipt.settlement_tx, job.transaction);
        assert_eq!(receipt.goal_id.as_deref(), Some("g1"));
        let metadata: Value = serde_json::from_str(receipt.metadata.as_deref().unwrap()).unwrap();
        assert_eq!(metadata["decisionContext"]["mood"], "curious", "open members are kept");

        let keys = eventually("the key set", || async {
            let keys = payer.client.get("/.well-known/jwks.json", &[]).await.json();
            (!keys["keys"].as_array().unwrap().is_empty()).then_some(keys)
        })
        .await;
        assert_eq!(keys, payer.client.get("/.well-known/agora-receipts.json", &[]).await.json());
        let seal = receipt.seal.as_ref().unwrap();
        let key = &keys["keys"][0];
        assert_eq!(key["kid"], seal.key_id);
        let bytes = |text: &str| base::encoding::base64_any(text).unwrap();
        let public = UnparsedPublicKey::new(&ED25519, bytes(key["x"].as_str().unwrap()));
        assert!(public.verify(&receipt.signed_bytes(), &bytes(&seal.signature)).is_ok());
        let mut forged = receipt.clone();
        forged.amount = base::money::Usdc::from_micro(1);
        assert!(public.verify(&forged.signed_bytes(), &bytes(&seal.signature)).is_err());
    });
}

#[test]
fn failed_work_is_paid_back_at_once_as_balance() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        for (url, reason) in [
            ("http://no-such-host.invalid/".to_owned(), "destination_not_reachable"),
            (format!("{}/away", stack.site_url), "destination_not_reachable"),
        ] {
            let before = payer.get("/v1/tools/balance").await.json();
            let accepted = payer.buy(READ_PATH, &json!({"url": url})).await.json();
            let job = payer.finished(accepted["request_id"].as_str().unwrap()).await;
            assert_eq!(job["status"], "failed", "{job}");
            assert_eq!((&job["error_code"], &job["error_reason"]), (&json!("provider_unavailable"), &json!(reason)));
            assert_eq!((&job["settlement_status"], &job["credited_usdc"]), (&json!("settled"), &json!("0.002000")));
            let after = payer.get("/v1/tools/balance").await.json();
            assert_eq!(credits(&after), credits(&before) + 2_000);
        }
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 4_000);
        let balance = payer.get("/v1/tools/balance").await.json();
        assert_eq!(balance["on_chain_balance"], "0.996000");
        assert_eq!((&balance["currency"], &balance["chain_id"]), (&json!("USDC"), &json!(84532)));
    });
}

/// A misspelt member of a tool's input is dropped. Every answer names it, the one with the price too, and it changes nothing
/// else.
#[test]
fn unused_members_of_a_tools_input_are_named() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 5_000_000).await;
        payer.give_credits(&stack, 100_000).await;
        let tag = json!({"type": "lead", "amount": 2, "ammount": 1});
        // What public clients leave in the body, and the receipt's members, are no mistakes.
        let body = json!({"vin": VIN, "modelyear": 2003, "timeout": 30, "memo": "a car", "valueTag": tag});
        let named = json!(["modelyear", "valueTag.ammount"]);
        let client = &payer.client;

        let unpaid = client.post(VIN_PATH, &[], &body).await;
        let price = unpaid.json();
        assert_eq!((unpaid.status, &price["ignored"], &price["amount_usdc"]), (402, &named, &json!("0.005000")));
        let message = price["message"].as_str().unwrap();
        assert!(message.ends_with("; not used: modelyear, valueTag.ammount"), "{message}");
        let correct = client.post(VIN_PATH, &[], &json!({"vin": VIN, "timeout": 30, "memo": "a car"})).await;
        assert_eq!(correct.json().get("ignored"), None, "{}", correct.text);
        assert!(!correct.text.contains("not used"), "{}", correct.text);

        let rehearsal = client.post(VIN_PATH, &[("x-dry-run", "true")], &body).await;
        assert_eq!((&rehearsal.json()["dry_run"], &rehearsal.json()["ignored"]), (&json!(true), &named));

        let payment = payer.pay(&unpaid);
        let bought = client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
        assert_eq!((bought.status, &bought.json()["data"]["ignored"]), (200, &named), "{}", bought.text);
        let again = client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
        assert_eq!((again.status, again.text), (200, bought.text));

        let queued =
            payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url), "screen_shot": true})).await;
        assert_eq!((queued.status, &queued.json()["ignored"]), (202, &json!(["screen_shot"])), "{}", queued.text);

        // An answer without an envelope.
        let shop = Shop::open(&stack, "sells-one").await;
        let handed_over = payer.buy(&shop.purchase_path(), &json!({"quantitty": 1})).await;
        let told = handed_over.json();
        assert_eq!((handed_over.status, &told["ignored"]), (200, &json!(["quantitty"])), "{}", handed_over.text);
        assert!(told["soul_md"].is_string() && told.get("data").is_none(), "{told}");

        let quote =
            json!({"to_address": "ada@agents.test", "subject": "Hello", "body": "How are you?", "cc_adress": "b"});
        let quote = payer.ask("/v1/tools/email/quote", &quote).await;
        assert_eq!((quote.status, &quote.json()["ignored"]), (200, &json!(["cc_adress"])), "{}", quote.text);

        books::audit(&stack.app.db, payer.agent()).await;
    });
}

/// A cap or a dry run that is asked for where nobody reads it stops the call: a token would pay at once.
#[test]
fn a_misplaced_cap_or_dry_run_is_refused_before_money_moves() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        let by_token = [("authorization", token.as_str())];
        for name in
            ["max_cost", "maxCost", "max_cost_usdc", "X-Max-Cost-USDC", "dry_run", "X-Dry-Run", "idempotency_key"]
        {
            let body = json!({"vin": VIN, name: 1});
            for headers in [&[][..], &by_token[..]] {
                let refused = payer.client.post(VIN_PATH, headers, &body).await;
                assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{name}: {}", refused.text);
                assert_eq!(refused.json()["details"][0]["path"], name, "{}", refused.text);
            }
        }
        for (path, name) in [
            (VIN_PATH.to_owned(), "dry-run"),
            (VIN_PATH.to_owned(), "x-max-cost"),
            (VIN_PATH.to_owned(), "x-idempotency-key"),
            (format!("{VIN_PATH}?dry_run=true"), "dry_run"),
        ] {
            let mut headers = by_token.to_vec();
            headers.extend((path == VIN_PATH).then_some((name, "true")));
            let refused = payer.client.post(&path, &headers, &json!({"vin": VIN})).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{name}: {}", refused.text);
            assert_eq!(refused.json()["details"][0]["path"], name, "{}", refused.text);
        }
        // A token pays no quote of a probe: it is told what its input lacks.
        let empty = payer.client.send("POST", VIN_PATH, &by_token, String::new()).await.expect("an answer");
        assert_eq!((empty.error().0, &empty.json()["details"][0]["path"]), (400, &json!("vin")), "{}", empty.text);
        // What has no word finds nothing.
        for (path, name) in [("/v1/tools/search", "query"), ("/v1/tools/research", "topic")] {
            for text in [" ", "\u{1f642}", "\u{202e}"] {
                let refused = payer.client.post(path, &by_token, &json!({name: text})).await;
                assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{text:?}: {}", refused.text);
            }
        }
        for (tool, arguments) in [
            ("agora_vin_decode", json!({"vin": VIN, "max_cost": 0.001})),
            ("agora_vin_decode", json!({"vin": VIN, "dryrun": true})),
            // Over MCP, models read the schema, so nothing that it does not have is taken.
            ("agora_vin_decode", json!({"vin": VIN, "modelyear": 2003})),
            ("agora_vin_decode", json!({"vin": VIN, "idempotencyKey": "a"})),
            ("agora_use_tool", json!({"name": "agora_vin_decode", "input": {"vin": VIN, "budget_usdc": 0.001}})),
            ("agora_use_tool", json!({"name": "agora_vin_decode", "input": {"vin": VIN, "max_cost_usd": 0.001}})),
        ] {
            let called = mcp_calls::call(&payer.client, &by_token, tool, arguments, json!({})).await;
            assert_eq!(called["structuredContent"]["error"], "invalid_request", "{tool}: {called}");
        }
        // What guards a call in _meta, spelt otherwise or contradicted; and a key for all calls of a connection.
        let keyed = [("authorization", token.as_str()), ("idempotency-key", "one for all")];
        for (headers, arguments, meta, path) in [
            (&by_token[..], json!({"vin": VIN}), json!({"X-Dry-Run": "true"}), "_meta.X-Dry-Run"),
            (&by_token[..], json!({"vin": VIN}), json!({"max_cost_usdc": 0.001}), "_meta.max_cost_usdc"),
            (&by_token[..], json!({"vin": VIN, "dry_run": false}), json!({"x-dry-run": "true"}), "dry_run"),
            (
                &by_token[..],
                json!({"vin": VIN, "idempotency_key": "a"}),
                json!({"idempotency-key": "b"}),
                "idempotency_key",
            ),
            (&keyed[..], json!({"vin": VIN}), json!({}), "Idempotency-Key"),
        ] {
            let called = mcp_calls::call(&payer.client, headers, "agora_vin_decode", arguments, meta).await;
            let refused = &called["structuredContent"];
            assert_eq!(
                (&refused["error"], &refused["details"][0]["path"]),
                (&json!("invalid_request"), &json!(path)),
                "{called}"
            );
        }
        // The seller of a service gets its input as it is, but not what concerns the purchase.
        let shop = Shop::open(&stack, "sells-words").await;
        let input = json!({"text": "a b", "dry_run": true});
        let arguments = json!({"slug": "sells-words", "service": "summary", "input": input});
        let called = mcp_calls::call(&payer.client, &by_token, "agora_soul_execute", arguments, json!({})).await;
        assert_eq!(called["structuredContent"]["details"][0]["path"], "input.dry_run", "{called}");
        assert_eq!(shop.get("/jobs").await.json()["jobs"], json!([]));
        // Said in both places, it is meant for both.
        let both = json!({
            "slug": "sells-words", "service": "summary", "input": {"text": "a b", "dry_run": true}, "dry_run": true,
        });
        let called = mcp_calls::call(&payer.client, &by_token, "agora_soul_execute", both, json!({})).await;
        assert_eq!(called["structuredContent"]["dry_run"], true, "{called}");
        let balance = payer.get("/v1/tools/balance").await.json();
        assert_eq!(balance["credits_balance"], "0.100000", "{balance}");
    });
}

/// Many unused members take no more room than twenty.
#[test]
fn an_answer_names_a_bounded_number_of_unused_members() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let mut body = json!({"vin": VIN});
        for index in 0..5_000 {
            body[format!("{index}{}", "x".repeat(100))] = json!(1);
        }
        let price = payer.client.post(VIN_PATH, &[], &body).await;
        assert_eq!((price.status, price.json()["ignored"].as_array().map(Vec::len)), (402, Some(20)));
        assert!(price.text.len() < 16 * 1024, "{}", price.text.len());
    });
}

fn credits(balance: &Value) -> u64 {
    base::money::Usdc::parse(balance["credits_balance"].as_str().unwrap()).unwrap().micro()
}

#[test]
fn cheap_work_may_precede_settlement_within_a_cap() {
    run(async {
        let stack = crate::support::stack_with(|options| {
            options
                .with("OVERLAP_BELOW_USDC", "0.01")
                .with("OVERLAP_EXPOSURE_USDC", "0.006")
                .with("PAYMENT_HOLD_MS", "0")
        })
        .await;
        let payer = Payer::new(&stack).await;
        payer.has_settled(&stack, 6_000).await;
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        // The answer did not wait for settlement. The worker settles it.
        answer.assert_unsettled();
        let id = request_id(&answer);
        let job = payer.finished(&id).await;
        assert_eq!((&job["status"], &job["settlement_status"]), (&json!("completed"), &json!("settled")));
        assert_eq!(payer.balance(&stack).await, 995_000);
        let exposure = ledger::payments::policy::exposure(&stack.app.db, payer.agent()).await.unwrap();
        assert_eq!(exposure.unsettled.micro(), 0, "settled calls are off the exposure");

        // Two concurrent calls: when the cap is reached, a call is settled before its work.
        let body = json!({"vin": VIN});
        let (one, other) = tokio::join!(payer.buy(VIN_PATH, &body), payer.buy(VIN_PATH, &body));
        for answer in [one, other] {
            assert_eq!(answer.status, 200, "{}", answer.text);
            payer.finished(&request_id(&answer)).await;
        }
        assert_eq!(payer.balance(&stack).await, 985_000);
    });
}

#[test]
fn payments_can_be_looked_up_by_nonce_and_by_transaction() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let authorization = payer.authorize(5_000);
        assert_eq!(payer.payment_state(&authorization).await["state"], "never_seen");
        let answer =
            payer.client.post(VIN_PATH, &[("x-payment", &header(&bare(&authorization)))], &json!({"vin": VIN})).await;
        let by_nonce = payer.payment_state(&authorization).await;
        assert_eq!(
            (&by_nonce["state"], &by_nonce["payments"][0]["amount_usdc"]),
            (&json!("settled"), &json!("0.005000"))
        );
        let transaction = answer.base64_header("payment-response")["transaction"].as_str().unwrap().to_owned();
        let by_transaction = payer.client.get(&format!("/v1/payments/{transaction}"), &[]).await.json();
        assert_eq!(by_transaction["payments"], by_nonce["payments"]);
        assert_eq!(by_transaction["payments"][0]["transaction"], transaction);

        let failed = payer.authorize(2_000);
        let body = json!({"url": "http://no-such-host.invalid/"});
        payer.client.post(READ_PATH, &[("x-payment", &header(&bare(&failed)))], &body).await;
        let state = eventually("the credit", || async {
            let state = payer.payment_state(&failed).await;
            (state["state"] == "credited_back").then_some(state)
        })
        .await;
        assert_eq!(state["payments"][0]["credited_usdc"], "0.002000");
        for reference in ["0x12", "abc", &"0".repeat(66)] {
            let answer = payer.client.get(&format!("/v1/payments/{reference}"), &[]).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{reference}");
        }
    });
}

#[test]
fn statistics_count_completed_work() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        for _ in 0..3 {
            assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
        }
        let failed = payer.buy(READ_PATH, &json!({"url": "http://no-such-host.invalid/"})).await.json();
        payer.finished(failed["request_id"].as_str().unwrap()).await;
        let stats = eventually("the statistics", || async {
            let stats = payer.client.get("/v1/stats", &[]).await.json();
            (stats["actions_executed"] == 3 && stats["success_rate_bps"] == 7_500).then_some(stats)
        })
        .await;
        assert_eq!((&stats["transaction_volume_cents"], &stats["active_agents"]), (&json!(1), &json!(1)));
    });
}

/// The public data of a payment on chain leads only its payer to the purchase.
#[test]
fn a_payment_on_chain_does_not_reveal_its_job() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "not-named").await;
        let payer = Payer::new(&stack).await;
        let authorization = payer.authorize(500_000);
        let signed = header(&bare(&authorization));
        let bought = payer.client.post(&shop.execute_path(), &[("x-payment", &signed)], &text("words")).await;
        assert_eq!(bought.status, 202, "{}", bought.text);
        let request_id = bought.json()["request_id"].clone();
        let path = format!("/v1/payments/{}", hex0x(&authorization.nonce));
        let told = async |headers: &[(&str, &str)]| {
            let answer = payer.client.get(&path, headers).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer.json()["payments"][0].clone()
        };
        let stranger = Payer::with(&stack, 0).await;
        let (own, other) = (payer.proof("read"), stranger.proof("read"));
        assert_eq!(told(&[("x-agent-proof", &own)]).await["request_id"], request_id);
        let named = payer.address().to_string();
        for headers in [vec![], vec![("x-agent-proof", other.as_str())], vec![("x-agent-id", named.as_str())]] {
            let payment = told(&headers).await;
            assert_eq!(payment["payer"], named);
            assert_eq!(payment.get("request_id"), None, "{headers:?}: {payment}");
        }
        // The job id depends on the service's key too: another key gives another id.
        let key = |byte: u8| ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &[byte; 32]);
        let of = |byte| claim::request_id(&authorization, &stack.config.chain, &key(byte));
        assert_ne!(of(1), of(2));
    });
}
