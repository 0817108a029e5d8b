// Event ids in an audit: they are random, so an honest relay writes none twice. They are kept on disk in parts by their hash,
// and each part is compared at the end: in memory are the last ids of each part, and then one part.

import { type Found, jobOfStream } from '#src/domain/audit/finding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { StreamStates } from './stream-states.ts';

/** Of 100 million events a part has 400,000. */
const PARTS = 256;
/** Characters of a part before they are written. */
const MAX_LENGTH = 32 * 1024;

export function auditIds(states: StreamStates) {
  const parts = Array.from({ length: PARTS }, () => ({ text: '', written: 0 }));

  /** In each a line for each event: its id, its revision and its stream. */
  function* textsOf(number: number): Generator<string> {
    yield parts[number]?.text ?? '';
    yield* states.texts(`ids ${number} `);
  }

  return {
    take({ id, stream, revision }: Pick<RecordedEvent, 'id' | 'stream' | 'revision'>): void {
      const number = partOf(id);
      const part = parts[number];
      if (part === undefined) return;
      part.text += `${word(id)} ${revision} ${word(stream)}\n`;
      if (part.text.length < MAX_LENGTH) return;
      states.putText(`ids ${number} ${part.written++}`, part.text);
      part.text = '';
    },
    /** At the end: each event whose id another one has. */
    *repeated(): Generator<Found> {
      for (let number = 0; number < PARTS; number++) {
        const seen = new Set<string>();
        for (const text of textsOf(number)) {
          for (let at = 0; at < text.length; at = text.indexOf('\n', at) + 1) {
            const id = text.slice(at, text.indexOf(' ', at));
            if (seen.has(id)) yield repeatedIn(text.slice(at, text.indexOf('\n', at)));
            else seen.add(id);
          }
        }
      }
    },
  };
}

function repeatedIn(line: string): Found {
  const [id, revision = '', stream = ''] = line.split(' ');
  const location = { stream, revision, jobId: jobOfStream(stream), position: null };
  return { fault: { kind: 'event_id_repeated', message: `another event has its id, ${id}` }, location };
}

/** Names in a log that was tampered with may contain anything. */
const word = (text: string): string => (/[ \n]/.test(text) ? text.replaceAll(/[ \n]/g, '_') : text);

/** FNV-1a. */
function partOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return ((hash ^ (hash >>> 16)) >>> 0) % PARTS;
}
