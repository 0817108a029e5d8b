// The configuration: the only reader of the environment, once, into one frozen value. Every fault is found in one go
// and named by its variable. What the values mean is left to those who get them.
import { join, resolve } from 'node:path';
import type { PolicyMode } from '#src/domain/destination/policy.ts';
import * as values from './config-values.ts';
import type { Mode } from './domain/event-fields.ts';
import { PRICE } from './domain/limits.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export type Config = {
  readonly mode: Mode;
  /** `port` 0: any free one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** An origin; null: `baseUrl` derives it, once the port is known. */
  readonly publicBaseUrl: string | null;
  /** Absolute. */
  readonly dataDir: string;
  readonly eventStoreUrl: string | null;
  readonly databaseUrl: string | null;
  /** null in demo mode. */
  readonly x402: X402Config | null;
  /** `create`: the embedded default, which is made where it is missing. */
  readonly keyFile: { readonly path: string; readonly create: boolean };
  readonly policy: {
    readonly mode: PolicyMode;
    readonly blockHosts: readonly string[];
    readonly allowHosts: readonly string[];
  };
  readonly rates: {
    readonly targetPerMinute: number;
    readonly clientPerMinute: number;
    readonly maxInFlight: number;
  };
  /** CIDR texts: `parseCidr` of the outbound adapter reads each. */
  readonly trustedProxies: readonly string[];
  readonly egress: {
    /** `ip:port`; null: the system's. */
    readonly dnsServers: readonly string[] | null;
    /** PEM certificates to trust beside the system's; null: none. */
    readonly caPem: string | null;
    /** CIDR texts. */
    readonly allowCidrs: readonly string[];
    readonly denyCidrs: readonly string[];
    /** null: all but the Fetch standard's bad ports. */
    readonly ports: readonly number[] | null;
  };
  readonly retentionDays: { readonly jobs: number; readonly receipts: number };
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly otlpEndpoint: string | null;
  readonly metricsPublic: boolean;
};

export type X402Config = {
  readonly payTo: string;
  readonly facilitatorUrl: string;
  readonly network: string;
  /** US dollars, decimal. */
  readonly priceUsd: string;
  /** Contract address; null: the network's USDC. */
  readonly asset: string | null;
  readonly rpcUrl: string | null;
  readonly facilitatorTimeoutMs: number;
};

export type ConfigFault = { readonly variable: string; readonly problem: string };

/** All that is wrong with the environment. Shows no value: DATABASE_URL has a password. */
export class ConfigError extends Error {
  readonly faults: readonly ConfigFault[];
  constructor(faults: readonly ConfigFault[]) {
    super(
      `wrong configuration:\n${faults.map((fault) => `  ${fault.variable} ${fault.problem}`).join('\n')}`,
    );
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/** Throws `ConfigError`. */
export function readConfig(env: Environment = process.env): Config {
  const faults: ConfigFault[] = [];
  const read = reader(env, faults);
  const paid = read('X402_ENABLED', false, values.boolean);
  const log = logConfig(read);
  const config: Config = {
    mode: paid ? 'x402' : 'demo',
    listen: {
      host: read('HOST', '127.0.0.1', values.listenHost),
      port: read('PORT', 3402, values.wholeNumber(0, 65535)),
    },
    publicBaseUrl: read('PUBLIC_BASE_URL', null, values.origin),
    ...log,
    databaseUrl: read('DATABASE_URL', null, values.databaseUrl),
    x402: readX402(read, paid, faults),
    keyFile: readKeyFile(read, log.dataDir),
    policy: {
      mode: read('POLICY_MODE', POLICY_MODES.open, values.oneOf(POLICY_MODES)),
      blockHosts: read('POLICY_BLOCK_HOSTS', [], values.list(values.hostPattern)),
      allowHosts: read('POLICY_ALLOW_HOSTS', [], values.list(values.hostPattern)),
    },
    rates: {
      targetPerMinute: read('TARGET_QUOTA_PER_MINUTE', 20, values.wholeNumber(1, 1_000_000)),
      clientPerMinute: read('RATE_LIMIT_PER_MINUTE', 60, values.wholeNumber(1, 1_000_000)),
      maxInFlight: read('MAX_IN_FLIGHT', 512, values.wholeNumber(1, 100_000)),
    },
    trustedProxies: read('TRUSTED_PROXIES', [], values.list(values.cidr)),
    egress: {
      dnsServers: read('EGRESS_DNS_SERVERS', null, values.list(values.dnsServer)),
      caPem: read('EGRESS_CA_FILE', null, values.certificatesFile),
      allowCidrs: read('EGRESS_ALLOW_CIDRS', [], values.list(values.cidr)),
      denyCidrs: read('EGRESS_DENY_CIDRS', [], values.list(values.cidr)),
      ports: read('EGRESS_PORTS', null, values.list(values.wholeNumber(1, 65535))),
    },
    retentionDays: {
      jobs: read('RETENTION_JOBS_DAYS', 7, values.wholeNumber(1, 36_500)),
      receipts: read('RETENTION_RECEIPTS_DAYS', 30, values.wholeNumber(1, 36_500)),
    },
    logLevel: read('LOG_LEVEL', 'info', values.oneOf(LOG_LEVELS)),
    otlpEndpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT', null, values.serviceUrl),
    metricsPublic: read('METRICS_PUBLIC', false, values.boolean),
  };
  const freeRelay = read('ALLOW_FREE_RELAY', false, values.boolean);
  const known = new Set(faults.map(({ variable }) => variable));
  faults.push(...faultsBetween(config, freeRelay).filter(({ variable }) => !known.has(variable)));
  if (faults.length > 0) throw new ConfigError(faults);
  return frozen(config);
}

/** Where the event log is: all that a command on it alone needs. */
export type LogConfig = Pick<Config, 'dataDir' | 'eventStoreUrl'>;

/** For a command that reads no read model and signs nothing. Throws `ConfigError`. */
export function readLogConfig(env: Environment = process.env): LogConfig {
  return frozen(reading(env, logConfig));
}

const logConfig = (read: Read): LogConfig => ({
  dataDir: resolve(read('DATA_DIR', './data', (text) => text)),
  eventStoreUrl: read('EVENTSTORE_URL', null, EVENTSTORE),
});

/**
 * The wallet key that `relay pay` signs with, from RELAY_BUYER_PRIVATE_KEY: `0x` and 64 hex digits; null where it is
 * unset. No part of `Config`: a service holds no buyer's key. Throws `ConfigError`.
 */
export function readBuyerKey(env: Environment = process.env): `0x${string}` | null {
  return reading(env, (read) => read('RELAY_BUYER_PRIVATE_KEY', null, values.privateKey));
}

/** The chain that `relay payments refund` reads, from X402_RPC_URL; null if it is unset. Throws `ConfigError`. */
export function readRpcUrl(env: Environment = process.env): string | null {
  return reading(env, (read) => read('X402_RPC_URL', null, values.serviceUrl));
}

/** `boundPort`: the one the service listens on, where PORT was 0. */
export function baseUrl({ publicBaseUrl, listen }: Config, boundPort: number): string {
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return publicBaseUrl ?? `http://${host}:${boundPort}`;
}

const POLICY_MODES = {
  open: 'open-public-https',
  'open-public-https': 'open-public-https',
  'blocklist-quota': 'blocklist-quota',
  allowlist: 'allowlist',
} as const satisfies Record<string, PolicyMode>;
const LOG_LEVELS = { debug: 'debug', info: 'info', warn: 'warn', error: 'error', silent: 'silent' } as const;
const EVENTSTORE = values.connectionString(
  ['esdb', 'esdb+discover', 'kurrentdb', 'kurrentdb+discover'],
  'esdb://host:2113?tls=true',
);

type Read = <T, F>(variable: string, unset: F, parse: values.Parse<T>) => T | F;

/** An empty or blank variable counts as unset: a compose file has no other way to unset it. */
function reader(env: Environment, faults: ConfigFault[]): Read {
  return (variable, unset, parse) => {
    const text = env[variable]?.trim() ?? '';
    if (text === '') return unset;
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof values.Problem)) throw error;
      faults.push({ variable, problem: error.message });
      return unset;
    }
  };
}

function reading<T>(env: Environment, work: (read: Read) => T): T {
  const faults: ConfigFault[] = [];
  const value = work(reader(env, faults));
  if (faults.length > 0) throw new ConfigError(faults);
  return value;
}

/** All X402 variables are judged, also where X402_ENABLED is false: switching it on then holds no surprise. */
function readX402(read: Read, paid: boolean, faults: ConfigFault[]): X402Config | null {
  const required = <T>(variable: string, parse: values.Parse<T>): T | null => {
    const value = read(variable, null, parse);
    if (paid && value === null && !faults.some((fault) => fault.variable === variable)) {
      faults.push({ variable, problem: 'is required with X402_ENABLED=true' });
    }
    return value;
  };
  const payTo = required('X402_PAY_TO', values.evmAddress);
  const facilitatorUrl = required('X402_FACILITATOR_URL', values.serviceUrl);
  const rest = {
    network: read('X402_NETWORK', PRICE.network, values.evmNetwork),
    priceUsd: read('X402_PRICE', PRICE.usd, values.usdPrice),
    asset: read('X402_ASSET', null, values.evmAddress),
    rpcUrl: read('X402_RPC_URL', null, values.serviceUrl),
    facilitatorTimeoutMs: read('X402_FACILITATOR_TIMEOUT_MS', 20_000, values.wholeNumber(100, 40_000)),
  };
  return paid && payTo !== null && facilitatorUrl !== null ? { payTo, facilitatorUrl, ...rest } : null;
}

function readKeyFile(read: Read, dataDir: string): Config['keyFile'] {
  const named = read('SIGNING_KEYS_FILE', null, (text) => resolve(text));
  return named === null ? { path: join(dataDir, 'keys.json'), create: true } : { path: named, create: false };
}

function faultsBetween(config: Config, freeRelay: boolean): ConfigFault[] {
  const faults: ConfigFault[] = [];
  if (config.mode === 'demo' && !freeRelay && !values.isLoopback(config.listen.host)) {
    const problem =
      'must be true to let others than this machine call for free: HOST is not loopback, X402 is off';
    faults.push({ variable: 'ALLOW_FREE_RELAY', problem });
  }
  if (config.eventStoreUrl !== null && config.keyFile.create) {
    const problem = 'is required with EVENTSTORE_URL: machines that share a log share their keys';
    faults.push({ variable: 'SIGNING_KEYS_FILE', problem });
  }
  if (config.eventStoreUrl !== null && config.databaseUrl === null) {
    const problem = 'is required with EVENTSTORE_URL: machines that share a log share their read models';
    faults.push({ variable: 'DATABASE_URL', problem });
  }
  return faults;
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) frozen(member);
  return Object.freeze(value);
}
