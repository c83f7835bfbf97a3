//! The opt-out list: people and domains that no tool looks up and that are removed from every result.
//!
//! The operator keeps the list (`opt-out`, docs/PEOPLE.md). It holds digests, so reading the table reveals no address. A
//! domain also covers its subdomains and the people with addresses there.

use std::collections::HashSet;
use std::fmt;

use base::clock::Timestamp;
use base::digest;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use crate::vendors::{Company, CompanyQuery, Person, PersonQuery, domain_of, email_of, plain_email, profile_name};

/// Maximum number of entries listed from one partition.
const MAX_LISTED: usize = 10_000;
/// Maximum number of labels of a domain name that are compared, counted from the right.
const MAX_LABELS: usize = 6;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Email,
    Domain,
    Profile,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Email => "email",
            Kind::Domain => "domain",
            Kind::Profile => "profile",
        })
    }
}

/// Digest of an e-mail address, domain or profile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    pub kind: Kind,
    /// SHA-256, hex.
    pub digest: String,
}

/// One row of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub kind: Kind,
    pub sk: String,
    pub added: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Mark {
    fn of(kind: Kind, name: &str) -> Mark {
        let digest =
            const_hex::encode(digest::sha256_parts(&[b"opt-out", kind.to_string().as_bytes(), name.as_bytes()]));
        Mark { kind, digest }
    }

    /// Parses what the operator typed: an e-mail address, a profile URL, or a domain.
    pub fn parse(text: &str) -> Option<Mark> {
        if let Some(email) = email_of(text) {
            return Some(Mark::of(Kind::Email, &plain_email(&email)));
        }
        let has_path = text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/').contains('/');
        if has_path {
            return profile_name(text).map(|name| Mark::of(Kind::Profile, &name));
        }
        domain_of(text).map(|domain| Mark::of(Kind::Domain, &domain))
    }

    fn key(&self) -> Key {
        Key::new(partition(&self.digest[..1]), self.digest.clone())
    }
}

/// All marks of one person or company.
#[derive(Clone, Debug, Default)]
pub struct Marks(HashSet<Mark>);

impl Marks {
    pub fn email(mut self, email: Option<&str>) -> Marks {
        let Some(email) = email.and_then(email_of) else { return self };
        self.0.insert(Mark::of(Kind::Email, &plain_email(&email)));
        let domain = email.rsplit('@').next().map(str::to_owned);
        self.domain(domain.as_deref())
    }

    /// Adds the domain and its parent domains.
    pub fn domain(mut self, domain: Option<&str>) -> Marks {
        let Some(domain) = domain.and_then(domain_of) else { return self };
        let labels: Vec<&str> = domain.split('.').collect();
        for start in labels.len().saturating_sub(MAX_LABELS)..labels.len().saturating_sub(1) {
            self.0.insert(Mark::of(Kind::Domain, &labels[start..].join(".")));
        }
        self
    }

    pub fn profile(mut self, url: Option<&str>) -> Marks {
        self.0.extend(url.and_then(profile_name).map(|name| Mark::of(Kind::Profile, &name)));
        self
    }
}

impl From<&PersonQuery> for Marks {
    fn from(who: &PersonQuery) -> Marks {
        let marks = Marks::default().email(who.email.as_deref()).profile(who.profile_url.as_deref());
        marks.domain(who.company_domain.as_deref()).domain(who.company.as_deref())
    }
}

impl From<&CompanyQuery> for Marks {
    fn from(which: &CompanyQuery) -> Marks {
        Marks::default().domain(which.domain.as_deref()).profile(which.linkedin_url.as_deref())
    }
}

impl From<&Person> for Marks {
    fn from(person: &Person) -> Marks {
        let emails = [&person.email, &person.best_work_email, &person.best_personal_email];
        let emails = emails.into_iter().flatten().chain(&person.altemails);
        let marks = emails.fold(Marks::default(), |marks, email| marks.email(Some(email)));
        let urls = person.linkedin_url.iter().chain(person.profiles.iter().map(|(_, url)| url));
        let marks = urls.fold(marks, |marks, url| marks.profile(Some(url)));
        marks.domain(person.company_domain.as_deref())
    }
}

impl From<&Company> for Marks {
    fn from(company: &Company) -> Marks {
        let marks = Marks::default().domain(company.domain.as_deref()).domain(company.website.as_deref());
        marks.profile(company.linkedin_url.as_deref())
    }
}

/// Whether any of these marks is on the list.
pub async fn lists(db: &Db, marks: &Marks) -> Result<bool, StoreError> {
    Ok(!found(db, marks.0.iter()).await?.is_empty())
}

/// Removes the rows whose subject is on the list; keeps the order.
pub async fn without_listed<T>(db: &Db, rows: Vec<T>) -> Result<Vec<T>, StoreError>
where
    for<'a> Marks: From<&'a T>,
{
    let marked: Vec<(T, Marks)> =
        rows.into_iter().map(|row| (Marks::from(&row), row)).map(|(marks, row)| (row, marks)).collect();
    let listed = found(db, marked.iter().flat_map(|(_, marks)| &marks.0)).await?;
    Ok(marked.into_iter().filter(|(_, marks)| marks.0.is_disjoint(&listed)).map(|(row, _)| row).collect())
}

/// Returns the marks that are on the list. Reads are consistent, so an opt-out applies from the moment it is written.
async fn found<'a>(db: &Db, marks: impl Iterator<Item = &'a Mark>) -> Result<HashSet<Mark>, StoreError> {
    let marks: Vec<&Mark> = marks.collect::<HashSet<_>>().into_iter().collect();
    let keys: Vec<Key> = marks.iter().map(|mark| mark.key()).collect();
    let entries: Vec<Option<Entry>> = db.batch_get(&db.tables.ledger, &keys, true).await?;
    Ok(marks.into_iter().zip(entries).filter(|(_, entry)| entry.is_some()).map(|(mark, _)| mark.clone()).collect())
}

/// Adds an entry; an existing entry is left unchanged.
pub async fn add(db: &Db, mark: &Mark, note: Option<String>, now: Timestamp) -> Result<(), StoreError> {
    let entry = Entry { kind: mark.kind, sk: mark.digest.clone(), added: now, note };
    db.write(Write::put(&db.tables.ledger, mark.key(), &entry)?).await?;
    Ok(())
}

pub async fn remove(db: &Db, mark: &Mark) -> Result<(), StoreError> {
    db.write(Write::delete(&db.tables.ledger, mark.key())).await?;
    Ok(())
}

/// All entries, in no particular order.
pub async fn all(db: &Db) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::new();
    for digit in "0123456789abcdef".split("").filter(|digit| !digit.is_empty()) {
        let query = Query::new(&db.tables.ledger, "#pk = :pk", MAX_LISTED).bind("pk", partition(digit))?;
        entries.extend(db.query::<Entry>(query).await?);
    }
    Ok(entries)
}

fn partition(digit: &str) -> String {
    format!("OPT_OUT#{digit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_variants_of_one_person_give_the_same_mark() {
        for (one, other) in [
            ("Jane.Doe@Example.com", "jane.doe+lists@example.com"),
            ("https://www.linkedin.com/in/JaneDoe/?x=1", "de.linkedin.com/in/janedoe"),
            ("https://www.Example.com/", "example.com"),
        ] {
            assert_eq!(Mark::parse(one).unwrap(), Mark::parse(other).unwrap(), "{one}");
        }
        let jane = Person { email: Some("jane@mail.example.com".to_owned()), ..Person::default() };
        let marks = Marks::from(&jane);
        for text in ["jane@mail.example.com", "mail.example.com", "example.com"] {
            assert!(marks.0.contains(&Mark::parse(text).unwrap()), "{text}");
        }
        for text in ["other@mail.example.com", "com", "notexample.com"] {
            assert!(Mark::parse(text).is_none_or(|mark| !marks.0.contains(&mark)), "{text}");
        }
    }
}
