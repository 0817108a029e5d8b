import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError, type Environment, readServiceConfig } from '#src/config.ts';
import { folderProblem, misspelledVariables } from '#src/config-checks.ts';
import { VARIABLES } from '#src/config-variables.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('config-checks');

const KNOWN = Object.keys(VARIABLES);
const PAYEE = { X402_PAY_TO: `0x${'1'.repeat(40)}`, X402_FACILITATOR_URL: 'https://facilitator.example' };

function faultsOf(env: Environment): Map<string, string> {
  try {
    readServiceConfig({ DATA_DIR: folder, ...env });
    return new Map();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return new Map(error.faults.map(({ variable, problem }) => [variable, problem]));
  }
}

test('config: payment off beside a payee, a facilitator or a public address refuses the start, unless free calls are allowed', () => {
  const publicBase = { PUBLIC_BASE_URL: 'https://relay.example' };
  for (const [env, variables] of [
    [{ ...PAYEE, ...publicBase }, ['X402_PAY_TO', 'X402_FACILITATOR_URL', 'PUBLIC_BASE_URL']],
    [{ ...publicBase, X402_ENABLED: 'false' }, ['PUBLIC_BASE_URL']],
    [{ X402_PAY_TO: PAYEE.X402_PAY_TO }, ['X402_PAY_TO']],
  ] as const) {
    const faults = faultsOf(env);
    assert.deepEqual([...faults.keys()], variables);
    for (const problem of faults.values()) assert.match(problem, /X402_ENABLED is off.*ALLOW_FREE_RELAY/);
    assert.deepEqual([...faultsOf({ ...env, ALLOW_FREE_RELAY: 'true' })], []);
  }
  for (const own of ['http://localhost:3402', 'http://127.0.0.9', 'http://[::1]:3402'])
    assert.deepEqual([...faultsOf({ PUBLIC_BASE_URL: own })], [], own);
});

test('config: a misspelled switch beside a payee is named with the known variable', () => {
  const faults = faultsOf({ ...PAYEE, X402_ENABLE: 'true' });
  assert.match(faults.get('X402_ENABLE') ?? '', /X402_ENABLED/);
  assert.equal(faults.size, 3);
});

test('config: unknown variables that begin or read like ours are found, others are not', () => {
  const found = (name: string) => misspelledVariables({ [name]: 'x' }, KNOWN)[0]?.nearest ?? null;
  for (const [wrong, nearest] of [
    ['X402_ENABLE', 'X402_ENABLED'],
    ['X402_PAYTO', 'X402_PAY_TO'],
    ['X402_RPC', 'X402_RPC_URL'],
    ['X402_FACILITATOR_HEADERS', 'X402_FACILITATOR_HEADERS_FILE'],
    ['EGRESS_DENY_CIDR', 'EGRESS_DENY_CIDRS'],
    ['RATE_LIMIT_PER_MIN', 'RATE_LIMIT_PER_MINUTE'],
    ['POLICY_BLOCKED_HOSTS', 'POLICY_BLOCK_HOSTS'],
    ['RETENTION_JOB_DAYS', 'RETENTION_JOBS_DAYS'],
    ['TRUSTED_PROXY', 'TRUSTED_PROXIES'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['PUBLIC_BASEURL', 'PUBLIC_BASE_URL'],
    ['SIGNING_KEY_FILE', 'SIGNING_KEYS_FILE'],
  ] as const)
    assert.equal(found(wrong), nearest, wrong);
  for (const other of ['PATH', 'HOSTNAME', 'PORTS', 'LOG_FILE', 'OTEL_SERVICE_NAME', 'EVENTSTORE_DB', 'DATA'])
    assert.equal(found(other), null, other);
  for (const injected of ['POLICY_SERVICE_HOST', 'RATE_LIMITER_PORT', 'POLICY_PORT_8080_TCP_ADDR'])
    assert.equal(found(injected), null, injected);
  assert.deepEqual(misspelledVariables({ X402_ENABLE: ' ' }, KNOWN), []);
});

test('config: an unusable DATA_DIR and a missing key file are reported with all other faults', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  for (const [path, problem] of [
    [file, /is no folder/],
    [join(file, 'below'), /cannot be created: .*file is no folder/],
  ] as const) {
    const faults = faultsOf({ DATA_DIR: path, SIGNING_KEYS_FILE: join(folder, 'none.json'), PORT: 'x' });
    assert.deepEqual([...faults.keys()], ['PORT', 'SIGNING_KEYS_FILE', 'DATA_DIR']);
    assert.match(faults.get('DATA_DIR') ?? '', problem);
  }
  assert.deepEqual([...faultsOf({ DATA_DIR: join(folder, 'new', 'deep') })], []);
});

test('config: a DATA_DIR that this user may not write names the folder and the user', () => {
  const closed = (path: string, code: string) =>
    folderProblem(path, () => {
      throw Object.assign(new Error(code), { code });
    }) ?? '';
  assert.match(closed(folder, 'EACCES'), /^is not writable by user \S+: /);
  const below = closed(join(folder, 'below'), 'EACCES');
  assert.match(below, /^cannot be created, or reached: \S+ is not writable by user \S+$/);
  assert.match(closed(folder, 'EROFS'), /^is on a read-only file system: /);
});
