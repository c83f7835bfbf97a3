use std::sync::Arc;

use common::app::App;
use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;
use common::secrets::ServiceKeys;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let cursors = ServiceKeys::load(&config, &connections.signed).await?.cursors;
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.ledger).await;
    common::http::lambda::run(insights::router(app, cursors)).await
}
