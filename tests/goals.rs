//! Goals: planned, spent within a purse, and paid back to the last micro-USDC.

use base::ids::RequestId;
use base::money::Usdc;
use gate::jobs::store;
use ledger::purse::{self, FromPurse, Purse, PurseState};
use ledger::receipt::Receipt;
use local::stack::Background;
use local::{Options, Stack};
use platform::auth::token::TokenCaps;
use platform::store::{Write, WriteError, jobs};
use serde_json::{Value, json};
use tools_email::domain;

use crate::approvals::{decide, link, put_rules};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Answer, Payer, books, equipped_stack, eventually, run, stack, stack_with};

const PATH: &str = "/v1/compute";

async fn buyer(stack: &Stack) -> (Payer, String) {
    let payer = Payer::with(stack, 0).await;
    payer.give_credits(stack, 20_000_000).await;
    let token = payer.token(stack).await;
    (payer, token)
}

/// Asks for the price, and pays it from the credits.
async fn ask(payer: &Payer, token: &str, body: &Value) -> Answer {
    let unpaid = payer.client.post(PATH, &[("authorization", token)], body).await;
    if unpaid.status != 402 {
        return unpaid;
    }
    let quote = unpaid.json()["context"]["quote_id"].as_str().expect("a quote").to_owned();
    payer.client.post(PATH, &[("authorization", token), ("x-quote-id", &quote)], body).await
}

/// A goal that was bought.
struct Bought<'a> {
    payer: &'a Payer,
    token: &'a str,
    id: String,
    request_id: RequestId,
}

impl Bought<'_> {
    async fn get(&self, path: &str) -> Value {
        let path = format!("{PATH}/{}{path}", self.id);
        let answer = self.payer.client.get(&path, &[("authorization", self.token)]).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["data"].clone()
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        let path = format!("{PATH}/{}{path}", self.id);
        self.payer.client.post(&path, &[("authorization", self.token)], body).await
    }

    async fn ended(&self) -> Value {
        self.payer.finished(&self.request_id.to_string()).await
    }

    /// Like [`Bought::ended`], by its owner's proof.
    async fn ended_for(&self, payer: &Payer) -> Value {
        eventually("the end of a goal", || async {
            let job = payer.get(&format!("/v1/requests/{}", self.request_id)).await.json();
            (job["status"] == "completed").then_some(job)
        })
        .await
    }

    /// Waits until a task waits for its owner.
    async fn waiting(&self) -> Value {
        eventually("a task that waits", || async {
            let tasks = self.get("/tasks?status=waiting").await;
            let tasks = tasks.as_array().expect("tasks");
            tasks.iter().find(|task| task["task_type"] == "human_approval").cloned()
        })
        .await
    }
}

async fn bought<'a>(payer: &'a Payer, token: &'a str, body: &Value) -> Bought<'a> {
    let accepted = ask(payer, token, body).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    let accepted = accepted.json();
    assert_eq!((&accepted["status"], &accepted["tool"]), (&json!("active"), &json!("compute")), "{accepted}");
    let id = accepted["goal_id"].as_str().expect("a goal").to_owned();
    let request_id: RequestId = accepted["request_id"].as_str().expect("an id").parse().expect("an id");
    assert_eq!(id, request_id.goal());
    Bought { payer, token, id, request_id }
}

fn usdc(value: &Value) -> Usdc {
    Usdc::parse(value.as_str().expect("an amount")).expect("an amount")
}

async fn is_closed(stack: &Stack, goal: &Bought<'_>, spent: Usdc) {
    let purse = purse::load(&stack.app.db, goal.payer.agent(), goal.request_id).await.unwrap().expect("a purse");
    assert_eq!((purse.state, purse.in_flight, purse.spent), (PurseState::Closed, Usdc::ZERO, spent), "{purse:?}");
    books::audit(&stack.app.db, goal.payer.agent()).await;
}

#[test]
fn a_goal_calls_tools_and_gives_the_rest_back_with_its_fee() {
    run(async {
        let stack = stack().await;
        let (payer, token) = buyer(&stack).await;
        let body =
            json!({"objective": "Decode the VIN 1HGCM82633A004352. Then verify ada@example.com.", "budget_usdc": 2});
        let unpaid = payer.client.post(PATH, &[("authorization", &token)], &body).await;
        let context = unpaid.json()["context"].clone();
        assert_eq!(
            (&context["total_budget"], &context["total"]),
            (&json!("2.000000"), &json!("2.400000")),
            "{context}"
        );
        assert_eq!((&context["estimated_tasks"], &context["planner"]), (&json!(2), &json!("rules")), "{context}");

        let goal = bought(&payer, &token, &body).await;
        let job = goal.ended().await;
        let result = &job["result"];
        assert_eq!((&job["status"], &result["status"]), (&json!("completed"), &json!("completed")), "{job}");
        let tasks = goal.get("/tasks").await;
        let tasks = tasks.as_array().expect("tasks");
        assert!(tasks.iter().all(|task| task["status"] == "completed"), "{tasks:?}");
        let tools: Vec<&str> = tasks.iter().filter_map(|task| task["tool"].as_str()).collect();
        assert_eq!(tools, ["vin_decode", "verify_email"]);

        // What was spent is kept with its fee; the rest came back.
        let spent = usdc(&result["spent_usdc"]);
        let mut sum = Usdc::ZERO;
        for task in tasks {
            let call: RequestId = task["request_id"].as_str().expect("a job").parse().expect("an id");
            let call = store::load_latest(&stack.app.db, call).await.unwrap().expect("a job");
            sum = sum.checked_add(call.kept_if_completed()).unwrap();
            assert_eq!(task["actual_usdc"], json!(call.kept_if_completed().to_number()), "{task}");
        }
        assert_eq!(sum, spent, "{job}");
        let fee = usdc(&result["fee_usdc"]);
        assert_eq!(fee.micro(), spent.micro().div_ceil(5), "{job}");
        let kept = spent.checked_add(fee).unwrap();
        assert_eq!(usdc(&job["credited_usdc"]).checked_add(kept).unwrap(), Usdc::from_micro(2_400_000), "{job}");
        is_closed(&stack, &goal, spent).await;
        let view = goal.get("").await;
        assert_eq!((&view["status"], &view["end_reason"]), (&json!("completed"), &json!("completed")), "{view}");
        let outputs = goal.get("/outputs").await;
        let key = outputs["outputs"][0]["key"].as_str().expect("a key");
        let output = goal.get(&format!("/outputs/{key}")).await;
        assert!(
            output["content"].to_string().contains("HONDA") || output["content"].to_string().contains("Honda"),
            "{output}"
        );
        // Nobody else sees it.
        let (other, others) = buyer(&stack).await;
        let path = format!("{PATH}/{}", goal.id);
        let hidden = other.client.get(&path, &[("authorization", &others)]).await;
        assert_eq!(hidden.error(), (404, "goal_not_found".to_owned()));
    });
}

/// What a call returned goes where the objective says, and nowhere else.
#[test]
fn a_result_is_mailed_to_whom_the_objective_names() {
    run(async {
        let stack = stack().await;
        let (payer, token) = buyer(&stack).await;
        let (ada, bob) = (Payer::new(&stack).await, Payer::new(&stack).await);
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let mut addresses = Vec::new();
        for agent in [&ada, &bob] {
            let domains = domain::ensure_default(db, &stack.config, agent.agent(), now).await.expect("a database");
            addresses.push(domains[0].default_from.as_str().to_owned());
        }
        let objective = format!(
            "Decode the VIN 1HGCM82633A004352. Then email the result to {} with the subject \"Your car\".",
            addresses[0]
        );
        let unpaid = payer.client.post(PATH, &[("authorization", &token)], &json!({"objective": objective})).await;
        let planned = unpaid.json()["context"]["planned_tasks"].clone();
        assert!(planned[1]["input"]["to_address"].to_string().contains(&addresses[0]), "{planned}");
        assert_eq!(planned[1]["input"]["subject"], "Your car", "{planned}");
        let goal = bought(&payer, &token, &json!({"objective": objective})).await;
        let job = goal.ended().await;
        assert_eq!(job["result"]["status"], "completed", "{job}");
        let inbox = ada.get("/v1/tools/inbox?include_body=true").await.text;
        assert!(inbox.contains("Your car") && inbox.to_uppercase().contains("HONDA"), "{inbox}");
        // Two messages in one sentence: each has its own recipient, or nothing is sold.
        let objective =
            format!("Email \"You are hired\" to {} and \"You are rejected\" to {}.", addresses[0], addresses[1]);
        let asked = ask(&payer, &token, &json!({"objective": objective})).await;
        if asked.status == 202 {
            payer.finished(asked.json()["request_id"].as_str().expect("an id")).await;
            let (hired, rejected) = (
                ada.get("/v1/tools/inbox?include_body=true").await.text,
                bob.get("/v1/tools/inbox?include_body=true").await.text,
            );
            assert!(hired.contains("hired") && !hired.contains("rejected"), "{hired}");
            assert!(rejected.contains("rejected") && !rejected.contains("hired"), "{rejected}");
        } else {
            assert_eq!(asked.error(), (400, "needs_planner".to_owned()));
        }
        // Cancelled before its first run or after: it is in the list.
        let listed = payer.client.get(PATH, &[("authorization", &token)]).await.json();
        assert!(listed["data"]["goals"].to_string().contains(&goal.id), "{listed}");
    });
}

fn two_calls() -> Value {
    json!({"objective": "Decode the VIN 1HGCM82633A004352. Then verify ada@example.com.", "budget_usdc": 2})
}

#[test]
fn what_an_owner_is_asked_waits_for_the_answer() {
    run(async {
        let stack = stack().await;
        let (payer, token) = buyer(&stack).await;
        let held = |approvals: Value| {
            let mut body = two_calls();
            body["approvals"] = approvals;
            body
        };
        // Denied: what was held is not bought, the rest is.
        let goal = bought(&payer, &token, &held(json!({"tools": ["verify_email"]}))).await;
        let waiting = goal.waiting().await;
        assert_eq!(waiting["task_type"], "human_approval", "{waiting}");
        let wrong = goal.post("/respond", &json!({"task_id": "task_0077", "approved": true})).await;
        assert_eq!(wrong.error(), (404, "task_not_found".to_owned()));
        let answered = goal.post("/respond", &json!({"task_id": waiting["id"], "approved": false})).await;
        assert_eq!(answered.status, 200, "{}", answered.text);
        let job = goal.ended().await;
        assert_eq!(job["result"]["end_reason"], "task_failed", "{job}");
        let tasks = goal.get("/tasks").await;
        assert_eq!(
            (&tasks[0]["status"], &tasks[1]["error"]["code"]),
            (&json!("completed"), &json!("denied")),
            "{tasks}"
        );
        is_closed(&stack, &goal, Usdc::from_micro(5_000)).await;

        // Approved: bought, and not asked again.
        let goal = bought(&payer, &token, &held(json!({"spend_over_usdc": "0.004"}))).await;
        while goal.get("").await["status"] == "active" {
            let tasks = goal.get("/tasks?status=waiting").await;
            let Some(task) =
                tasks.as_array().and_then(|tasks| tasks.iter().find(|task| task["task_type"] == "human_approval"))
            else {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let answered = goal.post("/respond", &json!({"task_id": task["id"], "approved": true})).await;
            assert_eq!(answered.status, 200, "{}", answered.text);
        }
        let job = goal.ended().await;
        assert_eq!(job["result"]["status"], "completed", "{job}");
        let listed = payer.client.get(&format!("{PATH}?status=completed"), &[("authorization", &token)]).await.json();
        assert_eq!(listed["data"]["goals"][0]["id"], goal.id, "{listed}");
        let again = goal.post("/respond", &json!({"approved": true})).await;
        assert_eq!(again.error(), (409, "invalid_state".to_owned()));

        // A value that the objective lacks. What is no address is not taken.
        let goal = bought(&payer, &token, &json!({"objective": "Verify the email address of my customer"})).await;
        goal.waiting().await;
        let wrong = goal.post("/respond", &json!({"response": "she did not say"})).await;
        assert_eq!(wrong.error(), (400, "invalid_request".to_owned()), "{}", wrong.text);
        let answered = goal.post("/respond", &json!({"response": "it is ada@example.com"})).await;
        assert_eq!(answered.status, 200, "{}", answered.text);
        let job = goal.ended().await;
        assert_eq!(job["result"]["status"], "completed", "{job}");
        assert!(job["result"]["results"].to_string().contains("ada@example.com"), "{job}");
    });
}

#[test]
fn what_cannot_be_planned_or_paid_is_refused_before_a_price() {
    run(async {
        let stack = stack().await;
        let (payer, token) = buyer(&stack).await;
        let with = |name: &str, value: Value| {
            let mut body = two_calls();
            body[name] = value;
            body
        };
        let long = "x".repeat(17_000);
        for (body, status, code) in [
            (with("objective", json!("Sing me a song about the sea")), 400, "needs_planner"),
            (
                with("objective", json!("If the VIN 1HGCM82633A004352 is a Honda, verify ada@example.com")),
                400,
                "needs_planner",
            ),
            (with("objective", json!("short")), 400, "invalid_request"),
            (with("objective", json!("Email bob@example.com: \"I will kill you.\"")), 400, "content_blocked"),
            (with("budget_usdc", json!(0.99)), 400, "budget_too_low"),
            (with("budget_usdc", json!("two")), 400, "invalid_request"),
            (with("deadline", json!("2020-01-01T00:00:00Z")), 400, "invalid_request"),
            (with("deadline", json!("tomorrow")), 400, "invalid_request"),
            (with("schedule", json!({"cron": "0 9 * * *", "budget_per_run": 1})), 400, "invalid_request"),
            (with("soul_slug", json!("counter")), 400, "invalid_request"),
            (with("approvals", json!({"spend_over": 1})), 400, "invalid_request"),
            (with("approvals", json!({"tools": ["verify_mail"]})), 400, "invalid_request"),
            (with("params", json!({"text": long})), 400, "invalid_request"),
        ] {
            assert_eq!(ask(&payer, &token, &body).await.error(), (status, code.to_owned()), "{body}");
        }
        for path in ["", "/tasks", "/budget", "/outputs", "/outputs/task_0000"] {
            for id in ["goal_00000000000000000000000000000000", "goal_x", "task_0000"] {
                let missing = payer.client.get(&format!("{PATH}/{id}{path}"), &[("authorization", &token)]).await;
                assert_eq!(missing.error(), (404, "goal_not_found".to_owned()), "{id}{path}");
            }
        }
    });
}

#[test]
fn a_cancelled_goal_buys_nothing_new_and_pays_back() {
    run(async {
        let stack = stack().await;
        let (payer, token) = buyer(&stack).await;
        let mut body = two_calls();
        body["approvals"] = json!({"tools": ["vin_decode"]});
        let goal = bought(&payer, &token, &body).await;
        goal.waiting().await;
        let refused = [goal.post("/pause", &json!({})).await, goal.post("/fund", &json!({})).await];
        assert!(refused.iter().all(|answer| answer.error() == (400, "not_recurring".to_owned())), "{refused:?}");
        // Of two at once, one cancels.
        let (reason, none) = (json!({"reason": "changed"}), json!({}));
        let (one, other) = tokio::join!(goal.post("/cancel", &reason), goal.post("/cancel", &none));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses[1], 409, "{} {}", one.text, other.text);
        assert!(matches!(statuses[0], 200 | 202), "{} {}", one.text, other.text);
        let job = goal.ended().await;
        assert_eq!(job["result"]["status"], "cancelled", "{job}");
        let view = goal.get("").await;
        assert_eq!((&view["status"], &view["end_reason"]), (&json!("cancelled"), &json!("cancelled")), "{view}");
        let spent = usdc(&job["result"]["spent_usdc"]);
        is_closed(&stack, &goal, spent).await;
    });
}

/// What the owner allows holds for the calls of a goal too.
#[test]
fn the_owners_rules_hold_inside_a_goal() {
    run(async {
        let stack = stack().await;
        let (payer, token) = buyer(&stack).await;
        // Only the approver decides on what the policy holds, and the goal goes on at once.
        let always = json!({"always": true});
        let rules = json!([{"tool": "verify_email", "action": "require_approval", "when": always}]);
        put_rules(&stack, &payer, rules).await;
        let goal = bought(&payer, &token, &two_calls()).await;
        let held = eventually("a call that is held", || async {
            let tasks = goal.get("/tasks?status=waiting").await;
            tasks.as_array().and_then(|tasks| tasks.first().cloned())
        })
        .await;
        let own = goal.post("/respond", &json!({"task_id": held["id"], "approved": true})).await;
        assert_eq!(own.error(), (403, "approval_required".to_owned()), "an agent does not approve itself");
        let approval = json!({"approval_id": held["approval_id"]});
        assert_eq!(decide(&payer, &link(&stack, &approval), "decision=approve").await.status, 200);
        let job = goal.ended().await;
        assert_eq!(job["result"]["status"], "completed", "{job}");
        let goal = bought(&payer, &token, &two_calls()).await;
        let held = eventually("a call that is held", || async {
            let tasks = goal.get("/tasks?status=waiting").await;
            tasks.as_array().and_then(|tasks| tasks.first().cloned())
        })
        .await;
        assert_ne!(held["approval_id"], approval["approval_id"], "each goal asks anew");
        let approval = json!({"approval_id": held["approval_id"]});
        assert_eq!(decide(&payer, &link(&stack, &approval), "decision=deny").await.status, 200);
        assert_eq!(goal.ended().await["result"]["end_reason"], "task_failed");
        let tasks = goal.get("/tasks").await;
        assert_eq!(tasks[1]["error"]["code"], "approval_denied", "{tasks}");
        is_closed(&stack, &goal, Usdc::from_micro(5_000)).await;

        // A cap of a tool; the cap of the day counts the goal alone, once.
        let (payer, token) = buyer(&stack).await;
        let budget = json!({"daily": "3.00", "tools": {"verify_email": "0.0005"}});
        let put = payer.change("PUT", "/v1/agents/me/budgets", &budget).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let goal = bought(&payer, &token, &two_calls()).await;
        assert_eq!(goal.ended().await["result"]["end_reason"], "task_failed");
        let tasks = goal.get("/tasks").await;
        assert_eq!(
            (&tasks[0]["status"], &tasks[1]["error"]["code"]),
            (&json!("completed"), &json!("budget_exceeded")),
            "{tasks}"
        );
        let shown = payer.get("/v1/agents/me/budgets").await.json().to_string();
        assert!(shown.contains("0.006"), "what was kept of the goal counts: {shown}");
        books::audit(&stack.app.db, payer.agent()).await;

        // A revoked token buys nothing more.
        let (payer, _) = buyer(&stack).await;
        let (id, token) = payer.capped_token(&stack, TokenCaps::default()).await;
        let mut body = two_calls();
        body["approvals"] = json!({"tools": ["vin_decode", "verify_email"]});
        let goal = bought(&payer, &token, &body).await;
        goal.waiting().await;
        let revoked = payer.change("DELETE", &format!("/v1/agents/me/access-tokens/{id}"), &json!({})).await;
        assert_eq!(revoked.status, 200, "{}", revoked.text);
        jobs::wake(&stack.app.db, &*stack.queue, goal.request_id).await;
        let job = goal.ended_for(&payer).await;
        assert_eq!(job["result"]["end_reason"], "token_revoked", "{job}");
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

/// A call that costs more than is left is not bought; at most ten goals go on at once.
#[test]
fn a_budget_that_is_too_small_ends_the_goal() {
    run(async {
        let stack = equipped_stack().await;
        let (payer, token) = buyer(&stack).await;
        let objective =
            "Decode the VIN 1HGCM82633A004352. Then call +14155552671 and ask \"Do you have a table for two?\"";
        let goal = bought(&payer, &token, &json!({"objective": objective, "budget_usdc": 4})).await;
        let job = goal.ended().await;
        assert_eq!(job["result"]["end_reason"], "budget_exhausted", "{job}");
        let tasks = goal.get("/tasks").await;
        assert_eq!(
            (&tasks[0]["status"], &tasks[1]["error"]["code"]),
            (&json!("completed"), &json!("budget_exhausted")),
            "{tasks}"
        );
        is_closed(&stack, &goal, Usdc::from_micro(5_000)).await;

        let mut body = two_calls();
        body["approvals"] = json!({"tools": ["vin_decode", "verify_email"]});
        body["budget_usdc"] = json!(1);
        for _ in 0..10 {
            bought(&payer, &token, &body).await;
        }
        assert_eq!(ask(&payer, &token, &body).await.error(), (409, "too_many_open_goals".to_owned()));
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

/// The purse itself: every move in every state, and claims that race for its last cent.
#[test]
fn a_purse_never_gives_more_than_it_has() {
    run(async {
        let stack = stack().await;
        let (db, agent) = (&stack.app.db, Payer::new(&stack).await.agent());
        let micro = Usdc::from_micro;
        let done = async |write: Write| db.write_if(write).await.unwrap();
        let of = |goal: RequestId, amount: u64| FromPurse { goal, amount: micro(amount) };
        let load = async |goal: RequestId| purse::load(db, agent, goal).await.unwrap();

        let goal = RequestId::random();
        assert!(!done(purse::take(db, agent, of(goal, 1), Usdc::ZERO).unwrap()).await, "there is none");
        assert!(done(purse::open(db, agent, goal, &Purse::new(micro(100), micro(30))).unwrap()).await);
        assert!(!done(purse::open(db, agent, goal, &Purse::new(micro(900), micro(0))).unwrap()).await, "once");
        assert!(!done(purse::take(db, agent, of(goal, 101), Usdc::ZERO).unwrap()).await);
        assert!(!done(purse::take(db, agent, of(goal, 40), micro(31)).unwrap()).await, "more of a card than is there");
        assert!(done(purse::take(db, agent, of(goal, 40), micro(30)).unwrap()).await);
        assert!(!done(purse::settle(db, agent, goal, micro(0)).unwrap()).await, "it is open");
        assert!(!done(purse::closed(db, agent, goal, micro(0)).unwrap()).await, "it is open");
        assert!(done(purse::close(db, agent, goal, "cancelled").unwrap()).await);
        assert!(!done(purse::close(db, agent, goal, "completed").unwrap()).await, "once");
        assert!(!done(purse::take(db, agent, of(goal, 1), Usdc::ZERO).unwrap()).await, "it is closing");
        assert!(!done(purse::settle(db, agent, goal, micro(0)).unwrap()).await, "something is in flight");
        assert!(
            !done(purse::end(db, agent, of(goal, 41), micro(0), Usdc::ZERO).unwrap()).await,
            "more than is in flight"
        );
        assert!(done(purse::end(db, agent, of(goal, 40), micro(15), micro(30)).unwrap()).await);
        let purse = load(goal).await.unwrap();
        assert_eq!((purse.left, purse.in_flight, purse.spent, purse.card), (micro(85), micro(0), micro(15), micro(25)));
        assert!(!done(purse::closed(db, agent, goal, micro(18)).unwrap()).await, "it is not settled");
        assert!(done(purse::settle(db, agent, goal, micro(18)).unwrap()).await);
        for other in [0, 17, 19, 120] {
            assert!(!done(purse::closed(db, agent, goal, micro(other)).unwrap()).await, "settled at another amount");
        }
        assert!(done(purse::closed(db, agent, goal, micro(18)).unwrap()).await);
        assert!(!done(purse::closed(db, agent, goal, micro(18)).unwrap()).await, "once");
        let never = RequestId::random();
        assert!(done(purse::closed(db, agent, never, micro(0)).unwrap()).await, "a goal that never began ends");
        assert!(
            !done(purse::open(db, agent, never, &Purse::new(micro(9), micro(0))).unwrap()).await,
            "and never begins"
        );

        let goal = RequestId::random();
        assert!(done(purse::open(db, agent, goal, &Purse::new(micro(100), micro(0))).unwrap()).await);
        let takes = (0..50).map(|_| async { done(purse::take(db, agent, of(goal, 9), Usdc::ZERO).unwrap()).await });
        let taken = futures_util::future::join_all(takes).await.into_iter().filter(|taken| *taken).count();
        assert_eq!(taken, 11, "fifty at once");
        let purse = load(goal).await.unwrap();
        assert_eq!((purse.left, purse.in_flight), (micro(1), micro(99)));
        // A transaction is refused as a whole.
        let both = [
            purse::take(db, agent, of(goal, 1), Usdc::ZERO).unwrap(),
            purse::take(db, agent, of(never, 1), Usdc::ZERO).unwrap(),
        ];
        assert!(matches!(db.transact(&both).await, Err(WriteError::Refused(_))));
        assert_eq!(load(goal).await.unwrap().left, micro(1));
    });
}

/// A process dies at any request to the database, or just after it: every call is bought at most once, and the goal ends with what its
/// calls kept.
#[test]
fn a_goal_pays_once_after_any_crash() {
    run(async {
        let mut step = 3;
        let mut arrives = false;
        while dies_at(step, arrives).await {
            assert!(step < 400, "a goal that never ends");
            (step, arrives) = (step + 5, !arrives);
        }
        println!("a goal with two calls: about {step} requests");
        assert!(step > 20, "a goal makes more requests than this");
    });
}

async fn dies_at(step: i64, last_one_arrives: bool) -> bool {
    let database = local::database::start(None).await.expect("a database");
    let life = Life::ending_at(i64::MAX, last_one_arrives);
    let to_database = Proxy::start(&database, life.clone()).await;
    let with_secret =
        |options: Options| options.with("SERVICE_SECRET", "a secret that two processes of one deployment share");
    let first = stack_with(|options| {
        let options = with_secret(options).with("AWS_ENDPOINT_URL", &to_database.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    let payer = Payer::with(&first, 0).await;
    payer.give_credits(&first, 20_000_000).await;
    let (_, token) = payer.capped_token(&first, TokenCaps::default()).await;
    let unpaid = payer.client.post(PATH, &[("authorization", &token)], &two_calls()).await.json();
    let quote = unpaid["context"]["quote_id"].as_str().expect("a quote");
    let named = [("authorization", token.as_str()), ("idempotency-key", "once"), ("x-quote-id", quote)];
    life.end_after(step);
    let before = payer.client.try_post(PATH, &named, &two_calls()).await;
    // Nothing is asked meanwhile: that would count as a step.
    for _ in 0..40 {
        if life.is_over() || before.as_ref().is_none_or(|answer| answer.status != 202) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let died = life.is_over();
    first.kill().await;

    let second = stack_with(|options| with_secret(options).with("AWS_ENDPOINT_URL", &database)).await;
    local::stack::release_leases(&second.app.db, second.app.clock.now()).await.expect("leases");
    let (payer, db) = (payer.at(&second), &second.app.db);
    let label = format!("step {step}, arrives: {last_one_arrives}");
    let after = payer.client.post(PATH, &named, &two_calls()).await;
    assert!(matches!(after.status, 200 | 202), "{label}: {} {}", after.status, after.text);
    let goal: RequestId = after.json()["request_id"].as_str().expect("an id").parse().expect("an id");
    let receipts = eventually("the goal to come to rest", || async {
        let receipts = books::receipts(db, payer.agent()).await;
        let rests = !receipts.is_empty() && receipts.iter().all(Receipt::is_terminal);
        if !rests {
            // The message that was lost is sent a minute later.
            jobs::wake(db, &*second.queue, goal).await;
            for receipt in receipts.iter().filter(|receipt| !receipt.is_terminal()) {
                jobs::wake(db, &*second.queue, receipt.job_id).await;
            }
        }
        rests.then_some(receipts)
    })
    .await;
    let mut tools: Vec<&str> = receipts.iter().map(|receipt| receipt.subcategory.as_str()).collect();
    tools.sort_unstable();
    assert_eq!(tools, ["compute", "verify_email", "vin_decode"], "{label}: each is bought once");
    let job = payer.finished(&goal.to_string()).await;
    assert_eq!(job["result"]["status"], "completed", "{label}: {job}");
    let spent = usdc(&job["result"]["spent_usdc"]);
    let kept = spent.micro() + spent.micro().div_ceil(5);
    assert_eq!(books::audit(db, payer.agent()).await.credits.micro(), 20_000_000 - kept, "{label}: {job}");
    second.kill().await;
    died
}
