// A receiver as its maker would write it: checks each post with the reference library and says what it found, a line of
// JSON each. The first line is its port; secrets come in by lines of standard input, the latest counts.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';

let secret;
createInterface({ input: process.stdin }).on('line', (line) => (secret = line));

const server = createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const body = Buffer.concat(pieces).toString();
  let found;
  try {
    const event = new Webhook(secret).verify(body, request.headers);
    found = { verified: true, type: event.type, id: request.headers['webhook-id'] };
  } catch (error) {
    found = { verified: false, why: error.message };
  }
  console.log(JSON.stringify(found));
  response.writeHead(found.verified ? 204 : 401).end();
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })));
