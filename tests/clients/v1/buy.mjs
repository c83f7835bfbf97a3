// Buys one thing with the stock x402 v1 client and prints the answer's body. Usage: node buy.mjs PATH BODY STACK_JSON
import { readFileSync } from 'node:fs';
import { createSigner, wrapFetchWithPayment } from 'x402-fetch';

const [path, body, stackFile] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const signer = await createSigner('base-sepolia', stack.payers[1].private_key);
// The client refuses prices above 0.10 USDC unless it is told what may be paid, in micro-USDC.
const fetchAndPay = wrapFetchWithPayment(fetch, signer, 20_000_000n);

const answer = await fetchAndPay(stack.base_url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
console.log(JSON.stringify(await answer.json()));
process.exitCode = answer.ok ? 0 : 1;
