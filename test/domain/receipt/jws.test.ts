import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { compactVerify, importJWK } from 'jose';
import { canonicalJson, type Json } from '#src/domain/canonical-json.ts';
import { parseJws, RECEIPT_TYPE, shownSignature } from '#src/domain/receipt/payload.ts';
import { verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import { forged, goodFacts, payloadOf, signed } from '#test/support/given/given-receipt.ts';
import { primitives, type TestKey, testKey } from '#test/support/given/primitives.ts';

const key = testKey();
const header = (changes: object = {}) => ({ alg: 'EdDSA', kid: key.keyId, typ: RECEIPT_TYPE, ...changes });

async function signatureOf(jws: string, keys = [key.record]) {
  const facts = await goodFacts(key);
  const report = await verifySignedReceipt({ ...facts, jws, keys }, primitives);
  assert.equal(report.checks.length, 17, 'every check is returned');
  if (!report.signatureVerified) assert.equal(report.ok, false);
  return report.signatureVerified;
}

test('jose agrees: the JWS verifies with the published JWK, header and payload as specified', async () => {
  const payload = await payloadOf();
  const jws = await signed(payload, key);
  const verified = await compactVerify(jws, await importJWK(toJwk(key.record), 'EdDSA'));
  assert.deepEqual(verified.protectedHeader, header());
  assert.equal(new TextDecoder().decode(verified.payload), canonicalJson(payload as Json));
  assert.equal(await signatureOf(jws), true);
});

test('jose refuses a changed payload too', async () => {
  const [head, , tail] = (await signed(await payloadOf(), key)).split('.');
  const jws = `${head}.${Buffer.from(JSON.stringify({ ...(await payloadOf()), iat: 1 })).toString('base64url')}.${tail}`;
  await assert.rejects(compactVerify(jws, await importJWK(toJwk(key.record), 'EdDSA')));
  assert.equal(await signatureOf(jws), false);
});

test('the transmitted bytes are verified: a payload with white space verifies, and is not made canonical', async () => {
  const part = (text: string) => Buffer.from(text).toString('base64url');
  const input = `${part(JSON.stringify(header()))}.${part(JSON.stringify(await payloadOf(), null, 2))}`;
  const jws = `${input}.${Buffer.from(await key.sign(Buffer.from(input))).toString('base64url')}`;
  assert.equal(await signatureOf(jws), true);
});

const attacker = testKey();
const jwk = { kty: 'OKP', crv: 'Ed25519', x: attacker.x };
/** The relay's `kid` with another key's signature: only a verifier that trusts the header would accept it. */
const HEADERS: readonly (readonly [string, object, TestKey])[] = [
  ['alg none', header({ alg: 'none' }), key],
  ['alg in another case', header({ alg: 'eddsa' }), key],
  ['no alg', header({ alg: undefined }), key],
  ['alg ES256', header({ alg: 'ES256' }), key],
  ['another typ', header({ typ: 'JWT' }), key],
  ['no typ', header({ typ: undefined }), key],
  ['an unknown kid', header({ kid: attacker.keyId }), attacker],
  ['a kid that is no text', header({ kid: 7 }), key],
  ['no kid', header({ kid: undefined }), key],
  ['a key in the header', header({ jwk }), attacker],
  ['a key in the header under its own kid', header({ jwk, kid: attacker.keyId }), attacker],
  ['a certificate in the header', header({ x5c: ['AAAA'] }), attacker],
  ['a critical extension', header({ crit: ['exp'], exp: 1 }), key],
  ['an empty list of critical extensions', header({ crit: [] }), key],
  ['b64 false', header({ b64: false, crit: ['b64'] }), key],
];

for (const [why, head, signer] of HEADERS) {
  test(`refused, though validly signed: ${why}`, async () => {
    assert.equal(await signatureOf(await forged(head, await payloadOf(), signer)), false);
  });
}

test('an unknown header member that is not critical is no reason to refuse', async () => {
  assert.equal(await signatureOf(await forged(header({ note: 'x' }), await payloadOf(), key)), true);
});

test('alg none with an empty signature is refused', async () => {
  const jws = await forged(header({ alg: 'none' }), await payloadOf(), key);
  assert.equal(await signatureOf(jws.slice(0, jws.lastIndexOf('.') + 1)), false);
});

test('HS256 with the public key as its secret is refused', async () => {
  const jws = await forged(header({ alg: 'HS256' }), await payloadOf(), key);
  const input = jws.slice(0, jws.lastIndexOf('.'));
  for (const secret of [Buffer.from(key.x, 'base64url'), key.x, JSON.stringify(toJwk(key.record))]) {
    const mac = createHmac('sha256', secret).update(input).digest('base64url');
    assert.equal(await signatureOf(`${input}.${mac}`), false);
  }
});

const REFUSED_FORMS: readonly (readonly [string, (jws: string) => string])[] = [
  ['nothing', () => ''],
  ['two parts', (jws) => jws.slice(0, jws.lastIndexOf('.'))],
  ['a fourth part', (jws) => `${jws}.`],
  ['a fourth part with bytes', (jws) => `${jws}.AAAA`],
  ['trailing data', (jws) => `${jws}AA`],
  ['a trailing line end', (jws) => `${jws}\n`],
  ['a leading blank', (jws) => ` ${jws}`],
  ['padding', (jws) => `${jws}==`],
  ['padding inside', (jws) => jws.replace('.', '=.')],
  ['a signature cut short', (jws) => jws.slice(0, -4)],
  ['no signature', (jws) => jws.slice(0, jws.lastIndexOf('.') + 1)],
  ['unused bits set in the signature (64 bytes leave 4)', (jws) => nextLetter(jws)],
  ['the standard alphabet', (jws) => standardAlphabet(jws)],
  [
    'a payload that is no JSON',
    (jws) => jws.replace(/\.[^.]+\./, `.${Buffer.from('{').toString('base64url')}.`),
  ],
  ['a header that is no UTF-8', (jws) => jws.replace(/^[^.]+/, '_w')],
  ['a header that is null', (jws) => jws.replace(/^[^.]+/, Buffer.from('null').toString('base64url'))],
  ['a header that is a list', (jws) => jws.replace(/^[^.]+/, Buffer.from('[]').toString('base64url'))],
];

for (const [why, change] of REFUSED_FORMS) {
  test(`refused form: ${why}`, async () => {
    const jws = await signed(await payloadOf(), key);
    assert.notEqual(change(jws), jws, 'the form really changed');
    assert.equal(await signatureOf(change(jws)), false);
  });
}

/** Another base64url form of the same bytes: the last letter of 64 bytes has 2 bits of data and 4 unused ones. */
function nextLetter(jws: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const other = `${jws.slice(0, -1)}${letters[letters.indexOf(jws.slice(-1)) + 1]}`;
  const bytes = (text: string) => Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url');
  assert.deepEqual(bytes(other), bytes(jws));
  return other;
}

/** A letter of the signature becomes one that only base64's standard alphabet has. */
function standardAlphabet(jws: string): string {
  return jws.replace(/[A-Za-z0-9]([^.]{0,80})$/, '+$1');
}

const PAYLOADS: readonly (readonly [string, (payload: object) => unknown])[] = [
  ['an unknown version', (p) => ({ ...p, v: 2 })],
  ['no version', (p) => ({ ...p, v: undefined })],
  ['a field too many', (p) => ({ ...p, extra: true })],
  ['a field too few', (p) => ({ ...p, jobId: undefined })],
  ['null', () => null],
  ['a number', () => 7],
];

for (const [why, change] of PAYLOADS) {
  test(`validly signed, but payload_version_supported fails: ${why}`, async () => {
    const jws = await forged(header(), change(await payloadOf()), key);
    const report = await verifySignedReceipt({ ...(await goodFacts(key)), jws }, primitives);
    const failed = report.checks.filter(({ ok }) => !ok).map(({ name }) => name);
    assert.equal(report.checks.length, 17);
    assert.equal(report.signatureVerified, true);
    assert.equal(report.ok, false);
    assert.ok(failed.includes('payload_version_supported'), failed.join());
  });
}

test('validly signed, but with a lone surrogate: a report that is not ok, and no exception', async () => {
  const jws = await forged(header(), { ...(await payloadOf()), receiptId: '\ud800' }, key);
  for (const known of [{}, { job: null, receiptId: null, jobId: null }]) {
    const report = await verifySignedReceipt({ ...(await goodFacts(key)), ...known, jws }, primitives);
    const failed = report.checks.filter(({ ok }) => !ok).map(({ name }) => name);
    assert.equal(report.ok, false);
    assert.ok(failed.includes('receipt_present'), failed.join());
  }
});

test('an unknown version is named in the details', async () => {
  const jws = await forged(header(), { ...(await payloadOf()), v: 5 }, key);
  const report = await verifySignedReceipt({ ...(await goodFacts(key)), jws }, primitives);
  const check = report.checks.find(({ name }) => name === 'payload_version_supported');
  assert.deepEqual(check?.details, { supported: [1, 2, 3, 4], receipt: 5 });
});

test('the shown signature is the third part, prefixed', async () => {
  const jws = await signed(await payloadOf(), key);
  assert.equal(shownSignature(jws), `ed25519:${jws.split('.')[2]}`);
  assert.equal(parseJws(jws)?.signature.length, 64);
});
