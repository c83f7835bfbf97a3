//! Recipients who want no more texts from a number.
//!
//! One item for each recipient and sending number. It never expires. A START does not delete it: the item keeps the time of
//! the last word, so an older STOP that arrives late, or once more, changes nothing. Recipients are only stored as hashes.

use base::clock::Timestamp;
use base::digest::sha256;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use crate::number::Number;
use crate::quote::AT_ONCE;

/// Who said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The recipient, by STOP or START.
    Stop,
    /// The provider, which refused a text.
    Provider,
}

/// `OPTOUT#<sha256 of the recipient>` / `FROM#<sending number>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OptOut {
    out: bool,
    since: Timestamp,
    why: Why,
}

fn key(from: &Number, to: &Number) -> Key {
    let recipient = const_hex::encode(sha256(to.as_str().as_bytes()));
    Key::new(format!("OPTOUT#{recipient}"), format!("FROM#{}", from.as_str()))
}

/// Records that `to` wants no more texts from `from` (`out`), or wants them again. `at` is the time of the word: the latest
/// word counts, in whatever order they arrive.
pub async fn set(db: &Db, from: &Number, to: &Number, out: bool, why: Why, at: Timestamp) -> Result<(), StoreError> {
    let write = Write::put(&db.tables.messages, key(from, to), &OptOut { out, since: at, why })?
        .only_if("attribute_not_exists(#pk) OR #since <= :at")
        .bind("at", at)?;
    // Refused: a later word is known.
    db.write_if(write).await?;
    Ok(())
}

/// Whether `to` wants no texts from `from`. Consistent: a STOP applies from the moment it is written.
pub async fn is_out(db: &Db, from: &Number, to: &Number) -> Result<bool, StoreError> {
    let row: Option<OptOut> = db.get_latest(&db.tables.messages, key(from, to)).await?;
    Ok(row.is_some_and(|row| row.out))
}

/// Of these numbers, those that have not said STOP to `from`.
pub async fn without(db: &Db, from: &Number, numbers: Vec<Number>) -> Result<Vec<Number>, StoreError> {
    let asked: Vec<_> = numbers.iter().map(|to| is_out(db, from, to)).collect();
    let are_out: Vec<bool> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    Ok(numbers.into_iter().zip(are_out).filter(|(_, is_out)| !is_out).map(|(number, _)| number).collect())
}
