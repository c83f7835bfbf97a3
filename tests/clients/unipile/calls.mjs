// What our adapter asks, asked by Unipile's own SDK at our contract server. Strict: an answer that is not as the SDK expects is an
// error. Usage: node calls.mjs URL KEY. Prints the name of each call that was answered.
import { UnipileClient } from 'unipile-node-sdk';

const [url, key] = process.argv.slice(2);
const client = new UnipileClient(url, key, { validateRequestPayload: true, validateRequestPayloadLevel: 'error' });
const account_id = 'acc-sdk';
const member = 'p-friend-jane';

const calls = [
  ['link', () => client.account.createHostedAuthLink({
    type: 'create', providers: ['LINKEDIN'], api_url: url, expiresOn: new Date(Date.now() + 1_800_000).toISOString(),
    name: 'an-intent', notify_url: 'https://agora.example.com/callback',
  })],
  ['link again', () => client.account.createHostedAuthLink({
    type: 'reconnect', reconnect_account: account_id, api_url: url, expiresOn: new Date(Date.now() + 1_800_000).toISOString(),
    name: 'an-intent', notify_url: 'https://agora.example.com/callback',
  })],
  ['account', () => client.account.getOne(account_id)],
  ['history', () => client.account.resyncLinkedinAccount({ account_id })],
  ['profile', () => client.users.getProfile({ account_id, identifier: 'friend-jane' }, { extra_params: { notify: 'false' } })],
  ['message', () => client.messaging.startNewChat({ account_id, attendees_ids: [member], text: 'Hello' })],
  // Beside the chat, the account: nobody else's chat may be written to.
  ['reply', () => client.messaging.sendMessage({ chat_id: `chat-${member}`, text: 'Hello' }, { extra_params: { account_id } })],
  ['messages', () => client.messaging.getAllMessages({ account_id, limit: 250 })],
  ['chat', () => client.messaging.getChat(`chat-${member}`)],
  ['attendees', () => client.messaging.getAllAttendeesFromChat(`chat-${member}`)],
  ['reaction', () => client.users.sendPostReaction({ account_id, post_id: '7332661864792854528', reaction_type: 'insightful' })],
  ['invitation', () => client.users.sendInvitation({ account_id, provider_id: 'p-jane', message: 'We met in Lyon.' })],
  ['invitations', () => client.users.getAllInvitationsSent({ account_id, limit: 50 })],
  ['withdrawal', ({ items }) => client.users.cancelInvitationSent({ account_id, invitation_id: items[0].id })],
  ['deletion', () => client.account.delete(account_id)],
];
let last;
for (const [name, call] of calls) {
  try {
    last = await call(last);
  } catch (error) {
    console.error(name, JSON.stringify(error.body ?? [...(error.errors ?? [])].slice(0, 3)), error.message);
    process.exit(1);
  }
  console.log(name);
}
