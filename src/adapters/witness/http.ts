// A witness over HTTP: `POST <submission prefix>/add-checkpoint` (C2SP tlog-witness), on connections that are kept alive.
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { fromUtf8, toBase64, utf8 } from '#src/domain/encoding.ts';
import { collected } from '#src/lib/collected.ts';
import {
  type Submission,
  WITNESS_LIMITS,
  type Witness,
  type WitnessAnswer,
  type WitnessFailure,
} from '#src/ports/witness.ts';

/**
 * `url`: the submission prefix, an http or https URL. Proxies of the environment are not used, unlike by `fetch` of Bun: only the
 * configuration decides where a request goes.
 */
export function httpWitness(url: string): Witness {
  const address = new URL(`${url.replace(/\/+$/, '')}/add-checkpoint`);
  const { Agent, request } = address.protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  return {
    async addCheckpoint(submission, ending) {
      const limit = new AbortController();
      const stop = () => limit.abort();
      const timer = setTimeout(stop, WITNESS_LIMITS.timeoutMs);
      ending?.addEventListener('abort', stop, { once: true });
      if (ending?.aborted) stop();
      const body = utf8(submissionText(submission));
      let response: IncomingMessage | null = null;
      try {
        response = await post(request(address, { ...OPTIONS, agent, signal: limit.signal }), body);
        return await answerOf(response);
      } catch {
        if (ending?.aborted) return failed('stopped');
        if (limit.signal.aborted) return failed('timeout');
        return failed(response === null ? 'unreachable' : 'cut_off');
      } finally {
        clearTimeout(timer);
        ending?.removeEventListener('abort', stop);
        // A complete answer leaves its connection to the agent; of another one nothing more is read.
        if (response?.complete === false) response.destroy();
      }
    },
  };
}

const OPTIONS = {
  method: 'POST',
  headers: { 'content-type': 'text/plain; charset=utf-8', 'accept-encoding': 'identity' },
} as const;

/** The head of the answer. Rejects if there is none. */
function post(request: http.ClientRequest, body: Uint8Array): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
    request.setHeader('content-length', body.length);
    request.end(body);
  });
}

const submissionText = ({ old, proof, checkpoint }: Submission): string =>
  `${[`old ${old}`, ...proof.map(toBase64)].join('\n')}\n\n${checkpoint}`;

const failed = (why: WitnessFailure): WitnessAnswer => ({ is: 'failed', why });

const SIZE_TYPE = 'text/x.tlog.size';

async function answerOf(response: IncomingMessage): Promise<WitnessAnswer> {
  const { statusCode: status = 0, headers } = response;
  if (status >= 300 && status < 400) return failed('redirected');
  const bytes = await collected(response, WITNESS_LIMITS.answerBytes);
  if (bytes === null) return failed('oversized');
  if (!response.complete) return failed('cut_off');
  if (status !== 200 && status !== 409) return { is: 'refused', status };
  const text = fromUtf8(bytes);
  if (text === null) return failed('malformed');
  if (status === 200) return { is: 'cosigned', lines: text };
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  const size = type.trim().toLowerCase() === SIZE_TYPE ? /^(0|[1-9]\d{0,15})\n?$/.exec(text)?.[1] : undefined;
  return size !== undefined && Number.isSafeInteger(Number(size))
    ? { is: 'conflict', size: Number(size) }
    : failed('malformed');
}
