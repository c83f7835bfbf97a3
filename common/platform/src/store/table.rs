//! Definitions of the tables. The local stack and the tests create them from here, and a test compares `template.yaml` with
//! them.

/// A table with a string partition key `pk` and a string sort key `sk`.
pub struct TableDefinition {
    /// The name after the prefix: `agora-<word>`.
    pub word: &'static str,
    pub indexes: &'static [IndexDefinition],
    /// Whether the table has a stream of old and new images, for the aggregator.
    pub stream: bool,
}

/// A global secondary index. It includes few attributes, and only ones that never change, so that most writes need not
/// update it.
pub struct IndexDefinition {
    pub name: &'static str,
    pub partition: &'static str,
    /// A number attribute.
    pub sort: &'static str,
    pub included: &'static [&'static str],
}

/// DynamoDB's TTL attribute. It only cleans up; no rule may depend on a row being deleted.
pub const TTL_ATTRIBUTE: &str = "expires";

/// Unfinished jobs, by shard and due time (see `jobs::open`). Sparse: a finished job is not in it.
pub const OPEN_INDEX: IndexDefinition =
    IndexDefinition { name: "open", partition: "open", sort: "due", included: &["created"] };

/// An agent's notifications, unread and read ones separately, by creation time (see `notifications`).
pub const INBOX_INDEX: IndexDefinition = IndexDefinition {
    name: "inbox",
    partition: "inbox",
    sort: "raised",
    included: &["id", "kind", "title", "body", "payload", "created"],
};

/// A seller's jobs, separately for open, completed and failed, by time of purchase (see `market::sold`).
pub const SOLD_INDEX: IndexDefinition =
    IndexDefinition { name: "sold", partition: "sold_by", sort: "created", included: &["agent"] };

/// Open deliveries, by shard and time of the next attempt (see `ledger::webhooks::delivery`). Sparse: finished deliveries
/// are not in it.
pub const OUTBOX_INDEX: IndexDefinition =
    IndexDefinition { name: "outbox", partition: "outbox", sort: "due", included: &["created"] };

/// Listed souls, in bands of job counts, so that no partition gets hot (see `market::listing`).
pub const LISTED_INDEX: IndexDefinition =
    IndexDefinition { name: "listed", partition: "listed", sort: "jobs", included: &["slug"] };

pub const TABLES: [TableDefinition; 5] = [
    TableDefinition { word: "jobs", indexes: &[OPEN_INDEX, SOLD_INDEX], stream: true },
    TableDefinition { word: "ledger", indexes: &[], stream: false },
    TableDefinition { word: "agents", indexes: &[INBOX_INDEX, OUTBOX_INDEX], stream: false },
    TableDefinition { word: "souls", indexes: &[LISTED_INDEX], stream: false },
    TableDefinition { word: "messages", indexes: &[], stream: false },
];
