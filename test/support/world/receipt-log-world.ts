// Processes that keep one transparency log: each with rows of its own, which may be behind, over a log that all share.

import { decodeEvent } from '#src/domain/event-codec.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint, verifySignedCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { appendLeaf, EMPTY_TREE, leafData } from '#src/domain/transparency/tree.ts';
import type { CheckpointStore } from '#src/ports/checkpoint-store.ts';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';
import type { CheckpointSigner } from '#src/ports/signer.ts';
import {
  openCheckpoints,
  type ProjectedTree,
  type TreeRows,
} from '#src/usecases/transparency/checkpoints.ts';
import { receiptSigned } from '#test/support/given/given-events.ts';
import { primitives, type TestKey, testKey } from '#test/support/given/primitives.ts';
import { type FaultyLog, faultyLog } from '#test/support/log/fakes-log.ts';
import { MTH } from '#test/support/witness/rfc6962.ts';
import { Random } from '#test/support/world/random.ts';
import { collectingLogger, manualClock } from './fakes.ts';
import { given } from './fakes-world.ts';

export const STREAM = 'log-receipts';
export const ORIGIN = 'relay.example/receipts';

export type Deployment = { readonly log: FaultyLog; readonly key: TestKey };

export const deployment = (log = faultyLog()): Deployment => ({
  log,
  key: testKey({ purpose: 'checkpoint' }),
});

/** A receipt in a stream of its own. */
export async function receipt({ log }: Pick<Deployment, 'log'>, n = log.events.length): Promise<void> {
  await given({ log }, `job-${n}`, receiptSigned({ jws: `receipt.${n}.signed` }));
}

/** The rows of the first events. */
export async function rowsOf(events: readonly RecordedEvent[]): Promise<ProjectedTree> {
  const tiles = new Map<string, Uint8Array>();
  let tree = EMPTY_TREE;
  for (const recorded of events) {
    const event = decodeEvent(recorded);
    const data = event && leafData(event);
    if (data === null) continue;
    const grown = appendLeaf(tree, data);
    tree = grown.tree;
    for (const { level, index, hash } of grown.entries) {
      const name = `${level}/${Math.floor(index / 256)}`;
      tiles.set(name, Buffer.concat([tiles.get(name) ?? new Uint8Array(), hash]));
    }
  }
  const readTile = async (level: number, n: number) => tiles.get(`${level}/${n}`) ?? null;
  return { tree, position: events.at(-1)?.position ?? null, readTile };
}

export type Options = {
  readonly host?: string;
  readonly key?: TestKey | null;
  /** Keys of the event log. */
  readonly keys?: readonly TestKey[];
  /** The log as this process reaches it. */
  readonly log?: EventLog;
  readonly checkpointKeep?: CheckpointStore | null;
  readonly replacedBy?: CheckpointSigner['replacedBy'];
  readonly witnesses?: { accept(key: string): boolean };
};

export type MemoryKeep = CheckpointStore & { note: string | null; writes: number; broken: boolean };

/** The file of one machine. */
export function keepOf(note: string | null = null): MemoryKeep {
  return {
    location: 'the place',
    note,
    writes: 0,
    broken: false,
    async read() {
      return this.note;
    },
    async write(next) {
      if (this.broken) throw new Error('no room');
      this.note = next;
      this.writes++;
    },
  };
}

let processes = 0;

/** A process that has begun or found the log; its rows contain all events unless `rows.projected` is set. */
export async function keeper(common: Deployment, options: Options = {}) {
  const { host = 'relay.example', key = common.key, keys = [common.key], log = common.log } = options;
  const { checkpointKeep = keepOf() } = options;
  const clock = manualClock();
  const logger = collectingLogger();
  const ending = new AbortController();
  const journal = { log, clock, logger, entropy: new Random(++processes), ending: ending.signal };
  const held = { key };
  const checkpointSigner: CheckpointSigner = {
    current: () => held.key,
    replacedBy: (keyId, isAccepted) => options.replacedBy?.(keyId, isAccepted) ?? [],
  };
  const known = { now: keys };
  const directory = { refresh: async () => known.now.map(({ record }) => record) };
  const checkpointKeys = () => keys.map(({ record }) => record);
  const kept = { checkpointKeep, checkpointKeys, primitives };
  const { witnesses = null } = options;
  const checkpoints = await openCheckpoints({ ...journal, ...kept, checkpointSigner, directory, witnesses });
  await checkpoints.begin(host);
  const rows = {
    /** How many events the rows contain. */
    projected: Number.POSITIVE_INFINITY,
    changed: (tree: ProjectedTree) => tree,
    elsewhere: [] as string[],
    role: 'projects' as ReturnType<TreeRows['role']>,
    reachedHead: async () => true,
  };
  const events = () => common.log.events.slice(0, rows.projected);
  const readable: TreeRows = {
    position: () => events().at(-1)?.position ?? null,
    async movedFrom(position, signal) {
      while (readable.position() === position && !signal.aborted) await clock.sleep(1, signal);
    },
    role: () => rows.role,
    reachedHead: () => rows.reachedHead(),
    checkpointsElsewhere: () => rows.elsewhere,
    withTree: async (work) => work(rows.changed(await rowsOf(events()))),
  };
  return {
    checkpoints,
    rows,
    held,
    known,
    clock,
    logger,
    ending,
    look: (sign = true) => checkpoints.look(readable, sign),
    keep: () => checkpoints.keep(host, readable),
  };
}

export type Keeper = Awaited<ReturnType<typeof keeper>>;

/** What is wrong with the checkpoints of a log, by its events alone; empty where nothing is. */
export const contradictions = ({ log, key }: Deployment): Promise<string[]> =>
  contradictionsOf(log.events, [key.record], ORIGIN);

export async function contradictionsOf(
  events: readonly RecordedEvent[],
  keys: readonly KeyRecord[],
  origin: string,
): Promise<string[]> {
  const found: string[] = [];
  const leaves: Uint8Array[] = [];
  let size = -1;
  for (const recorded of events) {
    const event = decodeEvent(recorded);
    const data = event && leafData(event);
    if (data !== null) leaves.push(data);
    if (event?.type !== 'CheckpointSigned') continue;
    const signed = await verifySignedCheckpoint(event.data.note, keys, primitives);
    if (signed?.origin !== origin) found.push(`${recorded.revision} is not signed`);
    if (Number(event.data.size) <= size) found.push(`${recorded.revision} does not grow`);
    size = Number(event.data.size);
    if (size > leaves.length) found.push(`${recorded.revision} is over leaves that were not there`);
    const root = Buffer.from(MTH(leaves.slice(0, size))).toString('base64');
    if (root !== event.data.root) found.push(`${recorded.revision} is over other leaves`);
  }
  return found;
}

/** Sizes of all checkpoints, in order. */
export const sizes = ({ log }: { readonly log: { readonly events: readonly RecordedEvent[] } }): number[] =>
  log.events.flatMap(({ type, data }) =>
    type === 'CheckpointSigned' ? [parseCheckpoint(String(data.note))?.size ?? -1] : [],
  );
