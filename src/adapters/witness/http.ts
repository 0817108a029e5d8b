// A witness over HTTP: `POST <submission prefix>/add-checkpoint` (C2SP tlog-witness), on connections that are kept alive.
import { fromUtf8, toBase64 } from '#src/domain/encoding.ts';
import { collected } from '#src/lib/collected.ts';
import {
  type Submission,
  WITNESS_LIMITS,
  type Witness,
  type WitnessAnswer,
  type WitnessFailure,
} from '#src/ports/witness.ts';

/** `url`: the submission prefix, an http or https URL. */
export function httpWitness(url: string): Witness {
  const address = `${url.replace(/\/+$/, '')}/add-checkpoint`;
  return {
    async addCheckpoint(submission, ending) {
      const limit = new AbortController();
      const stop = () => limit.abort();
      const timer = setTimeout(stop, WITNESS_LIMITS.timeoutMs);
      ending?.addEventListener('abort', stop, { once: true });
      if (ending?.aborted) stop();
      // Built outside of the try block, which is for failures of the network alone.
      const request = new Request(address, {
        method: 'POST',
        body: submissionText(submission),
        headers: { 'content-type': 'text/plain; charset=utf-8', 'accept-encoding': 'identity' },
        redirect: 'manual',
        signal: limit.signal,
      });
      let response: Response | null = null;
      try {
        response = await fetch(request);
        return await answerOf(response);
      } catch {
        if (ending?.aborted) return failed('stopped');
        if (limit.signal.aborted) return failed('timeout');
        return failed(response === null ? 'unreachable' : 'cut_off');
      } finally {
        clearTimeout(timer);
        ending?.removeEventListener('abort', stop);
      }
    },
  };
}

const submissionText = ({ old, proof, checkpoint }: Submission): string =>
  `${[`old ${old}`, ...proof.map(toBase64)].join('\n')}\n\n${checkpoint}`;

const failed = (why: WitnessFailure): WitnessAnswer => ({ is: 'failed', why });

const SIZE_TYPE = 'text/x.tlog.size';

async function answerOf(response: Response): Promise<WitnessAnswer> {
  const { status, headers, body } = response;
  if (status >= 300 && status < 400) {
    await body?.cancel();
    return failed('redirected');
  }
  const bytes = await collected((body ?? []) as AsyncIterable<Uint8Array>, WITNESS_LIMITS.answerBytes);
  if (bytes === null) return failed('oversized');
  if (status !== 200 && status !== 409) return { is: 'refused', status };
  const text = fromUtf8(bytes);
  if (text === null) return failed('malformed');
  if (status === 200) return { is: 'cosigned', lines: text };
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  const size = type.trim().toLowerCase() === SIZE_TYPE ? /^(0|[1-9]\d{0,15})\n?$/.exec(text)?.[1] : undefined;
  return size !== undefined && Number.isSafeInteger(Number(size))
    ? { is: 'conflict', size: Number(size) }
    : failed('malformed');
}
