// relay witness as a process: it is killed at any moment, again and again, while a log submits; two processes share one state; and
// it ends at SIGTERM.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runCli } from '#test/support/process/cli.ts';
import { type RunningCli, startCli } from '#test/support/process/cli-process.ts';
import { fillDisk, mountMemory, needsMounts, unmount } from '#test/support/process/other-user.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { C2spLog, c2spAdd, c2spCosigned, c2spKeyOf } from '#test/support/witness/c2sp-log.ts';
import { startWitnessProcess } from './witness-process.ts';

const folder = testFolder('witness-journey');
const processes = new Set<RunningCli>();
after(() => {
  for (const one of processes) one.signal('SIGKILL');
});

const log = new C2spLog('log.example/receipts').grow(1);
const config = join(folder, 'logs.policy');
writeFileSync(config, `# the log of this test\nlog ${log.key.vkey}\n`);
const args = (key: string) => [
  'witness',
  '--config',
  config,
  '--key',
  join(folder, key),
  '--listen',
  '127.0.0.1:0',
];

type Started = { readonly url: string; readonly vkeys: readonly string[]; readonly cli: RunningCli };

async function start(key: string, ...more: readonly string[]): Promise<Started> {
  const cli = startCli([...args(key), ...more]);
  processes.add(cli);
  void cli.ended.then(() => processes.delete(cli));
  await cli.until((stdout) => /\n {2}\S+\+[0-9a-f]{8}\+\S+\n {2}\S+\+[0-9a-f]{8}\+\S+\n/.test(stdout));
  const [, url = ''] = /listens +(http:\S+)/.exec(cli.stdout()) ?? [];
  const vkeys = cli.stdout().match(/\S+\+[0-9a-f]{8}\+\S+/g) ?? [];
  return { url, vkeys, cli };
}

async function kill({ cli }: Started): Promise<void> {
  cli.signal('SIGKILL');
  await cli.ended;
}

describe('a witness that is killed at any moment', () => {
  test('has recorded everything that it has answered, and cosigns no second history', async () => {
    const name = ['--name', 'witness.example/w1'];
    let witness = await start('killed.key', ...name);
    const { vkeys } = witness;
    const key = c2spKeyOf(vkeys[0] ?? '');
    let cosigned = 0;
    for (let round = 0; round < 6; round++) {
      // Submissions without a pause; the kill meets one of them anywhere, also between its record and its answer.
      let sent = cosigned;
      const submitting = (async () => {
        for (;;) {
          const size = Math.max(cosigned, sent) + 1;
          while (log.leaves.length < size) log.grow(1);
          sent = size;
          const answer = await c2spAdd(witness.url, log.submission(cosigned, size)).catch(() => null);
          if (answer === null) return;
          assert.equal(answer.status, 200, `${answer.status} ${answer.body}`);
          assert.ok(c2spCosigned(log.text(size), answer.body, key));
          cosigned = size;
        }
      })();
      const enough = cosigned + 3 + round;
      const reached = async () => {
        while (cosigned < enough) await new Promise((resolve) => setImmediate(resolve));
      };
      await Promise.race([reached(), submitting]);
      await kill(witness);
      await submitting;
      witness = await start('killed.key');
      assert.deepEqual(witness.vkeys, vkeys);
      const { status, body } = await c2spAdd(witness.url, log.submission(0));
      const recorded = Number(body);
      assert.equal(status, 409);
      assert.ok(
        recorded === cosigned || recorded === sent,
        `${recorded}, answered ${cosigned}, sent ${sent}`,
      );
      const fork = log.forked(0);
      assert.equal((await c2spAdd(witness.url, fork.submission(recorded, recorded))).status, 422);
      if (recorded < fork.leaves.length)
        assert.equal((await c2spAdd(witness.url, fork.submission(recorded))).status, 422);
      cosigned = recorded;
    }
    assert.ok(cosigned >= 18);
    witness.cli.signal('SIGTERM');
    assert.equal((await witness.cli.ended).code, 0);
  });
});

describe('two processes on one state', () => {
  test('cosign one of many checkpoints that extend the same one', async () => {
    const one = await start('shared.key', '--name', 'witness.example/w2');
    const two = await start('shared.key');
    assert.deepEqual(one.vkeys, two.vkeys);
    while (log.leaves.length < 60) log.grow(1);
    const bodies = Array.from({ length: 60 }, (_, n) => log.submission(0, n + 1));
    const answers = await Promise.all(bodies.map((body, n) => c2spAdd((n % 2 === 0 ? one : two).url, body)));
    const cosigned = answers.flatMap(({ status }, n) => (status === 200 ? [n + 1] : []));
    assert.equal(cosigned.length, 1);
    for (const { status, body } of answers)
      if (status !== 200) assert.deepEqual([status, body], [409, `${cosigned[0]}\n`]);
    await Promise.all([kill(one), kill(two)]);
  });
});

const mounts = needsMounts();
describe('a witness whose disk is full', mounts, () => {
  const disk = join(folder, 'disk');
  after(() => unmount(disk));
  test('cosigns nothing, and serves what it has cosigned; with room again it continues, also after a kill', async () => {
    mountMemory(disk, '1m');
    const witness = await startWitnessProcess(disk, 'witness.example/w3', [log.key.vkey]);
    const add = (old: number, size: number) => c2spAdd(witness.url, log.submission(old, size));
    assert.equal((await add(0, 1)).status, 200);
    fillDisk(join(disk, 'full'));
    // Each one writes; what the disk has room for is cosigned.
    let cosigned = 1;
    const refused = await (async () => {
      for (let n = 0; n < 200; n++) {
        const answer = await add(cosigned, cosigned + 1);
        if (answer.status !== 200) return answer;
        cosigned++;
      }
      return assert.fail('the disk is not full');
    })();
    assert.deepEqual([refused.status, refused.body], [500, 'The witness cannot answer now.\n']);
    const published = await fetch(`${witness.url}/${log.hash}/checkpoint`);
    const size = Number((await published.text()).split('\n')[1]);
    assert.ok(size === cosigned || size === cosigned + 1, `${size}, answered ${cosigned}`);
    const { stderr } = await witness.kill();
    assert.match(stderr, /a request to the witness failed; no cosignature was returned/);
    rmSync(join(disk, 'full'));
    await witness.start();
    const known = Number((await add(0, 60)).body);
    assert.ok(known >= cosigned, `${known}, answered ${cosigned}`);
    assert.equal((await add(known, 60)).status, 200);
    assert.equal((await c2spAdd(witness.url, log.forked(0).submission(60, 60))).status, 422);
    await witness.stop();
  });
});

describe('relay witness', () => {
  test('states what is wrong with its configuration, by line, and ends with 2', async () => {
    const wrong = join(folder, 'wrong.policy');
    for (const [text, words] of [
      ['', /has no log line/],
      ['log x\n', /wrong\.policy: line 1: the key is no verifier key/],
      ['# \nlogs\n', /wrong\.policy: line 2: `logs` is no keyword/],
    ] as const) {
      writeFileSync(wrong, text);
      const { code, stderr } = await runCli([
        'witness',
        '--config',
        wrong,
        '--key',
        join(folder, 'none.key'),
      ]);
      assert.equal(code, 2);
      assert.match(stderr, words);
    }
    const missing = await runCli([
      'witness',
      '--config',
      join(folder, 'none'),
      '--key',
      join(folder, 'none.key'),
    ]);
    assert.deepEqual([missing.code, /does not exist/.test(missing.stderr)], [2, true]);
  });
  test('states what is wrong with its address, and that the key file has to be created with a name', async () => {
    const address = await runCli([...args('none.key'), '--listen', 'nowhere']);
    assert.deepEqual([address.code, /127\.0\.0\.1:3410/.test(address.stderr)], [2, true]);
    const nameless = await runCli(args('none.key'));
    assert.deepEqual([nameless.code, /create it with --name/.test(nameless.stderr)], [2, true]);
  });
});
