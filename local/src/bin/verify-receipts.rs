//! Checks an export of receipts (`GET /v1/audit/export`): the running hash over its lines, and every signature against the
//! service's published keys. Needs only the two files; the keys may also be fetched.
//!
//! Exit code 0: no error. 1: a line is wrong; it is printed. 2: the export could not be checked, or contains no receipts.

use std::process::ExitCode;

use gate::insights::verify::{self, Keys};
use platform::net::PlainHttp;

const USAGE: &str = "usage: verify-receipts <export.jsonl or .csv> <key set: a file or an http(s) URL>
  the key set is at /.well-known/jwks.json of the service that signed the receipts";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [export, keys] = &arguments[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (text, keys) = match read(export, keys).await {
        Ok(read) => read,
        Err(what) => {
            eprintln!("{what}");
            return ExitCode::from(2);
        }
    };
    match verify::export(&text, &keys) {
        Ok(verified) => {
            let (Some(first), Some(last)) = (&verified.first, &verified.last) else {
                // An agent without charges has such an export, but an emptied file looks the same.
                eprintln!("{export} contains no receipts, so nothing was checked");
                return ExitCode::from(2);
            };
            println!(
                "{} receipts: {} signed, {} still open when they were exported; nothing is wrong",
                verified.rows, verified.signed, verified.pending
            );
            println!("first {} of {}", first.0, first.1);
            println!("last  {} of {}", last.0, last.1);
            println!("last hash {}", verified.last_hash);
            println!(
                "compare it with X-Export-Hash of a new export: only this shows whether lines were cut off at the end"
            );
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            println!("{wrong}");
            ExitCode::from(1)
        }
    }
}

async fn read(export: &str, keys: &str) -> Result<(String, Keys), String> {
    let text = std::fs::read_to_string(export).map_err(|error| format!("{export}: {error}"))?;
    let keys = if keys.starts_with("http://") || keys.starts_with("https://") {
        fetch(keys).await.map_err(|error| format!("{keys}: {error}"))?
    } else {
        std::fs::read_to_string(keys).map_err(|error| format!("{keys}: {error}"))?
    };
    Ok((text, Keys::parse(&keys)?))
}

async fn fetch(url: &str) -> Result<String, String> {
    let request = http::Request::get(url).body(Vec::new()).map_err(|error| error.to_string())?;
    let answer = PlainHttp::new(None).send(request).await.map_err(|error| error.to_string())?;
    if answer.status != 200 {
        return Err(format!("the answer is {}", answer.status));
    }
    String::from_utf8(answer.body).map_err(|error| error.to_string())
}
