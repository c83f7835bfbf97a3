use std::sync::Arc;

use catalog::CATALOG;
use gate::app::{self, App};
use gate::secrets::ServiceKeys;
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use webhooks::Hooks;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let keys = ServiceKeys::load(&config, &connections.signed).await?.webhooks;
    let queue = app::delivery_queue(&config, &connections)?;
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.agents).await;
    platform::http::lambda::run(webhooks::router(Hooks { app, queue, keys, policy: FetchPolicy::default() })).await
}
