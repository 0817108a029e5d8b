// A witness over HTTP (C2SP tlog-witness), on connections that are kept alive: `POST <submission prefix>/add-checkpoint` and
// `GET <monitoring prefix>/<SHA-256 of the origin, hex>/checkpoint`.
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { fromUtf8, sha256, toBase64, toHex, utf8 } from '#src/domain/encoding.ts';
import { collected } from '#src/lib/collected.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import {
  type AddCheckpointRequest,
  type PublishedCheckpoint,
  type RemoteWitness,
  WITNESS_LIMITS,
  type WitnessAnswer,
  type WitnessFailure,
} from '#src/ports/witness.ts';

/**
 * `url`: the submission and monitoring prefix, an http or https URL. Proxies of the environment are not used, unlike by `fetch` of
 * Bun: only the configuration decides where a request goes.
 */
export function httpWitness(url: string): RemoteWitness {
  const prefix = url.replace(/\/+$/, '');
  const { Agent, request } = new URL(prefix).protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });

  /** One request, answered within the limits. */
  async function exchange<T>(
    { path, body, ...options }: Exchange,
    read: (response: IncomingMessage) => Promise<T>,
    ending: AbortSignalLike | undefined,
  ): Promise<T | Failed> {
    const limit = new AbortController();
    const stop = () => limit.abort();
    // The signal alone does not end a request whose answer is a 101: Bun then emits neither an answer nor an error.
    const ended = new Promise<never>((_resolve, reject) => {
      limit.signal.addEventListener('abort', () => reject(limit.signal.reason), { once: true });
    });
    ended.catch(() => undefined);
    const timer = setTimeout(stop, WITNESS_LIMITS.timeoutMs);
    ending?.addEventListener('abort', stop, { once: true });
    if (ending?.aborted) stop();
    let sent: http.ClientRequest | null = null;
    let response: IncomingMessage | null = null;
    try {
      sent = request(new URL(`${prefix}/${path}`), { ...options, agent, signal: limit.signal });
      response = await Promise.race([send(sent, body), ended]);
      return await Promise.race([read(response), ended]);
    } catch {
      if (ending?.aborted) return failed('stopped');
      if (limit.signal.aborted) return failed('timeout');
      return failed(response === null ? 'unreachable' : 'cut_off');
    } finally {
      clearTimeout(timer);
      ending?.removeEventListener('abort', stop);
      // A complete answer leaves its connection to the agent; of another one nothing more is read.
      if (response?.complete === false) response.destroy();
      if (response === null) sent?.destroy();
    }
  }

  return {
    addCheckpoint(submission, ending) {
      const body = utf8(submissionText(submission));
      const headers = { 'content-type': 'text/plain; charset=utf-8', 'content-length': body.length };
      return exchange(
        { method: 'POST', path: 'add-checkpoint', headers: { ...HEADERS, ...headers }, body },
        answerOf,
        ending,
      );
    },
    checkpoint(origin, ending) {
      const path = `${toHex(sha256(utf8(origin)))}/checkpoint`;
      return exchange({ method: 'GET', path, headers: HEADERS, body: null }, publishedIn, ending);
    },
  };
}

const HEADERS = { 'accept-encoding': 'identity' };

type Exchange = {
  readonly method: 'GET' | 'POST';
  /** Below the prefix. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Uint8Array | null;
};

/** The head of the answer. Rejects if there is none. */
function send(request: http.ClientRequest, body: Uint8Array | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
    request.once('upgrade', (_answer, socket) => {
      socket.destroy();
      reject(new Error('the witness switches protocols'));
    });
    if (body === null) request.end();
    else request.end(body);
  });
}

const submissionText = ({ old, proof, checkpoint }: AddCheckpointRequest): string =>
  `${[`old ${old}`, ...proof.map(toBase64)].join('\n')}\n\n${checkpoint}`;

type Failed = { readonly kind: 'failed'; readonly why: WitnessFailure };

const failed = (why: WitnessFailure): Failed => ({ kind: 'failed', why });

/** The whole body; or why there is none. */
async function bodyOf(response: IncomingMessage): Promise<Uint8Array | Failed> {
  const { statusCode: status = 0 } = response;
  if (status >= 300 && status < 400) return failed('redirected');
  const bytes = await collected(response, WITNESS_LIMITS.answerBytes);
  if (bytes === null) return failed('oversized');
  return response.complete ? bytes : failed('cut_off');
}

const SIZE_TYPE = 'text/x.tlog.size';

async function answerOf(response: IncomingMessage): Promise<WitnessAnswer> {
  const { statusCode: status = 0, headers } = response;
  const bytes = await bodyOf(response);
  if ('kind' in bytes) return bytes;
  if (status !== 200 && status !== 409) return { kind: 'refused', status };
  const text = fromUtf8(bytes);
  if (text === null) return failed('malformed');
  if (status === 200) return { kind: 'cosigned', lines: text };
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  const size = type.trim().toLowerCase() === SIZE_TYPE ? /^(0|[1-9]\d{0,15})\n?$/.exec(text)?.[1] : undefined;
  return size !== undefined && Number.isSafeInteger(Number(size))
    ? { kind: 'conflict', size: Number(size) }
    : failed('malformed');
}

async function publishedIn(response: IncomingMessage): Promise<PublishedCheckpoint> {
  const { statusCode: status = 0 } = response;
  const bytes = await bodyOf(response);
  if ('kind' in bytes) return bytes;
  if (status !== 200) return { kind: 'refused', status };
  const note = fromUtf8(bytes);
  return note === null ? failed('malformed') : { kind: 'published', note };
}
