//! Counting: ended sales that wait as records of their own are added to what they add up to: the seller's balance and
//! its entries, the soul's counters and place in the listing, its services' counters, its recent purchases, its
//! reputation. Off the call path, some records at a time, each batch one transaction.
//!
//! A batch is made from one revision of the balance and refused at any other, and it deletes the records it counts. So
//! each is counted once: whoever lost a race, died, or never heard the answer begins with what is still there.

use std::collections::{BTreeMap, BTreeSet};

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use ledger::account::plus;
use ledger::earning::{Earning, SaleEnd, seller_partition, uncounted_key};
use ledger::seller::{self, About, Balance, Books, EntryKind};
use platform::store::db::Query;
use platform::store::{Db, StoreError, Write, WriteError};

use super::index;
use super::recent;
use super::reputation::{self, Buyer, Reputation};
use super::service;
use super::soul;
use super::totals::{self, Change};

/// Records counted at once.
pub const BATCH: usize = 25;
/// A transaction takes no more.
const MOST_WRITES: usize = 100;
/// How often a batch is made anew after somebody else was quicker.
const TRIES: usize = 20;
/// Rounds of a caller that answers somebody: a hundred records, and the rest another time.
pub const ROUNDS: usize = 4;

/// What counting came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Records counted here.
    pub records: usize,
    /// More were waiting at the end.
    pub more: bool,
    /// The balance as this left it, or found it.
    pub balance: Balance,
}

/// Counts the records of a soul, at most `rounds` batches of them.
pub async fn fold(db: &Db, soul: &str, rounds: usize, now: Timestamp) -> Result<Counted, StoreError> {
    let mut counted = Counted::default();
    let (mut tries, mut absent) = (0, BTreeSet::new());
    let mut round = 0;
    loop {
        // The balance last: what was counted by somebody else since is in it, and nothing is in neither. Records that were
        // counted meanwhile are gone, which the transaction notices.
        let waiting = Query::prefixed(&db.tables.ledger, &seller_partition(soul), "UNCOUNTED#", BATCH + 1)?.latest();
        let waiting: Vec<Earning> = db.query(waiting).await?;
        counted.balance = seller::load(db, soul).await?;
        counted.more = !waiting.is_empty();
        if waiting.is_empty() || round == rounds {
            return Ok(counted);
        }
        let batch = Batch::read(db, soul, counted.balance.clone(), &waiting, &absent, now).await?;
        match db.transact(&batch.writes).await {
            Ok(()) => {
                counted.records += batch.records;
                counted.balance = batch.balance;
                round += 1;
                if batch.records == waiting.len() {
                    counted.more = false;
                    return Ok(counted);
                }
            }
            Err(WriteError::Failed(error)) => return Err(error),
            Err(refused) => {
                // A soul or a service that is not there (any more) has no counters, and the money counts all the same.
                let gone = batch
                    .counters
                    .into_iter()
                    .filter(|(action, _)| refused.refused(*action).is_some_and(|refused| refused.old.is_none()));
                absent.extend(gone.map(|(_, name)| name));
                tries += 1;
                if tries == TRIES {
                    return Err(StoreError::new("the seller's balance changes all the time"));
                }
            }
        }
    }
}

/// One transaction.
struct Batch {
    writes: Vec<Write>,
    /// Actions that change the soul's and its services' own counters, and whose (the soul's is empty).
    counters: Vec<(usize, String)>,
    records: usize,
    balance: Balance,
}

impl Batch {
    async fn read(
        db: &Db,
        slug: &str,
        balance: Balance,
        waiting: &[Earning],
        absent: &BTreeSet<String>,
        now: Timestamp,
    ) -> Result<Batch, StoreError> {
        let taken = fitting(waiting);
        let (soul, reputation, recent, buyers) = tokio::join!(
            soul::load_latest(db, slug),
            reputation::load_latest(db, slug),
            recent::load_latest(db, slug),
            buyers(db, slug, taken),
        );
        let (soul, mut reputation, mut recent, mut buyers) = (soul?, reputation?, recent?, buyers?);
        let (mut books, mut jobs, mut purchases) = (Books::open(balance), 0, 0);
        let ranked_before = (reputation.buyers, reputation.backing);
        let mut executions: BTreeMap<&str, u64> = BTreeMap::new();
        for earning in taken {
            let buyer = buyers.entry(earning.buyer).or_default();
            // A soul's own wallets are marked when they are linked; a soul made by hand may lack the mark.
            let own = soul.as_ref().filter(|soul| soul.wallet_verified).and_then(|soul| soul.wallet);
            buyer.linked |= own.map(AgentId::of) == Some(earning.buyer);
            reputation.count(earning, buyer);
            let kind = kind_of(earning);
            if earning.ended == SaleEnd::Completed {
                match &earning.sold.service {
                    Some(service) => {
                        jobs += 1;
                        *executions.entry(service).or_default() += 1;
                    }
                    None => {
                        purchases += 1;
                        recent.count(earning.bought_at);
                    }
                }
            }
            book(&mut books, kind, earning, now)?;
        }
        books.balance.total_jobs += jobs;
        let mut writes = books.writes(db, slug)?;
        let table = &db.tables.ledger;
        for earning in taken {
            // The condition holds wherever the balance's does. It is there for what nobody thought of.
            let key = uncounted_key(slug, earning.request_id);
            writes.push(Write::delete(table, key).only_if("attribute_exists(#pk)"));
        }
        for (agent, buyer) in &buyers {
            writes.push(buyer.write(db, slug, *agent)?);
        }
        writes.push(reputation.write(db, slug)?);
        if purchases > 0 {
            recent.forget(now);
            writes.push(recent.write(db, slug)?);
        }
        let change = change_of(db, slug, taken, &executions).await?;
        if !change.is_empty() {
            writes.push(totals::add(db, slug, &change)?);
        }
        if let Some(soul) =
            soul.as_ref().filter(|_| jobs > 0 || (reputation.buyers, reputation.backing) != ranked_before)
        {
            // How much a soul did, and for how many, is part of how it is found.
            writes.push(index::pending(db, &soul.slug, now)?);
        }
        let mut counters = Vec::new();
        if soul.is_some() && jobs + purchases > 0 {
            counters.push((writes.len(), String::new()));
            writes.push(count_soul(db, slug, jobs, purchases, &reputation)?);
        }
        for (service, count) in executions.into_iter().filter(|(service, _)| !absent.contains(*service)) {
            counters.push((writes.len(), service.to_owned()));
            let add = Write::update(&db.tables.souls, service::key(slug, service), "ADD #total_executions :count");
            writes.push(add.only_if("attribute_exists(#pk)").bind("count", count)?);
        }
        Ok(Batch { writes, counters, records: taken.len(), balance: books.balance })
    }
}

/// What these sales add to what the marketplace has done.
async fn change_of(
    db: &Db,
    slug: &str,
    sales: &[Earning],
    executions: &BTreeMap<&str, u64>,
) -> Result<Change, StoreError> {
    let mut change = Change::default();
    let micro = |amount: Usdc| i64::try_from(amount.micro()).unwrap_or(i64::MAX);
    for sale in sales {
        match (sale.ended, &sale.sold.service) {
            (SaleEnd::Failed, _) => change.failed += 1,
            (SaleEnd::Completed, service) => {
                change.paid = change.paid.saturating_add(micro(sale.sold.split.revenue));
                match service {
                    Some(_) => change.completed += 1,
                    None => {
                        change.purchases += 1;
                        change.purchase_revenue =
                            change.purchase_revenue.saturating_add(micro(sale.sold.split.price()));
                    }
                }
            }
        }
    }
    for (service, count) in executions {
        if let Some(service) = service::load(db, slug, service).await? {
            change.categories.entry(service.category).or_default().jobs += i64::try_from(*count).unwrap_or_default();
        }
    }
    Ok(change)
}

/// As many records from the front as one transaction takes.
fn fitting(waiting: &[Earning]) -> &[Earning] {
    let (mut buyers, mut services, mut count) = (BTreeSet::new(), BTreeSet::new(), 0);
    for earning in waiting.iter().take(BATCH) {
        buyers.insert(earning.buyer);
        services.extend(earning.sold.service.as_deref());
        // Its entry and its record; balance, soul, reputation, recent purchases, totals and the index's mark once.
        if 2 * (count + 1) + buyers.len() + services.len() + 6 > MOST_WRITES {
            break;
        }
        count += 1;
    }
    &waiting[..count]
}

fn kind_of(earning: &Earning) -> EntryKind {
    match (earning.ended, &earning.sold.service) {
        (SaleEnd::Failed, _) => EntryKind::Failed,
        (SaleEnd::Completed, Some(_)) => EntryKind::Sale,
        (SaleEnd::Completed, None) => EntryKind::Purchase,
    }
}

fn book(books: &mut Books, kind: EntryKind, earning: &Earning, now: Timestamp) -> Result<(), StoreError> {
    let split = earning.sold.split;
    let about = About {
        cause: earning.request_id.to_string(),
        receipt_id: Some(earning.receipt_id.clone()),
        service: earning.sold.service.clone(),
        price: Some(split.price()),
        fee: Some(split.fee),
    };
    // What the work's own tools cost is the seller's to bear.
    let share = split.revenue.checked_sub(earning.tools_cost).unwrap_or_default();
    let earned = if kind == EntryKind::Failed { 0 } else { plus(share)? };
    if earned > 0 {
        let total = books.balance.total_earnings.checked_add(share);
        books.balance.total_earnings = total.ok_or_else(|| StoreError::new("more was earned than can be counted"))?;
    }
    books.book(kind, earned, about, earning.ended_at, now)
}

/// The write that counts a soul's jobs and purchases, and says how many bought and what they count for. Its place in the
/// listing follows by itself.
fn count_soul(db: &Db, slug: &str, jobs: u64, purchases: u64, reputation: &Reputation) -> Result<Write, StoreError> {
    let counts = "SET #buyers = :buyers, #backing = :backing ADD #jobs :jobs, #purchases :purchases";
    Write::update(&db.tables.souls, soul::key(slug), counts)
        .only_if("attribute_exists(#pk)")
        .bind("jobs", jobs)?
        .bind("purchases", purchases)?
        .bind("buyers", reputation.buyers)?
        .bind("backing", reputation.backing)
}

/// What the buyers of these sales bought before.
async fn buyers(db: &Db, soul: &str, sales: &[Earning]) -> Result<BTreeMap<AgentId, Buyer>, StoreError> {
    let agents: BTreeSet<AgentId> = sales.iter().map(|sale| sale.buyer).collect();
    let mut asked = tokio::task::JoinSet::new();
    for agent in agents {
        let (db, soul) = (db.clone(), soul.to_owned());
        asked.spawn(async move { reputation::buyer(&db, &soul, agent).await.map(|buyer| (agent, buyer)) });
    }
    let mut found = BTreeMap::new();
    while let Some(answer) = asked.join_next().await {
        let (agent, buyer) = answer.map_err(StoreError::new)??;
        found.insert(agent, buyer);
    }
    Ok(found)
}
