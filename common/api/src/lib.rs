//! Every route, what it takes and answers, and the documents agents find us by.

pub mod discovery;
pub mod operations;
pub mod routes;
