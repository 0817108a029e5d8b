// Which addresses may be dialled: ranges, exemptions, denials, own addresses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { describeAddress, parseCidr } from '#src/adapters/outbound/addresses.ts';
import {
  type AddressFacts,
  type AddressRules,
  type Cidr,
  isInside,
  isNat64Prefix,
  judgeAddress,
  sameAddress,
} from '#src/domain/destination/addresses.ts';

function facts(text: string): AddressFacts {
  const described = describeAddress(text);
  assert.ok(described, text);
  return described;
}

function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  assert.ok(parsed, text);
  return parsed;
}

const judge = (text: string, rules: AddressRules, ownAllowed = false) =>
  judgeAddress(facts(text), rules, describeAddress, ownAllowed);

const none: AddressRules = { allow: [], deny: [], own: [], nat64: null };
const allowed = { allowed: true, exempted: false };
const exempted = { allowed: true, exempted: true };
const denied = { allowed: false };

test('a public address is allowed, a private one is not', () => {
  assert.deepEqual(judge('8.8.8.8', none), allowed);
  assert.deepEqual(judge('2606:4700::1111', none), allowed);
  assert.deepEqual(judge('10.1.2.3', none), denied);
  assert.deepEqual(judge('fd00::1', none), denied);
});

test('an address that the parser calls unicast is refused outside 2000::/3', () => {
  const unassigned = facts('4000::1');
  assert.equal(unassigned.range, 'unicast');
  assert.deepEqual(judgeAddress(unassigned, none, describeAddress), denied);
});

test('EGRESS_ALLOW_CIDRS exempts exactly its ranges, and the verdict states it', () => {
  const rules = { ...none, allow: [cidr('127.0.0.0/8'), cidr('fd00:1::/32')] };
  assert.deepEqual(judge('127.255.0.1', rules), exempted);
  assert.deepEqual(judge('fd00:1::5', rules), exempted);
  assert.deepEqual(judge('10.0.0.1', rules), denied);
  assert.deepEqual(judge('fd00:2::5', rules), denied);
  assert.deepEqual(judge('::ffff:127.0.0.1', rules), denied);
});

test('a public address inside an exempt range is allowed without an exemption', () => {
  assert.deepEqual(judge('8.8.8.8', { ...none, allow: [cidr('8.0.0.0/8')] }), allowed);
});

test('EGRESS_DENY_CIDRS refuses in every case', () => {
  const rules = { ...none, allow: [cidr('127.0.0.0/8')], deny: [cidr('8.8.0.0/16'), cidr('127.0.0.9')] };
  assert.deepEqual(judge('8.8.4.4', rules), denied);
  assert.deepEqual(judge('8.9.0.0', rules), allowed);
  assert.deepEqual(judge('127.0.0.9', rules, true), denied);
});

test('the own public addresses are refused, except for the canary', () => {
  const rules = { ...none, own: [facts('93.184.215.14'), facts('2606:4700::1')] };
  assert.deepEqual(judge('93.184.215.14', rules), denied);
  assert.deepEqual(judge('2606:4700:0::1', rules), denied);
  assert.deepEqual(judge('93.184.215.15', rules), allowed);
  assert.deepEqual(judge('93.184.215.14', rules, true), allowed);
});

test('an own non-public address is allowed if it is exempt', () => {
  const rules = { allow: [cidr('127.0.0.0/8')], deny: [], own: [facts('127.0.0.1')], nat64: null };
  assert.deepEqual(judge('127.0.0.1', rules), exempted);
});

test('the canary does not allow a non-public address', () => {
  assert.deepEqual(judge('127.0.0.1', none, true), denied);
});

test('of a NAT64 address the IPv4 address in it is judged, whatever is exempted', () => {
  const allow = ['64:ff9b::/96', '2001:db8:64::/96', '::/0', '0.0.0.0/0', '127.0.0.0/8'].map(cidr);
  const deny = [cidr('8.8.4.0/24')];
  const own = [facts('93.184.215.14')];
  const rules = { allow, deny, own, nat64: cidr('2001:db8:64::/96') };
  for (const prefix of ['64:ff9b::', '2001:db8:64::']) {
    for (const ipv4 of [
      '127.0.0.1',
      '10.0.0.1',
      '169.254.169.254',
      '168.63.129.16',
      '8.8.4.4',
      '93.184.215.14',
    ])
      assert.deepEqual(judge(`${prefix}${ipv4}`, rules), denied, `${prefix}${ipv4}`);
    assert.deepEqual(judge(`${prefix}8.8.8.8`, rules), allowed);
    assert.deepEqual(judge(`${prefix}93.184.215.14`, rules, true), allowed);
  }
  assert.deepEqual(judge('64:ff9b::808:808', { ...none, deny: [cidr('64:ff9b::/96')] }), denied);
});

test('a prefix that is not EGRESS_NAT64_PREFIX is judged by its own range', () => {
  assert.deepEqual(judge('64:ff9b:1::8.8.8.8', none), denied);
  assert.deepEqual(judge('64:ff9b:1::8.8.8.8', { ...none, nat64: cidr('64:ff9b:1::/96') }), allowed);
  assert.deepEqual(judge('2001:67c:27e4:64::10.0.0.1', none), allowed);
  assert.deepEqual(
    judge('2001:67c:27e4:64::10.0.0.1', { ...none, nat64: cidr('2001:67c:27e4:64::/96') }),
    denied,
  );
});

test('the IPv4 address is found behind a prefix of each length (RFC 6052 2.4)', () => {
  for (const [prefix, loopback, good] of [
    ['2001:db8::/32', '2001:db8:7f00:1::', '2001:db8:808:808::'],
    ['2001:db8:100::/40', '2001:db8:17f:0:1::', '2001:db8:108:808:8::'],
    ['2001:db8:122::/48', '2001:db8:122:7f00:0:100::', '2001:db8:122:808:8:800::'],
    ['2001:db8:122:300::/56', '2001:db8:122:37f:0:1::', '2001:db8:122:308:8:808::'],
    ['2001:db8:122:344::/64', '2001:db8:122:344:7f:0:100:0', '2001:db8:122:344:8:808:800:0'],
    ['2001:db8:122:344::/96', '2001:db8:122:344::7f00:1', '2001:db8:122:344::808:808'],
  ] as const) {
    const rules = { ...none, nat64: cidr(prefix) };
    assert.ok(isNat64Prefix(cidr(prefix)));
    assert.deepEqual(judge(loopback, rules), denied, prefix);
    assert.deepEqual(judge(good, rules), allowed, prefix);
  }
  assert.deepEqual(judge('2001:db8:808:808:100::', { ...none, nat64: cidr('2001:db8::/32') }), denied);
});

test('a CIDR contains the addresses that share its prefix, for every prefix', () => {
  const bytes = (size: number) => fc.array(fc.nat(255), { minLength: size, maxLength: size });
  const size = fc.constantFrom(4, 16);
  const pair = size.chain((n) => fc.tuple(bytes(n), bytes(n), fc.nat(n * 8)));
  fc.assert(
    fc.property(pair, ([a, b, prefix]) => {
      const bits = (list: readonly number[]) =>
        list.map((byte) => byte.toString(2).padStart(8, '0')).join('');
      assert.equal(isInside(a, { bytes: b, prefix }), bits(a).slice(0, prefix) === bits(b).slice(0, prefix));
      const near = a.map((byte, i) => (i === a.length - 1 ? byte ^ 1 : byte));
      assert.equal(isInside(a, { bytes: near, prefix: a.length * 8 }), false);
      assert.equal(isInside(a, { bytes: near, prefix: a.length * 8 - 1 }), true);
    }),
  );
});

test('an IPv4 address is in no IPv6 range, and the other way round', () => {
  assert.equal(isInside([127, 0, 0, 1], cidr('::/0')), false);
  assert.equal(isInside(facts('::7f00:1').bytes, cidr('0.0.0.0/0')), false);
  assert.equal(sameAddress(facts('127.0.0.1'), facts('::ffff:127.0.0.1')), false);
});
