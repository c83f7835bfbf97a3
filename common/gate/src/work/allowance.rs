//! The tools a commission may use. Each call is looked up in the commission's own list, and validated and
//! judged like a paid call of the same tool. Its price is taken from the job's budget before it runs. A refused call does
//! not run, and the asking model or program gets the refusal.

use std::sync::Arc;

use base::clock::Clock;
use base::ids::{AgentId, RequestId};
use base::input;
use base::money::Usdc;
use platform::http::log;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tools::spec::{Catalog, MARKET, Price, ToolSpec};
use tools::{Reporter, Runner, Task, Toolbox};

use super::{Commission, NotTaken, Resource, Spending};

/// Most calls of one commission, including refused ones.
pub const MAX_CALLS: usize = 16;
/// Largest arguments of a call, in bytes of JSON.
pub const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

/// Runners and clients that all commissions share.
#[derive(Clone)]
pub struct ToolAccess {
    pub runners: &'static [&'static Runner],
    /// The entries at the operator's prices.
    pub catalog: &'static Catalog,
    pub toolbox: Arc<Toolbox>,
}

/// A call that was allowed and ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    pub tool: String,
    /// micro-USDC; zero for a call that failed.
    pub cost: Usdc,
    pub ok: bool,
}

/// The tools and the budget of one commission.
pub struct Allowance<'a> {
    access: ToolAccess,
    request_id: RequestId,
    agent: AgentId,
    allowed: Vec<&'static Runner>,
    spending: &'a mut Spending,
    calls: usize,
    used: Vec<ToolUse>,
}

/// Whether sold work may use a tool at all, whatever its service lists. It may not buy credits, it may not use a tool that
/// waits for a person, because the answer would come after the work has ended, and none whose work cannot be taken back and
/// is charged by its record: here a call costs its whole price or nothing. Nor does it buy from other souls, or ask the
/// operator's own services, which know a call by its request.
pub fn may_be_used(tool: &ToolSpec) -> bool {
    !MARKET.iter().any(|sold| sold.name == tool.name)
        && !tool.sells_credits
        && !tool.waits_for_person
        && !tool.keeps_record
        && tool.own.is_none()
        && !matches!(tool.price, Price::Asked { .. })
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

    /// The tools that are offered to the model or program.
    pub fn tools(&self) -> impl Iterator<Item = &'static ToolSpec> {
        self.allowed.iter().map(|runner| runner.spec)
    }

    pub fn clock(&self) -> &Clock {
        &self.access.toolbox.clock
    }

    /// The commission's budget and usage. The model executor takes the model's part itself.
    pub fn spending(&mut self) -> &mut Spending {
        self.spending
    }

    /// The calls that ran.
    pub fn into_used(self) -> Vec<ToolUse> {
        self.used
    }

    /// Runs a tool if it is allowed, its arguments are valid, and the budget covers its price. `Err` is the message for the
    /// model or program: never more than the tool's own error.
    pub async fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, String> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return Err(format!("no more than {MAX_CALLS} calls"));
        }
        let runner = self.allowed.iter().find(|runner| runner.spec.name == name).copied();
        let runner = runner.ok_or_else(|| "no such tool here".to_owned())?;
        let arguments = arguments.as_object().ok_or("the arguments must be an object")?;
        let arguments = self.valid(runner.spec, arguments)?;
        let judged = self.access.toolbox.judge.check(runner.spec, &arguments).await;
        judged.map_err(|blocked| format!("this may not be sent ({})", blocked.categories.join(", ")))?;
        let price = self.access.catalog.find(name).unwrap_or(runner.spec).price.of(&arguments);
        self.spending.take(Resource::Tools, price).await.map_err(|refused| match refused {
            NotTaken::OverBudget { left } => format!("it costs {price} USDC, and {left} are left of the budget"),
            NotTaken::NotRecorded => "no tool can be called at the moment".to_owned(),
        })?;
        let task = Task {
            tool: runner.spec,
            input: arguments,
            locked: Default::default(),
            price,
            request_id: self.request_id,
            receipt_id: None,
            agent: self.agent,
            wallet_signed: false,
            token: None,
            funds: None,
            is_over: false,
            deadline: self.clock().now().plus(runner.spec.deadline),
            reporter: Reporter::default(),
        };
        // A separate task: a panic in a tool does not end the work that called it.
        let mut running = JoinSet::new();
        running.spawn((runner.run)(self.access.toolbox.clone(), task));
        let ended = tokio::time::timeout(runner.spec.deadline, running.join_next()).await;
        let result = match ended {
            Ok(Some(Ok(Ok(output)))) if output.waits.is_some() => Err("it takes too long".to_owned()),
            Ok(Some(Ok(Ok(output)))) => Ok(output.result),
            Ok(Some(Ok(Err(error)))) => Err(error.message),
            Ok(Some(Err(panic))) => {
                log::failure("a tool panicked", &panic);
                Err("failed unexpectedly".to_owned())
            }
            Ok(None) => Err("did not start".to_owned()),
            Err(_) => Err("took too long".to_owned()),
        };
        if result.is_err() {
            // Failed calls are credited back, as for every caller.
            self.spending.give_back(Resource::Tools, price).await;
        }
        let cost = if result.is_ok() { price } else { Usdc::ZERO };
        self.used.push(ToolUse { tool: name.to_owned(), cost, ok: result.is_ok() });
        result
    }

    fn valid(&self, spec: &ToolSpec, arguments: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        if let Some(refusal) = (spec.refuse)(arguments) {
            return Err(refusal.message());
        }
        let valid = input::validate(spec.input, arguments).and_then(|kept| {
            let wrong = spec.check(&kept, self.access.toolbox.fetcher.policy());
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
    use tools::spec::NOTHING;
    use tools::testing;
    use tools_people::verification::identity;

    use super::*;
    use crate::work::{Unrecorded, Usage};
    use tools_web::web_read;

    #[tokio::test]
    async fn a_tool_that_waits_for_a_person_is_never_offered() {
        static RUNNERS: [&Runner; 2] = [&identity::RUNNER, &web_read::RUNNER];
        let access = ToolAccess { runners: &RUNNERS, catalog: &NOTHING, toolbox: testing::toolbox(&[]) };
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
