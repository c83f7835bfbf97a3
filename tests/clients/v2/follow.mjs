// Waits for a job as the public TypeScript SDK does: a WebSocket at the base URL's own host, and polling beside it, whichever
// comes first. Needs Node 22 (its built-in WebSocket). Usage: node follow.mjs .local/stack.json (the third of its payers pays)
// Prints a line of JSON for each way to wait: via, statuses, request_id, result.
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

if (typeof WebSocket !== 'function') {
  console.error(`needs Node 22 or newer, which has a WebSocket; this is ${process.version}`);
  process.exit(2);
}
const stack = JSON.parse(readFileSync(process.argv[2]));
const account = privateKeyToAccount(stack.payers[2].private_key);
const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
const fetchAndPay = wrapFetchWithPaymentFromConfig(fetch, { schemes });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function buy(url) {
  const answer = await fetchAndPay(`${stack.base_url}/v1/tools/web-read`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  });
  return (await answer.json()).request_id;
}

// The push branch. Ends with an outcome, or never if there is no push to be had.
function pushed(id, told, query) {
  return new Promise((resolve) => {
    const socket = new WebSocket(`${stack.base_url.replace(/^http/, 'ws')}/v1/requests/subscribe?${query}`);
    socket.onopen = () => socket.send(JSON.stringify({ subscribe: [id] }));
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      // The ack, and other jobs.
      if (message.request_id !== id) return;
      told.statuses.push(message.status);
      if (message.status === 'completed' || message.status === 'failed') {
        socket.close();
        resolve({ via: 'push', ...message });
      }
    };
    socket.onerror = () => { told.refused = true; };
  });
}

async function polled(id, interval) {
  for (;;) {
    await pause(interval);
    const headers = await proof(account, stack.service_name, 'read');
    const job = await (await fetch(`${stack.base_url}/v1/requests/${id}`, { headers })).json();
    if (job.status === 'completed' || job.status === 'failed') return { via: 'poll', ...job };
  }
}

async function follow(name, url, proven, interval) {
  const told = { statuses: [] };
  const id = await buy(url);
  const signed = (await proof(account, stack.service_name, 'read'))['x-agent-proof'];
  const query = new URLSearchParams({ wallet: account.address, ...(proven ? { proof: signed } : {}) });
  const { via, status, result, error_code } = await Promise.race([pushed(id, told, query), polled(id, interval)]);
  console.log(JSON.stringify({ name, via, status, result, error_code, ...told }));
}

// Once a message came, the SDK polls every five seconds only; so the push is first.
await follow('pushed', `${stack.site_url}/article`, true, 5_000);
await follow('pushed failure', 'http://no-such-host.invalid/', true, 5_000);
// Versions before 0.4x send no proof: the upgrade is refused, and they poll.
await follow('polled', `${stack.site_url}/article`, false, 300);
process.exit(0);
