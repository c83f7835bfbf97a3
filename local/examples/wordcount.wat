;; A program that a soul can sell: it counts the words and bytes of the buyer's input (JSON, as it comes on stdin) and
;; prints {"words":N,"bytes":N}. Words are what stands between bytes up to 32 (space, tab, line feed).
;; wordcount.wasm beside it is this, built by `BUILD_EXAMPLES=1 cargo test -p executor the_example`. See docs/PROGRAMS.md.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "{\22words\22:")
  (data (i32.const 32) ",\22bytes\22:")
  (data (i32.const 48) "}")

  ;; Writes `len` bytes at `at` to stdout. 0 to 11 are the buffer's description and what came of it.
  (func $print (param $at i32) (param $len i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $len))
    (if (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))
      (then (call $exit (i32.const 1)))))

  ;; Writes a number, in digits put down from 96 backwards.
  (func $print_number (param $number i32)
    (local $at i32)
    (local.set $at (i32.const 96))
    (loop $digit
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at)
        (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
      (local.set $number (i32.div_u (local.get $number) (i32.const 10)))
      (br_if $digit (local.get $number)))
    (call $print (local.get $at) (i32.sub (i32.const 96) (local.get $at))))

  (func (export "_start")
    (local $words i32) (local $bytes i32) (local $in_word i32) (local $at i32) (local $end i32)
    (block $done
      (loop $read
        ;; As much as fits into the 32 KiB at 1024.
        (i32.store (i32.const 0) (i32.const 1024))
        (i32.store (i32.const 4) (i32.const 32768))
        (if (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))
          (then (call $exit (i32.const 1))))
        (br_if $done (i32.eqz (i32.load (i32.const 8))))
        (local.set $bytes (i32.add (local.get $bytes) (i32.load (i32.const 8))))
        (local.set $at (i32.const 1024))
        (local.set $end (i32.add (i32.const 1024) (i32.load (i32.const 8))))
        (loop $byte
          (if (i32.gt_u (i32.load8_u (local.get $at)) (i32.const 32))
            (then
              (if (i32.eqz (local.get $in_word))
                (then (local.set $words (i32.add (local.get $words) (i32.const 1)))))
              (local.set $in_word (i32.const 1)))
            (else (local.set $in_word (i32.const 0))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br_if $byte (i32.lt_u (local.get $at) (local.get $end))))
        (br $read)))
    (call $print (i32.const 16) (i32.const 9))
    (call $print_number (local.get $words))
    (call $print (i32.const 32) (i32.const 9))
    (call $print_number (local.get $bytes))
    (call $print (i32.const 48) (i32.const 1))))
