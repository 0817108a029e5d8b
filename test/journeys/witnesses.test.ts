// A real service with two witnesses of the standard: their quorum is in the proof that a reader verifies offline; killed, it
// continues; and a log restored from before is named by what they remember.
import assert from 'node:assert/strict';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseNote } from '#src/domain/transparency/note.ts';
import { parseTlogProof } from '#src/domain/transparency/tlog-proof.ts';
import { cosignaturesOf, parseWitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { runCli } from '#test/support/process/cli.ts';
import { type LoopbackServer, loopbackServer } from '#test/support/process/loopback-server.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { C2spWitness } from '#test/support/witness/c2sp-witness.ts';
import { recordedIn } from '#test/support/world/service-log.ts';
import { type Executed, execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

type Witnesses = {
  readonly configured: number;
  readonly quorum: string;
  readonly lastCosignedAt: string | null;
  readonly lagSeconds: number;
  readonly refusing: readonly { readonly name: string; readonly reason: string }[];
};
type Health = {
  readonly witnesses: Witnesses;
  readonly checks: { readonly transparencyLog: { readonly reason?: string } };
};
type Report = {
  readonly ok: boolean;
  readonly checks: readonly {
    readonly name: string;
    readonly ok: boolean;
    readonly details?: { names?: string[] };
  }[];
};

describe('a log with witnesses', () => {
  const standards = ['w1', 'w2'].map((name) => new C2spWitness({ name: `witness.example/${name}` }));
  const servers: LoopbackServer[] = [];
  let world: World;
  let service: Service;
  let policyText: string;
  let policyFile: string;
  let origin: string;

  const start = () =>
    world.start({
      WITNESS_POLICY_FILE: policyFile,
      WITNESS_INTERVAL_SECONDS: '2',
      PUBLIC_BASE_URL: 'http://127.0.0.1:1',
    });
  const call = async (idempotencyKey: string): Promise<Executed> =>
    (await execute(service, { url: world.target.url('/hook'), idempotencyKey })).body;
  const healthOf = async () => (await get<Health>(`${service.url}/health`)).body;

  /** The proof of the receipt, once its checkpoint has both cosignatures. */
  const witnessed = ({ receipt }: Executed): Promise<string> =>
    waitFor('the quorum is in the proof', async () => {
      const { status, body } = await get<string>(`${service.url}/log/proof/${receipt.id}`);
      const note = status === 200 ? parseNote(parseTlogProof(body)?.checkpoint ?? '') : null;
      return (note?.signatures.length ?? 0) >= 3 && body;
    });

  before(async () => {
    world = await makeWorld({ embedded: true });
    for (const standard of standards)
      servers.push(await loopbackServer((request, response) => standard.handle(request, response)));
    policyText = [
      ...standards.map(({ vkey }, n) => `witness w${n + 1} ${vkey} ${servers[n]?.url}`),
      'group both all w1 w2',
      'quorum both',
    ].join('\n');
    policyFile = join(world.folder, 'witness.policy');
    writeFileSync(policyFile, policyText);
    service = await start();
    const vkey = await waitFor('the log has begun', async () => {
      const { status, body } = await get<string>(`${service.url}/log/key`);
      return status === 200 && body.trim();
    });
    // The key is base64, which may contain a plus sign too.
    const [, name = '', key = ''] = /^([^+]+)\+[0-9a-f]{8}\+(.+)$/.exec(vkey) ?? assert.fail(vkey);
    const x = Buffer.from(key, 'base64').subarray(1).toString('base64url');
    origin = name;
    for (const standard of standards) standard.know(origin, x);
  });
  after(async () => {
    await world.end();
    for (const server of servers) await server.down();
  });

  test('the proof, the answers and the reports have the quorum, and a reader verifies it offline', async () => {
    const one = await call('one');
    const proof = await witnessed(one);
    const { policy } = parseWitnessPolicy(policyText);
    const note = parseNote(parseTlogProof(proof)?.checkpoint ?? '');
    assert.ok(policy !== null && note !== null);
    const { valid } = await cosignaturesOf(note, policy, primitives);
    assert.deepEqual(
      valid.map(({ name }) => name),
      ['w1', 'w2'],
    );
    const { body: report } = await get<Report>(`${service.url}/api/verify/receipts/${one.receipt.id}`);
    const check = report.checks.find(({ name }) => name === 'receipt_witnessed');
    assert.deepEqual([report.ok, check?.ok, check?.details?.names], [true, true, ['w1', 'w2']]);
    const { body: checkpoint } = await get<string>(`${service.url}/log/checkpoint`);
    assert.equal(parseNote(checkpoint)?.signatures.length, 3);
    const { body: newest } = await get<string>(`${service.url}/log/checkpoint?newest`);
    assert.equal(parseNote(newest)?.signatures.length, 1);
    const { checkpoint: answered } = (await call('one')) as Executed & { readonly checkpoint: string };
    assert.equal(parseNote(answered)?.signatures.length, 3);
    const { witnesses } = await healthOf();
    assert.deepEqual([witnesses.configured, witnesses.quorum, witnesses.refusing], [2, 'both', []]);
    const page = await get<string>(`${service.url}/proof/${one.job.id}`);
    assert.match(page.body, /witness\.example\/w1/);
    for (const [file, text] of [
      ['receipt.json', JSON.stringify((await get(`${service.url}/api/receipts/${one.receipt.id}`)).body)],
      ['jwks.json', JSON.stringify((await get(`${service.url}/.well-known/jwks.json`)).body)],
      ['proof', proof],
    ] as const)
      writeFileSync(join(world.folder, file), text);
    const at = (file: string) => join(world.folder, file);
    const verified = await runCli([
      'verify',
      at('receipt.json'),
      '--keys',
      at('jwks.json'),
      '--proof',
      at('proof'),
      '--policy',
      policyFile,
    ]);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  });

  test('killed and started again: the next receipts are cosigned, and each checkpoint is recorded once', async () => {
    await service.kill();
    service = await start();
    await witnessed(await call('two'));
    await service.stop();
    const rounds = (await recordedIn(world.dataDir)).filter(({ type }) => type === 'CheckpointCosigned');
    const sizes = rounds.map(({ data }) => String(data.size));
    assert.ok(rounds.length >= 2);
    assert.deepEqual(sizes, [...new Set(sizes)]);
    cpSync(join(world.dataDir, 'events.db'), join(world.folder, 'backup.db'));
    service = await start();
  });

  test('a log restored from before, with nothing of its own that remembers: the witnesses name it, and no call is taken', async () => {
    await witnessed(await call('three'));
    await service.stop();
    for (const tail of ['', '-wal', '-shm']) rmSync(join(world.dataDir, `events.db${tail}`), { force: true });
    rmSync(join(world.dataDir, 'checkpoint.note'));
    cpSync(join(world.folder, 'backup.db'), join(world.dataDir, 'events.db'));
    service = await start();
    const health = await waitFor('both witnesses are ahead', async () => {
      const body = await healthOf();
      const isForgotten = body.checks.transparencyLog.reason === 'checkpoint_forgotten';
      return isForgotten && body.witnesses.refusing.length === 2 && body;
    });
    assert.deepEqual(
      health.witnesses.refusing.map(({ reason }) => reason),
      ['ahead', 'ahead'],
    );
    assert.equal(
      (await execute(service, { url: world.target.url('/hook'), idempotencyKey: 'three' })).status,
      503,
    );
  });
});
