// Buys with a stock x402 v2 client that signs a second payment when it reads that the first one was not settled.
// Usage: node pending.mjs STACK_JSON. The file also has `wallet`, a private key.
// Prints one line of JSON: status, body, how many payments were signed, and what the client read about each settlement.
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

const stack = JSON.parse(readFileSync(process.argv[2]));
const account = privateKeyToAccount(stack.wallet);
const client = new x402Client().register(`eip155:${stack.chain.chain_id}`, new ExactEvmScheme(account));
let signed = 0;
client.onBeforePaymentCreation(async () => {
  signed += 1;
});
const settlements = [];
client.onPaymentResponse(async ({ settleResponse }) => {
  settlements.push(settleResponse ?? null);
  if (settleResponse && !settleResponse.success) return { recovered: true };
});
const answer = await wrapFetchWithPayment(fetch, client)(`${stack.base_url}/v1/tools/lookup/vehicle-identification`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ vin: '1HGCM82633A004352' }),
});
console.log(JSON.stringify({ status: answer.status, body: await answer.json(), signed, settlements }));
