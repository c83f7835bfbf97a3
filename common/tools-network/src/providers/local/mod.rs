//! The local network: members, connections, chats and posts inside this deployment. Its members are agents of this service. It is
//! no part of any other network, and says so wherever it shows itself.
//!
//! What members do by hand at a real network (log in, accept invitations, write posts) they do here by free routes
//! ([`members`]) and on its login page ([`login`]).

pub mod login;
pub mod members;

use std::time::Duration;

use base::ids::RequestId;
use platform::config::Capability;
use platform::http::log;
use platform::providers::{Amount, Charge};
use platform::store::{BoxFuture, StoreError};
use tools::{Source, Toolbox};
use uuid::Uuid;

use self::members::{Gone, Sent};
use super::{Act, Answer, Attendee, Chat, Fate, Found, GONE, Heard, Login, Member, Page, Profile, Provider, Trouble};
use crate::account::{Tier, Word};
use crate::action::{Ids, Kind};
use crate::{events, invitations};

pub const NAME: &str = "local";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Network,
    tools: &["linkedin_message"],
    amount: Amount::Unknown("nothing outside this deployment"),
};
/// How it calls itself.
pub const TITLE: &str = "Local network of this service";
const SOURCE: &str = "local_network";

pub struct Local<'a> {
    pub toolbox: &'a Toolbox,
}

impl Local<'_> {
    /// The member that is logged in.
    async fn me(&self, upstream: &str) -> Result<members::Member, Trouble> {
        let session = members::session(&self.toolbox.db, upstream).await?.filter(|session| !session.is_over);
        let session = session.ok_or(Trouble::LoggedOut)?;
        members::load(&self.toolbox.db, session.member).await?.ok_or(Trouble::LoggedOut)
    }

    async fn try_act(&self, act: &Act<'_>) -> Result<Fate, Trouble> {
        let (db, now) = (&self.toolbox.db, self.toolbox.clock.now());
        let me = self.me(act.upstream).await?;
        let other = || Uuid::try_parse(act.target).unwrap_or_default();
        Ok(match act.kind {
            Kind::Reply | Kind::Message => {
                let chat = if act.kind == Kind::Reply { other() } else { members::chat_of(me.id, other()) };
                match members::write(db, (act.key, now), &me, chat, other(), act.text).await? {
                    Ok(sent) => self.deliver(&me, sent).await,
                    Err(gone) => refused(gone),
                }
            }
            Kind::React => match members::react(db, &me, other(), act.text, now).await? {
                Ok(()) => Fate::Done(Ids { at: Some(now), ..Ids::default() }),
                Err(gone) => refused(gone),
            },
            Kind::Invite => match members::invite(db, act.key, &me, other(), act.text, now).await? {
                Ok(invitation) => Fate::Done(Ids { invitation: Some(invitation), at: Some(now), ..Ids::default() }),
                Err(gone) => refused(gone),
            },
            Kind::WithdrawInvite => match members::withdraw(db, act.key, &me, act.target, now).await? {
                Ok(()) => Fate::Done(Ids { at: Some(now), ..Ids::default() }),
                Err(gone) => refused(gone),
            },
            Kind::ProfileView => Fate::Refused("provider_unavailable", "a view is a read".to_owned()),
        })
    }

    /// Tells the recipient's account of a message, as a network's webhook would. What is lost here is found by the next sync.
    async fn deliver(&self, me: &members::Member, sent: Sent) -> Fate {
        let heard = Heard { is_own: false, ..heard(&sent.message, None, Some(&me.name)) };
        if let Err(error) = events::deliver(self.toolbox, NAME, &sent.to.to_string(), &heard).await {
            log::failure("a message of the local network was not delivered at once", &error);
        }
        let message = sent.message;
        Fate::Done(Ids {
            message: Some(message.id.to_string()),
            chat: Some(message.chat.to_string()),
            invitation: None,
            at: Some(message.at),
        })
    }

    async fn try_chat(&self, upstream: &str, chat: &str) -> Result<Option<Chat>, Trouble> {
        let me = self.me(upstream).await?;
        let Ok(chat) = Uuid::try_parse(chat) else { return Ok(None) };
        let Some(members) = members::chat(&self.toolbox.db, chat).await?.filter(|all| all.contains(&me.id)) else {
            return Ok(None);
        };
        let mut attendees = Vec::new();
        for id in members {
            let member = members::load(&self.toolbox.db, id).await?;
            attendees.push(Attendee {
                provider_id: Some(id.to_string()),
                name: member.map(|member| member.name),
                is_self: id == me.id,
                network_distance: (id != me.id).then(|| "FIRST_DEGREE".to_owned()),
                ..Attendee::default()
            });
        }
        let name = attendees.iter().find(|attendee| !attendee.is_self).and_then(|other| other.name.clone());
        Ok(Some(Chat { name, kind: Some("direct".to_owned()), attendees, ..Chat::default() }))
    }
}

/// A stored message, as `me` sees it.
fn heard(message: &members::Message, me: Option<Uuid>, sender: Option<&str>) -> Heard {
    Heard {
        id: message.id.to_string(),
        chat: message.chat.to_string(),
        is_own: me == Some(message.from),
        sender_id: Some(message.from.to_string()),
        sender_name: sender.map(str::to_owned),
        text: Some(message.text.clone()),
        at: message.at,
        ..Heard::default()
    }
}

fn refused(gone: Gone) -> Fate {
    let (reason, why) = match gone {
        Gone::NotConnected => ("recipient_not_connected", "the member is not a connection of this account"),
        Gone::NoSuchMember => ("not_connected", "the local network has no such member"),
        Gone::NoSuchPost => ("not_connected", "the local network has no such post"),
        Gone::NotPending => (GONE, "the invitation is not pending"),
    };
    Fate::Refused(reason, why.to_owned())
}

impl Provider for Local<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> Source {
        Source::embedded(SOURCE)
    }

    fn is_billed(&self) -> bool {
        false
    }

    fn pace(&self, _: Kind) -> Duration {
        Duration::ZERO
    }

    fn link<'a>(&'a self, login: &'a Login<'a>) -> Answer<'a, String> {
        Box::pin(async move { Ok(login::begin(&self.toolbox.db, login, self.toolbox.clock.now()).await?) })
    }

    fn member<'a>(&'a self, upstream: &'a str) -> Answer<'a, Option<Member>> {
        Box::pin(async move {
            let Some(session) = members::session(&self.toolbox.db, upstream).await? else { return Ok(None) };
            let member = members::load(&self.toolbox.db, session.member).await?;
            let word = if session.is_over { Word::Deleted } else { Word::Ok };
            Ok(member.map(|member| Member {
                id: member.id.to_string(),
                name: Some(member.name),
                tier: Tier::Paid,
                word,
            }))
        })
    }

    fn forget<'a>(&'a self, upstream: &'a str) -> Answer<'a, bool> {
        Box::pin(async move { Ok(members::log_out(&self.toolbox.db, upstream).await?) })
    }

    fn profile<'a>(&'a self, upstream: &'a str, identifier: &'a str, _: bool) -> Answer<'a, Option<Profile>> {
        Box::pin(async move {
            let me = self.me(upstream).await?;
            let Some(member) = members::find(&self.toolbox.db, identifier).await? else { return Ok(None) };
            let distance = match members::are_connected(&self.toolbox.db, me.id, member.id).await? {
                _ if me.id == member.id => "SELF",
                true => "FIRST_DEGREE",
                false => "OUT_OF_NETWORK",
            };
            Ok(Some(Profile {
                provider_id: member.id.to_string(),
                public_identifier: Some(member.id.to_string()),
                name: Some(member.name),
                headline: Some(member.headline),
                location: Some(TITLE.to_owned()),
                network_distance: Some(distance.to_owned()),
                is_open_profile: Some(false),
            }))
        })
    }

    fn act<'a>(&'a self, act: &'a Act<'a>) -> BoxFuture<'a, Fate> {
        Box::pin(async move {
            match self.try_act(act).await {
                Ok(fate) => fate,
                Err(Trouble::LoggedOut) => {
                    Fate::Refused("account_disconnected", "the account is not logged in".to_owned())
                }
                // The write may have arrived. Its key says so.
                Err(error) => Fate::Unknown(error.detail()),
            }
        })
    }

    /// Everything here is done under a key, so that it is known whether it was, and doing it again changes nothing.
    fn look<'a>(&'a self, act: &'a Act<'a>) -> Answer<'a, Found> {
        Box::pin(async move {
            let ids = done(self.toolbox, act.key).await?;
            Ok(ids.map_or(Found::NotDone, |ids| Found::Perhaps(vec![ids])))
        })
    }

    fn page<'a>(&'a self, upstream: &'a str, cursor: Option<&'a str>, limit: usize) -> Answer<'a, Page> {
        Box::pin(async move {
            let me = self.me(upstream).await?;
            let (messages, next) = members::feed(&self.toolbox.db, me.id, cursor, limit).await?;
            Ok(Page { messages: messages.iter().map(|message| heard(message, Some(me.id), None)).collect(), next })
        })
    }

    fn chat<'a>(&'a self, upstream: &'a str, chat: &'a str) -> Answer<'a, Option<Chat>> {
        Box::pin(self.try_chat(upstream, chat))
    }

    /// All of it is here.
    fn request_history<'a>(&'a self, _: &'a str) -> Answer<'a, String> {
        Box::pin(async { Ok("IDLE".to_owned()) })
    }
}

async fn done(toolbox: &Toolbox, key: RequestId) -> Result<Option<Ids>, StoreError> {
    members::done(&toolbox.db, key).await
}

/// A member accepts an invitation. Both are connections then, and the account that invited is told.
///
/// # Errors
/// `Ok(false)`: there is no such pending invitation.
pub async fn accept(toolbox: &Toolbox, me: &members::Member, from: Uuid) -> Result<bool, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let Some(invitation) = members::accept(db, me, from, now).await? else { return Ok(false) };
    if let Some(account) = crate::account::of_member(db, NAME, &from.to_string()).await? {
        invitations::accepted(db, account.id, &invitation, now).await?;
    }
    Ok(true)
}
