import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { parseCidr } from '#src/adapters/outbound/addresses.ts';
import {
  baseUrl,
  ConfigError,
  type Environment,
  readConfig,
  readLogConfig,
  readVariable,
} from '#src/config.ts';
import { makeTestCa } from '#test/support/process/test-ca.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('config');

function faultsOf(env: Environment): string[] {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map((fault) => fault.variable);
    throw error;
  }
  return [];
}

/** USDC on Base with another last digit. */
const WRONG_CHECKSUM = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02914';
const PAYEE = '0x1111111111111111111111111111111111111111';
const PAID = {
  X402_ENABLED: 'true',
  X402_PAY_TO: PAYEE,
  X402_FACILITATOR_URL: 'https://facilitator.example/v2/',
  X402_RPC_URL: 'https://rpc.example/key',
};

test('config: nothing set is one process in demo mode, everything embedded', () => {
  assert.deepEqual(readConfig({}), {
    mode: 'demo',
    listen: { host: '127.0.0.1', port: 3402 },
    publicBaseUrl: null,
    webBotAuth: false,
    dataDir: resolve('data'),
    eventStoreUrl: null,
    databaseUrl: null,
    x402: null,
    keyFile: { path: resolve('data', 'keys.json'), create: true },
    policy: { mode: 'open-public-https', blockHosts: [], allowHosts: [] },
    rates: { targetPerMinute: 20, clientPerMinute: 60, readsPerMinute: 600, maxInFlight: 512 },
    trustedProxies: [],
    egress: { dnsServers: null, caPem: null, allowCidrs: [], denyCidrs: [], nat64Prefix: null, ports: null },
    retentionDays: { jobs: 7, receipts: 30 },
    witnesses: null,
    returnsResponses: true,
    returnedHeaders: ['content-type', 'retry-after'],
    schedules: null,
    logLevel: 'info',
    otlpEndpoint: null,
    metricsPublic: false,
  });
});

test('config: empty and blank variables count as unset', () => {
  const blank = { HOST: '', PORT: ' ', X402_ENABLED: '', EGRESS_PORTS: '', EGRESS_CA_FILE: '' };
  assert.deepEqual(readConfig(blank), readConfig({}));
});

test('config: frozen to the bottom', () => {
  const { egress, policy } = readConfig({ EGRESS_PORTS: '443' });
  assert.ok(Object.isFrozen(egress) && Object.isFrozen(egress.ports) && Object.isFrozen(policy.blockHosts));
});

test('config: every variable is read into its value', () => {
  const read = readConfig({
    ...PAID,
    HOST: '::',
    PORT: '0',
    PUBLIC_BASE_URL: 'https://Relay.example/',
    WEB_BOT_AUTH: 'off',
    DATA_DIR: '/var/lib/relay',
    EVENTSTORE_URL: 'esdb://admin:changeit@log.example:2113?tls=true',
    DATABASE_URL: 'postgres://relay:pw@db.example:5432/relay',
    X402_NETWORK: 'eip155:84532',
    X402_PRICE: '$0.01',
    X402_REFUND_FROM: '0x3333333333333333333333333333333333333333',
    X402_ASSET: '0x2222222222222222222222222222222222222222',
    X402_FACILITATOR_TIMEOUT_MS: '5000',
    X402_CONFIRM_SECONDS: '7',
    X402_RECONCILE_SECONDS: '30',
    X402_CONFIRMATIONS: '12',
    SIGNING_KEYS_FILE: '/etc/relay/keys.json',
    POLICY_MODE: 'allowlist',
    POLICY_BLOCK_HOSTS: 'bad.example, *.Worse.example',
    POLICY_ALLOW_HOSTS: 'bücher.example,good.example.',
    TARGET_QUOTA_PER_MINUTE: '5',
    RATE_LIMIT_PER_MINUTE: '6',
    RATE_LIMIT_READS_PER_MINUTE: '8',
    MAX_IN_FLIGHT: '7',
    TRUSTED_PROXIES: '10.0.0.0/8, 2001:DB8::/32, 192.0.2.1',
    EGRESS_DNS_SERVERS: '127.0.0.1:5353, 1.1.1.1, [::1]:53, [2606:4700::1111]',
    EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    EGRESS_DENY_CIDRS: '203.0.113.0/24',
    EGRESS_NAT64_PREFIX: '2001:DB8:64::/96',
    EGRESS_PORTS: '443, 8443,443',
    RETENTION_JOBS_DAYS: '1',
    RETENTION_RECEIPTS_DAYS: '2',
    RETURN_RESPONSES: 'off',
    RETURN_RESPONSE_HEADERS: 'ETag, Retry-After,x-request-id',
    SCHEDULES: 'on',
    SCHEDULE_HORIZON_DAYS: '7',
    LOG_LEVEL: 'warn',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
    METRICS_PUBLIC: 'true',
  });
  assert.deepEqual(read, {
    mode: 'x402',
    listen: { host: '::', port: 0 },
    publicBaseUrl: 'https://relay.example',
    webBotAuth: false,
    dataDir: '/var/lib/relay',
    eventStoreUrl: 'esdb://admin:changeit@log.example:2113?tls=true',
    databaseUrl: 'postgres://relay:pw@db.example:5432/relay',
    x402: {
      payTo: PAYEE,
      facilitatorUrl: 'https://facilitator.example/v2',
      network: 'eip155:84532',
      priceUsd: '0.01',
      asset: '0x2222222222222222222222222222222222222222',
      refundFrom: '0x3333333333333333333333333333333333333333',
      rpcUrl: 'https://rpc.example/key',
      facilitatorTimeoutMs: 5000,
      confirmWaitMs: 7000,
      reconcileMs: 30_000,
      confirmations: 12,
      login: null,
    },
    keyFile: { path: '/etc/relay/keys.json', create: false },
    policy: {
      mode: 'allowlist',
      blockHosts: ['bad.example', '*.worse.example'],
      allowHosts: ['xn--bcher-kva.example', 'good.example'],
    },
    rates: { targetPerMinute: 5, clientPerMinute: 6, readsPerMinute: 8, maxInFlight: 7 },
    trustedProxies: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.1/32'],
    egress: {
      dnsServers: ['127.0.0.1:5353', '1.1.1.1:53', '[::1]:53', '[2606:4700::1111]:53'],
      caPem: null,
      allowCidrs: ['127.0.0.0/8'],
      denyCidrs: ['203.0.113.0/24'],
      nat64Prefix: '2001:db8:64::/96',
      ports: [443, 8443],
    },
    retentionDays: { jobs: 1, receipts: 2 },
    witnesses: null,
    returnsResponses: false,
    returnedHeaders: ['content-type', 'retry-after', 'etag', 'x-request-id'],
    schedules: { horizonDays: 7 },
    logLevel: 'warn',
    otlpEndpoint: 'http://127.0.0.1:4318',
    metricsPublic: true,
  });
});

test('config: the policy preset open is the mode open-public-https', () => {
  for (const mode of ['open-public-https', 'blocklist-quota', 'allowlist'] as const) {
    assert.equal(readConfig({ POLICY_MODE: mode }).policy.mode, mode);
  }
  assert.equal(readConfig({ POLICY_MODE: 'open' }).policy.mode, 'open-public-https');
});

const WRONG: Record<string, readonly string[]> = {
  HOST: ['[::1]', '127.1', 'a b', 'http://x', 'fe80::1%eth0', '-x.example', `${'a'.repeat(64)}.example`],
  PORT: ['-1', '65536', '80x', '0x50', '3402.5', '1e3'],
  PUBLIC_BASE_URL: [
    'relay.example',
    'ftp://relay.example',
    'https://r.example/p',
    'https://u:p@r.example',
    'https://r.example?q',
    'https://r.example/#f',
    "http://a'b",
    'http://a"b',
    'http://a$(id)',
    'http://a`id`',
    'http://a;b',
    'http://a&b',
    'http://a!b',
    'http://{a,b}',
    'http://*.example',
    'http://a~b',
  ],
  EVENTSTORE_URL: ['http://log:2113', 'esdb://', 'esdb:log', 'log:2113', 'esdb://a b'],
  DATABASE_URL: [
    'mysql://db/relay',
    'postgres://',
    'postgres',
    '/var/run/pg',
    'postgres://relay:50%ZZ@db/relay',
    'postgres://relay:a/b@db/relay',
    'postgres://relay@db/relay?frobnicate=1',
    'postgres://relay@db/relay?sslmode=verify-full&sslrootcert=/no/such/ca.pem',
  ],
  X402_ENABLED: ['yes', '1', 'TRUE', 'on'],
  X402_PAY_TO: [
    '0x12',
    `${PAYEE}1`,
    PAYEE.slice(2),
    `0x${'0'.repeat(40)}`,
    `0x${'g'.repeat(40)}`,
    WRONG_CHECKSUM,
  ],
  X402_FACILITATOR_URL: ['facilitator.example', 'ws://f.example', 'https://u:p@f.example'],
  X402_NETWORK: ['base', 'eip155:', 'eip155:0', 'solana:5eykt4'],
  X402_PRICE: ['free', '0', '$0.000', '-1', '0.0000001', '1,5', '€1'],
  X402_ASSET: ['USDC', '0x0', WRONG_CHECKSUM],
  X402_REFUND_FROM: ['payee', '0x0', WRONG_CHECKSUM],
  X402_RPC_URL: ['rpc', 'wss://rpc.example'],
  X402_FACILITATOR_TIMEOUT_MS: ['0', '20s', '40001'],
  X402_RECONCILE_SECONDS: ['0', '3601', '1m'],
  X402_CONFIRMATIONS: ['-1', 'safe', '1.5'],
  ALLOW_FREE_RELAY: ['yes'],
  POLICY_MODE: ['closed', 'Open', 'toString', '__proto__'],
  POLICY_BLOCK_HOSTS: [
    'a.example,,b.example',
    'https://a.example',
    'a.example/path',
    'a.example:8443',
    '*',
    '*.*.example',
    '*.10.0.0.1',
    'u@a.example',
  ],
  POLICY_ALLOW_HOSTS: ['exa mple', '.example', 'a_b.example'],
  TARGET_QUOTA_PER_MINUTE: ['0', 'many'],
  RATE_LIMIT_PER_MINUTE: ['0', '-5'],
  MAX_IN_FLIGHT: ['0', '1.5'],
  TRUSTED_PROXIES: [
    '10.0.0.0/33',
    '10.0.0/8',
    '::/129',
    'fe80::1%eth0/64',
    '10.0.0.0/8/8',
    'proxy.example',
    '10.0.0.0/',
    '/8',
    '10.0.0.0/-1',
  ],
  EGRESS_DNS_SERVERS: [
    '::1',
    '1.1.1.1:0',
    '1.1.1.1:70000',
    'dns.example',
    '[1.1.1.1]:53',
    '[::1',
    '1.1.1.1:',
    '[fe80::1%eth0]:53',
  ],
  EGRESS_ALLOW_CIDRS: ['all', '127.0.0.0/8 10.0.0.0/8'],
  EGRESS_DENY_CIDRS: ['*'],
  EGRESS_NAT64_PREFIX: [
    '2001:db8:64::',
    '2001:db8:64::/95',
    '2001:db8:64::1/96',
    '2001:db8:64:0:100::/96',
    '10.0.0.0/32',
    '64:ff9b::/96,2001:db8::/96',
  ],
  EGRESS_PORTS: ['0', '443;8443', '65536', 'https'],
  RETENTION_JOBS_DAYS: ['0', 'forever'],
  RETENTION_RECEIPTS_DAYS: ['-1'],
  WITNESS_POLICY_FILE: ['/nowhere/policy'],
  WITNESS_INTERVAL_SECONDS: ['1', '61', '10s'],
  WEB_BOT_AUTH: ['true', 'ON'],
  RETURN_RESPONSES: ['true', 'OFF'],
  RETURN_RESPONSE_HEADERS: ['x y', 'etag,,x', 'etag:', 'Set-Cookie', 'etag, set-cookie2'],
  SCHEDULES: ['true', 'ON'],
  SCHEDULE_HORIZON_DAYS: ['0', '367'],
  LOG_LEVEL: ['loud', 'INFO'],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['collector:4317', 'https://u:p@c.example'],
  METRICS_PUBLIC: ['1'],
};

for (const [variable, texts] of Object.entries(WRONG)) {
  test(`config: a wrong ${variable} refuses the start, by its name`, () => {
    for (const text of texts) assert.deepEqual(faultsOf({ [variable]: text }), [variable], text);
  });
}

test('config: all faults are reported at once, without any of their values', () => {
  const canary = 'cAnArY';
  const names = Object.keys(WRONG).filter((name) => name !== 'EGRESS_CA_FILE');
  const env = Object.fromEntries(names.map((name) => [name, `${canary} ${canary}`]));
  assert.deepEqual(faultsOf(env).sort(), [...names].sort());
  assert.throws(
    () => readConfig(env),
    (error) => error instanceof ConfigError && !`${error.message} ${error.stack}`.includes(canary),
  );
});

test('config: EGRESS_CA_FILE is read at the start; a file without certificates refuses it', () => {
  const { pem } = makeTestCa();
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  assert.equal(readConfig({ EGRESS_CA_FILE: file('good.pem', pem) }).egress.caPem, pem);
  const broken = pem.replace(/[A-Za-z0-9+/]{64}\n/, '');
  for (const path of [
    file('empty.pem', ''),
    file('broken.pem', pem + broken),
    folder,
    join(folder, 'absent.pem'),
  ]) {
    assert.deepEqual(faultsOf({ EGRESS_CA_FILE: path }), ['EGRESS_CA_FILE'], path);
  }
});

test('config: every range that config takes, the outbound adapter can read', () => {
  const texts = '10.0.0.0/8,192.0.2.1,fd00::/8,2001:DB8::1,::ffff:10.0.0.0/104,0.0.0.0/0,::/0';
  const ranges = readConfig({ EGRESS_DENY_CIDRS: texts }).egress.denyCidrs;
  assert.equal(ranges.length, 7);
  for (const range of ranges) assert.notEqual(parseCidr(range), null, range);
});

test('config: demo mode listens beyond loopback only when ALLOW_FREE_RELAY says so', () => {
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1', 'relay.example', '::ffff:127.0.0.1']) {
    assert.deepEqual(faultsOf({ HOST }), ['ALLOW_FREE_RELAY'], HOST);
    assert.deepEqual(faultsOf({ HOST, ALLOW_FREE_RELAY: 'false' }), ['ALLOW_FREE_RELAY'], HOST);
    assert.deepEqual(faultsOf({ HOST, ALLOW_FREE_RELAY: 'true' }), [], HOST);
    assert.deepEqual(faultsOf({ HOST, ...PAID }), [], HOST);
  }
  for (const HOST of ['127.0.0.1', '127.8.8.8', '::1', 'localhost'])
    assert.deepEqual(faultsOf({ HOST }), [], HOST);
});

test('config: X402_ENABLED needs a payee, a facilitator and a node of the chain', () => {
  const required = ['X402_PAY_TO', 'X402_FACILITATOR_URL', 'X402_RPC_URL'];
  assert.deepEqual(faultsOf({ X402_ENABLED: 'true' }), required);
  assert.deepEqual(faultsOf({ ...PAID, X402_RPC_URL: '' }), ['X402_RPC_URL']);
  assert.deepEqual(faultsOf({ ...PAID, X402_PAY_TO: '0x1' }), ['X402_PAY_TO']);
  const { x402 } = readConfig(PAID);
  assert.equal(x402?.network, 'eip155:8453');
  assert.equal(x402?.priceUsd, '0.003');
  assert.equal(readConfig({ ...PAID, X402_ENABLED: 'false' }).x402, null);
});

test('config: a database has a host, several or a socket, and its password may hold anything, percent-encoded', () => {
  for (const DATABASE_URL of [
    'postgres://relay:a%2Fb%25%40c@db.example:5432/relay?sslmode=require',
    'postgresql://relay@one.example:5432,two.example:5433/relay',
    'postgres:///relay?host=/run/postgresql',
    'postgres://[::1]:5432/relay',
  ])
    assert.equal(readConfig({ DATABASE_URL }).databaseUrl, DATABASE_URL);
});

test('config: machines that share a log share their keys and their read models', () => {
  const EVENTSTORE_URL = 'kurrentdb+discover://log.example:2113';
  const [SIGNING_KEYS_FILE, DATABASE_URL] = ['keys.json', 'postgres://db.example/relay'];
  assert.deepEqual(faultsOf({ EVENTSTORE_URL }), ['SIGNING_KEYS_FILE', 'DATABASE_URL']);
  assert.deepEqual(faultsOf({ EVENTSTORE_URL, DATABASE_URL }), ['SIGNING_KEYS_FILE']);
  assert.deepEqual(faultsOf({ EVENTSTORE_URL, SIGNING_KEYS_FILE }), ['DATABASE_URL']);
  assert.deepEqual(faultsOf({ EVENTSTORE_URL, SIGNING_KEYS_FILE, DATABASE_URL: 'db' }), ['DATABASE_URL']);
  assert.deepEqual(faultsOf({ EVENTSTORE_URL, SIGNING_KEYS_FILE, DATABASE_URL }), []);
});

test('config: the base of links is PUBLIC_BASE_URL, or else where the service listens', () => {
  assert.equal(baseUrl(readConfig({}), 3402), 'http://127.0.0.1:3402');
  assert.equal(baseUrl(readConfig({ PORT: '0', HOST: '::1' }), 40123), 'http://[::1]:40123');
  for (const [text, base = text] of [
    ['https://relay.example'],
    ['http://my_relay-2.example.:8443'],
    ['http://127.0.0.1:3402'],
    ['https://[2001:db8::1]:8443'],
    ['https://bücher.example/', 'https://xn--bcher-kva.example'],
  ] as const)
    assert.equal(baseUrl(readConfig({ PUBLIC_BASE_URL: text }), 1), base);
});

test('config: the key of a buyer is its own variable, and a fault never shows it', () => {
  const key = `0x${'1f'.repeat(32)}`;
  assert.equal(readVariable('RELAY_BUYER_PRIVATE_KEY', { RELAY_BUYER_PRIVATE_KEY: key }), key);
  assert.equal(readVariable('RELAY_BUYER_PRIVATE_KEY', {}), null);
  const zero = `0x${'0'.repeat(64)}`;
  const order = '0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
  for (const wrong of [key.slice(2), key.slice(0, -1), `${key}0`, `${key.slice(0, -1)}g`, zero, order]) {
    assert.throws(
      () => readVariable('RELAY_BUYER_PRIVATE_KEY', { RELAY_BUYER_PRIVATE_KEY: wrong }),
      (error: unknown) =>
        error instanceof ConfigError &&
        error.message.includes('RELAY_BUYER_PRIVATE_KEY') &&
        !error.message.includes(wrong.slice(2)),
    );
  }
});

test('config: a command on the log alone needs no more than where the log is', () => {
  const eventStoreUrl = 'esdb://log.example:2113?tls=false';
  const env = {
    EVENTSTORE_URL: eventStoreUrl,
    DATA_DIR: '/var/lib/relay',
    PORT: 'none',
    X402_ENABLED: 'true',
  };
  const keyFile = { path: '/var/lib/relay/keys.json', create: true };
  assert.deepEqual(readLogConfig(env), { dataDir: '/var/lib/relay', eventStoreUrl, keyFile });
  assert.throws(
    () => readLogConfig({ EVENTSTORE_URL: 'http://log.example' }),
    (error: unknown) => error instanceof ConfigError && error.faults[0]?.variable === 'EVENTSTORE_URL',
  );
});

test('config: outbound requests are signed where PUBLIC_BASE_URL is https, unless it is switched off', () => {
  const signs = (env: Readonly<Record<string, string>>) => readConfig(env).webBotAuth;
  const https = { PUBLIC_BASE_URL: 'https://relay.example' };
  assert.deepEqual(
    [signs({}), signs({ PUBLIC_BASE_URL: 'http://relay.example' }), signs(https)],
    [false, false, true],
  );
  assert.deepEqual(
    [signs({ ...https, WEB_BOT_AUTH: 'on' }), signs({ ...https, WEB_BOT_AUTH: 'off' })],
    [true, false],
  );
  assert.throws(() => readConfig({ WEB_BOT_AUTH: 'on' }), /WEB_BOT_AUTH needs a PUBLIC_BASE_URL with https/);
});
