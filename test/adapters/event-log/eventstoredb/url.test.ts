import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventStoreSettings, UnreadableConnectionString } from '#src/adapters/event-log/eventstoredb/url.ts';

test('a connection string contains hosts, options and credentials', () => {
  const plain = eventStoreSettings('esdb://localhost?tls=false');
  assert.deepEqual(plain.hosts, [{ address: 'localhost', port: 2113 }]);
  assert.deepEqual([plain.discover, plain.tls, plain.credentials], [false, null, null]);

  const secure = eventStoreSettings(
    'kurrentdb+discover://ad%3Amin:p%40ss%2F@one.example:1,two.example/?TlsCaFile=',
  );
  assert.deepEqual(secure.hosts, [
    { address: 'one.example', port: 1 },
    { address: 'two.example', port: 2113 },
  ]);
  assert.deepEqual(secure.credentials, { username: 'ad:min', password: 'p@ss/' });
  assert.deepEqual(secure.tls, { ca: null });
  assert.equal(secure.discover, true);
});

test('several hosts are a cluster, and one with +discover is too', () => {
  const discovers = (url: string) => eventStoreSettings(url).discover;
  assert.deepEqual(
    ['esdb://a', 'esdb://a,b', 'esdb+discover://a', 'kurrentdb://a', 'kurrentdb+discover://a'].map(discovers),
    [false, true, true, false, true],
  );
});

test('options are matched without case, and those of other clients have no effect', () => {
  const { tls } = eventStoreSettings(
    'esdb://a?CONNECTION-NAME=r&TLS=false&keep_alive_interval=-1&nodePreference=follower&throwOnAppendFailure=false',
  );
  assert.equal(tls, null);
});

test('the CA is read from the named file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'eventstoredb-url-'));
  try {
    const file = join(folder, 'a&b@c.crt');
    writeFileSync(file, 'the CA');
    const { tls } = eventStoreSettings(`esdb://a?tlsCAFile=${encodeURIComponent(file)}`);
    assert.equal(String(tls?.ca), 'the CA');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an invalid connection string is refused, and no message repeats a part of it', () => {
  const refusals: [RegExp, string][] = [
    [/must look like/, ''],
    [/must look like/, 'https://canary:canary@canary'],
    [/must look like/, 'esdb://canary:can@ary@canary'],
    [/must look like/, 'esdb://canary:can/ary@canary'],
    [/host or host:port/, 'esdb://canary:1:2'],
    [/host or host:port/, 'esdb://canary:70000'],
    [/host or host:port/, 'esdb://a,,canary'],
    [/percent-encoded/, 'esdb://canary:%@canary'],
    [/unknown option/, 'esdb://a?canary=1'],
    [/tls with a value other than true or false/, 'esdb://a?tls=canary'],
    [/set tlsCAFile to the CA/, 'esdb://a?tlsVerifyCert=false'],
    [/file in tlsCAFile that cannot be read/, 'esdb://a?tlsCAFile=/canary/ca.crt'],
    [/IP address: TLS needs the host name/, 'esdb://127.0.0.1'],
    [/IP address: TLS needs the host name/, 'esdb://a,[::1]:2113'],
  ];
  for (const [message, url] of refusals) {
    assert.throws(
      () => eventStoreSettings(url),
      (error: unknown) => {
        assert.ok(error instanceof UnreadableConnectionString, url);
        assert.match(error.message, message);
        return !error.message.includes('canary');
      },
      url,
    );
  }
});
