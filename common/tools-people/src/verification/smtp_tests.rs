//! The SMTP check against hosts that accept, refuse, stall and send out of turn.

use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::verification::mailhost::{MailHost, Manner};

fn question() -> Question<'static> {
    let (recipient, decoy) = ("ada@example.org", "k3v9q0x2m7z1@example.org");
    Question { helo: "probe.example.net", host: "mail.example.org", recipient, decoy }
}

async fn asked(manner: Manner) -> (Said, Vec<String>) {
    let host = MailHost::start("127.0.0.1:0", manner).await;
    let said = ask(host.address, &question(), Instant::now() + Duration::from_secs(2)).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    (said, host.heard())
}

#[tokio::test]
async fn replies_are_classified_and_no_mail_is_sent() {
    use Mailbox::{Accepted, Blocked, Deferred, Full, Rejected, Unclear, Unreachable};
    let (yes, no) = (Some(true), Some(false));
    for (manner, mailbox, catch_all, rest) in [
        (Manner::Mailboxes(&["ada"]), Accepted, no, false),
        (Manner::Mailboxes(&["bob"]), Rejected, None, false),
        (Manner::Old, Accepted, yes, false),
        (Manner::AcceptAll, Accepted, yes, false),
        (Manner::Decoy("451 4.7.1 later"), Accepted, None, false),
        (Manner::Decoy("421 4.7.0 enough of you"), Accepted, None, true),
        (Manner::HangsUp, Accepted, None, false),
        (Manner::Recipient("550 no such user here"), Rejected, None, false),
        (Manner::Recipient("550 5.7.1 Service unavailable, client host [192.0.2.1] blocked"), Blocked, None, true),
        (Manner::Recipient("550 Your address is listed at Spamhaus"), Blocked, None, true),
        (Manner::Recipient("550 5.2.2 over quota"), Full, None, false),
        (Manner::Recipient("552 mailbox full"), Full, None, false),
        (Manner::Recipient("451 4.7.1 Greylisted, come back in 300 seconds"), Deferred, None, false),
        (Manner::Recipient("450 busy"), Deferred, None, false),
        (Manner::Recipient("421 4.3.2 closing"), Blocked, None, true),
        (Manner::Recipient("554 5.7.1 no"), Blocked, None, true),
        (Manner::Recipient("252 cannot say"), Unclear, None, false),
        (Manner::Recipient("530 5.7.0 Must issue a STARTTLS command first"), Blocked, None, true),
        (Manner::Banner("554 no SMTP service here"), Blocked, None, true),
        (Manner::Banner("421 too many connections"), Blocked, None, true),
        (Manner::Banner("450 try later"), Deferred, None, false),
        (Manner::Banner("HTTP/1.1 400 Bad Request"), Unclear, None, false),
        (Manner::Banner("2"), Unclear, None, false),
        (Manner::Banner("220-one code\r\n250 and another"), Unclear, None, false),
        (Manner::Sender("550 5.7.1 no empty senders"), Blocked, None, true),
        // Sent out of turn: all at once, one line too many at some step, or a little later.
        (Manner::Banner("220 hi\r\n250 a\r\n250 b\r\n250 fine\r\n550 5.1.1 no"), Unclear, None, false),
        (Manner::Sender("250 fine\r\n250 2.1.5 fine"), Unclear, None, false),
        (Manner::Recipient("250 2.1.5 fine\r\n550 5.1.1 nobody"), Unclear, None, false),
        (Manner::Recipient("550 5.1.1 nobody\r\n250 2.1.5 fine"), Unclear, None, false),
        (Manner::Hasty, Unclear, None, false),
        (Manner::Mute, Unreachable, None, false),
        (Manner::Tarpit(600), Unreachable, None, false),
        (Manner::EndlessLine, Unclear, None, false),
        (Manner::EndlessReply, Unclear, None, false),
    ] {
        let started = Instant::now();
        let (said, heard) = asked(manner).await;
        assert_eq!(said, Said { mailbox, catch_all, rest }, "{manner:?}: {heard:?}");
        assert!(started.elapsed() < Duration::from_secs(4), "{manner:?} took {:?}", started.elapsed());
        assert_eq!(heard.iter().filter(|line| *line == "(connected)").count(), 1, "{manner:?}: {heard:?}");
        assert!(!heard.iter().any(|line| line.starts_with("DATA") || line.starts_with("VRFY")), "{heard:?}");
        let ends = |line: &String| line.starts_with("RCPT") && mailbox != Accepted;
        if let Some(last) = heard.iter().position(ends) {
            assert!(heard[last + 1..].iter().all(|line| line == "QUIT"), "nothing follows a refusal: {heard:?}");
        }
    }
    let (said, _) = asked(Manner::Decoy("550 5.1.1 nobody\r\n550 5.1.1 nobody")).await;
    assert_eq!(said, Said::only(Unclear), "also where nothing is left to ask");
    let (_, heard) = asked(Manner::Mailboxes(&["ada"])).await;
    let said = [
        "(connected)",
        "EHLO probe.example.net",
        "MAIL FROM:<>",
        "RCPT TO:<ada@example.org>",
        "RCPT TO:<k3v9q0x2m7z1@example.org>",
        "QUIT",
    ];
    assert_eq!(heard, said);
}

#[tokio::test]
async fn a_closed_port_is_unreachable_and_commands_cannot_be_injected() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let soon = || Instant::now() + Duration::from_secs(2);
    assert_eq!(ask(address, &question(), soon()).await, Said::only(Mailbox::Unreachable));

    let host = MailHost::start("127.0.0.1:0", Manner::AcceptAll).await;
    let recipient = "ada@example.org>\r\nDATA\r\n<x";
    assert_eq!(ask(host.address, &Question { recipient, ..question() }, soon()).await, Said::only(Mailbox::Unclear));
    assert!(!host.heard().iter().any(|line| line.contains("DATA")), "{:?}", host.heard());
}

/// A host with a self-signed certificate. `injects` sends a line right behind its 220; `broken` fails the handshake.
async fn tls_host(injects: bool, broken: bool) -> (SocketAddr, Arc<std::sync::Mutex<Vec<String>>>) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["someone.else".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let log = heard.clone();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tcp.write_all(b"220 ready\r\n").await.unwrap();
            let mut reader = BufReader::new(tcp);
            let mut stream = loop {
                let mut line = String::new();
                if reader.read_line(&mut line).await.unwrap_or(0) == 0 {
                    break None;
                }
                log.lock().unwrap().push(format!("plain {}", line.trim()));
                let reply: &[u8] = match line.trim() {
                    "STARTTLS" if injects => b"220 go\r\n250 injected\r\n",
                    "STARTTLS" => b"220 go\r\n",
                    "EHLO probe.example.net" => b"250-hello\r\n250 STARTTLS\r\n",
                    line if line.starts_with("RCPT TO:<ada") => b"250 fine\r\n",
                    line if line.starts_with("RCPT") => b"550 5.1.1 no\r\n",
                    _ => b"250 fine\r\n",
                };
                reader.get_mut().write_all(reply).await.unwrap();
                if line.trim() == "STARTTLS" {
                    if broken {
                        let _ = reader.fill_buf().await;
                        let _ = reader.get_mut().write_all(b"this is no handshake").await;
                        break None;
                    }
                    break acceptor.accept(reader.into_inner()).await.ok();
                }
            };
            let Some(stream) = stream.take() else { continue };
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).await.unwrap_or(0) > 0 {
                log.lock().unwrap().push(format!("tls {}", line.trim()));
                let reply: &[u8] =
                    if line.starts_with("RCPT TO:<k3v9") { b"550 5.1.1 no\r\n" } else { b"250 fine\r\n" };
                let _ = reader.get_mut().write_all(reply).await;
                line.clear();
            }
        }
    });
    (address, heard)
}

#[tokio::test]
async fn tls_is_used_if_offered_and_skipped_if_it_fails() {
    let soon = || Instant::now() + Duration::from_secs(5);
    let good = Said { mailbox: Mailbox::Accepted, catch_all: Some(false), rest: false };
    let (address, heard) = tls_host(false, false).await;
    assert_eq!(ask(address, &question(), soon()).await, good);
    let lines = heard.lock().unwrap().clone();
    assert!(lines.contains(&"tls RCPT TO:<ada@example.org>".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("plain RCPT")), "{lines:?}");

    let (address, heard) = tls_host(false, true).await;
    assert_eq!(ask(address, &question(), soon()).await, good);
    let lines = heard.lock().unwrap().clone();
    assert!(lines.contains(&"plain RCPT TO:<ada@example.org>".to_owned()), "{lines:?}");

    let (address, heard) = tls_host(true, false).await;
    assert_eq!(ask(address, &question(), soon()).await.mailbox, Mailbox::Unclear);
    assert!(!heard.lock().unwrap().iter().any(|line| line.contains("RCPT")), "what was injected is not obeyed");
}
