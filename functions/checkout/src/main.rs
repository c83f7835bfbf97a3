use std::sync::Arc;

use common::catalog::list::CATALOG;
use common::checkout::Checkout;
use common::config::Config;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let desk = Checkout::open(Config::from_env()?, &CATALOG, checkout::RUNNERS).await?;
    desk.app.db.warm(&desk.app.config.tables.jobs).await;
    common::http::lambda::run(checkout::router(Arc::new(desk))).await
}
