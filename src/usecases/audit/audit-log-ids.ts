// Event ids in an audit: they are random, so an honest relay writes none twice. They are kept on disk in parts by their hash,
// and each part is compared at the end: in memory are the last ids of each part, and then one part.

import { type EventLocation, type Found, jobOfStream } from '#src/domain/audit/finding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { StreamStates } from './stream-states.ts';

/** Of 100 million events a part has 400,000. */
const PARTS = 256;
/** Characters of a part before they are written. */
const MAX_LENGTH = 32 * 1024;

export function auditIds(states: StreamStates) {
  const parts = Array.from({ length: PARTS }, () => ({ text: '', written: 0 }));

  /** Each id with its event's revision and stream, a line each. */
  function* linesOf(number: number): Generator<string[]> {
    yield (parts[number]?.text ?? '').split('\n');
    for (const text of states.texts(`ids ${number} `)) yield text.split('\n');
  }

  return {
    take({ id, stream, revision }: Pick<RecordedEvent, 'id' | 'stream' | 'revision'>): void {
      const number = partOf(id);
      const part = parts[number];
      if (part === undefined) return;
      part.text += `${line(id)}\n${revision}\n${line(stream)}\n`;
      if (part.text.length < MAX_LENGTH) return;
      states.putText(`ids ${number} ${part.written++}`, part.text);
      part.text = '';
    },
    /** At the end: each event whose id another one has. */
    *repeated(): Generator<Found> {
      for (let number = 0; number < PARTS; number++) {
        const seen = new Map<string, EventLocation>();
        for (const lines of linesOf(number)) {
          for (let at = 0; at + 2 < lines.length; at += 3) {
            const [id = '', revision = '', stream = ''] = lines.slice(at, at + 3);
            const location = { stream, revision, jobId: jobOfStream(stream), position: null };
            const first = seen.get(id);
            seen.set(id, first ?? location);
            if (first === undefined) continue;
            const message = `its id ${id} is that of ${first.stream} revision ${first.revision}`;
            yield { fault: { kind: 'event_id_repeated', message }, location };
          }
        }
      }
    },
  };
}

/** The names of a log that was tampered with may contain line feeds. */
const line = (text: string): string => (text.includes('\n') ? JSON.stringify(text) : text);

/** FNV-1a. */
function partOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return ((hash ^ (hash >>> 16)) >>> 0) % PARTS;
}
