//! A tag in our own transactions that says which job they pay for.
//!
//! An authorization names payer, payee and amount, but not the purchase. So a used authorization does not show which
//! purchase it paid for: two deployments paid at one address would both accept it. Our relayer therefore appends 32 bytes
//! to the call: a marker, and an HMAC of the job's id under the deployment's secret. Tokens decode the arguments they know
//! and ignore the rest, also behind a proxy. A payer's contract wallet does not receive the tag, because the token encodes
//! the arguments of that call itself. The tag costs about 500 gas, and stays the same when the fee is raised.
//!
//! | the transaction that used the authorization | what it paid for |
//! |---|---|
//! | carries our tag for this job | this job, whatever happened to the job meanwhile |
//! | carries another tag | another purchase, here or at another deployment: it buys nothing more |
//! | carries no tag | sent by a stranger or a facilitator: it pays for the first purchase it is presented for |
//!
//! Anybody can write a tag. A stranger who broadcasts the payment with a false tag before our own transaction ruins the
//! purchase and pays the gas for it. The refusal names that transaction.

use base::digest;
use base::ids::RequestId;
use evm::Word;
use evm::authorization::Authorization;
use platform::providers::chain::transfer_call;
use ring::hmac;

/// The first bytes of a tag.
const MARKER: [u8; 4] = *b"PAID";

/// Makes the tags of one deployment.
#[derive(Clone, Debug)]
pub struct Tags(hmac::Key);

/// Which purchase a transaction was broadcast for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastFor {
    /// The given job.
    ThisJob,
    /// Another purchase, at this deployment or at another one.
    AnotherPurchase,
    /// The transaction has no tag.
    Unsaid,
}

impl Tags {
    pub fn new(key: &Word) -> Tags {
        Tags(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    fn tag(&self, job: RequestId) -> Word {
        let mut tag = digest::hmac(&self.0, job.bytes());
        tag[..MARKER.len()].copy_from_slice(&MARKER);
        tag
    }

    /// The call data that settles a payment for a job.
    pub fn call(&self, authorization: &Authorization, job: RequestId) -> Vec<u8> {
        let mut call = transfer_call(authorization);
        call.extend_from_slice(&self.tag(job));
        call
    }

    /// Whether call data ends with a tag of any deployment.
    pub fn is_tagged(input: &[u8]) -> bool {
        input.len().checked_sub(32).is_some_and(|at| input[at..].starts_with(&MARKER))
    }

    /// Reads the tag from the input of the transaction that used the authorization.
    pub fn read(&self, input: &[u8], authorization: &Authorization, job: RequestId) -> BroadcastFor {
        // Without a tag, the payer may choose the last word of the call.
        if input.len() <= transfer_call(authorization).len() || !Tags::is_tagged(input) {
            BroadcastFor::Unsaid
        } else if input.ends_with(&self.tag(job)) {
            BroadcastFor::ThisJob
        } else {
            BroadcastFor::AnotherPurchase
        }
    }
}

#[cfg(test)]
mod tests {
    use evm::signature::PrivateKey;
    use evm::{Address, word_from_u64};

    use super::*;

    #[test]
    fn a_tag_is_read_by_the_deployment_and_job_that_wrote_it() {
        let (ours, others) = (Tags::new(&[1; 32]), Tags::new(&[2; 32]));
        let (job, another) = (RequestId::bought_with("quote", &[b"1"]), RequestId::bought_with("quote", &[b"2"]));
        let key = PrivateKey::from_bytes(&[7; 32]).unwrap();
        for signature in [key.sign(&[1; 32]).to_bytes().to_vec(), vec![0xff; 100]] {
            let authorization = Authorization {
                from: key.address(),
                to: Address::from_bytes([2; 20]),
                value: word_from_u64(2_000),
                valid_after: [0; 32],
                valid_before: word_from_u64(9),
                nonce: [5; 32],
                signature,
            };
            let (call, plain) = (ours.call(&authorization, job), transfer_call(&authorization));
            assert_eq!(
                (&call[..plain.len()], call.len()),
                (&plain[..], plain.len() + 32),
                "the arguments are as they were"
            );
            assert_eq!(ours.call(&authorization, job), call, "signed again, it is the same");
            let read = |tags: &Tags, input: &[u8], job| tags.read(input, &authorization, job);
            assert_eq!(read(&ours, &call, job), BroadcastFor::ThisJob);
            assert_eq!(read(&ours, &call, another), BroadcastFor::AnotherPurchase);
            assert_eq!(read(&others, &call, job), BroadcastFor::AnotherPurchase);
            let suffixed = [&plain[..], &[0x80, 0x21].repeat(16)].concat();
            for untagged in [&plain[..], &suffixed, &[], &MARKER, &plain[..40]] {
                assert_eq!(read(&ours, untagged, job), BroadcastFor::Unsaid);
            }
        }
    }
}
