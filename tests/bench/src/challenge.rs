//! The cost of a price: the unpaid 402 answer compared with `GET /health`, a free route of the same server.
//!
//! Measured three times: through the routers in process; through HTTP on loopback with a kept connection; and as
//! deployed, one event after the other through the Lambda runtime. Only the server's CPU time counts. The HTTP server
//! is a bare blocking loop, the same for both routes, so that no server overhead hides the cost of the answers
//! themselves.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use catalog::CATALOG;
use cpu_time::ThreadTime;
use gate::Gate;
use gate::app::App;
use http_body_util::BodyExt;
use platform::config::Config;
use platform::connections::Connections;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::machine;
use crate::start::{HEALTH, Kept, UNPAID, World};
use crate::stubs::aws;
use crate::stubs::http::{self, Answer, Request};
use crate::table::{Row, Verdict};
use crate::turns::{Turns, micros, per_cpu_second, take_turns};
use crate::{Error, Extent};

/// The arguments with which this program starts itself, because the routers' log must not mix with its own output.
pub const IN_PROCESS: &str = "in-process";
pub const SERVER: &str = "server";

impl Extent {
    fn rounds(self) -> usize {
        self.pick(30, 1)
    }

    /// Requests of one kind in a round.
    fn requests(self) -> u32 {
        self.pick(1000, 5)
    }

    /// The same for the deployed functions, which are a little slower.
    fn events(self) -> u32 {
        self.pick(500, 5)
    }
}

/// The result of the best published peer: an axum server with the payment middleware of the leading Rust implementation
/// of x402.
const PEER: &str = "peer 2.7";

pub fn rows(world: &World, extent: Extent) -> Result<Vec<Row>, Error> {
    Ok(vec![
        row("in process", &ask_child(extent)?),
        row("HTTP on loopback", &over_http(extent)?),
        row("as deployed", &deployed(world, extent)?),
    ])
}

fn row(how: &str, turns: &Turns) -> Row {
    Row {
        what: format!("402 / GET /health, {how}"),
        measured: format!("{:.2}", turns.ratio),
        target: PEER.to_owned(),
        verdict: Verdict::None,
        figures: format!(
            "{:.1} us / {:.1} us, {} / {} per CPU-second",
            micros(turns.a),
            micros(turns.b),
            per_cpu_second(turns.a),
            per_cpu_second(turns.b)
        ),
    }
}

/// The routers, answering one request after the other.
struct Server {
    runtime: Runtime,
    knowledge: Router,
    meta: Router,
}

impl Server {
    fn start() -> Result<Server, Error> {
        let variables = [
            ("PAY_TO", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
            ("PUBLIC_BASE_URL", "https://api.example.com"),
            ("SERVICE_SECRET", aws::SECRET),
            ("RELAYER_PRIVATE_KEY", "0x0000000000000000000000000000000000000000000000000000000000000001"),
            ("JOB_QUEUE_URL", "http://127.0.0.1:9/jobs"),
        ];
        let config = Config::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })?;
        let config = Arc::new(config);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connections = Connections::open(&config)?;
        let gate = runtime.block_on(Gate::open(&connections, config.clone(), &CATALOG, &knowledge::RUNNERS))?;
        let app = App::new(config.clone(), &connections, &CATALOG);
        Ok(Server { runtime, knowledge: knowledge::router(Arc::new(gate)), meta: meta::router(app, Vec::new()) })
    }

    fn answer(&self, request: ::http::Request<Body>) -> (u16, ::http::HeaderMap, Vec<u8>) {
        let router = if request.uri().path().starts_with("/v1/tools") { &self.knowledge } else { &self.meta };
        self.runtime.block_on(async {
            let answer = router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
            let (parts, body) = answer.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
            (parts.status.as_u16(), parts.headers, body)
        })
    }
}

/// A request of either kind, and its expected status.
struct Question {
    method: &'static str,
    path: &'static str,
    body: String,
    status: u16,
}

fn questions() -> [Question; 2] {
    let tool = &tools_lookups::vehicle_identification::SPEC;
    [
        Question { method: "POST", path: tool.path(), body: tool.example().to_string(), status: 402 },
        Question { method: "GET", path: "/health", body: String::new(), status: 200 },
    ]
}

/// Measures the routers in this process. Standard output has the routers' log, standard error the figures.
pub fn in_process(extent: Extent) -> Result<(), Error> {
    let server = Server::start()?;
    let ask = |question: &Question| -> Result<Duration, Error> {
        let started = ThreadTime::now();
        for _ in 0..extent.requests() {
            let request = ::http::Request::builder()
                .method(question.method)
                .uri(question.path)
                .header("host", "api.example.com")
                .header("content-type", "application/json")
                .body(Body::from(question.body.clone()))?;
            let (status, _, body) = server.answer(request);
            if status != question.status {
                return Err(format!("{} answered {status}: {}", question.path, String::from_utf8_lossy(&body)).into());
            }
        }
        Ok(started.elapsed() / extent.requests())
    };
    let [unpaid, health] = questions();
    let Turns { a, b, ratio } = take_turns(extent.rounds(), || ask(&unpaid), || ask(&health))?;
    eprintln!("{} {} {ratio}", a.as_nanos(), b.as_nanos());
    Ok(())
}

fn ask_child(extent: Extent) -> Result<Turns, Error> {
    let output = this_program(extent.pick(&[IN_PROCESS], &["quick", IN_PROCESS]))?.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let mut figures = text.split_whitespace();
    let mut nanos = || figures.next().and_then(|nanos| nanos.parse().ok()).map(Duration::from_nanos);
    let (a, b) = (nanos(), nanos());
    let ratio = figures.next().and_then(|ratio| ratio.parse().ok());
    match (a, b, ratio) {
        (Some(a), Some(b), Some(ratio)) => Ok(Turns { a, b, ratio }),
        _ => Err(format!("the routers could not be measured: {text}").into()),
    }
}

/// Serves the routers over HTTP, one connection at a time, and prints the port to standard error.
pub fn server() -> Result<(), Error> {
    let server = Server::start()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    eprintln!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        http::answer_all(stream, |request| relay(&server, request).ok())?;
    }
}

fn relay(server: &Server, request: Request) -> Result<Answer, Error> {
    let mut question = ::http::Request::builder().method(request.method.as_str()).uri(request.path);
    for (name, value) in &request.headers {
        question = question.header(name, value);
    }
    let (status, headers, body) = server.answer(question.body(Body::from(request.body))?);
    let headers = headers.iter().map(|(name, value)| Ok((name.to_string(), value.to_str()?.to_owned())));
    Ok(Answer { status, headers: headers.collect::<Result<_, Error>>()?, body })
}

fn over_http(extent: Extent) -> Result<Turns, Error> {
    let mut server = Ended(this_program(&[SERVER])?);
    let errors = server.0.stderr.take().ok_or("the server has no standard error")?;
    let mut port = String::new();
    BufReader::new(errors).read_line(&mut port)?;
    let port: u16 = port.trim().parse().map_err(|_| format!("the server did not start: {port}"))?;
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let pid = server.0.id();
    let mut ask = |question: &Question| -> Result<Duration, Error> {
        let bytes = format!(
            "{} {} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
            question.method,
            question.path,
            question.body.len(),
            question.body
        );
        machine::wait_until_asleep(pid)?;
        let before = machine::cpu_of(pid)?;
        for _ in 0..extent.requests() {
            stream.get_mut().write_all(bytes.as_bytes())?;
            let answer = http::read_answer(&mut stream)?;
            if answer.status != question.status {
                return Err(format!("{} answered {}", question.path, answer.status).into());
            }
        }
        machine::wait_until_asleep(pid)?;
        Ok((machine::cpu_of(pid)? - before) / extent.requests())
    };
    let [unpaid, health] = questions();
    // Both sides use the one connection.
    let ask = std::cell::RefCell::new(&mut ask);
    take_turns(extent.rounds(), || (ask.borrow_mut())(&unpaid), || (ask.borrow_mut())(&health))
}

fn deployed(world: &World, extent: Extent) -> Result<Turns, Error> {
    let (mut knowledge, mut meta) = (Kept::start(world, &UNPAID)?, Kept::start(world, &HEALTH)?);
    take_turns(extent.rounds(), || knowledge.answer(extent.events()), || meta.answer(extent.events()))
}

fn this_program(arguments: &[&str]) -> Result<Child, Error> {
    // Through this link and not by its path, because building the functions may have replaced the file.
    let mut command = Command::new("/proc/self/exe");
    Ok(command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
}

/// A child process that is ended on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
