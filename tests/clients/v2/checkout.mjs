// Buys one thing as an agent platform does, in a checkout session, paid by the stock x402 scheme from the third payer of
// the stack. Prints a line when the session is opened and some when it is completed; with --json, the whole sessions.
// Usage: node checkout.mjs [--json] ITEM INPUT STACK_JSON (the platform's token in ACP_TOKEN)
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { privateKeyToAccount } from 'viem/accounts';
import { asJson, words } from './script.mjs';

const [item, input, stackFile] = words;
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[2].private_key);

async function post(path, body) {
  const headers = {
    authorization: `Bearer ${process.env.ACP_TOKEN ?? 'local-acp-token'}`,
    'api-version': '2026-01-30',
    'content-type': 'application/json',
    'idempotency-key': randomUUID(), // the same for every retry of one request
  };
  const answer = await fetch(stack.base_url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const json = await answer.json();
  if (asJson) console.log(JSON.stringify(json));
  if (answer.ok) return json;
  if (!asJson) console.error(`${answer.status} ${json.code}: ${json.message}`);
  process.exit(1);
}
const tell = (line) => asJson || console.log(line);


const session = await post('/acp/checkout_sessions', {
  line_items: [{ id: item }],
  currency: 'usd',
  capabilities: { interventions: { supported: [] } },
  metadata: { input: JSON.parse(input) },
});
const total = session.totals.find(({ type }) => type === 'total').amount;
const names = session.line_items.map(({ name, quantity, item: { id } }) => `${quantity} × ${name ?? id}`).join(', ');
tell(`session ${session.id} ${session.status}: ${names}, ${(total / 100).toFixed(2)} ${session.currency.toUpperCase()}`);
for (const { content } of session.messages) tell(content); // what is missing
const handler = session.capabilities.payment.handlers.find(({ id }) => id === 'x402');
const { resource, accepts } = handler.config;
if (accepts.length === 0) process.exit(1);
const signed = await new ExactEvmScheme(account).createPaymentPayload(2, accepts[0]);
const payload = { ...signed, resource, accepted: accepts[0] };
const token = Buffer.from(JSON.stringify(payload)).toString('base64');
const instrument = { type: 'x402', credential: { type: 'x402', token } };
const done = await post(`/acp/checkout_sessions/${session.id}/complete`, { payment_data: { handler_id: 'x402', instrument } });
tell(`${done.status}, paid by ${account.address}`);
for (const { content } of done.messages) tell(content);
if (done.order) tell(`${done.order.id} ${done.order.status}: local/ask.sh ${new URL(done.order.permalink_url).pathname}`);
