// EIP-55, with the addresses of its own text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checksummed, checksumState } from '#src/lib/evm-address.ts';

const EIP_55 = [
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
  '0xde709f2102306220921060314715629080e2fb77',
  '0x27b1fdb04752bbc536007a920d24acb045561c26',
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
];

test('the checksum of the addresses in EIP-55', () => {
  for (const address of EIP_55) {
    assert.equal(checksummed(address.toLowerCase()), address);
    assert.equal(checksumState(address), 'right');
  }
});

test('one digit or the case of one letter differs: the checksum is wrong; letters of one case have none', () => {
  for (const address of EIP_55.slice(4)) {
    const at = address.search(/[A-F]/);
    assert.equal(
      checksumState(`${address.slice(0, at)}${address[at]?.toLowerCase()}${address.slice(at + 1)}`),
      'wrong',
    );
    const last = address.endsWith('1') ? '2' : '1';
    assert.equal(checksumState(`${address.slice(0, -1)}${last}`), 'wrong');
    assert.equal(checksumState(address.toLowerCase()), 'absent');
    assert.equal(checksumState(`0x${address.slice(2).toUpperCase()}`), 'absent');
  }
  assert.equal(checksumState(`0x${'1'.repeat(40)}`), 'right');
});
