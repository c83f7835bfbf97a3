//! Shows the sites that agents have built, on a host of their own: another host is another origin, so nothing that a brief
//! brings onto a page can act for the service. No cookies, no scripts, no caller's identity.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use gate::app::App;
use gate::limits::{self, Class, Subject};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use platform::http::{ApiError, limit, log, read_body};
use platform::store::Queue;
use tools_build::leads::{self, Form, Taken};
use tools_build::serve::{self, POLICY, Served, Traffic, rooted};
use tools_build::site::{self, Site};
use website::copy::words::{dir, words};

/// Largest message of a form.
const MAX_FORM_BYTES: usize = 32 * 1024;

#[derive(Clone)]
pub struct Hosting {
    app: App,
    queue: Arc<dyn Queue>,
    traffic: Arc<Traffic>,
}

impl Hosting {
    /// `queue`: of the worker, which puts messages of forms into mailboxes.
    pub fn new(app: App, queue: Arc<dyn Queue>) -> Hosting {
        Hosting { app, queue, traffic: Arc::default() }
    }
}

pub fn router(hosting: Hosting) -> Router {
    Router::new().fallback(answer).with_state(hosting).layer(middleware::from_fn(around))
}

/// One log line for each request, and the headers that every answer has.
async fn around(request: Request, next: Next) -> Response {
    let limited = async |request| limit::headers(request, async |request| next.run(request).await).await;
    let mut response = log::requests(request, limited).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "strict-origin-when-cross-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn answer(State(hosting): State<Hosting>, request: Request) -> Response {
    let done = match *request.method() {
        Method::GET | Method::HEAD => show(&hosting, request.uri().path()).await,
        Method::POST => take(&hosting, request).await,
        _ => Ok(text(StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD, and POST of a form")),
    };
    done.unwrap_or_else(|error| match &error {
        ApiError::RateLimited { .. } => text(StatusCode::TOO_MANY_REQUESTS, "too many requests, try again later"),
        _ => {
            log::failure("a site could not be shown", &error.message());
            text(StatusCode::SERVICE_UNAVAILABLE, "this page cannot be shown now, try again later")
        }
    })
}

async fn show(hosting: &Hosting, path: &str) -> Result<Response, ApiError> {
    let app = &hosting.app;
    let (status, content_type, bytes, max_age, build) = match serve::serve(&app.db, &*app.blobs, path).await? {
        Served::File { content_type, bytes, max_age_secs, build } => {
            (StatusCode::OK, content_type, bytes, max_age_secs, build)
        }
        Served::Missing { bytes, build } => (StatusCode::NOT_FOUND, "text/html; charset=utf-8", bytes, 60, build),
        Served::Moved(to) => {
            let to = HeaderValue::from_str(&to).map_err(|_| ApiError::NotFound)?;
            return Ok((StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, to)]).into_response());
        }
        Served::Gone => return Ok(text(StatusCode::GONE, "this site is no longer here")),
        Served::Nothing => return Ok(text(StatusCode::NOT_FOUND, "there is no such site")),
    };
    if !hosting.traffic.take(&app.db, build, bytes.len(), app.clock.now()).await? {
        return Ok(text(
            StatusCode::SERVICE_UNAVAILABLE,
            "this site has been visited too much today, try again tomorrow",
        ));
    }
    let cache = format!("public, max-age={max_age}");
    let headers = [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, cache.as_str())];
    Ok((status, headers, bytes).into_response())
}

/// What a visitor wrote in a site's form.
async fn take(hosting: &Hosting, request: Request) -> Result<Response, ApiError> {
    let app = &hosting.app;
    limits::take(app, Subject::source(), Class::Open).await?;
    let path = request.uri().path().to_owned();
    let Some(slug) = path.strip_prefix('/').and_then(|path| path.strip_suffix("/leads")) else {
        return Ok(text(StatusCode::NOT_FOUND, "there is no such form"));
    };
    let Ok(body) = read_body(request.into_body(), MAX_FORM_BYTES).await else {
        return Ok(text(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long"));
    };
    let mut form = Form::default();
    for (name, value) in url::form_urlencoded::parse(&body) {
        match &*name {
            "name" => form.name = value.into_owned(),
            "email" => form.email = value.into_owned(),
            "message" => form.message = value.into_owned(),
            _ => {}
        }
    }
    let (taken, site) = leads::take(&app.db, &*hosting.queue, slug, &form, app.clock.now()).await?;
    let status = match taken {
        Taken::Queued => StatusCode::OK,
        Taken::NoForm => return Ok(text(StatusCode::NOT_FOUND, "there is no such form")),
        Taken::Unusable => StatusCode::BAD_REQUEST,
        Taken::Full => StatusCode::TOO_MANY_REQUESTS,
    };
    let Some(site) = site else { return Ok(text(status, "")) };
    told(app, &site, status).await
}

/// A page in the site's own look and language that says what became of a message.
async fn told(app: &App, site: &Site, status: StatusCode) -> Result<Response, ApiError> {
    let version = site::load_version(&app.db, site.build, site.version).await?;
    let language = version.map_or_else(|| "en".to_owned(), |version| version.plan.language);
    let words = words(&language);
    let said = if status == StatusCode::OK { words.sent } else { words.not_sent };
    let root = site::ROOT;
    let page = format!(
        "<!doctype html><html lang=\"{language}\" dir=\"{}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{said}</title><link rel=\"stylesheet\" href=\"{root}/style.css\"></head>\
         <body><main><h1>{said}</h1><p><a href=\"{root}/\">{}</a></p></main></body></html>",
        dir(&language),
        words.back_home,
    );
    let content_type = "text/html; charset=utf-8";
    let bytes = rooted(content_type, page.as_bytes(), &format!("/{}", site.slug));
    Ok((status, [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")], bytes).into_response())
}

fn text(status: StatusCode, text: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-store")], text)
        .into_response()
}
