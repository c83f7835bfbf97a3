use std::sync::Arc;

use common::app::App;
use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;
use common::secrets::with_platforms;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Config::from_env()?;
    let connections = Connections::open(&config)?;
    let config = Arc::new(with_platforms(config, &connections.signed).await?);
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.jobs).await;
    common::http::lambda::run(requests::router(app)).await
}
