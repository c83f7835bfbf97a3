//! Asks a mail host whether it would take a mail for an address, and goes away without sending one.
//!
//! What always holds: never DATA; the empty sender, as of a bounce; one connection, one address and one made-up name beside
//! it; the first 421 or 554 ends it; a reply is read to 100 lines of 1000 bytes, and everything together ends by the
//! deadline, whatever the host does. What a host says before it was asked is no answer to anything, and neither is what it
//! says after: then nothing of the conversation is believed. TLS is used where it is offered, and whoever answers is believed: nothing secret is
//! said, and a host with a bad certificate takes mail all the same.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme, crypto};

use super::verdict::Mailbox;

/// Time to open a connection, and for each reply. RFC 5321 §4.5.3.2 gives senders minutes; who only asks does not insist.
const CONNECT: Duration = Duration::from_secs(5);
const REPLY: Duration = Duration::from_secs(10);
/// How long is listened, before each command, for what was not asked for.
const TURN: Duration = Duration::from_millis(20);
/// RFC 5321 §4.5.3.1.5 has 512 bytes.
const MAX_LINE: usize = 1000;
const MAX_LINES: usize = 100;

/// What is asked.
pub struct Question<'a> {
    /// What we call ourselves.
    pub helo: &'a str,
    /// The mail host's name, for TLS.
    pub host: &'a str,
    /// The address, of which no part can break out of its line.
    pub recipient: &'a str,
    /// A name at the same domain that nobody has.
    pub decoy: &'a str,
}

/// What the host said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    pub mailbox: Mailbox,
    pub catch_all: Option<bool>,
    /// It wants to be left alone for a while.
    pub rest: bool,
}

impl Said {
    fn only(mailbox: Mailbox) -> Said {
        Said { mailbox, catch_all: None, rest: mailbox == Mailbox::Blocked }
    }
}

/// Asks the host at this address, which the guard has let through.
pub async fn ask(address: SocketAddr, question: &Question<'_>, deadline: Instant) -> Said {
    let mut tls = true;
    loop {
        match timeout_at(deadline, converse(address, question, tls)).await {
            Ok(Ok(said)) => return said,
            // Old hosts offer a TLS that nobody speaks any more, and take mail without.
            Ok(Err(Broken::Tls)) if tls => tls = false,
            Ok(Err(Broken::Tls | Broken::Silent | Broken::Closed)) | Err(_) => {
                return Said::only(Mailbox::Unreachable);
            }
            Ok(Err(Broken::Garbage | Broken::OutOfTurn)) => return Said::only(Mailbox::Unclear),
        }
    }
}

/// Why a conversation ended before its time.
#[derive(Debug)]
enum Broken {
    Silent,
    Closed,
    /// What came is not SMTP, or too much of it.
    Garbage,
    /// It spoke before it was asked: which of its replies answers what, nobody knows.
    OutOfTurn,
    Tls,
}

async fn converse(address: SocketAddr, question: &Question<'_>, tls: bool) -> Result<Said, Broken> {
    let tcp = timeout(CONNECT, TcpStream::connect(address)).await.map_err(|_| Broken::Silent)?;
    let mut talk = Talk { stream: Box::new(tcp.map_err(|_| Broken::Closed)?), read: Vec::new() };
    let banner = talk.reply().await?;
    if banner.code != 220 {
        return Ok(talk.leave(Said::only(refusal(&banner))).await);
    }
    let mut greeted = talk.say(&format!("EHLO {}", question.helo)).await?;
    if greeted.code / 100 == 5 && !greeted.ends_it() {
        greeted = talk.say(&format!("HELO {}", question.helo)).await?;
    }
    if greeted.code != 250 {
        return Ok(talk.leave(Said::only(refusal(&greeted))).await);
    }
    if tls && greeted.lines.iter().any(|line| line.eq_ignore_ascii_case("STARTTLS")) {
        let ready = talk.say("STARTTLS").await?;
        if ready.code == 220 {
            talk = talk.encrypted(question.host).await?;
            let greeted = talk.say(&format!("EHLO {}", question.helo)).await?;
            if greeted.code != 250 {
                return Ok(talk.leave(Said::only(refusal(&greeted))).await);
            }
        } else if ready.ends_it() {
            return Ok(talk.leave(Said::only(Mailbox::Blocked)).await);
        }
    }
    let sender = talk.say("MAIL FROM:<>").await?;
    if sender.code != 250 {
        return Ok(talk.leave(Said::only(refusal(&sender))).await);
    }
    let recipient = talk.say(&format!("RCPT TO:<{}>", question.recipient)).await?;
    let mut said = Said::only(of_recipient(&recipient));
    if said.mailbox == Mailbox::Accepted {
        match talk.say(&format!("RCPT TO:<{}>", question.decoy)).await {
            Ok(decoy) => {
                let of_decoy = of_recipient(&decoy);
                said.rest = of_decoy == Mailbox::Blocked;
                said.catch_all = match of_decoy {
                    Mailbox::Accepted => Some(true),
                    Mailbox::Rejected => Some(false),
                    _ => None,
                };
            }
            Err(Broken::OutOfTurn) => return Err(Broken::OutOfTurn),
            // A host that breaks off now has answered already.
            Err(_) => {}
        }
    }
    said.rest |= recipient.ends_it();
    talk.listen().await?;
    Ok(talk.leave(said).await)
}

/// What a reply to a recipient's address says of the mailbox. By its enhanced code (RFC 3463) where it has one: hosts put
/// everything into a 550.
fn of_recipient(reply: &Reply) -> Mailbox {
    if reply.ends_it() {
        return Mailbox::Blocked;
    }
    match (reply.code, reply.enhanced()) {
        (250 | 251, _) => Mailbox::Accepted,
        (400..=499, _) => Mailbox::Deferred,
        (552, _) | (500..=599, Some((2, 2))) => Mailbox::Full,
        (500..=599, Some((7, _))) => Mailbox::Blocked,
        (500..=599, Some((1, _) | (2, 1))) => Mailbox::Rejected,
        (550 | 551 | 553, None | Some((0 | 5, _))) if !reply.talks_of_us() => Mailbox::Rejected,
        (550 | 551 | 553, _) => Mailbox::Blocked,
        _ => Mailbox::Unclear,
    }
}

/// What a refusal before any address was named says: it is us that are refused.
fn refusal(reply: &Reply) -> Mailbox {
    match reply.code {
        421 | 500..=599 => Mailbox::Blocked,
        400..=499 => Mailbox::Deferred,
        _ => Mailbox::Unclear,
    }
}

/// A reply: its code, and the text of each of its lines.
struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl Reply {
    /// The host wants no more of this (RFC 5321 §4.2.2).
    fn ends_it(&self) -> bool {
        matches!(self.code, 421 | 554)
    }

    /// Subject and detail of the enhanced status code.
    fn enhanced(&self) -> Option<(u16, u16)> {
        let word = self.lines.first()?.split(' ').next()?;
        let mut numbers = word.splitn(3, '.').map(|number| number.parse::<u16>().ok());
        match (numbers.next()??, numbers.next()??, numbers.next()??) {
            (class, subject, detail) if class == self.code / 100 => Some((subject, detail)),
            _ => None,
        }
    }

    /// Its words are about who asks and not about the mailbox.
    fn talks_of_us(&self) -> bool {
        const WORDS: [&str; 9] =
            ["block", "blacklist", "spamhaus", "denylist", "reputation", "policy", "denied", "rbl", "client host"];
        let text = self.lines.join(" ").to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A conversation.
struct Talk {
    stream: Box<dyn Stream>,
    /// What was read and not yet looked at.
    read: Vec<u8>,
}

impl Talk {
    async fn say(&mut self, line: &str) -> Result<Reply, Broken> {
        // Nothing that was checked can hold one; if it ever does, nothing is said.
        if line.contains(['\r', '\n']) {
            return Err(Broken::Garbage);
        }
        self.listen().await?;
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await.map_err(|_| Broken::Closed)?;
        self.stream.flush().await.map_err(|_| Broken::Closed)?;
        self.reply().await
    }

    /// It is our turn: nothing may have come that was not asked for.
    async fn listen(&mut self) -> Result<(), Broken> {
        let mut piece = [0; 1];
        match &self.read[..] {
            [] => match timeout(TURN, self.stream.read(&mut piece)).await {
                Ok(Ok(1..)) => Err(Broken::OutOfTurn),
                // A host that hung up is found out when it is asked.
                _ => Ok(()),
            },
            _ => Err(Broken::OutOfTurn),
        }
    }

    async fn reply(&mut self) -> Result<Reply, Broken> {
        timeout(REPLY, self.read_reply()).await.map_err(|_| Broken::Silent)?
    }

    async fn read_reply(&mut self) -> Result<Reply, Broken> {
        let mut lines = Vec::new();
        let mut first = None;
        while lines.len() < MAX_LINES {
            let line = self.line().await?;
            let text = String::from_utf8_lossy(&line).into_owned();
            let code: u16 = text.get(..3).and_then(|code| code.parse().ok()).ok_or(Broken::Garbage)?;
            let goes_on = match text.as_bytes().get(3) {
                Some(b'-') => true,
                None | Some(b' ') => false,
                Some(_) => return Err(Broken::Garbage),
            };
            if *first.get_or_insert(code) != code || !(200..=599).contains(&code) {
                return Err(Broken::Garbage);
            }
            lines.push(text.get(4..).unwrap_or_default().to_owned());
            if !goes_on {
                return Ok(Reply { code, lines });
            }
        }
        Err(Broken::Garbage)
    }

    async fn line(&mut self) -> Result<Vec<u8>, Broken> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.read.drain(..=end).collect();
                line.truncate(line.trim_ascii_end().len());
                return Ok(line);
            }
            if self.read.len() > MAX_LINE {
                return Err(Broken::Garbage);
            }
            let mut piece = [0; 512];
            match self.stream.read(&mut piece).await {
                Ok(0) | Err(_) => return Err(Broken::Closed),
                Ok(length) => self.read.extend_from_slice(&piece[..length]),
            }
        }
    }

    async fn encrypted(self, host: &str) -> Result<Talk, Broken> {
        // What came before the handshake was written by nobody one could know (CVE-2011-0411).
        if !self.read.is_empty() {
            return Err(Broken::Garbage);
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| Broken::Tls)?;
        let config = ANY_CERTIFICATE.clone().ok_or(Broken::Tls)?;
        let handshake = TlsConnector::from(config).connect(name, self.stream);
        let stream = timeout(REPLY, handshake).await.map_err(|_| Broken::Tls)?.map_err(|_| Broken::Tls)?;
        Ok(Talk { stream: Box::new(stream), read: Vec::new() })
    }

    /// Says goodbye, without waiting for what is said to it.
    async fn leave(mut self, said: Said) -> Said {
        let _ = timeout(Duration::from_secs(1), self.stream.write_all(b"QUIT\r\n")).await;
        let _ = timeout(Duration::from_secs(1), self.stream.shutdown()).await;
        said
    }
}

/// None if ring did not support the default versions of TLS.
static ANY_CERTIFICATE: LazyLock<Option<Arc<ClientConfig>>> = LazyLock::new(|| {
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier = Arc::new(AnyCertificate(provider.clone()));
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Some(Arc::new(config))
});

/// Believes whoever answers: mail hosts sign their own certificates (RFC 7435).
#[derive(Debug)]
struct AnyCertificate(Arc<crypto::CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[path = "smtp_tests.rs"]
mod tests;
