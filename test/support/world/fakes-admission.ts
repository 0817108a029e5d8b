// The admission of a call, as a test drives it: DNS, quotas and slots that answer as scripted and record it.

import { lookAt, stateOf, Windows } from '#src/adapters/quota/memory.ts';
import { LIMITS } from '#src/domain/limits.ts';
import type { Quota, QuotaRule, QuotaState } from '#src/ports/quota.ts';
import type { Resolution, Resolver } from '#src/ports/resolver.ts';
import { inFlightSlots, type Release, type Slots } from '#src/usecases/execution/process-limits.ts';
import type { VerifyLimit } from '#src/usecases/execution/verify-limit.ts';
import type { Trace } from './fakes.ts';

export type ScriptedResolver = Resolver & {
  readonly asked: readonly (readonly [name: string, timeoutMs: number])[];
  /** What every look-up answers from now on. */
  answer(resolution: Resolution): void;
};

/** One public address for every name, unless scripted otherwise. `steps`: gets `dns`. */
export function scriptedResolver(steps: Trace = []): ScriptedResolver {
  const asked: [string, number][] = [];
  let now: Resolution = { outcome: 'addresses', addresses: ['203.0.114.7'] };
  return {
    asked,
    answer: (resolution) => {
      now = resolution;
    },
    async resolve(name, timeoutMs) {
      asked.push([name, timeoutMs]);
      steps.push('dns');
      return now;
    },
  };
}

type QuotaCall = {
  readonly how: 'look' | 'take';
  readonly rule: QuotaRule;
  readonly key: string;
};

export type ScriptedQuota = Quota & {
  readonly calls: readonly QuotaCall[];
  /** Units taken from a rule, of every key. */
  taken(ruleName: string): number;
  /** From now on the rule's window is full for so long. */
  exhaust(ruleName: string, resetMs: number): void;
  /** The next `take` throws. */
  breakNextTake(): void;
};

/** Windows that never end. `steps`: gets `look` or `take` and the rule's name. */
export function scriptedQuota(steps: Trace = []): ScriptedQuota {
  const calls: QuotaCall[] = [];
  const windows = new Windows(undefined, () => 0);
  const full = new Map<string, number>();
  let broken = false;
  const shown = ({ name }: QuotaRule, state: QuotaState): QuotaState => {
    const resetMs = full.get(name);
    return resetMs === undefined ? state : { ...state, allowed: false, resetMs };
  };
  const note = (how: QuotaCall['how'], rule: QuotaRule, key: string) => {
    calls.push({ how, rule, key });
    steps.push(`${how} ${rule.name}`);
  };
  return {
    calls,
    taken: (ruleName) => calls.filter(({ how, rule }) => how === 'take' && rule.name === ruleName).length,
    exhaust: (ruleName, resetMs) => void full.set(ruleName, resetMs),
    breakNextTake: () => {
      broken = true;
    },
    async take(rule, key) {
      note('take', rule, key);
      if (broken) {
        broken = false;
        throw new Error('the quota store broke');
      }
      return shown(rule, stateOf(rule, windows.add(rule, key)));
    },
    async look(rule, key) {
      note('look', rule, key);
      return shown(rule, lookAt(windows, rule, key));
    },
  };
}

/** The real slots. `steps`: gets `slot` for one taken and `slot back` for one given back. */
export function tracedSlots(max: number, steps: Trace = []): Slots {
  const slots = inFlightSlots(max);
  return {
    ...slots,
    take(payer, perPayer) {
      const slot = slots.take(payer, perPayer);
      if (typeof slot !== 'function') return slot;
      steps.push('slot');
      return () => {
        steps.push('slot back');
        slot();
      };
    },
  };
}

/** Takes every place there is, each as another caller. Throws if one is not free. */
export function enterAll(verifies: VerifyLimit): Release[] {
  return Array.from({ length: LIMITS.verifiesInFlight.max }, (_, i) => {
    const place = verifies.enter({ client: `client of ${i}`, payer: `payer ${i}` }, 1);
    if (typeof place !== 'function') throw new Error(`place ${i} is not free`);
    return place;
  });
}
