// Reads something that is the buyer's own, with an agent proof: the body on stdout, anything but 200 on stderr too.
// Usage: node get.mjs PATH STACK_JSON (the third of its payers asks, who pays in buy.mjs)
import { readFileSync } from 'node:fs';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

const [path, stackFile] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[2].private_key);
const answer = await fetch(stack.base_url + path, { headers: await proof(account, stack.service_name, 'read') });
if (!answer.ok) console.error(answer.status);
process.stdout.write(Buffer.from(await answer.arrayBuffer()));
process.exitCode = answer.ok ? 0 : 1;
