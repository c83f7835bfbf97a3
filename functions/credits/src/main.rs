use std::sync::Arc;

use common::app::Connections;
use common::config::Config;
use common::gate::Gate;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let cards = common::providers::Cards::configured(&config, &Connections::open(&config)?.http);
    let gate = Gate::open(config, credits::RUNNERS).await?;
    gate.app.db.warm(&gate.app.config.tables.jobs).await;
    lambda_http::run(credits::router(Arc::new(gate), cards)).await
}
