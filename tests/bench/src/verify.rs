//! Verifying one payment locally, from the text of its header to its signer, compared with the recovery of the key from
//! its signature, which no implementation can skip.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use base::clock::Timestamp;
use base::money::Usdc;
use cpu_time::ThreadTime;
use evm::{Address, Word};
use http::{HeaderMap, HeaderValue};
use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
use ledger::payments::verify::{self, Signer};
use ledger::payments::wire;
use platform::config::{ChainConfig, Token};

use crate::Extent;
use crate::payer::{Payer, Terms, payment_header};
use crate::table::{Row, Verdict};
use crate::turns::{micros, per_cpu_second, take_turns};

/// The highest ratio that this project accepts.
const TARGET: f64 = 1.15;
/// Several payers, so that the result does not depend on one signature.
const PAYMENTS: usize = 64;
const NOW: Timestamp = Timestamp::from_secs(1_795_000_000);
/// As long as a real one. Not examined here.
const QUOTE_ID: &str = "quote_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIj";

/// A payment, in the form for both sides of the comparison.
struct Sample {
    headers: HeaderMap,
    digest: Word,
    signature: Signature,
    recovery_id: RecoveryId,
}

pub fn rows(extent: Extent) -> Vec<Row> {
    let usdc: Address = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().expect("an address");
    let token = Token::new(84532, usdc, "USDC", "2");
    let chain = ChainConfig { chain_id: 84532, rpc_url: String::new(), token };
    let terms = verify::Terms { amount: Usdc::from_micro(5_000), pay_to: Address::from_bytes([8; 20]) };
    let samples: Vec<Sample> = (0..extent.pick(PAYMENTS, 2)).map(|_| sample(&chain, terms)).collect();

    let whole = || {
        each(&samples, |sample| {
            let payment = wire::payment(&sample.headers).expect("it can be read").expect("there is one");
            verify::check_identity(&payment, &chain, terms.pay_to).expect("it is ours");
            verify::check_terms(&payment, terms, NOW).expect("the terms are ours");
            assert_eq!(verify::signer(&payment.authorization, &chain), Signer::Key);
        })
    };
    let bare = || {
        each(&samples, |sample| {
            let key = VerifyingKey::recover_from_prehash(&sample.digest, &sample.signature, sample.recovery_id);
            assert!(black_box(key).is_ok());
        })
    };
    let Ok(turns) = take_turns(extent.pick(60, 1), whole, bare);
    vec![Row {
        what: "verify a payment / bare k256 recovery".to_owned(),
        measured: format!("{:.3}", turns.ratio),
        target: format!("<= {TARGET}"),
        verdict: Verdict::at_most(turns.ratio, TARGET),
        figures: format!(
            "{:.1} us / {:.1} us, {} per CPU-second",
            micros(turns.a),
            micros(turns.b),
            per_cpu_second(turns.a)
        ),
    }]
}

/// The CPU time of this thread per sample.
fn each(samples: &[Sample], mut work: impl FnMut(&Sample)) -> Result<Duration, Infallible> {
    let started = ThreadTime::now();
    for sample in samples {
        work(black_box(sample));
    }
    Ok(started.elapsed() / samples.len() as u32)
}

fn sample(chain: &ChainConfig, terms: verify::Terms) -> Sample {
    let terms = Terms {
        token: &chain.token,
        chain_id: chain.chain_id,
        pay_to: terms.pay_to,
        amount: terms.amount,
        quote_id: Some(QUOTE_ID),
    };
    let authorization = Payer::random().authorize(&terms, NOW);
    let header = HeaderValue::from_str(&payment_header(&authorization, &terms)).expect("base64");
    let (r_s, v) = authorization.signature.split_at(64);
    Sample {
        headers: HeaderMap::from_iter([(http::HeaderName::from_static("payment-signature"), header)]),
        digest: authorization.digest(&chain.token.domain),
        signature: Signature::from_slice(r_s).expect("r and s"),
        recovery_id: RecoveryId::new(v == [28], false),
    }
}
