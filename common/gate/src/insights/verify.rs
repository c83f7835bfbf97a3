//! Verifies an export offline: the running hash over all lines, and every receipt's signature.
//!
//! The hash proves that the lines are complete and in order; the signatures prove that this service wrote them. Neither
//! shows that lines are missing at the end: for that, compare [`Verified::last_hash`] with the `X-Export-Hash` of a fresh
//! export.

use std::collections::HashMap;
use std::fmt;

use base::digest::sha256;
use base::encoding::base64_any;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;

use super::export::{self, FIRST_HASH, Format};
use super::view::{ALGORITHM, AuditRow};

/// Public keys by their ids.
pub struct Keys(HashMap<String, Vec<u8>>);

/// An export without errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub rows: usize,
    pub signed: usize,
    /// Charges that were still open when they were exported.
    pub pending: usize,
    /// Id and creation time of the first and the last receipt; `None` for a file without receipts.
    pub first: Option<(String, String)>,
    pub last: Option<(String, String)>,
    pub last_hash: String,
}

/// The first line with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Starts at 1.
    pub line: usize,
    pub receipt_id: Option<String>,
    pub what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.receipt_id {
            Some(receipt) => write!(f, "line {} ({receipt}): {}", self.line, self.what),
            None => write!(f, "line {}: {}", self.line, self.what),
        }
    }
}

impl Keys {
    /// Parses the Ed25519 keys of a JWK set.
    pub fn parse(jwks: &str) -> Result<Keys, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Jwk>,
        }
        #[derive(Deserialize)]
        struct Jwk {
            kid: Option<String>,
            crv: Option<String>,
            x: Option<String>,
        }
        let set: Set = serde_json::from_str(jwks).map_err(|wrong| format!("this is not a key set: {wrong}"))?;
        let keys = set.keys.into_iter().filter(|key| key.crv.as_deref() == Some("Ed25519"));
        Ok(Keys(keys.filter_map(|key| Some((key.kid?, base64_any(&key.x?)?))).collect()))
    }
}

/// Verifies a whole export: one page, or pages concatenated in order. CSV is recognised by its first line.
pub fn export(text: &str, keys: &Keys) -> Result<Verified, Wrong> {
    let header = export::csv_header();
    let format = if text.starts_with("receipt_id,") { Format::Csv } else { Format::JsonLines };
    let mut lines = export::lines(format, text).into_iter();
    if format == Format::Csv && lines.next().map(|(_, line)| line) != Some(header.trim_end()) {
        let what = "the columns are not those of an export".to_owned();
        return Err(Wrong { line: 1, receipt_id: None, what });
    }
    let mut verified =
        Verified { rows: 0, signed: 0, pending: 0, first: None, last: None, last_hash: FIRST_HASH.to_owned() };
    for (number, text) in lines {
        let wrong = |receipt_id: Option<&str>, what: String| {
            Err(Wrong { line: number, receipt_id: receipt_id.map(str::to_owned), what })
        };
        let line = match export::read_line(format, text) {
            Ok(line) => line,
            Err(what) => return wrong(None, what),
        };
        let receipt_id = Some(line.row.receipt_id.as_str());
        let signature = row(&line.row, keys);
        if export::chained(&verified.last_hash, line.covered) != line.hash {
            // A changed row is reported as such. Otherwise a line before it was removed, moved or changed.
            let what = match signature {
                Err(what) => format!("it was changed: {what}"),
                Ok(_) => {
                    "its hash does not follow from the line before: a line was removed, moved or changed".to_owned()
                }
            };
            return wrong(receipt_id, what);
        }
        if verified.last.as_ref().is_some_and(|(last, _)| line.row.receipt_id <= *last) {
            return wrong(receipt_id, "it does not come after the line before: it was moved or repeated".to_owned());
        }
        match signature {
            Ok(true) => verified.signed += 1,
            Ok(false) => verified.pending += 1,
            Err(what) => return wrong(receipt_id, what),
        }
        verified.rows += 1;
        verified.last_hash = line.hash.to_owned();
        let place = (line.row.receipt_id, line.row.created_at);
        verified.first.get_or_insert_with(|| place.clone());
        verified.last = Some(place);
    }
    Ok(verified)
}

/// Whether a row is signed. An error if its signature is wrong or missing.
fn row(row: &AuditRow, keys: &Keys) -> Result<bool, String> {
    let (Some(signature), Some(digest), Some(key_id)) =
        (&row.receipt_signature, &row.receipt_digest, &row.receipt_key_id)
    else {
        let open = !row.is_terminal() && !row.receipt_signed;
        return if open { Ok(false) } else { Err("a finished charge is not signed".to_owned()) };
    };
    if !row.receipt_signed || row.receipt_alg.as_deref() != Some(ALGORITHM) {
        return Err("it has a signature, but is marked as unsigned or names another algorithm".to_owned());
    }
    let bytes = row.signed_bytes();
    if const_hex::encode(sha256(&bytes)) != *digest {
        return Err("the receipt does not match its digest".to_owned());
    }
    let key = keys.0.get(key_id).ok_or_else(|| format!("the key {key_id} is not in the key set"))?;
    let signature = base64_any(signature).ok_or("the signature is not base64")?;
    match UnparsedPublicKey::new(&ED25519, key).verify(&bytes, &signature) {
        Ok(()) => Ok(true),
        Err(_) => Err("the signature is not the service's".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use base::ids::{AgentId, ReceiptId, RequestId};
    use base::money::Usdc;
    use evm::Address;
    use ledger::receipt::{ExecutionStatus, Receipt, ReceiptStatus};
    use ledger::signing::ReceiptSigner;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::insights::view;

    /// Receipts with anything a caller may attach, including formulas and line feeds.
    fn receipts() -> impl Strategy<Value = Vec<Receipt>> {
        let text = prop_oneof!["[=+@'\t\n\r-]?[ -~\n\"]{0,12}", "\\PC{0,12}"];
        let metadata = proptest::option::of((text.clone(), any::<f64>(), any::<u64>()));
        let metadata = metadata.prop_map(|metadata| {
            metadata.map(|(memo, confidence, number)| {
                let attached = json!({"memo": memo, "decisionContext": {"confidence": confidence, "n": number}});
                base::digest::canonical_json(&attached)
            })
        });
        let one = (any::<u64>(), 0..1u64 << 41, proptest::option::of(text), metadata, any::<u32>(), any::<bool>());
        let one = (one, any::<Option<u64>>());
        let one = one.prop_map(|((amount, at, goal_id, metadata, revision, done), fee)| {
            let (created_at, job_id) = (Timestamp::from_millis(at as i64), RequestId::bought_with("test", &[]));
            let mut receipt = Receipt {
                receipt_id: ReceiptId::of(job_id, created_at),
                agent_id: AgentId::of(Address::ZERO),
                job_id,
                category: "data".to_owned(),
                subcategory: "web_read".to_owned(),
                amount: Usdc::from_micro(amount),
                credits: Usdc::ZERO,
                token_id: None,
                provider_cost: None,
                service_fee: fee.map(Usdc::from_micro),
                kept: fee.map(|fee| Usdc::from_micro(fee / 2)),
                passed_on: None,
                judged: Default::default(),
                quote: None,
                status: if done { ReceiptStatus::Settled } else { ReceiptStatus::Pending },
                execution_status: ExecutionStatus::Completed,
                settlement_tx: done.then(|| "0xabc".to_owned()),
                goal_id,
                metadata,
                created_at,
                settled_at: done.then_some(created_at),
                revision,
                seal: None,
            };
            if done {
                receipt.seal(&signer());
            }
            receipt
        });
        // In the audit's order.
        proptest::collection::vec(one, 1..6).prop_map(in_order)
    }

    fn in_order(mut receipts: Vec<Receipt>) -> Vec<Receipt> {
        receipts.sort_by(|one, other| one.receipt_id.cmp(&other.receipt_id));
        receipts.dedup_by(|one, other| one.receipt_id == other.receipt_id);
        receipts
    }

    fn signer() -> ReceiptSigner {
        ReceiptSigner::from_seed(&[7; 32]).unwrap()
    }

    fn keys() -> Keys {
        Keys::parse(&json!({"keys": [signer().public().jwk()]}).to_string()).unwrap()
    }

    fn exported(format: Format, receipts: &[Receipt]) -> String {
        let mut text = if format == Format::Csv { export::csv_header() } else { String::new() };
        let mut hash = FIRST_HASH.to_owned();
        for receipt in receipts {
            let line;
            (line, hash) = export::write_line(format, &view::audit_row(receipt), &hash).unwrap();
            text.push_str(&line);
        }
        text
    }

    proptest! {
        /// A written row parses back to the signed bytes, and verifies.
        #[test]
        fn an_exported_row_verifies_with_its_signature(receipts in receipts()) {
            for format in [Format::Csv, Format::JsonLines] {
                let text = exported(format, &receipts);
                let lines = export::lines(format, &text);
                for ((_, line), receipt) in lines[usize::from(format == Format::Csv)..].iter().zip(&receipts) {
                    let row = export::read_line(format, line).unwrap().row;
                    prop_assert_eq!(row.signed_bytes(), receipt.signed_bytes());
                }
                let verified = export(&text, &keys()).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
                prop_assert_eq!((verified.rows, verified.signed + verified.pending), (receipts.len(), receipts.len()));
            }
        }

        /// Changing any byte is detected, at the latest in its own line.
        #[test]
        fn any_changed_byte_is_detected(receipts in receipts(), at in any::<prop::sample::Index>(), csv in any::<bool>()) {
            let format = if csv { Format::Csv } else { Format::JsonLines };
            let text = exported(format, &receipts);
            let at = at.index(text.len() - 1);
            prop_assume!(text.as_bytes()[at].is_ascii());
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            let changed_line = text[..at].matches('\n').count() + 1;
            let wrong = export(std::str::from_utf8(&bytes).unwrap(), &keys()).expect_err("a byte was changed");
            prop_assert!(wrong.line <= changed_line, "{} was changed, {}", changed_line, wrong);
        }
    }

    #[test]
    fn a_missing_or_moved_line_is_reported() {
        let mut receipts = Vec::new();
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        while receipts.len() < 4 {
            let tree = self::receipts().new_tree(&mut runner).unwrap();
            receipts
                .extend(proptest::strategy::ValueTree::current(&tree).into_iter().filter(|one| one.goal_id.is_none()));
        }
        let receipts = in_order(receipts);
        for format in [Format::Csv, Format::JsonLines] {
            let text = exported(format, &receipts[..4]);
            let first = usize::from(format == Format::Csv);
            let lines: Vec<&str> = text.lines().collect();
            let removed: Vec<&str> = [&lines[..first + 1], &lines[first + 2..]].concat();
            let wrong = export(&format!("{}\n", removed.join("\n")), &keys()).unwrap_err();
            assert_eq!((wrong.line, wrong.receipt_id), (first + 2, Some(receipts[2].receipt_id.to_string())));
            let mut moved = lines.clone();
            moved.swap(first + 1, first + 2);
            assert_eq!(export(&format!("{}\n", moved.join("\n")), &keys()).unwrap_err().line, first + 2);
        }
        // A forger with correct hashes still cannot repeat a line or sign as the service.
        let repeated = exported(Format::JsonLines, &[receipts[0].clone(), receipts[0].clone()]);
        assert_eq!(export(&repeated, &keys()).unwrap_err().line, 2);
        let signed = receipts.iter().find(|receipt| receipt.seal.is_some()).unwrap();
        let dearer = Receipt { amount: Usdc::from_micro(signed.amount.micro() ^ 1), ..signed.clone() };
        assert!(export(&exported(Format::Csv, &[dearer]), &keys()).unwrap_err().what.contains("digest"));
        let unsigned = Receipt { seal: None, ..signed.clone() };
        assert!(export(&exported(Format::Csv, &[unsigned]), &keys()).unwrap_err().what.contains("not signed"));
        assert_eq!(export("", &keys()).unwrap().last_hash, FIRST_HASH);
    }

    #[test]
    fn no_cell_is_a_spreadsheet_formula() {
        let row = |goal: &str| {
            let job_id = RequestId::bought_with("test", &[]);
            let mut row = view::audit_row(&Receipt {
                receipt_id: ReceiptId::of(job_id, Timestamp::from_secs(1)),
                agent_id: AgentId::of(Address::ZERO),
                job_id,
                category: "data".to_owned(),
                subcategory: "web_read".to_owned(),
                amount: Usdc::ZERO,
                credits: Usdc::ZERO,
                token_id: None,
                provider_cost: None,
                service_fee: None,
                kept: None,
                passed_on: None,
                judged: Default::default(),
                quote: None,
                status: ReceiptStatus::Pending,
                execution_status: ExecutionStatus::Pending,
                settlement_tx: None,
                goal_id: None,
                metadata: None,
                created_at: Timestamp::from_secs(1),
                settled_at: None,
                revision: 1,
                seal: None,
            });
            row.goal_id = Some(goal.to_owned());
            export::write_line(Format::Csv, &row, FIRST_HASH).unwrap().0
        };
        for (goal, cell) in [
            ("=HYPERLINK(1)", ",'=HYPERLINK(1),"),
            ("+1,2", ",\"'+1,2\","),
            ("-1", ",'-1,"),
            ("@x", ",'@x,"),
            ("'x", ",''x,"),
            ("\t=1", ",'\t=1,"),
            ("", ",\"\","),
            ("plain", ",plain,"),
        ] {
            assert!(row(goal).contains(cell), "{}", row(goal));
        }
    }
}
