//! Buying from souls and selling through them: quotes, payments, the seller's own worker, files, ratings, and failures
//! in between.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::Clock;
use base::encoding::{base64_any, base64_standard, percent_encoded};
use base::ids::RequestId;
use futures_util::future::join_all;
use gate::jobs::input::StoredInput;
use gate::jobs::job::{self, Job, LEASE, Place};
use gate::jobs::store::{self, MoveError};
use http::{HeaderMap, StatusCode};
use ledger::account;
use local::stack::Background;
use local::{Options, Stack};
use market::{soul, wallet};
use platform::auth::token::TokenCaps;
use platform::store::Write;
use serde_json::{Value, json};
use tools::files::{self, FileRow, NotKept};
use tools::{Output, Source};

use crate::support::http::borrowed;
use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy, throttled};
use crate::support::{Answer, Client, Payer, VIN, VIN_PATH, books, eventually, run, stack, stack_with};

/// A seller with its key.
pub struct Shop {
    pub client: Client,
    pub slug: String,
    pub key: String,
}

impl Shop {
    /// A soul that sells its text for 2 USDC, and a service of its own worker for 0.50.
    pub async fn open(stack: &Stack, slug: &str) -> Shop {
        Shop::with(stack, slug, json!({"executor": "worker"})).await
    }

    pub async fn with(stack: &Stack, slug: &str, service: Value) -> Shop {
        let client = Client::new(&stack.base_url);
        let mut first = json!({
            "name": "Summary", "slug": "summary", "description": "Sums a text up", "price_usd": 0.5,
            "input_schema": {
                "type": "object", "required": ["text"],
                "properties": {"text": {"type": "string", "maxLength": 100}},
            },
        });
        for (name, value) in service.as_object().expect("members") {
            first[name] = value.clone();
        }
        let body = json!({
            "name": format!("Soul {slug}"), "slug": slug, "soul_md": format!("# {slug}\n\nI sum up texts."),
            "soul_price": 2, "service": first,
        });
        let answer = client.post("/v1/soul/register", &[], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let key = answer.json()["soul_key"].as_str().expect("a key").to_owned();
        Shop { client, slug: slug.to_owned(), key }
    }

    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.raw(method, path, "application/json", body.to_string().into_bytes()).await
    }

    pub async fn raw(&self, method: &str, path: &str, content_type: &str, bytes: Vec<u8>) -> Answer {
        let key = format!("Bearer {}", self.key);
        let headers = [("authorization", key.as_str()), ("content-type", content_type)];
        self.client.send(method, &format!("/v1/soul/me{path}"), &headers, bytes).await.expect("an answer")
    }

    pub async fn get(&self, path: &str) -> Answer {
        let key = format!("Bearer {}", self.key);
        self.client.get(&format!("/v1/soul/me{path}"), &[("authorization", &key)]).await
    }

    pub fn execute_path(&self) -> String {
        format!("/v1/soul/{}/services/summary/execute", self.slug)
    }

    pub fn purchase_path(&self) -> String {
        format!("/v1/soul/{}/purchase", self.slug)
    }

    /// Waits until the worker can claim the job, and claims it.
    pub async fn claim(&self, job: &str) -> Answer {
        eventually("the job to be handed over", || async {
            let answer = self.send("POST", &format!("/jobs/{job}/claim"), &json!({})).await;
            (answer.error().1 != "invalid_state").then_some(answer)
        })
        .await
    }
}

pub fn text(words: &str) -> Value {
    json!({"input": {"text": words}})
}

/// Reads a job of the marketplace with a bare wallet address.
pub async fn read(payer: &Payer, path: &str) -> Answer {
    payer.client.get(&format!("/v1/soul/jobs/{path}"), &[("x-agent-id", &payer.address().to_string())]).await
}

async fn rate(payer: &Payer, job: &str, body: &Value) -> Answer {
    payer.change("POST", &format!("/v1/soul/jobs/{job}/rate"), body).await
}

/// Rates with a bare wallet address, which anyone can send.
async fn rate_unproven(payer: &Payer, job: &str, body: &Value) -> Answer {
    let address = payer.address().to_string();
    payer.client.post(&format!("/v1/soul/jobs/{job}/rate"), &[("x-agent-id", &address)], body).await
}

/// Buys an execution and returns its job id.
pub async fn buy(shop: &Shop, payer: &Payer, words: &str) -> String {
    let bought = payer.buy(&shop.execute_path(), &text(words)).await;
    assert_eq!(bought.status, 202, "{}", bought.text);
    bought.json()["soul_job_id"].as_str().expect("a job").to_owned()
}

#[test]
fn a_service_is_bought_done_by_its_worker_and_rated() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "whole-journey").await;
        let payer = Payer::new(&stack).await;

        let unpaid = payer.client.post(&shop.execute_path(), &[], &text("a long text")).await;
        assert_eq!(unpaid.error(), (402, "payment_required".to_owned()));
        // Directories read the service's own schema, and no example that it would refuse.
        for said in [unpaid.json(), unpaid.base64_header("payment-required")] {
            let bazaar = &said["extensions"]["bazaar"];
            let input = &bazaar["schema"]["properties"]["input"]["properties"]["body"]["properties"]["input"];
            assert_eq!((&input["required"], &bazaar["info"]["input"]["body"]), (&json!(["text"]), &Value::Null));
        }
        let quote = unpaid.json();
        let (context, request) = (&quote["context"], &quote["payment_request"]);
        assert_eq!(request["amount"], "0.500000");
        assert_eq!(
            context["pricing"],
            json!({
                "service_price": "0.500000", "platform_fee": "0.100000", "seller_revenue": "0.400000",
                "kept_if_failed_up_to": "0.000000", "total": "0.500000",
            })
        );
        assert_eq!((&context["service"]["slug"], &context["seller"]["slug"]), (&json!("summary"), &json!(shop.slug)));
        assert!(context["quote_id"].is_string() && context["expires_at"].is_string());

        let payment = payer.pay(&unpaid);
        let bought = payer.client.post(&shop.execute_path(), &[("x-payment", &payment)], &text("a long text")).await;
        assert_eq!(bought.status, 202, "{}", bought.text);
        let accepted = bought.json();
        assert_eq!((&accepted["status"], &accepted["tool"]), (&json!("processing"), &json!("soul")));
        assert_eq!(
            accepted["service"],
            json!({"name": "Summary", "seller": "Soul whole-journey", "price": "0.500000"})
        );
        let job = accepted["soul_job_id"].as_str().unwrap();

        let claimed = shop.claim(job).await;
        assert_eq!(claimed.status, 200, "{}", claimed.text);
        assert_eq!(claimed.json()["job"]["input"], json!({"text": "a long text"}));
        let again = shop.send("POST", &format!("/jobs/{job}/claim"), &json!({})).await;
        assert_eq!(again.error(), (409, "already_claimed".to_owned()));
        let half = json!({"message": "half", "percent": 50});
        assert_eq!(shop.send("POST", &format!("/jobs/{job}/progress"), &half).await.status, 200);
        let seen = read(&payer, job).await.json()["job"].clone();
        assert_eq!((&seen["status"], &seen["progress"]["percent"]), (&json!("processing"), &json!(50)));

        // The work may take days. The payment is settled, and the receipt shows it.
        let receipt = payer.get("/v1/analytics/receipts").await.json()["receipts"][0].clone();
        assert_eq!(
            (&receipt["status"], &receipt["execution_status"]),
            (&json!("settled"), &json!("pending")),
            "{receipt}"
        );
        let spent = payer.get("/v1/analytics/spend/breakdown").await.text;
        assert!(spent.contains("0.500000"), "{spent}");

        let put =
            shop.raw("PUT", &format!("/jobs/{job}/files/out/a%20b.txt"), "text/plain", b"0123456789".to_vec()).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let early = read(&payer, &format!("{job}/files")).await.json();
        assert_eq!(early["file_count"], 0, "what is not finished is not handed over");
        let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "short"})).await;
        assert_eq!(done.status, 200, "{}", done.text);
        assert_eq!(done.json()["job"]["status"], "completed");
        for (path, body) in
            [("complete", json!({"result": "x"})), ("fail", json!({"reason": "x"})), ("claim", json!({}))]
        {
            let late = shop.send("POST", &format!("/jobs/{job}/{path}"), &body).await;
            assert_eq!(late.error(), (409, "invalid_state".to_owned()), "{path}");
        }

        let seen = read(&payer, job).await.json()["job"].clone();
        assert_eq!((&seen["status"], &seen["result"]), (&json!("completed"), &json!("short")));
        assert_eq!(seen["pricing"], json!({"service_price": 0.5, "platform_fee": 0.1, "seller_revenue": 0.4}));
        assert_eq!(seen["output"]["files"]["count"], 1);
        let polled = payer.finished(accepted["request_id"].as_str().unwrap()).await;
        assert_eq!(polled["result"]["result"], "short");

        let files = read(&payer, &format!("{job}/files")).await.json();
        let file = &files["files"][0];
        assert_eq!((&file["path"], &file["size"]), (&json!("out/a b.txt"), &json!(10)));
        let address = payer.address().to_string();
        let url = file["download_url"].as_str().unwrap();
        let whole = payer.client.get(url, &[("x-agent-id", &address)]).await;
        assert_eq!((whole.status, whole.text.as_str()), (200, "0123456789"));
        assert_eq!(whole.header("content-type"), Some("text/plain"));
        let part = payer.client.get(url, &[("x-agent-id", &address), ("range", "bytes=2-4")]).await;
        assert_eq!((part.status, part.text.as_str()), (206, "234"));
        assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
        assert_eq!(payer.client.get(url, &[("x-agent-id", &address), ("range", "bytes=10-")]).await.status, 416);

        let rated = rate(&payer, job, &json!({"rating": 5, "review": "good"})).await;
        assert_eq!((rated.status, &rated.json()["rating"]), (200, &json!(5)));
        assert_eq!(rate(&payer, job, &json!({"rating": 1})).await.error(), (400, "already_rated".to_owned()));
        let balance = eventually("the sale to be counted", || async {
            let balance = shop.get("/balance").await.json();
            (balance["balance"]["total_jobs"] == 1).then_some(balance)
        });
        assert_eq!(balance.await["balance"]["pending"], 0.4);
        let profile = payer.client.get(&format!("/v1/soul/{}", shop.slug), &[]).await.json();
        assert_eq!(profile["soul"]["stats"]["avg_rating"], 5.0, "{profile}");
        assert_eq!(profile["services"][0]["total_executions"], 1);
        let receipts = payer.get("/v1/analytics/receipts").await.json();
        let receipt = &receipts["receipts"][0];
        assert_eq!(
            (&receipt["category"], &receipt["subcategory"]),
            (&json!("agent_to_agent"), &json!("soul")),
            "{receipts}"
        );
    });
}

/// With `SOUL_REQUIRE_PROOF` a bare address is nobody, and the refusal does not send anybody there.
#[test]
fn a_deployment_may_require_proof_of_a_jobs_parties() {
    run(async {
        let stack = stack_with(|options| options.with("SOUL_REQUIRE_PROOF", "true")).await;
        let shop = Shop::open(&stack, "wants-proof").await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        for answer in [payer.client.get(&format!("/v1/soul/jobs/{job}"), &[]).await, read(&payer, &job).await] {
            assert_eq!(answer.error(), (401, "proof_required".to_owned()));
            let message = answer.json()["message"].as_str().unwrap().to_owned();
            assert!(message.contains("x-agent-proof") && !message.contains("X-Agent-ID"), "{message}");
        }
        assert_eq!(payer.get(&format!("/v1/soul/jobs/{job}")).await.status, 200);
        assert_eq!(shop.get(&format!("/jobs/{job}")).await.status, 200);
    });
}

/// One job of each end and one purchase: the stream counts them, by day and service.
#[test]
fn statistics_show_each_sale_by_day_and_service() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "counted-days").await;
        let other = Shop::open(&stack, "sells-nothing").await;
        let payer = Payer::with(&stack, 5_000_000).await;
        let statistics = async |shop: &Shop, query: &str| shop.get(&format!("/statistics{query}")).await;
        for days in ["0", "91", "-1", "1.5", "all"] {
            let refused = statistics(&shop, &format!("?days={days}")).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{days}");
            assert_eq!(refused.json()["details"][0]["path"], "days", "{days}");
        }
        let nothing = statistics(&shop, "").await.json();
        assert_eq!(
            (&nothing["days"], &nothing["daily"], &nothing["totals"]["services"]),
            (&json!(30), &json!([]), &json!([]))
        );

        for (words, path, body) in
            [("done", "complete", json!({"result": "short"})), ("not done", "fail", json!({"reason": "it rained"}))]
        {
            let job = buy(&shop, &payer, words).await;
            assert_eq!(shop.claim(&job).await.status, 200);
            let ended = shop.send("POST", &format!("/jobs/{job}/{path}"), &body).await;
            assert_eq!(ended.status, 200, "{}", ended.text);
        }
        let bought = payer.buy(&shop.purchase_path(), &json!({})).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let told = eventually("the sales to be counted", || async {
            let told = statistics(&shop, "?days=90").await.json();
            let totals = &told["totals"];
            let counted =
                ["completed_jobs", "failed_jobs", "purchases"].map(|name| totals[name].as_u64().expect("a count"));
            (counted.iter().sum::<u64>() == 3).then_some(told)
        })
        .await;
        let work = json!({"service": "summary", "completed_jobs": 1, "failed_jobs": 1, "revenue": "0.400000"});
        let totals = json!({
            "completed_jobs": 1, "failed_jobs": 1, "purchases": 1, "failed_purchases": 0,
            "revenue": "2.000000", "purchase_revenue": "1.600000", "services": [work],
        });
        assert_eq!(told["totals"], totals);
        let daily = told["daily"].as_array().expect("days");
        assert!(daily.iter().all(|day| day["date"].as_str() <= told["to"].as_str() && day["date"].as_str() >= told["from"].as_str()), "{told}");
        // Around midnight there are two.
        if let [day] = &daily[..] {
            let mut of_day = totals.clone();
            of_day["date"] = day["date"].clone();
            assert_eq!(*day, of_day);
        }
        assert_eq!(statistics(&other, "").await.json()["daily"], json!([]), "of one soul");
        let balance = shop.get("/balance").await.json();
        assert_eq!(balance["total_earned_usdc"].as_f64(), Some(2.0), "{balance}");
    });
}

#[test]
fn only_buyer_and_seller_see_a_job_and_only_the_buyer_rates_it() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "guarded").await;
        let other = Shop::open(&stack, "somebody-else").await;
        let (payer, stranger) = (Payer::new(&stack).await, Payer::with(&stack, 0).await);
        let job = buy(&shop, &payer, "x").await;

        let nobody = payer.client.get(&format!("/v1/soul/jobs/{job}"), &[]).await;
        assert_eq!(nobody.error(), (401, "proof_required".to_owned()));
        for path in [job.clone(), format!("{job}/files")] {
            let nobody = payer.client.get(&format!("/v1/soul/jobs/{path}"), &[]).await;
            for enough in ["X-Agent-ID", "x-agent-proof", "access token", "soul key"] {
                assert!(nobody.json()["message"].as_str().unwrap().contains(enough), "{enough}: {}", nobody.text);
            }
        }
        assert_eq!(read(&stranger, &job).await.error(), (403, "forbidden".to_owned()));
        assert_eq!(read(&stranger, &format!("{job}/files")).await.error(), (403, "forbidden".to_owned()));
        assert_eq!(rate(&stranger, &job, &json!({"rating": 5})).await.error(), (403, "forbidden".to_owned()));
        for unknown in ["job_00000000000000000000000000000000", "job_x", "x", "JOB_00000000000000000000000000000000"] {
            assert_eq!(read(&payer, unknown).await.error(), (404, "not_found".to_owned()), "{unknown}");
            assert_eq!(rate(&payer, unknown, &json!({"rating": 5})).await.error(), (404, "not_found".to_owned()));
        }
        assert_eq!(rate(&payer, &job, &json!({"rating": 5})).await.error(), (400, "job_not_completed".to_owned()));
        for wrong in [json!(0), json!(6), json!(4.5), json!("5"), json!(null), json!(-1)] {
            let refused = rate(&payer, &job, &json!({"rating": wrong})).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{wrong}");
        }
        // For another seller the job does not exist.
        assert_eq!(other.get(&format!("/jobs/{job}")).await.error(), (404, "not_found".to_owned()));
        for (path, body) in
            [("claim", json!({})), ("fail", json!({"reason": "x"})), ("complete", json!({"result": "x"}))]
        {
            let answer = other.send("POST", &format!("/jobs/{job}/{path}"), &body).await;
            assert_eq!(answer.error(), (404, "not_found".to_owned()), "{path}");
        }
        assert_eq!(shop.get(&format!("/jobs/{job}")).await.status, 200);
        // A proof that is sent is always checked.
        let address = payer.address().to_string();
        let forged = [("x-agent-id", address.as_str()), ("x-agent-proof", "bm90aGluZw==")];
        assert_eq!(payer.client.get(&format!("/v1/soul/jobs/{job}"), &forged).await.error().0, 401);
        assert_eq!(payer.get(&format!("/v1/soul/jobs/{job}")).await.status, 200);
    });
}

#[test]
fn a_quote_holds_after_the_seller_changes_terms() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "changing").await;
        let payer = Payer::with(&stack, 5_000_000).await;
        let path = shop.execute_path();
        let unpaid = payer.client.post(&path, &[], &text("old terms")).await;
        let payment = payer.pay(&unpaid);
        let dearer = json!({"price_usd": 3, "input_schema": {"type": "object", "required": ["url"]}});
        assert_eq!(shop.send("PUT", "/services/summary", &dearer).await.status, 200);
        let new = payer.client.post(&path, &[], &text("old terms")).await;
        assert_eq!(new.error(), (400, "invalid_input".to_owned()), "new quotes are for the new terms");
        assert_eq!(new.json()["details"][0]["path"], "input.url");
        let changed = payer.client.post(&path, &[("payment-signature", &payment)], &text("another text")).await;
        assert_eq!(changed.error(), (400, "invalid_quote".to_owned()), "a quote is for one input");
        let bought = payer.client.post(&path, &[("payment-signature", &payment)], &text("old terms")).await;
        assert_eq!(bought.status, 202, "{}", bought.text);
        assert_eq!(bought.json()["service"]["price"], "0.500000");
        let job = bought.json()["soul_job_id"].as_str().unwrap().to_owned();

        // The service was disabled, and a client that lost the answer asks again.
        assert_eq!(shop.send("DELETE", "/services/summary", &json!({})).await.status, 200);
        let again = payer.client.post(&path, &[("payment-signature", &payment)], &text("old terms")).await;
        assert_eq!((again.status, &again.json()["soul_job_id"]), (202, &json!(job)), "{}", again.text);
        let url = json!({"input": {"url": "x"}});
        assert_eq!(payer.client.post(&path, &[], &url).await.error(), (404, "service_not_found".to_owned()));
        let nothing = format!("/v1/soul/{}/services/nothing/execute", shop.slug);
        assert_eq!(payer.client.post(&nothing, &[], &url).await.error(), (404, "service_not_found".to_owned()));
        let nobody = "/v1/soul/nobody-here/services/summary/execute";
        assert_eq!(payer.client.post(nobody, &[], &url).await.error(), (404, "soul_not_found".to_owned()));
    });
}

/// The terms come from the quote that a call names. So a quote must not give its price to another purchase, and must
/// expire.
#[test]
fn a_quote_buys_only_what_it_was_given_for() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| Options { clock, ..options }).await;
        let shop = Shop::open(&stack, "dear").await;
        let bait = Shop::with(&stack, "bait", json!({"executor": "worker", "price_usd": 0.01})).await;
        assert_eq!(bait.send("PUT", "/soul-price", &json!({"soul_price": 0.01})).await.status, 200);
        let payer = Payer::with(&stack, 5_000_000).await;
        let quote_of = |answer: &Answer| answer.json()["context"]["quote_id"].as_str().expect("a quote").to_owned();
        let old = payer.client.post(&shop.execute_path(), &[], &text("x")).await;
        for price in [800, 900] {
            assert_eq!(shop.send("PUT", "/services/summary", &json!({"price_usd": price})).await.status, 200);
        }
        let cheap_text = quote_of(&payer.client.post(&bait.purchase_path(), &[], &json!({})).await);
        let cheap_work = quote_of(&payer.client.post(&bait.execute_path(), &[], &text("x")).await);
        let invalid = (400, "invalid_quote".to_owned());
        for (path, body) in [(shop.purchase_path(), json!({})), (shop.execute_path(), text("x"))] {
            for quote in [&cheap_text, &cheap_work] {
                let forged = payer.pay(&old).replacen('A', "B", 1);
                for more in [None, Some(("x-dry-run", "true")), Some(("payment-signature", forged.as_str()))] {
                    let mut headers = vec![("x-quote-id", quote.as_str())];
                    headers.extend(more);
                    let answer = payer.client.post(&path, &headers, &body).await;
                    assert_eq!(answer.status, 400, "{path} {more:?}: {}", answer.text);
                    assert!(answer.json().get("accepts").is_none(), "{}", answer.text);
                }
                assert_eq!(payer.client.post(&path, &[("x-quote-id", quote)], &body).await.error(), invalid);
            }
        }
        // Its own quote is returned unchanged until it expires.
        let old = quote_of(&old);
        let ask = async |body: &Value| payer.client.post(&shop.execute_path(), &[("x-quote-id", &old)], body).await;
        let again = ask(&text("x")).await;
        assert_eq!((again.status, quote_of(&again)), (402, old.clone()), "{}", again.text);
        assert_eq!(ask(&text("y")).await.error(), invalid, "for another input");
        hand.advance(Duration::from_secs(31 * 60));
        assert_eq!(ask(&text("x")).await.error(), invalid);
        let probe = Client::new(&stack.base_url).send("POST", &shop.execute_path(), &[], "").await.unwrap();
        assert_eq!((probe.status, &probe.json()["amount_usdc"]), (402, &json!("900.000000")), "{}", probe.text);
    });
}

#[test]
fn concurrent_purchases_of_a_text_pay_once() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "raced-text").await;
        let path = shop.purchase_path();
        let payer = Payer::with(&stack, 10_000_000).await;
        payer.give_credits(&stack, 10_000_000).await;
        let token = payer.token(&stack).await;
        let bought = join_all((0..8).map(|_| async {
            let answer = payer.client.post(&path, &[("authorization", token.as_str())], &json!({})).await;
            assert!(matches!(answer.status, 200 | 409), "{}", answer.text);
            answer.status == 200
        }))
        .await;
        assert!(bought.contains(&true));
        let account = account::load(&stack.app.db, payer.agent()).await.unwrap();
        assert_eq!(account.credits.micro(), 8_000_000, "2 once");

        let other = Payer::with(&stack, 10_000_000).await;
        let nothing = json!({});
        let answers = join_all((0..4).map(|_| other.buy(&path, &nothing))).await;
        assert!(answers.iter().any(|answer| answer.status == 200), "{answers:?}");
        eventually("the payments to be settled", || async { (other.balance(&stack).await < 10_000_000).then_some(()) })
            .await;
        assert_eq!(10_000_000 - other.balance(&stack).await, 2_000_000, "2 once");
        let balance = eventually("the sales to be counted", || async {
            let balance = shop.get("/balance").await.json()["balance"].clone();
            (balance["pending"] == 3.2).then_some(balance)
        });
        balance.await;
    });
}

#[test]
fn inputs_are_validated_before_a_price_is_given() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "strict").await;
        let client = Client::new(&stack.base_url);
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        for (body, place) in [
            (json!({}), "input"),
            (json!({"input": "text"}), "input"),
            (json!({"input": {}}), "input.text"),
            (json!({"input": {"text": 5}}), "input.text"),
            (text(&"x".repeat(101)), "input.text"),
            (json!({"input": {"text": "x", "more": deep}}), "input"),
        ] {
            let answer = client.post(&shop.execute_path(), &[], &body).await;
            assert_eq!(answer.error(), (400, "invalid_input".to_owned()), "{}", answer.text);
            assert_eq!(answer.json()["details"][0]["path"], place, "{}", answer.text);
        }
        let not_json = client.send("POST", &shop.execute_path(), &[("content-type", "application/json")], "{").await;
        assert_eq!(not_json.unwrap().error(), (400, "invalid_request".to_owned()));
    });
}

/// A client that lost the answer repeats its request to the byte, also after the text was taken off sale.
#[test]
fn a_paid_text_sent_again_with_its_proof_gets_the_stored_answer() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "lost-answer").await;
        let path = shop.purchase_path();
        let mut sent = Vec::new();
        for from_credits in [false, true] {
            let payer = Payer::with(&stack, 2_000_000).await;
            if from_credits {
                payer.give_credits(&stack, 2_000_000).await;
            }
            let (address, proof) = (payer.address().to_string(), payer.proof("write"));
            let mut headers = vec![("x-agent-id", address), ("x-agent-proof", proof)];
            let unpaid = payer.client.post(&path, &borrowed(&headers), &json!({})).await;
            headers.push(("x-quote-id", unpaid.json()["quote_id"].as_str().expect("a quote").to_owned()));
            headers.push(("payment-signature", if from_credits { payer.nothing() } else { payer.pay(&unpaid) }));
            let first = payer.client.post(&path, &borrowed(&headers), &json!({})).await;
            assert_eq!(first.status, 200, "{}", first.text);
            sent.push((payer, headers, first));
        }
        for is_sold in [true, false] {
            for (payer, headers, first) in &sent {
                let again = payer.client.post(&path, &borrowed(headers), &json!({})).await;
                assert_eq!((again.status, &again.text), (200, &first.text), "sold: {is_sold}");
                assert_eq!(again.header("payment-response"), first.header("payment-response"));
            }
            assert_eq!(shop.send("PUT", "/soul-price", &json!({"soul_price": null})).await.status, 200);
        }
        assert_eq!(sent[0].0.balance(&stack).await, 0, "paid once");
        // The proof is good for nothing else.
        let (payer, headers, _) = &sent[0];
        let other = payer.client.post(&path, &borrowed(&headers[..3]), &json!({})).await;
        assert_eq!((other.status, &other.json()["reason"]), (401, &json!("already_used")), "{}", other.text);
    });
}

#[test]
fn a_text_is_bought_once_and_reread_by_its_buyer() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "lighthouse-keeper").await;
        let payer = Payer::with(&stack, 20_000_000).await;
        let path = shop.purchase_path();
        let unpaid = payer.client.send("POST", &path, &[], "").await.unwrap();
        assert_eq!(unpaid.error(), (402, "payment_required".to_owned()), "{}", unpaid.text);
        let context = &unpaid.json()["context"];
        assert_eq!(
            (&context["soul_slug"], &context["price"], &context["platform_fee"], &context["seller_revenue"]),
            (&json!("lighthouse-keeper"), &json!("2.000000"), &json!("0.400000"), &json!("1.600000"))
        );
        // The buyer gets the version that was quoted, whatever was published since.
        let payment = payer.pay(&unpaid);
        let newer = json!({"soul_md": "# newer\n\nI sum up texts better."});
        assert_eq!(shop.send("PUT", "/soul", &newer).await.json()["version"], 2);
        assert_eq!(shop.send("PUT", "/soul-price", &json!({"soul_price": 9})).await.status, 200);
        let bought = payer.client.post(&path, &[("x-payment", &payment)], &json!({})).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let body = bought.json();
        assert_eq!((&body["success"], &body["soul"]["version"]), (&json!(true), &json!(1)));
        assert_eq!(body["soul_md"], "# lighthouse-keeper\n\nI sum up texts.");
        assert_eq!(body["purchase"]["price"], 2);
        let again = payer.client.post(&path, &[("x-payment", &payment)], &json!({})).await;
        assert_eq!(again.json(), body, "the same payment gets the same answer");

        // The newer version is a new purchase. After that it is free for callers that prove they bought it, and only
        // for them.
        let quoted = payer.client.post(&path, &[], &json!({})).await;
        let second = payer.client.post(&path, &[("payment-signature", &payer.pay(&quoted))], &json!({})).await;
        assert_eq!((second.status, &second.json()["soul"]["version"]), (200, &json!(2)), "{}", second.text);
        let address = payer.address().to_string();
        let named = payer.client.post(&path, &[("x-agent-id", &address)], &json!({})).await;
        assert_eq!(named.status, 402, "an address proves nothing");
        let proof = payer.proof("read");
        let proven = [("x-agent-id", address.as_str()), ("x-agent-proof", proof.as_str())];
        let free = payer.client.post(&path, &proven, &json!({})).await;
        assert_eq!((free.status, &free.json()["soul"]["version"]), (200, &json!(2)), "{}", free.text);
        let token = payer.token(&stack).await;
        assert_eq!(payer.client.post(&path, &[("authorization", &token)], &json!({})).await.status, 200);
        let paid = 20_000_000 - payer.balance(&stack).await;
        assert_eq!(paid, 11_000_000, "2 for the first version and 9 for the second");

        for (price, expected) in [(json!(null), (400, "not_for_sale")), (json!(0), (200, ""))] {
            assert_eq!(shop.send("PUT", "/soul-price", &json!({"soul_price": price})).await.status, 200);
            let answer = Client::new(&stack.base_url).post(&path, &[], &json!({})).await;
            assert_eq!(answer.status, expected.0, "{}", answer.text);
            if answer.status != 200 {
                assert_eq!(answer.error().1, expected.1);
            } else {
                assert_eq!(answer.json()["purchase"]["price"], 0);
            }
        }
        let malformed = payer.client.post(&path, &[("payment-signature", "not base64")], &json!({})).await;
        assert_eq!(
            malformed.error(),
            (400, "invalid_request".to_owned()),
            "a malformed payment, also where nothing is paid"
        );
        let nobody = payer.client.post("/v1/soul/nobody-here/purchase", &[], &json!({})).await;
        assert_eq!(nobody.error(), (404, "not_found".to_owned()));
    });
}

/// A stack whose clock the test holds.
async fn timed() -> (Stack, Clock) {
    let clock = Clock::pinned(Clock::system().now());
    let hand = clock.clone();
    (stack_with(|options| Options { clock, ..options }).await, hand)
}

#[test]
fn work_of_a_dead_worker_is_paid_back() {
    run(async {
        let (stack, hand) = timed().await;
        let shop = Shop::with(&stack, "mortal", json!({"executor": "worker", "deadline_seconds": 600})).await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        // The lease expires: the job waits again, and any worker can claim it.
        hand.advance(Duration::from_secs(301));
        assert_eq!(read(&payer, &job).await.json()["job"]["status"], "pending");
        let late = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "late"})).await;
        assert_eq!(late.error(), (409, "invalid_state".to_owned()), "without a lease nothing is delivered");
        assert_eq!(shop.claim(&job).await.status, 200);
        hand.advance(Duration::from_secs(301));
        let too_late = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "late"})).await;
        assert_eq!(too_late.error(), (409, "invalid_state".to_owned()), "the deadline is over");
        let failed = eventually("the deadline to be enforced", || async {
            hand.advance(LEASE);
            let job = read(&payer, &job).await.json()["job"].clone();
            (job["status"] == "failed").then_some(job)
        });
        let failed = failed.await;
        assert_eq!(
            (&failed["error"]["reason"], &failed["credited_usdc"]),
            (&json!("deadline_exceeded"), &json!("0.500000"))
        );
        let account = account::load(&stack.app.db, payer.agent()).await.unwrap();
        assert_eq!(account.credits.to_string(), "0.500000");
        let seller = shop.get("/balance").await.json();
        assert_eq!((&seller["balance"]["pending"], &seller["balance"]["total_jobs"]), (&json!(0), &json!(0)));
    });
}

#[test]
fn concurrent_ends_of_a_job_count_once() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "crowded").await;
        let payer = Payer::with(&stack, 3_000_000).await;
        for round in 0..3 {
            let job = buy(&shop, &payer, &format!("round {round}")).await;
            let claims = join_all((0..8).map(|_| shop.claim(&job))).await;
            assert_eq!(claims.iter().filter(|claim| claim.status == 200).count(), 1, "one worker gets it");
            let ends = join_all((0..8).map(|n| {
                let (path, body) = match n % 2 {
                    0 => ("complete", json!({"result": format!("result {n}")})),
                    _ => ("fail", json!({"reason": format!("reason {n}")})),
                };
                let (shop, path) = (&shop, format!("/jobs/{job}/{path}"));
                async move { shop.send("POST", &path, &body).await }
            }))
            .await;
            let good: Vec<&Answer> = ends.iter().filter(|end| end.status == 200).collect();
            assert_eq!(good.len(), 1, "{:?}", ends.iter().map(|end| &end.text).collect::<Vec<_>>());
            let seen = read(&payer, &job).await.json()["job"].clone();
            assert_eq!(good[0].json()["job"]["status"], seen["status"]);
        }
        let listed = shop.get("/jobs?limit=2").await.json();
        assert_eq!(
            (listed["jobs"].as_array().map(Vec::len), &listed["pagination"]["has_more"]),
            (Some(2), &json!(true))
        );
        // Every job either earned or was paid back.
        let credits = payer.get("/v1/tools/balance").await.json()["credits_balance"].as_str().unwrap().to_owned();
        let back: f64 = credits.parse().unwrap();
        let earned = shop.get("/balance").await.json()["balance"]["pending"].as_f64().unwrap();
        assert!((earned / 0.4 + back / 0.5 - 3.0).abs() < 1e-9, "{earned} earned, {back} paid back");
    });
}

/// The claim is stored but its answer is lost. The retry must not see it as another worker's claim: then nobody could
/// work on the job for five minutes.
#[test]
fn a_retried_claim_does_not_conflict_with_itself() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let stack = stack_with(|options| options.with("AWS_ENDPOINT_URL", &proxy.url)).await;
        let shop = Shop::open(&stack, "retried").await;
        let payer = Payer::with(&stack, 1_000_000).await;
        let job = buy(&shop, &payer, "words").await;
        eventually("the job to be handed over", || async {
            let id = RequestId::of_soul_job(&job).expect("a job's id");
            store::load_latest(&stack.app.db, id).await.unwrap()?.handed_until.map(drop)
        })
        .await;
        let mut lost = false;
        proxy.inject_afterwards(move |operation| {
            lost ^= operation == "UpdateItem";
            (operation == "UpdateItem" && lost).then(throttled)
        });
        let claimed = shop.send("POST", &format!("/jobs/{job}/claim"), &json!({})).await;
        proxy.heal();
        assert_eq!(claimed.status, 200, "{}", claimed.text);
        let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "w"})).await;
        assert_eq!(done.status, 200, "{}", done.text);
    });
}

#[test]
fn copies_of_a_payment_run_a_service_once_and_buyers_stay_separate() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "popular").await;
        let buyers = join_all((0..3).map(|_| Payer::new(&stack))).await;
        let path = shop.execute_path();
        let mut jobs = std::collections::BTreeSet::new();
        for payer in &buyers {
            let unpaid = payer.client.post(&path, &[], &text("same text")).await;
            let payment = payer.pay(&unpaid);
            let copies = join_all((0..5).map(|_| {
                let (client, payment, path) = (payer.client.clone(), payment.clone(), path.clone());
                async move { client.post(&path, &[("payment-signature", &payment)], &text("same text")).await }
            }))
            .await;
            let ids: std::collections::BTreeSet<String> = copies
                .iter()
                .map(|copy| copy.json()["soul_job_id"].as_str().unwrap_or_else(|| panic!("{}", copy.text)).to_owned())
                .collect();
            assert_eq!(ids.len(), 1);
            jobs.extend(ids);
        }
        assert_eq!(jobs.len(), buyers.len());
        for payer in &buyers {
            assert_eq!(payer.balance(&stack).await, 500_000, "each paid once");
        }
        // Paid from credits, with a token.
        let payer = &buyers[0];
        payer.give_credits(&stack, 700_000).await;
        let token = payer.token(&stack).await;
        let paid = payer.client.post(&path, &[("authorization", &token)], &text("by token")).await;
        assert_eq!(paid.status, 202, "{}", paid.text);
        let short = payer.client.post(&path, &[("authorization", &token)], &text("again")).await;
        assert_eq!(short.error(), (402, "insufficient_credits".to_owned()), "{}", short.text);
    });
}

#[test]
fn a_result_that_violates_its_schema_is_refused() {
    run(async {
        let stack = stack().await;
        let promise = json!({
            "executor": "worker",
            "output_schema": {"type": "object", "required": ["words"], "properties": {"words": {"type": "integer"}}},
        });
        let shop = Shop::with(&stack, "promising", promise).await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        for (result, place) in [("not json", "result"), ("{}", "words"), ("{\"words\": \"two\"}", "words")] {
            let refused = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": result})).await;
            assert_eq!(refused.error(), (400, "invalid_output".to_owned()), "{result}");
            assert_eq!(refused.json()["details"][0]["path"], place, "{}", refused.text);
        }
        let kept = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "{\"words\": 2}"})).await;
        assert_eq!(kept.status, 200, "{}", kept.text);
    });
}

/// Owners can set caps and freezes for souls: a soul is a payee, named by its slug.
#[test]
fn caps_and_freezes_apply_to_souls_as_payees() {
    run(async {
        let stack = stack().await;
        let (shop, other) = (Shop::open(&stack, "capped-soul").await, Shop::open(&stack, "frozen-soul").await);
        let payer = Payer::with(&stack, 5_000_000).await;
        let budgets = "/v1/agents/me/budgets";
        let nobody = payer.change("PUT", budgets, &json!({"payees": {"no-such-soul": 1, "capped-soul": 1}})).await;
        assert_eq!(nobody.error(), (400, "invalid_request".to_owned()));
        assert_eq!(nobody.json()["details"][0]["path"], "payees.no-such-soul", "{}", nobody.text);
        assert_eq!(payer.change("PUT", budgets, &json!({"payees": {"capped-soul": 0.6}})).await.status, 200);
        let freezes = "/v1/agents/me/freezes";
        let frozen = payer.change("POST", freezes, &json!({"what": "payee", "id": "no-such-soul"})).await;
        assert_eq!(frozen.error(), (400, "invalid_request".to_owned()), "{}", frozen.text);
        let frozen = payer.change("POST", freezes, &json!({"what": "payee", "id": "frozen-soul"})).await;
        assert_eq!(frozen.status, 200, "{}", frozen.text);

        buy(&shop, &payer, "the first is within the cap").await;
        for (shop, error) in [(&shop, (403, "budget_exceeded")), (&other, (403, "frozen_by_owner"))] {
            let unpaid = payer.client.post(&shop.execute_path(), &[], &text("the next")).await;
            let payment = payer.pay(&unpaid);
            let headers = [("payment-signature", payment.as_str())];
            let paid = payer.client.post(&shop.execute_path(), &headers, &text("the next")).await;
            assert_eq!(paid.error(), (error.0, error.1.to_owned()), "{}", paid.text);
        }
        assert_eq!(payer.balance(&stack).await, 4_500_000);
    });
}

/// What waits for a seller's worker when its buyer's owner stops it is never done: the worker cannot claim it, and the
/// buyer is paid back once. What a worker has claimed goes on.
#[test]
fn a_stopped_job_is_paid_back_instead_of_claimed() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "stopped-soul").await;
        let path = shop.execute_path();
        let freezes = "/v1/agents/me/freezes";
        let bought = async || {
            let payer = Payer::with(&stack, 0).await;
            payer.give_credits(&stack, 500_000).await;
            let (id, token) = payer.capped_token(&stack, TokenCaps::default()).await;
            let paid = payer.client.post(&path, &[("authorization", &token)], &text("words")).await;
            assert_eq!(paid.status, 202, "{}", paid.text);
            let job = paid.json()["soul_job_id"].as_str().expect("a job").to_owned();
            eventually("the job to be handed over", || async {
                let id = RequestId::of_soul_job(&job).expect("a job's id");
                store::load_latest(&stack.app.db, id).await.unwrap()?.handed_until.map(drop)
            })
            .await;
            (payer, id.to_string(), job)
        };
        let claim = async |job: &str| shop.send("POST", &format!("/jobs/{job}/claim"), &json!({})).await;
        let complete =
            async |job: &str| shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "w"})).await;
        let is_paid_back = async |payer: &Payer, job: &str| {
            let seen = read(payer, job).await.json()["job"].clone();
            assert_eq!(
                (&seen["status"], &seen["error"]["reason"], &seen["credited_usdc"]),
                (&json!("failed"), &json!("frozen_by_owner"), &json!("0.500000")),
                "{seen}"
            );
            assert_eq!(complete(job).await.error(), (409, "invalid_state".to_owned()));
            assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 500_000, "paid back once");
        };

        for what in ["agent", "payee", "tool", "token", "revoked"] {
            let (payer, token, job) = bought().await;
            let stopped = match what {
                "revoked" => payer.change("DELETE", &format!("/v1/agents/me/access-tokens/{token}"), &json!({})).await,
                "agent" => payer.change("POST", freezes, &json!({"what": "agent"})).await,
                _ => {
                    let id = match what {
                        "payee" => "stopped-soul",
                        "tool" => "soul",
                        _ => token.as_str(),
                    };
                    payer.change("POST", freezes, &json!({"what": what, "id": id})).await
                }
            };
            assert_eq!(stopped.status, 200, "{what}: {}", stopped.text);
            let claims = join_all((0..4).map(|_| claim(&job))).await;
            assert!(
                claims.iter().all(|claim| claim.error() == (409, "invalid_state".to_owned())),
                "{what}: {:?}",
                claims.iter().map(|claim| &claim.text).collect::<Vec<_>>()
            );
            assert!(claims.iter().any(|claim| claim.text.contains("refunded")), "{what}: the seller is told why");
            is_paid_back(&payer, &job).await;
        }
        assert_eq!(shop.get("/balance").await.json()["balance"]["pending"], 0, "nothing was earned");

        // Of a freeze and a claim at once, the first counts.
        let mut earned = 0;
        for _ in 0..4 {
            let (payer, _, job) = bought().await;
            let freeze = json!({"what": "agent"});
            let (frozen, claimed) = tokio::join!(payer.change("POST", freezes, &freeze), claim(&job));
            assert_eq!(frozen.status, 200, "{}", frozen.text);
            match claimed.status {
                200 => {
                    let done = complete(&job).await;
                    assert_eq!(done.status, 200, "{}", done.text);
                    earned += 1;
                }
                _ => is_paid_back(&payer, &job).await,
            }
        }
        let (payer, _, job) = bought().await;
        assert_eq!(claim(&job).await.status, 200);
        assert_eq!(payer.change("POST", freezes, &json!({"what": "agent"})).await.status, 200);
        assert_eq!(claim(&job).await.error(), (409, "already_claimed".to_owned()), "another worker has it");
        let done = complete(&job).await;
        assert_eq!(done.status, 200, "claimed before the freeze: {}", done.text);
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 0);
        let pending = shop.get("/balance").await.json()["balance"]["pending"].as_f64().unwrap();
        assert!((pending - 0.4 * f64::from(earned + 1)).abs() < 1e-9, "{pending} after {earned} and one");
    });
}

/// A seller's test cases are run, and the results are shown with the service.
#[test]
fn test_cases_are_run_and_their_results_shown() {
    run(async {
        let stack = stack().await;
        let program = r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 16) "{\"words\":2}")
            (func (export "_start")
                (i32.store (i32.const 0) (i32.const 16))
                (i32.store (i32.const 4) (i32.const 11))
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;
        let cases = json!([
            {"name": "right", "input": {"text": "a b"}, "checks": [{"path": "/words", "equals": 2}]},
            {"name": "wrong", "input": {"text": "a"}, "checks": [{"path": "/words", "equals": 1}]},
        ]);
        let service = json!({"executor": "program", "sandbox": true, "test_cases": cases});
        let shop = Shop::with(&stack, "tested", service).await;
        let program = wat::parse_str(program).unwrap();
        let sent = shop.raw("PUT", "/services/summary/program", "application/wasm", program).await;
        assert_eq!(sent.status, 200, "{}", sent.text);
        let tried = |passed: u32| {
            let (stack, shop) = (&stack, &shop);
            async move {
                eventually("the trial", || async {
                    let profile =
                        Client::new(&stack.base_url).get(&format!("/v1/soul/{}", shop.slug), &[]).await.json();
                    let tests = profile["services"][0]["tests"].clone();
                    (tests["passed"] == passed && tests["total"] == 2).then_some(())
                })
                .await;
            }
        };
        tried(1).await;
        let own = shop.get("/services").await.json();
        let failures = own["services"][0]["test_failures"].clone();
        assert!(failures[0].as_str().is_some_and(|why| why.starts_with("wrong: check 0 /words")), "{failures}");
        // Changed test cases are run again.
        let mut better = cases.clone();
        better[1]["checks"][0]["equals"] = json!(2);
        let changed = shop.send("PUT", "/services/summary", &json!({"test_cases": better, "price_usd": 0.6})).await;
        assert_eq!(changed.json()["service"]["tests"], Value::Null, "{}", changed.text);
        tried(2).await;
    });
}

/// A worker with a webhook is notified, signed according to Standard Webhooks, and reminded until it claims the job.
#[test]
fn worker_webhooks_announce_jobs_and_are_signed() {
    run(async {
        let heard: Arc<Mutex<Vec<(HeaderMap, String)>>> = Arc::default();
        let ear = heard.clone();
        let hook = move |headers: HeaderMap, body: String| {
            let ear = ear.clone();
            async move {
                ear.lock().unwrap().push((headers, body));
                // As if the worker were not running yet.
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().route("/hook", axum::routing::post(hook));
        tokio::spawn(async move { axum::serve(listener, router).await });

        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| {
            let options = options.with("LOCAL_FETCH_ALLOW", address.to_string());
            Options { clock, ..options }
        });
        let stack = stack.await;
        let shop = Shop::open(&stack, "hooked").await;
        let url = format!("http://{address}/hook");
        let set = shop.send("PUT", "/services/summary", &json!({"webhook_url": url})).await.json();
        let secret = set["webhook_secret"].as_str().unwrap_or_else(|| panic!("{set}")).to_owned();
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        let told = |times: usize| {
            let heard = heard.clone();
            async move {
                eventually("the webhook", || async { (heard.lock().unwrap().len() >= times).then_some(()) }).await;
            }
        };
        told(1).await;
        hand.advance(Duration::from_secs(61));
        told(2).await;
        let (headers, body) = heard.lock().unwrap()[1].clone();
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("webhook-id"), job, "a repeat is known as one");
        let key = base64_any(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let signed = format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp"));
        let mac = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key), signed.as_bytes());
        assert_eq!(header("webhook-signature"), format!("v1,{}", base64_standard(mac.as_ref())));
        let event: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&event["type"], &event["data"]["id"]), (&json!("soul.job.created"), &json!(job)));
        assert!(!body.contains("\"input\""), "what the buyer sent is fetched by key");
        assert_eq!(shop.claim(&job).await.status, 200);
    });
}

/// A file too large for a request body is uploaded directly to the blob store, with exactly the announced size and
/// type.
#[test]
fn large_files_go_directly_to_the_blob_store() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "large-files").await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let path = format!("/jobs/{job}/files");
        for (body, place) in [
            (json!({"path": "../x", "size": 5, "content_type": "text/plain"}), "path"),
            (json!({"path": "x", "size": 0, "content_type": "text/plain"}), "size"),
            (json!({"path": "x", "size": 5, "content_type": "text"}), "content_type"),
            (json!({"path": "x", "size": 200_000_000, "content_type": "text/plain"}), "size"),
        ] {
            let refused = shop.send("POST", &path, &body).await;
            assert_eq!(
                (refused.status, &refused.json()["details"][0]["path"]),
                (400, &json!(place)),
                "{}",
                refused.text
            );
        }
        let content = vec![7u8; 5 * 1024 * 1024];
        let file = json!({"path": "big.bin", "size": content.len(), "content_type": "application/x-big"});
        let announced = shop.send("POST", &path, &file).await;
        assert_eq!(announced.status, 200, "{}", announced.text);
        let missing = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "x"})).await;
        assert_eq!(missing.error(), (400, "invalid_request".to_owned()), "announced, and not there");
        let key = format!("Bearer {}", shop.key);
        let missing = payer.client.get(&format!("/v1/soul/jobs/{job}/files/big.bin"), &[("authorization", &key)]).await;
        assert_eq!(missing.error(), (404, "not_found".to_owned()), "not there yet, and not expired");
        let url = announced.json()["upload_url"].as_str().unwrap().to_owned();
        let local = url.strip_prefix(&stack.base_url).expect("an address of the local blob store").to_owned();
        let put = |content_type: &'static str, bytes: Vec<u8>| {
            let (client, local) = (payer.client.clone(), local.clone());
            async move {
                client
                    .send("PUT", &local, &[("content-type", content_type), ("if-none-match", "*")], bytes)
                    .await
                    .unwrap()
                    .status
            }
        };
        assert_eq!(put("text/html", content.clone()).await, 401, "another type than was announced");
        assert_eq!(put("application/x-big", content[1..].to_vec()).await, 401, "another size");
        assert_eq!(put("application/x-big", content.clone()).await, 200);
        let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "x"})).await;
        assert_eq!(done.status, 200, "{}", done.text);
        assert_eq!(put("application/x-big", vec![8u8; content.len()]).await, 412, "what was delivered stays");
        let listed = read(&payer, &format!("{job}/files")).await.json();
        let download = listed["files"][0]["download_url"].as_str().unwrap().to_owned();
        let address = payer.address().to_string();
        let led = payer.client.get(&download, &[("x-agent-id", &address)]).await;
        assert_eq!(led.status, 307, "{}", led.text);
        let target = led.header("location").unwrap().strip_prefix(&stack.base_url).unwrap().to_owned();
        let fetched = payer.client.get(&target, &[]).await;
        assert_eq!((fetched.status, fetched.text.len()), (200, content.len()));
        assert_eq!(fetched.header("content-type"), Some("application/x-big"));
        let forged = target.replace("name=big.bin", "name=small.bin");
        assert_eq!(payer.client.get(&forged, &[]).await.status, 401);
    });
}

/// An input that is too large for the job's row reaches the seller's worker whole. One that is lost is paid back.
#[test]
fn a_large_input_reaches_the_worker_or_is_paid_back() {
    run(async {
        let stack = stack().await;
        let service = json!({"executor": "worker", "input_schema": {"type": "object"}});
        let shop = Shop::with(&stack, "large-inputs", service).await;
        let payer = Payer::new(&stack).await;
        let words = "word ".repeat(10_000);
        let job = buy(&shop, &payer, &words).await;
        let claimed = shop.claim(&job).await.json()["job"].clone();
        assert!(claimed["input"]["text"] == words.as_str());
        let shown = shop.get(&format!("/jobs/{job}")).await.json()["job"].clone();
        assert!(shown["input"] == claimed["input"]);

        let lost = buy(&shop, &payer, &words).await;
        let id = RequestId::of_soul_job(&lost).expect("an id");
        let row = store::load_latest(&stack.app.db, id).await.unwrap().expect("a job");
        let StoredInput::Blob(input) = row.input else { panic!("a blob") };
        stack.app.blobs.delete(&input.key).await.expect("a store");
        let failed = eventually("the job to fail", || async {
            let claim = shop.send("POST", &format!("/jobs/{lost}/claim"), &json!({})).await;
            assert_eq!(claim.error(), (409, "invalid_state".to_owned()), "{}", claim.text);
            let row = store::load_latest(&stack.app.db, id).await.unwrap().expect("a job");
            row.outcome.is_some().then_some(row)
        })
        .await;
        assert_eq!(failed.credited.map(|credited| credited.micro()), Some(500_000), "{failed:?}");
    });
}

/// A `HEAD` is answered with the same redirect as a `GET`, whose URL fetches the whole file.
#[test]
fn a_head_that_hands_out_a_url_counts_as_a_download() {
    run(async {
        let stack = stack().await;
        // 5 MiB, and three times as many fetched by who only names the buyer.
        let shop = Shop::with(&stack, "heads-of-files", json!({"executor": "worker", "price_usd": 0.05})).await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let content = vec![7u8; 5 << 20];
        let file = json!({"path": "big.bin", "size": content.len(), "content_type": "a/b"});
        let announced = shop.send("POST", &format!("/jobs/{job}/files"), &file).await;
        assert_eq!(announced.status, 200, "{}", announced.text);
        let url = announced.json()["upload_url"].as_str().unwrap().to_owned();
        let url = url.strip_prefix(&stack.base_url).expect("an address of the local blob store").to_owned();
        let sent = payer.client.send("PUT", &url, &[("content-type", "a/b"), ("if-none-match", "*")], content).await;
        assert_eq!(sent.unwrap().status, 200);
        assert_eq!(shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "x"})).await.status, 200);
        let (path, address) = (format!("/v1/soul/jobs/{job}/files/big.bin"), payer.address().to_string());
        let ask = async |method: &'static str| {
            let answer = payer.client.send(method, &path, &[("x-agent-id", &address)], "").await.unwrap();
            (answer.status, answer.header("location").is_some())
        };
        for _ in 0..3 {
            assert_eq!(ask("HEAD").await, (307, true));
        }
        for method in ["HEAD", "GET"] {
            assert_eq!(ask(method).await, (403, false), "{method}");
        }
    });
}

/// An attempt that lost its lease changes nothing that another attempt delivered, and leaves nothing behind.
#[test]
fn a_stale_attempt_overwrites_neither_result_nor_files() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| Options { clock, background: Background::Worker, ..options }).await;
        let shop = Shop::open(&stack, "stale-worker").await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let id = RequestId::of_soul_job(&job).unwrap();
        let engine = &stack.executor;
        let (db, blobs) = (&engine.db, &*engine.blobs);
        let take_up =
            async |holder| store::take_up(db, id, holder, hand.now()).await.unwrap().expect("a job that is free");
        let mut first = take_up("first").await;
        hand.advance(LEASE + Duration::from_secs(1));
        let mut second = take_up("second").await;
        let bring = async |by: &Job, content: &str| {
            let row = FileRow::of("a.txt", "text/plain", content.len() as u64, hand.now());
            let held = store::held(db, by).unwrap();
            files::keep(db, blobs, by.files(), held, row, Some(content.as_bytes().to_vec())).await.unwrap()
        };
        let large = |by: &str| Output::new(json!({"result": by.repeat(10_000)}), Source::upstream("seller", None));
        assert_eq!(bring(&second, "second").await, Ok(()));
        assert_eq!(bring(&first, "first, too late").await, Err(NotKept::Lost));
        engine.complete(&mut second, large("second")).await.unwrap();
        assert!(matches!(engine.complete(&mut first, large("first")).await, Err(MoveError::LostLease)));
        assert_eq!(bring(&second, "after the end").await, Err(NotKept::Lost));

        let address = payer.address().to_string();
        let shown = read(&payer, &format!("{job}?full=true")).await.json();
        assert_eq!(shown["job"]["result"], json!("second".repeat(10_000)));
        let path = format!("/v1/soul/jobs/{job}/files/a.txt");
        assert_eq!(payer.client.get(&path, &[("x-agent-id", &address)]).await.text, "second");
        let kept = |folder: String| {
            std::fs::read_dir(stack.outbox.parent().unwrap().join("blobs").join(folder)).unwrap().count()
        };
        assert_eq!((kept("results".to_owned()), kept(format!("files/{id}"))), (1, 1), "what lost is deleted");
    });
}

/// A job's price limits its files: many concurrent ones, one announced again and again, and one fetched again and
/// again.
#[test]
fn file_sizes_are_limited_by_the_jobs_price() {
    run(async {
        let stack = stack().await;
        // The job may hold 50 MiB, and receive three times as much in total.
        let shop = Shop::open(&stack, "full-of-files").await;
        let payer = Payer::with(&stack, 2_000_000).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let announce = async |path: &str, mib: u64| {
            let file = json!({"path": path, "size": mib << 20, "content_type": "a/b"});
            let answer = shop.send("POST", &format!("/jobs/{job}/files"), &file).await;
            (answer.status, answer.json()["details"][0]["path"].as_str().map(str::to_owned))
        };
        let (good, too_large) = ((200, None), (400, Some("size".to_owned())));
        for (path, mib, wanted) in [
            ("a", 51, &too_large),
            ("a", 40, &good),
            ("b", 11, &too_large),
            ("b", 10, &good),
            ("a", 41, &too_large),
            ("a", 40, &good),
            ("a", 20, &good),
            ("b", 31, &too_large),
            ("b", 30, &good),
        ] {
            assert_eq!(&announce(path, mib).await, wanted, "{path} {mib}");
        }

        let job = buy(&shop, &payer, "many").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let id = RequestId::of_soul_job(&job).unwrap();
        let put = async |path: String| {
            shop.raw("PUT", &format!("/jobs/{job}/files/{path}"), "text/plain", path.into_bytes()).await
        };
        let kept = async |all: Vec<Answer>| all.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(kept(join_all((0..110).map(|number| put(number.to_string()))).await).await, 100);
        let before = files::of_job(&stack.app.db, id).await.unwrap();
        let blob = before[0].blob(id);
        assert!(stack.app.blobs.get(&blob).await.unwrap().is_some());
        let mut again = Vec::new();
        for _ in 0..101 {
            again.push(put(before[0].path.clone()).await);
        }
        assert_eq!(kept(again).await, 100);
        assert_eq!(stack.app.blobs.get(&blob).await.unwrap(), None, "what was replaced is deleted");
        let full = put("one-more".to_owned()).await;
        assert_eq!((full.status, &full.json()["details"][0]["path"]), (400, &json!("path")), "{}", full.text);

        // The job may hold 2 MiB, and send ten times as much to each of: the buyer, the seller, and callers that only
        // name an address.
        let shop = Shop::with(&stack, "cheap-files", json!({"executor": "worker", "price_usd": 0.01})).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let mib = vec![b'x'; 1 << 20];
        let put = shop.raw("PUT", &format!("/jobs/{job}/files/x"), "text/plain", mib.clone()).await;
        assert_eq!(put.status, 200, "{}", put.text);
        assert_eq!(shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "x"})).await.status, 200);
        let address = payer.address().to_string();
        let path = format!("/v1/soul/jobs/{job}/files/x");
        let fetch = async |range: &'static str| {
            payer.client.get(&path, &[("x-agent-id", &address), ("range", range)]).await.status
        };
        let fetched = join_all((0..22).map(|_| fetch("bytes=0-"))).await;
        assert_eq!(fetched.iter().filter(|status| **status == 206).count(), 6);
        assert_eq!((fetch("bytes=0-0").await, fetch("bytes=9999999-").await), (403, 416));
        let key = format!("Bearer {}", shop.key);
        let by_seller = async || shop.client.get(&path, &[("authorization", &key)]).await.status;
        let fetched = join_all((0..22).map(|_| by_seller())).await;
        assert_eq!(fetched.iter().filter(|status| **status == 200).count(), 4);
        let fetched = join_all((0..22).map(|_| payer.get(&path))).await;
        assert_eq!(fetched.iter().filter(|answer| answer.status == 200).count(), 10, "nobody used up the buyer's");
    });
}

/// A worker may announce a file any number of times and still deliver. The bytes it sends are limited, and the URL of a
/// replaced announcement accepts nothing.
#[test]
fn the_url_of_a_replaced_file_announcement_is_void() {
    run(async {
        let stack = stack().await;
        let shop = Shop::with(&stack, "announcer", json!({"executor": "worker", "price_usd": 0.01})).await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let mib = vec![b'x'; 1 << 20];
        let announce = async || {
            let file = json!({"path": "same", "size": 1 << 20, "content_type": "a/b"});
            shop.send("POST", &format!("/jobs/{job}/files"), &file).await
        };
        let send = async |announced: &Answer| {
            let url = announced.json()["upload_url"].as_str().unwrap().to_owned();
            let path = url.strip_prefix(&stack.base_url).expect("an address of the local blob store").to_owned();
            let headers = [("content-type", "a/b"), ("if-none-match", "*")];
            payer.client.send("PUT", &path, &headers, mib.clone()).await.unwrap().status
        };
        let mut all = Vec::new();
        for _ in 0..210 {
            all.push(announce().await);
        }
        assert!(all.iter().all(|answer| answer.status == 200), "{}", all.last().unwrap().text);
        assert_eq!((send(&all[0]).await, send(&all[208]).await), (412, 412), "a URL that was replaced");
        let small = shop.raw("PUT", &format!("/jobs/{job}/files/same"), "a/b", b"small".to_vec()).await;
        assert_eq!(small.status, 200, "{}", small.text);

        // 6 MiB can be sent in total.
        let mut sent = 0;
        let refused = loop {
            let announced = announce().await;
            if announced.status != 200 {
                break announced;
            }
            assert_eq!(send(&announced).await, 200);
            sent += 1;
            assert!(sent < 10);
        };
        assert_eq!((sent, &refused.json()["details"][0]["path"]), (5, &json!("size")), "{}", refused.text);
        let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "x"})).await;
        assert_eq!(done.status, 200, "{}", done.text);
        assert_eq!(read(&payer, &format!("{job}/files/same")).await.text.len(), mib.len());
    });
}

/// The seller's list reports no further pages of jobs whose retention has ended.
#[test]
fn job_lists_leave_out_expired_jobs() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| Options { clock, ..options }).await;
        let shop = Shop::open(&stack, "long-ago").await;
        let payer = Payer::with(&stack, 1_000_000).await;
        for words in ["one", "two"] {
            let job = buy(&shop, &payer, words).await;
            assert_eq!(shop.claim(&job).await.status, 200);
            let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "w"})).await;
            assert_eq!(done.status, 200, "{}", done.text);
        }
        let listed = async || {
            let listed = shop.get("/jobs?limit=1").await.json();
            (listed["jobs"].as_array().map(Vec::len), listed["pagination"]["has_more"].clone())
        };
        assert_eq!(listed().await, (Some(1), json!(true)));
        hand.advance(job::RETENTION);
        assert_eq!(listed().await, (Some(0), json!(false)));
    });
}

/// A vote of a wallet that later turns out to be the seller's own is removed, as one given afterwards would be refused.
#[test]
fn ratings_by_the_sellers_own_wallet_do_not_count() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "self-praise").await;
        let [own, buyer] = [Payer::with(&stack, 2_000_000).await, Payer::new(&stack).await];
        let mut later = String::new();
        for (payer, stars) in [(&own, 5), (&own, 4), (&buyer, 2), (&own, 0)] {
            let job = buy(&shop, payer, "x").await;
            assert_eq!(shop.claim(&job).await.status, 200);
            let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "w"})).await;
            assert_eq!(done.status, 200, "{}", done.text);
            match stars {
                0 => later = job,
                stars => assert_eq!(rate(payer, &job, &json!({"rating": stars})).await.status, 200),
            }
        }
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let slug = shop.slug.parse().unwrap();
        let votes = async || {
            let soul = soul::load_latest(db, &shop.slug).await.unwrap().unwrap();
            let standing = soul.standing;
            (soul.rating_sum, soul.rating_count, standing.vote_stars, standing.vote_weight)
        };
        // A fee of 0.10 gives a vote its full weight.
        assert_eq!(votes().await, (11, 3, 550_000, 150_000));
        assert!(wallet::link(db, &slug, own.address(), true, now).await.unwrap());
        assert_eq!(votes().await, (2, 1, 100_000, 50_000));
        assert_eq!(rate(&own, &later, &json!({"rating": 5})).await.error(), (403, "forbidden".to_owned()));
        assert_eq!(votes().await, (2, 1, 100_000, 50_000));
    });
}

/// A seller may link and pay anybody's address. So a payout to a critic removes no vote, also none that it has yet to give
/// for what it bought before; only for what it buys afterwards it may not vote.
#[test]
fn a_payout_to_a_critic_erases_no_vote() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "pays-its-critic").await;
        let critic = Payer::with(&stack, 2_000_000).await;
        let done = async || {
            let job = buy(&shop, &critic, "x").await;
            assert_eq!(shop.claim(&job).await.status, 200);
            let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "w"})).await;
            assert_eq!(done.status, 200, "{}", done.text);
            job
        };
        let (rated, unrated) = (done().await, done().await);
        assert_eq!(rate(&critic, &rated, &json!({"rating": 1})).await.status, 200);
        let wallet = json!({"wallet_address": critic.address().to_string()});
        assert_eq!(shop.send("PUT", "/link-wallet", &wallet).await.json()["verified"], false);
        wallet::is_paid_at(&stack.app.db, &shop.slug.parse().unwrap(), critic.address(), stack.app.clock.now())
            .await
            .unwrap();
        let votes = async || {
            let soul = soul::load_latest(&stack.app.db, &shop.slug).await.unwrap().unwrap();
            (soul.rating_sum, soul.rating_count)
        };
        assert_eq!(votes().await, (1, 1));
        assert_eq!(rate(&critic, &unrated, &json!({"rating": 1})).await.status, 200);
        let later = done().await;
        assert_eq!(rate(&critic, &later, &json!({"rating": 5})).await.error(), (403, "forbidden".to_owned()));
        assert_eq!(votes().await, (2, 2));
        // Once the wallet proves to be the seller's own, all its votes go.
        let proof = critic.proof("write");
        let link = json!({"wallet_address": wallet["wallet_address"], "proof": proof});
        assert_eq!(shop.send("PUT", "/link-wallet", &link).await.json()["verified"], true);
        assert_eq!(votes().await, (0, 0));
    });
}

/// A file keeps its name when it is sent as a body, announced, listed, linked and fetched.
#[test]
fn file_names_survive_url_encoding() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "odd-names").await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let names = [
            "100%.txt",
            "%41.txt",
            "a%2Fb",
            "a%2Gb#c",
            "#1/a b/täglich (1).csv",
            "a+b&c=d;e@f:g!$'*,~",
            "日本/é",
            "x.",
            "%",
        ];
        for name in names {
            let encoded: Vec<String> = name.split('/').map(percent_encoded).collect();
            let put =
                shop.raw("PUT", &format!("/jobs/{job}/files/{}", encoded.join("/")), "text/plain", name.into()).await;
            assert_eq!((put.status, &put.json()["path"]), (200, &json!(name)), "{}", put.text);
        }
        let file = json!({"path": "past us/%41#.bin", "size": 3, "content_type": "application/x-three"});
        let announced = shop.send("POST", &format!("/jobs/{job}/files"), &file).await;
        let url = announced.json()["upload_url"].as_str().unwrap().strip_prefix(&stack.base_url).unwrap().to_owned();
        let headers = [("content-type", "application/x-three"), ("if-none-match", "*")];
        assert_eq!(payer.client.send("PUT", &url, &headers, "abc").await.unwrap().status, 200);
        for wrong in ["a%3Fb", "a?b", "a%252541", "a%5Cb", "..%2Fx", "a%0Ab", "a%20%E2%80%AE"] {
            let put = shop.raw("PUT", &format!("/jobs/{job}/files/{wrong}"), "text/plain", b"x".to_vec()).await;
            // The gateway cuts a path off at an escaped question mark. The function sees only the part before it.
            let seen = (put.status, put.json()["path"].clone());
            let cut_off = wrong == "a%3Fb" && seen == (200, json!("a"));
            assert!([400, 404].contains(&put.status) || cut_off, "{wrong}: {}", put.text);
        }
        assert_eq!(shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "x"})).await.status, 200);
        let address = payer.address().to_string();
        let listed = read(&payer, &format!("{job}/files")).await.json();
        let listed = listed["files"].as_array().unwrap();
        for name in names.into_iter().chain(["past us/%41#.bin"]) {
            let row = listed.iter().find(|row| row["path"] == name).unwrap_or_else(|| panic!("{name} is not listed"));
            let fetched = payer.client.get(row["download_url"].as_str().unwrap(), &[("x-agent-id", &address)]).await;
            let content = if name.ends_with(".bin") { "abc" } else { name };
            assert_eq!((fetched.status, fetched.text.as_str()), (200, content), "{name}");
        }
    });
}

/// A settled payment is public on chain. A copy of it buys nothing and shows nothing.
#[test]
fn a_payment_copied_from_the_chain_opens_nothing() {
    run(async {
        let (stack, hand) = timed().await;
        let shop = Shop::open(&stack, "copied").await;
        let payer = Payer::with(&stack, 9_000_000).await;
        let path = shop.purchase_path();
        // Without a quote, as the oldest clients pay. The chain shows exactly this.
        let authorization = payer.authorize(2_000_000);
        let copied = header(&bare(&authorization));
        let bought = payer.client.post(&path, &[("x-payment", &copied)], &json!({})).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let lost = payer.client.post(&path, &[("x-payment", &copied)], &json!({})).await;
        assert_eq!(lost.status, 200, "a client that lost its answer asks again, for a moment");
        hand.advance(Duration::from_secs(121));
        let address = payer.address().to_string();
        for headers in [vec![("x-payment", copied.as_str())], vec![("x-payment", &copied), ("x-agent-id", &address)]] {
            let stranger = payer.client.post(&path, &headers, &json!({})).await;
            assert_eq!(stranger.error(), (409, "payment_already_used".to_owned()), "{}", stranger.text);
        }
        let token = payer.token(&stack).await;
        let buyer = payer.client.post(&path, &[("authorization", &token)], &json!({})).await;
        assert_eq!((buyer.status, &buyer.json()["purchase"]["price"]), (200, &json!(2)), "{}", buyer.text);
        // A purchase stays readable, at the price paid, whatever is sold now.
        assert_eq!(shop.send("PUT", "/soul-price", &json!({"soul_price": null})).await.status, 200);
        let buyer = payer.client.post(&path, &[("authorization", &token)], &json!({})).await;
        assert_eq!((buyer.status, &buyer.json()["purchase"]["price"]), (200, &json!(2)), "{}", buyer.text);
    });
}

/// A bare address may rate. It could be the seller, using the buyer's address, so this rating counts in no sum. The
/// buyer's proven rating replaces it and counts in full.
#[test]
fn only_proven_ratings_count() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "rated-twice").await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let empty = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": " "})).await;
        assert_eq!(empty.error(), (400, "invalid_request".to_owned()), "nothing is no delivery");
        assert_eq!(shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "y"})).await.status, 200);
        let counted = async || {
            let soul = soul::load_latest(&stack.app.db, &shop.slug).await.unwrap().unwrap();
            let all = payer.client.get("/v1/soul/stats", &[]).await.json();
            let standing = (soul.standing.vote_stars, soul.standing.vote_weight);
            (soul.rating_sum, soul.rating_count, standing, all["rating_count"].clone())
        };
        let seen = async || {
            let job = read(&payer, &job).await.json()["job"].clone();
            (job["rating"].clone(), job["rating_proven"].clone(), job.get("review").cloned())
        };
        let unproven = rate_unproven(&payer, &job, &json!({"rating": 5, "review": "splendid"})).await;
        assert_eq!((unproven.status, &unproven.json()["rating"]), (200, &json!(5)), "{}", unproven.text);
        assert_eq!(counted().await, (0, 0, (0, 0), json!(0)));
        assert_eq!(seen().await, (json!(5), json!(false), Some(json!("splendid"))));
        assert_eq!(rate_unproven(&payer, &job, &json!({"rating": 4})).await.error().1, "already_rated");
        assert_eq!(rate(&payer, &job, &json!({"rating": 2})).await.status, 200);
        for again in
            [rate_unproven(&payer, &job, &json!({"rating": 5})).await, rate(&payer, &job, &json!({"rating": 1})).await]
        {
            assert_eq!(again.error(), (400, "already_rated".to_owned()), "{}", again.text);
        }
        // A fee of 0.10 gives a vote its full weight.
        assert_eq!(counted().await, (2, 1, (100_000, 50_000), json!(1)));
        assert_eq!(seen().await, (json!(2), json!(true), None));
    });
}

/// Blobs and rows expire separately, whenever their store deletes them. A missing result or file is reported as gone,
/// and a job past its retention is unavailable even while its row still exists.
#[test]
fn expired_results_and_files_are_reported_as_gone() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "forgotten").await;
        let payer = Payer::new(&stack).await;
        let id = buy(&shop, &payer, "x").await;
        let request_id = RequestId::of_soul_job(&id).unwrap();
        assert_eq!(shop.claim(&id).await.status, 200);
        let put = shop.raw("PUT", &format!("/jobs/{id}/files/a.txt"), "text/plain", b"hello".to_vec()).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let long = json!({"result": "long ".repeat(4_000)});
        assert_eq!(shop.send("POST", &format!("/jobs/{id}/complete"), &long).await.status, 200);
        payer.finished(&request_id.to_string()).await;

        let (db, blobs) = (&stack.app.db, &stack.app.blobs);
        let kept = store::load_latest(db, request_id).await.unwrap().and_then(|job| job.result).expect("a result");
        let Place::Blob(result) = kept.place else { panic!("it lies in the row") };
        blobs.delete(&result).await.unwrap();
        let file = files::load(db, request_id, "a.txt").await.unwrap().expect("a file");
        blobs.delete(&file.blob(request_id)).await.unwrap();
        let gone = (410, "result_expired".to_owned());
        assert_eq!(payer.get(&format!("/v1/requests/{request_id}")).await.error(), gone);
        assert_eq!(read(&payer, &format!("{id}/files/a.txt")).await.error(), gone);
        for seen in [read(&payer, &id).await, shop.get(&format!("/jobs/{id}")).await] {
            let job = seen.json()["job"].clone();
            assert_eq!((seen.status, &job["status"], &job["result_expired"]), (200, &json!("completed"), &json!(true)));
            assert!(job.get("result").is_none(), "{job}");
        }
        let listed = shop.get("/jobs").await;
        assert_eq!(
            (listed.status, &listed.json()["jobs"][0]["result_preview"]),
            (200, &Value::Null),
            "{}",
            listed.text
        );
        assert_eq!(shop.get("/statement").await.status, 200);
        let explained = payer.get(&format!("/v1/receipts/{request_id}/explain")).await;
        assert_eq!((explained.status, &explained.json()["job"]["result_digest"]), (200, &Value::Null));

        let past = stack.app.clock.now().secs() - 1;
        let write = Write::update(&db.tables.jobs, job::key(request_id), "SET #expires = :past").bind("past", past);
        db.write(write.unwrap()).await.unwrap();
        let unknown = (404, "not_found".to_owned());
        for path in [id.clone(), format!("{id}/files"), format!("{id}/files/a.txt")] {
            assert_eq!(read(&payer, &path).await.error(), unknown, "{path}");
        }
        assert_eq!(rate(&payer, &id, &json!({"rating": 5})).await.error(), unknown);
        assert_eq!(payer.get(&format!("/v1/requests/{request_id}")).await.error(), unknown);
        assert_eq!(shop.get(&format!("/jobs/{id}")).await.error(), unknown);
        for (path, body) in [("claim", json!({})), ("progress", json!({})), ("complete", json!({"result": "x"}))] {
            let refused = shop.send("POST", &format!("/jobs/{id}/{path}"), &body).await;
            assert_eq!(refused.error(), unknown, "{path}");
        }
        assert_eq!(shop.get("/jobs").await.json()["jobs"], json!([]));
        assert_eq!(shop.get("/jobs?status=completed").await.json()["jobs"], json!([]));
    });
}

/// The same payment gets the stored answer again, until that has expired.
#[test]
fn an_expired_answer_is_not_replayed() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let (payment, body) = (header(&bare(&payer.authorize(5_000))), json!({"vin": VIN}));
        let headers = [("x-payment", payment.as_str())];
        let first = payer.client.post(VIN_PATH, &headers, &body).await;
        let again = payer.client.post(VIN_PATH, &headers, &body).await;
        assert_eq!((first.status, again.json()), (200, first.json()));
        let request_id: RequestId = first.json()["data"]["request_id"].as_str().unwrap().parse().unwrap();
        let past = stack.app.clock.now().secs() - 1;
        let db = &stack.app.db;
        let write = Write::update(&db.tables.jobs, job::key(request_id), "SET #expires = :past").bind("past", past);
        db.write(write.unwrap()).await.unwrap();
        let late = payer.client.post(VIN_PATH, &headers, &body).await;
        assert_eq!(late.error(), (410, "result_expired".to_owned()), "and nothing is charged again");
        assert_eq!(payer.balance(&stack).await, 995_000);
    });
}
