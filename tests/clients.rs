//! The published clients as callers, and the published facilitator as peer: they have never heard of us.
//!
//! They are installed on first use (npm, PyPI). Where that does not work, the journey says so and is left out; with
//! `REQUIRE_CLIENTS=1` it fails instead.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use local::{Stack, report};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::support::{Payer, READ_PATH, VIN, VIN_PATH, root, run, stack, stack_with};

/// Installing is done once, whichever journey comes first.
static INSTALLING: Mutex<()> = Mutex::const_new(());

/// A package folder with its dependencies, or nothing where they cannot be installed.
async fn installed(name: &str) -> Option<PathBuf> {
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
    let wanted = std::fs::read(folder.join("requirements.txt")).map_err(|error| error.to_string())?;
    let environment = folder.join(".venv");
    let mark = environment.join(".installed");
    if std::fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    quietly(Command::new("python3").args(["-m", "venv"]).arg(&environment)).await?;
    let pip = environment.join("bin/pip");
    quietly(
        Command::new(pip)
            .args(["install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"])
            .current_dir(folder),
    )
    .await?;
    std::fs::write(mark, wanted).map_err(|error| error.to_string())
}

async fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().await.map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

/// Runs a client against a stack; its lines of JSON.
async fn answers(program: &Path, script: &Path, stack: &Stack) -> Vec<Value> {
    let file =
        std::env::temp_dir().join(format!("agora-stack-{}.json", common::evm::hex0x(&common::digest::random::<6>())));
    std::fs::write(&file, report::json(stack).to_string()).expect("a file");
    let output = Command::new(program).arg(script).arg(&file).stdin(Stdio::null()).output().await.expect("a client");
    let _ = std::fs::remove_file(&file);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
}

fn check_both_tools(answers: &[Value]) {
    let [vin, read] = answers else { panic!("two answers, not {answers:?}") };
    assert_eq!((&vin["status"], &vin["body"]["data"]["result"]["make"]), (&json!(200), &json!("Honda")));
    assert_eq!((&read["status"], &read["body"]["tool"]), (&json!(202), &json!("web_read")));
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
        check_both_tools(&answers(Path::new("node"), &folder.join("pay.mjs"), &stack).await);
    });
}

#[test]
fn the_v1_client_for_typescript_pays_both_tools() {
    run(async {
        let Some(folder) = installed("v1").await else { return };
        let stack = stack().await;
        check_both_tools(&answers(Path::new("node"), &folder.join("pay.mjs"), &stack).await);
    });
}

#[test]
fn the_python_client_pays_both_tools() {
    run(async {
        let Some(folder) = installed("python").await else { return };
        let stack = stack().await;
        check_both_tools(&answers(&folder.join(".venv/bin/python"), &folder.join("pay.py"), &stack).await);
    });
}

#[test]
fn the_public_sdk_reads_a_page() {
    run(async {
        let Some(folder) = installed("python").await else { return };
        let stack = stack_with(|options| options.with("SERVICE_NAME", "OneShot")).await;
        let answers = answers(&folder.join(".venv/bin/python"), &folder.join("sdk.py"), &stack).await;
        let markdown = answers[0]["markdown"].as_str().expect("markdown");
        assert!(markdown.contains("two white flashes every eleven seconds"), "{markdown}");
        assert_eq!(answers[0]["metadata"]["statusCode"], 200);
    });
}

#[test]
fn the_official_facilitator_settles() {
    run(async {
        let Some(folder) = installed("v2").await else { return };
        let chain = crate::support::chain().await;
        // A fee wallet that nothing else uses: the last of the test payers.
        let key = &chain.payers().last().expect("payers").private_key;
        let mut process = Command::new("node")
            .arg(folder.join("facilitator.mjs"))
            .args([chain.rpc_url(), &chain.chain_id().to_string(), key])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node");
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
