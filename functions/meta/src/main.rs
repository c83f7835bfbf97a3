use std::sync::Arc;

use catalog::CATALOG;
use gate::app::{self, App};
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    // A queue that is not configured is left out of the status; nothing else here needs queues.
    let queues =
        [("queue", app::job_queue(&config, &connections)), ("soul_queue", app::soul_queue(&config, &connections))];
    let queues = queues.into_iter().filter_map(|(name, queue)| Some((name, queue.ok()?))).collect();
    let app = App::new(config, &connections, &CATALOG);
    app.catalog.check(&app.config)?;
    app.db.warm(&app.config.tables.ledger).await;
    platform::http::lambda::run(meta::router(app, queues)).await
}
