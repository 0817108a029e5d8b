// The rounds of a comparison with the chain that stand: those that no later round replaced.
import type { ChainReconciled } from '#src/domain/events/payment.ts';
import { accountKey, type ChainAccount } from '#src/domain/payment/reconciliation.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { eventIn } from '#src/usecases/event-streams.ts';

const PAGE = 256;

/**
 * The newest first, up to this revision, in constant memory. A round stands if each newer one that stands begins after its
 * last block. Throws for an event that it cannot read.
 */
export async function* standingRounds(
  log: EventLog,
  stream: string,
  account: ChainAccount,
  upTo?: bigint,
): AsyncGenerator<ChainReconciled, void, undefined> {
  const key = accountKey(account);
  let next = upTo;
  let before = Number.POSITIVE_INFINITY;
  for (;;) {
    const from = next === undefined ? {} : { from: next };
    const page = await log.readStream(stream, { ...from, direction: 'backwards', max: PAGE });
    for (const recorded of page) {
      const { type, data } = eventIn(recorded);
      if (type !== 'ChainReconciled' || accountKey(data) !== key || data.toBlock >= before) continue;
      before = data.fromBlock;
      yield data;
    }
    const last = page.at(-1)?.revision ?? 0n;
    if (last === 0n) return;
    next = last - 1n;
  }
}
