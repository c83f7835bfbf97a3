//! Verification: whether mail to an address arrives, and whether somebody controls what they name.

pub mod address;
pub mod email;
mod hunter;
pub mod identity;
#[cfg(test)]
#[path = "../../../../tests/support/mailhost.rs"]
mod mailhost;
pub mod manners;
pub mod session;
mod smtp;
pub mod verdict;

tools::family!(email, identity);
