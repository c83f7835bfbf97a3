//! The executor: does the work of souls' services, by a model or by a seller's program. No other function runs sellers'
//! code.

pub mod program;

use std::sync::Arc;

use gate::app::App;
use gate::secrets::ServiceKeys;
use gate::work::ToolAccess;
use gate::work::model::ModelExecutor;
use market::service_runner::SoulServiceRunner;
use market::webhook;
use platform::store::StoreError;
use tools::{Runner, Toolbox};

/// The runner for sold work: the configured model, programs, and the tools that both may call.
pub fn service_runner(
    app: &App,
    keys: &ServiceKeys,
    toolbox: &Arc<Toolbox>,
    runners: &'static [&'static Runner],
) -> Result<SoulServiceRunner, StoreError> {
    let access = ToolAccess { runners, catalog: app.catalog, toolbox: toolbox.clone() };
    let model = ModelExecutor::configured(access.clone());
    if model.is_none() && app.config.model.is_some() {
        return Err(StoreError::new(
            "MODEL_KEY is required with MODEL_PROVIDER=anthropic, and with openai unless MODEL_URL is set",
        ));
    }
    Ok(SoulServiceRunner {
        model: model.map(|model| Arc::new(model) as _),
        programs: Some(Arc::new(program::ProgramExecutor::new(access))),
        ..SoulServiceRunner::handing_over(app, toolbox, webhook::key(&keys.quotes))
    })
}
