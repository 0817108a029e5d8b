// Whether a payer's address is a contract: only then can a signature that is not by its key be valid.
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import type { Clock } from '#src/ports/clock.ts';
import { queryNode } from './node.ts';
import type { Hex } from './requirements.ts';

/** null: not known. Never throws. */
export type HasCode = (address: Hex) => Promise<boolean | null>;

const QUERY_MS = 2000;
/** Anyone can name any address: the node is asked about so many at once, and in one minute. */
const AT_ONCE = 4;
const PER_MINUTE = 120;
const MINUTE_MS = 60_000;
/** A contract stays one; another address may become one. */
const CONTRACT_MS = 3_600_000;
const NO_CONTRACT_MS = 60_000;
const REMEMBERED = 10_000;

/** Remembers answers. */
export function walletCode(rpcUrl: string, clock: Pick<Clock, 'monotonic'>): HasCode {
  const answers = new Map<Hex, { readonly hasCode: boolean; readonly untilMs: number }>();
  let minute = 0;
  let asked = 0;
  let underWay = 0;
  return async (address) => {
    const now = clock.monotonic();
    const known = answers.get(address);
    if (known !== undefined && now < known.untilMs) return known.hasCode;
    const current = Math.floor(now / MINUTE_MS);
    if (current !== minute) [minute, asked] = [current, 0];
    if (underWay >= AT_ONCE || asked >= PER_MINUTE) return null;
    asked += 1;
    underWay += 1;
    try {
      const code = await queryNode(rpcUrl, { ms: QUERY_MS }, (client) => client.getCode({ address }));
      const hasCode = code !== undefined && code !== '0x';
      answers.delete(address);
      answers.set(address, { hasCode, untilMs: now + (hasCode ? CONTRACT_MS : NO_CONTRACT_MS) });
      if (answers.size > REMEMBERED) deleteOldest(answers);
      return hasCode;
    } catch {
      return null;
    } finally {
      underWay -= 1;
    }
  };
}
