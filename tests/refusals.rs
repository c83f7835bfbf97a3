//! Bad input gets a clear JSON error, never a 5xx, never a charge, and nothing is lost.

use evm::{Address, hex0x, word_from_u64};
use local::Stack;
use platform::config::Token;
use serde_json::{Value, json};

use crate::support::payer::{bare, header, v2};
use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, books, run, stack, stack_with};

/// One bad payment: its name, how it is sent, and the expected answer.
struct Bad {
    name: &'static str,
    header: (&'static str, String),
    status: u16,
    /// `reason` of a 402, `error` of a 400.
    word: &'static str,
}

fn bad(name: &'static str, payment: Value, word: &'static str) -> Bad {
    Bad { name, header: ("payment-signature", header(&payment)), status: 402, word }
}

fn malformed(name: &'static str, value: String) -> Bad {
    Bad { name, header: ("payment-signature", value), status: 400, word: "invalid_request" }
}

const SIGNATURE: &str = "invalid_exact_evm_payload_signature";
const VALUE: &str = "invalid_exact_evm_payload_authorization_value";
const BEFORE: &str = "invalid_exact_evm_payload_authorization_valid_before";
const AFTER: &str = "invalid_exact_evm_payload_authorization_valid_after";
const RECIPIENT: &str = "invalid_exact_evm_payload_recipient_mismatch";

/// Every kind of bad payment, for a tool with this price.
async fn bad_payments(stack: &Stack, payer: &Payer, price: u64, accepted: &Value) -> Vec<Bad> {
    let token = &stack.config.chain.token;
    let now = u64::try_from(base::clock::Clock::system().now().secs()).unwrap();
    let good = payer.authorize(price);
    let with = |change: fn(&mut evm::authorization::Authorization)| v2(&payer.authorize_with(price, change), accepted);
    let signed_for = |token: Token| {
        let mut authorization = payer.authorize(price);
        authorization.signature = payer.sign(&authorization, &token.domain);
        v2(&authorization, accepted)
    };
    let with_signature = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut authorization = payer.authorize(price);
        change(&mut authorization.signature);
        v2(&authorization, accepted)
    };
    let accepting = |name: &str, value: Value| {
        let mut accepted = accepted.clone();
        accepted[name] = value;
        v2(&payer.authorize(price), &accepted)
    };
    let message_with = |name: &str, value: Value| {
        let mut payment = v2(&payer.authorize(price), accepted);
        payment["payload"]["authorization"][name] = value;
        payment
    };
    let stranger = Payer::new(stack).await;
    let poor = Payer::with(stack, price - 1).await;
    let mut version = v2(&good, accepted);
    version["x402Version"] = json!(3);
    let mut zero_cost = v2(&good, accepted);
    zero_cost["payload"]["signature"] = json!("0x");
    for (name, value) in [("value", "0"), ("validAfter", "0"), ("validBefore", "0")] {
        zero_cost["payload"]["authorization"][name] = json!(value);
    }
    zero_cost["payload"]["authorization"]["nonce"] = json!(hex0x(&[0; 32]));
    let text = v2(&good, accepted).to_string();
    vec![
        bad("wrong payee", with(|payment| payment.to = Address::from_bytes([9; 20])), RECIPIENT),
        bad("wrong accepted payee", accepting("payTo", json!(hex0x(&[9; 20]))), RECIPIENT),
        bad("one unit over", v2(&payer.authorize(price + 1), accepted), VALUE),
        bad("one unit under", v2(&payer.authorize(price - 1), accepted), VALUE),
        bad("an amount beyond all money", with(|payment| payment.value = [0xff; 32]), VALUE),
        bad("wrong accepted amount", accepting("amount", json!("1")), "invalid_payment_requirements"),
        bad("wrong asset", accepting("asset", json!(hex0x(&[7; 20]))), "invalid_exact_evm_asset_mismatch"),
        bad("wrong network", accepting("network", json!("eip155:8453")), "invalid_network"),
        bad("wrong scheme", accepting("scheme", json!("upto")), "unsupported_scheme"),
        bad(
            "wrong token name",
            accepting("extra", json!({"name": "USD Coin", "version": "2"})),
            "invalid_exact_evm_token_name_mismatch",
        ),
        bad("signed for another chain", signed_for(Token::new(8453, token.address, &token.name, "2")), SIGNATURE),
        bad("signed for another token", signed_for(Token::new(84532, Address::ZERO, &token.name, "2")), SIGNATURE),
        bad("signed for another domain name", signed_for(Token::new(84532, token.address, "USD Coin", "2")), SIGNATURE),
        bad("expired", with(|payment| payment.valid_before = word_from_u64(1_000)), BEFORE),
        bad(
            "about to expire",
            v2(&payer.authorize_with(price, |payment| payment.valid_before = word_from_u64(now + 2)), accepted),
            BEFORE,
        ),
        bad(
            "not yet valid",
            v2(&payer.authorize_with(price, |payment| payment.valid_after = word_from_u64(now + 600)), accepted),
            AFTER,
        ),
        bad("high s", with_signature(&|bytes| mirror(bytes)), SIGNATURE),
        bad("truncated signature", with_signature(&|bytes| bytes.truncate(64)), SIGNATURE),
        bad("zero signature", with_signature(&|bytes| bytes.fill(0)), SIGNATURE),
        bad("v of 2", with_signature(&|bytes| bytes[64] = 2), SIGNATURE),
        bad("foreign signature", with_signature(&|bytes| *bytes = stranger.sign(&good, &token.domain)), SIGNATURE),
        bad("changed after signing", message_with("nonce", json!(hex0x(&[3; 32]))), SIGNATURE),
        bad("unknown version", version, "invalid_x402_version"),
        bad("zero cost without proof", zero_cost, "zero_cost_not_allowed"),
        bad("too little money", v2(&poor.authorize(price), accepted), "insufficient_funds"),
        malformed("a value in hex", header(&message_with("value", json!("0x7d0")))),
        malformed("a value that is a number", header(&message_with("value", json!(price)))),
        malformed("a negative value", header(&message_with("value", json!("-2000")))),
        malformed("a short nonce", header(&message_with("nonce", json!("0x1234")))),
        malformed("garbage base64", "%%%".to_owned()),
        malformed("base64 of garbage", header(&json!("hello"))),
        malformed("JSON cut off", text[..text.len() / 2].to_owned()),
        malformed("deep JSON", format!("{{\"extensions\":{}", "[".repeat(4_000))),
        malformed("an empty payment", "{}".to_owned()),
        malformed("an oversized payment", "A".repeat(9_400)),
    ]
}

/// Turns a signature into its other valid form (malleability): s becomes n - s, and v flips.
fn mirror(bytes: &mut [u8]) {
    let order = evm::parse_word("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141").unwrap();
    let mut borrow = 0;
    for index in (0..32).rev() {
        let difference = i16::from(order[index]) - i16::from(bytes[32 + index]) - borrow;
        borrow = i16::from(difference < 0);
        bytes[32 + index] = difference.rem_euclid(256) as u8;
    }
    bytes[64] = 55 - bytes[64];
}

#[test]
fn every_bad_payment_is_refused_by_name_and_costs_nothing() {
    run(async {
        let stack = stack().await;
        for (path, body, price) in [
            (VIN_PATH, json!({"vin": VIN}), 5_000),
            (READ_PATH, json!({"url": format!("{}/plain", stack.site_url)}), 2_000),
        ] {
            let payer = Payer::new(&stack).await;
            let unpaid = payer.client.post(path, &[], &body).await;
            let accepted = unpaid.base64_header("payment-required")["accepts"][0].clone();
            for bad in bad_payments(&stack, &payer, price, &accepted).await {
                let answer = payer.client.post(path, &[(bad.header.0, &bad.header.1)], &body).await;
                check_refusal(&bad, &answer);
            }
            assert_eq!(payer.balance(&stack).await, 1_000_000, "nothing was charged");
            // The quote was not used up and still buys.
            let payment = header(&v2(&payer.authorize(price), &accepted));
            let answer = payer.client.post(path, &[("payment-signature", &payment)], &body).await;
            assert!(answer.status < 300, "{}", answer.text);
        }
    });
}

fn check_refusal(bad: &Bad, answer: &Answer) {
    assert_eq!(answer.status, bad.status, "{}: {}", bad.name, answer.text);
    let body = answer.json();
    if bad.status == 400 {
        assert_eq!(body["error"], bad.word, "{}", bad.name);
        assert_eq!(body["details"][0]["path"], bad.header.0, "{}", bad.name);
        return;
    }
    assert_eq!((&body["error"], &body["code"]), (&json!("payment_verification_failed"), &json!(402)), "{}", bad.name);
    assert_eq!(body["reason"], bad.word, "{}", bad.name);
    for member in ["message", "stage", "diagnostics", "quote_id", "payment_request", "payment_attempt_id"] {
        assert!(!body[member].is_null(), "{}: {member}", bad.name);
    }
    for member in ["amount", "asset", "network", "pay_to"] {
        assert!(body["expected"][member].is_string(), "{}: expected.{member}", bad.name);
    }
    assert!(answer.header("payment-required").is_some(), "{}: a way to pay", bad.name);
}

#[test]
fn used_nonces_and_used_quotes_are_refused() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        let unpaid = payer.client.post(VIN_PATH, &[], &body).await;
        let accepted = unpaid.base64_header("payment-required")["accepts"][0].clone();
        let first = payer.authorize(5_000);
        let answer =
            payer.client.post(VIN_PATH, &[("payment-signature", &header(&v2(&first, &accepted)))], &body).await;
        assert_eq!(answer.status, 200);

        // Another payment for the same quote: it is neither claimed nor settled.
        let second = payer.authorize(5_000);
        let answer =
            payer.client.post(VIN_PATH, &[("payment-signature", &header(&v2(&second, &accepted)))], &body).await;
        assert_eq!(answer.error(), (400, "invalid_quote".to_owned()));
        assert_eq!(payer.payment_state(&second).await["state"], "never_seen");

        // Another message with the first one's nonce: that nonce is spent.
        let same_nonce = payer.authorize_with(5_000, |payment| {
            payment.nonce = first.nonce;
            payment.valid_after = word_from_u64(1);
        });
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &header(&bare(&same_nonce)))], &body).await;
        assert_eq!(answer.error(), (409, "payment_already_used".to_owned()));

        // The nonce was used on chain for a transfer to somebody else, and never claimed here. It buys nothing.
        let chain = stack.chain.as_ref().unwrap();
        let elsewhere = Payer::new(&stack).await;
        let moved = elsewhere.authorize_with(5_000, |payment| payment.to = Address::from_bytes([4; 20]));
        broadcast(chain, &moved).await;
        let here = elsewhere.authorize_with(5_000, |payment| payment.nonce = moved.nonce);
        let answer = elsewhere.client.post(VIN_PATH, &[("x-payment", &header(&bare(&here)))], &body).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (402, &json!("invalid_exact_evm_nonce_already_used")));
        assert_eq!(payer.balance(&stack).await, 995_000);
    });
}

async fn broadcast(chain: &devchain::DevChain, authorization: &evm::authorization::Authorization) {
    crate::front_run::broadcast(chain, authorization).await;
}

#[test]
fn a_quote_is_bound_to_body_tool_agent_and_time() {
    run(async {
        let stack = stack_with(|options| options.with("QUOTE_TTL_SECONDS", "2")).await;
        let payer = Payer::new(&stack).await;
        let address = payer.address().to_string();
        let body = json!({"vin": VIN});
        let quote = |answer: &Answer| answer.json()["quote_id"].as_str().unwrap().to_owned();
        let payment = header(&bare(&payer.authorize(5_000)));
        let open = quote(&payer.client.post(VIN_PATH, &[], &body).await);
        let headers = [("x-payment", payment.as_str()), ("x-quote-id", open.as_str())];
        let other_body = payer.client.post(VIN_PATH, &headers, &json!({"vin": VIN, "model_year": 2003})).await;
        assert_eq!(other_body.error(), (400, "quote_mismatch".to_owned()));
        let read = header(&bare(&payer.authorize(2_000)));
        let other_tool = payer
            .client
            .post(READ_PATH, &[("x-payment", &read), ("x-quote-id", &open)], &json!({"url": "http://example.com/"}))
            .await;
        assert_eq!(other_tool.error(), (400, "quote_mismatch".to_owned()));

        // Quoted for one agent, redeemed by another.
        let stranger = Payer::new(&stack).await;
        let asked = quote(&payer.client.post(VIN_PATH, &[("X-Agent-ID", &address)], &body).await);
        let stolen = header(&bare(&stranger.authorize(5_000)));
        let answer = stranger.client.post(VIN_PATH, &[("x-payment", &stolen), ("x-quote-id", &asked)], &body).await;
        assert_eq!(answer.error(), (400, "quote_mismatch".to_owned()));

        for forged in ["quote_", "quote_AAAA", "nonsense"] {
            let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment), ("x-quote-id", forged)], &body).await;
            assert_eq!(answer.error(), (400, "invalid_quote".to_owned()), "{forged}");
        }
        let late = quote(&payer.client.post(VIN_PATH, &[], &body).await);
        tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment), ("x-quote-id", &late)], &body).await;
        assert_eq!(answer.error(), (400, "invalid_quote".to_owned()), "expired");

        // After all these refusals the payment is still valid.
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!((payer.balance(&stack).await, stranger.balance(&stack).await), (995_000, 1_000_000));
    });
}

#[test]
fn a_payment_is_bound_to_its_agent_and_the_callers_cap() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        let payment = header(&bare(&payer.authorize(5_000)));
        let stranger = Payer::with(&stack, 0).await.address().to_string();
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment), ("X-Agent-ID", &stranger)], &body).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (402, &json!("agent_mismatch")));
        for (cap, status) in [("0.004999", 400), ("1e-05", 400), ("0.005", 402), ("5e-3", 402)] {
            let answer = payer.client.post(VIN_PATH, &[("X-Max-Cost-USDC", cap)], &body).await;
            assert_eq!(answer.status, status, "{cap}: {}", answer.text);
        }
        let answer = payer.client.post(VIN_PATH, &[("X-Max-Cost-USDC", "0.004"), ("x-payment", &payment)], &body).await;
        assert_eq!(answer.error(), (400, "exceeds_caller_budget".to_owned()));
        for (name, value) in [("X-Max-Cost-USDC", "lots"), ("X-Max-Cost-USDC", "-1"), ("X-Agent-ID", "me")] {
            let answer = payer.client.post(VIN_PATH, &[(name, value)], &body).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{name}: {value}");
        }
        let id = payer.agent().to_string();
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment), ("X-Agent-ID", &id)], &body).await;
        assert_eq!(answer.status, 200, "the agent's UUID names it as well");
    });
}

#[test]
fn invalid_bodies_are_refused() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let json_type = ("content-type", "application/json");
        for (name, path, body, status) in [
            ("cut off", VIN_PATH, "{\"vin\":".to_owned(), 400),
            ("not an object", VIN_PATH, "[1]".to_owned(), 400),
            ("deep", VIN_PATH, format!("{{\"vin\":{}", "[".repeat(100_000)), 400),
            ("not UTF-8 as JSON", VIN_PATH, "{\"vin\":\"\\ud800\"}".to_owned(), 400),
            ("huge number", VIN_PATH, "{\"vin\":\"1HGCM82633A004352\",\"model_year\":1e999}".to_owned(), 400),
            ("16 characters", VIN_PATH, json!({"vin": &VIN[..16]}).to_string(), 400),
            ("18 characters", VIN_PATH, json!({"vin": format!("{VIN}1")}).to_string(), 400),
            ("letter O", VIN_PATH, json!({"vin": VIN.replace('0', "O")}).to_string(), 400),
            ("null", VIN_PATH, json!({"vin": null}).to_string(), 400),
            ("long memo", VIN_PATH, json!({"vin": VIN, "memo": "m".repeat(1_001)}).to_string(), 400),
            (
                "large context",
                VIN_PATH,
                json!({"vin": VIN, "decisionContext": {"x": "m".repeat(20_000)}}).to_string(),
                400,
            ),
            (
                "long URL",
                READ_PATH,
                json!({"url": format!("http://example.com/{}", "a".repeat(2_048))}).to_string(),
                400,
            ),
            ("private", READ_PATH, json!({"url": "http://192.168.1.1/"}).to_string(), 400),
            ("loopback", READ_PATH, json!({"url": "http://127.0.0.1:8402/"}).to_string(), 400),
            ("metadata", READ_PATH, json!({"url": "http://169.254.169.254/latest/"}).to_string(), 400),
            ("over a megabyte", READ_PATH, json!({"url": "u".repeat(1_100_000)}).to_string(), 413),
        ] {
            let answer = client.send("POST", path, &[json_type], body).await.expect(name);
            assert_eq!(answer.status, status, "{name}: {}", answer.text);
            assert!(answer.json()["message"].is_string(), "{name}");
            if status == 400 {
                assert!(answer.json()["details"][0]["path"].is_string(), "{name}: {}", answer.text);
            }
        }
        for content_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let answer = client.send("POST", VIN_PATH, &[("content-type", content_type)], "{}").await.unwrap();
            assert_eq!(answer.error(), (415, "unsupported_media_type".to_owned()), "{content_type}");
        }
        let answer = client.post(VIN_PATH, &[("authorization", "Bearer agent_00")], &json!({"vin": VIN})).await;
        assert_eq!(answer.error(), (401, "access_token_invalid".to_owned()));
    });
}

/// Clients show people and models the message alone: it names the field, says what is wrong with it and what would be right.
#[test]
fn messages_name_the_field_and_what_would_be_right() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let json_type = ("content-type", "application/json");
        let scheme = "url: must be an http or https URL, such as https://example.com/page";
        let two = "2 fields are wrong: url: must be a string; screenshot: must be true or false";
        for (path, header, body, message) in [
            (READ_PATH, None, r#"{"url": "ftp://example.org/"}"#, scheme),
            (
                READ_PATH,
                None,
                r#"{"url": "http://user@example.org/"}"#,
                "url: must not contain a user name or password",
            ),
            (READ_PATH, None, r#"{"url": "http://10.0.0.1/"}"#, "url: must be on the public internet"),
            (READ_PATH, None, r#"{"url": 1, "screenshot": "yes"}"#, two),
            (READ_PATH, None, "{}", "url: is required"),
            (READ_PATH, None, "[]", "the body must be a JSON object"),
            (VIN_PATH, None, r#"{"vin": 1e999}"#, "vin: is where the body stops being JSON: number out of range"),
            (VIN_PATH, Some(("x-dry-run", "")), "{}", "x-dry-run: must have a value, or be left out"),
            (VIN_PATH, Some(("payment-signature", "")), "{}", "payment-signature: must have a payment, or be left out"),
        ] {
            let headers: Vec<(&str, &str)> = header.into_iter().chain([json_type]).collect();
            let answer = payer.client.send("POST", path, &headers, body).await.unwrap();
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{body}: {}", answer.text);
            let said = answer.json()["message"].as_str().unwrap().to_owned();
            assert!(said.starts_with(message), "{body}: {said}");
        }
        let vin = json!({"vin": VIN});
        let dear = payer.client.post(VIN_PATH, &[("x-max-cost-usdc", "0.001")], &vin).await;
        assert_eq!(dear.error(), (400, "exceeds_caller_budget".to_owned()));
        let told = dear.json();
        assert_eq!(
            told["details"],
            json!([{"path": "X-Max-Cost-USDC", "message": "is 0.001000; the price is 0.005000"}])
        );
        assert_eq!((&told["price_usdc"], &told["max_cost_usdc"]), (&json!("0.005000"), &json!("0.001000")));
        // What is not sold here is named.
        let lacking = payer.client.post("/v1/tools/search", &[], &json!({"query": "lighthouse"})).await;
        let said = lacking.json()["message"].as_str().unwrap().to_owned();
        assert!(said.ends_with("; `web_search` needs it; nothing was charged"), "{said}");
    });
}

/// A path that is not valid UTF-8, and a cap with all the digits of a float.
#[test]
fn odd_paths_and_caps_are_accepted_or_refused_in_json() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        // The gateway decodes paths, and replaces bytes that are not UTF-8.
        for (path, status, code) in [
            ("/v1/payments/%ff", 400, "invalid_request"),
            ("/v1/requests/%ff", 404, "not_found"),
            ("/.well-known/%ff", 404, "not_found"),
            ("/v1/approvals/%ff", 404, "not_found"),
            ("/v1/receipts/%ff/explain", 404, "receipt_not_found"),
        ] {
            let proof = payer.proof("read");
            let answer = payer.client.get(path, &[("x-agent-proof", &proof)]).await;
            assert_eq!(answer.error(), (status, code.to_owned()), "{path}");
        }
        let ask = |cap: &'static str| {
            let payer = payer.clone();
            payer.call(VIN_PATH, vec![("x-max-cost-usdc", cap.to_owned())], json!({"vin": VIN}))
        };
        for cap in ["0.30000000000000004", "0.0050000001", "5e-3", "1e30"] {
            assert_eq!(ask(cap).await.status, 402, "{cap}");
        }
        for cap in ["1e-07", "0.004999999999", "1e-400"] {
            assert_eq!(ask(cap).await.error(), (400, "exceeds_caller_budget".to_owned()), "{cap}");
        }
        assert_eq!(ask("-0.1").await.error(), (400, "invalid_request".to_owned()));
    });
}

/// An empty cap or dry run header is refused: the client believes it is protected.
#[test]
fn an_empty_cap_or_dry_run_is_refused_and_charges_nothing() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 10_000).await;
        let (token, signed) = (payer.token(&stack).await, header(&bare(&payer.authorize(5_000))));
        for name in ["x-max-cost-usdc", "x-dry-run"] {
            for value in ["", "  "] {
                for paid in [("authorization", token.as_str()), ("x-payment", &signed)] {
                    let answer = payer.client.post(VIN_PATH, &[paid, (name, value)], &json!({"vin": VIN})).await;
                    assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{name}: {}", answer.text);
                    assert!(answer.text.contains(name), "{}", answer.text);
                }
            }
        }
        let account = books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!((account.credits.micro(), payer.balance(&stack).await), (10_000, 1_000_000));
    });
}
