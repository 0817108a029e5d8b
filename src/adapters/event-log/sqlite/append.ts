// What one append means inside a transaction that holds the write lock: expectations, repeats, revisions.
// Leaves to others: locks, savepoints and durability (sqlite-group-commit.ts).
import type { DatabaseSync } from 'node:sqlite';
import type { CheckedEvent } from '#src/adapters/event-log/append-arguments.ts';
import { type Appended, type ExpectedRevision, WrongExpectedVersion } from '#src/ports/event-log.ts';
import { positionText } from './read.ts';

export type AppendCall = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly CheckedEvent[];
};

/** `stored` false: the call is a repeat, its events were there. */
export type Stored = { readonly appended: Appended; readonly stored: boolean };

export type Append = (call: AppendCall) => Stored;

type Place = { readonly id: string; readonly revision: number; readonly position: number };

/**
 * EventStoreDB's rules. With a revision or `no_stream`: new where the stream is just there; a repeat where exactly
 * these ids, in this order, follow that place already (whatever came after them); anything else, also where only
 * some are there, throws `WrongExpectedVersion`. With `any` and `stream_exists`: a repeat where the ids stand in the
 * stream one after the other; new where none is in it; anything else throws `WrongExpectedVersion`. Looking for ids
 * without a place costs a walk through the stream: an append with a revision is the fast one.
 */
export function sqliteAppend(db: DatabaseSync, now: () => number): Append {
  const lastOf = db.prepare('SELECT revision FROM events WHERE stream = ? ORDER BY revision DESC LIMIT 1');
  const from = db.prepare(
    'SELECT id, revision, position FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?',
  );
  const withIds = db.prepare(
    `SELECT id, revision, position FROM events
     WHERE stream = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY revision`,
  );
  const insert = db.prepare(
    'INSERT INTO events (stream, revision, id, type, created, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );

  function store({ stream, events }: AppendCall, last: number): Stored {
    const created = now();
    let revision = last;
    let position = 0;
    for (const { id, type, data, metadata } of events) {
      revision++;
      position = Number(insert.run(stream, revision, id, type, created, data, metadata).lastInsertRowid);
    }
    return { appended: { nextRevision: BigInt(revision), position: positionText(position) }, stored: true };
  }

  return (call) => {
    const { stream, expected, events } = call;
    const last = Number(lastOf.get(stream)?.revision ?? -1);
    const wrong = () => new WrongExpectedVersion(stream, expected, last < 0 ? null : BigInt(last));
    if (expected === 'any' || expected === 'stream_exists') {
      if (last < 0 && expected === 'stream_exists') throw wrong();
      const ids = JSON.stringify(events.map((event) => event.id));
      const found = last < 0 ? [] : (withIds.all(stream, ids) as Place[]);
      if (found.length === 0) return store(call, last);
      return repeatOf(found, events, Number(found[0]?.revision)) ?? fail(wrong());
    }
    const first = expected === 'no_stream' ? 0n : expected + 1n;
    if (first === BigInt(last + 1)) return store(call, last);
    if (first > last) throw wrong();
    const standing = from.all(stream, first, events.length) as Place[];
    return repeatOf(standing, events, Number(first)) ?? fail(wrong());
  };
}

/** The first call's answer, where `standing` are exactly these events from revision `first` on. */
function repeatOf(standing: readonly Place[], events: readonly CheckedEvent[], first: number): Stored | null {
  const same = events.every(({ id }, i) => standing[i]?.id === id && standing[i]?.revision === first + i);
  const last = standing[events.length - 1];
  if (!same || last === undefined) return null;
  const appended = { nextRevision: BigInt(last.revision), position: positionText(last.position) };
  return { appended, stored: false };
}

function fail(error: Error): never {
  throw error;
}
