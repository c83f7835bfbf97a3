//! Voice: what agents need to call each other over the exchange. How a number answers is in `settings`, answered and declined
//! calls in `inbound`, calls at once in `races`, the exchange's turns and limits in `exchange`, calls that an agent buys in
//! `outbound`, a model's answers in `answers`, calls with numbers outside in `providers` (Vapi) and `telnyx`, recordings of the
//! others in `recordings`, crashes in `crashes`. Numbers that nobody uses are in `lease`.

mod answers;
mod crashes;
mod exchange;
mod inbound;
mod lease;
mod outbound;
pub mod providers;
mod races;
mod recordings;
mod settings;
mod telnyx;
mod telnyx_api;

use std::time::Duration;

use base::ids::{AgentId, RequestId};
use local::Stack;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;
use tools_sms::number::Number;
use tools_sms::phone::{self, Phone, Registered};

use crate::support::{Answer, Payer, books};

const NUMBERS: &str = "/v1/tools/voice/numbers";
const CALLS: &str = "/v1/tools/voice/inbound";
const EXCHANGE: &str = "/v1/tools/voice/exchange";
/// micro-USDC for a started minute
pub const MINUTE: u64 = 350_000;
/// What an agent has on chain at first, in micro-USDC.
const FUNDS: u64 = 20_000_000;

/// A wallet with twenty dollars on chain. Its inbound calls are paid from credits, which it has to be given.
#[derive(Clone)]
pub struct Agent {
    pub payer: Payer,
}

impl Agent {
    async fn new(stack: &Stack) -> Agent {
        Agent { payer: Payer::with(stack, FUNDS).await }
    }

    /// One that has a number of the exchange. It can call, and has no settings.
    pub async fn with_number(stack: &Stack) -> (Agent, Phone) {
        let agent = Agent::new(stack).await;
        let phone = phone_for(&stack.worker.toolbox, agent.payer.agent()).await;
        (agent, phone)
    }

    /// One whose number answers, and that has credits for calls, in micro-USDC. `members` are settings, or change those of
    /// [`settings`].
    pub async fn answering(stack: &Stack, credits: u64, members: Value) -> (Agent, Phone) {
        let (agent, phone) = Agent::with_number(stack).await;
        if credits > 0 {
            agent.payer.give_credits(stack, credits).await;
        }
        agent.configure(&phone, &settings(members)).await;
        (agent, phone)
    }

    /// The same agent, talking to another stack.
    fn at(&self, stack: &Stack) -> Agent {
        Agent { payer: self.payer.at(stack) }
    }

    /// Asks for a price with a proof: then limits and numbers of its own count.
    pub async fn asks(&self, path: &str, body: &Value) -> Answer {
        self.payer.client.post(path, &[("x-agent-proof", &self.payer.proof("read"))], body).await
    }

    /// Puts settings.
    pub async fn put(&self, phone: &Phone, settings: &Value) -> Answer {
        self.payer.change("PUT", &inbound_of(phone), settings).await
    }

    /// Puts settings, and returns the answer's data.
    async fn configure(&self, phone: &Phone, settings: &Value) -> Value {
        data(&self.put(phone, settings).await)
    }

    /// Dials a number over the exchange.
    async fn dial(&self, to: &Number) -> Answer {
        self.payer.change("POST", EXCHANGE, &json!({"to": to})).await
    }

    /// Dials a number that answers. The data of the answer: `call`, and what the caller hears first (`said`).
    async fn ring(&self, to: &Number) -> Value {
        let answer = self.dial(to).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let data = data(&answer);
        assert_eq!(data["call"]["status"], "in-progress", "{data}");
        data
    }

    /// Says something in a call.
    async fn say(&self, call: RequestId, text: &str) -> Answer {
        self.payer.change("POST", &format!("{EXCHANGE}/{call}/turns"), &json!({"text": text})).await
    }

    /// Says something in a call, and returns the data of the answer: `said`, `status` and so on.
    async fn hears(&self, call: RequestId, text: &str) -> Value {
        data(&self.say(call, text).await)
    }

    async fn hang_up(&self, call: RequestId) -> Answer {
        self.payer.change("POST", &format!("{EXCHANGE}/{call}/hang-up"), &json!({})).await
    }

    /// A call as its caller sees it.
    async fn dialled(&self, call: RequestId) -> Value {
        data(&self.payer.get(&format!("{EXCHANGE}/{call}")).await)
    }

    /// The inbound calls of its numbers, newest first. `query` is empty or begins with a question mark.
    pub async fn calls(&self, query: &str) -> Vec<Value> {
        let data = data(&self.payer.get(&format!("{CALLS}{query}")).await);
        data["calls"].as_array().unwrap_or_else(|| panic!("no list: {data}")).clone()
    }

    /// An inbound call of its number, with its transcript.
    pub async fn call(&self, call: RequestId) -> Value {
        data(&self.payer.get(&format!("{CALLS}/{call}")).await)
    }

    /// Waits until the job of an inbound call has ended, and so its charge is final. Returns the call.
    pub async fn charged(&self, call: RequestId) -> Value {
        let job = self.payer.finished(&call.to_string()).await;
        assert_eq!(job["status"], "completed", "{job}");
        self.call(call).await
    }

    /// Its credits in micro-USDC, after an audit of its books.
    pub async fn credits(&self, stack: &Stack) -> u64 {
        books::audit(&stack.app.db, self.payer.agent()).await.credits.micro()
    }
}

/// The path of a number's settings.
fn inbound_of(phone: &Phone) -> String {
    format!("{NUMBERS}/{}/inbound", phone.id)
}

/// Settings: a prompt and these members.
pub fn settings(members: Value) -> Value {
    let mut body =
        json!({"prompt": "You answer for Rossi, a bakery. We are open from 7 to 18 h. Bread costs 4 dollars."});
    for (name, value) in members.as_object().expect("members") {
        body[name] = value.clone();
    }
    body
}

/// `data` of an answer that went well.
#[track_caller]
fn data(answer: &Answer) -> Value {
    assert!(matches!(answer.status, 200 | 201), "{} {}", answer.status, answer.text);
    let body = answer.json();
    assert_eq!(body["success"], true, "{body}");
    body["data"].clone()
}

/// The id of the call in [`Agent::ring`]'s data.
#[track_caller]
fn call_id(rung: &Value) -> RequestId {
    let id = rung["call"]["id"].as_str().and_then(|id| id.parse().ok());
    id.unwrap_or_else(|| panic!("no call: {rung}"))
}

/// A number of the exchange for an agent that has none, without a payment.
async fn phone_for(toolbox: &Toolbox, agent: AgentId) -> Phone {
    let deadline = Instant::now() + Duration::from_secs(20);
    let registered = phone::register(toolbox, agent, RequestId::random(), deadline).await;
    let Ok(Registered::New(phone)) = registered else { panic!("a number: {registered:?}") };
    phone
}

/// A finished job's result, which has exactly what the tool's schema says.
#[track_caller]
fn described(job: &Value) -> &Value {
    let mut schema = (tools_voice::outbound::SPEC.output)();
    schema["additionalProperties"] = json!(false);
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let result = &job["result"];
    let wrong: Vec<String> = schema.iter_errors(result).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}: {job}");
    result
}
