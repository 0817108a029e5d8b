// Two processes of one deployment over EventStoreDB and PostgreSQL, and two witnesses, each in a process of its own: any of them is
// killed under a hundred parallel calls. Each checkpoint is cosigned in one round, whichever process has asked, and what one has
// obtained is served by the other; an audit with the policy is clean.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseNote } from '#src/domain/transparency/note.ts';
import { parseTlogProof } from '#src/domain/transparency/tlog-proof.ts';
import {
  cosignaturesOf,
  parseWitnessPolicy,
  type WitnessPolicy,
} from '#src/domain/transparency/witness-policy.ts';
import { runCli } from '#test/support/cli.ts';
import { type Cluster, type Member, makeCluster } from '#test/support/cluster.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { primitives } from '#test/support/primitives.ts';
import { waitFor } from '#test/support/service.ts';
import { sendsRecorded } from '#test/support/service-receipts.ts';
import { type Executed, execute, get } from '#test/support/service-world.ts';
import { policyOfAll, startWitnessProcess, type WitnessProcess } from '#test/support/witness-process.ts';

const CALLS = 100;
const LIMIT = { timeout: 280_000 };
type Health = { readonly witnesses: { readonly refusing: readonly unknown[]; readonly lagSeconds: number } };

const needs = needsPostgres();
describe('two processes with two witnesses', needs, () => {
  let cluster: Cluster;
  let members: readonly Member[] = [];
  const witnesses: WitnessProcess[] = [];
  let policy: WitnessPolicy;
  let policyFile: string;
  const answered = new Map<string, Executed>();
  /** Calls that a kill has cut, until they are closed. */
  const cut: Promise<unknown>[] = [];

  const start = () => cluster.start({ WITNESS_POLICY_FILE: policyFile, WITNESS_INTERVAL_SECONDS: '2' });

  /** A hundred calls at once, and meanwhile `strike`; what it cuts is asked for again until it is closed, also after this. */
  async function burst(name: string, strike: () => Promise<unknown>): Promise<void> {
    const paths = Array.from({ length: CALLS }, (_, n) => `/load/${name}/${n}`);
    const call = async (path: string, n: number): Promise<void> => {
      const request = {
        url: cluster.world.target.url(path),
        body: path,
        idempotencyKey: path,
        timeoutMs: 2000,
      };
      const first = members[n % members.length] ?? assert.fail();
      let answer = await execute(first, request).catch(() => null);
      const isClosed = () => answer?.status === 200 || answer?.status === 502;
      const keep = () => answered.set(path, answer?.body ?? assert.fail());
      if (isClosed()) return void keep();
      // What the kill has left running is closed when its lease and the grace are over: meanwhile the test continues.
      const closed = waitFor(
        `${path} is closed`,
        async () => {
          answer = await execute(members[n % members.length] ?? assert.fail(), request).catch(() => null);
          return isClosed();
        },
        { limitMs: 150_000, everyMs: 500 },
      ).then(keep);
      closed.catch(() => undefined);
      cut.push(closed);
    };
    const all = Promise.all(paths.map(call));
    const received = () =>
      cluster.world.target.requests.filter(({ path }) => path.startsWith(`/load/${name}/`));
    await waitFor('some are at the target', () => received().length >= 5);
    await strike();
    await all;
  }

  /** Whether the proof that this process serves has the quorum. */
  async function hasQuorum(member: Member, { receipt }: Executed): Promise<boolean> {
    const { status, body } = await get<string>(`${member.url}/log/proof/${receipt.id}`);
    const note = status === 200 ? parseNote(parseTlogProof(body)?.checkpoint ?? '') : null;
    if (note === null || note.signatures.length < 3) return false;
    const { valid, invalid } = await cosignaturesOf(note, policy, primitives);
    assert.deepEqual([valid.map(({ name }) => name), invalid], [['w1', 'w2'], []]);
    return true;
  }

  /** Each process serves a quorum over every receipt so far. */
  async function allWitnessed(): Promise<void> {
    for (const member of members)
      for (const [path, executed] of answered)
        await waitFor(`the quorum over ${path}`, () => hasQuorum(member, executed));
  }

  before(async () => {
    if (needs.skip) return;
    cluster = await makeCluster('eventstoredb+postgres');
    cluster.world.target.answer(async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return { status: 200 };
    });
    const unwitnessed = await cluster.start();
    const vkey = await waitFor('the log has begun', async () => {
      const { status, body } = await get<string>(`${unwitnessed.url}/log/key`);
      return status === 200 && body.trim();
    });
    await unwitnessed.stop();
    for (const name of ['witness.example/w1', 'witness.example/w2'])
      witnesses.push(await startWitnessProcess(cluster.world.folder, name, [vkey]));
    policyFile = join(cluster.world.folder, 'witnesses.policy');
    writeFileSync(policyFile, policyOfAll(witnesses));
    policy = parseWitnessPolicy(policyOfAll(witnesses)).policy ?? assert.fail();
    members = await Promise.all([start(), start()]);
  });
  after(async () => {
    for (const witness of witnesses) await witness.kill().catch(() => undefined);
    await cluster?.end();
  });

  test(
    'one process killed: the other obtains the cosignatures, and the new one serves them',
    LIMIT,
    async () => {
      await burst('one', async () => {
        const [first = assert.fail(), second = assert.fail()] = members;
        members = [second];
        await first.kill();
        members = [second, await start()];
      });
      await allWitnessed();
    },
  );

  test('both processes killed at once', LIMIT, async () => {
    await burst('both', async () => {
      await Promise.all(members.map((member) => member.kill()));
      members = await Promise.all([start(), start()]);
    });
    await allWitnessed();
  });

  test('a witness killed: no call waits for it; started again it completes the quorum', LIMIT, async () => {
    const [witness = assert.fail()] = witnesses;
    await burst('witness', () => witness.kill());
    const named = async () => {
      const all = await Promise.all(members.map((member) => get<Health>(`${member.url}/health`)));
      return all.some(({ body }) => body.witnesses.refusing.length > 0 && body.witnesses.lagSeconds > 0);
    };
    await waitFor('it is named', named);
    await witness.start();
    await allWitnessed();
  });

  test('both witnesses killed again and again', LIMIT, async () => {
    await burst('witnesses', async () => {
      for (let n = 0; n < 3; n++) {
        await Promise.all(witnesses.map((witness) => witness.kill()));
        await Promise.all(witnesses.map((witness) => witness.start()));
      }
    });
    await allWitnessed();
  });

  test(
    'in the end: one round a checkpoint, no call sent twice, and an audit with the policy is clean',
    LIMIT,
    async () => {
      await Promise.all(cut);
      await allWitnessed();
      for (const member of members) assert.deepEqual((await member.stop()).stderr, '');
      const recorded = await cluster.recorded();
      const sizes = recorded.flatMap(({ type, data }) =>
        type === 'CheckpointCosigned' ? [Number(data.size)] : [],
      );
      assert.ok(sizes.length >= 4, `${sizes}`);
      assert.deepEqual(
        sizes,
        [...new Set(sizes)].sort((a, b) => a - b),
      );
      const times = new Map<string, number>();
      for (const { path } of cluster.world.target.requests) times.set(path, (times.get(path) ?? 0) + 1);
      for (const [path, { receipt }] of answered) {
        const { least, most } = sendsRecorded(receipt.jws);
        const sent = times.get(path) ?? 0;
        assert.ok(
          most <= 1 && least <= sent && sent <= most,
          `${path} was sent ${sent} times, ${least} to ${most}`,
        );
      }
      assert.equal(answered.size, 4 * CALLS);
      for (const args of [['audit'], ['audit', '--policy', policyFile, '--json']]) {
        const { code, stdout, stderr } = await runCli(args, { env: cluster.env });
        assert.equal(code, 0, stdout + stderr);
        if (!args.includes('--json')) continue;
        const { summary } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
        assert.equal(summary.witnessed?.checkpoints, sizes.length, stdout);
      }
    },
  );
});
