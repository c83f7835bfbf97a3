// Lists the tools and buys with an official MCP client: with an access token, and by x402 with a wallet that signs.
// Usage: node buy.mjs client|sdk ERA STACK_JSON — `client` is the 2.x line, `sdk` the 1.x line; ERA is what the 2.x line
// is told to speak (legacy or auto). The file also has `wallet`, a private key, and `token`, an access token.
// Prints one line of JSON for each step.
import { readFileSync } from 'node:fs';
import { x402Client } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm';
import { privateKeyToAccount } from 'viem/accounts';

const [line, era, file] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(file));
const { Client, StreamableHTTPClientTransport } =
  line === 'client'
    ? await import('@modelcontextprotocol/client')
    : {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      };
const say = (step, what) => console.log(JSON.stringify({ step, ...what }));

// The address names the tools that are listed: all of them, or the usual few.
async function connected(headers, address = '/mcp?tools=all') {
  const options = era === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {};
  const client = new Client({ name: 'test', version: '1' }, options);
  await client.connect(new StreamableHTTPClientTransport(new URL(`${stack.base_url}${address}`), { requestInit: { headers } }));
  return client;
}

const vin = { name: 'agora_vin_decode', arguments: { vin: '1HGCM82633A004352' } };
const read = { name: 'agora_web_read', arguments: { url: `${stack.site_url}/article` } };

async function polled(client, handle) {
  for (;;) {
    const { structuredContent: job } = await client.callTool(handle.poll && { name: handle.poll.tool, arguments: handle.poll.arguments });
    if (!['pending', 'processing'].includes(job.status)) return job;
    await new Promise((done) => setTimeout(done, 200));
  }
}

// The short list: two of its tools find and call all others.
const finder = await connected({ authorization: stack.token }, '/mcp');
const { tools: few } = await finder.listTools();
const { structuredContent: found } = await finder.callTool({ name: 'agora_find_tools', arguments: { query: 'decode a vin' } });
const rehearsal = { name: found.tools[0].name, input: vin.arguments, dry_run: true };
const { structuredContent: rehearsed } = await finder.callTool({ name: 'agora_use_tool', arguments: rehearsal });
say('short', { names: few.map((tool) => tool.name), found: found.tools[0].name, rehearsed });
await finder.close();

// With a token: paid from credits, at once.
const spender = await connected({ authorization: stack.token });
// A client checks structured results against the schemas it has seen.
const { tools } = await spender.listTools();
say('tools', { names: tools.map((tool) => tool.name) });
const bought = await spender.callTool({ ...vin, arguments: { ...vin.arguments, idempotency_key: `${line}-${era}` } });
say('token', { isError: bought.isError ?? false, body: bought.structuredContent });
say('token-read', { job: await polled(spender, (await spender.callTool(read)).structuredContent) });
await spender.close();

// Without: the price, a payment, the work.
const payer = await connected({});
await payer.listTools();
const account = privateKeyToAccount(stack.wallet);
const wallet = new x402Client().register(`eip155:${stack.chain.chain_id}`, new ExactEvmScheme(account));

async function pay(call) {
  const unpaid = await payer.callTool(call);
  const terms = unpaid.structuredContent;
  if (!unpaid.isError || JSON.stringify(terms) !== JSON.stringify(JSON.parse(unpaid.content[0].text))) throw new Error(JSON.stringify(unpaid));
  const payment = await wallet.createPaymentPayload(terms);
  const paid = await payer.callTool({ ...call, _meta: { 'x402/payment': payment } });
  const again = await payer.callTool({ ...call, _meta: { 'x402/payment': payment } });
  return { terms, paid, again };
}

const { terms, paid, again } = await pay(vin);
say('x402', {
  resource: terms.resource.url,
  isError: paid.isError ?? false,
  body: paid.structuredContent,
  settlement: paid._meta['x402/payment-response'],
  again: again.structuredContent,
});
const { paid: accepted } = await pay(read);
say('x402-read', { job: await polled(payer, accepted.structuredContent) });
await payer.close();
