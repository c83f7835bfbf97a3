use std::sync::Arc;

use catalog::CATALOG;
use gate::app::App;
use gate::secrets::with_platforms;
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Config::from_env()?;
    let connections = Connections::open(&config)?;
    let config = Arc::new(with_platforms(config, &connections.signed).await?);
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.jobs).await;
    platform::http::lambda::run(requests::router(app)).await
}
