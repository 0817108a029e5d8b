// Compares the record with an auditor's own evidence: collects the necessary facts from each event.
import {
  type AnnouncedKey,
  compareCheckpoint,
  compareKeys,
  type EvidenceFinding,
  isUnreached,
  type KeptCheckpoint,
  type KeptFacts,
} from '#src/domain/audit/evidence.ts';
import { toBase64 } from '#src/domain/encoding.ts';
import { type RecordedEvent, readEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, STREAM } from '#src/domain/events.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import { evolveKeys, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { verifyCheckpoint, verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { Hash } from '#src/domain/transparency/merkle.ts';
import { appendLeaf, EMPTY_TREE, leafData, rootOf } from '#src/domain/transparency/tree.ts';

type KeptEvidence = {
  /** null: the record's own keys are trusted. */
  readonly keys: readonly KeyRecord[] | null;
  readonly checkpoints: readonly KeptCheckpoint[];
};

type EvidenceAuditor = {
  /** One call after another, in global order from the first event on. */
  take(event: RecordedEvent): Promise<void>;
  finish(): Promise<EvidenceVerdict>;
};

type EvidenceVerdict = {
  readonly findings: readonly EvidenceFinding[];
  readonly notes: EvidenceNotes;
};

/** Facts that are no findings. */
export type EvidenceNotes = {
  /** Kept checkpoints that fit, while the record has neither them nor a larger one: it ends before them, or they were removed. */
  readonly unreachedCheckpoints: number;
};

export function evidenceAuditor(primitives: Primitives, kept: KeptEvidence): EvidenceAuditor {
  const sizes = new Set(kept.checkpoints.map(({ size }) => size));
  const roots = new Map<number, Hash>();
  /** The record's checkpoints of the kept sizes. */
  const recorded = new Set<string>();
  let tree = EMPTY_TREE;
  let origin: string | null = null;
  let largest: number | null = null;
  let announced: readonly AnnouncedKey[] = [];

  const noteRoot = async () => {
    if (sizes.has(tree.size)) roots.set(tree.size, rootOf(tree));
  };
  const noteKey = (event: DomainEvent, { stream, revision, position }: RecordedEvent) => {
    if (
      stream !== STREAM.keys ||
      (event.type !== 'SigningKeyActivated' && event.type !== 'SigningKeyRetired')
    )
      return;
    const location = { stream, revision: String(revision), position };
    announced = evolveKeys(
      announced.map(({ key }) => key),
      event,
    ).map((key, at) => ({ key, location: announced[at]?.location ?? location }));
  };

  return {
    async take(stored) {
      const event = readEvent(stored);
      if (event === null) return;
      noteKey(event, stored);
      if (event.type === 'CheckpointSigned' && stored.stream === STREAM.receiptLog) {
        origin ??= event.data.origin;
        const { size, root } = event.data;
        largest = Math.max(largest ?? 0, Number(size));
        if (sizes.has(Number(size))) recorded.add(`${size} ${root}`);
      }
      if (sizes.size === 0) return;
      const data = leafData(event);
      if (data === null) return;
      if (tree.size === 0) await noteRoot();
      tree = appendLeaf(tree, data).tree;
      await noteRoot();
    },
    async finish() {
      if (tree.size === 0) await noteRoot();
      const findings = kept.keys === null ? [] : [...compareKeys(announced, kept.keys)];
      const trusted = kept.keys ?? announced.map(({ key }) => key);
      let unreachedCheckpoints = 0;
      for (const checkpoint of kept.checkpoints) {
        const signature = await signatureOf(checkpoint, trusted, primitives);
        const root = roots.get(checkpoint.size) ?? null;
        const isRecorded = recorded.has(`${checkpoint.size} ${toBase64(checkpoint.root)}`);
        const facts = { origin, leaves: tree.size, root, recorded: isRecorded, largest, signature };
        findings.push(...compareCheckpoint(checkpoint, facts));
        if (isUnreached(checkpoint, facts)) unreachedCheckpoints++;
      }
      return { findings, notes: { unreachedCheckpoints } };
    },
  };
}

/** `keys`: the trusted ones. */
async function signatureOf(
  { note }: KeptCheckpoint,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<KeptFacts['signature']> {
  if ((await verifyCheckpoint(note, keys, primitives)) !== null) return 'good';
  return (await verifyOwnCheckpoint(note, keys, primitives)) === null ? 'none' : 'compromised';
}
