use std::sync::Arc;

use common::app::Connections;
use common::config::Config;
use common::gate::Gate;
use common::marketplace::Market;
use common::secrets::ServiceKeys;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let cursors = ServiceKeys::load(&config, &connections.signed).await?.cursors;
    let gate = Arc::new(Gate::open(&connections, config.clone(), &mcp::RUNNERS).await?);
    let market = Arc::new(Market::open(&connections, config, souls::RUNNERS).await?);
    let app = gate.app.clone();
    app.db.warm(&app.config.tables.jobs).await;
    let quotes = gate.quote_key.clone();
    common::http::lambda::run(mcp::router(app, mcp::groups(gate, market, cursors), &quotes)).await
}
