// What three processes of one deployment owe their callers, stated once for both upper tiers: they answer as one while any
// one of them dies, is frozen or is replaced, under load.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { sleep } from '#src/lib/time.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { each } from '#test/support/world/paid-call.ts';
import { assertStands } from '#test/support/world/service-stands.ts';
import { type ErrorBody, type Executed, execute, get } from '#test/support/world/service-world.ts';
import { type BatchWatch, watchBatches } from './batch-watch.ts';
import { type Cluster, type ClusterOptions, type Member, makeCluster, type Tier } from './cluster.ts';
import { assertClosed, assertSentOnce, type CutCall } from './cluster-books.ts';
import { type Call, type Load, startLoad } from './cluster-load.ts';
import { logLines, waitFor } from './service.ts';

const KILLS = 4;
const hang = () => new Promise<undefined>(() => undefined);
type Totals = { readonly total: number; readonly running: number };

/** `report`: gets the figures that decide no test. */
export type StoryOptions = ClusterOptions & { readonly report?: (figure: string) => void };

export function clusterStory(tier: Tier, { report = () => {}, ...options }: StoryOptions = {}): void {
  const needs = needsPostgres();

  describe(`three processes over ${tier}`, () => {
    let cluster: Cluster;
    let watch: BatchWatch;
    /** Those that live. */
    let members: readonly Member[] = [];
    const killed: Member[] = [];
    const calls: Call[] = [];
    /** Cut by a kill; what is not finished yet was begun by a process that was killed. */
    const cut: CutCall[] = [];
    const orphans = () => cut.filter(({ finished }) => finished === null);

    const targetOf = () => cluster.world.target;
    const others = (member: Member) => members.filter((other) => other !== member);
    const named = (name: string) => members.find((member) => member.name === name) ?? assert.fail(name);
    const namesOf = (some: readonly Member[]) => some.map(({ name }) => name);
    const at = (member: Member, link = '') => `${member.url}${new URL(link).pathname}`;
    const totalsOf = async (member: Member): Promise<Totals | null> => {
      const { status, body } = await get<{ stats: Totals }>(`${member.url}/api/monitoring/executions`);
      return status === 200 ? { total: body.stats.total, running: body.stats.running } : null;
    };

    before(async () => {
      if (needs.skip) return;
      cluster = await makeCluster(tier, options);
      members = await Promise.all([1, 2, 3].map(() => cluster.start()));
      watch = await watchBatches(cluster.env.DATABASE_URL ?? '');
      targetOf().answer(async ({ path, number }) => {
        if (path.startsWith('/held/')) return hang();
        if (path.startsWith('/load/')) await sleep(100 + (number % 100));
        return { status: number % 7 === 0 ? 500 : 200 };
      });
    });
    after(async () => {
      await watch?.end();
      await cluster?.end();
    });

    test('killed and replaced under load, who projects and who does not: every answer stands on every process', {
      ...needs,
      timeout: 300_000,
    }, async () => {
      const load = startLoad(targetOf(), members);
      const answered = (member: Member) =>
        waitFor(
          `answers of ${member.name}`,
          () => load.calls.filter((c) => c.at === member && c.answer).length >= 10,
        );
      for (let round = 0; round < KILLS; round++) {
        await Promise.all(members.map(answered));
        cut.push(...(await killOne(load, round % 2 === 0)));
        const fresh = await cluster.start();
        members = [...members, fresh];
        load.over(members);
      }
      await Promise.all(members.map(answered));
      await load.stop();
      calls.push(...load.calls);
      report(`${calls.length} calls, ${calls.filter((call) => call.cut).length} cut`);
      const finished = [...calls.map(({ answer }) => answer), ...cut.map((call) => call.finished)];
      await each(finished, async (answer) => {
        if (answer === null) return;
        const { status, body } = answer;
        assert.equal(status, body.job?.status === 'succeeded' ? 200 : 502, JSON.stringify(body));
        for (const member of members) await assertStands(member, body);
      });
    });

    /** What the kill has cut is asked for again at once, at those that live. */
    async function killOne(load: Load, projecting: boolean): Promise<CutCall[]> {
      const projector = named(await watch.projecting());
      const victim = projecting ? projector : (others(projector)[0] ?? assert.fail());
      members = others(victim);
      killed.push(victim);
      load.over(members);
      const held = `/held/${victim.name}`;
      void load.call(victim, held, 3000);
      await waitFor('its call is at the target', () => targetOf().requests.some(({ path }) => path === held));
      const begun = performance.now();
      await victim.kill();
      await watch.nextBy(namesOf(members));
      report(
        `${projecting ? 'projecting' : 'other'} killed: projection continues after ${Math.round(performance.now() - begun)} ms`,
      );
      await waitFor('its calls are cut', () => load.open(victim) === 0);
      const open = load.calls.filter((call) => call.at === victim && call.cut);
      return each(open, async (call, n) => {
        const { status, ...answer } = await execute(
          members[n % members.length] ?? assert.fail(),
          call.request,
        );
        if (status !== 409) return { ...call, finished: { status, ...answer } };
        assert.equal(answer.body.error.code, 'idempotency_in_progress');
        return { ...call, finished: null };
      });
    }

    test('who projects is frozen in the middle of a batch: another takes over, and awake again it writes nothing stale', {
      ...needs,
      timeout: 300_000,
    }, async () => {
      const load = startLoad(targetOf(), members, { callers: 4, name: 'frozen' });
      const held = await watch.hold();
      const frozen = named(held.by);
      const [here, there] = others(frozen);
      assert.ok(here && there);
      // A process that is frozen with calls of its own in hand may hold the embedded log's lock as well.
      load.over([here, there]);
      await waitFor('it has no call in hand', () => load.open(frozen) === 0);
      frozen.signal('SIGSTOP');
      const next = watch.nextBy(namesOf([here, there]));
      const begun = performance.now();
      try {
        await held.free();
        const path = '/load/while-frozen';
        const { body } = await execute(here, { url: targetOf().url(path), idempotencyKey: path });
        // The projection may have stopped: then no process answers that there is no such job.
        const shown = () => get<ErrorBody>(at(there, body.links.job));
        const first = await shown();
        assert.ok([200, 503].includes(first.status), `${first.status}`);
        await next;
        report(`frozen in a batch: projection continues after ${Math.round(performance.now() - begun)} ms`);
        await waitFor('the job is shown', async () => (await shown()).status === 200);
        await assertStands(there, body);
      } finally {
        frozen.signal('SIGCONT');
      }
      await load.stop();
      calls.push(...load.calls);
      for (const { answer } of load.calls) assert.ok(answer, 'a call was cut');
      const { body } = load.calls.at(-1)?.answer ?? assert.fail();
      await waitFor('it shows what it has slept through', async () => {
        const { status } = await get(at(frozen, body.links.job));
        return status === 200;
      });
      await assertStands(frozen, body);
    });

    test('what a kill has cut: 409 until lease and grace are over, then closed with a receipt, the same for all', {
      ...needs,
      timeout: 300_000,
    }, async () => {
      assert.ok(orphans().length >= KILLS, 'each kill has cut a call that ran');
      report(`${orphans().length} jobs were left running by the killed`);
      await each(orphans(), async (orphan) => {
        const answers: Executed[] = [];
        for (const member of members) {
          const { body } = await waitFor(
            'it is closed',
            async () => {
              const answer = await execute(member, orphan.request);
              if (answer.status === 502) return answer;
              assert.deepEqual([answer.status, answer.body.error?.code], [409, 'idempotency_in_progress']);
              return undefined;
            },
            { limitMs: 100_000, everyMs: 500 },
          );
          assert.deepEqual([body.idempotentReplay, body.job.errorCategory], [true, 'interrupted_unknown']);
          await assertStands(member, body);
          answers.push(body);
        }
        const [first] = answers;
        for (const { job, receipt } of answers)
          assert.deepEqual([job, receipt], [first?.job, first?.receipt]);
      });
    });

    test(
      'in the end: the same totals for all, each call sent once at most, each job closed by who may',
      needs,
      async () => {
        const jwks = (await get(`${members[0]?.url}/.well-known/jwks.json`)).body;
        const jobs = (await cluster.recorded()).filter(({ type }) => type === 'JobStarted').length;
        for (const member of members) {
          await waitFor('all jobs are shown closed', async () => (await totalsOf(member))?.running === 0);
          assert.deepEqual(await totalsOf(member), { total: jobs, running: 0 });
        }
        const batches = await watch.batches();
        for (const { by, from, to } of batches) {
          assert.ok(from === null || from < to, `${by} took the rows back from ${from} to ${to}`);
        }
        assert.ok(new Set(batches.map(({ by }) => by)).size >= 3, 'several have projected');
        for (const member of members) {
          const { code, stdout, stderr } = await member.stop();
          assert.deepEqual([code, stderr], [0, '']);
          const errors = logLines(stdout).filter(({ level }) => level === 'error');
          assert.deepEqual(
            errors.filter((line) => line.code !== 'read_models_unavailable'),
            [],
          );
        }
        assertSentOnce(targetOf().requests, calls, cut);
        await assertClosed(await cluster.recorded(), { calls, killed, jwks });
        if (tier === 'eventstoredb+postgres') assert.equal(existsSync(cluster.world.dataDir), false);
      },
    );
  });
}
