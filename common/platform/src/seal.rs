//! Secrets of agents at rest: sealed with AES-256-GCM under a key per agent.
//!
//! What is sealed is bound to its place (kind, id and version), so that no row can stand for another. Sealing with a new service
//! secret makes everything sealed before unreadable, which callers treat as gone.

use base::ids::AgentId;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

use crate::store::StoreError;

/// Seals and opens secrets. The key of the deployment never leaves it.
#[derive(Clone)]
pub struct Sealer {
    secret: [u8; 32],
}

/// Where a secret is kept. Part of what is authenticated.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub agent: AgentId,
    /// Such as `browser-session`.
    pub kind: &'a str,
    pub id: &'a str,
    /// Counts the changes of one secret.
    pub version: u64,
}

impl Sealer {
    pub fn new(secret: [u8; 32]) -> Sealer {
        Sealer { secret }
    }

    /// Seals `plain` for a place. The result begins with a random nonce.
    ///
    /// # Errors
    /// If the random numbers of the machine cannot be read.
    pub fn seal(&self, place: Place<'_>, mut plain: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        let nonce: [u8; NONCE_LEN] = base::digest::random();
        let key = self.key(place.agent)?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place.name()), &mut plain)
            .map_err(|_| StoreError::new("a secret could not be sealed"))?;
        Ok([&nonce[..], &plain].concat())
    }

    /// Opens what [`Sealer::seal`] made. `None` if it was sealed for another place, with another secret, or was changed.
    pub fn open(&self, place: Place<'_>, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self.key(place.agent).ok()?.open_in_place(nonce, Aad::from(place.name()), &mut sealed).ok()?;
        Some(plain.to_vec())
    }

    fn key(&self, agent: AgentId) -> Result<LessSafeKey, StoreError> {
        let broken = |_| StoreError::new("the key of an agent's secrets could not be derived");
        let about = agent.to_string();
        let about = [about.as_bytes()];
        let derived = Salt::new(HKDF_SHA256, b"agent secrets").extract(&self.secret);
        let key: UnboundKey = derived.expand(&about, &AES_256_GCM).map_err(broken)?.into();
        Ok(LessSafeKey::new(key))
    }
}

impl Place<'_> {
    /// No kind and no id has a `|`, so two places never have one name.
    fn name(&self) -> String {
        format!("{}|{}|{}", self.kind, self.id, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(byte: u8) -> AgentId {
        AgentId::from_bytes([byte; 16])
    }

    #[test]
    fn a_secret_opens_in_its_place_only() {
        let sealer = Sealer::new([7; 32]);
        let place = Place { agent: agent(1), kind: "browser-session", id: "a", version: 3 };
        let sealed = sealer.seal(place, b"cookie".to_vec()).unwrap();
        assert_eq!(sealer.open(place, &sealed).as_deref(), Some(&b"cookie"[..]));
        assert_ne!(sealed, sealer.seal(place, b"cookie".to_vec()).unwrap(), "each has a nonce of its own");
        let others = [
            Place { agent: agent(2), ..place },
            Place { kind: "profile", ..place },
            Place { id: "b", ..place },
            Place { version: 4, ..place },
        ];
        for other in others {
            assert_eq!(sealer.open(other, &sealed), None, "{other:?}");
        }
        assert_eq!(Sealer::new([8; 32]).open(place, &sealed), None);
        let mut changed = sealed.clone();
        changed[NONCE_LEN] ^= 1;
        assert_eq!(sealer.open(place, &changed), None);
        for length in 0..sealed.len() {
            assert_eq!(sealer.open(place, &sealed[..length]), None, "{length}");
        }
    }
}
