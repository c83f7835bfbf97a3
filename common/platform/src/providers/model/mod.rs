//! The configured language model: sends a question and retries where that may help.
//!
//! | file | content |
//! |---|---|
//! | `wire` | questions and answers, independent of a protocol |
//! | `openai`, `anthropic`, `bedrock` | their form in each protocol |
//!
//! Untrusted text in a question stands between random marks ([`base::untrusted_text`]). The answer is untrusted too: the
//! caller decides what may be done with it.

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

/// Maximum number of attempts. A model call has no side effects, so a retry only costs tokens.
const ATTEMPTS: u32 = 3;
/// First pause before a retry, doubled each time, if the provider asks for none.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause; if the provider asks for more, the call fails.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug)]
pub struct Unanswered {
    pub error: ToolError,
    /// The provider may have worked on the question and may charge for it.
    pub may_cost: bool,
}

/// A language model and how to reach it.
#[derive(Clone)]
pub struct Model {
    config: ModelConfig,
    http: PlainHttp,
    signed: SignedHttp,
}

impl Model {
    /// The configured model. `None` if there is none, or if this function does not have its key. A server of one's own that
    /// speaks OpenAI's protocol may need none.
    pub fn configured(config: &Config, http: &PlainHttp, signed: &SignedHttp) -> Option<Model> {
        let model = config.model.clone()?;
        let needs_key = match model.provider {
            ModelProvider::OpenAi => model.url.is_none(),
            ModelProvider::Anthropic => true,
            ModelProvider::Bedrock => false,
        };
        let is_missing = needs_key && model.key.is_none();
        (!is_missing).then(|| Model { http: http.lasting(model.timeout), config: model, signed: signed.clone() })
    }

    /// The provider's name, as results state it.
    pub fn provider(&self) -> &'static str {
        match self.config.provider {
            ModelProvider::OpenAi => "openai",
            ModelProvider::Anthropic => "anthropic",
            ModelProvider::Bedrock => "bedrock",
        }
    }

    /// The configured name of the model.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub fn prices(&self) -> ModelPrices {
        self.config.prices
    }

    /// Maximum number of output tokens in one answer.
    pub fn max_tokens(&self) -> u32 {
        self.config.max_tokens
    }

    /// Asks a question. Retries if the provider is busy or was not reached, and the deadline leaves time.
    pub async fn ask(&self, ask: &Question<'_>, deadline: Timestamp, clock: &Clock) -> Result<Answer, Unanswered> {
        let body = self.body(ask).to_string().into_bytes();
        let mut attempt = 1;
        loop {
            let request = self.request(body.clone()).map_err(|error| {
                log::failure("the model's request could not be made", &error);
                let error = unavailable(Unavailable::ProviderNotConfigured, "the model is not configured correctly");
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
            let mut value = http::HeaderValue::try_from(value)
                .map_err(|_| StoreError::new("MODEL_KEY is not valid in a header"))?;
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

    /// Maps a status other than 200 to an error, and to the pause before a retry if one may help. The body may quote the
    /// prompt, so it is neither logged nor returned.
    fn refused(&self, answer: &PlainAnswer) -> (ToolError, Option<Duration>) {
        log::failure("the model refused a request", &format_args!("status {}", answer.status));
        let pause = Some(answer.retry_after.unwrap_or(PAUSE));
        match answer.status {
            429 => (unavailable(Unavailable::SourceUnavailable, "the model is busy"), pause),
            401 | 403 | 404 => {
                let message = "the model is not available to this service";
                (unavailable(Unavailable::ProviderNotConfigured, message), None)
            }
            // Anthropic answers 529 when it is overloaded; Bedrock answers 424 when the model itself failed.
            424 | 500.. => (unavailable(Unavailable::SourceUnavailable, "the model is not working"), pause),
            _ => (unavailable(Unavailable::SourceUnavailable, "the model rejected the request"), None),
        }
    }
}

fn unavailable(reason: Unavailable, message: &str) -> ToolError {
    ToolError::unavailable(reason, message)
}
