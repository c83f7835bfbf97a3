//! Tests over the whole service: the real routers, the real SDK client with an embedded DynamoDB, a real chain, and
//! wallets that really sign. Each test (a "journey") starts a stack of its own, see `support`.
//!
//! | file | what it tests |
//! |---|---|
//! | `abuse` | ways to make the operator pay: each until its limit, with its cost |
//! | `paid_call` | every payment form on both tools, answers, receipts, polling |
//! | `read` | web read over the test sites: pages, PDF, feeds, robots.txt, pages that need scripts |
//! | `browser` | pages of scripts, through a real Chromium without network access of its own |
//! | `refusals` | bad payments and bad input: refused by name, nothing lost, nothing charged |
//! | `reorg` | settlements and payouts in blocks that the chain loses |
//! | `repeats` | one payment sent many times, concurrently and later |
//! | `exposure` | cheap work before settlement, for many wallets that never pay, and its limits |
//! | `front_run` | authorizations that a stranger broadcasts first |
//! | `clients` | the published clients and the published facilitator |
//! | `cards` | credits by card, against a contract server |
//! | `checkout` | sessions of agent platforms, on both path families, with ACP's own schemas and examples |
//! | `checkout_money` | one charge per session: races, and a crash at every step |
//! | `goods` | goods of sellers here: bought, sent, settled, paid back; races, crashes |
//! | `commerce` | purchases in shops by a contract server: quotes, moved prices, unknown fates, crashes |
//! | `credits` | top-ups, holds, calls paid from credits, idempotency keys of calls |
//! | `budgets` | caps and freezes under concurrent calls |
//! | `deployed` | rare requests to AWS that missing permissions broke in a deployment |
//! | `discovery` | discovery documents, headers of every answer, `bazaar`, status, the doctor |
//! | `earnings` | sales counted once under concurrency; the seller's reputation |
//! | `people` | vendors by contract servers, a company's site, DNS and registry, opting out, retention, lost submissions |
//! | `permissions` | roles: what each function asks AWS for, and permissions that are never used |
//! | `prices` | the operator's prices and fee: every list and every 402, open quotes, bad tables |
//! | `payouts` | payouts to sellers: races, crashes, chain failures and an empty treasury |
//! | `tokens` | access tokens, their caps, and what they may not do |
//! | `conformance` | MCP's official conformance runner (`make conformance`) |
//! | `mcp_calls` | MCP's frame and calls: bad messages, one payment many times, tasks |
//! | `mcp_clients` | the official MCP clients, paying by token and by x402 |
//! | `contract_wallets` | payers that are contracts |
//! | `search` | providers that answer, fail and hang; the index: its content, races, crashes, hostile pages, ranking |
//! | `settlement` | facilitators and chains that fail, lie or do not answer |
//! | `crash` | the process dying at every step of a call |
//! | `kill` | `kill -9` of the real runner |
//! | `two_deployments` | one payment at two deployments with the same payment address |
//! | `fees` | fees that rise while our transactions wait: raises, races, crashes, the cap |
//! | `faults` | a database that returns conflicts, throttles and loses answers |
//! | `simulation` | the ledger under random interleavings, crashes and faults of every kind |
//! | `proofs` | agent proofs |
//! | `lookups` | public records paid and cached, copies of registers, local businesses |
//! | `limits` | rate limits, concurrent and over time; the emergency stop |
//! | `quotas` | AWS's limits as numbers |
//! | `openapi` | the API description, the page that shows it, and a client generated from it |
//! | `notifications` | duplicate events, reading and marking, access by others |
//! | `insights` | receipts, value, the audit while rows are added, an export and its verification |
//! | `approvals` | the action policy, held calls, the decision page |
//! | `gateway` | requests and answers as API Gateway and Lambda pass them on, and their limits |
//! | `idle` | a minute without work, and writers that race the scheduler |
//! | `finding` | finding souls: order, changes, crashes and races, and what a search reads |
//! | `first_hour` | a new stack's library, the scripts of `local/`, the commands of the README's doors |
//! | `cost` | requests and capacity units of a call |
//! | `souls_market` | buying from souls: quotes, workers, files, ratings, deadlines, concurrency |
//! | `souls_costs` | what sold work spends on tools and the model: who pays if it fails, budgets over attempts, races |
//! | `souls_executors` | work by a model, by a program, and by the example worker with its webhook |
//! | `souls_registry` | concurrent registrations, every possible error in a body, changes by sellers |
//! | `souls_turns` | the executor's slots: fairness between souls, buyers and trials, and how long work may last |
//! | `tools_turns` | the workers' slots: stalling sources of one buyer, and messages for jobs that only wait |
//! | `sockets` | jobs followed over WebSockets: strangers, races, dead and slow connections, the cost of a push |
//! | `store` | conditional writes, transactions, queue, blobs, secrets |
//! | `models` | work by a model: three protocols, hostile texts, budgets, models that fail |
//! | `webhooks` | endpoints of agents, deliveries that fail, crash and race, hostile receivers, the reference libraries |
//! | `verify` | e-mail verification against a zone and mail hosts of the tests, a provider's contract, identity checks |
//! | `work` | tools that count, panic and hang; batches and poison messages |
//! | `strict` | bodies that set something: what they do not know is refused, what answers say can be sent back |
//! | `surface` | routes, errors, the catalog |
//! | `research` | research with and without a model, hostile pages, public data about people |
//! | `template` | `template.yaml` matches the code |
//! | `events` | the sample events through the Lambda adapter |
//! | `email` | mail between agents, quotes, threads, limits, SES and a relay by contract servers, crashes while sending |
//! | `sms` | texts: segments, numbers, STOP, limits, AWS and Twilio by contract servers, crashes while sending |
//! | `money_agrees` | a day of everything: every place that shows what it cost says the same |
//! | `goals` | goals: planned, spent within a purse, paid back; cancelled, approved, cut off |
//! | `own` | services of the operator's own: sold, hostile, limited, asked once; crashes |
//! | `own_jobs` | jobs that no call buys: begun once, charged by their use |
//! | `voice` | numbers that answer: settings, calls over the exchange, charges, races, calls that agents buy, crashes |
//! | `email_smtp` | inbound mail by SMTP: who may receive, forged senders, mail sent again |

mod abuse;
mod approvals;
mod browser;
mod browsing;
mod budgets;
mod builds;
mod cards;
mod checkout;
mod checkout_money;
mod clients;
mod commerce;
mod conformance;
mod contract_wallets;
mod cost;
mod crash;
mod credits;
mod deployed;
mod discovery;
mod earnings;
mod email;
mod email_smtp;
mod events;
mod exposure;
mod faults;
mod fees;
mod finding;
mod first_hour;
mod front_run;
mod gateway;
mod goals;
mod goods;
mod idle;
mod insights;
mod kill;
mod limits;
mod lookups;
mod mcp_calls;
mod mcp_clients;
mod models;
mod money_agrees;
mod network;
mod notifications;
mod openapi;
mod own;
mod own_jobs;
mod paid_call;
mod payouts;
mod people;
mod permissions;
mod prices;
mod proofs;
mod quotas;
mod read;
mod refusals;
mod reorg;
mod repeats;
mod request_files;
mod research;
mod search;
mod settlement;
mod simulation;
mod sms;
mod sockets;
mod souls_costs;
mod souls_executors;
mod souls_market;
mod souls_registry;
mod souls_turns;
mod store;
mod strict;
mod support;
mod surface;
mod template;
mod tokens;
mod tools_turns;
mod two_deployments;
mod verify;
mod voice;
mod webhooks;
mod work;
