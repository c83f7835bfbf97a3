//! DynamoDB: one small language for writes, so that the same write can stand alone or in a transaction.
//!
//! A refused condition hands back the item that stood in the way, which is what lets a repeated payment be answered
//! without a read. Collisions of transactions are retried here; nothing else is.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{DisplayErrorContext, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, DeleteRequest, KeysAndAttributes, Put, PutRequest,
    ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
};
use base::clock::Timestamp;
use base::digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lists::{self, Announced, List};
use super::{BoxFuture, StoreError};
use crate::config::Tables;

/// The attributes of an item.
pub type Item = HashMap<String, AttributeValue>;

/// How often a transaction that collided with another is tried again before it is given up.
const CONFLICT_RETRIES: u32 = 8;

/// How often the rest of a batch, which the database was too busy for, is asked for again.
const BATCH_RETRIES: u32 = 8;
/// DynamoDB's own limits of a batch.
const MAX_BATCH_GET: usize = 100;
const MAX_BATCH_WRITE: usize = 25;

/// A connection to the tables.
#[derive(Clone, Debug)]
pub struct Db {
    client: Client,
    pub tables: Tables,
    announced: Announced,
}

/// The primary key of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub pk: String,
    pub sk: String,
}

impl Key {
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Key {
        Key { pk: pk.into(), sk: sk.into() }
    }

    fn attributes(self) -> Item {
        HashMap::from([("pk".to_owned(), AttributeValue::S(self.pk)), ("sk".to_owned(), AttributeValue::S(self.sk))])
    }
}

/// A write that did not happen.
#[derive(Debug)]
pub enum WriteError {
    /// A condition did not hold: one entry for each action, in order.
    Refused(Vec<Option<Refused>>),
    /// The database could not be asked, or collided too often.
    Failed(StoreError),
}

/// The condition of one action did not hold; the item that stood in its way, if there was one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refused {
    pub old: Option<Item>,
}

impl WriteError {
    /// What refused the nth action, if it was that one.
    pub fn refused(&self, action: usize) -> Option<&Refused> {
        match self {
            WriteError::Refused(actions) => actions.get(action)?.as_ref(),
            WriteError::Failed(_) => None,
        }
    }

    pub fn is_refused(&self) -> bool {
        matches!(self, WriteError::Refused(_))
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Refused(_) => f.write_str("a condition of the write did not hold"),
            WriteError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}

impl From<WriteError> for StoreError {
    fn from(error: WriteError) -> StoreError {
        StoreError::new(error)
    }
}

/// One write: put, update or delete, with its condition.
///
/// Attribute names in expressions are written `#name`, so that DynamoDB's reserved words never matter; values are
/// written `:name` and bound with [`Write::bind`].
#[derive(Clone, Debug)]
pub struct Write {
    table: String,
    kind: WriteKind,
    condition: Option<String>,
    names: HashMap<String, String>,
    values: Item,
    /// The list that it puts something into, and when.
    list: Option<(List, Timestamp)>,
}

#[derive(Clone, Debug)]
enum WriteKind {
    Put(Item),
    Update {
        key: Item,
        expression: String,
    },
    Delete {
        key: Item,
    },
    /// Writes nothing: only holds a transaction to a condition.
    Check {
        key: Item,
    },
}

impl Write {
    /// Puts a whole item.
    pub fn put(table: &str, key: Key, record: &impl Serialize) -> Result<Write, StoreError> {
        let mut item: Item = serde_dynamo::to_item(record).map_err(StoreError::new)?;
        item.retain(|_, value| !matches!(value, AttributeValue::Null(_)));
        item.extend(key.attributes());
        Ok(Write::new(table, WriteKind::Put(item)))
    }

    /// Changes attributes: `expression` is an update expression such as `SET #status = :status REMOVE #open`.
    pub fn update(table: &str, key: Key, expression: &str) -> Write {
        let mut write =
            Write::new(table, WriteKind::Update { key: key.attributes(), expression: expression.to_owned() });
        write.name_attributes(expression);
        write
    }

    pub fn delete(table: &str, key: Key) -> Write {
        Write::new(table, WriteKind::Delete { key: key.attributes() })
    }

    /// No write at all: the transaction it is part of only happens if the condition given with [`Write::only_if`] holds.
    pub fn check(table: &str, key: Key) -> Write {
        Write::new(table, WriteKind::Check { key: key.attributes() })
    }

    fn new(table: &str, kind: WriteKind) -> Write {
        let (condition, names, values, list) = (None, HashMap::new(), HashMap::new(), None);
        Write { table: table.to_owned(), kind, condition, names, values, list }
    }

    /// It puts something into a list that is swept: that is announced first.
    pub fn into_list(mut self, list: List, now: Timestamp) -> Write {
        self.list = Some((list, now));
        self
    }

    /// The condition without which nothing is written.
    pub fn only_if(mut self, condition: &str) -> Write {
        self.name_attributes(condition);
        self.condition = Some(condition.to_owned());
        self
    }

    /// The item must not exist yet.
    pub fn only_if_new(self) -> Write {
        self.only_if("attribute_not_exists(#pk)")
    }

    /// Binds `:name` to a value.
    pub fn bind(mut self, name: &str, value: impl Serialize) -> Result<Write, StoreError> {
        let value = serde_dynamo::to_attribute_value(value).map_err(StoreError::new)?;
        self.values.insert(format!(":{name}"), value);
        Ok(self)
    }

    fn name_attributes(&mut self, expression: &str) {
        self.names.extend(attribute_names(expression).map(|name| (format!("#{name}"), name.to_owned())));
    }

    fn names(&self) -> Option<HashMap<String, String>> {
        (!self.names.is_empty()).then(|| self.names.clone())
    }

    fn values(&self) -> Option<Item> {
        (!self.values.is_empty()).then(|| self.values.clone())
    }

    /// As a part of a batch, which knows neither conditions nor updates.
    fn alone(&self) -> Result<WriteRequest, StoreError> {
        let request = WriteRequest::builder();
        let request = match &self.kind {
            WriteKind::Put(item) if self.condition.is_none() => request
                .put_request(PutRequest::builder().set_item(Some(item.clone())).build().map_err(StoreError::new)?),
            WriteKind::Delete { key } if self.condition.is_none() => request
                .delete_request(DeleteRequest::builder().set_key(Some(key.clone())).build().map_err(StoreError::new)?),
            _ => return Err(StoreError::new("only puts and deletes without a condition go in a batch")),
        };
        Ok(request.build())
    }

    fn action(&self) -> Result<TransactWriteItem, StoreError> {
        const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;
        let action = TransactWriteItem::builder();
        let action = match &self.kind {
            WriteKind::Put(item) => action.put(
                Put::builder()
                    .table_name(&self.table)
                    .set_item(Some(item.clone()))
                    .set_condition_expression(self.condition.clone())
                    .set_expression_attribute_names(self.names())
                    .set_expression_attribute_values(self.values())
                    .return_values_on_condition_check_failure(ALL_OLD)
                    .build()
                    .map_err(StoreError::new)?,
            ),
            WriteKind::Update { key, expression } => action.update(
                Update::builder()
                    .table_name(&self.table)
                    .set_key(Some(key.clone()))
                    .update_expression(expression)
                    .set_condition_expression(self.condition.clone())
                    .set_expression_attribute_names(self.names())
                    .set_expression_attribute_values(self.values())
                    .return_values_on_condition_check_failure(ALL_OLD)
                    .build()
                    .map_err(StoreError::new)?,
            ),
            WriteKind::Delete { key } => action.delete(
                Delete::builder()
                    .table_name(&self.table)
                    .set_key(Some(key.clone()))
                    .set_condition_expression(self.condition.clone())
                    .set_expression_attribute_names(self.names())
                    .set_expression_attribute_values(self.values())
                    .return_values_on_condition_check_failure(ALL_OLD)
                    .build()
                    .map_err(StoreError::new)?,
            ),
            WriteKind::Check { key } => action.condition_check(
                ConditionCheck::builder()
                    .table_name(&self.table)
                    .set_key(Some(key.clone()))
                    .set_condition_expression(self.condition.clone())
                    .set_expression_attribute_names(self.names())
                    .set_expression_attribute_values(self.values())
                    .return_values_on_condition_check_failure(ALL_OLD)
                    .build()
                    .map_err(StoreError::new)?,
            ),
        };
        Ok(action.build())
    }
}

impl Db {
    pub fn new(client: Client, tables: Tables) -> Db {
        Db { client, tables, announced: Announced::default() }
    }

    /// Announces what writes put into lists, unless this process did lately. Boxed: it is a write inside every write.
    fn announce<'a>(&'a self, writes: &'a [Write]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            for (list, now) in writes.iter().filter_map(|write| write.list) {
                let Some(until) = self.announced.due(list, now) else { continue };
                // Refused if another process announced as much.
                self.write_if(lists::announce(self, list, until)?).await?;
                self.announced.note(list, until);
            }
            Ok(())
        })
    }

    /// The client itself, for what only one place needs (creating tables locally, reading a stream).
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Opens the connection the first call would otherwise wait for: a read of nothing, from a table the function may
    /// read.
    pub async fn warm(&self, table: &str) {
        let _ = self.get::<serde_json::Value>(table, Key::new("WARM", "WARM")).await;
    }

    /// Reads an item eventually consistently: half the price, and a little behind the latest write.
    pub async fn get<T: DeserializeOwned>(&self, table: &str, key: Key) -> Result<Option<T>, StoreError> {
        self.read(table, key, false).await
    }

    /// Reads the item as the latest write left it.
    pub async fn get_latest<T: DeserializeOwned>(&self, table: &str, key: Key) -> Result<Option<T>, StoreError> {
        self.read(table, key, true).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        table: &str,
        key: Key,
        consistent: bool,
    ) -> Result<Option<T>, StoreError> {
        let request =
            self.client.get_item().table_name(table).set_key(Some(key.attributes())).consistent_read(consistent);
        let answer = request.send().await.map_err(failed)?;
        answer.item.map(parse).transpose()
    }

    /// At most `limit` items of a partition, in the order of their sort key. DynamoDB may hand them over in several
    /// pages of a megabyte.
    pub async fn query<T: DeserializeOwned>(&self, query: Query<'_>) -> Result<Vec<T>, StoreError> {
        if query.is_empty {
            return Ok(Vec::new());
        }
        let names: HashMap<String, String> =
            attribute_names(query.condition).map(|name| (format!("#{name}"), name.to_owned())).collect();
        let mut start = query.after.map(Key::attributes);
        if let Some(start) = &mut start {
            start.extend(query.after_in_index);
        }
        let mut found = Vec::new();
        loop {
            let left = query.limit.saturating_sub(found.len());
            let answer = self
                .client
                .query()
                .table_name(query.table)
                .set_index_name(query.index.map(str::to_owned))
                .key_condition_expression(query.condition)
                .set_expression_attribute_names(Some(names.clone()))
                .set_expression_attribute_values(Some(query.values.clone()))
                .scan_index_forward(!query.newest_first)
                .consistent_read(query.latest)
                .limit(i32::try_from(left).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(failed)?;
            for item in answer.items.unwrap_or_default() {
                found.push(parse(item)?);
            }
            start = answer.last_evaluated_key;
            if start.is_none() || found.len() >= query.limit {
                return Ok(found);
            }
        }
    }

    /// Items by their keys, in the order of the keys, which must differ: a hundred in each request. Eventually
    /// consistent, or `latest` for twice the price.
    pub async fn batch_get<T: DeserializeOwned>(
        &self,
        table: &str,
        keys: &[Key],
        latest: bool,
    ) -> Result<Vec<Option<T>>, StoreError> {
        let mut found: HashMap<Key, Item> = HashMap::new();
        for keys in keys.chunks(MAX_BATCH_GET) {
            let keys = keys.iter().cloned().map(Key::attributes).collect();
            let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(latest).build();
            let mut left = HashMap::from([(table.to_owned(), keys.map_err(StoreError::new)?)]);
            let mut attempt = 0;
            while !left.is_empty() {
                let answer = self.client.batch_get_item().set_request_items(Some(left)).send().await.map_err(failed)?;
                for item in answer.responses.into_iter().flatten().flat_map(|(_, items)| items) {
                    if let Some(key) = key_of(&item) {
                        found.insert(key, item);
                    }
                }
                left = answer.unprocessed_keys.unwrap_or_default();
                wait_for_rest(left.is_empty(), &mut attempt).await?;
            }
        }
        keys.iter().map(|key| found.remove(key).map(parse).transpose()).collect()
    }

    /// Puts and deletes without conditions, each on its own: twenty-five in each request. Their keys must differ.
    pub async fn batch_write(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        if writes.iter().any(|write| write.list.is_some()) {
            self.announce(&writes).await?;
        }
        for writes in writes.chunks(MAX_BATCH_WRITE) {
            let mut left: HashMap<String, Vec<WriteRequest>> = HashMap::new();
            for write in writes {
                left.entry(write.table.clone()).or_default().push(write.alone()?);
            }
            let mut attempt = 0;
            while !left.is_empty() {
                let request = self.client.batch_write_item().set_request_items(Some(left));
                left = request.send().await.map_err(failed)?.unprocessed_items.unwrap_or_default();
                wait_for_rest(left.is_empty(), &mut attempt).await?;
            }
        }
        Ok(())
    }

    /// Writes where the write's condition holds, and says whether it did.
    pub async fn write_if(&self, write: Write) -> Result<bool, StoreError> {
        match self.write(write).await {
            Ok(_) => Ok(true),
            Err(WriteError::Refused(_)) => Ok(false),
            Err(WriteError::Failed(error)) => Err(error),
        }
    }

    /// One write on its own. Of an update, the item as it now is.
    pub async fn write(&self, write: Write) -> Result<Item, WriteError> {
        if write.list.is_some() {
            self.announce(std::slice::from_ref(&write)).await.map_err(WriteError::Failed)?;
        }
        let (names, values, condition) = (write.names(), write.values(), write.condition.clone());
        let all_old = ReturnValuesOnConditionCheckFailure::AllOld;
        match write.kind {
            WriteKind::Put(item) => {
                let request = self
                    .client
                    .put_item()
                    .table_name(&write.table)
                    .set_item(Some(item))
                    .set_condition_expression(condition);
                let request = request.set_expression_attribute_names(names).set_expression_attribute_values(values);
                let answer = request.return_values_on_condition_check_failure(all_old).send().await;
                answer.map(|_| Item::new()).map_err(|error| match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(refused)) => one_refused(refused.item()),
                    _ => WriteError::Failed(failed(error)),
                })
            }
            WriteKind::Update { key, expression } => {
                let request =
                    self.client.update_item().table_name(&write.table).set_key(Some(key)).update_expression(expression);
                let request = request.set_condition_expression(condition).set_expression_attribute_names(names);
                let request = request.set_expression_attribute_values(values).return_values(ReturnValue::AllNew);
                let answer = request.return_values_on_condition_check_failure(all_old).send().await;
                answer.map(|answer| answer.attributes.unwrap_or_default()).map_err(|error| {
                    match error.as_service_error() {
                        Some(UpdateItemError::ConditionalCheckFailedException(refused)) => one_refused(refused.item()),
                        _ => WriteError::Failed(failed(error)),
                    }
                })
            }
            WriteKind::Delete { key } => {
                let request = self
                    .client
                    .delete_item()
                    .table_name(&write.table)
                    .set_key(Some(key))
                    .set_condition_expression(condition);
                let request = request.set_expression_attribute_names(names).set_expression_attribute_values(values);
                let answer = request.return_values_on_condition_check_failure(all_old).send().await;
                answer.map(|_| Item::new()).map_err(|error| match error.as_service_error() {
                    Some(DeleteItemError::ConditionalCheckFailedException(refused)) => one_refused(refused.item()),
                    _ => WriteError::Failed(failed(error)),
                })
            }
            WriteKind::Check { .. } => Err(WriteError::Failed(StoreError::new("a check stands outside a transaction"))),
        }
    }

    /// One write alone, several as a transaction: alone is half the price.
    pub async fn apply(&self, mut writes: Vec<Write>) -> Result<(), WriteError> {
        match (writes.pop(), writes.is_empty()) {
            (Some(write), true) => self.write(write).await.map(drop),
            (Some(write), false) => {
                writes.push(write);
                self.transact(&writes).await
            }
            (None, _) => Ok(()),
        }
    }

    /// All of the writes or none of them.
    pub async fn transact(&self, writes: &[Write]) -> Result<(), WriteError> {
        if writes.iter().any(|write| write.list.is_some()) {
            self.announce(writes).await.map_err(WriteError::Failed)?;
        }
        let actions: Vec<TransactWriteItem> =
            writes.iter().map(Write::action).collect::<Result<_, _>>().map_err(WriteError::Failed)?;
        // One token for all tries: a try whose answer was lost may have been applied, and then the next must not meet
        // its own writes and take them for another's.
        let token = const_hex::encode(digest::random::<16>());
        let mut attempt = 0;
        loop {
            let request = self.client.transact_write_items().set_transact_items(Some(actions.clone()));
            let Err(error) = request.client_request_token(&token).send().await else { return Ok(()) };
            let reasons = match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                    cancelled.cancellation_reasons()
                }
                Some(TransactWriteItemsError::TransactionInProgressException(_)) => &[],
                _ => return Err(WriteError::Failed(failed(error))),
            };
            if reasons.iter().any(|reason| reason.code() == Some("ConditionalCheckFailed")) {
                return Err(WriteError::Refused(reasons.iter().map(refusal).collect()));
            }
            let passing = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "None"];
            let may_pass = reasons.iter().all(|reason| reason.code().is_none_or(|code| passing.contains(&code)));
            if !may_pass || attempt == CONFLICT_RETRIES {
                return Err(WriteError::Failed(failed(error)));
            }
            tokio::time::sleep(backoff(attempt)).await;
            attempt += 1;
        }
    }
}

/// What to read with [`Db::query`].
#[derive(Clone, Debug)]
pub struct Query<'a> {
    table: &'a str,
    index: Option<&'a str>,
    condition: &'a str,
    values: Item,
    limit: usize,
    newest_first: bool,
    latest: bool,
    /// Nothing can be found: the database calls such a question an error.
    is_empty: bool,
    after: Option<Key>,
    /// What an index adds to the key to begin behind.
    after_in_index: Item,
}

impl<'a> Query<'a> {
    /// With a key condition such as `#pk = :pk AND #sk <= :now`, whose values are bound with [`Query::bind`].
    pub fn new(table: &'a str, condition: &'a str, limit: usize) -> Query<'a> {
        let (index, values) = (None, Item::new());
        let (newest_first, latest, is_empty) = (false, false, false);
        let (after, after_in_index) = (None, Item::new());
        Query { table, index, condition, values, limit, newest_first, latest, is_empty, after, after_in_index }
    }

    /// The items of a partition whose sort key begins with a prefix.
    pub fn prefixed(table: &'a str, pk: &str, prefix: &str, limit: usize) -> Result<Query<'a>, StoreError> {
        Query::new(table, "#pk = :pk AND begins_with(#sk, :prefix)", limit).bind("pk", pk)?.bind("prefix", prefix)
    }

    /// The items of a partition whose sort key lies between two, both included: none, if the first is the larger.
    pub fn between(table: &'a str, pk: &str, from: &str, to: &str, limit: usize) -> Result<Query<'a>, StoreError> {
        let query = Query::new(table, "#pk = :pk AND #sk BETWEEN :from AND :to", limit)
            .bind("pk", pk)?
            .bind("from", from)?
            .bind("to", to)?;
        Ok(Query { is_empty: to < from, ..query })
    }

    pub fn index(mut self, index: &'a str) -> Query<'a> {
        self.index = Some(index);
        self
    }

    pub fn bind(mut self, name: &str, value: impl Serialize) -> Result<Query<'a>, StoreError> {
        let value = serde_dynamo::to_attribute_value(value).map_err(StoreError::new)?;
        self.values.insert(format!(":{name}"), value);
        Ok(self)
    }

    /// From the largest sort key down.
    pub fn newest_first(mut self) -> Query<'a> {
        self.newest_first = true;
        self
    }

    /// As the latest writes left it, for twice the price.
    pub fn latest(mut self) -> Query<'a> {
        self.latest = true;
        self
    }

    /// Begins behind this key, whether or not there is an item.
    pub fn after(mut self, key: Option<Key>) -> Query<'a> {
        self.after = key;
        self
    }

    /// Completes [`Query::after`] for an index: the index's own key of that item.
    pub fn after_in_index(mut self, name: &str, value: impl Serialize) -> Result<Query<'a>, StoreError> {
        let value = serde_dynamo::to_attribute_value(value).map_err(StoreError::new)?;
        self.after_in_index.insert(name.to_owned(), value);
        Ok(self)
    }
}

/// The attributes an expression names: `#name`.
fn attribute_names(expression: &str) -> impl Iterator<Item = &str> {
    expression.split('#').skip(1).map(|part| {
        let end = part.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).unwrap_or(part.len());
        &part[..end]
    })
}

fn key_of(item: &Item) -> Option<Key> {
    let part = |name: &str| item.get(name)?.as_s().ok().cloned();
    Some(Key { pk: part("pk")?, sk: part("sk")? })
}

/// Before what is left of a batch is asked for again.
async fn wait_for_rest(done: bool, attempt: &mut u32) -> Result<(), StoreError> {
    if !done {
        if *attempt == BATCH_RETRIES {
            return Err(StoreError::new("the database did not come to the end of a batch"));
        }
        tokio::time::sleep(backoff(*attempt)).await;
        *attempt += 1;
    }
    Ok(())
}

/// Reads a record out of an item.
pub fn parse<T: DeserializeOwned>(item: Item) -> Result<T, StoreError> {
    serde_dynamo::from_item(item).map_err(StoreError::new)
}

fn one_refused(item: Option<&Item>) -> WriteError {
    WriteError::Refused(vec![Some(Refused { old: item.filter(|item| !item.is_empty()).cloned() })])
}

fn refusal(reason: &CancellationReason) -> Option<Refused> {
    (reason.code() == Some("ConditionalCheckFailed"))
        .then(|| Refused { old: reason.item.clone().filter(|item| !item.is_empty()) })
}

/// The cause in words, for the log; never shown to callers.
fn failed<E: std::error::Error + 'static, R: fmt::Debug + 'static>(error: SdkError<E, R>) -> StoreError {
    StoreError::new(DisplayErrorContext(&error))
}

/// Full jitter: anything up to 10 ms · 2ⁿ, so that those who collided do not meet again.
fn backoff(attempt: u32) -> Duration {
    let ceiling = 10u64 << attempt;
    Duration::from_millis(u64::from_be_bytes(digest::random()) % ceiling + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_names_are_found_in_expressions() {
        let write = Write::update("t", Key::new("p", "s"), "SET #status = :s, #lease_until = :l REMOVE #open")
            .only_if("#attempt=:a");
        let mut names: Vec<&String> = write.names.values().collect();
        names.sort();
        assert_eq!(names, ["attempt", "lease_until", "open", "status"]);
    }
}
