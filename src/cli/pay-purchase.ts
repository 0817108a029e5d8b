// One purchase, step by step: ask for the bill, judge it, sign, keep, present, judge what came. It never pays twice.

import {
  type BuyerLimits,
  type Finding,
  judgeBill,
  type PaymentHeader,
  type Presented,
  present,
  readBill,
  type Send,
  signPayment,
  type Terms,
} from '#src/app/buyer.ts';
import { didOf } from '#src/domain/signing-keys/did.ts';
import { fromJwkSet, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { Primitives } from '../domain/receipt/verify.ts';
import type { Clock } from '../ports/clock.ts';
import { CannotRun } from './exit.ts';
import { type Evidence, judgeExecution } from './pay-evidence.ts';
import { type Purchase, readPurchase, savePurchase } from './pay-file.ts';

export type PurchaseDeps = {
  readonly send: Send;
  readonly clock: Clock;
  readonly primitives: Primitives;
  /** Told of each wait. */
  readonly waiting: (why: string, ms: number) => void;
};

export type Order = {
  /** Origin of the relay. */
  readonly relay: string;
  /** Body of the execution, as the route takes it. */
  readonly request: { readonly url: string; readonly body?: unknown };
  readonly limits: Omit<BuyerLimits, 'resourceUrl'>;
  /** null: look, do not pay. */
  readonly privateKey: `0x${string}` | null;
  /** Keeps the payment there before it is sent, and goes on from it where it is there. */
  readonly save: string | null;
};

export type Bought = {
  readonly outcome:
    | 'delivered'
    | 'target_failed'
    | 'policy_refused'
    | 'not_paid'
    | 'relay_refused'
    | 'unfinished';
  readonly relay: string;
  /** Goes on from a saved payment: neither asked nor judged again. */
  readonly resumed: boolean;
  readonly terms: Terms | null;
  readonly policy: readonly Finding[];
  readonly payment: PaymentHeader | null;
  /** Of a relay that refused or did not finish. */
  readonly problem: { readonly code: string; readonly message: string } | null;
  readonly evidence: Evidence | null;
};

const PATH = '/api/execute/webhook';

/** Throws `CannotRun` where the relay cannot be asked, and `FoundWrong` never: what is wrong stands in the answer. */
export async function purchase(deps: PurchaseDeps, order: Order): Promise<Bought> {
  const { relay, request, privateKey, save } = order;
  const url = `${relay}${PATH}`;
  const body = JSON.stringify(request);
  const nothing = {
    relay,
    resumed: false,
    terms: null,
    policy: [],
    payment: null,
    problem: null,
    evidence: null,
  };
  const saved = save === null || privateKey === null ? null : readPurchase(save, url, body);
  if (saved !== null) return { ...nothing, ...(await deliver(deps, order, saved)), resumed: true };

  const bill = await askForBill(deps, url);
  const by = { did: didOfRelay(relay), keys: await publishedKeys(deps, relay) };
  const limits = { ...order.limits, resourceUrl: url };
  const { accepted, findings: policy } = await judgeBill(bill, limits, by, deps.clock.now());
  const terms = accepted === null ? null : termsOf(accepted);
  const seen = { ...nothing, terms, policy };
  if (accepted === null || terms === null || !policy.every(({ ok }) => ok))
    return { ...seen, outcome: 'policy_refused' };
  if (privateKey === null) return { ...seen, outcome: 'not_paid' };

  const payment = await signPayment(privateKey, bill, accepted);
  if (save !== null) savePurchase(save, url, body, { payment, terms });
  return { ...seen, ...(await deliver(deps, order, { payment, terms })) };
}

const termsOf = ({ scheme, network, asset, amount, payTo, maxTimeoutSeconds }: Terms): Terms => ({
  scheme,
  network,
  asset,
  amount,
  payTo,
  maxTimeoutSeconds,
});

/** With an empty body: a relay that asks for no payment must not execute anything before it was judged. */
async function askForBill({ send }: PurchaseDeps, url: string) {
  const answer = await reached(url, send('POST', url, '{}', { 'content-type': 'application/json' }));
  if (answer.status !== 402)
    throw new CannotRun(`${url} answered ${answer.status} where 402 was due: it asks for no payment now`);
  const bill = readBill(answer.header);
  if (bill === null) throw new CannotRun(`${url} sends no bill of x402 version 2 that can be read`);
  return bill;
}

async function publishedKeys(
  { send }: Pick<PurchaseDeps, 'send'>,
  relay: string,
): Promise<readonly KeyRecord[]> {
  const url = `${relay}/.well-known/jwks.json`;
  const { status, body } = await reached(url, send('GET', url));
  const keys = status === 200 ? keysIn(body) : null;
  if (keys === null) throw new CannotRun(`${url} is no JWK set (status ${status})`);
  return keys;
}

function keysIn(text: string): readonly KeyRecord[] | null {
  try {
    return fromJwkSet(JSON.parse(text));
  } catch {
    return null;
  }
}

async function reached<T>(url: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new CannotRun(`${url} cannot be reached`, { cause });
  }
}

function didOfRelay(relay: string): string {
  const { hostname, port } = new URL(relay);
  return didOf(hostname, port);
}

async function deliver(
  deps: PurchaseDeps,
  { relay, request }: Order,
  { payment, terms }: Purchase,
): Promise<Pick<Bought, 'outcome' | 'terms' | 'payment' | 'problem' | 'evidence'>> {
  const url = `${relay}${PATH}`;
  const presented = await present(deps, url, JSON.stringify(request), payment);
  const paid = { terms, payment };
  if (presented.kind !== 'executed') return { ...paid, ...withoutResult(presented), evidence: null };
  // Bought is bought: keys that cannot be had now fail the verification, and never hide what came.
  const keys = await publishedKeys(deps, relay).catch(() => []);
  const by = { did: didOfRelay(relay), keys };
  const evidence = await judgeExecution(deps.primitives, presented, { url, request, terms, payment, by });
  const outcome = presented.answer.status === 200 ? 'delivered' : 'target_failed';
  return { ...paid, outcome, problem: null, evidence };
}

function withoutResult(presented: Exclude<Presented, { kind: 'executed' }>) {
  if (presented.kind === 'refused') {
    const { code, message } = presented;
    return { outcome: 'relay_refused', problem: { code, message } } as const;
  }
  const message = `no final answer: the last was ${presented.last}`;
  return { outcome: 'unfinished', problem: { code: 'unfinished', message } } as const;
}
