//! Events in the form in which AWS passes them.

use evm::hex0x;
use platform::store::queue::Message;
use serde_json::{Value, json};

const HOST: &str = "abcdefghij.execute-api.us-east-1.amazonaws.com";
const TRACE: &str = "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700";

/// A request of the HTTP API (payload format 2.0).
pub fn http(method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Value {
    let mut event = json!({
        "version": "2.0",
        "routeKey": format!("{method} {path}"),
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "accept": "*/*",
            "accept-encoding": "gzip, deflate, br",
            "content-type": "application/json",
            "host": HOST,
            "user-agent": "x402-fetch/2.27",
            "x-amzn-trace-id": TRACE,
            "x-forwarded-for": "203.0.113.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdefghij",
            "domainName": HOST,
            "domainPrefix": "abcdefghij",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7", "userAgent": "x402-fetch/2.27"},
            "requestId": hex0x(&[7; 8]),
            "routeKey": format!("{method} {path}"),
            "stage": "$default",
            "time": "21/Nov/2026:04:00:00 +0000",
            "timeEpoch": 1795000000000_u64,
        },
        "isBase64Encoded": false,
    });
    for (name, value) in headers {
        event["headers"][name] = json!(value);
    }
    if let Some(body) = body {
        event["body"] = json!(body.to_string());
    }
    event
}

/// The upgrade of a WebSocket connection.
pub fn connect(headers: &[(&str, &str)], connection: &str) -> Value {
    let mut event = json!({
        "headers": {"Host": HOST, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"},
        "multiValueHeaders": {"Host": [HOST]},
        "requestContext": {
            "routeKey": "$connect", "eventType": "CONNECT", "extendedRequestId": connection, "messageDirection": "IN",
            "requestTime": "21/Nov/2026:12:00:00 +0000", "requestTimeEpoch": 1795262400123_u64,
            "connectedAt": 1795262400000_u64, "stage": "live", "identity": {"sourceIp": "203.0.113.7"},
            "requestId": connection, "domainName": HOST, "connectionId": connection, "apiId": "abcdefghij",
        },
        "isBase64Encoded": false,
    });
    for (name, value) in headers {
        event["headers"][name] = json!(value);
    }
    event
}

/// A batch of one message.
pub fn message(message: Option<&Message>) -> Value {
    let body = message.map(Message::to_json).unwrap_or_default();
    json!({"Records": [{
        "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d", "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "body": body, "attributes": {"ApproximateReceiveCount": "1"}, "messageAttributes": {},
        "md5OfBody": "", "eventSource": "aws:sqs", "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:queue",
    }]})
}

/// A batch of one change of the jobs table.
pub fn change(old: &Value, new: &Value) -> Value {
    json!({"Records": [{
        "eventID": "c4ca4238a0b923820dcc509a6f75849b", "eventName": "MODIFY", "eventVersion": "1.1",
        "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/agora-jobs/stream/2026",
        "dynamodb": {
            "ApproximateCreationDateTime": 1795000000, "SequenceNumber": "4421584500000000017450439091",
            "SizeBytes": 1800, "StreamViewType": "NEW_AND_OLD_IMAGES",
            "Keys": {"pk": new["pk"], "sk": new["sk"]}, "NewImage": new, "OldImage": old,
        },
    }]})
}

/// The event of a schedule.
pub fn minute() -> Value {
    json!({
        "version": "0", "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa", "detail-type": "Scheduled Event",
        "source": "aws.events", "account": "123456789012", "time": "2026-11-21T04:00:00Z", "region": "us-east-1",
        "resources": ["arn:aws:events:us-east-1:123456789012:rule/every-minute"], "detail": {},
    })
}
