// Buys with a client that was generated from the description, and reads what became of it. Usage: node buy.mjs BASE_URL TOKEN
// Prints one line of JSON for each call. `schema.d.ts` is made by the test (`openapi-typescript BASE_URL/openapi.json`).
import createClient from 'openapi-fetch';
import type { paths } from './schema.js';

declare const process: { argv: string[] };
const [baseUrl, token] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
const say = (about: unknown) => console.log(JSON.stringify(about));

// What it costs, for nothing; then the car itself, twice under one name.
const body = { vin: '1HGCM82633A004352' };
const asked = await client.POST('/v1/tools/lookup/vehicle-identification', { body, params: { header: { 'X-Dry-Run': 'true' } } });
if (!asked.data || !('dry_run' in asked.data)) throw new Error(JSON.stringify(asked.error));
const price: string = asked.data.price_usdc;
say({ price });
for (let time = 0; time < 2; time++) {
  const bought = await client.POST('/v1/tools/lookup/vehicle-identification', {
    body: { ...body, memo: 'generated' },
    params: { header: { 'Idempotency-Key': 'one car' } },
  });
  if (!bought.data || !('data' in bought.data)) throw new Error(JSON.stringify(bought.error));
  const { request_id, receipt_id, result } = bought.data.data;
  say({ request_id, receipt_id, model: result.model });
}

// A queued call, and its state.
const read = await client.POST('/v1/tools/web-read', { body: { url: 'http://no-such-host.invalid/' } });
if (!read.data || !('request_id' in read.data)) throw new Error(JSON.stringify(read.error));
const state = await client.GET('/v1/requests/{id}', { params: { path: { id: read.data.request_id } } });
say({ tool: state.data?.tool, known: state.response.status });

// Typed queries and typed refusals.
const receipts = await client.GET('/v1/analytics/receipts', { params: { query: { limit: 5, category: 'data' } } });
say({ receipts: receipts.data?.receipts.map((receipt) => receipt.subcategory) });
const refused = await client.POST('/v1/tools/lookup/vehicle-identification', { body: { vin: 'short' } });
say({ refused: refused.error?.error, status: refused.response.status });
