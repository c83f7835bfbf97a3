// Buys from a service of the operator's own with the official MCP client and an access token, as a host does.
// Usage: node own.mjs TOOL ARGUMENTS STACK_JSON. Prints what it lists and what it bought.
import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [name, input, file] = process.argv.slice(2);
const stack = JSON.parse(readFileSync(file));
const client = new Client({ name: 'test', version: '1' });
const headers = { authorization: stack.token };
await client.connect(new StreamableHTTPClientTransport(new URL(`${stack.base_url}/mcp`), { requestInit: { headers } }));
const { tools } = await client.listTools();
const bought = await client.callTool({ name, arguments: JSON.parse(input) });
console.log(JSON.stringify({ listed: tools.map((tool) => tool.name), isError: bought.isError ?? false, body: bought.structuredContent }));
await client.close();
