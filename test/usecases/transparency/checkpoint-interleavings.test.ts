// Any order in which receipts, rows and two or three signers may come, one of them restarted now and then: the
// checkpoints of the log never contradict each other, nor the log.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { EventLog } from '#src/ports/event-log.ts';
import { runs } from '#test/support/given/property-runs.ts';
import {
  contradictions,
  type Deployment,
  deployment,
  type Keeper,
  keeper,
  receipt,
  sizes,
} from '#test/support/world/receipt-log-world.ts';

type Act =
  | { readonly act: 'receipt' }
  | { readonly act: 'look' | 'restart'; readonly signer: number }
  /** `behind`: events that are missing from the rows. */
  | { readonly act: 'rows'; readonly signer: number; readonly behind: number };

const signer = fc.nat({ max: 2 });
const story = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constant<Act>({ act: 'receipt' }) },
    { weight: 5, arbitrary: fc.record({ act: fc.constant('look' as const), signer }) },
    { weight: 1, arbitrary: fc.record({ act: fc.constant('restart' as const), signer }) },
    {
      weight: 3,
      arbitrary: fc.record({ act: fc.constant('rows' as const), signer, behind: fc.nat({ max: 6 }) }),
    },
  ),
  { minLength: 4, maxLength: 24 },
);

/** Each call of the log, and each answer, at the time that the scheduler draws. */
function scheduled(s: fc.Scheduler, log: EventLog): EventLog {
  const late = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    await s.schedule(Promise.resolve(), name);
    const answer = await call().then(
      (value) => () => value,
      (cause: unknown) => () => {
        throw cause;
      },
    );
    await s.schedule(Promise.resolve(), `${name} answers`);
    return answer();
  };
  return {
    ...log,
    append: (...given) => late('append', () => log.append(...given)),
    readStream: (...given) => late('read', () => log.readStream(...given)),
  };
}

async function play(
  s: fc.Scheduler,
  acts: readonly Act[],
): Promise<{ common: Deployment; looked: string[] }> {
  const common = deployment();
  const log = scheduled(s, common.log);
  const start = (host: string) => keeper(common, { log, host });
  const them: Keeper[] = await s.waitFor(
    Promise.all(['relay.example', 'relay.example', 'relay.example'].map(start)),
  );
  const looked: string[] = [];
  const doing = acts.map(async (act) => {
    await s.schedule(Promise.resolve(), act.act);
    if (act.act === 'receipt') return receipt(common);
    const it = them[act.signer];
    if (it === undefined) throw new Error('there is no such signer');
    if (act.act === 'rows') it.rows.projected = common.log.events.length - act.behind;
    if (act.act === 'restart') them[act.signer] = await start('later.example');
    if (act.act === 'look') looked.push(await it.look());
  });
  await s.waitFor(Promise.all(doing));
  return { common, looked };
}

test('whatever comes in whatever order, checkpoints grow, are over the log as it stands, and none is refused', async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), story, async (s, acts) => {
      const { common, looked } = await play(s, acts);
      assert.deepEqual(await contradictions(common), []);
      for (const outcome of looked) seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
      // The last check, with all rows, covers all leaves.
      const last = await keeper(common);
      assert.ok(['signed', 'rest'].includes(await last.look()));
      const receipts = common.log.events.filter(({ type }) => type === 'ReceiptSigned').length;
      assert.equal(sizes(common).at(-1), receipts);
    }),
    { numRuns: runs(300), seed: 703 },
  );
  assert.deepEqual(seen.get('refuse'), undefined);
  for (const outcome of ['signed', 'overtaken', 'wait', 'rest'])
    assert.ok((seen.get(outcome) ?? 0) > 20, `the stories come to ${outcome}: ${seen.get(outcome)}`);
});
