//! What the operator's commands share: they find tables and blobs as the functions do, by `TABLE_PREFIX`, `AWS_REGION` and credentials,
//! or by `AWS_ENDPOINT_URL` and `BLOB_FOLDER` of the local stack.

use std::process::ExitCode;
use std::sync::Arc;

use base::clock::Clock;
use catalog::CATALOG;
use gate::app::App;
use platform::config::Config;
use platform::connections::Connections;
use platform::http::log;
use platform::store::Blobs;

use crate::blobs::FolderBlobs;

/// Prints how a command ended.
pub fn exit(ended: Result<String, String>) -> ExitCode {
    match ended {
        Ok(done) => {
            log::print(format_args!("{done}"));
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// The deployment of the environment.
///
/// # Errors
/// Every problem of the configuration, in words.
pub fn app() -> Result<App, String> {
    // PAY_TO is required by the configuration but not used by commands.
    let nowhere = "0x0000000000000000000000000000000000000001";
    let variable = |name: &str| std::env::var(name).ok().or_else(|| (name == "PAY_TO").then(|| nowhere.to_owned()));
    let config = Config::read(variable).map_err(|errors| errors.to_string())?;
    let connections = Connections::open(&config).map_err(|error| error.to_string())?;
    Ok(App::new(Arc::new(config), &connections, &CATALOG))
}

/// The blobs of the environment: the bucket `BLOB_BUCKET`, or the folder `BLOB_FOLDER`.
///
/// # Errors
/// If neither is set, or the configuration has problems.
pub fn blobs() -> Result<Arc<dyn Blobs>, String> {
    if let Ok(folder) = std::env::var("BLOB_FOLDER") {
        return Ok(Arc::new(FolderBlobs::new(folder.into(), "http://localhost", Clock::system())));
    }
    if std::env::var_os("BLOB_BUCKET").is_none() {
        return Err("set BLOB_BUCKET, or for the local stack BLOB_FOLDER=.local/blobs".to_owned());
    }
    Ok(app()?.blobs)
}
