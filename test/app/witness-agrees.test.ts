// Two witnesses, ours and one written only from the text of C2SP tlog-witness, answer the same requests with the same status.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { startWitness } from '#src/app/witness.ts';
import { parseVerifierKey } from '#src/domain/transparency/cosignature.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { c2spKey, c2spNote, c2spSubmission } from '#test/support/witness/c2sp.ts';
import { C2spLog, c2spAdd } from '#test/support/witness/c2sp-log.ts';
import { C2spWitness } from '#test/support/witness/c2sp-witness.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';

const LEAVES = 9;
const folder = testFolder('witness-agrees');

/** A request: from and to which size, of which of two histories, and what is wrong with it. */
const request = fc.record({
  /** null: what the witness has cosigned last, as a log that keeps count. */
  old: fc.option(fc.nat({ max: LEAVES }), { freq: 2, nil: null }),
  proofFrom: fc.option(fc.nat({ max: LEAVES }), { freq: 4, nil: null }),
  size: fc.nat({ max: LEAVES }),
  fork: fc.boolean(),
  wrong: fc.option(fc.constantFrom('key', 'origin', 'extra hash', 'no hashes', 'empty body'), {
    freq: 5,
    nil: null,
  }),
});
type Request = typeof request extends fc.Arbitrary<infer R> ? R : never;

function bodyOf(
  log: C2spLog,
  fork: C2spLog,
  last: number,
  { old: given, proofFrom, size, fork: forked, wrong }: Request,
): string {
  const old = given ?? last;
  const history = forked ? fork : log;
  const from = Math.min(proofFrom ?? old, size);
  const whole = history.submission(from, size);
  const lines = whole.slice(0, whole.indexOf('\n\n')).split('\n').slice(1);
  const proof = lines.map((line) => Buffer.from(line, 'base64'));
  const text = history.text(size);
  if (wrong === 'empty body') return '';
  if (wrong === 'key') return c2spSubmission(old, proof, c2spNote(text, c2spKey(log.key.name, 1)));
  if (wrong === 'origin')
    return c2spSubmission(old, proof, c2spNote(text.replace(log.key.name, 'x'), log.key));
  if (wrong === 'no hashes') return c2spSubmission(old, [], c2spNote(text, log.key));
  const more = wrong === 'extra hash' ? [createHash('sha256').digest()] : [];
  return c2spSubmission(old, [...proof, ...more], c2spNote(text, log.key));
}

test('the witness answers as one that is written only from the standard, request by request', async () => {
  let logs = 0;
  const statuses = new Set<number>();
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 5, maxLength: 15 }), async (requests) => {
      const log = new C2spLog(`log${++logs}.example`).grow(LEAVES);
      const fork = log.forked(3);
      const witness = new C2spWitness({ name: 'theirs.example' }).trust(log.key);
      const theirs = await loopbackServer(witness.handle);
      const keys = [parseVerifierKey(log.key.vkey) ?? assert.fail()];
      const ours = await startWitness({
        logs: () => keys,
        keyFile: join(folder, `${logs}.key`),
        name: 'ours.example',
        listen: { hostname: '127.0.0.1', port: 0 },
        logger: collectingLogger(),
      });
      let cosigned = false;
      try {
        for (const one of requests) {
          const body = bodyOf(log, fork, witness.sizeOf(log.key.name), one);

          const [own, other] = [await c2spAdd(ours.url, body), await c2spAdd(theirs.url, body)];
          assert.equal(own.status, other.status, JSON.stringify(one));
          statuses.add(own.status);
          cosigned ||= own.status === 200;
          if (own.status === 409) assert.deepEqual([own.type, own.body], [other.type, other.body]);
          const [last, theirLast] = await Promise.all(
            [ours, theirs].map(async ({ url }) => (await fetch(`${url}/${log.hash}/checkpoint`)).text()),
          );
          if (cosigned) assert.equal(last?.split('\n\n')[0], theirLast?.split('\n\n')[0]);
        }
      } finally {
        await Promise.all([ours.stop(), theirs.down()]);
      }
    }),
    { numRuns: runs(40) },
  );
  assert.deepEqual([...statuses].sort(), [200, 400, 403, 404, 409, 422]);
});
