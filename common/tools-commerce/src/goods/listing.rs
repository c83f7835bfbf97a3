//! Creates, changes and deletes goods. Each is one transaction.

use base::clock::Timestamp;
use base::input::FieldError;
use http::StatusCode;
use platform::http::ApiError;
use platform::store::{Db, StoreError, Write, WriteError};
use serde_json::{Map, Value};

use super::finding;
use super::form::{self, Asked};
use super::good::{self, Good, Listed, MOST_GOODS, Seller, Stock};
use crate::restricted;

fn check(asked: Result<Asked, Vec<FieldError>>) -> Result<Asked, ApiError> {
    let asked = asked.map_err(ApiError::InvalidRequest)?;
    match restricted::group(&asked.good.words()) {
        None => Ok(asked),
        Some(group) => Err(ApiError::Tool {
            status: StatusCode::BAD_REQUEST,
            code: "restricted_product",
            message: format!("{group}: not sold by this service"),
        }),
    }
}

/// Checks a body before anything is written: the good that it asks for.
///
/// # Errors
/// What is wrong with it.
pub fn asked(
    seller: Seller,
    before: Option<&Good>,
    body: &Map<String, Value>,
    now: Timestamp,
) -> Result<Asked, ApiError> {
    check(match before {
        None => form::create(seller, body, now),
        Some(good) => form::change(good, body, now),
    })
}

fn set_stock(db: &Db, asked: &Asked) -> Result<Vec<Write>, StoreError> {
    let table = &db.tables.souls;
    let put = |(variant, left): (&u32, &u32)| {
        Write::put(table, good::stock_key(&asked.good.id, *variant), &Stock { variant: *variant, left: *left })
    };
    asked.stock.iter().map(put).collect()
}

/// Writes a new good.
///
/// # Errors
/// 409 `too_many_goods`.
pub async fn create(db: &Db, asked: &Asked) -> Result<(), ApiError> {
    let (table, good) = (&db.tables.souls, &asked.good);
    let mut writes = vec![
        Write::update(table, good::count_key(&good.seller), "ADD #goods :one")
            .only_if("attribute_not_exists(#goods) OR #goods < :most")
            .bind("one", 1)?
            .bind("most", MOST_GOODS)?,
        Write::put(table, good::key(&good.id), good)?.only_if_new(),
        Write::put(table, good::list_key(&good.seller, &good.id), &Listed { id: good.id.clone() })?,
        finding::shelve(db, good)?,
    ];
    writes.extend(set_stock(db, asked)?);
    match db.transact(&writes).await {
        Ok(()) => Ok(()),
        Err(WriteError::Refused(_)) => Err(ApiError::Tool {
            status: StatusCode::CONFLICT,
            code: "too_many_goods",
            message: format!("a seller has at most {MOST_GOODS} goods: delete one first"),
        }),
        Err(WriteError::Failed(error)) => Err(error.into()),
    }
}

/// Writes a changed good. False: it was changed or deleted meanwhile.
///
/// # Errors
/// If the database fails.
pub async fn change(db: &Db, before: &Good, asked: &Asked) -> Result<bool, StoreError> {
    let (table, good) = (&db.tables.souls, &asked.good);
    let put = Write::put(table, good::key(&good.id), good)?;
    let put = put.only_if("#revision = :before").bind("before", before.revision)?;
    let mut writes = vec![put, finding::shelve(db, good)?];
    writes.extend(set_stock(db, asked)?);
    let is_gone = |id: &u32| good.variants.iter().all(|variant| variant.id != *id);
    for id in before.variants.iter().map(|variant| variant.id).filter(is_gone) {
        writes.push(Write::delete(table, good::stock_key(&good.id, id)));
    }
    written(db, &writes).await
}

/// Deletes a good; its orders go on. False: it was changed or deleted meanwhile.
///
/// # Errors
/// If the database fails.
pub async fn delete(db: &Db, good: &Good) -> Result<bool, StoreError> {
    let table = &db.tables.souls;
    let mut writes = vec![
        Write::delete(table, good::key(&good.id)).only_if("#revision = :before").bind("before", good.revision)?,
        Write::delete(table, good::list_key(&good.seller, &good.id)),
        finding::remove(db, &good.id),
        Write::update(table, good::count_key(&good.seller), "ADD #goods :less").bind("less", -1)?,
    ];
    writes.extend(good.variants.iter().map(|variant| Write::delete(table, good::stock_key(&good.id, variant.id))));
    written(db, &writes).await
}

async fn written(db: &Db, writes: &[Write]) -> Result<bool, StoreError> {
    match db.transact(writes).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}
