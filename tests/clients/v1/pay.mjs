// Pays both tools, and for credits, with the stock x402 v1 client. Usage: node pay.mjs STACK_JSON
import { readFileSync } from 'node:fs';
import { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } from 'x402-fetch';

const stack = JSON.parse(readFileSync(process.argv[2]));
const signer = await createSigner('base-sepolia', stack.payers[1].private_key);
const fetchAndPay = wrapFetchWithPayment(fetch, signer);

const calls = [
  ['/v1/tools/lookup/vehicle-identification', { vin: '1HGCM82633A004352' }],
  ['/v1/tools/web-read', { url: `${stack.site_url}/article` }],
  ['/v1/credits/top-up', { amount: 0.05 }],
];
for (const [path, body] of calls) {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetchAndPay(stack.base_url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const settlement = decodeXPaymentResponse(answer.headers.get('x-payment-response'));
  console.log(JSON.stringify({ status: answer.status, body: await answer.json(), settlement }));
}
