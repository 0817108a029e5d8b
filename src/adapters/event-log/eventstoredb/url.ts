// Parses the connection string of the server. It may contain a password, so no error message repeats a part of it. (The
// client's parser prints the whole string if an option is unknown.)
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

export type Host = { readonly address: string; readonly port: number };

export type EventStoreSettings = {
  /** At least one. */
  readonly hosts: readonly Host[];
  /** The hosts are queried for the cluster's leader; false: the one host is the server. */
  readonly discover: boolean;
  /** null: no TLS. `ca` null: the system's root certificates. */
  readonly tls: { readonly ca: Buffer | null } | null;
  readonly credentials: { readonly username: string; readonly password: string } | null;
  /** Name of this connection in the server's logs. */
  readonly connectionName: string;
  /** ms between pings of the transport, and the time limit of their answers. */
  readonly keepAliveMs: number;
  readonly keepAliveTimeoutMs: number;
};

/** The connection string cannot be used; the message states the reason without repeating any of it. */
export class UnreadableConnectionString extends Error {
  constructor(why: string, options?: ErrorOptions) {
    super(`the connection string of the event store ${why}`, options);
    this.name = 'UnreadableConnectionString';
  }
}

const FORM =
  /^(?:esdb|kurrentdb|kurrent|kdb)(\+discover)?:\/\/(?:([^:@/?]+):([^@/?]+)@)?([^@/?]+)\/?(?:\?(.*))?$/;
const HOST = /^([^:[\]]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i;

/** The options with their defaults. Those of other clients that have no meaning here are accepted and ignored. */
const DEFAULTS = {
  tls: 'true',
  tlsVerifyCert: 'true',
  tlsCAFile: '',
  connectionName: 'relay',
  keepAliveInterval: '10000',
  keepAliveTimeout: '10000',
  nodePreference: '',
  maxDiscoverAttempts: '',
  discoveryInterval: '',
  gossipTimeout: '',
  defaultDeadline: '',
  throwOnAppendFailure: '',
};
type Options = Record<keyof typeof DEFAULTS, string>;

/**
 * `esdb://` or `kurrentdb://`, with `+discover` for a cluster: `esdb://user:password@host:port,host:port?tls=false`.
 * Throws `UnreadableConnectionString`, also if a named file cannot be read.
 */
export function eventStoreSettings(url: string): EventStoreSettings {
  const [form, discover, username, password, hostList = '', query = ''] = FORM.exec(url.trim()) ?? [];
  if (form === undefined) {
    throw new UnreadableConnectionString(
      'must look like esdb://host:2113?tls=false or esdb://user:password@host:2113, with user and password percent-encoded',
    );
  }
  const hosts = hostList.split(',').map(host);
  const options = optionsOf(query);
  const tls = tlsOf(options);
  if (tls !== null && hosts.some(({ address }) => isIP(address.replaceAll(/[[\]]/g, '')) !== 0)) {
    throw new UnreadableConnectionString('has an IP address: TLS needs the host name of the certificate');
  }
  return {
    hosts,
    discover: discover !== undefined || hosts.length > 1,
    tls,
    credentials: username && password ? { username: decoded(username), password: decoded(password) } : null,
    connectionName: options.connectionName,
    keepAliveMs: milliseconds(options, 'keepAliveInterval'),
    keepAliveTimeoutMs: milliseconds(options, 'keepAliveTimeout'),
  };
}

function host(text: string): Host {
  const [, address, port = '2113'] = HOST.exec(text.trim()) ?? [];
  if (address === undefined || Number(port) > 65_535) {
    throw new UnreadableConnectionString('has a host that is not host or host:port');
  }
  return { address, port: Number(port) };
}

/** Names are compared without case, `-` and `_`, as in the server's other clients. */
const flat = (name: string): string => name.trim().toLowerCase().replaceAll(/[-_]/g, '');

function optionsOf(query: string): Options {
  const options: Options = { ...DEFAULTS };
  const names = Object.keys(DEFAULTS) as (keyof Options)[];
  for (const pair of query.split('&').filter((part) => part !== '')) {
    const [name = '', ...value] = pair.split('=');
    const option = names.find((one) => flat(one) === flat(name));
    if (option === undefined) throw new UnreadableConnectionString('has an unknown option');
    options[option] = decoded(value.join('=')).trim();
  }
  return options;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UnreadableConnectionString('has a part that is not percent-encoded correctly');
  }
}

function tlsOf({ tls, tlsVerifyCert, tlsCAFile }: Options): EventStoreSettings['tls'] {
  for (const [name, value] of Object.entries({ tls, tlsVerifyCert })) {
    if (value === 'true' || value === 'false') continue;
    throw new UnreadableConnectionString(`has ${name} with a value other than true or false`);
  }
  if (tls === 'false') return null;
  if (tlsVerifyCert === 'false') {
    throw new UnreadableConnectionString(
      'switches certificate checks off (tlsVerifyCert=false): set tlsCAFile to the CA instead',
    );
  }
  try {
    return { ca: tlsCAFile === '' ? null : readFileSync(tlsCAFile) };
  } catch (cause) {
    throw new UnreadableConnectionString('has a file in tlsCAFile that cannot be read', { cause });
  }
}

/** -1 means never: the longest delay of a timer. */
function milliseconds(options: Options, name: keyof Options): number {
  const value = options[name];
  if (!/^(-1|[1-9]\d{0,8})$/.test(value)) {
    throw new UnreadableConnectionString(`has ${name} with a value that is neither milliseconds nor -1`);
  }
  return value === '-1' ? 2 ** 31 - 1 : Number(value);
}
