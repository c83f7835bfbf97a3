//! Payers that are contracts: the contract's code verifies their signatures, as the token does, and nothing else.

use base::digest;
use devchain::contracts::{Arg, TEST_WALLET};
use evm::authorization::Authorization;
use evm::{Address, hex0x};
use local::Stack;
use serde_json::{Value, json};

use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Payer, VIN, VIN_PATH, chain, run, stack, stack_with};

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

/// 405,000 gas at 1 gwei or more come to over 0.006 USDC with an ether of 15 USDC, and the tool costs 0.005.
#[test]
fn a_payment_whose_gas_costs_more_than_it_brings_is_refused_before_the_claim() {
    run(async {
        let stack = stack_with(|options| options.with("ETHER_USDC", "15")).await;
        let owner = Payer::with(&stack, 0).await;
        let wallet = wallet_of(&stack, &owner).await;
        let pay = async |path: &str, authorization: &Authorization, body: &Value| {
            owner.client.post(path, &[("x-payment", &header(&bare(authorization)))], body).await
        };
        let body = json!({"vin": VIN});
        let modest = pay(VIN_PATH, &authorize(&owner, wallet, &stack), &body).await;
        assert_eq!(modest.status, 200, "{}", modest.text);

        let data = TEST_WALLET.call("setAppetite(uint256)", &[Arg::uint(300_000)]);
        let receipt = stack.chain.as_ref().unwrap().send(&wallet.to_string(), &data).await.expect("a receipt");
        assert_eq!(receipt["status"], "0x1");
        let authorization = authorize(&owner, wallet, &stack);
        let refused = pay(VIN_PATH, &authorization, &body).await;
        assert_eq!((refused.status, &refused.json()["reason"]), (402, &json!("gas_too_high")), "{}", refused.text);
        assert!(refused.text.contains("/v1/credits/top-up"), "{}", refused.text);
        assert_eq!(owner.payment_state(&authorization).await["state"], "never_seen");

        // A payment that is worth its gas passes.
        let mut authorization = owner.authorize(500_000);
        authorization.from = wallet;
        authorization.nonce = digest::random();
        authorization.signature = owner.sign(&authorization, &stack.config.chain.token.domain);
        let bought = pay("/v1/credits/top-up", &authorization, &json!({"amount": "0.50"})).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
    });
}

/// The wallet asks for more gas than when it was checked, or fees jump: nothing is sent.
#[test]
fn gas_that_rises_after_the_check_is_not_paid() {
    run(async {
        let proxy = Proxy::start(chain().await.rpc_url(), Life::immortal()).await;
        let stack = stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url)).await;
        let payer = Payer::new(&stack).await;
        // The check's batch begins with eth_call, the settlement's with eth_estimateGas.
        proxy.inject(|method| {
            let answers = json!([
                {"jsonrpc": "2.0", "id": 0, "result": "0x15f90"},
                {"jsonrpc": "2.0", "id": 1, "result": {"baseFeePerGas": "0xe8d4a51000"}},
                {"jsonrpc": "2.0", "id": 2, "result": "0x1"},
                {"jsonrpc": "2.0", "id": 3, "result": "0x0"},
            ]);
            (method == "eth_estimateGas").then_some((200, answers))
        });
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (402, &json!("gas_too_high")), "{}", answer.text);
        assert_eq!(payer.balance(&stack).await, 1_000_000);
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
