//! Counting: moves ended sales into the figures they belong to. Each sale waits as its own record until a batch adds it
//! to the seller's balance and entries, the soul's and its services' counters, the recent purchases, the reputation and
//! the statistics of its days. This runs outside the calls, and each batch is one transaction.
//!
//! A batch is computed from one revision of the balance, refused at any other, and deletes the records it counts. So
//! each record is counted once: after a lost race, a crash or a lost answer, counting starts from the records that
//! remain.

use std::collections::{BTreeMap, BTreeSet};

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use ledger::account::plus;
use ledger::day;
use ledger::earning::{Earning, SaleEnd, seller_partition, uncounted_key};
use ledger::maturing;
use ledger::seller::{self, About, Balance, Books, EntryKind};
use platform::store::db::Query;
use platform::store::{Db, StoreError, Write, WriteError};

use super::index;
use super::recent;
use super::reputation::{self, Buyer, Reputation};
use super::service;
use super::soul;
use super::statistics::Days;
use super::totals::{self, Change};

/// Records per batch.
pub const BATCH: usize = 25;
/// DynamoDB's limit of writes per transaction.
const MOST_WRITES: usize = 100;
/// Retries after losing a race.
const TRIES: usize = 20;
/// Batches for a caller that answers a request: a hundred records. The rest is counted later.
pub const ROUNDS: usize = 4;

/// The result of counting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Records counted by this call.
    pub records: usize,
    /// More records were waiting at the end.
    pub more: bool,
    /// The balance after this call.
    pub balance: Balance,
}

/// Counts a soul's records, at most `rounds` batches.
pub async fn fold(db: &Db, soul: &str, rounds: usize, now: Timestamp) -> Result<Counted, StoreError> {
    let mut counted = Counted::default();
    let (mut tries, mut absent) = (0, BTreeSet::new());
    let mut round = 0;
    loop {
        // The balance is read last, so it includes every record that another process counted and removed in between. If
        // such a record is still in the list, the transaction is refused.
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
                // A soul or service that does not exist has no counters. The money counts all the same.
                let gone = batch
                    .counters
                    .into_iter()
                    .filter(|(action, _)| refused.refused(*action).is_some_and(|refused| refused.old.is_none()));
                absent.extend(gone.map(|(_, name)| name));
                tries += 1;
                if tries == TRIES {
                    return Err(StoreError::new("too many concurrent changes of the seller's balance"));
                }
            }
        }
    }
}

/// One transaction.
struct Batch {
    writes: Vec<Write>,
    /// Indexes of the writes to soul and service counters, with the service's name (empty for the soul).
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
        let (soul, reputation, recent, days, buyers) = tokio::join!(
            soul::load_latest(db, slug),
            reputation::load_latest(db, slug),
            recent::load_latest(db, slug),
            Days::load_latest(db, slug, taken),
            buyers(db, slug, taken),
        );
        let (soul, mut reputation, mut recent, mut days, mut buyers) = (soul?, reputation?, recent?, days?, buyers?);
        let (mut books, mut jobs, mut purchases, mut rows) = (Books::open(balance), 0, 0, Vec::new());
        let ranked_before = (reputation.buyers, reputation.backing);
        let mut executions: BTreeMap<&str, u64> = BTreeMap::new();
        for earning in taken {
            let buyer = buyers.entry(earning.buyer).or_default();
            // Linking marks a soul's own wallet. A soul created by hand may lack the mark.
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
            let share = share(earning);
            days.count(earning, share);
            let card = book(&mut books, kind, earning, share, now)?;
            if card > Usdc::ZERO {
                rows.push(maturing::put(db, earning, card)?);
            }
        }
        books.balance.total_jobs += jobs;
        let mut writes = books.writes(db, slug)?;
        writes.append(&mut rows);
        let table = &db.tables.ledger;
        for earning in taken {
            // A safeguard: this condition always holds if the balance's does.
            let key = uncounted_key(slug, earning.request_id);
            writes.push(Write::delete(table, key).only_if("attribute_exists(#pk)"));
        }
        for (agent, buyer) in &buyers {
            writes.push(buyer.write(db, slug, *agent)?);
        }
        writes.push(reputation.write(db, slug)?);
        writes.append(&mut days.writes(db, slug)?);
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
            // Job and buyer counts affect search.
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

/// The change of the marketplace's totals by these sales.
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

/// The longest prefix of the records that fits into one transaction.
fn fitting(waiting: &[Earning]) -> &[Earning] {
    let (mut buyers, mut services, mut days) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut count, mut writes) = (0, 0);
    for earning in waiting.iter().take(BATCH) {
        buyers.insert(earning.buyer);
        services.extend(earning.sold.service.as_deref());
        days.insert(day::name(earning.ended_at));
        // Two or three writes per record, and six once: balance, soul, reputation, recent purchases, totals, index mark.
        writes += if earning.card > Usdc::ZERO { 3 } else { 2 };
        if writes + buyers.len() + services.len() + days.len() + 6 > MOST_WRITES {
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

/// What the seller earned with a sale. It pays for the tools that the work used.
fn share(earning: &Earning) -> Usdc {
    match earning.ended {
        SaleEnd::Failed => Usdc::ZERO,
        SaleEnd::Completed => earning.sold.split.revenue.checked_sub(earning.tools_cost).unwrap_or_default(),
    }
}

/// Books an earning. Returns the part of it that was paid by card and has to mature.
fn book(
    books: &mut Books,
    kind: EntryKind,
    earning: &Earning,
    share: Usdc,
    now: Timestamp,
) -> Result<Usdc, StoreError> {
    let split = earning.sold.split;
    let card = share.min(earning.card);
    let about = About {
        cause: earning.request_id.to_string(),
        receipt_id: Some(earning.receipt_id.clone()),
        service: earning.sold.service.clone(),
        card: Some(card).filter(|card| *card > Usdc::ZERO),
        price: Some(split.price()),
        fee: Some(split.fee),
    };
    let sum = |one: Usdc, other: Usdc| {
        one.checked_add(other).ok_or_else(|| StoreError::new("the seller's total earnings overflow"))
    };
    books.balance.total_earnings = sum(books.balance.total_earnings, share)?;
    books.balance.maturing = sum(books.balance.maturing, card)?;
    books.book(kind, plus(share)?, about, earning.ended_at, now)?;
    Ok(card)
}

/// The write that changes a soul's counters and its buyers' figures. The index of listed souls follows from it.
fn count_soul(db: &Db, slug: &str, jobs: u64, purchases: u64, reputation: &Reputation) -> Result<Write, StoreError> {
    let counts = "SET #buyers = :buyers, #backing = :backing ADD #jobs :jobs, #purchases :purchases";
    Write::update(&db.tables.souls, soul::key(slug), counts)
        .only_if("attribute_exists(#pk)")
        .bind("jobs", jobs)?
        .bind("purchases", purchases)?
        .bind("buyers", reputation.buyers)?
        .bind("backing", reputation.backing)
}

/// Earlier purchases of these sales' buyers.
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
