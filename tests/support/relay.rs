//! A small mail relay that speaks SMTP.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Returns its URL and the mails it got. It refuses the recipient `nobody@…`, and rejects `busy@…` temporarily the
/// first time.
pub async fn relay() -> (String, Arc<Mutex<String>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("smtp://{}", listener.local_addr().expect("an address"));
    let kept = Arc::<Mutex<String>>::default();
    let taken = kept.clone();
    tokio::spawn(async move {
        let mut busy = true;
        while let Ok((mut connection, _)) = listener.accept().await {
            let (reader, mut writer) = connection.split();
            let mut lines = BufReader::new(reader).lines();
            let (mut answer, mut data) = ("220 relay", false);
            loop {
                let sent = writer.write_all(format!("{answer}\r\n").as_bytes()).await;
                let Ok(Some(mut line)) = lines.next_line().await else { break };
                while data && line != "." {
                    taken.lock().expect("a lock").push_str(&format!("{line}\n"));
                    line = lines.next_line().await.ok().flatten().unwrap_or_else(|| ".".to_owned());
                }
                let begins = |word: &str| line.starts_with(word);
                answer = match () {
                    () if begins("RCPT") && line.contains("nobody@") => "550 no such mailbox",
                    () if begins("RCPT") && line.contains("busy@") && std::mem::take(&mut busy) => {
                        "451 come back later"
                    }
                    () if begins("DATA") => "354 go on",
                    () if begins("QUIT") || sent.is_err() => break,
                    () => "250 fine",
                };
                data = begins("DATA");
            }
        }
    });
    (url, kept)
}
