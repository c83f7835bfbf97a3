//! Keeps the list of people who do not want to be found (docs/PEOPLE.md): `opt-out add|remove|check <address, domain or
//! profile's URL> [note]`, `opt-out list`. Finds the tables as the functions do: `TABLE_PREFIX`, `AWS_REGION` and
//! credentials, or `AWS_ENDPOINT_URL` of the local stack. The list stores digests: `list` shows when entries were added,
//! not who they are.

use std::process::ExitCode;

use local::operator;
use tools_people::opt_out::{self, Mark};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    operator::exit(run().await)
}

async fn run() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let app = operator::app()?;
    let mark =
        |text: &str| Mark::parse(text).ok_or_else(|| format!("{text} is not an address, a domain or a profile's URL"));
    let failed = |error: platform::store::StoreError| error.to_string();
    match &arguments[..] {
        ["add", who, note @ ..] => {
            let note = Some(note.join(" ")).filter(|note| !note.is_empty());
            opt_out::add(&app.db, &mark(who)?, note, app.clock.now()).await.map_err(failed)?;
            Ok("added: from now on, no tool returns data about them".to_owned())
        }
        ["remove", who] => {
            opt_out::remove(&app.db, &mark(who)?).await.map_err(failed)?;
            Ok("not on the list".to_owned())
        }
        ["check", who] => {
            let mark = mark(who)?;
            let entries = opt_out::all(&app.db).await.map_err(failed)?;
            let entry = entries.iter().find(|entry| entry.sk == mark.digest);
            Ok(entry.map_or("not on the list".to_owned(), |entry| format!("on the list since {}", entry.added)))
        }
        ["list"] => {
            let mut entries = opt_out::all(&app.db).await.map_err(failed)?;
            entries.sort_by_key(|entry| entry.added.millis());
            let line = |entry: &opt_out::Entry| {
                format!(
                    "{}  {:<7}  {}  {}",
                    entry.added,
                    entry.kind.to_string(),
                    entry.sk,
                    entry.note.as_deref().unwrap_or_default()
                )
            };
            Ok(entries.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
        _ => Err("usage: opt-out add <who> [note] | remove <who> | check <who> | list".to_owned()),
    }
}
