//! The configured language model: a question, signed or with its key, sent again where that may help.
//!
//! | file | what it is |
//! |---|---|
//! | `wire` | what is asked and answered, in no protocol's words |
//! | `openai`, `anthropic`, `bedrock` | the same in each protocol's words |
//!
//! What it is told of strangers' texts stands between marks ([`base::untrusted_text`]), and what it says is believed in
//! nothing but its answer: whoever asks decides what may be done with that.

mod anthropic;
mod bedrock;
mod openai;
mod wire;

use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::tool_result::{ToolError, Unavailable};
use serde_json::Value;

pub use self::wire::{Answer, Call, Message, ModelTool, Question, Reply, Stop, most_tokens_of_frame};
use crate::config::{Config, ModelConfig, ModelPrices, ModelProvider};
use crate::http::log;
use crate::net::{PlainAnswer, PlainError, PlainHttp};
use crate::store::StoreError;
use crate::store::aws::SignedHttp;

/// How often one question is put: a model has no side effects, so asking again costs tokens and nothing else.
const ATTEMPTS: u32 = 3;
/// First pause before asking again, doubled each time, where the peer names none.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause that is waited for.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug)]
pub struct Unanswered {
    pub error: ToolError,
    /// The provider may have worked on the question, and asks to be paid for it.
    pub may_cost: bool,
}

/// A language model, and how it is asked.
#[derive(Clone)]
pub struct Model {
    config: ModelConfig,
    http: PlainHttp,
    signed: SignedHttp,
}

impl Model {
    /// The configured model. None where none is configured, and in functions that are not given its key.
    pub fn configured(config: &Config, http: &PlainHttp, signed: &SignedHttp) -> Option<Model> {
        let model = config.model.clone()?;
        let is_missing = model.provider == ModelProvider::Anthropic && model.key.is_none();
        (!is_missing).then(|| Model { http: http.lasting(model.timeout), config: model, signed: signed.clone() })
    }

    /// Under what name results say where they come from.
    pub fn provider(&self) -> &'static str {
        match self.config.provider {
            ModelProvider::OpenAi => "openai",
            ModelProvider::Anthropic => "anthropic",
            ModelProvider::Bedrock => "bedrock",
        }
    }

    /// The model that is asked for, as it is configured.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub fn prices(&self) -> ModelPrices {
        self.config.prices
    }

    /// Most tokens of one answer.
    pub fn max_tokens(&self) -> u32 {
        self.config.max_tokens
    }

    /// Puts a question, again if the peer is busy or was not reached and the deadline leaves time for it.
    pub async fn ask(&self, ask: &Question<'_>, deadline: Timestamp, clock: &Clock) -> Result<Answer, Unanswered> {
        let body = self.body(ask).to_string().into_bytes();
        let mut attempt = 1;
        loop {
            let request = self.request(body.clone()).map_err(|error| {
                log::failure("the model's request could not be made", &error);
                let error = unavailable(Unavailable::ProviderNotConfigured, "the model is not configured rightly");
                Unanswered { error, may_cost: false }
            })?;
            let (error, pause, may_cost) = match self.http.send(request).await {
                Ok(answer) if answer.status == 200 => {
                    return self.read(&answer.body).map_err(|error| Unanswered { error, may_cost: true });
                }
                Ok(answer) => {
                    let (error, pause) = self.refused(&answer);
                    (error, pause, false)
                }
                Err(error) => {
                    log::failure("the model did not answer", &error);
                    let again = matches!(error, PlainError::NotSent(_)).then_some(PAUSE);
                    let told = unavailable(Unavailable::SourceUnavailable, "the model could not be reached");
                    (told, again, again.is_none())
                }
            };
            let Some(pause) = pause.filter(|_| attempt < ATTEMPTS) else { return Err(Unanswered { error, may_cost }) };
            let pause = pause.max(PAUSE * 2u32.pow(attempt - 1));
            if pause > MAX_PAUSE || clock.now().plus(pause) >= deadline {
                return Err(Unanswered { error, may_cost });
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    fn body(&self, ask: &Question<'_>) -> Value {
        match self.config.provider {
            ModelProvider::OpenAi => openai::body(&self.config, ask),
            ModelProvider::Anthropic => anthropic::body(&self.config, ask),
            ModelProvider::Bedrock => bedrock::body(ask),
        }
    }

    fn url(&self) -> String {
        let (own, path) = match self.config.provider {
            ModelProvider::OpenAi => ("https://api.openai.com/v1".to_owned(), openai::path()),
            ModelProvider::Anthropic => ("https://api.anthropic.com".to_owned(), anthropic::path()),
            ModelProvider::Bedrock => {
                let region = self.signed.region();
                let own = format!("https://bedrock-runtime.{region}.amazonaws.com");
                (self.signed.endpoint().map_or(own, str::to_owned), bedrock::path(&self.config))
            }
        };
        format!("{}{path}", self.config.url.as_deref().unwrap_or(&own))
    }

    fn request(&self, body: Vec<u8>) -> Result<http::Request<Vec<u8>>, StoreError> {
        let url = self.url();
        let json = ("content-type", "application/json");
        if self.config.provider == ModelProvider::Bedrock {
            return self.signed.sign("bedrock", "POST", &url, &[json], body);
        }
        let mut request = http::Request::post(url).header(json.0, json.1).header("accept", json.1);
        if self.config.provider == ModelProvider::Anthropic {
            request = request.header("anthropic-version", anthropic::VERSION);
        }
        if let Some(key) = &self.config.key {
            let (name, value) = match self.config.provider {
                ModelProvider::Anthropic => ("x-api-key", key.expose().to_owned()),
                _ => ("authorization", format!("Bearer {}", key.expose())),
            };
            let mut value =
                http::HeaderValue::try_from(value).map_err(|_| StoreError::new("MODEL_KEY is no header"))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        request.body(body).map_err(StoreError::new)
    }

    fn read(&self, body: &[u8]) -> Result<Answer, ToolError> {
        let answer = serde_json::from_slice::<Value>(body).ok().and_then(|body| match self.config.provider {
            ModelProvider::OpenAi => openai::answer(&body),
            ModelProvider::Anthropic => anthropic::answer(&body),
            ModelProvider::Bedrock => bedrock::answer(&self.config, &body),
        });
        answer.ok_or_else(|| {
            log::failure("the model's answer could not be read", &format_args!("{} bytes", body.len()));
            unavailable(Unavailable::SourceUnavailable, "the model's answer could not be read")
        })
    }

    /// What a status other than 200 means, and how long to wait before asking again, if that may help. The body may quote
    /// the prompt, so nothing of it is logged or told.
    fn refused(&self, answer: &PlainAnswer) -> (ToolError, Option<Duration>) {
        log::failure("the model refused a request", &format_args!("status {}", answer.status));
        let pause = Some(answer.retry_after.unwrap_or(PAUSE));
        match answer.status {
            429 => (unavailable(Unavailable::SourceUnavailable, "the model is busy"), pause),
            401 | 403 | 404 => {
                let message = "the model is not available to this service";
                (unavailable(Unavailable::ProviderNotConfigured, message), None)
            }
            // 529 is Anthropic's word for overloaded; 424 is what Bedrock answers when the model itself failed.
            424 | 500.. => (unavailable(Unavailable::SourceUnavailable, "the model is out of order"), pause),
            _ => (unavailable(Unavailable::SourceUnavailable, "the model did not take the request"), None),
        }
    }
}

fn unavailable(reason: Unavailable, message: &str) -> ToolError {
    ToolError::unavailable(reason, message)
}
