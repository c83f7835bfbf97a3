//! Words that people use for tools. Searches and plans are made with them.

/// The words for the tool with this name that its own texts do not have; empty for most.
pub fn said(name: &str) -> &'static str {
    SAID.iter().find(|(tool, _)| *tool == name).map(|(_, words)| *words).unwrap_or_default()
}

/// Words that people use for a tool, where its own texts have others.
static SAID: &[(&str, &str)] = &[
    ("web_search", "google internet online look up news"),
    ("web_read", "page pages webpage scrape extract text crawl fetch website site content article url"),
    ("email", "write mail message"),
    ("sms", "text message"),
    ("phone_number", "buy get own"),
    ("voice", "phone ring dial talk speak ask"),
    ("compute", "goal goals objective plan steps several tools budget orchestrate autonomous workflow"),
    ("build", "website web site homepage landing page make create design host publish portfolio"),
    (
        "browser",
        "web site page click form fill type login log in automate automation upload download navigate task agent use",
    ),
    ("linkedin_sync", "linkedin inbox conversations history read chats"),
    ("linkedin_reply", "linkedin answer chat conversation dm"),
    ("linkedin_message", "linkedin dm direct contact"),
    ("linkedin_profile_view", "linkedin visit look person"),
    ("linkedin_react", "linkedin like celebrate post"),
    ("linkedin_invite", "linkedin connect connection request add contact"),
    ("linkedin_invite_withdraw", "linkedin undo connection request"),
    ("commerce", "buy order purchase checkout shop store product item ship deliver send"),
    ("commerce_search", "shop shopping store find product products price compare cheap sell item buy"),
    ("build_asset", "logo icon favicon qr code social card image draw brand svg"),
    ("research", "investigate write report"),
    ("research_people", "find employees engineers developers managers leads candidates work"),
    ("enrich_email", "somebody somebodys"),
    ("verify_email", "exist valid deliverable"),
    ("identity_start", "kyc passport"),
    ("vin_decode", "car"),
    ("vehicle_fuel_economy", "consumption mileage car"),
    ("company_financials", "revenue income profit balance"),
    ("company_ticker", "stock symbol"),
    ("company_filings", "10-K 10-Q annual report"),
    ("record_vulnerability", "security flaw"),
    ("record_package_vulnerabilities", "npm pypi crate dependency library"),
    ("record_court_cases_find", "lawsuit trial judge ruling"),
    ("record_publications_find", "papers articles studies author"),
    ("record_clinical_trials_find", "study disease"),
    ("product_drug_adverse_events", "side effects medicine"),
    ("product_drug_label", "medicine dose"),
    ("product_duty_rate", "import customs tax"),
    ("compound_properties", "molecular molecule chemical"),
    ("protein_sequence", "amino acid"),
    ("place_resolve", "geocode latitude longitude"),
    ("market_exchange_rate", "convert currency currencies euro dollar pound yen usd eur gbp"),
    ("market_country_indicator", "gdp economy"),
    (
        "local_search",
        "local businesses near nearby shop store restaurant cafe bakery bar hotel plumber electrician dentist doctor lawyer hairdresser gym",
    ),
    ("gov_solicitations", "government tender bid"),
    ("identifier_check", "valid validate"),
    ("credits_top_up", "buy add prepaid balance"),
    ("soul", "hire agent ask seller marketplace"),
    ("soul_purchase", "buy agent seller marketplace"),
];
