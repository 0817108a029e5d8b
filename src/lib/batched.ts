/** Statements at the same time: one whose answer is lost must not hold up the others. */
const LANES = 2;

/** `ids` are distinct. What is missing in the answer does not exist. */
type FindAll<T> = (ids: readonly string[]) => Promise<ReadonlyMap<string, T>>;

/**
 * Finds one record by its id. Calls of one turn of the event loop share a look-up, and those that arrive while `LANES`
 * look-ups are in flight share the next one: under load most of the cost of a read by key is that of its statement. A
 * look-up begins after all calls that it answers.
 */
export function batched<T>(findAll: FindAll<T>): (id: string) => Promise<T | null> {
  const empty = () => ({ ids: new Set<string>(), ...Promise.withResolvers<ReadonlyMap<string, T>>() });
  let waiting: ReturnType<typeof empty> | null = null;
  let inFlight = 0;
  async function send(): Promise<void> {
    while (waiting !== null && inFlight < LANES) {
      const { ids, promise, resolve } = waiting;
      waiting = null;
      inFlight += 1;
      resolve(findAll([...ids]));
      await promise.catch(() => undefined);
      inFlight -= 1;
    }
  }
  return async (id) => {
    if (waiting === null) setImmediate(() => void send());
    waiting ??= empty();
    const { ids, promise } = waiting;
    ids.add(id);
    return (await promise).get(id) ?? null;
  };
}
