// The directory of the keys that sign outbound requests, as a verifier of Web Bot Auth reads it.
import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import { createVerifier, httpbis } from 'http-message-signatures';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const PATH = '/.well-known/http-message-signatures-directory';

async function directoryOf(...keys: readonly ReturnType<typeof testKey>[]) {
  const records = keys.map((key, n) => ({ key, notBefore: 100 + n, notAfter: n === 0 ? null : 200 }));
  const world = fakeWorld({ agentKeys: () => records, clock: systemClock() });
  const { status, headers, body } = await clientOf(world).get(PATH);
  assert.equal(status, 200);
  assert.equal(headers.get('content-type'), 'application/http-message-signatures-directory+json');
  const parsed: { readonly keys: readonly { readonly kid: string }[] } =
    typeof body === 'string' ? JSON.parse(body) : body;
  return { headers, body: parsed, baseUrl: world.settings.baseUrl };
}

test('it has each key with its window, and is signed by each for this host', async () => {
  const [one, two] = [testKey(), testKey()];
  const { headers, body, baseUrl } = await directoryOf(one, two);
  const jwk = { kty: 'OKP', crv: 'Ed25519', use: 'sig' };
  assert.deepEqual(body, {
    keys: [
      { ...jwk, kid: one.keyId, x: one.x, nbf: 100 },
      { ...jwk, kid: two.keyId, x: two.x, nbf: 101, exp: 200 },
    ],
  });
  const used: string[] = [];
  const valid = await httpbis.verifyMessage(
    {
      all: true,
      async keyLookup({ keyid = '' }) {
        used.push(keyid);
        const key = body.keys.find(({ kid }) => kid === keyid) ?? assert.fail(keyid);
        const pem = createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
        return { verify: createVerifier(pem, 'ed25519') };
      },
    },
    { status: 200, headers: Object.fromEntries(headers) },
    { method: 'GET', url: `${baseUrl}${PATH}`, headers: {} },
  );
  assert.deepEqual([valid, used], [true, [one.keyId, two.keyId]]);
  assert.match(headers.get('signature-input') ?? '', /;tag="http-message-signatures-directory"/);
});

test('it is empty and unsigned where outbound requests are not signed', async () => {
  const { headers, body } = await directoryOf();
  assert.deepEqual([body, headers.has('signature')], [{ keys: [] }, false]);
});
