//! Sellers' programs, written as WebAssembly text and compiled here.

/// A program that can call a tool. `$call` makes the request and returns whether the tool returned a result, which is
/// then at 4096. `$print` writes this many bytes of the memory to the result (1) or the log (2).
pub fn caller(request: &str, start: &str) -> Vec<u8> {
    let (length, request) = (request.len(), request.replace('\\', "\\\\").replace('"', "\\22"));
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (import "agora" "call_tool" (func $call_tool (param i32 i32) (result i32)))
            (import "agora" "take" (func $take (param i32 i32) (result i32)))
            (import "agora" "put_file" (func $put_file (param i32 i32 i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 2)
            (data (i32.const 1024) "{request}")
            (data (i32.const 900) "done")
            (data (i32.const 910) "out.txttext/plain")
            (func $print (param $fd i32) (param $at i32) (param $len i32)
                (i32.store (i32.const 0) (local.get $at))
                (i32.store (i32.const 4) (local.get $len))
                (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
            (func $call (result i32)
                (drop (call $call_tool (i32.const 1024) (i32.const {length})))
                (drop (call $take (i32.const 4096) (i32.const 60000)))
                ;; The t of {{"ok":true
                (i32.eq (i32.load8_u (i32.const 4102)) (i32.const 116)))
            (func (export "_start") {start}))"#
    );
    wat::parse_str(text).expect("a program")
}

/// Completes if its tool call succeeded, and crashes if not.
pub const DONE_IF_ANSWERED: &str =
    "(if (call $call) (then (call $print (i32.const 1) (i32.const 900) (i32.const 4))) (else (unreachable)))";
/// Uses its tool and then fails, after writing the tool's result everywhere a program can write.
pub const FAILS_AND_TELLS: &str = r#"
    (drop (call $call))
    (call $print (i32.const 2) (i32.const 4096) (i32.const 200))
    (call $print (i32.const 1) (i32.const 4096) (i32.const 200))
    (drop (call $put_file (i32.const 910) (i32.const 7) (i32.const 917) (i32.const 10) (i32.const 4096) (i32.const 200)))
    (call $exit (i32.load (i32.const 4120)))"#;
