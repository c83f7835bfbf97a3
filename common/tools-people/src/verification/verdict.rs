//! Turns findings about an address into a verdict. Pure functions, no network.

use serde::{Deserialize, Serialize};

/// Findings from the DNS, a mail host or a provider. They do not contain the address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    pub domain: Domain,
    pub mailbox: Mailbox,
    /// Whether the host accepts every name (accept-all).
    #[serde(default)]
    pub catch_all: Option<bool>,
    /// Whether a provider lists the address as disposable.
    #[serde(default)]
    pub disposable: bool,
    /// The domain's mail hosts, in order of preference.
    #[serde(default)]
    pub mx: Vec<String>,
}

/// The domain in the DNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// The DNS did not answer.
    #[default]
    Unknown,
    /// It has mail hosts (MX).
    TakesMail,
    /// No MX, but an address record, which then takes its mail (RFC 5321 §5.1).
    ByAddress,
    /// It does not exist.
    NotFound,
    /// Neither MX nor address records.
    NoMailHost,
    /// A null MX: it accepts no mail (RFC 7505).
    RefusesMail,
}

/// The mailbox, as a mail host or a provider reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mailbox {
    #[default]
    NotAsked,
    Accepted,
    /// There is no such mailbox.
    Rejected,
    /// It exists and is full.
    Full,
    /// A temporary refusal (4xx), such as greylisting.
    Deferred,
    /// The host refuses us, or refuses checks.
    Blocked,
    /// No connection, or no reply.
    Unreachable,
    /// The host's address is not public; it was not asked.
    Private,
    /// Another check held the lease on the host for too long.
    Busy,
    /// It needs a host with SMTPUTF8; it was not asked.
    NeedsUtf8,
    /// The address's owner opted out (a provider's 451).
    Barred,
    /// The answer was neither yes nor no.
    Unclear,
}

impl Findings {
    /// Whether the result is final: another check would not change it.
    pub fn is_settled(&self) -> bool {
        match self.mailbox {
            Mailbox::Accepted => self.catch_all.is_some(),
            Mailbox::Rejected | Mailbox::Barred => true,
            _ => self.domain.takes_mail() == Some(false),
        }
    }
}

impl Domain {
    /// `None` if unknown.
    pub fn takes_mail(self) -> Option<bool> {
        match self {
            Domain::Unknown => None,
            Domain::TakesMail | Domain::ByAddress => Some(true),
            Domain::NotFound | Domain::NoMailHost | Domain::RefusesMail => Some(false),
        }
    }
}

/// Properties of the address itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    pub well_formed: bool,
    pub role: bool,
    pub disposable: bool,
    pub typo: bool,
}

/// Whether to send mail to the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Deliverable,
    Undeliverable,
    /// Mail may arrive, but may not be read or wanted: accept-all, role or disposable address.
    Risky,
    Unknown,
}

/// The verdict and its reasons. Unknown is `None`, never false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Well formed, at a domain that takes mail.
    pub valid: Option<bool>,
    pub deliverable: Option<bool>,
    pub verdict: Verdict,
    pub reasons: Vec<&'static str>,
}

pub fn judge(looks: Looks, found: &Findings) -> Judgement {
    let valid = if looks.well_formed { found.domain.takes_mail() } else { Some(false) };
    let deliverable = match (valid, found.mailbox, found.catch_all) {
        (Some(false), _, _) | (_, Mailbox::Rejected, _) => Some(false),
        // "Accepted" proves the mailbox only if the host is known not to accept every address.
        (_, Mailbox::Accepted, Some(false)) => Some(true),
        _ => None,
    };
    let disposable = looks.disposable || found.disposable;
    let risks = disposable || looks.role || found.catch_all == Some(true);
    let verdict = match deliverable {
        Some(false) => Verdict::Undeliverable,
        _ if risks => Verdict::Risky,
        Some(true) => Verdict::Deliverable,
        None => Verdict::Unknown,
    };
    Judgement { valid, deliverable, verdict, reasons: reasons(looks, found, disposable) }
}

/// The API's reason codes, the decisive ones first.
fn reasons(looks: Looks, found: &Findings, disposable: bool) -> Vec<&'static str> {
    if !looks.well_formed {
        return vec!["invalid_syntax"];
    }
    let domain = match found.domain {
        Domain::Unknown => Some("dns_unanswered"),
        Domain::TakesMail => None,
        Domain::ByAddress => Some("no_mx_record"),
        Domain::NotFound => Some("domain_not_found"),
        Domain::NoMailHost => Some("no_mail_host"),
        Domain::RefusesMail => Some("domain_refuses_mail"),
    };
    let mailbox = match found.mailbox {
        Mailbox::NotAsked if found.domain.takes_mail() == Some(false) => None,
        Mailbox::NotAsked => Some("mailbox_not_checked"),
        Mailbox::Accepted if found.catch_all.is_none() => Some("accept_all_unknown"),
        Mailbox::Accepted => Some("mailbox_accepted"),
        Mailbox::Rejected => Some("mailbox_not_found"),
        Mailbox::Full => Some("mailbox_full"),
        Mailbox::Deferred => Some("greylisted"),
        Mailbox::Blocked => Some("blocked"),
        Mailbox::Unreachable => Some("mail_host_unreachable"),
        Mailbox::Private => Some("mail_host_not_public"),
        Mailbox::Busy => Some("mail_host_busy"),
        Mailbox::NeedsUtf8 => Some("needs_smtputf8"),
        Mailbox::Barred => Some("personal_data_bar"),
        Mailbox::Unclear => Some("unclear_answer"),
    };
    let flags = [
        (disposable, "disposable"),
        (found.catch_all == Some(true), "accept_all"),
        (looks.role, "role"),
        (looks.typo, "possible_typo"),
    ];
    let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, word)| word);
    domain
        .into_iter()
        .filter(|_| found.domain.takes_mail() != Some(true))
        .chain(mailbox)
        .chain(flags)
        .chain(domain.into_iter().filter(|_| found.domain.takes_mail() == Some(true)))
        .collect()
}

/// Every code that [`Judgement::reasons`] can contain.
pub const REASONS: [&str; 23] = [
    "invalid_syntax",
    "dns_unanswered",
    "domain_not_found",
    "no_mail_host",
    "domain_refuses_mail",
    "no_mx_record",
    "mailbox_not_checked",
    "mailbox_accepted",
    "accept_all_unknown",
    "mailbox_not_found",
    "mailbox_full",
    "greylisted",
    "blocked",
    "mail_host_unreachable",
    "mail_host_not_public",
    "mail_host_busy",
    "needs_smtputf8",
    "personal_data_bar",
    "unclear_answer",
    "disposable",
    "accept_all",
    "role",
    "possible_typo",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_and_reasons_follow_the_table() {
        use Domain::{ByAddress, NoMailHost, NotFound, RefusesMail, TakesMail, Unknown};
        use Mailbox::{Accepted, Barred, Blocked, Deferred, Full, NotAsked, Rejected, Unclear, Unreachable};
        use Verdict::{Deliverable, Risky, Undeliverable};
        let (yes, no) = (Some(true), Some(false));
        // domain, mailbox, accept-all, flags (r role, d disposable, t typo, x malformed) -> valid, deliverable, verdict, reasons
        #[allow(clippy::type_complexity)]
        let table: &[(Domain, Mailbox, Option<bool>, &str, Option<bool>, Option<bool>, Verdict, &str)] = &[
            (Unknown, NotAsked, None, "x", no, no, Undeliverable, "invalid_syntax"),
            (NotFound, NotAsked, None, "", no, no, Undeliverable, "domain_not_found"),
            (NotFound, NotAsked, None, "t", no, no, Undeliverable, "domain_not_found possible_typo"),
            (NoMailHost, NotAsked, None, "", no, no, Undeliverable, "no_mail_host"),
            (RefusesMail, NotAsked, None, "r", no, no, Undeliverable, "domain_refuses_mail role"),
            (TakesMail, NotAsked, None, "", yes, None, Verdict::Unknown, "mailbox_not_checked"),
            (TakesMail, NotAsked, None, "d", yes, None, Risky, "mailbox_not_checked disposable"),
            (TakesMail, Accepted, no, "", yes, yes, Deliverable, "mailbox_accepted"),
            (TakesMail, Accepted, no, "r", yes, yes, Risky, "mailbox_accepted role"),
            (TakesMail, Accepted, yes, "", yes, None, Risky, "mailbox_accepted accept_all"),
            (TakesMail, Accepted, None, "", yes, None, Verdict::Unknown, "accept_all_unknown"),
            (ByAddress, Accepted, no, "", yes, yes, Deliverable, "mailbox_accepted no_mx_record"),
            (TakesMail, Rejected, None, "", yes, no, Undeliverable, "mailbox_not_found"),
            (TakesMail, Rejected, None, "rd", yes, no, Undeliverable, "mailbox_not_found disposable role"),
            (TakesMail, Full, None, "", yes, None, Verdict::Unknown, "mailbox_full"),
            (TakesMail, Deferred, None, "", yes, None, Verdict::Unknown, "greylisted"),
            (TakesMail, Blocked, None, "", yes, None, Verdict::Unknown, "blocked"),
            (TakesMail, Unreachable, None, "r", yes, None, Risky, "mail_host_unreachable role"),
            (TakesMail, Barred, None, "", yes, None, Verdict::Unknown, "personal_data_bar"),
            (TakesMail, Unclear, None, "", yes, None, Verdict::Unknown, "unclear_answer"),
            (Unknown, Accepted, no, "", None, yes, Deliverable, "dns_unanswered mailbox_accepted"),
            (Unknown, Rejected, None, "", None, no, Undeliverable, "dns_unanswered mailbox_not_found"),
        ];
        for (domain, mailbox, catch_all, flags, valid, deliverable, verdict, words) in table {
            let has = |flag: char| flags.contains(flag);
            let looks = Looks { well_formed: !has('x'), role: has('r'), disposable: has('d'), typo: has('t') };
            let found = Findings { domain: *domain, mailbox: *mailbox, catch_all: *catch_all, ..Findings::default() };
            let judged = judge(looks, &found);
            let told = (judged.valid, judged.deliverable, judged.verdict, judged.reasons.join(" "));
            assert_eq!(told, (*valid, *deliverable, *verdict, (*words).to_owned()), "{domain:?} {mailbox:?} {flags}");
        }
    }
}
