//! Receivers written with the reference libraries of Standard Webhooks accept our signatures.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{installed, python_of};
use crate::support::{Payer, children, run, stack_with};

struct Program {
    lines: Lines<BufReader<ChildStdout>>,
    secrets: ChildStdin,
    port: u64,
    _process: Child,
}

impl Program {
    async fn start(mut command: Command) -> Program {
        let mut process = children::start(command.stdin(Stdio::piped()));
        let lines = BufReader::new(process.stdout.take().expect("its lines")).lines();
        let secrets = process.stdin.take().expect("its input");
        let mut program = Program { lines, secrets, port: 0, _process: process };
        program.port = program.says().await["port"].as_u64().expect("a port");
        program
    }

    async fn says(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("a line").expect("a line more");
        serde_json::from_str(&line).expect("JSON")
    }

    async fn learns(&mut self, secret: &str) {
        self.secrets.write_all(format!("{secret}\n").as_bytes()).await.expect("it listens");
        // It reads while it answers.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

#[test]
fn the_reference_libraries_accept_our_signatures() {
    run(async {
        let Some(folder) = installed("webhooks").await else { return };
        let python = match python_of(&folder).await {
            Ok(python) => python,
            Err(cause) if std::env::var_os("REQUIRE_CLIENTS").is_some() => panic!("{cause}"),
            Err(cause) => return eprintln!("LEFT OUT: the Python library does not install here: {cause}"),
        };
        let program = |runs: &Path, file: &str| {
            let mut command = Command::new(runs);
            command.arg(folder.join(file)).current_dir(&folder);
            Program::start(command)
        };
        let mut receivers = [program(Path::new("node"), "receiver.mjs").await, program(&python, "receiver.py").await];
        let allowed = receivers.iter().map(|receiver| format!("127.0.0.1:{}", receiver.port)).collect::<Vec<_>>();
        let stack = stack_with(|options| options.with("LOCAL_FETCH_ALLOW", allowed.join(","))).await;
        let payer = Payer::with(&stack, 0).await;
        for receiver in &mut receivers {
            let url = format!("http://127.0.0.1:{}/", receiver.port);
            let hook = crate::webhooks::create(&payer, &json!({"url": url})).await;
            let path = format!("/v1/webhooks/{}", hook["id"].as_str().unwrap());
            let test = async || payer.change("POST", &format!("{path}/test"), &json!({})).await;
            let first = hook["secret"].as_str().unwrap();
            receiver.learns(first).await;
            let sent = test().await.json()["data"]["event_id"].clone();
            assert_eq!(receiver.says().await, json!({"verified": true, "type": "webhook.test", "id": sent}));

            // During a rotation the old and the new secret are valid; afterwards only the new one.
            let rotate = |body: Value| {
                let path = format!("{path}/rotate-secret");
                let payer = payer.clone();
                async move { payer.change("POST", &path, &body).await.json()["data"]["secret"].as_str().unwrap().to_owned() }
            };
            let second = rotate(json!({})).await;
            test().await;
            assert_eq!(receiver.says().await["verified"], true, "the old one");
            receiver.learns(&second).await;
            test().await;
            assert_eq!(receiver.says().await["verified"], true, "the new one");
            rotate(json!({"overlap_hours": 0})).await;
            test().await;
            assert_eq!(receiver.says().await["verified"], false, "neither of the two");
        }
    });
}
