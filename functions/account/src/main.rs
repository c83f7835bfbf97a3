use std::sync::Arc;

use catalog::CATALOG;
use gate::app::App;
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.ledger).await;
    platform::http::lambda::run(account::router(app)).await
}
