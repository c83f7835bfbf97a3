//! What is sold, in groups that a reader can take in at a glance. A tool's category is for receipts and too coarse for
//! that: nearly everything is `data`.

use tools::spec::ToolSpec;

use super::Site;

/// One group of tools.
pub struct Family {
    /// Its name in addresses: the parameter `family` of discover, the anchor on the price list.
    pub name: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    /// How the wire names of its tools begin. The first family that matches counts.
    prefixes: &'static [&'static str],
}

const fn family(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    prefixes: &'static [&'static str],
) -> Family {
    Family { name, title, about, prefixes }
}

/// Every family, in the order in which lists show them. A test makes sure that each tool has one.
pub const FAMILIES: &[Family] = &[
    family("web", "Web search and reading", "finds pages, and reads them as Markdown", &["web_"]),
    family(
        "people",
        "People and companies",
        "profiles, dossiers, e-mail addresses and whether mail arrives, identity checks",
        &["enrich_", "research_person", "research_people", "research_company", "verify_", "identity_"],
    ),
    family("research", "Research", "reports on topics and persons, every statement with its source", &["research"]),
    family("email", "E-mail", "sends mail from an address of yours; answers arrive in your inbox", &["email"]),
    family(
        "phone",
        "Texts and calls",
        "text messages, calls by an assistant, phone numbers",
        &["sms", "voice", "phone_"],
    ),
    family("goals", "Goals", "plans and calls tools within a budget", &["compute"]),
    family("browser", "Browser", "does tasks on real pages: clicks, types, uploads, reads", &["browser"]),
    family(
        "network",
        "Professional network",
        "messages, invitations, reactions and profiles, with an account that its owner connects",
        &["linkedin_"],
    ),
    family("shopping", "Shopping", "finds products in shops, and buys them", &["commerce"]),
    family("sites", "Websites", "builds, hosts and changes a website from a brief", &["build"]),
    family(
        "register",
        "Companies and persons on record",
        "filings, financials, sanctions, registrations, licences, inspections",
        &["company_", "person_", "business_", "identifier_"],
    ),
    family(
        "vehicles",
        "Vehicles",
        "identification, recalls, complaints, crash ratings, fuel economy",
        &["vin_", "vehicle_"],
    ),
    family("products", "Products and drugs", "recalls, drug labels, devices, duty rates", &["product_"]),
    family("places", "Places", "addresses, weather, hazards, permits, hospitals", &["place_"]),
    family(
        "markets",
        "Markets and economies",
        "exchange and interest rates, freight, labor rates, countries",
        &["market_"],
    ),
    family(
        "documents",
        "Law, science and security",
        "court cases, rules, publications, clinical trials, vulnerabilities",
        &["record_"],
    ),
    family(
        "biology",
        "Genes, proteins and compounds",
        "what the public databases say of them",
        &["gene_", "variant_", "protein_", "compound_"],
    ),
    family("local", "Local businesses and tenders", "businesses at a place, US federal contracts", &["local_", "gov_"]),
    family("credits", "Credits", "paid in advance; access tokens spend them", &["credits_"]),
    family("marketplace", "Marketplace", "texts and services of other sellers, at their prices", &["soul"]),
    family(OWN, "Services of the operator", "what only this deployment sells", &[]),
];

/// The family of the operator's own services.
const OWN: &str = "own";

/// The families' names.
pub const NAMES: [&str; FAMILIES.len()] = {
    let mut names = [""; FAMILIES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FAMILIES[at].name;
        at += 1;
    }
    names
};

/// The family of a tool.
pub fn of(tool: &ToolSpec) -> &'static Family {
    if tool.own.is_some() {
        return FAMILIES.iter().find(|family| family.name == OWN).unwrap_or(&FAMILIES[0]);
    }
    let is_in = |family: &&Family| family.prefixes.iter().any(|prefix| tool.name.starts_with(prefix));
    FAMILIES.iter().find(is_in).unwrap_or(&FAMILIES[0])
}

/// The families of which something is available here, with that.
pub(super) fn sold(site: &Site) -> Vec<(&'static Family, Vec<&'static ToolSpec>)> {
    let all: Vec<&'static ToolSpec> = site.listed().chain(site.catalog.market.iter().copied()).collect();
    let tools = |family: &Family| all.iter().copied().filter(|tool| of(tool).name == family.name).collect::<Vec<_>>();
    FAMILIES.iter().map(|family| (family, tools(family))).filter(|(_, tools)| !tools.is_empty()).collect()
}

/// How many tools these are and what the cheapest costs: "3 tools from 0.001 USDC".
pub(super) fn extent(tools: &[&'static ToolSpec]) -> String {
    let least = tools.iter().map(|tool| tool.price.usual()).min().unwrap_or_default().to_string();
    let least = least.trim_end_matches('0').trim_end_matches('.');
    match tools {
        [_] => format!("1 tool from {least} USDC"),
        _ => format!("{} tools from {least} USDC", tools.len()),
    }
}

#[cfg(test)]
mod tests {
    use catalog::CATALOG;
    use tools::spec::{MARKET, TOP_UP};

    use super::*;

    #[test]
    fn every_tool_has_a_family_and_every_family_a_tool() {
        let sold: Vec<&ToolSpec> = CATALOG.iter().chain(MARKET).copied().chain([TOP_UP]).collect();
        for tool in &sold {
            let has = |family: &Family| family.prefixes.iter().any(|prefix| tool.name.starts_with(prefix));
            assert!(FAMILIES.iter().any(has), "{} has no family", tool.name);
        }
        for family in FAMILIES.iter().filter(|family| family.name != OWN) {
            assert!(sold.iter().any(|tool| of(tool).name == family.name), "{} has no tool", family.name);
        }
        let names: std::collections::HashSet<&str> = NAMES.into_iter().collect();
        assert_eq!(names.len(), FAMILIES.len());
    }
}
