//! A name server for tests: it answers for its names over UDP and TCP, and can fail as servers fail.
//!
//! Unit tests in `common` include this file too, so it uses nothing of either side.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, MX, SOA, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

/// The answer for a name, if it is not its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // Each side uses what it needs.
pub enum Answer {
    ServerFailure,
    Silence,
}

#[derive(Clone, Default)]
pub struct Zone {
    names: HashMap<String, Vec<RData>>,
    scripted: HashMap<String, Answer>,
}

/// A zone that is being served, until the runtime ends.
pub struct Served {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[allow(dead_code)] // Each side uses what it needs.
impl Zone {
    pub fn new() -> Zone {
        Zone::default()
    }

    pub fn mx(self, name: &str, preference: u16, host: &str) -> Zone {
        let host = Name::from_ascii(format!("{}.", host.trim_end_matches('.'))).expect("a host");
        self.record(name, RData::MX(MX::new(preference, host)))
    }

    pub fn a(self, name: &str, address: &str) -> Zone {
        self.record(name, RData::A(A(address.parse().expect("an IPv4 address"))))
    }

    pub fn aaaa(self, name: &str, address: &str) -> Zone {
        self.record(name, RData::AAAA(AAAA(address.parse().expect("an IPv6 address"))))
    }

    pub fn txt(self, name: &str, pieces: &[&str]) -> Zone {
        self.record(name, RData::TXT(TXT::new(pieces.iter().map(|piece| (*piece).to_owned()).collect())))
    }

    pub fn answer(mut self, name: &str, answer: Answer) -> Zone {
        self.scripted.insert(name.to_owned(), answer);
        self
    }

    fn record(mut self, name: &str, data: RData) -> Zone {
        self.names.entry(name.to_owned()).or_default().push(data);
        self
    }

    /// Serves the zone at a free loopback port.
    pub async fn start(self) -> Served {
        // UDP and TCP need the same port number, and a port free for one may be taken for the other.
        let (udp, tcp) = loop {
            let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = tcp.local_addr().expect("an address");
            if let Ok(udp) = UdpSocket::bind(address).await {
                break (udp, tcp);
            }
        };
        let address = tcp.local_addr().expect("an address");
        let served = Served { address, zone: Arc::new(Mutex::new(self)), asked: Arc::default() };
        let (zone, asked) = (served.zone.clone(), served.asked.clone());
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((length, peer)) = udp.recv_from(&mut buffer).await {
                if let Some(reply) = reply(&zone, &asked, &buffer[..length], true) {
                    let _ = udp.send_to(&reply, peer).await;
                }
            }
        });
        let (zone, asked) = (served.zone.clone(), served.asked.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                let (zone, asked) = (zone.clone(), asked.clone());
                tokio::spawn(async move {
                    while let Ok(length) = stream.read_u16().await {
                        let mut request = vec![0; usize::from(length)];
                        if stream.read_exact(&mut request).await.is_err() {
                            return;
                        }
                        let Some(reply) = reply(&zone, &asked, &request, false) else { continue };
                        let length = u16::try_from(reply.len()).expect("an answer that fits");
                        let _ = stream.write_u16(length).await;
                        let _ = stream.write_all(&reply).await;
                    }
                });
            }
        });
        served
    }
}

#[allow(dead_code)]
impl Served {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every query so far, in the form `MX example.org`.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Serves this zone instead. Resolvers keep what they have cached.
    pub fn change(&self, zone: Zone) {
        *self.zone.lock().unwrap() = zone;
    }
}

fn reply(zone: &Mutex<Zone>, asked: &Mutex<Vec<String>>, request: &[u8], datagram: bool) -> Option<Vec<u8>> {
    let request = Message::from_vec(request).ok()?;
    let query = request.queries.first()?.clone();
    let name = query.name().to_lowercase().to_ascii();
    let name = name.trim_end_matches('.');
    asked.lock().unwrap().push(format!("{} {name}", query.query_type()));
    let zone = zone.lock().unwrap();
    let mut response = Message::response(request.metadata.id, request.metadata.op_code);
    response.metadata.recursion_desired = request.metadata.recursion_desired;
    response.metadata.recursion_available = true;
    response.metadata.authoritative = true;
    response.add_query(query.clone());
    match zone.scripted.get(name) {
        Some(Answer::Silence) => return None,
        Some(Answer::ServerFailure) => response.metadata.response_code = ResponseCode::ServFail,
        None => {
            let known = zone.names.get(name);
            let of_kind = known.into_iter().flatten().filter(|data| data.record_type() == query.query_type());
            response.answers = of_kind.map(|data| Record::from_rdata(query.name().clone(), 60, data.clone())).collect();
            if response.answers.is_empty() {
                let root = Name::root();
                let soa = RData::SOA(SOA::new(root.clone(), root.clone(), 1, 3600, 600, 86_400, 60));
                response.authorities.push(Record::from_rdata(root, 60, soa));
                let parents = zone.names.keys().any(|known| known.ends_with(&format!(".{name}")));
                if known.is_none() && !parents {
                    response.metadata.response_code = ResponseCode::NXDomain;
                }
            }
        }
    }
    let bytes = response.to_vec().ok()?;
    if datagram && bytes.len() > 512 {
        return response.truncate().to_vec().ok();
    }
    Some(bytes)
}
