// Buys one thing with the stock x402 v2 client and prints the answer: the body on stdout, what was paid on stderr.
// Usage: node buy.mjs PATH BODY STACK_JSON (the third of its payers pays)
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

const [path, body, stackFile] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[2].private_key);
const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
// The client refuses prices above $1 unless it is told what may be paid.
const spendControls = { maxAmountPerPayment: '$20' };
const fetchAndPay = wrapFetchWithPaymentFromConfig(fetch, { schemes, spendControls });

const headers = { 'content-type': 'application/json' };
const answer = await fetchAndPay(stack.base_url + path, { method: 'POST', headers, body });
const receipt = answer.headers.get('payment-response');
const paid = receipt ? `in ${decodePaymentResponseHeader(receipt).transaction || '(settling)'}` : 'nothing';
console.error(`${answer.status}, ${account.address} paid ${paid}`);
console.log(JSON.stringify(await answer.json()));
process.exitCode = answer.ok ? 0 : 1;
