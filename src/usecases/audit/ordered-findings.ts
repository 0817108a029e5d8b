// The findings of events, reported in the order of the events, although signatures are verified concurrently.
import type { Finding } from '#src/domain/audit/finding.ts';
import { ordinal, type StreamStates } from './stream-states.ts';

export type OrderedFindings = ReturnType<typeof orderedFindings>;

type Deps = { readonly onFinding: (finding: Finding) => void; readonly state?: object };

/** `from`: number of the findings of earlier audits. With a state, each finding is kept in it. */
export function orderedFindings({ onFinding, state }: Deps, states: StreamStates, from = 0) {
  /** A finding is reported when all those before it are known. */
  const waiting: (readonly Finding[] | Promise<readonly Finding[]>)[] = [];
  let count = from;

  function report(finding: Finding): void {
    if (state !== undefined) states.put('finding', findingName(count), finding);
    count++;
    onFinding(finding);
  }

  return {
    /** After `settle`: of all events. */
    count: () => count,
    /** Reports those of the earlier audits. */
    repeat(): void {
      for (let n = 0; n < from; n++) {
        const finding = states.demand('finding', findingName(n));
        if (finding !== null) onFinding(finding);
      }
    },
    add(findings: readonly Finding[] | Promise<readonly Finding[]>): void {
      // A rejection is thrown when its turn comes.
      if (findings instanceof Promise) findings.catch(() => undefined);
      if (waiting.length > 0 || findings instanceof Promise) waiting.push(findings);
      else for (const finding of findings) report(finding);
    },
    /** Where more than `most` wait, until only `left` do. */
    async settle(most: number, left: number): Promise<void> {
      if (waiting.length <= most) return;
      for (const findings of waiting.splice(0, waiting.length - left))
        for (const finding of await findings) report(finding);
    },
  };
}

const findingName = (number: number): string => `finding ${ordinal(number)}`;
