// Makes what the second pass calls with: a wallet with credits, a small budget and an access token, and a soul with a
// service. Usage: node credentials.mjs STACK_JSON; prints one line of JSON.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const clients = new URL('../../tests/clients/v2/', import.meta.url);
const require = createRequire(new URL('package.json', clients));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { ExactEvmScheme } = await load('@x402/evm');
const { wrapFetchWithPaymentFromConfig } = await load('@x402/fetch');
const { privateKeyToAccount } = await load('viem/accounts');
const { proof } = await import(new URL('proof.mjs', clients));

const stack = JSON.parse(readFileSync(process.argv[2]));
const { private_key } = stack.payers[0];
const account = privateKeyToAccount(private_key);
const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
const fetchAndPay = wrapFetchWithPaymentFromConfig(fetch, { schemes });

async function ask(fetch, method, path, headers, body) {
  const init = { method, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
  const answer = await (await fetch(stack.base_url + path, init)).json();
  if (!answer.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
  return answer;
}
const own = async () => proof(account, stack.service_name, 'write');

await ask(fetchAndPay, 'POST', '/v1/credits/top-up', {}, { amount: '0.50' });
await ask(fetch, 'PUT', '/v1/agents/me/budgets', await own(), { daily: 0.05, per_transaction: 0.01 });
const { data } = await ask(fetch, 'POST', '/v1/agents/me/access-tokens', await own(), { name: 'schemathesis' });
const soul = await ask(fetch, 'POST', '/v1/soul/register', {}, {
  name: 'Counter', slug: 'counter', soul_md: '# Counter\n\nYou count words, and nothing else.', soul_price: 15,
  service: { name: 'Word statistics', slug: 'statistics', price_usd: 0.5, executor: 'worker' },
});
console.log(JSON.stringify({
  access_token: data.token, soul_key: soul.soul_key, private_key, address: account.address, service_name: stack.service_name,
}));
