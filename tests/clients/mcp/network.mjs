// Uses accounts of the professional network with the official MCP client: two hosts, each with the access token of an agent.
// Usage: node network.mjs STACK_JSON. The file also has `ann`, `bob` and `eve`, each with `token`; `bob` and `eve` have `account` and
// `member`, too: Ann connects here. Prints one line of JSON for each step.
import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const stack = JSON.parse(readFileSync(process.argv[2]));
const { ann, bob, eve } = stack;
const say = (step, what) => console.log(JSON.stringify({ step, ...what }));

class Host {
  constructor(agent) {
    this.agent = agent;
    this.client = new Client({ name: 'test', version: '1' });
  }

  async connect() {
    const requestInit = { headers: { authorization: this.agent.token } };
    // The address names the tools that are listed.
    const url = new URL(`${stack.base_url}/mcp?tools=linkedin,network`);
    await this.client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    // A client checks structured results against the schemas it has seen.
    const { tools } = await this.client.listTools();
    return tools.map((tool) => tool.name);
  }

  async call(name, input) {
    const named = { account_id: this.agent.account, ...input };
    const { isError, structuredContent: body } = await this.client.callTool({ name: `agora_${name}`, arguments: named });
    return { isError: isError ?? false, body };
  }

  async read(name, input = {}) {
    const { isError, body } = await this.call(name, input);
    if (isError) throw new Error(`${name}: ${JSON.stringify(body)}`);
    return body;
  }

  // Buys, and polls to the end.
  async buy(name, input, key) {
    const accepted = await this.read(name, { ...input, idempotency_key: key });
    if (!accepted.poll) throw new Error(`${name}: ${JSON.stringify(accepted)}`);
    for (;;) {
      const { structuredContent: job } = await this.client.callTool({ name: accepted.poll.tool, arguments: accepted.poll.arguments });
      if (!['pending', 'processing'].includes(job.status)) return job;
      await new Promise((done) => setTimeout(done, 200));
    }
  }

  // What a member of the local network does by hand: no tool of an agent's.
  async byHand(path, body) {
    const headers = { authorization: this.agent.token, 'content-type': 'application/json' };
    const answer = await fetch(`${stack.base_url}/v1/tools/linkedin/local/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }
}

const [anns, bobs] = [new Host(ann), new Host(bob)];
say('tools', { names: await anns.connect() });
await bobs.connect();
// The owner of Ann's account logs in by hand, with the link that Ann has asked for.
const plain = async (name, input) => (await anns.client.callTool({ name: `agora_${name}`, arguments: input })).structuredContent;
const issued = await plain('network_connect', { requested_actions: ['read', 'reply', 'view_profile', 'react', 'invite'] });
const { code } = await anns.byHand('code', { name: 'ann' });
await fetch(issued.url, { method: 'POST', body: new URLSearchParams({ code }) });
const { status, account } = await plain('network_connection', { intent_id: issued.intent_id });
Object.assign(ann, { account: account.id, member: account.member_urn });
say('connection', { status, account: account.id });
// The list of accounts takes no arguments.
const { structuredContent: listed } = await anns.client.callTool({ name: 'agora_network_accounts', arguments: {} });
say('accounts', { ids: listed.accounts.map((account) => account.id) });

const hello = { profile: bob.member, text: 'Shall we talk on Thursday?' };
say('keyless', await anns.call('linkedin_message', hello));
say('stranger', { job: await anns.buy('linkedin_message', hello, 'too early') });
say('invite', { job: await anns.buy('linkedin_invite', { profile: bob.member, note: 'We met in Lyon.' }, 'invite Bob') });
await bobs.byHand(`invitations/${ann.member}/accept`, {});
const first = await anns.buy('linkedin_message', hello, 'hello');
const again = await anns.read('linkedin_message', { ...hello, idempotency_key: 'hello' });
say('message', { job: first, again: again.request_id });

const { messages } = await bobs.read('network_messages');
say('received', { messages });
const reply = { conversation_id: messages[0].conversation_id, text: 'Thursday at ten suits me.' };
say('reply', { job: await bobs.buy('linkedin_reply', reply, 'reply') });
say('sync', { job: await anns.buy('linkedin_sync', { max_pages: 2 }, 'sync') });
const { conversations } = await anns.read('network_conversations', { limit: 5 });
const read = await anns.read('network_messages', { conversation_id: conversations[0].id, limit: 5 });
say('read', { name: conversations[0].name, texts: read.messages.map((message) => message.text), state: read.sync_state });

say('view', { job: await anns.buy('linkedin_profile_view', { identifier: bob.member }, 'view') });
const { post_id: post } = await bobs.byHand('posts', { text: 'The lamp turns against the sun.' });
say('react', { job: await anns.buy('linkedin_react', { post_id: post, reaction_type: 'insightful' }, 'react') });
const invited = await anns.buy('linkedin_invite', { profile: eve.member }, 'invite Eve');
const withdrawn = await anns.buy('linkedin_invite_withdraw', { invitation_id: invited.result?.invitation_id }, 'withdraw');
say('withdraw', { invited, job: withdrawn });
const { invitations } = await anns.read('network_invitations');
say('invitations', { statuses: invitations.map((invitation) => invitation.status) });
await Promise.all([anns.client.close(), bobs.client.close()]);
