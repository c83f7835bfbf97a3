//! Generates the list of search providers from the files of `src/search/vendors`.

use std::path::Path;
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("src/search/vendors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(&folder).expect("the providers' folder").map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| path.file_stem()?.to_str().map(str::to_owned))
        .filter(|name| name != "mod")
        .collect();
    names.sort();
    let modules: String = names
        .iter()
        .map(|name| format!("#[path = {:?}]\nmod {name};\n", folder.join(name).with_extension("rs")))
        .collect();
    let list: String = names.iter().map(|name| format!("&{name}::VENDOR, ")).collect();
    let text =
        format!("{modules}\n/// Every provider there is an adapter for.\npub static ALL: &[&Vendor] = &[{list}];\n");
    let out = Path::new(&env::var("OUT_DIR").expect("cargo says where")).join("search_vendors.rs");
    fs::write(out, text).expect("the list can be written");
}
