/** Statements at the same time: one whose answer is lost must not hold up the others. */
const LANES = 2;

/** Items are distinct, as in a Set. One without an answer gets null. */
type AnswerAll<I, T> = (items: readonly I[]) => Promise<ReadonlyMap<I, T>>;

/**
 * Answers items in batches. Calls of one turn of the event loop share a statement, and those that arrive while `LANES`
 * statements are in flight share the next one: under load most of the cost of a read or write by key is that of its
 * statement. A statement begins after all calls that it answers.
 */
export function batched<I, T>(answerAll: AnswerAll<I, T>): (item: I) => Promise<T | null> {
  const empty = () => ({ items: new Set<I>(), ...Promise.withResolvers<ReadonlyMap<I, T>>() });
  let waiting: ReturnType<typeof empty> | null = null;
  let inFlight = 0;
  async function send(): Promise<void> {
    while (waiting !== null && inFlight < LANES) {
      const { items, promise, resolve } = waiting;
      waiting = null;
      inFlight += 1;
      resolve(answerAll([...items]));
      await promise.catch(() => undefined);
      inFlight -= 1;
    }
  }
  return async (item) => {
    if (waiting === null) setImmediate(() => void send());
    waiting ??= empty();
    const { items, promise } = waiting;
    items.add(item);
    return (await promise).get(item) ?? null;
  };
}
