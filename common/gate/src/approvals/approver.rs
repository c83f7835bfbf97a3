//! The human who decides: an e-mail address or a phone number, and the masked form that agents may see.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The human who decides. If both are given, the mail address is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approver {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
}

impl Approver {
    /// The one contact that decides: the mail address before the phone number. `None` if there is neither.
    pub fn one(&self) -> Option<Approver> {
        match (&self.email, &self.phone) {
            (Some(email), _) => Some(Approver { email: Some(email.clone()), phone: None }),
            (None, Some(phone)) => Some(Approver { email: None, phone: Some(phone.clone()) }),
            (None, None) => None,
        }
    }

    /// Whether the same contact decides.
    pub fn is_same(&self, other: &Approver) -> bool {
        match (self.one(), other.one()) {
            (Some(own), Some(other)) => own.includes(&other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether a single contact is one of these.
    pub fn includes(&self, one: &Approver) -> bool {
        let digits = |phone: &str| phone.trim_start_matches('+').to_owned();
        match (&one.email, &one.phone) {
            (Some(email), None) => self.email.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(email)),
            (None, Some(phone)) => self.phone.as_ref().is_some_and(|own| digits(own) == digits(phone)),
            _ => false,
        }
    }

    /// Channel and masked address: enough to recognise one's own approver, not enough to write to them.
    pub fn masked(&self) -> Value {
        match (&self.email, &self.phone) {
            (Some(email), _) => json!({"channel": "email", "address": masked_email(email)}),
            (None, Some(phone)) => json!({"channel": "phone", "address": masked_phone(phone)}),
            (None, None) => Value::Null,
        }
    }
}

fn masked_email(email: &str) -> String {
    let (local, domain) = email.rsplit_once('@').unwrap_or((email, ""));
    format!("{}***@{domain}", local.chars().next().unwrap_or('*'))
}

fn masked_phone(phone: &str) -> String {
    let last: Vec<char> = phone.chars().rev().take(2).collect();
    format!("***{}", last.into_iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_address_cannot_be_written_to() {
        let approver = Approver { email: Some("alice@example.com".to_owned()), phone: None };
        assert_eq!(approver.masked(), json!({"channel": "email", "address": "a***@example.com"}));
        let approver = Approver { email: None, phone: Some("+15551234567".to_owned()) };
        assert_eq!(approver.masked(), json!({"channel": "phone", "address": "***67"}));
    }
}
