// Makes a wallet and a proof that it is held, for `PUT /v1/soul/me/link-wallet`. Usage: node wallet.mjs STACK_JSON
// Prints one line of JSON: address, private_key, proof (good for five minutes and one request).
import { readFileSync } from 'node:fs';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

const stack = JSON.parse(readFileSync(process.argv[2]));
const private_key = generatePrivateKey();
const account = privateKeyToAccount(private_key);
const headers = await proof(account, stack.service_name, 'write');
console.log(JSON.stringify({ address: account.address, private_key, proof: headers['x-agent-proof'] }));
