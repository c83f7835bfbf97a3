//! Writes the files of plans into a folder: `render FOLDER [PLAN.json…]`. Without plans: those of `examples/plans`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use website::{design, plan::Plan};

fn main() {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder to write to"));
    let mut plans: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    if plans.is_empty() {
        let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/plans");
        plans = fs::read_dir(samples).expect("sample plans").map(|entry| entry.expect("an entry").path()).collect();
    }
    for path in plans {
        let plan: Plan = serde_json::from_slice(&fs::read(&path).expect("a plan")).expect("a plan's JSON");
        let name = path.file_stem().expect("a file's name");
        for file in design::render(&plan, "", Some("https://leads.example/form")) {
            let to = folder.join(name).join(file.path.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap_or(Path::new("."))).expect("a folder");
            fs::write(to, file.bytes).expect("a file written");
        }
    }
}
