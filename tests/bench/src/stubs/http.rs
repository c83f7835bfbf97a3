//! The part of HTTP/1.1 that the stubs and the measured server need: one exchange after the other on kept connections.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A request, read completely.
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// An answer. Its length is added when it is written.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Answer {
    pub fn json(status: u16, body: &serde_json::Value) -> Answer {
        Answer {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_string().into_bytes(),
        }
    }
}

/// Answers requests on a connection until the client closes it or `answer` returns `None`.
pub fn answer_all<S: Read + Write>(stream: S, mut answer: impl FnMut(Request) -> Option<Answer>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream)? {
        let Some(answer) = answer(request) else { break };
        write_answer(stream.get_mut(), &answer)?;
    }
    Ok(())
}

/// Serves every connection on a thread of its own, forever.
pub fn serve(listener: TcpListener, answer: impl Fn(TcpStream) + Send + Sync + 'static) {
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // Otherwise small answers wait for acknowledgements of earlier ones.
            let _ = stream.set_nodelay(true);
            std::thread::spawn(move || answer(stream));
        }
    });
}

/// The next request; `None` if the connection was closed.
pub fn read_request(stream: &mut impl BufRead) -> io::Result<Option<Request>> {
    let Some(start) = read_line(stream)? else { return Ok(None) };
    let mut words = start.split(' ').map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Err(malformed()) };
    let headers = read_headers(stream)?;
    let body = read_body(stream, &headers)?;
    Ok(Some(Request { method, path, headers, body }))
}

/// An answer as a client reads it.
pub fn read_answer(stream: &mut impl BufRead) -> io::Result<Answer> {
    let start = read_line(stream)?.ok_or_else(malformed)?;
    let status = start.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(malformed)?;
    let headers = read_headers(stream)?;
    let body = read_body(stream, &headers)?;
    Ok(Answer { status, headers, body })
}

pub fn write_answer(stream: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(256 + answer.body.len());
    write!(bytes, "HTTP/1.1 {} -\r\ncontent-length: {}\r\n", answer.status, answer.body.len())?;
    for (name, value) in &answer.headers {
        write!(bytes, "{name}: {value}\r\n")?;
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&answer.body);
    stream.write_all(&bytes)?;
    stream.flush()
}

/// `None` at the end of the connection.
fn read_line(stream: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    line.truncate(line.trim_end().len());
    Ok(Some(line))
}

fn read_headers(stream: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?.ok_or_else(malformed)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_body(stream: &mut impl BufRead, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        loop {
            let size = read_line(stream)?.ok_or_else(malformed)?;
            let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16);
            let size = size.map_err(|_| malformed())?;
            read_exactly(stream, size, &mut body)?;
            // The line's end after a chunk, or the empty line after the last.
            read_line(stream)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let size = header("content-length").map_or(Ok(0), str::parse).map_err(|_| malformed())?;
    read_exactly(stream, size, &mut body)?;
    Ok(body)
}

fn read_exactly(stream: &mut impl BufRead, size: usize, into: &mut Vec<u8>) -> io::Result<()> {
    let start = into.len();
    into.resize(start + size, 0);
    stream.read_exact(&mut into[start..])
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not HTTP/1.1")
}
