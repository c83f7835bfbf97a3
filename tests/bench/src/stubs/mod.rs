//! Stand-ins that the functions use: the Lambda Runtime API, AWS over TLS, and a chain node. Each answers just well
//! enough for the measured calls, on threads of this process, whose time is not counted.

pub mod aws;
pub mod chain;
pub mod http;
pub mod runtime;
