// A job taken up, its payment put on chain by the relayer, the job and its receipt finished. The work itself (decoding
// a vehicle identification number) is left out, which favours Node.

import { createHash, sign } from "node:crypto";
import { DynamoDBClient, GetItemCommand, TransactWriteItemsCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { createPublicClient, encodeFunctionData, http, keccak256, parseAbi, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";
import { run } from "./runtime.mjs";
import { derived, receiptKey } from "./secrets.mjs";

const db = new DynamoDBClient({});
const chain = createPublicClient({ chain: baseSepolia, transport: http(process.env.CHAIN_RPC_URL, { batch: true }) });
const token = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const abi = parseAbi([
  "function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
]);
const number = (value) => ({ N: String(value) });
const get = (table, pk, sk, ConsistentRead) =>
  db.send(new GetItemCommand({ TableName: `agora-${table}`, Key: { pk: { S: pk }, sk: { S: sk } }, ConsistentRead }));

let receipts, relayer;

// An update of the job under the attempt that has it.
function change(job, set, values, remove = "") {
  const names = [...set.matchAll(/(\w+) = /g)].map((match) => match[1]).concat(remove.split(", ").filter(Boolean));
  return {
    TableName: "agora-jobs",
    Key: { pk: job.pk, sk: job.sk },
    UpdateExpression: `SET ${set.replaceAll(/(\w+) = /g, "#$1 = ")}${remove && ` REMOVE ${remove.replaceAll(/\w+/g, "#$&")}`}`,
    ConditionExpression: "#attempt = :attempt AND attribute_exists(#open)",
    ExpressionAttributeNames: Object.fromEntries([...names, "attempt", "open"].map((name) => [`#${name}`, name])),
    ExpressionAttributeValues: { ":attempt": job.attempt, ...values },
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

async function settle(job) {
  const payment = job.payment.M;
  const bytes = (name) => toHex(payment[name].B);
  const signature = payment.signature.B;
  const data = encodeFunctionData({
    abi,
    args: [
      bytes("from"),
      bytes("to"),
      BigInt(bytes("value")),
      BigInt(bytes("valid_after")),
      BigInt(bytes("valid_before")),
      bytes("nonce"),
      signature[64],
      toHex(signature.subarray(0, 32)),
      toHex(signature.subarray(32, 64)),
    ],
  });
  const [gas, block, tip] = await Promise.all([
    chain.estimateGas({ account: relayer.address, to: token, data }),
    chain.getBlock(),
    chain.estimateMaxPriorityFeePerGas(),
  ]);
  const nonces = { pk: { S: `RELAYER#84532#${relayer.address.toLowerCase()}` }, sk: { S: "NONCES" } };
  const { Item } = await get("ledger", nonces.pk.S, "NONCES", true);
  const nonce = Math.max(Number(Item?.next?.N ?? 0), await chain.getTransactionCount({ address: relayer.address }));
  const raw = await relayer.signTransaction({
    type: "eip1559",
    chainId: 84532,
    nonce,
    to: token,
    data,
    gas: (gas * 6n) / 5n,
    maxPriorityFeePerGas: tip,
    maxFeePerGas: block.baseFeePerGas * 2n + tip,
  });
  const hash = keccak256(raw);
  const intent = { M: { raw: { B: Buffer.from(raw.slice(2), "hex") }, hash: { S: hash }, account_nonce: number(nonce) } };
  const submitted = { ":submitted": { S: "submitted" }, ":intent": intent, ":transaction": { S: hash } };
  await db.send(
    new TransactWriteItemsCommand({
      TransactItems: [
        { Update: change(job, "settlement = :submitted, intent = :intent, transaction = :transaction", submitted) },
        {
          Update: {
            TableName: "agora-ledger",
            Key: nonces,
            UpdateExpression: "SET #next = :after",
            ConditionExpression: "attribute_not_exists(#next)",
            ExpressionAttributeNames: { "#next": "next" },
            ExpressionAttributeValues: { ":after": number(nonce + 1) },
          },
        },
      ],
    }),
  );
  await chain.sendRawTransaction({ serializedTransaction: raw });
  const receipt = await chain.getTransactionReceipt({ hash });
  if (receipt.status !== "success" || receipt.logs.length < 2) throw new Error("the transfer did not happen");
  const settled = { ":settled": { S: "settled" }, ":transaction": { S: hash } };
  const update = change(job, "settlement = :settled, transaction = :transaction", settled, "intent");
  await db.send(new UpdateItemCommand({ ...update, ReturnValues: "ALL_NEW" }));
  return hash;
}

async function finish(job, transaction) {
  const key = [`AGENT#${job.agent.S}`, `RECEIPT#${job.receipt_id.S}`];
  const { Item } = await get("ledger", ...key, true);
  const members = JSON.stringify({ ...Item, transaction });
  const receipt = {
    ...Item,
    pk: { S: key[0] },
    sk: { S: key[1] },
    status: { S: "settled" },
    settlement_tx: { S: transaction },
    revision: number(2),
    digest: { S: createHash("sha256").update(members).digest("hex") },
    signature: { S: sign(null, Buffer.from(members), receipts).toString("base64url") },
  };
  const result = { ":completed": { S: "completed" }, ":result": { S: "{}" } };
  const open = "open, due, lease_until, intent";
  await db.send(
    new TransactWriteItemsCommand({
      TransactItems: [
        { Update: change(job, "outcome = :completed, result = :result", result, open) },
        {
          Put: {
            TableName: "agora-ledger",
            Item: receipt,
            ConditionExpression: "#revision = :before",
            ExpressionAttributeNames: { "#revision": "revision" },
            ExpressionAttributeValues: { ":before": number(1) },
          },
        },
      ],
    }),
  );
}

async function work(event) {
  const batchItemFailures = [];
  for (const record of event.Records) {
    try {
      const { request_id } = JSON.parse(record.body);
      const { Attributes: job } = await db.send(
        new UpdateItemCommand({
          TableName: "agora-jobs",
          Key: { pk: { S: `JOB#${request_id}` }, sk: { S: "JOB" } },
          UpdateExpression: "SET #attempt = #attempt + :one, #lease_until = :until",
          ConditionExpression: "attribute_exists(#open) AND (attribute_not_exists(#lease_until) OR #lease_until < :now)",
          ExpressionAttributeNames: { "#attempt": "attempt", "#lease_until": "lease_until", "#open": "open" },
          ExpressionAttributeValues: { ":one": number(1), ":until": number(Date.now() + 40_000), ":now": number(Date.now()) },
          ReturnValues: "ALL_NEW",
        }),
      );
      await finish(job, await settle(job));
    } catch (error) {
      console.error(error);
      batchItemFailures.push({ itemIdentifier: record.messageId });
    }
  }
  return { batchItemFailures };
}

async function start() {
  receipts = await receiptKey();
  relayer = privateKeyToAccount(`0x${(await derived(process.env.RELAYER_SECRET_ARN, "relayer")).toString("hex")}`);
  await get("jobs", "WARM", "WARM");
  await run(work);
}

start();
