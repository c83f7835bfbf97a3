use std::sync::Arc;

use catalog::CATALOG;
use gate::Gate;
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let gate = Gate::open(&connections, config, &CATALOG, &[]).await?;
    platform::http::lambda::run(network::router(Arc::new(gate))).await
}
