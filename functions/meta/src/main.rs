use std::sync::Arc;

use common::app::{self, App};
use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    // Where no queue is named there is none to look at; nothing else here needs one.
    let queues =
        [("queue", app::job_queue(&config, &connections)), ("soul_queue", app::soul_queue(&config, &connections))];
    let queues = queues.into_iter().filter_map(|(name, queue)| Some((name, queue.ok()?))).collect();
    let app = App::new(config, &connections, &CATALOG);
    app.db.warm(&app.config.tables.ledger).await;
    common::http::lambda::run(meta::router(app, queues)).await
}
