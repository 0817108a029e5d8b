// Parses the connection string of the server. It may contain a password, so no error message repeats a part of it. (The
// client's parser prints the whole string if an option is unknown.)
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { EndPoint } from '@eventstore/db-client';

export type EventStoreSettings = {
  readonly hosts: readonly [EndPoint, ...EndPoint[]];
  /** The hosts are queried for the cluster's leader; false: the one host is the server. */
  readonly discover: boolean;
  /** null: no TLS. `ca` null: the system's root certificates. */
  readonly tls: { readonly ca: Buffer | null } | null;
  readonly credentials: { readonly username: string; readonly password: string } | null;
};

/** The connection string cannot be used; the message states the reason without repeating any of it. */
export class UnreadableConnectionString extends Error {
  constructor(why: string, options?: ErrorOptions) {
    super(`the connection string of the event store ${why}`, options);
    this.name = 'UnreadableConnectionString';
  }
}

const FORM = /^(?:esdb|kurrentdb)(\+discover)?:\/\/(?:([^:@/?]+):([^@/?]+)@)?([^@/?]+)\/?(?:\?(.*))?$/;
const HOST = /^([^:[\]]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i;

/** Without case, `-` and `_`, as the server's other clients compare them. The second line has no effect here. */
const OPTIONS = new Set([
  ...['tls', 'tlscafile', 'tlsverifycert'],
  ...['connectionname', 'keepaliveinterval', 'keepalivetimeout', 'nodepreference', 'maxdiscoverattempts'],
  ...['discoveryinterval', 'gossiptimeout', 'defaultdeadline', 'throwonappendfailure'],
]);

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
  const [first = '', ...others] = hostList.split(',');
  const hosts: EventStoreSettings['hosts'] = [endPoint(first), ...others.map(endPoint)];
  const tls = tlsOf(query);
  if (tls !== null && hosts.some(({ address }) => isIP(address.replaceAll(/[[\]]/g, '')) !== 0)) {
    throw new UnreadableConnectionString('has an IP address: TLS needs the host name of the certificate');
  }
  return {
    hosts,
    discover: discover !== undefined || hosts.length > 1,
    tls,
    credentials: username && password ? { username: decoded(username), password: decoded(password) } : null,
  };
}

function endPoint(text: string): EndPoint {
  const [, address, port = '2113'] = HOST.exec(text.trim()) ?? [];
  if (address === undefined || Number(port) > 65_535) {
    throw new UnreadableConnectionString('has a host that is not host or host:port');
  }
  return { address, port: Number(port) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UnreadableConnectionString('has a part that is not percent-encoded correctly');
  }
}

function tlsOf(query: string): EventStoreSettings['tls'] {
  // In the query of a form `+` is a blank.
  const pairs = [...new URLSearchParams(query.replaceAll('+', '%2B'))];
  const options = new Map(pairs.map(([name, value]) => [name.toLowerCase().replaceAll(/[-_]/g, ''), value]));
  if ([...options.keys()].some((name) => !OPTIONS.has(name)))
    throw new UnreadableConnectionString('has an unknown option');
  const tls = options.get('tls') ?? 'true';
  if (tls === 'false') return null;
  if (tls !== 'true') throw new UnreadableConnectionString('has tls with a value other than true or false');
  if (options.get('tlsverifycert') === 'false') {
    throw new UnreadableConnectionString(
      'switches certificate checks off (tlsVerifyCert=false): set tlsCAFile to the CA instead',
    );
  }
  try {
    const file = options.get('tlscafile') ?? '';
    return { ca: file === '' ? null : readFileSync(file) };
  } catch (cause) {
    throw new UnreadableConnectionString('has a file in tlsCAFile that cannot be read', { cause });
  }
}
