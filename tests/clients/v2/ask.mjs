// Asks as the buyer, with an agent proof: reads what is its own, or, with a body, posts; any other method is named. The answer's
// body on stdout, anything but 200 on stderr too. Usage: node ask.mjs STACK_JSON [--json] [METHOD] PATH [BODY] (the third of its
// payers asks, who pays in buy.mjs, or the one of PAYER: 1 is the first; --json: as it came, also on a terminal)
import { readFileSync } from 'node:fs';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';
import { print, words } from './script.mjs';

const [stackFile, ...asked] = words;
const named = asked[0].startsWith('/') ? undefined : asked.shift();
const [path, body] = asked;
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[(process.env.PAYER ?? 3) - 1].private_key);
const method = named ?? (body === undefined ? 'GET' : 'POST');
const scope = method === 'GET' ? 'read' : 'write';
const headers = { ...(await proof(account, stack.service_name, scope)), 'content-type': 'application/json' };
const answer = await fetch(stack.base_url + path, { method, headers, body });
if (!answer.ok) console.error(answer.status);
const bytes = Buffer.from(await answer.arrayBuffer());
const isJson = answer.headers.get('content-type')?.startsWith('application/json');
if (isJson && process.stdout.isTTY) print(JSON.parse(bytes));
else process.stdout.write(bytes);
process.exitCode = answer.ok ? 0 : 1;
