//! Takes a soul off the market or puts it back (docs/DEPLOY.md): `suspend-soul <slug> on|off`. Finds the tables as the
//! functions do: `TABLE_PREFIX`, `AWS_REGION` and credentials, or `AWS_ENDPOINT_URL` of the local stack.

use std::process::ExitCode;
use std::sync::Arc;

use catalog::CATALOG;
use gate::app::App;
use market::registry;
use platform::config::Config;
use platform::connections::Connections;
use platform::store::WriteError;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(done) => {
            platform::http::log::print(format_args!("{done}"));
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (slug, suspended) = match &arguments[..] {
        [slug, word] if word == "on" || word == "off" => (slug, word == "on"),
        _ => return Err("usage: suspend-soul <slug> on|off".to_owned()),
    };
    let slug = slug.parse().map_err(|what| format!("{slug} {what}"))?;
    // PAY_TO is required by the configuration but not used here.
    let nowhere = "0x0000000000000000000000000000000000000001";
    let variable = |name: &str| std::env::var(name).ok().or_else(|| (name == "PAY_TO").then(|| nowhere.to_owned()));
    let config = Config::read(variable).map_err(|errors| errors.to_string())?;
    let connections = Connections::open(&config).map_err(|error| error.to_string())?;
    let app = App::new(Arc::new(config), &connections, &CATALOG);
    match registry::suspend(&app, &slug, suspended).await {
        Ok(()) if suspended => Ok(format!("{slug} is off the market; to put it back: suspend-soul {slug} off")),
        Ok(()) => Ok(format!("{slug} is on the market")),
        Err(WriteError::Refused(_)) => Err(format!("there is no soul {slug}")),
        Err(WriteError::Failed(error)) => Err(error.to_string()),
    }
}
