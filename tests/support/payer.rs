//! A wallet with test dollars that signs what a real client signs, and, if a test wants it, something else.

use base::clock::Clock;
use base::digest;
use base::encoding::base64_standard;
use base::ids::{AgentId, TokenId};
use base::money::Usdc;
use evm::authorization::Authorization;
use evm::signature::PrivateKey;
use evm::{Address, Word, eip712, hex0x, keccak256, word_from_u64};
use ledger::account::Change;
use ledger::credit::{self, EntryKind};
use local::Stack;
use platform::auth::token::{self, TokenCaps};
use platform::config::Config;
use serde_json::{Value, json};

use super::http::borrowed;
use super::{Answer, Client};

#[derive(Clone)]
pub struct Payer {
    pub key: PrivateKey,
    pub client: Client,
    token: platform::config::Token,
    pay_to: Address,
    service_name: String,
}

impl Payer {
    /// A new wallet with this many micro-USDC.
    pub async fn with(stack: &Stack, micro: u64) -> Payer {
        let key = PrivateKey::from_bytes(&digest::random()).expect("a key");
        let chain = stack.chain.as_ref().expect("a local chain");
        if micro > 0 {
            chain.mint(&key.address().to_string(), u128::from(micro)).await.expect("minting");
        }
        Payer::of(key, &stack.config, &stack.base_url)
    }

    /// The wallet of a key.
    pub fn of(key: PrivateKey, config: &Config, base_url: &str) -> Payer {
        Payer {
            key,
            client: Client::new(base_url),
            token: config.chain.token.clone(),
            pay_to: config.payments.pay_to,
            service_name: config.service_name.clone(),
        }
    }

    /// A new wallet with a dollar.
    pub async fn new(stack: &Stack) -> Payer {
        Payer::with(stack, 1_000_000).await
    }

    /// The same wallet, talking to another stack.
    pub fn at(&self, stack: &Stack) -> Payer {
        Payer { client: Client::new(&stack.base_url), ..self.clone() }
    }

    pub fn address(&self) -> Address {
        self.key.address()
    }

    pub fn agent(&self) -> AgentId {
        AgentId::of(self.address())
    }

    /// Its balance on chain, in micro-USDC.
    pub async fn balance(&self, stack: &Stack) -> u128 {
        stack.chain.as_ref().expect("a local chain").balance_of(&self.address().to_string()).await.expect("a balance")
    }

    /// Adds credits, as if by a top-up that was paid by card.
    pub async fn give_credits(&self, stack: &Stack, micro: u64) {
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let change = credit::add(Usdc::from_micro(micro)).expect("an amount");
        let cause = hex0x(&digest::random::<8>());
        let writes = credit::change(db, self.agent(), EntryKind::CardTopUp, change, &cause, None, now).expect("writes");
        db.transact(&writes).await.expect("credits");
    }

    /// Records that the wallet has settled this much before.
    pub async fn has_settled(&self, stack: &Stack, micro: u64) {
        let change = Change { settled: i64::try_from(micro).expect("an amount"), ..Change::default() };
        let write = change.write(&stack.app.db, self.agent()).expect("a write");
        stack.app.db.write(write).await.expect("an account");
    }

    /// A new access token, as an `Authorization` header.
    pub async fn token(&self, stack: &Stack) -> String {
        self.capped_token(stack, TokenCaps::default()).await.1
    }

    /// A new access token with these caps: its id, and its `Authorization` header.
    pub async fn capped_token(&self, stack: &Stack, caps: TokenCaps) -> (TokenId, String) {
        let (app, now) = (&stack.app, stack.app.clock.now());
        let prefix = &app.config.token_prefixes[0];
        let minted = token::mint_capped(&app.db, prefix, self.address(), None, None, caps, now).await;
        let minted = minted.expect("the database answers").expect("not too many");
        (minted.token.id, format!("Bearer {}", minted.secret))
    }

    /// A signed authorization as clients make it.
    pub fn authorize(&self, micro: u64) -> Authorization {
        self.authorize_with(micro, |_| ())
    }

    /// An authorization that is changed before it is signed.
    pub fn authorize_with(&self, micro: u64, change: impl FnOnce(&mut Authorization)) -> Authorization {
        let now = u64::try_from(Clock::system().now().secs()).expect("after 1970");
        let mut authorization = Authorization {
            from: self.address(),
            to: self.pay_to,
            value: word_from_u64(micro),
            valid_after: word_from_u64(now - 300),
            valid_before: word_from_u64(now + 3600),
            nonce: digest::random(),
            signature: Vec::new(),
        };
        change(&mut authorization);
        authorization.signature = self.sign(&authorization, &self.token.domain);
        authorization
    }

    pub fn sign(&self, authorization: &Authorization, domain: &Word) -> Vec<u8> {
        self.key.sign(&authorization.digest(domain)).to_bytes().to_vec()
    }

    /// A proof header for this scope.
    pub fn proof(&self, scope: &str) -> String {
        self.proof_at(scope, Clock::system().now().secs())
    }

    pub fn proof_at(&self, scope: &str, issued_at: i64) -> String {
        let nonce: Word = digest::random();
        let domain = eip712::named_domain(&format!("{} Agent Auth", self.service_name), "1");
        let message = eip712::hash_struct([
            keccak256(b"AgentReadAuth(address agent,string scope,uint256 issuedAt,bytes32 nonce)"),
            self.address().word(),
            keccak256(scope.as_bytes()),
            word_from_u64(issued_at.unsigned_abs()),
            nonce,
        ]);
        let signature = self.key.sign(&eip712::digest(&domain, &message)).to_bytes();
        let proof = json!({
            "agent": self.address().to_string(), "scope": scope, "issuedAt": issued_at,
            "nonce": hex0x(&nonce), "signature": hex0x(&signature),
        });
        base64_standard(proof.to_string().as_bytes())
    }

    /// Sends a GET with a read proof.
    pub async fn get(&self, path: &str) -> Answer {
        let address = self.address().to_string();
        self.client.get(path, &[("x-agent-id", &address), ("x-agent-proof", &self.proof("read"))]).await
    }

    /// Sends a POST and owns all arguments, for concurrent calls.
    pub async fn call(self, path: &'static str, headers: Vec<(&'static str, String)>, body: Value) -> Answer {
        self.client.post(path, &borrowed(&headers), &body).await
    }

    /// Sends a change to one of the agent's own routes, with a write proof.
    pub async fn change(&self, method: &str, path: &str, body: &Value) -> Answer {
        let proof = self.proof("write");
        let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
        self.client.send(method, path, &headers, body.to_string()).await.expect("an answer")
    }

    /// The payment of zero that clients send if credits cover everything.
    pub fn nothing(&self) -> String {
        let zero = |text: &str| json!(text);
        header(&json!({
            "x402Version": 2,
            "payload": {"signature": "0x", "authorization": {
                "from": self.address().to_string(), "to": self.pay_to.to_string(), "value": zero("0"),
                "validAfter": zero("0"), "validBefore": zero("0"), "nonce": format!("0x{}", "0".repeat(64)),
            }},
        }))
    }

    /// Requests, pays the 402 as an x402 v2 client does, and returns the answer to the paid call.
    pub async fn buy(&self, path: &str, body: &Value) -> Answer {
        let unpaid = self.client.post(path, &[], body).await;
        assert_eq!(unpaid.status, 402, "{}", unpaid.text);
        let payment = self.pay(&unpaid);
        self.client.post(path, &[("payment-signature", &payment)], body).await
    }

    /// Asks for a price, naming the wallet.
    pub async fn ask(&self, path: &str, body: &Value) -> Answer {
        self.client.post(path, &[("x-agent-id", &self.address().to_string())], body).await
    }

    /// What pays the 402 of an asked price, naming the wallet.
    pub fn paying(&self, unpaid: &Answer) -> [(&'static str, String); 3] {
        assert_eq!(unpaid.status, 402, "{}", unpaid.text);
        let quote = unpaid.json()["context"]["quote_id"].as_str().expect("a quote").to_owned();
        [("x-agent-id", self.address().to_string()), ("x-quote-id", quote), ("payment-signature", self.pay(unpaid))]
    }

    /// Pays the 402 of an asked price.
    pub async fn redeem(&self, path: &str, unpaid: &Answer, body: &Value) -> Answer {
        self.client.post(path, &borrowed(&self.paying(unpaid)), body).await
    }

    /// The payment that a v2 client makes for a 402.
    pub fn pay(&self, unpaid: &Answer) -> String {
        let challenge = unpaid.base64_header("payment-required");
        let accepted = &challenge["accepts"][0];
        let amount = accepted["amount"].as_str().and_then(|amount| amount.parse().ok()).expect("an amount");
        header(&v2(&self.authorize(amount), accepted))
    }

    /// Polls a job until it is finished.
    pub async fn finished(&self, request_id: &str) -> Value {
        super::eventually("the job to finish", || async {
            let body = self.get(&format!("/v1/requests/{request_id}")).await.json();
            let done = body["status"] == "completed" || body["status"] == "failed";
            (done && body["settlement_status"] != "pending").then_some(body)
        })
        .await
    }

    /// The state of a payment.
    pub async fn payment_state(&self, authorization: &Authorization) -> Value {
        self.client.get(&format!("/v1/payments/{}", hex0x(&authorization.nonce)), &[]).await.json()
    }
}

/// The signed message as JSON.
pub fn message(authorization: &Authorization) -> Value {
    json!({
        "from": authorization.from.to_string(),
        "to": authorization.to.to_string(),
        "value": decimal(&authorization.value),
        "validAfter": decimal(&authorization.valid_after),
        "validBefore": decimal(&authorization.valid_before),
        "nonce": hex0x(&authorization.nonce),
    })
}

/// An x402 v2 payment for an accepted requirement.
pub fn v2(authorization: &Authorization, accepted: &Value) -> Value {
    json!({
        "x402Version": 2,
        "accepted": accepted,
        "payload": {"signature": hex0x(&authorization.signature), "authorization": message(authorization)},
    })
}

/// An x402 v1 payment.
pub fn v1(authorization: &Authorization) -> Value {
    json!({
        "x402Version": 1,
        "scheme": "exact",
        "network": "base-sepolia",
        "payload": {"signature": hex0x(&authorization.signature), "authorization": message(authorization)},
    })
}

/// A bare authorization.
pub fn bare(authorization: &Authorization) -> Value {
    let mut bare = message(authorization);
    bare["signature"] = json!(hex0x(&authorization.signature));
    bare
}

/// Base64 of JSON, as headers carry it.
pub fn header(value: &Value) -> String {
    base64_standard(value.to_string().as_bytes())
}

fn decimal(word: &Word) -> String {
    evm::word_to_u64(word).map_or_else(|| "9".repeat(77), |number| number.to_string())
}
