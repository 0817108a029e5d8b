// A witness (C2SP tlog-witness): verifies that a checkpoint extends the last one of its log, records it, and cosigns it.
import type { Primitives } from '#src/domain/signing-keys/keys.ts';
import { cosign, judgeSignatures, type VerifierKey } from '#src/domain/transparency/cosignature.ts';
import { type Note, signatureLine, withSignatures } from '#src/domain/transparency/note.ts';
import {
  judgeSubmission,
  parseSubmission,
  type Submission,
  type SubmissionRefusal,
} from '#src/domain/transparency/witness.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { LineLogger } from '#src/ports/logger.ts';
import type { CosignerSigner } from '#src/ports/signer.ts';
import type { WitnessStore } from '#src/ports/witness-store.ts';

export type WitnessDeps = {
  /** The keys of the logs that are witnessed; a key's name is the origin of its log. Called for each request. */
  readonly logs: () => readonly VerifierKey[];
  readonly state: WitnessStore;
  /** At least one. */
  readonly signers: readonly CosignerSigner[];
  readonly primitives: Primitives;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: LineLogger;
};

/** `lines`: a signature line of each key of the witness, each with its end. `reason`: for people. */
export type AddCheckpoint =
  | { readonly kind: 'cosigned'; readonly lines: string }
  | { readonly kind: 'malformed' | 'unknown_log' | 'not_signed' | 'unprocessable'; readonly reason: string }
  /** `size`: of the last cosigned checkpoint. */
  | { readonly kind: 'conflict'; readonly size: number };

export type Witness = {
  /** `body`: as C2SP tlog-witness describes it. Throws if the state cannot be read or written. */
  addCheckpoint(body: Uint8Array): Promise<AddCheckpoint>;
  /** The last cosigned checkpoint of a log, by the SHA-256 of its origin (lower-case hex); null: none. */
  findCheckpoint(originHash: string): Promise<string | null>;
};

export function createWitness(deps: WitnessDeps): Witness {
  const { state, logger } = deps;
  /** The last line logged of each log: a client that repeats a request does not fill the operator's log. */
  const logged = new Map<string, string>();

  function report({ note, head }: Submission, refusal: SubmissionRefusal, lastNote: string | null): void {
    if (refusal.kind === 'conflict' || refusal.kind === 'too_old') return;
    const line = `${refusal.kind} ${note.text}`;
    if (logged.get(head.origin) === line) return;
    logged.set(head.origin, line);
    const fields = { log: head.origin, size: head.size, checkpoint: withSignatures(note, []) };
    if (refusal.kind === 'forked')
      logger.error('a log has signed two trees of one size: keep both checkpoints, they prove it', {
        ...fields,
        cosigned: lastNote,
      });
    else logger.warn(`a checkpoint was refused: ${UNFIT[refusal.kind]}`, fields);
  }

  return {
    async addCheckpoint(body) {
      const read = parseSubmission(body);
      if (read.submission === null) return { kind: 'malformed', reason: read.problem };
      const { submission } = read;
      const { head } = submission;
      const keys = deps.logs().filter(({ name }) => name === head.origin);
      if (keys.length === 0) return { kind: 'unknown_log', reason: 'this witness does not know the log' };
      const signed = await signedByLog(submission.note, keys, deps.primitives);
      if (signed === null) return { kind: 'not_signed', reason: 'no trusted key of the log has signed it' };
      const last = await state.find(head.origin);
      const refusal = judgeSubmission(submission, last);
      if (refusal !== null) {
        report(submission, refusal, last?.note ?? null);
        return answerOf(refusal);
      }
      const cosignatures = await cosignAll(signed, deps);
      const { size, root } = head;
      // Nothing that was signed leaves before it is recorded: a crash, or another process that was faster, discards it.
      const next = { size, root, note: withSignatures(signed, cosignatures) };
      if (await state.replace(head.origin, last, next))
        return {
          kind: 'cosigned',
          lines: cosignatures.map((one) => `${signatureLine(one)}\n`).join(''),
        };
      const newer = await state.find(head.origin);
      return { kind: 'conflict', size: newer?.size ?? 0 };
    },
    async findCheckpoint(originHash) {
      return (await state.findByHash(originHash))?.note ?? null;
    },
  };
}

const UNFIT = {
  inconsistent: 'it is not proven to extend the last cosigned one',
  wrong_empty_root: 'it has no leaves, and its root is not the root of a tree without leaves',
} as const;

/** The note with the verified signatures of the log only; null if there is none, or one of a known key does not verify. */
async function signedByLog(
  note: Note,
  keys: readonly VerifierKey[],
  primitives: Primitives,
): Promise<Note | null> {
  const verdicts = await judgeSignatures(note, keys, primitives);
  if (verdicts.some(({ state }) => state === 'invalid')) return null;
  const lines = new Set(verdicts.filter(({ state }) => state === 'valid').map(({ line }) => line));
  const signatures = note.signatures.filter((signature) => lines.has(signatureLine(signature)));
  return signatures.length === 0 ? null : { text: note.text, signatures };
}

function cosignAll(note: Note, { signers, clock }: WitnessDeps) {
  const time = Math.floor(clock.now() / 1000);
  return Promise.all(signers.map(({ key, sign }) => cosign(note, key, time, sign)));
}

function answerOf(refusal: SubmissionRefusal): AddCheckpoint {
  switch (refusal.kind) {
    case 'conflict':
      return { kind: 'conflict', size: refusal.size };
    case 'too_old':
      return { kind: 'malformed', reason: 'the old size is larger than the checkpoint' };
    case 'wrong_empty_root':
      return { kind: 'unprocessable', reason: UNFIT.wrong_empty_root };
    case 'inconsistent':
      return {
        kind: 'unprocessable',
        reason: 'the proof does not show that the checkpoint extends the old one',
      };
    case 'forked':
      return { kind: 'unprocessable', reason: 'the last cosigned checkpoint of this size has another root' };
    default:
      return refusal satisfies never;
  }
}
