// Two witnesses of the demo, in this process: they witness the log of the demo's relay as soon as that serves its key.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startWitness } from '#src/app/witness.ts';
import { parseVerifierKey, type VerifierKey } from '#src/domain/transparency/cosignature.ts';
import { parseWitnessPolicy, type WitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { callLoopback } from './target.ts';

const HOSTNAME = '127.0.0.1';
const silent = { info: () => {}, warn: () => {}, error: () => {}, bug: () => {} };

export type DemoWitnesses = {
  /** The policy file (C2SP tlog-policy): both have to cosign. */
  readonly file: string;
  readonly policy: WitnessPolicy;
  readonly environment: Readonly<Record<string, string>>;
  /** Lets them witness the log of this relay. Throws an `OperatorError` if it has none. */
  witness(baseUrl: string): Promise<void>;
};

/** `folder`: for their keys and states, and for the policy file. */
export async function startDemoWitnesses(
  folder: string,
  undo: (() => Promise<void>)[],
): Promise<DemoWitnesses> {
  const logs: VerifierKey[] = [];
  const lines: string[] = [];
  for (const name of ['first', 'second']) {
    const witness = await startWitness({
      logs: () => logs,
      keyFile: join(folder, `witness-${name}.key`),
      name: `witness.demo.example/${name}`,
      listen: { hostname: HOSTNAME, port: 0 },
      logger: silent,
    });
    undo.push(() => witness.stop());
    lines.push(`witness ${name} ${witness.vkeys[0]} ${witness.url}`);
  }
  const text = [...lines, 'group both all first second', 'quorum both', ''].join('\n');
  const file = join(folder, 'witnesses.policy');
  await writeFile(file, text);
  const { policy } = parseWitnessPolicy(text);
  if (policy === null) throw new OperatorError('the policy of the two witnesses cannot be read');
  return {
    file,
    policy,
    environment: { WITNESS_POLICY_FILE: file, WITNESS_INTERVAL_SECONDS: '2' },
    async witness(baseUrl) {
      const { status, body } = await callLoopback('GET', `${baseUrl}/log/key`);
      const key = status === 200 ? parseVerifierKey(body.trim()) : null;
      if (key === null) throw new OperatorError(`${baseUrl}/log/key answered ${status}: ${body}`);
      logs.push(key);
    },
  };
}
