use std::sync::Arc;

use catalog::CATALOG;
use market::checkout::Checkout;
use platform::config::Config;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let checkout = Checkout::open(Config::from_env()?, &CATALOG, checkout::RUNNERS).await?;
    checkout.app.db.warm(&checkout.app.config.tables.jobs).await;
    platform::http::lambda::run(checkout::router(Arc::new(checkout))).await
}
