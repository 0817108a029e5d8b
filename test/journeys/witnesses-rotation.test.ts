// The checkpoint key of a witnessed log is rotated, and the old one compromised, with a real witness: each checkpoint has both
// signatures, the witness that knows one key continues, receipts of before and after verify offline with a policy, and after the
// compromise the log continues as soon as the witness has the new key.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseNote } from '#src/domain/transparency/note.ts';
import { parseTlogProof } from '#src/domain/transparency/tlog-proof.ts';
import { runCli } from '#test/support/cli.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { type Executed, execute, get, makeWorld, type World } from '#test/support/service-world.ts';
import { policyOfAll, startWitnessProcess, type WitnessProcess } from '#test/support/witness-process.ts';

type Health = {
  readonly witnesses: { readonly refusing: readonly { readonly name: string; readonly reason: string }[] };
};
type Kept = Executed & { readonly proof: string };

describe('a rotated checkpoint key', () => {
  let world: World;
  let service: Service;
  let witness: WitnessProcess;
  let policyFile: string;
  let [oldKey, newKey] = ['', ''];
  const kept: Kept[] = [];

  const vkey = async (): Promise<string> => {
    const { status, body } = await get<string>(`${service.url}/log/key`);
    return status === 200 ? body.trim() : '';
  };
  const relay = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await runCli(args, { env: { DATA_DIR: world.dataDir } });
    assert.deepEqual([code, stderr], [0, '']);
    return JSON.parse(stdout);
  };
  const proofOf = async ({ receipt }: Executed): Promise<string | null> => {
    const { status, body } = await get<string>(`${service.url}/log/proof/${receipt.id}`);
    return status === 200 ? body : null;
  };
  /** Names and key ids of the signatures of the proof's checkpoint. */
  const signersIn = (proof: string): readonly string[] =>
    (parseNote(parseTlogProof(proof)?.checkpoint ?? '')?.signatures ?? []).map(
      ({ name, keyId }) => `${name}+${Buffer.from(keyId).toString('hex')}`,
    );
  const isBy = (key: string) => (signer: string) => key.startsWith(`${signer}+`);
  const call = async (): Promise<Executed> =>
    (await execute(service, { url: world.target.url('/hook'), method: 'POST' })).body;
  /** The proof, once the witness has cosigned its checkpoint and these keys of the log have signed it. */
  const witnessed = (executed: Executed, ...keys: readonly string[]): Promise<string> =>
    waitFor('a cosigned proof', async () => {
      const proof = await proofOf(executed);
      const signers = proof === null ? [] : signersIn(proof);
      const all = [...keys, witness.vkeys[0]];
      return proof !== null && all.every((key) => signers.some(isBy(key))) && proof;
    });
  async function keep(...keys: readonly string[]): Promise<void> {
    const executed = await call();
    kept.push({ ...executed, proof: await witnessed(executed, ...keys) });
  }
  /** Exit code of the offline verification, and the failed checks. */
  async function verified(receipt: Kept['receipt'], proof: string, policy = policyFile) {
    const at = (name: string, text: string) => {
      const file = join(world.folder, name);
      writeFileSync(file, text);
      return file;
    };
    const keys = at('jwks.json', JSON.stringify((await get(`${service.url}/.well-known/jwks.json`)).body));
    const files = [at('receipt.jws', receipt.jws), '--keys', keys, '--proof', at('proof', proof)];
    const { code, stdout } = await runCli(['verify', ...files, '--policy', policy, '--json']);
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; ok: boolean; details?: { problem?: string } }[];
    };
    return [code, checks.filter(({ ok }) => !ok).map(({ name, details }) => `${name}: ${details?.problem}`)];
  }

  before(async () => {
    world = await makeWorld({ embedded: true });
    service = await world.start({ PUBLIC_BASE_URL: 'http://127.0.0.1:1' });
    oldKey = await waitFor('the log has begun', vkey);
    await service.stop();
    witness = await startWitnessProcess(world.folder, 'witness.example/w1', [oldKey]);
    policyFile = join(world.folder, 'witness.policy');
    writeFileSync(policyFile, policyOfAll([witness]));
    service = await world.start({
      PUBLIC_BASE_URL: 'http://127.0.0.1:1',
      WITNESS_POLICY_FILE: policyFile,
      WITNESS_INTERVAL_SECONDS: '2',
    });
    await keep(oldKey);
  });
  after(async () => {
    await witness?.kill().catch(() => undefined);
    await world.end();
  });

  test('each checkpoint has both signatures, and the witness that knows the old key continues', async () => {
    await relay('keys', 'rotate', '--purpose', 'checkpoint', '--json');
    // It is the key of the newest checkpoint: the new one signs from the next receipt on, once all processes know it.
    newKey = await waitFor('the new key', async () => {
      await call();
      const key = await vkey();
      return key !== oldKey && key;
    });
    await keep(newKey, oldKey);
    assert.equal(signersIn(kept.at(-1)?.proof ?? '').length, 3);
  });

  test('the witness that knows both keys continues too, from what it remembers', async () => {
    await witness.stop();
    witness.trust(oldKey, newKey);
    await witness.start();
    await keep(newKey, oldKey);
  });

  test('receipts of before and after verify offline with the policy, also with one that names only one key of the log', async () => {
    for (const { receipt, proof } of kept) assert.deepEqual(await verified(receipt, proof), [0, []]);
    const last = kept.at(-1) ?? assert.fail();
    for (const key of [oldKey, newKey]) {
      const named = join(world.folder, 'named.policy');
      writeFileSync(named, `log ${key}\n${policyOfAll([witness])}`);
      assert.deepEqual(await verified(last.receipt, last.proof, named), [0, []]);
    }
    const audit = await runCli(['audit', '--policy', policyFile], { env: { DATA_DIR: world.dataDir } });
    assert.equal(audit.code, 0, audit.stdout + audit.stderr);
  });

  test('the old key is compromised: it signs nothing more, and a witness that knows only that key is named', async () => {
    await witness.stop();
    witness.trust(oldKey);
    await witness.start();
    const { keys } = (
      await get<{ keys: { kid: string; purpose: string }[] }>(`${service.url}/.well-known/jwks.json`)
    ).body;
    const [old] = keys.filter(({ purpose }) => purpose === 'checkpoint');
    await relay('keys', 'retire', '--json', '--compromised', old?.kid ?? '');
    const executed = await waitFor('a checkpoint by the new key alone', async () => {
      const executed = await call();
      const proof = await waitFor('a proof', async () => (await proofOf(executed)) ?? undefined);
      return signersIn(proof).every(isBy(newKey)) && executed;
    });
    await waitFor('the witness refuses', async () => {
      const { body } = await get<Health>(`${service.url}/health`);
      return body.witnesses.refusing.some(({ name, reason }) => name === 'w1' && reason === 'http_403');
    });
    assert.deepEqual(await verified(executed.receipt, (await proofOf(executed)) ?? ''), [
      1,
      ['receipt_witnessed: quorum'],
    ]);
  });

  test('with the new key the witness continues; the checkpoint that only the compromised key has signed counts for nothing, a new proof of that receipt does', async () => {
    await witness.stop();
    witness.trust(newKey);
    await witness.start();
    await keep(newKey);
    const [first = assert.fail(), both = assert.fail()] = kept;
    assert.deepEqual(await verified(first.receipt, first.proof), [
      1,
      ['receipt_logged: checkpoint', 'receipt_witnessed: proof'],
    ]);
    assert.deepEqual(await verified(both.receipt, both.proof), [0, []]);
    assert.deepEqual(await verified(first.receipt, await witnessed(first, newKey)), [0, []]);
    await waitFor(
      'no witness is named',
      async () => (await get<Health>(`${service.url}/health`)).body.witnesses.refusing.length === 0,
    );
    const audit = await runCli(['audit', '--policy', policyFile], { env: { DATA_DIR: world.dataDir } });
    assert.equal(audit.code, 0, audit.stdout + audit.stderr);
  });
});
