//! What the operator's commands share: they find tables and blobs as the functions do, by `TABLE_PREFIX`, `AWS_REGION` and credentials,
//! or by `AWS_ENDPOINT_URL` and `BLOB_FOLDER` of the local stack.

use std::process::ExitCode;
use std::sync::Arc;

use base::clock::Clock;
use catalog::CATALOG;
use gate::app::App;
use gate::secrets::ServiceKeys;
use ledger::signing::{self, ReceiptSigner};
use platform::config::Config;
use platform::connections::Connections;
use platform::http::log;
use platform::store::{Blobs, Queue};

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

/// The deployment's key that signs receipts, from `SERVICE_SECRET_ARN` or `SERVICE_SECRET`.
///
/// # Errors
/// If it cannot be read, or if it is another deployment's.
pub async fn signer(app: &App) -> Result<ReceiptSigner, String> {
    let connections = Connections::open(&app.config).map_err(|error| error.to_string())?;
    let keys = ServiceKeys::load(&app.config, &connections.signed).await.map_err(|error| error.to_string())?;
    let published = signing::published(&app.db).await.map_err(|error| error.to_string())?;
    match published.contains(&keys.receipts.public()) {
        true => Ok(keys.receipts),
        false => Err("the service's secret is another deployment's: its key is not published here".to_owned()),
    }
}

/// The queue of jobs, if `JOB_QUEUE_URL` names it.
///
/// # Errors
/// If AWS cannot be reached with this configuration.
pub fn job_queue(app: &App) -> Result<Option<Arc<dyn Queue>>, String> {
    if app.config.aws.queue_url.is_none() {
        return Ok(None);
    }
    let connections = Connections::open(&app.config).map_err(|error| error.to_string())?;
    gate::app::job_queue(&app.config, &connections).map(Some).map_err(|error| error.to_string())
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
