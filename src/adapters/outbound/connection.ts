// TCP and TLS to one checked address. No part of the request is sent before the peer is authenticated.
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  checkServerIdentity,
  connect as connectTls,
  createSecureContext,
  getCACertificates,
  type PeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { sameAddress } from '#src/domain/destination/addresses.ts';
import type { Dial } from '#src/domain/destination/policy.ts';
import type { Target } from '#src/domain/destination/url.ts';
import { sha256, toHex } from '#src/domain/encoding.ts';
import { describeAddress } from './addresses.ts';
import { type Attempt, AttemptFailed, isLanguageError, notPermitted } from './attempt.ts';
import { connectFailure } from './failure.ts';
import type { ReadTurns } from './read-turns.ts';
import { connectTcp, TcpStream } from './tcp-stream.ts';

export type Connection = {
  readonly socket: TLSSocket;
  /** Below TLS. */
  readonly stream: TcpStream;
  /** Resolves when TCP is connected, to the address dialled; rejects with `AttemptFailed`. */
  connected(): Promise<void>;
  /** Resolves when the peer is authenticated; rejects with `AttemptFailed`. */
  readonly ready: Promise<void>;
  /** The caller must call it in every case. */
  destroy(): void;
};

/**
 * Opens a connection to `dial.address`. Its certificate must be valid for the target's name (RFC 9525), or for the address
 * if the target has no name.
 */
export function openConnection(
  target: Target,
  dial: Dial,
  secureContext: SecureContext,
  turns: ReadTurns,
  attempt: Attempt,
): Connection {
  attempt.phase = 'connect';
  attempt.address = dial.address.text;
  attempt.exempted = dial.exempted;
  const host = dial.address.text;
  const tcp = connectTcp({ host, port: target.port });
  tcp.setNoDelay(true);
  const stream = new TcpStream(tcp, turns, attempt.isOver);
  let leaf: Uint8Array | undefined;
  const socket = connectTls({
    socket: stream,
    // The name that the certificate must be valid for if there is no servername.
    host,
    ...(target.literal ? {} : { servername: target.hostname }),
    secureContext,
    // Explicit: NODE_TLS_REJECT_UNAUTHORIZED=0 changes the default.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    // The runtime's own check; it is given the certificate, whose other ways out of Bun parse it twice more.
    checkServerIdentity(name, certificate) {
      leaf = certificate.raw;
      return identityFault(name, certificate);
    },
  });
  // A certificate that is not trusted can be read until the runtime destroys the socket because of it. Deno has none then.
  let rejected: X509Certificate | null = null;
  const destroy = socket.destroy.bind(socket);
  socket.destroy = (error) => {
    if (error) rejected ??= certificateOf(socket);
    return destroy(error);
  };
  let isDestroyed = false;
  let isConnected = () => {};
  const connecting = new Promise<void>((resolve) => {
    isConnected = resolve;
  });
  const ready = new Promise<void>((resolve, reject) => {
    const fail = (error: unknown) => {
      const isOutcome = !(error instanceof AttemptFailed || isLanguageError(error));
      reject(isOutcome ? connectFailure(error, attempt.phase, rejected) : error);
    };
    // An error thrown in a listener would end the process.
    const guarded = (listener: () => void) => () => {
      try {
        listener();
      } catch (error) {
        reject(error);
      }
    };
    // Never removed: an error after the response has no effect, but must not be uncaught.
    for (const part of [tcp, socket]) {
      part.on('error', fail);
      part.once('close', () => fail(null));
    }
    // Bun ends TLS in order when the connection below it is reset: a body without a length would be complete.
    tcp.on('error', (error) => stream.intake.afterArrived(() => socket.destroy(error)));
    const onConnect = () => {
      if (isDestroyed) return;
      attempt.timings.connectMs = attempt.lap();
      attempt.phase = 'tls';
      const remote = tcp.remoteAddress;
      // Bun has none if the peer has reset the connection.
      if (!remote) fail(null);
      else if (!isAddress(remote, dial)) reject(notPermitted());
      isConnected();
    };
    const onSecure = () => {
      attempt.timings.tlsMs = attempt.lap();
      attempt.tlsVersion = socket.getProtocol();
      leaf ??= socket.getPeerX509Certificate()?.raw;
      attempt.leafSha256 = leaf === undefined ? null : toHex(sha256(leaf));
      if (socket.authorized) resolve();
      else fail(Object.assign(new Error('not authorized'), { code: String(socket.authorizationError) }));
    };
    tcp.once('connect', guarded(onConnect));
    socket.once('secureConnect', guarded(onSecure));
  });
  // A failure before is one of `connected` too, and then `ready` may be awaited by no one.
  ready.catch(() => {});
  return {
    socket,
    stream,
    connected: () => Promise.race([connecting, ready]),
    ready,
    destroy() {
      isDestroyed = true;
      stream.intake.stop();
      socket.destroy();
      tcp.destroy();
    },
  };
}

function certificateOf(socket: TLSSocket): X509Certificate | null {
  try {
    return socket.getPeerX509Certificate() ?? null;
  } catch {
    return null;
  }
}

const BAD_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID';

/** The runtime's check, without its use of the common name (RFC 9525 §2), and never thrown: Deno's would be uncaught. */
function identityFault(name: string, certificate: PeerCertificate): Error | undefined {
  try {
    const kind = isIP(name) === 0 ? /(?:^|, )DNS:/ : /(?:^|, )IP Address:/;
    if (!kind.test(certificate.subjectaltname ?? ''))
      return Object.assign(new Error('no subjectAltName of its kind'), { code: BAD_NAME });
    return checkServerIdentity(name, certificate);
  } catch (error) {
    return Object.assign(new Error('unreadable names', { cause: error }), { code: BAD_NAME });
  }
}

function isAddress(text: string, { address }: Dial): boolean {
  if (text === address.text) return true;
  const remote = describeAddress(text);
  return remote !== null && sameAddress(remote, address);
}

/**
 * The TLS context of all calls, created once. The minimum of TLS 1.2 is set here, because Bun ignores it beside a context.
 * `extraPem`: the content of EGRESS_CA_FILE. If it is null, the runtime's own store is used, because Deno reads a list of
 * roots again for each connection (10 ms and 1 MB). Throws if `extraPem` contains no certificate or an invalid one.
 */
export function outboundTlsContext(extraPem: string | null): SecureContext {
  const roots = extraPem === null ? {} : { ca: rootsWith(extraPem) };
  return createSecureContext({ ...roots, minVersion: 'TLSv1.2' });
}

/** The runtime's default roots, which an explicit list would replace, then those of `extraPem`. */
export function rootsWith(extraPem: string): string[] {
  return [...getCACertificates('default'), ...readCertificates(extraPem)];
}

/** Every certificate of a PEM file, each as a separate PEM text. */
export function readCertificates(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error('no PEM certificate found');
  return blocks.map((block) => new X509Certificate(block).toString());
}
