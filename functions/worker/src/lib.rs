//! The worker: takes jobs from the queue and completes them, or hands them over to sellers' workers. It also takes received mail
//! from a queue of its own, so that a flood of it uses up no place of jobs.

use std::sync::LazyLock;

use catalog::{CATALOG, CHORES};
use futures_util::future::join_all;
use gate::jobs::Engine;
use platform::http::log;
use platform::store::StoreError;
use platform::store::queue::Message;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tools::availability;
use tools::spec::ToolSpec;
use tools::{Runner, top_up};
use tools_voice::inbound;

/// Every tool, top-ups, and calls that agents' numbers answered: direct calls that their own function left unfinished end here
/// too.
pub static RUNNERS: LazyLock<Vec<&'static Runner>> =
    LazyLock::new(|| catalog::RUNNERS.iter().copied().chain([&top_up::RUNNER, &inbound::RUNNER]).collect());

/// The queue's event; only the members that are read.
#[derive(Debug, Deserialize)]
pub struct SqsEvent {
    #[serde(rename = "Records", default)]
    pub records: Vec<SqsRecord>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsRecord {
    pub message_id: String,
    #[serde(default)]
    pub body: String,
}

/// The messages that the queue should deliver again.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsAnswer {
    pub batch_item_failures: Vec<BatchItemFailure>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItemFailure {
    pub item_identifier: String,
}

/// Works on a batch. Only the messages that failed are reported.
pub async fn handle(engine: &Engine, event: SqsEvent) -> SqsAnswer {
    each(event, |message| work_on(engine, message)).await
}

/// Handles the messages of a batch concurrently: most of the time goes to waiting for other servers.
pub async fn each<F>(event: SqsEvent, work: impl Fn(Message) -> F) -> SqsAnswer
where
    F: Future<Output = Result<(), StoreError>>,
{
    let work = event.records.into_iter().map(|record| {
        let work = Message::parse(&record.body).map(&work);
        async move {
            let done = match work {
                Ok(work) => work.await,
                Err(unreadable) => Err(unreadable),
            };
            let cause = done.err()?;
            log::failure(&format!("message {} failed", record.message_id), &cause);
            Some(BatchItemFailure { item_identifier: record.message_id })
        }
    });
    SqsAnswer { batch_item_failures: join_all(work).await.into_iter().flatten().collect() }
}

async fn work_on(engine: &Engine, message: Message) -> Result<(), StoreError> {
    let started = engine.clock.now();
    let since = || engine.clock.now().millis() - started.millis();
    match message {
        Message::Job { request_id, trace } => {
            engine.run(request_id).await?;
            log::event("job", json!({"request_id": request_id, "ms": since(), "trace": trace}));
        }
        Message::Trial { soul, service, due, daily } => {
            if let Some(sellers) = &engine.sellers {
                sellers.try_out(&soul, &service, due, daily).await?;
            }
            log::event("trial", json!({"soul": soul, "service": service, "ms": since()}));
        }
        Message::Availability {} => {
            let own = engine.runners.iter().map(|runner| runner.spec).filter(|tool| tool.own.is_some());
            let tools: Vec<&ToolSpec> = CATALOG.iter().copied().chain(own).collect();
            let lacking = engine.toolbox.lacking(&tools).await?;
            if availability::publish(&engine.db, &lacking).await? {
                // The names only: `doctor` and the list of tools say what each lacks.
                log::event("availability", json!({"lacking": lacking.names().collect::<Vec<_>>()}));
            }
        }
        Message::Chores {} => {
            let each: Vec<_> = CHORES.iter().map(|chore| Message::Chore { name: chore.name.to_owned() }).collect();
            engine.queues.tools.send_all(&each).await?;
        }
        Message::Chore { name } => {
            // One that is not known is of another version of the service.
            let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else { return Ok(()) };
            let done = (chore.run)(&engine.toolbox).await?;
            if !done.counts.is_null() {
                log::event("chore", json!({"name": name, "done": done.counts, "ms": since()}));
            }
            if done.more {
                engine.queues.tools.send(&Message::Chore { name }).await?;
            }
        }
        Message::Mail { event, mail } => {
            tools_email::events::take(&engine.toolbox, mail, &event).await?;
            log::event("mail", json!({"ms": since()}));
        }
        Message::Lead(lead) => tools_build::leads::deliver(&engine.toolbox, &lead).await?,
        Message::Delivery { .. } => return Err(StoreError::new("deliveries belong in their own queue")),
        Message::Page { .. } | Message::Unlist { .. } | Message::Visit { .. } => {
            return Err(StoreError::new("messages for the index belong in its own queue"));
        }
    }
    Ok(())
}
