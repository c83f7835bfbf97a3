//! Who asks about a job: its buyer, or its seller.
//!
//! The mission names `X-Agent-ID` alone on the job routes, so a bare address is taken for who it says it is, unless the
//! deployment asks for proof (`SOUL_REQUIRE_PROOF`). A proof or a token that is sent is always judged. A seller may also
//! show its soul key.

use base::ids::{AgentId, RequestId};
use gate::jobs::job::Job;
use gate::jobs::store;
use gate::limits::{self, Class, Reader, Subject};
use http::HeaderMap;
use platform::auth::Scope;
use platform::http::{ApiError, MarketError, headers};

use super::Market;
use super::soul;

/// What somebody is to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Buyer,
    Seller,
}

/// A job of the marketplace, for somebody who may see it: what they are to it, and whose limits they read by.
///
/// # Errors
/// 401 without anything that says who asks; 404 for an unknown id; 403 for a stranger.
pub async fn job_for(
    market: &Market,
    headers: &HeaderMap,
    id: &str,
    needed: Scope,
) -> Result<(Job, Party, Reader), ApiError> {
    let asks = asker(market, headers, needed).await?;
    let is_named = matches!(asks, Asker::Named(_));
    let job = match RequestId::of_soul_job(id) {
        Some(request_id) => store::load_latest(&market.app.db, request_id).await?,
        None => None,
    };
    let now = market.app.clock.now();
    let job = job.filter(|job| job.sold.as_ref().is_some_and(|sold| sold.service.is_some()) && !job.is_forgotten(now));
    let job = job.ok_or(ApiError::NotFound)?;
    let sold_by = job.sold.as_ref().map(|sold| sold.soul.clone()).unwrap_or_default();
    let party = match asks {
        Asker::Soul(slug) if slug == sold_by => Some(Party::Seller),
        Asker::Soul(_) => None,
        Asker::Agent(agent) | Asker::Named(agent) if agent == job.agent => Some(Party::Buyer),
        Asker::Agent(agent) | Asker::Named(agent) => {
            let seller = soul::load(&market.app.db, &sold_by).await?.and_then(|soul| soul.wallet);
            seller.is_some_and(|wallet| AgentId::of(wallet) == agent).then_some(Party::Seller)
        }
    };
    let party = party.ok_or(MarketError::Forbidden("only the job's buyer and its seller may see it"))?;
    let reader = match party {
        _ if is_named => Reader::Named,
        Party::Buyer => Reader::Buyer,
        Party::Seller => Reader::Seller,
    };
    Ok((job, party, reader))
}

enum Asker {
    Agent(AgentId),
    /// Without a proof.
    Named(AgentId),
    /// By its key.
    Soul(String),
}

async fn asker(market: &Market, headers: &HeaderMap, needed: Scope) -> Result<Asker, ApiError> {
    if let Some(secret) = headers::bearer(headers)?.filter(|secret| secret.starts_with("soul_")) {
        let soul = soul::by_key(&market.app.db, secret).await?.ok_or(ApiError::SoulKeyRequired)?;
        return Ok(Asker::Soul(soul.slug.to_string()));
    }
    let is_proven = headers.contains_key("x-agent-proof") || headers::bearer(headers)?.is_some();
    if is_proven || market.app.config.soul_require_proof {
        return Ok(Asker::Agent(market.app.caller(headers, needed).await?.agent));
    }
    let named = headers::agent_name(headers)?.ok_or(ApiError::ProofRequired)?;
    // Nothing is proven: a stranger's requests are not to use up the limit of who is named.
    limits::take(&market.app, Subject::source(), Class::of_free(needed)).await?;
    Ok(Asker::Named(named.agent()))
}

/// Who a request says it is from, before anything is proven.
pub async fn named(market: &Market, headers: &HeaderMap) -> Result<Option<AgentId>, ApiError> {
    if headers::bearer(headers)?.is_some() {
        let caller = market.app.caller_if_proven(headers, Scope::Read).await?;
        return Ok(caller.map(|caller| caller.agent));
    }
    Ok(headers::agent_name(headers)?.map(|named| named.agent()))
}
