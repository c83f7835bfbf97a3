//! Settles actions of network accounts whose fate is unknown (docs/NETWORK.md): `network-actions list [days]`, `network-actions
//! sent|not-sent <request id>`. Finds the tables as the functions do: `TABLE_PREFIX`, `AWS_REGION` and credentials, or
//! `AWS_ENDPOINT_URL` of the local stack. `not-sent` needs `SERVICE_SECRET_ARN` (locally `SERVICE_SECRET`), because it may revise a
//! receipt. With `JOB_QUEUE_URL` it wakes the job of an open action.

use std::process::ExitCode;
use std::time::Duration;

use base::ids::RequestId;
use gate::app::App;
use local::operator;
use platform::store::StoreError;
use tools_network::action::{AMBIGUOUS_FOR, Action, KEPT, State};
use tools_network::settle::{self, Desk, Listed, Settled};

const DAY: Duration = Duration::from_secs(24 * 3600);
const USAGE: &str = "usage: network-actions list [days] | sent <request id> | not-sent <request id>";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    operator::exit(run().await)
}

async fn run() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["list"] => list(7).await,
        ["list", days] => list(days.parse::<u32>().map_err(|_| USAGE.to_owned())?).await,
        [word @ ("sent" | "not-sent"), request] => {
            let request = request.parse::<RequestId>().map_err(|_| format!("{request} is no request id"))?;
            settle(request, *word == "sent").await
        }
        _ => Err(USAGE.to_owned()),
    }
}

async fn list(days: u32) -> Result<String, String> {
    let app = operator::app()?;
    let now = app.clock.now();
    let listed = settle::list(&app.db, now.minus(DAY.saturating_mul(days).min(KEPT)), now).await.map_err(in_words)?;
    if listed.is_empty() {
        return Ok(format!("no action of the last {days} days is ambiguous"));
    }
    Ok(listed.iter().map(line).collect::<Vec<_>>().join("\n"))
}

async fn settle(request: RequestId, is_sent: bool) -> Result<String, String> {
    let app = operator::app()?;
    let queue = operator::job_queue(&app)?;
    let signer = if is_sent { None } else { Some(operator::signer(&app).await?) };
    let desk = Desk { signer: signer.as_ref(), queue: queue.as_deref() };
    let settled = said(&app, desk, request, is_sent).await?;
    let soon = match desk.queue {
        Some(_) => "soon",
        None => "when it looks again, within about an hour (with JOB_QUEUE_URL set, soon)",
    };
    match settled {
        Settled::Done(action) => Ok(format!("{request} {}", became(&action, soon))),
        Settled::Before(action) => Ok(format!("said before: {request} {}", became(&action, soon))),
        Settled::Otherwise(action) => {
            Err(format!("the other was said before, and that stands: {request} {}", became(&action, soon)))
        }
        Settled::Known(State::Queued | State::Sending) => Err(format!("{request} is not sent yet")),
        Settled::Known(State::Sent) => Err(format!("{request} was sent, as the provider says")),
        Settled::Known(_) => Err(format!("{request} failed, and its job pays back")),
        Settled::NotYet => Err("its call or its payment has not come to its end; try again later".to_owned()),
        Settled::NoAction => Err(format!("there is no action {request}")),
    }
}

async fn said(app: &App, desk: Desk<'_>, request: RequestId, is_sent: bool) -> Result<Settled, String> {
    settle::settle(&app.db, desk, request, is_sent, app.clock.now()).await.map_err(in_words)
}

fn in_words(error: StoreError) -> String {
    error.to_string()
}

/// What became of an action that is settled.
fn became(action: &Action, soon: &str) -> String {
    let Some(verdict) = action.verdict else { return "is not settled".to_owned() };
    match (verdict.is_sent, action.state, verdict.returned) {
        (true, State::Ended, _) => "is marked as sent; it stays charged".to_owned(),
        (true, ..) => format!("is sent; its job ends with that {soon}"),
        (false, State::Ended, Some(amount)) => {
            format!("is marked as not sent; {amount} USDC are given back to {} as credits", action.agent)
        }
        (false, State::Ended, None) if action.paid.as_ref().is_some_and(|paid| paid.charge.purse.is_some()) => {
            "is marked as not sent; a goal has bought it, so nothing is given back: the money was the goal's".to_owned()
        }
        (false, State::Ended, None) => "is marked as not sent; nothing of it was charged any more".to_owned(),
        (false, ..) => format!("has failed; its job pays back {soon}"),
    }
}

/// A line of the list.
fn line(listed: &Listed) -> String {
    let Listed { action, account } = listed;
    let upstream = account
        .as_ref()
        .map_or("(its account is gone)".to_owned(), |account| format!("{}: {}", account.provider, account.upstream));
    let word = match (action.verdict, action.state) {
        (Some(_), _) => became(action, "soon"),
        (None, State::Ambiguous) => {
            format!("is ambiguous since {}, until {}", action.since, action.since.plus(AMBIGUOUS_FOR))
        }
        (None, _) => format!("ended as ambiguous at {}, charged", action.since),
    };
    let kind = action.kind.name();
    let target = action.target.as_deref().unwrap_or_default();
    let (request, agent, account) = (action.request, action.agent, action.account);
    format!("{request}  {kind} to {target}  agent {agent}  account {account} ({upstream})  {word}")
}
