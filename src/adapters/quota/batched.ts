// Questions that come while one is being asked are asked together: one round trip at a time, however many wait.

/** `ask` answers all of a batch, in its order; what it throws everyone of the batch gets. */
export function batched<Q, A>(
  ask: (questions: readonly Q[]) => Promise<readonly A[]>,
  batchMax: number,
): (question: Q) => Promise<A> {
  let waiting: { readonly question: Q; readonly done: ReturnType<typeof Promise.withResolvers<A>> }[] = [];
  let asking = false;

  async function askAll(): Promise<void> {
    asking = true;
    // Who asks two things at once asks them together.
    await null;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchMax);
      waiting = waiting.slice(batchMax);
      try {
        const answers = await ask(batch.map(({ question }) => question));
        for (const [index, { done }] of batch.entries()) {
          const answer = answers[index];
          if (answer === undefined) done.reject(new Error('a question was not answered'));
          else done.resolve(answer);
        }
      } catch (cause) {
        for (const { done } of batch) done.reject(cause);
      }
    }
    asking = false;
  }

  return (question) => {
    const done = Promise.withResolvers<A>();
    waiting.push({ question, done });
    if (!asking) void askAll();
    return done.promise;
  };
}
