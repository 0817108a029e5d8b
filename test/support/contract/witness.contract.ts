// The contract of the witness port, for every adapter: what the witness at the other end answers, and what the caller gets.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  type PublishedCheckpoint,
  type RemoteWitness,
  WITNESS_LIMITS,
  type WitnessAnswer,
} from '#src/ports/witness.ts';
import { smallLog } from '#test/support/log/small-log.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';
import { C2spWitness } from '#test/support/witness/c2sp-witness.ts';

export type WitnessHarness = {
  readonly name: string;
  /** The witness with this submission prefix. */
  witness(url: string): RemoteWitness;
};

const LINE = '— witness.example/w1 AAAA\n';
const SIZE = { 'content-type': 'text/x.tlog.size' };

/** What a witness writes, and the answer. */
const ANSWERS: Readonly<Record<string, readonly [(response: ServerResponse) => unknown, WitnessAnswer]>> = {
  '200 are lines, not parsed': [(to) => to.end(LINE), { kind: 'cosigned', lines: LINE }],
  '200 with any text': [(to) => to.end('<html>'), { kind: 'cosigned', lines: '<html>' }],
  '200 that is not UTF-8': [(to) => to.end(Buffer.of(0xff)), { kind: 'failed', why: 'malformed' }],
  '409 is a size': [(to) => to.writeHead(409, SIZE).end('17\n'), { kind: 'conflict', size: 17 }],
  '409 of another type': [(to) => to.writeHead(409).end('17\n'), { kind: 'failed', why: 'malformed' }],
  '409 without a number': [
    (to) => to.writeHead(409, SIZE).end('1e3\n'),
    { kind: 'failed', why: 'malformed' },
  ],
  '409 with more than a double counts': [
    (to) => to.writeHead(409, SIZE).end('9999999999999999\n'),
    { kind: 'failed', why: 'malformed' },
  ],
  '403': [(to) => to.writeHead(403).end(), { kind: 'refused', status: 403 }],
  '404': [(to) => to.writeHead(404).end('who?'), { kind: 'refused', status: 404 }],
  '422': [(to) => to.writeHead(422).end(), { kind: 'refused', status: 422 }],
  '503': [(to) => to.writeHead(503).end(), { kind: 'refused', status: 503 }],
  'a redirect is not followed': [
    (to) => to.writeHead(307, { location: '/elsewhere' }).end(),
    { kind: 'failed', why: 'redirected' },
  ],
  'a gigabyte': [
    (to) => {
      to.writeHead(200, { 'content-length': String(2 ** 30) });
      to.write(Buffer.alloc(64 * 1024));
    },
    { kind: 'failed', why: 'oversized' },
  ],
  'a body that never ends, a byte at a time': [
    (to) => {
      const more = () => to.destroyed || (to.write(Buffer.alloc(1024)) && setImmediate(more));
      more();
    },
    { kind: 'failed', why: 'oversized' },
  ],
  'a gzip bomb: it is not unpacked': [
    (to) => to.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(8 * 2 ** 20))),
    { kind: 'failed', why: 'malformed' },
  ],
  'a connection that is closed in the body': [
    (to) => {
      to.writeHead(200, { 'content-length': '100' });
      to.write('— ', () => to.destroy());
    },
    { kind: 'failed', why: 'cut_off' },
  ],
};

export function witnessContract({ name, witness }: WitnessHarness): void {
  describe(`witness, ${name}`, () => {
    const submission = { old: 0, proof: [], checkpoint: 'log.example\n0\n\n' };

    for (const [title, [write, expected]] of Object.entries(ANSWERS))
      test(title, async () => {
        let paths = '';
        await using server = await loopbackServer((request, response) => {
          paths += request.url;
          request.resume();
          write(response);
        });
        assert.deepEqual(await witness(server.url).addCheckpoint(submission), expected);
        assert.equal(paths, '/add-checkpoint', 'asked once');
      });

    /** What a witness writes in place of a checkpoint, and the answer. */
    const PUBLISHED: Readonly<
      Record<string, readonly [(response: ServerResponse) => unknown, PublishedCheckpoint]>
    > = {
      '200 is a note, not parsed': [(to) => to.end('any text'), { kind: 'published', note: 'any text' }],
      '200 that is not UTF-8': [(to) => to.end(Buffer.of(0xff)), { kind: 'failed', why: 'malformed' }],
      '404': [(to) => to.writeHead(404).end('none'), { kind: 'refused', status: 404 }],
      '409': [(to) => to.writeHead(409, SIZE).end('17\n'), { kind: 'refused', status: 409 }],
      'a redirect is not followed': [
        (to) => to.writeHead(302, { location: '/elsewhere' }).end(),
        { kind: 'failed', why: 'redirected' },
      ],
      'more than 16 KiB': [(to) => to.end(Buffer.alloc(16 * 1024 + 1)), { kind: 'failed', why: 'oversized' }],
    };
    for (const [title, [write, expected]] of Object.entries(PUBLISHED))
      test(`a published checkpoint, ${title}`, async () => {
        let asked = '';
        await using server = await loopbackServer((request, response) => {
          asked += `${request.method} ${request.url}`;
          write(response);
        });
        assert.deepEqual(
          await witness(`${server.url}/prefix/`).checkpoint('example.com/behind-the-sofa'),
          expected,
        );
        const hash = createHash('sha256').update('example.com/behind-the-sofa').digest('hex');
        assert.equal(asked, `GET /prefix/${hash}/checkpoint`, 'asked once');
      });

    test('what is not there is unreachable', async () => {
      const server = await loopbackServer(() => undefined);
      await server.down();
      assert.deepEqual(await witness(server.url).addCheckpoint(submission), {
        kind: 'failed',
        why: 'unreachable',
      });
    });

    test('one that answers nothing: after 5 s, and at once if the caller ends', async () => {
      await using server = await loopbackServer(() => undefined);
      const begun = performance.now();
      const ending = new AbortController();
      const stopped = witness(server.url).addCheckpoint(submission, ending.signal);
      const slow = witness(server.url).addCheckpoint(submission);
      const slowToo = witness(server.url).checkpoint('log.example');
      setTimeout(() => ending.abort(), 50);
      assert.deepEqual(await stopped, { kind: 'failed', why: 'stopped' });
      assert.deepEqual(await slow, { kind: 'failed', why: 'timeout' });
      assert.ok(performance.now() - begun > WITNESS_LIMITS.timeoutMs - 50);
      assert.deepEqual(await slowToo, { kind: 'failed', why: 'timeout' });
    });

    test('one that drips, a byte a second: after 5 s, whatever has arrived', async () => {
      await using server = await loopbackServer((_request, response) => {
        const drip = setInterval(() => response.write('a'), 1000);
        response.on('close', () => clearInterval(drip));
        response.write('— ');
      });
      assert.deepEqual(await witness(server.url).addCheckpoint(submission), {
        kind: 'failed',
        why: 'timeout',
      });
    });

    test('one that switches protocols', async () => {
      await using server = await loopbackServer((_request, response) => {
        const { socket } = response;
        socket?.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
      });
      const asked = witness(server.url);
      // More than the connections to one witness: none of them is held.
      for (const answer of await Promise.all([0, 1, 2].map(() => asked.addCheckpoint(submission))))
        assert.equal(answer.kind, 'failed');
    });

    test('a witness of the standard takes what is submitted, below any prefix, on one connection', async () => {
      const log = smallLog();
      const standard = new C2spWitness().know('relay.example/receipts', log.key.x);
      const connections = new Set<unknown>();
      await using server = await loopbackServer((request, response) => {
        connections.add(request.socket);
        return standard.handle(request, response);
      });
      const asked = witness(`${server.url}/some/prefix/`);
      for (const [old, size] of [
        [0, 0],
        [0, 3],
        [3, 8],
        [8, 13],
        [13, 13],
      ] as const) {
        while (log.tree().size < size) await log.append(Buffer.from(`leaf ${log.tree().size}`));
        const proof = await log.consistency(old, size);
        const answer = await asked.addCheckpoint({ old, proof, checkpoint: await log.checkpoint() });
        assert.equal(answer.kind, 'cosigned', `${old} to ${size}: ${JSON.stringify(answer)}`);
      }
      const behind = { old: 8, proof: [], checkpoint: await log.checkpoint() };
      assert.deepEqual(await asked.addCheckpoint(behind), { kind: 'conflict', size: 13 });
      const published = await asked.checkpoint('relay.example/receipts');
      assert.ok(published.kind === 'published');
      assert.ok(published.note.startsWith(await log.checkpoint()), 'and the cosignature');
      assert.deepEqual(await asked.checkpoint('other.example/receipts'), { kind: 'refused', status: 404 });
      assert.equal(connections.size, 1);
    });
  });
}
