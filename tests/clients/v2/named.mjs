// Buys everything twice under one name, the payment-identifier of the stock x402 v2 client. Usage: node named.mjs STACK_JSON
// The file also has `wallet`, a private key. Prints one line of JSON for each call: status, body.
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { appendPaymentIdentifierToExtensions } from '@x402/extensions/payment-identifier';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

const stack = JSON.parse(readFileSync(process.argv[2]));
const account = privateKeyToAccount(stack.wallet);

async function buy(name, path, body) {
  const client = new x402Client().register(`eip155:${stack.chain.chain_id}`, new ExactEvmScheme(account));
  client.onBeforePaymentCreation(async ({ paymentRequired }) => {
    appendPaymentIdentifierToExtensions(paymentRequired.extensions, name);
  });
  const headers = { 'content-type': 'application/json' };
  const answer = await wrapFetchWithPayment(fetch, client)(stack.base_url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  console.log(JSON.stringify({ status: answer.status, body: await answer.json() }));
}

for (const [name, path, body] of [
  ['top-up_of_november', '/v1/credits/top-up', { amount: '0.50' }],
  ['the_car_of_my_aunt', '/v1/tools/lookup/vehicle-identification', { vin: '1HGCM82633A004352' }],
]) {
  await buy(name, path, body);
  await buy(name, path, body);
}
