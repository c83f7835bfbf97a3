//! Addresses that get no mail, for all agents or for one, and the tokens of unsubscribe links.
//!
//! One item per address and scope. A bounce counts for 180 days; complaints and unsubscriptions never expire, and a bounce
//! does not replace them. Addresses are only stored as hashes.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{self, sha256, sha256_parts};
use base::encoding::{base64_any, base64_url};
use base::ids::AgentId;
use platform::store::{Db, Key, StoreError, Write};
use ring::hmac;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::address::Address;

/// How long a bounce keeps an address suppressed.
const BOUNCE_VALID: Duration = Duration::from_secs(180 * 24 * 3600);

/// Layout of an unsubscribe token: version, agent, MAC, address.
const VERSION: u8 = 1;
const AGENT_BYTES: usize = 16;
const MAC_BYTES: usize = 16;
const HEAD_BYTES: usize = 1 + AGENT_BYTES + MAC_BYTES;

/// Why an address gets no mail, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Bounced,
    Complained,
    Unsubscribed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Suppression {
    why: Why,
    since: Timestamp,
    /// Unix seconds; `None`: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
}

impl Suppression {
    fn new(why: Why, now: Timestamp) -> Suppression {
        let expires = (why == Why::Bounced).then(|| now.plus(BOUNCE_VALID).secs());
        Suppression { why, since: now, expires }
    }

    fn is_in_force(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now.secs() < expires)
    }
}

/// `by`: the agent whose mail is suppressed; `None`: everybody's.
fn key(folded: &str, by: Option<AgentId>) -> Key {
    let scope = by.map_or_else(|| "ALL".to_owned(), |agent| format!("AGENT#{agent}"));
    Key::new(format!("SUPPRESSED#{}", const_hex::encode(sha256(folded.as_bytes()))), scope)
}

/// Suppresses an address, for one agent's mail or for everybody's (`None`). Repeating it is harmless: the first complaint
/// or unsubscription stays, and a later bounce extends an earlier one. `address` may be any text that a provider reported.
pub async fn suppress(db: &Db, address: &str, by: Option<AgentId>, why: Why, now: Timestamp) -> Result<(), StoreError> {
    let folded = Address::parse(address.trim()).map_or_else(|_| address.trim().to_lowercase(), |known| known.folded());
    let write = Write::put(&db.tables.messages, key(&folded, by), &Suppression::new(why, now))?
        .only_if("attribute_not_exists(#pk) OR #why = :bounced")
        .bind("bounced", Why::Bounced)?;
    // Refused: it is suppressed for ever.
    db.write_if(write).await?;
    Ok(())
}

/// Why this agent's mail to the address is suppressed at `now`; the strongest reason if there are two. Consistent: an
/// unsubscription applies from the moment it is written.
pub async fn reason(db: &Db, address: &Address, agent: AgentId, now: Timestamp) -> Result<Option<Why>, StoreError> {
    let folded = address.folded();
    let keys = [key(&folded, None), key(&folded, Some(agent))];
    let rows: Vec<Option<Suppression>> = db.batch_get(&db.tables.messages, &keys, true).await?;
    Ok(rows.into_iter().flatten().filter(|row| row.is_in_force(now)).map(|row| row.why).max())
}

fn mac(secret: &[u8], agent: &[u8], address: &[u8]) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    digest::hmac(&key, &sha256_parts(&[b"mail unsubscribe", agent, address]))
}

/// The token of an unsubscribe link: names the sending agent and the recipient, and only this service can make it. It does
/// not expire. URL-safe.
pub fn unsubscribe_token(secret: &[u8], agent: AgentId, address: &Address) -> String {
    let address = address.as_str().as_bytes();
    let mac = mac(secret, agent.bytes(), address);
    base64_url(&[&[VERSION][..], &agent.bytes()[..], &mac[..MAC_BYTES], address].concat())
}

/// Reads the token of an unsubscribe link. `None` if it is not ours.
pub fn read_unsubscribe(secret: &[u8], token: &str) -> Option<(AgentId, Address)> {
    let bytes = base64_any(token)?;
    if bytes.len() <= HEAD_BYTES || bytes[0] != VERSION {
        return None;
    }
    let (head, address) = bytes.split_at(HEAD_BYTES);
    let (agent, given) = head[1..].split_at(AGENT_BYTES);
    // Constant time: a MAC must not be guessable byte by byte.
    let expected = mac(secret, agent, address);
    if !bool::from(expected[..MAC_BYTES].ct_eq(given)) {
        return None;
    }
    let agent = AgentId::from_bytes(agent.try_into().ok()?);
    Some((agent, Address::parse(std::str::from_utf8(address).ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bounces_expire() {
        let now = Timestamp::from_secs(1_000);
        let after = Timestamp::from_secs(1_000 + 180 * 86_400);
        let last = after.minus(Duration::from_secs(1));
        for (why, at_last, at_after) in
            [(Why::Bounced, true, false), (Why::Complained, true, true), (Why::Unsubscribed, true, true)]
        {
            let row = Suppression::new(why, now);
            assert_eq!((row.is_in_force(last), row.is_in_force(after)), (at_last, at_after), "{why:?}");
            assert!(row.is_in_force(Timestamp::default()), "without a time, every row counts");
        }
    }

    #[test]
    fn an_unsubscribe_token_is_read_only_if_it_is_ours() {
        let agent = AgentId::from_bytes([7; 16]);
        let address = Address::parse("Some.One+x@mail.example").unwrap();
        let token = unsubscribe_token(b"secret", agent, &address);
        assert_eq!(read_unsubscribe(b"secret", &token), Some((agent, address.clone())));
        assert_eq!(read_unsubscribe(b"another", &token), None);
        let bytes = base64_any(&token).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            assert_eq!(read_unsubscribe(b"secret", &base64_url(&changed)), None, "byte {index}");
        }
        for wrong in ["", "AQ", "!", &base64_url(&bytes[..HEAD_BYTES])] {
            assert_eq!(read_unsubscribe(b"secret", wrong), None, "{wrong}");
        }
    }
}
