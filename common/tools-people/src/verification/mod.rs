//! Verification: whether an e-mail address receives mail, and whether a person is who they say or controls an address.
//! Start with [`email`] and [`identity`].

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

/// What the providers of checks charge.
pub const CHARGES: [platform::providers::Charge; 2] = [hunter::CHARGE, crate::stripe::CHARGE];

tools::family!(email, identity);
