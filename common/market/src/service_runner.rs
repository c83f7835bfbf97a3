//! Runs sold jobs: hands over a text, runs a service on its executor, or leaves it to the seller's own worker.

use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use evm::Address;
use gate::app::App;
use gate::jobs::engine::{Attempted, ServiceRunner, Worked};
use gate::jobs::job::Job;
use gate::jobs::meter::JobMeter;
use gate::jobs::{slots as places, store};
use gate::work::checks::run_checks;
use gate::work::{self, Commission, Report, Spending, Unrecorded, Usage};
use ledger::earning::Sold;
use ledger::fee::Split;
use platform::http::log;
use platform::net::FetchError;
use platform::store::{Blobs, BoxFuture, Db, StoreError};
use ring::hmac;
use serde_json::{Value, json};
use tools::files::{self, FileRow, NotKept};
use tools::spec::Catalog;
use tools::{ErrorCode, Output, Source, ToolError, Toolbox, Unavailable};

use super::afford::{self, TextOf};
use super::offer;
use super::service::{self, Executor, Service, Terms};
use super::slots;
use super::soul::{self, Soul};
use super::trials::{self, Due, Trial, TrialMeter};
use super::webhook;

/// Timeout of a job webhook. A slow endpoint must not delay other sellers' jobs in the queue; the worker is reminded
/// later.
const TELL_FOR: Duration = Duration::from_secs(3);
/// Longest run of a model or a program on a job, including tool calls. Far below the function's own timeout, so that
/// the same process can record the result.
pub const MOST_EXECUTION: Duration = Duration::from_secs(300);

/// The gate's runner for jobs that souls sold.
#[derive(Clone)]
pub struct SoulServiceRunner {
    pub db: Db,
    pub blobs: Arc<dyn Blobs>,
    pub clock: Clock,
    /// Runs model services. Absent if the deployment has no model.
    pub model: Option<Arc<dyn work::Executor>>,
    /// Runs sellers' programs. Absent in functions that only hand texts over.
    pub programs: Option<Arc<dyn work::Executor>>,
    /// Has the guarded HTTP client that sends webhooks, because their URLs come from sellers.
    pub toolbox: Arc<Toolbox>,
    pub webhook_key: hmac::Key,
    /// The tools that services may use.
    pub catalog: &'static Catalog,
}

impl ServiceRunner for SoulServiceRunner {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Attempted> {
        Box::pin(async move {
            let mut used = job.used;
            let outcome = match &job.sold {
                None => Err(ToolError::internal("the job has no seller")),
                Some(sold) => match &sold.service {
                    None => self.hand_text_over(job, sold).await.map(Worked::Done),
                    Some(service) => self.execute(job, sold, service, &mut used).await,
                },
            };
            Attempted { outcome: outcome.map_err(|error| without_secrets(error, used)), used }
        })
    }

    fn try_out<'a>(
        &'a self,
        soul: &'a str,
        service: &'a str,
        due: Timestamp,
        daily: bool,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (Ok(soul), Ok(service)) = (soul.parse(), service.parse()) else { return Ok(()) };
            let taken = Due { soul, service, due, daily };
            let found = soul::load_latest(&self.db, taken.soul.as_str()).await?.filter(Soul::is_active);
            let offered = service::load_latest(&self.db, taken.soul.as_str(), taken.service.as_str()).await?;
            let (Some(found), Some(offered)) = (found, offered.filter(trials::can_be_tried)) else {
                return trials::end(&self.db, &taken).await;
            };
            let now = self.clock.now();
            if trials::is_spare(&taken, offered.trial.as_ref(), now) {
                return trials::end(&self.db, &taken).await;
            }
            let name = format!("{}#{}", taken.soul, taken.service);
            let Some(slots) = slots::take_for_trial(&self.db, &name, trials::MOST_TIME, now).await? else {
                // The row becomes due again later.
                return Ok(());
            };
            let tried = async {
                if !trials::take_turn(&self.db, &taken.soul, now).await? {
                    return Ok(None);
                }
                self.run_cases(&found, &offered).await
            };
            let trial = tried.await;
            slots.release(&self.db, self.clock.now()).await;
            trials::keep(&self.db, &taken, trial?.as_ref(), self.clock.now()).await
        })
    }

    fn remind<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(Sold { soul, service: Some(service), terms, .. }) = &job.sold else { return };
            match service::load_terms(&self.db, soul, service, *terms).await {
                Ok(Some(terms)) => self.tell(job, soul, service, &terms).await,
                Ok(None) => {}
                Err(error) => log::failure("a worker could not be reminded", &error),
            }
        })
    }
}

impl SoulServiceRunner {
    /// A runner that hands over texts, and leaves services to sellers' workers. It executes nothing itself.
    pub fn handing_over(app: &App, toolbox: &Arc<Toolbox>, webhook_key: hmac::Key) -> SoulServiceRunner {
        SoulServiceRunner {
            db: app.db.clone(),
            blobs: app.blobs.clone(),
            clock: app.clock.clone(),
            model: None,
            programs: None,
            toolbox: toolbox.clone(),
            webhook_key,
            catalog: app.catalog,
        }
    }

    /// Runs a service's test cases in sequence, without tools and without a buyer. `None` if a result would say nothing
    /// about the service.
    async fn run_cases(&self, soul: &Soul, service: &Service) -> Result<Option<Trial>, StoreError> {
        let terms = &service.terms;
        let executor = match terms.executor {
            Executor::Model => self.model.as_ref(),
            Executor::Program if terms.program.is_some() => self.programs.as_ref(),
            Executor::Program | Executor::Worker => None,
        };
        let Some(executor) = executor else { return Ok(None) };
        let (soul_md, program) = self.materials(soul, terms).await?;
        let end = self.clock.now().plus(trials::MOST_TIME);
        let mut trial = Trial {
            version: terms.version,
            passed: 0,
            total: u32::try_from(service.test_cases.len()).unwrap_or(u32::MAX),
            failures: Vec::new(),
            at: self.clock.now(),
        };
        for case in &service.test_cases {
            let commission = Commission {
                request_id: RequestId::random(),
                // There is no buyer, and no tool is allowed.
                agent: AgentId::of(Address::ZERO),
                soul: soul.slug.to_string(),
                soul_md: soul_md.clone(),
                service_name: terms.name.clone(),
                service_description: service.description.clone(),
                input: case.input.clone(),
                output_schema: terms.output_schema.clone(),
                tools: Vec::new(),
                program: program.clone(),
                deadline: self.clock.now().plus(Duration::from_secs(trials::CASE_SECS)).min(end),
            };
            let mut spending = match terms.executor {
                Executor::Model => {
                    // The model budget of a case: what a sale would pay for, limited by the rest of the soul's day.
                    let left = trials::model_left(&self.db, &soul.slug, self.clock.now()).await?;
                    let model = Split::of(terms.price, self.toolbox.config.prices.platform_fee).fee.min(left);
                    if self.least_for_model(soul, service, &case.input).is_none_or(|least| model < least) {
                        return Ok(None);
                    }
                    let meter = TrialMeter::new(&self.db, &soul.slug, &self.clock);
                    Spending::new(Usage { tools: Usdc::ZERO, model }, Usage::NONE, meter)
                }
                Executor::Program | Executor::Worker => Spending::new(Usage::NONE, Usage::NONE, Unrecorded),
            };
            let why = match executor.run(&commission, &mut spending).await.outcome {
                // An internal error, or the day's model budget is used up: not the service's fault.
                Err(error) if error.code == ErrorCode::InternalError => return Ok(None),
                Err(error) => Some(error.message),
                Ok(work) => broken_promise(terms, &work.result).or_else(|| {
                    let failed = run_checks(&case.checks, &work.result);
                    failed.first().map(|failed| format!("check {} {}: {}", failed.index, failed.path, failed.message))
                }),
            };
            match why {
                None => trial.passed += 1,
                Some(why) => trial.failures.push(format!("{}: {why}", case.name).chars().take(300).collect()),
            }
        }
        Ok(Some(trial))
    }

    /// The least that the model costs for this input.
    fn least_for_model(&self, soul: &Soul, service: &Service, input: &Value) -> Option<Usdc> {
        let prices = self.toolbox.config.model.as_ref()?.prices;
        let outline = afford::outline(self.catalog, TextOf::soul(soul), &service.terms, service.description.as_deref());
        Some(outline.least_budget(prices, u64::try_from(input.to_string().len()).ok()?))
    }

    /// A soul's text, and the program of these terms.
    async fn materials(&self, soul: &Soul, terms: &Terms) -> Result<(String, Option<Vec<u8>>), StoreError> {
        let soul_md = soul::load_text(&*self.blobs, &soul.text_hash).await?;
        let program = match terms.executor {
            Executor::Program => service::load_program(&*self.blobs, terms).await?,
            Executor::Model | Executor::Worker => None,
        };
        Ok((soul_md, program))
    }

    async fn hand_text_over(&self, job: &Job, sold: &Sold) -> Result<Output, ToolError> {
        let read = async {
            let soul = self.soul(&sold.soul).await?;
            let version = soul::load_version(&self.db, &sold.soul, sold.terms).await?;
            let version =
                version.ok_or_else(|| StoreError::new(format_args!("{} has no text {}", sold.soul, sold.terms)))?;
            let text = soul::load_text(&*self.blobs, &version.hash).await?;
            Ok::<Value, StoreError>(offer::handed_over(&soul, &version, &text, sold.split, &job.created.to_string()))
        };
        let result = read.await.map_err(|error| {
            log::failure("a text could not be read", &error);
            ToolError::internal("the soul's text could not be read")
        })?;
        Ok(Output::new(result, Source::embedded("marketplace")))
    }

    async fn soul(&self, slug: &str) -> Result<Soul, StoreError> {
        let soul = soul::load(&self.db, slug).await?;
        soul.ok_or_else(|| StoreError::new(format_args!("the soul {slug} is gone")))
    }

    async fn execute(&self, job: &Job, sold: &Sold, service: &str, used: &mut Usage) -> Result<Worked, ToolError> {
        let fault = |error: StoreError| {
            log::failure("a service's terms could not be read", &error);
            ToolError::internal("the service's terms could not be read")
        };
        let terms = service::load_terms(&self.db, &sold.soul, service, sold.terms).await.map_err(fault)?;
        let terms = terms.ok_or_else(|| ToolError::internal("the service's terms are gone"))?;
        let executor = match terms.done_by(self.model.is_some()) {
            Executor::Model => self.model.as_ref(),
            Executor::Program => Some(self.programs.as_ref().ok_or_else(work::not_configured)?),
            Executor::Worker => None,
        };
        let (now, promised) = (self.clock.now(), Duration::from_secs(terms.deadline_seconds.into()));
        let Some(executor) = executor else {
            return Ok(Worked::HandedOver { until: now.plus(promised), again_after: None });
        };
        let Some(slots) = slots::take(&self.db, &sold.soul, job.agent, job.request_id, now).await.map_err(fault)?
        else {
            return Ok(Worked::Busy);
        };
        let work = async {
            let until = self.clock.now().plus(promised.min(MOST_EXECUTION));
            let mut input = job.input.read(&*self.blobs).await?;
            let input = input.remove("input").unwrap_or_default();
            let commission = self.commission(job, sold, &terms, input, until).await.map_err(fault)?;
            let budget = terms.budget_within(sold.split, self.model.is_some()).at_most(sold.kept_up_to);
            let mut spending = Spending::new(budget, job.used, JobMeter::new(&self.db, &self.clock, job));
            let report = executor.run(&commission, &mut spending).await;
            *used = spending.used();
            self.keep(job, &terms, report).await.map(Worked::Done)
        };
        let worked = work.await;
        slots.release(&self.db, self.clock.now()).await;
        worked
    }

    async fn commission(
        &self,
        job: &Job,
        sold: &Sold,
        terms: &Terms,
        input: Value,
        deadline: Timestamp,
    ) -> Result<Commission, StoreError> {
        let soul = self.soul(&sold.soul).await?;
        let service = match &sold.service {
            Some(service) => service::load(&self.db, &sold.soul, service).await?,
            None => None,
        };
        let (soul_md, program) = self.materials(&soul, terms).await?;
        Ok(Commission {
            request_id: job.request_id,
            agent: job.agent,
            soul: sold.soul.clone(),
            soul_md,
            service_name: terms.name.clone(),
            service_description: service.and_then(|service| service.description),
            input,
            output_schema: terms.output_schema.clone(),
            tools: terms.tools.clone(),
            program,
            deadline,
        })
    }

    /// Checks a result against the terms, and stores its files.
    async fn keep(&self, job: &Job, terms: &Terms, report: Report) -> Result<Output, ToolError> {
        let work = report.outcome?;
        if let Some(broken) = broken_promise(terms, &work.result) {
            return Err(ToolError::unavailable(Unavailable::SellerFailed, broken));
        }
        let mut kept = Vec::new();
        for file in work.files {
            let row = FileRow::of(&file.path, &file.content_type, file.bytes.len() as u64, self.clock.now());
            let held = store::held(&self.db, job);
            let put = async { files::keep(&self.db, &*self.blobs, job.files(), held?, row, Some(file.bytes)).await };
            match put.await {
                Ok(Ok(())) => kept.push(file.path),
                Ok(Err(NotKept::Full { why, .. })) => {
                    return Err(ToolError::unavailable(Unavailable::SellerFailed, why));
                }
                // Another attempt holds the job, so this one's result would be refused.
                Ok(Err(NotKept::Lost | NotKept::Busy)) => return Err(ToolError::internal("another attempt took over")),
                Err(error) => {
                    log::failure("a file could not be kept", &error);
                    return Err(ToolError::internal("a file of the result could not be kept"));
                }
            }
        }
        let mut result = result_of(job, &work.result);
        if !kept.is_empty() {
            result["files"] = json!(kept);
        }
        for (name, value) in [("model_used", json!(work.model_used)), ("tokens_used", json!(work.tokens_used))] {
            if !value.is_null() {
                result[name] = value;
            }
        }
        if !report.tools_used.is_empty() {
            result["tools_used"] = json!(report.tools_used);
        }
        let source = Source { provider: work.provider, request_id: work.provider_request_id, mode: work.mode };
        Ok(Output::new(result, source))
    }

    /// Sends a service's job webhook, if it has one. Failures are harmless: the worker can still claim the job, and is
    /// reminded.
    async fn tell(&self, job: &Job, soul: &str, service: &str, terms: &Terms) {
        let Some(url) = &terms.webhook_url else { return };
        // Sellers' endpoints that answer nothing must not hold up the workers either.
        let (holder, now) = (job.request_id.to_string(), self.clock.now());
        let hosts = [places::of_hosts(self.toolbox.config.host_places)];
        let place = match places::take(&self.db, &hosts, holder, TELL_FOR, now).await {
            Ok(Some(place)) => place,
            Ok(None) => return log::event("webhook", json!({"soul": soul, "service": service, "error": "no place"})),
            Err(error) => return log::failure("no place could be taken to remind a worker", &error),
        };
        let secret = webhook::secret(&self.webhook_key, soul, service, terms.webhook_number);
        let body = json!({
            "type": "soul.job.created",
            "timestamp": self.clock.now().to_string(),
            "data": {"id": job.request_id.soul_job(), "job_id": job.request_id, "soul": soul, "service": service},
        });
        let body = body.to_string();
        let headers = webhook::signed(&secret, &job.request_id.soul_job(), &body, self.clock.now());
        let told = tokio::time::timeout(TELL_FOR, self.toolbox.fetcher.post(url, &headers, body.into_bytes(), 0));
        match told
            .await
            .unwrap_or_else(|_| Err(FetchError::NotReachable("no answer in time".to_owned())))
            .map(|posted| posted.status)
        {
            Ok(200..=299) => {}
            Ok(status) => log::event("webhook", json!({"soul": soul, "service": service, "status": status})),
            Err(error) => {
                log::event("webhook", json!({"soul": soul, "service": service, "error": error.to_string()}));
            }
        }
        place.release(&self.db, self.clock.now()).await;
    }
}

/// The stored result of an execution: `result` of `GET /v1/requests/{id}`.
pub fn result_of(job: &Job, text: &str) -> Value {
    json!({"result": text, "soul_job_id": job.request_id.soul_job()})
}

/// The error that buyer and seller see. Answers of paid tools belong to the buyer, and only inside a result. Once a
/// paid tool has answered, the seller's error text is hidden, because a program or a model could have copied an answer
/// into it.
fn without_secrets(error: ToolError, used: Usage) -> ToolError {
    let by_seller = error.reason.as_deref() == Some(Unavailable::SellerFailed.as_str());
    if by_seller && used.tools > Usdc::ZERO {
        let message = "the work failed after it had used paid tools, so the details of the error are not shown";
        return ToolError { message: message.to_owned(), ..error };
    }
    error
}

/// Why a result does not match the terms, or `None` if it does.
fn broken_promise(terms: &Terms, result: &str) -> Option<String> {
    let wrong = check_output(terms.output_schema.as_ref()?, result).err()?;
    let first = wrong.first().map(|error| format!(": {} {}", error.path, error.message)).unwrap_or_default();
    Some(format!("the result does not satisfy the service's output_schema{first}"))
}

/// Checks that a result is JSON that matches the promised schema.
pub fn check_output(promised: &Value, text: &str) -> Result<(), Vec<base::input::FieldError>> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        vec![base::input::FieldError::new("result", format!("is not JSON, as output_schema requires: {error}"))]
    })?;
    schema::validate(promised, &value)
}
