// Prints the header x-agent-proof of a payer of the stack: good for five minutes and one request. The third pays in buy.mjs.
// Usage: node header.mjs STACK_JSON read|write [PAYER] (1 is the first payer; 3 if left out)
import { readFileSync } from 'node:fs';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

const [stackFile, scope, payer = '3'] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const headers = await proof(privateKeyToAccount(stack.payers[payer - 1].private_key), stack.service_name, scope);
console.log(headers['x-agent-proof']);
