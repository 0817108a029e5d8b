// A record as a relay writes it, with its keys, its transparency log and what the use cases append, and the hands of a
// forger: what is edited, dropped, swapped or signed again afterwards.

import { sqliteScratch } from '#src/adapters/audit/scratch-sqlite.ts';
import type { Finding } from '#src/domain/audit/finding.ts';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import type { Damage } from '#src/domain/damage.ts';
import { readEvent } from '#src/domain/event-codec.ts';
import { STREAM } from '#src/domain/events.ts';
import { isReceiptPayload, parseJws, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { appendLeaf, EMPTY_TREE, leafData, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { type AuditDeps, Auditor, type AuditSummary } from '#src/usecases/audit/audit-log.ts';
import type { ScratchRow } from '#src/usecases/audit/stream-states.ts';
import type { ExecuteDeps } from '#src/usecases/execution/execute-webhook.ts';
import { signedCheckpoint } from '#src/usecases/transparency/checkpoints.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { type C2spKey, c2spCosignature } from '#test/support/witness/c2sp.ts';
import { given, shared, world } from '#test/support/world/fakes-world.ts';
import { type CallChanges, execute } from './given-call.ts';
import { checkpointCosigned, hex, keyActivated, keyRetired } from './given-events.ts';
import { signed } from './given-receipt.ts';
import { primitives, type TestKey, testKey } from './primitives.ts';

export const ORIGIN = 'relay.example/receipts';
const MMD_SECONDS = 3600;

export type Record = Awaited<ReturnType<typeof givenRecord>>;

/** `log`: whether there is a transparency log, begun before anything else. */
export async function givenRecord({ log = true } = {}) {
  const common = shared();
  const checkpointKey = testKey({ purpose: 'checkpoint' });
  const signing = { key: common.key };
  const promise = log ? { origin: ORIGIN, mmdSeconds: MMD_SECONDS } : null;
  const process = (changes: Partial<ExecuteDeps> = {}) =>
    world(common, {
      signer: { current: () => signing.key, former: () => null },
      receiptLog: () => promise,
      ...changes,
    });
  const it = process();
  const now = () => new Date(it.clock.now()).toISOString();
  let payments = 0;

  const announce = ({ keyId, x, record: { purpose } }: TestKey) =>
    given(it, STREAM.keys, keyActivated({ keyId, x, purpose, activatedAt: now() }));
  const retire = (key: TestKey, changes: Parameters<typeof keyRetired>[0] = {}) =>
    given(
      it,
      STREAM.keys,
      keyRetired({ keyId: key.keyId, effectiveAt: now(), retiredAt: now(), ...changes }),
    );
  /** Over all leaves, or the first `size`. */
  const checkpoint = async (size?: number, key = checkpointKey, origin = ORIGIN) => {
    const tree = await treeOf(it.log.events, size);
    const head = { origin, size: tree.size, root: rootOf(tree) };
    await given(it, STREAM.receiptLog, await signedCheckpoint(head, key, it.clock.now()));
  };
  /** The last checkpoint, by these witnesses at these times; without any, by one whose signature is none. */
  const cosign = async (...witnesses: readonly (readonly [key: C2spKey, time: number])[]) => {
    const last = it.log.events.findLast(({ type }) => type === 'CheckpointSigned')?.data;
    const { origin, size, root, note } = last ?? {};
    const facts = { origin: String(origin), size: String(size), root: String(root), note: String(note) };
    const text = facts.note.slice(0, facts.note.lastIndexOf('\n\n') + 1);
    const cosignatures = witnesses.map(([key, time]) => ({
      name: key.name,
      keyId: key.id.toString('hex'),
      time,
      line: c2spCosignature(text, key, time).trimEnd(),
    }));
    const signed = cosignatures.length === 0 ? {} : { cosignatures };
    await given(it, STREAM.logWitnesses, checkpointCosigned({ ...facts, ...signed }));
  };
  /** A paid call with a payment and a key of its own; answers the job's id. */
  const paid = async (changes: CallChanges = {}, by = it) => {
    const presented = otherPayment(String(++payments));
    const answer = await execute(by, { presented, key: `paid-${payments}`, ...changes });
    return answer.kind === 'refused' ? answer.refusal.refused : answer.execution.job.id;
  };

  await announce(common.key);
  if (log) {
    await announce(checkpointKey);
    await checkpoint(0);
  }
  return { ...it, it, process, signing, checkpointKey, announce, retire, checkpoint, cosign, paid, now };
}

/** Of the first `size` leaves of these events; of all where it is left out. */
export async function treeOf(
  events: readonly RecordedEvent[],
  size = Number.POSITIVE_INFINITY,
): Promise<Tree> {
  let tree = EMPTY_TREE;
  for (const recorded of events) {
    const event = readEvent(recorded);
    const data = event === null || tree.size >= size ? null : leafData(event);
    if (data !== null) tree = appendLeaf(tree, data).tree;
  }
  return tree;
}

export type Audited = { readonly findings: readonly Finding[]; readonly summary: AuditSummary };

/** A batch so small that what is asked for is found in memory as well as in the file. */
const HELD = { changes: 7, characters: 10_000 };

/** `damage`: where events cannot be read, in their order. */
export async function audit(
  events: readonly RecordedEvent[],
  kept?: AuditDeps['kept'],
  damage: readonly Damage[] = [],
): Promise<Audited> {
  const findings: Finding[] = [];
  const scratch = sqliteScratch<ScratchRow>(undefined, HELD);
  const onFinding = (finding: Finding) => findings.push(finding);
  const auditor = new Auditor({ primitives, scratch, onFinding, ...(kept && { kept }) });
  try {
    const left = [...damage];
    for (const event of events) {
      for (let next = left[0]; next !== undefined && next.from < event.position; next = left[0]) {
        auditor.takeDamaged(next);
        left.shift();
      }
      await auditor.take(event);
    }
    for (const rest of left) auditor.takeDamaged(rest);
    return { summary: await auditor.finish(), findings };
  } finally {
    scratch.close();
  }
}

/** Kind, stream and revision of each finding. */
export const findingTexts = ({ findings }: Audited) =>
  findings.map(({ kind, stream, revision }) => `${kind} ${stream} ${revision}`);

// ── tampering ────────────────────────────────────────────────────────────────────────────────────

export type Which = (event: RecordedEvent) => boolean;

/** The n-th event of a type, from 0 on. */
export function nth(events: readonly RecordedEvent[], type: string, n = 0): RecordedEvent {
  const found = events.filter((event) => event.type === type)[n];
  if (found === undefined) throw new Error(`no ${type} ${n}`);
  return found;
}

export const edited = (
  events: readonly RecordedEvent[],
  which: RecordedEvent,
  data: JsonObject,
): readonly RecordedEvent[] =>
  events.map((event) => (event === which ? { ...event, data: { ...event.data, ...data } } : event));

/** Revisions and positions as if nothing had ever been there: the forger is no fool. */
export function renumbered(events: readonly RecordedEvent[]): readonly RecordedEvent[] {
  const next = new Map<string, bigint>();
  return events.map((event, index) => {
    const revision = next.get(event.stream) ?? 0n;
    next.set(event.stream, revision + 1n);
    return { ...event, revision, position: String(index + 1).padStart(20, '0') };
  });
}

export const without = (events: readonly RecordedEvent[], which: Which): readonly RecordedEvent[] =>
  events.filter((event) => !which(event));

/** A receipt with another payload, truly signed. */
export async function resigned(
  events: readonly RecordedEvent[],
  which: RecordedEvent,
  key: TestKey,
  change: (payload: ReceiptPayload) => object,
): Promise<readonly RecordedEvent[]> {
  const payload = parseJws(String(which.data.jws))?.payload;
  if (!isReceiptPayload(payload)) throw new Error('no receipt');
  const jws = await signed({ ...payload, ...change(payload) }, key);
  return edited(events, which, { jws, keyId: key.keyId });
}

export const anyHash = hex('e');
