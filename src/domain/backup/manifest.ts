// What a backup of the embedded tier contains, and whether it may take the place of what is there.
import { type Static, Type } from '@sinclair/typebox';
import { Nullable } from '../event-fields.ts';
import { shapeCheck } from '../shape-check.ts';

const Sha256Hex = Type.String({ pattern: '^[0-9a-f]{64}$' });

/** `backup.json`: written last, so that a folder without it is no backup. */
export const Manifest = Type.Object({
  format: Type.Literal('webhook-relay-backup'),
  version: Type.Literal(1),
  /** RFC 3339. */
  createdAt: Type.String(),
  /** Of the program that made it. */
  release: Type.String(),
  log: Type.Object({
    /** Id of its first event of signing keys; null: it has none yet. */
    id: Nullable(Type.String()),
    events: Type.Integer({ minimum: 0 }),
    /** Leaves of the transparency log. */
    treeSize: Type.Integer({ minimum: 0 }),
    /** Keys that it has announced. */
    keyIds: Type.Array(Type.String()),
    /** Of the audit of the copy. */
    findings: Type.Integer({ minimum: 0 }),
  }),
  /** By path in the backup. */
  files: Type.Record(Type.String(), Type.Object({ sha256: Sha256Hex, bytes: Type.Integer({ minimum: 0 }) })),
});
export type Manifest = Static<typeof Manifest>;

export const isManifest = shapeCheck(Manifest);

/** What is in place where a backup would be restored. */
export type InPlace = {
  /** null: none. `unreadable`: which events it has is not known. `isInBackup`: the backup has its last event, too. */
  readonly log:
    | null
    | 'unreadable'
    | { readonly id: string | null; readonly events: number; readonly isInBackup: boolean };
  /** Leaves that the newest checkpoint beside the log covers; null: there is none. */
  readonly checkpointSize: number | null;
  /** null: none. `logId`: of the log that the file remembers. */
  readonly keys: {
    readonly isSameSecret: boolean;
    readonly keyIds: readonly string[];
    readonly logId: string | null;
    /** The backup's key file has the same keys. */
    readonly hasSameKeys: boolean;
  } | null;
};

/** `impossible`: never restored there. `losses`: restored only if the operator accepts them. */
export type RestoreVerdict = { readonly impossible: readonly string[]; readonly losses: readonly string[] };

/**
 * An older log beside newer keys or checkpoints, or in place of one with more events, lacks calls that were answered: they
 * would be sent and charged again.
 */
export function judgeRestore(
  { log, checkpointSize, keys }: InPlace,
  backup: Manifest['log'],
): RestoreVerdict {
  const impossible: string[] = [];
  const losses: string[] = [];
  if (log !== null && log !== 'unreadable') {
    if (log.id !== null && log.id !== backup.id) impossible.push('the event log in place is another one');
    else if (!log.isInBackup)
      losses.push(
        `the event log in place has ${log.events} events, and its last one is not among the ${backup.events} of the backup`,
      );
  }
  if (checkpointSize !== null && checkpointSize > backup.treeSize)
    losses.push(`checkpoint.note covers ${checkpointSize} leaves, and the backup has ${backup.treeSize}`);
  if (keys !== null) {
    if (!keys.isSameSecret)
      impossible.push('the key file in place has another secret than that of the backup');
    if (keys.logId !== null && keys.logId !== backup.id)
      impossible.push('the key file in place was used with another event log');
    const newer = keys.keyIds.filter((keyId) => !backup.keyIds.includes(keyId));
    if (newer.length > 0 && backup.id !== null)
      losses.push(
        `the key file in place has keys that the event log of the backup lacks: ${newer.join(', ')}`,
      );
  }
  return { impossible, losses };
}
