//! Websites from briefs. Three steps, all pure: `copy` turns a brief into a plan (what each page says), `design` turns the plan
//! into files, `refine` turns a buyer's words into a changed plan. The plan is stored, so that a site can be changed later.

pub mod brief;
pub mod copy;
pub mod design;
pub mod plan;
pub mod refine;
