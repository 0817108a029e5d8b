// TCP and TLS to one checked address. Nothing of the request is sent before the peer is proven.
import { connect, type SecureContext, type TLSSocket } from 'node:tls';
import { sameAddress } from '../../domain/target/addresses.ts';
import type { Dial } from '../../domain/target/policy.ts';
import type { Target } from '../../domain/target/url.ts';
import { describeAddress } from './addresses.ts';
import { type Attempt, AttemptFailed, type Stopwatch, sha256 } from './attempt.ts';
import type { Deadline } from './deadline.ts';

/**
 * A connection to `dial.address` whose certificate is good for the target's name (RFC 9525), or for its address
 * where it has no name. Rejects with `AttemptFailed`. The socket is the caller's to destroy, whatever comes.
 */
export function openConnection(
  target: Target,
  dial: Dial,
  secureContext: SecureContext,
  attempt: Attempt,
  watch: Stopwatch,
  deadline: Deadline,
): { socket: TLSSocket; ready: Promise<void> } {
  attempt.phase = 'connect';
  attempt.address = dial.address.text;
  const socket = connect({
    host: dial.address.text,
    port: target.port,
    ...(target.literal ? {} : { servername: target.hostname }),
    secureContext,
    // Said outright: NODE_TLS_REJECT_UNAUTHORIZED=0 switches the default off.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  });
  socket.setNoDelay(true);
  const ready = new Promise<void>((resolve, reject) => {
    const fail = (error: unknown) => reject(new AttemptFailed(categoryOf(error, attempt), error));
    // Stays for the socket's life: an error after the answer is nobody's business, but must not be uncaught.
    socket.on('error', fail);
    socket.once('close', () => fail(null));
    deadline.onExpired(() => reject(new AttemptFailed('timeout')));
    socket.once('connect', () => {
      attempt.timings.connectMs = watch.lap();
      attempt.phase = 'tls';
    });
    socket.once('secureConnect', () => {
      attempt.timings.tlsMs = watch.lap();
      attempt.tlsVersion = socket.getProtocol();
      const leaf = socket.getPeerX509Certificate();
      attempt.leafSha256 = leaf === undefined ? null : sha256(leaf.raw);
      const remote = describeAddress(socket.remoteAddress ?? '');
      if (remote === null || !sameAddress(remote, dial.address)) reject(new AttemptFailed('target_refused'));
      else if (!socket.authorized) reject(new AttemptFailed('tls_error', socket.authorizationError));
      else resolve();
    });
  });
  return { socket, ready };
}

/** Codes of a connection that was lost; in the TLS phase everything else is the handshake's own failure. */
const LOST = ['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENETUNREACH', 'EHOSTUNREACH'];

function categoryOf(error: unknown, attempt: Attempt): 'connect_error' | 'tls_error' {
  const code = error instanceof Error && 'code' in error ? String(error.code) : null;
  return attempt.phase === 'connect' || code === null || LOST.includes(code) ? 'connect_error' : 'tls_error';
}
