//! Runs a seller's program as a job would, without tools, because they cost money:
//! `cargo run --release -p executor --example run -- program.wasm '{"your": "input"}'`

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::clock::Clock;
use base::ids::RequestId;
use catalog::CATALOG;
use executor::program::{ProgramExecutor, check_program};
use gate::app::App;
use gate::work::{Commission, Executor, Spending, ToolAccess, Unrecorded, Usage};
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;

type Failed = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let program = std::fs::read(arguments.next().ok_or("usage: run PROGRAM.wasm [INPUT_JSON]")?)?;
    let input = serde_json::from_str(&arguments.next().unwrap_or_else(|| "{}".to_owned()))?;
    let info = check_program(&program).map_err(|problems| problems.join("\n"))?;
    eprintln!("{} bytes, imports {}", info.bytes, info.imports.join(" "));

    let config = Config::read(|name| (name == "PAY_TO").then(|| format!("0x{:040x}", 1)))?;
    let clock = Clock::system();
    let config = Arc::new(config);
    let connections = Connections::open(&config)?;
    let toolbox = App::new(config, &connections, &CATALOG).toolbox(&connections, FetchPolicy::default())?;
    let commission = Commission {
        request_id: RequestId::random(),
        agent: base::ids::AgentId::of(evm::Address::ZERO),
        soul: "you".to_owned(),
        soul_md: String::new(),
        service_name: "yours".to_owned(),
        service_description: None,
        input,
        output_schema: None,
        tools: Vec::new(),
        program: Some(program),
        deadline: clock.now().plus(Duration::from_secs(60)),
    };
    let begun = Instant::now();
    let executor = ProgramExecutor::new(ToolAccess { runners: &[], catalog: &CATALOG, toolbox: Arc::new(toolbox) });
    let report = executor.run(&commission, &mut Spending::new(Usage::NONE, Usage::NONE, Unrecorded)).await;
    eprintln!("took {:?}; log:\n{}", begun.elapsed(), report.log);
    let work = report.outcome.map_err(|error| error.message)?;
    for file in &work.files {
        eprintln!("file {} ({}, {} bytes)", file.path, file.content_type, file.bytes.len());
    }
    println!("{}", work.result);
    Ok(())
}
