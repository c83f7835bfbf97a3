use std::sync::Arc;

use aws_lambda_events::event::apigw::ApiGatewayWebsocketProxyRequest;
use gate::app::App;
use gate::push::Sender;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use platform::config::Config;
use platform::connections::Connections;
use socket::Socket;
use tools::spec::NOTHING;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let sender = Sender::new(&config, &connections.http)?;
    let socket = Socket { app: App::new(config, &connections, &NOTHING), sender };
    socket.app.db.warm(&socket.app.config.tables.jobs).await;
    let socket = &socket;
    let handler = |event: LambdaEvent<ApiGatewayWebsocketProxyRequest>| async move {
        Ok::<_, Error>(socket.handle(event.payload).await)
    };
    lambda_runtime::run(service_fn(handler)).await
}
