// Starts as a user that has no privilege, over files that this user may not use, that are damaged or are something else, and
// on a full or read-only disk: each ends with code 2 and one line that names the file and what to do.
import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import {
  AS_OTHER_USER,
  fillDisk,
  mountMemory,
  needsMounts,
  needsOtherUser,
  OTHER_UID,
  remount,
  unmount,
} from '#test/support/process/other-user.ts';
import {
  type Ended,
  type Environment,
  logLines,
  spawnService,
  startService,
} from '#test/support/process/service.ts';

const otherUser = needsOtherUser();
const mounts = needsMounts();

/** Unavailable, so that read models take no time to open. */
const DATABASE_URL = 'postgres://user@127.0.0.1:1/none';
const root = mkdtempSync(join(tmpdir(), 'relay-files-'));
/** A data directory as a stopped service of that user has left it. */
const used = join(root, 'used');
const spawning = { through: AS_OTHER_USER };

before(async () => {
  if (otherUser.skip) return;
  chmodSync(root, 0o755);
  mkdirSync(used, { mode: 0o700 });
  own(used);
  const service = await startService({ DATA_DIR: used, DATABASE_URL }, 'listening', spawning);
  assert.equal((await service.stop()).code, 0);
  for (const name of readdirSync(used)) assert.equal(statSync(join(used, name)).uid, OTHER_UID, name);
});
after(() => rmSync(root, { recursive: true, force: true }));

const own = (path: string) => chownSync(path, OTHER_UID, OTHER_UID);
/** Root's, with this mode. */
function roots(path: string, mode: number): void {
  chownSync(path, 0, 0);
  chmodSync(path, mode);
}
function replace(path: string, content: string | Buffer | null): void {
  rmSync(path, { recursive: true, force: true });
  if (content === null) mkdirSync(path);
  else writeFileSync(path, content, { mode: 0o600 });
  own(path);
}
const NOISE = Buffer.alloc(5000, 0xa5);

let copies = 0;
function copy(): string {
  const folder = join(root, `copy-${copies++}`);
  cpSync(used, folder, { recursive: true });
  for (const path of [folder, ...readdirSync(folder).map((name) => join(folder, name))]) own(path);
  chmodSync(folder, 0o700);
  return folder;
}

const ended = (DATA_DIR: string, more: Environment = {}): Promise<Ended> =>
  spawnService({ PORT: '0', DATABASE_URL, DATA_DIR, ...more }, spawning).ended;

function assertRefused({ code, stdout, stderr }: Ended, says: RegExp): void {
  assert.equal(code, 2, stdout + stderr);
  assert.doesNotMatch(stdout, /"listening"/);
  assert.match(stderr, /^(wrong configuration:\n {2})?[^\n]+\n$/, 'one line');
  assert.match(stderr, says);
  assert.doesNotMatch(stderr, /\bat .*\.ts:\d/, 'no stack');
}

type State = readonly [
  name: string,
  /** May return another DATA_DIR. */
  make: (folder: string) => unknown,
  says: RegExp,
  more?: Environment,
];
const EMBEDDED = { DATABASE_URL: '' };
const STATES: readonly State[] = [
  [
    'events.db is readable only',
    (at) => roots(join(at, 'events.db'), 0o644),
    /events\.db is not writable by user (?!unknown|root)\w+: restore its owner with chown/,
  ],
  ...['-wal', '-shm'].map(
    (tail): State => [
      `events.db${tail} is left over by root`,
      (at) => {
        replace(join(at, `events.db${tail}`), '');
        roots(join(at, `events.db${tail}`), 0o644);
      },
      new RegExp(`events\\.db${tail} is not writable by user (?!unknown|root)[a-z]+`),
    ],
  ),
  [
    'events.lock is root’s',
    (at) => roots(join(at, 'events.lock'), 0o644),
    /events\.lock is not writable by user (?!unknown|root)\w+/,
  ],
  [
    'events.db is a folder',
    (at) => replace(join(at, 'events.db'), null),
    /events\.db is no file: move it away/,
  ],
  [
    'events.db is cut',
    (at) => truncateSync(join(at, 'events.db'), 6000),
    /events\.db is damaged, or not a database/,
  ],
  [
    'events.lock is no lock file',
    (at) => replace(join(at, 'events.lock'), NOISE),
    /events\.lock is no lock file: delete it/,
  ],
  [
    'DATA_DIR cannot be listed',
    (at) => roots(at, 0o700),
    /DATA_DIR is not writable by user (?!unknown|root)\w+: /,
  ],
  [
    'DATA_DIR is a link to nowhere',
    (at) => {
      symlinkSync(join(at, 'nowhere', 'deep'), join(at, 'link'));
      return join(at, 'link');
    },
    /link is not a folder/,
  ],
  [
    'the key file is root’s',
    (at) => roots(join(at, 'keys.json'), 0o600),
    /keys\.json cannot be opened \(EACCES: this process runs as user id 65534, and the file belongs to 0; correct its owner/,
  ],
  ['the key file is a folder', (at) => replace(join(at, 'keys.json'), null), /keys\.json is not a file/],
  [
    'the checkpoint’s place is a folder',
    (at) => replace(join(at, 'checkpoint.note'), null),
    /checkpoint\.note is a folder, where a file is expected/,
  ],
  [
    'the checkpoint is root’s',
    (at) => roots(join(at, 'checkpoint.note'), 0o600),
    /checkpoint\.note is not accessible to user (?!unknown|root)\w+: correct its owner and mode/,
  ],
  [
    'read-models is a file',
    (at) => replace(join(at, 'read-models'), ''),
    /read-models is not a folder/,
    EMBEDDED,
  ],
  [
    'read-models is root’s',
    (at) => {
      replace(join(at, 'read-models'), null);
      roots(join(at, 'read-models'), 0o755);
    },
    /read-models\/lock\.sqlite cannot be opened for writing: correct owner and mode/,
    EMBEDDED,
  ],
];

test('files that this user may not use, that are damaged, or are something else', otherUser, async () => {
  const wrong: string[] = [];
  const states = [...STATES];
  // Two at a time.
  const worker = async () => {
    for (let state = states.shift(); state !== undefined; state = states.shift()) {
      const [name, make, says, more] = state;
      const folder = copy();
      try {
        const other = make(folder);
        assertRefused(await ended(typeof other === 'string' ? other : folder, more), says);
      } catch (error) {
        wrong.push(`${name}: ${(error as Error).message}`);
      }
    }
  };
  await Promise.all([worker(), worker()]);
  assert.deepEqual(wrong, []);
});

test('another process keeps the log locked', otherUser, async () => {
  const folder = copy();
  const lock = new DatabaseSync(join(folder, 'events.db'));
  lock.exec('BEGIN EXCLUSIVE');
  try {
    assertRefused(
      await ended(folder),
      /^the event log is unavailable: another process keeps it locked; start again/,
    );
  } finally {
    lock.close();
  }
});

test('a full disk, at the first start and at a later one; with room it starts', {
  skip: otherUser.skip || mounts.skip,
}, async () => {
  const disk = join(root, 'disk');
  /** Of the disk, in bytes; what a start does not get to is left out. */
  const sizes: readonly (readonly [size: string, says: RegExp])[] = [
    ['4k', /the disk is full/],
    ['20k', /events\.db cannot be (read or )?written: the disk is full/],
    ['60k', /the disk is full/],
  ];
  for (const [size, says] of sizes) {
    mountMemory(disk, size);
    try {
      assertRefused(await ended(join(disk, 'data')), says);
      remount(disk, 'size=20m');
      await assertStarts(join(disk, 'data'));
    } finally {
      unmount(disk);
    }
  }
  mountMemory(disk, '2m');
  try {
    const data = join(disk, 'data');
    cpSync(used, data, { recursive: true });
    for (const path of [data, ...readdirSync(data).map((name) => join(data, name))]) own(path);
    fillDisk(join(disk, 'filling'));
    assertRefused(await ended(data), /events\.db cannot be (read or )?written: the disk is full/);
    assertRefused(await ended(data, EMBEDDED), /lock\.sqlite cannot be (read or )?written: the disk is full/);
    rmSync(join(disk, 'filling'));
    remount(disk, 'ro');
    assertRefused(
      await ended(data),
      /DATA_DIR is on a read-only file system: |events\.db cannot be written: attempt to write a readonly database/,
    );
    remount(disk, 'rw');
    await assertStarts(data);
  } finally {
    unmount(disk);
  }
});

async function assertStarts(DATA_DIR: string): Promise<void> {
  const service = await startService({ DATA_DIR, DATABASE_URL }, 'listening', spawning);
  assert.equal((await fetch(`${service.url}/health`)).status, 200);
  const { code, stdout } = await service.stop();
  assert.equal(code, 0);
  assert.deepEqual(
    logLines(stdout).filter(({ level }) => level === 'error'),
    [],
  );
}
