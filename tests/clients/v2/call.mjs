// An agent calls another: the third payer of the stack, who pays in buy.mjs and reads in ask.mjs, has a number that answers; the
// fourth calls it and says these sentences.
// Prints the conversation as the caller hears it, and the call as its callee gets it (with --json as the service says it); what
// happens meanwhile goes to stderr. Usage: node call.mjs STACK_JSON [--json] SENTENCE …
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent } from './agent.mjs';
import { asJson, words } from './script.mjs';

const [stackFile, ...sentences] = words;
const stack = JSON.parse(readFileSync(stackFile));

function good(answer) {
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`);
  return answer.json.data;
}

// The agent's number, bought if it has none yet: 5.00 USDC, once.
async function number(agent) {
  const [known] = good(await agent.own('GET', '/v1/tools/voice/numbers')).numbers;
  if (known) return known;
  const bought = good(await agent.pay('/v1/tools/voice/numbers', {}));
  console.error(`the number ${bought.phone_number}, for ${bought.charged} USDC`);
  return bought;
}

const [bob, ada] = stack.payers.slice(2, 4).map(({ private_key: key }) => new Agent(stack, key));

// Bob's number answers. Its calls are paid from his credits: 0.35 USDC for each begun minute.
const { id, phone_number: bobs } = await number(bob);
const { credits_balance: credits } = (await bob.own('GET', '/v1/tools/balance')).json;
if (Number(credits) < 0.7) good(await bob.pay('/v1/credits/top-up', { amount: '0.70' }));
good(await bob.own('PUT', `/v1/tools/voice/numbers/${id}/inbound`, {
  prompt: 'You answer for the bakery Ann. Our opening hours are 7 to 18 on weekdays. A loaf of rye costs 4.50 euros.',
  first_message: 'Bakery Ann, this is an automated assistant. How can I help you?',
  max_minutes: 2,
}));

// Ada needs a number to call from. She hears and says text.
await number(ada);
const { call, said } = good(
  await ada.own('POST', '/v1/tools/voice/exchange', { to: bobs }, { 'idempotency-key': randomUUID() }),
);
if (call.status === 'declined') throw new Error(`declined: ${said ?? 'without a word'}`);
console.log(`Assistant: ${said}`);
for (const text of sentences) {
  console.log(`Caller: ${text}`);
  const answer = good(await ada.own('POST', `/v1/tools/voice/exchange/${call.id}/turns`, { text }));
  console.log(`Assistant: ${answer.said}`);
  if (answer.status !== 'in-progress') break;
}
good(await ada.own('POST', `/v1/tools/voice/exchange/${call.id}/hang-up`, {}));

// What Bob reads: the charge at once, the summary a moment later.
for (;;) {
  const received = good(await bob.own('GET', `/v1/tools/voice/inbound/${call.id}`));
  if (received.summary !== null) {
    const { summary, ended_reason: why, charge_usdc: charge } = received;
    console.log(asJson ? JSON.stringify(received) : `\n${why}, for ${charge} USDC. ${summary}`);
    break;
  }
  await new Promise((wake) => setTimeout(wake, 500));
}
