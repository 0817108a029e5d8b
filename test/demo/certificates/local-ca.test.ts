// The certificates of the local authority, read with the runtime's X509Certificate.
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { makeLocalCa, makeSelfSigned } from '#src/demo/certificates/local-ca.ts';

const validity = { notBefore: new Date('2026-01-02T03:04:05Z'), notAfter: new Date('2049-01-02T03:04:05Z') };

test('the root is self-signed and signs its leaves; only the root is an authority', () => {
  const ca = makeLocalCa('a root', validity);
  const root = new X509Certificate(ca.pem);
  const { cert, key } = ca.issue({
    names: ['a.test', '*.b.test', '127.0.0.1', '::1', '2001:db8::5:0'],
    ...validity,
  });
  const leaf = new X509Certificate(cert);
  assert.equal(root.subject, 'CN=a root');
  assert.equal(root.ca, true);
  assert.ok(root.verify(root.publicKey));
  assert.equal(leaf.ca, false);
  assert.equal(leaf.issuer, 'CN=a root');
  assert.ok(leaf.verify(root.publicKey));
  assert.ok(leaf.checkIssued(root));
  assert.ok(leaf.checkPrivateKey(createPrivateKey(key)));
  assert.equal(leaf.checkHost('a.test'), 'a.test');
  assert.match(leaf.subjectAltName ?? '', /DNS:\*\.b\.test/);
  assert.equal(leaf.checkHost('c.test'), undefined);
  for (const address of ['127.0.0.1', '::1', '2001:db8::5:0']) assert.equal(leaf.checkIP(address), address);
  assert.equal(leaf.checkIP('127.0.0.2'), undefined);
});

test('the dates are those that were given', () => {
  const root = new X509Certificate(makeLocalCa('a root', validity).pem);
  assert.equal(Date.parse(root.validFrom), validity.notBefore.getTime());
  assert.equal(Date.parse(root.validTo), validity.notAfter.getTime());
});

test('two certificates have different keys and serial numbers', () => {
  const ca = makeLocalCa('a root', validity);
  const leaves = [1, 2].map(() => new X509Certificate(ca.issue({ names: ['a.test'], ...validity }).cert));
  assert.equal(new Set(leaves.map((leaf) => leaf.serialNumber)).size, 2);
  assert.equal(new Set(leaves.map((leaf) => leaf.publicKey.export({ type: 'spki', format: 'pem' }))).size, 2);
});

test('a self-signed certificate is not an authority', () => {
  const self = new X509Certificate(makeSelfSigned({ names: ['a.test'], ...validity }).cert);
  assert.equal(self.ca, false);
  assert.ok(self.verify(self.publicKey));
});
