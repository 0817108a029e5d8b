// One witness is given one checkpoint: with the proof from the size that it has seen last, and again if it answers another size.
import type { Primitives } from '#src/domain/signing-keys/keys.ts';
import type { Hash } from '#src/domain/transparency/merkle.ts';
import { type Note, parseSignatureLines } from '#src/domain/transparency/note.ts';
import {
  cosignaturesOf,
  type PolicyCosignature,
  type PolicyWitness,
} from '#src/domain/transparency/witness-policy.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { RemoteWitness } from '#src/ports/witness.ts';
import { evolveWitness, type WitnessFact, type WitnessRefusal, type WitnessState } from './witness-state.ts';

export type AskedWitness = { readonly known: PolicyWitness; readonly port: RemoteWitness };

export type AskDeps = {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly primitives: Primitives;
  readonly intervalMs: number;
  readonly logger: Logger;
};

const FORGOTTEN =
  'a witness states that it has cosigned less than it has: its state was restored or begun again; ask its operator, because it can cosign a second history';

/** A checkpoint that witnesses are asked to cosign. */
export type Asking = {
  readonly size: number;
  readonly text: Note['text'];
  /** With the signatures of the newest key of the log and of those that it has replaced. */
  readonly note: string;
  /** With the newest key's signature only; null: the note has no other. */
  readonly alone: string | null;
  /** Note key id of the newest key, hex. */
  readonly newestKey: string;
  /** From a smaller tree; empty from 0. Throws if the rows lack a tile. */
  readonly proof: (from: number) => Promise<readonly Hash[]>;
  /** Of the tree of so many leaves, at most `size`. Throws if the rows lack a tile. */
  readonly root: (size: number) => Promise<Hash>;
  readonly ending: AbortSignalLike;
};

/** `cosignature` null: the state has the reason. */
export type Asked = { readonly state: WitnessState; readonly cosignature: PolicyCosignature | null };

/** Its size is not known, and it does not know the newest key: three. */
const MOST_CALLS = 4;
/** The clock of a witness may differ from ours by so much. */
const CLOCK_SECONDS = 300;

/** Verifies what the witness answers. Throws only what `proof` throws. */
export async function askWitness(
  deps: AskDeps,
  { known, port }: AskedWitness,
  before: WitnessState,
  asking: Asking,
): Promise<Asked> {
  const { clock, intervalMs } = deps;
  let state = before;
  const take = (fact: WitnessFact) => {
    state = evolveWitness(state, fact);
  };
  const refuse = (why: WitnessRefusal): Asked => {
    if (why !== 'stopped') take({ kind: 'refused', why, at: clock.monotonic(), intervalMs });
    return { state, cosignature: null };
  };
  let alone = state.accepts !== asking.newestKey && clock.monotonic() >= state.aloneAt ? asking.alone : null;
  for (let calls = 0; calls < MOST_CALLS; calls++) {
    const old = Math.min(state.size ?? 0, asking.size);
    const checkpoint = alone ?? asking.note;
    const proof = old === asking.size ? [] : await asking.proof(old);
    const answer = await port.addCheckpoint({ old, proof, checkpoint }, asking.ending);
    if (answer.kind === 'failed') return refuse(answer.why);
    if (answer.kind === 'refused') {
      if (answer.status !== 403 || alone === null) return refuse(`http_${answer.status}`);
      take({ kind: 'alone_refused', at: clock.monotonic() });
      alone = null;
      continue;
    }
    if (answer.kind === 'conflict') {
      if (before.cosignedAt !== null && answer.size < (before.size ?? 0))
        deps.logger.warn(FORGOTTEN, { witness: known.name, cosigned: before.size, states: answer.size });
      take({ kind: 'size_learnt', size: answer.size });
      // Until it is proven: `judgeClaim`.
      if (answer.size > asking.size) return refuse('states_larger_size_without_proof');
      if (answer.size === old) return refuse('contradicts_itself');
      continue;
    }
    const found = await verified(deps, known, asking.text, answer.lines);
    if (typeof found === 'string') return refuse(found);
    const accepts = alone !== null || asking.alone === null ? asking.newestKey : null;
    take({ kind: 'cosigned', size: asking.size, time: found.time, accepts });
    return { state, cosignature: found };
  }
  return refuse('contradicts_itself');
}

async function verified(
  { clock, primitives }: AskDeps,
  known: PolicyWitness,
  text: Note['text'],
  lines: string,
): Promise<PolicyCosignature | WitnessRefusal> {
  const signatures = parseSignatureLines(lines);
  if (signatures === null) return 'malformed';
  const judged = await cosignaturesOf({ text, signatures }, { witnesses: [known] }, primitives);
  const [cosignature] = judged.valid;
  if (judged.invalid.length > 0) return 'invalid_cosignature';
  if (cosignature === undefined) return judged.unsupported.length > 0 ? 'unverifiable' : 'no_cosignature';
  const differs = Math.abs(cosignature.time - clock.now() / 1000) > CLOCK_SECONDS;
  return differs ? 'wrong_time' : cosignature;
}
