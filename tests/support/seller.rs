//! A soul that sells, created directly in the database. Its sales are written as the end of a job writes them.

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use evm::Address;
use evm::signature::PrivateKey;
use ledger::earning::{self, Earning, SaleEnd, Sold};
use ledger::fee::Split;
use ledger::maturing;
use ledger::payout::PayoutId;
use ledger::seller::{self, Balance, Entry, EntryKind};
use local::Stack;
use market::service::{self, Service};
use market::soul::{self, Soul, SoulPointer};
use platform::config::FeeShare;
use platform::store::{Db, Write};
use serde_json::{Value, json};

use super::{Answer, Client};

#[derive(Clone)]
pub struct Seller {
    pub slug: String,
    pub db: Db,
    key: String,
    client: Client,
}

/// The only service of each seller.
pub const SERVICE: &str = "good-work";

impl Seller {
    pub async fn new(stack: &Stack) -> Seller {
        let slug = format!("soul-{}", &evm::hex0x(&digest::random::<6>())[2..]);
        let (key, now, db) = (soul::new_key(), stack.app.clock.now(), stack.app.db.clone());
        let hash = soul::key_hash(&key);
        // In stored form, so that members added to the record later do not matter here.
        let record: Soul = serde_json::from_value(json!({
            "slug": slug, "name": "A soul", "status": "active", "key_hash": hash, "version": 1, "text_hash": "",
            "listed": "all#0", "created": now, "updated": now,
        }))
        .expect("a soul");
        let work: Service = serde_json::from_value(json!({
            "slug": SERVICE, "active": true, "created": now, "updated": now, "category": "custom",
            "terms": {
                "version": 1, "name": "Good work", "price": 1_000_000, "deadline_seconds": 60, "sandbox": false,
                "executor": "worker",
            },
        }))
        .expect("a service");
        let table = &db.tables.souls;
        let writes = [
            Write::put(table, soul::key(&slug), &record).unwrap(),
            Write::put(table, soul::key_key(&hash), &SoulPointer { soul: record.slug.clone() }).unwrap(),
            Write::put(table, service::key(&slug, SERVICE), &work).unwrap(),
        ];
        db.transact(&writes).await.unwrap();
        Seller { slug, db, key, client: Client::new(&stack.base_url) }
    }

    /// The same soul, on another stack with the same database.
    pub fn at(&self, stack: &Stack) -> Seller {
        Seller { db: stack.app.db.clone(), client: Client::new(&stack.base_url), ..self.clone() }
    }

    pub async fn call(&self, method: &str, path: &str, more: &[(&str, &str)], body: &Value) -> Option<Answer> {
        let key = format!("Bearer {}", self.key);
        let mut headers = vec![("authorization", key.as_str()), ("content-type", "application/json")];
        headers.extend_from_slice(more);
        let body = if method == "GET" { String::new() } else { body.to_string() };
        self.client.send(method, &format!("/v1/soul/me/{path}"), &headers, body).await
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = self.call("GET", path, &[], &Value::Null).await.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    pub async fn link(&self, wallet: Address) -> Answer {
        self.call("PUT", "link-wallet", &[], &json!({"wallet_address": wallet.lower()})).await.expect("an answer")
    }

    pub async fn ask(&self, body: &Value) -> Answer {
        self.call("POST", "payout", &[], body).await.expect("an answer")
    }

    /// A sale that ended, as its job records it.
    pub fn sale(&self, price: u64, wallet: Address, end: SaleEnd, at: Timestamp, took: Duration) -> Earning {
        let request_id = RequestId::random();
        Earning {
            request_id,
            receipt_id: ReceiptId::of(request_id, at),
            sold: Sold {
                soul: self.slug.clone(),
                service: Some(SERVICE.to_owned()),
                terms: 1,
                split: Split::of(Usdc::from_micro(price), FeeShare::default()),
                kept_up_to: Usdc::ZERO,
            },
            buyer: AgentId::of(wallet),
            tools_cost: Usdc::ZERO,
            card: Usdc::ZERO,
            ended: end,
            bought_at: at.minus(took),
            ended_at: at,
        }
    }

    pub async fn record(&self, earnings: &[Earning]) {
        for some in earnings.chunks(50) {
            let writes: Vec<Write> = some.iter().map(|sale| earning::record(&self.db, sale).unwrap()).collect();
            self.db.transact(&writes).await.unwrap();
        }
    }

    /// Records work for a new wallet that earns exactly this many micro-USDC.
    pub async fn earn(&self, revenue: u64, now: Timestamp) {
        let mut sale = self.sale(0, someone(), SaleEnd::Completed, now, Duration::from_secs(1));
        sale.sold.split = Split { fee: Usdc::from_micro(revenue / 4), revenue: Usdc::from_micro(revenue) };
        self.record(&[sale]).await;
    }

    pub async fn soul(&self) -> Soul {
        soul::load_latest(&self.db, &self.slug).await.unwrap().expect("the soul")
    }

    /// Checks that the entries are complete, in order, and add up to the balance. Returns both.
    pub async fn audit(&self) -> (Balance, Vec<Entry>) {
        let balance = seller::load(&self.db, &self.slug).await.unwrap();
        let entries = seller::entries(&self.db, &self.slug, None, None, None, 100_000).await.unwrap();
        let (mut sum, mut earned, mut jobs) = (0, 0, 0);
        let mut payouts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            sum += entry.amount;
            assert!(sum >= 0, "below nothing at {entry:?}");
            assert_eq!(entry.number, index as u64 + 1, "entries are numbered without gaps");
            assert_eq!(entry.balance.micro(), sum.unsigned_abs(), "{entry:?}");
            match entry.kind {
                EntryKind::Sale => (earned, jobs) = (earned + entry.amount, jobs + 1),
                EntryKind::Purchase | EntryKind::CardReversal => earned += entry.amount,
                EntryKind::Failed => assert_eq!(entry.amount, 0),
                EntryKind::Payout => payouts.entry(&entry.about.cause).or_default().0 += 1,
                EntryKind::PayoutReturned => payouts.entry(&entry.about.cause).or_default().1 += 1,
            }
        }
        assert_eq!(balance.entries, entries.len() as u64);
        assert_eq!(balance.pending.micro(), sum.unsigned_abs(), "entries add up to the balance");
        assert_eq!(balance.total_earnings.micro(), earned.unsigned_abs());
        assert_eq!(balance.total_jobs, jobs);
        let maturing = maturing::next(&self.db, &self.slug, 100_000).await.unwrap();
        let maturing: u64 = maturing.iter().map(|row| row.amount.micro()).sum();
        assert_eq!(balance.maturing.micro(), maturing, "rows add up to what matures");
        assert!(balance.maturing <= balance.pending, "no payout took what matures: {balance:?}");
        let mut open = None;
        for (id, (taken, returned)) in payouts {
            let id: PayoutId = id.parse().unwrap();
            let payout = ledger::payout::load(&self.db, &self.slug, &id).await.unwrap().expect("a payout");
            let failed = payout.status == ledger::payout::PayoutStatus::Failed;
            assert_eq!((taken, returned), (1, u32::from(failed)), "{payout:?}");
            if payout.is_open() {
                assert_eq!(open.replace(id), None, "one at a time");
            }
        }
        assert_eq!(balance.in_flight, open);
        (balance, entries)
    }
}

/// A new wallet.
pub fn someone() -> Address {
    PrivateKey::from_bytes(&digest::random()).expect("a key").address()
}
