// Receipts of the published test vectors and their twins, their disclosures, and the payment that one states.
import { Buffer } from 'node:buffer';
import { utf8 } from '#src/domain/encoding.ts';
import { disclose } from '#src/domain/receipt/disclosures.ts';
import { forged, signed } from './given-receipt.ts';
import {
  DISCLOSURES,
  FOREIGN_DISCLOSURE,
  HIDDEN,
  PAYLOADS,
  SIGNED_PAYMENT,
  schedule,
} from './vector-jobs.ts';
import {
  current,
  former,
  type KeyedVector,
  keySet,
  stranger,
  twinsOf,
  type Vector,
  valid,
} from './vector-keys.ts';

const { free } = PAYLOADS;

const header = (changes: object = {}) => ({
  alg: 'EdDSA',
  kid: current.keyId,
  typ: 'relay-receipt+jws',
  ...changes,
});
const UNREADABLE = [
  'key_valid_at_issue',
  'payload_version_supported',
  'request_commitment_present',
  'response_commitment_present',
];

/** The parts of a JWS joined with another payload or signature. */
function withPart(jws: string, at: number, part: string): string {
  return jws.split('.').with(at, part).join('.');
}
const base64url = (text: string) => Buffer.from(text).toString('base64url');

/** A payload text as it is, truly signed by the current key. */
async function signedText(text: string): Promise<string> {
  const input = `${base64url(JSON.stringify(header()))}.${base64url(text)}`;
  return `${input}.${Buffer.from(await current.sign(utf8(input))).toString('base64url')}`;
}

type ReceiptInput = { readonly jws: string; readonly keys: object };

async function twinsOfFree(vector: Vector<ReceiptInput>) {
  const { jws } = vector.input;
  const { iat } = free;
  const by = async (payload: unknown) => ({ jws: await forged(header(), payload, current) });
  const under = async (changes: object) => ({ jws: await forged(header(changes), free, current) });
  const other = (await signed({ ...free, iat: iat + 1 }, current)).split('.')[2] ?? '';
  const text = JSON.stringify(JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()));
  const { request, outcome } = free;
  const requestOf = (_sd: readonly string[]) => ({ ...free, request: { ...request, _sd } });
  const byStranger = { jws: await forged(header({ kid: stranger.keyId }), free, stranger) };
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: stranger.x };
  const { keyId: kid } = stranger;
  return twinsOf(vector, [
    [
      'payload-changed',
      'One member of the payload was changed.',
      { jws: withPart(jws, 1, base64url(text.replace('"demo"', '"x402"'))) },
      ['signature_valid'],
    ],
    [
      'signature-of-another',
      'The signature is that of another receipt.',
      { jws: withPart(jws, 2, other) },
      ['signature_valid'],
    ],
    [
      'wrong-key',
      'The header names the key, and another key signed.',
      { jws: await forged(header(), free, stranger) },
      ['signature_valid'],
    ],
    [
      'unknown-key',
      'The key set does not contain the key.',
      byStranger,
      ['signature_valid', 'key_valid_at_issue'],
    ],
    [
      'key-in-header',
      'The key in a header is never used.',
      { jws: await forged(header({ kid, jwk }), free, stranger) },
      ['signature_valid', 'key_valid_at_issue'],
    ],
    ['algorithm-none', 'The algorithm must be EdDSA.', await under({ alg: 'none' }), ['signature_valid']],
    [
      'another-type',
      'A JWS of another type is no receipt.',
      await under({ typ: 'JWT' }),
      ['signature_valid'],
    ],
    [
      'critical-extension',
      'A critical extension that is not understood is refused (RFC 7515 §4.1.11).',
      await under({ crit: ['exp'], exp: iat }),
      ['signature_valid'],
    ],
    [
      'key-not-yet-valid',
      '`iat` is before `nbf` of the key.',
      { keys: keySet({ notBefore: iat + 1 }) },
      ['key_valid_at_issue'],
    ],
    [
      'key-expired',
      '`iat` is after `exp` of the key.',
      { keys: keySet({ notAfter: iat - 1 }) },
      ['key_valid_at_issue'],
    ],
    [
      'key-compromised',
      '`iat` is `revokedAt` of the key or later.',
      { keys: keySet({ compromisedAt: iat }) },
      ['key_valid_at_issue'],
    ],
    [
      'key-of-checkpoints',
      'A checkpoint key signs no receipts.',
      { keys: keySet({ purpose: 'checkpoint' }) },
      ['key_valid_at_issue'],
    ],
    ['unknown-version', 'The version is none of 1 to 4.', await by({ ...free, v: 5 }), UNREADABLE],
    ['version-no-number', 'JSON `true` is not the number 1.', await by({ ...free, v: true }), UNREADABLE],
    ['member-added', 'A version has no further members.', await by({ ...free, note: 'x' }), UNREADABLE],
    [
      'member-missing',
      'A member of the version is missing.',
      await by({ ...free, payment: undefined }),
      UNREADABLE,
    ],
    [
      'schedule-in-version-2',
      'Only version 4 states a run of a schedule.',
      await by({ ...free, schedule }),
      UNREADABLE,
    ],
    [
      'unknown-length-in-version-2',
      'Only versions 3 and 4 state `unknown`.',
      await by({ ...free, outcome: { ...outcome, truncated: 'unknown' } }),
      UNREADABLE,
    ],
    [
      'blanks',
      'The payload must have no blanks: two parsers could read it differently.',
      { jws: await signedText(JSON.stringify(free, null, 1)) },
      UNREADABLE,
    ],
    [
      'name-twice',
      'The payload names a member twice.',
      { jws: await signedText(text.replace('{', '{"iat":1,')) },
      UNREADABLE,
    ],
    [
      'commitments-missing',
      'A request has at least four commitments.',
      await by(requestOf(request._sd.slice(2))),
      ['request_commitment_present'],
    ],
    [
      'commitment-twice',
      'Each commitment of a request occurs once.',
      await by(requestOf(request._sd.with(1, request._sd[0] ?? ''))),
      ['request_commitment_present'],
    ],
    [
      'response-uncommitted',
      'A response has one commitment.',
      await by({ ...free, outcome: { ...outcome, _sd: [] } }),
      ['response_commitment_present'],
    ],
  ]);
}

/** The valid receipts: the name of the payload, what it shows, and the versions that it has. */
const WHY: Readonly<Record<keyof typeof PAYLOADS, string>> = {
  free: 'Version 2: an execution without a payment, in a relay with a transparency log.',
  paid: 'Version 2: an execution that a payment bought, with the decision before it.',
  'no-log': 'Version 1: a relay without a transparency log.',
  'unknown-length': 'Version 3: the response may have been cut.',
  'scheduled-run': 'Version 4: a run of a schedule.',
  'failed-unreached': 'Version 2: no connection, so that there is no response and no commitment to one.',
  'failed-answered': 'Version 2: two attempts, the last answered 503.',
  'no-idempotency-key': 'Version 2: the request has no idempotency key, and four commitments.',
};

const receiptOf = async (name: keyof typeof PAYLOADS) =>
  valid('receipt', name, WHY[name], { jws: await signed(PAYLOADS[name], current), keys: keySet() });

export async function receiptVectors(): Promise<KeyedVector[]> {
  const names = Object.keys(WHY) as (keyof typeof WHY)[];
  const receipts = await Promise.all(names.map(receiptOf));
  const ofKeys = [
    valid('receipt', 'rotated-key', 'A retired key signed while it was valid.', {
      jws: await signed(free, former),
      keys: keySet(),
    }),
    valid('receipt', 'compromised-later', '`iat` is before `revokedAt` of the key.', {
      jws: await signed(free, current),
      keys: keySet({ compromisedAt: free.iat + 1 }),
    }),
  ];
  const twins = await Promise.all([receiptOf('free').then(twinsOfFree), twinsOfOthers()]);
  return [
    ...receipts,
    ...ofKeys,
    ...twins.flat(),
    ...(await disclosureVectors()),
    ...(await paymentVectors()),
  ];
}

/** What is particular to one version or outcome. */
async function twinsOfOthers(): Promise<KeyedVector[]> {
  const by = async (payload: unknown) => ({ jws: await forged(header(), payload, current) });
  const twin = async (
    name: keyof typeof PAYLOADS,
    ...[label, why, change, codes]: [string, string, (payload: Record<string, unknown>) => object, string[]]
  ) => twinsOf(await receiptOf(name), [[label, why, await by(change(PAYLOADS[name])), codes]]);
  const late = { jws: await signed({ ...free, iat: 1_767_400_001 }, former) };
  const rotated = valid('receipt', 'rotated-key', '', { jws: await signed(free, former), keys: keySet() });
  const unpaid = (jws: string) => {
    const payload = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
    return { jws: withPart(jws, 1, base64url(JSON.stringify({ ...payload, payment: null }))) };
  };
  const paid = await receiptOf('paid');
  const outcomeOf = (payload: Record<string, unknown>, change: object) => ({
    ...payload,
    outcome: { ...(payload.outcome as object), ...change },
  });
  const commitment = PAYLOADS.free.outcome._sd;
  return (
    await Promise.all([
      twinsOf(rotated, [
        ['signed-later', 'The retired key signed after its `exp`.', late, ['key_valid_at_issue']],
      ]),
      twinsOf(paid, [
        ['payment-removed', 'The payment was removed.', unpaid(paid.input.jws), ['signature_valid']],
      ]),
      twin('no-log', 'log-added', 'Version 1 names no log.', (p) => ({ ...p, log: null }), UNREADABLE),
      twin(
        'unknown-length',
        'length-known',
        'Version 3 is only for `unknown`.',
        (p) => outcomeOf(p, { truncated: false }),
        UNREADABLE,
      ),
      twin(
        'scheduled-run',
        'no-schedule',
        'Version 4 has the member `schedule`.',
        ({ schedule: _, ...p }) => p,
        UNREADABLE,
      ),
      twin(
        'failed-unreached',
        'response-committed',
        'Without a response there is no commitment to one.',
        (p) => outcomeOf(p, { _sd: commitment }),
        ['response_commitment_present'],
      ),
    ])
  ).flat();
}

/** `opened`: the names and values that the disclosures show, in their order. */
async function disclosureVectors(): Promise<KeyedVector[]> {
  const input = { jws: await signed(free, current), keys: keySet(), disclosures: DISCLOSURES };
  const why = 'Every commitment of the receipt is opened.';
  const opened = DISCLOSURES.map((text) => {
    const [, name, value] = JSON.parse(Buffer.from(text, 'base64url').toString());
    return [name, value] as const;
  });
  const good: Vector<typeof input> = {
    kind: 'disclosures',
    name: 'disclosures',
    why,
    input,
    expected: { valid: true, opened },
  };
  const [url = ''] = DISCLOSURES;
  const misplaced = disclose(new Uint8Array(16).fill(7), 'response_body_sha256', '0'.repeat(64));
  const other = disclose(new Uint8Array(16).fill(8), 'target_url', 'https://other.example/');
  const withIn = async (_sd: readonly string[]) =>
    signed({ ...free, request: { ...free.request, _sd: [..._sd] } }, current);
  const { _sd } = free.request;
  const kept = _sd.filter((one) => one !== HIDDEN);
  return [
    good,
    ...twinsOf(good, [
      [
        'another-url',
        'The receipt does not commit to this URL.',
        { disclosures: [FOREIGN_DISCLOSURE] },
        ['disclosure'],
        'not_committed',
      ],
      [
        'not-base64url',
        'A disclosure is base64url without padding.',
        { disclosures: [`${url}=`] },
        ['disclosure'],
        'malformed',
      ],
      [
        'in-another-list',
        'The receipt has the commitment, in the list of other names.',
        { jws: await withIn([...kept, misplaced.commitment]), disclosures: [misplaced.text] },
        ['disclosure'],
        'misplaced',
      ],
      [
        'name-twice',
        'A name has one value.',
        { jws: await withIn([...kept, other.commitment]), disclosures: [url, other.text] },
        ['disclosure'],
        'repeated',
      ],
    ]),
  ];
}

/** The signed payment of the paid receipt: SHA-256 of the canonical JSON of `{authorization, signature}`, in hex. */
async function paymentVectors(): Promise<KeyedVector[]> {
  const { authorization, signature } = SIGNED_PAYMENT;
  const input = { ...(await receiptOf('paid')).input, payment: SIGNED_PAYMENT };
  const good = valid('payment', 'payment-hash', 'The receipt states the hash of this signed payment.', input);
  const more = { payment: { authorization: { ...authorization, value: '3001' }, signature } };
  const another = { payment: { authorization, signature: signature.replace('ab', 'ac') } };
  const { jws } = (await receiptOf('free')).input;
  return [
    good,
    ...twinsOf(good, [
      ['another-amount', 'The authorization moves another amount.', more, ['payment_hash']],
      ['another-signature', 'The same authorization with another signature.', another, ['payment_hash']],
      ['unpaid-receipt', 'The receipt states no payment.', { jws }, ['payment_hash']],
    ]),
  ];
}
