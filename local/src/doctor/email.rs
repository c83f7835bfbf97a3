//! Checks the settings of agents' e-mail against each other: who can be written to, and who hears of bounces.

use platform::config::{Capability, Config};

use super::Report;

const CHECK: &str = "e-mail";

pub fn check(config: &Config, report: &mut Report) {
    let email = &config.email;
    let provider = config.providers.order(Capability::Email).first().map(String::as_str);
    if email.domains.is_empty() {
        let remedy = "set EMAIL_DOMAINS to a domain of yours whose mail nobody else takes (docs/EMAIL.md)";
        report.warn(CHECK, "EMAIL_DOMAINS is not set, so agents only have addresses on domains of their own", remedy);
    } else {
        report.ok(CHECK, format!("agents have addresses on {}", email.domains.join(", ")));
    }
    match provider {
        None => {
            let remedy = "set EMAIL_PROVIDERS to ses or smtp, if agents are to write to others (docs/EMAIL.md)";
            report.warn(CHECK, "EMAIL_PROVIDERS is not set, so addresses outside this deployment are refused", remedy);
        }
        Some("smtp") if config.mail.smtp_url.is_none() => {
            let remedy = "set SMTP_URL and MAIL_FROM, or take smtp out of EMAIL_PROVIDERS";
            report.fail(CHECK, "EMAIL_PROVIDERS names smtp, but there is no relay", remedy);
        }
        Some("ses") if email.topics.is_empty() || email.configuration_set.is_none() => {
            let remedy = "set EMAIL_CONFIGURATION_SET to a set that publishes to a topic, and EMAIL_TOPICS to that topic \
                          (docs/EMAIL.md)";
            report.warn(CHECK, "nobody tells this deployment of bounces and complaints at SES", remedy);
        }
        Some(name) => report.ok(CHECK, format!("mails to others go by {name}")),
    }
}
