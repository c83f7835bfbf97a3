//! Checks that the roles in `template.yaml` match what the functions do. `support::run` checks this in every test; the
//! rest is here: rights that Lambda uses itself, secrets, models, mails by SES, and unused permissions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use local::Options;
use local::iam::policy::{Action, Effect, LEADING_KEYS, REQUEST_TAG, RESOURCE_TAG, Statement};
use local::iam::{Roles, Use, equipped, function_of};
use local::template::{ACCOUNT, REGION, Template, yaml};
use serde_json::{Value, json};

use crate::support::payer::{bare, header};
use crate::support::permissions::{folder, keep};
use crate::support::platform::TOKEN;
use crate::support::proxy::{Life, Proxy};
use crate::support::{Payer, Platform, READ_PATH, VIN, VIN_PATH, root, run, stack_with};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn template() -> Template {
    equipped(Template::of_project().expect("template.yaml is a template"))
}

/// The project's template without one statement of a role.
fn without(role: &str, sid: &str) -> Arc<Roles> {
    let text = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    let from = text.find(&format!("\n  {role}:\n")).expect("the role");
    let from = from + text[from..].find(&format!("              - Sid: {sid}\n")).expect("the statement");
    let rest = &text[from + 1..];
    let end = rest.find("\n              -").into_iter().chain(rest.find("\n\n")).min().expect("an end");
    let text = format!("{}{}", &text[..from], &rest[end + 1..]);
    Arc::new(Roles::of(&equipped(Template::read(&text).expect("a template"))).expect("roles"))
}

/// A removed statement is reported by name, also where the code handles the refusal.
#[test]
fn a_missing_statement_is_reported_by_name() {
    run(async {
        let roles = without("KnowledgeRole", "SendJobs");
        let stack = stack_with(|options| Options { roles: Some(roles), ..options }).await;
        let payer = Payer::new(&stack).await;
        let body = json!({"url": format!("{}/plain", stack.site_url)});
        let payment = header(&bare(&payer.authorize(2_000)));
        let accepted = payer.client.post(READ_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(accepted.status, 202, "the sweeper sends what could not be sent");
        let denials = stack.guard.take_seen().denials;
        assert_eq!(denials.len(), 1, "{denials:?}");
        assert_eq!((denials[0].function.as_str(), denials[0].action.name.as_str()), ("knowledge", "sqs:SendMessage"));
        let arn = format!("arn:aws:sqs:{REGION}:{ACCOUNT}:agora-jobs");
        let advice =
            format!("KnowledgeRole needs a statement {{Effect: Allow, Action: sqs:SendMessage, Resource: {arn}}}");
        assert_eq!(denials[0].advice, advice);

        let roles = without("KnowledgeRole", "Jobs");
        let stack = stack_with(|options| Options { roles: Some(roles), ..options }).await;
        let payment = header(&bare(&Payer::new(&stack).await.authorize(5_000)));
        let refused = payer.at(&stack).client.post(VIN_PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
        assert_eq!(refused.status, 503, "{}", refused.text);
        let denied: BTreeSet<String> =
            stack.guard.take_seen().denials.into_iter().map(|denial| denial.action.name).collect();
        assert!(denied.contains("dynamodb:GetItem") || denied.contains("dynamodb:PutItem"), "{denied:?}");
    });
}

/// `ForAllValues` is true for a request without any such key, so these conditions may only be on actions that always
/// name one.
#[test]
fn key_conditions_are_only_on_actions_that_name_keys() {
    const NAME_KEYS: [&str; 8] = [
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:BatchWriteItem",
        "dynamodb:ConditionCheckItem",
    ];
    for (_, role) in Roles::of(&template()).unwrap().all() {
        for Statement { sid, actions, conditions, .. } in &role.policy.statements {
            let may_lack_keys = actions.iter().find(|action| !NAME_KEYS.contains(&action.as_str()));
            let name = &role.name;
            let is_of_tag = |key: &str| [RESOURCE_TAG, REQUEST_TAG].contains(&key);
            let are_of_tags = conditions.iter().all(|condition| is_of_tag(&condition.key));
            assert!(are_of_tags || may_lack_keys.is_none(), "{name} {sid}: {may_lack_keys:?}");
        }
    }
}

/// A table, index, queue, bucket or secret is named in full or by a key prefix. No statement allows access to
/// everything.
#[test]
fn every_statement_allows_named_actions_on_named_resources() {
    for (_, role) in Roles::of(&template()).unwrap().all() {
        let mut sids = BTreeSet::new();
        for Statement { sid, effect, actions, resources, .. } in &role.policy.statements {
            let at = format!("{} {sid}", role.name);
            assert!(sids.insert(sid), "{at} is there twice");
            assert_eq!(*effect, Effect::Allow, "{at}");
            assert!(actions.iter().all(|action| !action.contains('*')), "{at}: {actions:?}");
            let is_named =
                |arn: &&String| arn.starts_with("arn:aws:") && !arn.ends_with(":*") || arn.contains(":logs:");
            assert!(resources.iter().all(|arn| is_named(&arn)), "{at}: {resources:?}");
        }
    }
}

/// Checks a request that Lambda or a function's start makes, and records the permission as used.
fn demand(roles: &Roles, function: &str, action: Action, why: &str) {
    match roles.judge(function, &action) {
        Ok(uses) => keep(&uses.into_iter().collect()),
        Err(denial) => panic!("{why}: {denial}"),
    }
}

/// Lambda uses the function's role itself: it writes the log, takes messages from queues and records from streams, and
/// sends failed ones on. (AWS: "Using Lambda with Amazon SQS", "Using AWS Lambda with Amazon DynamoDB": execution role
/// permissions. The resource of ListStreams is that of SAM's own `DynamoDBStreamReadPolicy`.)
#[test]
fn roles_allow_what_lambda_does_for_the_functions() {
    let template = template();
    let roles = Roles::of(&template).unwrap();
    for (name, function) in template.resources("AWS::Serverless::Function").unwrap() {
        let metadata = &template.unresolved()["Resources"][name]["Metadata"];
        let function_name = text(&metadata["BuildProperties"]["Binary"]);
        let demand = |action: &str, resource: &str| {
            demand(&roles, function_name, Action::new(action, resource), "Lambda does this for the function");
        };
        let group = text(&function["LoggingConfig"]["LogGroup"]);
        let group = format!("arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}");
        demand("logs:CreateLogStream", &format!("{group}:log-stream:2026/01/01/x"));
        demand("logs:PutLogEvents", &format!("{group}:log-stream:2026/01/01/x"));
        for event in function["Events"].as_object().into_iter().flat_map(|events| events.values()) {
            let properties = &event["Properties"];
            match text(&event["Type"]) {
                "SQS" => {
                    for action in ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"] {
                        demand(action, text(&properties["Queue"]));
                    }
                }
                "DynamoDB" => {
                    let stream = text(&properties["Stream"]);
                    for action in ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"] {
                        demand(action, stream);
                    }
                    let (table, _) = stream.split_once("/stream/").unwrap();
                    demand("dynamodb:ListStreams", &format!("{table}/stream/*"));
                }
                "HttpApi" | "Schedule" => {}
                other => panic!("{name}: what an event of {other} needs is not known"),
            }
            if let Some(failures) = properties.get("DestinationConfig") {
                demand("sqs:SendMessage", text(&failures["OnFailure"]["Destination"]));
            }
        }
    }
}

/// Before its first request a function opens its connection by a read that finds nothing. The read has to be allowed.
#[test]
fn functions_may_make_their_warm_up_read() {
    let roles = Roles::of(&template()).unwrap();
    let mut warmed = 0;
    for (function, _) in roles.all() {
        let source = std::fs::read_to_string(root().join(format!("functions/{function}/src/main.rs"))).unwrap();
        let Some((_, call)) = source.split_once(".warm(&") else { continue };
        let (_, table) = call.split_once("tables.").expect("a table");
        let table: String = table.chars().take_while(char::is_ascii_alphanumeric).collect();
        let resource = format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/agora-{table}");
        let action = Action::new("dynamodb:GetItem", resource).with(LEADING_KEYS, vec!["WARM".to_owned()]);
        demand(&roles, function, action, "it warms its connection");
        warmed += 1;
    }
    assert!(warmed >= 14, "{warmed} functions warm their connection");
}

/// With Bedrock as provider the function's role needs permission. (AWS: "Prerequisites for running model inference":
/// Converse needs `bedrock:InvokeModel`, on the profile and on the models behind it.)
#[test]
fn functions_that_call_a_model_may_call_bedrock() {
    let roles = Roles::of(&template()).unwrap();
    let asking: Vec<&str> = roles
        .all()
        .filter(|(_, role)| role.variables.contains_key("MODEL_URL"))
        .map(|(function, _)| function)
        // It prices by the model and asks it nothing.
        .filter(|function| *function != "browser")
        .collect();
    assert_eq!(asking, ["browser-worker", "executor", "voice", "worker"]);
    // `mcp` has no variable for the URL of another model, and asks only Bedrock.
    for function in asking.into_iter().chain(["mcp"]) {
        for model in [
            format!("arn:aws:bedrock:{REGION}::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0"),
            "arn:aws:bedrock:us-west-2::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0".to_owned(),
            format!(
                "arn:aws:bedrock:{REGION}:{ACCOUNT}:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
            ),
            format!("arn:aws:bedrock:{REGION}:{ACCOUNT}:application-inference-profile/a1b2c3d4e5f6"),
        ] {
            demand(&roles, function, Action::new("bedrock:InvokeModel", model), "MODEL_NAME may name it");
        }
    }
}

/// Of the functions that are told the configuration set, the worker sends mails by Amazon SES, and the others set up agents'
/// domains. (Amazon SES API v2, "SendEmail"; Service Authorization Reference: a raw message needs `ses:SendRawEmail`, and the
/// configuration set is a resource of its own.)
#[test]
fn the_worker_may_send_by_ses() {
    let roles = Roles::of(&template()).unwrap();
    let sending: Vec<&str> = roles
        .all()
        .filter(|(_, role)| role.variables.contains_key("EMAIL_CONFIGURATION_SET"))
        .map(|(function, _)| function)
        .collect();
    assert_eq!(sending, ["mcp", "messaging", "worker"]);
    for action in ["ses:SendEmail", "ses:SendRawEmail"] {
        for resource in ["identity/agents.example.com", "configuration-set/agents"] {
            let action = Action::new(action, format!("arn:aws:ses:{REGION}:{ACCOUNT}:{resource}"));
            demand(&roles, "worker", action, "it sends mails of agents");
        }
    }
    let without = equipped(Template::of_project().unwrap()).with("EmailProviders", "");
    let mail = Action::new("ses:SendEmail", format!("arn:aws:ses:{REGION}:{ACCOUNT}:identity/agents.example.com"));
    assert!(Roles::of(&without).unwrap().judge("worker", &mail).is_err(), "without a provider it sends none");
}

/// The worker sends texts by AWS End User Messaging; whoever sells numbers looks which there are. (Service Authorization
/// Reference, "AWS End User Messaging SMS and Voice V2": the number and the configuration set are resources of their own.)
#[test]
fn functions_that_sell_numbers_may_list_them_and_the_worker_may_text() {
    let roles = Roles::of(&template()).unwrap();
    let action =
        |name: &str, resource: &str| Action::new(name, format!("arn:aws:sms-voice:{REGION}:{ACCOUNT}:{resource}"));
    let number = "phone-number/phone-0123456789abcdef0123456789abcdef";
    for resource in [number, "configuration-set/agents"] {
        demand(&roles, "worker", action("sms-voice:SendTextMessage", resource), "it sends texts of agents");
    }
    for function in ["mcp", "messaging", "worker"] {
        demand(&roles, function, action("sms-voice:DescribePhoneNumbers", number), "it sells numbers");
    }
    for function in ["mcp", "messaging"] {
        assert!(roles.judge(function, &action("sms-voice:SendTextMessage", number)).is_err(), "{function}");
    }
    let without = equipped(Template::of_project().unwrap()).with("SmsProviders", "twilio");
    let text = action("sms-voice:SendTextMessage", number);
    assert!(Roles::of(&without).unwrap().judge("worker", &text).is_err(), "Twilio sends them");
}

/// Who quotes mail sets up agents' domains at Amazon SES, and deletes only what this stack made. (Service Authorization
/// Reference, "Amazon Simple Email Service v2": an identity that is created with tags also needs `ses:TagResource`.)
#[test]
fn functions_that_quote_mail_may_set_up_domains_at_ses() {
    let roles = Roles::of(&template()).unwrap();
    let identity = format!("arn:aws:ses:{REGION}:{ACCOUNT}:identity/firm.example.com");
    let action = |name: &str| Action::new(name, &identity);
    let tagged = |name: &str, key, stack: &str| action(name).with(key, vec![stack.to_owned()]);
    for function in ["messaging", "mcp"] {
        let why = "it sets up domains of agents";
        demand(&roles, function, action("ses:GetEmailIdentity"), why);
        for name in ["ses:CreateEmailIdentity", "ses:TagResource"] {
            demand(&roles, function, tagged(name, REQUEST_TAG, "agora"), why);
        }
        demand(&roles, function, tagged("ses:DeleteEmailIdentity", RESOURCE_TAG, "agora"), why);
        for refused in [
            action("ses:CreateEmailIdentity"),
            action("ses:DeleteEmailIdentity"),
            tagged("ses:DeleteEmailIdentity", RESOURCE_TAG, "another"),
            action("ses:SendEmail"),
        ] {
            assert!(roles.judge(function, &refused).is_err(), "{refused:?}");
        }
    }
    let relay = equipped(Template::of_project().unwrap()).with("EmailProviders", "smtp");
    assert!(Roles::of(&relay).unwrap().judge("messaging", &action("ses:GetEmailIdentity")).is_err());
}

/// The variables of each function that name secrets.
fn secrets_of(roles: &Roles) -> BTreeSet<(String, String)> {
    let mut named = BTreeSet::new();
    for (function, role) in roles.all() {
        for (variable, value) in &role.variables {
            if variable.ends_with("_SECRET_ARN") && !text(value).is_empty() {
                named.insert((function.to_owned(), text(value).to_owned()));
            }
        }
    }
    named
}

/// A deployment may bring its own secrets or have them created. A function may read those that its variables name.
#[test]
fn functions_may_read_the_secrets_in_their_variables() {
    let own = format!("arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:own-AbCdEf");
    let variants: [&[&str]; 4] = [&[], &["RelayerSecretArn"], &["TreasurySecretArn"], &["ProviderKeysSecretArn"]];
    for given in variants {
        let template = given.iter().fold(Template::of_project().unwrap(), |template, name| template.with(name, &*own));
        let roles = Roles::of(&template).unwrap();
        for (function, secret) in secrets_of(&roles) {
            let action = Action::new("secretsmanager:GetSecretValue", secret);
            demand(&roles, &function, action, "a variable names the secret");
        }
    }
}

/// The secrets are read as in a deployment: by the functions whose variables name them and by no other.
#[test]
fn every_function_reads_its_secrets_under_its_own_role() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let roles = Roles::of_project().unwrap();
        let named = |function: &str, variable: &str| text(&roles.get(function).unwrap().variables[variable]).to_owned();
        let key = evm::hex0x(&base::digest::random::<32>());
        let secrets = BTreeMap::from([
            (named("worker", "SERVICE_SECRET_ARN"), "a secret that is long enough to be one".to_owned()),
            (named("worker", "RELAYER_SECRET_ARN"), key.clone()),
            (named("payouts", "TREASURY_SECRET_ARN"), key),
            (named("worker", "PROVIDER_KEYS_SECRET_ARN"), json!({"brave": "none"}).to_string()),
            (named("checkout", "ACP_SECRET_ARN"), json!({"bearer_tokens": TOKEN, "webhooks": ""}).to_string()),
        ]);
        let read = Arc::<Mutex<BTreeSet<(String, String)>>>::default();
        let (roles_of_server, read_by) = (roles.clone(), read.clone());
        proxy.hold_secrets(move |authorization, arn| {
            if let Some(function) = function_of(authorization) {
                let action = Action::new("secretsmanager:GetSecretValue", arn);
                match roles_of_server.judge(function, &action) {
                    Ok(uses) => keep(&uses.into_iter().collect()),
                    Err(denial) => {
                        return (400, json!({"__type": "AccessDeniedException", "Message": denial.message()}));
                    }
                }
                read_by.lock().unwrap().insert((function.to_owned(), arn.to_owned()));
            }
            (200, json!({"SecretString": secrets[arn]}))
        });
        let stack = stack_with(|mut options| {
            options.environment.remove("RELAYER_PRIVATE_KEY");
            let arns = [
                ("worker", "SERVICE_SECRET_ARN"),
                ("worker", "RELAYER_SECRET_ARN"),
                ("payouts", "TREASURY_SECRET_ARN"),
                ("worker", "PROVIDER_KEYS_SECRET_ARN"),
                ("checkout", "ACP_SECRET_ARN"),
            ];
            let options = arns
                .iter()
                .fold(options, |options, (function, variable)| options.with(variable, named(function, variable)));
            options.with("AWS_ENDPOINT_URL", &proxy.url)
        })
        .await;
        // Keys of providers are read on first use.
        for toolbox in stack.toolboxes.values() {
            assert!(toolbox.outbound.key("brave").await.unwrap().is_some());
        }
        assert_eq!(*read.lock().unwrap(), secrets_of(&roles));
        let session = json!({"line_items": [{"id": "agora-vin-decode"}], "currency": "usd"});
        assert_ne!(Platform::acp(&stack).post("", &session).await.status, 401, "the platform of the secret is known");
    });
}

/// Lists the permissions that no test of a whole run used. `make test` runs this at its end.
#[test]
#[ignore = "judges a run of all tests, when it is over"]
fn every_permission_is_used_or_explained() {
    let mut used = BTreeSet::new();
    let files = std::fs::read_dir(folder()).map(|files| files.flatten().collect::<Vec<_>>()).unwrap_or_default();
    for file in &files {
        for line in std::fs::read_to_string(file.path()).unwrap().lines() {
            let (role, sid, action, resource, key) = serde_json::from_str(line).expect("a use");
            used.insert(Use { role, sid, action, resource, key });
        }
    }
    assert!(!used.is_empty(), "no run of all tests was recorded in {}: run `make test`", folder().display());
    let unused: Vec<Permission> =
        permissions().into_iter().filter(|one| !used.iter().any(|used| one.is_used_by(used))).collect();
    let explained = explanations();
    let open: Vec<String> = unused
        .iter()
        .filter(|one| !explained.iter().any(|explanation| explanation.is_about(one)))
        .map(|one| format!("  {one:?}"))
        .collect();
    assert!(
        open.is_empty(),
        "{} permissions of template.yaml were used by no test. Remove them, write the journey that needs them, or say \
         in tests/permissions/unused.yaml why they are there:\n{}",
        open.len(),
        open.join("\n")
    );
}

/// Every explanation is about an existing permission.
#[test]
fn explanations_of_unused_permissions_name_existing_permissions() {
    let permissions = permissions();
    for explanation in explanations() {
        assert!(permissions.iter().any(|one| explanation.is_about(one)), "{explanation:?} is about nothing");
        assert!(explanation.why.len() > 20, "{explanation:?} explains nothing");
    }
}

/// One part of a statement: an action, a resource, or a key pattern.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Permission {
    role: String,
    sid: String,
    kind: &'static str,
    value: String,
}

impl std::fmt::Debug for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Permission { role, sid, kind, value } = self;
        write!(f, "{{role: {role}, sid: {sid}, {kind}: '{value}'}}")
    }
}

impl Permission {
    fn is_used_by(&self, used: &Use) -> bool {
        let value = match self.kind {
            "action" => Some(&used.action),
            "resource" => Some(&used.resource),
            _ => used.key.as_ref(),
        };
        self.role == used.role && self.sid == used.sid && value == Some(&self.value)
    }
}

fn permissions() -> Vec<Permission> {
    let mut found = Vec::new();
    for (_, role) in Roles::of(&template()).unwrap().all() {
        for statement in &role.policy.statements {
            let keys = statement.condition(LEADING_KEYS).map_or(&[][..], |condition| &condition.values);
            for (kind, values) in
                [("action", &statement.actions[..]), ("resource", &statement.resources), ("key", keys)]
            {
                found.extend(values.iter().map(|value| Permission {
                    role: role.name.clone(),
                    sid: statement.sid.clone(),
                    kind,
                    value: value.clone(),
                }));
            }
        }
    }
    found
}

/// Why a permission is needed that no test uses.
#[derive(Debug)]
struct Explanation {
    roles: Vec<String>,
    sid: String,
    kind: String,
    value: String,
    why: String,
}

impl Explanation {
    fn is_about(&self, permission: &Permission) -> bool {
        self.roles.contains(&permission.role)
            && self.sid == permission.sid
            && self.kind == permission.kind
            && self.value == permission.value
    }
}

fn explanations() -> Vec<Explanation> {
    let listed = yaml(&std::fs::read_to_string(root().join("tests/permissions/unused.yaml")).unwrap()).unwrap();
    let read = |entry: &Value| {
        let kind = ["action", "resource", "key"].into_iter().find(|kind| entry.get(kind).is_some());
        let kind = kind.unwrap_or_else(|| panic!("{entry} names no action, resource or key")).to_owned();
        Explanation {
            roles: entry["roles"].as_array().expect("roles").iter().map(|role| text(role).to_owned()).collect(),
            sid: text(&entry["sid"]).to_owned(),
            value: text(&entry[&kind]).to_owned(),
            why: text(&entry["why"]).to_owned(),
            kind,
        }
    };
    listed.as_array().expect("a list").iter().map(read).collect()
}
