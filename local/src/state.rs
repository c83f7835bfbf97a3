//! Records which build wrote the state in a folder. State in another format is neither migrated nor deleted: the stack does
//! not start, and says which build wrote it and how to start with a new state.

use std::path::Path;
use std::process::Command;

use aws_sdk_dynamodb::types::TableDescription;
use base::digest;
use platform::store::Db;
use platform::store::table::{TABLES, TableDefinition};
use serde::{Deserialize, Serialize};

use crate::{Error, database, write_whole};

/// The format of the state. Increase it whenever this build cannot use the state of the previous one.
pub const FORMAT: u32 = 1;
const FILE: &str = "version.json";
/// The database's file; a used state has one.
const DATABASE: &str = "dynamodb.sqlite";

/// The content of the version file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    format: u32,
    /// A digest of the tables' keys and indexes.
    tables: String,
    /// For people: the version, and the commit if known.
    build: String,
}

impl Version {
    fn ours() -> Version {
        let tables: Vec<String> = TABLES.iter().map(described).collect();
        let tables = const_hex::encode(&digest::sha256(tables.join("\n").as_bytes())[..8]);
        let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().ok();
        let commit = commit.filter(|output| output.status.success());
        let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
        let commit = commit.map(|commit| format!(" ({})", commit.trim())).unwrap_or_default();
        Version { format: FORMAT, tables, build: format!("agora-local {}{commit}", env!("CARGO_PKG_VERSION")) }
    }

    fn fits(&self, other: &Version) -> bool {
        (self.format, &self.tables) == (other.format, &other.tables)
    }
}

/// Refuses a state whose version file has another format.
pub fn check(folder: &Path) -> Result<(), Error> {
    let (ours, text) = (Version::ours(), std::fs::read_to_string(folder.join(FILE)));
    let Ok(text) = text else { return Ok(()) };
    match serde_json::from_str::<Version>(&text) {
        Ok(version) if version.fits(&ours) => Ok(()),
        Ok(version) => Err(foreign(folder, &format!("{}, in format {}", version.build, version.format))),
        Err(_) => Err(foreign(folder, &format!("a build whose {FILE} cannot be read"))),
    }
}

/// Opens the database of a state; refuses one that this build cannot open.
pub async fn open(folder: &Path) -> Result<String, Error> {
    let opened = database::start(Some(&folder.join(DATABASE))).await;
    opened.map_err(|error| foreign(folder, &format!("a build whose database cannot be opened ({error})")))
}

/// Marks a state as this build's. A state without a version file is accepted if its tables match.
pub async fn claim(folder: &Path, db: &Db) -> Result<(), Error> {
    if folder.join(FILE).exists() {
        return Ok(());
    }
    for table in &TABLES {
        let name = database::table_name(&db.tables, table.word);
        // A missing table is created later.
        let Ok(described) = db.client().describe_table().table_name(name).send().await else { continue };
        if described.table().is_none_or(|found| !is_as_defined(found, table)) {
            let author = format!("a build from before versions were kept, whose table {name} is another");
            return Err(foreign(folder, &author));
        }
    }
    write_whole(&folder.join(FILE), &serde_json::to_string(&Version::ours())?)
}

fn foreign(folder: &Path, author: &str) -> Error {
    let ours = Version::ours();
    format!(
        "the state in {} was written by {author}.\n\
         This is {}, which reads format {} and cannot migrate it. Nothing was changed.\n\
         To start with a new state, without the old chain, jobs and credits:\n\n    local/reset.sh\n\n\
         To keep it, start the build that wrote it.",
        folder.display(),
        ours.build,
        ours.format
    )
    .into()
}

/// A table's indexes and their keys, as text.
fn described(table: &TableDefinition) -> String {
    let mut indexes: Vec<String> = table
        .indexes
        .iter()
        .map(|index| format!("{} {} {} {:?}", index.name, index.partition, index.sort, sorted(index.included)))
        .collect();
    indexes.sort();
    format!("{} {} {indexes:?}", table.word, table.stream)
}

fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.sort();
    names
}

fn is_as_defined(found: &TableDescription, table: &TableDefinition) -> bool {
    let mut indexes: Vec<String> = found
        .global_secondary_indexes()
        .iter()
        .map(|index| {
            let keys: Vec<&str> = index.key_schema().iter().map(|key| key.attribute_name()).collect();
            let included: Vec<&str> = index
                .projection()
                .map(|projection| projection.non_key_attributes().iter().map(String::as_str).collect())
                .unwrap_or_default();
            format!("{} {} {:?}", index.index_name().unwrap_or_default(), keys.join(" "), sorted(&included))
        })
        .collect();
    indexes.sort();
    let streams = found.stream_specification().is_some_and(|stream| stream.stream_enabled());
    format!("{} {streams} {indexes:?}", table.word) == described(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("agora-state-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn the_state_of_another_build_is_refused_and_unchanged() {
        let folder = folder("other");
        check(&folder).expect("an empty folder is accepted");
        let ours = Version::ours();
        for (kept, said) in [
            (
                Version { format: FORMAT + 7, build: "agora-local 0.9 (abc1234)".to_owned(), ..ours.clone() },
                "agora-local 0.9 (abc1234), in format 8",
            ),
            (Version { tables: "other".to_owned(), ..ours.clone() }, "in format 1"),
        ] {
            let text = serde_json::to_string(&kept).unwrap();
            std::fs::write(folder.join(FILE), &text).unwrap();
            let refused = check(&folder).unwrap_err().to_string();
            assert!(refused.contains(said) && refused.contains("\n    local/reset.sh\n"), "{refused}");
            assert!(refused.contains(env!("CARGO_PKG_VERSION")), "{refused}");
            assert_eq!(std::fs::read_to_string(folder.join(FILE)).unwrap(), text, "left as it was");
        }
        std::fs::write(folder.join(FILE), "{").unwrap();
        assert!(check(&folder).unwrap_err().to_string().contains("cannot be read"));
        let later = Version { build: "another build of the same form".to_owned(), ..ours };
        std::fs::write(folder.join(FILE), serde_json::to_string(&later).unwrap()).unwrap();
        check(&folder).expect("of our form");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
