//! Links to what is too large for an inbox's answer. Only this service can make one, and whoever has it can open it until it
//! expires. Making one costs nothing; each opening counts the file's size for the mail's owner (`gate::links`).

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{self, sha256_parts};
use base::encoding::{base64_any, base64_url};
use base::ids::AgentId;
use ring::hmac;
use uuid::Uuid;

use crate::mailbox::{self, Inbound};

/// How long a link can be opened.
pub const VALID: Duration = Duration::from_secs(15 * 60);
const OCTETS: &str = "application/octet-stream";
const UUID_BYTES: usize = 16;
/// Agent, mail, part, Unix seconds of the expiry. The MAC follows.
const BODY_BYTES: usize = 2 * UUID_BYTES + 2 + 8;

/// A file of an inbound mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// By its place in [`Inbound::attachments`].
    Attachment(u16),
    Body,
    /// As it arrived.
    Whole,
}

impl Part {
    fn number(self) -> u16 {
        match self {
            Part::Attachment(index) => index,
            Part::Body => u16::MAX - 1,
            Part::Whole => u16::MAX,
        }
    }

    fn of(number: u16) -> Part {
        match number {
            u16::MAX => Part::Whole,
            number if number == u16::MAX - 1 => Part::Body,
            index => Part::Attachment(index),
        }
    }
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLink {
    /// The owner of the mail.
    pub agent: AgentId,
    pub mail: Uuid,
    pub part: Part,
    pub until: Timestamp,
}

/// A file as it is handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub key: String,
    /// Not the sender's, nor a mail's own: nothing of a stranger's may be shown as a page.
    pub content_type: &'static str,
    pub name: String,
}

impl FileLink {
    /// The link's last segment.
    pub fn token(&self, secret: &[u8]) -> String {
        let body = [
            self.agent.bytes().as_slice(),
            self.mail.as_bytes(),
            &self.part.number().to_be_bytes(),
            &self.until.secs().to_be_bytes(),
        ]
        .concat();
        let mac = digest::hmac(&key(secret), &message(&body));
        base64_url(&[body.as_slice(), &mac].concat())
    }

    /// `None` if the token is not ours or has expired.
    pub fn read(secret: &[u8], token: &str, now: Timestamp) -> Option<FileLink> {
        let bytes = base64_any(token)?;
        let (body, mac) = bytes.split_at_checked(BODY_BYTES)?;
        hmac::verify(&key(secret), &message(body), mac).ok()?;
        let (agent, rest) = body.split_at(UUID_BYTES);
        let (mail, rest) = rest.split_at(UUID_BYTES);
        let (part, until) = rest.split_at(2);
        let until = i64::from_be_bytes(until.try_into().ok()?);
        (now.secs() < until).then_some(FileLink {
            agent: AgentId::from_bytes(agent.try_into().ok()?),
            mail: Uuid::from_slice(mail).ok()?,
            part: Part::of(u16::from_be_bytes(part.try_into().ok()?)),
            until: Timestamp::from_secs(until),
        })
    }

    /// The file. `None` if the mail has no such part.
    pub fn file(&self, mail: &Inbound) -> Option<File> {
        let (key, content_type, name) = match self.part {
            Part::Attachment(index) => {
                let index = usize::from(index);
                (mailbox::attachment_key(mail.id, index), OCTETS, mail.attachments.get(index)?.filename.clone())
            }
            Part::Body => (mailbox::body_key(mail.id), "application/json", "body.json".to_owned()),
            Part::Whole => (mailbox::raw_key(mail.id), OCTETS, "mail.eml".to_owned()),
        };
        Some(File { key, content_type, name })
    }
}

fn key(secret: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret)
}

fn message(body: &[u8]) -> [u8; 32] {
    sha256_parts(&[b"mail file", body])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_opened_only_by_a_fresh_link_of_ours() {
        let (now, until) = (Timestamp::from_secs(1_000), Timestamp::from_secs(1_010));
        let (agent, mail) = (AgentId::from_bytes([7; 16]), Uuid::from_u128(9));
        for part in [Part::Attachment(0), Part::Attachment(300), Part::Body, Part::Whole] {
            let link = FileLink { agent, mail, part, until };
            let token = link.token(b"secret");
            assert_eq!(FileLink::read(b"secret", &token, now), Some(link));
            assert_eq!(FileLink::read(b"secret", &token, until), None, "expired");
            assert_eq!(FileLink::read(b"another", &token, now), None);
            let bytes = base64_any(&token).expect("base64");
            for index in 0..bytes.len() {
                let mut forged = bytes.clone();
                forged[index] ^= 1;
                assert_eq!(FileLink::read(b"secret", &base64_url(&forged), now), None, "{index}");
                assert_eq!(FileLink::read(b"secret", &base64_url(&bytes[..index]), now), None, "{index}");
            }
        }
    }
}
