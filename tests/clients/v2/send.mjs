// Sends a mail with the stock x402 v2 client: quotes it, pays, and waits for the job. Prints {quote, job}.
// Usage: node send.mjs MAIL_JSON MORE_JSON STACK_JSON (MORE: what is added when sending, or `quote` to stop after the quote;
// the third of the payers pays)
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

const [mail, more, stackFile] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[2].private_key);
const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
const headers = { 'content-type': 'application/json', 'x-agent-id': account.address };

async function post(pay, path, content) {
  const answer = await pay(stack.base_url + path, { method: 'POST', headers, body: JSON.stringify(content) });
  const said = await answer.json();
  if (!answer.ok) throw new Error(`${answer.status} ${JSON.stringify(said)}`);
  return said;
}

const content = JSON.parse(mail);
const quote = await post(fetch, '/v1/tools/email/quote', content);
if (more === 'quote') {
  console.log(JSON.stringify({ quote }));
  process.exit();
}
const full = { ...content, ...JSON.parse(more), quote_id: quote.quote_id };
const sent = await post(wrapFetchWithPaymentFromConfig(fetch, { schemes }), '/v1/tools/email/send', full);
for (;;) {
  const answer = await fetch(`${stack.base_url}/v1/requests/${sent.request_id}`, { headers: await proof(account, stack.service_name, 'read') });
  const job = await answer.json();
  if (!['pending', 'processing'].includes(job.status)) {
    console.log(JSON.stringify({ quote, job }));
    break;
  }
  await new Promise((wake) => setTimeout(wake, 500));
}
