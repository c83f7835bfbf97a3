//! The SMTP dialogue (RFC 5321) without a network: lines of a client go in, replies and finished mails come out.

use std::borrow::Cow;

use tools_email::address::Address;

/// Largest mail, in bytes; offered as SIZE (RFC 1870).
pub const MAX_MAIL: usize = 25 * 1024 * 1024;
/// Longest line, in bytes. RFC 5321 §4.5.3.1 asks for 512 (commands) and 1,000 (text); some senders write longer lines.
const MAX_LINE: usize = 4096;
/// Recipients of one mail (RFC 5321 §4.5.3.1.8).
const MAX_RECIPIENTS: usize = 100;
/// Commands of one session.
const MAX_COMMANDS: u32 = 1000;
/// Refused commands of one session, so that nobody tries out thousands of addresses.
const MAX_REFUSED: u32 = 20;
/// Longest HELO name (RFC 5321 §4.5.3.1.2).
const MAX_NAME: usize = 255;
/// Commands of HTTP. A web page can make a browser send a request to this port, with commands of SMTP in its body.
const HTTP: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT"];

/// Cuts the bytes of a connection into lines. Only CRLF ends a line: a server that also takes a lone CR or LF for an end
/// can be made to read two mails where another server passed on one ("SMTP smuggling").
#[derive(Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Bytes at the front that were taken already.
    taken: usize,
    /// Bytes that were searched for an end.
    searched: usize,
    /// The beginning of the line was dropped.
    too_long: bool,
}

/// A line without its CRLF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    /// It contained a CR or LF that is not part of a CRLF.
    Bare,
    TooLong,
}

impl Lines {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether the client has sent more than was read.
    pub fn has_more(&self) -> bool {
        self.taken < self.buffer.len()
    }

    /// The next whole line. A long line is dropped while it arrives.
    pub fn next_line(&mut self) -> Option<Line> {
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n").map(|at| self.searched + at) else {
            // The last byte may be the CR of a CRLF.
            self.searched = self.buffer.len().saturating_sub(1).max(self.taken);
            if self.searched - self.taken > MAX_LINE {
                self.too_long = true;
                self.taken = self.searched;
            }
            return None;
        };
        let line = self.buffer.get(self.taken..end).unwrap_or_default().to_vec();
        (self.taken, self.searched) = (end + 2, end + 2);
        let too_long = std::mem::take(&mut self.too_long) || line.len() > MAX_LINE;
        Some(match () {
            () if too_long => Line::TooLong,
            () if line.contains(&b'\r') || line.contains(&b'\n') => Line::Bare,
            () => Line::Text(line),
        })
    }
}

/// A reply to the client: a code and a text, perhaps of several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    text: Cow<'static, str>,
    pub then: Then,
}

/// What happens to the connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Continue,
    Close,
    /// The client was refused DATA. If it has sent more already, that may be the text of its mail, and is not read as
    /// commands.
    CloseIfMore,
}

impl Reply {
    pub const TOO_MANY: Reply = Reply::last("421 4.7.0 Too many connections, try again later");
    pub const TIMEOUT: Reply = Reply::last("421 4.4.2 Timeout");

    const fn new(text: &'static str) -> Reply {
        Reply { text: Cow::Borrowed(text), then: Then::Continue }
    }

    const fn last(text: &'static str) -> Reply {
        Reply { text: Cow::Borrowed(text), then: Then::Close }
    }

    /// As it is sent, with CRLF.
    pub fn wire(&self) -> String {
        format!("{}\r\n", self.text)
    }

    fn is_refusal(&self) -> bool {
        self.text.starts_with('5')
    }
}

/// What the server does after a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: the line belongs to a mail.
    Silent,
    Reply(Reply),
    /// Look the address up and pass the result to [`Session::recipient`].
    Recipient(Address),
    /// Check and store the mail, and pass the result to [`Session::delivered`].
    Mail(Mail),
}

/// A whole mail with its envelope.
#[derive(Debug, PartialEq, Eq)]
pub struct Mail {
    /// The name in HELO or EHLO. Anybody can write anything there.
    pub hello: String,
    /// `None` for a bounce.
    pub from: Option<Address>,
    pub to: Vec<Address>,
    pub raw: Vec<u8>,
}

/// What is known of a recipient's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    Known,
    /// At a domain of this deployment, but nobody's.
    Unknown,
    /// At a domain of somebody else: mail is not relayed.
    Foreign,
    /// The lookup failed.
    NotNow,
}

/// What became of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Stored,
    Unknown,
    Full,
    /// The author's domain says that such mail must be rejected (DMARC `p=reject`).
    Rejected,
    /// It is no mail, or was in a loop.
    Unreadable,
    NotNow,
}

struct Envelope {
    from: Option<Address>,
    to: Vec<Address>,
    /// The address that is being looked up.
    asked: Option<Address>,
}

#[derive(Default)]
struct Text {
    raw: Vec<u8>,
    /// Bytes received, also those that were not kept.
    size: usize,
    /// Why the mail will be refused.
    fault: Option<&'static str>,
}

/// The dialogue with one client.
pub struct Session {
    /// The name of this server.
    host: String,
    commands: u32,
    refused: u32,
    hello: Option<String>,
    envelope: Option<Envelope>,
    /// The text of a mail, after DATA.
    text: Option<Text>,
}

impl Session {
    pub fn new(host: &str) -> Session {
        let host = host.to_owned();
        Session { host, commands: 0, refused: 0, hello: None, envelope: None, text: None }
    }

    pub fn greeting(&self) -> Reply {
        Reply { text: format!("220 {} ESMTP", self.host).into(), then: Then::Continue }
    }

    pub fn line(&mut self, line: Line) -> Step {
        if self.text.is_some() {
            return self.text_line(line);
        }
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            return Step::Reply(Reply::last("421 4.7.0 Too many commands"));
        }
        let step = match line {
            Line::Text(line) => match str::from_utf8(&line) {
                // Without control characters, also in addresses.
                Ok(line) if line.bytes().all(|byte| matches!(byte, b' '..=b'~')) => self.command(line),
                _ => Step::Reply(Reply::new("500 5.5.2 A command is printable ASCII")),
            },
            Line::Bare => Step::Reply(Reply::new("500 5.5.2 A line ends with CRLF")),
            Line::TooLong => Step::Reply(Reply::new("500 5.5.6 Line too long")),
        };
        match step {
            Step::Reply(reply) => Step::Reply(self.counted(reply)),
            step => step,
        }
    }

    /// Answers RCPT after [`Step::Recipient`].
    pub fn recipient(&mut self, found: Recipient) -> Reply {
        let asked = self.envelope.as_mut().and_then(|envelope| Some((envelope.asked.take()?, &mut envelope.to)));
        let reply = match (found, asked) {
            (_, None) => Reply::new("503 5.5.1 MAIL first"),
            (Recipient::Known, Some((address, to))) => {
                if !to.contains(&address) {
                    to.push(address);
                }
                Reply::new("250 2.1.5 OK")
            }
            (Recipient::Unknown, _) => Reply::new("550 5.1.1 No such mailbox here"),
            (Recipient::Foreign, _) => Reply::new("550 5.7.1 No relaying: not a domain of this service"),
            (Recipient::NotNow, _) => Reply::new("451 4.3.0 Cannot look the address up now"),
        };
        self.counted(reply)
    }

    /// Answers the end of a mail after [`Step::Mail`].
    pub fn delivered(&mut self, outcome: Outcome) -> Reply {
        let reply = Reply::new(match outcome {
            Outcome::Stored => "250 2.0.0 Stored",
            Outcome::Unknown => "550 5.1.1 No such mailbox here",
            Outcome::Full => "452 4.2.2 This mailbox takes no more of your mail today",
            Outcome::Rejected => "550 5.7.1 Rejected by the DMARC policy of the author's domain",
            Outcome::Unreadable => "554 5.6.0 The mail cannot be read, or was in a loop",
            Outcome::NotNow => "451 4.3.0 Not stored, try again later",
        });
        self.counted(reply)
    }

    fn counted(&mut self, reply: Reply) -> Reply {
        self.refused += u32::from(reply.is_refusal());
        match self.refused > MAX_REFUSED {
            true => Reply::last("421 4.7.0 Too many errors"),
            false => reply,
        }
    }

    fn command(&mut self, line: &str) -> Step {
        let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
        let (verb, argument) = (verb.to_ascii_uppercase(), argument.trim());
        let bare = |reply| match argument.is_empty() {
            true => Reply::new(reply),
            false => Reply::new("501 5.5.4 No parameters allowed"),
        };
        Step::Reply(match verb.as_str() {
            "HELO" | "EHLO" => self.hello(argument, verb == "EHLO"),
            "MAIL" => self.mail(argument),
            "RCPT" => return self.rcpt(argument),
            "DATA" => self.data(argument),
            "RSET" => {
                let reply = bare("250 2.0.0 OK");
                if !reply.is_refusal() {
                    self.envelope = None;
                }
                reply
            }
            "NOOP" => Reply::new("250 2.0.0 OK"),
            "QUIT" => Reply { then: Then::Close, ..bare("221 2.0.0 Bye") },
            "VRFY" => Reply::new("252 2.1.5 Send a mail and see"),
            "HELP" => Reply::new("214 2.0.0 RFC 5321"),
            "STARTTLS" | "AUTH" | "EXPN" | "TURN" => Reply::new("502 5.5.1 Not offered"),
            verb if HTTP.contains(&verb) => Reply::last("421 4.7.0 This is not a web server"),
            _ => Reply::new("500 5.5.1 Unknown command"),
        })
    }

    fn hello(&mut self, name: &str, extended: bool) -> Reply {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(allowed) {
            return Reply::new("501 5.5.4 The name of the client is missing or wrong");
        }
        self.hello = Some(name.to_owned());
        self.envelope = None;
        let host = &self.host;
        let text = match extended {
            true => format!(
                "250-{host}\r\n250-SIZE {MAX_MAIL}\r\n250-8BITMIME\r\n250-PIPELINING\r\n250 ENHANCEDSTATUSCODES"
            ),
            false => format!("250 {host}"),
        };
        Reply { text: text.into(), then: Then::Continue }
    }

    fn mail(&mut self, argument: &str) -> Reply {
        if self.hello.is_none() {
            return Reply::new("503 5.5.1 EHLO first");
        }
        if self.envelope.is_some() {
            return Reply::new("503 5.5.1 MAIL was said already");
        }
        let Some((path, parameters)) = after(argument, "FROM:").and_then(path) else {
            return Reply::new("501 5.5.4 Write MAIL FROM:<address>");
        };
        let from = match path {
            "" => None,
            path => match Address::parse(path) {
                Ok(address) => Some(address),
                Err(_) => return Reply::new("501 5.1.7 Not an address"),
            },
        };
        let mut seen = Vec::new();
        for parameter in parameters.split_ascii_whitespace() {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let (name, value) = (name.to_ascii_uppercase(), value.to_ascii_uppercase());
            match (name.as_str(), value.as_str()) {
                (name, _) if seen.iter().any(|seen| seen == name) => {
                    return Reply::new("501 5.5.4 The same parameter twice");
                }
                ("SIZE", value) if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                    // A number that does not fit is too large as well.
                    if value.parse::<usize>().map_or(true, |size| size > MAX_MAIL) {
                        return Reply::new("552 5.3.4 Too large");
                    }
                }
                ("SIZE", _) => return Reply::new("501 5.5.4 SIZE is a number of bytes"),
                ("BODY", "7BIT" | "8BITMIME") => {}
                _ => return Reply::new("555 5.5.4 Parameter not supported"),
            }
            seen.push(name);
        }
        self.envelope = Some(Envelope { from, to: Vec::new(), asked: None });
        Reply::new("250 2.1.0 OK")
    }

    fn rcpt(&mut self, argument: &str) -> Step {
        let Some(envelope) = &mut self.envelope else { return Step::Reply(Reply::new("503 5.5.1 MAIL first")) };
        let Some((path, parameters)) = after(argument, "TO:").and_then(path) else {
            return Step::Reply(Reply::new("501 5.5.4 Write RCPT TO:<address>"));
        };
        if !parameters.is_empty() {
            return Step::Reply(Reply::new("555 5.5.4 Parameter not supported"));
        }
        if envelope.to.len() >= MAX_RECIPIENTS {
            return Step::Reply(Reply::new("452 4.5.3 Too many recipients, send them in another mail"));
        }
        // The only recipient without a domain (RFC 5321 §4.5.1).
        let own = path.eq_ignore_ascii_case("postmaster").then(|| format!("postmaster@{}", self.host));
        match Address::parse(own.as_deref().unwrap_or(path)) {
            Ok(address) => {
                envelope.asked = Some(address.clone());
                Step::Recipient(address)
            }
            Err(_) => Step::Reply(Reply::new("501 5.1.3 Not an address")),
        }
    }

    fn data(&mut self, argument: &str) -> Reply {
        let refused = |text| Reply { then: Then::CloseIfMore, ..Reply::new(text) };
        if !argument.is_empty() {
            return refused("501 5.5.4 No parameters allowed");
        }
        if self.envelope.as_ref().is_none_or(|envelope| envelope.to.is_empty()) {
            return refused("503 5.5.1 No valid recipients");
        }
        self.text = Some(Text::default());
        Reply::new("354 End with a line of only a dot")
    }

    /// A line after DATA. A mail with a fault is read to its end, and then refused: the rest of it must not be taken for
    /// commands.
    fn text_line(&mut self, line: Line) -> Step {
        let Some(text) = &mut self.text else { return Step::Silent };
        match line {
            Line::Text(line) if line == b"." => {}
            Line::Text(line) => {
                // The sender doubles a dot at the beginning of a line (RFC 5321 §4.5.2).
                let line = line.strip_prefix(b".").unwrap_or(&line);
                text.size = text.size.saturating_add(line.len() + 2);
                if text.size > 2 * MAX_MAIL {
                    return Step::Reply(Reply::last("421 4.3.4 Too large"));
                }
                if text.size > MAX_MAIL {
                    text.fault = Some("552 5.3.4 Too large");
                    text.raw = Vec::new();
                } else if text.fault.is_none() {
                    text.raw.extend_from_slice(line);
                    text.raw.extend_from_slice(b"\r\n");
                }
                return Step::Silent;
            }
            fault => {
                text.size = text.size.saturating_add(MAX_LINE);
                text.fault.get_or_insert(match fault {
                    Line::Bare => "554 5.6.0 The mail has a CR or LF that is not part of a CRLF",
                    _ => "554 5.6.0 The mail has a line that is too long",
                });
                return Step::Silent;
            }
        }
        let (text, envelope) = (self.text.take(), self.envelope.take());
        match (text, envelope) {
            (Some(Text { raw, fault: None, .. }), Some(Envelope { from, to, .. })) => {
                Step::Mail(Mail { hello: self.hello.clone().unwrap_or_default(), from, to, raw })
            }
            (text, _) => {
                let fault = text.and_then(|text| text.fault).unwrap_or("503 5.5.1 MAIL first");
                Step::Reply(self.counted(Reply::new(fault)))
            }
        }
    }
}

/// The rest of an argument after `FROM:` or `TO:`. Many clients write a space after the colon.
fn after<'a>(argument: &'a str, word: &str) -> Option<&'a str> {
    let (found, rest) = argument.split_at_checked(word.len())?;
    found.eq_ignore_ascii_case(word).then(|| rest.trim_start())
}

/// Cuts `<path> parameters`. A `>` in quotes belongs to the path.
fn path(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('<')?;
    let (mut quoted, mut escaped) = (false, false);
    let end = inside.find(|character| {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            character => return character == '>' && !quoted,
        }
        false
    })?;
    let (path, rest) = inside.split_at(end);
    let rest = rest.strip_prefix('>')?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| (path, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session in which every address at `here.org` but `nobody` is known. Returns the codes of the replies, and the
    /// mails.
    fn talk(bytes: &[u8]) -> (Vec<String>, Vec<Mail>) {
        // In pieces of every size, also ones that cut a CRLF.
        let mut all: Option<(Vec<String>, Vec<Mail>)> = None;
        for piece in [1, 2, 7, bytes.len().max(1)] {
            let (mut session, mut lines) = (Session::new("mx.here.org"), Lines::default());
            let (mut codes, mut mails) = (Vec::new(), Vec::new());
            'session: for piece in bytes.chunks(piece) {
                lines.push(piece);
                while let Some(line) = lines.next_line() {
                    let reply = match session.line(line) {
                        Step::Silent => continue,
                        Step::Reply(reply) => reply,
                        Step::Recipient(address) => session.recipient(match address.as_str() {
                            address if address.starts_with("nobody@") => Recipient::Unknown,
                            address if address.ends_with("@here.org") => Recipient::Known,
                            "postmaster@mx.here.org" => Recipient::Known,
                            _ => Recipient::Foreign,
                        }),
                        Step::Mail(mail) => {
                            mails.push(mail);
                            session.delivered(Outcome::Stored)
                        }
                    };
                    codes.push(reply.wire().chars().take(3).collect());
                    if reply.then == Then::Close {
                        break 'session;
                    }
                }
            }
            let this = (codes, mails);
            assert!(all.is_none() || all.as_ref() == Some(&this), "{piece}: {this:?}");
            all = Some(this);
        }
        all.unwrap()
    }

    fn codes(bytes: &str) -> String {
        talk(bytes.as_bytes()).0.join(" ")
    }

    const BEGUN: &str = "EHLO a.org\r\nMAIL FROM:<ada@a.org>\r\nRCPT TO:<bo@here.org>\r\n";

    fn mail(text: &str) -> (Vec<String>, Vec<Mail>) {
        talk(format!("{BEGUN}DATA\r\n{text}").as_bytes())
    }

    #[test]
    fn a_pipelined_session_is_answered_in_order() {
        let (codes, mails) = talk(
            b"ehlo client.a.org\r\nMail From: <ada@A.org> SIZE=120 body=8bitmime\r\nRCPT TO:<bo@here.org>\r\n\
              RCPT TO:<nobody@here.org>\r\nRCPT TO:<eve@elsewhere.org>\r\nRCPT TO:<bo@HERE.org>\r\nDATA\r\n\
              Subject: x\r\n\r\n..\r\n.hidden\r\n...\r\n \xff\r\n.\r\nMAIL FROM:<>\r\nRSET\r\nVRFY bo\r\nNOOP\r\nQUIT\r\n",
        );
        assert_eq!(codes.join(" "), "250 250 250 550 550 250 354 250 250 250 252 250 221");
        let raw = b"Subject: x\r\n\r\n.\r\nhidden\r\n..\r\n \xff\r\n".to_vec();
        let (from, to) = (Address::parse("ada@a.org").ok(), vec![Address::parse("bo@here.org").unwrap()]);
        assert_eq!(mails, [Mail { hello: "client.a.org".to_owned(), from, to, raw }]);
    }

    #[test]
    fn only_a_dot_between_two_crlf_ends_a_mail() {
        for end in ["\n.\n", "\n.\r\n", "\r.\r", "\r\n.\n", "\r\n.\r", "\n.\r", "\r.\r\n", "\r\n.\r\r\n", "\r\n\n.\r\n"]
        {
            let smuggled = format!("first{end}MAIL FROM:<ceo@here.org>\r\nRCPT TO:<bo@here.org>\r\nDATA\r\nx\r\n");
            let (codes, mails) = mail(&format!("{smuggled}\r\n.\r\nQUIT\r\n"));
            assert_eq!(codes.join(" "), "250 250 250 354 554 221", "{end:?}");
            assert!(mails.is_empty(), "{end:?}");
        }
        // A dot as the first line, and an empty mail.
        assert_eq!(mail(".\r\n").1[0].raw, b"");
    }

    #[test]
    fn commands_out_of_order_are_refused() {
        for (session, expected) in [
            ("MAIL FROM:<ada@a.org>\r\n", "503"),
            ("HELO a.org\r\nRCPT TO:<bo@here.org>\r\nDATA\r\n", "250 503 503"),
            ("HELO a.org\r\nMAIL FROM:<ada@a.org>\r\nMAIL FROM:<ada@a.org>\r\nDATA\r\n", "250 250 503 503"),
            ("EHLO a.org\r\nMAIL FROM:<>\r\nRCPT TO:<bo@here.org>\r\nEHLO a.org\r\nDATA\r\n", "250 250 250 250 503"),
            ("EHLO a.org\r\nMAIL FROM:<>\r\nRCPT TO:<bo@here.org>\r\nRSET\r\nDATA\r\n", "250 250 250 250 503"),
            ("STARTTLS\r\nAUTH PLAIN\r\nEXPN x\r\nWHAT\r\n\r\n", "502 502 502 500 500"),
            ("QUIT now\r\n", "501"),
            ("POST / HTTP/1.1\r\nHELO a.org\r\n", "421"),
        ] {
            assert_eq!(codes(session), expected, "{session}");
        }
        let mut session = Session::new("mx.here.org");
        let Step::Reply(reply) = session.line(Line::Text(b"DATA".to_vec())) else { panic!("no reply") };
        assert_eq!(reply.then, Then::CloseIfMore);
    }

    #[test]
    fn arguments_are_read_strictly() {
        for (command, expected) in [
            ("MAIL FROM:<ada@a.org> SIZE=26214400", "250"),
            ("MAIL FROM:<ada@a.org> SIZE=26214401", "552"),
            ("MAIL FROM:<ada@a.org> SIZE=99999999999999999999999", "552"),
            ("MAIL FROM:<ada@a.org> SIZE=", "501"),
            ("MAIL FROM:<ada@a.org> SIZE=1 SIZE=2", "501"),
            ("MAIL FROM:<ada@a.org> BODY=BINARYMIME", "555"),
            ("MAIL FROM:<ada@a.org> SMTPUTF8", "555"),
            ("MAIL FROM:ada@a.org", "501"),
            ("MAIL FROM:<ada@a.org>SIZE=1", "501"),
            ("MAIL FROM:<ada@a.org", "501"),
            ("MAIL FROM:<\"a>b\"@a.org> X=1", "501"),
            ("MAIL FROM:<@relay.org:ada@a.org>", "501"),
            ("MAIL FROM:<ada@a.org>\nRCPT TO:<bo@here.org>", "500"),
            ("MAIL FROM:<ada@a.org\r>", "500"),
            ("MAIL FROM:<ada\0@a.org>", "500"),
            ("MAIL FROM:<ad\u{e4}@a.org>", "500"),
            ("MAIL TO:<ada@a.org>", "501"),
            ("EHLO", "501"),
            ("EHLO a b", "501"),
        ] {
            assert_eq!(codes(&format!("EHLO a.org\r\n{command}\r\n")), format!("250 {expected}"), "{command:?}");
        }
        for (command, expected) in [
            ("RCPT TO:<bo@here.org> NOTIFY=NEVER", "555"),
            ("RCPT TO:<>", "501"),
            // At `mx.here.org`, which is looked up like any other.
            ("RCPT TO:<Postmaster>", "250"),
            ("RCPT TO:<abuse>", "501"),
            ("RCPT TO:<bo@here.org\n>", "500"),
            ("RCPT TO:<bo@here.org>,<eve@elsewhere.org>", "501"),
            ("RCPT TO:<bo%elsewhere.org@here.org@elsewhere.org>", "501"),
            ("DATA now", "501"),
        ] {
            assert_eq!(codes(&format!("{BEGUN}{command}\r\n")), format!("250 250 250 {expected}"), "{command:?}");
        }
    }

    #[test]
    fn sizes_and_counts_are_limited() {
        // Lines.
        let long = "x".repeat(MAX_LINE);
        assert_eq!(codes(&format!("{long}\r\n{long}x\r\nNOOP\r\n")), "500 500 250");
        assert_eq!(mail(&format!("{long}\r\n.\r\n")).1[0].raw.len(), MAX_LINE + 2);
        assert_eq!(mail(&format!("{long}{long}\r\n.\r\nNOOP\r\n")).0.join(" "), "250 250 250 354 554 250");
        // Recipients.
        let mut session = "EHLO a.org\r\nMAIL FROM:<>\r\n".to_owned();
        (0..=MAX_RECIPIENTS).for_each(|number| session.push_str(&format!("RCPT TO:<a{number}@here.org>\r\n")));
        let (codes_of, mails) = talk(format!("{session}DATA\r\n.\r\n").as_bytes());
        assert_eq!(codes_of[codes_of.len() - 4..].join(" "), "250 452 354 250");
        assert_eq!((mails[0].from.clone(), mails[0].to.len()), (None, MAX_RECIPIENTS));
        // Commands, and refusals.
        assert!(codes(&"NOOP\r\n".repeat(1100)).ends_with("250 421"));
        assert_eq!(codes(&"NOOP\r\n".repeat(1100)).len(), 1001 * 4 - 1);
        assert_eq!(codes(&"WHAT\r\n".repeat(30)).len(), 21 * 4 - 1);
        let guesses = "RCPT TO:<nobody@here.org>\r\n".repeat(30);
        assert!(codes(&format!("{BEGUN}{guesses}")).ends_with("550 421"));
    }

    #[test]
    fn a_mail_that_is_too_large_is_read_to_its_end_but_not_kept() {
        let line = Line::Text(vec![b'x'; 4000]);
        let mut session = Session::new("mx.here.org");
        for command in ["HELO a.org", "MAIL FROM:<>", "RCPT TO:<bo@here.org>"] {
            session.line(Line::Text(command.into()));
        }
        session.recipient(Recipient::Known);
        session.line(Line::Text(b"DATA".to_vec()));
        for _ in 0..=MAX_MAIL / 4002 {
            assert_eq!(session.line(line.clone()), Step::Silent);
        }
        assert!(session.text.as_ref().unwrap().raw.is_empty());
        let Step::Reply(reply) = session.line(Line::Text(b".".to_vec())) else { panic!("no reply") };
        assert!(reply.wire().starts_with("552 "), "{reply:?}");
    }
}
