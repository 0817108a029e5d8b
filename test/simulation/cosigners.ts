// Witnesses of the checkpoints (C2SP tlog-witness), which others operate: the real use case over a memory, as the processes of the
// service reach it, with requests and answers that are lost.
import { ed25519SigningKey, publicX } from '#src/adapters/signing/ed25519.ts';
import { fromBase64url, sha256, toBase64, toHex, utf8 } from '#src/domain/encoding.ts';
import { type CosignerKey, SIGNATURE_TYPES, vkeyText } from '#src/domain/transparency/cosignature.ts';
import { ED25519 } from '#src/domain/transparency/note.ts';
import { parseWitnessPolicy, type WitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import type { KeyStore } from '#src/ports/key-store.ts';
import type {
  AddCheckpointRequest,
  PublishedCheckpoint,
  RemoteWitness,
  WitnessAnswer,
} from '#src/ports/witness.ts';
import type { WitnessedCheckpoint, WitnessStore } from '#src/ports/witness-store.ts';
import { type AddCheckpoint, createWitness, type Witness } from '#src/usecases/witness/add-checkpoint.ts';
import type { Random } from '#test/support/world/random.ts';
import { EPOCH, type Fate, type Host } from './host.ts';
import { fixedPrivateKey, primitives } from './keys.ts';
import type { Scheduler } from './scheduler.ts';

/** What a witness remembers. */
class Memory implements WitnessStore {
  readonly #last = new Map<string, WitnessedCheckpoint>();

  async find(origin: string): Promise<WitnessedCheckpoint | null> {
    return this.#last.get(origin) ?? null;
  }

  async findByHash(originHash: string): Promise<WitnessedCheckpoint | null> {
    return [...this.#last].find(([origin]) => toHex(sha256(utf8(origin))) === originHash)?.[1] ?? null;
  }

  async replace(
    origin: string,
    last: { readonly size: number } | null,
    next: WitnessedCheckpoint,
  ): Promise<boolean> {
    if ((this.#last.get(origin)?.size ?? null) !== (last?.size ?? null)) return false;
    this.#last.set(origin, next);
    return true;
  }

  close(): void {
    this.#last.clear();
  }

  get size(): number {
    return Math.max(0, ...[...this.#last.values()].map(({ size }) => size));
  }
}

const STATUS = { malformed: 400, unknown_log: 404, not_signed: 403, unprocessable: 422 } as const;

const answerTo = (outcome: AddCheckpoint): WitnessAnswer => {
  if (outcome.kind === 'cosigned') return { kind: 'cosigned', lines: outcome.lines };
  if (outcome.kind === 'conflict') return { kind: 'conflict', size: outcome.size };
  return { kind: 'refused', status: STATUS[outcome.kind] };
};

const submissionText = ({ old, proof, checkpoint }: AddCheckpointRequest): string =>
  `${[`old ${old}`, ...proof.map(toBase64)].join('\n')}\n\n${checkpoint}`;

const FAILED = { kind: 'failed', why: 'timeout' } as const;
const STOPPED = { kind: 'failed', why: 'stopped' } as const;

/** All witnesses of a deployment. */
export class Cosigners {
  readonly policy: WitnessPolicy;
  readonly intervalMs: number;
  readonly #memories: readonly Memory[];
  readonly #witnesses: readonly Witness[];
  readonly #random: Random;
  #lost: number;

  constructor(
    random: Random,
    scheduler: Scheduler,
    { keys, origin }: { readonly keys: KeyStore; readonly origin: string },
  ) {
    const count = random.int(1, 3);
    this.#random = random.fork();
    this.#lost = random.chance(0.4) ? 0 : random.between(0, 0.4);
    this.intervalMs = random.pick([2000, 10_000]);
    this.#memories = Array.from({ length: count }, () => new Memory());
    const signers = this.#memories.map((_, n) => {
      const privateKey = fixedPrivateKey(0x81 + n);
      const publicKey = fromBase64url(publicX(privateKey)) ?? new Uint8Array();
      const key: CosignerKey = {
        name: `witness.example/w${n + 1}`,
        type: SIGNATURE_TYPES.cosignatureEd25519,
        publicKey,
      };
      const { sign } = ed25519SigningKey('', privateKey);
      return { key, sign };
    });
    const logs = () =>
      keys
        .read()
        .keys.filter(({ purpose }) => purpose === 'checkpoint')
        .map(
          ({ x }) =>
            ({ name: origin, type: ED25519, publicKey: fromBase64url(x) ?? new Uint8Array() }) as const,
        );
    const logger = { info() {}, warn() {}, error() {}, bug() {} };
    const clock = { now: () => EPOCH + scheduler.now };
    this.#witnesses = this.#memories.map((state, n) =>
      createWitness({ logs, state, signers: signers.slice(n, n + 1), primitives, clock, logger }),
    );
    const names = signers.map((_, n) => `w${n + 1}`);
    const lines = signers.map(({ key }, n) => `witness w${n + 1} ${vkeyText(key)}`);
    const text = [...lines, `group all ${random.int(1, count)} ${names.join(' ')}`, 'quorum all'].join('\n');
    const { policy, problem } = parseWitnessPolicy(text);
    if (policy === null) throw new Error(JSON.stringify(problem));
    this.policy = policy;
  }

  /** Size of the largest checkpoint that one of them has cosigned. */
  get size(): number {
    return Math.max(...this.#memories.map(({ size }) => size));
  }

  /** The faults end. */
  calm(): void {
    this.#lost = 0;
  }

  /** In the policy's order, as a process reaches them. */
  ports(host: Host): readonly RemoteWitness[] {
    return this.#witnesses.map((witness) => ({
      addCheckpoint: (request, ending) =>
        unlessEnding(ending, () =>
          this.#call<WitnessAnswer>(host, 'a witness', async () =>
            answerTo(await witness.addCheckpoint(utf8(submissionText(request)))),
          ),
        ),
      checkpoint: (origin, ending) =>
        unlessEnding(ending, () =>
          this.#call<PublishedCheckpoint>(host, null, async () => {
            const note = await witness.findCheckpoint(toHex(sha256(utf8(origin))));
            return note === null ? { kind: 'refused', status: 404 } : { kind: 'published', note };
          }),
        ),
    }));
  }

  async #call<T>(host: Host, what: string | null, effect: () => Promise<T>): Promise<T | typeof FAILED> {
    const fate: Fate<T | typeof FAILED | Promise<T>> = this.#random.chance(this.#lost)
      ? {
          kind: 'lost',
          afterMs: this.#random.between(10, 5000),
          error: () => FAILED,
          effect: this.#random.chance(0.6),
        }
      : { kind: 'answered' };
    if (fate.kind === 'lost')
      host.trace.reached(fate.effect ? 'witness with a lost answer' : 'witness that fails');
    const options = { delays: { request: [1, 60], answer: [1, 60] }, fate, counts: what !== null } as const;
    return await host.call<T | typeof FAILED | Promise<T>>(what, effect, options);
  }
}

async function unlessEnding<T>(
  ending: Parameters<RemoteWitness['checkpoint']>[1],
  call: () => Promise<T>,
): Promise<T | typeof STOPPED> {
  if (ending?.aborted) return STOPPED;
  const called = call();
  if (ending === undefined) return called;
  const { promise, resolve } = Promise.withResolvers<typeof STOPPED>();
  const end = () => resolve(STOPPED);
  ending.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([called, promise]);
  } finally {
    ending.removeEventListener('abort', end);
  }
}
