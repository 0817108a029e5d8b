// The configuration: the only reader of the environment. Every fault is found in one go and named by its variable.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { folderProblem, misspelledVariables } from './config-checks.ts';
import { isLoopback, type Parse, Problem } from './config-values.ts';
import { VARIABLES } from './config-variables.ts';
import { RETURNED_HEADERS } from './domain/destination/headers.ts';
import type { Mode } from './domain/event-fields.ts';
import { OperatorError } from './lib/operator-error.ts';
import { urlHost } from './lib/url-host.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

type Frozen<T> = T extends Uint8Array ? T : { readonly [K in keyof T]: Frozen<T[K]> };

export type Config = Frozen<ReturnType<typeof configOf>>;

export type ConfigFault = { readonly variable: string; readonly problem: string };

/** All that is wrong with the environment. Shows no value: DATABASE_URL has a password. */
export class ConfigError extends OperatorError {
  readonly faults: readonly ConfigFault[];
  constructor(faults: readonly ConfigFault[]) {
    super(
      `wrong configuration:\n${faults.map((fault) => `  ${fault.variable} ${fault.problem}`).join('\n')}`,
    );
    this.faults = faults;
  }
}

/** The values. Throws `ConfigError`. */
export function readConfig(env: Environment = process.env): Config {
  return reading(env, configOf);
}

/**
 * The values, for a process that serves: also refused are a free relay that is probably meant to be paid, misspelled
 * variables, and files that are missing or cannot be written. Throws `ConfigError` with all faults.
 */
export function readServiceConfig(env: Environment = process.env): Config {
  return reading(env, (read, fault) => {
    const config = configOf(read, fault);
    if (config.mode === 'demo' && !read('ALLOW_FREE_RELAY')) {
      const free = (variable: Name, problem: string) =>
        fault(
          variable,
          `${problem}, but X402_ENABLED is off: set X402_ENABLED=true, or ALLOW_FREE_RELAY=true to serve calls for free`,
        );
      if (read('X402_PAY_TO') !== null) free('X402_PAY_TO', 'is set');
      if (read('X402_FACILITATOR_URL') !== null) free('X402_FACILITATOR_URL', 'is set');
      const base = config.publicBaseUrl;
      if (base !== null && !isLoopback(new URL(base).hostname.replace(/^\[|\]$/g, '')))
        free('PUBLIC_BASE_URL', 'is a public address');
    }
    const { path, create } = config.keyFile;
    if (!create && !existsSync(path))
      fault('SIGNING_KEYS_FILE', `names a missing file, ${path}: create it with "relay keys init"`);
    const folder = config.eventStoreUrl === null ? folderProblem(config.dataDir) : null;
    if (folder !== null) fault('DATA_DIR', folder);
    for (const { variable, nearest } of misspelledVariables(env, Object.keys(VARIABLES)))
      fault(variable, `is no variable of this service: is ${nearest} meant?`);
    return config;
  });
}

/** The options of the service's command line. Throws `OperatorError` for any other. */
export function readArguments(args: readonly string[]): { readonly beginNewLog: boolean } {
  const unknown = args.find((arg) => arg !== BEGIN_NEW_LOG);
  if (unknown === undefined) return { beginNewLog: args.length > 0 };
  throw new OperatorError(
    `unknown option ${unknown}: the service takes only ${BEGIN_NEW_LOG}, and is configured by the environment`,
  );
}

export const BEGIN_NEW_LOG = '--begin-new-log';

function configOf(read: Read, fault: Fault) {
  const mode: Mode = read('X402_ENABLED') ? 'x402' : 'demo';
  const listen = { host: read('HOST'), port: read('PORT') };
  const log = logConfig(read);
  const databaseUrl = read('DATABASE_URL');
  const freeRelay = read('ALLOW_FREE_RELAY');
  if (mode === 'demo' && !freeRelay && !isLoopback(listen.host)) {
    const why = 'to let others than this machine call for free: HOST is not loopback, X402 is off';
    fault('ALLOW_FREE_RELAY', `must be true ${why}`);
  }
  if (log.eventStoreUrl !== null) {
    const share = 'is required with EVENTSTORE_URL: machines that share a log share their';
    if (log.keyFile.create) fault('SIGNING_KEYS_FILE', `${share} keys`);
    if (databaseUrl === null) fault('DATABASE_URL', `${share} read models`);
  }
  // All X402 variables are judged, also in demo mode: switching it on then holds no surprise.
  const payTo = read('X402_PAY_TO');
  const facilitatorUrl = read('X402_FACILITATOR_URL');
  const rpcUrl = read('X402_RPC_URL');
  if (mode === 'x402') {
    const required = { X402_PAY_TO: payTo, X402_FACILITATOR_URL: facilitatorUrl, X402_RPC_URL: rpcUrl };
    for (const [variable, value] of Object.entries(required)) {
      if (value === null) fault(variable as keyof typeof required, 'is required with X402_ENABLED=true');
    }
  }
  const login = loginConfig(read, fault, mode);
  const terms = {
    network: read('X402_NETWORK'),
    /** US dollars, decimal. */
    priceUsd: read('X402_PRICE'),
    /** Contract address; null: the network's USDC. */
    asset: read('X402_ASSET'),
    /** Wallet beside the payee; null: none. */
    refundFrom: read('X402_REFUND_FROM'),
    facilitatorTimeoutMs: read('X402_FACILITATOR_TIMEOUT_MS'),
    reconcileMs: read('X402_RECONCILE_SECONDS') * 1000,
    confirmations: read('X402_CONFIRMATIONS'),
    /** The longest that a call waits for the chain to confirm its payment. */
    confirmWaitMs: read('X402_CONFIRM_SECONDS') * 1000,
    /** At the facilitator; null: none. */
    login,
  };
  const publicBaseUrl = read('PUBLIC_BASE_URL');
  const isHttps = publicBaseUrl?.startsWith('https:') ?? false;
  const webBotAuth = read('WEB_BOT_AUTH') ?? isHttps;
  if (webBotAuth && !isHttps)
    fault('WEB_BOT_AUTH', 'needs a PUBLIC_BASE_URL with https, where targets find the keys');
  const horizonDays = read('SCHEDULE_HORIZON_DAYS');
  const paid = mode === 'x402' && payTo !== null && facilitatorUrl !== null && rpcUrl !== null;
  return {
    mode,
    /** `port` 0: any free one. */
    listen,
    /** An origin; null: `baseUrl` derives it, once the port is known. */
    publicBaseUrl,
    /** Whether outbound requests have a message signature. */
    webBotAuth,
    ...log,
    databaseUrl,
    /** null in demo mode. */
    x402: paid ? { payTo, facilitatorUrl, rpcUrl, ...terms } : null,
    policy: {
      mode: read('POLICY_MODE'),
      blockHosts: read('POLICY_BLOCK_HOSTS') ?? [],
      allowHosts: read('POLICY_ALLOW_HOSTS') ?? [],
    },
    rates: {
      targetPerMinute: read('TARGET_QUOTA_PER_MINUTE'),
      clientPerMinute: read('RATE_LIMIT_PER_MINUTE'),
      readsPerMinute: read('RATE_LIMIT_READS_PER_MINUTE'),
      maxInFlight: read('MAX_IN_FLIGHT'),
    },
    returnsResponses: read('RETURN_RESPONSES'),
    /** Of a returned response: names in lower case. */
    returnedHeaders: [...new Set([...RETURNED_HEADERS, ...(read('RETURN_RESPONSE_HEADERS') ?? [])])],
    /** CIDR texts: `parseCidr` of the outbound adapter reads each. */
    trustedProxies: read('TRUSTED_PROXIES') ?? [],
    egress: {
      /** `ip:port`; null: the system's. */
      dnsServers: read('EGRESS_DNS_SERVERS'),
      /** PEM certificates to trust beside the system's; null: none. */
      caPem: read('EGRESS_CA_FILE'),
      /** CIDR texts. */
      allowCidrs: read('EGRESS_ALLOW_CIDRS') ?? [],
      denyCidrs: read('EGRESS_DENY_CIDRS') ?? [],
      nat64Prefix: read('EGRESS_NAT64_PREFIX'),
      /** null: all but the Fetch standard's bad ports. */
      ports: read('EGRESS_PORTS'),
    },
    retentionDays: { jobs: read('RETENTION_JOBS_DAYS'), receipts: read('RETENTION_RECEIPTS_DAYS') },
    /** null: the transparency log is unwitnessed. */
    witnesses: witnessConfig(read),
    /** Paid schedules; null: off. */
    schedules: read('SCHEDULES') ? { horizonDays } : null,
    logLevel: read('LOG_LEVEL'),
    otlpEndpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT'),
    metricsPublic: read('METRICS_PUBLIC'),
  };
}

function witnessConfig(read: Read) {
  const policy = read('WITNESS_POLICY_FILE');
  const intervalMs = read('WITNESS_INTERVAL_SECONDS') * 1000;
  return policy === null ? null : { policy, intervalMs };
}

/** Of a login, every part is required and no part of another one is accepted. */
function loginConfig(read: Read, fault: Fault, mode: Mode) {
  const kind = read('X402_FACILITATOR_AUTH');
  const [keyId, key] = [read('CDP_API_KEY_ID'), read('CDP_API_KEY_SECRET')];
  const headers = read('X402_FACILITATOR_HEADERS_FILE');
  if (kind === 'cdp') {
    if (keyId === null) fault('CDP_API_KEY_ID', 'is required with X402_FACILITATOR_AUTH=cdp');
    if (key === null) fault('CDP_API_KEY_SECRET', 'is required with X402_FACILITATOR_AUTH=cdp');
    if (headers !== null) {
      fault('X402_FACILITATOR_HEADERS_FILE', 'is another login than X402_FACILITATOR_AUTH: set one of them');
    }
    return keyId === null || key === null ? null : { kind, keyId, key };
  }
  // Other programs use these names too: in demo mode they mean nothing here.
  if (mode === 'x402' && (keyId !== null || key !== null)) {
    fault('X402_FACILITATOR_AUTH', 'must be cdp if CDP_API_KEY_ID or CDP_API_KEY_SECRET is set');
  }
  return headers === null ? null : ({ kind: 'headers', headers } as const);
}

/** Where the event log is: all that a command on it alone needs. */
export type LogConfig = Pick<Config, 'dataDir' | 'eventStoreUrl' | 'keyFile'>;

/** For a command that reads no read model and signs nothing. Throws `ConfigError`. */
export function readLogConfig(env: Environment = process.env): LogConfig {
  return reading(env, logConfig);
}

/** `dataDir`: absolute. */
function logConfig(read: Read) {
  const dataDir = read('DATA_DIR');
  const keyFile = read('SIGNING_KEYS_FILE');
  return {
    dataDir,
    eventStoreUrl: read('EVENTSTORE_URL'),
    /** `create`: the embedded default, which is made where it is missing. */
    keyFile: { path: keyFile ?? join(dataDir, 'keys.json'), create: keyFile === null },
  };
}

/**
 * One variable, for a command that needs it alone; null if it is optional and unset. RELAY_BUYER_PRIVATE_KEY is read by this
 * only: a service holds no buyer's key. Throws `ConfigError`.
 */
export function readVariable<N extends Name>(name: N, env: Environment = process.env): Frozen<Value<N>> {
  return reading(env, (read) => read(name));
}

/** `boundPort`: the one the service listens on, where PORT was 0. */
export function baseUrl({ publicBaseUrl, listen }: Config, boundPort: number): string {
  return publicBaseUrl ?? `http://${urlHost(listen.host)}:${boundPort}`;
}

type Name = keyof typeof VARIABLES;
type Value<N extends Name> =
  | ReturnType<(typeof VARIABLES)[N]['parse']>
  | ((typeof VARIABLES)[N] extends { standard: string } ? never : null);
/** The variable's value; after a fault that of an unset one. */
type Read = <N extends Name>(name: N) => Value<N>;
type Fault = (variable: string, problem: string) => void;

/** An empty or blank variable counts as unset: a compose file has no other way to unset it. */
function reading<T>(env: Environment, work: (read: Read, fault: Fault) => T): Frozen<T> {
  const faults = new Map<string, string>();
  /** The first fault of a variable counts. */
  const fault: Fault = (variable, problem) => {
    if (!faults.has(variable)) faults.set(variable, problem);
  };
  const value = work(read, fault);
  if (faults.size === 0) return frozen(value);
  throw new ConfigError([...faults].map(([variable, problem]) => ({ variable, problem })));

  function read<N extends Name>(variable: N): Value<N> {
    const declared = VARIABLES[variable];
    const parse = declared.parse as Parse<Value<N>>;
    const text = env[variable]?.trim() ?? '';
    try {
      if (text !== '') return parse(text);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      fault(variable, error.message);
    }
    return 'standard' in declared ? parse(declared.standard) : (null as Value<N>);
  }
}

function frozen<T>(value: T): Frozen<T>;
function frozen(value: unknown): unknown {
  // The elements of a typed array cannot be frozen.
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  for (const member of Object.values(value)) frozen(member);
  return Object.freeze(value);
}
