use std::sync::Arc;

use approvals::ApprovalsState;
use catalog::CATALOG;
use gate::app::{self, App};
use gate::approvals::Notices;
use gate::secrets::ServiceKeys;
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let signer = ServiceKeys::load(&config, &connections.signed).await?.receipts;
    let notices = Notices::new(&config)?;
    let queue = app::job_queue(&config, &connections)?;
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.agents).await;
    platform::http::lambda::run(approvals::router(ApprovalsState { app, signer, notices, queue })).await
}
