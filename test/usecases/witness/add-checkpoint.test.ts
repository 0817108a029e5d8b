// A witness whose process ends between the record and the answer, or whose record fails: what a log finds afterwards.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCosignerKey, parseVerifierKey } from '#src/domain/transparency/cosignature.ts';
import type { WitnessedCheckpoint, WitnessStore } from '#src/ports/witness-store.ts';
import { createWitness } from '#src/usecases/witness/add-checkpoint.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { c2spKey, c2spNote, c2spSubmission } from '#test/support/witness/c2sp.ts';
import { C2spLog, c2spCosigned } from '#test/support/witness/c2sp-log.ts';
import { collectingLogger, manualClock } from '#test/support/world/fakes.ts';

const key = c2spKey('w.example', 4);
const cosigner = parseVerifierKey(key.vkey);

/** `ends`: when the process ends, at the next record. */
function given() {
  const log = new C2spLog('log.example').grow(3);
  const logKey = parseVerifierKey(log.key.vkey) ?? assert.fail();
  const stored = new Map<string, WitnessedCheckpoint>();
  const ending: { at: 'before the record' | 'after the record' | null } = { at: null };
  const state: WitnessStore = {
    find: async (origin) => stored.get(origin) ?? null,
    findByHash: async () => null,
    async replace(origin, last, next) {
      if (ending.at === 'before the record') throw new Error('the disk is full');
      if ((stored.get(origin)?.size ?? null) !== (last?.size ?? null)) return false;
      stored.set(origin, next);
      if (ending.at === 'after the record') throw new Error('the process has ended');
      return true;
    },
    close: () => undefined,
  };
  if (cosigner === null || !isCosignerKey(cosigner)) return assert.fail();
  const signers = [{ key: cosigner, sign: async (message: Uint8Array) => key.sign(Buffer.from(message)) }];
  const logger = collectingLogger();
  const deps = { logs: () => [logKey], state, signers, primitives, clock: manualClock(), logger };
  let witness = createWitness(deps);
  const restart = () => {
    ending.at = null;
    witness = createWitness(deps);
  };
  const add = (body: string) => witness.addCheckpoint(Uint8Array.from(Buffer.from(body)));
  return { log, ending, add, restart, logger };
}

test('ended after the record: the log learns the size by a conflict, and continues with the same tree only', async () => {
  const { log, ending, add, restart } = given();
  ending.at = 'after the record';
  await assert.rejects(add(log.submission(0)), /the process has ended/);
  restart();
  assert.deepEqual(await add(log.submission(0)), { kind: 'conflict', size: 3 });
  const again = await add(log.submission(3));
  assert.ok(again.kind === 'cosigned' && c2spCosigned(log.text(), again.lines, key));
  assert.equal((await add(log.forked(1).submission(3))).kind, 'unprocessable');
});

test('ended before the record: nothing was cosigned, and the log submits again', async () => {
  const { log, ending, add, restart } = given();
  ending.at = 'before the record';
  await assert.rejects(add(log.submission(0)), /the disk is full/);
  restart();
  assert.equal((await add(log.submission(0))).kind, 'cosigned');
});

test('a fork and a wrong proof are logged once each, however often they are submitted', async () => {
  const { log, add, logger } = given();
  await add(log.submission(0));
  const fork = log.forked(1);
  for (let n = 0; n < 3; n++) await add(fork.submission(3));
  fork.grow(1);
  for (let n = 0; n < 3; n++) await add(fork.submission(3));
  assert.deepEqual(
    logger.lines.map(({ level, message }) => `${level}: ${message}`),
    [
      'error: a log has signed two trees of one size: keep both checkpoints, they prove it',
      'warn: a checkpoint was refused: it is not proven to extend the last cosigned one',
    ],
  );
  const [first] = logger.lines;
  assert.ok(JSON.stringify(first?.fields).includes(JSON.stringify(fork.checkpoint(3)).slice(1, -1)));
});

test('a first checkpoint without leaves that has another root is logged as that: there is no second checkpoint to keep', async () => {
  const { log, add, logger } = given();
  const wrong = c2spNote(`${log.key.name}\n0\n${Buffer.alloc(32).toString('base64')}\n`, log.key);
  for (let n = 0; n < 3; n++) assert.equal((await add(c2spSubmission(0, [], wrong))).kind, 'unprocessable');
  const refused =
    'warn: a checkpoint was refused: it has no leaves, and its root is not the root of a tree without leaves';
  assert.deepEqual(
    logger.lines.map(({ level, message }) => `${level}: ${message}`),
    [refused],
  );
});
