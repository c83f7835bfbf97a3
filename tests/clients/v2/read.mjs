// Reads a page for money, start to finish: pays with the stock x402 v2 client, polls with a signed agent proof, prints
// the Markdown. Usage: node read.mjs STACK_JSON URL
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';
import './script.mjs';

const [stackFile, url] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[0].private_key);
const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
const fetchAndPay = wrapFetchWithPaymentFromConfig(fetch, { schemes });

const answer = await fetchAndPay(`${stack.base_url}/v1/tools/web-read`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ url }),
});
const accepted = await answer.json();
if (answer.status !== 202) {
  console.error(answer.status, accepted);
  process.exit(1);
}
const receipt = answer.headers.get('payment-response');
const { transaction } = receipt ? decodePaymentResponseHeader(receipt) : {};
console.error(`paid by ${account.address} in ${transaction || '(settling)'}; job ${accepted.request_id}`);
for (;;) {
  const headers = await proof(account, stack.service_name, 'read');
  const job = await (await fetch(`${stack.base_url}/v1/requests/${accepted.request_id}`, { headers })).json();
  if (job.message) throw new Error(job.message);
  if (job.status === 'completed') {
    console.log(job.result.markdown);
    break;
  }
  if (job.status === 'failed') {
    console.error(`failed: ${job.error_reason ?? job.error_code}: ${job.error} (credited back: ${job.credited_usdc ?? 'nothing was charged'})`);
    process.exit(1);
  }
  await new Promise((wake) => setTimeout(wake, 500));
}
