//! A document with references into itself.

use base::encoding::percent_decoded;
use serde_json::Value;

/// Most references that are followed one after another.
const MAX_HOPS: usize = 16;
/// Longest reference, in bytes.
const MAX_REFERENCE: usize = 500;

/// An untrusted document. References are followed within it only.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub root: &'a Value,
}

impl<'a> Document<'a> {
    /// What a reference such as `#/components/schemas/Pet` names.
    pub fn target(&self, reference: &str) -> Result<&'a Value, String> {
        let shown: String = reference.chars().take(100).collect();
        if reference.len() > MAX_REFERENCE {
            return Err("has a $ref that is too long".to_owned());
        }
        let pointer = reference.strip_prefix('#');
        let pointer = pointer.ok_or_else(|| format!("refers to another document ({shown}); bundle it into one"))?;
        let found = self.root.pointer(&percent_decoded(pointer));
        found.ok_or_else(|| format!("refers to {shown}, which is not in the document"))
    }

    /// The value itself, or what its `$ref` leads to.
    pub fn resolved(&self, value: &'a Value) -> Result<&'a Value, String> {
        let mut value = value;
        for _ in 0..MAX_HOPS {
            match value["$ref"].as_str() {
                Some(reference) => value = self.target(reference)?,
                None => return Ok(value),
            }
        }
        Err(format!("has more than {MAX_HOPS} references one after another"))
    }
}
