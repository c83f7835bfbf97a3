//! From a plan to files.

use crate::brief::Brief;
use crate::plan::{Look, Plan};

/// One file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its address below the site's root, such as `/about/index.html` or `/style.css`.
    pub path: String,
    pub content_type: &'static str,
    pub bytes: Vec<u8>,
}

/// Chooses a look by the brief alone: the same brief has the same look.
pub fn choose(_brief: &Brief) -> Look {
    unimplemented!()
}

/// Renders all files except the buyer's pictures. `root` is the site's address path, `""` or `/abc/v3`; `leads` is the address
/// that the form posts to, if there is one.
pub fn render(_plan: &Plan, _root: &str, _leads: Option<&str>) -> Vec<File> {
    unimplemented!()
}
