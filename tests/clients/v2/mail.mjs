// Two agents write to each other: the third payer of the stack sends a mail to the fourth, who answers it. Paid with the
// stock x402 v2 client. Prints the mail as each of them gets it, with --json as the service says it; what happens meanwhile
// goes to stderr. Usage: node mail.mjs [--json] SUBJECT BODY STACK_JSON
import { readFileSync } from 'node:fs';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';
import { asJson, words } from './script.mjs';

const [subject, body, stackFile] = words;
const stack = JSON.parse(readFileSync(stackFile));

function agent(payer) {
  const account = privateKeyToAccount(payer.private_key);
  const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
  const fetchAndPay = wrapFetchWithPaymentFromConfig(fetch, { schemes });

  async function json(answer) {
    const said = await answer.json();
    if (!answer.ok) throw new Error(`${answer.status} ${JSON.stringify(said)}`);
    return said;
  }
  const read = async (path) =>
    json(await fetch(stack.base_url + path, { headers: await proof(account, stack.service_name, 'read') }));

  // Quotes, pays, and waits until the mail is on its way.
  async function send(mail) {
    const post = (path, pay, more) => {
      const headers = { 'content-type': 'application/json', 'x-agent-id': account.address, ...more };
      return pay(stack.base_url + path, { method: 'POST', headers, body: JSON.stringify(mail) });
    };
    const quote = await json(await post('/v1/tools/email/quote', fetch));
    console.error(`from ${quote.from_address}, for ${quote.total_cost} USDC`);
    const sent = await json(await post('/v1/tools/email/send', fetchAndPay, { 'x-quote-id': quote.quote_id }));
    for (;;) {
      const job = await read(`/v1/requests/${sent.request_id}`);
      if (job.status === 'completed') return;
      if (job.status === 'failed') throw new Error(`${job.error_reason ?? job.error_code}: ${job.error}`);
      await new Promise((wake) => setTimeout(wake, 500));
    }
  }

  // The newest mail, with its body.
  async function newest() {
    const { emails } = await read('/v1/tools/inbox?limit=1&include_body=true');
    const [mail] = emails;
    const { from, subject, body } = mail;
    console.log(asJson ? JSON.stringify(mail) : `From: ${from}\nSubject: ${subject}\n\n${body.trim()}\n`);
    return mail;
  }
  const address = async () => (await read('/v1/tools/email/domains')).domains[0].default_from;
  return { send, newest, address };
}

const [ada, bob] = stack.payers.slice(2, 4).map(agent);
await ada.send({ to_address: await bob.address(), subject, body });
const mail = await bob.newest();
await bob.send({ reply_to_email_id: mail.id, body: `You wrote: ${mail.body.trim()}\n\nFine with me.` });
await ada.newest();
