//! The texts of agents: where they may go, and what Amazon tells about them.

use super::Reader;
use super::email::{is_configuration_set, is_topic};

/// Default: texts to numbers outside this deployment go to the United States and Canada, 10,000 segments a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmsConfig {
    /// `SMS_COUNTRIES`: comma-separated countries (ISO 3166-1 alpha-2) that texts may be sent to. They do not bind numbers
    /// of this deployment's agents. Stored in upper case. Default `US,CA`.
    pub countries: Vec<String>,
    /// `SMS_DAILY_SEGMENTS`: most segments of all agents to numbers outside this deployment in a UTC day, from 1 to 100
    /// million. Default 10,000.
    pub daily_segments: u32,
    /// `SMS_TOPICS`: comma-separated ARNs of the SNS topics whose events are accepted: what became of texts, and received
    /// texts. Default: none; no event is accepted.
    pub topics: Vec<String>,
    /// `SMS_CONFIGURATION_SET`: the configuration set of AWS End User Messaging that texts are sent with; it publishes their
    /// events. Default: none.
    pub configuration_set: Option<String>,
}

impl Default for SmsConfig {
    fn default() -> SmsConfig {
        let countries = ["US", "CA"].map(str::to_owned).to_vec();
        SmsConfig { countries, daily_segments: 10_000, topics: Vec::new(), configuration_set: None }
    }
}

impl SmsConfig {
    pub(super) fn read(env: &mut Reader<'_>) -> SmsConfig {
        let unset = SmsConfig::default();
        let mut config = SmsConfig { countries: env.countries("SMS_COUNTRIES", &unset.countries), ..unset };
        let segments = env.number("SMS_DAILY_SEGMENTS", config.daily_segments.into(), 1..=100_000_000);
        config.daily_segments = u32::try_from(segments).unwrap_or(config.daily_segments);
        config.topics = env.list("SMS_TOPICS");
        if !config.topics.iter().all(|topic| is_topic(topic)) {
            env.problem("SMS_TOPICS", "must be ARNs of SNS topics, separated by commas");
        }
        config.configuration_set = env.text("SMS_CONFIGURATION_SET");
        if config.configuration_set.as_deref().is_some_and(|name| !is_configuration_set(name)) {
            env.problem("SMS_CONFIGURATION_SET", "must be at most 64 letters, digits, hyphens and underscores");
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (SmsConfig, Vec<String>) {
        let lookup =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let mut env = Reader { lookup: &lookup, problems: Vec::new() };
        let config = SmsConfig::read(&mut env);
        (config, env.problems)
    }

    #[test]
    fn good_values_are_stored_and_bad_ones_are_named() {
        let topic = "arn:aws:sns:eu-west-1:123456789012:texts";
        let (config, problems) = read(&[
            ("SMS_COUNTRIES", " us, DE,"),
            ("SMS_DAILY_SEGMENTS", "500"),
            ("SMS_TOPICS", topic),
            ("SMS_CONFIGURATION_SET", "agents_1"),
        ]);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(config.countries, ["US", "DE"]);
        assert_eq!(config.daily_segments, 500);
        assert_eq!((config.topics, config.configuration_set.as_deref()), (vec![topic.to_owned()], Some("agents_1")));
        let (unset, _) = read(&[]);
        assert_eq!(
            (unset.countries, unset.daily_segments, unset.topics, unset.configuration_set),
            (vec!["US".into(), "CA".into()], 10_000, vec![], None)
        );
        for (name, value) in [
            ("SMS_COUNTRIES", "USA"),
            ("SMS_COUNTRIES", "+1"),
            ("SMS_COUNTRIES", "001"),
            ("SMS_DAILY_SEGMENTS", "0"),
            ("SMS_DAILY_SEGMENTS", "many"),
            ("SMS_TOPICS", "texts"),
            ("SMS_CONFIGURATION_SET", "two words"),
        ] {
            let (_, problems) = read(&[(name, value)]);
            assert!(matches!(&problems[..], [problem] if problem.starts_with(name)), "{name}={value}: {problems:?}");
        }
    }
}
