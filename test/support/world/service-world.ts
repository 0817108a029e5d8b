// A world for the real service on loopback: a TLS target, a DNS server, a data directory, and calls to it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sharedDatabase } from '#test/support/log/postgres.ts';
import { type DnsServer, startDnsServer } from '#test/support/process/dns-server.ts';
import {
  type Environment,
  type Service,
  type Spawning,
  startService,
} from '#test/support/process/service.ts';
import { startTlsTarget, type TlsTarget, type TlsTargetOptions } from '#test/support/process/tls-target.ts';

export type World = {
  readonly target: TlsTarget;
  /** Answers every name with 127.0.0.1 until a test changes it. */
  readonly dns: DnsServer;
  /** A folder for the test's own files; DATA_DIR is `data` in it. */
  readonly folder: string;
  readonly dataDir: string;
  /** What a service gets unless a test overrides it. */
  readonly env: Environment;
  /**
   * On the world's data directory, and on another with a database of its own. Ended by `end` where the test has not.
   */
  start(env?: Environment, until?: 'rows' | 'listening'): Promise<Service>;
  /** Kills what still runs, closes and removes everything. */
  end(): Promise<void>;
};

export type WorldOptions = TlsTargetOptions & {
  /**
   * Read models in the process, not in the run's PostgreSQL: for tests of the embedded stores. Opening an embedded
   * database uses over a second of CPU time. Without PostgreSQL all are embedded.
   */
  readonly embedded?: boolean;
  /** How the services are started. */
  readonly spawning?: Spawning;
};

export async function makeWorld({
  embedded = false,
  spawning,
  ...options
}: WorldOptions = {}): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'relay-journey-'));
  const target = await startTlsTarget(options);
  const dns = await startDnsServer({ answers: { '*': ['127.0.0.1'] } });
  const dataDir = join(folder, 'data');
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, target.caPem);
  const databases = new Map<string, Environment>();
  async function databaseOf(directory: string): Promise<Environment> {
    const url = databases.has(directory) || embedded ? null : await sharedDatabase();
    if (url !== null) databases.set(directory, { DATABASE_URL: url });
    return databases.get(directory) ?? {};
  }
  const env = {
    ...(await databaseOf(dataDir)),
    DATA_DIR: dataDir,
    EGRESS_DNS_SERVERS: dns.address,
    EGRESS_CA_FILE: caFile,
    EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    RATE_LIMIT_PER_MINUTE: '1000000',
  };
  const services: Service[] = [];
  return {
    target,
    dns,
    folder,
    dataDir,
    env,
    async start(more = {}, until = more.DATABASE_URL === undefined ? 'rows' : 'listening') {
      const database = await databaseOf(more.DATA_DIR ?? dataDir);
      const service = await startService({ ...env, ...database, ...more }, until, spawning);
      services.push(service);
      return service;
    },
    async end() {
      for (const service of services) await service.kill();
      await target.close();
      await dns.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The members of an execution response that journeys read. */
export type Executed = {
  readonly mode: string;
  readonly idempotentReplay: boolean;
  readonly job: {
    readonly id: string;
    readonly status: 'succeeded' | 'failed';
    readonly attempts: number;
    readonly decisionId: string | null;
    readonly responseStatus: number | null;
    readonly errorCategory: string | null;
    readonly reason: string | null;
    readonly createdAt: string;
    readonly completedAt: string;
  };
  readonly receipt: {
    readonly id: string;
    readonly signature: string;
    readonly replay: boolean;
    readonly jws: string;
    readonly keyId: string;
  };
  readonly payment: unknown;
  readonly disclosures: readonly string[];
  readonly checkpoint: string | null;
  readonly links: Readonly<Record<string, string>>;
};

export type ErrorBody = {
  readonly error: { readonly code: string; readonly message: string; readonly details?: unknown };
};

export type Answered<T> = { readonly status: number; readonly headers: Headers; readonly body: T };

export async function post<T = Executed & ErrorBody>(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered<T>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as T };
}

/** Repeated where the look-up of the target was later than the service waits for it, as on a busy machine. */
export async function execute(
  service: { readonly url: string },
  body: unknown,
  headers?: Readonly<Record<string, string>>,
): Promise<Answered<Executed & ErrorBody>> {
  for (let tries = 1; ; tries++) {
    const answer = await post(`${service.url}/api/execute/webhook`, body, headers);
    const { code, details } = answer.status === 400 ? answer.body.error : { code: '', details: {} };
    const isLate = code === 'target_unresolvable' && (details as { retryable?: boolean }).retryable === true;
    if (!isLate || tries === 5) return answer;
  }
}

/** `body`: parsed where it is JSON, else text. */
export async function get<T>(url: string): Promise<Answered<T>> {
  const response = await fetch(url);
  const text = await response.text();
  const json = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text };
}

export type Report = {
  readonly ok: boolean;
  readonly receiptId: string | null;
  readonly jobId: string | null;
  readonly keyId: string | null;
  readonly signatureVerified: boolean;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly details?: unknown }[];
};
