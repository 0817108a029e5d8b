// The state of a witness in a SQLite file that several processes share.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { sameHash } from '#src/domain/transparency/merkle.ts';
import type { WitnessedHead } from '#src/domain/transparency/witness.ts';
import { createPrivateFile, findText, flush, replaceFile } from '#src/lib/files/durable.ts';
import { numberOf, refuseForeign, type SqliteKind, versionOf } from '#src/lib/files/sqlite-kind.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { retryWhileBusy, sqliteFileError } from '#src/lib/sqlite-error.ts';
import type { WitnessedCheckpoint, WitnessStore } from '#src/ports/witness-store.ts';

/** Its id is "RWIT". */
const KIND: SqliteKind = { name: 'the state of a witness', applicationId: 0x52574954, schemaVersion: 1 };
/** How long another process may have the file locked. */
const BUSY_MS = 4000;

// `owner` has the verifier keys of the witness: the state of one witness is no state of another.
const SCHEMA = `
  CREATE TABLE checkpoints (
    origin_hash TEXT PRIMARY KEY,
    origin TEXT NOT NULL,
    size INTEGER NOT NULL,
    root BLOB NOT NULL,
    note TEXT NOT NULL
  ) STRICT;
  CREATE TABLE owner (one INTEGER PRIMARY KEY CHECK (one = 1), vkeys TEXT NOT NULL) STRICT;
  PRAGMA application_id = ${KIND.applicationId};
  PRAGMA user_version = ${KIND.schemaVersion};
`;

export type WitnessStateFile = WitnessStore & {
  /** The verifier keys of the witness that uses it; null: none yet. */
  owner(): string | null;
  /** Of a state that is empty; its high-water mark begins with it. */
  setOwner(vkeys: string): Promise<void>;
  /** Throws an `OperatorError` if it is damaged, or does not have what was cosigned (`HighWaterMark`, created if it is missing). */
  refuseForgotten(): Promise<void>;
  /** No checkpoint was cosigned. */
  isEmpty(): boolean;
};

/** Opens the state; creates it, readable by its owner only. Throws an `OperatorError` for any other file. */
export async function openWitnessState(file: string): Promise<WitnessStateFile> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const isNew = createPrivateFile(file);
  const db = await retryWhileBusy(() => opened(file), BUSY_MS);
  // The name of a new file has to survive a power failure, like what is stored in it.
  if (isNew) flush(dirname(file));
  return stateOf(db, file);
}

function opened(file: string): DatabaseSync {
  try {
    const db = new DatabaseSync(file, { timeout: 0 });
    try {
      refuseForeign(db, KIND, { file, shown: `witness state ${file}` });
      const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
      if (mode !== 'wal') throw new OperatorError(`witness state ${file}: no write-ahead log here (${mode})`);
      // FULL: the write-ahead log is synced before COMMIT returns.
      db.exec('PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON');
      inTransaction(db, () => {
        if (versionOf(db) === 0) db.exec(SCHEMA);
      });
      // A damaged index would hide what was cosigned of a log.
      const [found] = db.prepare('PRAGMA integrity_check(1)').all();
      if (found?.integrity_check !== 'ok')
        throw new OperatorError(`witness state ${file} is damaged (${found?.integrity_check}): ${RESTORE}`);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  } catch (error) {
    throw sqliteFileError(`witness state ${file}`, error, `is damaged, or not a database: ${RESTORE}`);
  }
}

const RESTORE =
  'do not restore an older copy, which forgets what was cosigned; make a new key and state, and publish the new key';

function inTransaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const done = work();
    db.exec('COMMIT');
    return done;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

const hashOf = (origin: string): string => toHex(sha256(utf8(origin)));

function stateOf(db: DatabaseSync, file: string): WitnessStateFile {
  const select = db.prepare('SELECT size, root, note FROM checkpoints WHERE origin_hash = ?');
  const store = db.prepare(
    'INSERT OR REPLACE INTO checkpoints (origin_hash, origin, size, root, note) VALUES (?, ?, ?, ?, ?)',
  );
  const mark = highWaterMark(`${file}.cosigned`);
  const find = (originHash: string): WitnessedCheckpoint | null => {
    const row = select.get(originHash);
    return row === undefined ? null : checkpointIn(row, file);
  };
  function refuseBelow(mark: Sizes): void {
    for (const row of db.prepare('SELECT size, root, note FROM checkpoints').all()) checkpointIn(row, file);
    for (const [originHash, cosigned] of mark) {
      const size = find(originHash)?.size ?? 0;
      if (size < cosigned)
        throw new OperatorError(
          `witness state ${file} has forgotten that it has cosigned ${cosigned} leaves of the log ${originHash}: it has ${size}. Put the newest state back with its -wal; ${RESTORE}`,
        );
    }
  }
  /** What is stored, and nothing older: other processes wait. */
  const raiseMark = () =>
    inTransaction(db, () => {
      const sizes = db.prepare('SELECT origin_hash, size FROM checkpoints').all();
      mark.raise(new Map(sizes.map(({ origin_hash, size }) => [String(origin_hash), Number(size)])));
    });
  const guarded = <T>(work: () => T): Promise<T> =>
    retryWhileBusy(() => {
      try {
        return work();
      } catch (error) {
        throw sqliteFileError(`witness state ${file}`, error, `is damaged: ${RESTORE}`);
      }
    }, BUSY_MS);
  const owner = (): string | null => {
    const vkeys = db.prepare('SELECT vkeys FROM owner').get()?.vkeys;
    return typeof vkeys === 'string' ? vkeys : null;
  };
  return {
    owner,
    async setOwner(vkeys) {
      mark.begin();
      await guarded(
        () => void db.prepare('INSERT OR REPLACE INTO owner (one, vkeys) VALUES (1, ?)').run(vkeys),
      );
    },
    async refuseForgotten() {
      await guarded(() => refuseBelow(mark.read()));
      await guarded(raiseMark);
    },
    isEmpty: () => numberOf(db, 'SELECT count(*) FROM checkpoints') === 0,
    find: (origin) => guarded(() => find(hashOf(origin))),
    findByHash: (originHash) => guarded(() => find(originHash)),
    async replace(origin, last, next) {
      const isStored = await guarded(() =>
        inTransaction(db, () => {
          if (!isSame(find(hashOf(origin)), last)) return false;
          store.run(hashOf(origin), origin, next.size, next.root, next.note);
          return true;
        }),
      );
      // After the state, so that a crash between them leaves a mark below it.
      if (isStored) await guarded(raiseMark);
      return isStored;
    },
    close: () => db.close(),
  };
}

/** The note states size and root again, under the signatures. */
function checkpointIn({ size, root, note }: Record<string, unknown>, file: string): WitnessedCheckpoint {
  const head = typeof note === 'string' ? parseCheckpoint(note) : null;
  if (
    typeof note !== 'string' ||
    !(root instanceof Uint8Array) ||
    head === null ||
    head.size !== size ||
    !sameHash(head.root, root)
  )
    throw new OperatorError(`witness state ${file} is damaged: ${RESTORE}`);
  return { size: head.size, root: head.root, note };
}

const isSame = (a: WitnessedHead | null, b: WitnessedHead | null): boolean =>
  a === null || b === null ? a === b : a.size === b.size && sameHash(a.root, b.root);

// ── high water mark ──────────────────────────────────────────────────────────────────────────────────
// The high-water mark of a witness's state: a file beside it with the largest size that was cosigned of each log. A state that was
// restored from an older copy, or has lost its end, is below it.

/** Leaves, by the SHA-256 of the origin (hex). */
type Sizes = ReadonlyMap<string, number>;

type HighWaterMark = {
  /** Empty if there is no file. A line that cannot be read is left out. */
  read(): Sizes;
  /** Durable when it returns; written only if it differs. One process at a time. */
  raise(sizes: Sizes): void;
  /** Forgets all of it. */
  begin(): void;
};

const LINE = /^([0-9a-f]{64}) (0|[1-9]\d{0,15})$/;

function highWaterMark(file: string): HighWaterMark {
  const read = (): Sizes =>
    new Map(
      (findText(file) ?? '').split('\n').flatMap((line) => {
        const [, hash, size] = LINE.exec(line) ?? [];
        return hash === undefined ? [] : [[hash, Number(size)] as const];
      }),
    );
  const write = (sizes: Sizes) =>
    replaceFile(file, [...sizes].map(([hash, size]) => `${hash} ${size}\n`).join(''));
  return {
    read,
    raise(sizes) {
      const before = read();
      const raised = new Map(before);
      for (const [hash, size] of sizes) raised.set(hash, Math.max(size, before.get(hash) ?? 0));
      if ([...raised].some(([hash, size]) => before.get(hash) !== size)) write(raised);
    },
    begin: () => write(new Map()),
  };
}
