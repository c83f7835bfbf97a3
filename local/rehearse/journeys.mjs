// Journeys through a deployed gateway, all at once, each with a wallet of its own. Prints a line for each, and what went wrong.
// Usage: node --experimental-websocket journeys.mjs STACK_JSON [NAME…] (all of them, if none is named)
import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent } from '../../tests/clients/v2/agent.mjs';

const [stackFile, ...only] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const VIN = { vin: '1HGCM82633A004352' };
const LOOKUP = '/v1/tools/lookup/vin';
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

function expect(answer, ...statuses) {
  if (!statuses.includes(answer.status)) {
    const { method, path, status, text } = answer;
    throw new Error(`${method} ${path}: ${status} instead of ${statuses.join(' or ')}: ${text.slice(0, 600)}`);
  }
  return answer;
}

function check(good, text) {
  if (!good) throw new Error(text);
}

async function until(what, look, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: waited ${seconds} seconds`);
    await sleep(400);
  }
}

// The job that a paid call began, when it is over.
function finished(me, id) {
  return until(`the end of ${id}`, async () => {
    const { json } = expect(await me.own('GET', `/v1/requests/${id}`), 200);
    return ['completed', 'failed'].includes(json.status) && json;
  });
}

// The link in the newest mail to somebody, as a path.
function mailed(to, pattern) {
  return until(`a mail to ${to}`, async () => {
    const mails = await (await fetch(`${stack.peers}/mails`)).json();
    return mails.reverse().filter((mail) => mail.includes(to)).map((mail) => mail.match(pattern)?.[1]).find(Boolean);
  });
}

// The owner's wish to be warned early: whichever function sells next looks up who is to be told.
const warned = { daily: '50', alert_at: 0.0001 };
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const never = 'http://no-such-host.invalid/';
const page = 'https://no-such-host.invalid/hook';
const journeys = {};

journeys.reads = async (me) => {
  for (const path of ['/', '/health', '/v1/stats', '/v1/tools/discover', '/llms.txt', '/llms-full.txt', '/skill.md',
    '/guides/paying.md', '/pricing', '/pricing.md', '/.well-known/x402', '/.well-known/jwks.json', '/.well-known/acp.json',
    '/.well-known/acp/manifest.json', '/openapi.json', '/docs', '/docs/swagger-ui-bundle.js',
    '/acp/handlers/x402/config.json', '/v1/soul', '/v1/soul/browse', '/v1/soul/stats', '/v1/soul/ranking', '/v1/soul/templates',
    '/v1/soul/service-types', '/v1/soul/search?q=counter']) {
    const answer = expect(await me.ask('GET', path), 200, 404);
    check(answer.status === 200 || path.startsWith('/acp/handlers'), `${path}: ${answer.status}`);
    check(answer.bytes.length > 10, `${path} is empty`);
  }
  expect(await me.ask('GET', '/no/such/path'), 404);
  // Degraded, and so 503, until the scheduler has run for the first time.
  await until('the first sweep', async () => expect(await me.ask('GET', '/v1/status'), 200, 503).status === 200, 90);
  expect(await me.ask('DELETE', LOOKUP), 405);
  expect(await me.ask('HEAD', '/health'), 200);
  expect(await me.ask('OPTIONS', LOOKUP), 204, 200);
};

journeys.lookup = async (me) => {
  expect(await me.ask('POST', LOOKUP, { vin: 'too short' }), 400);
  const unpaid = expect(await me.ask('POST', LOOKUP, VIN), 402);
  check(unpaid.headers.get('payment-required'), 'the 402 has no terms in its header');
  const key = { 'idempotency-key': randomUUID() };
  const bought = expect(await me.pay(LOOKUP, VIN, key), 200);
  check(bought.json.data.result.make, bought.text);
  const again = expect(await me.pay(LOOKUP, VIN, key), 200);
  check(again.json.data.receipt_id === bought.json.data.receipt_id, 'the same name was charged twice');
  const { transaction } = JSON.parse(atob(bought.headers.get('payment-response')));
  expect(await me.ask('GET', `/v1/payments/${transaction}`), 200);
  expect(await me.own('GET', `/v1/requests/${bought.json.data.request_id}`), 200);
  const { requests } = expect(await me.own('GET', '/v1/requests?limit=100'), 200).json;
  check(requests.some(({ request_id }) => request_id === bought.json.data.request_id), 'the list of requests lacks one');
  // A register that is asked, and asked again: the second answer is kept. Both are above 8 KB, and so kept beside their jobs.
  const filings = { cik: '320193', limit: 50 };
  const register = '/v1/tools/lookup/company-filings';
  const first = expect(await me.pay(register, filings), 200);
  check(first.text.length > 9000, `a short answer: ${first.text}`);
  const name = { 'idempotency-key': randomUUID() };
  const second = expect(await me.pay(register, filings, name), 200);
  check(first.json.data.result.found && second.json.data.result.cached, second.text.slice(0, 500));
  const repeated = expect(await me.pay(register, filings, name), 200);
  check(JSON.stringify(repeated.json.data.result) === JSON.stringify(second.json.data.result), repeated.text.slice(0, 500));
  expect(await me.own('GET', `/v1/requests/${second.json.data.request_id}`), 200);
};

// What everything costs that this deployment can do.
journeys.prices = async (me) => {
  let asked = 0;
  for (let cursor = ''; cursor !== undefined;) {
    const { tools, nextCursor } = expect(await me.ask('GET', `/v1/tools/discover?cursor=${encodeURIComponent(cursor)}`), 200).json;
    for (const tool of tools.filter(({ name }) => name === 'place_elevation')) {
      check(tool.price_usdc === '0.012300', `the price in settings.json does not hold: ${JSON.stringify(tool)}`);
    }
    for (const tool of tools.filter(({ needs }) => needs.length === 0)) {
      // What souls sell has a soul in its path, and the example's is nobody.
      // A mail is quoted first, and nobody has this number.
      const quoted = tool.pricing === 'quote' && tool.name !== 'compute';
      const status = tool.name.startsWith('soul') ? 404 : quoted ? 400 : 402;
      const nobody = { sms: { to_number: '+12025550199' }, voice: { target_number: '+12025550199' } };
      const example = { ...tool.example, ...nobody[tool.name] };
      expect(await me.ask(tool.method, tool.path, example), status);
      asked += 1;
    }
    cursor = nextCursor;
  }
  check(asked > 30, `only ${asked} tools have a price`);
};

// Mail to an address here and to one that does not exist: the first is paid for, the second is not.
async function mails(me) {
  const { domains: [own] } = expect(await me.own('GET', '/v1/tools/email/domains'), 200).json;
  const mail = { to_address: [own.default_from, `nobody@${own.domain}`], subject: 'Lunch?', body: 'At noon.' };
  expect(await me.own('POST', '/v1/tools/email/send', mail), 400);
  const quote = expect(await me.own('POST', '/v1/tools/email/quote', mail), 200).json;
  const quoted = { 'x-quote-id': quote.quote_id, 'x-agent-id': me.address };
  const sent = expect(await me.pay('/v1/tools/email/send', mail, quoted), 202);
  const job = await finished(me, sent.json.request_id);
  check(job.status === 'completed' && Number(job.credited_usdc) === 0.005, JSON.stringify(job));
  const { emails } = expect(await me.own('GET', '/v1/tools/inbox?include_body=true'), 200).json;
  check(emails.some(({ body }) => body?.includes('At noon.')), JSON.stringify(emails));
  expect(await me.own('GET', `/v1/tools/inbox/${emails[0].id}`), 200);
  expect(await me.own('GET', `/v1/tools/email/analytics/${own.domain}`), 200);
  expect(await me.own('POST', `/v1/tools/email/domains/${own.domain}/pause`, {}), 200);
  expect(await me.own('POST', `/v1/tools/email/domains/${own.domain}/resume`, {}), 200);
  expect(await me.ask('GET', '/v1/tools/email/unsubscribe/nothing'), 404);
  expect(await me.ask('POST', '/v1/providers/ses', {}), 401);
}

// A text to the own number, for which it is bought, and one to a number that nobody here has.
async function texts(me) {
  const sms = { message: 'At noon.', to_number: '+12125550100' };
  expect(await me.ask('POST', '/v1/tools/sms/send', { ...sms, to_number: '911' }), 400);
  const bought = expect(await me.pay('/v1/tools/voice/numbers', {}), 201).json.data;
  check(bought.is_new && bought.charged === '5.000000', JSON.stringify(bought));
  const { data: { numbers: [own] } } = expect(await me.own('GET', '/v1/tools/voice/numbers'), 200).json;
  check(own.phone_number === bought.phone_number, JSON.stringify(own));
  const sent = expect(await me.pay('/v1/tools/sms/send', { ...sms, to_number: own.phone_number }, { 'x-agent-id': me.address }), 202);
  const job = await finished(me, sent.json.request_id);
  check(job.status === 'completed' && job.result.status === 'all_delivered', JSON.stringify(job));
  const { messages } = expect(await me.own('GET', '/v1/tools/sms/inbox'), 200).json;
  check(messages.some(({ body }) => body === 'At noon.'), JSON.stringify(messages));
  expect(await me.own('GET', `/v1/tools/sms/inbox/${messages[0].id}`), 200);
  expect(await me.ask('POST', '/v1/providers/sms', {}), 401);
  for (const path of ['status', 'inbound']) expect(await me.ask('POST', `/v1/providers/twilio/${path}`, {}), 404);
}

// Another agent (of a journey without rules) calls the own number, by turns, and then buys a call to it. What it is asked is in the number's settings.
async function calls(me) {
  const caller = new Agent(stack, payers[paying.indexOf('identity')].private_key);
  const { data: { numbers: [own] } } = expect(await me.own('GET', '/v1/tools/voice/numbers'), 200).json;
  const inbound = `/v1/tools/voice/numbers/${own.id}/inbound`;
  expect(await me.own('GET', inbound), 404);
  const prompt = 'You answer for Rossi, a bakery. A loaf of rye costs 4 dollars.';
  const { data: { webhook_secret } } = expect(await me.own('PUT', inbound, { prompt, webhook_url: page }), 200).json;
  check(webhook_secret.startsWith('whsec_'), 'no secret');
  expect(await me.pay('/v1/credits/top-up', { amount: '5.00' }), 200);
  expect(await caller.pay('/v1/tools/voice/numbers', {}), 201);
  const exchange = '/v1/tools/voice/exchange';
  const { data: { call } } = expect(await caller.own('POST', exchange, { to: own.phone_number }), 201).json;
  const { data: { said } } = expect(await caller.own('POST', `${exchange}/${call.id}/turns`, { text: 'How much is a loaf of rye?' }), 200).json;
  check(said.includes('4 dollars'), said);
  expect(await caller.own('POST', `${exchange}/${call.id}/hang-up`, {}), 200);
  expect(await caller.own('GET', `${exchange}/${call.id}`), 200);
  await until('the charge of a call', async () => {
    const { data } = expect(await me.own('GET', `/v1/tools/voice/inbound/${call.id}`), 200).json;
    return data.summary && data.charge_usdc === '0.350000' && data.transcript.includes(said);
  });
  const objective = { objective: 'Ask how much a loaf of rye costs.', target_number: own.phone_number, max_duration_minutes: 1 };
  const bought = expect(await caller.pay('/v1/tools/voice/call', objective, { 'x-agent-id': caller.address }), 202);
  const job = await finished(caller, bought.json.request_id);
  check(job.status === 'completed' && job.result.transcript.includes('4 dollars'), JSON.stringify(job));
  const { data: { calls: both } } = expect(await me.own('GET', '/v1/tools/voice/inbound'), 200).json;
  check(both.length === 2, JSON.stringify(both));
  expect(await me.own('DELETE', inbound), 200);
  expect(await me.ask('GET', '/v1/tools/voice/recordings/nothing'), 404);
  expect(await me.ask('POST', '/v1/providers/vapi', {}), 404);
  expect(await me.ask('POST', '/v1/providers/telnyx', {}), 404);
}

journeys.queued = async (me) => {
  // The deployed guard reaches no private address, and this machine has no other: the read fails, and is paid back.
  const read = expect(await me.pay('/v1/tools/web-read', { url: never }), 202);
  const failed = await finished(me, read.json.request_id);
  check(failed.status === 'failed' && Number(failed.credited_usdc) === 0.002, JSON.stringify(failed));
  expect(await me.ask('POST', '/v1/tools/web-read', { url: 'http://127.0.0.1/' }), 400);
  const name = randomUUID();
  const jane = { full_name: 'Jane Doe', company_domain: 'example.com' };
  const asked = expect(await me.pay('/v1/tools/enrich/email', jane, { 'idempotency-key': name }), 202);
  const done = await finished(me, asked.json.request_id);
  expect(await me.own('GET', `/v1/submissions/recover?endpoint=enrich/email&key=${name}`), 200);
  check(done.status === 'completed' && done.result.email === 'jane@example.com', JSON.stringify(done));
  await until('the page in the index', async () => {
    const answer = expect(await me.pay('/v1/tools/search', { query: 'lighthouse lamp' }), 200);
    return answer.text.includes('example.com/lighthouse');
  });
  // Found in the index, and not to be read anew: paid back.
  const topic = 'Why does the lamp of the lighthouse turn against the sun?';
  const research = expect(await me.pay('/v1/tools/research', { topic }), 202);
  await finished(me, research.json.request_id);
  await mails(me);
  await texts(me);
  await calls(me);
  await goals(me);
};

// A goal buys its calls from its purse, asks its owner, and gives the rest back.
async function goals(me) {
  const objective = 'Decode the VIN 1HGCM82633A004352. Then verify the email address of my customer.';
  const { goal_id: goal, request_id: request } = expect(await me.pay('/v1/compute', { objective }), 202).json;
  const path = `/v1/compute/${goal}`;
  const question = await until('the question of a goal', async () => {
    const { data } = expect(await me.own('GET', `${path}/tasks`), 200).json;
    return data.find(({ status, task_type }) => status === 'waiting' && task_type === 'human_approval');
  });
  const answer = { task_id: question.id, response: 'jane@example.com' }
  expect(await me.own('POST', `${path}/respond`, answer), 200);
  const done = await finished(me, request);
  check(done.result.status === 'completed' && Number(done.credited_usdc) > 1, JSON.stringify(done));
  for (const part of ['', '/tasks', '/budget', '/outputs']) expect(await me.own('GET', `${path}${part}`), 200);
  const { data: listed } = expect(await me.own('GET', '/v1/compute'), 200).json;
  check(listed.goals.some(({ id }) => id === goal), 'the list of goals lacks one');
  expect(await me.own('POST', `${path}/cancel`, {}), 409);
};

journeys.websocket = async (me) => {
  const { 'x-agent-proof': proof } = await me.proof('read');
  const query = new URLSearchParams({ wallet: me.address, proof });
  const told = [];
  const socket = new WebSocket(`${stack.ws_url}/v1/requests/subscribe?${query}`);
  socket.onmessage = ({ data }) => told.push(JSON.parse(data));
  await new Promise((open, refuse) => {
    socket.onopen = open;
    socket.onerror = () => refuse(new Error('the socket was not let in'));
  });
  socket.send(JSON.stringify({ type: 'ping' }));
  await until('a pong', () => told.find(({ type }) => type === 'pong'));
  const read = expect(await me.pay('/v1/tools/web-read', { url: never }), 202).json.request_id;
  socket.send(JSON.stringify({ subscribe: [read, randomUUID()] }));
  await until('the acknowledgement', () => told.find(({ type }) => type === 'subscribed'));
  const heard = (id, end) => () => told.find(({ request_id, status }) => request_id === id && status === end);
  await until('the end of the job', heard(read, 'failed'));
  // Followed from its beginning, so that the end is pushed and not told because of the question.
  const jane = { full_name: 'Jane Doe', company_domain: 'example.com' };
  const sold = expect(await me.pay('/v1/tools/enrich/email', jane), 202).json.request_id;
  socket.send(JSON.stringify({ subscribe: [sold] }));
  await until('the result', heard(sold, 'completed'));
  socket.send(JSON.stringify({ unsubscribe: [sold] }));
  socket.send('no JSON');
  await until('an error', () => told.find(({ type }) => type === 'error'));
  socket.close();
  // With an access token, in a header.
  const { token } = expect(await me.own('POST', '/v1/agents/me/access-tokens', { expires_in_days: 1 }), 201).json.data;
  const other = new WebSocket(`${stack.ws_url}/v1/requests/subscribe`, { headers: { authorization: `Bearer ${token}` } });
  other.onmessage = ({ data }) => told.push(JSON.parse(data));
  await new Promise((open, refuse) => {
    other.onopen = open;
    other.onerror = () => refuse(new Error('the token was not let in'));
  });
  other.send(JSON.stringify({ subscribe: [sold] }));
  await until('the acknowledgement', () => told.filter(({ type }) => type === 'subscribed').length > 2);
  other.close();
  const stranger = new WebSocket(`${stack.ws_url}/v1/requests/subscribe`);
  await new Promise((refused, wrong) => {
    stranger.onerror = refused;
    stranger.onopen = () => wrong(new Error('somebody without a proof was let in'));
  });
};

journeys.approvals = async (me) => {
  const policy = '/v1/agents/me/action-policy';
  const approver = { email: `approver-${me.address.slice(2, 8)}@example.com` };
  const rules = [{ id: 'ask', tool: 'vin_decode', action: 'require_approval', when: { always: true } },
    { id: 'never', tool: 'web_read', action: 'deny', when: { always: true } }];
  expect(await me.own('PUT', policy, { rules, approver }), 200);
  expect(await me.own('GET', policy), 200);
  expect(await me.pay('/v1/tools/web-read', { url: never }), 403);
  const held = expect(await me.pay(LOOKUP, VIN), 403).json;
  check(held.error === 'approval_required', JSON.stringify(held));
  const link = await mailed(approver.email, /https:\/\/[^/]+(\/approve\/[\w-]+)/);
  expect(await me.ask('GET', link), 200);
  expect(await me.ask('POST', link, 'decision=approve', form), 200);
  expect(await me.own('GET', `/v1/approvals/${held.approval_id}`), 200);
  const bought = expect(await me.pay(LOOKUP, VIN, { 'x-approval-id': held.approval_id }), 200);
  expect(await me.own('GET', `/v1/receipts/${bought.json.data.receipt_id}/explain`), 200);
  const question = { action_summary: 'Buy a boat', approver, expires_in_seconds: 600 };
  const asked = expect(await me.own('POST', '/v1/approvals', question, { 'idempotency-key': randomUUID() }), 201).json.data;
  expect(await me.own('POST', `/v1/approvals/${asked.approval_id}/cancel`, {}), 200);
  expect(await me.own('GET', '/v1/approvals?limit=10'), 200);
  expect(await me.own('POST', `${policy}/backtest`, { rules }), 200);
  expect(await me.own('DELETE', policy), 200);
  expect(await me.ask('GET', '/approve/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'), 404);
};

journeys.webhooks = async (me) => {
  const hooks = '/v1/webhooks';
  const made = expect(await me.own('POST', hooks, { url: page }, { 'idempotency-key': randomUUID() }), 201).json.data;
  expect(await me.own('POST', hooks, { url: 'https://127.0.0.1/' }), 400);
  expect(await me.own('GET', hooks), 200);
  const path = `${hooks}/${made.id}`;
  expect(await me.own('GET', path), 200);
  expect(await me.own('PATCH', path, { description: 'mine' }), 200);
  expect(await me.own('POST', `${path}/rotate-secret`, { overlap_hours: 1 }), 200);
  const { event_id: event } = expect(await me.own('POST', `${path}/test`, {}), 202).json.data;
  const attempted = () => until('an attempt to deliver', async () => {
    const { deliveries } = expect(await me.own('GET', `${path}/deliveries`), 200).json.data;
    return deliveries.find((one) => one.event_id === event || one.payload?.id === event)?.attempts_made > 0;
  });
  await attempted();
  expect(await me.own('POST', `${path}/deliveries/${event}/replay`, {}), 202);
  // What a job ends with is posted too.
  const read = expect(await me.pay('/v1/tools/web-read', { url: never }), 202);
  await finished(me, read.json.request_id);
  await until('the event of the job', async () =>
    expect(await me.own('GET', `${path}/deliveries`), 200).text.includes(read.json.request_id));
  // The eleventh is refused after its name was taken; the name is given back.
  for (let more = 1; more < 10; more += 1) expect(await me.own('POST', hooks, { url: `${page}/${more}` }), 201);
  const named = { 'idempotency-key': randomUUID() };
  for (let turn = 0; turn < 2; turn += 1) expect(await me.own('POST', hooks, { url: page }, named), 409);
  expect(await me.own('DELETE', path), 200);
};

journeys.tokens = async (me) => {
  const tokens = '/v1/agents/me/access-tokens';
  const mint = (headers) => me.own('POST', tokens, { expires_in_days: 1 }, headers);
  const minted = expect(await mint({ 'idempotency-key': randomUUID() }), 201).json.data;
  for (let more = 1; more < 20; more += 1) expect(await mint(), 201);
  const named = { 'idempotency-key': randomUUID() };
  for (let turn = 0; turn < 2; turn += 1) {
    const refused = expect(await mint(named), 409);
    check(refused.json.error === 'too_many_access_tokens', refused.text);
  }
  const bearer = { authorization: `Bearer ${minted.token}` };
  for (const path of ['/v1/agents/me', '/v1/agents/me/budgets', '/v1/tools/balance', '/v1/analytics/receipts', '/v1/webhooks']) {
    expect(await me.ask('GET', path, undefined, bearer), 200);
  }
  expect(await me.ask('POST', '/v1/webhooks', { url: page }, bearer), 403);
  expect(await me.own('GET', tokens), 200);
  expect(await me.own('DELETE', `${tokens}/${minted.id}`), 200);
  expect(await me.ask('GET', '/v1/agents/me', undefined, bearer), 401);
  expect(await me.ask('GET', `/v1/requests/${randomUUID()}`, undefined, bearer), 401);
};

journeys.account = async (me) => {
  const owner = `owner-${me.address.slice(2, 8)}@example.com`;
  expect(await me.own('GET', '/v1/agents/me'), 200);
  expect(await me.own('GET', '/v1/tools/balance'), 200);
  expect(await me.pay('/v1/credits/top-up', { amount: '0.10' }), 200);
  expect(await me.own('PUT', '/v1/agents/me/budgets', { daily: '0.02', alert_at: 0.4, alert_email: owner }), 200);
  const { token, id } = expect(await me.own('POST', '/v1/agents/me/access-tokens', { expires_in_days: 1 }), 201).json.data;
  const bearer = { authorization: `Bearer ${token}` };
  const dry = expect(await me.ask('POST', LOOKUP, VIN, { ...bearer, 'x-dry-run': 'true' }), 200);
  check(dry.json.dry_run ?? true, dry.text);
  const bought = expect(await me.ask('POST', LOOKUP, VIN, bearer), 200);
  expect(await me.ask('GET', `/v1/requests/${bought.json.data.request_id}`, undefined, bearer), 200);
  expect(await me.ask('POST', LOOKUP, VIN, bearer), 200);
  await mailed(owner, /(budget)/i);
  const notes = await until('the warning', async () => {
    const { notifications } = expect(await me.own('GET', '/v1/tools/notifications'), 200).json;
    return notifications.length > 0 && notifications;
  });
  expect(await me.own('PATCH', `/v1/tools/notifications/${notes[0].id}/read`, {}), 200);
  expect(await me.own('PATCH', '/v1/tools/notifications/read-all', {}), 200);
  const freezes = '/v1/agents/me/freezes';
  expect(await me.own('POST', freezes, { what: 'token', id }), 200);
  expect(await me.ask('POST', LOOKUP, VIN, bearer), 403);
  expect(await me.own('POST', `${freezes}/lift`, { what: 'token', id }), 200);
  expect(await me.own('POST', freezes, { what: 'agent' }), 200);
  expect(await me.own('POST', `${freezes}/lift`, { what: 'agent' }), 200);
  expect(await me.own('POST', freezes, { what: 'payee', id: 'no-such-soul' }), 400);
  expect(await me.own('GET', freezes), 200);
};

journeys.cards = async (me) => {
  const open = (amount, name) => me.own('POST', '/v1/credits/checkout', { amount }, { 'idempotency-key': name });
  const opened = expect(await open('7.50', randomUUID()), 200);
  const { agent_id: agent } = expect(await me.own('GET', '/v1/agents/me'), 200).json.data;
  const { session_id: id } = opened.json.data;
  const session = { id, client_reference_id: agent, amount_total: 750, currency: 'usd', payment_status: 'paid' };
  const body = JSON.stringify({ id: 'evt_1', type: 'checkout.session.completed', data: { object: session } });
  const at = Math.floor(Date.now() / 1000);
  const mac = createHmac('sha256', 'whsec_rehearsal').update(`${at}.${body}`).digest('hex');
  const signed = { 'content-type': 'application/json', 'stripe-signature': `t=${at},v1=${mac}` };
  for (let turn = 0; turn < 2; turn += 1) expect(await me.ask('POST', '/v1/credits/webhook', body, signed), 200);
  const { credits_balance: credits } = expect(await me.own('GET', '/v1/tools/balance'), 200).json;
  check(Number(credits) === 7.5, `${credits} USDC are credited`);
  // Declined after its name was taken: the name is given back, so the second is declined too, and not in progress.
  const name = randomUUID();
  for (let turn = 0; turn < 2; turn += 1) {
    const declined = expect(await open('13', name), 503);
    check(declined.json.error === 'provider_unavailable', declined.text);
  }
};

journeys.insights = async (me) => {
  const more = { memo: 'a car', decisionContext: { goal: 'sell', goalId: 'g1' }, valueTag: { type: 'lead', amount: 2.5 } };
  const { receipt_id: receipt } = expect(await me.pay(LOOKUP, { ...VIN, ...more }), 200).json.data;
  for (const path of ['/v1/analytics/receipts?limit=10', '/v1/analytics/receipts?category=data',
    '/v1/analytics/spend/breakdown?subcategories=true', '/v1/audit/receipts', '/v1/audit/export?format=csv',
    '/v1/audit/export?format=jsonl', `/v1/receipts/${receipt}/explain`]) {
    expect(await me.own('GET', path), 200);
  }
  const value = `/v1/analytics/receipts/${receipt}/value`;
  expect(await me.own('PATCH', value, { type: 'revenue', amount: 0.02, label: 'deal' }), 200);
  expect(await me.own('POST', `${value}/confirm`, { amount: 0.02 }), 200);
  const saved = { goal_id: 'g1', type: 'savings', amount: 0.5 };
  const { outcome_id: outcome } = expect(await me.own('POST', '/v1/analytics/outcomes', saved), 200).json;
  expect(await me.own('POST', `/v1/analytics/outcomes/${outcome}/confirm`, {}), 200);
  // A token's first use is here.
  const { token } = expect(await me.own('POST', '/v1/agents/me/access-tokens', { expires_in_days: 1 }), 201).json.data;
  expect(await me.ask('GET', '/v1/analytics/receipts', undefined, { authorization: `Bearer ${token}` }), 200);
  expect(await me.own('GET', '/v1/analytics/rocs?period=1'), 200);
  expect(await me.own('GET', '/v1/analytics/rocs/by-goal?goal_id=g1'), 200);
};

journeys.identity = async (me) => {
  const email = `ada-${me.address.slice(2, 8)}@example.org`;
  const input = { full_name: 'Ada Lovelace', email, purpose: 'To rent a workshop', idempotency_key: randomUUID() };
  const started = expect(await me.payProven('/v1/tools/identity/start', input), 202).json;
  const path = `/identity/${started.request_id}`;
  await until('the page of the check', async () => expect(await me.ask('GET', path), 200, 404).status === 200);
  const asked = await until('the form', async () => {
    const answer = await me.ask('POST', path, '', form);
    return answer.status === 200 && answer;
  });
  check(asked.text.includes('example.org'), asked.text);
  const code = await mailed(email, /Your code is (\d{8})/);
  expect(await me.ask('POST', path, 'code=00000000', form), 400);
  expect(await me.ask('POST', path, `code=${code}`, form), 200);
  const done = await finished(me, started.request_id);
  check(done.result?.status === 'approved', JSON.stringify(done));
};

journeys.mcp = async (me) => {
  const { token } = expect(await me.own('POST', '/v1/agents/me/access-tokens', { expires_in_days: 1 }), 201).json.data;
  expect(await me.pay('/v1/credits/top-up', { amount: '0.10' }), 200);
  expect(await me.own('PUT', '/v1/agents/me/budgets', warned), 200);
  const base = { accept: 'application/json, text/event-stream', authorization: `Bearer ${token}` };
  let id = 0;
  const call = async (method, params, headers = {}) => {
    id += 1;
    const answer = expect(await me.ask('POST', '/mcp?tools=all', { jsonrpc: '2.0', id, method, params }, { ...base, ...headers }), 200);
    const told = answer.json ?? JSON.parse(answer.text.match(/^data: (.*)$/m)[1]);
    check(told.result, answer.text);
    return told.result;
  };
  const about = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'rehearsal', version: '1' } };
  await call('initialize', about);
  const old = { 'mcp-protocol-version': '2025-06-18' };
  const { tools } = await call('tools/list', {}, old);
  check(tools.some(({ name }) => name === 'agora_vin_decode'), JSON.stringify(tools).slice(0, 300));
  const tool = (name, args, headers) => call('tools/call', { name, arguments: args }, { ...old, ...headers });
  const bought = await tool('agora_vin_decode', { ...VIN, idempotency_key: randomUUID() });
  check(!bought.isError, JSON.stringify(bought));
  const unpaid = await tool('agora_vin_decode', VIN, { authorization: '' });
  check(unpaid.isError && unpaid.structuredContent.accepts, JSON.stringify(unpaid));
  const read = await tool('agora_web_read', { url: never });
  await until('the job', async () => {
    const job = await tool('agora_get_request', { request_id: read.structuredContent.request_id });
    return ['completed', 'failed'].includes(job.structuredContent.status);
  });
  // All that only reads and asks nothing.
  const reads = tools.filter((one) => one.annotations?.readOnlyHint && !(one.inputSchema.required?.length > 0));
  check(reads.length > 3, 'MCP has no reads');
  for (const { name } of reads) await tool(name, {});
};

// Sells with a worker of its own: files of both kinds, a result above 8 KB, and work that fails.
journeys.seller = async (me) => {
  const slug = `seller-${me.address.slice(2, 10).toLowerCase()}`;
  const schema = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };
  const registered = expect(await me.ask('POST', '/v1/soul/register', {
    name: 'A seller', slug, bio: 'Rehearses', soul_md: `# ${slug}\n\nYou rehearse, and nothing else.`, soul_price: 1,
    service: { name: 'Work', slug: 'work', price_usd: 0.5, category: 'data', executor: 'worker', input_schema: schema },
  }, { 'idempotency-key': randomUUID() }), 200).json;
  let seller = { authorization: `Bearer ${registered.soul_key}` };
  const mine = (method, path, body, headers = {}) => me.ask(method, `/v1/soul/me${path}`, body, { ...seller, ...headers });
  const buyer = { 'x-agent-id': me.address };

  // The soul itself, and what it offers, changed in every way.
  expect(await mine('GET', ''), 200);
  expect(await mine('PUT', '', { name: 'A renamed seller', bio: 'Rehearses again' }), 200);
  expect(await mine('GET', '/services'), 200);
  expect(await mine('POST', '/services', { name: 'More', slug: 'more', price_usd: 0.5, category: 'data', executor: 'worker',
    webhook_url: page, input_schema: schema }), 201);
  expect(await mine('PUT', '/services/more', { price_usd: 0.6 }), 200);
  expect(await mine('PUT', '/soul', { soul_md: `# ${slug}\n\nYou rehearse a second time.`, change_note: 'second' }), 200);
  expect(await mine('GET', '/soul/versions'), 200);
  expect(await mine('PUT', '/soul-price', { soul_price: 2 }), 200);
  for (const path of [`/v1/soul/${slug}`, `/v1/soul/${slug}/versions`, `/v1/soul/search?q=${slug}`]) {
    expect(await me.ask('GET', path), 200);
  }
  expect(await me.own('PUT', '/v1/agents/me/budgets', warned), 200);
  expect(await me.pay(`/v1/soul/${slug}/purchase`, {}), 200);

  const execute = (service) => me.pay(`/v1/soul/${slug}/services/${service}/execute`, { input: { text: 'some words' } });
  const waiting = (job) => until('the job to wait', async () =>
    expect(await mine('GET', '/jobs?status=pending&limit=100'), 200).json.jobs.some(({ id }) => id === job));
  // Refused until its payment is settled.
  const claim = (job) => until('the claim', async () =>
    expect(await mine('POST', `/jobs/${job}/claim`, {}), 200, 409).status === 200, 90);
  const sold = expect(await execute('work'), 202).json;
  const job = sold.soul_job_id;
  await waiting(job);
  expect(await mine('GET', `/jobs/${job}`), 200);
  await claim(job);
  expect(await mine('POST', `/jobs/${job}/progress`, { message: 'half', percent: 50 }), 200);
  expect(await mine('PUT', `/jobs/${job}/files/small.csv`, 'word,count\nsome,1\n', { 'content-type': 'text/csv' }), 200);
  const content = new Uint8Array(2 * 1024 * 1024).fill(7);
  const file = { path: 'big.bin', size: content.length, content_type: 'application/x-big' };
  const { upload_url: upload } = expect(await mine('POST', `/jobs/${job}/files`, file), 200).json;
  // Announced and not there yet: that is the seller's mistake, and no failure of the service.
  expect(await mine('POST', `/jobs/${job}/complete`, { result: 'too early' }), 400);
  const signed = { 'content-type': file.content_type, 'if-none-match': '*' };
  const put = await fetch(upload, { method: 'PUT', headers: signed, body: content });
  check(put.status === 200, `the presigned upload was answered ${put.status}: ${await put.text()}`);
  const long = 'A long result. '.repeat(2000);
  expect(await mine('POST', `/jobs/${job}/complete`, { result: long }), 200);
  const done = await finished(me, sold.request_id);
  check(JSON.stringify(done).includes(long.slice(0, 5000)), 'the buyer does not get the whole result');
  expect(await me.ask('GET', `/v1/soul/jobs/${job}`, undefined, buyer), 200);
  expect(await mine('GET', '/jobs?limit=100'), 200);
  expect(await mine('GET', `/jobs/${job}`), 200);
  const { files } = expect(await me.ask('GET', `/v1/soul/jobs/${job}/files`, undefined, buyer), 200).json;
  for (const { download_url: path, size } of files) {
    let got = expect(await me.ask('GET', path, undefined, buyer), 200, 307);
    if (got.status === 307) {
      const download = await fetch(got.headers.get('location'));
      check(download.status === 200, `the presigned download was answered ${download.status}`);
      got = { bytes: new Uint8Array(await download.arrayBuffer()) };
    }
    check(got.bytes.length === size, `${path} has ${got.bytes.length} bytes instead of ${size}`);
  }
  expect(await me.own('POST', `/v1/soul/jobs/${job}/rate`, { rating: 5, review: 'good' }), 200);

  // Work that fails is paid back; the service with a webhook tells of it.
  const second = expect(await execute('more'), 202).json;
  await waiting(second.soul_job_id);
  await claim(second.soul_job_id);
  expect(await mine('POST', `/jobs/${second.soul_job_id}/fail`, { reason: 'it rained' }), 200);
  const failed = await finished(me, second.request_id);
  check(failed.status === 'failed' && Number(failed.credited_usdc) === 0.6, JSON.stringify(failed));

  expect(await mine('GET', '/balance'), 200);
  expect(await mine('GET', '/statistics?days=7'), 200);
  expect(await mine('GET', '/statement'), 200);
  expect(await mine('GET', '/statement?format=csv'), 200);
  // Refused after its name was taken: there is no wallet to be paid out to.
  const named = { 'idempotency-key': randomUUID() };
  for (let turn = 0; turn < 2; turn += 1) expect(await mine('POST', '/payout', {}, named), 400, 409);
  expect(await mine('GET', '/payouts'), 200);
  expect(await mine('DELETE', '/services/more'), 200);
  seller = { authorization: `Bearer ${expect(await mine('POST', '/rotate-key', {}), 200).json.soul_key}` };
  expect(await mine('GET', '/balance'), 200);
};

// An agent platform: both dialects of its sessions, a soul's text and work, and what the buyer's owner wants to be asked about.
journeys.checkout = async (me) => {
  const slug = `goods-${me.address.slice(2, 10).toLowerCase()}`;
  expect(await me.ask('POST', '/v1/soul/register', {
    name: 'Goods', slug, bio: 'Sells by checkout', soul_md: `# ${slug}\n\nYou are sold to platforms.`, soul_price: 1,
    service: { name: 'Work', slug: 'work', price_usd: 0.5, category: 'data', executor: 'worker',
      input_schema: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } } },
  }), 200);
  const open = async (post, wish) => {
    const session = expect(await post('', wish), 200, 201).json;
    const handlers = session.capabilities?.payment.handlers ?? session.payment_handlers;
    return [session, await me.sign(handlers.find(({ id }) => id === 'x402').config)];
  };
  const approver = { email: `platform-${me.address.slice(2, 8)}@example.com` };
  const policy = { rules: [{ id: 'ask', tool: 'soul', action: 'require_approval', when: { always: true } }], approver };
  expect(await me.own('POST', '/v1/webhooks', { url: page }), 201);
  expect(await me.own('PUT', '/v1/agents/me/budgets', warned), 200);
  for (const [prefix, id, input] of [['/acp', `agora-text-${slug}`, {}], ['/v1', `agora-soul-${slug}-work`, { text: 'some words' }]]) {
    const headers = () => ({ authorization: 'Bearer local-acp-token', 'api-version': '2026-01-30' });
    const post = (path, body, name = randomUUID(), more = {}) =>
      me.ask('POST', `${prefix}/checkout_sessions${path}`, body, { ...headers(), 'idempotency-key': name, ...more });
    const get = (session) => me.ask('GET', `${prefix}/checkout_sessions/${session}`, undefined, headers());
    const wish = { line_items: [{ id }], currency: 'usd', capabilities: { interventions: { supported: [] } }, metadata: { input } };
    const name = randomUUID();
    const opened = expect(await post('', wish, name), 200, 201).json;
    check(expect(await post('', wish, name), 200, 201).json.id === opened.id, 'the same name opened two sessions');
    expect(await get(opened.id), 200);
    expect(await post(`/${opened.id}`, { metadata: { input } }), 200, 201);
    expect(await post(`/${opened.id}/cancel`, {}), 200);
    const [session, token] = await open(post, wish);
    const instrument = { type: 'x402', credential: { type: 'x402', token } };
    const paid = prefix === '/acp' ? { payment_data: { handler_id: 'x402', instrument } } : { payment_token: token };
    const done = expect(await post(`/${session.id}/complete`, paid), 200).json;
    check(done.order?.id, JSON.stringify(done));
    // Refused after its name was taken: what is completed is not cancelled.
    const late = randomUUID();
    for (let turn = 0; turn < 2; turn += 1) {
      const refused = await post(`/${session.id}/cancel`, {}, late);
      check(refused.status >= 400 && refused.status < 500, `${refused.status}: ${refused.text}`);
    }
    if (prefix === '/v1') {
      expect(await me.own('PUT', '/v1/agents/me/action-policy', policy), 200);
      const [held, second] = await open(post, wish);
      const refused = await post(`/${held.id}/complete`, { payment_token: second });
      const approval = refused.text.match(/appr_\w+/)?.[0];
      check(approval && refused.status < 500, `not held: ${refused.text}`);
      expect(await me.ask('POST', await mailed(approver.email, /https:\/\/[^/]+(\/approve\/[\w-]+)/), 'decision=approve', form), 200);
      expect(await post(`/${held.id}/complete`, { payment_token: second }, randomUUID(), { 'x-approval-id': approval }), 200);
    }
  }
};

// ----------------------------------------------------------------------------------------------------------------------------

// The second payer is a script's, with its budget; the third is that of scripts that leave no rules behind, and of whichever
// journey comes first here.
const payers = [stack.payers[2], stack.payers[0], ...stack.payers.slice(3)];
const poor = ['tokens', 'cards', 'reads', 'prices'];
const paying = Object.keys(journeys).filter((name) => !poor.includes(name));
if (paying[0] !== 'lookup' || paying.length > payers.length) throw new Error('each journey that sets rules needs a wallet of its own');
const names = Object.keys(journeys).filter((name) => only.length === 0 || only.includes(name));
let failed = false;
await Promise.all(names.map(async (name) => {
  const begun = Date.now();
  const me = new Agent(stack, payers[paying.indexOf(name)]?.private_key);
  const took = () => `${((Date.now() - begun) / 1000).toFixed(1).padStart(6)} s`;
  try {
    await journeys[name](me);
    console.log(`ok     ${name.padEnd(57)} ${took()}`);
  } catch (error) {
    failed = true;
    console.log(`FAILED ${name.padEnd(57)} ${took()}`);
    console.log(`${error.stack}${error.cause ? `\n${error.cause.stack}` : ''}\n`);
  }
}));
process.exit(failed ? 1 : 0);
