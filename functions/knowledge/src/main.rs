use std::sync::Arc;

use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;
use common::gate::Gate;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let gate = Gate::open(&connections, config, &CATALOG, &knowledge::RUNNERS).await?;
    gate.app.db.warm(&gate.app.config.tables.jobs).await;
    common::http::lambda::run(knowledge::router(Arc::new(gate))).await
}
