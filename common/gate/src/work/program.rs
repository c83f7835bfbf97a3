//! Checks a seller's program: a WebAssembly core module, a WASI preview 1 command, that imports only what is offered.
//! The parser here reads only the module's outer structure ([`ProgramInfo`]), so a function that accepts uploads need not
//! link an engine. The engine checks later whether the code is valid (`executor::program::check_program`).
//!
//! A program reads the buyer's input as JSON from stdin and writes its result to stdout. stderr is kept for its seller.
//! Every function of WASI preview 1 may be imported, but there are no files, no network, no arguments and no environment:
//! such calls return an error number. From the module [`OURS`]:
//!
//! | import | does |
//! |---|---|
//! | `call_tool(ptr, len) -> i32` | calls a tool of the service with the JSON `{"tool": …, "arguments": {…}}` at `ptr`; returns the length of the answer, `{"ok": true, "result": …}` or `{"ok": false, "error": "…"}` |
//! | `take(ptr, len) -> i32` | copies the answer, or as much of it as fits; returns the number of bytes |
//! | `put_file(path, path_len, type, type_len, bytes, bytes_len) -> i32` | adds a file to the result, or replaces it; 0, or 1 bad path, 2 bad content type, 3 too large, 4 too many |
//!
//! Each returns -1 for addresses outside the memory.

/// Largest program, in bytes.
pub const MAX_PROGRAM_BYTES: usize = 4 * 1024 * 1024;
/// Most memory of a running program: 64 MiB, in pages of 64 KiB.
pub const MAX_PAGES: u32 = 1024;
/// Most types, imports, functions and exports. The engine has the same limit on functions.
const MAX_ITEMS: u32 = 10_000;
/// Most wrong imports that are listed.
const MAX_NAMED: usize = 20;

pub const WASI: &str = "wasi_snapshot_preview1";
pub const OURS: &str = "agora";

/// The imports offered: module, name, parameters (`i` for i32, `I` for i64), results.
pub const OFFERED: &[(&str, &str, &str, &str)] = &[
    (OURS, "call_tool", "ii", "i"),
    (OURS, "take", "ii", "i"),
    (OURS, "put_file", "iiiiii", "i"),
    (WASI, "args_get", "ii", "i"),
    (WASI, "args_sizes_get", "ii", "i"),
    (WASI, "environ_get", "ii", "i"),
    (WASI, "environ_sizes_get", "ii", "i"),
    (WASI, "clock_res_get", "ii", "i"),
    (WASI, "clock_time_get", "iIi", "i"),
    (WASI, "fd_advise", "iIIi", "i"),
    (WASI, "fd_allocate", "iII", "i"),
    (WASI, "fd_close", "i", "i"),
    (WASI, "fd_datasync", "i", "i"),
    (WASI, "fd_fdstat_get", "ii", "i"),
    (WASI, "fd_fdstat_set_flags", "ii", "i"),
    (WASI, "fd_fdstat_set_rights", "iII", "i"),
    (WASI, "fd_filestat_get", "ii", "i"),
    (WASI, "fd_filestat_set_size", "iI", "i"),
    (WASI, "fd_filestat_set_times", "iIIi", "i"),
    (WASI, "fd_pread", "iiiIi", "i"),
    (WASI, "fd_prestat_get", "ii", "i"),
    (WASI, "fd_prestat_dir_name", "iii", "i"),
    (WASI, "fd_pwrite", "iiiIi", "i"),
    (WASI, "fd_read", "iiii", "i"),
    (WASI, "fd_readdir", "iiiIi", "i"),
    (WASI, "fd_renumber", "ii", "i"),
    (WASI, "fd_seek", "iIii", "i"),
    (WASI, "fd_sync", "i", "i"),
    (WASI, "fd_tell", "ii", "i"),
    (WASI, "fd_write", "iiii", "i"),
    (WASI, "path_create_directory", "iii", "i"),
    (WASI, "path_filestat_get", "iiiii", "i"),
    (WASI, "path_filestat_set_times", "iiiiIIi", "i"),
    (WASI, "path_link", "iiiiiii", "i"),
    (WASI, "path_open", "iiiiiIIii", "i"),
    (WASI, "path_readlink", "iiiiii", "i"),
    (WASI, "path_remove_directory", "iii", "i"),
    (WASI, "path_rename", "iiiiii", "i"),
    (WASI, "path_symlink", "iiiii", "i"),
    (WASI, "path_unlink_file", "iii", "i"),
    (WASI, "poll_oneoff", "iiii", "i"),
    (WASI, "proc_exit", "i", ""),
    (WASI, "proc_raise", "i", "i"),
    (WASI, "random_get", "ii", "i"),
    (WASI, "sched_yield", "", "i"),
    (WASI, "sock_accept", "iii", "i"),
    (WASI, "sock_recv", "iiiiii", "i"),
    (WASI, "sock_send", "iiiii", "i"),
    (WASI, "sock_shutdown", "ii", "i"),
];

/// The facts about a program that are read without an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramInfo {
    pub bytes: usize,
    /// `module.name`, in the program's order.
    pub imports: Vec<String>,
    /// Initial memory, in pages of 64 KiB.
    pub pages: u32,
}

/// Parses a program's structure. The error lists every problem, but at most twenty wrong imports.
pub fn inspect(program: &[u8]) -> Result<ProgramInfo, Vec<String>> {
    if program.len() > MAX_PROGRAM_BYTES {
        return Err(vec![format!("is larger than {MAX_PROGRAM_BYTES} bytes")]);
    }
    match program.get(..8) {
        Some(b"\0asm\x01\0\0\0") => {}
        Some([0, b'a', b's', b'm', ..]) => {
            return Err(vec!["is a component or another version: build for wasm32-wasip1".to_owned()]);
        }
        _ => return Err(vec!["is not a WebAssembly module".to_owned()]),
    }
    let mut outline = Outline::default();
    if outline.read(&mut Reader(&program[8..])).is_none() {
        return Err(vec![
            "is not a WebAssembly module: it is truncated, or uses a feature that is not supported here".to_owned(),
        ]);
    }
    let problems = outline.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let imports = outline.imports.iter().map(|import| import.name()).collect();
    Ok(ProgramInfo { bytes: program.len(), imports, pages: outline.memory.unwrap_or_default() })
}

/// The parsed contents of the sections that are checked.
#[derive(Default)]
struct Outline {
    /// Signatures in the letters of [`OFFERED`]; other types are `?`.
    types: Vec<(String, String)>,
    imports: Vec<Import>,
    /// Type index of every function, imported ones first.
    functions: Vec<u32>,
    memory: Option<u32>,
    start: Option<u32>,
    exports_memory: bool,
    has_start_section: bool,
}

struct Import {
    module: String,
    item: String,
    /// The type index of a function; `None` for other kinds of imports, which are not offered.
    signature: Option<u32>,
}

impl Import {
    fn name(&self) -> String {
        format!("{}.{}", self.module, self.item)
    }
}

impl Outline {
    fn read(&mut self, module: &mut Reader<'_>) -> Option<()> {
        while !module.0.is_empty() {
            let id = module.byte()?;
            let size = module.number()?;
            let mut section = Reader(module.take(size)?);
            match id {
                1 => self.types(&mut section)?,
                2 => self.imports(&mut section)?,
                3 => {
                    for _ in 0..section.count()? {
                        self.functions.push(section.number()?);
                    }
                }
                5 => {
                    for _ in 0..section.count()? {
                        // A second, shared or 64-bit memory is not supported, here and in the engine.
                        if self.memory.is_some() {
                            return None;
                        }
                        self.memory = Some(section.limits()?);
                    }
                }
                7 => {
                    for _ in 0..section.count()? {
                        let name = section.name()?;
                        match (name.as_str(), section.byte()?, section.number()?) {
                            ("_start", 0, function) => self.start = Some(function),
                            ("memory", 2, 0) => self.exports_memory = true,
                            _ => {}
                        }
                    }
                }
                8 => self.has_start_section = true,
                _ => {}
            }
        }
        Some(())
    }

    fn types(&mut self, section: &mut Reader<'_>) -> Option<()> {
        for _ in 0..section.count()? {
            if section.byte()? != 0x60 {
                return None;
            }
            let parameters = section.value_types()?;
            self.types.push((parameters, section.value_types()?));
        }
        Some(())
    }

    fn imports(&mut self, section: &mut Reader<'_>) -> Option<()> {
        for _ in 0..section.count()? {
            let (module, item) = (section.name()?, section.name()?);
            let signature = match section.byte()? {
                0 => {
                    let signature = section.number()?;
                    self.functions.push(signature);
                    Some(signature)
                }
                1 => {
                    section.byte()?;
                    section.limits()?;
                    None
                }
                2 => {
                    section.limits()?;
                    None
                }
                3 => {
                    section.take(2)?;
                    None
                }
                _ => return None,
            };
            self.imports.push(Import { module, item, signature });
        }
        Some(())
    }

    fn signature(&self, index: u32) -> Option<&(String, String)> {
        self.types.get(usize::try_from(index).ok()?)
    }

    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> =
            self.imports.iter().filter_map(|import| self.wrong(import)).take(MAX_NAMED).collect();
        let start = self.start.and_then(|function| self.functions.get(usize::try_from(function).ok()?));
        match start.and_then(|signature| self.signature(*signature)) {
            Some((parameters, results)) if parameters.is_empty() && results.is_empty() => {}
            Some(_) => problems.push("exports a `_start` with parameters or results".to_owned()),
            None => problems.push("exports no function `_start`: build a command, not a library".to_owned()),
        }
        if !self.exports_memory {
            problems.push("exports no memory under the name `memory`".to_owned());
        }
        if self.memory.is_some_and(|pages| pages > MAX_PAGES) {
            problems.push(format!("starts with more than {MAX_PAGES} pages of memory"));
        }
        if self.has_start_section {
            problems.push("has a start section, which is not supported: use `_start`".to_owned());
        }
        problems
    }

    fn wrong(&self, import: &Import) -> Option<String> {
        let name: String = import.name().chars().filter(|letter| !letter.is_control()).take(100).collect();
        let offered = OFFERED.iter().find(|(module, item, ..)| *module == import.module && *item == import.item);
        let Some((_, _, parameters, results)) = offered else {
            return Some(format!("imports {name}, which is not offered"));
        };
        let signature = import.signature.and_then(|index| self.signature(index));
        let fits = signature.is_some_and(|signature| signature.0 == *parameters && signature.1 == *results);
        (!fits).then(|| format!("imports {name} with a signature that is not the offered one"))
    }
}

/// A reader of the binary format. `None` at the end of the data or for a value out of range.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: u32) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// An unsigned 32-bit LEB128 number.
    fn number(&mut self) -> Option<u32> {
        let mut number = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(number).ok();
            }
        }
        None
    }

    /// A count of items, at most `MAX_ITEMS`.
    fn count(&mut self) -> Option<u32> {
        self.number().filter(|count| *count <= MAX_ITEMS)
    }

    fn name(&mut self) -> Option<String> {
        let length = self.number()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    /// Value types as letters. One byte each: two-byte types belong to unsupported proposals.
    fn value_types(&mut self) -> Option<String> {
        let count = self.number()?;
        let letter = |byte: &u8| match byte {
            0x7f => 'i',
            0x7e => 'I',
            _ => '?',
        };
        Some(self.take(count)?.iter().map(letter).collect())
    }

    /// The lower limit of a table or memory. Flags other than "has an upper limit" belong to unsupported memories.
    fn limits(&mut self) -> Option<u32> {
        let flags = self.byte()?;
        let lower = self.number()?;
        match flags {
            0 => Some(lower),
            1 => self.number().map(|_| lower),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_that_is_not_a_program_is_refused_with_its_problem() {
        assert_eq!(inspect(b"#!/bin/sh").unwrap_err(), ["is not a WebAssembly module"]);
        assert!(inspect(b"\0asm\x0d\0\x01\0").unwrap_err()[0].contains("wasm32-wasip1"));
        assert!(inspect(&vec![0; MAX_PROGRAM_BYTES + 1]).unwrap_err()[0].contains("larger"));
        let empty = inspect(b"\0asm\x01\0\0\0").unwrap_err();
        assert!(empty[0].contains("_start") && empty[1].contains("memory"), "{empty:?}");
        // A section whose length exceeds the data, and a count that does.
        for broken in [&b"\0asm\x01\0\0\0\x01\xff\xff\xff\xff\x0f"[..], b"\0asm\x01\0\0\0\x01\x05\xff\xff\xff\xff\x0f"]
        {
            assert!(inspect(broken).unwrap_err()[0].contains("truncated"));
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_without_a_panic(rubbish in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(inspect(&[b"\0asm\x01\0\0\0", rubbish.as_slice()].concat()).is_err());
        }
    }
}
