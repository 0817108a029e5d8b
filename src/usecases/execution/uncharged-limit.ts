// Payments that are taken and not charged write to the event log for free, and wallets are free too: each client address has
// so many a day.
import { LIMITS } from '#src/domain/limits.ts';
import { isBound, isSurelyOver } from '#src/domain/payment/state.ts';
import { ALLOWED, type Allowed, type Refused, refused } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Quota } from '#src/ports/quota.ts';
import { load, PAYMENT } from '#src/usecases/process/stream.ts';
import { unconfirmedPayments } from './process-limits.ts';

type UnchargedDeps = {
  readonly log: EventLog;
  readonly clock: Pick<Clock, 'now'>;
  readonly quota: Quota;
};

const RULE = { name: 'uncharged', windowMs: 86_400_000, maxRequests: LIMITS.unchargedPerDay.max };
/** When a payment of unknown fate may be known. */
const KNOWN_SECONDS = 5;
/** How many streams are read again, since another process may know their fate. */
const READ_AGAIN_MAX = 8;

/** `client`: an opaque key of a client address. `stream`: of a payment. */
export class UnchargedLimit {
  readonly #deps: UnchargedDeps;
  /** By client: taken here, and neither charged nor over as far as this process knows. They count as not charged. */
  readonly #open = unconfirmedPayments();

  constructor(deps: UnchargedDeps) {
    this.#deps = deps;
  }

  /** Whether a new payment may be taken. */
  async admit(client: string, stream: string): Promise<Allowed | Refused<'rate_limited'>> {
    const open = () => this.#open.waiting(client, stream);
    const look = () => this.#deps.quota.look(RULE, client);
    let today = await look();
    if (today.allowed && open().length > today.remaining) {
      await this.#readAgain(client, open().slice(0, READ_AGAIN_MAX));
      today = await look();
    }
    if (!today.allowed) return tooMany(today.resetMs / 1000);
    return open().length > today.remaining ? tooMany(KNOWN_SECONDS) : ALLOWED;
  }

  /** Its reservation is appended. */
  taken(client: string, stream: string): void {
    this.#open.add(client, stream);
  }

  charged(stream: string): void {
    this.#open.drop(stream);
  }

  /** It was rejected or released. */
  async uncharged(client: string, stream: string): Promise<void> {
    this.#open.drop(stream);
    await this.#deps.quota.take(RULE, client);
  }

  async #readAgain(client: string, streams: readonly string[]): Promise<void> {
    const { log, clock } = this.#deps;
    for (const { stream, state } of await Promise.all(streams.map((one) => load({ log }, PAYMENT, one)))) {
      const isOpen = isBound(state) && state.status !== 'settled';
      if (isOpen && !isSurelyOver(state.reserved, clock.now() / 1000)) continue;
      const isUncharged = isOpen || state.status === 'rejected' || state.status === 'released';
      if (isUncharged) await this.uncharged(client, stream);
      else this.charged(stream);
    }
  }
}

const tooMany = (seconds: number) =>
  refused('rate_limited', 'Too many payments from this address were not charged today.', {
    retryAfterSeconds: Math.max(1, Math.ceil(seconds)),
  });
