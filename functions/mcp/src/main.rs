use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use common::app::Connections;
use common::config::Config;
use common::gate::Gate;
use common::marketplace::Market;
use common::secrets::ServiceKeys;
use common::tools::Runner;

/// What this function runs itself; the rest is the worker's and the executor's.
static RUNNERS: LazyLock<Vec<&'static Runner>> =
    LazyLock::new(|| knowledge::RUNNERS.iter().chain(credits::RUNNERS).copied().collect());

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let cursors = ServiceKeys::load(&config, &connections.signed).await?.cursors;
    let gate = Arc::new(Gate::open(&connections, config.clone(), &RUNNERS).await?);
    let market = Arc::new(Market::open(&connections, config, souls::RUNNERS).await?);
    let app = gate.app.clone();
    let groups = HashMap::from([
        (knowledge::GROUP, knowledge::router(gate.clone())),
        ("credits", credits::router(gate.clone(), None)),
        ("souls", souls::router(market)),
        ("requests", ::requests::router(app.clone())),
        ("account", account::router(app.clone())),
        ("insights", insights::router(app.clone(), cursors)),
    ]);
    app.db.warm(&app.config.tables.jobs).await;
    lambda_http::run(mcp::router(app, groups, &gate.quote_key)).await
}
