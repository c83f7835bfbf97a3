// GET /v1/payments/{nonce}: the claims of a nonce, and the job of each.

import { DynamoDBClient, GetItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { json, run } from "./runtime.mjs";

const db = new DynamoDBClient({});
const TableName = "agora-jobs";
const get = (pk, sk) => db.send(new GetItemCommand({ TableName, Key: { pk: { S: pk }, sk: { S: sk } } }));

async function payment(event) {
  const nonce = event.rawPath.split("/").pop();
  if (!/^0x[0-9a-f]{64}$/i.test(nonce)) return json(400, { error: "invalid_request" });
  const { Items } = await db.send(
    new QueryCommand({
      TableName,
      KeyConditionExpression: "#pk = :pk",
      ExpressionAttributeNames: { "#pk": "pk" },
      ExpressionAttributeValues: { ":pk": { S: `PAYMENT#${nonce}` } },
      Limit: 25,
    }),
  );
  const payments = [];
  for (const claim of Items ?? []) {
    const request_id = claim.request_id.S;
    const { Item: job } = await get(`JOB#${request_id}`, "JOB");
    payments.push({
      nonce,
      state: job?.settlement.S ?? "settled",
      payer: claim.payer.S,
      network: "eip155:84532",
      claimed_at: new Date(Number(claim.claimed_at.N)).toISOString(),
      request_id,
      amount_usdc: job && (Number(job.price.N) / 1e6).toFixed(6),
      transaction: job?.transaction?.S ?? null,
    });
  }
  return json(200, { reference: nonce, state: payments[0]?.state ?? "never_seen", payments });
}

get("WARM", "WARM").then(() => run(payment));
