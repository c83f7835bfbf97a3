use std::sync::Arc;

use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;
use common::marketplace::Market;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let market = Market::open(&Connections::open(&config)?, config, &CATALOG, seller::RUNNERS).await?;
    market.app.db.warm(&market.app.config.tables.souls).await;
    common::http::lambda::run(seller::router(Arc::new(market))).await
}
