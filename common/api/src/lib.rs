//! The public surface of the service: every route, what each takes and answers, and the documents by which agents find it.
//!
//! - [`routes`]: the table of routes, and the middleware every router gets
//! - [`operations`]: one description for each route; `GET /openapi.json` is made of them
//! - [`discovery`]: llms.txt, the skill, the guides, the price list, the search for tools
//! - [`selling`]: the routes of a function that only sells
//!
//! Start with [`routes`]. A route without a description fails a test.

pub mod discovery;
pub mod operations;
pub mod routes;
pub mod selling;
