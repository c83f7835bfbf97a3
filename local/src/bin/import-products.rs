//! Imports the operator's product feed (docs/COMMERCE.md): `import-products <file> [--url=https://shop.example.com]
//! [--currency=USD] [--force]`. The file is Google Merchant's format as CSV, TSV or XML.
//!
//! A feed without products, or with more problems than products, is refused unless it is forced; the current products then stay. Writes to
//! where `import-snapshot` writes.

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use base::clock::Clock;
use local::operator;
use products::feed::Shop;
use tools_commerce::feed;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    operator::exit(run().await)
}

const USAGE: &str = "usage: import-products file [--url=https://shop.example.com] [--currency=USD] [--force]";

async fn run() -> Result<String, String> {
    let (mut file, mut shop, mut is_forced) =
        (None, Shop { now: Clock::system().now().secs(), ..Shop::default() }, false);
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            Some(("--url", url)) => shop.url = Some(url.parse().map_err(|_| format!("{url} is not an address"))?),
            Some(("--currency", code)) => {
                let known = products::price::code(code).ok_or_else(|| format!("{code} is not a currency"))?;
                shop.currency = Some(known.to_owned());
            }
            _ if word == "--force" => is_forced = true,
            _ if file.is_none() && !word.starts_with("--") => file = Some(word),
            _ => return Err(USAGE.to_owned()),
        }
    }
    let file = file.ok_or(USAGE)?;
    let opened = File::open(&file).map_err(|error| format!("{file}: {error}"))?;
    let import = feed::import(BufReader::with_capacity(64 * 1024, opened), shop);
    let problems: Vec<String> = import.problems.iter().map(|problem| format!("\n  {file}:{problem}")).collect();
    let (count, refused, problems) = (import.products, import.refused, problems.concat());
    let stays = "the current products stay";
    if count == 0 {
        return Err(format!("{file} has no products; {stays}{problems}"));
    }
    if refused > count && !is_forced {
        return Err(format!(
            "{count} products and {refused} problems; {stays} (--force imports them anyway){problems}"
        ));
    }
    let blobs = operator::blobs()?;
    let done = feed::publish(&*blobs, import, Clock::system().now()).await.map_err(|error| error.to_string())?;
    let left_out = if refused > 0 { format!(", {refused} left out{problems}") } else { String::new() };
    Ok(format!("{count} products, {} bytes, generation {}{left_out}", done.bytes, done.generation))
}
