//! Value: what an agent reports that its purchases brought.
//!
//! A report is about one receipt (a *value tag*) or about a goal (an *outcome*). Reports are stored beside the receipts,
//! because receipts are signed. A report is pending until the owner confirms it. A different report makes it
//! pending again, so an agent that has only a token cannot raise a value its owner confirmed.

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::{AgentId, ReceiptId};
use base::input::FieldError;
use base::money::Usdc;
use platform::store::db::{self, Query};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::receipt::Span;

/// The kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Revenue,
    Lead,
    Conversion,
    Savings,
    Engagement,
}

/// The owner's decision on a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    /// Counts in the return on spend (`rocs`).
    Confirmed,
    Rejected,
}

/// A reported value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub kind: Kind,
    /// micro-USDC. A tag sent with a call may omit it.
    pub amount: Option<Usdc>,
    pub label: Option<String>,
}

/// A stored report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// The id of the receipt or of the outcome.
    pub id: String,
    /// The goal of an outcome.
    #[serde(default)]
    pub goal_id: Option<String>,
    pub kind: Kind,
    #[serde(default)]
    pub amount: Option<Usdc>,
    #[serde(default)]
    pub label: Option<String>,
    pub status: Status,
    pub created_at: Timestamp,
    /// Time of the latest report.
    pub updated_at: Timestamp,
    #[serde(default)]
    pub confirmed_at: Option<Timestamp>,
    /// Number of writes.
    pub revision: u32,
}

/// The subject of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Receipt(ReceiptId),
    /// The outcome with this id, which [`Subject::goal`] derives.
    Outcome {
        id: String,
        goal_id: Option<String>,
    },
}

/// Why a report could not be confirmed or rejected.
#[derive(Debug)]
pub enum DecideError {
    /// There is no report.
    NotFound,
    /// The report now has this amount, not the one the owner decided on.
    OtherAmount(Option<Usdc>),
    Failed(StoreError),
}

impl From<StoreError> for DecideError {
    fn from(error: StoreError) -> DecideError {
        DecideError::Failed(error)
    }
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Revenue, Kind::Lead, Kind::Conversion, Kind::Savings, Kind::Engagement];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Revenue => "revenue",
            Kind::Lead => "lead",
            Kind::Conversion => "conversion",
            Kind::Savings => "savings",
            Kind::Engagement => "engagement",
        }
    }

    fn parse(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The amount among validated members, a JSON number. More than six decimal places are an error.
pub fn amount(members: &Map<String, Value>, path: &str) -> Result<Option<Usdc>, FieldError> {
    let amount = members.get("amount").map(|amount| Usdc::parse(&amount.to_string())).transpose();
    amount.map_err(|wrong| FieldError::new(format!("{path}amount"), wrong.to_string()))
}

impl Report {
    /// Reads `{type, amount?, label?}`, already validated. `path` is its place in the body, for errors.
    pub fn read(members: &Map<String, Value>, path: &str) -> Result<Report, FieldError> {
        let kind = members.get("type").and_then(Value::as_str).and_then(Kind::parse);
        let kind = kind.ok_or_else(|| FieldError::new(format!("{path}type"), "is not a known kind of value"))?;
        let amount = amount(members, path)?;
        let label = members.get("label").and_then(Value::as_str).map(str::to_owned);
        Ok(Report { kind, amount, label })
    }

    /// The tag sent with a call, from the receipt's metadata.
    pub fn attached(metadata: &str) -> Option<Report> {
        #[derive(Deserialize)]
        struct Attached {
            #[serde(rename = "valueTag")]
            tag: Option<Map<String, Value>>,
        }
        let attached: Attached = serde_json::from_str(metadata).ok()?;
        Report::read(&attached.tag?, "").ok()
    }

    /// The tag sent with a call, as a report made when the receipt was created.
    pub fn at(self, receipt: &ReceiptId, charged_at: Timestamp) -> Reported {
        Reported {
            id: receipt.to_string(),
            goal_id: None,
            kind: self.kind,
            amount: self.amount,
            label: self.label,
            status: Status::Pending,
            created_at: charged_at,
            updated_at: charged_at,
            confirmed_at: None,
            revision: 0,
        }
    }
}

impl Subject {
    /// The outcome of one kind for a goal. Its id is derived from both, so a new report replaces the old one.
    pub fn goal(goal_id: &str, kind: Kind) -> Subject {
        let id = format!("{}{}", outcomes_of(goal_id), kind.as_str());
        Subject::Outcome { id, goal_id: Some(goal_id.to_owned()) }
    }

    /// The outcome with an id; `None` if the id is malformed.
    pub fn outcome(id: &str) -> Option<Subject> {
        let (digest, kind) = id.strip_prefix("outc_")?.split_once('_')?;
        let good = digest.len() == 32
            && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && Kind::parse(kind).is_some();
        good.then(|| Subject::Outcome { id: id.to_owned(), goal_id: None })
    }

    fn id(&self) -> &str {
        match self {
            Subject::Receipt(receipt) => receipt.as_str(),
            Subject::Outcome { id, .. } => id,
        }
    }

    fn goal_id(&self) -> Option<&str> {
        match self {
            Subject::Receipt(_) => None,
            Subject::Outcome { goal_id, .. } => goal_id.as_deref(),
        }
    }

    fn key(&self, agent: AgentId) -> Key {
        let prefix = match self {
            Subject::Receipt(_) => "VALUE",
            Subject::Outcome { .. } => "OUTCOME",
        };
        Key::new(super::agent_partition(agent), format!("{prefix}#{}", self.id()))
    }
}

/// Prefix of the ids of a goal's outcomes.
fn outcomes_of(goal_id: &str) -> String {
    format!("outc_{}_", const_hex::encode(&sha256(goal_id.as_bytes())[..16]))
}

/// Stores a report in place of the earlier one. An identical report changes nothing, not even the status.
pub async fn report(
    db: &Db,
    agent: AgentId,
    subject: &Subject,
    report: Report,
    now: Timestamp,
) -> Result<Reported, StoreError> {
    let next = Reported {
        id: subject.id().to_owned(),
        goal_id: subject.goal_id().map(str::to_owned),
        kind: report.kind,
        amount: report.amount,
        label: report.label,
        status: Status::Pending,
        created_at: now,
        updated_at: now,
        confirmed_at: None,
        revision: 0,
    };
    let write = put(db, agent, subject, &next)?
        .only_if("attribute_not_exists(#pk) OR #kind <> :kind OR #amount <> :amount OR #label <> :label");
    match db.write(write).await {
        Ok(item) => db::parse(item),
        Err(refused @ WriteError::Refused(_)) => {
            let old = refused.refused(0).and_then(|refused| refused.old.clone());
            db::parse(old.ok_or_else(|| StoreError::new("the write of a report was refused, but no report is stored"))?)
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Confirms or rejects a report. If `amount` is given, the reported amount must still equal it. `attached` is the tag sent
/// with the call; it is used if no report is stored.
pub async fn decide(
    db: &Db,
    agent: AgentId,
    subject: &Subject,
    attached: Option<Reported>,
    status: Status,
    amount: Option<Usdc>,
    now: Timestamp,
) -> Result<Reported, DecideError> {
    let stored: Option<Reported> = db.get_latest(&db.tables.ledger, subject.key(agent)).await?;
    let is_stored = stored.is_some();
    let seen = stored.or(attached).ok_or(DecideError::NotFound)?;
    if amount.is_some() && seen.amount != amount {
        return Err(DecideError::OtherAmount(seen.amount));
    }
    let confirmed_at = (status == Status::Confirmed).then_some(now);
    let decided = Reported { status, confirmed_at, ..seen };
    let write = put(db, agent, subject, &decided)?;
    let write = if is_stored {
        write.only_if("#revision = :seen").bind("seen", decided.revision)?
    } else {
        write.only_if_new()
    };
    match db.write(write).await {
        Ok(item) => Ok(db::parse(item)?),
        Err(refused @ WriteError::Refused(_)) => {
            let old = refused.refused(0).and_then(|refused| refused.old.clone());
            let old: Option<Reported> = old.map(db::parse).transpose()?;
            Err(DecideError::OtherAmount(old.and_then(|old| old.amount)))
        }
        Err(WriteError::Failed(error)) => Err(error.into()),
    }
}

/// The write of a report; `created_at` is kept if it exists. Missing values are written as null, because conditions
/// compare with them.
fn put(db: &Db, agent: AgentId, subject: &Subject, next: &Reported) -> Result<Write, StoreError> {
    let expression = "SET #id = :id, #goal_id = :goal_id, #kind = :kind, #amount = :amount, #label = :label, \
                      #status = :status, #created_at = if_not_exists(#created_at, :created_at), \
                      #updated_at = :updated_at, #confirmed_at = :confirmed_at ADD #revision :one";
    Write::update(&db.tables.ledger, subject.key(agent), expression)
        .bind("id", &next.id)?
        .bind("goal_id", &next.goal_id)?
        .bind("kind", next.kind)?
        .bind("amount", next.amount)?
        .bind("label", &next.label)?
        .bind("status", next.status)?
        .bind("created_at", next.created_at)?
        .bind("updated_at", next.updated_at)?
        .bind("confirmed_at", next.confirmed_at)?
        .bind("one", 1)
}

/// The stored tags of the receipts in a span.
pub async fn tags(db: &Db, agent: AgentId, span: Span, limit: usize) -> Result<Vec<Reported>, StoreError> {
    let (from, to) = span.keys("VALUE#");
    db.query(Query::between(&db.tables.ledger, &super::agent_partition(agent), &from, &to, limit)?.latest()).await
}

/// The stored tag of one receipt.
pub async fn tag(db: &Db, agent: AgentId, receipt: &ReceiptId) -> Result<Option<Reported>, StoreError> {
    db.get_latest(&db.tables.ledger, Subject::Receipt(receipt.clone()).key(agent)).await
}

/// The outcomes of one goal, or of all goals.
pub async fn outcomes(
    db: &Db,
    agent: AgentId,
    goal_id: Option<&str>,
    limit: usize,
) -> Result<Vec<Reported>, StoreError> {
    let prefix = format!("OUTCOME#{}", goal_id.map(outcomes_of).unwrap_or_default());
    db.query(Query::prefixed(&db.tables.ledger, &super::agent_partition(agent), &prefix, limit)?.latest()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_outcome_id_gives_its_key() {
        let agent = AgentId::of(evm::Address::ZERO);
        let subject = Subject::goal("a goal", Kind::Lead);
        let found = Subject::outcome(subject.id()).unwrap();
        assert_eq!(found.key(agent), subject.key(agent));
        for wrong in ["", "outc_", "outc_00_lead", &subject.id().to_uppercase(), &format!("{}s", subject.id())] {
            assert_eq!(Subject::outcome(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn amounts_are_counted_in_millionths() {
        let read = |tag: Value| Report::read(tag.as_object().unwrap(), "valueTag.");
        assert_eq!(read(json!({"type": "lead", "amount": 12.5})).unwrap().amount, Some(Usdc::from_micro(12_500_000)));
        assert_eq!(read(json!({"type": "lead"})).unwrap().amount, None);
        assert_eq!(read(json!({"type": "lead", "amount": 0.0000001})).unwrap_err().path, "valueTag.amount");
        assert_eq!(Report::attached(r#"{"memo":"x"}"#), None);
        assert_eq!(Report::attached(r#"{"valueTag":{"type":"lead"}}"#).unwrap().kind, Kind::Lead);
    }
}
