//! The caller of a job route: the job's buyer or its seller.
//!
//! The job routes accept a bare `X-Agent-ID`, without proof, unless the deployment requires one (`SOUL_REQUIRE_PROOF`).
//! A proof or token that is sent is always checked. A seller may also use its soul key.

use base::ids::{AgentId, RequestId};
use gate::jobs::job::Job;
use gate::jobs::store;
use gate::limits::{self, Class, Subject};
use http::HeaderMap;
use platform::auth::Scope;
use platform::http::{ApiError, MarketError, headers};
use tools::files::Reader;

use super::Market;
use super::soul;

/// A caller's role in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Buyer,
    Seller,
}

/// Loads a marketplace job for a caller who may see it, with the caller's role and the limits that apply.
///
/// # Errors
/// 401 if the caller is not named at all; 404 for an unknown id; 403 for a stranger.
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
    /// Named by `X-Agent-ID`, without proof.
    Named(AgentId),
    /// A seller, proven by its soul key.
    Soul(String),
}

async fn asker(market: &Market, headers: &HeaderMap, needed: Scope) -> Result<Asker, ApiError> {
    if let Some(secret) = headers::bearer(headers)?.filter(|secret| secret.starts_with(headers::SOUL_KEY_PREFIX)) {
        let soul = soul::by_key(&market.app.db, secret).await?.ok_or(ApiError::SoulKeyUnknown)?;
        return Ok(Asker::Soul(soul.slug.to_string()));
    }
    let is_proven = headers.contains_key("x-agent-proof") || headers::bearer(headers)?.is_some();
    let by_name = !market.app.config.soul_require_proof;
    if is_proven {
        return Ok(Asker::Agent(market.app.caller(headers, needed).await?.agent));
    }
    let named = headers::agent_name(headers)?.filter(|_| by_name).ok_or(ApiError::PartyRequired { by_name })?;
    // Without a proof, the request counts against the source address, so that a stranger cannot use up the named agent's
    // limit.
    limits::take(&market.app, Subject::source(), Class::of_free(needed)).await?;
    Ok(Asker::Named(named.agent()))
}

/// The agent that a request names, with or without proof.
pub async fn named(market: &Market, headers: &HeaderMap) -> Result<Option<AgentId>, ApiError> {
    if headers::bearer(headers)?.is_some() {
        let caller = market.app.caller_if_proven(headers, Scope::Read).await?;
        return Ok(caller.map(|caller| caller.agent));
    }
    Ok(headers::agent_name(headers)?.map(|named| named.agent()))
}
