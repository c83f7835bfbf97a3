//! Vapi's phone numbers, which are for calls. A number of a provider of texts that is imported there serves both.
//! <https://docs.vapi.ai/api-reference/phone-numbers/list>, openapi.json of VapiAI/docs
//!
//! Calls themselves are in the crate `tools-voice`, with the same [`NAME`], [`ORIGIN`] and [`ask`].

use platform::config::Redacted;
use platform::providers::{Ask, Outbound, OutboundError};
use serde_json::Value;
use tokio::time::Instant;
use tools::Toolbox;

use super::{Line, Listed, MAX_NUMBERS};
use crate::number::Number;

pub const NAME: &str = "vapi";
pub const ORIGIN: &str = "https://api.vapi.ai";
/// The name in `PROVIDER_KEYS` of the secret that Vapi sends with what it posts.
pub const SECRET: &str = "vapi_secret";

const HOOK_PATH: &str = "/v1/providers/vapi";
/// Vapi publishes no number. A call needs a handful of requests.
const PER_SECOND: f64 = 10.0;

/// The key of `PROVIDER_KEYS`.
pub async fn key(outbound: &Outbound) -> Result<Redacted, OutboundError> {
    outbound.needed_key(NAME).await
}

/// A request of the account.
pub fn ask(key: &Redacted, ask: Ask) -> Ask {
    Ask { per_second: PER_SECOND, ..ask }.header("authorization", format!("Bearer {}", key.expose()))
}

/// The address that Vapi has to be given for a number: it asks there who answers a call.
pub fn hook_url(base: &str) -> String {
    format!("{base}{HOOK_PATH}")
}

/// The account's numbers, at most [`MAX_NUMBERS`].
pub async fn list(toolbox: &Toolbox, deadline: Instant) -> Result<Listed, OutboundError> {
    let key = key(&toolbox.outbound).await?;
    let ask = ask(&key, Ask::get(format!("/phone-number?limit={MAX_NUMBERS}")));
    let (_, answer) = toolbox.outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
    // An account without numbers has an empty list.
    if !answer.is_array() {
        return Err(OutboundError::Unreadable("its numbers are no list".to_owned()));
    }
    Ok(sorted(toolbox.config.base_url.as_deref(), &answer))
}

/// Whether an id may be part of a path. Vapi's are UUIDs.
pub fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Without an address of its own (`base`), this deployment cannot tell which numbers are set up for it, and takes all.
fn sorted(base: Option<&str>, answer: &Value) -> Listed {
    let hook = base.map(hook_url);
    let mut found = Listed::default();
    for phone in answer.as_array().into_iter().flatten().take(MAX_NUMBERS) {
        match line(phone) {
            None => found.not_ready += 1,
            Some(_) if answers_itself(phone) || is_of_another(phone, hook.as_deref()) => found.elsewhere += 1,
            Some(line) => {
                found.usable.push(line);
                continue;
            }
        }
        found.others.extend(phone["number"].as_str().and_then(|number| Number::parse(number).ok()));
    }
    found
}

/// A number that is active: new ones are `activating` for some minutes, and have no number until then.
pub fn line(phone: &Value) -> Option<Line> {
    let is_active = phone["status"].as_str().is_none_or(|status| status == "active");
    let id = phone["id"].as_str().filter(|id| is_active && is_id(id))?;
    let number = Number::parse(phone["number"].as_str()?).ok()?;
    Some(Line { number, id: id.to_owned() })
}

/// Then Vapi asks nobody.
fn answers_itself(phone: &Value) -> bool {
    ["assistantId", "squadId", "workflowId"].iter().any(|name| phone[*name].is_string())
}

/// A number without an address has that of the account.
fn is_of_another(phone: &Value, hook: Option<&str>) -> bool {
    let (Some(hook), Some(url)) = (hook, phone["server"]["url"].as_str()) else { return false };
    url != hook
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_numbers_that_ask_this_deployment_are_used() {
        let ours = "https://a.test/v1/providers/vapi";
        let phone = |line: u32, more: Value| {
            let mut phone =
                json!({"id": format!("id-{line}"), "number": format!("+1206555{line}"), "provider": "twilio"});
            phone.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            phone
        };
        let listed = json!([
            phone(2001, json!({"status": "active", "server": {"url": ours}})),
            phone(2002, json!({"assistantId": null})),
            phone(2003, json!({"assistantId": "a", "server": {"url": ours}})),
            phone(2004, json!({"server": {"url": "https://b.test/v1/providers/vapi"}})),
            phone(2005, json!({"status": "activating"})),
            phone(2006, json!({"id": "../call"})),
            json!({"id": "sip", "sipUri": "sip:a@sip.vapi.ai"}),
        ]);
        let found = sorted(Some("https://a.test"), &listed);
        let usable: Vec<(&str, &str)> =
            found.usable.iter().map(|line| (line.number.as_str(), line.id.as_str())).collect();
        assert_eq!(usable, [("+12065552001", "id-2001"), ("+12065552002", "id-2002")]);
        assert_eq!((found.not_ready, found.elsewhere), (3, 2));
        let of_any_address = sorted(None, &listed);
        assert_eq!((of_any_address.usable.len(), of_any_address.elsewhere), (3, 1));
        assert_eq!(sorted(None, &json!({"message": "no"})), Listed::default());
    }
}
