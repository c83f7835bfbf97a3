//! Who sent a mail: SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC 9989) of an inbound mail.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mail_auth::dkim::DkimError;
use mail_auth::dmarc::Policy;
use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::hickory_resolver::TokioResolver;
use mail_auth::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use mail_auth::hickory_resolver::net::runtime::TokioRuntimeProvider;
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{
    AuthenticatedMessage, DkimOutput, DkimResult, DmarcOutput, DmarcResult, Error as CheckError, MessageAuthenticator,
    SpfOutput, SpfResult,
};
use tokio::time::timeout;
use tools_email::mailbox::Verdicts;

use super::session::Mail;
use crate::Error;

/// Time for one DNS query.
const QUERY: Duration = Duration::from_secs(3);
/// Time for each of SPF, DKIM and DMARC, which may need many queries.
const CHECK: Duration = Duration::from_secs(10);
/// DKIM signatures of a mail; each costs DNS queries. A mail with more counts as unsigned.
const MAX_SIGNATURES: usize = 10;

/// Checks mails against the DNS.
pub struct Checks(MessageAuthenticator);

/// What to do with a mail.
#[derive(Debug, PartialEq, Eq)]
pub enum Judged {
    Store(Verdicts),
    /// The author's domain publishes `p=reject`, and the mail fails.
    Reject,
    /// The author's domain may publish `p=reject`, and it could not be found out whether the mail fails. The client tries
    /// again: otherwise a forger could pass by a name server that answers slowly.
    NotNow,
}

impl Checks {
    /// Asks `server`, or the system's configured name servers.
    pub fn new(server: Option<SocketAddr>) -> Result<Checks, Error> {
        let system = if server.is_none() { TokioResolver::builder_tokio().ok() } else { None };
        // A system without a configuration asks the name server on the same machine (resolv.conf(5)).
        let address = server.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 53)));
        let mut builder = system.unwrap_or_else(|| {
            let at = |mut connection: ConnectionConfig| {
                connection.port = address.port();
                connection
            };
            let connections = vec![at(ConnectionConfig::udp()), at(ConnectionConfig::tcp())];
            let server = NameServerConfig::new(address.ip(), true, connections);
            let config = ResolverConfig::from_name_servers(vec![server]);
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        });
        let options = builder.options_mut();
        options.timeout = QUERY;
        options.attempts = 1;
        // The hosts file of this machine says nothing about public DNS.
        options.use_hosts_file = ResolveHosts::Never;
        Ok(Checks(MessageAuthenticator(builder.build()?)))
    }

    /// Checks a mail that came from the address `peer` to this server, `host`. A check that cannot be finished is
    /// `temperror`.
    pub async fn judge(&self, peer: IpAddr, host: &str, mail: &Mail) -> Judged {
        let message = AuthenticatedMessage::parse(&mail.raw);
        let too_many = message.as_ref().is_some_and(|message| message.dkim_headers.len() > MAX_SIGNATURES);
        let sender_domain = mail.from.as_ref().map_or(mail.hello.as_str(), |from| from.domain());
        let dkim = async {
            match &message {
                Some(message) if !too_many => timeout(CHECK, self.0.verify_dkim(message)).await.ok(),
                _ => Some(Vec::new()),
            }
        };
        let (spf, signed) = tokio::join!(self.spf(peer, host, mail, sender_domain), dkim);
        let dkim = match &signed {
            None => "temperror",
            Some(_) if too_many => "policy",
            Some(outputs) => dkim_verdict(outputs),
        };
        let dmarc = match &message {
            Some(message) => {
                let outputs = signed.as_deref().unwrap_or_default();
                let parameters = DmarcParameters::new(message, outputs, sender_domain, &spf);
                timeout(CHECK, self.0.verify_dmarc(parameters)).await.ok()
            }
            None => Some(DmarcOutput::default()),
        };
        let Some(dmarc) = dmarc else { return Judged::NotNow };
        let rejects = dmarc.policy() == Policy::Reject;
        let dmarc = match dmarc.result() {
            // DMARC says nothing about such a mail, so none of its authors is known.
            _ if message.as_ref().is_some_and(|message| of_several_domains(&message.from)) => "permerror",
            DmarcResult::Pass => "pass",
            // A signature that could not be verified in time might have passed.
            DmarcResult::Fail(_) if signed.is_none() => "temperror",
            DmarcResult::Fail(_) => "fail",
            DmarcResult::TempError(_) => "temperror",
            DmarcResult::PermError(_) => "permerror",
            DmarcResult::None => "none",
        };
        match dmarc {
            "fail" if rejects => Judged::Reject,
            "temperror" if rejects => Judged::NotNow,
            dmarc => {
                let told = |verdict: &str| Some(verdict.to_owned());
                let (spf, dkim, dmarc) = (told(spf_verdict(spf.result())), told(dkim), told(dmarc));
                Judged::Store(Verdicts { spf, dkim, dmarc, spam: None })
            }
        }
    }

    /// SPF of the envelope's sender; of the client's name if there is none (RFC 7208 §2.4).
    async fn spf(&self, peer: IpAddr, host: &str, mail: &Mail, domain: &str) -> SpfOutput {
        let parameters = match &mail.from {
            Some(from) => SpfParameters::verify_mail_from(peer, &mail.hello, host, from.as_str()),
            None => SpfParameters::verify_ehlo(peer, &mail.hello, host),
        };
        match timeout(CHECK, self.0.verify_spf(parameters)).await {
            Ok(output) => output,
            Err(_) => SpfOutput::new(domain.to_owned()).with_result(SpfResult::TempError),
        }
    }
}

/// Whether a mail names authors of different domains.
fn of_several_domains(authors: &[String]) -> bool {
    let mut domains = authors.iter().filter_map(|author| author.rsplit_once('@')).map(|(_, domain)| domain);
    let first = domains.next();
    domains.any(|domain| Some(domain) != first)
}

fn spf_verdict(result: SpfResult) -> &'static str {
    match result {
        SpfResult::Pass => "pass",
        SpfResult::Fail => "fail",
        SpfResult::SoftFail => "softfail",
        SpfResult::Neutral => "neutral",
        SpfResult::TempError => "temperror",
        SpfResult::PermError => "permerror",
        SpfResult::None => "none",
    }
}

/// The best result of a mail's signatures, in the words of RFC 8601 §2.7.1.
fn dkim_verdict(outputs: &[DkimOutput<'_>]) -> &'static str {
    let verdict = |output: &DkimOutput<'_>| match output.result() {
        DkimResult::Pass => (0, "pass"),
        DkimResult::TempError(_) => (1, "temperror"),
        // The library calls a changed body neutral.
        DkimResult::Fail(_) | DkimResult::Neutral(CheckError::Dkim(DkimError::FailedBodyHashMatch)) => (2, "fail"),
        DkimResult::PermError(_) => (3, "permerror"),
        DkimResult::Neutral(_) => (4, "neutral"),
        DkimResult::None => (5, "none"),
    };
    outputs.iter().map(verdict).min().map_or("none", |(_, verdict)| verdict)
}

#[cfg(test)]
#[path = "../../../tests/support/zone.rs"]
mod zone;

#[cfg(test)]
mod tests {
    use tools_email::address::Address;

    use super::zone::{Answer, Zone};
    use super::*;

    /// The signed mail of RFC 8463, appendix A.
    const SIGNED: &str = "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n \
        d=football.example.com; i=@football.example.com;\r\n \
        q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n subject : date : message-id : from : subject : date;\r\n \
        bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n \
        b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus\r\n Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==\r\n\
        From: Joe SixPack <joe@football.example.com>\r\nTo: Suzie Q <suzie@shopping.example.net>\r\n\
        Subject: Is dinner ready?\r\nDate: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n\
        Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n\r\n\
        Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n";
    const KEY: &str = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    fn mail(from: &str, raw: &str) -> Mail {
        let to = vec![Address::parse("bo@here.org").unwrap()];
        Mail { hello: "client.org".to_owned(), from: Address::parse(from).ok(), to, raw: raw.as_bytes().to_vec() }
    }

    fn stored(spf: &str, dkim: &str, dmarc: &str) -> Judged {
        let told = |verdict: &str| Some(verdict.to_owned());
        Judged::Store(Verdicts { spf: told(spf), dkim: told(dkim), dmarc: told(dmarc), spam: None })
    }

    #[tokio::test]
    async fn verdicts_follow_the_zone() {
        let zone = Zone::new()
            .txt("mine.org", &["v=spf1 ip4:192.0.2.7 -all"])
            .txt("soft.org", &["v=spf1 ~all"])
            .txt("client.org", &["v=spf1 ip4:192.0.2.7 -all"])
            .txt("brisbane._domainkey.football.example.com", &[KEY])
            .txt("_dmarc.football.example.com", &["v=DMARC1; p=reject"])
            .txt("_dmarc.mine.org", &["v=DMARC1; p=reject"])
            .txt("_dmarc.soft.org", &["v=DMARC1; p=quarantine"])
            .answer("broken.org", Answer::ServerFailure)
            .answer("_dmarc.broken.org", Answer::ServerFailure)
            .answer("s._domainkey.mine.org", Answer::ServerFailure)
            .start()
            .await;
        let checks = Checks::new(Some(zone.address())).unwrap();
        let (good, bad): (IpAddr, IpAddr) = ("192.0.2.7".parse().unwrap(), "192.0.2.8".parse().unwrap());
        let by = |domain: &str| format!("From: a@{domain}\r\n\r\nx\r\n");
        let changed = SIGNED.replace("lost", "won");
        let forged = SIGNED.replace("dinner", "money");
        let (signature, _) = SIGNED.split_once("From:").unwrap();
        let longer = format!("{}{SIGNED}", signature.repeat(MAX_SIGNATURES));
        let unsure = format!(
            "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=mine.org; s=s; h=from;\r\n \
             bh=s14J+iztnrytnRYzb7lhFG/jS/vrxWJnnahfijFMnco=; b=AAAA\r\n{}",
            by("mine.org")
        );
        for (peer, from, raw, expected) in [
            (good, "a@mine.org", by("mine.org"), stored("pass", "none", "pass")),
            // Not aligned: the envelope's domain passes, the author's is another.
            (good, "a@mine.org", by("soft.org"), stored("pass", "none", "fail")),
            (good, "a@plain.org", by("mine.org"), Judged::Reject),
            (bad, "a@mine.org", by("mine.org"), Judged::Reject),
            (bad, "a@mine.org", by("plain.org"), stored("fail", "none", "none")),
            (bad, "a@soft.org", by("soft.org"), stored("softfail", "none", "fail")),
            (bad, "a@broken.org", by("broken.org"), stored("temperror", "none", "temperror")),
            // A bounce: the client's own name.
            (good, "", by("plain.org"), stored("pass", "none", "none")),
            (bad, "a@plain.org", SIGNED.to_owned(), stored("none", "pass", "pass")),
            (bad, "a@plain.org", changed, Judged::Reject),
            (bad, "a@plain.org", forged, Judged::Reject),
            (bad, "a@plain.org", longer, Judged::Reject),
            // The zone of a signature fails, so it might be valid.
            (bad, "a@plain.org", unsure, Judged::NotNow),
            (bad, "a@plain.org", by("soft.org, b@mine.org"), stored("none", "none", "permerror")),
            (bad, "a@plain.org", String::new(), stored("none", "none", "none")),
        ] {
            let mail = mail(from, &raw);
            assert_eq!(checks.judge(peer, "mx.here.org", &mail).await, expected, "{from} {raw}");
        }
    }
}
