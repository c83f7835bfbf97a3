use std::sync::Arc;

use gate::app::App;
use hosting::Hosting;
use platform::config::Config;
use platform::connections::Connections;
use platform::store::queue::SqsQueue;
use tools::spec::NOTHING;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let url = config.aws.queue_url.clone().ok_or("JOB_QUEUE_URL is not set")?;
    let queue = Arc::new(SqsQueue::new(&connections.aws, &url));
    let app = App::new(config, &connections, &NOTHING);
    app.db.warm(&app.config.tables.agents).await;
    platform::http::lambda::run(hosting::router(Hosting::new(app, queue))).await
}
