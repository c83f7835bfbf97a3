use std::sync::Arc;

use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;
use common::gate::Gate;
use common::marketplace::Market;
use common::secrets::ServiceKeys;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let cursors = ServiceKeys::load(&config, &connections.signed).await?.cursors;
    let gate = Arc::new(Gate::open(&connections, config.clone(), &CATALOG, &mcp::RUNNERS).await?);
    let market = Arc::new(Market::open(&connections, config, &CATALOG, souls::RUNNERS).await?);
    let app = gate.app.clone();
    app.db.warm(&app.config.tables.jobs).await;
    let quotes = gate.quote_key.clone();
    common::http::lambda::run(mcp::router(app, mcp::groups(gate, market, cursors), &quotes)).await
}
