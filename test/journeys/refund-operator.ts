// The commands of an operator who refunds, for journeys; and payments that are to be refunded.
import assert from 'node:assert/strict';
import { operatorChain } from '#src/app/chain.ts';
import { openOperatorLog } from '#src/app/operator.ts';
import { resolvePayment } from '#src/usecases/payments/resolve-payment.ts';
import { runCli } from '#test/support/process/cli.ts';
import type { Environment, Service } from '#test/support/process/service.ts';
import { assertSaid, each, sendPatiently } from '#test/support/world/paid-call.ts';
import type { PaidWorld, Sample } from '#test/support/world/paid-world.ts';

/** The service itself does not find meanwhile what the operator resolves. */
export const LATER = { X402_RECONCILE_SECONDS: '3600' };

/** The money moves; neither the facilitator's answer nor the chain reaches the service. */
export async function leaveSettled(
  paid: PaidWorld,
  service: Service,
  samples: readonly Sample[],
): Promise<void> {
  paid.proxy.rule(({ kind }) => (kind === 'settle' ? 'cut' : 'pass'));
  paid.node.blind(true);
  await each(samples, async (sample) =>
    assertSaid(await sendPatiently(service, sample), 503, 'payment_unconfirmed'),
  );
  paid.proxy.rule(() => 'pass');
  paid.node.blind(false);
}

/** As `relay payments resolve` does. */
export async function resolveAll({ log, chain }: PaidWorld, ids: readonly string[]): Promise<void> {
  const deps = await openOperatorLog(log.config);
  const found = { ...deps, chain: operatorChain({ rpcUrl: chain.url, confirmations: null }, deps.logger) };
  for (const id of ids) assert.equal((await resolvePayment(found, { id, statement: null })).kind, 'recorded');
  await deps.log.close();
}

/** The commands of an operator. */
export function operator(environment: Environment) {
  // anvil's safe block is 32 blocks before its last.
  const env = { ...environment, X402_CONFIRMATIONS: '0' } as Record<string, string>;
  const run = (args: readonly string[], more: Record<string, string> = {}) =>
    runCli(['payments', ...args], { env: { ...env, ...more } });
  /** What it prints with --json, and its exit status. */
  const json = async (args: readonly string[], more: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await run([...args, '--json'], more);
    return { code, stderr, out: stdout === '' ? null : JSON.parse(stdout) };
  };
  return {
    env,
    run,
    json,
    sums: async () => {
      const { out } = await json(['--balance']);
      const [row] = out;
      return [row.charged, row.served, row.refunded, row.open];
    },
    /** Fails with this text, and records nothing. */
    async fails(args: readonly string[], code: number, message: RegExp, more: Record<string, string> = {}) {
      const failed = await run(args, more);
      assert.deepEqual([failed.code, failed.stdout], [code, ''], failed.stderr);
      assert.match(failed.stderr, message);
    },
  };
}
export type Operator = ReturnType<typeof operator>;
