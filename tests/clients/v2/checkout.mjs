// Buys one thing as an agent platform does, in a checkout session, paid by the stock x402 scheme from the third payer of
// the stack. Prints the session that was opened and the one that was completed.
// Usage: node checkout.mjs ITEM INPUT STACK_JSON (the platform's token in ACP_TOKEN)
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { privateKeyToAccount } from 'viem/accounts';

const [item, input, stackFile] = process.argv.slice(2);
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
  console.log(JSON.stringify(json, null, 2));
  if (!answer.ok) process.exit(1);
  return json;
}

const session = await post('/acp/checkout_sessions', {
  line_items: [{ id: item }],
  currency: 'usd',
  capabilities: { interventions: { supported: [] } },
  metadata: { input: JSON.parse(input) },
});
const handler = session.capabilities.payment.handlers.find(({ id }) => id === 'x402');
const { resource, accepts } = handler.config;
if (accepts.length === 0) process.exit(1); // its messages say what is missing
const signed = await new ExactEvmScheme(account).createPaymentPayload(2, accepts[0]);
const payload = { ...signed, resource, accepted: accepts[0] };
const token = Buffer.from(JSON.stringify(payload)).toString('base64');
const instrument = { type: 'x402', credential: { type: 'x402', token } };
await post(`/acp/checkout_sessions/${session.id}/complete`, { payment_data: { handler_id: 'x402', instrument } });
