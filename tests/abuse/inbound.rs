//! Mail that strangers send to agents.

use local::Stack;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tools_email::mailbox::{self, Inbound};

use super::*;

/// A stack that takes mail, an agent on it, and the agent's address.
async fn mailbox_of_an_agent() -> (Stack, Payer, String) {
    let stack = stack_with(|options| options.with("EMAIL_DOMAINS", "agents.test")).await;
    let payer = Payer::new(&stack).await;
    let domains = payer.get("/v1/tools/email/domains").await.json();
    let address = domains["domains"][0]["default_from"].as_str().expect("an address").to_owned();
    (stack, payer, address)
}

/// Sends a mail by SMTP from this address of the loopback network. Returns the code that answers the mail's end.
async fn send_from(stack: &Stack, source: [u8; 4], from: &str, to: &str, raw: &str) -> String {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((source, 0).into()).expect("a loopback address");
    let mut stream = socket.connect(stack.smtp).await.expect("a connection");
    let dialogue = format!("HELO mx.out.org\r\nMAIL FROM:<{from}>\r\nRCPT TO:<{to}>\r\nDATA\r\n{raw}\r\n.\r\nQUIT\r\n");
    stream.write_all(dialogue.as_bytes()).await.expect("a connection");
    let mut replies = String::new();
    stream.read_to_string(&mut replies).await.expect("replies");
    let codes: Vec<&str> = replies.lines().filter_map(|line| line.get(..3)).collect();
    assert_eq!(codes[..5], ["220", "250", "250", "250", "354"], "{replies}");
    codes[5].to_owned()
}

async fn inbox(stack: &Stack, payer: &Payer) -> Vec<Inbound> {
    mailbox::inbox(&stack.app.db, payer.agent(), None, None, 100).await.expect("a database").0
}

/// Each `&` made the cleaner read the rest of its text, and each part was cleaned on its own.
#[test]
fn a_mail_that_is_slow_to_clean_arrives_cut() {
    run(async {
        let (stack, payer, address) = mailbox_of_an_agent().await;
        let part = format!("--b\r\nContent-Type: text/html\r\n\r\n{}\r\n", "&&&&&&&&&&&&&&&&\r\n".repeat(20_000));
        let parts = part.repeat(23);
        let raw = format!(
            "From: ada@out.org\r\nSubject: Slow\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--"
        );
        assert!(raw.len() > 8_000_000);
        assert_eq!(send_from(&stack, [127, 0, 0, 1], "ada@out.org", &address, &raw).await, "250");
        let mails = inbox(&stack, &payer).await;
        assert!(mails[0].is_cut);
        let body = mailbox::body(&*stack.app.blobs, mails[0].id).await.expect("blobs").expect("a body");
        assert!(body.text.len() <= 256 << 10, "{} bytes of all parts together", body.text.len());
    });
}

/// Gmail, Outlook and SES each refuse kinds of files that the others take.
#[test]
fn files_that_mail_hosts_refuse_are_refused_before_a_price() {
    run(async {
        let (_stack, payer, address) = mailbox_of_an_agent().await;
        for name in ["run.mjs", "setup.appxbundle", "disk.vhd", "a.settingcontent-ms", "tool.pyz", "link.url", "old.mda"] {
            let body = json!({
                "to_address": address, "subject": "A file", "body": "See there.",
                "attachments": [{"filename": name, "content": "aGVsbG8="}],
            });
            let id = payer.address().to_string();
            let answer = payer.client.post("/v1/tools/email/send", &[("x-agent-id", &id), ("x-quote-id", "q")], &body).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{name}: {}", answer.text);
            assert_eq!(answer.json()["details"][0]["path"], "attachments.0.filename", "{name}: {}", answer.text);
        }
    });
}
