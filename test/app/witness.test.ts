// A witness as a log and a monitor meet it: each status of C2SP tlog-witness, what it remembers, and what no client can do to it.
// The log on the other side is written only from the standard's text.
import assert from 'node:assert/strict';
import { chmodSync, cpSync, existsSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { httpWitness } from '#src/adapters/witness/http.ts';
import { type RunningWitness, startWitness, type WitnessOptions } from '#src/app/witness.ts';
import { parseVerifierKey } from '#src/domain/transparency/cosignature.ts';
import { verifierKeyText } from '#src/domain/transparency/note.ts';
import { WITNESS_SERVER_LIMITS } from '#src/domain/transparency/witness.ts';
import { sha256 } from '#test/support/given/primitives.ts';
import { flipByte, hideInIndex } from '#test/support/log/damaged-file.ts';
import { type SmallLog, smallLog } from '#test/support/log/small-log.ts';
import { rawClient } from '#test/support/process/http-socket.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { type C2spKey, c2spKey, c2spNote } from '#test/support/witness/c2sp.ts';
import { C2spLog, c2spAdd, c2spCosigned, c2spKeyOf } from '#test/support/witness/c2sp-log.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';

const folder = testFolder('witness');
const logger = collectingLogger();
const running: RunningWitness[] = [];
after(async () => {
  for (const witness of running) await witness.stop();
});

const keysOf = (...logs: readonly C2spLog[]) =>
  logs.map(({ key }) => parseVerifierKey(key.vkey) ?? assert.fail());

async function start(changes: Partial<WitnessOptions>, ...logs: readonly C2spLog[]): Promise<RunningWitness> {
  const keys = keysOf(...logs);
  const witness = await startWitness({
    logs: () => keys,
    keyFile: join(folder, 'common.key'),
    name: 'witness.example/w1',
    listen: { hostname: '127.0.0.1', port: 0 },
    logger,
    ...changes,
  });
  running.push(witness);
  return witness;
}

function withDatabase(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

const fresh = (() => {
  let count = 0;
  return () => `log${++count}.example/receipts`;
})();

/** Logs that sign with each type that the standard permits. */
const logs = ([1, 4, 6] as const).map((type) => new C2spLog(fresh(), type));
const [log = assert.fail()] = logs;
const witness = await start({}, ...logs);
const [ed25519 = assert.fail(), mlDsa44 = assert.fail()] = witness.vkeys.map(c2spKeyOf);
const now = () => Math.floor(Date.now() / 1000);

describe('add-checkpoint', () => {
  test('answers 200 with a cosignature of each key, which the standard’s text verifies, with the time of now', async () => {
    const before = now();
    for (const size of [1, 2, 3, 8, 21]) {
      const old = log.leaves.length;
      log.grow(size - old);
      const { status, body } = await c2spAdd(witness.url, log.submission(old));
      assert.deepEqual([status, body.split('\n').length], [200, 3], body);
      for (const key of [ed25519, mlDsa44] satisfies C2spKey[]) {
        const time: number = c2spCosigned(log.text(), body, key)?.time ?? assert.fail();
        assert.ok(time >= before && time <= now(), String(time));
      }
    }
    assert.deepEqual([ed25519.type, mlDsa44.type], [4, 6]);
  });
  test('answers 200 to logs that sign with a cosignature key of either algorithm', async () => {
    for (const other of logs.slice(1))
      assert.equal((await c2spAdd(witness.url, other.grow(2).submission(0))).status, 200);
  });
  test('of 100 that extend one checkpoint at once, exactly one is cosigned', async () => {
    const old = log.leaves.length;
    log.grow(100);
    const bodies = Array.from({ length: 100 }, (_, n) => log.submission(old, old + 1 + n));
    const own = await Promise.all(bodies.map((body) => c2spAdd(witness.url, body)));
    const cosigned = own.flatMap(({ status }, n) => (status === 200 ? [old + 1 + n] : []));
    assert.equal(cosigned.length, 1);
    for (const { status, body } of own)
      if (status !== 200) assert.deepEqual([status, body], [409, `${cosigned[0]}\n`]);
  });
});

test('the relay’s own client gets its answers: cosigned, a conflict with the size, a refusal', async () => {
  const own = smallLog(fresh());
  const vkey = verifierKeyText({ name: await originIn(own), publicKey: Buffer.from(own.key.x, 'base64url') });
  const serving = await start({
    keyFile: join(folder, 'client.key'),
    logs: () => [parseVerifierKey(vkey) ?? assert.fail()],
  });
  const client = httpWitness(serving.url);
  for (const leaf of ['a', 'b', 'c', 'd', 'e']) await own.append(sha256(leaf));
  const submit = async (old: number, size: number) =>
    client.addCheckpoint({
      old,
      proof: old === 0 ? [] : await own.consistency(old, size),
      checkpoint: await own.checkpoint(size),
    });
  for (const [old, size] of [
    [0, 2],
    [2, 5],
  ] as const) {
    const answer = await submit(old, size);
    const lines = answer.kind === 'cosigned' ? answer.lines : assert.fail(answer.kind);
    const text = (await own.checkpoint(size)).split('\n\n')[0];
    for (const key of serving.vkeys.map(c2spKeyOf)) assert.ok(c2spCosigned(`${text}\n`, lines, key));
  }
  assert.deepEqual(await submit(0, 5), { kind: 'conflict', size: 5 });
  const checkpoint = await own.checkpoint(5);
  assert.deepEqual(await client.addCheckpoint({ old: 5, proof: [sha256('x')], checkpoint }), {
    kind: 'refused',
    status: 422,
  });
});

const originIn = async (log: SmallLog): Promise<string> => (await log.checkpoint(0)).split('\n')[0] ?? '';

describe('the last checkpoint of a log', () => {
  const get = (path: string, method = 'GET') => fetch(`${witness.url}/${path}`, { method });
  test('is served with the signature of the log and both cosignatures, and nothing else', async () => {
    const other = new C2spLog(fresh()).grow(4);
    const serving = await start({ keyFile: join(folder, 'serving.key') }, other);
    const stranger = c2spNote(other.text(), c2spKey('x.example', 1)).split('\n').at(-2);
    const { body } = await c2spAdd(serving.url, `${other.submission(0)}${stranger}\n`);
    const served = await fetch(`${serving.url}/${other.hash}/checkpoint`);
    assert.equal(served.status, 200);
    assert.equal(await served.text(), other.checkpoint() + body);
  });
  test('is not there for a log without one, an upper-case hash or another path', async () => {
    for (const path of [new C2spLog('none').hash, log.hash.toUpperCase(), `${log.hash}0`, ''])
      assert.equal((await get(`${path}/checkpoint`)).status, 404);
    assert.equal((await get(log.hash)).status, 404);
  });
  test('is read with GET and HEAD only, and checkpoints are added with POST only', async () => {
    assert.equal((await get(`${log.hash}/checkpoint`, 'HEAD')).status, 200);
    const put = await get(`${log.hash}/checkpoint`, 'PUT');
    assert.deepEqual([put.status, put.headers.get('allow')], [405, 'GET, HEAD']);
    const added = await get('add-checkpoint');
    assert.deepEqual([added.status, added.headers.get('allow')], [405, 'POST']);
  });
});

describe('a client cannot', () => {
  const { port } = new URL(witness.url);
  test('send more than 64 KiB: 413, and the connection ends', async () => {
    const client = await rawClient(Number(port));
    client.send(
      `POST /add-checkpoint HTTP/1.1\r\nhost: w\r\ncontent-length: ${WITNESS_SERVER_LIMITS.bodyBytes + 1}\r\n\r\n`,
    );
    const { status, headers } = await client.answer();
    assert.deepEqual([status, headers.get('connection')], [413, 'close']);
    client.destroy();
    const chunked = await rawClient(Number(port));
    chunked.send('POST /add-checkpoint HTTP/1.1\r\nhost: w\r\ntransfer-encoding: chunked\r\n\r\n');
    chunked.send(`${(70_000).toString(16)}\r\n${'x'.repeat(70_000)}\r\n`);
    assert.equal((await chunked.answer()).status, 413);
    chunked.destroy();
  });
});

describe('a start', () => {
  const own = new C2spLog(fresh()).grow(5);
  const keyFile = join(folder, 'starts.key');
  const stateFile = `${keyFile}.state`;
  const restart = (changes: Partial<WitnessOptions> = {}) => start({ keyFile, ...changes }, own);
  const remove = () => {
    for (const end of ['', '-wal', '-shm']) rmSync(`${stateFile}${end}`, { force: true });
  };

  test('without a key file needs a name, and creates key file and state for their owner only', async () => {
    await assert.rejects(
      startWitness({ logs: () => [], keyFile, listen: { hostname: '127.0.0.1', port: 0 }, logger }),
      {
        message: new RegExp(`key file ${keyFile} is not there: create it with --name`),
      },
    );
    for (const name of ['', 'a b', 'a+b', 'x'.repeat(201)])
      await assert.rejects(restart({ name }), /create it with --name/, name);
    assert.deepEqual([existsSync(keyFile), existsSync(stateFile)], [false, false]);
    const first = await restart();
    assert.equal(first.created, true);
    for (const file of [keyFile, stateFile]) assert.equal(statSync(file).mode & 0o777, 0o600, file);
    assert.equal((await c2spAdd(first.url, own.submission(0, 3))).status, 200);
    await first.stop();
  });
  test('remembers its keys and what it has cosigned', async () => {
    const again = await restart();
    assert.equal(again.created, false);
    assert.deepEqual((await c2spAdd(again.url, own.submission(0, 3))).body, '3\n');
    const { status, body } = await c2spAdd(again.url, own.submission(3));
    assert.equal(status, 200);
    assert.ok(c2spCosigned(own.text(), body, c2spKeyOf(again.vkeys[0] ?? '')));
    await again.stop();
  });
  test('two processes on one state file remember together', async () => {
    const [one, two] = [await restart(), await restart()];
    own.grow(20);
    const bodies = Array.from({ length: 20 }, (_, n) => own.submission(5, 6 + n));
    const answers = await Promise.all(
      bodies.map((body, n) => c2spAdd(n % 2 === 0 ? one.url : two.url, body)),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    assert.equal(answers.filter(({ status }) => status === 409).length, 19);
    const size = Number(answers.find(({ status }) => status === 409)?.body);
    assert.equal((await c2spAdd(two.url, own.submission(size))).status, 200);
    assert.equal((await c2spAdd(one.url, own.submission(25, 25))).status, 200);
    await Promise.all([one.stop(), two.stop()]);
  });
  test('is refused with another name, with a key file that others can read, or with a malformed one', async () => {
    await assert.rejects(restart({ name: 'other.example' }), /has the name witness.example\/w1/);
    chmodSync(keyFile, 0o640);
    await assert.rejects(restart(), /is open to others: chmod 600 it/);
    chmodSync(keyFile, 0o600);
  });
  test('is refused with --begin where the state is, and with the state of another witness', async () => {
    await assert.rejects(restart({ begin: true }), /is there: start without --begin/);
    await assert.rejects(restart({ keyFile: join(folder, 'common.key'), stateFile }), /of another witness/);
  });
  test('is refused without the state of a key file, also where it is empty; --begin starts again', async () => {
    truncateSync(stateFile);
    rmSync(`${stateFile}-wal`, { force: true });
    await assert.rejects(restart(), /is missing or empty, but the key file exists/);
    remove();
    await assert.rejects(restart(), /is missing or empty, but the key file exists/);
    assert.equal(existsSync(stateFile), false);
    const begun = await restart({ begin: true });
    assert.equal((await c2spAdd(begun.url, own.submission(0))).status, 200);
    await begun.stop();
  });
  test('is refused with an older copy of its state, without the newest entries of it, and without its rows', async () => {
    const now = await restart();
    const older = join(folder, 'older.state');
    const copyState = () => {
      for (const end of ['', '-wal']) cpSync(`${stateFile}${end}`, `${older}${end}`);
    };
    copyState();
    own.grow(5);
    assert.equal((await c2spAdd(now.url, own.submission(25))).status, 200);
    // As a process that is killed leaves it: the last transaction is in the write-ahead log only.
    const newest = join(folder, 'newest.state');
    for (const end of ['', '-wal']) cpSync(`${stateFile}${end}`, `${newest}${end}`);
    await now.stop();
    const put = (from: string, ends: readonly string[]) => {
      remove();
      for (const end of ends) cpSync(`${from}${end}`, `${stateFile}${end}`);
    };
    const forgets =
      /has forgotten that it has cosigned 30 leaves of .*: it has 25\. .* do not restore an older copy/;
    put(older, ['', '-wal']);
    await assert.rejects(restart(), forgets);
    put(newest, ['']);
    await assert.rejects(restart(), /has forgotten|is missing or empty/);
    put(newest, ['', '-wal']);
    flipByte(`${stateFile}-wal`, statSync(`${stateFile}-wal`).size - 100);
    await assert.rejects(restart(), forgets);
    put(newest, ['', '-wal']);
    const again = await restart();
    assert.deepEqual((await c2spAdd(again.url, own.submission(0))).body, '30\n');
    await again.stop();
    rmSync(`${stateFile}.cosigned`);
    await (await restart()).stop();
  });
  test('is refused with a state of which a row was changed or is not found, and one that is cut', async () => {
    const whole = join(folder, 'whole.state');
    const hash = Buffer.from(sha256(own.key.name)).toString('hex');
    cpSync(stateFile, whole);
    const damages: readonly (() => void)[] = [
      () => truncateSync(stateFile, 4096),
      () => hideInIndex(stateFile, hash),
      () => withDatabase(stateFile, 'UPDATE checkpoints SET size = 2'),
      () => withDatabase(stateFile, "UPDATE checkpoints SET root = x'00'"),
      () => withDatabase(stateFile, 'DELETE FROM checkpoints'),
    ];
    for (const damage of damages) {
      remove();
      cpSync(whole, stateFile);
      damage();
      await assert.rejects(restart(), /damaged|has forgotten/, `${damage}`);
    }
    remove();
    cpSync(whole, stateFile);
    await (await restart()).stop();
  });
  test('is refused without the key file of a state that has cosigned', async () => {
    rmSync(keyFile);
    await assert.rejects(restart(), /is not there, but its state is/);
  });
});
