//! Enforces the roles of `template.yaml` in the local stack: every request to AWS is checked against the role of the
//! function that makes it, and refused as AWS would refuse it.
//!
//! The access key of a request names the function: `local-seller` is `seller`, with `SellerRole`. Other keys are the
//! operator's and may do everything. Uses and denials are recorded for the tests.
//!
//! | module | purpose |
//! |---|---|
//! | [`policy`] | evaluates policies |
//! | [`dynamodb`] | reads requests to DynamoDB |
//! | [`wire`] | checks the requests of the SDK's client, queues and blobs |

pub mod dynamodb;
pub mod policy;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use platform::config::Tables;
use platform::http::log;
use platform::store::table::TABLES;
use serde_json::Value;

use crate::database::table_name;
use crate::template::{ACCOUNT, REGION, Template, members, text};
use crate::{Error, iam::policy::Effect};
use policy::{ATTRIBUTES, Action, LEADING_KEYS, Policy, Statement};

/// Prefix of the functions' access keys.
pub const KEY_PREFIX: &str = "local-";

/// The roles of a template, by function.
pub struct Roles {
    roles: BTreeMap<String, Role>,
    /// Every variable that the template gives to at least one function.
    variables: BTreeSet<String>,
    bucket: String,
    sockets: String,
}

/// A function's role and variables.
pub struct Role {
    /// `SellerRole`
    pub name: String,
    pub policy: Policy,
    /// Environment variables, with references resolved.
    pub variables: BTreeMap<String, Value>,
}

impl Roles {
    /// The roles of the project's template, with every optional part switched on.
    pub fn of_project() -> Result<Arc<Roles>, Error> {
        static ROLES: LazyLock<Result<Arc<Roles>, String>> = LazyLock::new(|| {
            let template = Template::of_project().map_err(|error| error.to_string())?;
            Ok(Arc::new(Roles::of(&equipped(template)).map_err(|error| format!("template.yaml: {error}"))?))
        });
        ROLES.clone().map_err(Error::from)
    }

    pub fn of(template: &Template) -> Result<Roles, Error> {
        let mut policies: BTreeMap<String, Policy> = BTreeMap::new();
        for (name, role) in template.resources("AWS::IAM::Role")? {
            let [policy] = role["Policies"].as_array().map(Vec::as_slice).unwrap_or_default() else {
                return Err(format!("{name} does not have one policy").into());
            };
            let policy = Policy::read(&policy["PolicyDocument"]).map_err(|error| format!("{name}: {error}"))?;
            policies.insert(name.to_owned(), policy);
        }
        let shared = template.resolved(&template.unresolved()["Globals"]["Function"]["Environment"]["Variables"])?;
        let mut roles = BTreeMap::new();
        for (name, function) in template.resources("AWS::Serverless::Function")? {
            let role = text(&function["Role"])?.rsplit('/').next().unwrap_or_default();
            let role = policies.keys().find(|known| role.ends_with(known.as_str())).cloned();
            let role = role.ok_or_else(|| format!("{name} has no role of this template"))?;
            let policy = policies.remove(&role).ok_or_else(|| format!("{role} is the role of two functions"))?;
            let own = &function["Environment"]["Variables"];
            let variables = members(&shared).chain(members(own)).map(|(name, value)| (name.clone(), value.clone()));
            // The name of the binary is in the metadata, which is not resolved.
            let binary = &template.unresolved()["Resources"][name]["Metadata"]["BuildProperties"]["Binary"];
            roles.insert(text(binary)?.to_owned(), Role { name: role, policy, variables: variables.collect() });
        }
        let variables = roles.values().flat_map(|role| role.variables.keys().cloned()).collect();
        let arn = |part: &str| -> Result<String, Error> {
            Ok(text(&template.resolved(&serde_json::json!({"Fn::Sub": part}))?)?.to_owned())
        };
        Ok(Roles { roles, variables, bucket: arn("${BlobBucket.Arn}")?, sockets: arn("${SocketApi}")? })
    }

    pub fn all(&self) -> impl Iterator<Item = (&str, &Role)> {
        self.roles.iter().map(|(function, role)| (function.as_str(), role))
    }

    pub fn get(&self, function: &str) -> Option<&Role> {
        self.roles.get(function)
    }

    /// Whether a function gets a variable. Variables that the template gives to no function are allowed.
    pub fn gives(&self, function: &str, variable: &str) -> bool {
        let given = || self.get(function).is_some_and(|role| role.variables.contains_key(variable));
        !self.variables.contains(variable) || given()
    }

    /// Decides whether a function may do an action.
    pub fn judge(&self, function: &str, action: &Action) -> Result<Vec<Use>, Denial> {
        let role = self.get(function);
        let allowed = role.and_then(|role| Some((role, role.policy.allows(action)?)));
        match allowed {
            Some((role, statements)) => {
                Ok(statements.iter().flat_map(|statement| Use::of(&role.name, statement, action)).collect())
            }
            None => {
                Err(Denial { function: function.to_owned(), action: action.clone(), advice: self.advice(role, action) })
            }
        }
    }

    fn advice(&self, role: Option<&Role>, action: &Action) -> String {
        let Some(role) = role else { return "there is no such function in template.yaml".to_owned() };
        let keys = action.values(LEADING_KEYS);
        let of_keys = |keys: &[String]| -> Vec<String> {
            let prefixes =
                keys.iter().map(|key| key.split_once('#').map_or(key.clone(), |(word, _)| format!("{word}#*")));
            prefixes.collect::<BTreeSet<String>>().into_iter().collect()
        };
        let mut advice = format!("{} needs a statement {{Effect: Allow, Action: {}, ", role.name, action.name);
        advice.push_str(&format!("Resource: {}", action.resource));
        if !keys.is_empty() {
            advice.push_str(&format!(", Condition: ForAllValues:StringLike of {LEADING_KEYS} {:?}", of_keys(keys)));
        }
        advice.push('}');
        let near = role.policy.statements.iter().filter(|one| one.covers(&action.name, &action.resource));
        let mut near = near.peekable();
        if near.peek().is_some() {
            advice.push_str("; the role has for this action and resource:");
        }
        for statement in near {
            let word = if statement.effect == Effect::Deny { "denies" } else { "allows" };
            let only = statement.conditions.iter().map(|one| format!(" with {} in {:?}", one.key, one.values));
            advice.push_str(&format!(" {} {word}{};", statement.sid, only.collect::<String>()));
        }
        let attributes = action.values(ATTRIBUTES);
        if role.policy.statements.iter().any(|one| one.condition(ATTRIBUTES).is_some()) && !attributes.is_empty() {
            advice.push_str(&format!(" the request names the attributes {attributes:?}"));
        }
        advice
    }
}

/// The template with all optional parts switched on.
pub fn equipped(template: Template) -> Template {
    let arn = |name: &str| format!("arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{name}-AbCdEf");
    let secrets =
        ["ProviderKeys", "Acp", "Card", "IdentityWebhook", "SmtpUrl", "ModelKey", "ModerationKey", "ChainRpcUrl"];
    let given = secrets
        .iter()
        .fold(template, |template, name| template.with(&format!("{name}SecretArn"), arn(&name.to_lowercase())));
    let given = given.with("ModelProvider", "bedrock").with("PublicHost", "distribution");
    given.with("EmailProviders", "ses").with("SmsProviders", "aws_sms")
}

/// A part of a statement that allowed a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    pub role: String,
    pub sid: String,
    /// As written in the statement.
    pub action: String,
    pub resource: String,
    /// The pattern of the statement's condition that matched a partition key, if it has one.
    pub key: Option<String>,
}

impl Use {
    fn of(role: &str, statement: &Statement, action: &Action) -> Vec<Use> {
        let used = |key: Option<&str>| Use {
            role: role.to_owned(),
            sid: statement.sid.clone(),
            action: statement.action(&action.name).unwrap_or_default().to_owned(),
            resource: statement.resource(&action.resource).unwrap_or_default().to_owned(),
            key: key.map(str::to_owned),
        };
        match statement.condition(LEADING_KEYS) {
            None => vec![used(None)],
            Some(condition) => action.values(LEADING_KEYS).iter().map(|key| used(condition.value(key))).collect(),
        }
    }
}

/// A request that the function's role does not allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    pub function: String,
    pub action: Action,
    /// Shows the missing statement.
    pub advice: String,
}

impl Denial {
    /// The denial in AWS's words.
    pub fn message(&self) -> String {
        let Denial { function, action: Action { name, resource, .. }, .. } = self;
        format!(
            "User: arn:aws:sts::{ACCOUNT}:assumed-role/{function}/{KEY_PREFIX}{function} is not authorized to perform: {name} \
             on resource: {resource} because no identity-based policy allows the {name} action"
        )
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Action { name, resource, .. } = &self.action;
        write!(f, "{} may not {name} {resource}", self.function)?;
        let keys = self.action.values(LEADING_KEYS);
        if !keys.is_empty() {
            write!(f, " with the keys {keys:?}")?;
        }
        write!(f, ": {}", self.advice)
    }
}

/// Checks the requests of one stack's functions, and records uses and denials.
pub struct Guard {
    pub roles: Arc<Roles>,
    tables: Tables,
    seen: Mutex<Seen>,
}

/// Uses and denials of a stack's functions.
#[derive(Default)]
pub struct Seen {
    pub uses: BTreeSet<Use>,
    pub denials: Vec<Denial>,
    /// Items and bytes of the largest transaction: emulators accept more than DynamoDB.
    pub largest_transaction: (usize, usize),
}

impl Guard {
    pub fn new(roles: Arc<Roles>, tables: Tables) -> Arc<Guard> {
        Arc::new(Guard { roles, tables, seen: Mutex::default() })
    }

    /// Returns and clears the record.
    pub fn take_seen(&self) -> Seen {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks an action of a function and records the result.
    pub fn check(&self, function: &str, action: &Action) -> Result<(), Denial> {
        match self.roles.judge(function, action) {
            Ok(uses) => {
                self.lock().uses.extend(uses);
                Ok(())
            }
            Err(denial) => {
                log::failure("a role does not allow a request", &denial);
                self.lock().denials.push(denial.clone());
                Err(denial)
            }
        }
    }

    /// Checks a request to DynamoDB by its operation, body and `Authorization`.
    fn check_dynamodb(&self, authorization: &str, operation: &str, body: &[u8]) -> Result<(), Denial> {
        let Some(function) = function_of(authorization) else { return Ok(()) };
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        if let Some(items) = request["TransactItems"].as_array() {
            let mut seen = self.lock();
            let (most, bytes) = seen.largest_transaction;
            seen.largest_transaction = (most.max(items.len()), bytes.max(body.len()));
        }
        let actions = dynamodb::actions(operation, &request, |table| self.in_template(table));
        let actions = actions.unwrap_or_else(|error| {
            log::failure("a request to the database could not be read", &error);
            vec![Action::new(format!("dynamodb:{operation}"), "not understood")]
        });
        actions.iter().try_for_each(|action| self.check(function, action))
    }

    /// The name of a table in the template.
    fn in_template(&self, table: &str) -> String {
        let word = TABLES.iter().map(|table| table.word).find(|word| table_name(&self.tables, word) == table);
        word.map_or(table.to_owned(), |word| format!("agora-{word}"))
    }

    /// Checks a message to a connection by the `Authorization` of its request.
    pub fn check_socket(&self, authorization: &str, method: &str, connection: &str) -> Result<(), Denial> {
        let Some(function) = function_of(authorization) else { return Ok(()) };
        let api = &self.roles.sockets;
        let resource = format!("arn:aws:execute-api:{REGION}:{ACCOUNT}:{api}/live/{method}/@connections/{connection}");
        self.check(function, &Action::new("execute-api:ManageConnections", resource))
    }

    fn check_blob(&self, function: &str, action: &str, key: &str) -> Result<(), Denial> {
        self.check(function, &Action::new(action, format!("{}/{key}", self.roles.bucket)))
    }
}

/// The function that signed a request; `None` for the operator.
pub fn function_of(authorization: &str) -> Option<&str> {
    let (_, credential) = authorization.split_once("Credential=")?;
    credential.split('/').next()?.strip_prefix(KEY_PREFIX)
}
