// Pays both tools, and for credits, with the stock x402 v2 client. Usage: node pay.mjs STACK_JSON [URL]
// Prints one line of JSON for each call: status, body, settlement.
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

const [stackFile, url] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[0].private_key);
const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
const fetchAndPay = wrapFetchWithPaymentFromConfig(fetch, { schemes });

const calls = [
  ['/v1/tools/lookup/vehicle-identification', { vin: '1HGCM82633A004352' }],
  ['/v1/tools/web-read', { url: url ?? `${stack.site_url}/article` }],
  ['/v1/credits/top-up', { amount: 0.05 }],
];
for (const [path, body] of calls) {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetchAndPay(stack.base_url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const settlement = decodePaymentResponseHeader(answer.headers.get('payment-response'));
  console.log(JSON.stringify({ status: answer.status, body: await answer.json(), settlement, payer: account.address }));
}
