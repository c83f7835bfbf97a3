//! `kill -9` of the real runner during paid calls: after a restart every payment completes or is paid back, once.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base::digest;
use evm::authorization::Authorization;
use evm::signature::PrivateKey;
use evm::{hex0x, word_from_u64};
use platform::config::Token;
use serde_json::{Value, json};

use crate::support::payer::{bare, header};
use crate::support::{Client, READ_PATH, VIN, VIN_PATH, eventually, root, run};

/// A runner in its own folder.
struct Runner {
    process: Child,
    stack: Value,
}

impl Runner {
    fn start(folder: &Path, anvil: &Path) -> Runner {
        let binary = binary();
        let mut process = Command::new(&binary)
            .current_dir(folder)
            .env("ANVIL_BIN", anvil)
            .env("PORT", "0")
            .env("RATE_LIMIT_SCALE", "1000")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; run cargo build -p local first", binary.display()));
        let announcement = folder.join(".local/stack.json");
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let announced =
                std::fs::read_to_string(&announcement).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
            if let Some(stack) = announced.filter(|stack| stack["pid"] == process.id()) {
                return Runner { process, stack };
            }
            if process.try_wait().expect("a child").is_some() || Instant::now() > deadline {
                let mut output = String::new();
                let _ = process.stderr.take().map(|mut stderr| stderr.read_to_string(&mut output));
                panic!("the runner did not start: {output}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn text(&self, pointer: &str) -> String {
        self.stack.pointer(pointer).and_then(Value::as_str).expect(pointer).to_owned()
    }

    /// SIGKILL: no cleanup runs.
    fn kill(mut self) {
        self.process.kill().expect("a kill");
        self.process.wait().expect("a dead process");
    }
}

/// The runner, built beside this test.
fn binary() -> PathBuf {
    program("agora-local")
}

/// A program of the local stack, built beside this test.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.ancestors().nth(2).expect("a target folder").join(name)
}

struct Bought {
    path: &'static str,
    body: Value,
    price: u64,
    authorization: Authorization,
}

impl Bought {
    fn payment(&self) -> String {
        header(&bare(&self.authorization))
    }
}

#[test]
fn a_killed_runner_loses_nothing() {
    run(async {
        let anvil = devchain::install::ensure(&root().join(".tools/anvil"), &|_| ()).await.expect("anvil");
        let folder = std::env::temp_dir().join(format!("agora-kill-{}", hex0x(&digest::random::<6>())));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut runner = Runner::start(&folder, &anvil);
        let key = PrivateKey::parse(&runner.text("/payers/0/private_key")).expect("a key");
        let before = balance(&runner, &key).await;
        let mut all: Vec<Bought> = Vec::new();
        for round in 0..5u64 {
            // Killed at different moments during a dozen calls.
            let calls: Vec<Bought> = (0..12).map(|index| bought(&runner, &key, index)).collect();
            let client = Client::new(&runner.text("/base_url"));
            for call in &calls {
                let (client, path, payment, body) = (client.clone(), call.path, call.payment(), call.body.clone());
                tokio::spawn(async move { client.try_post(path, &[("x-payment", &payment)], &body).await });
            }
            tokio::time::sleep(Duration::from_millis(20 + 45 * round)).await;
            runner.kill();
            all.extend(calls);
            runner = Runner::start(&folder, &anvil);
        }
        let client = Client::new(&runner.text("/base_url"));
        // First left alone, then with each request sent again: in the end each was bought once.
        for repeat in [false, true] {
            for call in &all {
                if repeat {
                    let answer = client.post(call.path, &[("x-payment", &call.payment())], &call.body).await;
                    assert!(matches!(answer.status, 200 | 202), "{} {}", answer.status, answer.text);
                }
                at_rest(&client, &call.authorization, repeat).await;
            }
        }
        let price: u64 = all.iter().map(|call| call.price).sum();
        assert_eq!(before - balance(&runner, &key).await, u128::from(price), "each was paid for once");
        runner.kill();
        let _ = std::fs::remove_dir_all(&folder);
    });
}

fn bought(runner: &Runner, key: &PrivateKey, index: u64) -> Bought {
    let (path, body, price) = match index % 2 {
        0 => (VIN_PATH, json!({"vin": VIN}), 5_000),
        // An address that is the same for every start of the runner; the demo site's address changes.
        _ => (READ_PATH, json!({"url": "http://no-such-host.invalid/"}), 2_000),
    };
    let token = Token::new(84532, runner.text("/chain/token").parse().expect("an address"), "USDC", "2");
    let now = base::clock::Clock::system().now().secs().unsigned_abs();
    let mut authorization = Authorization {
        from: key.address(),
        to: runner.text("/chain/pay_to").parse().expect("an address"),
        value: word_from_u64(price),
        valid_after: word_from_u64(0),
        valid_before: word_from_u64(now + 3600),
        nonce: digest::random(),
        signature: Vec::new(),
    };
    authorization.signature = key.sign(&authorization.digest(&token.domain)).to_bytes().to_vec();
    Bought { path, body, price, authorization }
}

async fn balance(runner: &Runner, key: &PrivateKey) -> u128 {
    let data = evm::abi::call("balanceOf(address)", &[evm::abi::Argument::Word(key.address().word())]);
    let rpc = devchain::Rpc::new(runner.text("/chain/rpc_url"));
    let answer = rpc.eth_call(&runner.text("/chain/token"), &hex0x(&data)).await.expect("a balance");
    u128::from_str_radix(answer.trim_start_matches("0x"), 16).expect("a number")
}

async fn at_rest(client: &Client, authorization: &Authorization, claimed: bool) {
    let path = format!("/v1/payments/{}", hex0x(&authorization.nonce));
    eventually("the payment to come to rest", || async {
        let state = client.get(&path, &[]).await.json();
        let word = state["state"].as_str().unwrap_or_default().to_owned();
        let done = state["payments"][0]["job_status"] == "completed";
        let resting =
            matches!(word.as_str(), "credited_back") || word == "settled" && done || word == "never_seen" && !claimed;
        resting.then_some(())
    })
    .await;
}

/// Arguments are answered or refused, and nothing starts.
#[test]
fn arguments_start_nothing() {
    let folder = std::env::temp_dir().join(format!("agora-words-{}", hex0x(&digest::random::<6>())));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (words, code, said) in [
        (&["--help"][..], 0, "docs/CONFIGURATION.md"),
        (&["-h"][..], 0, "PORT=9000"),
        (&["--version"][..], 0, concat!("agora-local ", env!("CARGO_PKG_VERSION"))),
        (&["--port", "9000"][..], 2, "does not know \"--port 9000\""),
        (&["run"][..], 2, "agora-local --help"),
        (&["--help", "me"][..], 2, "agora-local --help"),
    ] {
        let told =
            Command::new(binary()).args(words).current_dir(&folder).env("PORT", "0").stdin(Stdio::null()).output();
        let told = told.unwrap_or_else(|error| panic!("{error}; run cargo build -p local first"));
        let output = if code == 0 { &told.stdout } else { &told.stderr };
        let text = String::from_utf8_lossy(output);
        assert!(told.status.code() == Some(code) && text.contains(said), "{words:?}: {text}");
    }
    assert!(!folder.join(".local").exists());
    let _ = std::fs::remove_dir_all(&folder);
}

/// A state that cannot be migrated: the runner names the build that wrote it and how to start anew, and changes
/// nothing.
#[test]
fn a_state_of_another_build_stops_the_start() {
    run(async {
        let folder = std::env::temp_dir().join(format!("agora-old-{}", hex0x(&digest::random::<6>())));
        let state = folder.join(".local");
        std::fs::create_dir_all(&state).expect("a folder");
        let written = r#"{"format":0,"tables":"x","build":"agora-local 0.0.9 (abc1234)"}"#;
        std::fs::write(state.join("version.json"), written).expect("a file");
        let refused = Command::new(binary()).current_dir(&folder).env("PORT", "0").output();
        let refused = refused.unwrap_or_else(|error| panic!("{error}; run cargo build -p local first"));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success());
        for part in ["agora-local 0.0.9 (abc1234), in format 0", "cannot migrate it", "\n    local/reset.sh\n"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(std::fs::read_to_string(state.join("version.json")).expect("the file"), written);

        // A state from before versions were stored: its tables show whether it is ours.
        std::fs::remove_file(state.join("version.json")).expect("no version");
        let stack = crate::support::stack().await;
        let start = || {
            let options = local::Options::in_memory(stack.chain.clone().unwrap());
            local::Stack::start(local::Options { state: Some(state.clone()), ..options })
        };
        let mark = state.join("version.json");
        start().await.expect("a new state is ours").kill().await;
        let version = std::fs::read_to_string(&mark).expect("it is marked");
        std::fs::remove_file(&mark).expect("no version");
        let ours = start().await.expect("tables as ours");
        assert_eq!(std::fs::read_to_string(&mark).expect("it is marked again"), version);
        make_anew_without_indexes(&ours.app.db).await;
        ours.kill().await;
        std::fs::remove_file(&mark).expect("no version");
        let refused = start().await.err().expect("other tables").to_string();
        assert!(
            refused.contains("whose table agora-jobs is another") && refused.contains("local/reset.sh"),
            "{refused}"
        );
        assert!(!mark.exists());
        std::fs::remove_dir_all(&folder).expect("an end");
    });
}

/// Recreates the jobs table without indexes, so that it matches no build.
async fn make_anew_without_indexes(db: &platform::store::Db) {
    use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
    let (client, name) = (db.client(), &db.tables.jobs);
    client.delete_table().table_name(name).send().await.expect("no table");
    let mut request = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    for (part, kind) in [("pk", KeyType::Hash), ("sk", KeyType::Range)] {
        let attribute = AttributeDefinition::builder().attribute_name(part).attribute_type(ScalarAttributeType::S);
        let key = KeySchemaElement::builder().attribute_name(part).key_type(kind);
        request = request.attribute_definitions(attribute.build().unwrap()).key_schema(key.build().unwrap());
    }
    request.send().await.expect("a table");
}
