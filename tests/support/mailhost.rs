//! A mail host for tests: it answers for its mailboxes, or misbehaves as mail hosts do.
//!
//! Unit tests in `common` include this file too, so it uses nothing of either side.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How the host behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // Each side uses what it needs.
pub enum Manner {
    /// It has these mailboxes (local parts) and no others.
    Mailboxes(&'static [&'static str]),
    /// It accepts every recipient.
    AcceptAll,
    /// It gives every recipient this reply.
    Recipient(&'static str),
    /// It gives a made-up name this reply, and accepts `ada`.
    Decoy(&'static str),
    /// It sends this instead of a greeting.
    Banner(&'static str),
    /// It gives `MAIL FROM` this reply.
    Sender(&'static str),
    /// It knows only `HELO`.
    Old,
    /// Every reply takes this many milliseconds.
    Tarpit(u64),
    /// It sends a banner of one endless line.
    EndlessLine,
    /// It sends a reply with endless lines.
    EndlessReply,
    /// It accepts the connection and sends nothing.
    Mute,
    /// It hangs up after the recipient.
    HangsUp,
    /// It answers for the recipient before it gets one, in a packet of its own.
    Hasty,
}

#[allow(dead_code)] // Each side uses what it needs.
pub struct MailHost {
    pub address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    /// Conversations in progress, and the most at any time.
    open: Arc<Mutex<(usize, usize)>>,
}

#[allow(dead_code)]
impl MailHost {
    /// Listens at this loopback address (`127.0.0.x:port`, port 0 for any).
    pub async fn start(address: &str, manner: Manner) -> MailHost {
        let listener = TcpListener::bind(address).await.expect("a port");
        let host = MailHost {
            address: listener.local_addr().expect("an address"),
            heard: Arc::default(),
            open: Arc::default(),
        };
        let (heard, open) = (host.heard.clone(), host.open.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                heard.lock().unwrap().push("(connected)".to_owned());
                let (heard, open) = (heard.clone(), open.clone());
                tokio::spawn(async move {
                    {
                        let mut open = open.lock().unwrap();
                        open.0 += 1;
                        open.1 = open.1.max(open.0);
                    }
                    serve(stream, manner, heard).await;
                    open.lock().unwrap().0 -= 1;
                });
            }
        });
        host
    }

    /// Every line it received, and `(connected)` for each connection.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// The most concurrent conversations so far.
    pub fn most_at_once(&self) -> usize {
        self.open.lock().unwrap().1
    }

    pub fn connections(&self) -> usize {
        self.heard().iter().filter(|line| *line == "(connected)").count()
    }
}

async fn serve(stream: TcpStream, manner: Manner, heard: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    let pause = match manner {
        Manner::Tarpit(millis) => Duration::from_millis(millis),
        _ => Duration::ZERO,
    };
    match manner {
        Manner::Mute => {
            while lines.next_line().await.ok()?.is_some() {}
            return None;
        }
        Manner::EndlessLine => loop {
            writer.write_all(&[b'x'; 65_536]).await.ok()?;
        },
        Manner::EndlessReply => loop {
            writer.write_all(b"220-and another thing\r\n").await.ok()?;
        },
        Manner::Banner(text) => writer.write_all(format!("{text}\r\n").as_bytes()).await.ok()?,
        _ => {
            tokio::time::sleep(pause).await;
            writer.write_all(b"220 mail.test ESMTP ready\r\n").await.ok()?;
        }
    }
    while let Some(line) = lines.next_line().await.ok()? {
        heard.lock().unwrap().push(line.clone());
        let local = line.strip_prefix("RCPT TO:<").and_then(|rest| rest.split('@').next()).unwrap_or_default();
        let reply = match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" if manner == Manner::Old => "502 5.5.1 what",
            "EHLO" => "250-mail.test at your service\r\n250-PIPELINING\r\n250 8BITMIME",
            "HELO" => "250 mail.test",
            "MAIL" => match manner {
                Manner::Sender(reply) => reply,
                _ => "250 2.1.0 fine",
            },
            "RCPT" => match manner {
                Manner::Mailboxes(known) if known.contains(&local) => "250 2.1.5 fine",
                Manner::Mailboxes(_) => "550 5.1.1 nobody of that name",
                Manner::Recipient(reply) => reply,
                Manner::Decoy(reply) if local != "ada" => reply,
                _ => "250 2.1.5 fine",
            },
            "QUIT" => "221 bye",
            _ => "500 5.5.2 not here",
        };
        tokio::time::sleep(pause).await;
        writer.write_all(format!("{reply}\r\n").as_bytes()).await.ok()?;
        if manner == Manner::Hasty && line.starts_with("MAIL") {
            tokio::time::sleep(Duration::from_millis(5)).await;
            writer.write_all(b"250 2.1.5 fine\r\n550 5.1.1 nobody\r\n").await.ok()?;
        }
        if line.starts_with("RCPT") && manner == Manner::HangsUp || line == "QUIT" {
            return None;
        }
    }
    None
}
