//! The published clients as callers, and the published facilitator as peer. None of them is adapted to this service.
//!
//! They are installed on first use (npm, PyPI). If that fails, the test prints it and is skipped; with
//! `REQUIRE_CLIENTS=1` it fails instead.

mod browser;
mod commerce;
mod documents;
mod email;
mod followers;
mod goals;
mod knowledge;
mod network;
mod sdks;
mod selling;
mod settling;
mod sms;
mod unipile;
mod voice;
mod webhooks;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use evm::signature::PrivateKey;
use evm::{Word, hex0x};
use local::{Stack, report};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::souls_market::{Shop, text};
use crate::support::{Payer, READ_PATH, VIN, VIN_PATH, children, root, run, stack, stack_with};

/// Dependencies are installed once, by the test that needs them first.
static INSTALLING: Mutex<()> = Mutex::const_new(());

/// A package folder with its dependencies; `None` if they cannot be installed.
pub async fn installed(name: &str) -> Option<PathBuf> {
    let _one_at_a_time = INSTALLING.lock().await;
    let folder = root().join("tests/clients").join(name);
    let done = match name {
        "python" => install_python(&folder).await,
        _ => install_npm(&folder).await,
    };
    match done {
        Ok(()) => Some(folder),
        Err(cause) if std::env::var_os("REQUIRE_CLIENTS").is_some() => {
            panic!("the {name} clients do not install: {cause}")
        }
        Err(cause) => {
            eprintln!("LEFT OUT: the {name} clients do not install here: {cause}");
            None
        }
    }
}

async fn install_npm(folder: &Path) -> Result<(), String> {
    let lock = std::fs::read(folder.join("package-lock.json")).map_err(|error| error.to_string())?;
    let mark = folder.join("node_modules/.installed");
    if std::fs::read(&mark).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    quietly(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder))
        .await?;
    std::fs::write(mark, lock).map_err(|error| error.to_string())
}

async fn install_python(folder: &Path) -> Result<(), String> {
    let mut wanted = std::fs::read(folder.join("requirements.txt")).map_err(|error| error.to_string())?;
    wanted.extend(sdks::VERSIONS.iter().flat_map(|(version, _)| version.bytes()));
    let environment = folder.join(".venv");
    let mark = environment.join(".installed");
    if std::fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    quietly(Command::new("python3").args(["-m", "venv"]).arg(&environment)).await?;
    let pip = environment.join("bin/pip");
    quietly(
        Command::new(&pip)
            .args(["install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"])
            .current_dir(folder),
    )
    .await?;
    // The dependencies of the SDKs are installed by now. Each version gets its own folder, because an environment holds
    // only one version.
    for (version, _) in sdks::VERSIONS {
        let package = format!("oneshot-python=={version}");
        quietly(
            Command::new(&pip)
                .args([
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--no-deps",
                    "--upgrade",
                    &package,
                    "--target",
                ])
                .arg(sdks::folder(folder, version)),
        )
        .await?;
    }
    std::fs::write(mark, wanted).map_err(|error| error.to_string())
}

/// The interpreter of a folder's own environment, or an error if that cannot be installed.
async fn python_of(folder: &Path) -> Result<PathBuf, String> {
    let environment = folder.join(".venv");
    let python = environment.join("bin/python");
    let wanted = std::fs::read(folder.join("requirements.txt")).map_err(|error| error.to_string())?;
    let mark = environment.join(".installed");
    if !std::fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        quietly(Command::new("python3").args(["-m", "venv"]).arg(&environment)).await?;
        let arguments = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
        quietly(Command::new(&python).args(arguments).current_dir(folder)).await?;
        std::fs::write(mark, wanted).map_err(|error| error.to_string())?;
    }
    Ok(python)
}

async fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().await.map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

/// A file that describes a stack to a client. Deleted on drop.
pub struct AboutStack(pub PathBuf);

impl AboutStack {
    pub fn written(about: &Value) -> AboutStack {
        let name = format!("agora-stack-{}.json", hex0x(&base::digest::random::<6>()));
        let file = AboutStack(std::env::temp_dir().join(name));
        std::fs::write(&file.0, about.to_string()).expect("a file");
        file
    }
}

impl Drop for AboutStack {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs a client against a stack. Returns the lines of JSON that it prints.
async fn answers(program: &Path, script: &Path, stack: &Stack) -> Vec<Value> {
    lines(Command::new(program).arg(script), &report::json(stack)).await
}

/// Runs a command with a file about the stack as its last argument. Returns the lines of JSON that it prints.
pub async fn lines(command: &mut Command, about: &Value) -> Vec<Value> {
    let file = AboutStack::written(about);
    let output = command.arg(&file.0).stdin(Stdio::null()).output().await.expect("a client");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
}

fn check_purchases(answers: &[Value]) {
    let [vin, read, top_up] = answers else { panic!("three answers, not {answers:?}") };
    assert_eq!((&vin["status"], &vin["body"]["data"]["result"]["make"]), (&json!(200), &json!("Honda")));
    assert_eq!((&read["status"], &read["body"]["tool"]), (&json!(202), &json!("web_read")));
    assert_eq!((&top_up["status"], &top_up["body"]["data"]["topped_up"]), (&json!(200), &json!("0.050000")));
    for answer in answers {
        assert_eq!(answer["settlement"]["success"], true, "{answer}");
        assert_eq!(answer["settlement"]["transaction"].as_str().map(str::len), Some(66), "{answer}");
    }
}

#[test]
fn the_v2_client_for_typescript_pays_both_tools() {
    run(async {
        let Some(folder) = installed("v2").await else { return };
        let stack = stack().await;
        check_purchases(&answers(Path::new("node"), &folder.join("pay.mjs"), &stack).await);
    });
}

#[test]
fn the_v1_client_for_typescript_pays_both_tools() {
    run(async {
        let Some(folder) = installed("v1").await else { return };
        let stack = stack().await;
        check_purchases(&answers(Path::new("node"), &folder.join("pay.mjs"), &stack).await);
    });
}

#[test]
fn the_python_client_pays_both_tools() {
    run(async {
        let Some(folder) = installed("python").await else { return };
        let stack = stack().await;
        check_purchases(&answers(&folder.join(".venv/bin/python"), &folder.join("pay.py"), &stack).await);
    });
}

#[test]
fn the_v2_clients_send_idempotency_keys() {
    run(async {
        let (Some(v2), Some(python)) = (installed("v2").await, installed("python").await) else { return };
        let stack = stack().await;
        let mut node = Command::new("node");
        let mut snake = Command::new(python.join(".venv/bin/python"));
        tokio::join!(
            buys_once_under_one_name(&stack, node.arg(v2.join("named.mjs"))),
            buys_once_under_one_name(&stack, snake.arg(python.join("named.py"))),
        );
    });
}

/// `make spend`, which the tour shows.
#[test]
fn make_spend_needs_no_wallet() {
    run(async {
        let Some(folder) = installed("v2").await else { return };
        let stack = stack().await;
        let file = AboutStack::written(&report::json(&stack));
        let mut spend = Command::new("node");
        let spend = spend.arg(folder.join("spend.mjs")).arg(&file.0).stdin(Stdio::null());
        let output = spend.output().await.expect("node");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text.matches("bought with the token: Honda Accord").count(), 2, "{text}");
        assert!(text.contains("403 budget_exceeded") && text.contains("spent 0.010000 USDC today"), "{text}");
    });
}

/// `local/buy.sh` and `local/ask.sh`, as the README shows them: the purchase is printed when it ends, also if it
/// failed, and the buyer's own data is read with its proof.
#[test]
fn buy_sh_prints_the_result_and_ask_sh_sends_a_proof() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack().await;
        let file = AboutStack::written(&report::json(&stack));
        let told = async |script: &str, arguments: &[&str], wait: &str| {
            let mut script = Command::new(root().join("local").join(script));
            let script = script.args(arguments).env("STACK", &file.0).env("WAIT", wait).stdin(Stdio::null());
            let output = script.output().await.expect("a shell");
            let told: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
            (output.status.success(), told, String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let page = json!({"url": format!("{}/article", stack.site_url)}).to_string();
        let (bought, job, _) = told("buy.sh", &[READ_PATH, &page], "60").await;
        assert_eq!((bought, &job["status"]), (true, &json!("completed")), "{job}");
        assert!(job["result"]["markdown"].as_str().unwrap().contains("lighthouse"), "{job}");
        let nowhere = r#"{"url": "http://no-such-host.invalid/"}"#;
        let (bought, job, said) = told("buy.sh", &[READ_PATH, nowhere], "60").await;
        assert_eq!((bought, &job["status"]), (false, &json!("failed")), "{job}");
        assert!(said.contains("destination_not_reachable") && said.contains("credited back: 0.002000"), "{said}");
        let (bought, accepted, _) = told("buy.sh", &[READ_PATH, nowhere], "0").await;
        assert_eq!((bought, &accepted["status"]), (true, &json!("processing")), "{accepted}");
        let path = format!("/v1/requests/{}", accepted["request_id"].as_str().unwrap());
        let (read, job, _) = told("ask.sh", &[&path], "").await;
        assert_eq!((read, &job["request_id"]), (true, &accepted["request_id"]), "{job}");
        let (read, refused, _) = told("ask.sh", &["/v1/requests/x"], "").await;
        assert_eq!((read, &refused["error"]), (false, &json!("not_found")));
    });
}

/// `make tour`: from a registration to a payout on chain, with curl, the v2 client and the example worker.
#[test]
fn make_tour_ends_with_a_payout_on_chain() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack().await;
        let file = AboutStack::written(&report::json(&stack));
        let tour = root().join("local/marketplace-tour.sh");
        let output = Command::new(tour).env("STACK", &file.0).stdin(Stdio::null()).output().await.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("on the chain after: 12800000 micro-USDC"), "{text}");
    });
}

/// The rest of `make tour`: mail, texts and a call between two agents, with their prices.
#[test]
fn make_tour_shows_mail_texts_and_a_call() {
    run(async {
        let Some(_) = installed("v2").await else { return };
        let stack = stack_with(|options| options.with("EMAIL_DOMAINS", "agents.test")).await;
        let file = AboutStack::written(&report::json(&stack));
        let tour = root().join("local/messages-tour.sh");
        let output = Command::new(tour).env("STACK", &file.0).stdin(Stdio::null()).output().await.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("for 0.350000 USDC"), "{text}");
        // The first agent's text buys its number.
        for price in ["for 0.005 USDC", "for 5.000000 USDC", "for 5.003500 USDC", "for 0.003500 USDC"] {
            assert!(text.contains(price), "{price}: {text}");
        }
    });
}

#[test]
fn the_v1_client_for_typescript_buys_from_a_soul() {
    run(async {
        let Some(folder) = installed("v1").await else { return };
        let stack = stack().await;
        let shop = Shop::open(&stack, "sells-to-v1").await;
        let bought = async |path: &str, body: &Value| {
            let mut node = Command::new("node");
            node.arg(folder.join("buy.mjs")).arg(path).arg(body.to_string());
            lines(&mut node, &report::json(&stack)).await.remove(0)
        };
        let soul = bought(&shop.purchase_path(), &json!({})).await;
        assert_eq!(soul["soul_md"], "# sells-to-v1\n\nI sum up texts.", "{soul}");
        let execution = bought(&shop.execute_path(), &text("two words")).await;
        let job = execution["soul_job_id"].as_str().unwrap_or_else(|| panic!("{execution}"));
        let claimed = shop.claim(job).await;
        assert_eq!(claimed.json()["job"]["input"]["text"], "two words", "{}", claimed.text);
        let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": "done"})).await;
        assert_eq!(done.json()["job"]["status"], "completed", "{}", done.text);
    });
}

/// Every second call of the script repeats the idempotency key of the call before with a new payment, which must not be
/// charged.
async fn buys_once_under_one_name(stack: &Stack, script: &mut Command) {
    let (key, address) = wallet(stack, 1_000_000).await;
    let mut about = report::json(stack);
    about["wallet"] = json!(key);
    let told = lines(script, &about).await;
    let [first, again, vin, same] = told.as_slice() else { panic!("four answers, not {told:?}") };
    assert!(told.iter().all(|answer| answer["status"] == 200), "{told:?}");
    let credited = |answer: &Value| {
        let data = &answer["body"]["data"];
        (data["already_credited"].clone(), data["settlement_tx"].clone(), data["topped_up"].clone())
    };
    let (tx, bought) = (first["body"]["data"]["settlement_tx"].clone(), json!("0.500000"));
    assert_eq!(credited(first), (json!(false), tx.clone(), bought.clone()));
    assert_eq!(credited(again), (json!(true), tx, bought));
    assert_eq!(vin, same);
    let left = stack.chain.as_ref().expect("a local chain").balance_of(&address).await.expect("a balance");
    assert_eq!(left, 1_000_000 - 500_000 - 5_000);
}

/// The private key and the address of a new wallet with this many micro-USDC.
pub async fn wallet(stack: &Stack, micro: u128) -> (String, String) {
    let key: Word = base::digest::random();
    let address = PrivateKey::from_bytes(&key).expect("a key").address().to_string();
    if micro > 0 {
        stack.chain.as_ref().expect("a local chain").mint(&address, micro).await.expect("minting");
    }
    (hex0x(&key), address)
}

#[test]
fn the_official_facilitator_settles() {
    run(async {
        let Some(folder) = installed("v2").await else { return };
        let chain = crate::support::chain().await;
        // The fee wallet is the last of the test payers; nothing else uses it.
        let key = &chain.payers().last().expect("payers").private_key;
        let mut facilitator = Command::new("node");
        facilitator
            .arg(folder.join("facilitator.mjs"))
            .args([chain.rpc_url(), &chain.chain_id().to_string(), key])
            .stdin(Stdio::null());
        let mut process = children::start(&mut facilitator);
        let mut lines = BufReader::new(process.stdout.take().expect("an output")).lines();
        let url = lines.next_line().await.expect("a line").expect("an address");
        let stack = stack_with(|options| options.with("FACILITATOR_URL", url)).await;
        let payer = Payer::new(&stack).await;
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert!(matches!(answer.status, 200 | 202), "{}", answer.text);
        let read = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await.json();
        assert_eq!(payer.finished(read["request_id"].as_str().expect("an id")).await["status"], "completed");
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 7_000);

        let poor = Payer::with(&stack, 4_999).await;
        let unpaid = poor.client.post(VIN_PATH, &[], &json!({"vin": VIN})).await;
        let payment = poor.pay(&unpaid);
        let answer = poor.client.post(VIN_PATH, &[("payment-signature", &payment)], &json!({"vin": VIN})).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (402, &json!("insufficient_funds")));
    });
}

/// A client generated from the API description compiles, and buys with a token.
#[test]
fn a_generated_client_compiles_and_buys() {
    run(async {
        let Some(folder) = installed("generated").await else { return };
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 1_000_000).await;
        let token = payer.token(&stack).await;
        let token = token.trim_start_matches("Bearer ");
        let bin = folder.join("node_modules/.bin");
        let description = format!("{}/openapi.json", stack.base_url);
        let made = async {
            quietly(
                Command::new(bin.join("openapi-typescript"))
                    .args([&description, "-o", "schema.d.ts"])
                    .current_dir(&folder),
            )
            .await?;
            // The compiler reports errors on standard output.
            let mut tsc = Command::new(bin.join("tsc"));
            let tsc =
                tsc.current_dir(&folder).stdin(Stdio::null()).output().await.map_err(|error| error.to_string())?;
            if tsc.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&tsc.stdout).into_owned()) }
        };
        made.await.unwrap_or_else(|cause: String| panic!("{cause}"));
        let mut buy = Command::new("node");
        let buy = buy.arg(folder.join("made/buy.mjs")).args([stack.base_url.as_str(), token]).stdin(Stdio::null());
        let output = buy.output().await.expect("node");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let [price, bought, again, state, receipts, refused] = said.as_slice() else { panic!("{text}") };
        assert_eq!(price["price"], "0.005000");
        assert_eq!((&bought["model"], bought), (&json!("Accord"), again), "bought once under one name");
        assert_eq!((&state["tool"], &state["known"]), (&json!("web_read"), &json!(200)));
        assert_eq!(receipts["receipts"], json!(["web_read", "vin_decode"]));
        assert_eq!((&refused["refused"], &refused["status"]), (&json!("invalid_request"), &json!(400)));
    });
}
