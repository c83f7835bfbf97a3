//! Identity checks as agents buy them: a code by mail, and a vendor behind a contract server (formats from
//! docs.stripe.com/api/identity, see `common/tools-people/src/stripe.rs`).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, Method, Uri};
use base::clock::Clock;
use base::ids::RequestId;
use gate::jobs::store;
use local::Options;
use local::stack::Stack;
use platform::store::queue;
use ring::hmac;
use serde_json::{Value, json};
use tools_people::verification::session::{self, Decision, Guess, MAX_TRIES, Session};

use crate::support::{Answer, Payer, eventually, run, stack_with};

pub const PATH: &str = "/v1/tools/identity/start";
const SECRET: &str = "whsec_of_the_vendor";

pub fn input() -> Value {
    json!({
        "full_name": "Ada Lovelace", "email": "ada@example.org", "purpose": "To rent <b>a workshop</b>",
        "idempotency_key": "workshop-17",
    })
}

/// Pays as the public client does: with a proof in addition to the payment.
async fn buy(payer: &Payer, body: &Value) -> Answer {
    let unpaid = payer.client.post(PATH, &[], body).await;
    assert_eq!(unpaid.status, 402, "{}", unpaid.text);
    let (payment, proof) = (payer.pay(&unpaid), payer.proof("write"));
    payer.client.post(PATH, &[("payment-signature", &payment), ("x-agent-proof", &proof)], body).await
}

/// Buys a check and waits until it waits for its person.
async fn started(payer: &Payer, stack: &Stack) -> (String, Value) {
    waiting(payer, stack, buy(payer, &input()).await).await
}

async fn waiting(payer: &Payer, stack: &Stack, answer: Answer) -> (String, Value) {
    assert_eq!(answer.status, 202, "{}", answer.text);
    let body = answer.json();
    let id = body["request_id"].as_str().unwrap().to_owned();
    assert_eq!(body["verification_url"], format!("{}/identity/{id}", stack.base_url));
    let request_id: RequestId = id.parse().unwrap();
    eventually("the check to wait", || async {
        let job = store::load_latest(&stack.app.db, request_id).await.unwrap().unwrap();
        job.handed_until.map(|_| ())
    })
    .await;
    assert_eq!(payer.get(&format!("/v1/requests/{id}")).await.json()["status"], "processing");
    (id, body)
}

pub async fn submit(payer: &Payer, id: &str, form: &str) -> Answer {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    payer.client.send("POST", &format!("/identity/{id}"), &headers, form.to_owned()).await.expect("an answer")
}

/// The code of the mail with this number.
fn mailed(stack: &Stack, id: &str, number: u32) -> String {
    let mail = std::fs::read_to_string(stack.outbox.join(format!("identity-{id}-{number}.eml"))).expect("a mail");
    assert!(mail.contains("To: <ada@example.org>"), "{mail}");
    assert!(!mail.contains("workshop") && !mail.contains("Lovelace"), "no word of the agent's: {mail}");
    let at = mail.find("Your code is ").expect("a code") + "Your code is ".len();
    mail[at..at + 8].to_owned()
}

fn another(code: &str) -> String {
    format!("{:08}", (code.parse::<u32>().unwrap() + 1) % 100_000_000)
}

#[test]
fn a_mailed_code_proves_only_control_of_the_address() {
    run(async {
        let stack = stack_with(|options| options).await;
        let payer = Payer::new(&stack).await;
        let (id, accepted) = started(&payer, &stack).await;
        assert!(accepted["expires_at"].as_str().unwrap() > stack.app.clock.now().to_string().as_str());

        let page = payer.client.get(&format!("/identity/{id}"), &[]).await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(page.text.contains("a***@example.org") && !page.text.contains("ada@example.org"), "{}", page.text);
        assert!(page.text.contains("&lt;b&gt;a workshop"), "hostile text is text: {}", page.text);
        assert!(page.text.contains(" UTC</dd>"), "a time for people: {}", page.text);
        assert_eq!(submit(&payer, &id, "code=12345678").await.status, 400, "none was mailed");
        assert_eq!(submit(&payer, &id, "").await.status, 200);
        let code = mailed(&stack, &id, 1);
        assert_eq!(submit(&payer, &id, &format!("code={}", another(&code))).await.status, 400);

        // The right code, from two browser windows at once: one decides, and both show the result.
        let form = format!("code={code}");
        let (one, other) = tokio::join!(submit(&payer, &id, &form), submit(&payer, &id, &form));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
        for shown in [&one.text, &other.text] {
            let verdict = shown.find("<p class=verdict>approved").expect("a verdict");
            assert!(verdict < shown.find("<dl>").expect("details"), "the verdict comes first: {shown}");
        }

        let job = payer.finished(&id).await;
        let result = &job["result"];
        assert_eq!((&job["provider"], &job["mode"]), (&json!("contact_control"), &json!("embedded")), "{job}");
        assert_eq!((&result["status"], &result["assurance"]), (&json!("approved"), &json!("contact_control")));
        assert_eq!((&result["name_matches"], &result["document_type"]), (&Value::Null, &Value::Null));
        assert_eq!(result["wallet_signed"], true);
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 500_000);
        assert_eq!(submit(&payer, &id, "").await.status, 409, "it is over");
        for unknown in ["nothing", "00000000-0000-0000-0000-000000000000"] {
            assert_eq!(payer.client.get(&format!("/identity/{unknown}"), &[]).await.status, 404);
        }
    });
}

#[test]
fn guesses_and_codes_are_limited() {
    run(async {
        let stack = stack_with(|options| options).await;
        let payer = Payer::new(&stack).await;
        let (id, _) = started(&payer, &stack).await;
        for number in 1..=4 {
            assert_eq!(submit(&payer, &id, "").await.status, if number <= 3 { 200 } else { 409 }, "mail {number}");
        }
        let old = mailed(&stack, &id, 1);
        let code = mailed(&stack, &id, 3);
        assert!(!stack.outbox.join(format!("identity-{id}-4.eml")).exists());
        let wrong = if old == code { another(&code) } else { old };
        let form = format!("code={wrong}");
        // Concurrent guesses count one by one.
        let (a, b, c) =
            tokio::join!(submit(&payer, &id, &form), submit(&payer, &id, &form), submit(&payer, &id, &form));
        assert_eq!([a.status, b.status, c.status], [400; 3], "a code that was replaced is good for nothing");
        for _ in 3..MAX_TRIES {
            assert_eq!(submit(&payer, &id, &form).await.status, 400);
        }
        assert_eq!(submit(&payer, &id, &format!("code={code}")).await.status, 409, "too late for the right one");
        let job = payer.finished(&id).await;
        assert_eq!(job["result"]["status"], "declined", "{job}");
        assert_eq!(job["result"]["reason"], "too_many_wrong_codes");
        assert_eq!(job["result"]["assurance"], Value::Null, "nothing was proven");
    });
}

#[test]
fn identity_checks_need_a_provider_and_expire_unanswered() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| Options { clock, ..options }).await;
        let payer = Payer::new(&stack).await;
        let mut nobody = input();
        nobody.as_object_mut().unwrap().remove("email");
        let refused = payer.client.post(PATH, &[], &nobody).await;
        assert_eq!(refused.error(), (503, "provider_unavailable".to_owned()), "{}", refused.text);
        assert_eq!(refused.json()["reason"], "provider_not_configured");

        let (id, _) = started(&payer, &stack).await;
        let request_id: RequestId = id.parse().unwrap();
        hand.advance(session::VALID + Duration::from_secs(60));
        queue::send_or_log(&*stack.queue, request_id, None).await;
        let job = eventually("the check to expire", || async {
            let job = store::load_latest(&stack.app.db, request_id).await.unwrap().unwrap();
            job.outcome.is_some().then_some(job)
        })
        .await;
        assert!(format!("{:?}", job.result).contains("expired"), "{:?}", job.result);
        assert_eq!(submit(&payer, &id, "").await.status, 409);
    });
}

#[test]
fn a_concurrent_expiry_and_decision_leave_one_outcome() {
    run(async {
        let stack = stack_with(|options| options).await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let payer = Payer::with(&stack, 0).await;
        for _ in 0..10 {
            let id = RequestId::random();
            let mut fresh = Session::new(id, payer.agent(), "x", now);
            fresh.email = Some("ada@example.org".to_owned());
            let opened = session::open(db, fresh).await.unwrap();
            assert!(session::new_code(db, &opened, "12345678", now).await.unwrap());
            let expiry = session::decide(db, id, Decision::new("expired", None, now));
            let (expired, guessed) = tokio::join!(expiry, session::guess(db, id, "12345678", now));
            let stands = session::load(db, id).await.unwrap().unwrap().decision.unwrap();
            assert_eq!(expired.unwrap().0, stands);
            assert_eq!(guessed.unwrap() == Guess::Right, stands.status == "approved");
        }
    });
}

/// The vendor: opens a session and reports the test's status for it. A session that is cancelled is reported as
/// `canceled`.
async fn vendor(status: Arc<Mutex<Value>>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = move |method: Method, uri: Uri, headers: HeaderMap| {
        assert_eq!(headers["authorization"], "Bearer sk_test_1");
        let path = "/v1/identity/verification_sessions";
        let body = match method {
            Method::POST if uri.path() == format!("{path}/vs_1/cancel") => {
                let mut status = status.lock().unwrap();
                assert_eq!(status["status"], "requires_input", "only such a session can be ended");
                *status = json!({"status": "canceled"});
                status.clone()
            }
            Method::POST => {
                assert_eq!(uri.path(), path);
                json!({"id": "vs_1", "url": "https://verify.stripe.com/start/once", "status": "requires_input"})
            }
            _ => {
                assert_eq!(uri.path(), format!("{path}/vs_1"));
                status.lock().unwrap().clone()
            }
        };
        async move { body.to_string() }
    };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    url
}

async fn event(payer: &Payer, id: &str, kind: &str, secret: &str) -> u16 {
    let body = json!({"type": kind, "data": {"object": {"id": "vs_1", "metadata": {"request_id": id}}}}).to_string();
    let at = Clock::system().now().secs();
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), format!("{at}.{body}").as_bytes());
    let signature = format!("t={at},v1={}", &evm::hex0x(tag.as_ref())[2..]);
    let headers = [("content-type", "application/json"), ("stripe-signature", signature.as_str())];
    payer.client.send("POST", "/v1/identity/webhook", &headers, body).await.expect("an answer").status
}

/// A stack with this vendor.
async fn looking(status: &Arc<Mutex<Value>>) -> Stack {
    let urls = json!({"stripe": vendor(status.clone()).await}).to_string();
    stack_with(|options| {
        options
            .with("IDENTITY_PROVIDERS", "stripe")
            .with("IDENTITY_WEBHOOK_SECRET", SECRET)
            .with("PROVIDER_URLS", urls)
            .with("PROVIDER_KEYS", r#"{"stripe":"sk_test_1"}"#)
    })
    .await
}

/// The result of a check is the vendor's status, compared with the requested name, and it is reported at once.
#[test]
fn the_vendor_decides_and_another_persons_document_is_declined() {
    run(async {
        let status = Arc::new(Mutex::new(Value::Null));
        let stack = looking(&status).await;
        let payer = Payer::with(&stack, 10_000_000).await;
        let verified = |first: &str, last: &str| {
            json!({
                "status": "verified", "verified_outputs": {"first_name": first, "last_name": last},
                "last_verification_report": {"document": {"type": "passport", "issuing_country": "GB"}},
            })
        };
        let failed = |code: &str| json!({"status": "requires_input", "last_error": {"code": code}});
        let changed = "identity.verification_session.requires_input";
        for (number, (says, decided, reason, assurance, matches)) in [
            (verified("ADA KING", "LOVELACE"), "approved", Value::Null, json!("document"), json!(true)),
            (verified("GRACE", "HOPPER"), "declined", json!("name_mismatch"), Value::Null, json!(false)),
            (verified("\u{410}\u{434}\u{430}", "\u{41b}"), "approved", Value::Null, json!("document"), Value::Null),
            (failed("document_expired"), "resubmission_requested", json!("document_expired"), Value::Null, Value::Null),
            (failed("under_supported_age"), "declined", json!("under_supported_age"), Value::Null, Value::Null),
            (json!({"status": "canceled"}), "abandoned", Value::Null, Value::Null, Value::Null),
        ]
        .into_iter()
        .enumerate()
        {
            *status.lock().unwrap() = json!({"status": "requires_input"});
            let mut body = input();
            body["idempotency_key"] = json!(format!("check-{number}"));
            let (id, _) = waiting(&payer, &stack, buy(&payer, &body).await).await;
            *status.lock().unwrap() = failed("abandoned");
            assert_eq!(event(&payer, &id, changed, SECRET).await, 200);
            tokio::time::sleep(Duration::from_millis(300)).await;
            let waits = payer.get(&format!("/v1/requests/{id}")).await.json();
            assert_eq!(waits["status"], "processing", "who left may come back: {waits}");
            let ends = says["status"] == "requires_input";
            *status.lock().unwrap() = says;
            assert_eq!(event(&payer, &id, changed, SECRET).await, 200);
            let job = payer.finished(&id).await;
            let result = &job["result"];
            let told = (&result["status"], &result["reason"], &result["assurance"], &result["name_matches"]);
            assert_eq!(told, (&json!(decided), &reason, &assurance, &matches), "{job}");
            assert!(!ends || status.lock().unwrap()["status"] == "canceled", "nobody shows a document for nothing");
        }
        assert_eq!(payer.balance(&stack).await, 10_000_000 - 6 * 500_000);
    });
}

/// The wallet signs a proof in addition to the payment. Without it the payment is not used. A token needs no proof, and
/// the result then says that the wallet did not sign.
#[test]
fn an_identity_check_needs_a_wallet_proof_with_the_payment() {
    run(async {
        let stack = stack_with(|options| options).await;
        let payer = Payer::new(&stack).await;
        let refused = payer.buy(PATH, &input()).await;
        assert_eq!(refused.error(), (401, "agent_proof_required".to_owned()));
        assert_eq!(payer.balance(&stack).await, 1_000_000);
        payer.give_credits(&stack, 500_000).await;
        let token = payer.token(&stack).await;
        let answer = payer.client.post(PATH, &[("authorization", &token)], &input()).await;
        let (id, _) = waiting(&payer, &stack, answer).await;
        assert_eq!(submit(&payer, &id, "").await.status, 200);
        assert_eq!(submit(&payer, &id, &format!("code={}", mailed(&stack, &id, 1))).await.status, 200);
        let result = &payer.finished(&id).await["result"];
        assert_eq!((&result["status"], &result["wallet_signed"]), (&json!("approved"), &json!(false)));
    });
}

#[test]
fn the_vendors_api_decides_and_not_its_events() {
    run(async {
        let status = Arc::new(Mutex::new(json!({"status": "requires_input"})));
        let stack = looking(&status).await;
        let payer = Payer::new(&stack).await;
        let (id, _) = started(&payer, &stack).await;
        let page = payer.client.get(&format!("/identity/{id}"), &[]).await;
        assert_eq!((page.status, page.header("location")), (303, Some("https://verify.stripe.com/start/once")));
        assert_eq!(submit(&payer, &id, "").await.status, 303, "no code proves what a document would");
        // A person who returns from the vendor is not redirected again.
        let back = payer.client.get(&format!("/identity/{id}?done"), &[]).await;
        assert!(back.status == 200 && back.text.contains("may close this page"), "{}", back.text);

        // A forged event, then a true event that is early: the vendor's API is asked, and it still reports
        // "processing".
        let verified = "identity.verification_session.verified";
        assert_eq!(event(&payer, &id, verified, "not the secret").await, 401);
        assert_eq!(event(&payer, &id, verified, SECRET).await, 200);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(payer.get(&format!("/v1/requests/{id}")).await.json()["status"], "processing");

        *status.lock().unwrap() = json!({
            "status": "verified",
            "verified_outputs": {"first_name": "ADA", "last_name": "LOVELACE"},
            "last_verification_report": {"document": {"type": "passport", "issuing_country": "GB", "number": "X123"}},
        });
        // Twice, then an old event.
        for kind in [verified, verified, "identity.verification_session.processing"] {
            assert_eq!(event(&payer, &id, kind, SECRET).await, 200);
        }
        let job = payer.finished(&id).await;
        let result = &job["result"];
        assert_eq!((&job["provider"], &job["provider_request_id"]), (&json!("stripe"), &json!("vs_1")), "{job}");
        assert_eq!((&result["status"], &result["assurance"]), (&json!("approved"), &json!("document")));
        assert_eq!((&result["name_matches"], &result["document_type"]), (&json!(true), &json!("passport")));
        assert!(!job.to_string().contains("X123"));
        assert_eq!(
            payer.client.get(&format!("/identity/{id}"), &[]).await.status,
            200,
            "no way to the vendor any more"
        );
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 500_000);
    });
}

/// The idempotency key in the tool's input identifies the purchase: sent and paid for again, it buys one check. Another
/// check with the same key is refused.
#[test]
fn one_idempotency_key_buys_one_check() {
    run(async {
        let stack = stack_with(|options| options).await;
        let payer = Payer::with(&stack, 10_000_000).await;
        let answers = futures_util::future::join_all((0..8).map(|_| {
            let payer = payer.clone();
            async move { buy(&payer, &input()).await }
        }))
        .await;
        let accepted: Vec<Value> = answers.iter().filter(|answer| answer.status == 202).map(Answer::json).collect();
        assert!(!accepted.is_empty(), "{answers:?}");
        assert!(accepted.iter().all(|body| body["request_id"] == accepted[0]["request_id"]), "{accepted:?}");
        assert_eq!(accepted[0]["idempotency_key"], "workshop-17");
        let again = buy(&payer, &input()).await;
        assert_eq!((again.status, &again.json()["request_id"]), (202, &accepted[0]["request_id"]), "{}", again.text);
        let mut other = input();
        other["full_name"] = json!("Grace Hopper");
        let refused = buy(&payer, &other).await;
        assert_eq!(refused.error(), (422, "idempotency_key_reused".to_owned()));
        // A wallet that proves itself learns this before any payment.
        let told = payer.client.post(PATH, &[("x-agent-proof", &payer.proof("write"))], &input()).await;
        assert_eq!((told.status, &told.json()["request_id"]), (202, &accepted[0]["request_id"]), "{}", told.text);
        assert_eq!(payer.balance(&stack).await, 9_500_000, "charged once");
        let found = payer.get("/v1/submissions/recover?endpoint=identity/start&key=workshop-17").await;
        assert_eq!((found.status, &found.json()["request_id"]), (200, &accepted[0]["request_id"]), "{}", found.text);
    });
}
