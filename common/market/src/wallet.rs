//! The wallet where a seller is paid. One wallet belongs to one soul, and one soul has one wallet.
//!
//! A caller with the soul key links a wallet. A link that the wallet's owner signed (a proven link) cannot be replaced by
//! another soul. It replaces another soul's unproven link, so nobody can occupy an address against its owner's will.
//!
//! Purchases by a soul's own wallet do not count, and it cannot rate the soul. A wallet is the soul's own if its owner
//! signed the link. An unproven link says nothing, because it can name anybody's wallet, and so can a payout: for the least
//! payout a seller could erase a critic. So after a payout to a wallet, only what it buys from then on does not count.

use base::clock::Timestamp;
use base::ids::AgentId;
use evm::Address;
use ledger::seller::{self, Books};
use platform::store::{Db, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::index;
use super::rating::{self, Votes};
use super::reputation;
use super::soul::{self, Slug, Soul};

/// Retries when other writers change the same rows.
const TRIES: usize = 20;

/// The row from a wallet to its soul.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    soul: Slug,
    /// The wallet's owner signed the link.
    #[serde(default)]
    verified: bool,
}

/// Links a wallet to a soul and replaces its earlier wallet. `Ok(false)` if another soul holds the wallet.
pub async fn link(db: &Db, slug: &Slug, wallet: Address, proven: bool, now: Timestamp) -> Result<bool, StoreError> {
    for _ in 0..TRIES {
        let soul = soul::load_latest(db, slug.as_str()).await?.ok_or_else(|| StoreError::new("the soul is gone"))?;
        let claim: Option<Claim> = db.get_latest(&db.tables.souls, soul::wallet_key(wallet)).await?;
        let other = claim.as_ref().filter(|claim| claim.soul != soul.slug);
        if other.is_some_and(|other| other.verified || !proven) {
            return Ok(false);
        }
        if soul.wallet == Some(wallet) && (soul.wallet_verified || !proven) {
            return Ok(true);
        }
        // An unproven link says nothing about the owner: it could name an unhappy buyer's wallet.
        let own = if proven { own_purchases(db, soul.slug.as_str(), wallet).await? } else { None };
        let left = own.as_ref().map(|own| own.left);
        let mut writes =
            vec![claim_it(db, &soul, wallet, other, proven)?, set_it(db, &soul, wallet, proven, left, now)?];
        if let Some(own) = own {
            writes.extend(own.writes);
            writes.push(index::pending(db, &soul.slug, now)?);
        }
        if let Some(other) = other {
            let loser = Write::update(
                &db.tables.souls,
                soul::key(other.soul.as_str()),
                "REMOVE #wallet, #wallet_verified, #ens_name",
            );
            writes.push(loser.only_if("#wallet = :wallet").bind("wallet", wallet)?);
        }
        if let Some(before) = soul.wallet.filter(|before| *before != wallet) {
            let free = Write::delete(&db.tables.souls, soul::wallet_key(before)).only_if("#soul = :soul");
            writes.push(free.bind("soul", &soul.slug)?);
        }
        match db.transact(&writes).await {
            Ok(()) => return Ok(true),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("too many concurrent changes of the soul or its wallet"))
}

/// Notes that a payout to this wallet was requested. What the wallet bought before still counts, and may be rated.
pub async fn is_paid_at(db: &Db, slug: &Slug, wallet: Address, now: Timestamp) -> Result<(), StoreError> {
    let (slug, agent) = (slug.as_str(), AgentId::of(wallet));
    for _ in 0..TRIES {
        let balance = seller::load(db, slug).await?;
        let mut buyer = reputation::buyer(db, slug, agent).await?;
        if buyer.linked || buyer.paid_out_at.is_some() {
            return Ok(());
        }
        buyer.paid_out_at = Some(now);
        // Bound to the balance's revision, like every write of the buyer's row.
        let mut writes = Books::open(balance).writes(db, slug)?;
        writes.push(buyer.write(db, slug, agent)?);
        match db.transact(&writes).await {
            Ok(()) => return Ok(()),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("too many concurrent changes of the seller's balance"))
}

fn claim_it(db: &Db, soul: &Soul, wallet: Address, other: Option<&Claim>, proven: bool) -> Result<Write, StoreError> {
    let claim = Claim { soul: soul.slug.clone(), verified: proven };
    let put = Write::put(&db.tables.souls, soul::wallet_key(wallet), &claim)?;
    match other {
        None => put.only_if("attribute_not_exists(#pk) OR #soul = :soul").bind("soul", &soul.slug),
        Some(other) => {
            put.only_if("#soul = :other AND #verified = :unproven").bind("other", &other.soul)?.bind("unproven", false)
        }
    }
}

/// `left`: the soul's figures without this wallet, if it was a buyer.
fn set_it(
    db: &Db,
    soul: &Soul,
    wallet: Address,
    proven: bool,
    left: Option<Left>,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let mut set = "SET #wallet = :wallet, #wallet_verified = :proven, #updated = :now".to_owned();
    if left.is_some() {
        set.push_str(", #buyers = :buyers, #backing = :backing");
    }
    // The ENS name belonged to the earlier wallet.
    if soul.wallet != Some(wallet) {
        set.push_str(" REMOVE #ens_name");
    }
    if left.is_some() {
        set.push_str(" ADD ");
        set.push_str(Votes::ADDED);
    }
    let mut write = Write::update(&db.tables.souls, soul::key(soul.slug.as_str()), &set)
        .bind("wallet", wallet)?
        .bind("proven", proven)?
        .bind("now", now)?;
    if let Some(left) = left {
        write = left.bind(write)?;
    }
    match soul.wallet {
        Some(before) => write.only_if("#wallet = :before").bind("before", before),
        None => Ok(write.only_if("attribute_exists(#pk) AND attribute_not_exists(#wallet)")),
    }
}

/// The writes that mark a wallet's purchases as the soul's own.
struct Own {
    writes: Vec<Write>,
    /// Figures for the soul's record, which the caller writes.
    left: Left,
}

/// The remaining distinct buyers and their weight, and the ratings to remove.
#[derive(Clone, Copy)]
struct Left {
    buyers: u64,
    backing: u64,
    votes: Votes,
}

impl Left {
    fn bind(self, write: Write) -> Result<Write, StoreError> {
        self.votes.taken_out(write.bind("buyers", self.buyers)?.bind("backing", self.backing)?)
    }
}

/// Excludes the purchases and ratings of the wallet's agent, past and future. `None` if that was done before.
async fn own_purchases(db: &Db, slug: &str, wallet: Address) -> Result<Option<Own>, StoreError> {
    let agent = AgentId::of(wallet);
    let balance = seller::load(db, slug).await?;
    let mut buyer = reputation::buyer(db, slug, agent).await?;
    if buyer.linked {
        return Ok(None);
    }
    let mut reputation = reputation::load_latest(db, slug).await?;
    reputation.take_out(&mut buyer);
    // Bound to the balance's revision, like every counter.
    let mut writes = Books::open(balance).writes(db, slug)?;
    writes.push(reputation.write(db, slug)?);
    writes.push(buyer.write(db, slug, agent)?);
    let (votes, closed) = rating::close(db, slug, agent).await?;
    writes.extend(closed);
    Ok(Some(Own { writes, left: Left { buyers: reputation.buyers, backing: reputation.backing, votes } }))
}
