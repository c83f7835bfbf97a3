//! Parses a policy and an approval request strictly: an owner must not believe that a misspelt rule protects them.
//!
//! Unknown members are refused. An optional member may be `null`.

use base::clock::Timestamp;
use base::contact;
use base::input::{self, FieldError};
use base::money::Usdc;
use serde_json::{Map, Value};
use tools::spec::Catalog;

use super::approver::Approver;
use super::hours::{self, Hours, Zone};
use super::policy::{ACTIONS, Action, Policy, Rule, When, domain};

const MAX_RULES: usize = 25;
const MAX_DOMAINS: usize = 100;
pub const MAX_POLICY_BYTES: usize = 8 * 1024;
/// Limits of the time an approver has, in seconds.
const MIN_SECONDS: i64 = 60;
const MAX_SECONDS: i64 = 604_800;
const DEFAULT_SECONDS: u32 = 3600;
/// Most characters of a preview, as JSON.
pub const MAX_PREVIEW_CHARS: usize = 4000;

type Object = Map<String, Value>;

/// The body of `POST /v1/approvals`: an approval that an agent requests itself.
#[derive(Debug)]
pub struct Request {
    pub action_summary: String,
    pub approver: Approver,
    pub preview: Option<Value>,
    pub expires_in_seconds: u32,
}

/// Parses the body of `PUT /v1/agents/me/action-policy`. The error lists every invalid field.
pub fn policy(catalog: &Catalog, body: &Object, now: Timestamp) -> Result<Policy, Vec<FieldError>> {
    let mut form = Form::default();
    // A policy can be put as it was shown, with the time of its last change.
    form.errors.extend(input::only(
        &["enabled", "rules", "approver", "timezone", "timeout_seconds"],
        &["updated_at"],
        body,
        "",
    ));
    let enabled = match given(body, "enabled") {
        None => true,
        Some(Value::Bool(enabled)) => *enabled,
        Some(_) => form.wrong("enabled", "must be true or false").unwrap_or_default(),
    };
    let rules: Vec<Rule> = match given(body, "rules") {
        Some(Value::Array(rules)) if rules.len() <= MAX_RULES => {
            rules.iter().enumerate().filter_map(|(index, rule)| form.rule(catalog, rule, index)).collect()
        }
        Some(Value::Array(_)) => form.wrong("rules", format!("may have at most {MAX_RULES} rules")).unwrap_or_default(),
        Some(_) => form.wrong("rules", "must be an array").unwrap_or_default(),
        None => form.wrong("rules", "is required").unwrap_or_default(),
    };
    form.unique_ids(&rules);
    let approver = match given(body, "approver") {
        Some(approver) => form.approver(approver),
        None => Approver::default(),
    };
    let timezone = given(body, "timezone").and_then(|zone| form.zone(Some(zone), "timezone"));
    let timeout_seconds = form.seconds(body, "timeout_seconds");
    let policy = Policy { enabled, rules, approver, timezone, timeout_seconds, updated_at: now };
    // The policy is read with every call of the agent and written as one item.
    if serde_json::to_string(&policy).map_or(true, |text| text.len() > MAX_POLICY_BYTES) {
        form.wrong::<()>(
            "rules",
            format!("may have at most {MAX_POLICY_BYTES} bytes as JSON, with the rest of the policy"),
        );
    }
    form.done(policy)
}

/// Parses the body of `POST /v1/approvals`. If it names no approver, that of the owner's policy is asked. The error lists
/// every invalid field.
pub fn request(body: &Object, of_policy: Option<&Approver>) -> Result<Request, Vec<FieldError>> {
    let mut form = Form::default();
    form.errors.extend(input::only(&["action_summary", "approver", "preview", "expires_in_seconds"], &[], body, ""));
    let action_summary = match given(body, "action_summary") {
        Some(Value::String(text)) if (1..=2000).contains(&text.chars().count()) => text.clone(),
        Some(Value::String(_)) => form.wrong("action_summary", "must have 1 to 2000 characters").unwrap_or_default(),
        Some(_) => form.wrong("action_summary", "must be a string").unwrap_or_default(),
        None => form.wrong("action_summary", "is required").unwrap_or_default(),
    };
    let approver = match (given(body, "approver"), of_policy.and_then(Approver::one)) {
        (Some(approver), _) => form.approver(approver),
        (None, Some(approver)) => approver,
        (None, None) => form.wrong("approver", "is required: no action policy names an approver").unwrap_or_default(),
    };
    let names_one = approver.email.is_some() != approver.phone.is_some();
    if form.errors.is_empty() && !names_one {
        form.wrong::<()>("approver", "needs exactly one of email and phone");
    }
    let preview = given(body, "preview").cloned();
    if let Some(preview) = &preview {
        let fits = preview.to_string().chars().count() <= MAX_PREVIEW_CHARS;
        if !preview.is_object() || !fits {
            let message = format!("must be an object of at most {MAX_PREVIEW_CHARS} characters as JSON");
            form.wrong::<()>("preview", message);
        }
    }
    let expires_in_seconds = form.seconds(body, "expires_in_seconds");
    form.done(Request { action_summary, approver, preview, expires_in_seconds })
}

/// A member that is present and not `null`.
fn given<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// The errors found so far.
#[derive(Default)]
struct Form {
    errors: Vec<FieldError>,
}

impl Form {
    fn wrong<T>(&mut self, path: impl Into<String>, message: impl Into<String>) -> Option<T> {
        self.errors.push(FieldError::new(path, message));
        None
    }

    fn done<T>(self, read: T) -> Result<T, Vec<FieldError>> {
        if self.errors.is_empty() { Ok(read) } else { Err(self.errors) }
    }

    /// Refuses unknown members.
    fn only(&mut self, object: &Object, path: &str, known: &[&str]) {
        self.errors.extend(input::only(known, &[], object, path));
    }

    fn seconds(&mut self, body: &Object, name: &str) -> u32 {
        match given(body, name) {
            None => DEFAULT_SECONDS,
            Some(value) => match value.as_i64().filter(|seconds| (MIN_SECONDS..=MAX_SECONDS).contains(seconds)) {
                Some(seconds) => u32::try_from(seconds).unwrap_or(DEFAULT_SECONDS),
                None => self
                    .wrong(name, format!("must be a whole number from {MIN_SECONDS} to {MAX_SECONDS}"))
                    .unwrap_or_default(),
            },
        }
    }

    fn approver(&mut self, value: &Value) -> Approver {
        let Value::Object(object) = value else {
            return self.wrong("approver", "must be an object").unwrap_or_default();
        };
        self.only(object, "approver", &["email", "phone"]);
        let mut contact = |name: &str, is_good: fn(&str) -> bool, message: &str| match given(object, name) {
            None => None,
            Some(Value::String(text)) if is_good(text) => Some(text.clone()),
            Some(_) => self.wrong(format!("approver.{name}"), message),
        };
        Approver {
            email: contact("email", contact::is_email, "must be an e-mail address in ASCII"),
            phone: contact("phone", contact::is_phone, "must be a phone number in E.164 form"),
        }
    }

    fn rule(&mut self, catalog: &Catalog, value: &Value, index: usize) -> Option<Rule> {
        let path = format!("rules.{index}");
        let Value::Object(object) = value else { return self.wrong(path, "must be an object") };
        self.only(object, &path, &["id", "tool", "action", "when"]);
        let id = match given(object, "id") {
            None => Some(format!("rule_{}", index + 1)),
            Some(Value::String(id)) if is_id(id) => Some(id.clone()),
            Some(_) => self.wrong(format!("{path}.id"), "must be 1 to 64 letters, digits, and any of _ . -"),
        };
        let tool = match given(object, "tool").map(Value::as_str) {
            Some(Some(tool)) if is_tool(catalog, tool) => Some(tool.to_owned()),
            Some(_) => self.wrong(
                format!("{path}.tool"),
                "must be email, sms, voice, commerce, identity, linkedin, the name of a tool in the catalog, or *",
            ),
            None => self.wrong(format!("{path}.tool"), "is required"),
        };
        let action = match given(object, "action").map(Value::as_str) {
            Some(Some("require_approval")) => Some(Action::RequireApproval),
            Some(Some("deny")) => Some(Action::Deny),
            Some(_) => self.wrong(format!("{path}.action"), "must be require_approval or deny"),
            None => self.wrong(format!("{path}.action"), "is required"),
        };
        let when = match given(object, "when") {
            Some(Value::Object(when)) => self.when(when, &format!("{path}.when"), tool.as_deref()),
            Some(_) => self.wrong(format!("{path}.when"), "must be an object"),
            None => self.wrong(format!("{path}.when"), "is required"),
        };
        Some(Rule { id: id?, tool: tool?, action: action?, when: when? })
    }

    fn when(&mut self, when: &Object, path: &str, tool: Option<&str>) -> Option<When> {
        const KINDS: [&str; 5] =
            ["always", "amount_over_usdc", "recipients_over", "recipient_domain_not_in", "outside_hours"];
        self.only(when, path, &KINDS);
        let mut present = KINDS.iter().filter_map(|kind| given(when, kind).map(|value| (*kind, value)));
        let (Some((kind, value)), None) = (present.next(), present.next()) else {
            return self.wrong(path, format!("needs exactly one of {}", KINDS.join(", ")));
        };
        let path = format!("{path}.{kind}");
        match kind {
            "always" if *value == Value::Bool(true) => Some(When::Always),
            "always" => self.wrong(path, "must be true"),
            "amount_over_usdc" => {
                let amount = match value {
                    Value::String(text) => Usdc::parse_plain(text),
                    Value::Number(number) => Usdc::parse(&number.to_string()),
                    _ => return self.wrong(path, "must be an amount of USDC"),
                };
                match amount {
                    Ok(amount) => Some(When::AmountOverUsdc(amount)),
                    Err(error) => self.wrong(path, error.to_string()),
                }
            }
            "recipients_over" => match value.as_u64().and_then(|count| u32::try_from(count).ok()) {
                Some(count) if count <= 1000 => Some(When::RecipientsOver(count)),
                _ => self.wrong(path, "must be a whole number from 0 to 1000"),
            },
            "recipient_domain_not_in" if tool.is_some_and(|tool| tool != "email") => {
                self.wrong(path, "applies to the tool email only")
            }
            "recipient_domain_not_in" => self.domains(value, &path),
            _ => self.hours(value, &path),
        }
    }

    fn domains(&mut self, value: &Value, path: &str) -> Option<When> {
        let Some(items) = value.as_array().filter(|items| (1..=MAX_DOMAINS).contains(&items.len())) else {
            return self.wrong(path, format!("must be an array of 1 to {MAX_DOMAINS} domains"));
        };
        let mut domains = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let text = item.as_str().filter(|text| !text.contains(['@', '>']) && text.len() <= 253);
            match text.and_then(|text| domain(&format!("@{text}"))) {
                Some(domain) => domains.push(domain),
                None => drop(self.wrong::<()>(format!("{path}.{index}"), "must be a domain such as example.com")),
            }
        }
        (domains.len() == items.len()).then_some(When::RecipientDomainNotIn(domains))
    }

    fn zone(&mut self, value: Option<&Value>, path: &str) -> Option<Zone> {
        match value.and_then(Value::as_str).and_then(|name| name.parse().ok()) {
            Some(zone) => Some(zone),
            None => self.wrong(path, "must be an IANA time zone such as Europe/Berlin"),
        }
    }

    fn hours(&mut self, value: &Value, path: &str) -> Option<When> {
        let Value::Object(object) = value else { return self.wrong(path, "must be an object") };
        self.only(object, path, &["timezone", "start", "end", "days"]);
        let timezone = self.zone(given(object, "timezone"), &format!("{path}.timezone"));
        let mut time = |name: &str, last: u16| {
            let minutes = match given(object, name) {
                Some(Value::String(text)) => hours::minutes(text),
                // A whole hour.
                Some(Value::Number(hour)) => hour.as_u64().filter(|hour| *hour <= 24).map(|hour| hour as u16 * 60),
                _ => None,
            };
            match minutes.filter(|minutes| *minutes <= last) {
                Some(minutes) => Some(minutes),
                None => self.wrong(format!("{path}.{name}"), "must be a time of day such as 09:00"),
            }
        };
        let (start, end) = (time("start", hours::DAY - 1), time("end", hours::DAY));
        let days = match given(object, "days") {
            None => Some(Vec::new()),
            Some(value) => self.days(value, &format!("{path}.days")),
        };
        let (timezone, start, end, days) = (timezone?, start?, end?, days?);
        if start == end {
            return self.wrong(path, "start and end must differ");
        }
        Some(When::OutsideHours(Hours { timezone, start, end, days }))
    }

    /// Days from 0 (Sunday) to 6 (Saturday). 7 is Sunday too, so that ISO numbers (1 Monday to 7 Sunday) mean the same
    /// days.
    fn days(&mut self, value: &Value, path: &str) -> Option<Vec<u8>> {
        let items = value.as_array().filter(|items| (1..=7).contains(&items.len()));
        let days: Option<Vec<u8>> = items.and_then(|items| {
            let day = |item: &Value| item.as_u64().filter(|day| *day <= 7).map(|day| (day % 7) as u8);
            items.iter().map(day).collect()
        });
        match days {
            Some(mut days) => {
                days.sort_unstable();
                days.dedup();
                Some(days)
            }
            None => self.wrong(path, "must be 1 to 7 numbers of days: 0 or 7 is Sunday, 1 Monday, 6 Saturday"),
        }
    }

    fn unique_ids(&mut self, rules: &[Rule]) {
        for (index, rule) in rules.iter().enumerate() {
            if rules[..index].iter().any(|before| before.id == rule.id) {
                self.wrong::<()>("rules", format!("the id {} is given twice", rule.id));
            }
        }
    }
}

fn is_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn is_tool(catalog: &Catalog, tool: &str) -> bool {
    tool == "*" || ACTIONS.iter().any(|(word, _)| *word == tool) || catalog.find(tool).is_some()
}

#[cfg(test)]
mod tests {
    use catalog::CATALOG;
    use serde_json::json;

    use super::*;

    fn paths(body: Value) -> Vec<String> {
        match policy(&CATALOG, body.as_object().unwrap(), Timestamp::from_secs(0)) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.into_iter().map(|error| error.path).collect(),
        }
    }

    fn when(tool: &str, when: Value) -> Vec<String> {
        paths(json!({"rules": [{"tool": tool, "action": "deny", "when": when}]}))
    }

    #[test]
    fn a_shown_policy_can_be_put_unchanged() {
        let body = json!({
            "rules": [
                {"tool": "*", "action": "require_approval", "when": {"amount_over_usdc": 0.1}},
                {"id": "mine", "tool": "email", "action": "deny",
                 "when": {"recipient_domain_not_in": ["Example.COM", "bücher.example"]}},
                {"tool": "web_read", "action": "deny", "when": {"always": true, "amount_over_usdc": null}},
                {"tool": "sms", "action": "deny", "when": {"recipients_over": 3}},
                {"tool": "*", "action": "require_approval", "when": {"outside_hours":
                    {"timezone": "Europe/Berlin", "start": 9, "end": "17:30", "days": [7, 1, 1]}}},
            ],
            "approver": {"email": "alice@example.com"},
            "timezone": "america/new_york",
        });
        let now = Timestamp::from_secs(0);
        let read = policy(&CATALOG, body.as_object().unwrap(), now).unwrap();
        let view = read.view();
        assert_eq!(view["rules"][0]["id"], "rule_1");
        assert_eq!(view["rules"][0]["when"], json!({"amount_over_usdc": "0.100000"}));
        assert_eq!(
            view["rules"][1]["when"]["recipient_domain_not_in"],
            json!(["example.com", "xn--bcher-kva.example"])
        );
        assert_eq!(view["rules"][4]["when"]["outside_hours"]["days"], json!([0, 1]));
        assert_eq!((&view["enabled"], &view["timeout_seconds"]), (&json!(true), &json!(3600)));
        assert_eq!(view["timezone"], "America/New_York");
        assert!(view["updated_at"].is_string());
        assert_eq!(policy(&CATALOG, view.as_object().unwrap(), now).unwrap(), read);
    }

    #[test]
    fn every_invalid_field_is_reported_with_its_path() {
        assert_eq!(paths(json!({})), ["rules"]);
        assert_eq!(paths(json!({"rules": {}, "enabled": 1, "timeout_seconds": 59, "more": 1})).len(), 4);
        assert_eq!(paths(json!({"rules": vec![json!({}); 26]})), ["rules"]);
        for zone in [json!("Mars/Base"), json!(""), json!(1)] {
            assert_eq!(paths(json!({"rules": [], "timezone": zone})), ["timezone"]);
        }
        assert!(paths(json!({"rules": [], "timezone": null})).is_empty());
        assert_eq!(paths(json!({"rules": [1]})), ["rules.0"]);
        assert_eq!(
            paths(json!({"rules": [{"id": "a b", "tool": "nothing", "action": "hold", "when": {}}]})),
            ["rules.0.id", "rules.0.tool", "rules.0.action", "rules.0.when"]
        );
        let twice = json!({"id": "a", "tool": "*", "action": "deny", "when": {"always": true}});
        assert_eq!(paths(json!({"rules": [twice, twice]})), ["rules"]);
        assert_eq!(
            paths(json!({"rules": [], "approver": {"email": "a@b.co\nBcc: c@d.ef", "phone": 1, "fax": 1}})),
            ["approver.fax", "approver.email", "approver.phone"]
        );
        for (bad, path) in [
            (json!({"always": false}), "always"),
            (json!({"amount_over_usdc": -1}), "amount_over_usdc"),
            (json!({"amount_over_usdc": 0.0000001}), "amount_over_usdc"),
            (json!({"amount_over_usdc": "1e0"}), "amount_over_usdc"),
            (json!({"recipients_over": 1.5}), "recipients_over"),
            (json!({"recipient_domain_not_in": []}), "recipient_domain_not_in"),
            (json!({"recipient_domain_not_in": ["a@b.co"]}), "recipient_domain_not_in.0"),
            (json!({"recipient_domain_not_in": ["10.0.0.1"]}), "recipient_domain_not_in.0"),
            (json!({"outside_hours": {"timezone": "Mars/Base", "start": "1:00", "end": 25}}), "outside_hours.timezone"),
            (json!({"outside_hours": {"timezone": "UTC", "start": "24:00", "end": 1}}), "outside_hours.start"),
            (json!({"outside_hours": {"timezone": "UTC", "start": 1, "end": 1}}), "outside_hours"),
            (json!({"outside_hours": {"timezone": "UTC", "start": 1, "end": 2, "days": [8]}}), "outside_hours.days"),
            (json!({"outside_hours": {"timezone": "UTC", "start": 1, "end": 2, "days": []}}), "outside_hours.days"),
        ] {
            assert_eq!(when("email", bad.clone()).first(), Some(&format!("rules.0.when.{path}")), "{bad}");
        }
        assert_eq!(when("*", json!({"always": true, "recipients_over": 1})), ["rules.0.when"]);
        assert_eq!(when("*", json!({"recipient_domain_not_in": ["a.de"]})), ["rules.0.when.recipient_domain_not_in"]);
    }
}
