// Asks as the buyer, with an agent proof: reads what is its own, or, with a body, posts. The answer's body on stdout, anything
// but 200 on stderr too. Usage: node ask.mjs STACK_JSON PATH [BODY] (the third of its payers asks, who pays in buy.mjs)
import { readFileSync } from 'node:fs';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

const [stackFile, path, body] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[2].private_key);
const [method, scope] = body === undefined ? ['GET', 'read'] : ['POST', 'write'];
const headers = { ...(await proof(account, stack.service_name, scope)), 'content-type': 'application/json' };
const answer = await fetch(stack.base_url + path, { method, headers, body });
if (!answer.ok) console.error(answer.status);
process.stdout.write(Buffer.from(await answer.arrayBuffer()));
process.exitCode = answer.ok ? 0 : 1;
