// Gives an agent money without a wallet: buys credits with the stock x402 v2 client, sets a budget, mints an access token,
// and buys with nothing but that token until the budget stops it. Usage: node spend.mjs STACK_JSON
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';
import './script.mjs';

const stack = JSON.parse(readFileSync(process.argv[2]));
const owner = privateKeyToAccount(stack.payers[1].private_key);
const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(owner) }];
const fetchAndPay = wrapFetchWithPaymentFromConfig(fetch, { schemes });

async function ask(fetch, method, path, headers, body) {
  const sent = body && { body: JSON.stringify(body) };
  const answer = await fetch(stack.base_url + path, { method, headers: { 'content-type': 'application/json', ...headers }, ...sent });
  return { status: answer.status, ...(await answer.json()) };
}
// As the owner, who holds the key.
async function own(method, path, body) {
  const answer = await ask(fetch, method, path, await proof(owner, stack.service_name, method === 'GET' ? 'read' : 'write'), body);
  if (!answer.success) throw new Error(JSON.stringify(answer));
  return answer.data;
}

const bought = await ask(fetchAndPay, 'POST', '/v1/credits/top-up', {}, { amount: '0.05' });
if (bought.status !== 200) throw new Error(JSON.stringify(bought));
console.log(`the wallet ${owner.address} paid for credits: ${bought.data.topped_up} USDC, now ${bought.data.credits_balance}`);

const { spent_today_usdc: spent } = await own('GET', '/v1/agents/me/budgets');
const { daily_usdc: daily } = await own('PUT', '/v1/agents/me/budgets', { daily: (Number(spent) + 0.012).toFixed(6) });
console.log(`its budget is ${daily} USDC a day, of which ${spent} are spent`);

const { token, id } = await own('POST', '/v1/agents/me/access-tokens', { name: 'an agent without a wallet', expires_in_days: 1 });
console.log(`its access token, shown once: ${token}`);

for (;;) {
  const car = await ask(fetch, 'POST', '/v1/tools/lookup/vin', { authorization: `Bearer ${token}` }, { vin: '1HGCM82633A004352' });
  if (car.status !== 200) {
    console.log(`${car.status} ${car.error}: ${car.message}`);
    if (car.error !== 'budget_exceeded') process.exit(1);
    break;
  }
  console.log(`bought with the token: ${car.data.result.make} ${car.data.result.model}`);
}
const used = (await own('GET', '/v1/agents/me/access-tokens?active=true')).tokens.find((one) => one.id === id);
console.log(`the token spent ${used.spent_today_usdc} USDC today. Go on with it:

  curl -s ${stack.base_url}/v1/tools/balance -H 'authorization: Bearer ${token}'
  curl -s ${stack.base_url}/v1/agents/me/budgets -H 'authorization: Bearer ${token}'`);
