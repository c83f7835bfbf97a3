use std::sync::Arc;

use catalog::CATALOG;
use gate::Gate;
use gate::secrets::ServiceKeys;
use market::Market;
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let keys = ServiceKeys::load(&config, &connections.signed).await?;
    let gate = Arc::new(Gate::open(&connections, config.clone(), &CATALOG, &mcp::RUNNERS).await?);
    let market = Arc::new(Market::open(&connections, config, &CATALOG, souls::RUNNERS).await?);
    let app = gate.app.clone();
    app.db.warm(&app.config.tables.jobs).await;
    let quotes = gate.quote_key.clone();
    platform::http::lambda::run(mcp::router(app, mcp::groups(gate, market, keys.cursors, keys.webhooks), &quotes)).await
}
