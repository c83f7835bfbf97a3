use std::sync::Arc;

use common::app::App;
use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.ledger).await;
    common::http::lambda::run(account::router(app)).await
}
