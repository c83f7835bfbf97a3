// Follows a goal as its buyer: prints a line when a task changes, says what is asked and how to answer, and at the end prints the
// result, what was spent and what came back. Usage: node goal.mjs GOAL_ID STACK_JSON (the third of the stack's payers, who pays in
// buy.mjs, or the one of PAYER; WAIT=seconds to follow, default 900)
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';
import { words } from './script.mjs';

const [id, stackFile] = words;
const stack = JSON.parse(readFileSync(stackFile));
const account = privateKeyToAccount(stack.payers[(process.env.PAYER ?? 3) - 1].private_key);
const patience = Number(process.env.WAIT ?? 900);

async function read(path) {
  for (;;) {
    // A proof is good for one request.
    const answer = await fetch(stack.base_url + path, { headers: await proof(account, stack.service_name, 'read') });
    if (answer.ok) return answer.json();
    if (answer.status !== 429) throw new Error(`${answer.status} ${await answer.text()}`);
    await pause(1000 * Number(answer.headers.get('retry-after') ?? 1));
  }
}

// The command that posts as the same wallet.
function ask(action, body) {
  const named = ['STACK', 'PAYER'].filter((name) => process.env[name]).map((name) => `${name}=${process.env[name]} `);
  return `${named.join('')}local/ask.sh POST /v1/compute/${id}/${action} '${body}'`;
}

function how(task) {
  if (task.approval_id) return ['the approver of your action policy decides, by the link in the mail'];
  if (task.task_type !== 'human_approval') return [];
  const answer = (member) => ask('respond', `{"task_id": "${task.id}", ${member}}`);
  const isApproval = task.tool !== null;
  return isApproval
    ? [`yes: ${answer('"approved": true')}`, `no:  ${answer('"approved": false')}`]
    : [`answer: ${answer('"response": "…"')}`];
}

// A task that needs others stands farther right than they do.
function show(task) {
  const indent = '  '.repeat(task.phase - 1);
  const cost = task.cost_usdc ? `${task.cost_usdc} USDC` : task.status === 'running' ? `up to ${task.quoted_usdc} USDC` : '';
  // A question's description is the question.
  const said = task.progress_message === task.description ? null : task.progress_message;
  console.log(`${indent}${task.id}  ${task.status.padEnd(9)}  ${[task.description, cost, said].filter(Boolean).join(' - ')}`);
  if (task.status === 'waiting') how(task).forEach((line) => console.log(`${indent}           ${line}`));
}

const shown = new Map();
const end = Date.now() + patience * 1000;
let goal;
console.log(`to stop it: ${ask('cancel', '{}')}`);
for (let wait = 300; ; wait = Math.min(2000, wait * 1.3)) {
  goal = (await read(`/v1/compute/${id}`)).data;
  for (const task of (await read(`/v1/compute/${id}/tasks`)).data) {
    const state = JSON.stringify([task.status, task.progress_message, task.attempts]);
    if (shown.get(task.id) !== state) show(task);
    shown.set(task.id, state);
  }
  if (['completed', 'failed', 'cancelled'].includes(goal.phase_status)) break;
  if (Date.now() > end) {
    console.error(`not done after ${patience} seconds; it goes on until ${goal.deadline}, and GOAL=${id} local/goal.sh follows it`);
    process.exit(1);
  }
  await pause(wait);
}

const job = await read(`/v1/requests/${goal.request_id}`);
const result = job.result ?? {};
for (const [task, found] of Object.entries(result.results ?? {})) console.log(`\n${task} ${JSON.stringify(found, null, 2)}`);
console.log(`\n${goal.status} (${goal.end_reason})`);
console.log(`paid ${job.amount_usdc} USDC: spent ${result.spent_usdc}, fee ${result.fee_usdc ?? '0.000000'}, came back ${job.credited_usdc ?? '0.000000'} as credits`);
process.exitCode = goal.status === 'completed' ? 0 : 1;
