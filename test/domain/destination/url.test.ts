// Target URLs: how they are parsed and refused. The individual cases are in the SSRF fixtures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ownHostOf, readTarget, type UrlRules } from '#src/domain/destination/url.ts';
import { judgeUrlText } from '#test/support/given/judge-text.ts';
import { runs } from '#test/support/given/property-runs.ts';

const rules: UrlRules = {
  ports: null,
  own: { hostname: 'relay.example.com', canary: 'https://relay.example.com/api/canary/echo' },
};

test('a target is normalised: lower case, no fragment, no trailing dot, no default port', () => {
  assert.deepEqual(judgeUrlText('HTTPS://Hooks.Example.COM.:443/a/../B?c=%7e#frag', rules), {
    href: 'https://hooks.example.com/B?c=%7e',
    origin: 'https://hooks.example.com',
    hostname: 'hooks.example.com',
    port: 443,
    path: '/B?c=%7e',
    literal: false,
    plain: true,
  });
});

test('an IPv6 literal keeps its brackets in the URL only', () => {
  assert.deepEqual(judgeUrlText('https://[2606:4700:0::1111]:8443/x', rules), {
    href: 'https://[2606:4700::1111]:8443/x',
    origin: 'https://[2606:4700::1111]:8443',
    hostname: '2606:4700::1111',
    port: 8443,
    path: '/x',
    literal: true,
    plain: true,
  });
});

test('invalid_request names the field; unsafe_target reveals nothing but what the text of the URL shows', () => {
  const invalid = judgeUrlText('http://example.com/', rules);
  assert.ok('refused' in invalid && invalid.refused === 'invalid_request');
  assert.deepEqual(invalid.details, [{ path: '/url', message: invalid.message }]);
  const reasonOf = (url: string) => {
    const refusal = judgeUrlText(url, rules);
    assert.ok('refused' in refusal && refusal.refused === 'unsafe_target', url);
    return [refusal.message, refusal.details];
  };
  for (const [url, reason, message] of [
    ['https://u@example.com/', 'url_form', /must be plain/],
    ['https://example.com\\', 'url_form', /must be plain/],
    ['https://example.com:22/', 'port', /no target on port 22\./],
    ['https://127.0.0.1:25/', 'port', /no target on port 25\./],
  ] as const) {
    const [text, details] = reasonOf(url);
    assert.match(String(text), message);
    assert.deepEqual(details, { reason });
  }
  // Of the host nothing is revealed.
  const hosts = ['https://a.local/', 'https://a.internal/', 'https://metadata.goog/'].map(reasonOf);
  for (const host of hosts) assert.deepEqual(host, hosts[0]);
  assert.deepEqual(hosts[0]?.[1], undefined);
});

test('EGRESS_PORTS restricts the ports, and never allows a bad one', () => {
  const narrow = { ...rules, ports: [443, 22] };
  assert.ok('href' in judgeUrlText('https://example.com/', narrow));
  for (const port of [8443, 22]) {
    const refusal = judgeUrlText(`https://example.com:${port}/`, narrow);
    assert.ok('refused' in refusal && refusal.refused === 'unsafe_target');
  }
});

test('the own host is from PUBLIC_BASE_URL; the canary is its only exception', () => {
  assert.deepEqual(ownHostOf(new URL('https://Relay.example.com.:8443/')), {
    hostname: 'relay.example.com',
    canary: 'https://relay.example.com:8443/api/canary/echo',
  });
  assert.deepEqual(ownHostOf(new URL('http://127.0.0.1:3402')), {
    hostname: null,
    canary: 'http://127.0.0.1:3402/api/canary/echo',
  });
  const own = ownHostOf(new URL('https://relay.example.com/'));
  assert.ok('href' in judgeUrlText('https://relay.example.com/api/canary/echo', { ports: null, own }));
  assert.ok('refused' in judgeUrlText('https://relay.example.com/api/canary/echoo', { ports: null, own }));
});

test('with an http base URL no own URL may be called', () => {
  const own = ownHostOf(new URL('http://relay.example.com'));
  assert.ok('refused' in judgeUrlText('https://relay.example.com/api/canary/echo', { ports: null, own }));
});

test('an accepted URL is in its normal form, and judged the same again', () => {
  const text = fc.oneof(
    fc.webUrl({ validSchemes: ['https'], withQueryParameters: true, withFragments: true }),
    fc
      .tuple(fc.constantFrom('https://', 'https:/', 'https:\\\\', 'HTTPS://', 'https:'), fc.string())
      .map((p) => p.join('')),
    fc.tuple(fc.domain(), fc.string({ unit: 'binary' })).map(([host, tail]) => `https://${host}/${tail}`),
  );
  let accepted = 0;
  fc.assert(
    fc.property(text, (url) => {
      const target = judgeUrlText(url, rules);
      if ('refused' in target) return;
      accepted++;
      assert.deepEqual(judgeUrlText(target.href, rules), target);
      const again = new URL(target.href);
      assert.equal(again.href, target.href);
      assert.equal(again.username + again.password + again.hash, '');
      assert.match(target.href, /^https:\/\/[a-z0-9.[\]:_-]+\/[\x21-\x7e]*$/);
      assert.equal(target.origin + target.path, target.href);
    }),
    { numRuns: runs(500) },
  );
  assert.ok(accepted > 100, `${accepted} accepted`);
});

test('no text with a blank, a control character or a backslash is ever accepted', () => {
  const bad = fc.constantFrom(
    ' ',
    '\t',
    '\n',
    '\r',
    '\0',
    '\x7f',
    '\\',
    '\u00a0',
    '\u2003',
    '\u3000',
    '\ufeff',
    '\u0085',
  );
  fc.assert(
    fc.property(fc.nat(30), bad, (at, character) => {
      const url = 'https://hooks.example.com/path?q=1#f';
      const target = judgeUrlText(url.slice(0, at) + character + url.slice(at), rules);
      assert.ok('refused' in target);
    }),
  );
});

test('userinfo makes another target: the request is not a repeat', () => {
  const read = (text: string) => {
    const target = readTarget(text);
    assert.ok('href' in target);
    return target;
  };
  const named = read('https://user:pw@example.com/');
  assert.deepEqual([named.href, named.plain], ['https://user:pw@example.com/', false]);
  assert.equal(named.origin, 'https://example.com');
  assert.deepEqual(read('https:/\\example.com/').plain, false);
});
