// Whether a payer's address is a contract: only then can a signature that is not by its key be valid.
import { LIMITS } from '#src/domain/limits.ts';
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import { TokenBuckets } from '#src/lib/token-bucket.ts';
import type { Clock } from '#src/ports/clock.ts';
import { queryNode } from './node.ts';
import type { Hex } from './requirements.ts';

/** `client`: the client address that names it, as it is counted. null: not known. Never throws. */
export type HasCode = (address: Hex, client: string) => Promise<boolean | null>;

const QUERY_MS = 2000;
/** Anyone can name any address: the node is asked about so many at once, and for one client about so many. */
const AT_ONCE = 16;
const AT_ONCE_PER_CLIENT = 2;
const PER_MINUTE = LIMITS.walletQuestionsPerMinute.max;
/** A contract stays one; another address may become one. */
const CONTRACT_MS = 3_600_000;
const NO_CONTRACT_MS = 60_000;
const REMEMBERED = 10_000;

/** Remembers answers. */
export function walletCode(rpcUrl: string, clock: Pick<Clock, 'monotonic'>): HasCode {
  const answers = new Map<Hex, { readonly hasCode: boolean; readonly untilMs: number }>();
  const minute = new TokenBuckets(clock, { perSecond: PER_MINUTE / 60, burst: PER_MINUTE }, REMEMBERED);
  /** The client of each question. */
  const underWay: string[] = [];
  return async (address, client) => {
    const now = clock.monotonic();
    const known = answers.get(address);
    if (known !== undefined && now < known.untilMs) return known.hasCode;
    const own = underWay.filter((other) => other === client).length;
    if (underWay.length >= AT_ONCE || own >= AT_ONCE_PER_CLIENT || !minute.take(client).allowed) return null;
    underWay.push(client);
    try {
      const code = await queryNode(rpcUrl, { ms: QUERY_MS }, (node) => node.getCode({ address }));
      const hasCode = code !== undefined && code !== '0x';
      answers.delete(address);
      answers.set(address, { hasCode, untilMs: now + (hasCode ? CONTRACT_MS : NO_CONTRACT_MS) });
      if (answers.size > REMEMBERED) deleteOldest(answers);
      return hasCode;
    } catch {
      return null;
    } finally {
      underWay.splice(underWay.indexOf(client), 1);
    }
  };
}
