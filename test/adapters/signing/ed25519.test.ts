import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { calculateJwkThumbprint, compactVerify, importJWK } from 'jose';
import {
  ed25519SigningKey,
  ed25519Verify,
  publicX,
  rememberingVerify,
  thumbprint,
} from '#src/adapters/signing/ed25519.ts';
import { fromBase64url, toBase64url, utf8 } from '#src/domain/encoding.ts';

// RFC 8032 §7.1, TEST 2
const RFC8032 = {
  secret: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
  publicKey: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  message: '72',
  signature:
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
};
const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'));
const keyOf = (secret: string) =>
  createPrivateKey({
    key: Buffer.from(`302e020100300506032b657004220420${secret}`, 'hex'),
    format: 'der',
    type: 'pkcs8',
  });
const fresh = () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const x = publicX(privateKey);
  return { privateKey, x, keyId: thumbprint(x), publicKey: fromBase64url(x) ?? new Uint8Array() };
};

test('ed25519: signs and verifies the vector of RFC 8032 §7.1', async () => {
  const signer = ed25519SigningKey('rfc', keyOf(RFC8032.secret));
  const signature = await signer.sign(bytes(RFC8032.message));
  assert.equal(Buffer.from(signature).toString('hex'), RFC8032.signature);
  assert.equal(publicX(keyOf(RFC8032.secret)), toBase64url(bytes(RFC8032.publicKey)));
  assert.equal(await ed25519Verify(bytes(RFC8032.publicKey), bytes(RFC8032.message), signature), true);
});

for (const [name, verifies] of [
  ['ed25519', ed25519Verify],
  ['ed25519, remembering', rememberingVerify()],
] as const)
  test(`${name}: a changed byte of key, message or signature is invalid, and so is another size`, async () => {
    const { privateKey, keyId, publicKey } = fresh();
    const message = utf8('one message');
    const signature = await ed25519SigningKey(keyId, privateKey).sign(message);
    assert.equal(signature.length, 64);
    assert.equal(await verifies(publicKey, message, signature), true);
    const flipped = (source: Uint8Array, at: number) => source.map((byte, i) => (i === at ? byte ^ 1 : byte));
    for (let at = 0; at < 64; at++) {
      assert.equal(await verifies(publicKey, message, flipped(signature, at)), false, `signature ${at}`);
      if (at < 32)
        assert.equal(await verifies(flipped(publicKey, at), message, signature), false, `key ${at}`);
      if (at < message.length)
        assert.equal(await verifies(publicKey, flipped(message, at), signature), false);
    }
    assert.equal(await verifies(publicKey.subarray(1), message, signature), false);
    assert.equal(await verifies(publicKey, message, signature.subarray(1)), false);
    assert.equal(await verifies(publicKey, message, new Uint8Array(65)), false);
  });

test('ed25519: more keys than the cache holds verify, each under its own key', async () => {
  const message = utf8('m');
  const keys = await Promise.all(
    Array.from({ length: 150 }, async () => {
      const key = fresh();
      return { ...key, signature: await ed25519SigningKey(key.keyId, key.privateKey).sign(message) };
    }),
  );
  for (const [i, { publicKey, signature }] of keys.entries()) {
    const other = keys[(i + 1) % keys.length]?.publicKey ?? new Uint8Array();
    assert.equal(await ed25519Verify(publicKey, message, signature), true);
    assert.equal(await ed25519Verify(other, message, signature), false);
  }
});

test('ed25519: a JWS made with the signer verifies in jose, under the same thumbprint', async () => {
  const { privateKey, x, keyId } = fresh();
  const jwk = { kty: 'OKP', crv: 'Ed25519', x };
  assert.equal(await calculateJwkThumbprint(jwk), keyId);
  const input = `${toBase64url(utf8(JSON.stringify({ alg: 'EdDSA', kid: keyId })))}.${toBase64url(utf8('{"v":1}'))}`;
  const jws = `${input}.${toBase64url(await ed25519SigningKey(keyId, privateKey).sign(utf8(input)))}`;
  const verified = await compactVerify(jws, await importJWK(jwk, 'EdDSA'));
  assert.equal(new TextDecoder().decode(verified.payload), '{"v":1}');
});

test('thumbprint: the example of RFC 8037 appendix A.3', () => {
  assert.equal(
    thumbprint('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'),
    'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
  );
});
