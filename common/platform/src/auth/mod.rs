//! Authentication: the wallet behind a signed proof or an access token.
//!
//! [`proof`] has the rules of proofs, without storage or HTTP; [`nonce`] makes a proof single-use; [`token`] has the access
//! tokens.

pub mod nonce;
pub mod proof;
pub mod token;

use std::str::FromStr;

use base::ids::{AgentId, TokenId};
use evm::Address;

pub use proof::{Proof, ProofError, Scope};
use token::TokenCaps;

/// The authenticated caller of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    pub agent: AgentId,
    pub wallet: Address,
    pub session: Session,
}

/// The means of authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// A proof signed by the wallet, with this scope.
    Wallet(Scope),
    /// An access token: it can spend credits, up to its caps, and read, but change nothing about its owner.
    Token { id: TokenId, caps: TokenCaps },
}

impl Caller {
    /// The signer of a payment: that signature proves the wallet as well as a proof does.
    pub fn by_payment(wallet: Address) -> Caller {
        Caller { agent: AgentId::of(wallet), wallet, session: Session::Wallet(Scope::Submit) }
    }

    pub fn token(&self) -> Option<TokenId> {
        match self.session {
            Session::Wallet(_) => None,
            Session::Token { id, .. } => Some(id),
        }
    }

    /// The caps of the caller's access token; none for a wallet.
    pub fn caps(&self) -> TokenCaps {
        match self.session {
            Session::Wallet(_) => TokenCaps::default(),
            Session::Token { caps, .. } => caps,
        }
    }

    /// Refuses an access token.
    pub fn wallet_only<E>(self, refusal: E) -> Result<Caller, E> {
        if self.token().is_some() { Err(refusal) } else { Ok(self) }
    }
}

/// The value of `X-Agent-ID`: a wallet address, or the agent id derived from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentName {
    Wallet(Address),
    Id(AgentId),
}

impl AgentName {
    pub fn agent(&self) -> AgentId {
        match self {
            AgentName::Wallet(wallet) => AgentId::of(*wallet),
            AgentName::Id(agent) => *agent,
        }
    }
}

impl FromStr for AgentName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<AgentName, &'static str> {
        let text = text.trim();
        if let Ok(wallet) = text.parse() {
            return Ok(AgentName::Wallet(wallet));
        }
        text.parse().map(AgentName::Id).map_err(|_| "must be a wallet address (0x and 40 hex digits) or an agent UUID")
    }
}
