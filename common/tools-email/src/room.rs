//! How many mails a mailbox takes in a UTC day, and from whom.
//!
//! Anybody can write to an agent. So one domain and one source get a part of the day's mails only, and all strangers together
//! leave some for those that the agent has written to. Who that is counts only if the sender is proven (SPF, DMARC), or the
//! mail answers one of the agent's own.

use std::net::IpAddr;

use base::clock::Timestamp;
use base::digest;
use base::ids::AgentId;
use platform::config::Config;
use platform::http::limit::name_of;
use platform::store::{Db, StoreError, daily};

use crate::address::Address;
use crate::domain;
use crate::mailbox::{self, Sent};
use crate::parse::Parsed;
use crate::receive::Envelope;

/// Most mails that one agent receives in a UTC day.
pub const MAX_A_DAY: u32 = 500;
/// Strangers get nothing once the mailbox has taken so many.
pub const MAX_WITH_STRANGERS: u32 = 400;
/// Most mails of strangers of one domain, and from one source.
pub const MAX_OF_DOMAIN: u32 = 200;
pub const MAX_OF_SOURCE: u32 = 100;
/// The group of all whose domain nothing proves. They share the part of one domain.
pub const UNPROVEN: &str = "unproven";
/// Most mails of one sender that the agent has written to.
pub const MAX_OF_KNOWN: u32 = 100;

/// Counts a mail, if the mailbox takes one more of its sender today.
pub(crate) async fn take(
    db: &Db,
    config: &Config,
    agent: AgentId,
    envelope: &Envelope<'_>,
    parsed: &Parsed,
    answered: Option<&Sent>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let author = parsed.from.as_deref().and_then(|from| Address::parse(from).ok());
    let count = async |of: String, most: u32| daily::take(db, format!("MAILS#{of}"), most, now).await;
    let known = match answered {
        Some(sent) => Some(sent.id.to_string()),
        None => known(db, agent, envelope, author.as_ref()).await?,
    };
    if let Some(known) = known {
        return Ok(count(format!("known:{known}:{agent}"), MAX_OF_KNOWN).await?
            && count(format!("inbox:{agent}"), MAX_A_DAY).await?);
    }
    // Who is refused here uses up nothing of what others share.
    if envelope.source.is_some() && !count(format!("{}:{agent}", name_of(envelope.source)), MAX_OF_SOURCE).await? {
        return Ok(false);
    }
    let sender = group(config, envelope, author.as_ref());
    Ok(count(format!("from:{sender}:{agent}"), MAX_OF_DOMAIN).await?
        && count(format!("inbox:{agent}"), MAX_WITH_STRANGERS).await?)
}

/// The digest of the proven sender's address, if the agent has written to it.
async fn known(
    db: &Db,
    agent: AgentId,
    envelope: &Envelope<'_>,
    author: Option<&Address>,
) -> Result<Option<String>, StoreError> {
    let passes = |verdict: &Option<String>| verdict.as_deref() == Some("pass");
    let author = author.filter(|_| passes(&envelope.verdicts.dmarc));
    let sender = envelope.from.as_ref().filter(|sender| passes(&envelope.verdicts.spf) && Some(*sender) != author);
    for address in author.into_iter().chain(sender) {
        if mailbox::has_written_to(db, agent, address).await? {
            return Ok(Some(const_hex::encode(digest::sha256_parts(&[address.folded().as_bytes()]))));
        }
    }
    Ok(None)
}

/// With whom a stranger shares its part: with its domain, if DMARC or SPF proves it. Anybody can name a domain, so all that is
/// unproven shares one part. Agents of this deployment share their domain with all others, and pay for each mail: each has its
/// own.
fn group(config: &Config, envelope: &Envelope<'_>, author: Option<&Address>) -> String {
    let passes = |verdict: &Option<String>| verdict.as_deref() == Some("pass");
    let author = author.filter(|_| passes(&envelope.verdicts.dmarc));
    let sender = envelope.from.as_ref().filter(|_| passes(&envelope.verdicts.spf));
    match (author, sender) {
        (Some(author), _) if domain::is_operators(config, author.domain()) => author.folded(),
        (Some(proven), _) | (None, Some(proven)) => registered(&proven.domain().to_ascii_lowercase()).to_owned(),
        (None, None) => UNPROVEN.to_owned(),
    }
}

/// The part of a domain that was registered, by a rule of thumb: two labels, or three below such as `co.uk`.
fn registered(domain: &str) -> &str {
    let mut dots = domain.rmatch_indices('.').map(|(at, _)| at);
    let (Some(last), Some(second)) = (dots.next(), dots.next()) else { return domain };
    let is_below_two = domain.len() - last == 3 && last - second <= 4;
    let begin = if is_below_two { dots.next() } else { Some(second) };
    begin.map_or(domain, |at| &domain[at + 1..])
}

/// The address that a mail came from, as SES's mail host writes it in the first `Received` header.
pub(crate) fn source_at_ses(raw: &[u8]) -> Option<IpAddr> {
    /// The header is at the top.
    const LOOKED_AT: usize = 4096;
    let top = String::from_utf8_lossy(&raw[..raw.len().min(LOOKED_AT)]);
    let lines: Vec<&str> = top.lines().collect();
    let begin =
        lines.iter().position(|line| line.get(..9).is_some_and(|name| name.eq_ignore_ascii_case("received:")))?;
    let is_more = |line: &&&str| line.starts_with([' ', '\t']);
    let header = lines[begin..=begin].iter().chain(lines[begin + 1..].iter().take_while(is_more));
    let header: Vec<&str> = header.map(|line| line.trim()).collect();
    let header = header.join(" ");
    // The name that the client gives itself stands before the address, and can hold anything but a space.
    let (before, _) = header.rsplit_once(" by inbound-smtp.")?;
    let (_, address) = before.rsplit_once('[')?;
    let address = address.split(']').next()?;
    address.strip_prefix("IPv6:").unwrap_or(address).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Verdicts;

    #[test]
    fn only_what_is_proven_counts_for_its_domain() {
        let mut config =
            Config::read(|name| (name == "PAY_TO").then(|| "0x00000000000000000000000000000000000000ff".to_owned()))
                .unwrap();
        config.email.domains = vec!["agents.test".to_owned()];
        let address = |text: &str| Address::parse(text).unwrap();
        let author = address("ann@gmail.com");
        for (from, spf, dmarc, expected) in [
            ("ann@mail.gmail.com", "none", "none", UNPROVEN),
            ("ann@gmail.com", "fail", "fail", UNPROVEN),
            ("bounce@b.mailer.com", "pass", "none", "mailer.com"),
            ("bounce@b.mailer.com", "pass", "pass", "gmail.com"),
            ("eve@other.org", "none", "pass", "gmail.com"),
        ] {
            let verdict = |text: &str| Some(text.to_owned());
            let envelope = Envelope {
                from: Some(address(from)),
                to: &[],
                source: None,
                event_id: "",
                received_at: Timestamp::from_secs(0),
                verdicts: Verdicts { spf: verdict(spf), dmarc: verdict(dmarc), ..Verdicts::default() },
            };
            assert_eq!(group(&config, &envelope, Some(&author)), expected, "{from} {spf} {dmarc}");
            if dmarc == "pass" {
                let agent = address("x@agents.test");
                assert_eq!(group(&config, &envelope, Some(&agent)), "x@agents.test");
            }
        }
    }

    #[test]
    fn hosts_of_one_domain_share_a_part() {
        for (domain, expected) in [
            ("x.com", "x.com"),
            ("a.x.com", "x.com"),
            ("a.b.c.d.x.com", "x.com"),
            ("x.co.uk", "x.co.uk"),
            ("a.b.x.co.uk", "x.co.uk"),
            ("a.firm.de", "firm.de"),
            ("localhost", "localhost"),
            ("co.uk", "co.uk"),
        ] {
            assert_eq!(registered(domain), expected, "{domain}");
        }
    }

    #[test]
    fn the_source_is_the_one_that_ses_saw() {
        let by = "by inbound-smtp.us-east-1.amazonaws.com with SMTP id abc for a@b.test; Sat, 28 Nov 2026 10:00:00 +0000 (UTC)";
        for (received, expected) in [
            ("from mx.out.org (mx.out.org [192.0.2.7])\r\n ", Some("192.0.2.7")),
            ("from [198.51.100.1] (unknown [192.0.2.7])\r\n\t", Some("192.0.2.7")),
            ("from mx (mx [IPv6:2001:db8::7]) ", Some("2001:db8::7")),
            ("from mx ", None),
        ] {
            let raw = format!(
                "Return-Path: <a@out.org>\r\nReceived: {received}{by}\r\nReceived: from x (x [203.0.113.9]) by inbound-smtp.x\r\n\r\nx"
            );
            let expected: Option<IpAddr> = expected.map(|text| text.parse().unwrap());
            assert_eq!(source_at_ses(raw.as_bytes()), expected, "{received}");
        }
        assert_eq!(source_at_ses(b"Received: from x (x [203.0.113.9]) by mx.else.test\r\n\r\n"), None);
    }
}
