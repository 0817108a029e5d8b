// The target policy: three modes, then the DNS answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { chooseDial, type DnsAnswer, judgeAnswer, type TargetRules } from '#src/domain/destination/policy.ts';
import type { Target } from '#src/domain/destination/url.ts';
import { judgeTargetText } from '#test/support/judge-text.ts';

const open: TargetRules = {
  mode: 'open-public-https',
  blockHosts: ['bad.example', '*.wild.example'],
  allowHosts: ['good.example', '*.wide.example'],
  url: {
    ports: null,
    own: { hostname: 'relay.example.com', canary: 'https://relay.example.com/api/canary/echo' },
  },
  addresses: { allow: [], deny: [], own: [] },
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

test('of several public addresses the first IPv4 is dialled, else the first IPv6', () => {
  const target = targetOf('https://hooks.example.com/');
  const dial = (...addresses: string[]) => chooseDial(target, addresses, describeAddress, open)?.address.text;
  assert.equal(dial('2606:4700::1', '8.8.8.8', '9.9.9.9'), '8.8.8.8');
  assert.equal(dial('2606:4700::1', '2606:4700::2'), '2606:4700::1');
  assert.equal(dial(), undefined);
});

test('the canary is the only own URL that may be dialled', () => {
  const own = [describeAddress('93.184.215.14')].flatMap((facts) => facts ?? []);
  const rules = { ...open, addresses: { ...open.addresses, own } };
  const canary = targetOf('https://relay.example.com/api/canary/echo', rules);
  assert.equal(chooseDial(canary, ['93.184.215.14'], describeAddress, rules)?.address.text, '93.184.215.14');
  const alias = targetOf('https://alias.example.com/api/canary/echo', rules);
  assert.equal(chooseDial(alias, ['93.184.215.14'], describeAddress, rules), null);
  assert.equal(judge('https://93.184.215.14/', rules), 'unsafe_target');
});
