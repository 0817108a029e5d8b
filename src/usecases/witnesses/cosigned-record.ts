// What a quorum of witnesses has cosigned, as the stream `log-witnesses` has it.
import { fromBase64, toBase64 } from '#src/domain/encoding.ts';
import { type EventOf, event, STREAM } from '#src/domain/events.ts';
import { sameHash } from '#src/domain/transparency/merkle.ts';
import type { PolicyCosignature, QuorumPolicy } from '#src/domain/transparency/witness-policy.ts';
import { isoNow } from '#src/lib/iso.ts';
import { findEvent } from '#src/usecases/process/read-events.ts';
import { appendUnlessOvertaken, envelope, type JournalDeps } from '#src/usecases/process/stream.ts';
import type { StoredNote } from '#src/usecases/transparency/checkpoint-state.ts';

export class CosignedRecord {
  readonly #deps: JournalDeps;
  #expected: bigint | 'no_stream' = 'no_stream';
  #last: EventOf<'CheckpointCosigned'>['data'] | null = null;

  constructor(deps: JournalDeps) {
    this.#deps = deps;
  }

  /** As last read; null: there is none that can be read. */
  get last(): EventOf<'CheckpointCosigned'>['data'] | null {
    return this.#last;
  }

  /** Throws what a read of the log throws. */
  async read(): Promise<void> {
    const [last] = await this.#deps.log.readStream(STREAM.logWitnesses, { direction: 'backwards', max: 1 });
    if (last === undefined) return;
    const found = findEvent(last);
    this.#expected = last.revision;
    this.#last = found?.type === 'CheckpointCosigned' ? found.data : null;
  }

  /** ms since this checkpoint, or a larger one of another process, was recorded; null: it is not. */
  age({ size, root }: StoredNote): number | null {
    const last = this.#last;
    if (last === null || Number(last.size) < size) return null;
    const isCovered = Number(last.size) > size || sameHash(fromBase64(last.root) ?? new Uint8Array(), root);
    return isCovered ? this.#deps.clock.now() - Date.parse(last.cosignedAt) : null;
  }

  /** The signed note with the cosignatures; null: there is none. */
  note(): string | null {
    const last = this.#last;
    return last === null ? null : last.note + last.cosignatures.map(({ line }) => `${line}\n`).join('');
  }

  /**
   * Returns false if another process has appended since the last read: it has recorded this checkpoint, or another one.
   * `cosignatures`: by the names of the policy.
   */
  async append(
    { origin, size, root, note }: StoredNote,
    cosignatures: ReadonlyMap<string, PolicyCosignature>,
    policy: QuorumPolicy,
  ): Promise<boolean> {
    const cosigned = event('CheckpointCosigned', {
      origin,
      size: String(size),
      root: toBase64(root),
      note,
      cosignatures: policy.witnesses.flatMap(({ name, key }) => {
        const found = cosignatures.get(name);
        return found === undefined ? [] : [{ ...found, name: key.name }];
      }),
      quorum: policy.quorum?.name ?? 'none',
      cosignedAt: isoNow(this.#deps),
    });
    const events = envelope(this.#deps, [cosigned], STREAM.logWitnesses);
    const place = { stream: STREAM.logWitnesses, expected: this.#expected };
    const appended = await appendUnlessOvertaken(this.#deps, place, events);
    if (appended === null) return false;
    this.#expected = appended.nextRevision;
    this.#last = cosigned.data;
    return true;
  }
}
