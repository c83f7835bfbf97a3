//! Mail that agents send.

use platform::store::Key;
use tools_email::domain;

use crate::email::identities::{self, WEEK, age, prove};
use crate::email::providers::Ses;
use crate::email::{Agent, mail_to, reached};
use crate::support::run;
use crate::support::zone::Zone;

/// The agent that had a domain before gets none of its mail, once the record that proved it is gone. The next owner does.
#[test]
fn mail_inside_follows_a_domain_to_its_next_owner() {
    run(async {
        let (ses, zone) = (Ses::start().await, Zone::new().start().await);
        let stack = identities::office(&ses, &zone).await;
        let (ada, bob, eve) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        prove(&stack, &zone, &bob, "firm.test").await;
        let body = mail_to("agent@firm.test");
        assert_eq!(reached(&ada.mail(&body).await), 1);
        assert_eq!((bob.mails().await.len(), ses.count("agent@firm.test")), (1, 0), "it stays in the deployment");

        // The record is gone, and is looked up again a week after it was seen.
        zone.change(Zone::new());
        age(&stack, Key::new("MAILDOMAIN#firm.test", "DOMAIN"), "verified_at", WEEK).await;
        assert_eq!(reached(&ada.mail(&body).await), 1);
        assert_eq!((bob.mails().await.len(), ses.count("agent@firm.test")), (1, 1), "it goes where the domain's mail goes");
        let gone = domain::own_domain(&stack.app.db, "firm.test").await.expect("a database").expect("a domain");
        assert!(gone.gone_since.is_some(), "{gone:?}");

        prove(&stack, &zone, &eve, "firm.test").await;
        assert_eq!(reached(&ada.mail(&body).await), 1);
        assert_eq!((bob.mails().await.len(), eve.mails().await.len()), (1, 1));
    });
}
