// POST /v1/tools/lookup/vehicle-identification without a payment: the body checked, a quote made and authenticated, the
// 402 of both x402 versions. As in the function it is held against, the relayer's account is made at the start.

import { createHash, createHmac, randomBytes } from "node:crypto";
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { privateKeyToAccount } from "viem/accounts";
import { json, run } from "./runtime.mjs";
import { derived } from "./secrets.mjs";

const db = new DynamoDBClient({});
const asset = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const payTo = process.env.PAY_TO;
const price = 5_000;
let quoteKey;

function quote(body) {
  const expires = Math.floor(Date.now() / 1000) + 900;
  const numbers = Buffer.alloc(16);
  numbers.writeBigUInt64BE(BigInt(expires));
  numbers.writeBigUInt64BE(BigInt(price), 8);
  const canonical = JSON.stringify(Object.fromEntries(Object.entries(body).sort()));
  const digest = createHash("sha256").update(canonical).digest();
  const binding = createHash("sha256").update("quote").update("vin_decode").update(digest).digest().subarray(0, 16);
  const bytes = Buffer.concat([Buffer.of(1), randomBytes(12), numbers, binding]);
  const mac = createHmac("sha256", quoteKey).update(bytes).digest().subarray(0, 16);
  return { id: `quote_${Buffer.concat([bytes, mac]).toString("base64url")}`, expires: new Date(expires * 1000).toISOString() };
}

async function unpaid(event) {
  const body = JSON.parse(event.body);
  if (typeof body.vin !== "string" || !/^[0-9A-HJ-NPR-Z]{17}$/i.test(body.vin)) return json(400, { error: "invalid_request" });
  const { id, expires } = quote(body);
  const usdc = (price / 1e6).toFixed(6);
  const url = `https://${event.headers.host}${event.rawPath}`;
  const description = "Decodes a 17-character vehicle identification number";
  const terms = { scheme: "exact", payTo, maxTimeoutSeconds: 300, asset };
  const challenge = {
    x402Version: 2,
    error: "payment_required",
    resource: { url, description, mimeType: "application/json" },
    accepts: [{ ...terms, network: "eip155:84532", amount: String(price), extra: { name: "USDC", version: "2", quoteId: id } }],
  };
  const answer = {
    error: "payment_required",
    code: 402,
    message: `Vehicle identification costs ${usdc} USDC: repeat the request with a signed payment`,
    quote_id: id,
    amount_usdc: usdc,
    pay_to: payTo,
    network: "eip155:84532",
    expires_at: expires,
    payment_request: { chain_id: 84532, token_address: asset, amount: usdc, recipient: payTo },
    context: { tool: "vin_decode", quote_id: id, total: usdc, expires_at: expires },
    x402Version: 1,
    accepts: [
      {
        ...terms,
        network: "base-sepolia",
        maxAmountRequired: String(price),
        resource: url,
        description,
        mimeType: "application/json",
        extra: { name: "USDC", version: "2" },
      },
    ],
  };
  return json(402, answer, { "payment-required": Buffer.from(JSON.stringify(challenge)).toString("base64") });
}

async function start() {
  quoteKey = await derived(process.env.SERVICE_SECRET_ARN, "quotes");
  privateKeyToAccount(`0x${(await derived(process.env.RELAYER_SECRET_ARN, "relayer")).toString("hex")}`);
  await db.send(new GetItemCommand({ TableName: "agora-jobs", Key: { pk: { S: "WARM" }, sk: { S: "WARM" } } }));
  await run(unpaid);
}

start();
