use std::sync::Arc;

use common::app::Connections;
use common::config::Config;
use common::gate::Gate;
use common::marketplace::Market;
use common::secrets::ServiceKeys;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Config::from_env()?;
    // What souls sell is another queue's.
    let mut souls = config.clone();
    souls.aws.queue_url = config.aws.soul_queue_url.clone();
    let config = Arc::new(config);
    let connections = Connections::open(&config)?;
    let cursors = ServiceKeys::load(&config, &connections.signed).await?.cursors;
    let gate = Arc::new(Gate::open(&connections, config, &mcp::RUNNERS).await?);
    let market = Arc::new(Market::open(&connections, Arc::new(souls), souls::RUNNERS).await?);
    let app = gate.app.clone();
    app.db.warm(&app.config.tables.jobs).await;
    let quotes = gate.quote_key.clone();
    common::http::lambda::run(mcp::router(app, mcp::groups(gate, market, cursors), &quotes)).await
}
