//! Requests to AWS services without an SDK client, for [`Outbound`](super::Outbound).

use http::header::HeaderMap;

use super::Ask;
use crate::store::StoreError;
use crate::store::aws::SignedHttp;

/// The headers that a signature adds. The session token is there only with temporary credentials.
const SIGNATURE: [&str; 3] = ["authorization", "x-amz-date", "x-amz-security-token"];

/// The request with AWS Signature Version 4, for the server at `origin`. `service`: the service's signing name. The signature
/// covers method, path, body, content type and the headers that `ask` has. `signer` only signs; it sends nothing.
pub fn signed(signer: &SignedHttp, service: &str, origin: &str, ask: Ask) -> Result<Ask, StoreError> {
    let content_type = ask.body.as_ref().map(|(content_type, _)| ("content-type", *content_type));
    let own = ask.headers.iter().map(|(name, value)| (*name, value.expose()));
    let headers: Vec<(&str, &str)> = content_type.into_iter().chain(own).collect();
    let bytes = ask.body.as_ref().map(|(_, bytes)| bytes.clone()).unwrap_or_default();
    let request = signer.sign(service, ask.method.as_str(), &format!("{origin}{}", ask.path), &headers, bytes)?;
    Ok(SIGNATURE.into_iter().fold(ask, |ask, name| match text_of(request.headers(), name) {
        Some(value) => ask.header(name, value),
        None => ask,
    }))
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
