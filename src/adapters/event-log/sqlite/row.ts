// An event as a row of the file, and the checksum by which damage to it is noticed.
import { crc32 } from 'node:zlib';
import type { Damage } from '#src/domain/damage.ts';
import { isObject } from '#src/lib/is-object.ts';
import { iso } from '#src/lib/iso.ts';
import { isSqliteUnreadable } from '#src/lib/sqlite-error.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';

export const positionText = (position: number): string => String(position).padStart(20, '0');

/** All columns but the checksum. */
type Stored = {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  /** ms since the Unix epoch. */
  readonly created: number;
  /** JSON. */
  readonly data: string;
  readonly metadata: string;
};

/**
 * CRC-32 over all that is stored of the event: finds every changed bit, at a tenth of the cost of a cryptographic hash, so
 * that each read can compare it. Against a person, who could compute either, receipts and checkpoints protect.
 */
export function checksumOf(stored: Stored): number {
  const { position, stream, revision, id, type, created, data, metadata } = stored;
  return crc32(`${position}\n${revision}\n${created}\n${id}\n${type}\n${stream}\n${data}\n${metadata}`);
}

/** What is selected. An older file that cannot be written has no checksums. */
export const columnsOf = (hasChecksum: boolean): string =>
  `stream, revision, position, id, type, data, metadata, created, ${hasChecksum ? 'checksum' : 'NULL AS checksum'}`;

export type Row = Readonly<Record<string, unknown>>;

/** `unchecked`: an event of an older release, which has no checksum. */
type Whole = { readonly event: RecordedEvent; readonly unchecked: boolean };
export type Point = Whole | { readonly event: null; readonly unchecked: false; readonly damage: Damage };

/** null: a row of them is damaged, or is not the one that was expected as the `i`th. */
export function wholeRows(
  select: () => readonly Row[],
  isExpected: (row: Row, i: number) => boolean,
): readonly Whole[] | null {
  try {
    const whole: Whole[] = [];
    for (const row of select()) {
      const event = isExpected(row, whole.length) ? recorded(row) : null;
      if (event === null) return null;
      whole.push({ event, unchecked: row.checksum === null });
    }
    return whole;
  } catch (error) {
    if (isSqliteUnreadable(error)) return null;
    throw error;
  }
}

/** null: the row is not as it was written. A row of an older release, without a checksum, need only be an event. */
export function recorded(row: Row): RecordedEvent | null {
  if (!isStored(row) || (row.checksum !== null && row.checksum !== checksumOf(row))) return null;
  const { stream, revision, position, id, type, created } = row;
  const data = row.checksum === null ? parsedObject(row.data) : JSON.parse(row.data);
  const metadata = row.checksum === null ? parsedObject(row.metadata) : JSON.parse(row.metadata);
  if (data === null || metadata === null) return null;
  return {
    stream,
    revision: BigInt(revision),
    position: positionText(position),
    id,
    type,
    data,
    metadata,
    created: iso(created),
  };
}

/** The table is STRICT, but a damaged row can have values of any type. */
const isStored = (row: Row): row is Stored & { readonly checksum: number | null } =>
  typeof row.stream === 'string' &&
  typeof row.revision === 'number' &&
  typeof row.position === 'number' &&
  typeof row.id === 'string' &&
  typeof row.type === 'string' &&
  typeof row.created === 'number' &&
  Math.abs(row.created) <= LAST_TIME &&
  typeof row.data === 'string' &&
  typeof row.metadata === 'string' &&
  (row.checksum === null || typeof row.checksum === 'number');

/** ECMA-262: the greatest time value. */
const LAST_TIME = 8.64e15;

function parsedObject(text: string): RecordedEvent['data'] | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? (value as RecordedEvent['data']) : null;
  } catch {
    return null;
  }
}
