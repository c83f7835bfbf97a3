// The official facilitator over HTTP, settling on the local chain. Usage: node facilitator.mjs RPC_URL CHAIN_ID KEY
// Prints its address on one line when it is up.
import { createServer } from 'node:http';
import { x402Facilitator } from '@x402/core/facilitator';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator';
import { createWalletClient, defineChain, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

const [rpcUrl, chainId, key] = process.argv.slice(2);
const chain = defineChain({
  id: Number(chainId),
  name: 'local',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [rpcUrl] } },
  contracts: { multicall3: { address: '0xcA11bde05977b3631167028862bE2a173976CA11' } },
});
const account = privateKeyToAccount(key);
const client = createWalletClient({ account, chain, transport: http(rpcUrl), pollingInterval: 50 }).extend(publicActions);
const facilitator = new x402Facilitator();
const signer = toFacilitatorEvmSigner({ ...client, address: account.address });
registerExactEvmScheme(facilitator, { signer, networks: `eip155:${chainId}` });

const server = createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  const answer = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  try {
    const { paymentPayload, paymentRequirements } = text ? JSON.parse(text) : {};
    if (request.url === '/verify') return answer(200, await facilitator.verify(paymentPayload, paymentRequirements));
    if (request.url === '/settle') return answer(200, await facilitator.settle(paymentPayload, paymentRequirements));
    if (request.url === '/supported') return answer(200, facilitator.getSupported());
    answer(404, { error: 'not found' });
  } catch (error) {
    answer(500, { error: String(error) });
  }
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
