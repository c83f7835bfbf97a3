// The service's keys, derived from its secret.

import { createHmac, createPrivateKey } from "node:crypto";
import { GetSecretValueCommand, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";

const client = new SecretsManagerClient({});

export async function derived(arn, purpose) {
  const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId: arn }));
  return createHmac("sha256", SecretString).update(purpose).digest();
}

// The key that receipts are signed with.
export async function receiptKey() {
  const seed = await derived(process.env.SERVICE_SECRET_ARN, "receipts");
  const prefix = Buffer.from("302e020100300506032b657004220420", "hex");
  return createPrivateKey({ key: Buffer.concat([prefix, seed]), format: "der", type: "pkcs8" });
}
