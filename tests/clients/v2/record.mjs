// Records one paid call, from the price to the receipt, and draws it. What it shows was sent and answered: nothing in the
// picture is written by hand but the labels. Usage: node record.mjs STACK_JSON RECORDING.json PICTURE.svg (with an existing
// recording and no stack, "-", it only draws)
import { readFileSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { proof } from './proof.mjs';

const PATH = '/v1/tools/lookup/vehicle-identification';
const INPUT = { vin: '1HGCM82633A004352' };

const [stackFile, recordingFile, pictureFile] = process.argv.slice(2);
if (stackFile !== '-') writeFileSync(recordingFile, `${JSON.stringify(await record(JSON.parse(readFileSync(stackFile))), null, 2)}\n`);
writeFileSync(pictureFile, draw(JSON.parse(readFileSync(recordingFile))));

// Buys with the published client, with a `fetch` that looks at what passes; then repeats the payment, and reads the receipt.
async function record(stack) {
  const account = privateKeyToAccount(stack.payers[5].private_key);
  const seen = [];
  const looking = async (request) => {
    const sent = new Request(request);
    const answer = await fetch(sent.clone());
    seen.push({ headers: Object.fromEntries(sent.headers), status: answer.status, answered: Object.fromEntries(answer.headers), body: await answer.clone().json() });
    return answer;
  };
  const schemes = [{ network: `eip155:${stack.chain.chain_id}`, client: new ExactEvmScheme(account) }];
  const fetchAndPay = wrapFetchWithPaymentFromConfig(looking, { schemes });
  const init = { method: 'POST', headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() }, body: JSON.stringify(INPUT) };
  await fetchAndPay(new Request(stack.base_url + PATH, init));
  const [price, paid] = seen;
  const signature = paid.headers['payment-signature'];
  const own = async (path) => (await fetch(stack.base_url + path, { headers: await proof(account, stack.service_name, 'read') })).json();
  const before = (await own('/v1/tools/balance')).on_chain_balance;
  const again = await fetch(stack.base_url + PATH, { ...init, headers: { ...init.headers, 'payment-signature': signature } });
  const repeated = await again.json();
  const { receipt_id: id, result } = paid.body.data;
  const after = (await own('/v1/tools/balance')).on_chain_balance;
  const { receipts } = await own('/v1/analytics/receipts?limit=1');
  if (price.status !== 402 || paid.status !== 200 || receipts[0].receipt_id !== id) throw new Error(JSON.stringify(seen));
  const { accepts } = decoded(price.answered['payment-required']);
  const { authorization } = decoded(signature).payload;
  const settled = decoded(paid.answered['payment-response']);
  return {
    path: PATH,
    input: INPUT,
    price: { status: price.status, amount_usdc: price.body.amount_usdc, amount: accepts[0].amount, network: accepts[0].network, pay_to: accepts[0].payTo },
    signed: { from: authorization.from, to: authorization.to, value: authorization.value, header: signature.slice(0, 24), bytes: signature.length },
    paid: { status: paid.status, make: result.make, model: result.model, model_year: result.model_year, success: settled.success, transaction: settled.transaction },
    receipt: { id, amount_usdc: receipts[0].amount_usdc, status: receipts[0].status, alg: receipts[0].alg, signature: receipts[0].signature.slice(0, 24) },
    repeated: { status: again.status, same_receipt: repeated.data.receipt_id === id, balance_before: before, balance_after: after },
  };
}

function decoded(header) {
  return JSON.parse(Buffer.from(header, 'base64').toString());
}

// Attributes only, no style sheet and no script: it can stand in a page whose policy allows neither.
function draw({ path, input, price, signed, paid, receipt, repeated }) {
  const short = (hex) => `${hex.slice(0, 8)}…${hex.slice(-4)}`;
  const usdc = (amount) => `${amount.replace(/(\.\d*?[1-9])0+$/, '$1')} USDC`;
  const steps = [
    ['>', `POST ${path}`, [JSON.stringify(input)]],
    ['<', `${price.status}: it costs ${usdc(price.amount_usdc)}`, [`${price.amount} micro-USDC to ${short(price.pay_to)} on ${price.network}`]],
    ['>', 'the same request, with a signed payment', [`PAYMENT-SIGNATURE: ${signed.header}… (${signed.bytes} bytes)`, `${short(signed.from)} allows ${signed.value} to ${short(signed.to)}, once`]],
    ['<', `${paid.status}: ${paid.make} ${paid.model}, ${paid.model_year}`, [`PAYMENT-RESPONSE: success ${paid.success}, transaction ${short(paid.transaction)}`, `receipt ${receipt.id}`, `${usdc(receipt.amount_usdc)}, ${receipt.status}, signed (${receipt.alg} ${receipt.signature}…)`]],
    ['>', 'the same payment again: the answer was lost', []],
    ['<', `${repeated.status}: the same answer${repeated.same_receipt ? ', with the same receipt' : ''}`, [`the wallet has ${usdc(repeated.balance_before)} before, and ${usdc(repeated.balance_after)} after`]],
  ];
  const [width, left, right, line] = [860, 96, 764, 21];
  const text = (x, y, size, fill, body, more = '') => `<text x="${x}" y="${y}" font-size="${size}" fill="${fill}"${more}>${escaped(body)}</text>`;
  const mono = ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"';
  const parts = [];
  let y = 92;
  for (const [way, title, lines] of steps) {
    const [from, to, colour, anchor] = way === '>' ? [left, right, '#7cc4ff', left + 18] : [right, left, '#8fe0a4', left + 18];
    parts.push(text(anchor, y, 16, colour, title, ' font-weight="600"'));
    lines.forEach((body, at) => parts.push(text(anchor, y + line * (at + 1), 13, '#c3ccd9', body, mono)));
    y += line * lines.length + 12;
    const head = way === '>' ? `${to - 9},${y - 5} ${to},${y} ${to - 9},${y + 5}` : `${to + 9},${y - 5} ${to},${y} ${to + 9},${y + 5}`;
    parts.push(`<line x1="${from}" y1="${y}" x2="${to}" y2="${y}" stroke="${colour}" stroke-width="1.5"/><polygon points="${head}" fill="${colour}"/>`);
    y += 34;
  }
  const height = y;
  const lanes = [[left, 'agent'], [right, 'service']].map(([x, name]) => `<line x1="${x}" y1="58" x2="${x}" y2="${height - 24}" stroke="#3a4658" stroke-width="1.5" stroke-dasharray="3 5"/>${text(x, 42, 15, '#ffffff', name, ' text-anchor="middle" font-weight="600"')}`);
  const about = `One paid call: the price (${price.status}), the signed payment, the answer (${paid.status}) with its receipt, and the same payment again`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="system-ui, -apple-system, Segoe UI, sans-serif"><title>${escaped(about)}</title><rect width="${width}" height="${height}" rx="12" fill="#141b26"/>\n${[...lanes, ...parts].join('\n')}\n</svg>\n`;
}

function escaped(body) {
  return body.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
