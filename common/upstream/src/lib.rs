//! An operator's own services as tools that agents buy. Pure: no network, no clock, no store.

mod import;
pub mod mcp;
mod outcome;
mod price;
mod problem;
mod request;
mod settings;
mod tool;
mod yaml;

pub use import::{Imported, ImportedTool, McpServer, Refused, Select, Selection, from_mcp, from_openapi};
pub use outcome::{Content as AnswerContent, Failure, Media, Outcome, Reason, Response, judge};
pub use price::{LEAST_PRICE, MOST_PRICE, Measure, PerUnit, Price};
pub use problem::Problem;
pub use request::{Ready, Request, SecretProblem, build};
pub use settings::{MAX_TOOLS, Reserved, Settings};
pub use tool::{
    Body, Constant, Content, HeaderSlot, HttpTarget, McpTarget, Method, PathPart, QuerySlot, SecretUse, Segment,
    Server, Style, Target, Tool,
};
pub use yaml::from_yaml;
