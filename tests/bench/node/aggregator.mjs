// A finished job off the stream: totals, a mark for the batch and one for the agent, in one transaction.

import { DynamoDBClient, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { run } from "./runtime.mjs";

const db = new DynamoDBClient({});

async function count(event) {
  const [first, last] = [event.Records.at(0), event.Records.at(-1)].map((record) => record.dynamodb.SequenceNumber);
  const totals = { completed: 0, failed: 0, volume: 0 };
  const agents = new Set();
  for (const { dynamodb } of event.Records) {
    const [was, is] = [dynamodb.OldImage, dynamodb.NewImage];
    if (!is?.pk.S.startsWith("JOB#")) continue;
    if (!was?.outcome && is.outcome?.S === "completed") {
      totals.completed += 1;
      agents.add(is.agent.S);
    }
    if (!was?.outcome && is.outcome?.S === "failed" && is.settlement.S === "settled") totals.failed += 1;
    if (was?.settlement.S !== "settled" && is.settlement.S === "settled") totals.volume += Number(is.price.N);
  }
  const now = Math.floor(Date.now() / 1000);
  const number = (value) => ({ N: String(value) });
  const onlyNew = { ConditionExpression: "attribute_not_exists(#pk)", ExpressionAttributeNames: { "#pk": "pk" } };
  const batch = { pk: { S: `BATCH#${first}-${last}` }, sk: { S: "BATCH" }, expires: number(now + 3 * 86_400) };
  await db.send(
    new TransactWriteItemsCommand({
      TransactItems: [
        { Put: { TableName: "agora-ledger", Item: batch, ...onlyNew } },
        {
          Update: {
            TableName: "agora-ledger",
            Key: { pk: { S: "STATS" }, sk: { S: "TOTAL" } },
            UpdateExpression: "ADD #completed :completed, #failed :failed, #volume :volume, #agents :agents",
            ExpressionAttributeNames: { "#completed": "completed", "#failed": "failed", "#volume": "volume", "#agents": "agents" },
            ExpressionAttributeValues: {
              ":completed": number(totals.completed),
              ":failed": number(totals.failed),
              ":volume": number(totals.volume),
              ":agents": number(agents.size),
            },
          },
        },
        ...[...agents].map((agent) => ({
          Put: { TableName: "agora-agents", Item: { pk: { S: `AGENT#${agent}` }, sk: { S: "SEEN" }, at: number(now) }, ...onlyNew },
        })),
      ],
    }),
  );
  return null;
}

run(count);
