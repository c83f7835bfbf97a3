// Asks as the buyer, with an agent proof: reads what is its own, or, with a body, posts; any other method is named. The answer's
// body on stdout, anything but 200 on stderr too. Usage: node ask.mjs STACK_JSON [--json] [--all] [METHOD] PATH [BODY] (the third
// of its payers asks, who pays in buy.mjs, or the one of PAYER: 1 is the first; --json: as it came, also on a terminal; --all:
// also the pages after the first of a file that has its pages' place in its headers, the audit's export)
import { readFileSync } from 'node:fs';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';
import { print, words } from './script.mjs';

const all = words.includes('--all');
const [stackFile, ...asked] = words.filter((word) => word !== '--all');
const named = asked[0].startsWith('/') ? undefined : asked.shift();
const [path, body] = asked;
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[(process.env.PAYER ?? 3) - 1].private_key);
const method = named ?? (body === undefined ? 'GET' : 'POST');
const scope = method === 'GET' ? 'read' : 'write';
const url = new URL(stack.base_url + path);
for (let next = 'the first page'; next; ) {
  // A proof is good for one request.
  const headers = { ...(await proof(account, stack.service_name, scope)), 'content-type': 'application/json' };
  const answer = await fetch(url, { method, headers, body });
  if (!answer.ok) console.error(answer.status);
  process.exitCode = answer.ok ? 0 : 1;
  const bytes = Buffer.from(await answer.arrayBuffer());
  const type = answer.headers.get('content-type') ?? '';
  const isJson = type.startsWith('application/json');
  // A file stays as it is.
  const isWhole = bytes.length === 0 || bytes.at(-1) === 10 || !(isJson || type.startsWith('text/'));
  // A file that breaks off does not end with an error's text.
  const out = answer.ok || !url.searchParams.has('cursor') ? process.stdout : process.stderr;
  if (isJson && process.stdout.isTTY) print(JSON.parse(bytes));
  else out.write(isWhole ? bytes : Buffer.concat([bytes, Buffer.from('\n')]));
  next = answer.headers.get('x-next-cursor');
  if (next) url.searchParams.set('cursor', next);
  if (next && !all) {
    console.error(`there is more: ${url.pathname}${url.search} goes on, and local/ask.sh --all asks for all pages`);
    break;
  }
}
