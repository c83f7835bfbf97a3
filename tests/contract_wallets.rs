//! Payers that are contracts: the contract's code verifies their signatures, as the token does, and nothing else.

use base::digest;
use devchain::contracts::{Arg, TEST_WALLET};
use evm::authorization::Authorization;
use evm::{Address, hex0x};
use local::Stack;
use serde_json::json;

use crate::support::payer::{bare, header};
use crate::support::{Payer, VIN, VIN_PATH, run, stack};

/// A contract wallet of this owner, with a dollar in it.
async fn wallet_of(stack: &Stack, owner: &Payer) -> Address {
    let chain = stack.chain.as_ref().unwrap();
    let address = chain.deploy(&TEST_WALLET, &[Arg::address(&owner.address().to_string())]).await.expect("a wallet");
    chain.mint(&address, 1_000_000).await.expect("minting");
    address.parse().expect("an address")
}

/// An authorization of the wallet, signed by its owner's key.
fn authorize(owner: &Payer, wallet: Address, stack: &Stack) -> Authorization {
    let mut authorization = owner.authorize(5_000);
    authorization.from = wallet;
    authorization.nonce = digest::random();
    authorization.signature = owner.sign(&authorization, &stack.config.chain.token.domain);
    authorization
}

#[test]
fn a_contract_wallet_pays_and_gets_its_stored_answer() {
    run(async {
        let stack = stack().await;
        let owner = Payer::with(&stack, 0).await;
        let wallet = wallet_of(&stack, &owner).await;
        let authorization = authorize(&owner, wallet, &stack);
        let payment = header(&bare(&authorization));
        let body = json!({"vin": VIN});
        let answer = owner.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.base64_header("payment-response")["payer"], wallet.to_string());
        let again = owner.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!((again.status, again.text), (200, answer.text));
        let balance = stack.chain.as_ref().unwrap().balance_of(&wallet.to_string()).await.unwrap();
        assert_eq!(balance, 995_000);

        // The nonce and the payer are public now. The signature still has to be the payer's.
        let mut forged = authorization.clone();
        forged.signature[5] ^= 1;
        let answer = owner.client.post(VIN_PATH, &[("x-payment", &header(&bare(&forged)))], &body).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (402, &json!("invalid_exact_evm_payload_signature")));
    });
}

#[test]
fn a_contract_wallet_refuses_a_foreign_signature() {
    run(async {
        let stack = stack().await;
        let owner = Payer::with(&stack, 0).await;
        let thief = Payer::with(&stack, 0).await;
        let wallet = wallet_of(&stack, &owner).await;
        for signature in [authorize(&thief, wallet, &stack).signature, vec![1; 100], vec![1]] {
            let mut authorization = authorize(&owner, wallet, &stack);
            authorization.signature = signature;
            let answer = thief
                .client
                .post(VIN_PATH, &[("x-payment", &header(&bare(&authorization)))], &json!({"vin": VIN}))
                .await;
            assert_eq!((answer.status, &answer.json()["reason"]), (402, &json!("invalid_exact_evm_payload_signature")));
        }
        assert_eq!(stack.chain.as_ref().unwrap().balance_of(&wallet.to_string()).await.unwrap(), 1_000_000);
    });
}

/// A stranger saw the wallet's transfer on chain. Without the wallet's signature it buys the stranger nothing.
#[test]
fn an_observed_transfer_buys_nothing_without_the_wallets_signature() {
    run(async {
        let stack = stack().await;
        let owner = Payer::with(&stack, 0).await;
        let wallet = wallet_of(&stack, &owner).await;
        let authorization = authorize(&owner, wallet, &stack);
        crate::front_run::broadcast(stack.chain.as_ref().unwrap(), &authorization).await;
        let mut stolen = authorization.clone();
        stolen.signature = vec![7; 65];
        let body = json!({"vin": VIN});
        let answer = owner.client.post(VIN_PATH, &[("x-payment", &header(&bare(&stolen)))], &body).await;
        assert_eq!(answer.status, 402, "{}", answer.text);
        let answer = owner.client.post(VIN_PATH, &[("x-payment", &header(&bare(&authorization)))], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    });
}

/// A wallet whose code burns gas without end must not delay anyone.
#[test]
fn a_wallet_that_burns_gas_delays_nobody() {
    run(async {
        let stack = stack().await;
        let owner = Payer::with(&stack, 0).await;
        let wallet = wallet_of(&stack, &owner).await;
        let data = TEST_WALLET.call("setAppetite(uint256)", &[Arg::uint(1_000_000_000)]);
        let receipt = stack.chain.as_ref().unwrap().send(&wallet.to_string(), &data).await.expect("a receipt");
        assert_eq!(receipt["status"], "0x1");
        let authorization = authorize(&owner, wallet, &stack);
        let answer =
            owner.client.post(VIN_PATH, &[("x-payment", &header(&bare(&authorization)))], &json!({"vin": VIN})).await;
        assert_eq!(answer.status, 402, "{}", answer.text);
        assert_eq!(
            owner.client.get(&format!("/v1/payments/{}", hex0x(&authorization.nonce)), &[]).await.json()["state"],
            "never_seen"
        );
    });
}
