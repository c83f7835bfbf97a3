//! An agent's action policy: pure rules about one call.

use std::collections::HashSet;

use base::clock::Timestamp;
use base::money::Usdc;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;

use super::approver::Approver;
use super::hours::{self, Hours, Zone};

/// Names for the actions that reach other people or buy things, each with the path of its tool. A rule may also name any
/// tool of the catalog, or `*` for every paid call.
pub const ACTIONS: [(&str, &str); 6] = [
    ("email", "/v1/tools/email/send"),
    ("sms", "/v1/tools/sms/send"),
    ("voice", "/v1/tools/voice/call"),
    ("commerce", "/v1/tools/commerce/buy"),
    ("identity", "/v1/tools/identity/start"),
    // And every other tool below it.
    ("linkedin", "/v1/tools/linkedin/"),
];
/// Most domains that a rule in words names.
const MAX_NAMED: usize = 3;
/// Days as [`Hours`] number them.
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Members of a body that hold recipients.
const RECIPIENTS: [&str; 7] = ["to_address", "to_number", "target_number", "to", "cc", "bcc", "recipients"];

/// An owner's rules for their agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub enabled: bool,
    pub rules: Vec<Rule>,
    #[serde(default)]
    pub approver: Approver,
    /// The time zone that people are told times in; [`Policy::timezone`] if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<Zone>,
    /// How long a held call waits for its decision.
    pub timeout_seconds: u32,
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub id: String,
    /// A name from [`ACTIONS`], a tool's wire name, or `*`.
    pub tool: String,
    pub action: Action,
    pub when: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    RequireApproval,
    Deny,
}

/// The condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    Always,
    /// The price in micro-USDC is above this.
    AmountOverUsdc(Usdc),
    /// There are more recipients than this.
    RecipientsOver(u32),
    /// A recipient's domain is not in this list (lower case; a subdomain is a different domain).
    RecipientDomainNotIn(Vec<String>),
    OutsideHours(Hours),
}

/// The policy's verdict on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    Allow,
    Deny { rule: &'a Rule },
    Hold { rule: &'a Rule },
}

/// The facts that rules are checked against. Past receipts have no recipients, so rules about recipients do not apply.
pub struct Facts<'a> {
    pub tool: &'a str,
    /// The tool's name in [`ACTIONS`].
    pub action: Option<&'a str>,
    pub amount: Usdc,
    pub recipients: Option<Vec<&'a str>>,
    pub at: Timestamp,
}

impl Policy {
    /// Judges a call at this time and price.
    pub fn judge(&self, tool: &ToolSpec, input: &Map<String, Value>, amount: Usdc, now: Timestamp) -> Verdict<'_> {
        let recipients = Some(recipients(input));
        self.judge_facts(&Facts { tool: tool.name, action: action_of(tool), amount, recipients, at: now })
    }

    /// Deny takes precedence over require_approval; among equals the first rule counts.
    pub fn judge_facts(&self, facts: &Facts<'_>) -> Verdict<'_> {
        if !self.enabled {
            return Verdict::Allow;
        }
        let first = |action| self.rules.iter().find(|rule| rule.action == action && rule.applies(facts));
        match (first(Action::Deny), first(Action::RequireApproval)) {
            (Some(rule), _) => Verdict::Deny { rule },
            (None, Some(rule)) => Verdict::Hold { rule },
            (None, None) => Verdict::Allow,
        }
    }

    /// The owner's time zone: the policy's own, or else that of the first rule about hours.
    pub fn timezone(&self) -> Option<&Zone> {
        let of_rules = || {
            self.rules.iter().find_map(|rule| match &rule.when {
                When::OutsideHours(hours) => Some(&hours.timezone),
                _ => None,
            })
        };
        self.timezone.as_ref().or_else(of_rules)
    }

    /// The policy as its owner sees it. The same JSON can be put again.
    pub fn view(&self) -> Value {
        let rules: Vec<Value> = self.rules.iter().map(Rule::view).collect();
        let Approver { email, phone } = &self.approver;
        json!({
            "enabled": self.enabled,
            "rules": rules,
            "approver": {"email": email, "phone": phone},
            "timezone": self.timezone.as_ref().map(Zone::to_string),
            "timeout_seconds": self.timeout_seconds,
            "updated_at": self.updated_at.to_string(),
        })
    }
}

impl Rule {
    fn applies(&self, facts: &Facts<'_>) -> bool {
        let named = self.tool == "*" || self.tool == facts.tool || facts.action == Some(self.tool.as_str());
        named && self.when.holds(facts)
    }

    /// The rule in words, for people.
    pub fn words(&self) -> String {
        match (&self.when, self.tool.as_str()) {
            (When::Always, "*") => "every paid call".to_owned(),
            (When::Always, tool) => format!("every call of {tool}"),
            (when, _) => when.words(),
        }
    }

    fn view(&self) -> Value {
        json!({"id": self.id, "tool": self.tool, "action": self.action, "when": self.when.view()})
    }
}

impl When {
    fn holds(&self, facts: &Facts<'_>) -> bool {
        match self {
            When::Always => true,
            When::AmountOverUsdc(limit) => facts.amount > *limit,
            When::RecipientsOver(limit) => {
                facts.recipients.as_ref().is_some_and(|recipients| recipients.len() > *limit as usize)
            }
            // If no recipients can be found, none of them is allowed.
            When::RecipientDomainNotIn(allowed) => facts.recipients.as_ref().is_some_and(|recipients| {
                let good = |recipient: &&str| domain(recipient).is_some_and(|domain| allowed.contains(&domain));
                recipients.is_empty() || !recipients.iter().all(good)
            }),
            When::OutsideHours(hours) => !hours.contain(facts.at),
        }
    }

    fn words(&self) -> String {
        match self {
            When::Always => "every call".to_owned(),
            When::AmountOverUsdc(limit) => format!("amount over {} USDC", brief(*limit)),
            When::RecipientsOver(limit) => format!("more than {limit} recipients"),
            When::RecipientDomainNotIn(domains) => {
                let named: Vec<&str> = domains.iter().take(MAX_NAMED).map(String::as_str).collect();
                let others = match domains.len() - named.len() {
                    0 => String::new(),
                    others => format!(" and {others} others"),
                };
                format!("a recipient outside {}{others}", named.join(", "))
            }
            When::OutsideHours(Hours { timezone, start, end, days }) => {
                let days = match days.as_slice() {
                    [] => String::new(),
                    days => {
                        let names: Vec<&str> =
                            days.iter().filter_map(|day| DAYS.get(usize::from(*day)).copied()).collect();
                        format!(" on {}", names.join(", "))
                    }
                };
                format!("outside {} to {}{days} ({timezone})", hours::clock_text(*start), hours::clock_text(*end))
            }
        }
    }

    /// Whether the condition needs the call's body.
    pub fn looks_at_recipients(&self) -> bool {
        matches!(self, When::RecipientsOver(_) | When::RecipientDomainNotIn(_))
    }

    fn view(&self) -> Value {
        match self {
            When::Always => json!({"always": true}),
            When::AmountOverUsdc(limit) => json!({"amount_over_usdc": limit.to_string()}),
            When::RecipientsOver(limit) => json!({"recipients_over": limit}),
            When::RecipientDomainNotIn(domains) => json!({"recipient_domain_not_in": domains}),
            When::OutsideHours(window) => {
                let mut view = json!({
                    "timezone": window.timezone.to_string(),
                    "start": hours::clock_text(window.start),
                    "end": hours::clock_text(window.end),
                });
                if !window.days.is_empty() {
                    view["days"] = json!(window.days);
                }
                json!({"outside_hours": view})
            }
        }
    }
}

/// An amount without needless zeros: 0.50.
fn brief(amount: Usdc) -> String {
    let text = amount.to_string();
    let (whole, rest) = text.split_once('.').unwrap_or((text.as_str(), ""));
    format!("{whole}.{:0<2}", rest.trim_end_matches('0'))
}

/// The name of a tool in [`ACTIONS`].
pub fn action_of(tool: &ToolSpec) -> Option<&'static str> {
    let is_of = |path: &str| match path.ends_with('/') {
        true => tool.path().starts_with(path),
        false => tool.paths.contains(&path),
    };
    ACTIONS.iter().find(|(_, path)| is_of(path)).map(|(word, _)| *word)
}

/// All recipients in a body, each once. A string with several addresses counts as several.
fn recipients(input: &Map<String, Value>) -> Vec<&str> {
    let values = RECIPIENTS.iter().filter_map(|member| input.get(*member)).flat_map(|value| match value {
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    });
    let mut seen = HashSet::new();
    values
        .flat_map(|value| value.as_str().unwrap_or("").split([',', ';']))
        .map(str::trim)
        .filter(|text| !text.is_empty() && seen.insert(folded(text)))
        .collect()
}

/// What two spellings of one recipient have in common: as when mail is sent and priced, neither case nor the script of the
/// domain makes another recipient.
fn folded(recipient: &str) -> String {
    match (recipient.rsplit_once('@'), domain(recipient)) {
        (Some((name, _)), Some(domain)) => format!("{}@{domain}", name.to_ascii_lowercase()),
        _ => recipient.to_ascii_lowercase(),
    }
}

/// The domain of an address, or of `Name <address>`: in lower case, international names in ASCII form.
pub fn domain(address: &str) -> Option<String> {
    let (_, domain) = address.rsplit_once('@')?;
    let domain = domain.trim().trim_end_matches('>').trim_end().trim_end_matches('.');
    match url::Host::parse(domain) {
        Ok(url::Host::Domain(domain)) if base::contact::is_domain(&domain) => Some(domain),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_secs(1_795_262_400); // 2026-11-21T12:00:00Z

    fn policy(rules: &[(&str, Action, When)]) -> Policy {
        let rules = rules.iter().enumerate().map(|(index, (tool, action, when))| Rule {
            id: format!("rule_{}", index + 1),
            tool: (*tool).to_owned(),
            action: *action,
            when: when.clone(),
        });
        Policy {
            enabled: true,
            rules: rules.collect(),
            approver: Approver::default(),
            timezone: None,
            timeout_seconds: 3600,
            updated_at: NOON,
        }
    }

    fn verdict(policy: &Policy, tool: &str, input: Value, micro: u64) -> String {
        let action = ACTIONS.iter().map(|(word, _)| *word).find(|word| *word == tool);
        let recipients = Some(recipients(input.as_object().unwrap()));
        let facts = Facts { tool, action, amount: Usdc::from_micro(micro), recipients, at: NOON };
        match policy.judge_facts(&facts) {
            Verdict::Allow => "allow".to_owned(),
            Verdict::Deny { rule } => format!("deny {}", rule.id),
            Verdict::Hold { rule } => format!("hold {}", rule.id),
        }
    }

    #[test]
    fn rules_give_the_expected_verdicts() {
        use Action::{Deny, RequireApproval as Hold};
        let over = |text: &str| When::AmountOverUsdc(Usdc::parse(text).unwrap());
        let office = || When::RecipientDomainNotIn(vec!["example.com".to_owned(), "xn--bcher-kva.example".to_owned()]);
        let to = |to: Value| json!({"to_address": to});
        for (name, rules, tool, input, micro, expected) in [
            ("nothing", vec![], "web_read", json!({}), 1, "allow"),
            ("every call", vec![("*", Hold, When::Always)], "web_read", json!({}), 1, "hold rule_1"),
            ("another tool", vec![("sms", Hold, When::Always)], "web_read", json!({}), 1, "allow"),
            ("a tool by name", vec![("web_read", Deny, When::Always)], "web_read", json!({}), 1, "deny rule_1"),
            (
                "deny wins, wherever it stands",
                vec![("*", Hold, When::Always), ("email", Deny, When::Always)],
                "email",
                json!({}),
                1,
                "deny rule_2",
            ),
            ("the limit itself is not over it", vec![("*", Hold, over("0.002"))], "x", json!({}), 2_000, "allow"),
            ("one millionth over", vec![("*", Hold, over("0.002"))], "x", json!({}), 2_001, "hold rule_1"),
            ("no recipients", vec![("*", Hold, When::RecipientsOver(0))], "x", json!({}), 1, "allow"),
            (
                "counted over all members",
                vec![("email", Hold, When::RecipientsOver(2))],
                "email",
                json!({"to_address": ["a@x.de", "b@x.de"], "cc": "c@x.de"}),
                1,
                "hold rule_1",
            ),
            (
                "a repeated address counts once",
                vec![("email", Hold, When::RecipientsOver(1))],
                "email",
                to(json!(["a@b\u{fc}cher.example", "A@xn--bcher-kva.EXAMPLE"])),
                1,
                "allow",
            ),
            (
                "several in one text",
                vec![("email", Hold, When::RecipientsOver(1))],
                "email",
                to(json!("a@x.de, b@x.de")),
                1,
                "hold rule_1",
            ),
            ("in the office", vec![("email", Deny, office())], "email", to(json!("Ann <a@EXAMPLE.com.>")), 1, "allow"),
            ("an IDN", vec![("email", Deny, office())], "email", to(json!("a@bücher.example")), 1, "allow"),
            ("a subdomain", vec![("email", Deny, office())], "email", to(json!("a@x.example.com")), 1, "deny rule_1"),
            ("a suffix", vec![("email", Deny, office())], "email", to(json!("a@notexample.com")), 1, "deny rule_1"),
            (
                "one of many",
                vec![("email", Deny, office())],
                "email",
                to(json!(["a@example.com", "b@evil.com"])),
                1,
                "deny rule_1",
            ),
            (
                "hidden before a good one",
                vec![("email", Deny, office())],
                "email",
                to(json!("b@evil.com;a@example.com")),
                1,
                "deny rule_1",
            ),
            ("no address", vec![("email", Deny, office())], "email", to(json!("nobody")), 1, "deny rule_1"),
            ("nobody at all", vec![("email", Deny, office())], "email", json!({}), 1, "deny rule_1"),
        ] {
            assert_eq!(verdict(&policy(&rules), tool, input, micro), expected, "{name}");
        }
        let mut off = policy(&[("*", Deny, When::Always)]);
        off.enabled = false;
        assert_eq!(verdict(&off, "web_read", json!({}), 1), "allow");
    }

    #[test]
    fn people_are_told_rules_in_words() {
        let hours = |days: &[u8]| {
            let timezone = "Europe/Berlin".parse().unwrap();
            When::OutsideHours(Hours { timezone, start: 540, end: 1020, days: days.to_vec() })
        };
        let domains = |count: usize| When::RecipientDomainNotIn((0..count).map(|n| format!("{n}.de")).collect());
        let over = |text: &str| When::AmountOverUsdc(Usdc::parse(text).unwrap());
        for (tool, when, words) in [
            ("*", When::Always, "every paid call"),
            ("sms", When::Always, "every call of sms"),
            ("*", over("0.5"), "amount over 0.50 USDC"),
            ("*", over("20"), "amount over 20.00 USDC"),
            ("*", over("0.002"), "amount over 0.002 USDC"),
            ("sms", When::RecipientsOver(3), "more than 3 recipients"),
            ("email", domains(2), "a recipient outside 0.de, 1.de"),
            ("email", domains(5), "a recipient outside 0.de, 1.de, 2.de and 2 others"),
            ("*", hours(&[]), "outside 09:00 to 17:00 (Europe/Berlin)"),
            ("*", hours(&[0, 1]), "outside 09:00 to 17:00 on Sunday, Monday (Europe/Berlin)"),
        ] {
            assert_eq!(policy(&[(tool, Action::Deny, when)]).rules[0].words(), words);
        }
    }

    #[test]
    fn a_policy_survives_storage() {
        let hours = Hours { timezone: "Europe/Berlin".parse().unwrap(), start: 540, end: 1020, days: vec![1, 2] };
        let mut policy = policy(&[
            ("*", Action::Deny, When::OutsideHours(hours)),
            ("email", Action::RequireApproval, When::RecipientDomainNotIn(vec!["a.de".to_owned()])),
            ("*", Action::RequireApproval, When::AmountOverUsdc(Usdc::from_micro(1))),
            ("*", Action::RequireApproval, When::Always),
        ]);
        for (own, told) in [(None, "Europe/Berlin"), (Some("America/New_York"), "America/New_York")] {
            policy.timezone = own.map(|name| name.parse().unwrap());
            assert_eq!(policy.timezone().map(Zone::to_string).as_deref(), Some(told));
            let stored: platform::store::Item = serde_dynamo::to_item(&policy).unwrap();
            assert_eq!(platform::store::db::parse::<Policy>(stored).unwrap(), policy);
        }
    }
}
