//! Websites from briefs: the sale ([`build`], [`quote`]), the work ([`work`]), the sites and their versions ([`site`]), what visitors
//! are served ([`serve`]) and write ([`leads`]), and how a site ends ([`lease`]). What a page says and how it looks is in the
//! crate `website`.

pub mod asset;
pub mod brief;
pub mod build;
pub mod checks;
pub mod leads;
pub mod lease;
pub mod quote;
pub mod serve;
pub mod site;
mod work;
mod zip;

tools::family!(build, asset);
