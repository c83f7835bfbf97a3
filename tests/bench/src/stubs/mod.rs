//! What the functions talk to: the Lambda Runtime API, AWS over TLS, and a chain node. Each answers just well enough
//! for the calls that are measured, on threads of this process, whose time is not counted.

pub mod aws;
pub mod chain;
pub mod http;
pub mod runtime;
