use std::sync::Arc;

use approvals::Desk;
use common::app::{self, App};
use common::approvals::Notices;
use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;
use common::secrets::ServiceKeys;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let signer = ServiceKeys::load(&config, &connections.signed).await?.receipts;
    let notices = Notices::new(&config)?;
    let queue = app::job_queue(&config, &connections)?;
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.agents).await;
    common::http::lambda::run(approvals::router(Desk { app, signer, notices, queue })).await
}
