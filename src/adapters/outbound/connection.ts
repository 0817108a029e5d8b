// TCP and TLS to one checked address. Nothing of the request is sent before the peer is proven.
import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls';
import { sameAddress } from '#src/domain/destination/addresses.ts';
import type { Dial } from '#src/domain/destination/policy.ts';
import type { Target } from '#src/domain/destination/url.ts';
import { describeAddress } from './addresses.ts';
import { type Attempt, AttemptFailed, type Stopwatch, sha256 } from './attempt.ts';
import type { Deadline } from './deadline.ts';
import { tcpStream } from './tcp-stream.ts';

export type Connection = {
  readonly socket: TLSSocket;
  /** Resolves when the peer is proven; rejects with `AttemptFailed`. */
  readonly ready: Promise<void>;
  /** The caller's to call, whatever comes. */
  destroy(): void;
};

/**
 * A connection to `dial.address` whose certificate is good for the target's name (RFC 9525), or for its address
 * where it has no name.
 */
export function openConnection(
  target: Target,
  dial: Dial,
  secureContext: SecureContext,
  attempt: Attempt,
  watch: Stopwatch,
  deadline: Deadline,
): Connection {
  attempt.phase = 'connect';
  attempt.address = dial.address.text;
  const host = dial.address.text;
  const tcp = connectTcp({ host, port: target.port });
  tcp.setNoDelay(true);
  const socket = connectTls({
    socket: tcpStream(tcp),
    // The name that the certificate must be good for, where there is no servername.
    host,
    ...(target.literal ? {} : { servername: target.hostname }),
    secureContext,
    // Said outright: NODE_TLS_REJECT_UNAUTHORIZED=0 switches the default off.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  });
  const ready = new Promise<void>((resolve, reject) => {
    const fail = (error: unknown) => reject(new AttemptFailed(categoryOf(error, attempt), error));
    // Stay for the sockets' lives: an error after the answer is nobody's business, but must not be uncaught.
    for (const part of [tcp, socket]) {
      part.on('error', fail);
      part.once('close', () => fail(null));
    }
    deadline.onExpired(() => reject(new AttemptFailed('timeout')));
    tcp.once('connect', () => {
      attempt.timings.connectMs = watch.lap();
      attempt.phase = 'tls';
      const remote = describeAddress(tcp.remoteAddress ?? '');
      if (remote === null || !sameAddress(remote, dial.address)) reject(new AttemptFailed('target_refused'));
    });
    socket.once('secureConnect', () => {
      attempt.timings.tlsMs = watch.lap();
      attempt.tlsVersion = socket.getProtocol();
      const leaf = socket.getPeerX509Certificate();
      attempt.leafSha256 = leaf === undefined ? null : sha256(leaf.raw);
      if (socket.authorized) resolve();
      else reject(new AttemptFailed('tls_error', socket.authorizationError));
    });
  });
  return {
    socket,
    ready,
    destroy() {
      socket.destroy();
      tcp.destroy();
    },
  };
}

/** Codes of a connection that was lost; in the TLS phase everything else is the handshake's own failure. */
const LOST = ['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENETUNREACH', 'EHOSTUNREACH'];

function categoryOf(error: unknown, attempt: Attempt): 'connect_error' | 'tls_error' {
  const code = error instanceof Error && 'code' in error ? String(error.code) : null;
  return attempt.phase === 'connect' || code === null || LOST.includes(code) ? 'connect_error' : 'tls_error';
}
