// A log with many leaves and much between them, and its transparency rows: computed naively, from the plan of
// the log, without anything that the projection is made of.
import { createHash } from 'node:crypto';
import {
  checkpointCosigned,
  checkpointSigned,
  decisionRecorded,
  keyActivated,
  keyRetired,
  receiptSigned,
} from '#test/support/given/given-events.ts';
import { newEvent } from '#test/support/given/job-histories.ts';
import type { MemoryLog } from './memory-log.ts';
import { memoryLog } from './memory-log.ts';

type Given = { readonly type: string; readonly data: object };
type Entry = { readonly given: Given; readonly leaf: string | null };

export type LeafyLog = {
  readonly log: MemoryLog;
  /** Appends so many events more: two of three are leaves. */
  grow(events: number): Promise<void>;
  /** Table → rows, as `allRows` reads them. */
  rows(): Record<string, readonly unknown[]>;
  leaves(): number;
  /** The root over the first `size` leaves. */
  root(size?: number): Uint8Array;
};

const sha = (...parts: readonly (Uint8Array | string)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** RFC 6962 §2.1 as it is written there. */
function mth(hashes: readonly Buffer[]): Buffer {
  const [only] = hashes;
  if (only === undefined) return sha();
  if (hashes.length === 1) return only;
  let k = 1;
  while (k * 2 < hashes.length) k *= 2;
  return sha(Uint8Array.of(1), mth(hashes.slice(0, k)), mth(hashes.slice(k)));
}

/** JCS of events without nested objects. */
const sorted = ({ type, data }: Given) =>
  JSON.stringify({ data: Object.fromEntries(Object.entries(data).sort()), type });

const receiptIdOf = (n: number) => `rcpt_${String(n).padStart(26, '0')}`;

/** Receipts, some key events, and events that are no leaves although they look like them. */
function entry(n: number): Entry {
  const receipt = receiptSigned({ receiptId: receiptIdOf(n), jws: `head.${n}.AQ` });
  const leaf = (given: Given, text: string) => ({ given, leaf: text });
  const none = (given: Given) => ({ given, leaf: null });
  const keyEvent = n % 2 === 0 ? keyActivated() : keyRetired();
  switch (n % 15) {
    case 0:
      return leaf(keyEvent, sorted(keyEvent));
    case 3:
      return none(
        n % 2 === 0
          ? checkpointCosigned({ size: String(n), note: `note ${n}\n` })
          : checkpointSigned({ size: String(n), note: `note ${n}` }),
      );
    case 5:
      return none(decisionRecorded({ decisionId: receipt.data.receiptId }));
    case 7:
      // Of the same id as the receipt before: a leaf like any, but the first one is found by the id.
      return leaf({ ...receipt, data: { ...receipt.data, receiptId: receiptIdOf(n - 1) } }, receipt.data.jws);
    case 9:
      return none(receiptSigned({ jobId: 'not to be stored \u0000', jws: `head.${n}.AQ` }));
    case 10:
      return none(decisionRecorded({ decisionId: `dec_${n}` }));
    case 13:
      return none(decisionRecorded({ decisionId: `dec_${n} \u0000` }));
    default:
      return leaf(receipt, receipt.data.jws);
  }
}

export function leafyLog(): LeafyLog {
  const log = memoryLog();
  const entries: Entry[] = [];
  const allLeaves = () =>
    entries.flatMap(({ given, leaf }, at) => {
      const position = log.events[at]?.position ?? '';
      return leaf === null ? [] : [{ given, position, data: sha(leaf) }];
    });
  const hashed = () => allLeaves().map(({ data }) => sha(Uint8Array.of(0), data));
  return {
    log,
    async grow(events) {
      for (const end = entries.length + events; entries.length < end; ) {
        const next = entry(entries.length);
        entries.push(next);
        await log.append(`job-${entries.length}`, 'no_stream', [newEvent(next.given)]);
      }
    },
    leaves: () => allLeaves().length,
    root: (size) => mth(hashed().slice(0, size)),
    rows: () => ({
      transparency_tree: treeRows(hashed(), allLeaves().at(-1)?.position),
      transparency_tiles: tileRows(allLeaves()),
      transparency_leaves: leafRows(allLeaves()),
      transparency_checkpoint: checkpointRows(entries, log),
    }),
  };
}

type Leaf = { readonly given: Given; readonly position: string; readonly data: Buffer };

function treeRows(hashes: readonly Buffer[], position: string | undefined) {
  const edge: string[] = [];
  for (let at = 0, power = 2 ** 20; power >= 1; power /= 2) {
    if ((hashes.length & power) === 0) continue;
    edge.push(mth(hashes.slice(at, at + power)).toString('base64'));
    at += power;
  }
  return position === undefined ? [] : [{ id: 'all', size: hashes.length, edge: edge.join(' '), position }];
}

function tileRows(leaves: readonly Leaf[]) {
  const hashes = leaves.map(({ data }) => sha(Uint8Array.of(0), data));
  const levels: (readonly [string, readonly Buffer[], number])[] = [
    ['entries', leaves.map(({ data }) => data), 1],
  ];
  for (let level = 0, width = 1; width <= leaves.length; level++, width *= 256) {
    const whole = Array.from({ length: Math.floor(leaves.length / width) }, (_, n) =>
      mth(hashes.slice(n * width, (n + 1) * width)),
    );
    levels.push([String(level), whole, width]);
  }
  const rows = levels.flatMap(([level, all, width]) =>
    Array.from({ length: Math.ceil(all.length / 16) }, (_, part) => {
      const own = all.slice(part * 16, part * 16 + 16);
      return {
        id: `${level}/${Math.floor(part / 16)}/${part % 16}`,
        hashes: own.map((hash) => hash.toString('base64')).join(''),
        position: leaves[(part * 16 + own.length) * width - 1]?.position,
      };
    }),
  );
  return rows.sort(byId);
}

function leafRows(leaves: readonly Leaf[]) {
  const rows = new Map<string, { id: string; leaf_index: number; job_id: string; position: string }>();
  for (const [index, { given, position }] of leaves.entries()) {
    const { data } = given;
    if (given.type !== 'ReceiptSigned' || !('receiptId' in data && 'jobId' in data)) continue;
    const id = String(data.receiptId);
    const first = rows.get(id) ?? { leaf_index: index, job_id: String(data.jobId) };
    rows.set(id, { id, leaf_index: first.leaf_index, job_id: first.job_id, position });
  }
  return [...rows.values()].sort(byId);
}

/** The newest cosigned checkpoint, with the lines of its event, and the newest of all. */
function checkpointRows(entries: readonly Entry[], { events }: MemoryLog) {
  const newest = (id: string, type: string, signed_at: string, lines = '') => {
    const at = entries.findLastIndex(({ given }) => given.type === type);
    const position = events[at]?.position;
    return at < 0 ? [] : [{ id, size: at, note: `note ${at}${lines}`, signed_at, position }];
  };
  const { cosignatures, cosignedAt } = checkpointCosigned().data;
  const lines = cosignatures.map(({ line }) => `\n${line}\n`).join('');
  return [
    ...newest('cosigned', 'CheckpointCosigned', cosignedAt, lines),
    ...newest('last', 'CheckpointSigned', checkpointSigned().data.signedAt),
  ];
}

const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);
