//! Describes a running stack: one line of JSON for programs, and a few lines for people.

use catalog::CATALOG;
use evm::signature::PrivateKey;
use serde_json::{Value, json};

use crate::Stack;

/// The content of `.local/stack.json`.
pub fn json(stack: &Stack) -> Value {
    let payers: Vec<Value> =
        stack.payers.iter().map(|payer| json!({"address": payer.address, "private_key": payer.private_key})).collect();
    // Addresses only: private keys of the developer's own wallets must not end up in a file.
    let (relayer, treasury) = (&stack.config.aws.relayer_key, &stack.config.aws.treasury_key);
    let wallet = |key: &Option<PrivateKey>| key.as_ref().map(|key| key.address().to_string());
    json!({
        "service_name": stack.config.service_name,
        "base_url": stack.base_url,
        "soul_base_url": stack.base_url,
        "ws_url": stack.base_url.replacen("http", "ws", 1),
        "site_url": stack.site_url,
        // For inbound mail.
        "smtp": {"host": stack.smtp.ip().to_string(), "port": stack.smtp.port()},
        "chain": {
            "rpc_url": stack.config.chain.rpc_url,
            "chain_id": stack.config.chain.chain_id,
            "token": stack.config.chain.token.address.to_string(),
            "pay_to": stack.config.payments.pay_to.to_string(),
        },
        "payers": payers,
        "relayer": wallet(relayer),
        "treasury": wallet(treasury),
        "database_url": stack.config.aws.endpoint,
        "agents_table": stack.config.tables.agents,
        "souls_table": stack.config.tables.souls,
        "email_domains": stack.config.email.domains.join(","),
        // Names only: the doctor finds missing ones by them.
        "provider_keys": stack.config.providers.keys.keys().collect::<Vec<_>>(),
        "pid": std::process::id(),
    })
}

/// What to do first, for people; then the addresses, and where the keys are.
pub fn human(stack: &Stack) -> String {
    let base = &stack.base_url;
    let site = &stack.site_url;
    format!(
        "\n{name} is up. Try, in another terminal:\n\
         {tries}\n\
         \n  the service     {base}\
         \n  pages to read   {site}/article\
         \n  inbound mail    SMTP at {smtp}\
         \n  mails           are written to {outbox}/\
         \n  test wallets    payers in .local/stack.json, with their keys and 100,000 test USDC each\n\
         \nCtrl-C stops it and keeps its state; local/reset.sh deletes the state.\n",
        tries = tries(stack),
        smtp = stack.smtp,
        outbox = stack.outbox.display(),
        name = stack.config.service_name,
    )
}

/// What can be bought first, of what is sold here.
fn tries(stack: &Stack) -> String {
    let base = &stack.base_url;
    let catalog = CATALOG.of(&stack.config);
    let own = catalog.iter().find(|tool| tool.own.is_some());
    let own = own.map(|tool| ("buy from you", format!("local/buy.sh {} '{}'", tool.path(), tool.example())));
    let usual = [
        ("web_read", "see a price", format!("curl -i -X POST {base}/v1/tools/web-read")),
        ("web_read", "buy a page", "local/read.sh".to_owned()),
        ("web_search", "buy a search", "local/buy.sh /v1/tools/search '{\"query\": \"lighthouse\"}'".to_owned()),
        ("web_read", "use a token", "local/spend.sh".to_owned()),
        ("soul_execute", "marketplace", "local/marketplace-tour.sh".to_owned()),
    ];
    let usual = usual.into_iter().filter(|(tool, ..)| catalog.find(tool).is_some()).map(|(_, what, how)| (what, how));
    own.into_iter().chain(usual).map(|(what, how)| format!("\n  {what:<15} {how}")).collect()
}
