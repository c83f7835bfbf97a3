//! Souls by completed jobs, all or of one category, in pages.
//!
//! The index `listed` has eight shards for all souls and eight for each category; its sort key is the number of jobs. A
//! soul stays in its shard, so counting a job is one `ADD`, which also moves the soul. A page reads a little more than
//! its share from all shards at once and merges them. So its cost does not depend on the number of souls, and the load
//! is spread over eight partitions.
//!
//! The alternative was one partition per range of job counts. In a young marketplace most ranges are empty but must be
//! read, the lowest holds nearly all souls, and every counter update would have to know the range.

use std::collections::VecDeque;

use base::digest::sha256;
use base::encoding::{base64_any, base64_url};
use futures_util::future::try_join_all;
use platform::store::db::Query;
use platform::store::table::LISTED_INDEX;
use platform::store::{Db, Key, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::category::Category;
use super::soul::{self, Slug, Soul};

const SHARDS: usize = 8;
/// Largest offset. Beyond it a cursor is needed, because skipped rows are read.
pub const MAX_OFFSET: usize = 10_000;
/// Rows read from a shard beyond its share of a page.
const SPARE: usize = 4;

/// A soul's partition in the index: the value of `Soul::listed` while the soul is active.
pub fn place(category: Option<Category>, slug: &str) -> String {
    partition(category, usize::from(sha256(slug.as_bytes())[0]) % SHARDS)
}

fn partition(category: Option<Category>, shard: usize) -> String {
    format!("{}#{shard}", category.map_or("all", Category::as_str))
}

/// The start of a page: the last row already read of each shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub category: Option<Category>,
    behind: [Option<Behind>; SHARDS],
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Behind {
    jobs: u64,
    slug: Slug,
}

impl Cursor {
    pub fn start(category: Option<Category>) -> Cursor {
        Cursor { category, ..Cursor::default() }
    }

    /// Opaque to callers.
    pub fn to_text(&self) -> String {
        let mut text = format!("1 {}", self.category.map_or("all", Category::as_str));
        for behind in &self.behind {
            text.push(' ');
            match behind {
                Some(Behind { jobs, slug }) => text.push_str(&format!("{jobs}:{slug}")),
                None => text.push('-'),
            }
        }
        base64_url(text.as_bytes())
    }

    /// `None` for an invalid cursor.
    pub fn parse(text: &str) -> Option<Cursor> {
        let text = String::from_utf8(base64_any(text)?).ok()?;
        let mut parts = text.split(' ');
        if parts.next()? != "1" {
            return None;
        }
        let category = match parts.next()? {
            "all" => None,
            name => Some(name.parse().ok()?),
        };
        let mut cursor = Cursor::start(category);
        for behind in &mut cursor.behind {
            *behind = match parts.next()? {
                "-" => None,
                row => {
                    let (jobs, slug) = row.split_once(':')?;
                    Some(Behind { jobs: jobs.parse().ok()?, slug: slug.parse().ok()? })
                }
            };
        }
        parts.next().is_none().then_some(cursor)
    }
}

/// A page of souls, and the cursor of the next page.
pub struct Page {
    pub souls: Vec<Soul>,
    pub next: Option<Cursor>,
}

/// A row of the index.
#[derive(Deserialize)]
struct Row {
    jobs: u64,
    slug: Slug,
}

/// One shard, and how far it was read.
struct Shard {
    index: usize,
    rows: VecDeque<Row>,
    /// The last row read.
    read: Option<Behind>,
    ended: bool,
}

impl Shard {
    /// Reads more rows.
    async fn refill(&mut self, db: &Db, category: Option<Category>, count: usize) -> Result<(), StoreError> {
        let query = Query::new(&db.tables.souls, "#listed = :listed", count).index(LISTED_INDEX.name).newest_first();
        let mut query = query.bind("listed", partition(category, self.index))?;
        if let Some(Behind { jobs, slug }) = &self.read {
            let sort = category.map_or_else(|| "SOUL".to_owned(), |it| format!("CATEGORY#{}", it.as_str()));
            query = query.after(Some(Key::new(soul::partition(slug.as_str()), sort)));
            query = query.after_in_index("listed", partition(category, self.index))?.after_in_index("jobs", jobs)?;
        }
        let rows: Vec<Row> = db.query(query).await?;
        self.ended = rows.len() < count;
        if let Some(row) = rows.last() {
            self.read = Some(Behind { jobs: row.jobs, slug: row.slug.clone() });
        }
        self.rows.extend(rows);
        Ok(())
    }
}

/// The souls after a cursor, without the first `skip`. Recently suspended souls are left out.
pub async fn page(db: &Db, cursor: &Cursor, skip: usize, limit: usize) -> Result<Page, StoreError> {
    let mut cursor = cursor.clone();
    let wanted = skip + limit;
    let share = wanted * 3 / 2 / SHARDS + SPARE;
    let behind = cursor.behind.clone().into_iter().enumerate();
    let mut shards: Vec<Shard> =
        behind.map(|(index, read)| Shard { index, rows: VecDeque::new(), read, ended: false }).collect();
    try_join_all(shards.iter_mut().map(|shard| shard.refill(db, cursor.category, share))).await?;
    let mut slugs = Vec::new();
    let mut more = true;
    for taken in 0..wanted {
        for shard in shards.iter_mut().filter(|shard| shard.rows.is_empty() && !shard.ended) {
            shard.refill(db, cursor.category, (wanted - taken) / SHARDS + SPARE).await?;
        }
        let heads = shards.iter_mut().filter(|shard| !shard.rows.is_empty());
        let best = heads.max_by_key(|shard| (shard.rows.front().map(|row| row.jobs), SHARDS - shard.index));
        let Some((index, row)) = best.and_then(|shard| Some((shard.index, shard.rows.pop_front()?))) else {
            more = false;
            break;
        };
        if taken >= skip {
            slugs.push(row.slug.clone());
        }
        cursor.behind[index] = Some(Behind { jobs: row.jobs, slug: row.slug });
    }
    let more = more && shards.iter().any(|shard| !shard.rows.is_empty() || !shard.ended);
    let souls = load(db, &slugs).await?.into_iter().flatten().filter(Soul::is_active).collect();
    Ok(Page { souls, next: more.then_some(cursor) })
}

/// Souls by slug, in that order.
pub async fn load(db: &Db, slugs: &[Slug]) -> Result<Vec<Option<Soul>>, StoreError> {
    let keys: Vec<Key> = slugs.iter().map(|slug| soul::key(slug.as_str())).collect();
    db.batch_get(&db.tables.souls, &keys, false).await
}

/// A soul in a list. Without ratings the average is 0.
pub fn item(soul: &Soul) -> Value {
    json!({
        "id": soul.id(),
        "name": soul.name,
        "slug": soul.slug,
        "bio": soul.bio,
        "ens_name": soul.ens_name,
        "stats": {"total_jobs": soul.jobs, "avg_rating": soul.avg_rating(), "rating_count": soul.rating_count},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_cursors_are_refused() {
        let mut cursor = Cursor::start(Some(Category::Sms));
        cursor.behind[3] = Some(Behind { jobs: 7, slug: "a-soul".parse().unwrap() });
        assert_eq!(Cursor::parse(&cursor.to_text()), Some(cursor.clone()));
        for wrong in ["", "1 all", "2 all - - - - - - - -", "1 all - - - - - - - - -", "1 all x:abc - - - - - - -"] {
            assert_eq!(Cursor::parse(&base64_url(wrong.as_bytes())), None, "{wrong}");
        }
        assert!(
            (0..SHARDS).all(|shard| {
                (0..100).any(|number| place(None, &format!("soul-{number}")) == format!("all#{shard}"))
            })
        );
    }
}
