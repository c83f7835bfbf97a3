// Prints the header x-agent-proof of the third payer of the stack, who pays in buy.mjs: good for five minutes and one request.
// Usage: node header.mjs STACK_JSON read|write
import { readFileSync } from 'node:fs';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

const [stackFile, scope] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const headers = await proof(privateKeyToAccount(stack.payers[2].private_key), stack.service_name, scope);
console.log(headers['x-agent-proof']);
