// What one turn of the event loop reads, counted in bytes: no connection can take it for itself.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { AttemptFailed } from '#src/adapters/outbound/attempt.ts';
import { Intake, RECEIVED_BYTES_MAX } from '#src/adapters/outbound/intake.ts';
import {
  BYTES_PER_READ,
  BYTES_PER_TURN,
  ReadTurns,
  STEP_COST,
  WAITING_BYTES_MAX,
} from '#src/adapters/outbound/read-turns.ts';
import { connectTcp, TcpStream } from '#src/adapters/outbound/tcp-stream.ts';
import { until, withListener } from './lab.ts';

/** A socket whose peer has `kernel` bytes more: they arrive in blocks while it is not paused, a block a turn. */
class FakeSocket extends EventEmitter {
  paused = false;
  destroyedWith: unknown;
  pause() {
    this.paused = true;
  }
  resume() {
    this.paused = false;
  }
  destroy(error: unknown) {
    this.destroyedWith = error ?? null;
  }
}

const newTurns = () => new ReadTurns(() => 0);

function connect(turns = newTurns()) {
  const socket = new FakeSocket();
  let over = false;
  const stream = new TcpStream(socket as unknown as Socket, turns, () => over);
  const passed: string[] = [];
  stream.on('data', (piece: Buffer) => passed.push(piece.toString('latin1')));
  stream.on('end', () => passed.push('END'));
  const arrive = (bytes: number | string) => {
    socket.emit('data', typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.alloc(bytes, 'x'));
  };
  const length = () => passed.join('').length;
  const endTime = () => {
    over = true;
  };
  return { socket, stream, passed, length, arrive, endTime };
}

test('a small response is passed on at once, and its connection is never paused', () => {
  const { socket, passed, arrive } = connect();
  arrive('one');
  arrive('two');
  assert.deepEqual([passed, socket.paused], [['one', 'two'], false]);
});

test('one turn reads a bounded number of bytes, of all connections in turn, and nothing more from the kernel', async () => {
  const turns = newTurns();
  connect(turns).arrive(BYTES_PER_TURN);
  const all = Array.from({ length: 20 }, () => connect(turns));
  for (const { arrive } of all) arrive(100_000);
  const lengths = () => all.map(({ length }) => length());
  const read = () => lengths().reduce((a, b) => a + b);
  assert.equal(read(), 0);
  for (let before = 0; read() < 2_000_000; before = read()) {
    await setImmediate();
    assert.ok(read() > before && read() - before <= BYTES_PER_TURN + BYTES_PER_READ);
    assert.ok(Math.max(...lengths()) - Math.min(...lengths()) <= BYTES_PER_READ);
    for (const { socket, length } of all) assert.equal(socket.paused, length() < 100_000);
  }
});

test('what waits of all connections together is bounded: beyond it all are paused, then all are read again', async () => {
  const turns = newTurns();
  const idle = connect(turns);
  const all = Array.from({ length: 20 }, () => connect(turns));
  let waiting = 0;
  for (const { arrive, socket } of all) {
    if (socket.paused) continue;
    arrive(RECEIVED_BYTES_MAX);
    waiting += RECEIVED_BYTES_MAX;
  }
  assert.ok(waiting <= WAITING_BYTES_MAX + BYTES_PER_TURN + RECEIVED_BYTES_MAX, `${waiting} bytes`);
  assert.equal(idle.socket.paused, true);
  await until(() => !idle.socket.paused);
  // A connection that is closed leaves its share to the others.
  for (const { stream } of all) stream.intake.stop();
  connect(turns).arrive(RECEIVED_BYTES_MAX);
  assert.equal(idle.socket.paused, false);
});

test('a connection that is held reads nothing ahead', async () => {
  const accepted = Promise.withResolvers<Socket>();
  await withListener(accepted.resolve, async ({ port }) => {
    const socket = connectTcp({ host: '127.0.0.1', port });
    // It ends with an error when it has read more than it may.
    socket.on('error', () => undefined);
    const intake = new Intake(
      socket,
      newTurns(),
      () => false,
      () => undefined,
    );
    const peer = await accepted.promise;
    peer.write('first');
    await until(() => intake.received > 0);
    intake.hold();
    // More than the kernel takes.
    while (peer.write(Buffer.alloc(RECEIVED_BYTES_MAX)));
    for (let n = 0; n < 50; n++) await setImmediate();
    assert.deepEqual([intake.received, socket.readableLength], ['first'.length, 0]);
    intake.release();
    await until(() => intake.received > 'first'.length);
    intake.stop();
    socket.destroy();
  });
});

test('a small response waits for one turn at most behind large ones', async () => {
  const turns = newTurns();
  const large = Array.from({ length: 4 }, () => connect(turns));
  for (const { arrive } of large) arrive(BYTES_PER_TURN);
  const { passed, arrive } = connect(turns);
  arrive('small');
  await setImmediate();
  await setImmediate();
  assert.deepEqual(passed, ['small']);
});

test('a read costs its time if that is more than its bytes: a turn reads for 16 ms at most', async () => {
  let now = 0;
  const turns = new ReadTurns(() => now);
  // As handshakes with a key of 16,384 bits.
  const READ_MS = 3;
  const all = Array.from({ length: 50 }, () => connect(turns));
  for (const { stream, arrive } of all) {
    stream.on('data', () => {
      now += READ_MS;
    });
    arrive(2000);
  }
  for (let reads = 6; reads < all.length; reads += 6) {
    assert.equal(now, reads * READ_MS);
    await setImmediate();
  }
  await until(() => now === all.length * READ_MS);
});

test('the end of the connection is passed on after all that arrived, and in a later turn than the last of it', async () => {
  const { socket, stream, passed, arrive } = connect();
  arrive(BYTES_PER_TURN);
  arrive('last');
  socket.emit('end');
  assert.equal(stream.hasEnded, false);
  await until(() => passed.at(-1) === 'END');
  assert.equal(passed.at(-2), 'last');
  assert.equal(passed.join('').length, BYTES_PER_TURN + 'lastEND'.length);
  const other = connect();
  other.arrive('all');
  other.socket.emit('end');
  assert.deepEqual(other.passed, ['all']);
  await setImmediate();
  assert.deepEqual(other.passed, ['all', 'END']);
});

test('protocol_error: more than 512 KiB of which the body is not complete', async () => {
  const { socket, stream, length, arrive } = connect();
  for (let i = 0; i < 5; i++) arrive(RECEIVED_BYTES_MAX / 4);
  await until(() => socket.destroyedWith !== undefined);
  assert.ok(socket.destroyedWith instanceof AttemptFailed);
  assert.equal(socket.destroyedWith.category, 'protocol_error');
  assert.deepEqual(
    [length(), stream.intake.received, stream.intake.passedOn],
    Array(3).fill(RECEIVED_BYTES_MAX),
  );
});

test('after 32 reads, segments are collected before the next read', async () => {
  const { socket, passed, arrive } = connect();
  for (let i = 0; i < 32; i++) arrive('x');
  assert.equal(socket.paused, false);
  arrive('x');
  assert.deepEqual([passed.length, socket.paused], [33, true]);
  await until(() => !socket.paused);
  arrive('xxx');
  assert.deepEqual([passed.length, socket.paused], [34, true]);
});

test('nothing is passed on after the time limit, neither what arrives then nor what waits', async () => {
  const byByte = connect();
  for (let i = 0; i < 10; i++) byByte.arrive('x');
  byByte.endTime();
  for (let i = 0; i < 10; i++) byByte.arrive('x');
  const waiting = connect();
  waiting.arrive(2 * BYTES_PER_TURN);
  const before = waiting.length();
  waiting.endTime();
  await until(() => waiting.socket.destroyedWith !== undefined);
  assert.deepEqual([byByte.length(), waiting.length()], [10, before]);
  for (const { socket } of [byByte, waiting]) {
    assert.ok(socket.destroyedWith instanceof AttemptFailed);
    assert.equal(socket.destroyedWith.category, 'timeout');
  }
});

test('of 200 attempts that end at the same moment, each turn continues 16, in their order', async () => {
  const turns = newTurns();
  const continued: number[] = [];
  for (let n = 0; n < 200; n++) void turns.step().then(() => continued.push(n));
  const PER_TURN = BYTES_PER_TURN / STEP_COST;
  assert.equal(PER_TURN, 16);
  for (let expected = 0; expected < 200; ) {
    assert.equal(continued.length, expected);
    await setImmediate();
    expected = Math.min(200, expected + PER_TURN);
  }
  assert.deepEqual(
    continued,
    Array.from({ length: 200 }, (_, n) => n),
  );
});

test('a stopped stream passes nothing on but the end', async () => {
  const { socket, stream, passed, arrive } = connect();
  arrive(2 * BYTES_PER_TURN);
  const before = passed.length;
  stream.intake.stop();
  arrive('more');
  for (let i = 0; i < 5; i++) await setImmediate();
  assert.equal(passed.length, before);
  socket.emit('end');
  assert.equal(passed.at(-1), 'END');
});

test('TLS may pause and resume the connection, but not while something waits', async () => {
  const { socket, stream, arrive } = connect();
  stream.pause();
  assert.equal(socket.paused, true);
  stream.resume();
  assert.equal(socket.paused, false);
  arrive(BYTES_PER_TURN + 1);
  stream.resume();
  assert.equal(socket.paused, true);
  await until(() => !socket.paused);
});
