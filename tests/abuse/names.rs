//! Addresses and names that look like the operator's, and text that shows less than it has.

use base::untrusted_text::is_invisible;
use serde_json::json;
use tools_email::address::Address;
use tools_email::domain;
use tools_email::mailbox::Verdicts;
use tools_email::receive::{self, Envelope};

use crate::approvals::{APPROVER, link};
use crate::email::providers::Ses;
use crate::email::{Agent, DOMAIN, mail_to, post_office, with};
use crate::support::{Client, Payer, run, stack, stack_with};

/// Letters that the page of a decision showed as they are: nothing.
#[test]
fn an_approver_sees_every_character() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let hidden = "Pay 10\u{ad}0 USDC to\u{3164} Bob\u{e0042}\u{fe00}\u{180e} for نمی\u{200c}دانم ❤\u{fe0f}";
        let shown = "Pay 10[U+00AD]0 USDC to[U+3164] Bob[U+E0042][U+FE00][U+180E] for نمی[U+200C]دانم ❤\u{fe0f}";
        let body = json!({"action_summary": hidden, "approver": {"email": APPROVER}, "preview": {"text": hidden}});
        let asked = payer.change("POST", "/v1/approvals", &body).await;
        assert_eq!(asked.status, 201, "{}", asked.text);
        let page = payer.client.get(&link(&stack, &asked.json()["data"]), &[]).await;
        assert_eq!(page.text.matches(shown).count(), 2, "{}", page.text);
        assert_eq!(page.text.replace("❤\u{fe0f}", "").matches(is_invisible).count(), 0, "{}", page.text);
    });
}

/// What hides is removed from a mail, what its letters are joined with stays.
#[test]
fn a_mail_hides_nothing_and_keeps_its_joiners() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let kept = "نمی\u{200c}دانم क्\u{200d}ष 👩\u{200d}🌾 ❤\u{fe0f}";
        let body = format!("{kept}\u{ad}\u{e0042} a\u{3164}b\u{fe0f}");
        let mail = with(mail_to(bob.address.as_str()), json!({"subject": kept, "from_name": kept, "body": body}));
        let job = ada.mail(&mail).await;
        assert_eq!(job["status"], "completed", "{job}");
        let read = &bob.mails().await[0];
        assert_eq!([&read["subject"], &read["from_name"]], [kept, kept], "{read}");
        assert_eq!(read["body"].as_str().map(str::trim_end), Some(format!("{kept} ab").as_str()), "{read}");
        for member in ["subject", "from_name"] {
            let hides = with(mail.clone(), json!({member: "Hello\u{ad}"}));
            let refused = ada.ask(&hides).await;
            assert_eq!(
                (refused.status, &refused.json()["details"][0]["path"]),
                (400, &json!(member)),
                "{}",
                refused.text
            );
        }
    });
}

/// Nobody takes an address that could be the operator's. Who has one keeps it.
#[test]
fn an_address_that_looks_like_the_operators_cannot_be_taken() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, to) = (Agent::new(&stack).await, "nobody@agents.test");
        let from = |name: &str| with(mail_to(to), json!({"from_address": format!("{name}@{DOMAIN}")}));
        for name in [
            "agora-support",
            "the.agora",
            "ag0ra",
            "refunds",
            "KYC",
            "kyc-2",
            "customer.support-team",
            "supp0rt",
            "adm1n",
            "theag-ora",
            "no.reply",
        ] {
            let answer = ada.ask(&from(name)).await;
            assert_eq!(answer.error(), (400, "address_taken".to_owned()), "{name}: {}", answer.text);
        }
        for name in ["acme-support", "bill", "ag-orange"] {
            assert_eq!(ada.quote(&from(name)).await["is_new"], true, "{name}");
        }
        let old = Address::parse(&format!("refunds@{DOMAIN}")).expect("an address");
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        assert!(domain::claim_address(db, ada.payer.agent(), &old, now).await.expect("a database"));
        assert_eq!(ada.quote(&from("refunds")).await["is_new"], false);
    });
}

/// A sender's name is signed with the mail. It is checked for the price and again for the send, whose name may be another.
#[test]
fn a_senders_name_cannot_be_the_operators_or_anothers_address() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let mail = |name: &str| with(mail_to(bob.address.as_str()), json!({"from_name": name}));
        let quote = ada.quote(&mail("Ada of Acme")).await;
        for name in [
            "Agora Support",
            "Аgоra",
            "AG0RA",
            "Refunds",
            "Identity verification team",
            "boss@bank.test",
            "Your bank (bank.com)",
            "bank．com",
            "ꜱᴜᴘᴘᴏʀᴛ",
            "Pаypal",
            DOMAIN,
        ] {
            for answer in [ada.ask(&mail(name)).await, ada.send(&quote, &mail(name)).await] {
                assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{name}: {}", answer.text);
                assert_eq!(answer.json()["details"][0]["path"], "from_name", "{}", answer.text);
            }
        }
        let job = ada.ended(ada.send(&quote, &mail("Dr. Ada, support at Acme")).await).await;
        assert_eq!(
            (&job["status"], &bob.mails().await[0]["from_name"]),
            (&json!("completed"), &json!("Dr. Ada, support at Acme"))
        );
    });
}

/// The agent is named in mail that leaves, and with mail from inside. What a mail from outside says of itself is not believed.
#[test]
fn mail_names_the_agent_that_sent_it() {
    run(async {
        let ses = Ses::start().await;
        let stack = ses.office_with(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let agent = ada.payer.agent().to_string();
        ada.mail(&mail_to(json!(["jane@example.com", bob.address]))).await;
        let outside = ses.asked().pop().expect("a mail");
        assert_eq!(outside.header("x-agora-agent").as_deref(), Some(agent.as_str()));
        let signature = outside.header("dkim-signature").expect("a signature");
        assert!(signature.contains("x-agora-agent"), "{signature}");
        let to = Address::parse(&bob.address).expect("an address");
        let arrived = Envelope {
            from: Some(Address::parse("jane@example.com").expect("an address")),
            to: std::slice::from_ref(&to),
            source: None,
            event_id: "outside",
            received_at: stack.app.clock.now(),
            verdicts: Verdicts::default(),
        };
        let raw = format!("From: {}\r\nX-Agora-Agent: {agent}\r\nSubject: Forged\r\n\r\nHello.\r\n", ada.address);
        receive::receive(&stack.worker.toolbox, &arrived, raw.as_bytes()).await.expect("a database");
        let mails = bob.mails().await;
        let named = |subject_is_forged: bool| {
            let mail = mails.iter().find(|mail| (mail["subject"] == "Forged") == subject_is_forged).expect("a mail");
            mail.get("from_agent_id").cloned()
        };
        assert_eq!((named(false), named(true)), (Some(json!(agent)), None));
    });
}

#[test]
fn a_soul_cannot_have_the_operators_name() {
    run(async {
        let stack = stack_with(|options| options.with("SERVICE_NAME", "Bazaar")).await;
        let client = Client::new(&stack.base_url);
        let soul = |slug: &str, name: &str| json!({"slug": slug, "name": name, "soul_md": "# A soul\n\nI read texts."});
        for (slug, name, path) in [
            ("bazaar-refunds", "Ada", "slug"),
            ("official-support", "Ada", "slug"),
            ("ada-reads", "Bazaar", "name"),
            ("ada-reads", "Ваzаar desk", "name"),
            ("ada-reads", "Support team", "name"),
        ] {
            let answer = client.post("/v1/soul/register", &[], &soul(slug, name)).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{slug}, {name}: {}", answer.text);
            assert_eq!(answer.json()["details"][0]["path"], path, "{}", answer.text);
        }
        let made = client.post("/v1/soul/register", &[], &soul("ada-support", "Ada's support")).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let key = made.json()["soul_key"].as_str().expect("a key").to_owned();
        let headers = [("authorization", format!("Bearer {key}"))];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let renamed = client.send("PUT", "/v1/soul/me", &headers, json!({"name": "Bazaar Support"}).to_string()).await;
        assert_eq!(renamed.expect("an answer").json()["details"][0]["path"], "name");
    });
}
