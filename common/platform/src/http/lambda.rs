//! Runs a router as a Lambda function behind an HTTP API of API Gateway (payload format 2.0): an event becomes a request,
//! and the response becomes the JSON that the function returns.
//!
//! `lambda_http` converts the event, but it takes `rawPath` for a path as the client sent it, and it returns a body as text
//! only for some content types. So [`mend`] corrects the event first, and the response is written here:
//!
//! - A body that is UTF-8 goes as text, whatever its content type; any other goes as base64. Every byte arrives unchanged.
//! - A text that is shorter in base64 than with its JSON escapes goes as base64.
//! - A response that is too large for Lambda is replaced by a JSON error and logged.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::BodyExt;
use lambda_http::aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use lambda_http::lambda_runtime::{self, LambdaEvent, service_fn};
use lambda_http::request::LambdaRequest;
use tower::ServiceExt;

use super::ApiError;
use crate::store::StoreError;

/// Largest event Lambda accepts and, within a hundred bytes, largest response it returns
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
pub const MAX_PAYLOAD_BYTES: usize = 6 * 1024 * 1024;
/// Smaller bodies always fit, so they are not measured: JSON escaping makes a body at most six times as long.
const MEASURED_FROM: usize = 512 * 1024;
const TRACE: HeaderName = HeaderName::from_static("x-amzn-trace-id");

/// Serves requests one after the other until the process ends.
pub async fn run(router: Router) -> Result<(), lambda_http::Error> {
    let function = service_fn(move |event| {
        let router = router.clone();
        async move { Ok::<_, Infallible>(answer(router, event).await) }
    });
    lambda_runtime::run(function).await
}

pub async fn answer(router: Router, event: LambdaEvent<LambdaRequest>) -> ApiGatewayV2httpResponse {
    let LambdaEvent { mut payload, context } = event;
    if let LambdaRequest::ApiGatewayV2(event) = &mut payload {
        mend(event);
    }
    let mut request = http::Request::<lambda_http::Body>::from(payload).map(Body::new);
    if let Some(Ok(trace)) = context.xray_trace_id.map(HeaderValue::try_from) {
        request.headers_mut().insert(TRACE, trace);
    }
    let response = router.oneshot(request).await.unwrap_or_else(|never| match never {});
    let returned = written(response).await;
    if returned.body.as_ref().is_none_or(|body| body.len() < MEASURED_FROM) {
        return returned;
    }
    let cause = match serde_json::to_string(&returned) {
        Ok(json) if json.len() <= MAX_PAYLOAD_BYTES => return returned,
        Ok(json) => StoreError::new(format_args!("an answer has {} bytes, more than Lambda returns", json.len())),
        Err(error) => StoreError::new(error),
    };
    written(ApiError::Unavailable(cause).into_response()).await
}

/// Escapes an event's path and query as a client has to send them, so that each is decoded exactly once and no character in
/// them ends the path or breaks the URI (`lambda_http` panics on an invalid URI).
fn mend(event: &mut ApiGatewayV2httpRequest) {
    event.raw_path = event.raw_path.take().map(|path| encoded_path(&path));
    if let Some(query) = &mut event.raw_query_string
        && !query.bytes().all(stands_in_a_query)
    {
        *query = escaped(query, stands_in_a_query);
    }
    let is_host =
        |host: &HeaderValue| host.to_str().is_ok_and(|host| url::Url::parse(&format!("https://{host}")).is_ok());
    if event.headers.get(header::HOST).is_some_and(|host| !is_host(host)) {
        event.headers.remove(header::HOST);
    }
    // The client may have sent any value; without the header `https` is assumed.
    event.headers.remove("x-forwarded-proto");
}

/// Escapes `rawPath`, which API Gateway hands over decoded, as a client has to send it.
///
/// An HTTP API decodes the path before it invokes the function: `%23` arrives as `#`, `%40` as `@`, `%20` as a space
/// (events at <https://github.com/honojs/hono/issues/2156> and in <https://github.com/hotsock/voker>,
/// `vokerhttp/testdata`). Sources differ about `%25`: it arrives unchanged in one (ministack 1.5.33,
/// `decode_http_api_path`), decoded in others. Both are handled: if every `%` begins a `%25`, the path is still escaped;
/// any other `%` must be a decoded one. The two readings differ only for names that contain `%25` themselves, and
/// `work::check_file_path` refuses those.
fn encoded_path(raw: &str) -> String {
    let stays = raw.split('%').skip(1).all(|rest| rest.starts_with("25"));
    escaped(raw, |byte| byte == b'/' || byte == b'%' && stays || is_plain(byte))
}

/// Whether a byte needs no escape in a path segment (RFC 3986 `pchar`).
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

/// Whether `http::Uri` accepts a byte in a query.
fn stands_in_a_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"#<>".contains(&byte)
}

fn escaped(text: &str, stands: impl Fn(u8) -> bool) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut escaped, byte| {
        match stands(byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
        escaped
    })
}

async fn written(response: Response) -> ApiGatewayV2httpResponse {
    let (mut parts, body) = response.into_parts();
    // Bodies are in memory already: no response streams.
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut returned = ApiGatewayV2httpResponse::default();
    returned.status_code = i64::from(parts.status.as_u16());
    let cookies = parts.headers.get_all(header::SET_COOKIE).iter();
    returned.cookies = cookies.filter_map(|cookie| cookie.to_str().ok()).map(str::to_owned).collect();
    parts.headers.remove(header::SET_COOKIE);
    returned.headers = merged(&parts.headers);
    let body = match String::from_utf8(bytes.into()) {
        Ok(text) if text.is_empty() => None,
        Ok(text) if text.len() < MEASURED_FROM || written_len(&text) <= base64_len(text.len()) => {
            Some(lambda_http::Body::Text(text))
        }
        Ok(text) => Some(lambda_http::Body::Binary(text.into_bytes())),
        Err(other) => Some(lambda_http::Body::Binary(other.into_bytes())),
    };
    returned.is_base64_encoded = matches!(body, Some(lambda_http::Body::Binary(_)));
    returned.body = body;
    returned
}

/// One line for each header name, as payload format 2.0 needs it.
fn merged(headers: &HeaderMap) -> HeaderMap {
    let mut merged = HeaderMap::with_capacity(headers.keys_len());
    for name in headers.keys() {
        let lines: Vec<&str> = headers.get_all(name).iter().filter_map(|line| line.to_str().ok()).collect();
        if let Ok(line) = HeaderValue::from_str(&lines.join(", ")) {
            merged.insert(name, line);
        }
    }
    merged
}

/// Length of a text as a JSON string, in bytes, with its quotes.
pub fn written_len(text: &str) -> usize {
    let of = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    2 + text.bytes().map(of).sum::<usize>()
}

fn base64_len(bytes: usize) -> usize {
    2 + bytes.div_ceil(3) * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_paths_decode_to_what_was_sent() {
        for (raw, path) in [
            ("/v1/soul/jobs/job_1/files/a b#c.txt", "/v1/soul/jobs/job_1/files/a%20b%23c.txt"),
            ("/files/täglich\\.csv ", "/files/t%C3%A4glich%5C.csv%20"),
            // Both forms in which the gateway may hand over `100%25.txt` and `%2541.txt`.
            ("/files/100%25.txt", "/files/100%25.txt"),
            ("/files/100%.txt", "/files/100%25.txt"),
            ("/files/%2541.txt", "/files/%2541.txt"),
            ("/files/%41.txt", "/files/%2541.txt"),
            ("/files/%", "/files/%25"),
            ("/a?b", "/a%3Fb"),
            ("/x/@id/(1)+2;3=4", "/x/@id/(1)+2;3=4"),
        ] {
            assert_eq!(encoded_path(raw), path, "{raw}");
        }
    }

    #[test]
    fn json_length_equals_the_serialised_length() {
        let all: String = (0..0x250).filter_map(char::from_u32).collect();
        for text in ["", "plain", all.as_str()] {
            assert_eq!(written_len(text), serde_json::to_string(text).unwrap().len(), "{text:?}");
            assert_eq!(base64_len(text.len()), 2 + base::encoding::base64_standard(text.as_bytes()).len());
        }
    }
}
