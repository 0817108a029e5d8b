// What a ticket is worth when it is bought: its payer's balance covers all of its open runs, and no payer and no client
// address takes more than a share.
import { parsedJson } from '#src/domain/canonical-json.ts';
import { toHex } from '#src/domain/encoding.ts';
import { ALLOWED, type Allowed, Fault, type Refused, refused } from '#src/domain/refusal.ts';
import { SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import type { Ticket } from '#src/domain/schedule/state.ts';
import { isObject } from '#src/lib/is-object.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { ScheduleDeps } from './quote.ts';

type Buyer = { readonly presented: PresentedPayment | null; readonly payer: string; readonly client: string };

/** Whose open runs are counted: the payer's, or the client address's where calls are free. */
export const holderOf = (
  { keyedHash }: Pick<ScheduleDeps, 'keyedHash'>,
  { presented, payer, client }: Buyer,
): string => toHex(keyedHash.mac('ticket-holder', presented === null ? `client ${client}` : payer));

/** In whose turn its runs are started. */
export const clientOf = ({ keyedHash }: Pick<ScheduleDeps, 'keyedHash'>, { client }: Buyer): string =>
  toHex(keyedHash.mac('ticket-client', client));

export const tooMany = ({ max, meaning }: { readonly max: number; readonly meaning: string }) =>
  refused('too_many_in_flight', `At most ${max} runs that are not over: ${meaning}`, {
    retryAfterSeconds: 60,
  });

const DAY_MS = 86_400_000;

/** One new schedule of the payer and of the client address. */
export async function takeDay(
  { quota }: Pick<ScheduleDeps, 'quota'>,
  { presented, payer, client }: Buyer,
): Promise<Allowed | Refused<'rate_limited'>> {
  const { schedulesPerClient, schedulesPerPayer } = SCHEDULE_LIMITS;
  const taken = [await quota.take(rule('schedules-client', schedulesPerClient.max), client)];
  if (presented !== null) taken.push(await quota.take(rule('schedules-payer', schedulesPerPayer.max), payer));
  const full = taken.find(({ allowed }) => !allowed);
  if (full === undefined) return ALLOWED;
  const retryAfterSeconds = Math.max(1, Math.ceil(full.resetMs / 1000));
  return refused('rate_limited', 'Too many new schedules today: nothing was stored.', { retryAfterSeconds });
}

const rule = (name: string, maxRequests: number) => ({ name, windowMs: DAY_MS, maxRequests });

/** `holder`: the amounts of its open runs are added up, the one that is bought included. Throws `Fault` if the node does not answer. */
export async function covered(
  { payments, vault }: Pick<ScheduleDeps, 'payments' | 'vault'>,
  presented: PresentedPayment,
  holder: string,
): Promise<Allowed | Refused<'payment_required'>> {
  const [state, balance, open] = await Promise.all([
    payments.lookUp(presented),
    payments.balanceOf(presented),
    vault.held(holder),
  ]);
  if (state.outcome === 'unavailable' || balance === null)
    throw new Fault('facilitator_unavailable', 'The chain did not answer: nothing was stored.', {
      retryAfterSeconds: 5,
    });
  if (state.outcome !== 'unused') return invalid('invalid_transaction_state', 'The authorization is used.');
  const worth = open.reduce<bigint>((sum, amount) => sum + (amount ?? BigInt(presented.amount)), 0n);
  if (balance >= worth) return ALLOWED;
  return invalid(
    'insufficient_funds',
    `The balance does not cover the ${open.length} open runs of this payer.`,
  );
}

const invalid = (reason: string, message: string) =>
  refused('payment_required', message, { details: { reason } });

// ── whose it is ─────────────────────────────────────────────────────────────────────────────────────────

/** What is sealed of a run's payment: itself, and the client address that bought it, if the run is never charged. */
export function sealedPayment(
  { authorizations }: Pick<ScheduleDeps, 'authorizations'>,
  { presented, client }: Buyer,
): string {
  return presented === null ? '' : JSON.stringify({ ...objectIn(authorizations.write(presented)), client });
}

/** Why a run is not charged that its buyer has a hand in: what this service or another missed does not count. */
const BY_US = ['missed', 'lost', 'terms_changed', 'unserved'];

/** A run that is skipped and not charged counts as a payment of its client that was taken and not charged. */
export async function countSkipped(
  { vault, uncharged }: Pick<ScheduleDeps, 'vault' | 'uncharged'>,
  { paymentStream, sealed }: Pick<Ticket, 'paymentStream' | 'sealed'>,
  reason: string,
): Promise<void> {
  if (paymentStream === null || sealed === null || BY_US.includes(reason)) return;
  const { client } = objectIn((await vault.take(sealed)) ?? '');
  if (typeof client === 'string') await uncharged.uncharged(client, paymentStream);
}

/** Empty: it is none, as where its key is gone. */
function objectIn(text: string): { readonly [name: string]: unknown } {
  const value = parsedJson(text);
  return isObject(value) ? value : {};
}
