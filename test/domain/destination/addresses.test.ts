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
  judgeAddress,
  sameAddress,
} from '#src/domain/destination/policy.ts';

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

const none: AddressRules = { allow: [], deny: [], own: [] };
const allowed = { allowed: true, exempted: false };
const exempted = { allowed: true, exempted: true };
const denied = { allowed: false };

test('a public address is allowed, a private one is not', () => {
  assert.deepEqual(judgeAddress(facts('8.8.8.8'), none), allowed);
  assert.deepEqual(judgeAddress(facts('2606:4700::1111'), none), allowed);
  assert.deepEqual(judgeAddress(facts('10.1.2.3'), none), denied);
  assert.deepEqual(judgeAddress(facts('fd00::1'), none), denied);
});

test('an address that the parser calls unicast is refused outside 2000::/3', () => {
  const unassigned = facts('4000::1');
  assert.equal(unassigned.range, 'unicast');
  assert.deepEqual(judgeAddress(unassigned, none), denied);
});

test('EGRESS_ALLOW_CIDRS exempts exactly its ranges, and the verdict states it', () => {
  const rules = { ...none, allow: [cidr('127.0.0.0/8'), cidr('fd00:1::/32')] };
  assert.deepEqual(judgeAddress(facts('127.255.0.1'), rules), exempted);
  assert.deepEqual(judgeAddress(facts('fd00:1::5'), rules), exempted);
  assert.deepEqual(judgeAddress(facts('10.0.0.1'), rules), denied);
  assert.deepEqual(judgeAddress(facts('fd00:2::5'), rules), denied);
  assert.deepEqual(judgeAddress(facts('::ffff:127.0.0.1'), rules), denied);
});

test('a public address inside an exempt range is allowed without an exemption', () => {
  assert.deepEqual(judgeAddress(facts('8.8.8.8'), { ...none, allow: [cidr('8.0.0.0/8')] }), allowed);
});

test('EGRESS_DENY_CIDRS refuses in every case', () => {
  const rules = { ...none, allow: [cidr('127.0.0.0/8')], deny: [cidr('8.8.0.0/16'), cidr('127.0.0.9')] };
  assert.deepEqual(judgeAddress(facts('8.8.4.4'), rules), denied);
  assert.deepEqual(judgeAddress(facts('8.9.0.0'), rules), allowed);
  assert.deepEqual(judgeAddress(facts('127.0.0.9'), rules, true), denied);
});

test('the own public addresses are refused, except for the canary', () => {
  const rules = { ...none, own: [facts('93.184.215.14'), facts('2606:4700::1')] };
  assert.deepEqual(judgeAddress(facts('93.184.215.14'), rules), denied);
  assert.deepEqual(judgeAddress(facts('2606:4700:0::1'), rules), denied);
  assert.deepEqual(judgeAddress(facts('93.184.215.15'), rules), allowed);
  assert.deepEqual(judgeAddress(facts('93.184.215.14'), rules, true), allowed);
});

test('an own non-public address is allowed if it is exempt', () => {
  const rules = { allow: [cidr('127.0.0.0/8')], deny: [], own: [facts('127.0.0.1')] };
  assert.deepEqual(judgeAddress(facts('127.0.0.1'), rules), exempted);
});

test('the canary does not allow a non-public address', () => {
  assert.deepEqual(judgeAddress(facts('127.0.0.1'), none, true), denied);
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
