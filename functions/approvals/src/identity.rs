//! The page of an identity check, for the person to be checked: it redirects to the vendor's page, or mails a code and
//! takes it. Also the vendor's webhook.

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use base::digest;
use base::hours;
use base::ids::RequestId;
use gate::approvals::page::{self, escaped};
use gate::limits::{self, Class, Subject};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use platform::http::{ApiError, Segment, private_json, read_body};
use platform::mail::{Letter, MailError};
use platform::providers::signature;
use platform::store::jobs;
use ring::hmac;
use serde_json::json;
use tools_people::stripe as vendor;
use tools_people::verification::identity::DONE;
use tools_people::verification::session::{self, Guess, MAX_CODES, Session};

use super::{ApprovalsState, respond};

const MAX_FORM_BYTES: usize = 4 * 1024;
const MAX_EVENT_BYTES: usize = 256 * 1024;
const SUBJECT: &str = "Your code";

/// `GET /identity/{id}`: shows the request. It changes nothing, because mail scanners open links.
pub async fn show(State(state): State<ApprovalsState>, Segment(id): Segment, RawQuery(query): RawQuery) -> Response {
    match found(&state, &id).await {
        // The person comes back from the vendor's page and has nothing left to do; the agent gets the outcome.
        Ok(session) if session.vendor_session.is_some() && query.as_deref() == Some(DONE) => {
            let text = "Your documents are being checked, and the agent that requested the check gets the outcome. You may close this page.";
            page::say(StatusCode::OK, state.name(), "You are done", text)
        }
        Ok(session) => state.ask_person(&session, StatusCode::OK, ""),
        Err(page) => *page,
    }
}

/// `POST /identity/{id}`: mails a code, or checks one.
pub async fn answer(State(state): State<ApprovalsState>, Segment(id): Segment, body: Body) -> Response {
    let session = match found(&state, &id).await {
        Ok(session) => session,
        Err(page) => return *page,
    };
    let Ok(body) = read_body(body, MAX_FORM_BYTES).await else { return state.bad_form("It is too long.") };
    let code = url::form_urlencoded::parse(&body).find(|(name, _)| name == "code").map(|(_, code)| code.into_owned());
    let now = state.app.clock.now();
    if session.email.is_none() || !session.is_open(now) {
        return state.ask_person(&session, StatusCode::CONFLICT, "");
    }
    let Some(code) = code else { return state.mail_code(&session).await };
    let code: String = code.chars().filter(char::is_ascii_digit).take(20).collect();
    let guessed = session::guess(&state.app.db, session.request_id, &code, now).await;
    // Also if the check was decided before: the process that decided it may have died before it sent the message.
    if !matches!(guessed, Ok(Guess::Wrong { left: 1.. } | Guess::NoCode)) {
        jobs::wake(&state.app.db, &*state.queue, session.request_id).await;
    }
    let latest = match session::load(&state.app.db, session.request_id).await {
        Ok(latest) => latest.unwrap_or(session),
        Err(error) => return state.not_now(&error),
    };
    match guessed {
        Ok(Guess::Right) => state.ask_person(&latest, StatusCode::OK, ""),
        Ok(Guess::Wrong { left }) => {
            state.ask_person(&latest, StatusCode::BAD_REQUEST, &format!("The code is wrong. Attempts left: {left}."))
        }
        Ok(Guess::NoCode) => {
            state.ask_person(&latest, StatusCode::BAD_REQUEST, "The code has expired. Request a new one.")
        }
        Ok(Guess::Decided) => state.ask_person(&latest, StatusCode::CONFLICT, ""),
        Err(error) => state.not_now(&error),
    }
}

/// `POST /v1/identity/webhook`: something happened to a vendor's session. The job then reads the session from the vendor,
/// so events may come twice, late and in any order.
pub async fn event(State(state): State<ApprovalsState>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        limits::take(&state.app, Subject::source(), Class::Open).await?;
        let body = read_body(body, MAX_EVENT_BYTES).await?;
        let secret = state.app.config.identity_webhook_secret.as_ref().ok_or(ApiError::NotFound)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        let signed = headers.get("stripe-signature").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !signature::is_signed(&key, signed, &body, state.app.clock.now()) {
            return Err(ApiError::Unauthorized);
        }
        if let Some(request_id) = vendor::request_of(&body)
            && session::load(&state.app.db, request_id).await?.is_some()
        {
            jobs::wake(&state.app.db, &*state.queue, request_id).await;
        }
        Ok(private_json(StatusCode::OK, &json!({"received": true})))
    };
    respond(answer.await)
}

async fn found(state: &ApprovalsState, id: &str) -> Result<Session, Box<Response>> {
    if let Err(refused) = limits::take(&state.app, Subject::source(), Class::Open).await {
        return Err(Box::new(respond(Err(refused))));
    }
    let Ok(request_id) = id.parse::<RequestId>() else { return Err(Box::new(state.no_such_link())) };
    match session::load(&state.app.db, request_id).await {
        Ok(Some(session)) => Ok(session),
        Ok(None) => Err(Box::new(state.no_such_link())),
        Err(error) => Err(Box::new(state.not_now(&error))),
    }
}

impl ApprovalsState {
    fn ask_person(&self, session: &Session, status: StatusCode, note: &str) -> Response {
        let now = self.app.clock.now();
        if let (true, Some(url)) = (session.is_open(now), &session.vendor_url)
            && let Ok(to) = HeaderValue::from_str(url)
        {
            let mut response = page::say(
                StatusCode::SEE_OTHER,
                self.name(),
                "Continue",
                "Your browser opens the next page automatically.",
            );
            response.headers_mut().insert(header::LOCATION, to);
            return response;
        }
        let title = if session.is_open(now) { "An agent requests a confirmation" } else { "This check has ended" };
        // The verdict comes before the details. Who has to answer first reads what about.
        let (verdict, form) = if !session.is_open(now) {
            let status = session.decision.as_ref().map_or("expired", |decision| decision.status.as_str());
            (format!("<p class=verdict>{}</p>", escaped(status)), String::new())
        } else {
            let to = session.email.as_deref().map(masked).unwrap_or_default();
            let mail = format!(
                "<form method=post><p>A code is mailed to {}.</p><button class=no>Mail me a code</button></form>",
                escaped(&to)
            );
            let code = "<form method=post><p><label for=code>The code</label> <input id=code name=code inputmode=numeric \
                        autocomplete=one-time-code maxlength=20 required></p><button class=yes>Confirm</button></form>";
            let form = match session.sent {
                0 => mail,
                sent if sent < MAX_CODES => format!("{code}{mail}"),
                _ => code.to_owned(),
            };
            (String::new(), form)
        };
        let (wants, proves) = match session.vendor_session {
            Some(_) => ("An agent wants to know who you are. Its reason:", ""),
            None => (
                "An agent wants to know that you can read mail to this address. Its reason:",
                "<p><small>Confirming proves only that you can read mail to this address. If you do not know what \
                 this is about, close the page.</small></p>",
            ),
        };
        let note = if note.is_empty() { String::new() } else { format!("<p class=verdict>{}</p>", escaped(note)) };
        let main = format!(
            "<h1>{title}</h1>{note}{verdict}<p>{wants}</p><p class=quote>{}</p>\
             <dl><dt>Agent</dt><dd>{}</dd><dt>Until</dt><dd>{}</dd></dl>{form}{proves}",
            escaped(&session.purpose),
            session.agent,
            hours::for_people(session.expires_at, None),
        );
        page::page(status, self.name(), title, &main)
    }

    async fn mail_code(&self, session: &Session) -> Response {
        let now = self.app.clock.now();
        let number = u64::from_be_bytes(digest::random::<8>()) % 100_000_000;
        let code = format!("{number:08}");
        match session::new_code(&self.app.db, session, &code, now).await {
            Ok(true) => {}
            Ok(false) => return self.ask_person(session, StatusCode::CONFLICT, "No more codes are mailed."),
            Err(error) => return self.not_now(&error),
        }
        let letter = Letter {
            to: session.email.clone().unwrap_or_default(),
            subject: SUBJECT.to_owned(),
            id: format!("identity-{}-{}", session.request_id, session.sent + 1),
            text: format!(
                "Your code is {code}. It is valid for 15 minutes, on the page where you requested it.\n\n\
                 If you did not request a code, do nothing, and do not pass it on.\n"
            ),
            // It paid for the check.
            proven: Some(session.agent),
        };
        let sent = self.notices.mailer().send(&self.app.db, &letter, now).await;
        let (status, note) = match &sent {
            Ok(()) | Err(MailError::Silent) => (StatusCode::OK, "The code is on its way."),
            Err(MailError::TooMany) => (StatusCode::CONFLICT, "This address got too many mails today."),
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "The mail could not be sent. Try again shortly."),
        };
        if let Err(error) = &sent {
            platform::http::log::failure("a code could not be mailed", error);
        }
        let mut after = session.clone();
        after.sent += 1;
        self.ask_person(&after, status, note)
    }
}

/// Shows enough of an address for its owner to recognise it.
fn masked(email: &str) -> String {
    let (local, domain) = email.split_once('@').unwrap_or((email, ""));
    format!("{}***@{domain}", local.chars().next().unwrap_or_default())
}
