//! The tables, defined once: the local stack and the tests create them from here, and a test holds `template.yaml`
//! to the same definition.

/// A table with a string partition key `pk` and a string sort key `sk`.
pub struct TableDefinition {
    /// The word behind the prefix: `agora-<word>`.
    pub word: &'static str,
    pub indexes: &'static [IndexDefinition],
    /// A stream of old and new images feeds the aggregator.
    pub stream: bool,
}

/// A global secondary index that holds keys and a few attributes that never change, so that most writes leave it alone.
pub struct IndexDefinition {
    pub name: &'static str,
    pub partition: &'static str,
    /// A number.
    pub sort: &'static str,
    pub included: &'static [&'static str],
}

/// The attribute DynamoDB deletes by. It only cleans up: no rule depends on a row being gone.
pub const TTL_ATTRIBUTE: &str = "expires";

/// Unfinished jobs, by shard and due time (see `jobs::open`). Sparse: a finished job leaves it.
pub const OPEN_INDEX: IndexDefinition =
    IndexDefinition { name: "open", partition: "open", sort: "due", included: &["created"] };

/// An agent's notifications, unread and read apart, by when they were raised (see `notifications`).
pub const INBOX_INDEX: IndexDefinition = IndexDefinition {
    name: "inbox",
    partition: "inbox",
    sort: "raised",
    included: &["id", "kind", "title", "body", "payload", "created"],
};

/// A seller's jobs, the open, the completed and the failed apart, by when they were bought (see `marketplace::sold`).
pub const SOLD_INDEX: IndexDefinition =
    IndexDefinition { name: "sold", partition: "sold_by", sort: "created", included: &["agent"] };

/// Deliveries that are open, by shard and by when somebody should look at them (see `webhooks::delivery`). Sparse: what is
/// delivered leaves it.
pub const OUTBOX_INDEX: IndexDefinition =
    IndexDefinition { name: "outbox", partition: "outbox", sort: "due", included: &["created"] };

/// Listed souls, in bands of job counts that no single one of which gets hot (see `marketplace::listing`).
pub const LISTED_INDEX: IndexDefinition =
    IndexDefinition { name: "listed", partition: "listed", sort: "jobs", included: &["slug"] };

pub const TABLES: [TableDefinition; 4] = [
    TableDefinition { word: "jobs", indexes: &[OPEN_INDEX, SOLD_INDEX], stream: true },
    TableDefinition { word: "ledger", indexes: &[], stream: false },
    TableDefinition { word: "agents", indexes: &[INBOX_INDEX, OUTBOX_INDEX], stream: false },
    TableDefinition { word: "souls", indexes: &[LISTED_INDEX], stream: false },
];
