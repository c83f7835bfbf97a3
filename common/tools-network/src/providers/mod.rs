//! The networks that accounts are at, behind one trait.
//!
//! | name in `NETWORK_PROVIDERS` | |
//! |---|---|
//! | `local` | a network of this deployment's own, whose members are its agents ([`local`]) |
//! | `unipile` | LinkedIn through Unipile's API, version 1 ([`unipile`]) |

pub mod local;
pub mod unipile;

use std::time::Duration;

use base::clock::Timestamp;
use base::encoding::percent_decoded;
use base::ids::{AgentId, RequestId};
use platform::config::{Capability, Config};
use platform::http::{ApiError, log};
use platform::providers::{Charge, OutboundError};
use platform::store::{BoxFuture, StoreError};
use serde_json::Value;
use tools::spec::{Need, ToolSpec};
use tools::{ErrorCode, Source, ToolError, Toolbox, Unavailable};
use uuid::Uuid;

use crate::account::{Tier, Word};
use crate::action::{Ids, Kind};

/// The providers that have an adapter.
pub const NAMES: [&str; 2] = [local::NAME, unipile::NAME];

/// What they charge.
pub const CHARGES: [Charge; 2] = [local::CHARGE, unipile::CHARGE];

/// What every tool of the family needs.
pub fn needs(_: &ToolSpec, _: &serde_json::Map<String, Value>) -> Vec<Need> {
    vec![Need::Provider(Capability::Network)]
}

/// The provider in use: the first of `NETWORK_PROVIDERS`.
pub fn chosen(config: &Config) -> Option<&'static str> {
    let first = config.providers.order(Capability::Network).first()?;
    NAMES.into_iter().find(|name| name == first)
}

/// The adapter of the provider in use.
pub fn of(toolbox: &Toolbox) -> Option<Box<dyn Provider + '_>> {
    match chosen(&toolbox.config)? {
        local::NAME => Some(Box::new(local::Local { toolbox })),
        _ => Some(Box::new(unipile::Unipile { outbound: &toolbox.outbound })),
    }
}

/// The adapter, for a route.
///
/// # Errors
/// 503 `provider_unavailable` without one.
pub fn needed(toolbox: &Toolbox) -> Result<Box<dyn Provider + '_>, ApiError> {
    of(toolbox).ok_or_else(|| ApiError::NotConfigured { what: Need::Provider(Capability::Network).to_string() })
}

/// Why the provider's answer cannot be used.
#[derive(Debug)]
pub enum Trouble {
    Asked(OutboundError),
    Stored(StoreError),
    /// The account is no longer logged in there, or is gone.
    LoggedOut,
}

impl From<OutboundError> for Trouble {
    fn from(error: OutboundError) -> Trouble {
        Trouble::Asked(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Stored(error)
    }
}

impl Trouble {
    /// For the log.
    pub fn detail(&self) -> String {
        match self {
            Trouble::Asked(error) => error.detail(),
            Trouble::Stored(error) => error.to_string(),
            Trouble::LoggedOut => "the account is not logged in".to_owned(),
        }
    }

    /// For a route.
    pub fn refusal(self) -> ApiError {
        match self {
            Trouble::Stored(error) => ApiError::Unavailable(error),
            other => {
                log::failure("the network's provider failed", &other.detail());
                ApiError::Tool {
                    status: http::StatusCode::SERVICE_UNAVAILABLE,
                    code: "provider_unavailable",
                    message: "the network's provider did not do this now; try again later".to_owned(),
                }
            }
        }
    }

    /// For a job.
    pub fn failure(&self) -> ToolError {
        match self {
            Trouble::Asked(error) => error.of("the network's provider"),
            Trouble::Stored(_) => ToolError::unavailable(Unavailable::SourceUnavailable, "the database did not answer"),
            Trouble::LoggedOut => failed("account_disconnected", "the account is not logged in at the network"),
        }
    }
}

/// A job's failure for one of the family's own reasons.
pub fn failed(reason: &str, message: impl Into<String>) -> ToolError {
    let code = match reason {
        "recipient_not_connected" | "not_connected" => ErrorCode::InvalidInput,
        "content_rejected" => ErrorCode::ContentBlocked,
        "rate_limited" | "account_send_limit" => ErrorCode::RateLimited,
        _ => ErrorCode::ProviderUnavailable,
    };
    ToolError { code, reason: Some(reason.to_owned()), message: message.into() }
}

/// A login that is asked for.
pub struct Login<'a> {
    pub agent: AgentId,
    pub intent: Uuid,
    /// Where the provider says what came of it: with an unguessable token.
    pub callback: &'a str,
    pub expires_at: Timestamp,
    /// The provider's id of the account that logs in again.
    pub again: Option<&'a str>,
    pub success_url: Option<&'a str>,
    pub failure_url: Option<&'a str>,
    /// The service's own origin.
    pub origin: &'a str,
}

/// An account as its provider has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The member's own id, the same at every login.
    pub id: String,
    pub name: Option<String>,
    pub tier: Tier,
    pub word: Word,
}

/// A member as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub provider_id: String,
    pub public_identifier: Option<String>,
    pub name: Option<String>,
    pub headline: Option<String>,
    pub location: Option<String>,
    /// Such as `FIRST_DEGREE`.
    pub network_distance: Option<String>,
    pub is_open_profile: Option<bool>,
}

impl Profile {
    pub fn is_connected(&self) -> bool {
        self.network_distance.as_deref() == Some("FIRST_DEGREE")
    }
}

/// Longest name of a member.
const MAX_NAME: usize = 512;

/// The name of a member as the owner writes it. In the address of a profile, that is the part after `/in/`.
pub fn member_name(text: &str) -> String {
    let path = text.trim().split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let name = match path.to_ascii_lowercase().find("/in/") {
        Some(at) => path[at + "/in/".len()..].split('/').next().unwrap_or_default(),
        None => path,
    };
    percent_decoded(name).chars().take(MAX_NAME).collect()
}

/// Something to do for an account.
pub struct Act<'a> {
    /// The same at each attempt.
    pub key: RequestId,
    pub kind: Kind,
    pub upstream: &'a str,
    /// The chat, member, post or invitation.
    pub target: &'a str,
    /// The message, the note, or the kind of reaction.
    pub text: &'a str,
    /// When it was first tried.
    pub since: Timestamp,
}

/// The reason for which a provider refuses what it does not have any more.
pub const GONE: &str = "gone";

/// The reason for which a provider refuses to invite a connection.
pub const CONNECTED: &str = "already_connected";

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Done(Ids),
    /// Refused for good: a reason of the contract, and a sentence.
    Refused(&'static str, String),
    /// Certainly not done; a later attempt may succeed.
    NotNow(String),
    /// It may have been done.
    Unknown(String),
}

/// What is found of something whose fate is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Each of these may be it, the likeliest first.
    Perhaps(Vec<Ids>),
    /// It is certain that it was not done.
    NotDone,
    /// It may have been done all the same.
    CannotTell,
}

/// A message as the provider has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    pub id: String,
    pub chat: String,
    pub is_own: bool,
    pub sender_id: Option<String>,
    pub sender_name: Option<String>,
    pub text: Option<String>,
    pub at: Timestamp,
    pub is_seen: bool,
    pub is_edited: bool,
    pub is_deleted: bool,
    pub attachments: Vec<Attachment>,
}

/// What is attached to a message. Its bytes stay at the provider.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Attachment {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mimetype: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}

/// Messages of an account, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub messages: Vec<Heard>,
    /// Names the next page.
    pub next: Option<String>,
}

/// A chat as the provider has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chat {
    pub name: Option<String>,
    pub subject: Option<String>,
    pub kind: Option<String>,
    pub unread: u32,
    pub is_archived: bool,
    pub is_read_only: bool,
    pub muted_until: Option<String>,
    pub attendees: Vec<Attendee>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Attendee {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub is_self: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_distance: Option<String>,
}

type Answer<'a, T> = BoxFuture<'a, Result<T, Trouble>>;

/// A network, or who leads to it. `upstream` is the provider's id of an account.
pub trait Provider: Send + Sync {
    /// Its name in settings and rows.
    fn name(&self) -> &'static str;

    fn source(&self) -> Source;

    /// Whether the operator pays it for each account.
    fn is_billed(&self) -> bool;

    /// The pause between two actions of one account.
    fn pace(&self, kind: Kind) -> Duration;

    /// The page where the owner logs in.
    fn link<'a>(&'a self, login: &'a Login<'a>) -> Answer<'a, String>;

    /// The account; `None`: there is none.
    fn member<'a>(&'a self, upstream: &'a str) -> Answer<'a, Option<Member>>;

    /// Deletes the account there. True also if there is none.
    fn forget<'a>(&'a self, upstream: &'a str) -> Answer<'a, bool>;

    /// Looks at a member. `notify`: the member may see that.
    fn profile<'a>(&'a self, upstream: &'a str, identifier: &'a str, notify: bool) -> Answer<'a, Option<Profile>>;

    /// Does it, once.
    fn act<'a>(&'a self, act: &'a Act<'a>) -> BoxFuture<'a, Fate>;

    /// Looks for what was done. An error counts as [`Found::CannotTell`].
    fn look<'a>(&'a self, act: &'a Act<'a>) -> Answer<'a, Found>;

    /// A page of messages.
    fn page<'a>(&'a self, upstream: &'a str, cursor: Option<&'a str>, limit: usize) -> Answer<'a, Page>;

    fn chat<'a>(&'a self, upstream: &'a str, chat: &'a str) -> Answer<'a, Option<Chat>>;

    /// Asks the network for older messages. The provider's word for what it does then.
    fn request_history<'a>(&'a self, upstream: &'a str) -> Answer<'a, String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_named_as_browsers_copy_it() {
        for (text, name) in [
            ("https://www.linkedin.com/in/jane-doe/?x=1", "jane-doe"),
            ("https://www.linkedin.com/IN/jane-doe/details/experience/", "jane-doe"),
            ("linkedin.com/in/ren%C3%A9e", "renée"),
            (" ACoAAB1 ", "ACoAAB1"),
            ("https://www.linkedin.com/in/..", ".."),
        ] {
            assert_eq!(member_name(text), name, "{text}");
        }
    }
}
