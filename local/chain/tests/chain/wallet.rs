//! Accounts with code: contract wallets (EIP-1271) and keys that delegate to code (EIP-7702).

use devchain::{
    Account, DevChain,
    contracts::{Arg, TEST_WALLET, hex, unhex},
};
use serde_json::json;

use crate::{authorization::*, memory_chain};

async fn refusal(chain: &DevChain, data: &str) -> String {
    let error = chain.rpc().eth_call(chain.token(), data).await.expect_err("the token refuses");
    error.revert_reason().unwrap_or_else(|| panic!("no reason in {error:?}"))
}

async fn in_mood(chain: &DevChain, wallet: &str, mood: u128) {
    chain.send(wallet, &TEST_WALLET.call("setMood(uint8)", &[Arg::uint(mood)])).await.unwrap();
}

#[tokio::test]
async fn a_contract_wallet_is_judged_by_its_code() {
    let chain = memory_chain().await;
    let (owner, treasury) = (&chain.payers()[0], &chain.treasury().address);
    let wallet = chain.deploy(&TEST_WALLET, &[Arg::address(&owner.address)]).await.unwrap();
    chain.mint(&wallet, 1_000).await.unwrap();

    let pay = |nonce| Authorization::new(&wallet, treasury, 10, nonce);
    let signed_by = |key: &Account, pay: &Authorization| sign(key, &pay.digest(&chain));
    let first = pay(1);
    let stranger = first.bytes_call(BYTES_TRANSFER, &signed_by(&chain.payers()[1], &first));
    assert_eq!(refusal(&chain, &stranger).await, "FiatTokenV2: invalid signature");
    let call = first.bytes_call(BYTES_TRANSFER, &signed_by(owner, &first));
    assert_eq!(chain.send(chain.token(), &call).await.unwrap()["status"], "0x1");
    // The overload with v, r, s also calls the wallet.
    let second = pay(2);
    let call = second.split_call(SPLIT_TRANSFER, &signed_by(owner, &second));
    assert_eq!(chain.send(chain.token(), &call).await.unwrap()["status"], "0x1");

    let third = pay(3);
    let good = third.bytes_call(BYTES_TRANSFER, &signed_by(owner, &third));
    for (mood, name) in [(2, "nobody"), (3, "broken")] {
        in_mood(&chain, &wallet, mood).await;
        assert_eq!(refusal(&chain, &good).await, "FiatTokenV2: invalid signature", "{name}");
    }
    // A wallet may accept bytes of any length; the token does not check them.
    in_mood(&chain, &wallet, 1).await;
    let call = third.bytes_call(BYTES_TRANSFER, b"anything");
    assert_eq!(chain.send(chain.token(), &call).await.unwrap()["status"], "0x1");
    assert_eq!(chain.balance_of(treasury).await.unwrap(), 30);
}

#[tokio::test]
async fn gas_bait_burns_the_configured_gas() {
    let chain = memory_chain().await;
    let owner = &chain.payers()[0];
    let wallet = chain.deploy(&TEST_WALLET, &[Arg::address(&owner.address)]).await.unwrap();
    chain.mint(&wallet, 1_000).await.unwrap();
    let pay = Authorization::new(&wallet, &chain.treasury().address, 10, 1);
    let call = pay.bytes_call(BYTES_TRANSFER, &sign(owner, &pay.digest(&chain)));
    let transaction = |gas: u128| json!([{"to": chain.token(), "data": call, "gas": format!("{gas:#x}")}, "latest"]);

    let modest = chain.rpc().quantity("eth_estimateGas", json!([{"to": chain.token(), "data": call}])).await.unwrap();
    chain.send(&wallet, &TEST_WALLET.call("setAppetite(uint256)", &[Arg::uint(5_000_000)])).await.unwrap();
    let baited = chain.rpc().quantity("eth_estimateGas", json!([{"to": chain.token(), "data": call}])).await.unwrap();
    assert!(modest < 150_000 && baited > 5_000_000, "{modest} and {baited}");
    assert!(chain.rpc().call("eth_call", transaction(10_000_000)).await.is_ok());
    // A call with a sensible gas limit fails instead of paying for the bait.
    assert!(chain.rpc().call("eth_call", transaction(300_000)).await.is_err());
}

/// A key that delegates to code can still sign, but the token asks only the code.
#[tokio::test]
async fn a_delegated_key_is_judged_by_the_code() {
    let chain = memory_chain().await;
    let (payer, treasury) = (&chain.payers()[5], &chain.treasury().address);
    let delegate = chain.deploy(&TEST_WALLET, &[Arg::address(treasury)]).await.unwrap();
    let pay = Authorization::new(&payer.address, treasury, 10, 1);
    let by_key = pay.bytes_call(BYTES_TRANSFER, &sign(payer, &pay.digest(&chain)));
    assert!(chain.rpc().eth_call(chain.token(), &by_key).await.is_ok(), "an ordinary key so far");

    delegate_to(&chain, payer, &delegate).await;
    let code = chain.rpc().call("eth_getCode", json!([payer.address, "latest"])).await.unwrap();
    assert_eq!(code, format!("0xef0100{}", &delegate[2..]));
    // The delegate reads its owner from the payer's own storage, where none is set.
    assert_eq!(refusal(&chain, &by_key).await, "FiatTokenV2: invalid signature");

    chain.send(&payer.address, &TEST_WALLET.call("initialize(address)", &[Arg::address(treasury)])).await.unwrap();
    assert_eq!(refusal(&chain, &by_key).await, "FiatTokenV2: invalid signature");
    let by_owner = pay.bytes_call(BYTES_TRANSFER, &sign(chain.treasury(), &pay.digest(&chain)));
    assert_eq!(chain.send(chain.token(), &by_owner).await.unwrap()["status"], "0x1");
}

/// Sends a type 4 transaction (EIP-7702) that lets `code` answer calls to `account`.
async fn delegate_to(chain: &DevChain, account: &Account, code: &str) {
    // keccak(0x05 || rlp([chain id, address, nonce])); 84532 takes three bytes, nonce 0 is the empty string.
    let chain_id = &chain.chain_id().to_be_bytes()[5..];
    let items = [&[0x83], chain_id, &[0x94], &unhex(&code[2..]).unwrap(), &[0x80]].concat();
    let digest = keccak(&[&[0x05, 0xc0 + items.len() as u8], &items[..]].concat());
    let signature = sign(account, &digest);
    let authorization = json!({
        "chainId": format!("{:#x}", chain.chain_id()),
        "address": code,
        "nonce": "0x0",
        "yParity": format!("{:#x}", signature[64] - 27),
        "r": format!("0x{}", hex(&signature[..32])),
        "s": format!("0x{}", hex(&signature[32..64])),
    });
    let transaction = json!({
        "from": chain.relayer().address,
        "to": account.address,
        "type": "0x4",
        "gas": "0x30d40",
        "authorizationList": [authorization],
    });
    let receipt = chain.rpc().send(transaction).await.unwrap();
    assert_eq!(receipt["status"], "0x1");
}
