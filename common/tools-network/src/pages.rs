//! Lists in the order of time: rows that lead to what is listed. One request looks at a bounded number of them, whatever it asks for
//! and however many there are.

use std::collections::HashMap;

use base::clock::Timestamp;
use platform::http::ApiError;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, due};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Most rows that one request looks at.
const MOST_LOOKED_AT: usize = 200;
/// Rows that are read at once. Their things are read in one request too.
const AT_ONCE: usize = 100;

/// A row of a list. Its sort key is a time and an id ([`due::row`]).
#[derive(Serialize)]
struct Put {
    id: Uuid,
    expires: Option<i64>,
}

#[derive(Deserialize)]
struct Row {
    sk: String,
    id: Uuid,
}

/// What a request does with a thing that it has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Take,
    Pass,
    /// It is not asked for, and no older one is.
    End,
}

/// What is asked for.
pub struct Asked<'a> {
    /// The list's partition.
    pub partition: &'a str,
    pub cursor: Option<&'a str>,
    pub limit: usize,
    /// Most are taken: no more has to be read than is shown.
    pub is_plain: bool,
}

/// The row that leads to a thing.
pub fn row(at: Timestamp, id: Uuid) -> String {
    due::row(at, id)
}

/// The write that puts a thing into a list.
pub fn put(db: &Db, partition: &str, at: Timestamp, id: Uuid, expires: Option<i64>) -> Result<Write, StoreError> {
    Write::put(&db.tables.messages, Key::new(partition, row(at, id)), &Put { id, expires })
}

/// The write that takes it from its place.
pub fn delete(db: &Db, partition: &str, at: Timestamp, id: Uuid) -> Write {
    Write::delete(&db.tables.messages, Key::new(partition, row(at, id)))
}

/// Where a page begins.
///
/// # Errors
/// 400 `invalid_cursor`
pub fn begins(cursor: Option<&str>) -> Result<Option<String>, ApiError> {
    match cursor {
        Some(cursor) if is_row(cursor) => Ok(Some(cursor.to_owned())),
        Some(_) => Err(ApiError::InvalidCursor),
        None => Ok(None),
    }
}

/// Whether a text has the form of a row: 15 digits and an id.
fn is_row(text: &str) -> bool {
    text.split_once('#').is_some_and(|(time, id)| {
        time.len() == 15 && time.bytes().all(|byte| byte.is_ascii_digit()) && Uuid::try_parse(id).is_ok()
    })
}

/// A page of a list, the newest first, and the cursor of the next one. `key` is where a thing is, and `place` the time of its row: a
/// row with another time is left over. The page may have fewer than `limit` although there are more.
///
/// # Errors
/// 400 `invalid_cursor`
pub async fn page<T: DeserializeOwned>(
    db: &Db,
    asked: &Asked<'_>,
    key: impl Fn(Uuid) -> Key,
    place: impl Fn(&T) -> Timestamp,
    look: impl Fn(&T) -> Look,
) -> Result<(Vec<T>, Option<String>), ApiError> {
    let mut after = begins(asked.cursor)?;
    // One more says whether there are more.
    let mut at_once = if asked.is_plain { (asked.limit + 1).min(AT_ONCE) } else { AT_ONCE };
    let (mut kept, mut looked_at) = (Vec::new(), 0);
    while looked_at < MOST_LOOKED_AT {
        let query = Query::new(&db.tables.messages, "#pk = :pk", at_once).bind("pk", asked.partition)?;
        let start = after.clone().map(|row| Key::new(asked.partition, row));
        let rows: Vec<Row> = db.query(query.newest_first().latest().after(start)).await?;
        // Two rows may lead to one thing, and a batch takes a key once.
        let mut keys: Vec<Key> = rows.iter().map(|row| key(row.id)).collect();
        keys.sort();
        keys.dedup();
        let found: Vec<Option<T>> = db.batch_get(&db.tables.messages, &keys, true).await?;
        let mut found: HashMap<Key, T> =
            keys.into_iter().zip(found).filter_map(|(key, one)| Some((key, one?))).collect();
        looked_at += rows.len();
        let is_last = rows.len() < at_once;
        for Row { sk, id } in rows {
            let is_there = found.get(&key(id)).is_some_and(|one| row(place(one), id) == sk);
            if is_there && let Some(one) = found.remove(&key(id)) {
                match look(&one) {
                    Look::Take if kept.len() == asked.limit => return Ok((kept, after)),
                    Look::Take => kept.push(one),
                    Look::Pass => {}
                    Look::End => return Ok((kept, None)),
                }
            }
            after = Some(sk);
        }
        if is_last {
            return Ok((kept, None));
        }
        at_once = AT_ONCE;
    }
    Ok((kept, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_have_one_form() {
        assert!(is_row(&row(Timestamp::from_secs(1), Uuid::from_u128(5))));
        for other in ["", "1#2", "000000000000001#", "00000000000000x#00000000-0000-0000-0000-000000000005"] {
            assert!(!is_row(other), "{other}");
            assert!(begins(Some(other)).is_err(), "{other}");
        }
        assert!(begins(None).is_ok_and(|begins| begins.is_none()));
    }
}
