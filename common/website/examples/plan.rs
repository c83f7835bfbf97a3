//! Reads a brief as JSON (members that are left out have their defaults) and prints its plan as text. An argument is a wish: the
//! plan is refined by it first.

use website::brief::Brief;
use website::plan::Content;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut whole = serde_json::to_value(Brief::default())?;
    let given: serde_json::Map<String, serde_json::Value> = serde_json::from_reader(std::io::stdin())?;
    for (member, value) in given {
        whole[member] = value;
    }
    let brief: Brief = serde_json::from_value(whole)?;
    let mut plan = website::copy::plan(&brief, website::design::choose(&brief));
    if let Some(wish) = std::env::args().nth(1) {
        let refined = website::refine::refine(&plan, &wish);
        println!(
            "done: {:?}\nnot understood: {:?}\nlook: {:?}\n",
            refined.done, refined.not_understood, refined.plan.look
        );
        plan = refined.plan;
    }
    println!("{} [{}] {:?} tagline: {}", plan.name, plan.language, plan.kind, plan.tagline);
    for page in &plan.pages {
        println!("\n== {} {} | {} | {}", page.path, page.name, page.title, page.description);
        for section in &page.sections {
            println!("\n[{}] {}", section.id, section.heading);
            match &section.content {
                Content::Hero { text, actions } | Content::Action { text, actions } => {
                    println!("  {text}\n  {actions:?}")
                }
                Content::Text { paragraphs } => paragraphs.iter().for_each(|paragraph| println!("  {paragraph}")),
                content => println!("{}", serde_json::to_string_pretty(content)?.replace(['{', '}', '"'], "")),
            }
        }
    }
    Ok(())
}
