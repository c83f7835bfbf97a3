//! Input validation of the tools. `tests/people.rs` tests the rest against servers.

use base::input;
use platform::net::FetchPolicy;
use serde_json::{Value, json};
use tools::spec::ToolSpec;

/// The paths of all input errors.
fn wrong(tool: &ToolSpec, body: &Value) -> Vec<String> {
    let errors = match input::validate(tool.input, body.as_object().unwrap()) {
        Ok(kept) => tool.check(&kept, &FetchPolicy::default()),
        Err(errors) => errors,
    };
    errors.into_iter().map(|error| error.path).collect()
}

#[test]
fn inputs_are_bounded() {
    let long = "x".repeat(256);
    let many: Vec<String> = (0..51).map(|number| number.to_string()).collect();
    for (tool, body, paths) in [
        (&super::people_search::SPEC, json!({"job_titles": ["a"], "limit": 0}), &["limit"][..]),
        (&super::people_search::SPEC, json!({"job_titles": ["a"], "limit": 501, "offset": -1}), &["limit", "offset"]),
        (&super::people_search::SPEC, json!({"job_titles": many}), &["job_titles"]),
        (
            &super::people_search::SPEC,
            json!({"skills": [long], "include_phone": "yes"}),
            &["skills.0", "include_phone"],
        ),
        (&super::people_search::SPEC, json!({"filters": {"company_size": "x".repeat(51)}}), &["filters.company_size"]),
        (
            &super::people_search::SPEC,
            json!({"filters": {"company_domains": ["10.0.0.1"]}}),
            &["filters.company_domains.0"],
        ),
        (&super::people_search::SPEC, json!({"limit": 5, "job_titles": []}), &[""]),
        (&super::people_search::SPEC, json!({"filters": {"location": ["Berlin"]}, "limit": 500}), &[]),
        (&super::company_search::SPEC, json!({"name": "x".repeat(501), "limit": 101}), &["name", "limit"]),
        (&super::company_search::SPEC, json!({"name": "x", "min_employee_count": 0}), &["min_employee_count"]),
        (
            &super::company_search::SPEC,
            json!({"min_employee_count": 5, "max_employee_count": 4}),
            &["max_employee_count"],
        ),
        (&super::company_search::SPEC, json!({}), &[""]),
        (&super::dossier::SPEC, json!({"company": "x"}), &["email"]),
        (&super::dossier::SPEC, json!({"social_media_url": "nowhere"}), &["social_media_url"]),
        (&super::profile::SPEC, json!({"company_domain": "example.com"}), &["linkedin_url"]),
        (&super::profile::SPEC, json!({"email": "jane"}), &["email"]),
        (&super::profile::SPEC, json!({"name": " ", "company_domain": "localhost"}), &["name"]),
        (&super::profile::SPEC, json!({"name": "x", "company_domain": "localhost"}), &["company_domain"]),
        (&super::email::SPEC, json!({"full_name": "Jane Doe"}), &["company_domain"]),
        (&super::email::SPEC, json!({"company_domain": "example.com"}), &["full_name"]),
        (&super::email::SPEC, json!({"company_domain": "example.com", "first_name": "J"}), &["last_name"]),
        (&super::email::SPEC, json!({"company_domain": "example.com", "first_name": "J", "last_name": "D"}), &[]),
        (&super::company::SPEC, json!({}), &["domain"]),
        (&super::company::SPEC, json!({"ticker": "x".repeat(11)}), &["ticker"]),
        (&super::company::SPEC, json!({"domain": "http://169.254.169.254/latest"}), &["domain"]),
        (&super::company::SPEC, json!({"domain": "https://www.example.com/about"}), &[]),
    ] {
        assert_eq!(wrong(tool, &body), paths, "{}: {body}", tool.name);
    }
}
