//! Checks the chain: that it is the configured one, that the token exists and uses the configured signing domain, and that
//! the wallets have funds.

use std::collections::BTreeSet;

use base::clock::Clock;
use base::money::Usdc;
use evm::abi::{self, Argument};
use evm::{Address, Word, hex0x, keccak256, parse_hex0x, word_from_u64};
use gate::app::App;
use ledger::payments::settle::Tags;
use platform::config::SettlementConfig;
use platform::providers::chain::ChainError;
use serde_json::{Value, json};

use super::Report;
use super::cloud::Wallets;

/// Gas of one settlement and of one payout (see `payments::settle::relayer` and `payments::treasury`).
const SETTLEMENT_GAS: u128 = 90_000;
const PAYOUT_GAS: u128 = 60_000;
/// Warn below this many transactions' worth of gas.
const FEW: u128 = 1_000;
/// Above this clock skew, payments or proofs are refused.
const SKEW_SECS: i64 = 30;
/// The last block of a chain with regular blocks is younger than this.
const STALE_SECS: i64 = 300;

const WITH_VRS: &str =
    "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)";
const WITH_BYTES: &str = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)";

pub async fn check(app: &App, wallets: &Wallets, report: &mut Report) {
    let config = &app.config.chain;
    let head = match app.chain.head().await {
        Ok(head) => head,
        Err(error) => {
            let remedy = "set CHAIN_RPC_URL to an endpoint that answers (the template's ChainRpcUrl, or its secret)";
            report.fail("chain", error.to_string(), remedy);
            return;
        }
    };
    if head.chain_id == config.chain_id {
        report.ok("chain", format!("{} at block {}", config.chain_id, head.number));
    } else {
        let remedy = format!(
            "set CHAIN_RPC_URL to an endpoint of chain {}, or CHAIN_ID to {} (then the token's address changes too)",
            config.chain_id, head.chain_id
        );
        let found = format!("CHAIN_ID is {}, but the endpoint is on chain {}", config.chain_id, head.chain_id);
        report.fail("chain", found, remedy);
        // Another chain's answers about token and wallets would be useless.
        return;
    }
    time(head.at_secs, report);
    if token(app, report).await {
        payee(app, wallets, report).await;
        other_deployments(app, wallets, report).await;
    }
    if let Err(error) = gas(app, wallets, u128::from(head.base_fee), report).await {
        report.fail(
            "wallets",
            error.to_string(),
            "set CHAIN_RPC_URL to an endpoint that answers eth_getBalance and eth_call",
        );
    }
}

fn time(block_secs: u64, report: &mut Report) {
    let age = Clock::system().now().secs() - i64::try_from(block_secs).unwrap_or_default();
    if age < -SKEW_SECS {
        let remedy = "set this machine's clock (NTP): payments and proofs are only valid for a limited time";
        report.fail("clock", format!("the last block is {} s in the future", -age), remedy);
    } else if age > STALE_SECS {
        let remedy =
            "if this lasts, the endpoint is behind or this machine's clock is ahead: compare with a block explorer";
        report.warn("clock", format!("the last block is {age} s old"), remedy);
    } else {
        report.ok("clock", format!("the last block is {age} s old"));
    }
}

/// Returns whether the token exists.
async fn token(app: &App, report: &mut Report) -> bool {
    let token = &app.config.chain.token;
    let address = token.address;
    match app.chain.has_code(address).await {
        Ok(true) => {}
        Ok(false) => {
            let remedy = "set USDC_ADDRESS to the token of this network, or unset it where CHAIN_ID is 8453 or 84532";
            report.fail("token", format!("there is no contract at {address}"), remedy);
            return false;
        }
        Err(error) => {
            report.fail("token", error.to_string(), "set CHAIN_RPC_URL to an endpoint that answers eth_getCode");
            return false;
        }
    }
    let name = text(app, "name()").await;
    let version = text(app, "version()").await;
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
    let separator = app.chain.call(address, &abi::call("DOMAIN_SEPARATOR()", &[]), None).await;
    match separator.ok().and_then(|data| abi::word_at(&data, 0)) {
        Some(separator) if separator == token.domain => {
            report.ok("token domain", format!("{:?}, version {:?}, at {address}", token.name, token.version));
        }
        Some(_) => {
            let found = format!(
                "name {:?} and version {:?} are configured; the contract has {:?} and {:?}",
                token.name,
                token.version,
                said(&name),
                said(&version)
            );
            let remedy = format!(
                "set USDC_NAME={:?} and USDC_VERSION={:?}: no signature verifies under another domain",
                said(&name),
                said(&version)
            );
            report.fail("token domain", found, remedy);
        }
        None if name.as_ref() == Some(&token.name) => {
            let remedy =
                "the contract has no DOMAIN_SEPARATOR to compare with: make one small test payment before you go live";
            report.warn("token domain", format!("only the name {:?} could be compared", token.name), remedy);
        }
        None => {
            let found = format!("the contract at {address} has no DOMAIN_SEPARATOR and is called {:?}", said(&name));
            report.fail("token domain", found, "set USDC_ADDRESS to a token with EIP-3009, such as USDC");
        }
    }
    overloads(app, report).await;
    true
}

/// Both forms of the transfer: v, r, s for ordinary keys, bytes for contract wallets.
async fn overloads(app: &App, report: &mut Report) {
    let code = match code(app).await {
        Ok(code) => code,
        Err(error) => {
            let remedy = "set CHAIN_RPC_URL to an endpoint that answers eth_getCode and eth_getStorageAt";
            report.warn("token transfers", error.to_string(), remedy);
            return;
        }
    };
    let has = |signature: &str| {
        let selector = &abi::call(signature, &[])[..4];
        code.windows(5).any(|window| window[0] == 0x63 && &window[1..] == selector)
    };
    match (has(WITH_VRS), has(WITH_BYTES)) {
        (true, true) => report.ok("token transfers", "transferWithAuthorization in both forms"),
        (true, false) => {
            let remedy =
                "contract wallets cannot pay with this token; if you need them, use a token with the bytes form";
            report.warn("token transfers", "transferWithAuthorization only with v, r, s", remedy);
        }
        (false, _) => {
            let remedy = "set USDC_ADDRESS to a token with EIP-3009, such as USDC";
            report.fail("token transfers", "transferWithAuthorization was not found in the contract's code", remedy);
        }
    }
}

/// The contract's code, and the code behind its proxy slots (EIP-1967, and the older slot that USDC uses).
async fn code(app: &App) -> Result<Vec<u8>, ChainError> {
    let token = app.config.chain.token.address;
    let mut code = code_at(app, token).await?;
    let mut slot = keccak256(b"eip1967.proxy.implementation");
    slot[31] -= 1;
    for slot in [slot, keccak256(b"org.zeppelinos.proxy.implementation")] {
        let stored = app.chain.request("eth_getStorageAt", json!([token.lower(), hex0x(&slot), "latest"])).await?;
        let stored = stored.as_str().and_then(parse_hex0x).and_then(|bytes| Word::try_from(bytes).ok());
        if let Some(behind) =
            stored.and_then(|word| Address::from_word(&word)).filter(|address| *address != Address::ZERO)
        {
            code.extend(code_at(app, behind).await?);
        }
    }
    Ok(code)
}

async fn code_at(app: &App, address: Address) -> Result<Vec<u8>, ChainError> {
    let code = app.chain.request("eth_getCode", json!([address.lower(), "latest"])).await?;
    Ok(code.as_str().and_then(parse_hex0x).unwrap_or_default())
}

/// Calls a function of the token that returns a string.
async fn text(app: &App, signature: &str) -> Option<String> {
    let data = app.chain.call(app.config.chain.token.address, &abi::call(signature, &[]), None).await.ok()?;
    let length = usize::try_from(evm::word_to_u64(&abi::word_at(&data, 1)?)?).ok()?;
    String::from_utf8(data.get(64..64 + length)?.to_vec()).ok()
}

async fn payee(app: &App, wallets: &Wallets, report: &mut Report) {
    let pay_to = app.config.payments.pay_to;
    if pay_to == app.config.chain.token.address {
        let remedy = "set PAY_TO to a wallet: tokens sent to their own contract are lost";
        report.fail("payee", "PAY_TO is the token's contract", remedy);
    } else if Some(pay_to) == wallets.relayer {
        let remedy = "set PAY_TO to a wallet whose key is not in this deployment";
        report.warn("payee", format!("{pay_to} is the fee wallet, whose key the functions hold"), remedy);
    } else {
        let kind = if app.chain.has_code(pay_to).await.unwrap_or_default() { "a contract" } else { "a wallet" };
        // Finds addresses that the token refuses to pay, such as blacklisted ones.
        let data =
            abi::call("transfer(address,uint256)", &[Argument::Word(pay_to.word()), Argument::Word(word_from_u64(0))]);
        match app.chain.call(app.config.chain.token.address, &data, Some(pay_to)).await {
            Err(ChainError::Reverted(message)) => {
                let remedy = "set PAY_TO to an address that the token pays";
                report.fail("payee", format!("the token refuses {pay_to}: {message}"), remedy);
            }
            Err(error) => {
                let remedy = "set CHAIN_RPC_URL to an endpoint that answers eth_call";
                report.warn(
                    "payee",
                    format!("{pay_to}, {kind}; could not check whether the token pays it: {error}"),
                    remedy,
                );
            }
            Ok(_) => report.ok("payee", format!("{pay_to}, {kind}")),
        }
    }
}

/// Whether another deployment settles payments to the same address: one payment could then buy at both.
async fn other_deployments(app: &App, wallets: &Wallets, report: &mut Report) {
    const CHECK: &str = "other deployments";
    let alone = "give every deployment a PAY_TO of its own";
    if let SettlementConfig::Facilitator { .. } = app.config.settlement {
        let found = "a facilitator's transactions do not say which deployment they pay";
        report.warn(CHECK, found, format!("{alone}: if it is shared, one settled payment could buy at each of them"));
    }
    let settlers = match settlers(app).await {
        Ok(settlers) => settlers,
        Err(error) => {
            let remedy = "set CHAIN_RPC_URL to an endpoint that answers eth_getLogs for 5,000 blocks";
            report.warn(CHECK, error.to_string(), remedy);
            return;
        }
    };
    let ours = matches!(app.config.settlement, SettlementConfig::Relayer).then_some(wallets.relayer).flatten();
    let others: Vec<String> =
        settlers.into_iter().filter(|settler| Some(*settler) != ours).map(|settler| settler.to_string()).collect();
    match others.as_slice() {
        [] => {
            report.ok(CHECK, format!("no other fee wallet settled payments to {} lately", app.config.payments.pay_to))
        }
        others => report.warn(CHECK, format!("{} settled payments to the same PAY_TO", others.join(", ")), alone),
    }
}

/// The fee wallets of deployments that settled payments to our address, from the latest transfers to it.
async fn settlers(app: &App) -> Result<BTreeSet<Address>, ChainError> {
    const BLOCKS: u64 = 5_000;
    const TRANSFERS: usize = 50;
    let (chain, token) = (&app.chain, app.config.chain.token.address);
    let latest = chain.block_number().await?;
    let filter = json!({
        "address": token.lower(),
        "fromBlock": format!("0x{:x}", latest.saturating_sub(BLOCKS - 1)),
        "toBlock": format!("0x{latest:x}"),
        "topics": [
            hex0x(&abi::event("Transfer(address,address,uint256)")),
            Value::Null,
            hex0x(&app.config.payments.pay_to.word()),
        ],
    });
    let logs = chain.request("eth_getLogs", json!([filter])).await?;
    let hashes: BTreeSet<&str> = logs
        .as_array()
        .into_iter()
        .flatten()
        .rev()
        .take(TRANSFERS)
        .filter_map(|log| log["transactionHash"].as_str())
        .collect();
    let mut settlers = BTreeSet::new();
    for hash in hashes {
        let sent = chain.request("eth_getTransactionByHash", json!([hash])).await?;
        let is_tagged = sent["input"].as_str().and_then(parse_hex0x).is_some_and(|input| Tags::is_tagged(&input));
        settlers.extend(sent["from"].as_str().and_then(|from| from.parse::<Address>().ok()).filter(|_| is_tagged));
    }
    Ok(settlers)
}

async fn gas(app: &App, wallets: &Wallets, base_fee: u128, report: &mut Report) -> Result<(), ChainError> {
    let priority = app.chain.request("eth_maxPriorityFeePerGas", json!([])).await.ok();
    let priority = priority.and_then(|fee| u128::from_str_radix(fee.as_str()?.strip_prefix("0x")?, 16).ok());
    // The fee that the relayer bids: twice the base fee plus the priority fee.
    let fee = (base_fee * 2 + priority.unwrap_or_default()).max(1);
    if let (SettlementConfig::Relayer, Some(relayer)) = (&app.config.settlement, wallets.relayer) {
        let left = app.chain.native_balance(relayer).await? / (fee * SETTLEMENT_GAS);
        let found = format!("{relayer} has gas for about {left} settlements at today's fees");
        match left {
            0 => report.fail(
                "relayer gas",
                found,
                format!("send ETH on chain {} to {relayer}", app.config.chain.chain_id),
            ),
            left if left < FEW => report.warn("relayer gas", found, format!("send more ETH to {relayer} soon")),
            _ => report.ok("relayer gas", found),
        }
    }
    let Some(treasury) = wallets.treasury else {
        let remedy = "deploy, and let the payouts function run once; or set TREASURY_ADDRESS for this check";
        report.warn("treasury", "its address is not known yet", remedy);
        return Ok(());
    };
    let left = app.chain.native_balance(treasury).await? / (fee * PAYOUT_GAS);
    let tokens =
        evm::word_to_u64(&app.chain.balance_of(treasury).await?).map_or(Usdc::from_micro(u64::MAX), Usdc::from_micro);
    let found = format!("{treasury} has {tokens} USDC and gas for about {left} payouts");
    match (left, tokens) {
        (0, _) => report.warn("treasury", found, format!("send ETH to {treasury}: payouts wait for it")),
        (_, Usdc::ZERO) => report.warn("treasury", found, format!("send USDC to {treasury}: payouts wait for it")),
        _ => report.ok("treasury", found),
    }
    Ok(())
}
