use std::sync::Arc;

use common::app::{self, App};
use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;
use common::net::FetchPolicy;
use common::secrets::ServiceKeys;
use webhooks::Hooks;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let keys = ServiceKeys::load(&config, &connections.signed).await?.webhooks;
    let queue = app::delivery_queue(&config, &connections)?;
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.agents).await;
    common::http::lambda::run(webhooks::router(Hooks { app, queue, keys, policy: FetchPolicy::default() })).await
}
