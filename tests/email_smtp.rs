//! Inbound mail at the local stack's SMTP server. The dialogue itself is tested in `local::smtp`.

use local::Stack;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tools_email::mailbox::{self, Inbound};

use crate::support::zone::Zone;
use crate::support::{Payer, run, stack_with};

/// Sends a mail with pipelined commands. Returns the reply codes.
async fn send(stack: &Stack, from: &str, to: &str, raw: &str) -> Vec<String> {
    let mut stream = tokio::net::TcpStream::connect(stack.smtp).await.unwrap();
    let dialogue = format!("HELO mx.out.org\r\nMAIL FROM:<{from}>\r\nRCPT TO:<{to}>\r\nDATA\r\n{raw}\r\n.\r\nQUIT\r\n");
    stream.write_all(dialogue.as_bytes()).await.unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).await.unwrap();
    replies.lines().filter_map(|line| line.get(..3)).map(str::to_owned).collect()
}

async fn inbox(stack: &Stack, payer: &Payer) -> Vec<Inbound> {
    mailbox::inbox(&stack.app.db, payer.agent(), None, None, 10).await.unwrap().0
}

#[test]
fn mail_for_agents_is_stored_with_its_verdicts_and_all_other_mail_is_refused() {
    run(async {
        let zone = Zone::new()
            .txt("out.org", &["v=spf1 ip4:127.0.0.1 -all"])
            .txt("_dmarc.out.org", &["v=DMARC1; p=reject"])
            .start()
            .await;
        let stack = stack_with(|options| {
            options.with("EMAIL_DOMAINS", "agents.test").with("DNS_SERVER", zone.address().to_string())
        })
        .await;
        let payer = Payer::new(&stack).await;
        let domains = payer.get("/v1/tools/email/domains").await.json();
        let address = domains["domains"][0]["default_from"].as_str().unwrap().to_owned();
        let tagged = address.replace('@', "+orders@");

        let raw = "From: Ada <ada@out.org>\r\nSubject: Lunch\r\nMessage-ID: <1@out.org>\r\n\r\nNoon?\r\n..\r\n";
        let taken = ["220", "250", "250", "250", "354", "250", "221"];
        assert_eq!(send(&stack, "ada@out.org", &address, raw).await, taken);
        // The reply was lost: the client sends it again.
        assert_eq!(send(&stack, "ada@out.org", &address, raw).await, taken);
        let mails = inbox(&stack, &payer).await;
        assert_eq!(mails.len(), 1, "{mails:?}");
        let verdicts = &mails[0].verdicts;
        let verdicts = (verdicts.spf.as_deref(), verdicts.dkim.as_deref(), verdicts.dmarc.as_deref());
        assert_eq!(verdicts, (Some("pass"), Some("none"), Some("pass")));
        assert_eq!((mails[0].from.as_str(), mails[0].subject.as_str()), ("ada@out.org", "Lunch"));
        let body = mailbox::body(&*stack.app.blobs, mails[0].id).await.unwrap().unwrap();
        assert_eq!(body.text.trim_end().replace('\r', ""), "Noon?\n.");

        let other = raw.replace("1@out.org", "2@out.org");
        assert_eq!(send(&stack, "", &tagged, &other.replace("ada@out.org", "a@nowhere.org")).await, taken);
        assert_eq!(inbox(&stack, &payer).await.len(), 2);

        // Every domain has a postmaster. What is no mail is refused, so that its sender hears of it.
        for to in ["postmaster@agents.test", "Postmaster"] {
            assert_eq!(send(&stack, "ada@out.org", to, raw).await, taken, "{to}");
        }
        let unreadable = send(&stack, "ada@out.org", &address, "no mail").await;
        assert_eq!(unreadable, ["220", "250", "250", "250", "354", "554", "221"]);

        // Forged: sent by somebody else's domain. Then: nobody's address, and somebody else's domain.
        let forged = send(&stack, "eve@nowhere.org", &address, &other).await;
        assert_eq!(forged, ["220", "250", "250", "250", "354", "550", "221"]);
        for to in ["nobody@agents.test", "ada@out.org"] {
            assert_eq!(send(&stack, "ada@out.org", to, raw).await, ["220", "250", "250", "550", "503"], "{to}");
        }
        assert_eq!(inbox(&stack, &payer).await.len(), 2);
    });
}
