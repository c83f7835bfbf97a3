// The agent proof: "I hold this wallet, and want to read (or write)", good for one request within five minutes.
import { randomBytes } from 'node:crypto';

const types = {
  AgentReadAuth: [
    { name: 'agent', type: 'address' },
    { name: 'scope', type: 'string' },
    { name: 'issuedAt', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
};

// The headers that carry it.
export async function proof(account, serviceName, scope) {
  const message = { agent: account.address, scope, issuedAt: Math.floor(Date.now() / 1000), nonce: `0x${randomBytes(32).toString('hex')}` };
  const domain = { name: `${serviceName} Agent Auth`, version: '1' };
  const signature = await account.signTypedData({ domain, types, primaryType: 'AgentReadAuth', message });
  return { 'x-agent-id': account.address, 'x-agent-proof': Buffer.from(JSON.stringify({ ...message, signature })).toString('base64') };
}
