// GET /v1/tools/balance: an agent proof checked and used up, credits read, the balance asked of the chain.

import { ConditionalCheckFailedException, DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { createHash } from "node:crypto";
import { createPublicClient, erc20Abi, http, isAddressEqual, recoverTypedDataAddress } from "viem";
import { baseSepolia } from "viem/chains";
import { json, run } from "./runtime.mjs";

const db = new DynamoDBClient({});
const chain = createPublicClient({ chain: baseSepolia, transport: http(process.env.CHAIN_RPC_URL) });
const token = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const get = (table, pk, sk) =>
  db.send(new GetItemCommand({ TableName: `agora-${table}`, Key: { pk: { S: pk }, sk: { S: sk } } }));

const types = {
  AgentReadAuth: [
    { name: "agent", type: "address" },
    { name: "scope", type: "string" },
    { name: "issuedAt", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
};

async function proven(header) {
  const proof = JSON.parse(Buffer.from(header, "base64").toString());
  const age = Math.floor(Date.now() / 1000) - proof.issuedAt;
  if (age < -60 || age > 300) return null;
  const { signature, ...message } = proof;
  const signer = await recoverTypedDataAddress({
    domain: { name: "Agora Agent Auth", version: "1" },
    types,
    primaryType: "AgentReadAuth",
    message: { ...message, issuedAt: BigInt(message.issuedAt) },
    signature,
  });
  if (!isAddressEqual(signer, proof.agent)) return null;
  try {
    await db.send(
      new PutItemCommand({
        TableName: "agora-agents",
        Item: {
          pk: { S: `NONCE#${proof.agent.toLowerCase()}#${proof.nonce}` },
          sk: { S: "NONCE" },
          expires: { N: String(proof.issuedAt + 360) },
        },
        ConditionExpression: "attribute_not_exists(#pk)",
        ExpressionAttributeNames: { "#pk": "pk" },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    );
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return null;
    throw error;
  }
  return proof.agent;
}

async function balance(event) {
  const address = await proven(event.headers["x-agent-proof"]);
  if (!address) return json(401, { error: "invalid_proof" });
  const agent = createHash("sha256").update("agent").update(address.toLowerCase()).digest("hex").slice(0, 32);
  const [onChain, credits] = await Promise.all([
    chain.readContract({ address: token, abi: erc20Abi, functionName: "balanceOf", args: [address] }),
    get("ledger", `AGENT#${agent}`, "CREDITS"),
  ]);
  return json(200, {
    on_chain_balance: (Number(onChain) / 1e6).toFixed(6),
    credits_balance: (Number(credits.Item?.credits?.N ?? 0) / 1e6).toFixed(6),
    currency: "USDC",
    address,
    chain_id: baseSepolia.id,
  });
}

get("ledger", "WARM", "WARM").then(() => run(balance));
