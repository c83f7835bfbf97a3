//! JSON-RPC over HTTP, as far as development and tests need it.
//!
//! The node is local and uses plain HTTP, so HTTP/1.0 with one connection for each call is enough. A client library would
//! require a TLS provider although nothing is encrypted.

use std::{fmt, io, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// Timeout of one call. Reading the state of a chain with tens of thousands of blocks takes seconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long [`Rpc::receipt`] waits for a block; longer than any sensible block time.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(30);

/// A node's address; calls are independent of each other.
#[derive(Clone, Debug)]
pub struct Rpc {
    url: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RpcError {
    /// No answer, or not JSON-RPC.
    Transport(String),
    /// The node answered with an error.
    Refused { method: String, code: i64, message: String, data: Option<String> },
    /// No block included the transaction in time.
    NotMined { hash: String },
}

impl Rpc {
    /// `url` is an origin such as `http://127.0.0.1:8545`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into() }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// One call; `params` is the list of parameters, such as `json!([address, "latest"])`.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let lost = |reason: String| RpcError::Transport(format!("{method} at {}: {reason}", self.url));
        let answer = timeout(CALL_TIMEOUT, self.post(request.as_bytes())).await;
        let answer = answer.map_err(|_| lost(format!("no answer within {CALL_TIMEOUT:?}")))?;
        let answer = answer.map_err(|error| lost(error.to_string()))?;
        let mut answer: Value = serde_json::from_slice(&answer).map_err(|error| lost(error.to_string()))?;
        if let Some(error) = answer.get("error") {
            return Err(RpcError::Refused {
                method: method.to_owned(),
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: error["data"].as_str().map(str::to_owned),
            });
        }
        Ok(answer["result"].take())
    }

    async fn post(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        let host = self.url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let host = host.ok_or_else(|| io::Error::other("only plain HTTP is supported"))?;
        let mut stream = TcpStream::connect(host).await?;
        let head = format!(
            "POST / HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;

        let end_of_head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let end_of_head = end_of_head.ok_or_else(|| io::Error::other("the answer is not HTTP"))?;
        let head = String::from_utf8_lossy(&answer[..end_of_head]).into_owned();
        let status = head.lines().next().unwrap_or_default();
        if status.split(' ').nth(1) != Some("200") {
            return Err(io::Error::other(status));
        }
        answer.drain(..end_of_head + 4);
        Ok(answer)
    }

    /// A call whose result is a hexadecimal number.
    pub async fn quantity(&self, method: &str, params: Value) -> Result<u128, RpcError> {
        let result = self.call(method, params).await?;
        parse_quantity(&result).ok_or_else(|| RpcError::Transport(format!("{method}: {result} is not a number")))
    }

    /// Calls a contract without a transaction; the result is hexadecimal.
    pub async fn eth_call(&self, to: &str, data: &str) -> Result<String, RpcError> {
        let result = self.call("eth_call", json!([{"to": to, "data": data}, "latest"])).await?;
        Ok(result.as_str().unwrap_or_default().to_owned())
    }

    /// Sends a transaction from one of the node's own accounts and waits for its receipt. It is first tried with
    /// `eth_call`, so one that would revert is refused with the contract's reason. A transaction with `gas` is sent without
    /// this: the node mines it even if it reverts, and the receipt's status shows that.
    pub async fn send(&self, transaction: Value) -> Result<Value, RpcError> {
        if transaction.get("gas").is_none() {
            self.call("eth_call", json!([transaction, "latest"])).await?;
        }
        let hash = self.call("eth_sendTransaction", json!([transaction])).await?;
        self.receipt(hash.as_str().unwrap_or_default()).await
    }

    /// Waits for the receipt of a transaction. Even with instant mining it exists a moment after the hash.
    pub async fn receipt(&self, hash: &str) -> Result<Value, RpcError> {
        let deadline = Instant::now() + RECEIPT_TIMEOUT;
        let mut pause = Duration::from_millis(1);
        loop {
            let receipt = self.call("eth_getTransactionReceipt", json!([hash])).await?;
            if !receipt.is_null() {
                return Ok(receipt);
            }
            if Instant::now() > deadline {
                return Err(RpcError::NotMined { hash: hash.to_owned() });
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }
}

impl RpcError {
    /// The text of a Solidity `require` or `revert`, if the call was refused for one.
    pub fn revert_reason(&self) -> Option<String> {
        let Self::Refused { data: Some(data), .. } = self else {
            return None;
        };
        // Error(string): selector, offset, length, text.
        let words = data.strip_prefix("0x08c379a0")?;
        let length = usize::from_str_radix(words.get(64..128)?, 16).ok()?;
        let text = crate::contracts::unhex(words.get(128..128 + length.checked_mul(2)?)?)?;
        String::from_utf8(text).ok()
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(text) => f.write_str(text),
            Self::Refused { method, code, message, .. } => write!(f, "{method}: {message} ({code})"),
            Self::NotMined { hash } => write!(f, "no block took transaction {hash} within {RECEIPT_TIMEOUT:?}"),
        }
    }
}

impl std::error::Error for RpcError {}

pub(crate) fn parse_quantity(value: &Value) -> Option<u128> {
    u128::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(data: &str) -> RpcError {
        RpcError::Refused { method: "eth_call".into(), code: 3, message: String::new(), data: Some(data.into()) }
    }

    #[test]
    fn revert_reason_is_read_from_the_data() {
        let data = format!("0x08c379a0{:064x}{:064x}{:0<64}", 32, 5, "68656c6c6f");
        assert_eq!(refused(&data).revert_reason().as_deref(), Some("hello"));
    }

    #[test]
    fn revert_reason_of_anything_else_is_none() {
        let too_long = format!("0x08c379a0{:064x}{:064x}{:0<64}", 32, 500, "68656c6c6f");
        let absurd = format!("0x08c379a0{:064x}{}{:0<64}", 32, "f".repeat(64), "68656c6c6f");
        for data in ["", "0x", "0x08c379a0", "0x4e487b71", &too_long, &absurd] {
            assert_eq!(refused(data).revert_reason(), None, "{data}");
        }
    }
}
