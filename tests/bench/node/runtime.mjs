// Lambda's Runtime API in a few lines: ask for an event, answer it, ask again.

import http from "node:http";

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const agent = new http.Agent({ keepAlive: true });

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host, port, method, path: `/2018-06-01/runtime/invocation/${path}`, agent }, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () => resolve({ headers: answer.headers, body: Buffer.concat(chunks).toString() }));
    });
    request.on("error", reject);
    request.end(body);
  });
}

export async function run(handler) {
  for (;;) {
    const next = await ask("GET", "next");
    const id = next.headers["lambda-runtime-aws-request-id"];
    try {
      await ask("POST", `${id}/response`, JSON.stringify(await handler(JSON.parse(next.body))));
    } catch (error) {
      await ask("POST", `${id}/error`, JSON.stringify({ errorMessage: String(error), errorType: error.name }));
    }
  }
}

// An answer for the HTTP API.
export function json(statusCode, body, headers = {}) {
  return { statusCode, headers: { "content-type": "application/json", "cache-control": "no-store", ...headers }, body: JSON.stringify(body) };
}
