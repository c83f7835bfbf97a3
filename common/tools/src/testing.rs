//! Runs single tools in tests: no gate, no job, nothing stored.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Clock;
use base::ids::{AgentId, RequestId};
use evm::Address;
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use platform::store::Db;
use platform::store::blob::S3Blobs;
use serde_json::Value;

use super::{Output, Reporter, Runner, Task, ToolError, Toolbox};

/// A toolbox configured by these environment variables.
pub fn toolbox(variables: &[(&str, &str)]) -> Arc<Toolbox> {
    toolbox_at(variables, Clock::system(), FetchPolicy::default())
}

/// The same with the test's own clock and fetch policy.
pub fn toolbox_at(variables: &[(&str, &str)], clock: Clock, policy: FetchPolicy) -> Arc<Toolbox> {
    let given = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let pay_to = |name: &str| (name == "PAY_TO").then(|| "0x00000000000000000000000000000000000000ff".to_owned());
    let config = Arc::new(Config::read(|name| given(name).or_else(|| pay_to(name))).expect("a configuration"));
    let connections = Connections::open(&config).expect("connections");
    let db = Db::new(connections.aws.dynamodb(), config.tables.clone());
    let blobs = Arc::new(S3Blobs::new(connections.signed.clone(), "agora"));
    let Connections { http, signed, .. } = connections;
    Arc::new(Toolbox::new(config, clock, db, blobs, &http, &signed, policy).expect("a toolbox"))
}

/// Runs a tool on a validated input.
pub async fn run(toolbox: &Arc<Toolbox>, runner: &Runner, input: Value) -> Result<Output, ToolError> {
    let Value::Object(input) = input else { panic!("an input is an object") };
    let task = Task {
        tool: runner.spec,
        locked: Default::default(),
        price: runner.spec.price.of(&input),
        input,
        request_id: RequestId::random(),
        receipt_id: None,
        agent: AgentId::of(Address::ZERO),
        wallet_signed: true,
        token: None,
        funds: None,
        is_over: false,
        deadline: toolbox.clock.now().plus(Duration::from_secs(60)),
        reporter: Reporter::default(),
    };
    (runner.run)(toolbox.clone(), task).await
}
