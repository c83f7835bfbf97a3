//! Checks the service as callers see it, and its peers: facilitator and mail relay.

use std::time::Duration;

use base::clock::Clock;
use gate::app::App;
use gate::secrets::ServiceKeys;
use ledger::signing::PublicKey;
use platform::config::{Redacted, SettlementConfig};
use platform::connections::Connections;
use platform::http::Params;
use platform::net::PlainHttp;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Report;

/// Proofs are valid for five minutes, and may be dated this far in the future.
const SKEW_SECS: i64 = 60;
const PATIENCE: Duration = Duration::from_secs(10);

pub async fn check(app: &App, connections: &Connections, report: &mut Report) {
    facilitator(app, &connections.http, report).await;
    relay(app, report).await;
    let Some(base) = &app.config.base_url else {
        let remedy = "set PUBLIC_BASE_URL to check the running service too";
        report.warn("service", "its address is not known", remedy);
        return;
    };
    let http = &connections.http;
    let health = match get(http, &format!("{base}/health"), None).await {
        Ok((200, health)) => health,
        Ok((status, _)) => {
            report.fail(
                "service",
                format!("{base}/health answers {status}"),
                "check that PUBLIC_BASE_URL is the address of this stack's API",
            );
            return;
        }
        Err(cause) => {
            report.fail(
                "service",
                format!("{base}: {cause}"),
                "start or deploy the service, or correct PUBLIC_BASE_URL",
            );
            return;
        }
    };
    clock(&health, report);
    if health["service"] == app.config.service_name.as_str() {
        report.ok("service", format!("{} at {base}", app.config.service_name));
    } else {
        let found = format!("{base} is {}, but SERVICE_NAME is {:?}", health["service"], app.config.service_name);
        report.fail("service", found, "set SERVICE_NAME to the same value everywhere: wallets sign it");
    }
    status(http, base, report).await;
    if let Ok(keys) = ServiceKeys::load(&app.config, &connections.signed).await {
        jwks(http, base, &keys.receipts.public(), report).await;
    }
}

fn clock(health: &Value, report: &mut Report) {
    let theirs = health["timestamp"].as_str().and_then(|text| Params::of(Some(&format!("at={text}"))).time("at"));
    let Some(theirs) = theirs else { return };
    let skew = (Clock::system().now().secs() - theirs.secs()).abs();
    if skew > SKEW_SECS {
        let remedy = "set the clocks (NTP): proofs and payments are only valid for minutes";
        report.fail("clock of the service", format!("it differs from this machine's by {skew} s"), remedy);
    } else {
        report.ok("clock of the service", format!("within {} s of this machine's", skew.max(1)));
    }
}

async fn status(http: &PlainHttp, base: &str, report: &mut Report) {
    match get(http, &format!("{base}/v1/status"), None).await {
        Ok((200, _)) => report.ok("status", "healthy"),
        Ok((_, body)) => {
            let dependencies = body["dependencies"].as_object().cloned().unwrap_or_default();
            let ill: Vec<String> = dependencies
                .iter()
                .filter(|(_, seen)| seen["status"] != "healthy")
                .map(|(name, seen)| format!("{name} ({})", seen["message"].as_str().unwrap_or("degraded")))
                .collect();
            let remedy =
                "see the log of the function meta for the cause; for sweep, check that the scheduler runs every minute";
            report.fail("status", format!("degraded: {}", ill.join(", ")), remedy);
        }
        Err(cause) => report.fail("status", cause, "see the log of the function meta for the cause"),
    }
}

async fn jwks(http: &PlainHttp, base: &str, key: &PublicKey, report: &mut Report) {
    match get(http, &format!("{base}/.well-known/jwks.json"), None).await {
        Ok((200, body)) if body["keys"].as_array().is_some_and(|keys| keys.contains(&key.jwk())) => {
            report.ok("served keys", format!("{} is one of them", key.key_id));
        }
        Ok((status, _)) => {
            let found =
                format!("{base}/.well-known/jwks.json ({status}) lacks {}, the key that signs receipts", key.key_id);
            let remedy = "wait five minutes (caches), and check that SERVICE_SECRET_ARN and TABLE_PREFIX belong to the stack at that address";
            report.fail("served keys", found, remedy);
        }
        Err(cause) => report.fail("served keys", cause, "see the service check above"),
    }
}

async fn facilitator(app: &App, http: &PlainHttp, report: &mut Report) {
    let SettlementConfig::Facilitator { url, token } = &app.config.settlement else { return };
    let network = app.config.chain.caip2();
    let remedy =
        format!("set FACILITATOR_URL to one that settles \"exact\" on {network}, or unset it and use a fee wallet");
    match get(http, &format!("{url}/supported"), token.as_ref().map(Redacted::expose)).await {
        Ok((200, body)) => {
            let kinds = body["kinds"].as_array().cloned().unwrap_or_default();
            if kinds.iter().any(|kind| kind["scheme"] == "exact" && kind["network"] == network.as_str()) {
                report.ok("facilitator", format!("{url} settles on {network}"));
            } else {
                report.fail("facilitator", format!("{url} does not settle \"exact\" on {network}"), remedy);
            }
        }
        Ok((401 | 403, _)) => {
            report.fail(
                "facilitator",
                format!("{url} refuses the token"),
                "set FACILITATOR_TOKEN to one that it accepts",
            );
        }
        Ok((status, _)) => report.fail("facilitator", format!("{url}/supported answers {status}"), remedy),
        Err(cause) => report.fail("facilitator", format!("{url}: {cause}"), remedy),
    }
}

/// Checks that the relay accepts connections. Only a mail can show whether the password is right.
async fn relay(app: &App, report: &mut Report) {
    let Some(url) = &app.config.mail.smtp_url else { return };
    let Ok(url) = url::Url::parse(url.expose()) else { return };
    let (host, port) =
        (url.host_str().unwrap_or_default(), url.port().unwrap_or(if url.scheme() == "smtps" { 465 } else { 587 }));
    match timeout(PATIENCE, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => report.ok("mail relay", format!("{host}:{port} accepts connections")),
        Ok(Err(error)) => {
            report.fail("mail relay", format!("{host}:{port}: {error}"), "correct SMTP_URL: nothing listens there");
        }
        Err(_) => report.fail(
            "mail relay",
            format!("{host}:{port} does not answer"),
            "correct SMTP_URL, or open the firewall",
        ),
    }
}

async fn get(http: &PlainHttp, url: &str, bearer: Option<&str>) -> Result<(u16, Value), String> {
    let mut request = http::Request::get(url).header("accept", "application/json");
    if let Some(token) = bearer {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Vec::new()).map_err(|error| error.to_string())?;
    let answer = http.send(request).await.map_err(|error| error.to_string())?;
    Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or_default()))
}
