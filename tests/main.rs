//! Journeys over the whole service: the real routers, the real SDK client against an embedded DynamoDB, a real chain,
//! and wallets that really sign.
//!
//! | file | what it tries to break |
//! |---|---|
//! | `abuse` | ways to make the operator pay: each until its limit, with what it cost |
//! | `paid_call` | every dialect of payment on both tools, answers, receipts, polling |
//! | `read` | web read over the invented sites: pages, PDF, feeds, robots.txt, pages that need scripts |
//! | `browser` | pages of scripts, through a real Chromium that can reach nothing by itself |
//! | `refusals` | bad payments and bad input: refused by name, nothing lost, nothing charged |
//! | `reorg` | a chain that forgets what was settled and paid |
//! | `repeats` | one payment many times, at once and later |
//! | `exposure` | cheap work whose money never comes: crowds of wallets, and where it ends |
//! | `front_run` | authorizations that a stranger broadcasts first |
//! | `clients` | the published clients and the published facilitator |
//! | `cards` | credits by card, against a contract server |
//! | `checkout` | sessions of agent platforms, on both families of paths, by ACP's own schemas and examples |
//! | `checkout_money` | one charge for a session: races, and a death at every step |
//! | `credits` | top-ups, holds, calls paid from credits, names of calls |
//! | `budgets` | caps and freezes, many calls at once |
//! | `deployed` | what functions do seldom, and a deployment refused |
//! | `discovery` | what agents find us by: documents, headers of every answer, `bazaar`, status, the doctor |
//! | `earnings` | sales counted once, whoever counts them; what they say of a seller |
//! | `people` | vendors by contract servers, a firm's site, DNS and registry, opting out, retention, lost submissions |
//! | `permissions` | roles: what each function asks AWS for, and what nobody asks for |
//! | `payouts` | money on its way to sellers: races, crashes, chains that refuse and treasuries that are empty |
//! | `tokens` | access tokens and what they may not do |
//! | `conformance` | MCP's official conformance runner (`make conformance`) |
//! | `mcp_calls` | MCP's frame and calls: bad messages, one payment many times, tasks |
//! | `mcp_clients` | the official MCP clients, paying by token and by x402 |
//! | `contract_wallets` | payers that are contracts |
//! | `search` | providers that answer, fail and hang; the index: what enters it, races, crashes, hostile pages, its ranking |
//! | `settlement` | facilitators and chains that fail, lie or fall silent |
//! | `crash` | the process dying at every step of a call |
//! | `kill` | `kill -9` of the real runner |
//! | `two_deployments` | one payment at two deployments that are paid at one address |
//! | `fees` | fees that rise while our transactions wait: raises, races, deaths, the cap |
//! | `faults` | a database that collides, throttles and loses answers |
//! | `simulation` | the ledger under random interleavings, crashes and faults of every kind |
//! | `proofs` | agent proofs |
//! | `lookups` | public records paid and kept, copies of registers, local businesses |
//! | `limits` | rate limits at once and over time; the emergency stop |
//! | `quotas` | AWS's limits as numbers |
//! | `openapi` | the API description, the page that shows it, and a client made from it |
//! | `notifications` | what is raised twice, read, and not one's own |
//! | `insights` | receipts, value, the audit while rows are added, an export and its check |
//! | `approvals` | the action policy, held calls, the decision page |
//! | `gateway` | requests and answers as API Gateway and Lambda pass them on, and their limits |
//! | `idle` | a minute without work, and writers that race the scheduler |
//! | `finding` | souls: their order, changes, crashes and races, and what a search reads |
//! | `cost` | requests and capacity units of a call |
//! | `souls_market` | buying from souls: quotes, workers, files, ratings, deadlines, many at once |
//! | `souls_costs` | what sold work uses of tools and the model: who pays for it when it fails, budgets over attempts, races |
//! | `souls_executors` | work by a model, a program, and the example worker with its webhook |
//! | `souls_registry` | registrations that race, everything a body may have wrong, what sellers change |
//! | `souls_turns` | the executor's places: souls, buyers and trials that would take them all, and how long work may last |
//! | `sockets` | jobs followed over WebSockets: strangers, races, dead and slow connections, what a push costs |
//! | `store` | conditional writes, transactions, queue, blobs, secrets |
//! | `models` | work by a model: three protocols, hostile texts, budgets, models that fail |
//! | `webhooks` | endpoints of agents, deliveries that fail, crash and race, hostile receivers, the reference libraries |
//! | `verify` | e-mail verification against a zone and mail hosts of the tests, and a provider's contract |
//! | `work` | tools that count, panic and hang; batches and poison |
//! | `surface` | routes, errors, the catalog |
//! | `research` | research with and without a model, hostile pages, what is public of people |
//! | `template` | `template.yaml` says what the code says |
//! | `events` | the sample events through the Lambda adapter |

mod abuse;
mod approvals;
mod browser;
mod budgets;
mod cards;
mod checkout;
mod checkout_money;
mod clients;
mod conformance;
mod contract_wallets;
mod cost;
mod crash;
mod credits;
mod deployed;
mod discovery;
mod earnings;
mod events;
mod exposure;
mod faults;
mod fees;
mod finding;
mod front_run;
mod gateway;
mod idle;
mod insights;
mod kill;
mod limits;
mod lookups;
mod mcp_calls;
mod mcp_clients;
mod models;
mod notifications;
mod openapi;
mod paid_call;
mod payouts;
mod people;
mod permissions;
mod proofs;
mod quotas;
mod read;
mod refusals;
mod reorg;
mod repeats;
mod research;
mod search;
mod settlement;
mod simulation;
mod sockets;
mod souls_costs;
mod souls_executors;
mod souls_market;
mod souls_registry;
mod souls_turns;
mod store;
mod support;
mod surface;
mod template;
mod tokens;
mod two_deployments;
mod verify;
mod webhooks;
mod work;
