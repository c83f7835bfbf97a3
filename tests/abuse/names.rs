//! Addresses and names that look like the operator's, and text that shows less than it has.

use base::untrusted_text::is_invisible;
use serde_json::json;

use crate::approvals::{APPROVER, link};
use crate::email::{Agent, mail_to, post_office, with};
use crate::support::{Payer, run, stack};

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
