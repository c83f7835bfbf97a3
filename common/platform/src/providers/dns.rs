//! DNS lookups for tools: MX, TXT and address records.
//!
//! The system's resolver only finds addresses, so the other records are asked for here. A domain's owner controls the
//! answers: they are cut to a few entries, names are in lower case, and texts are cut too. Addresses are returned
//! unchanged: the caller must check them ([`crate::net::FetchPolicy`]) before it connects.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError as NamedError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// Timeout for one query.
const PATIENCE: Duration = Duration::from_secs(3);
/// Cached answers per process, and the longest cache TTL, whatever the zone says.
const REMEMBERED: u64 = 256;
const LONGEST_TTL: Duration = Duration::from_secs(15 * 60);
/// Maximum number of mail hosts, addresses and texts in an answer.
const MAX_HOSTS: usize = 10;
const MAX_ADDRESSES: usize = 8;
const MAX_TEXTS: usize = 50;
/// Longest text of one TXT record, in bytes.
const MAX_TEXT: usize = 4096;

/// A resolver, created at the first query.
pub struct Dns {
    server: Option<SocketAddr>,
    resolver: OnceCell<TokioResolver>,
}

/// A mail host (MX). Lower preferences are tried first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MailHost {
    pub preference: u16,
    /// In lower case, without the trailing dot.
    pub host: String,
}

/// A domain's MX records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailHosts {
    /// Lowest preference first.
    Listed(Vec<MailHost>),
    /// "Null MX" (RFC 7505): the domain accepts no mail.
    Refused,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsError {
    /// Not a valid DNS name; no query was sent.
    NotAName,
    /// The name does not exist (NXDOMAIN).
    NoSuchName,
    /// The name exists, but has no record of this kind.
    NoSuchRecord,
    /// The name server failed: SERVFAIL, REFUSED, or an unreadable answer.
    ServerFailure(String),
    /// No answer in time.
    Timeout,
}

impl fmt::Display for DnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DnsError::NotAName => f.write_str("not a name in the DNS"),
            DnsError::NoSuchName => f.write_str("the name does not exist"),
            DnsError::NoSuchRecord => f.write_str("the name has no such record"),
            DnsError::ServerFailure(why) => write!(f, "the name server failed: {why}"),
            DnsError::Timeout => f.write_str("no name server answered in time"),
        }
    }
}

impl std::error::Error for DnsError {}

impl DnsError {
    /// Whether the error states a fact about the name. False if the lookup failed.
    pub fn is_answer(&self) -> bool {
        matches!(self, DnsError::NotAName | DnsError::NoSuchName | DnsError::NoSuchRecord)
    }
}

impl Dns {
    /// Asks `server`, or the system's configured name servers.
    pub fn new(server: Option<SocketAddr>) -> Dns {
        Dns { server, resolver: OnceCell::new() }
    }

    /// The domain's mail hosts. Without MX records the result is [`DnsError::NoSuchRecord`]; then mail goes to the domain's
    /// own addresses (RFC 5321 §5.1).
    pub async fn mail_hosts(&self, domain: &str, deadline: Instant) -> Result<MailHosts, DnsError> {
        let answers = self.ask(domain, RecordType::MX, deadline).await?;
        let listed = answers.into_iter().filter_map(|data| match data {
            RData::MX(mx) => Some(MailHost { preference: mx.preference, host: plain(&mx.exchange) }),
            _ => None,
        });
        let mut hosts: Vec<MailHost> = listed.collect();
        if hosts.is_empty() {
            return Err(DnsError::NoSuchRecord);
        }
        // A null MX beside other hosts is an error in the zone (RFC 7505 §3); ignore it.
        hosts.retain(|host| !host.host.is_empty());
        if hosts.is_empty() {
            return Ok(MailHosts::Refused);
        }
        hosts.sort();
        hosts.truncate(MAX_HOSTS);
        Ok(MailHosts::Listed(hosts))
    }

    /// The name's addresses, IPv4 first.
    pub async fn addresses(&self, name: &str, deadline: Instant) -> Result<Vec<IpAddr>, DnsError> {
        let (v4, v6) =
            tokio::join!(self.ask(name, RecordType::A, deadline), self.ask(name, RecordType::AAAA, deadline));
        let mut addresses = Vec::new();
        for data in [&v4, &v6].into_iter().flatten().flatten() {
            match data {
                RData::A(address) => addresses.push(IpAddr::V4(address.0)),
                RData::AAAA(address) => addresses.push(IpAddr::V6(address.0)),
                _ => {}
            }
        }
        addresses.truncate(MAX_ADDRESSES);
        match (addresses.is_empty(), v4, v6) {
            (false, _, _) => Ok(addresses),
            // If one of the two lookups failed, report that: "no record" would not be certain.
            (true, Err(error), _) | (true, _, Err(error)) if !error.is_answer() => Err(error),
            (true, Err(error), _) => Err(error),
            (true, Ok(_), _) => Err(DnsError::NoSuchRecord),
        }
    }

    /// The name's TXT records, each with its strings joined.
    pub async fn texts(&self, name: &str, deadline: Instant) -> Result<Vec<String>, DnsError> {
        let answers = self.ask(name, RecordType::TXT, deadline).await?;
        let texts = answers.iter().filter_map(|data| match data {
            RData::TXT(txt) => {
                let mut bytes = txt.txt_data.concat();
                bytes.truncate(MAX_TEXT);
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => None,
        });
        let texts: Vec<String> = texts.take(MAX_TEXTS).collect();
        if texts.is_empty() { Err(DnsError::NoSuchRecord) } else { Ok(texts) }
    }

    async fn ask(&self, name: &str, kind: RecordType, deadline: Instant) -> Result<Vec<RData>, DnsError> {
        // With a trailing dot, so that no local search domain is appended.
        let name = name.trim_end_matches('.');
        if name.is_empty() {
            return Err(DnsError::NotAName);
        }
        let name = Name::from_ascii(format!("{name}.")).map_err(|_| DnsError::NotAName)?;
        let resolver = self.resolver.get_or_try_init(|| async { self.open() }).await?;
        match tokio::time::timeout_at(deadline, resolver.lookup(name, kind)).await {
            Ok(Ok(found)) => Ok(found.answers().iter().map(|record| record.data.clone()).collect()),
            Ok(Err(error)) => Err(explain(&error)),
            Err(_) => Err(DnsError::Timeout),
        }
    }

    fn open(&self) -> Result<TokioResolver, DnsError> {
        let mut builder = match self.server {
            Some(address) => {
                let at = |mut connection: ConnectionConfig| {
                    connection.port = address.port();
                    connection
                };
                let connections = vec![at(ConnectionConfig::udp()), at(ConnectionConfig::tcp())];
                let server = NameServerConfig::new(address.ip(), true, connections);
                let config = ResolverConfig::from_name_servers(vec![server]);
                Resolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
            None => TokioResolver::builder_tokio().map_err(|error| explain(&error))?,
        };
        let options = builder.options_mut();
        options.timeout = PATIENCE;
        options.attempts = 1;
        options.cache_size = REMEMBERED;
        options.positive_max_ttl = Some(LONGEST_TTL);
        options.negative_max_ttl = Some(LONGEST_TTL);
        // The hosts file of this machine says nothing about public DNS.
        options.use_hosts_file = ResolveHosts::Never;
        builder.build().map_err(|error| explain(&error))
    }
}

fn plain(name: &Name) -> String {
    name.to_lowercase().to_ascii().trim_end_matches('.').to_owned()
}

fn explain(error: &NetError) -> DnsError {
    match error {
        NetError::Timeout => DnsError::Timeout,
        NetError::Dns(NamedError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => DnsError::NoSuchName,
            ResponseCode::NoError => DnsError::NoSuchRecord,
            code => DnsError::ServerFailure(code.to_str().to_owned()),
        },
        NetError::Dns(NamedError::ResponseCode(ResponseCode::NXDomain)) => DnsError::NoSuchName,
        NetError::Dns(NamedError::ResponseCode(code)) => DnsError::ServerFailure(code.to_str().to_owned()),
        error => DnsError::ServerFailure(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::zone::{Answer, Zone};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    fn hosts(list: &[(u16, &str)]) -> MailHosts {
        let host = |(preference, host): &(u16, &str)| MailHost { preference: *preference, host: (*host).to_owned() };
        MailHosts::Listed(list.iter().map(host).collect())
    }

    #[tokio::test]
    async fn facts_of_a_zone_are_told_apart_from_failures() {
        let zone = Zone::new()
            .mx("listed.org", 20, "Second.listed.org")
            .mx("listed.org", 10, "first.listed.org")
            .mx("refuses.org", 0, ".")
            .a("plain.org", "192.0.2.7")
            .aaaa("plain.org", "2001:db8::7")
            .aaaa("new.org", "2001:db8::8")
            .txt("said.org", &["v=spf1 ", "-all"])
            .answer("broken.org", Answer::ServerFailure)
            .answer("silent.org", Answer::Silence)
            .start()
            .await;
        let dns = Dns::new(Some(zone.address()));

        let listed = hosts(&[(10, "first.listed.org"), (20, "second.listed.org")]);
        assert_eq!(dns.mail_hosts("Listed.ORG.", soon()).await, Ok(listed));
        assert_eq!(dns.mail_hosts("refuses.org", soon()).await, Ok(MailHosts::Refused));
        assert_eq!(dns.mail_hosts("plain.org", soon()).await, Err(DnsError::NoSuchRecord));
        assert_eq!(dns.mail_hosts("nowhere.org", soon()).await, Err(DnsError::NoSuchName));
        let failure = dns.mail_hosts("broken.org", soon()).await.unwrap_err();
        assert!(matches!(failure, DnsError::ServerFailure(_)), "{failure}");
        for name in ["", ".", "two..dots", &"a".repeat(300), "a label\u{e9}"] {
            assert_eq!(dns.mail_hosts(name, soon()).await, Err(DnsError::NotAName), "{name}");
        }

        let both = ["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()];
        assert_eq!(dns.addresses("plain.org", soon()).await, Ok(both.to_vec()));
        assert_eq!(dns.addresses("new.org", soon()).await, Ok(vec!["2001:db8::8".parse().unwrap()]));
        assert_eq!(dns.addresses("refuses.org", soon()).await, Err(DnsError::NoSuchRecord));
        assert_eq!(dns.addresses("nowhere.org", soon()).await, Err(DnsError::NoSuchName));
        assert_eq!(dns.texts("said.org", soon()).await, Ok(vec!["v=spf1 -all".to_owned()]));

        let asked = Instant::now();
        let brief = asked + Duration::from_millis(200);
        assert_eq!(dns.mail_hosts("silent.org", brief).await, Err(DnsError::Timeout));
        assert!(asked.elapsed() < Duration::from_secs(1));
    }

    #[tokio::test]
    async fn large_answers_are_cut_and_come_over_tcp() {
        let mut zone = Zone::new();
        for number in 0..300 {
            zone = zone.mx("many.org", number, &format!("mail-with-a-long-name-{number}.many.org"));
            zone = zone.txt("many.org", &[&"x".repeat(200)]);
        }
        let zone = zone.start().await;
        let dns = Dns::new(Some(zone.address()));
        let Ok(MailHosts::Listed(hosts)) = dns.mail_hosts("many.org", soon()).await else { panic!("no hosts") };
        assert_eq!(hosts.len(), MAX_HOSTS);
        assert_eq!(hosts[0].host, "mail-with-a-long-name-0.many.org");
        assert_eq!(dns.texts("many.org", soon()).await.unwrap().len(), MAX_TEXTS);
    }
}
