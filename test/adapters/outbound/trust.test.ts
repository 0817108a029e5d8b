// The root certificates that an outbound call trusts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getCACertificates } from 'node:tls';
import { outboundTlsContext, readCertificates, rootsWith } from '#src/adapters/outbound/connection.ts';
import { makeTestCa } from '#test/support/process/test-ca.ts';

test('extra roots are added to those of the runtime and replace none', () => {
  const own = getCACertificates('default');
  assert.ok(own.length > 100);
  const { pem } = makeTestCa();
  assert.deepEqual(rootsWith(pem).slice(0, own.length), own);
  assert.equal(rootsWith(pem).length, own.length + 1);
});

test('every certificate of a PEM file is read, and other text is ignored', () => {
  const [one, two] = [makeTestCa('one').pem, makeTestCa('two').pem];
  const certificates = readCertificates(`# one\r\n${one.replaceAll('\n', '\r\n')}\nsubject=two\n${two}`);
  assert.equal(certificates.length, 2);
});

test('a file without a certificate, or with an invalid one, is an error at the start', () => {
  assert.throws(() => outboundTlsContext(''));
  assert.throws(() => outboundTlsContext('-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----'));
  assert.throws(() => outboundTlsContext('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'));
});
