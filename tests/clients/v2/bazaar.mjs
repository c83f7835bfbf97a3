// Judges the bazaar extensions of a file with the official package: one line each. Usage: node bazaar.mjs file.json, of
// {challenges: [PaymentRequired of x402 v2...], extensions: [extension...]}.
import { readFileSync } from 'node:fs';
import { extractDiscoveryInfo, validateDiscoveryExtension, validateDiscoveryExtensionSpec } from '@x402/extensions/bazaar';

const { challenges, extensions } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
// What a directory is fed with: the payload of a client, which echoes the challenge.
const catalogued = ({ resource, accepts, extensions }) => {
  const payload = { x402Version: 2, resource, accepted: accepts[0], payload: {}, extensions };
  return extractDiscoveryInfo(payload, accepts[0]);
};
console.warn = () => {}; // format "uri" is not known to the validator, which is no fault
for (const extension of [...challenges.map((challenge) => challenge.extensions.bazaar), ...extensions]) {
  const [schema, spec] = [validateDiscoveryExtension(extension), validateDiscoveryExtensionSpec(extension)];
  console.log(JSON.stringify({ valid: schema.valid && spec.valid, errors: [...(schema.errors ?? []), ...(spec.errors ?? [])] }));
}
for (const challenge of challenges) {
  const { resourceUrl, method, discoveryInfo } = catalogued(challenge);
  console.log(JSON.stringify({ resourceUrl, method, body: discoveryInfo.input.body }));
}
