import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPostgresUrl } from '#src/lib/postgres-url.ts';

const BARE = 'postgres://user:password@127.0.0.1:5432/db';
const read = (query: string) => {
  const found = readPostgresUrl(`${BARE}?${query}`);
  assert.ok(!('problem' in found), JSON.stringify(found));
  assert.equal(found.bare, BARE);
  return found;
};
const problemOf = (text: string) => {
  const found = readPostgresUrl(text);
  return 'problem' in found ? found.problem : null;
};

test('what hosts and other clients write is left out by name, or honoured', () => {
  for (const [query, leftOut, tls] of [
    ['sslmode=require&channel_binding=require', ['channel_binding'], 'require'],
    ['pgbouncer=true', ['pgbouncer'], null],
    ['schema=public', ['schema'], null],
    ['connection_limit=5', ['connection_limit'], null],
    ['keepalives=1&keepalives_idle=30', ['keepalives', 'keepalives_idle'], null],
    ['gssencmode=disable', ['gssencmode'], null],
    ['sslmode=no-verify', [], 'require'],
    ['sslmode=verify-full&sslrootcert=/path/to/ca.pem', [], 'verify-full'],
    ['sslmode=require&sslrootcert=/path/to/ca.pem', [], 'verify-ca'],
    ['sslmode=no-verify&sslrootcert=/path/to/ca.pem', [], 'require'],
    ['sslrootcert=system', [], 'verify-full'],
    ['sslmode=allow', [], 'prefer'],
    ['ssl=true', [], 'require'],
    ['', [], null],
  ] as const) {
    const found = read(query);
    assert.deepEqual([found.leftOut, found.tls], [leftOut, tls], query);
  }
  assert.equal(read('sslmode=verify-full&sslrootcert=/path/to/ca.pem').rootCert, '/path/to/ca.pem');
  const { applicationName, connectTimeoutS, targetSessionAttrs, options } = read(
    'application_name=mine&connect_timeout=7&target_session_attrs=read-write&options=endpoint%3Dep-1',
  );
  assert.deepEqual(
    [applicationName, connectTimeoutS, targetSessionAttrs, options],
    ['mine', 7, 'read-write', 'endpoint=ep-1'],
  );
});

test('an unknown parameter is named; no value and no part of a password is', () => {
  assert.match(problemOf(`${BARE}?frobnicate=hunter2`) ?? '', /^has the parameter frobnicate, which/);
  for (const text of [
    `${BARE}?sslmode=hunter2`,
    `${BARE}?connect_timeout=hunter2`,
    `${BARE}?target_session_attrs=hunter2`,
    `${BARE}?hunter2%20x=1`,
    'postgres://user:12?hunter2=x@host/db',
  ])
    assert.doesNotMatch(problemOf(text) ?? 'hunter2', /hunter2/, text);
});
