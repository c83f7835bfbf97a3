// Two agents text each other: the third payer of the stack texts the number of the fourth, who answers. Paid with the stock
// x402 v2 client. Prints the text as each of them gets it, with --json as the service says it; what happens meanwhile goes to
// stderr. Usage: node text.mjs [--json] TEXT STACK_JSON
import { readFileSync } from 'node:fs';
import { Agent } from './agent.mjs';
import { asJson, words } from './script.mjs';

const [message, stackFile] = words;
const stack = JSON.parse(readFileSync(stackFile));

function good(answer) {
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`);
  return answer.json;
}

// The agent's number, bought if it has none yet: 5.00 USDC, once.
async function number(agent) {
  const [known] = good(await agent.own('GET', '/v1/tools/voice/numbers')).data.numbers;
  if (known) return known.phone_number;
  const { phone_number: bought, charged } = good(await agent.pay('/v1/tools/voice/numbers', {})).data;
  console.error(`the number ${bought}, for ${charged} USDC`);
  return bought;
}

// Pays, and waits until the text has arrived.
async function send(agent, to, text) {
  const sms = { to_number: to, message: text };
  const { request_id: id } = good(await agent.pay('/v1/tools/sms/send', sms, { 'x-agent-id': agent.address }));
  for (;;) {
    const job = good(await agent.own('GET', `/v1/requests/${id}`));
    if (job.status === 'completed' && job.result.status === 'all_delivered') {
      console.error(`from ${job.result.from} to ${to}, for ${job.result.cost} USDC`);
      return;
    }
    if (['completed', 'failed'].includes(job.status)) throw new Error(JSON.stringify(job));
    await new Promise((wake) => setTimeout(wake, 500));
  }
}

async function newest(agent) {
  const { messages: [text] } = good(await agent.own('GET', '/v1/tools/sms/inbox?limit=1'));
  console.log(asJson ? JSON.stringify(text) : `${text.from}: ${text.body}`);
  return text;
}

const [ada, bob] = stack.payers.slice(2, 4).map(({ private_key: key }) => new Agent(stack, key));
await send(ada, await number(bob), message);
const { from, body } = await newest(bob);
await send(bob, from, `You wrote: ${body}. Fine with me.`);
await newest(ada);
