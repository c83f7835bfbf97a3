//! A small SMTP server for inbound mail, on the loopback address. Deployed, SES takes inbound mail instead.
//!
//! It takes mail for addresses of agents and nothing else: it relays nothing and has no login. It does not offer STARTTLS:
//! it has no certificate of a name, and clients are on the same machine. [`session`] is the protocol, and [`checks`] finds
//! out who sent a mail. A mail is stored before it is confirmed; if the process dies before, the client sends it again.
//!
//! Logs have no addresses and nothing of a mail.

mod checks;
mod session;

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use platform::config::Config;
use platform::http::log;
use platform::store::StoreError;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tools::Toolbox;
use tools_email::address::Address;
use tools_email::identity::{May, Proofs};
use tools_email::receive::{self, Delivered, Envelope};

use crate::Error;
use checks::{Checks, Judged};
use session::{Lines, Mail, Outcome, Recipient, Reply, Session, Step, Then};

/// The port, unless `SMTP_LISTEN_PORT` names one.
const DEFAULT_PORT: u16 = 2525;
/// Connections at once. Each can hold one mail in memory.
const MAX_CONNECTIONS: usize = 20;
/// Mails that are recognised if they are sent again.
const MAX_RECENT: usize = 1000;
/// Time limits of a connection. A client's next line: RFC 5321 §4.5.3.2.7.
const LIMITS: Limits = Limits { line: Duration::from_secs(5 * 60), session: Duration::from_secs(30 * 60) };

#[derive(Clone, Copy)]
struct Limits {
    /// For the next line to arrive, and for a reply to be sent.
    line: Duration,
    /// No line is waited for after this time.
    session: Duration,
}

/// Answers the questions of the dialogue.
trait Backend: Send + Sync + 'static {
    fn recipient(&self, address: &Address) -> impl Future<Output = Recipient> + Send;
    /// Checks and stores a mail from the address `peer`.
    fn deliver(&self, peer: IpAddr, mail: &Mail) -> impl Future<Output = Outcome> + Send;
}

/// The mailboxes of a stack.
pub struct Mailboxes {
    toolbox: Arc<Toolbox>,
    checks: Checks,
    /// The name of this server.
    host: String,
    recent: Mutex<Recent>,
}

/// When the last mails arrived first, by their digests. A client that did not get the reply sends the mail again; it is then
/// stored only once, because it gets the same id.
#[derive(Default)]
struct Recent(VecDeque<([u8; 32], Timestamp)>);

impl Recent {
    fn first_arrival(&mut self, digest: [u8; 32], now: Timestamp) -> Timestamp {
        if let Some((_, first)) = self.0.iter().find(|(known, _)| *known == digest) {
            return *first;
        }
        if self.0.len() >= MAX_RECENT {
            self.0.pop_front();
        }
        self.0.push_back((digest, now));
        now
    }
}

impl Mailboxes {
    /// Mailboxes behind a function's toolbox. The operator's configuration names the name server for the checks
    /// (`DNS_SERVER`) and this server (the first of `EMAIL_DOMAINS`).
    pub fn new(toolbox: Arc<Toolbox>, config: &Config) -> Result<Mailboxes, Error> {
        let checks = Checks::new(config.dns_server)?;
        let host = config.email.domains.first().map_or("localhost", String::as_str).to_owned();
        Ok(Mailboxes { toolbox, checks, host, recent: Mutex::default() })
    }

    async fn look_up(&self, address: &Address) -> Result<Recipient, StoreError> {
        let (toolbox, mut proofs) = (&self.toolbox, Proofs::new(May::Write));
        let is_known = receive::knows(toolbox, address, &mut proofs).await?;
        // The postmaster of an agent's domain is known here, although other names of it may have mailboxes elsewhere.
        let is_here = receive::is_local(toolbox, address, &mut proofs).await? || is_known && receive::is_role(address);
        Ok(match (is_here, is_known) {
            (false, _) => Recipient::Foreign,
            (true, true) => Recipient::Known,
            (true, false) => Recipient::Unknown,
        })
    }
}

impl Backend for Mailboxes {
    async fn recipient(&self, address: &Address) -> Recipient {
        self.look_up(address).await.unwrap_or_else(|error| {
            log::failure("a recipient could not be looked up", &error);
            Recipient::NotNow
        })
    }

    async fn deliver(&self, peer: IpAddr, mail: &Mail) -> Outcome {
        let outcome = match self.checks.judge(peer, &self.host, mail).await {
            Judged::Reject => Outcome::Rejected,
            Judged::NotNow => Outcome::NotNow,
            Judged::Store(verdicts) => {
                let from = mail.from.as_ref().map_or("", |from| from.as_str());
                let digest = digest::sha256_parts(&[b"smtp", from.as_bytes(), &mail.raw]);
                let (event_id, now) = (const_hex::encode(digest), self.toolbox.clock.now());
                let received_at = self.recent.lock().unwrap_or_else(PoisonError::into_inner).first_arrival(digest, now);
                let (from, event_id) = (mail.from.clone(), event_id.as_str());
                let source = Some(peer);
                let envelope = Envelope { from, to: &mail.to, source, event_id, received_at, verdicts };
                match receive::receive(&self.toolbox, &envelope, &mail.raw).await {
                    Ok(delivered) => of_all(delivered.iter().map(|(_, delivered)| delivered)),
                    Err(error) => {
                        log::failure("an inbound mail could not be stored", &error);
                        Outcome::NotNow
                    }
                }
            }
        };
        let fields = json!({"outcome": format!("{outcome:?}"), "bytes": mail.raw.len(), "recipients": mail.to.len()});
        log::event("an inbound mail", fields);
        outcome
    }
}

/// One outcome for all recipients: SMTP has one reply for them. If one of them got the mail, it is confirmed: otherwise the
/// client would send it again to all.
fn of_all<'a>(delivered: impl Iterator<Item = &'a Delivered>) -> Outcome {
    let (mut all, mut stored, mut full, mut unreadable) = (0, 0, 0, 0);
    for delivered in delivered {
        all += 1;
        match delivered {
            Delivered::Stored => stored += 1,
            Delivered::Full => full += 1,
            Delivered::Unreadable => unreadable += 1,
            Delivered::UnknownUser => {}
        }
    }
    if stored > 0 && stored < all {
        log::event("an inbound mail did not reach every recipient", json!({"recipients": all, "stored": stored}));
    }
    match (stored, unreadable, full) {
        (0, 0, 0) => Outcome::Unknown,
        (0, 0, _) => Outcome::Full,
        (0, _, _) => Outcome::Unreadable,
        _ => Outcome::Stored,
    }
}

/// Listens on `port`. Without one it tries the default, and takes any free port if that is in use.
pub async fn listen(port: Option<u16>) -> Result<TcpListener, Error> {
    match port {
        Some(port) => TcpListener::bind(("127.0.0.1", port))
            .await
            .map_err(|error| format!("cannot listen on port {port} ({error}); set SMTP_LISTEN_PORT to another").into()),
        None => match TcpListener::bind(("127.0.0.1", DEFAULT_PORT)).await {
            Ok(listener) => Ok(listener),
            Err(_) => Ok(TcpListener::bind("127.0.0.1:0").await?),
        },
    }
}

/// Serves until it is dropped; its sessions end with it.
pub async fn serve(listener: TcpListener, mailboxes: Mailboxes) {
    let host = mailboxes.host.clone();
    accept(listener, Arc::new(mailboxes), &host, LIMITS).await;
}

async fn accept<B: Backend>(listener: TcpListener, backend: Arc<B>, host: &str, limits: Limits) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut sessions = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = sessions.join_next() => continue,
        };
        let Ok((mut stream, peer)) = accepted else {
            // No file descriptor is left, or the client is gone.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            // Into an empty send buffer: it never waits.
            let _ = stream.try_write(Reply::TOO_MANY.wire().as_bytes());
            continue;
        };
        let (backend, session) = (backend.clone(), Session::new(host));
        sessions.spawn(async move {
            let _place = place;
            // An error is the client's connection, which is of no interest.
            let _ = talk(&mut stream, peer.ip().to_canonical(), session, &*backend, limits).await;
        });
    }
}

/// The dialogue with one client, until one of the two ends it.
async fn talk<B: Backend>(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    peer: IpAddr,
    mut session: Session,
    backend: &B,
    limits: Limits,
) -> io::Result<()> {
    let end = Instant::now() + limits.session;
    let (mut lines, mut piece) = (Lines::default(), vec![0; 16 * 1024]);
    say(stream, &session.greeting(), limits).await?;
    loop {
        let deadline = end.min(Instant::now() + limits.line);
        let line = loop {
            if let Some(line) = lines.next_line() {
                break line;
            }
            let Ok(read) = timeout_at(deadline, stream.read(&mut piece)).await else {
                return say(stream, &Reply::TIMEOUT, limits).await;
            };
            match read? {
                0 => return Ok(()),
                length => lines.push(piece.get(..length).unwrap_or_default()),
            }
        };
        let reply = match session.line(line) {
            Step::Silent => continue,
            Step::Reply(reply) => reply,
            Step::Recipient(address) => {
                let found = backend.recipient(&address).await;
                session.recipient(found)
            }
            Step::Mail(mail) => {
                let outcome = backend.deliver(peer, &mail).await;
                session.delivered(outcome)
            }
        };
        say(stream, &reply, limits).await?;
        match reply.then {
            Then::Continue => {}
            Then::CloseIfMore if !lines.has_more() => {}
            Then::CloseIfMore | Then::Close => return stream.shutdown().await,
        }
    }
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), reply: &Reply, limits: Limits) -> io::Result<()> {
    timeout(limits.line, stream.write_all(reply.wire().as_bytes())).await?
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::net::TcpStream;

    use super::*;

    #[derive(Default)]
    struct Fake(Mutex<Vec<(IpAddr, Mail)>>);

    impl Backend for Fake {
        async fn recipient(&self, _: &Address) -> Recipient {
            Recipient::Known
        }

        async fn deliver(&self, peer: IpAddr, mail: &Mail) -> Outcome {
            let Mail { hello, from, to, raw } = mail;
            let mail = Mail { hello: hello.clone(), from: from.clone(), to: to.clone(), raw: raw.clone() };
            self.0.lock().unwrap().push((peer, mail));
            Outcome::Stored
        }
    }

    async fn started(limits: Limits) -> (std::net::SocketAddr, Arc<Fake>) {
        let listener = listen(Some(0)).await.unwrap();
        let (address, fake) = (listener.local_addr().unwrap(), Arc::<Fake>::default());
        let backend = fake.clone();
        tokio::spawn(async move { accept(listener, backend, "mx.here.org", limits).await });
        (address, fake)
    }

    /// Sends all of it, and returns the replies until the server closes the connection.
    async fn replies(address: std::net::SocketAddr, bytes: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut replies = String::new();
        stream.read_to_string(&mut replies).await.unwrap();
        replies.lines().filter_map(|line| line.get(..4)).collect::<String>().replace('-', " ")
    }

    #[tokio::test]
    async fn mails_arrive_and_text_after_a_refused_data_is_not_read() {
        let (address, fake) = started(LIMITS).await;
        let mail = "HELO a.org\r\nMAIL FROM:<a@a.org>\r\nRCPT TO:<b@here.org>\r\nDATA\r\nx: y\r\n\r\nz\r\n.\r\n";
        let twice = format!("{mail}{mail}QUIT\r\n");
        assert_eq!(replies(address, &twice).await.trim(), "220 250 250 250 354 250 250 250 250 354 250 221");
        let refused = "HELO a.org\r\nMAIL FROM:<a@a.org>\r\nDATA\r\nRCPT TO:<b@here.org>\r\nDATA\r\nx\r\n.\r\n";
        assert_eq!(replies(address, refused).await.trim(), "220 250 250 503");
        let mails = fake.0.lock().unwrap();
        assert_eq!(mails.len(), 2);
        assert_eq!((mails[1].0, mails[1].1.raw.as_slice()), ("127.0.0.1".parse().unwrap(), &b"x: y\r\n\r\nz\r\n"[..]));
    }

    #[tokio::test]
    async fn slow_clients_and_too_many_of_them_are_sent_away() {
        let limits = Limits { line: Duration::from_millis(300), session: Duration::from_millis(900) };
        let (address, _) = started(limits).await;
        assert_eq!(replies(address, "NOO").await.trim(), "220 421");
        // Each line in time, but the session lasts too long.
        let mut slow = TcpStream::connect(address).await.unwrap();
        let begun = Instant::now();
        let mut text = String::new();
        while !text.contains("421 4.4.2") {
            let _ = slow.write_all(b"NOOP\r\n").await;
            let mut piece = [0; 1024];
            let length = timeout(Duration::from_millis(200), slow.read(&mut piece)).await.map_or(0, Result::unwrap);
            text.push_str(&String::from_utf8_lossy(&piece[..length]));
            sleep(Duration::from_millis(100)).await;
            assert!(begun.elapsed() < Duration::from_secs(5), "{text}");
        }

        let (address, _) = started(LIMITS).await;
        let mut open = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
            stream.read_line(&mut String::new()).await.unwrap();
            open.push(stream);
        }
        assert_eq!(replies(address, "").await.trim(), "421");
        drop(open.pop());
        let again = async {
            while !replies(address, "QUIT\r\n").await.starts_with("220") {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(5), again).await.unwrap();
    }

    #[test]
    fn one_reply_for_all_recipients() {
        use Delivered::{Full, Stored, UnknownUser, Unreadable};
        for (delivered, expected) in [
            (&[Stored, Full][..], Outcome::Stored),
            (&[UnknownUser, Full], Outcome::Full),
            (&[UnknownUser], Outcome::Unknown),
            (&[UnknownUser, Unreadable], Outcome::Unreadable),
        ] {
            assert_eq!(of_all(delivered.iter()), expected);
        }
    }

    #[tokio::test]
    async fn a_busy_default_port_stops_nothing() {
        let first = listen(None).await.unwrap();
        let second = listen(None).await.unwrap();
        assert_ne!(first.local_addr().unwrap(), second.local_addr().unwrap());
        assert!(listen(Some(second.local_addr().unwrap().port())).await.is_err());
    }
}
