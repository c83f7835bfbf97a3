//! The share of known answers on the test sites that extractive research finds, and whether its quotations are exact.

use crate::findings::{self, Findings};
use crate::ranking::Sites;
use sites::Question;

use crate::{Error, Extent};

pub fn measure(extent: Extent) -> Result<(), Error> {
    let sites = Sites::read();
    let few = |mut questions: Vec<Question>| {
        questions.truncate(extent.pick(usize::MAX, 2));
        questions
    };
    let found = findings::measure(&few(sites::questions()), |query| sites.ours(query));
    println!(
        "\nresearch, extractive: {} questions over {} pages",
        found.answerable + found.unanswerable,
        sites.count()
    );
    show(&found);
    let trial = findings::measure(&few(sites::trial_questions()), |query| sites.ours(query));
    println!("\nthe same, on the {} questions it was tried out on", trial.answerable + trial.unanswerable);
    show(&trial);
    for miss in &found.misses {
        println!("  {miss}");
    }
    Ok(())
}

fn show(found: &Findings) {
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let row = |name: &str, part: usize, whole: usize| {
        println!("{name:52} {part:>4} of {whole:>4} {:>6.1} %", percent(part, whole));
    };
    row("quotations that stand in the page they name", found.holding, found.claims);
    row("questions whose answer is in the report", found.answered, found.answerable);
    row("questions whose answer is the first thing told", found.first, found.answerable);
    row("questions without an answer, listed as not found", found.not_found, found.unanswerable);
    let questions = (found.answerable + found.unanswerable).max(1);
    println!("choosing takes {:.1} ms a question", found.time.as_secs_f64() * 1e3 / questions as f64);
}
