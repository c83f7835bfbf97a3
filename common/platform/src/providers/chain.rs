//! The chain, over JSON-RPC: balances, authorizations, fees, transactions and their receipts.

use base::clock::Timestamp;
use evm::abi::{self, Argument};
use evm::authorization::Authorization;
use evm::{Address, Word, hex0x, parse_hex0x, parse_word};
use serde_json::{Value, json};

use crate::config::ChainConfig;
use crate::net::PlainHttp;

/// Public endpoints limit the block range of a log query.
const LOG_RANGE_BLOCKS: u64 = 5_000;
/// Maximum number of requests in one batch.
const BATCH: usize = 20;
/// If a node reports no final block, blocks this far below the latest count as final.
const DEEP_BLOCKS: u64 = 64;
/// Gas limit of an `eth_call`.
pub const CALL_GAS: u64 = 500_000;

/// A token contract and a node of its chain.
#[derive(Clone, Debug)]
pub struct Chain {
    http: PlainHttp,
    rpc_url: String,
    pub chain_id: u64,
    token: Address,
}

/// Why a request failed. Only [`ChainError::Reverted`] is a statement about the call; after any other error a retry may
/// succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// No usable response.
    Unavailable(String),
    /// The node refused: rate limit, not synchronised, insufficient funds.
    Rejected { code: i64, message: String },
    /// The call was executed and the contract reverted.
    Reverted(String),
}

impl std::fmt::Display for ChainError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChainError::Unavailable(cause) => write!(f, "the chain's node gave no usable answer: {cause}"),
            ChainError::Rejected { code, message } => write!(f, "the node answered error {code}: {message}"),
            ChainError::Reverted(message) => write!(f, "the contract reverted the call: {message}"),
        }
    }
}

impl std::error::Error for ChainError {}

/// The state of an authorization's nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NonceUse {
    Unused,
    /// Used by exactly this transfer. The text is the transaction's hash.
    ByThisTransfer(String),
    /// Used by another transfer, or cancelled.
    Otherwise,
    /// Used, but the transaction was not found in the blocks searched.
    Untraceable,
}

/// A transaction's receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionReceipt {
    pub succeeded: bool,
    /// Block number.
    pub block: u64,
    pub logs: Vec<Log>,
}

/// The call data of a mined transaction, and its block number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinedCall {
    pub input: Vec<u8>,
    pub block: u64,
}

/// An event log of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub address: Address,
    pub topics: Vec<Word>,
    pub data: Vec<u8>,
    pub index: u64,
    pub transaction: String,
}

/// The latest block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub chain_id: u64,
    pub number: u64,
    /// unix seconds
    pub at_secs: u64,
    /// wei per gas
    pub base_fee: u64,
}

/// Gas limit and prices for a new transaction, and the next account nonce of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    pub gas: u64,
    pub market: Market,
    /// The sender's mined transactions, as in [`Chain::transaction_count`].
    pub sent: u64,
}

/// Current gas prices, in wei per gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Market {
    /// The latest block's.
    pub base_fee: u64,
    /// The node's suggestion (`eth_maxPriorityFeePerGas`).
    pub priority_fee: u64,
}

impl Market {
    /// What a transaction that needs this gas would cost now, in wei.
    pub fn cost_of(self, gas: u64) -> u128 {
        u128::from(gas) * (u128::from(self.base_fee) + u128::from(self.priority_fee))
    }
}

impl Chain {
    pub fn new(http: PlainHttp, config: &ChainConfig) -> Chain {
        Chain { http, rpc_url: config.rpc_url.clone(), chain_id: config.chain_id, token: config.token.address }
    }

    /// An account's token balance, in atomic units.
    pub async fn balance_of(&self, account: Address) -> Result<Word, ChainError> {
        let data = abi::call("balanceOf(address)", &[Argument::Word(account.word())]);
        word(&self.call(self.token, &data, None).await?)
    }

    /// Whether the account is a contract, which verifies its own signatures (EIP-1271).
    pub async fn has_code(&self, account: Address) -> Result<bool, ChainError> {
        let code = self.request("eth_getCode", json!([account.lower(), "latest"])).await?;
        // An unreadable answer must not count as "no code".
        let code = code.as_str().and_then(parse_hex0x).ok_or_else(|| malformed("eth_getCode"))?;
        Ok(!code.is_empty())
    }

    /// Asks a contract wallet whether a signature is valid (EIP-1271).
    pub async fn is_valid_signature(
        &self,
        wallet: Address,
        digest: &Word,
        signature: &[u8],
    ) -> Result<bool, ChainError> {
        const MAGIC: [u8; 4] = [0x16, 0x26, 0xba, 0x7e];
        let data = abi::call("isValidSignature(bytes32,bytes)", &[Argument::Word(*digest), Argument::Bytes(signature)]);
        match self.call(wallet, &data, None).await {
            Ok(answer) => Ok(answer.len() >= 32 && answer.starts_with(&MAGIC)),
            Err(ChainError::Reverted(_)) => Ok(false),
            Err(unknown) => Err(unknown),
        }
    }

    /// Simulates the transfer, sent by `sender`: checks signature, time window, nonce and balance, and says what its gas
    /// would cost, in wei. One round trip.
    pub async fn simulate_transfer(&self, authorization: &Authorization, sender: Address) -> Result<u128, ChainError> {
        let data = hex0x(&transfer_call(authorization));
        // The gas limit keeps a hostile wallet contract from using up the node's time.
        let gas = format!("0x{CALL_GAS:x}");
        let call = json!({"from": sender.lower(), "to": self.token.lower(), "data": data, "gas": gas});
        let answers = self
            .batch(&[
                ("eth_call", json!([call, "latest"])),
                // On the same state: pending, a transfer of the same payment on its way to another deployment reverts it.
                ("eth_estimateGas", json!([call, "latest"])),
                ("eth_getBlockByNumber", json!(["latest", false])),
                ("eth_maxPriorityFeePerGas", json!([])),
            ])
            .await?;
        let [called, gas, block, priority] =
            <[Result<Value, ChainError>; 4]>::try_from(answers).map_err(|_| short_batch())?;
        called?;
        Ok(market(&block?, &priority?)?.cost_of(quantity(&gas?)?))
    }

    /// Gas limit and prices for calling the token with this data, and the sender's account nonce. One round trip. A call
    /// that would revert is an error.
    pub async fn fees_for(&self, data: &[u8], sender: Address) -> Result<Fees, ChainError> {
        let call = json!({"from": sender.lower(), "to": self.token.lower(), "data": hex0x(data)});
        let answers = self
            .batch(&[
                ("eth_estimateGas", json!([call])),
                ("eth_getBlockByNumber", json!(["latest", false])),
                ("eth_maxPriorityFeePerGas", json!([])),
                ("eth_getTransactionCount", json!([sender.lower(), "latest"])),
            ])
            .await?;
        let [gas, block, priority, sent] =
            <[Result<Value, ChainError>; 4]>::try_from(answers).map_err(|_| short_batch())?;
        Ok(Fees { gas: quantity(&gas?)?, market: market(&block?, &priority?)?, sent: quantity(&sent?)? })
    }

    /// Current gas prices.
    pub async fn market(&self) -> Result<Market, ChainError> {
        let asked = [("eth_getBlockByNumber", json!(["latest", false])), ("eth_maxPriorityFeePerGas", json!([]))];
        let answers = self.batch(&asked).await?;
        let [block, priority] = <[Result<Value, ChainError>; 2]>::try_from(answers).map_err(|_| short_batch())?;
        market(&block?, &priority?)
    }

    /// Balance in the chain's own currency, in wei.
    pub async fn native_balance(&self, account: Address) -> Result<u128, ChainError> {
        let balance = self.request("eth_getBalance", json!([account.lower(), "latest"])).await?;
        let digits = balance.as_str().and_then(|text| text.strip_prefix("0x"));
        digits.and_then(|digits| u128::from_str_radix(digits, 16).ok()).ok_or_else(|| malformed("eth_getBalance"))
    }

    /// The node's chain id and latest block.
    pub async fn head(&self) -> Result<Head, ChainError> {
        let asked = [("eth_chainId", json!([])), ("eth_getBlockByNumber", json!(["latest", false]))];
        let answers = self.batch(&asked).await?;
        let [chain_id, block] = <[Result<Value, ChainError>; 2]>::try_from(answers).map_err(|_| short_batch())?;
        let block = block?;
        Ok(Head {
            chain_id: quantity(&chain_id?)?,
            number: quantity(&block["number"])?,
            at_secs: quantity(&block["timestamp"])?,
            base_fee: quantity(&block["baseFeePerGas"]).unwrap_or_default(),
        })
    }

    pub async fn block_number(&self) -> Result<u64, ChainError> {
        quantity(&self.request("eth_blockNumber", json!([])).await?)
    }

    /// Whether a transaction moved exactly this amount of our token from one account to another.
    pub fn moved(&self, receipt: &TransactionReceipt, from: Address, to: Address, value: &Word) -> bool {
        let moved = [abi::event(TRANSFER), from.word(), to.word()];
        receipt.succeeded
            && receipt.logs.iter().any(|log| log.address == self.token && log.topics == moved && log.data == value)
    }

    /// The transaction with this account nonce of `from` that moved `value` of our token to `to`, in block `since` or
    /// later. `None` if that nonce was used for something else.
    pub async fn transfer_under(
        &self,
        nonce: u64,
        from: Address,
        to: Address,
        value: &Word,
        since: u64,
    ) -> Result<Option<String>, ChainError> {
        let latest = self.block_number().await?;
        let mut first = since;
        while first <= latest {
            let last = latest.min(first.saturating_add(LOG_RANGE_BLOCKS - 1));
            let filter = json!({
                "address": self.token.lower(), "fromBlock": format!("0x{first:x}"), "toBlock": format!("0x{last:x}"),
                "topics": [hex0x(&abi::event(TRANSFER)), hex0x(&from.word()), hex0x(&to.word())],
            });
            for log in logs(&self.request("eth_getLogs", json!([filter])).await?)? {
                if log.data != value {
                    continue;
                }
                let sent = self.request("eth_getTransactionByHash", json!([log.transaction])).await?;
                if sent.is_null() {
                    // The log came from another node than this answer. Skipping it could report a payout that arrived as
                    // not made.
                    return Err(malformed("eth_getTransactionByHash"));
                }
                let by = sent["from"].as_str().and_then(|from| from.parse::<Address>().ok());
                if by == Some(from) && quantity(&sent["nonce"])? == nonce {
                    return Ok(Some(log.transaction));
                }
            }
            first = last + 1;
        }
        Ok(None)
    }

    /// Number of mined transactions of the account: its next account nonce if none are pending.
    pub async fn transaction_count(&self, account: Address) -> Result<u64, ChainError> {
        let count = self.request("eth_getTransactionCount", json!([account.lower(), "latest"])).await?;
        quantity(&count)
    }

    /// The account nonce after all mined and pending transactions.
    pub async fn next_free_nonce(&self, account: Address) -> Result<u64, ChainError> {
        let count = self.request("eth_getTransactionCount", json!([account.lower(), "pending"])).await?;
        quantity(&count)
    }

    /// Sends a signed transaction to the node. A transaction the node already has is not an error.
    pub async fn broadcast(&self, raw: &[u8]) -> Result<(), ChainError> {
        match self.request("eth_sendRawTransaction", json!([hex0x(raw)])).await {
            Err(ChainError::Rejected { message, .. }) if is_already_known(&message) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    /// Whether the node knows the transaction, mined or pending.
    pub async fn knows_transaction(&self, hash: &str) -> Result<bool, ChainError> {
        Ok(!self.request("eth_getTransactionByHash", json!([hash])).await?.is_null())
    }

    /// The call data of a mined transaction.
    pub async fn mined(&self, hash: &str) -> Result<MinedCall, ChainError> {
        let sent = self.request("eth_getTransactionByHash", json!([hash])).await?;
        // Null or without a block: this answer comes from another node than the one that reported it mined.
        let input =
            sent["input"].as_str().and_then(parse_hex0x).ok_or_else(|| malformed("eth_getTransactionByHash"))?;
        Ok(MinedCall { input, block: quantity(&sent["blockNumber"])? })
    }

    /// The timestamp of a block.
    pub async fn block_time(&self, number: u64) -> Result<Timestamp, ChainError> {
        let block = self.request("eth_getBlockByNumber", json!([format!("0x{number:x}"), false])).await?;
        let secs = i64::try_from(quantity(&block["timestamp"])?).map_err(|_| malformed("eth_getBlockByNumber"))?;
        Ok(Timestamp::from_secs(secs))
    }

    /// The receipt; `None` while the transaction is not mined.
    pub async fn receipt(&self, hash: &str) -> Result<Option<TransactionReceipt>, ChainError> {
        receipt(&self.request("eth_getTransactionReceipt", json!([hash])).await?)
    }

    /// The receipts of several transactions, in batches.
    pub async fn receipts(&self, hashes: &[String]) -> Result<Vec<Option<TransactionReceipt>>, ChainError> {
        let mut receipts = Vec::with_capacity(hashes.len());
        for hashes in hashes.chunks(BATCH) {
            let asked: Vec<_> = hashes.iter().map(|hash| ("eth_getTransactionReceipt", json!([hash]))).collect();
            for answer in self.batch(&asked).await? {
                receipts.push(receipt(&answer?)?);
            }
        }
        Ok(receipts)
    }

    /// The last final block: as the node reports it, or `DEEP_BLOCKS` below the latest.
    pub async fn last_final_block(&self) -> Result<u64, ChainError> {
        match self.request("eth_getBlockByNumber", json!(["finalized", false])).await {
            Ok(block) if !block.is_null() => quantity(&block["number"]),
            // The node does not support the tag.
            Ok(_) | Err(ChainError::Rejected { .. }) => Ok(self.block_number().await?.saturating_sub(DEEP_BLOCKS)),
            Err(error) => Err(error),
        }
    }

    /// The first of these transactions that is mined, with its receipt. If they share an account nonce, it is the only one.
    pub async fn first_receipt(&self, hashes: &[String]) -> Result<Option<(String, TransactionReceipt)>, ChainError> {
        for hash in hashes {
            if let Some(receipt) = self.receipt(hash).await? {
                return Ok(Some((hash.clone(), receipt)));
            }
        }
        Ok(None)
    }

    /// Payer and nonce of every authorization of our token that a transaction used.
    pub async fn authorizations_in(&self, hash: &str) -> Result<Vec<(Address, Word)>, ChainError> {
        let Some(receipt) = self.receipt(hash).await? else { return Ok(Vec::new()) };
        let used = abi::event(AUTHORIZATION_USED);
        let ours = receipt.logs.iter().filter(|log| log.address == self.token && log.topics.first() == Some(&used));
        Ok(ours.filter_map(|log| Some((Address::from_word(log.topics.get(1)?)?, *log.topics.get(2)?))).collect())
    }

    /// The state of an authorization's nonce. Searches back `ranges` times 5,000 blocks for the transaction.
    pub async fn nonce_use(&self, authorization: &Authorization, ranges: u64) -> Result<NonceUse, ChainError> {
        let arguments = [Argument::Word(authorization.from.word()), Argument::Word(authorization.nonce)];
        let state = self.call(self.token, &abi::call("authorizationState(address,bytes32)", &arguments), None).await?;
        if word(&state)? == [0; 32] {
            return Ok(NonceUse::Unused);
        }
        let latest = quantity(&self.request("eth_blockNumber", json!([])).await?)?;
        let mut to = latest;
        for _ in 0..ranges {
            let from = to.saturating_sub(LOG_RANGE_BLOCKS - 1);
            if let Some(found) = self.nonce_use_in(authorization, from, to).await? {
                return Ok(found);
            }
            if from == 0 {
                break;
            }
            to = from - 1;
        }
        Ok(NonceUse::Untraceable)
    }

    async fn nonce_use_in(
        &self,
        authorization: &Authorization,
        from: u64,
        to: u64,
    ) -> Result<Option<NonceUse>, ChainError> {
        let (used, cancelled) = (abi::event(AUTHORIZATION_USED), abi::event(AUTHORIZATION_CANCELED));
        let filter = json!({
            "address": self.token.lower(), "fromBlock": format!("0x{from:x}"), "toBlock": format!("0x{to:x}"),
            "topics": [[hex0x(&used), hex0x(&cancelled)], hex0x(&authorization.from.word()), hex0x(&authorization.nonce)],
        });
        let found = logs(&self.request("eth_getLogs", json!([filter])).await?)?;
        let Some(log) = found.first() else { return Ok(None) };
        if log.topics.first() == Some(&cancelled) {
            return Ok(Some(NonceUse::Otherwise));
        }
        // Null: the log came from another node than this answer. The transfer may be exactly this one.
        let receipt = self.receipt(&log.transaction).await?.ok_or_else(|| malformed("eth_getTransactionReceipt"))?;
        let carried = self.carries(&receipt, authorization);
        Ok(Some(if carried { NonceUse::ByThisTransfer(log.transaction.clone()) } else { NonceUse::Otherwise }))
    }

    /// Whether a transaction made exactly this payment: the event of its nonce, directly followed by the transfer of the
    /// signed amount from payer to payee. The check is this strict because a transaction may carry several payments.
    pub fn carries(&self, receipt: &TransactionReceipt, authorization: &Authorization) -> bool {
        let used = [abi::event(AUTHORIZATION_USED), authorization.from.word(), authorization.nonce];
        let moved = [abi::event(TRANSFER), authorization.from.word(), authorization.to.word()];
        let of_token: Vec<&Log> = receipt.logs.iter().filter(|log| log.address == self.token).collect();
        receipt.succeeded
            && of_token.windows(2).any(|pair| {
                pair[0].topics == used
                    && pair[1].topics == moved
                    && pair[1].index == pair[0].index + 1
                    && pair[1].data == authorization.value
            })
    }

    pub fn token(&self) -> Address {
        self.token
    }

    /// Calls a contract without a transaction (`eth_call`), as `from` if given.
    pub async fn call(&self, to: Address, data: &[u8], from: Option<Address>) -> Result<Vec<u8>, ChainError> {
        // The gas limit keeps a hostile wallet contract from using up the node's time.
        let mut call = json!({"to": to.lower(), "data": hex0x(data), "gas": format!("0x{CALL_GAS:x}")});
        if let Some(from) = from {
            call["from"] = json!(from.lower());
        }
        let answer = self.request("eth_call", json!([call, "latest"])).await?;
        answer.as_str().and_then(parse_hex0x).ok_or_else(|| malformed("eth_call"))
    }

    /// Sends any JSON-RPC request.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, ChainError> {
        self.batch(&[(method, params)]).await?.pop().unwrap_or_else(|| Err(short_batch()))
    }

    /// Sends several requests in one round trip. The results are in the same order.
    async fn batch(&self, requests: &[(&str, Value)]) -> Result<Vec<Result<Value, ChainError>>, ChainError> {
        let body: Vec<Value> = requests
            .iter()
            .enumerate()
            .map(|(id, (method, params))| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .collect();
        // A single request is sent without an array: not every endpoint accepts a batch of one.
        let body = if body.len() == 1 { body.into_iter().next().unwrap_or_default() } else { Value::Array(body) };
        let (_, answer) = self
            .http
            .post_json(&self.rpc_url, None, &body)
            .await
            .map_err(|error| ChainError::Unavailable(error.to_string()))?;
        let mut answers = match answer {
            Value::Array(answers) => answers,
            single => vec![single],
        };
        answers.sort_by_key(|answer| answer["id"].as_u64());
        if answers.len() != requests.len() {
            return Err(short_batch());
        }
        Ok(answers.into_iter().map(outcome).collect())
    }
}

const TRANSFER: &str = "Transfer(address,address,uint256)";
const AUTHORIZATION_USED: &str = "AuthorizationUsed(address,bytes32)";
const AUTHORIZATION_CANCELED: &str = "AuthorizationCanceled(address,bytes32)";

/// Call data of `transferWithAuthorization`, in the overload that fits the signature: v, r, s for the 65 bytes of a key
/// (every EIP-3009 token has it), `bytes` for a contract wallet.
pub fn transfer_call(authorization: &Authorization) -> Vec<u8> {
    use evm::signature::RecoverableSignature;
    let head = [
        authorization.from.word(),
        authorization.to.word(),
        authorization.value,
        authorization.valid_after,
        authorization.valid_before,
        authorization.nonce,
    ];
    let mut arguments: Vec<Argument<'_>> = head.into_iter().map(Argument::Word).collect();
    match RecoverableSignature::parse(&authorization.signature) {
        Ok(signature) => {
            let v = evm::word_from_u64(27 + u64::from(signature.y_parity()));
            arguments.extend([v, signature.r(), signature.s()].map(Argument::Word));
            abi::call(
                "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
                &arguments,
            )
        }
        Err(_) => {
            arguments.push(Argument::Bytes(&authorization.signature));
            abi::call("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)", &arguments)
        }
    }
}

fn outcome(answer: Value) -> Result<Value, ChainError> {
    match answer.get("error").filter(|error| !error.is_null()) {
        Some(error) => Err(refusal(error)),
        None if answer.get("result").is_some() => Ok(answer["result"].clone()),
        None => Err(malformed("request")),
    }
}

/// Classifies a JSON-RPC error.
fn refusal(error: &Value) -> ChainError {
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let code = error["code"].as_i64().unwrap_or_default();
    match is_revert(code, &message, error["data"].as_str().unwrap_or_default()) {
        true => ChainError::Reverted(message),
        false => ChainError::Rejected { code, message },
    }
}

/// Messages of nodes for a call that was executed and reverted.
const REVERTED: [&str; 4] = [
    "execution reverted",                   // geth, erigon, reth, anvil, besu, most providers
    "vm execution error",                   // nethermind and openethereum, which have the rest in the data
    "vm exception while processing",        // hardhat, ganache
    "execution failed due to an exception", // openethereum's estimate
];
/// Messages of nodes for a call that was executed and aborted.
const HALTED: [&str; 7] = [
    "invalid opcode",
    "invalid jump",
    "stack underflow",
    "stack limit reached",
    "write protection",
    "return data out of bounds",
    "evm error",
];

/// Whether an error means that the call was executed and failed. Codes are not enough: 3 is always a revert, but -32015 is
/// used by nethermind for reverts and by proxies for time-outs, and -32000 is used for anything.
fn is_revert(code: i64, message: &str, data: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if code == 3 || message.starts_with("revert") || says(&REVERTED[..1]) {
        return true;
    }
    // Our own wallet lacks the money for gas.
    if says(&["insufficient funds"]) || data.to_ascii_lowercase().contains("insufficient funds") {
        return false;
    }
    // "Out of gas" can also be caused by the sender's balance or the node's own cap. It counts as a revert only if the call
    // had the full gas limit.
    if says(&["out of gas", "gas required exceeds"]) {
        let digits = message.rsplit(|letter: char| !letter.is_ascii_digit()).find(|digits| !digits.is_empty());
        return digits.and_then(|digits| digits.parse().ok()).is_none_or(|allowed: u64| allowed >= CALL_GAS);
    }
    says(&REVERTED) || says(&HALTED) || data.starts_with("Reverted") || data.starts_with("0x08c379a0")
}

fn is_already_known(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("already known") || message.contains("already imported") || message.contains("alreadyknown")
}

/// Whether a node's error says that the account nonce is used.
pub fn is_nonce_spent(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["nonce too low", "nonce is too low", "oldnonce"].iter().any(|words| message.contains(words))
}

fn malformed(method: &str) -> ChainError {
    ChainError::Unavailable(format!("the node's answer to {method} cannot be read"))
}

fn short_batch() -> ChainError {
    ChainError::Unavailable("the node did not answer every request".to_owned())
}

fn word(bytes: &[u8]) -> Result<Word, ChainError> {
    abi::word_at(bytes, 0).ok_or_else(|| malformed("eth_call"))
}

/// A hex quantity such as `0x1b4`. Blocks, gas and fees fit in 64 bits.
fn quantity(value: &Value) -> Result<u64, ChainError> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(|| malformed("a quantity"))
}

fn market(block: &Value, priority_fee: &Value) -> Result<Market, ChainError> {
    Ok(Market { base_fee: quantity(&block["baseFeePerGas"])?, priority_fee: quantity(priority_fee)? })
}

fn receipt(receipt: &Value) -> Result<Option<TransactionReceipt>, ChainError> {
    if receipt.is_null() {
        return Ok(None);
    }
    let (succeeded, block) = (receipt["status"].as_str() == Some("0x1"), quantity(&receipt["blockNumber"])?);
    Ok(Some(TransactionReceipt { succeeded, block, logs: logs(&receipt["logs"])? }))
}

fn logs(value: &Value) -> Result<Vec<Log>, ChainError> {
    let log = |log: &Value| -> Option<Log> {
        Some(Log {
            address: log["address"].as_str()?.parse().ok()?,
            topics: log["topics"].as_array()?.iter().map(|topic| parse_word(topic.as_str()?)).collect::<Option<_>>()?,
            data: parse_hex0x(log["data"].as_str()?)?,
            index: quantity(&log["logIndex"]).ok()?,
            transaction: log["transactionHash"].as_str()?.to_owned(),
        })
    };
    value.as_array().and_then(|logs| logs.iter().map(log).collect()).ok_or_else(|| malformed("logs"))
}

#[cfg(test)]
mod tests {
    use evm::word_from_u64;

    use super::*;
    use crate::config::Token;

    fn chain() -> Chain {
        let token = Token::new(84532, Address::from_bytes([6; 20]), "USDC", "2");
        let config = ChainConfig { chain_id: 84532, rpc_url: "http://127.0.0.1:9".to_owned(), token };
        Chain::new(PlainHttp::new(None), &config)
    }

    fn authorization(signature: Vec<u8>) -> Authorization {
        Authorization {
            from: Address::from_bytes([1; 20]),
            to: Address::from_bytes([2; 20]),
            value: word_from_u64(2_000),
            valid_after: [0; 32],
            valid_before: word_from_u64(9),
            nonce: [5; 32],
            signature,
        }
    }

    fn log(index: u64, topics: Vec<Word>, data: Vec<u8>) -> Log {
        Log { address: chain().token, topics, data, index, transaction: "0x1".to_owned() }
    }

    #[test]
    fn only_the_transfer_directly_after_the_nonce_counts() {
        let payment = authorization(Vec::new());
        let used = |nonce: Word, index| {
            log(index, vec![abi::event(AUTHORIZATION_USED), payment.from.word(), nonce], Vec::new())
        };
        let moved = |value: u64, index| {
            let topics = vec![abi::event(TRANSFER), payment.from.word(), payment.to.word()];
            log(index, topics, word_from_u64(value).to_vec())
        };
        let carries = |succeeded, logs| chain().carries(&TransactionReceipt { succeeded, block: 1, logs }, &payment);
        assert!(carries(true, vec![used(payment.nonce, 3), moved(2_000, 4)]));
        assert!(carries(true, vec![used([9; 32], 0), moved(2_000, 1), used(payment.nonce, 2), moved(2_000, 3)]));
        assert!(!carries(false, vec![used(payment.nonce, 3), moved(2_000, 4)]), "reverted");
        assert!(!carries(true, vec![used(payment.nonce, 3), moved(1_999, 4)]), "another value");
        assert!(
            !carries(true, vec![used(payment.nonce, 3), used([9; 32], 4), moved(2_000, 5)]),
            "another nonce's transfer"
        );
        assert!(!carries(true, vec![moved(2_000, 2), used(payment.nonce, 3)]), "wrong order");
        assert!(!carries(true, vec![used(payment.nonce, 3), moved(2_000, 5)]), "not adjacent");
    }

    /// Real errors of nodes and providers. Only those that say the call was executed count as reverts.
    #[test]
    fn only_executed_calls_count_as_reverted() {
        let error_string = "0x08c379a00000000000000000000000000000000000000000000000000000000000000020";
        let reverts = [
            (
                "geth",
                json!({"code": 3, "message": "execution reverted: FiatTokenV2: invalid signature", "data": error_string}),
            ),
            ("geth, without a reason", json!({"code": 3, "message": "execution reverted", "data": "0x"})),
            ("geth before 1.9.15", json!({"code": -32000, "message": "execution reverted"})),
            ("erigon", json!({"code": 3, "message": "execution reverted: ERC20: transfer amount exceeds balance"})),
            (
                "reth",
                json!({"code": 3, "message": "execution reverted: FiatTokenV2: authorization is used or canceled"}),
            ),
            (
                "anvil",
                json!({"code": 3, "message": "execution reverted: custom error 0x7a933234", "data": "0x7a933234"}),
            ),
            ("besu", json!({"code": -32000, "message": "Execution reverted", "data": error_string})),
            ("nethermind", json!({"code": -32015, "message": "VM execution error.", "data": "Reverted 0x7a933234"})),
            ("nethermind's estimate", json!({"code": -32015, "message": "revert"})),
            ("nethermind 1.35", json!({"code": 3, "message": "execution reverted", "data": error_string})),
            (
                "openethereum's estimate",
                json!({"code": -32016, "message": "The execution failed due to an exception.", "data": "Reverted"}),
            ),
            (
                "hardhat",
                json!({
                    "code": -32603,
                    "message": "Error: VM Exception while processing transaction: reverted with reason string 'paused'",
                    "data": {"data": error_string},
                }),
            ),
            ("alchemy", json!({"code": -32000, "message": "execution reverted", "data": error_string})),
            (
                "a wallet that says what a provider would",
                json!({"code": 3, "message": "execution reverted: over rate limit"}),
            ),
            ("a token that says so", json!({"code": 3, "message": "execution reverted: insufficient funds"})),
            ("geth, a call that burns its gas", json!({"code": -32000, "message": "out of gas"})),
            ("reth, the same", json!({"code": -32003, "message": "out of gas: gas required exceeds: 500000"})),
            (
                "geth, an estimate of it",
                json!({"code": -32000, "message": "gas required exceeds allowance (50000000)"}),
            ),
            ("geth, no code to jump to", json!({"code": -32000, "message": "invalid jump destination"})),
            ("geth, assert of old compilers", json!({"code": -32000, "message": "invalid opcode: INVALID"})),
            ("reth, the same", json!({"code": -32000, "message": "EVM error: InvalidFEOpcode"})),
        ];
        for (node, error) in reverts {
            let answer = outcome(json!({"jsonrpc": "2.0", "id": 1, "error": error}));
            assert!(matches!(answer, Err(ChainError::Reverted(_))), "{node}: {answer:?}");
        }
        let passing = [
            ("base's public endpoint", json!({"code": -32016, "message": "over rate limit"})),
            (
                "a proxy that hands it on",
                json!({"code": -32000, "message": "429 Too Many Requests: {\"error\":{\"code\":-32016,\"message\":\"over rate limit\"}}"}),
            ),
            ("proxyd", json!({"code": -32011, "message": "no backend is currently healthy to serve traffic"})),
            ("proxyd", json!({"code": -32012, "message": "backend is over capacity"})),
            ("proxyd", json!({"code": -32015, "message": "gateway timeout"})),
            ("proxyd", json!({"code": -32017, "message": "sender is over rate limit"})),
            ("infura", json!({"code": -32005, "message": "daily request count exceeded, request rate limited"})),
            ("tenderly", json!({"code": -32005, "message": "rate limit exceeded"})),
            (
                "alchemy",
                json!({"code": 429, "message": "Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message."}),
            ),
            (
                "quicknode",
                json!({"code": -32007, "message": "15/second request limit reached - reduce calls per second or upgrade your account at quicknode.com"}),
            ),
            (
                "quicknode",
                json!({"code": -32003, "message": "daily request limit reached - upgrade your account at quicknode.com"}),
            ),
            (
                "ankr",
                json!({"code": -32090, "message": "Too many requests, reason: call rate limit exhausted, retry in 10s"}),
            ),
            (
                "drpc",
                json!({"code": 30, "message": "timeout on the free tier, please upgrade your tier to the paid one"}),
            ),
            ("drpc", json!({"code": 19, "message": "Temporary internal error. Please retry, trace-id: 5d1c"})),
            ("cloudflare", json!({"code": -32046, "message": "Cannot fulfill request"})),
            ("geth, behind its peers", json!({"code": -32000, "message": "header not found"})),
            (
                "geth, pruned",
                json!({"code": -32000, "message": "missing trie node 1c603e75e5f8a0f4 (path ) state 0x1c60 is not available"}),
            ),
            ("geth", json!({"code": -32000, "message": "required historical state unavailable (reexec=128)"})),
            ("erigon", json!({"code": -32000, "message": "block 21000000 not found"})),
            ("nethermind", json!({"code": -32002, "message": "No state available for block 0x5a1b"})),
            ("geth, too slow", json!({"code": -32000, "message": "execution aborted (timeout = 5s)"})),
            ("geth, too slow", json!({"code": -32002, "message": "request timed out"})),
            ("any", json!({"code": -32603, "message": "Internal error"})),
            ("any", json!({"code": -32601, "message": "the method eth_estimateGas does not exist/is not available"})),
            (
                "geth, an empty fee wallet",
                json!({"code": -32000, "message": "insufficient funds for gas * price + value: address 0x8E76 have 0 want 92000000000000"}),
            ),
            (
                "reth, the same",
                json!({"code": -32003, "message": "insufficient funds for gas * price + value: have 0 want 9"}),
            ),
            (
                "nethermind, the same",
                json!({"code": -32015, "message": "VM execution error.", "data": "insufficient funds for transfer"}),
            ),
            ("geth, money for little gas", json!({"code": -32000, "message": "gas required exceeds allowance (0)"})),
            (
                "anvil, the same",
                json!({"code": -32003, "message": "Out of gas: gas required exceeds allowance: 19999"}),
            ),
            ("nothing said", json!({})),
        ];
        for (node, error) in passing {
            let answer = outcome(json!({"jsonrpc": "2.0", "id": 1, "error": error}));
            assert!(matches!(answer, Err(ChainError::Rejected { .. })), "{node}: {answer:?}");
        }
    }

    #[test]
    fn the_overload_follows_the_signature() {
        let key = evm::signature::PrivateKey::from_bytes(&[7; 32]).unwrap();
        let by_key = transfer_call(&authorization(key.sign(&[1; 32]).to_bytes().to_vec()));
        assert_eq!(hex0x(&by_key[..4]), "0xe3ee160e");
        assert_eq!(by_key.len(), 4 + 9 * 32);
        let by_contract = transfer_call(&authorization(vec![1; 100]));
        assert_eq!(hex0x(&by_contract[..4]), "0xcf092995");
    }
}
