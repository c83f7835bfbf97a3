// A seller's service in TypeScript: adds two numbers for whoever paid, by the check of docs/SELLING.md. Its first line is its
// port. It reads the check when a line arrives on standard input.
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { buffer } from "node:stream/consumers";

const server = createServer(async (request, response) => {
  const body = await buffer(request);
  const token = String(request.headers["x-paid-call"] ?? "");
  const answer = (status: number, said: object) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(said));
  };
  try {
    const claims = await check.paidCall(token, "POST", `http://${request.headers.host}${request.url}`, body);
    const { numbers } = JSON.parse(body.toString()) as { numbers: number[] };
    answer(200, { sum: numbers.reduce((sum, number) => sum + number, 0), claims, token });
  } catch (error) {
    answer(401, { error: String(error) });
  }
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: (server.address() as { port: number }).port })));
await once(createInterface(process.stdin), "line");
const check = await import("./paid-call.mjs");
