import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importJWK } from 'jose';
import { type Jwk, toJwk } from '#src/domain/signing-keys/keys.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

type DidDocument = {
  readonly id: string;
  readonly verificationMethod: readonly {
    readonly id: string;
    readonly type: string;
    readonly controller: string;
    readonly expires?: string;
    readonly revoked?: string;
    readonly publicKeyJwk: Jwk;
  }[];
  readonly assertionMethod: readonly string[];
};

const DID = 'did:web:relay.example';
const X = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
const key = (kid: string, changes: Partial<Jwk> = {}): Jwk => ({
  kty: 'OKP',
  crv: 'Ed25519',
  kid,
  x: X,
  ...changes,
});

async function documentOf(keys: readonly Jwk[], changes: Parameters<typeof fakeWorld>[0] = {}) {
  const world = fakeWorld({ jwks: async () => ({ keys }), ...changes });
  const { status, headers, body } = await clientOf(world).get('/.well-known/did.json');
  assert.equal(status, 200);
  assert.equal(headers.get('cache-control'), 'public, max-age=60');
  return body as DidDocument;
}

test('did:web: the document is named by the host, an own port encoded', async () => {
  assert.equal((await documentOf([])).id, DID);
  for (const [baseUrl, did] of [
    ['http://127.0.0.1:3402', 'did:web:127.0.0.1%3A3402'],
    ['https://relay.example:8443/', 'did:web:relay.example%3A8443'],
    ['https://relay.example:443', DID],
  ] as const) {
    assert.equal((await documentOf([], { settings: { baseUrl } })).id, did);
  }
});

test('did:web: every key verifies permanently, only those that may sign receipts now make assertions', async () => {
  const clock = manualClock();
  const now = Math.floor(clock.now() / 1000);
  const keys = [
    key('active', { nbf: now - 100, use: 'sig', alg: 'EdDSA', purpose: 'receipt' }),
    key('checkpoint', { nbf: now - 100, purpose: 'checkpoint' }),
    key('retiring', { nbf: now - 100, exp: now + 600 }),
    key('retired', { nbf: now - 100, exp: now - 1 }),
    key('compromised', { nbf: now - 100, exp: now + 600, revokedAt: now - 50 }),
    key('early', { nbf: now + 60 }),
  ];
  const { verificationMethod, assertionMethod } = await documentOf(keys, { clock });
  assert.deepEqual(
    verificationMethod.map(({ id }) => id),
    keys.map(({ kid }) => `${DID}#${kid}`),
  );
  assert.deepEqual(assertionMethod, [`${DID}#active`, `${DID}#retiring`]);
  assert.deepEqual(verificationMethod[0], {
    id: `${DID}#active`,
    type: 'JsonWebKey2020',
    controller: DID,
    publicKeyJwk: keys[0],
  });
});

test('did:web: each key states its window, compromise date and purpose as the key set does, and as W3C names them', async () => {
  const AT = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000;
  const record = {
    keyId: 'k',
    purpose: 'receipt',
    x: X,
    notBefore: AT,
    notAfter: null,
    compromisedAt: null,
  } as const;
  const cases = [
    [{}, {}],
    [{ purpose: 'checkpoint' }, {}],
    [{ notAfter: AT + 60 }, { expires: '2026-01-02T03:05:05.000Z' }],
    [
      { notAfter: AT + 60, compromisedAt: AT + 1 },
      { expires: '2026-01-02T03:05:05.000Z', revoked: '2026-01-02T03:04:06.000Z' },
    ],
  ] as const;
  const keys = cases.map(([changes], n) => toJwk({ ...record, ...changes, keyId: `k${n}` }));
  const { verificationMethod } = await documentOf(keys);
  assert.deepEqual(
    verificationMethod,
    cases.map(([, window], n) => ({
      id: `${DID}#k${n}`,
      type: 'JsonWebKey2020',
      controller: DID,
      ...window,
      publicKeyJwk: keys[n],
    })),
  );
  const windows = verificationMethod.map(({ publicKeyJwk: { nbf, exp, revokedAt, purpose } }) => [
    nbf,
    exp,
    revokedAt,
    purpose,
  ]);
  assert.deepEqual(windows, [
    [AT, undefined, undefined, 'receipt'],
    [AT, undefined, undefined, 'checkpoint'],
    [AT, AT + 60, undefined, 'receipt'],
    [AT, AT + 60, AT + 1, 'receipt'],
  ]);
});

test('did:web: a key of the document can be imported unchanged, without a stated algorithm', async () => {
  const [method] = (await documentOf([key('k')])).verificationMethod;
  assert.ok(method);
  const imported = await importJWK({ ...method.publicKeyJwk });
  assert.ok(!(imported instanceof Uint8Array));
});
