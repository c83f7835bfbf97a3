//! Takes a site off the host of sites, or puts it back (docs/BUILD.md): `take-down-site <build id> on|off`. Finds the tables as
//! the functions do: `TABLE_PREFIX`, `AWS_REGION` and credentials, or `AWS_ENDPOINT_URL` of the local stack.

use std::process::ExitCode;

use local::operator;
use tools_build::site::{self, Switched};
use uuid::Uuid;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    operator::exit(run().await)
}

async fn run() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (build, is_down) = match &arguments[..] {
        [build, word] if word == "on" || word == "off" => (build, word == "on"),
        _ => return Err("usage: take-down-site <build id> on|off".to_owned()),
    };
    // Also its address, which ends with the id.
    let id = build.trim_end_matches('/').rsplit(['/', '-']).next().filter(|id| id.len() == 32).unwrap_or(build);
    let build = Uuid::try_parse(id).map_err(|_| format!("{build} is no build id and no address of a site"))?;
    let app = operator::app()?;
    match site::switch(&app.db, build, is_down).await.map_err(|error| error.to_string())? {
        Switched::Done if is_down => Ok(format!("{build} is taken down; to put it back: take-down-site {build} off")),
        Switched::Done => Ok(format!("{build} is shown")),
        Switched::NoSite => Err(format!("there is no site {build}")),
        Switched::Changed => Err("the site has changed meanwhile; try again".to_owned()),
        Switched::Ended => Err("its time is over".to_owned()),
    }
}
