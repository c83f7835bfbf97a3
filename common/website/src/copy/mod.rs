//! From a brief to a plan: which sections there are and what they say.

mod language;
mod money;
mod orders;
mod sentences;
mod text;
mod times;
mod topics;
pub mod words;

use crate::brief::Brief;
use crate::plan::{Look, Plan};

/// Plans a site. `look` was chosen by `design::choose`.
pub fn plan(_brief: &Brief, _look: Look) -> Plan {
    unimplemented!()
}
