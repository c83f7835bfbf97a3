use std::sync::Arc;

use catalog::CATALOG;
use gate::Gate;
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let cards = ledger::cards::Cards::configured(&config, &connections.http);
    let gate = Gate::open(&connections, config, &CATALOG, credits::RUNNERS).await?;
    gate.app.db.warm(&gate.app.config.tables.jobs).await;
    platform::http::lambda::run(credits::router(Arc::new(gate), cards)).await
}
