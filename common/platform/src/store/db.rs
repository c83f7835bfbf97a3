//! DynamoDB. A [`Write`] describes one write, which can be executed alone or as part of a transaction.
//!
//! A write whose condition fails returns the existing item, so a repeated payment is answered without another read.
//! Conflicts between transactions are retried here; other errors are not.

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
use base::ids::RequestId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lists::{self, Announced, List};
use super::{BoxFuture, StoreError};
use crate::config::Tables;

/// The attributes of an item.
pub type Item = HashMap<String, AttributeValue>;

/// Maximum number of retries of a transaction that conflicts with another.
const CONFLICT_RETRIES: u32 = 8;

/// Maximum number of retries of the unprocessed part of a batch.
const BATCH_RETRIES: u32 = 8;
/// DynamoDB's limits for one batch request.
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

    /// The key of a job's item, in the table of jobs.
    pub fn of_job(request_id: RequestId) -> Key {
        Key::new(format!("JOB#{request_id}"), "JOB")
    }

    fn attributes(self) -> Item {
        HashMap::from([("pk".to_owned(), AttributeValue::S(self.pk)), ("sk".to_owned(), AttributeValue::S(self.sk))])
    }
}

#[derive(Debug)]
pub enum WriteError {
    /// A condition failed. One entry per action, in order; `None` for actions whose condition held.
    Refused(Vec<Option<Refused>>),
    /// The database failed, or the conflicts did not end.
    Failed(StoreError),
}

/// The condition of one action failed. `old` is the existing item, if there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refused {
    pub old: Option<Item>,
}

impl WriteError {
    /// The refusal of the nth action, if that one was refused.
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

/// One write: put, update or delete, with an optional condition.
///
/// In expressions, write attribute names as `#name`, so that DynamoDB's reserved words never matter, and values as `:name`,
/// bound with [`Write::bind`].
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    table: String,
    kind: WriteKind,
    condition: Option<String>,
    names: HashMap<String, String>,
    values: Item,
    /// The swept list that this write adds to, and the current time.
    list: Option<(List, Timestamp)>,
}

#[derive(Clone, Debug, PartialEq)]
enum WriteKind {
    Put(Item),
    Update {
        key: Item,
        expression: String,
    },
    Delete {
        key: Item,
    },
    /// Writes nothing; makes a transaction depend on a condition.
    Check {
        key: Item,
    },
}

impl Write {
    /// Puts a whole item. Null members are left out.
    pub fn put(table: &str, key: Key, record: &impl Serialize) -> Result<Write, StoreError> {
        let mut item: Item = serde_dynamo::to_item(record).map_err(StoreError::new)?;
        item.retain(|_, value| !matches!(value, AttributeValue::Null(_)));
        item.extend(key.attributes());
        Ok(Write::new(table, WriteKind::Put(item)))
    }

    /// Updates attributes. `expression` is an update expression such as `SET #status = :status REMOVE #open`.
    pub fn update(table: &str, key: Key, expression: &str) -> Write {
        let mut write =
            Write::new(table, WriteKind::Update { key: key.attributes(), expression: expression.to_owned() });
        write.name_attributes(expression);
        write
    }

    pub fn delete(table: &str, key: Key) -> Write {
        Write::new(table, WriteKind::Delete { key: key.attributes() })
    }

    /// Writes nothing: its transaction happens only if the condition of [`Write::only_if`] holds.
    pub fn check(table: &str, key: Key) -> Write {
        Write::new(table, WriteKind::Check { key: key.attributes() })
    }

    fn new(table: &str, kind: WriteKind) -> Write {
        let (condition, names, values, list) = (None, HashMap::new(), HashMap::new(), None);
        Write { table: table.to_owned(), kind, condition, names, values, list }
    }

    /// Marks that this write adds to a swept list; the list is announced before the write (see [`lists`]).
    pub fn into_list(mut self, list: List, now: Timestamp) -> Write {
        self.list = Some((list, now));
        self
    }

    /// The write happens only if this condition holds.
    pub fn only_if(mut self, condition: &str) -> Write {
        self.name_attributes(condition);
        self.condition = Some(condition.to_owned());
        self
    }

    /// The write happens only if the item does not exist yet.
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

    /// The write as part of a batch. Conditions and updates are errors, because a batch does not support them.
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

    /// Announces the lists these writes add to, unless this process did so recently. Boxed, because it writes and is called
    /// by every write.
    fn announce<'a>(&'a self, writes: &'a [Write]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            for (list, now) in writes.iter().filter_map(|write| write.list) {
                let Some(until) = self.announced.due(list, now) else { continue };
                // Refused if another process has announced the same or a later time.
                self.write_if(lists::announce(self, list, until)?).await?;
                self.announced.note(list, until);
            }
            Ok(())
        })
    }

    /// The client itself, for uses in one place only (creating tables locally, reading a stream).
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Opens the connection in advance by reading an item that does not exist. The function must have permission to read
    /// `table`.
    pub async fn warm(&self, table: &str) {
        let _ = self.get::<serde_json::Value>(table, Key::new("WARM", "WARM")).await;
    }

    /// Reads an item, eventually consistent: half the price, and possibly a moment out of date.
    pub async fn get<T: DeserializeOwned>(&self, table: &str, key: Key) -> Result<Option<T>, StoreError> {
        self.read(table, key, false).await
    }

    /// Reads an item, strongly consistent.
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

    /// Reads at most `limit` items of a partition, in sort key order. Pages of DynamoDB (1 MB each) are joined.
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

    /// Reads items by their keys, in the order of `keys`, 100 per request. The keys must differ. Eventually consistent, or
    /// strongly with `latest`, at twice the price.
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

    /// Executes puts and deletes without conditions, 25 per request. Not atomic. Their keys must differ.
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

    /// Executes a write; false if its condition failed.
    pub async fn write_if(&self, write: Write) -> Result<bool, StoreError> {
        match self.write(write).await {
            Ok(_) => Ok(true),
            Err(WriteError::Refused(_)) => Ok(false),
            Err(WriteError::Failed(error)) => Err(error),
        }
    }

    /// Executes one write. An update returns the new item; other writes return an empty one.
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
            WriteKind::Check { .. } => Err(WriteError::Failed(StoreError::new("a check needs a transaction"))),
        }
    }

    /// Executes one write alone, several as a transaction. A write alone costs half as much.
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

    /// Executes all of the writes or none.
    pub async fn transact(&self, writes: &[Write]) -> Result<(), WriteError> {
        if writes.iter().any(|write| write.list.is_some()) {
            self.announce(writes).await.map_err(WriteError::Failed)?;
        }
        let actions: Vec<TransactWriteItem> =
            writes.iter().map(Write::action).collect::<Result<_, _>>().map_err(WriteError::Failed)?;
        // One idempotency token for all attempts: an attempt whose response was lost may have been applied. Without the
        // token, the retry would fail on its own writes.
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

/// A query for [`Db::query`].
#[derive(Clone, Debug)]
pub struct Query<'a> {
    table: &'a str,
    index: Option<&'a str>,
    condition: &'a str,
    values: Item,
    limit: usize,
    newest_first: bool,
    latest: bool,
    /// The range is empty. The query is not sent, because DynamoDB would reject it.
    is_empty: bool,
    after: Option<Key>,
    /// The index's key of the item in `after`.
    after_in_index: Item,
}

impl<'a> Query<'a> {
    /// A query with a key condition such as `#pk = :pk AND #sk <= :now`; bind its values with [`Query::bind`].
    pub fn new(table: &'a str, condition: &'a str, limit: usize) -> Query<'a> {
        let (index, values) = (None, Item::new());
        let (newest_first, latest, is_empty) = (false, false, false);
        let (after, after_in_index) = (None, Item::new());
        Query { table, index, condition, values, limit, newest_first, latest, is_empty, after, after_in_index }
    }

    /// Items of a partition whose sort key has a prefix.
    pub fn prefixed(table: &'a str, pk: &str, prefix: &str, limit: usize) -> Result<Query<'a>, StoreError> {
        Query::new(table, "#pk = :pk AND begins_with(#sk, :prefix)", limit).bind("pk", pk)?.bind("prefix", prefix)
    }

    /// Items of a partition whose sort key is between two values, both included. Empty if `from` is larger than `to`.
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

    /// In descending sort key order.
    pub fn newest_first(mut self) -> Query<'a> {
        self.newest_first = true;
        self
    }

    /// Strongly consistent, at twice the price.
    pub fn latest(mut self) -> Query<'a> {
        self.latest = true;
        self
    }

    /// Starts after this key, which need not exist.
    pub fn after(mut self, key: Option<Key>) -> Query<'a> {
        self.after = key;
        self
    }

    /// For a query on an index, [`Query::after`] also needs the attributes of the index's key. This sets one.
    pub fn after_in_index(mut self, name: &str, value: impl Serialize) -> Result<Query<'a>, StoreError> {
        let value = serde_dynamo::to_attribute_value(value).map_err(StoreError::new)?;
        self.after_in_index.insert(name.to_owned(), value);
        Ok(self)
    }
}

/// The attribute names (`#name`) in an expression.
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

/// Waits before the rest of a batch is retried; an error after [`BATCH_RETRIES`].
async fn wait_for_rest(done: bool, attempt: &mut u32) -> Result<(), StoreError> {
    if !done {
        if *attempt == BATCH_RETRIES {
            return Err(StoreError::new("the database did not finish a batch"));
        }
        tokio::time::sleep(backoff(*attempt)).await;
        *attempt += 1;
    }
    Ok(())
}

/// Deserialises an item.
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

/// The cause, for the log; never shown to callers.
fn failed<E: std::error::Error + 'static, R: fmt::Debug + 'static>(error: SdkError<E, R>) -> StoreError {
    StoreError::new(DisplayErrorContext(&error))
}

/// Full jitter: a random time of at most 10 ms · 2ⁿ, so that conflicting writers do not retry at the same moment.
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
