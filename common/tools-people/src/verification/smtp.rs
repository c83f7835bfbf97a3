//! Asks a mail host by SMTP whether it accepts an address, without sending mail.
//!
//! Invariants: DATA is never sent. The sender is empty, as for a bounce. One connection asks about the address and one
//! made-up name. The first 421 or 554 ends it. A reply is at most 100 lines of 1000 bytes, and everything ends by the
//! deadline. If the host sends anything out of turn, the whole conversation is discarded. TLS is used where it is offered,
//! with any certificate: nothing secret is sent, and hosts with bad certificates accept mail too.

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

/// Time to connect, and for each reply. RFC 5321 §4.5.3.2 gives senders minutes; a check need not wait that long.
const CONNECT: Duration = Duration::from_secs(5);
const REPLY: Duration = Duration::from_secs(10);
/// How long to listen before each command for data that was not asked for.
const TURN: Duration = Duration::from_millis(20);
/// RFC 5321 §4.5.3.1.5 allows 512 bytes.
const MAX_LINE: usize = 1000;
const MAX_LINES: usize = 100;

/// One check.
pub struct Question<'a> {
    /// Our name in EHLO.
    pub helo: &'a str,
    /// The mail host's name, for TLS.
    pub host: &'a str,
    /// The address to check. It is validated and contains no line breaks.
    pub recipient: &'a str,
    /// A random name at the same domain, to find out whether the host accepts every address.
    pub decoy: &'a str,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    pub mailbox: Mailbox,
    pub catch_all: Option<bool>,
    /// Whether to leave the host alone for a while.
    pub rest: bool,
}

impl Said {
    fn only(mailbox: Mailbox) -> Said {
        Said { mailbox, catch_all: None, rest: mailbox == Mailbox::Blocked }
    }
}

/// Asks the host at this socket address, which must have passed the guard.
pub async fn ask(address: SocketAddr, question: &Question<'_>, deadline: Instant) -> Said {
    let mut tls = true;
    loop {
        match timeout_at(deadline, converse(address, question, tls)).await {
            Ok(Ok(said)) => return said,
            // Some old hosts offer only obsolete TLS, and accept mail without it.
            Ok(Err(Broken::Tls)) if tls => tls = false,
            Ok(Err(Broken::Tls | Broken::Silent | Broken::Closed)) | Err(_) => {
                return Said::only(Mailbox::Unreachable);
            }
            Ok(Err(Broken::Garbage | Broken::OutOfTurn)) => return Said::only(Mailbox::Unclear),
        }
    }
}

/// Why a conversation ended early.
#[derive(Debug)]
enum Broken {
    Silent,
    Closed,
    /// Not SMTP, or a reply beyond the limits.
    Garbage,
    /// The host sent data out of turn, so replies cannot be matched to commands.
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
            // The address was accepted already; only `catch_all` stays unknown.
            Err(_) => {}
        }
    }
    said.rest |= recipient.ends_it();
    talk.listen().await?;
    Ok(talk.leave(said).await)
}

/// Meaning of a reply to RCPT. The enhanced code (RFC 3463) is preferred: hosts use 550 for everything.
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

/// Meaning of a refusal before RCPT. It is about us as the client, not about the address.
fn refusal(reply: &Reply) -> Mailbox {
    match reply.code {
        421 | 500..=599 => Mailbox::Blocked,
        400..=499 => Mailbox::Deferred,
        _ => Mailbox::Unclear,
    }
}

/// A reply: its code, and the text of each line.
struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl Reply {
    /// The host ends the session (RFC 5321 §4.2.2).
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

    /// Whether the text is about the client and not about the mailbox.
    fn talks_of_us(&self) -> bool {
        const WORDS: [&str; 9] =
            ["block", "blacklist", "spamhaus", "denylist", "reputation", "policy", "denied", "rbl", "client host"];
        let text = self.lines.join(" ").to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An SMTP session.
struct Talk {
    stream: Box<dyn Stream>,
    /// Bytes that were read and not yet parsed.
    read: Vec<u8>,
}

impl Talk {
    async fn say(&mut self, line: &str) -> Result<Reply, Broken> {
        // Guards against SMTP command injection; validated input never gets here.
        if line.contains(['\r', '\n']) {
            return Err(Broken::Garbage);
        }
        self.listen().await?;
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await.map_err(|_| Broken::Closed)?;
        self.stream.flush().await.map_err(|_| Broken::Closed)?;
        self.reply().await
    }

    /// Fails if the host sent anything before our command.
    async fn listen(&mut self) -> Result<(), Broken> {
        let mut piece = [0; 1];
        match &self.read[..] {
            [] => match timeout(TURN, self.stream.read(&mut piece)).await {
                Ok(Ok(1..)) => Err(Broken::OutOfTurn),
                // A closed connection shows up at the next command.
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
        // Plaintext received before the handshake may be injected (CVE-2011-0411).
        if !self.read.is_empty() {
            return Err(Broken::Garbage);
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| Broken::Tls)?;
        let config = ANY_CERTIFICATE.clone().ok_or(Broken::Tls)?;
        let handshake = TlsConnector::from(config).connect(name, self.stream);
        let stream = timeout(REPLY, handshake).await.map_err(|_| Broken::Tls)?.map_err(|_| Broken::Tls)?;
        Ok(Talk { stream: Box::new(stream), read: Vec::new() })
    }

    /// Sends QUIT without waiting for the reply.
    async fn leave(mut self, said: Said) -> Said {
        let _ = timeout(Duration::from_secs(1), self.stream.write_all(b"QUIT\r\n")).await;
        let _ = timeout(Duration::from_secs(1), self.stream.shutdown()).await;
        said
    }
}

/// `None` if ring does not support the default TLS versions.
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

/// Accepts every certificate: mail hosts often sign their own (RFC 7435).
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
