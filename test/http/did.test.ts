import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importJWK } from 'jose';
import type { Jwk } from '#src/domain/receipt/keys.ts';
import { manualClock } from '#test/support/fakes.ts';
import { clientOf } from '#test/support/http-client.ts';
import { fakeWorld } from '#test/support/http-deps.ts';

type DidDocument = {
  readonly id: string;
  readonly verificationMethod: readonly {
    readonly id: string;
    readonly type: string;
    readonly controller: string;
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

test('did:web: every key verifies for ever, only those that may sign receipts now make assertions', async () => {
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
    publicKeyJwk: { kty: 'OKP', crv: 'Ed25519', kid: 'active', x: X, use: 'sig', alg: 'EdDSA' },
  });
});

test('did:web: a key of the document can be imported as it stands, without being told an algorithm', async () => {
  const [method] = (await documentOf([key('k')])).verificationMethod;
  assert.ok(method);
  const imported = await importJWK({ ...method.publicKeyJwk });
  assert.ok(!(imported instanceof Uint8Array));
});
