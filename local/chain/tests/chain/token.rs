//! Tests the test dollar against an independent implementation of EIP-712 and EIP-3009.

use devchain::{
    DevChain,
    contracts::{Arg, BATCHER, MULTICALL, TEST_DOLLAR, hex, unhex},
    node::{MULTICALL_ADDRESS, PAYER_BALANCE},
};
use serde_json::{Value, json};

use crate::{authorization::*, memory_chain};

const TRANSFER: &str = "Transfer(address,address,uint256)";
const USED: &str = "AuthorizationUsed(address,bytes32)";
const CANCELED: &str = "AuthorizationCanceled(address,bytes32)";

/// Why the token refuses a call, without sending it.
async fn refusal(chain: &DevChain, data: &str) -> String {
    let error = chain.rpc().eth_call(chain.token(), data).await.expect_err("the token refuses");
    error.revert_reason().unwrap_or_else(|| panic!("no reason in {error:?}"))
}

async fn ask(chain: &DevChain, function: &str, args: &[Arg]) -> String {
    chain.rpc().eth_call(chain.token(), &TEST_DOLLAR.call(function, args)).await.unwrap()
}

fn topics(receipt: &Value) -> Vec<&str> {
    receipt["logs"].as_array().unwrap().iter().map(|log| log["topics"][0].as_str().unwrap()).collect()
}

/// The text a contract function returns.
fn text(answer: &str) -> String {
    let bytes = unhex(&answer[2..]).unwrap();
    String::from_utf8(bytes[64..64 + usize::from(bytes[63])].to_vec()).unwrap()
}

#[tokio::test]
async fn a_fresh_chain_is_planted() {
    let chain = memory_chain().await;
    assert_eq!(chain.chain_id(), 84532);
    assert_eq!(chain.token(), "0x036CbD53842c5426634e7929541eC2318f3dCF7e");
    assert_eq!(chain.rpc().quantity("eth_chainId", json!([])).await.unwrap(), 84532);
    assert!(chain.rpc_url().starts_with("http://127.0.0.1:") && !chain.rpc_url().ends_with('/'));

    assert_eq!(text(&ask(&chain, "name()", &[]).await), "USDC");
    assert_eq!(text(&ask(&chain, "symbol()", &[]).await), "USDC");
    assert_eq!(text(&ask(&chain, "version()", &[]).await), "2");
    assert_eq!(ask(&chain, "decimals()", &[]).await, topic(&Arg::uint(6)));
    assert_eq!(ask(&chain, "totalSupply()", &[]).await, topic(&Arg::uint(12 * PAYER_BALANCE)));
    assert_eq!(ask(&chain, "DOMAIN_SEPARATOR()", &[]).await, format!("0x{}", hex(&domain_separator(&chain))));

    assert_eq!(chain.payers().len(), 12);
    for payer in chain.payers() {
        assert_eq!(chain.balance_of(&payer.address).await.unwrap(), PAYER_BALANCE);
    }
    let mut accounts = vec![chain.relayer(), chain.treasury()];
    accounts.extend(chain.payers());
    for account in &accounts {
        let gas = chain.rpc().quantity("eth_getBalance", json!([account.address, "latest"])).await.unwrap();
        assert!(gas >= 1_000_000_000_000_000_000, "{} has gas", account.address);
        // The node lists only accounts whose keys it has, so the key belongs to the address.
        let digest = keccak(b"who");
        assert_eq!(recover(&digest, &sign(account, &digest)), account.address.to_lowercase());
    }
    accounts.sort_by_key(|account| &account.address);
    accounts.dedup();
    assert_eq!(accounts.len(), 14, "relayer, treasury and payers are distinct");
}

fn recover(digest: &[u8; 32], signature: &[u8; 65]) -> String {
    use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
    let recovery = RecoveryId::from_byte(signature[64] - 27).unwrap();
    let parsed = Signature::from_slice(&signature[..64]).unwrap();
    let key = VerifyingKey::recover_from_prehash(digest, &parsed, recovery).unwrap();
    format!("0x{}", hex(&keccak(&key.to_sec1_point(false).as_bytes()[1..])[12..]))
}

#[tokio::test]
async fn both_overloads_pay_and_emit_events_in_order() {
    let chain = memory_chain().await;
    let (payer, treasury) = (&chain.payers()[0], &chain.treasury().address);
    for (nonce, bytes) in [(1, true), (2, false)] {
        let pay = Authorization::new(&payer.address, treasury, 2_500_000, nonce);
        let signature = sign(payer, &pay.digest(&chain));
        let call =
            if bytes { pay.bytes_call(BYTES_TRANSFER, &signature) } else { pay.split_call(SPLIT_TRANSFER, &signature) };
        let state = [Arg::address(&payer.address), Arg::Word(pay.nonce)];
        assert_eq!(ask(&chain, "authorizationState(address,bytes32)", &state).await, topic(&Arg::uint(0)));

        let receipt = chain.send(chain.token(), &call).await.unwrap();
        assert_eq!(receipt["status"], "0x1");
        assert_eq!(ask(&chain, "authorizationState(address,bytes32)", &state).await, topic(&Arg::uint(1)));

        // AuthorizationUsed comes directly before the Transfer it belongs to.
        let logs = &receipt["logs"];
        assert_eq!(logs.as_array().unwrap().len(), 2);
        let from = topic(&Arg::address(&payer.address));
        assert_eq!(logs[0]["topics"], json!([event(USED), from, topic(&Arg::Word(pay.nonce))]));
        assert_eq!(logs[1]["topics"], json!([event(TRANSFER), from, topic(&Arg::address(treasury))]));
        assert_eq!(logs[1]["data"], topic(&Arg::uint(2_500_000)));

        assert_eq!(refusal(&chain, &call).await, "FiatTokenV2: authorization is used or canceled");
    }
    assert_eq!(chain.balance_of(treasury).await.unwrap(), 5_000_000);
    assert_eq!(chain.balance_of(&payer.address).await.unwrap(), PAYER_BALANCE - 5_000_000);
}

#[tokio::test]
async fn refusals_have_the_reasons_of_the_real_token() {
    let chain = memory_chain().await;
    let (payer, other) = (&chain.payers()[0], &chain.payers()[1]);
    let pay = Authorization::new(&payer.address, &chain.treasury().address, 1_000_000, 7);
    let signature = sign(payer, &pay.digest(&chain));
    let with = |change: fn(&mut [u8; 65])| {
        let mut changed = signature;
        change(&mut changed);
        pay.bytes_call(BYTES_TRANSFER, &changed)
    };
    let signed = |pay: &Authorization| pay.bytes_call(BYTES_TRANSFER, &sign(payer, &pay.digest(&chain)));

    let now = chain.rpc().call("eth_getBlockByNumber", json!(["latest", false])).await.unwrap();
    let now = u128::from_str_radix(&now["timestamp"].as_str().unwrap()[2..], 16).unwrap();
    let mirrored = mirror(&signature);
    assert_eq!(recover(&pay.digest(&chain), &mirrored), payer.address.to_lowercase(), "a mirrored signature recovers");

    let cases = [
        (pay.bytes_call(BYTES_TRANSFER, &sign(other, &pay.digest(&chain))), "FiatTokenV2: invalid signature"),
        (pay.bytes_call(BYTES_TRANSFER, &mirrored), "ECRecover: invalid signature 's' value"),
        (pay.split_call(SPLIT_TRANSFER, &mirrored), "ECRecover: invalid signature 's' value"),
        (with(|bytes| bytes[64] -= 27), "ECRecover: invalid signature 'v' value"),
        (with(|bytes| bytes[..32].fill(0)), "ECRecover: invalid signature"),
        (pay.bytes_call(BYTES_TRANSFER, &signature[..64]), "ECRecover: invalid signature length"),
        (pay.bytes_call(BYTES_TRANSFER, &[]), "ECRecover: invalid signature length"),
        (
            signed(&Authorization { valid_after: now + 600, ..pay.clone() }),
            "FiatTokenV2: authorization is not yet valid",
        ),
        (signed(&Authorization { valid_before: now - 600, ..pay.clone() }), "FiatTokenV2: authorization is expired"),
        (signed(&Authorization { value: PAYER_BALANCE + 1, ..pay.clone() }), "ERC20: transfer amount exceeds balance"),
        (
            signed(&Authorization { to: format!("0x{}", "0".repeat(40)), ..pay.clone() }),
            "ERC20: transfer to the zero address",
        ),
    ];
    for (call, reason) in cases {
        assert_eq!(refusal(&chain, &call).await, reason);
    }

    // Both bounds are exclusive.
    let at_the_bound = |pay: &Authorization| json!([{"to": chain.token(), "data": signed(pay)}, "latest"]);
    for (bounds, reason) in [
        (Authorization { valid_after: now, ..pay.clone() }, "FiatTokenV2: authorization is not yet valid"),
        (Authorization { valid_before: now, ..pay.clone() }, "FiatTokenV2: authorization is expired"),
    ] {
        let call = at_the_bound(&bounds);
        let block = json!({"time": format!("{now:#x}")});
        let params = json!([call[0], "latest", {}, block]);
        let error = chain.rpc().call("eth_call", params).await.unwrap_err();
        assert_eq!(error.revert_reason().as_deref(), Some(reason));
    }

    // Actions of the issuer between verification and settlement.
    let call = signed(&pay);
    let payer_word = [Arg::address(&payer.address)];
    chain.send(chain.token(), &TEST_DOLLAR.call("blacklist(address)", &payer_word)).await.unwrap();
    assert_eq!(refusal(&chain, &call).await, "Blacklistable: account is blacklisted");
    chain.send(chain.token(), &TEST_DOLLAR.call("unBlacklist(address)", &payer_word)).await.unwrap();
    chain.send(chain.token(), &TEST_DOLLAR.call("pause()", &[])).await.unwrap();
    assert_eq!(refusal(&chain, &call).await, "Pausable: paused");
    chain.send(chain.token(), &TEST_DOLLAR.call("unpause()", &[])).await.unwrap();
    assert_eq!(chain.send(chain.token(), &call).await.unwrap()["status"], "0x1");
}

#[tokio::test]
async fn a_cancelled_authorization_cannot_be_used() {
    let chain = memory_chain().await;
    let payer = &chain.payers()[3];
    for (nonce, bytes) in [(1, true), (2, false)] {
        let pay = Authorization::new(&payer.address, &chain.treasury().address, 1, nonce);
        let digest = pay.cancel_digest(&chain);
        let call = |signature: &[u8; 65]| {
            let head = vec![Arg::address(&pay.from), Arg::Word(pay.nonce)];
            if bytes {
                TEST_DOLLAR.call(BYTES_CANCEL, &[head, vec![Arg::Bytes(signature.to_vec())]].concat())
            } else {
                TEST_DOLLAR.call(SPLIT_CANCEL, &[head, split(signature)].concat())
            }
        };
        let stranger = call(&sign(&chain.payers()[4], &digest));
        assert_eq!(refusal(&chain, &stranger).await, "FiatTokenV2: invalid signature");

        let cancel = call(&sign(payer, &digest));
        let receipt = chain.send(chain.token(), &cancel).await.unwrap();
        assert_eq!(topics(&receipt), [event(CANCELED)]);
        assert_eq!(refusal(&chain, &cancel).await, "FiatTokenV2: authorization is used or canceled");
        let late = pay.bytes_call(BYTES_TRANSFER, &sign(payer, &pay.digest(&chain)));
        assert_eq!(refusal(&chain, &late).await, "FiatTokenV2: authorization is used or canceled");
    }
}

#[tokio::test]
async fn only_the_payee_may_receive() {
    let chain = memory_chain().await;
    let (payer, payee) = (&chain.payers()[0], &chain.treasury().address);
    for (nonce, bytes) in [(1, true), (2, false)] {
        let pay = Authorization::new(&payer.address, payee, 5, nonce);
        let signature = sign(payer, &pay.receive_digest(&chain));
        let call =
            if bytes { pay.bytes_call(BYTES_RECEIVE, &signature) } else { pay.split_call(SPLIT_RECEIVE, &signature) };
        assert_eq!(refusal(&chain, &call).await, "FiatTokenV2: caller must be the payee");
        let receipt = chain.rpc().send(json!({"from": payee, "to": chain.token(), "data": call})).await.unwrap();
        assert_eq!(topics(&receipt), [event(USED), event(TRANSFER)]);
    }
    assert_eq!(chain.balance_of(payee).await.unwrap(), 10);
}

#[tokio::test]
async fn plain_transfers_and_allowances() {
    let chain = memory_chain().await;
    let [owner, spender, to] = [0, 1, 2].map(|i| chain.payers()[i].address.as_str());
    let from = async |from: &str, data: String| {
        chain.rpc().send(json!({"from": from, "to": chain.token(), "data": data})).await
    };
    let amounts = [Arg::address(to), Arg::uint(40)];
    let receipt = from(owner, TEST_DOLLAR.call("transfer(address,uint256)", &amounts)).await.unwrap();
    assert_eq!(topics(&receipt), [event(TRANSFER)]);

    let pull = |amount| {
        let args = [Arg::address(owner), Arg::address(to), Arg::uint(amount)];
        TEST_DOLLAR.call("transferFrom(address,address,uint256)", &args)
    };
    let error = from(spender, pull(1)).await.unwrap_err();
    assert_eq!(error.revert_reason().as_deref(), Some("ERC20: transfer amount exceeds allowance"));
    let approval = [Arg::address(spender), Arg::uint(50)];
    let receipt = from(owner, TEST_DOLLAR.call("approve(address,uint256)", &approval)).await.unwrap();
    assert_eq!(topics(&receipt), [event("Approval(address,address,uint256)")]);
    from(spender, pull(30)).await.unwrap();
    let left = ask(&chain, "allowance(address,address)", &[Arg::address(owner), Arg::address(spender)]).await;
    assert_eq!(left, topic(&Arg::uint(20)));
    assert_eq!(chain.balance_of(to).await.unwrap(), PAYER_BALANCE + 70);
}

#[tokio::test]
async fn two_payments_in_one_transaction_emit_their_events_in_pairs() {
    let chain = memory_chain().await;
    let batcher = chain.deploy(&BATCHER, &[]).await.unwrap();
    let payments = [0, 1].map(|i| {
        let payer = &chain.payers()[i];
        let pay = Authorization::new(&payer.address, &chain.treasury().address, 10 + i as u128, 9);
        let call = pay.bytes_call(BYTES_TRANSFER, &sign(payer, &pay.digest(&chain)));
        unhex(&call[2..]).unwrap()
    });
    let args = |calls: Vec<Vec<u8>>| [Arg::address(chain.token()), Arg::List(calls)];
    let run = BATCHER.call("run(address,bytes[])", &args(payments.to_vec()));
    let receipt = chain.send(&batcher, &run).await.unwrap();
    assert_eq!(topics(&receipt), [event(USED), event(TRANSFER), event(USED), event(TRANSFER)]);
    assert_eq!(chain.balance_of(&chain.treasury().address).await.unwrap(), 21);

    // The payments are used up: `run` reverts with the token's reason, `tryRun` succeeds without effect.
    let error = chain.send(&batcher, &run).await.unwrap_err();
    assert_eq!(error.revert_reason().as_deref(), Some("FiatTokenV2: authorization is used or canceled"));
    let lenient = BATCHER.call("tryRun(address,bytes[])", &args(payments.to_vec()));
    let receipt = chain.send(&batcher, &lenient).await.unwrap();
    assert_eq!((receipt["status"].as_str(), topics(&receipt).len()), (Some("0x1"), 0));
}

/// Client libraries bundle several reads in one call, at a fixed address.
#[tokio::test]
async fn reads_can_be_bundled() {
    let chain = memory_chain().await;
    let question = TEST_DOLLAR.call("decimals()", &[]);
    // One dynamic list with one dynamic triple (target, may fail, call).
    let words = [
        Arg::uint(32),
        Arg::uint(1),
        Arg::uint(32),
        Arg::address(chain.token()),
        Arg::uint(1),
        Arg::uint(96),
        Arg::uint(4),
    ];
    let words: String = words.iter().map(|word| topic(word)[2..].to_owned()).collect();
    let selector = MULTICALL.call("aggregate3((address,bool,bytes)[])", &[]);
    let data = format!("{selector}{words}{:0<64}", &question[2..]);
    let answer = chain.rpc().eth_call(MULTICALL_ADDRESS, &data).await.unwrap();
    assert!(answer.ends_with(&topic(&Arg::uint(6))[2..]), "{answer}");
}
