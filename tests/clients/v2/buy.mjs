// Buys one thing with the stock x402 v2 client and prints the answer: the body on stdout, what happens meanwhile on stderr.
// What takes its time (202) is polled until it is done, at most WAIT seconds (300; 0 to print the 202 itself).
// Usage: node buy.mjs [--json] PATH BODY STACK_JSON (the third of its payers pays, or the one of PAYER: 1 is the first; KEY: the
// Idempotency-Key; --json: one line, also on a terminal)
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';
import { print, words } from './script.mjs';

const [path, body, stackFile] = words;
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[(process.env.PAYER ?? 3) - 1].private_key);
const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
// The client refuses prices above $1 unless it is told what may be paid.
const spendControls = { maxAmountPerPayment: '$20' };
const fetchAndPay = wrapFetchWithPaymentFromConfig(fetch, { schemes, spendControls });

// The wallet is named when the price is asked for: one that has a phone number is not asked to pay for another. An identity
// check wants its proof, too, beside the payment. One proof serves for both requests, and with read scope spends no credits.
const headers = { 'content-type': 'application/json', 'idempotency-key': process.env.KEY ?? randomUUID() };
const buy = async (caller) => fetchAndPay(stack.base_url + path, { method: 'POST', headers: { ...headers, ...caller }, body });
let answer = await buy(await proof(account, stack.service_name, 'read'));
let said = await answer.json();
// A proof for reading is refused, before any price, where a wallet gets something of its own: a number needs none.
if (said.reason === 'wrong_scope') {
  answer = await buy({ 'x-agent-id': account.address });
  said = await answer.json();
}
const receipt = answer.headers.get('payment-response');
// Cheap work may be done before its payment is settled; then no receipt of the chain can be there yet.
const settling = answer.headers.get('x-settlement-status') === 'pending';
const paid = receipt ? `paid in ${decodePaymentResponseHeader(receipt).transaction}` : settling ? 'pays (still settling)' : 'paid nothing';
console.error(`${answer.status}, ${account.address} ${paid}`);

const patience = Number(process.env.WAIT ?? 300);
if (answer.status === 202 && patience > 0) {
  const { request_id: request, soul_job_id: soulJob, verification_url: page } = said;
  console.error(`job ${request}${soulJob ? `, of the soul: ${soulJob}` : ''}`);
  if (page) console.error(`it waits for a person at ${page}`);
  const end = Date.now() + patience * 1000;
  for (let shown = ''; ; ) {
    answer = await fetch(`${stack.base_url}/v1/requests/${request}`, { headers: await proof(account, stack.service_name, 'read') });
    said = await answer.json();
    const { percent, message } = said.progress ?? {};
    const why = said.status === 'failed' ? `${said.error_reason ?? said.error_code}: ${said.error} (credited back: ${said.credited_usdc ?? 'nothing'})` : '';
    const line = [said.status, percent === undefined ? '' : `${percent} %`, message, why].filter(Boolean).join(', ');
    if (answer.ok && line !== shown) console.error((shown = line));
    if (!answer.ok || !['pending', 'processing'].includes(said.status)) break;
    if (Date.now() > end) {
      console.error(`not done after ${patience} seconds; it goes on, and WAIT=900 waits longer for the next`);
      process.exit(1);
    }
    await new Promise((wake) => setTimeout(wake, 1000));
  }
}
print(said);
process.exitCode = answer.ok && said.status !== 'failed' ? 0 : 1;
