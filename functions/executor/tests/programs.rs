//! Sellers' programs, valid and hostile, as text that is compiled here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::clock::Clock;
use base::ids::RequestId;
use base::money::Usdc;
use catalog::CATALOG;
use executor::program::{ProgramExecutor, check_program};
use gate::app::App;
use gate::work::program::{OFFERED, OURS, WASI, inspect};
use gate::work::{Commission, Executor, FileMade, Report, Spending, ToolAccess, Unrecorded, Usage};
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use serde_json::{Value, json};
use tools::Runner;
use tools_lookups::vehicle_identification;

static RUNNERS: &[&Runner] = &[&vehicle_identification::RUNNER];

fn access() -> ToolAccess {
    let pay_to = |name: &str| (name == "PAY_TO").then(|| "0x00000000000000000000000000000000000000ff".to_owned());
    let config = Config::read(pay_to).unwrap();
    let config = Arc::new(config);
    let connections = Connections::open(&config).unwrap();
    let toolbox = App::new(config, &connections, &CATALOG).toolbox(&connections, FetchPolicy::default()).unwrap();
    ToolAccess { runners: RUNNERS, catalog: &CATALOG, toolbox: Arc::new(toolbox) }
}

/// A program with one memory, the imports most of these tests need, and this body of `_start`.
fn program(extra: &str, body: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "{WASI}" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
            (import "{WASI}" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (import "{WASI}" "proc_exit" (func $exit (param i32)))
            (import "{WASI}" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
            (import "{WASI}" "random_get" (func $random (param i32 i32) (result i32)))
            (import "{OURS}" "call_tool" (func $call_tool (param i32 i32) (result i32)))
            (import "{OURS}" "take" (func $take (param i32 i32) (result i32)))
            (import "{OURS}" "put_file" (func $put_file (param i32 i32 i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 2)
            ;; Writes `len` bytes at `at` to the file `fd`.
            (func $print (param $fd i32) (param $at i32) (param $len i32)
                (i32.store (i32.const 0) (local.get $at))
                (i32.store (i32.const 4) (local.get $len))
                (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
            {extra}
            (func (export "_start") {body}))"#
    );
    wat::parse_str(text).unwrap()
}

fn commission(program: Vec<u8>, tools: &[&str]) -> Commission {
    Commission {
        request_id: RequestId::random(),
        agent: base::ids::AgentId::of(evm::Address::ZERO),
        soul: "tester".to_owned(),
        soul_md: String::new(),
        service_name: "Test".to_owned(),
        service_description: None,
        input: json!({"vin": "1HGCM82633A004352"}),
        output_schema: None,
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        program: Some(program),
        deadline: Clock::system().now().plus(Duration::from_secs(30)),
    }
}

/// A budget for tools, in micro-USDC.
fn spending(tools: u64) -> Spending {
    Spending::new(Usage { tools: Usdc::from_micro(tools), model: Usdc::ZERO }, Usage::NONE, Unrecorded)
}

fn run(commission: &Commission) -> Report {
    run_within(commission, 0)
}

fn run_within(commission: &Commission, tools: u64) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(ProgramExecutor::new(access()).run(commission, &mut spending(tools)))
}

fn run_program(program: Vec<u8>) -> Report {
    run(&commission(program, &[]))
}

fn failure(report: &Report) -> String {
    let error = report.outcome.as_ref().unwrap_err();
    assert_eq!(error.reason.as_deref(), Some("seller_failed"), "{error:?}");
    error.message.clone()
}

const ECHO: &str = r#"
    (i32.store (i32.const 16) (i32.const 1024)) (i32.store (i32.const 20) (i32.const 60000))
    (drop (call $fd_read (i32.const 0) (i32.const 16) (i32.const 1) (i32.const 24)))
    (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 24)))
    (call $print (i32.const 2) (i32.const 1024) (i32.const 5))"#;

#[test]
fn a_program_reads_its_input_and_writes_result_and_log() {
    let report = run_program(program("", ECHO));
    let work = report.outcome.unwrap();
    assert_eq!(work.result, r#"{"vin":"1HGCM82633A004352"}"#);
    assert_eq!(report.log, r#"{"vin"#);
    // Exiting with code 0 counts as success, any other code as failure.
    let leaves = |code: u32| program("", &format!("{ECHO} (call $exit (i32.const {code}))"));
    assert_eq!(run_program(leaves(0)).outcome.unwrap().result, work.result);
    let report = run_program(leaves(3));
    assert!(failure(&report).contains("exit code 3"));
    assert_eq!(report.log, r#"{"vin"#, "the log of a failure is what its seller needs");
    assert!(failure(&run_program(program("", "nop"))).contains("no result"));
    assert!(failure(&run_program(program("", "unreachable"))).contains("unreachable"));
}

#[test]
fn files_beyond_the_limits_are_refused() {
    let body = r#"
        ;; good, replaced, bad path, bad type, too large, then ten more
        (drop (call $put_file (i32.const 100) (i32.const 5) (i32.const 200) (i32.const 10) (i32.const 300) (i32.const 1)))
        (drop (call $put_file (i32.const 100) (i32.const 5) (i32.const 200) (i32.const 10) (i32.const 300) (i32.const 3)))
        (i32.store8 (i32.const 400) (i32.add (i32.const 48)
            (call $put_file (i32.const 110) (i32.const 4) (i32.const 200) (i32.const 10) (i32.const 300) (i32.const 3))))
        (i32.store8 (i32.const 401) (i32.add (i32.const 48)
            (call $put_file (i32.const 100) (i32.const 5) (i32.const 100) (i32.const 5) (i32.const 300) (i32.const 3))))
        (drop (memory.grow (i32.const 20)))
        (i32.store8 (i32.const 402) (i32.add (i32.const 48)
            (call $put_file (i32.const 100) (i32.const 5) (i32.const 200) (i32.const 10) (i32.const 0) (i32.const 1048577))))
        (i32.store8 (i32.const 403) (i32.add (i32.const 48)
            (call $put_file (i32.const 100) (i32.const 5) (i32.const 200) (i32.const 10) (i32.const -1) (i32.const 3))))
        (loop $more
            (i32.store8 (i32.const 100) (i32.add (i32.const 1) (i32.load8_u (i32.const 100))))
            (i32.store8 (i32.const 404) (i32.add (i32.const 48)
                (call $put_file (i32.const 100) (i32.const 5) (i32.const 200) (i32.const 10) (i32.const 300) (i32.const 3))))
            (br_if $more (i32.lt_u (i32.load8_u (i32.const 100)) (i32.const 109))))
        (call $print (i32.const 1) (i32.const 400) (i32.const 5))"#;
    let data = r#"(data (i32.const 100) "a.txt") (data (i32.const 110) "../x") (data (i32.const 200) "text/plain") (data (i32.const 300) "abc")"#;
    let work = run_program(program(data, body)).outcome.unwrap();
    assert_eq!(work.result, "123/4", "-1 is outside memory");
    assert_eq!(work.files.len(), 10);
    let first = FileMade { path: "a.txt".to_owned(), content_type: "text/plain".to_owned(), bytes: b"abc".to_vec() };
    assert_eq!(work.files[0], first);
}

/// Calls a tool with each of these JSON texts and prints the answers.
fn caller(calls: &[&str]) -> Vec<u8> {
    let mut data = String::new();
    let mut body = String::new();
    for (index, call) in calls.iter().enumerate() {
        let at = 1024 + index * 256;
        data.push_str(&format!("(data (i32.const {at}) \"{}\")", call.replace('"', "\\\"")));
        body.push_str(&format!(
            "(i32.store (i32.const 32) (call $call_tool (i32.const {at}) (i32.const {})))
             (call $print (i32.const 1) (i32.const 32768) (call $take (i32.const 32768) (i32.load (i32.const 32))))
             (call $print (i32.const 1) (i32.const 40) (i32.const 1))",
            call.len()
        ));
    }
    data.push_str("(data (i32.const 40) \"\\0a\")");
    program(&data, &body)
}

#[test]
fn only_listed_tools_are_called_within_the_budget() {
    let good = r#"{"tool":"vin_decode","arguments":{"vin":"1HGCM82633A004352"}}"#;
    let calls = [
        good,
        r#"{"tool":"vin_decode","arguments":{"vin":"short"}}"#,
        r#"{"tool":"web_read","arguments":{"url":"https://example.com/"}}"#,
        r#"{"tool":"credits_top_up","arguments":{"amount":"1"}}"#,
        "rubbish",
        good,
        good,
    ];
    // Enough for two calls at 0.005, and not for a third.
    let report = run_within(&commission(caller(&calls), &["vin_decode", "credits_top_up"]), 14_999);
    let result = report.outcome.unwrap().result;
    let answers: Vec<Value> = result.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["result"]["model"], "Accord");
    assert_eq!(answers[5]["ok"], true);
    for (index, why) in [(1, "invalid arguments: vin"), (2, "no such tool"), (3, "no such tool"), (4, "no such tool")] {
        assert_eq!(answers[index]["ok"], false);
        assert!(answers[index]["error"].as_str().unwrap().contains(why), "{}", answers[index]);
    }
    assert!(answers[6]["error"].as_str().unwrap().contains("0.004999 are left"), "{}", answers[6]);
    let spent: u64 = report.tools_used.iter().map(|used| used.cost.micro()).sum();
    assert_eq!((report.tools_used.len(), spent), (2, 10_000));
    // The number of calls is limited too.
    let calls = vec![good; 20];
    let report = run_within(&commission(caller(&calls), &["vin_decode"]), 1_000_000);
    assert_eq!(report.tools_used.len(), 16);
    assert!(report.outcome.unwrap().result.ends_with("no more than 16 calls\",\"ok\":false}\n"));
}

#[test]
fn endless_programs_are_stopped() {
    let begun = Instant::now();
    let mut endless =
        commission(program("", "(call $print (i32.const 2) (i32.const 0) (i32.const 4)) (loop $l (br $l))"), &[]);
    endless.deadline = Clock::system().now().plus(Duration::from_millis(300));
    let report = run(&endless);
    let error = report.outcome.unwrap_err();
    assert_eq!(error.reason.as_deref(), Some("deadline_exceeded"), "{error:?}");
    assert_eq!(report.log.len(), 4, "what it said before is kept");
    assert!(begun.elapsed() < Duration::from_secs(3), "took {:?}", begun.elapsed());
    // Fuel ends it as well, independent of the clock.
    endless.deadline = Clock::system().now().plus(Duration::from_secs(30));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(ProgramExecutor::with_fuel(access(), 50_000_000).run(&endless, &mut spending(0)));
    assert!(failure(&report).contains("computed for too long"));
    endless.deadline = Clock::system().now();
    assert_eq!(run(&endless).outcome.unwrap_err().reason.as_deref(), Some("deadline_exceeded"));
}

#[test]
fn bulk_operations_and_host_calls_cost_fuel_by_size() {
    // Each of these does much work in one instruction, and has to use up its fuel about as fast as any other program.
    let grown = "(drop (memory.grow (i32.const 900)))";
    let fill = "(memory.fill (i32.const 0) (i32.const 1) (i32.const 58000000))";
    let copy = "(memory.copy (i32.const 8) (i32.const 0) (i32.const 58000000))";
    let draw = "(drop (call $random (i32.const 0) (i32.const 65536)))";
    let table = "(table.fill $t (i32.const 0) (ref.null func) (i32.const 20000))";
    for body in [fill, copy, draw, table, "(call $print (i32.const 2) (i32.const 0) (i32.const 58000000))"] {
        let begun = Instant::now();
        let program = program("(table $t 20000 funcref)", &format!("{grown} (loop $l {body} (br $l))"));
        let mut commission = commission(program, &[]);
        commission.deadline = Clock::system().now().plus(Duration::from_millis(500));
        let error = run(&commission).outcome.unwrap_err();
        // The slice running at the deadline may finish; slices are short.
        assert_eq!(error.reason.as_deref(), Some("deadline_exceeded"), "{body}: {error:?}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{body} took {:?}", begun.elapsed());
    }
}

#[test]
fn memory_stack_and_output_are_limited() {
    // 64 MiB are 1024 pages. The program has two: growing by 1022 works, by 1023 does not.
    let grow = |pages: u32| {
        let body = format!(
            "(i32.store8 (i32.const 100) (select (i32.const 110) (i32.const 121)
                (i32.eq (i32.const -1) (memory.grow (i32.const {pages})))))
             (call $print (i32.const 1) (i32.const 100) (i32.const 1))"
        );
        run_program(program("", &body)).outcome.unwrap().result
    };
    assert_eq!((grow(1022).as_str(), grow(1023).as_str(), grow(65535).as_str()), ("y", "n", "n"));
    let deep = program(
        "(func $f (param i32) (result i32) (i32.add (i32.const 1) (call $f (local.get 0))))",
        "(drop (call $f (i32.const 0)))",
    );
    assert!(failure(&run_program(deep)).contains("stack"));
    let wide = format!("(func $f {} (call $f))", "(local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)".repeat(200));
    assert!(failure(&run_program(program(&wide, "(call $f)"))).contains("stack"));
    let flood = program("", "(loop $l (call $print (i32.const 1) (i32.const 0) (i32.const 65536)) (br $l))");
    assert!(failure(&run_program(flood)).contains("larger than 1 MiB"));
    let noise = program("", "(loop $l (call $print (i32.const 2) (i32.const 100) (i32.const 60000)) (br_if $l (i32.eqz (memory.grow (i32.const 0)))))
        (call $print (i32.const 1) (i32.const 48) (i32.const 1))");
    assert_eq!(run_program(noise).log.len(), 8 * 1024);
    let binary =
        program("(data (i32.const 100) \"\\ff\\fe\")", "(call $print (i32.const 1) (i32.const 100) (i32.const 2))");
    assert!(failure(&run_program(binary)).contains("not UTF-8"));
}

#[test]
fn bad_pointers_and_unknown_files_are_errors_the_program_can_read() {
    let body = r#"
        (local $n i32)
        (i32.store (i32.const 16) (i32.const -8)) (i32.store (i32.const 20) (i32.const 4096))
        (local.set $n (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 24)))
        (if (i32.ne (local.get $n) (i32.const 21)) (then (call $exit (i32.const 1))))
        (if (i32.ne (call $fd_read (i32.const 0) (i32.const -4) (i32.const 1) (i32.const 24)) (i32.const 21)) (then (call $exit (i32.const 2))))
        (if (i32.ne (call $fd_write (i32.const 1) (i32.const 16) (i32.const -1) (i32.const 24)) (i32.const 28)) (then (call $exit (i32.const 3))))
        (if (i32.ne (call $random (i32.const 0) (i32.const -1)) (i32.const 28)) (then (call $exit (i32.const 4))))
        (if (i32.ne (call $fd_read (i32.const 3) (i32.const 16) (i32.const 1) (i32.const 24)) (i32.const 8)) (then (call $exit (i32.const 5))))
        (if (i32.ne (i32.const 8) (call $path_open (i32.const 3) (i32.const 0) (i32.const 100) (i32.const 4) (i32.const 0)
            (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 24))) (then (call $exit (i32.const 6))))
        (if (i32.ne (call $take (i32.const -1) (i32.const -1)) (i32.const -1)) (then (call $exit (i32.const 7))))
        (call $print (i32.const 1) (i32.const 100) (i32.const 4))"#;
    let work = run_program(program(r#"(data (i32.const 100) "/etc")"#, body)).outcome;
    assert_eq!(work.map(|work| work.result).map_err(|error| error.message), Ok("/etc".to_owned()));
}

#[test]
fn invalid_programs_are_refused_at_upload() {
    let start = r#"(func (export "_start"))"#;
    let memory = r#"(memory (export "memory") 1)"#;
    let refused = |text: &str| check_program(&wat::parse_str(text).unwrap()).unwrap_err().join("; ");
    for (module, why) in [
        (
            format!(r#"(module (import "env" "system" (func)) {memory} {start})"#),
            "imports env.system, which is not offered",
        ),
        (format!(r#"(module (import "{WASI}" "sock_connect" (func)) {memory} {start})"#), "sock_connect, which is not"),
        (format!(r#"(module (import "{WASI}" "fd_write" (func)) {memory} {start})"#), "with a signature that is not"),
        (
            format!(r#"(module (import "{WASI}" "fd_write" (global i32)) {memory} {start})"#),
            "with a signature that is not",
        ),
        (format!(r#"(module (import "env" "memory" (memory 1)) {start})"#), "imports env.memory"),
        (format!("(module {memory} (func $s) (start $s) {start})"), "start section"),
        (format!("(module {memory})"), "`_start`"),
        (format!(r#"(module {memory} (func (export "_start") (param i32)))"#), "parameters or results"),
        (format!("(module {start})"), "no memory"),
        (format!(r#"(module (memory (export "memory") 1025) {start})"#), "more than 1024 pages"),
        (format!(r#"(module (memory (export "memory") i64 1) {start})"#), "not supported here"),
        (format!("(module {memory} (memory 1) {start})"), "not supported here"),
        (
            format!(r#"(module {memory} (func (export "_start") (v128.store (i32.const 0) (v128.const i64x2 0 0))))"#),
            "not valid",
        ),
        (format!("(module {memory} {} {start})", "(global i32 (i32.const 0))".repeat(1001)), "not valid"),
    ] {
        let problems = refused(&module);
        assert!(problems.contains(why), "{problems:?} should say {why:?}");
        // A program that cannot be uploaded does not run either.
        assert!(failure(&run_program(wat::parse_str(&module).unwrap())).contains("program"));
    }
    // A valid structure with invalid code.
    let broken = program("", "(i32.const 1)");
    assert!(inspect(&broken).is_ok() && check_program(&broken).is_err());
    let info = check_program(&program("", ECHO)).unwrap();
    assert_eq!((info.pages, info.imports.len()), (2, 8));
}

#[test]
fn every_offered_function_can_be_imported_and_called_with_zeros() {
    let letters =
        |letters: &str| letters.chars().map(|letter| if letter == 'I' { " i64" } else { " i32" }).collect::<String>();
    let mut imports = String::new();
    let mut calls = String::new();
    for (index, (module, name, parameters, results)) in OFFERED.iter().enumerate() {
        let (takes, gives) = (letters(parameters), letters(results));
        imports.push_str(&format!(r#"(import "{module}" "{name}" (func $f{index} (param{takes}) (result{gives})))"#));
        if *name == "proc_exit" || *name == "proc_raise" {
            continue;
        }
        let zeros: String =
            parameters.chars().map(|letter| if letter == 'I' { "(i64.const -1)" } else { "(i32.const 0)" }).collect();
        calls.push_str(&format!("(drop (call $f{index} {zeros}))"));
    }
    let text = format!(r#"(module {imports} (memory (export "memory") 1) (func (export "_start") {calls}))"#);
    let program = wat::parse_str(text).unwrap();
    assert_eq!(check_program(&program).unwrap().imports.len(), OFFERED.len());
    assert!(failure(&run_program(program)).contains("no result"));
}

/// A program with a few changed bytes is refused, fails, or works; the host never fails.
#[test]
fn damaged_programs_do_no_harm() {
    let whole = program("(table 4 funcref)", ECHO);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let executor = ProgramExecutor::with_fuel(access(), 1);
    let mut seed = 1u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let mut ran = 0;
    for _ in 0..500 {
        let mut damaged = whole.clone();
        for _ in 0..=next(3) {
            let at = 8 + next(damaged.len() - 8);
            damaged[at] = u8::try_from(next(256)).unwrap();
        }
        damaged.truncate(damaged.len() - next(2) * next(40));
        let report = runtime.block_on(executor.run(&commission(damaged, &["vin_decode"]), &mut spending(5_000)));
        match report.outcome {
            Ok(_) => ran += 1,
            Err(error) => assert_eq!(error.reason.as_deref(), Some("seller_failed"), "{error:?}"),
        }
    }
    assert!(ran > 10, "{ran} of 500 still ran: too few to say anything");
}

/// `local/examples`: the built file matches its source, and the program counts words.
#[test]
fn the_example_is_built_from_its_text() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../local/examples");
    let built = folder.join("wordcount.wasm");
    let program = wat::parse_file(folder.join("wordcount.wat")).unwrap();
    if std::env::var_os("BUILD_EXAMPLES").is_some() {
        std::fs::write(&built, &program).unwrap();
    }
    let again = "BUILD_EXAMPLES=1 cargo test -p executor the_example";
    assert!(std::fs::read(&built).unwrap() == program, "the example has to be built again: {again}");
    for (input, expected) in [
        (json!({"text": "one two  three"}), r#"{"words":3,"bytes":25}"#.to_owned()),
        (json!({"text": "a ".repeat(50_000)}), r#"{"words":50001,"bytes":100011}"#.to_owned()),
    ] {
        let report = run(&Commission { input, ..commission(program.clone(), &[]) });
        assert_eq!(report.outcome.unwrap().result, expected);
    }
}
