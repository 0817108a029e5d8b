// The target policy: three modes, then the DNS answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import {
  chooseDials,
  type DnsAnswer,
  judgeAnswer,
  type TargetRules,
} from '#src/domain/destination/policy.ts';
import type { Target } from '#src/domain/destination/url.ts';
import { judgeTargetText } from '#test/support/given/judge-text.ts';

const open: TargetRules = {
  mode: 'open-public-https',
  blockHosts: ['bad.example', '*.wild.example'],
  allowHosts: ['good.example', '*.wide.example'],
  url: {
    ports: null,
    own: { hostname: 'relay.example.com', canary: 'https://relay.example.com/api/canary/echo' },
  },
  addresses: { allow: [], deny: [], own: [], nat64: null },
};

function judge(url: string, rules: TargetRules): string {
  const target = judgeTargetText(url, describeAddress, rules);
  return 'refused' in target ? target.refused : 'allowed';
}

function targetOf(url: string, rules = open): Target {
  const target = judgeTargetText(url, describeAddress, rules);
  assert.ok('href' in target);
  return target;
}

test('open-public-https allows any public host and uses no list', () => {
  for (const host of ['bad.example', 'good.example', 'other.example', '8.8.8.8']) {
    assert.equal(judge(`https://${host}/`, open), 'allowed');
  }
});

test('blocklist-quota: target_blocked for a listed host and for the names under it', () => {
  const rules = { ...open, mode: 'blocklist-quota' as const };
  assert.equal(judge('https://bad.example/', rules), 'target_blocked');
  assert.equal(judge('https://BAD.example./', rules), 'target_blocked');
  assert.equal(judge('https://a.bad.example:8443/', rules), 'target_blocked');
  assert.equal(judge('https://notbad.example/', rules), 'allowed');
  assert.equal(judge('https://a.wild.example/', rules), 'target_blocked');
  assert.equal(judge('https://wild.example/', rules), 'allowed');
  assert.equal(judge('https://other.example/', rules), 'allowed');
});

test('allowlist: target_not_allowed for all but the listed hosts', () => {
  const rules = { ...open, mode: 'allowlist' as const };
  assert.equal(judge('https://good.example/', rules), 'allowed');
  assert.equal(judge('https://Good.Example.:444/', rules), 'allowed');
  assert.equal(judge('https://a.good.example/', rules), 'target_not_allowed');
  assert.equal(judge('https://a.wide.example/', rules), 'allowed');
  assert.equal(judge('https://a.b.wide.example/', rules), 'allowed');
  assert.equal(judge('https://wide.example/', rules), 'target_not_allowed');
  assert.equal(judge('https://evilwide.example/', rules), 'target_not_allowed');
  assert.equal(judge('https://8.8.8.8/', rules), 'target_not_allowed');
});

test('unsafe_target is checked before the lists: a list never allows a non-public destination', () => {
  const rules = { ...open, mode: 'allowlist' as const, allowHosts: ['127.0.0.1', 'a.local', 'localhost'] };
  for (const host of ['127.0.0.1', 'a.local', 'localhost', '[::1]']) {
    assert.equal(judge(`https://${host}/`, rules), 'unsafe_target');
  }
});

test('target_unresolvable has one message for no address, no public address and a private name', () => {
  const target = targetOf('https://hooks.example.com/');
  const answers: DnsAnswer[] = [
    { outcome: 'not_found' },
    { outcome: 'addresses', addresses: [] },
    { outcome: 'addresses', addresses: ['10.0.0.1'] },
    { outcome: 'addresses', addresses: ['8.8.8.8', '127.0.0.1'] },
    { outcome: 'addresses', addresses: ['nonsense'] },
    { outcome: 'addresses', addresses: ['8.8.8.8', 'nonsense'] },
  ];
  const refusals = answers.map((answer) => judgeAnswer(target, answer, describeAddress, open));
  for (const refusal of refusals) assert.deepEqual(refusal, refusals[0]);
  assert.deepEqual(refusals[0], {
    refused: 'target_unresolvable',
    message: 'The target host has no public address.',
    details: { retryable: false },
  });
});

test('target_unresolvable is retryable only if there was no answer', () => {
  const target = targetOf('https://hooks.example.com/');
  for (const answer of [{ outcome: 'failed', timedOut: true }, { outcome: 'busy' }] as const) {
    const refusal = judgeAnswer(target, answer, describeAddress, open);
    assert.ok('refused' in refusal);
    assert.equal(refusal.refused, 'target_unresolvable');
    assert.deepEqual(refusal.details, { retryable: true });
  }
});

const dialled = (target: Target, addresses: readonly string[], rules = open) =>
  chooseDials(target, addresses, describeAddress, rules).map(({ address }) => address.text);

test('public addresses are dialled in order, IPv4 and IPv6 alternately, IPv4 first', () => {
  const target = targetOf('https://hooks.example.com/');
  const dials = (...addresses: string[]) => dialled(target, addresses);
  assert.deepEqual(dials('2606:4700::1', '2606:4700::2', '2606:4700::3', '8.8.8.8', '9.9.9.9'), [
    '8.8.8.8',
    '2606:4700::1',
    '9.9.9.9',
    '2606:4700::2',
    '2606:4700::3',
  ]);
  assert.deepEqual(dials('9.9.9.9', '8.8.8.8'), ['9.9.9.9', '8.8.8.8']);
  assert.deepEqual(dials(), []);
});

test('a NAT64 address is dialled for a name, and refused in a URL', () => {
  const [name, literal] = ['https://hooks.example.com/', 'https://[64:ff9b::808:808]/'];
  assert.deepEqual(dialled(targetOf(name), ['64:ff9b::808:808']), ['64:ff9b::808:808']);
  assert.equal(judge(literal, open), 'unsafe_target');
});

test('one address that may not be dialled is enough to dial none', () => {
  const target = targetOf('https://hooks.example.com/');
  for (const bad of ['10.0.0.1', '::1', '64:ff9b::7f00:1', 'nonsense'])
    assert.deepEqual(dialled(target, ['8.8.8.8', '2606:4700::1', bad]), [], bad);
});

test('the canary is the only own URL that may be dialled', () => {
  const own = [describeAddress('93.184.215.14')].flatMap((facts) => facts ?? []);
  const rules = { ...open, addresses: { ...open.addresses, own } };
  const canary = targetOf('https://relay.example.com/api/canary/echo', rules);
  assert.deepEqual(dialled(canary, ['93.184.215.14'], rules), ['93.184.215.14']);
  const alias = targetOf('https://alias.example.com/api/canary/echo', rules);
  assert.deepEqual(dialled(alias, ['93.184.215.14'], rules), []);
  assert.equal(judge('https://93.184.215.14/', rules), 'unsafe_target');
});
