//! Takes a soul off the market or puts it back (docs/DEPLOY.md): `suspend-soul <slug> on|off`. Finds the tables as the
//! functions do: `TABLE_PREFIX`, `AWS_REGION` and credentials, or `AWS_ENDPOINT_URL` of the local stack.

use std::process::ExitCode;

use local::operator;
use market::registry;
use platform::store::WriteError;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    operator::exit(run().await)
}

async fn run() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (slug, suspended) = match &arguments[..] {
        [slug, word] if word == "on" || word == "off" => (slug, word == "on"),
        _ => return Err("usage: suspend-soul <slug> on|off".to_owned()),
    };
    let slug = slug.parse().map_err(|what| format!("{slug} {what}"))?;
    let app = operator::app()?;
    match registry::suspend(&app, &slug, suspended).await {
        Ok(()) if suspended => Ok(format!("{slug} is off the market; to put it back: suspend-soul {slug} off")),
        Ok(()) => Ok(format!("{slug} is on the market")),
        Err(WriteError::Refused(_)) => Err(format!("there is no soul {slug}")),
        Err(WriteError::Failed(error)) => Err(error.to_string()),
    }
}
