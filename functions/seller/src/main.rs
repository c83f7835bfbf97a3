use std::sync::Arc;

use catalog::CATALOG;
use market::Market;
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let market = Market::open(&Connections::open(&config)?, config, &CATALOG, seller::RUNNERS).await?;
    market.app.db.warm(&market.app.config.tables.souls).await;
    platform::http::lambda::run(seller::router(Arc::new(market))).await
}
