//! A newcomer's first hour on a stack that has just been started: its library, the scripts of `local/`, and the commands of
//! the README's doors.

use std::process::Stdio;

use local::queue::LocalQueue;
use local::{Options, Stack, library, report};
use serde_json::{Value, json};
use tokio::process::Command;
use web::search::index::Pointer;

use crate::clients::{AboutStack, installed};
use crate::support::{Payer, VIN, VIN_PATH, eventually, root, run, stack, stack_with};

/// What a script of `local/` said, and its exit code.
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Told {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("not JSON: {}\n{}", self.out, self.err))
    }
}

async fn script(about: &AboutStack, name: &str, words: &[&str]) -> Told {
    let mut script = Command::new(root().join("local").join(name));
    let script = script.args(words).env("STACK", &about.0).env("WAIT", "0").stdin(Stdio::null());
    let output = script.output().await.expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Told { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

async fn stack_with_library() -> Stack {
    stack_with(|options| Options { library: true, ..options }).await
}

async fn pages_of(stack: &Stack) -> usize {
    let pointer = Pointer::load(&stack.app.db, true).await.expect("a database");
    pointer.map_or(0, |pointer| pointer.pages as usize)
}

/// Every page of the library can be read and indexed; a start that finds them reads none again.
#[test]
fn the_library_is_read_once_and_answers_questions() {
    run(async {
        let stack = stack_with_library().await;
        let all = library::urls(&stack.site_url).len();
        eventually("the library", || async { (pages_of(&stack).await == all).then_some(()) }).await;
        let payer = Payer::new(&stack).await;
        for question in ["When does Calder Bridge close?", "How high is the viewing platform of the Harbour Crane?"] {
            let accepted = payer.buy("/v1/tools/research", &json!({"topic": question})).await.json();
            let job = payer.finished(accepted["request_id"].as_str().expect("an id")).await;
            assert_eq!((&job["status"], &job["result"]["not_found"]), (&json!("completed"), &json!([])), "{job}");
        }
        let queue = LocalQueue::default();
        library::queue(&stack.app.db, &queue, &stack.site_url).await.expect("a database");
        assert_eq!(queue.sent(), 0);
    });
}

#[test]
fn ask_sh_sets_a_budget_mints_a_token_and_freezes() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack().await;
        let about = AboutStack::written(&report::json(&stack));
        let ask = async |words: &[&str]| {
            let told = script(&about, "ask.sh", words).await;
            assert_eq!(told.code, Some(0), "{words:?}: {}{}", told.out, told.err);
            told.json()["data"].clone()
        };
        let vin = json!({"vin": VIN}).to_string();
        let refused = async |error: &str| {
            let told = script(&about, "buy.sh", &[VIN_PATH, &vin]).await;
            assert_eq!((told.code, &told.json()["error"]), (Some(1), &json!(error)), "{}", told.err);
        };
        let budget = ask(&["PUT", "/v1/agents/me/budgets", r#"{"per_transaction": 0.004}"#]).await;
        assert_eq!(budget["per_transaction_usdc"], 0.004, "{budget}");
        refused("budget_exceeded").await;
        ask(&["PUT", "/v1/agents/me/budgets", r#"{"per_transaction": null}"#]).await;
        let token = ask(&["POST", "/v1/agents/me/access-tokens", r#"{"name": "laptop"}"#]).await;
        assert!(token["token"].as_str().is_some_and(|token| token.starts_with("agent_")), "{token}");
        ask(&["POST", "/v1/agents/me/freezes", r#"{"what": "agent"}"#]).await;
        refused("frozen_by_owner").await;
        // Without a method, a body is posted.
        ask(&["/v1/agents/me/freezes/lift", r#"{"what": "agent"}"#]).await;
        assert_eq!(script(&about, "buy.sh", &[VIN_PATH, &vin]).await.code, Some(0));
        let id = token["id"].as_str().expect("an id");
        ask(&["DELETE", &format!("/v1/agents/me/access-tokens/{id}")]).await;
        // One receipt a page: a page says that there is more, and all of them are one file.
        assert_eq!(script(&about, "buy.sh", &[VIN_PATH, &vin]).await.code, Some(0));
        let export = "/v1/audit/export?format=csv&limit=1";
        for (words, rows, is_cut) in [(&[export][..], 1, true), (&["--all", export][..], 2, false)] {
            let told = script(&about, "ask.sh", words).await;
            assert_eq!((told.code, told.out.lines().count()), (Some(0), 1 + rows), "{}{}", told.out, told.err);
            assert_eq!(told.err.contains("there is more"), is_cut, "{}", told.err);
        }
        let balance = script(&about, "ask.sh", &["/v1/tools/balance"]).await;
        assert!(balance.out.ends_with("}\n"), "{}", balance.out);
        for words in [&["PUT"][..], &["v1/tools/balance"], &["put", "/v1/agents/me/budgets"], &[]] {
            let told = script(&about, "ask.sh", words).await;
            assert!(told.code == Some(2) && told.err.starts_with("usage: "), "{words:?}: {}", told.err);
        }
    });
}

/// The script says whether money moved: also where cheap work is done before its payment settles.
#[test]
fn buy_sh_says_what_became_of_the_payment() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack_with(|options| options.with("OVERLAP_BELOW_USDC", "0.01").with("PAYMENT_HOLD_MS", "0")).await;
        let about = AboutStack::written(&report::json(&stack));
        let vin = json!({"vin": VIN}).to_string();
        for said in [" paid in 0x", " pays (still settling)"] {
            let told = script(&about, "buy.sh", &[VIN_PATH, &vin]).await;
            assert!(told.code == Some(0) && told.err.contains(said), "{}{}", told.out, told.err);
        }
        let told = script(&about, "buy.sh", &[VIN_PATH, "{}"]).await;
        assert!(
            told.code == Some(1) && told.err.contains("400, ") && told.err.contains(" paid nothing"),
            "{}",
            told.err
        );
    });
}

/// The payment of an identity check needs a proof beside it, which the script sends. A number is refused with that proof.
#[test]
fn buy_sh_pays_for_an_identity_check_and_for_a_number() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack().await;
        let about = AboutStack::written(&report::json(&stack));
        let person = json!({
            "full_name": "Ada Lovelace", "email": "ada@example.org", "purpose": "To rent a workshop",
            "idempotency_key": "workshop-17",
        });
        let told = script(&about, "buy.sh", &["/v1/tools/identity/start", &person.to_string()]).await;
        assert_eq!((told.code, &told.json()["status"]), (Some(0), &json!("processing")), "{}", told.err);
        let told = script(&about, "buy.sh", &["--json", "/v1/tools/voice/numbers"]).await;
        assert_eq!((told.code, &told.json()["data"]["charged"]), (Some(0), &json!("5.000000")), "{}", told.err);
    });
}

#[test]
fn checkout_sh_prints_a_few_lines_and_json_on_request() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack().await;
        let about = AboutStack::written(&report::json(&stack));
        let told = script(&about, "checkout.sh", &["agora-credits"]).await;
        assert_eq!(told.code, Some(0), "{}", told.err);
        assert!(told.out.contains("1.00 USD\ncompleted, paid by 0x") && told.out.lines().count() < 10, "{}", told.out);
        let told = script(&about, "checkout.sh", &["--json", "agora-credits"]).await;
        let sessions: Vec<Value> = told.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let states: Vec<&Value> = sessions.iter().map(|session| &session["status"]).collect();
        assert_eq!(states, [&json!("ready_for_payment"), &json!("completed")]);
        let told = script(&about, "checkout.sh", &[]).await;
        assert!(told.code == Some(2) && told.err.starts_with("usage: "), "{}", told.err);
    });
}

/// The README's doors, pasted in their order into one shell, as soon as the first page is in the index.
#[test]
fn every_command_of_the_readmes_doors_works() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack_with_library().await;
        let about = AboutStack::written(&report::json(&stack));
        let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
        let doors: Vec<&str> =
            readme.split("```sh run\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(doors.len(), 3, "an agent's, a seller's and an owner's");
        let commands = doors.join("\n").replace("http://127.0.0.1:8402", &stack.base_url);
        // If a command fails, the worker must not go on without the shell.
        let commands = format!("trap 'kill \"$worker\" 2>/dev/null || true' EXIT\n{commands}");
        eventually("a page in the index", || async { (pages_of(&stack).await > 0).then_some(()) }).await;
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &commands]).current_dir(root()).env("STACK", &about.0).stdin(Stdio::null());
        let output = shell.output().await.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));

        let answers: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&text).into_iter().collect();
        let answers = answers.unwrap_or_else(|error| panic!("{error}: {text}"));
        let refused: Vec<&str> = answers.iter().filter_map(|answer| answer["error"].as_str()).collect();
        assert_eq!(refused, ["payment_required", "budget_exceeded"], "the price, and the token's cap: {text}");
        assert!(
            answers.iter().any(|answer| answer["result_count"].as_u64() > Some(0)),
            "the search finds a page: {text}"
        );
        let finished =
            |tool: &str| answers.iter().find(|answer| answer["tool"] == tool && answer["status"] == "completed");
        let research = finished("research").unwrap_or_else(|| panic!("{text}"));
        assert_eq!(research["result"]["not_found"], json!([]), "{research}");
        assert!(finished("soul").is_some(), "{text}");
        assert!(answers.iter().any(|answer| answer["balance"]["pending"] == 0.4), "the seller's 80 %: {text}");
    });
}
