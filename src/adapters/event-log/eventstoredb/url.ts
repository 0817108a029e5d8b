// Reads the connection string of the server: where it is, how it is reached, who asks. It holds a password, so no
// message repeats a part of it. (The client's own parser prints the whole string where it does not know an option.)
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

export type Host = { readonly address: string; readonly port: number };

export type EventStoreSettings = {
  /** At least one. */
  readonly hosts: readonly Host[];
  /** The hosts are asked for the cluster's leader; false: the one host is the server. */
  readonly discover: boolean;
  /** null: no TLS. `ca` null: the system's root certificates. */
  readonly tls: { readonly ca: Buffer | null; readonly user: { cert: Buffer; key: Buffer } | null } | null;
  readonly credentials: { readonly username: string; readonly password: string } | null;
  /** Name of this connection in the server's logs. */
  readonly connectionName: string;
  /** ms between pings of the transport, -1 for none, and how long one may stay unanswered. */
  readonly keepAliveMs: number;
  readonly keepAliveTimeoutMs: number;
};

/** The connection string cannot be used; the message says why without repeating any of it. */
export class UnreadableConnectionString extends Error {
  constructor(why: string, options?: ErrorOptions) {
    super(`the connection string of the event store ${why}`, options);
    this.name = 'UnreadableConnectionString';
  }
}

const FORM =
  /^(?:esdb|kurrentdb|kurrent|kdb)(\+discover)?:\/\/(?:([^:@/?]+):([^@/?]+)@)?([^@/?]+)\/?(?:\?(.*))?$/;
const HOST = /^([^:[\]]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i;
const DEFAULT_PORT = '2113';
const OPTIONS = [
  'tls',
  'tlsVerifyCert',
  'tlsCAFile',
  'userCertFile',
  'userKeyFile',
  'connectionName',
  'keepAliveInterval',
  'keepAliveTimeout',
] as const;
type Option = (typeof OPTIONS)[number];
/** Known to the clients of this server, and without a meaning here: limits, leader and faults are this adapter's. */
const WITHOUT_EFFECT = [
  'nodePreference',
  'maxDiscoverAttempts',
  'discoveryInterval',
  'gossipTimeout',
  'defaultDeadline',
  'throwOnAppendFailure',
];

/**
 * `esdb://` or `kurrentdb://`, with `+discover` for a cluster: `esdb://user:password@host:port,host:port?tls=false`.
 * Throws `UnreadableConnectionString`, also where a named file cannot be read.
 */
export function eventStoreSettings(url: string): EventStoreSettings {
  const match = FORM.exec(url.trim());
  if (match === null) {
    throw new UnreadableConnectionString(
      'has to look like esdb://host:2113?tls=false or esdb://user:password@host:2113, with user and password percent-encoded',
    );
  }
  const [, discover, username, password, hostList = '', query = ''] = match;
  const hosts = hostList.split(',').map(host);
  const options = optionsOf(query);
  const tls = tlsOf(options);
  if (tls !== null && hosts.some(({ address }) => isIP(address.replaceAll(/[[\]]/g, '')) !== 0)) {
    throw new UnreadableConnectionString('has an IP address where TLS needs the name in the certificate');
  }
  return {
    hosts,
    discover: discover !== undefined || hosts.length > 1,
    tls,
    credentials:
      username === undefined || password === undefined
        ? null
        : { username: decoded(username), password: decoded(password) },
    connectionName: options.get('connectionName') ?? 'relay',
    keepAliveMs: milliseconds(options, 'keepAliveInterval'),
    keepAliveTimeoutMs: milliseconds(options, 'keepAliveTimeout'),
  };
}

function host(text: string): Host {
  const [, address, port = DEFAULT_PORT] = HOST.exec(text.trim()) ?? [];
  if (address === undefined || Number(port) > 65_535) {
    throw new UnreadableConnectionString('has a host that is not host or host:port');
  }
  return { address, port: Number(port) };
}

type Options = ReadonlyMap<Option, string>;

/** Names compare without case, `-` and `_`, as they do for the clients of this server. */
const flat = (name: string): string => name.trim().toLowerCase().replaceAll(/[-_]/g, '');

function optionsOf(query: string): Options {
  const options = new Map<Option, string>();
  for (const pair of query.split('&').filter((part) => part !== '')) {
    const [name = '', ...value] = pair.split('=');
    const option = OPTIONS.find((one) => flat(one) === flat(name));
    if (option !== undefined) options.set(option, decoded(value.join('=')).trim());
    else if (!WITHOUT_EFFECT.some((one) => flat(one) === flat(name))) {
      throw new UnreadableConnectionString('has an option that is not known');
    }
  }
  return options;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UnreadableConnectionString('has a part that is not percent-encoded right');
  }
}

function tlsOf(options: Options): EventStoreSettings['tls'] {
  if (!flag(options, 'tls')) return null;
  if (!flag(options, 'tlsVerifyCert')) {
    throw new UnreadableConnectionString(
      'asks for TLS without proof (tlsVerifyCert=false): name the CA in tlsCAFile',
    );
  }
  const cert = file(options, 'userCertFile');
  const key = file(options, 'userKeyFile');
  if ((cert === null) !== (key === null)) {
    throw new UnreadableConnectionString('has to name userCertFile and userKeyFile together');
  }
  return { ca: file(options, 'tlsCAFile'), user: cert === null || key === null ? null : { cert, key } };
}

function flag(options: Options, name: Option): boolean {
  const value = options.get(name) ?? 'true';
  if (value !== 'true' && value !== 'false')
    throw new UnreadableConnectionString(`has ${name} neither true nor false`);
  return value === 'true';
}

function file(options: Options, name: Option): Buffer | null {
  const path = options.get(name);
  if (path === undefined) return null;
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new UnreadableConnectionString(`names a file in ${name} that cannot be read`, { cause });
  }
}

const KEEP_ALIVE = '10000';

function milliseconds(options: Options, name: Option): number {
  const value = options.get(name) ?? KEEP_ALIVE;
  if (!/^(-1|[1-9]\d{0,8})$/.test(value)) {
    throw new UnreadableConnectionString(`has ${name} that is neither milliseconds nor -1`);
  }
  return Number(value);
}
