// Deliveries of the published test vectors, as a target receives them: signed headers (Standard Webhooks, v1a), and their twins.
import { Buffer } from 'node:buffer';
import { buildOutboundHeaders } from '#src/domain/destination/headers.ts';
import { JOB_ID, T0 } from './given-events.ts';
import type { TestKey } from './primitives.ts';
import { checkpointKey, current, type KeyedVector, keySet, twinsOf, valid } from './vector-keys.ts';

const AT = T0 / 1000;
const BODY = Buffer.from('{"order":17}');

async function headersBy(key: TestKey): Promise<Readonly<Record<string, string>>> {
  const facts = { jobId: JOB_ID, baseUrl: 'https://relay.example', pseudonym: 'relay.example', body: BODY };
  const pairs = await buildOutboundHeaders(
    { forwarded: [], stripped: [] },
    { ...facts, timestampSeconds: AT },
    key.sign,
  );
  return Object.fromEntries(pairs.filter(([name]) => name.startsWith('webhook-')));
}

/** `body`: base64. `now`: Unix seconds at the target. */
export async function deliveryVectors(): Promise<KeyedVector[]> {
  const headers = await headersBy(current);
  const good = valid('delivery', 'delivery', 'The current key signed, two seconds ago.', {
    headers,
    body: BODY.toString('base64'),
    now: AT + 2,
    keys: keySet(),
  });
  const having = (changes: Readonly<Record<string, string>>) => ({ headers: { ...headers, ...changes } });
  const { 'webhook-signature': signature = '', ...unsigned } = headers;
  const hmac = { 'webhook-signature': signature.replace('v1a,', 'v1,') };
  return [
    good,
    valid('delivery', 'delivery-two-signatures', 'One signature of several verifies.', {
      ...good.input,
      headers: { ...headers, 'webhook-signature': `v1,AAAA ${signature}` },
    }),
    ...twinsOf(good, [
      [
        'body-changed',
        'The body has one more byte.',
        { body: Buffer.concat([BODY, Buffer.from(' ')]).toString('base64') },
        ['delivery'],
        'signature',
      ],
      [
        'another-id',
        'The id is covered by the signature.',
        having({ 'webhook-id': `job_${'0'.repeat(26)}` }),
        ['delivery'],
        'signature',
      ],
      [
        'another-time',
        'The time is covered by the signature.',
        having({ 'webhook-timestamp': String(AT + 1) }),
        ['delivery'],
        'signature',
      ],
      ['unsigned', 'There is no signature.', { headers: unsigned }, ['delivery'], 'signature'],
      ['hmac', '`v1` is HMAC and not Ed25519.', having(hmac), ['delivery'], 'signature'],
      [
        'checkpoint-key',
        'A checkpoint key signs no deliveries.',
        { headers: await headersBy(checkpointKey) },
        ['delivery'],
        'key',
      ],
      [
        'compromised-key',
        'The key is compromised.',
        { keys: keySet({ compromisedAt: AT + 3600 }) },
        ['delivery'],
        'key',
      ],
      [
        'expired-key',
        'The key was retired before.',
        { keys: keySet({ notAfter: AT - 1 }) },
        ['delivery'],
        'key',
      ],
      ['too-old', 'The delivery is older than five minutes.', { now: AT + 301 }, ['delivery'], 'timestamp'],
      [
        'in-the-future',
        'The delivery is more than five minutes ahead.',
        { now: AT - 301 },
        ['delivery'],
        'timestamp',
      ],
    ]),
  ];
}
