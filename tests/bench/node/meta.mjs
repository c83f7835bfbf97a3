// GET /v1/stats: one read.

import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { json, run } from "./runtime.mjs";

const db = new DynamoDBClient({});
const get = (pk, sk) => db.send(new GetItemCommand({ TableName: "agora-ledger", Key: { pk: { S: pk }, sk: { S: sk } } }));

async function stats() {
  const { Item } = await get("STATS", "TOTAL");
  const number = (name) => Number(Item?.[name]?.N ?? 0);
  const [completed, failed] = [number("completed"), number("failed")];
  return json(200, {
    actions_executed: completed,
    transaction_volume_cents: Math.floor(number("volume") / 10_000),
    active_agents: number("agents"),
    success_rate_bps: completed + failed ? Math.floor((completed * 10_000) / (completed + failed)) : 10_000,
  });
}

get("WARM", "WARM").then(() => run(stats));
