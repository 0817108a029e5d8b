// The resolver over a real DNS server, and the cache of misses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { cachingMisses, dnsResolver } from '#src/adapters/outbound/dns.ts';
import { chooseDials } from '#src/domain/destination/policy.ts';
import { LIMITS } from '#src/domain/limits.ts';
import type { Resolution, Resolver } from '#src/ports/resolver.ts';
import { type DnsAnswers, type DnsServer, startDnsServer } from '#test/support/process/dns-server.ts';
import { rulesWith, targetOf, until } from './lab.ts';

async function withDns(
  answers: Readonly<Record<string, DnsAnswers>>,
  use: (resolver: Resolver, dns: DnsServer) => Promise<void>,
  maxInFlight = 16,
): Promise<void> {
  const dns = await startDnsServer({ answers, ttl: 300 });
  try {
    await use(dnsResolver({ servers: [dns.address], maxInFlight }), dns);
  } finally {
    await dns.close();
  }
}

test('A and AAAA are queried once each, and returned together', async () => {
  await withDns({ 'a.test': ['8.8.8.8', '8.8.4.4', '2001:4860:4860::8888'] }, async (resolver, dns) => {
    assert.deepEqual(await resolver.resolve('a.test', 30_000), {
      outcome: 'addresses',
      addresses: ['8.8.8.8', '8.8.4.4', '2001:4860:4860::8888'],
    });
    assert.deepEqual([dns.asked('a.test', 'A'), dns.asked('a.test', 'AAAA')], [1, 1]);
    assert.equal(dns.questions.length, 2);
  });
});

test('an answer is not cached, whatever its TTL', async () => {
  await withDns({ 'a.test': [{ addresses: ['8.8.8.8'] }, { addresses: ['10.0.0.1'] }] }, async (resolver) => {
    assert.deepEqual(await resolver.resolve('a.test', 30_000), {
      outcome: 'addresses',
      addresses: ['8.8.8.8'],
    });
    assert.deepEqual(await resolver.resolve('a.test', 30_000), {
      outcome: 'addresses',
      addresses: ['10.0.0.1'],
    });
  });
});

test('one type is enough if the other has no records', async () => {
  await withDns({ 'four.test': ['8.8.8.8'], 'six.test': ['2001:4860::1'] }, async (resolver) => {
    assert.deepEqual(await resolver.resolve('four.test', 30_000), {
      outcome: 'addresses',
      addresses: ['8.8.8.8'],
    });
    assert.deepEqual(await resolver.resolve('six.test', 30_000), {
      outcome: 'addresses',
      addresses: ['2001:4860::1'],
    });
  });
});

test('no such name and no address are not_found', async () => {
  await withDns({ 'empty.test': [] }, async (resolver) => {
    assert.deepEqual(await resolver.resolve('none.test', 30_000), { outcome: 'not_found' });
    assert.deepEqual(await resolver.resolve('empty.test', 30_000), { outcome: 'not_found' });
  });
});

test('a failing server is not a miss', async () => {
  await withDns({ 'fail.test': { rcode: 'SERVFAIL' } }, async (resolver) => {
    const resolution = await resolver.resolve('fail.test', 30_000);
    // Deno's resolver reports SERVFAIL like a name that does not exist.
    const expected: Resolution =
      'Deno' in globalThis ? { outcome: 'not_found' } : { outcome: 'failed', timedOut: false };
    assert.deepEqual(resolution, expected);
  });
});

test('a server that never answers times out', async () => {
  await withDns({ 'drop.test': { drop: true } }, async (resolver) => {
    const start = performance.now();
    assert.deepEqual(await resolver.resolve('drop.test', 400), { outcome: 'failed', timedOut: true });
    const ms = performance.now() - start;
    assert.ok(ms >= 390, `${ms}`);
  });
});

/** In Deno every code but NOERROR is an answer without addresses. */
const BROKEN = ['SERVFAIL', 'REFUSED', 'NOTIMP', 'NXDOMAIN', 'silent'] as const;

for (const how of BROKEN) {
  test(`one type that is broken (${how}) does not hide the good answer of the other`, async () => {
    for (const [type, good] of [
      ['AAAA', '8.8.8.8'],
      ['A', '2001:4860:4860::8888'],
    ] as const) {
      await withDns({ 'half.test': ['8.8.8.8', '2001:4860:4860::8888'] }, async (resolver, dns) => {
        dns.breakType(type, how);
        const resolution = await resolver.resolve('half.test', LIMITS.policyDnsMs.max);
        const isAnswered = how === 'NXDOMAIN' || (how !== 'silent' && 'Deno' in globalThis);
        assert.deepEqual(
          resolution,
          isAnswered
            ? { outcome: 'addresses', addresses: [good] }
            : { outcome: 'addresses', addresses: [good], isPartial: true },
        );
      });
    }
  });
}

test('a broken type beside one without addresses is no answer', async () => {
  await withDns({ 'empty.test': [] }, async (resolver, dns) => {
    dns.breakType('A', 'silent');
    assert.deepEqual(await resolver.resolve('empty.test', 400), { outcome: 'failed', timedOut: true });
  });
});

test('a late answer of one type is waited for, if the other has none yet or has come just now', async () => {
  const late = { addresses: ['8.8.8.8', '10.0.0.1', 'fd00::1'], delayMs: 300 };
  await withDns({ 'late.test': [late] }, async (resolver) => {
    const resolution = await resolver.resolve('late.test', 30_000);
    assert.deepEqual(resolution, { outcome: 'addresses', addresses: late.addresses });
  });
});

test('a lost packet is sent again within the time of the check before the payment', async () => {
  await withDns({ 'lossy.test': [{ drop: true }, { addresses: ['8.8.8.8'] }] }, async (resolver, dns) => {
    assert.deepEqual(await resolver.resolve('lossy.test', LIMITS.policyDnsMs.max), {
      outcome: 'addresses',
      addresses: ['8.8.8.8'],
    });
    assert.deepEqual([dns.asked('lossy.test', 'A'), dns.asked('lossy.test', 'AAAA')], [2, 2]);
  });
});

test('beside IPv6 addresses a lost A packet is sent again', async () => {
  await withDns({ 'both.test': ['8.8.8.8', '2001:4860::1'] }, async (resolver, dns) => {
    dns.breakType('A', 'silent');
    const resolving = resolver.resolve('both.test', LIMITS.policyDnsMs.max);
    await until(() => dns.asked('both.test', 'A') === 1);
    dns.breakType('A', null);
    assert.deepEqual(await resolving, { outcome: 'addresses', addresses: ['8.8.8.8', '2001:4860::1'] });
  });
});

test('the second server is asked within that time if the first is silent', async () => {
  const [silent, good] = [
    await startDnsServer({ answers: { '*': { drop: true } } }),
    await startDnsServer({ answers: { '*': ['8.8.8.8'] } }),
  ];
  try {
    const resolver = dnsResolver({ servers: [silent.address, good.address], maxInFlight: 4 });
    const resolution = await resolver.resolve('a.test', LIMITS.policyDnsMs.max);
    // Deno repeats the question to the first server only.
    const expected: Resolution =
      'Deno' in globalThis
        ? { outcome: 'failed', timedOut: true }
        : { outcome: 'addresses', addresses: ['8.8.8.8'] };
    assert.deepEqual(resolution, expected);
  } finally {
    await silent.close();
    await good.close();
  }
});

test('an address is never looked up, and short forms are treated as names', async () => {
  await withDns(
    { '127.1': ['8.8.8.8'], '2130706433': ['8.8.8.8'], '0x7f.1': ['8.8.8.8'] },
    async (resolver, dns) => {
      assert.deepEqual(await resolver.resolve('127.0.0.1', 30_000), { outcome: 'not_found' });
      assert.deepEqual(await resolver.resolve('::1', 30_000), { outcome: 'not_found' });
      assert.equal(dns.questions.length, 0);
      for (const name of ['127.1', '2130706433', '0x7f.1']) {
        assert.deepEqual(await resolver.resolve(name, 30_000), {
          outcome: 'addresses',
          addresses: ['8.8.8.8'],
        });
      }
    },
  );
});

test('a name of the hosts file gives no access to a private address', async () => {
  await withDns({ localhost: ['8.8.8.8'] }, async (resolver) => {
    const resolution = await resolver.resolve('localhost', 30_000);
    assert.equal(resolution.outcome, 'addresses');
    const addresses = 'addresses' in resolution ? resolution.addresses : [];
    const dials = chooseDials(targetOf('https://example.com/'), addresses, describeAddress, rulesWith());
    // Bun queries the network. Deno reads the hosts file, and its addresses are refused like any private answer.
    if (addresses.includes('8.8.8.8')) assert.equal(dials[0]?.address.text, '8.8.8.8');
    else assert.deepEqual(dials, []);
  });
});

test('concurrent look-ups are limited: one more fails at once, and a later one succeeds', async () => {
  const slow = { addresses: ['8.8.8.8'], delayMs: 300 };
  await withDns(
    { '*': slow },
    async (resolver, dns) => {
      const running = [resolver.resolve('a.test', 30_000), resolver.resolve('b.test', 30_000)];
      assert.deepEqual(await resolver.resolve('c.test', 30_000), { outcome: 'busy' });
      for (const resolution of await Promise.all(running)) assert.equal(resolution.outcome, 'addresses');
      assert.equal(dns.asked('c.test'), 0);
      assert.equal((await resolver.resolve('c.test', 30_000)).outcome, 'addresses');
    },
    2,
  );
});

function counting(answer: (name: string) => Resolution): Resolver & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    resolve: (name) => {
      asked.push(name);
      return Promise.resolve(answer(name));
    },
  };
}

const isCallable = (_: string, addresses: readonly string[]) => addresses.includes('8.8.8.8');

test('a miss is cached for 60 s, an address and a failure are not', async () => {
  let now = 0;
  const inner = counting((name) => {
    if (name === 'good.test') return { outcome: 'addresses', addresses: ['8.8.8.8'] };
    return name === 'bad.test' ? { outcome: 'failed', timedOut: true } : { outcome: 'not_found' };
  });
  const resolver = cachingMisses(inner, { monotonic: () => now }, isCallable);
  const ask = async (name: string) => (await resolver.resolve(name, 1000)).outcome;
  for (let i = 0; i < 3; i++) {
    assert.equal(await ask('none.test'), 'not_found');
    assert.equal(await ask('good.test'), 'addresses');
    assert.equal(await ask('bad.test'), 'failed');
  }
  const count = (name: string) => inner.asked.filter((asked) => asked === name).length;
  assert.deepEqual([count('none.test'), count('good.test'), count('bad.test')], [1, 3, 3]);
  now = 59_999;
  await ask('none.test');
  assert.equal(count('none.test'), 1);
  now = 60_000;
  await ask('none.test');
  assert.equal(count('none.test'), 2);
});

test('the cache of misses is bounded: the oldest is dropped first', async () => {
  const inner = counting(() => ({ outcome: 'not_found' }));
  const resolver = cachingMisses(inner, { monotonic: () => 0 }, isCallable);
  const names = Array.from({ length: 10_000 }, (_, n) => `${n}`);
  for (const name of [...names, 'more', '1', 'more', '0']) await resolver.resolve(name, 1000);
  assert.deepEqual(inner.asked.slice(names.length), ['more', '0']);
});

test('a name that may not be called is a miss like one without an address, with the same answer and timing', async () => {
  const inner = counting(() => ({ outcome: 'addresses', addresses: ['10.0.0.1'] }));
  const resolver = cachingMisses(inner, { monotonic: () => 0 }, isCallable);
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await resolver.resolve('internal.test', 1000), { outcome: 'not_found' });
  }
  assert.deepEqual(inner.asked, ['internal.test']);
});
