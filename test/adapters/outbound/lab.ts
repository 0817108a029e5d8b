// An outbound call without fakes: a TLS target, a DNS server, the resolver and the adapter.

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { describeAddress, parseCidr } from '#src/adapters/outbound/addresses.ts';
import { outboundTlsContext } from '#src/adapters/outbound/connection.ts';
import { dnsResolver } from '#src/adapters/outbound/dns.ts';
import { httpsOutbound } from '#src/adapters/outbound/https.ts';
import type { Cidr } from '#src/domain/destination/addresses.ts';
import { chooseDials, judgeTarget, type TargetRules } from '#src/domain/destination/policy.ts';
import type { Target } from '#src/domain/destination/url.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { sleep } from '#src/lib/time.ts';
import type { AttemptReport, Outbound, OutboundRequest } from '#src/ports/outbound.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import { judgeUrlText } from '#test/support/given/judge-text.ts';
import { type DnsAnswers, type DnsServer, startDnsServer } from '#test/support/process/dns-server.ts';
import { startTlsTarget, type TlsTarget, type TlsTargetOptions } from '#test/support/process/tls-target.ts';

export const clock = { now: () => Date.now(), monotonic: () => performance.now() };

export const LOOPBACK = cidrs('127.0.0.0/8', '::1/128');

export function cidrs(...texts: readonly string[]): Cidr[] {
  return texts.map((text) => {
    const cidr = parseCidr(text);
    if (cidr === null) throw new Error(`no CIDR: ${text}`);
    return cidr;
  });
}

export function rulesWith(addresses: Partial<TargetRules['addresses']> = {}): TargetRules {
  return {
    mode: 'open-public-https',
    blockHosts: [],
    allowHosts: [],
    url: {
      ports: null,
      own: { hostname: 'relay.example.com', canary: 'https://relay.example.com/api/canary/echo' },
    },
    addresses: { allow: [], deny: [], own: [], nat64: null, ...addresses },
  };
}

export function targetOf(url: string): Target {
  const target = judgeUrlText(url, rulesWith().url);
  if ('refused' in target) throw new Error(`${url}: ${target.refused}`);
  return target;
}

export function requestTo(url: string, over: Partial<OutboundRequest> = {}): OutboundRequest {
  const body = new TextEncoder().encode('{"a":1}');
  return {
    target: targetOf(url),
    method: 'POST',
    headers: [['x-test', '1']],
    body,
    timeoutMs: 30_000,
    ...over,
  };
}

export function outboundWith(parts: {
  resolver: Resolver;
  caPem: string | null;
  allow?: readonly Cidr[];
  clock?: typeof clock;
}): Outbound {
  const rules = rulesWith({ allow: parts.allow ?? LOOPBACK });
  return httpsOutbound({
    resolver: parts.resolver,
    permits: (target) => !isRefused(judgeTarget(target, describeAddress, rules)),
    chooseDials: (target, addresses) => chooseDials(target, addresses, describeAddress, rules),
    secureContext: outboundTlsContext(parts.caPem),
    keptHeaders: ['content-type', 'retry-after', 'location'],
    clock: parts.clock ?? clock,
  });
}

export type Lab = {
  readonly target: TlsTarget;
  readonly dns: DnsServer;
  readonly outbound: Outbound;
  /** To `https://target.test:PORT/hook` if `url` is absent. */
  send(over?: Partial<OutboundRequest> & { url?: string }): Promise<AttemptReport>;
};

/** Runs `use` with loopback exempt and `target.test` (and all else) at 127.0.0.1, then closes everything. */
export async function inLab(
  options: TlsTargetOptions & { answers?: Readonly<Record<string, DnsAnswers>>; allow?: readonly Cidr[] },
  use: (lab: Lab) => Promise<void>,
): Promise<void> {
  const target = await startTlsTarget(options);
  const dns = await startDnsServer({ answers: options.answers ?? { '*': ['127.0.0.1'] } });
  const resolver = dnsResolver({ servers: [dns.address], maxInFlight: 64 });
  const allow = options.allow ?? LOOPBACK;
  const outbound = outboundWith({ resolver, caPem: target.caPem, allow });
  const send: Lab['send'] = ({ url, ...over } = {}) => outbound.send(requestTo(url ?? target.url(), over));
  try {
    await use({ target, dns, outbound, send });
  } finally {
    await target.close();
    await dns.close();
  }
}

/** A TCP listener on loopback that calls `onSocket` and counts its connections. */
export async function withListener(
  onSocket: (socket: Socket) => void,
  use: (listener: { port: number; connections: () => number; open: () => number }) => Promise<void>,
  at: { host?: string; port?: number } = {},
): Promise<void> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server: Server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
    onSocket(socket);
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(at.port ?? 0, at.host ?? '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    await use({ port, connections: () => connections, open: () => sockets.size });
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

/** Resolves when `condition` holds; rejects after 60 s. */
export async function until(condition: () => boolean): Promise<void> {
  const start = performance.now();
  while (!condition()) {
    if (performance.now() - start > 60_000) throw new Error('condition not met within 60 s');
    await sleep(5);
  }
}
