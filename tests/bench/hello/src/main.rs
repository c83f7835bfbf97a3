use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let handler = |_: LambdaEvent<Value>| async { Ok::<_, Error>(json!({"statusCode": 200, "body": "hello"})) };
    lambda_runtime::run(service_fn(handler)).await
}
