//! The tools a commission may use. Each call is looked up in the commission's own list, checked like a paid call of the
//! same tool, and its price is taken from the job's budget before it runs; what is refused is told to whoever asked and
//! never runs.

use std::sync::Arc;

use base::clock::Clock;
use base::ids::{AgentId, RequestId};
use base::input;
use base::money::Usdc;
use platform::http::log;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tools::spec::ToolSpec;
use tools::{Reporter, Runner, Task, Toolbox};

use super::{Commission, NotTaken, Resource, Spending};

/// Most calls of one commission, refused ones included.
pub const MAX_CALLS: usize = 16;
/// Largest arguments of a call, in bytes of JSON.
pub const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

/// Where tools are run: what every commission shares.
#[derive(Clone)]
pub struct ToolAccess {
    pub runners: &'static [&'static Runner],
    pub toolbox: Arc<Toolbox>,
}

/// A call that was allowed and ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    pub tool: String,
    /// micro-USDC; of a call that failed, nothing.
    pub cost: Usdc,
    pub ok: bool,
}

/// What one commission may still do.
pub struct Allowance<'a> {
    access: ToolAccess,
    request_id: RequestId,
    agent: AgentId,
    allowed: Vec<&'static Runner>,
    spending: &'a mut Spending,
    calls: usize,
    used: Vec<ToolUse>,
}

/// Whether work that a soul sells may use a tool, whatever its service lists. Credits are money, not a tool; and a tool that
/// waits for a person would end after the work that paid for it.
pub fn may_be_used(tool: &ToolSpec) -> bool {
    !tool.sells_credits && !tool.waits_for_person
}

impl<'a> Allowance<'a> {
    pub fn of(commission: &Commission, access: &ToolAccess, spending: &'a mut Spending) -> Allowance<'a> {
        let is_allowed =
            |runner: &&Runner| may_be_used(runner.spec) && commission.tools.iter().any(|name| name == runner.spec.name);
        Allowance {
            access: access.clone(),
            request_id: commission.request_id,
            agent: commission.agent,
            allowed: access.runners.iter().copied().filter(|runner| is_allowed(runner)).collect(),
            spending,
            calls: 0,
            used: Vec::new(),
        }
    }

    /// The tools that may be asked for.
    pub fn tools(&self) -> impl Iterator<Item = &'static ToolSpec> {
        self.allowed.iter().map(|runner| runner.spec)
    }

    pub fn clock(&self) -> &Clock {
        &self.access.toolbox.clock
    }

    /// What the commission may use, and has used: the model's part is taken by whoever asks it.
    pub fn spending(&mut self) -> &mut Spending {
        self.spending
    }

    /// The calls that ran, once the work is over.
    pub fn into_used(self) -> Vec<ToolUse> {
        self.used
    }

    /// Runs a tool, if it is allowed, its arguments are valid, and its price is still there. `Err` is what the asker is
    /// told: never more than the tool's own error.
    pub async fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, String> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return Err(format!("no more than {MAX_CALLS} calls"));
        }
        let runner = self.allowed.iter().find(|runner| runner.spec.name == name).copied();
        let runner = runner.ok_or_else(|| "no such tool here".to_owned())?;
        let arguments = arguments.as_object().ok_or("the arguments must be an object")?;
        let arguments = self.valid(runner.spec, arguments)?;
        let price = runner.spec.price.of(&arguments);
        self.spending.take(Resource::Tools, price).await.map_err(|refused| match refused {
            NotTaken::OverBudget { left } => format!("it costs {price} USDC, and {left} are left of the budget"),
            NotTaken::NotRecorded => "no tool can be called at the moment".to_owned(),
        })?;
        let task = Task {
            tool: runner.spec,
            input: arguments,
            request_id: self.request_id,
            agent: self.agent,
            wallet_signed: false,
            deadline: self.clock().now().plus(runner.spec.deadline),
            reporter: Reporter::default(),
        };
        // A task of its own: a panic in a tool is its own failure, and not that of the work that called it.
        let mut running = JoinSet::new();
        running.spawn((runner.run)(self.access.toolbox.clone(), task));
        let ended = tokio::time::timeout(runner.spec.deadline, running.join_next()).await;
        let result = match ended {
            Ok(Some(Ok(Ok(output)))) if output.waits_until.is_some() => Err("waits for somebody outside".to_owned()),
            Ok(Some(Ok(Ok(output)))) => Ok(output.result),
            Ok(Some(Ok(Err(error)))) => Err(error.message),
            Ok(Some(Err(panic))) => {
                log::failure("a tool panicked", &panic);
                Err("failed unexpectedly".to_owned())
            }
            Ok(None) => Err("did not begin".to_owned()),
            Err(_) => Err("took too long".to_owned()),
        };
        if result.is_err() {
            // As for everybody: work that failed is paid back.
            self.spending.give_back(Resource::Tools, price).await;
        }
        let cost = if result.is_ok() { price } else { Usdc::ZERO };
        self.used.push(ToolUse { tool: name.to_owned(), cost, ok: result.is_ok() });
        result
    }

    fn valid(&self, spec: &ToolSpec, arguments: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let valid = input::validate(spec.input, arguments).and_then(|kept| {
            let wrong = (spec.check)(&kept, self.access.toolbox.fetcher.policy());
            if wrong.is_empty() { Ok(kept) } else { Err(wrong) }
        });
        valid.map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(|error| format!("{} {}", error.path, error.message)).collect();
            format!("invalid arguments: {}", errors.join("; "))
        })
    }
}

#[cfg(test)]
mod tests {
    use evm::Address;
    use serde_json::json;
    use tools::testing;
    use tools_people::verification::identity;

    use super::*;
    use crate::work::{Unrecorded, Usage};
    use tools_web::web_read;

    #[tokio::test]
    async fn what_waits_for_somebody_outside_is_no_tool_whatever_a_service_lists() {
        static RUNNERS: [&Runner; 2] = [&identity::RUNNER, &web_read::RUNNER];
        let access = ToolAccess { runners: &RUNNERS, toolbox: testing::toolbox(&[]) };
        let commission = Commission {
            request_id: RequestId::random(),
            agent: AgentId::of(Address::ZERO),
            soul: "a-soul".to_owned(),
            soul_md: String::new(),
            service_name: "Work".to_owned(),
            service_description: None,
            input: json!({}),
            output_schema: None,
            tools: vec![identity::SPEC.name.to_owned(), web_read::SPEC.name.to_owned()],
            program: None,
            deadline: access.toolbox.clock.now(),
        };
        let budget = Usage { tools: Usdc::from_micro(10_000_000), model: Usdc::ZERO };
        let mut spending = Spending::new(budget, Usage::NONE, Unrecorded);
        let mut allowance = Allowance::of(&commission, &access, &mut spending);
        assert_eq!(allowance.tools().map(|tool| tool.name).collect::<Vec<_>>(), [web_read::SPEC.name]);
        let arguments = json!({"full_name": "A Person", "purpose": "to know", "email": "a@example.com"});
        assert_eq!(allowance.call(identity::SPEC.name, &arguments).await, Err("no such tool here".to_owned()));
    }
}
