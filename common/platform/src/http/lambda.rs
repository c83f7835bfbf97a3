//! A router as a Lambda function behind an HTTP API of API Gateway (payload format 2.0): an event becomes a request, the
//! response becomes the JSON that the function returns.
//!
//! `lambda_http` turns the event into a request. It takes `rawPath` for a path as it was sent, and gives back only bodies that
//! are text by their content type; so the event is mended before ([`mend`]), and the answer is written here:
//!
//! - A body is text if it is UTF-8, whatever its content type, and base64 otherwise: every byte arrives as it was.
//! - A body whose text would grow more by JSON's escapes than by base64 goes as base64.
//! - An answer that Lambda would not return is refused here, where it can be logged and said in JSON.

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

/// Largest event that Lambda takes and, but for a hundred bytes, largest answer it returns
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
pub const MAX_PAYLOAD_BYTES: usize = 6 * 1024 * 1024;
/// Smaller bodies are not measured: no escape makes more than six bytes of one.
const MEASURED_FROM: usize = 512 * 1024;
const TRACE: HeaderName = HeaderName::from_static("x-amzn-trace-id");

/// Serves a router's requests, one after the other, for as long as the process lives.
pub async fn run(router: Router) -> Result<(), lambda_http::Error> {
    let function = service_fn(move |event| {
        let router = router.clone();
        async move { Ok::<_, Infallible>(answer(router, event).await) }
    });
    lambda_runtime::run(function).await
}

/// Answers an event.
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

/// Writes an event's path and query as a client has to send them, so that each is decoded once and nothing in them ends the
/// path or breaks the URI. (`lambda_http` panics over what is no URI.)
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
    // A client may have written anything there; `https` is the default.
    event.headers.remove("x-forwarded-proto");
}

/// A path as a client has to send it, of `rawPath` as API Gateway hands it over.
///
/// An HTTP API decodes the path before it invokes the function: `%23` arrives as `#`, `%40` as `@`, `%20` as a space
/// (events at <https://github.com/honojs/hono/issues/2156> and in <https://github.com/hotsock/voker>, `vokerhttp/testdata`).
/// One escape stays: `%25` arrives as `%25` (ministack 1.5.33, `decode_http_api_path`); other reports have it decoded too.
/// Both are read: if every `%` begins `%25`, it is the escape; a `%` before anything else can only be a decoded one. What
/// the two take for different names has `%25` in the name itself, and `work::check_file_path` refuses those.
fn encoded_path(raw: &str) -> String {
    let stays = raw.split('%').skip(1).all(|rest| rest.starts_with("25"));
    escaped(raw, |byte| byte == b'/' || byte == b'%' && stays || is_plain(byte))
}

/// Whether a byte needs no escape in a path segment.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

/// Whether `http::Uri` takes a byte in a query.
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
    // Bodies are in memory already: nothing that is sent here streams.
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

/// Headers with one line each: an answer in format 2.0 has one text for a name.
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

/// How many bytes a text has as a JSON string.
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
    fn paths_are_escaped_so_that_one_decoding_gives_what_was_sent() {
        for (raw, path) in [
            ("/v1/soul/jobs/job_1/files/a b#c.txt", "/v1/soul/jobs/job_1/files/a%20b%23c.txt"),
            ("/files/täglich\\.csv ", "/files/t%C3%A4glich%5C.csv%20"),
            // However the gateway hands over what was sent as `100%25.txt` and `%2541.txt`.
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
    fn what_a_text_takes_as_json_is_counted_as_it_is_written() {
        let all: String = (0..0x250).filter_map(char::from_u32).collect();
        for text in ["", "plain", all.as_str()] {
            assert_eq!(written_len(text), serde_json::to_string(text).unwrap().len(), "{text:?}");
            assert_eq!(base64_len(text.len()), 2 + base::encoding::base64_standard(text.as_bytes()).len());
        }
    }
}
