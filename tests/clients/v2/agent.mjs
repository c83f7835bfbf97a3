// An agent: a wallet that pays with the stock x402 client and proves itself, and what it is told.
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

export class Agent {
  // With a payer's key, or with a new one, whose wallet is empty.
  constructor(stack, privateKey = generatePrivateKey()) {
    this.stack = stack;
    this.account = privateKeyToAccount(privateKey);
    this.scheme = new ExactEvmScheme(this.account);
    const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: this.scheme }];
    const config = { schemes, spendControls: { maxAmountPerPayment: '$20' } };
    const paying = (fetcher) => wrapFetchWithPaymentFromConfig(fetcher, config);
    this.fetchAndPay = paying(fetch);
    // A proof is good for one request, and paying takes two.
    this.fetchProveAndPay = paying(async (input, init) => {
      const request = new Request(input, init);
      for (const [name, value] of Object.entries(await this.proof('write'))) request.headers.set(name, value);
      return fetch(request);
    });
  }

  get address() {
    return this.account.address;
  }

  proof(scope) {
    return proof(this.account, this.stack.service_name, scope);
  }

  async request(fetcher, method, path, body, headers) {
    const raw = body instanceof Uint8Array || typeof body === 'string';
    const type = raw ? 'application/octet-stream' : 'application/json';
    const sent = body === undefined ? {} : { body: raw ? body : JSON.stringify(body) };
    const answer = await fetcher(this.stack.base_url + path, {
      method, redirect: 'manual', headers: { ...(body === undefined ? {} : { 'content-type': type }), ...headers }, ...sent,
    });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const text = new TextDecoder().decode(bytes);
    let json = null;
    try {
      json = JSON.parse(text);
    } catch {
      // A page, or a file.
    }
    return { method, path, status: answer.status, headers: answer.headers, bytes, text, json };
  }

  // As anybody, or with the headers given.
  ask(method, path, body, headers = {}) {
    return this.request(fetch, method, path, body, headers);
  }

  // As the holder of the wallet.
  async own(method, path, body, headers = {}) {
    return this.request(fetch, method, path, body, { ...(await this.proof(method === 'GET' ? 'read' : 'write')), ...headers });
  }

  // And pays what is asked.
  pay(path, body, headers = {}) {
    return this.request(this.fetchAndPay, 'POST', path, body, headers);
  }

  // The same with a proof beside the payment, for tools that want one.
  payProven(path, body, headers = {}) {
    return this.request(this.fetchProveAndPay, 'POST', path, body, headers);
  }

  // A payment of the first of these terms, as headers and checkout sessions carry it.
  async sign({ resource, accepts: [accepted] }) {
    const payload = { ...(await this.scheme.createPaymentPayload(2, accepted)), resource, accepted };
    return Buffer.from(JSON.stringify(payload)).toString('base64');
  }
}
