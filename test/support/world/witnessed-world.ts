// A log with witnesses over a faked log and a virtual clock: witnesses of the standard, asked without a network.

import { createHash } from 'node:crypto';
import { parseWitnessPolicy, type WitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import type {
  AddCheckpointRequest,
  PublishedCheckpoint,
  RemoteWitness,
  WitnessAnswer,
} from '#src/ports/witness.ts';
import { type WitnessedLog, Witnesses } from '#src/usecases/witnesses/witnesses.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { type C2spAnswer, C2spWitness } from '#test/support/witness/c2sp-witness.ts';
import { Random } from '#test/support/world/random.ts';
import { quiet } from './fakes.ts';
import {
  type Deployment,
  deployment,
  type Keeper,
  keeper,
  type Options,
  ORIGIN,
  rowsOf,
} from './receipt-log-world.ts';

export const INTERVAL_MS = 10_000;
export const WITNESS_STREAM = 'log-witnesses';

/** What a submission is on the wire. */
export const submitted = ({ old, proof, checkpoint }: AddCheckpointRequest): string =>
  [`old ${old}`, ...proof.map((hash) => Buffer.from(hash).toString('base64')), '', checkpoint].join('\n');

const answerTo = ({ status, body }: C2spAnswer): WitnessAnswer => {
  if (status === 200) return { kind: 'cosigned', lines: body };
  return status === 409 ? { kind: 'conflict', size: Number(body) } : { kind: 'refused', status };
};

const pathOf = (origin: string): string => `${createHash('sha256').update(origin).digest('hex')}/checkpoint`;

const publishedAs = ({ status, body }: C2spAnswer): PublishedCheckpoint =>
  status === 200 ? { kind: 'published', note: body } : { kind: 'refused', status };

/** A witness as the relay reaches it. `lie`: what it answers instead; null: the truth again. */
export type ReachedWitness = {
  readonly standard: C2spWitness;
  readonly port: RemoteWitness;
  lie: ((submission: AddCheckpointRequest) => WitnessAnswer | Promise<WitnessAnswer>) | null;
  /** What it publishes instead; null: the last checkpoint that it has cosigned. */
  shows: (() => PublishedCheckpoint | Promise<PublishedCheckpoint>) | null;
};

/** Witnesses w1, w2 … that know the log. */
export function reached(common: Deployment, count: number, now: () => number): readonly ReachedWitness[] {
  return Array.from({ length: count }, (_, n) => {
    const standard = new C2spWitness({ name: `witness.example/w${n + 1}`, now });
    standard.know(ORIGIN, common.key.x);
    const one: ReachedWitness = {
      standard,
      lie: null,
      shows: null,
      port: {
        addCheckpoint: async (submission) =>
          one.lie?.(submission) ?? answerTo(standard.add(submitted(submission))),
        checkpoint: async (origin) => one.shows?.() ?? publishedAs(standard.published(pathOf(origin))),
      },
    };
    return one;
  });
}

/** `quorum`: none, or how many of them have to cosign. */
export function policyOf(witnesses: readonly ReachedWitness[], quorum: number | 'none'): WitnessPolicy {
  const names = witnesses.map((_, n) => `w${n + 1}`);
  const lines = witnesses.map(({ standard }, n) => `witness w${n + 1} ${standard.vkey}`);
  const rule = quorum === 'none' ? ['quorum none'] : [`group q ${quorum} ${names.join(' ')}`, 'quorum q'];
  const text = [...lines, ...rule].join('\n');
  const { policy, problem } = parseWitnessPolicy(text);
  if (policy === null) throw new Error(JSON.stringify(problem));
  return policy;
}

/** A process of the deployment that asks these witnesses. */
export async function asker(
  common: Deployment,
  witnesses: readonly ReachedWitness[],
  quorum: number | 'none',
  options: Options & { readonly it?: Keeper } = {},
) {
  const it = options.it ?? (await keeper(common, options));
  const policy = policyOf(witnesses, quorum);
  const stopping = new AbortController();
  const asking = new Witnesses({
    log: options.log ?? common.log,
    clock: it.clock,
    entropy: new Random(common.log.events.length + 1000),
    logger: it.logger,
    quorum: policy.quorum,
    witnesses: policy.witnesses.map((known, n) => ({ known, port: (witnesses[n] as ReachedWitness).port })),
    intervalMs: INTERVAL_MS,
    primitives,
    stopping: stopping.signal,
  });
  await asking.open();
  const log: WitnessedLog = {
    checkpoints: it.checkpoints,
    rows: {
      role: () => it.rows.role,
      readTile: async (level, n) =>
        (await rowsOf(common.log.events.slice(0, it.rows.projected))).readTile(level, n),
    },
  };
  return { it, asking, log, stopping, policy, look: () => asking.look(log), run: () => asking.run(log) };
}

/** A deployment of one process with so many witnesses. */
export async function witnessed({
  count = 3,
  quorum = 2,
}: {
  readonly count?: number;
  readonly quorum?: number | 'none';
} = {}) {
  const common = deployment();
  const it = await keeper(common);
  const witnesses = reached(common, count, () => it.clock.now());
  const process = await asker(common, witnesses, quorum, { it });
  /** Advances second by second. */
  async function seconds(n: number): Promise<void> {
    for (let i = 0; i < n; i++) {
      it.clock.advance(1000);
      await quiet();
    }
  }
  return { ...process, common, it, witnesses, seconds };
}

/** The recorded rounds. */
export const rounds = ({ log }: { readonly log: { readonly events: readonly RecordedEvent[] } }) =>
  log.events.filter(({ stream }) => stream === WITNESS_STREAM);

/** Of each round: leaves, and whose cosignatures. */
export const roundTexts = (common: Parameters<typeof rounds>[0]): string[] =>
  rounds(common).map(({ data }) => {
    const names = (data.cosignatures as { name: string }[]).map(({ name }) => name.split('/')[1]);
    return `${data.size}: ${names.join(' ')}`;
  });
