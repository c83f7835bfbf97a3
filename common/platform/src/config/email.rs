//! The e-mail of agents: domains of the operator, and what Amazon SES tells about mails.

use super::Reader;

/// Default: no domains. Agents then send only from domains of their own, and only domains of agents receive mail. 10,000 mails a
/// day go out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailConfig {
    /// `EMAIL_DOMAINS`: comma-separated domains that belong to the operator. Each agent gets an address on each of them.
    /// Stored in lower case. Default: none.
    pub domains: Vec<String>,
    /// `EMAIL_TOPICS`: comma-separated ARNs of the SNS topics whose events are accepted: what became of mails, and received
    /// mail. Default: none; no event is accepted.
    pub topics: Vec<String>,
    /// `EMAIL_CONFIGURATION_SET`: the SES configuration set that mails are sent with; it publishes their events. Default:
    /// none.
    pub configuration_set: Option<String>,
    /// `EMAIL_DAILY_MAILS`: most mails of all agents to addresses outside this deployment in a UTC day, from 1 to 100 million.
    /// Default 10,000.
    pub daily_mails: u32,
}

impl Default for EmailConfig {
    fn default() -> EmailConfig {
        EmailConfig { domains: Vec::new(), topics: Vec::new(), configuration_set: None, daily_mails: 10_000 }
    }
}

impl EmailConfig {
    pub(super) fn read(env: &mut Reader<'_>) -> EmailConfig {
        let domains: Vec<String> =
            env.list("EMAIL_DOMAINS").into_iter().map(|domain| domain.to_ascii_lowercase()).collect();
        if !domains.iter().all(|domain| base::contact::is_domain(domain)) {
            env.problem("EMAIL_DOMAINS", "must be domain names such as mail.example.com, separated by commas");
        }
        let topics = env.list("EMAIL_TOPICS");
        if !topics.iter().all(|topic| is_topic(topic)) {
            env.problem("EMAIL_TOPICS", "must be ARNs of SNS topics, separated by commas");
        }
        let configuration_set = env.text("EMAIL_CONFIGURATION_SET");
        if configuration_set.as_deref().is_some_and(|name| !is_configuration_set(name)) {
            env.problem("EMAIL_CONFIGURATION_SET", "must be at most 64 letters, digits, hyphens and underscores");
        }
        let unset = EmailConfig::default().daily_mails;
        let mails = env.number("EMAIL_DAILY_MAILS", unset.into(), 1..=100_000_000);
        let daily_mails = u32::try_from(mails).unwrap_or(unset);
        EmailConfig { domains, topics, configuration_set, daily_mails }
    }
}

/// `arn:aws:sns:us-east-1:000000000000:name`
pub(super) fn is_topic(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    matches!(parts[..], ["arn", partition, "sns", region, account, name]
        if [partition, region, account, name].iter().all(|part| !part.is_empty()))
}

/// Amazon SES API Reference v2, "CreateConfigurationSet": `ConfigurationSetName`.
pub(super) fn is_configuration_set(name: &str) -> bool {
    name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (EmailConfig, Vec<String>) {
        let lookup =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let mut env = Reader { lookup: &lookup, problems: Vec::new() };
        let config = EmailConfig::read(&mut env);
        (config, env.problems)
    }

    #[test]
    fn good_values_are_stored_and_bad_ones_are_named() {
        let topic = "arn:aws:sns:eu-west-1:123456789012:mail-events";
        let (config, problems) = read(&[
            ("EMAIL_DOMAINS", " Agents.Test, mail.example.com,"),
            ("EMAIL_TOPICS", topic),
            ("EMAIL_CONFIGURATION_SET", "agents_1"),
            ("EMAIL_DAILY_MAILS", "500"),
        ]);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(config.domains, ["agents.test", "mail.example.com"]);
        assert_eq!((config.topics, config.configuration_set.as_deref()), (vec![topic.to_owned()], Some("agents_1")));
        assert_eq!(config.daily_mails, 500);
        assert_eq!(read(&[]), (EmailConfig::default(), Vec::new()));
        let long = "x".repeat(65);
        for (name, value) in [
            ("EMAIL_DOMAINS", "agents.test,localhost"),
            ("EMAIL_DOMAINS", "an agent.test"),
            ("EMAIL_DOMAINS", "user@agents.test"),
            ("EMAIL_DOMAINS", "192.0.2.1"),
            ("EMAIL_TOPICS", "mail-events"),
            ("EMAIL_TOPICS", "arn:aws:sqs:eu-west-1:123456789012:mail-events"),
            ("EMAIL_TOPICS", "arn:aws:sns:eu-west-1:123456789012:"),
            ("EMAIL_TOPICS", "arn:aws:sns:eu-west-1:123456789012:mail-events:7e2a5c1e-0000"),
            ("EMAIL_CONFIGURATION_SET", "two words"),
            ("EMAIL_DAILY_MAILS", "0"),
            ("EMAIL_CONFIGURATION_SET", &long),
        ] {
            let (_, problems) = read(&[(name, value)]);
            assert!(matches!(&problems[..], [problem] if problem.starts_with(name)), "{name}={value}: {problems:?}");
        }
    }
}
