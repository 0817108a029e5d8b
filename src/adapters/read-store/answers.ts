import { withTimeout } from '#src/lib/time.ts';

/** Whether `ask` succeeds in time. Never throws. */
export async function answersWithin(limitMs: number, ask: () => Promise<unknown>): Promise<boolean> {
  const answer = withTimeout(ask(), limitMs, () => new Error(`no answer within ${limitMs} ms`));
  return answer.then(
    () => true,
    () => false,
  );
}
