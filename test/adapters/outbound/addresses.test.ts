// Parsers of addresses and URLs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeAddress, parseCidr } from '#src/adapters/outbound/addresses.ts';

test('an address in standard text is described', () => {
  assert.deepEqual(describeAddress('8.8.8.8'), {
    text: '8.8.8.8',
    family: 4,
    bytes: [8, 8, 8, 8],
    range: 'unicast',
  });
  assert.deepEqual(describeAddress('2001:DB8:0:0::1'), {
    text: '2001:db8::1',
    family: 6,
    bytes: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    range: 'reserved',
  });
  assert.equal(describeAddress('::ffff:8.8.8.8')?.range, 'ipv4Mapped');
  assert.equal(describeAddress('::ffff:8.8.8.8')?.family, 6);
});

test('no other spelling is an address', () => {
  for (const text of [
    '',
    '127.1',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '2130706433',
    '1.2.3.4 ',
    '1.2.3.4.',
    '[::1]',
    'fe80::1%eth0',
    ':::',
    'localhost',
    '1.2.3.256',
  ]) {
    assert.equal(describeAddress(text), null, text);
  }
});

test('a CIDR is an address and a prefix; a single address is a range of one', () => {
  assert.deepEqual(parseCidr(' 10.0.0.0/8 '), { bytes: [10, 0, 0, 0], prefix: 8 });
  assert.deepEqual(parseCidr('10.0.0.1'), { bytes: [10, 0, 0, 1], prefix: 32 });
  assert.equal(parseCidr('fd00::/8')?.prefix, 8);
  assert.equal(parseCidr('::1')?.prefix, 128);
  assert.equal(parseCidr('0.0.0.0/0')?.prefix, 0);
});

test('any other text is not a CIDR', () => {
  for (const text of [
    '',
    '/',
    '10/8',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '::/129',
    'x/8',
    '10.0.0.0/8x',
  ]) {
    assert.equal(parseCidr(text), null, text);
  }
});
