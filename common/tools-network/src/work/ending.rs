//! How an action ends: what is written with its last state, and the job's result.

use base::ids::RequestId;
use base::money::Usdc;
use platform::store::{StoreError, Write, WriteError};
use serde_json::{Value, json};
use tools::Output;
use tools::run::Stop;

use super::{Moved, Work, source};
use crate::action::{Action, Event, Ids, Kind, State};
use crate::inbox::{self, By};
use crate::invitations;
use crate::providers::{CONNECTED, GONE, Heard, failed};

impl Work<'_> {
    /// The writes by which the action's place is used, or free again.
    pub(super) fn settled(&self, action: &Action, is_sent: bool) -> Result<Vec<Write>, StoreError> {
        action.settle_place(self.db(), is_sent)
    }

    /// The writes that say what became of the action's invitation.
    pub(super) async fn invitation(
        &self,
        action: &Action,
        status: invitations::Status,
        provider_id: Option<&str>,
    ) -> Result<Vec<Write>, Stop> {
        let Some(id) = action.invitation else { return Ok(Vec::new()) };
        Ok(invitations::becomes(self.db(), (action.account, id), status, provider_id, self.now()).await?)
    }

    /// The network has it. `None`: what was found is another action's.
    pub(super) async fn sent(&self, action: &Action, ids: &Ids) -> Result<Option<Moved>, Stop> {
        let Some(mut next) = action.after(Event::Done, self.now()) else { return self.latest(action).await.map(Some) };
        next.ids = ids.clone();
        let mut writes = action.change(self.db(), &next)?;
        writes.extend(self.settled(action, true)?);
        if let Some(message) = &ids.message {
            writes.push(action.own(self.db(), message)?);
        }
        let invitation = match action.kind {
            Kind::Invite => self.invitation(action, invitations::Status::Sent, ids.invitation.as_deref()).await?,
            Kind::WithdrawInvite => self.invitation(action, invitations::Status::Withdrawn, None).await?,
            _ => Vec::new(),
        };
        writes.extend(invitation);
        match self.db().apply(writes).await {
            Ok(()) => Ok(Some(Moved::to(next))),
            Err(refused @ WriteError::Refused(_)) => match refused.refused(0) {
                Some(_) => self.latest(action).await.map(Some),
                None => Ok(None),
            },
            Err(WriteError::Failed(error)) => Err(error.into()),
        }
    }

    /// The network refuses it for good. An invitation that it does not have any more is not pending.
    pub(super) async fn refused(&self, action: &Action, reason: &str, why: &str) -> Result<Moved, Stop> {
        match action.kind {
            Kind::WithdrawInvite if reason == GONE => self.nothing(action, "not_pending").await,
            Kind::Invite if reason == CONNECTED => self.nothing(action, CONNECTED).await,
            _ => self.fail(action, if reason == GONE { "not_connected" } else { reason }, why).await,
        }
    }

    pub(super) async fn fail(&self, action: &Action, reason: &str, why: &str) -> Result<Moved, Stop> {
        self.fail_for(action, (reason, why), None).await
    }

    /// Stops an invitation that is not sent yet, for a withdrawal.
    pub(super) async fn stop(&self, invite: &Action, withdrawal: RequestId) -> Result<Moved, Stop> {
        self.fail_for(invite, ("withdrawn", "it was withdrawn before it was sent"), Some(withdrawal)).await
    }

    async fn fail_for(
        &self,
        action: &Action,
        (reason, why): (&str, &str),
        stopped_by: Option<RequestId>,
    ) -> Result<Moved, Stop> {
        let Some(mut next) = action.after(Event::Refused, self.now()) else { return self.latest(action).await };
        (next.reason, next.message, next.stopped_by) = (Some(reason.to_owned()), Some(why.to_owned()), stopped_by);
        // The network was asked about the member: such looks count, or they could be had for nothing.
        let was_asked = matches!(reason, "not_connected" | "recipient_not_connected");
        let mut more = self.settled(action, was_asked)?;
        if action.kind == Kind::Invite {
            let status = match stopped_by {
                Some(_) => invitations::Status::Withdrawn,
                None => invitations::Status::Failed,
            };
            more.extend(self.invitation(action, status, None).await?);
        }
        self.put(action, next, more).await
    }

    /// There was nothing to do, or nothing of it reached the network.
    pub(super) async fn nothing(&self, action: &Action, status: &str) -> Result<Moved, Stop> {
        let Some(mut next) = action.after(Event::Refused, self.now()) else { return self.latest(action).await };
        next.outcome = Some(status.to_owned());
        // The network was asked about the member.
        let mut more = self.settled(action, action.kind == Kind::Invite)?;
        match action.kind {
            Kind::Invite if status == "pending" => {
                more.extend(self.invitation(action, invitations::Status::Failed, None).await?);
            }
            Kind::Invite => more.extend(self.invitation(action, invitations::Status::Accepted, None).await?),
            // The member can be invited again.
            Kind::WithdrawInvite if status == "not_pending" => {
                more.extend(self.invitation(action, invitations::Status::Withdrawn, None).await?);
            }
            _ => {}
        }
        self.put(action, next, more).await
    }

    /// The result. What was sent is kept here too.
    pub(super) async fn end(&self, action: &Action) -> Result<Output, Stop> {
        let source = source(self.toolbox);
        let mut result = json!({"action_request_id": action.request});
        if let Some(invitation) = action.invitation {
            result["invitation_id"] = json!(invitation);
        }
        match (action.state, &action.outcome) {
            (State::Failed, None) => {
                let reason = action.reason.as_deref().unwrap_or("provider_unavailable");
                Err(failed(reason, action.message.clone().unwrap_or_default()).into())
            }
            // A stopped invitation is what was paid for; for the others nothing was done.
            (State::Failed, Some(status)) => {
                result["status"] = json!(status);
                let output = Output::new(result, source);
                let is_done = status == "cancelled_before_send";
                Ok(if is_done { output } else { output.charging(Usdc::ZERO) })
            }
            (State::Sent, outcome) => {
                result["status"] = json!(if action.kind == Kind::WithdrawInvite { "withdrawn" } else { "sent" });
                if let Some(profile) = outcome {
                    result["profile"] = serde_json::from_str(profile).unwrap_or_default();
                }
                self.describe(action, &mut result).await?;
                Ok(Output::new(result, source))
            }
            _ => {
                result["status"] = json!("ambiguous");
                Ok(Output::new(result, source))
            }
        }
    }

    /// Adds what was sent to a result, and stores a message among those of the account.
    pub(super) async fn describe(&self, action: &Action, result: &mut Value) -> Result<(), Stop> {
        let ids = &action.ids;
        let at = ids.at.unwrap_or(action.since);
        match action.kind {
            Kind::Reply | Kind::Message => {
                result["sent_at"] = json!(at.to_string());
                let Some(message) = &ids.message else { return Ok(()) };
                result["provider_message_id"] = json!(message);
                let chat = ids.chat.clone().or_else(|| action.target.clone().filter(|_| action.kind == Kind::Reply));
                let Some(chat) = chat else { return Ok(()) };
                let text = Some(self.task.text("text").to_owned()).filter(|text| !text.is_empty());
                let heard =
                    Heard { id: message.clone(), chat, is_own: true, text, at, is_seen: true, ..Heard::default() };
                inbox::take(self.db(), action.account, &heard, By::Send, self.now()).await?;
                result["message_id"] = json!(inbox::message_id(action.account, message));
                result["conversation_id"] = json!(inbox::conversation_id(action.account, &heard.chat));
            }
            Kind::React => result["sent_at"] = json!(at.to_string()),
            Kind::Invite => {
                result["provider_invitation_id"] = json!(ids.invitation);
                result["tracked"] = json!(ids.invitation.is_some());
            }
            Kind::ProfileView | Kind::WithdrawInvite => {}
        }
        Ok(())
    }
}
